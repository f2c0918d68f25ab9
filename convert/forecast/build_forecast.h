/*
 * What building a store would take, judged by a sample of its entries, of which a tile is encoded
 * as those of the store would be (build_trial.c).
 */
#ifndef SLC_CONVERT_BUILD_FORECAST_H
#define SLC_CONVERT_BUILD_FORECAST_H

#include "convert/build/build_types.h"
#include "convert/forecast/species_estimate.h"

#include <stdbool.h>
#include <stdint.h>

/* A build that is forecast: its options and a sample of its entries. */
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

/* Encoding a tile such as the store would have, made of a sample of its entries. */
struct slc_build_trial {
    uint32_t nnz;                  /* of the sample; 0: it has no nonzeros, and nothing is known */
    double index_bits, value_bits; /* of a nonzero of the store */
    double key_bits;
    double closer;      /* nonzeros lie in the store than in the sample */
    double tiles;       /* of the store, those that are cut short by how far they reach included */
    double nanoseconds; /* that encoding a nonzero takes */
};

/* Errors: SLC_ERR_MEMORY; SLC_ERR_UNSUPPORTED where keys would be too long. */
enum slc_status slc_build_trial(const struct slc_build_job *job,
                                const struct slc_build_sample *found,
                                struct slc_build_trial *trial,
                                struct slc_error *err) SLC_NODISCARD;

/* All 0 where the sample, or what would come, has no nonzeros. */
struct slc_build_forecast {
    uint64_t push_bytes, sort_bytes; /* held while entries come, and while the store is written */
    uint64_t spill_bytes;            /* of the temporary file */
    uint64_t store_bytes, store_most_bytes; /* as expected, and of the most nonzeros */
    double scatter_seconds, sort_seconds, encode_seconds; /* of all workers at once */
};

/* Errors: SLC_ERR_MEMORY; SLC_ERR_UNSUPPORTED where keys would be too long. */
enum slc_status slc_build_forecast(const struct slc_build_job *job,
                                   struct slc_build_forecast *forecast,
                                   struct slc_error *err) SLC_NODISCARD;

#endif
