/* Verifies a store, for `sluice check`: structure, every checksum, every padding byte. With
 * `decode`, decodes every tile of every layout and compares its keys, coordinate ranges, counts,
 * sums of squares and content sums with the directory, the index, the header and the manifest. */
#ifndef SLC_STORAGE_VERIFY_H
#define SLC_STORAGE_VERIFY_H

#include "base/error/error.h"
#include "base/error/stop.h"
#include "storage/file/files.h"
#include "storage/manifest/store.h"

#include <stdbool.h>
#include <stdint.h>

/* A file in the folder of a store that is not part of the store, but was left by this program. */
struct slc_leftover {
    const char *name;
    /* layout to which the file belongs; SLC_LAYOUT_BLCO for a manifest or stripes */
    enum slc_layout_kind layout;
    unsigned mode;
};

struct slc_verify_options {
    const struct slc_files *files; /* NULL means the operating system */
    bool decode;                   /* false for `check --fast` */
    unsigned threads;
    uint64_t memory_bytes;       /* budget; 0 means the default */
    unsigned max_findings;       /* stops after this number of findings; 0 means 64 */
    const struct slc_stop *stop; /* polled between tiles; may be NULL */
    /* Called for each fault, by one thread at a time. If NULL, faults are only counted. */
    void (*found)(void *context, const struct slc_error *fault);
    /* Called for files left by interrupted changes of layouts (not faults); may be NULL. */
    void (*leftover)(void *context, const struct slc_leftover *leftover);
    void *context;
    /* Called with the bytes of the store's files checked so far and in total, by any thread, one at
     * a time; may be NULL. */
    void (*progress)(void *context, const char *phase, uint64_t done, uint64_t total);
};

struct slc_verify_report {
    uint64_t files;
    uint64_t blocks;
    uint64_t bytes;
    uint64_t layouts;
    uint64_t nnz;       /* nonzeros of all layouts together */
    uint64_t leftovers; /* files of interrupted changes of layouts; not part of the store */
    uint64_t findings;
};

/* Returns SLC_OK if the check completed without findings, otherwise the status of the first
 * finding, which `err` holds; SLC_ERR_INTERRUPTED if `stop` ended the check. All findings are
 * passed to `found`. */
enum slc_status slc_verify_store(const char *path,
                                 const struct slc_verify_options *options,
                                 struct slc_verify_report *report,
                                 struct slc_error *err) SLC_NODISCARD;

#endif
