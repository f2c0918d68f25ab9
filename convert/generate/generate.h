/* `sluice generate`: random sparse tensors of any size, in bounded memory. The tensor depends only
 * on the options, not on the number of threads, because random numbers are counter-based. */
#ifndef SLC_CONVERT_GENERATE_H
#define SLC_CONVERT_GENERATE_H

#include "base/error/error.h"
#include "convert/build/build_types.h"

#include <stdbool.h>
#include <stdint.h>

/* Distribution of the nonzeros. */
enum slc_distribution {
    SLC_DIST_UNIFORM,       /* distinct coordinates, uniformly: exactly nnz nonzeros */
    SLC_DIST_ZIPF,          /* per mode, P(i) ~ 1 / (i + 1)^s: low ids are frequent */
    SLC_DIST_ZIPF_SHUFFLED, /* the same with ids permuted */
    /*
     * Best and worst case for reuse of factor rows. Best: a full box at the origin, which touches
     * the fewest rows possible for nnz nonzeros. Worst: no two nonzeros share an index in any mode,
     * so no row is touched twice and every fiber has one nonzero.
     */
    SLC_DIST_BEST,
    SLC_DIST_WORST /* every mode size must be at least nnz */
};

struct slc_generate_options {
    const struct slc_files *files;
    const char *output; /* *.slc: a store; else .tns text; "-": standard output */
    unsigned order;
    uint64_t dims[SLC_MAX_ORDER];
    uint64_t nnz; /* number of entries drawn; zipf may repeat coordinates, which a store combines */
    enum slc_distribution distribution;
    double zipf_exponent;
    unsigned best_ttm; /* SLC_DIST_BEST only: mode of a TTM, from 1; 0: optimize for MTTKRPs */
    uint32_t rank;     /* > 0: values of a planted rank-R model; 0: integers 1..9 by hash */
    double noise;      /* standard deviation relative to the root mean square of the model values */
    uint64_t seed;
    enum slc_codec codec;
    enum slc_relabel relabel; /* this and the next two options apply to stores only */
    enum slc_fibers fibers;
    struct slc_fiber_run run;
    uint64_t block_bytes;
    uint64_t memory_bytes;
    const char *temp_folder;
    uint64_t max_temp;
    unsigned threads;
    bool overwrite;
    const struct slc_stop *stop; /* stops with SLC_ERR_INTERRUPTED; may be NULL */
    void (*progress)(void *context, const char *phase, uint64_t done, uint64_t total);
    void *context;
    /* Called once, when the store is complete and about to be renamed to its final name. After this
     * call, a cleanup must not remove its files. NULL: no callback. */
    void (*publishing)(void);
};

struct slc_generate_report {
    uint64_t entries;
    bool store;                      /* the output is a store, not text */
    uint64_t text_bytes;             /* text output */
    struct slc_builder_report build; /* store output */
};

/* Estimated cost of slc_generate, from the first entries. */
struct slc_generate_forecast {
    bool store;
    unsigned workers;
    uint64_t fixed_bytes;            /* process, factors of the planted model, columns of entries */
    uint64_t text_memory_bytes;      /* text output: buffers */
    uint64_t push_bytes, sort_bytes; /* store output, without the process */
    uint64_t spill_bytes, output_bytes; /* on disk */
    double draw_seconds;                /* of all workers together; text: including formatting */
    double scatter_seconds, sort_seconds, encode_seconds; /* store output */
};
/* Writes nothing. Errors: those that slc_generate reports before it writes. */
enum slc_status slc_generate_forecast(const struct slc_generate_options *options,
                                      struct slc_generate_forecast *forecast,
                                      struct slc_error *err) SLC_NODISCARD;

/* Errors: SLC_ERR_USAGE (nnz above the product of mode sizes, ..), errors of the builder or of file
 * operations. */
enum slc_status slc_generate(const struct slc_generate_options *options,
                             struct slc_generate_report *report,
                             struct slc_error *err) SLC_NODISCARD;

#endif
