/*
 * What building a store would take, judged by a sample of its entries, of which a
 * tile is encoded as those of the store would be (build_trial.h).
 */
#ifndef SLC_CONVERT_BUILD_FORECAST_H
#define SLC_CONVERT_BUILD_FORECAST_H

#include "convert/forecast/build_job.h"

#include <stdbool.h>
#include <stdint.h>

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
