/* Implements `sluice slice` and `sluice permute`: makes a store from some indices of another store,
 * or with the modes of another store in a new order. The remaining nonzeros are pushed to a
 * builder, in bounded memory. The result has the same bytes as a store that is converted from text
 * with these nonzeros. */
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
    const char *verb; /* "slice" or "permute": recorded as the dialect in the manifest */
    /* array of SLC_MAX_ORDER elements, one per mode of `store`; NULL: all indices are kept */
    const struct slc_ranges *ranges;
    bool from_zero; /* numbers of modes and indices in messages start at 0, not 1 */
    /* Keep the numbers of the remaining indices instead of renumbering them. */
    bool keep_indices;
    unsigned mode_count;           /* 0: modes keep their order */
    unsigned modes[SLC_MAX_ORDER]; /* mode k of the result is mode modes[k] of `store` */
    struct slc_transforms transforms;
    enum slc_codec codec; /* 0: the codec of `store` */
    enum slc_relabel relabel;
    /* Ignore `relabel`, and relabel by frequency if `store` has a relabelled mode. */
    bool keep_numbering;
    enum slc_fibers fibers;
    struct slc_fiber_run run;
    uint64_t block_bytes;
    uint64_t memory_bytes; /* 0: 80 % of slc_memory_total() */
    const char *temp_folder;
    uint64_t max_temp;
    unsigned threads;
    bool overwrite;
    const struct slc_stop *stop; /* stops with SLC_ERR_INTERRUPTED; may be NULL */
    void (*progress)(void *context, const char *phase, uint64_t done, uint64_t total);
    void *context;
    void (*publishing)(void); /* as in struct slc_convert_options */
};

struct slc_reshape_report {
    uint64_t nnz; /* nonzeros of `store` */
    unsigned order;
    uint64_t dims[SLC_MAX_ORDER];
    struct slc_builder_report build;
};

/* Makes the new store. Memory: memory_bytes is the limit for the whole process; SLC_ERR_BUDGET
 * names the smallest sufficient budget. Errors: SLC_ERR_USAGE if a mode or an index does not exist;
 * errors of the store and of the builder. After an error, nothing remains on disk. */
enum slc_status slc_reshape(const struct slc_reshape_options *options,
                            struct slc_reshape_report *report,
                            struct slc_error *err) SLC_NODISCARD;

/* Estimated cost of slc_reshape. */
struct slc_reshape_forecast {
    unsigned order;
    uint64_t dims[SLC_MAX_ORDER];
    uint64_t nnz, kept; /* nonzeros of the store; nonzeros of the result, estimated from a sample */
    uint64_t read_bytes, names_bytes; /* bytes read, and bytes of names read and written */
    /* fixed_bytes: memory of the process and of names; scan_bytes: the same plus a scan. */
    uint64_t fixed_bytes, scan_bytes;
    /* Forecast of the build. Its memory is in addition to fixed_bytes; built.store_bytes is
     * estimated from the size of the old store. */
    struct slc_build_forecast built;
    double scan_seconds; /* wall-clock time with all workers */
};

/* Estimates the cost of slc_reshape without writing. `seconds`: approximate time of a trial on some
 * tiles. Errors: those that slc_reshape reports before it writes, including SLC_ERR_BUDGET, and
 * errors of reading the store. */
enum slc_status slc_reshape_forecast(const struct slc_reshape_options *options,
                                     double seconds,
                                     struct slc_reshape_forecast *forecast,
                                     struct slc_error *err) SLC_NODISCARD;

#endif
