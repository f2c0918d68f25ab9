/* Random factors and one output for the MTTKRPs of a benchmark. */
#ifndef SLC_TOOLS_BENCH_FACTORS_H
#define SLC_TOOLS_BENCH_FACTORS_H

#include "base/backend.h"
#include "storage/manifest/store.h"

struct bench_factors {
    struct slc_matrix factors[SLC_MAX_ORDER];
    struct slc_matrix output; /* of the largest mode; smaller modes use its beginning */
};

/*
 * Creates factors for the modes of `manifest`, filled by `threads` threads. Owns:
 * bench_factors_destroy, also after an error. Needs: all-zero. Errors: SLC_ERR_MEMORY,
 * SLC_ERR_SYSTEM.
 */
enum slc_status bench_factors_create(struct bench_factors *factors,
                                     const struct slc_manifest *manifest,
                                     enum slc_value_type precision,
                                     uint32_t rank,
                                     unsigned threads,
                                     struct slc_error *err) SLC_NODISCARD;

/*
 * The job of one mode; the caller sets conflict strategy and workers. `output` becomes the view
 * that job->output points to.
 */
struct slc_mttkrp_job bench_factors_job(const struct bench_factors *factors,
                                        const struct slc_manifest *manifest,
                                        unsigned mode,
                                        struct slc_matrix *output);

void bench_factors_destroy(struct bench_factors *factors);

#endif
