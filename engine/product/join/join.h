/* Joins the parts of a product (engine/stream/part.h) to the result that one run would have
 * written, byte for byte. The parts are stores (TTV), folders with two .npy files (TTM), or .npy
 * files (MTTKRP). Their records (part_record.h) show that they belong together and that none is
 * missing. */
#ifndef SLC_ENGINE_JOIN_H
#define SLC_ENGINE_JOIN_H

#include "base/error/error.h"
#include "base/error/stop.h"
#include "convert/build/build_types.h"

#include <stdbool.h>
#include <stdint.h>

struct slc_join_options {
    const struct slc_files *files; /* NULL: the operating system */
    const char *const *parts;      /* paths of the parts, in any order */
    unsigned count;
    const char *output;
    bool overwrite;        /* replace an existing store; other results are always replaced */
    uint64_t memory_bytes; /* 0: 80 % of slc_memory_total() */
    const char *temp_folder;
    uint64_t max_temp;
    unsigned threads;
    const struct slc_stop *stop; /* stops with SLC_ERR_INTERRUPTED; may be NULL */
    void (*progress)(void *context, const char *phase, uint64_t done, uint64_t total);
    void *context;
};

enum slc_join_kind { SLC_JOIN_STORES, SLC_JOIN_FIBERS, SLC_JOIN_ROWS };

struct slc_join_report {
    enum slc_join_kind kind;
    /* stores */
    unsigned order;
    uint64_t dims[SLC_MAX_ORDER];
    struct slc_builder_report build;
    /* fibers or rows */
    uint64_t rows;
    uint32_t cols;
};

/* Joins all parts. Errors: SLC_ERR_INPUT, naming the part, if parts are missing, given twice or of
 * different products; SLC_ERR_FORMAT if a path is no part; SLC_ERR_BUDGET; those of reading and
 * writing. After an error, nothing is left on disk. Cost: reads and writes the result once; stores
 * are also sorted. */
enum slc_status slc_join(const struct slc_join_options *options,
                         struct slc_join_report *report,
                         struct slc_error *err) SLC_NODISCARD;

#endif
