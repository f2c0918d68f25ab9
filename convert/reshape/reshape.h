/*
 * `sluice slice` and `sluice permute`: a store of some indices of another one's modes, and of its
 * modes in another order. All nonzeros are pushed to a builder, in bounded memory; the result has
 * the bytes of one that is converted from the text of what is left.
 */
#ifndef SLC_CONVERT_RESHAPE_H
#define SLC_CONVERT_RESHAPE_H

#include "base/error/error.h"
#include "base/memory/limits.h"
#include "convert/build/build_types.h"
#include "convert/forecast/build_forecast.h"
#include "convert/reshape/ranges.h"

#include <stdbool.h>
#include <stdint.h>

struct slc_reshape_options {
    const struct slc_files *files;
    const char *store;
    const char *output;
    const char *verb;                /* "slice": the dialect that the manifest tells */
    const struct slc_ranges *ranges; /* by mode of `store`, SLC_MAX_ORDER; NULL: all indices */
    bool from_zero;      /* messages count modes and indices from 0, as programs do; else from 1 */
    bool keep_indices;   /* else those that are left are numbered anew */
    unsigned mode_count; /* 0: modes stay where they are */
    unsigned modes[SLC_MAX_ORDER]; /* mode k of the result is mode modes[k] of `store` */
    struct slc_transforms transforms;
    enum slc_codec codec; /* 0: that of `store` */
    enum slc_relabel relabel;
    bool keep_numbering; /* by frequency where `store` has a relabelled mode; `relabel` is not
                            looked at */
    enum slc_fibers fibers;
    struct slc_fiber_run run;
    uint64_t block_bytes;
    uint64_t memory_bytes; /* 0: 80 % of slc_memory_total() */
    const char *temp_folder;
    uint64_t max_temp;
    unsigned threads;
    bool overwrite;
    const struct slc_stop *stop; /* ends it with SLC_ERR_INTERRUPTED; may be NULL */
    void (*progress)(void *context, const char *phase, uint64_t done, uint64_t total);
    void *context;
    void (*publishing)(void); /* as in struct slc_convert_options */
};

struct slc_reshape_report {
    uint64_t nnz; /* of `store` */
    unsigned order;
    uint64_t dims[SLC_MAX_ORDER];
    struct slc_builder_report build;
};

/*
 * Memory: memory_bytes bounds everything; SLC_ERR_BUDGET names the least that works. Errors:
 * SLC_ERR_USAGE where a mode or an index does not exist, those of the store, and of the builder;
 * nothing is left on disk after one.
 */
enum slc_status slc_reshape(const struct slc_reshape_options *options,
                            struct slc_reshape_report *report,
                            struct slc_error *err) SLC_NODISCARD;

/* What it would take. */
struct slc_reshape_forecast {
    unsigned order;
    uint64_t dims[SLC_MAX_ORDER];
    uint64_t nnz, kept;               /* of the store; of the result, judged by a sample */
    uint64_t read_bytes, names_bytes; /* the latter are read, and written to the result */
    /* Memory: the process and names; that and what a scan takes, while nonzeros come. */
    uint64_t fixed_bytes, scan_bytes;
    struct slc_build_forecast built; /* beside these; its store_bytes follow from the store's */
    double scan_seconds;             /* of all workers at once */
};

/*
 * Writes nothing. `seconds`: about so long some tiles are tried. Errors: those of slc_reshape's
 * beginning, SLC_ERR_BUDGET with them, and of reading the store.
 */
enum slc_status slc_reshape_forecast(const struct slc_reshape_options *options,
                                     double seconds,
                                     struct slc_reshape_forecast *forecast,
                                     struct slc_error *err) SLC_NODISCARD;

#endif
