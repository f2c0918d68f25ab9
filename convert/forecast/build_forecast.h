/* Estimates the cost of building a store from a sample of its entries. A tile of the sample is
 * encoded as in the store (build_trial.c). */
#ifndef SLC_CONVERT_BUILD_FORECAST_H
#define SLC_CONVERT_BUILD_FORECAST_H

#include "convert/build/build_types.h"
#include "convert/forecast/species_estimate.h"

#include <stdbool.h>
#include <stdint.h>

/* A build to be forecast: its options and a sample of its entries. */
struct slc_build_job {
    const struct slc_builder_options *build; /* the builder's options, with memory and workers */
    /* entries as pushed, with indices that start at `base` */
    const struct slc_entries *sample;
    unsigned base;
    uint32_t stretches; /* argument of slc_builder_sample */
    const uint64_t *dims;
    uint64_t expected; /* number of entries passed to the builder as an estimate; 0: unknown */
    uint64_t entries;  /* number of entries of the input */
    /* Estimated number of distinct coordinates in the input; NULL: estimated from the sample. */
    const struct slc_species_estimate *cells;
    /* Expected fraction of the buckets into which the rows of a thread fall, for every thread
     * except the first; 0 is treated like 1. */
    double bucket_share;
    bool unsampled; /* the builder gets no sample, so all entries go to one bucket */
};

/* Properties of the store, derived from the sample. */
struct slc_build_sample {
    double nnz, nnz_most;     /* expected number of nonzeros, and upper bound */
    struct slc_fiber_run run; /* fiber run of the store; all zero: none */
    double pieces;            /* number of pieces of fibers, if there is a run */
    bool regroup;             /* buckets are formed under another run than `run` */
};

/* Trial encoding of a typical tile of the store, made from a sample of its entries. */
struct slc_build_trial {
    uint32_t nnz;                  /* nonzeros in the sample; 0: the other fields are unknown */
    double index_bits, value_bits; /* bits of coordinates and of values, per nonzero */
    double key_bits;
    double closer; /* density of nonzeros in the store divided by the density in the sample */
    /* Number of tiles in the store, including tiles that end early because of the extent limit. */
    double tiles;
    double nanoseconds; /* time to encode a nonzero */
};

/* Encodes a typical tile and derives *trial. Errors: SLC_ERR_MEMORY; SLC_ERR_UNSUPPORTED if keys
 * would be too long. */
enum slc_status slc_build_trial(const struct slc_build_job *job,
                                const struct slc_build_sample *found,
                                struct slc_build_trial *trial,
                                struct slc_error *err) SLC_NODISCARD;

/* Estimated cost of a build; all 0 if the sample or the input has no nonzeros. */
struct slc_build_forecast {
    uint64_t push_bytes,
        sort_bytes;       /* memory while entries are pushed, and while the store is written */
    uint64_t spill_bytes; /* size of the spill file */
    /* Expected size of the store, and its size with the largest possible number of nonzeros. */
    uint64_t store_bytes, store_most_bytes;
    double scatter_seconds, sort_seconds, encode_seconds; /* wall-clock time */
};

/* Errors: SLC_ERR_MEMORY; SLC_ERR_UNSUPPORTED if keys would be too long. */
enum slc_status slc_build_forecast(const struct slc_build_job *job,
                                   struct slc_build_forecast *forecast,
                                   struct slc_error *err) SLC_NODISCARD;

#endif
