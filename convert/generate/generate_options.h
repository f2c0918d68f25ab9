/* What random tensor is generated, and to where. */
#ifndef SLC_CONVERT_GENERATE_OPTIONS_H
#define SLC_CONVERT_GENERATE_OPTIONS_H

#include "convert/build/build_types.h"

#include <stdbool.h>
#include <stdint.h>

enum slc_distribution {
    SLC_DIST_UNIFORM,       /* distinct coordinates, uniformly: exactly nnz nonzeros */
    SLC_DIST_ZIPF,          /* per mode, P(i) ~ 1 / (i + 1)^s: low ids are frequent */
    SLC_DIST_ZIPF_SHUFFLED, /* the same with ids permuted */
    /*
     * Bounds of what a kernel can gain from using rows again (XPLAT, section 3): a full box at the
     * origin, which touches the fewest rows that nnz nonzeros can; and nonzeros of which no two
     * share an index in any mode, so that every row is touched once and fibers are of length one.
     */
    SLC_DIST_BEST,
    SLC_DIST_WORST /* no mode may be shorter than nnz */
};

struct slc_generate_options {
    const struct slc_files *files;
    const char *output; /* *.slc builds a store; anything else is .tns text, "-" standard output */
    unsigned order;
    uint64_t dims[SLC_MAX_ORDER];
    uint64_t nnz; /* entries drawn; zipf draws repeat, and a store combines them */
    enum slc_distribution distribution;
    double zipf_exponent;
    unsigned best_ttm; /* best: 0: for MTTKRPs; else for a TTM in this mode, from 1 */
    uint32_t rank;     /* > 0: values of a planted rank-R model; 0: integers 1..9 by hash */
    double noise;      /* standard deviation relative to the root mean square of the model values */
    uint64_t seed;
    enum slc_codec codec;
    enum slc_relabel relabel; /* of a store, as the next two */
    enum slc_fibers fibers;
    struct slc_fiber_run run;
    uint64_t block_bytes;
    uint64_t memory_bytes;
    const char *temp_folder;
    uint64_t max_temp;
    unsigned threads;
    bool overwrite;
    const struct slc_stop *stop; /* ends it with SLC_ERR_INTERRUPTED; may be NULL */
    void (*progress)(void *context, const char *phase, uint64_t done, uint64_t total);
    void *context;
    /* Called once, when the store is complete and is about to get its name; NULL: nobody is. What
     * is unfinished is not to be removed from then on. */
    void (*publishing)(void);
};

#endif
