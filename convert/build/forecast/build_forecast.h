/*
 * What building a store would take, judged by a sample of its entries (build_sample.h), of which a
 * tile is encoded as those of the store would be (build_trial.h).
 */
#ifndef SLC_CONVERT_BUILD_FORECAST_H
#define SLC_CONVERT_BUILD_FORECAST_H

#include "convert/build/builder.h"
#include "convert/build/forecast/unseen.h"

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
    const struct slc_unseen_estimate *cells;
    /* Of buckets, that each thread has rows for but the one that has the first; 0: all. */
    double bucket_share;
    bool unsampled; /* the builder would not see the sample: all entries go to one bucket */
};

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
