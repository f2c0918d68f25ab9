/* A build that is forecast: its options and a sample of its entries. */
#ifndef SLC_CONVERT_BUILD_JOB_H
#define SLC_CONVERT_BUILD_JOB_H

#include "convert/build/build_types.h"
#include "convert/forecast/species_estimate.h"

#include <stdbool.h>
#include <stdint.h>

struct slc_build_job {
    const struct slc_builder_options *build; /* with its memory and workers */
    const struct slc_entries *sample;        /* as pushed, with indices from `base` */
    unsigned base;
    uint32_t stretches; /* as slc_builder_sample has them */
    const uint64_t *dims;
    uint64_t expected; /* entries that the builder would be told of; 0: none */
    uint64_t entries;  /* that would come */
    /* What is known of different coordinates beyond the sample; NULL: nothing. */
    const struct slc_species_estimate *cells;
    /* Of buckets, that each thread has rows for but the one that has the first; 0: all. */
    double bucket_share;
    bool unsampled; /* the builder would not see the sample: all entries go to one bucket */
};

/* What the sample says of the store. */
struct slc_build_sample {
    double nnz, nnz_most;     /* as expected, and as many as there may be */
    struct slc_fiber_run run; /* of the store; all zero: none */
    double pieces;            /* of fibers, where it has one */
    bool regroup;             /* buckets are cut for another run */
};

#endif
