/* Random factors and one output for the MTTKRPs of a benchmark. */
#ifndef SLC_TOOLS_BENCH_FACTORS_H
#define SLC_TOOLS_BENCH_FACTORS_H

#include "base/backend.h"
#include "storage/manifest/store.h"

struct bench_factors {
    struct slc_matrix factors[SLC_MAX_ORDER];
    struct slc_matrix output; /* as large as the largest mode; smaller modes use its first rows */
};

/* Creates factors for the modes of `manifest`, filled by `threads` threads. Needs: *factors is
 * all-zero. The caller must call bench_factors_destroy, also after an error. Errors:
 * SLC_ERR_MEMORY, SLC_ERR_SYSTEM. */
enum slc_status bench_factors_create(struct bench_factors *factors,
                                     const struct slc_manifest *manifest,
                                     enum slc_value_type precision,
                                     uint32_t rank,
                                     unsigned threads,
                                     struct slc_error *err) SLC_NODISCARD;

/* Returns the job for one mode. The caller must set the conflict strategy and the workers of the
 * job. Sets `output`, to which job->output points, to the part of factors->output that the mode
 * uses. */
struct slc_mttkrp_job bench_factors_job(const struct bench_factors *factors,
                                        const struct slc_manifest *manifest,
                                        unsigned mode,
                                        struct slc_matrix *output);

void bench_factors_destroy(struct bench_factors *factors);

#endif
