/*
 * Verifies a store: what `sluice check` runs. Structure, every checksum, every padding byte; with
 * `decode`, every tile of every layout is decoded and its keys, coordinate ranges, counts, sums of
 * squares and content sums are compared with the directory, the index, the header and the manifest.
 */
#ifndef SLC_STORAGE_VERIFY_H
#define SLC_STORAGE_VERIFY_H

#include "base/error/error.h"
#include "base/error/stop.h"
#include "storage/file/files.h"
#include "storage/manifest/store.h"

#include <stdbool.h>
#include <stdint.h>

/* A file in the folder of a store that is no part of it, yet comes from this program. */
struct slc_leftover {
    const char *name;
    enum slc_layout_kind layout; /* SLC_LAYOUT_BLCO: a manifest, or of stripes */
    unsigned mode;
};

struct slc_verify_options {
    const struct slc_files *files; /* NULL: the operating system */
    bool decode;                   /* false: `check --fast` */
    unsigned threads;
    uint64_t memory_bytes;       /* budget; 0: the default */
    unsigned max_findings;       /* stop after so many; 0: 64 */
    const struct slc_stop *stop; /* looked at between tiles; may be NULL */
    /* Called for each fault found, from one thread at a time; NULL to count only. */
    void (*found)(void *context, const struct slc_error *fault);
    /* The same for files that interrupted changes of layouts have left, which are no faults. */
    void (*leftover)(void *context, const struct slc_leftover *leftover);
    void *context;
    /* Bytes of the store's files that have been checked, of all; any thread, one at a time. NULL:
     * not told. */
    void (*progress)(void *context, const char *phase, uint64_t done, uint64_t total);
};

struct slc_verify_report {
    uint64_t files;
    uint64_t blocks;
    uint64_t bytes;
    uint64_t layouts;
    uint64_t nnz;       /* of all layouts together */
    uint64_t leftovers; /* files of interrupted changes of layouts: no part of the store */
    uint64_t findings;
};

/*
 * SLC_ERR_INTERRUPTED where `stop` ended it.
 * Returns SLC_OK when the check ran and found nothing, the status of the first finding otherwise
 * (with `err` holding it). All findings go through `found`.
 */
enum slc_status slc_verify_store(const char *path,
                                 const struct slc_verify_options *options,
                                 struct slc_verify_report *report,
                                 struct slc_error *err) SLC_NODISCARD;

#endif
