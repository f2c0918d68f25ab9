/*
 * What MTTKRPs are compared with where a benchmark is asked to check them: the naive loops of
 * cpu/reference/reference.h over a list of 64-bit coordinates, which the store is read into.
 */
#ifndef SLC_TOOLS_BENCH_MTTKRP_ORACLE_H
#define SLC_TOOLS_BENCH_MTTKRP_ORACLE_H

#include "tools/bench/measure/factors.h"
#include "tools/bench/mttkrp/mttkrp_job.h"
#include "tools/bench/product/ttv_tensor.h"

struct bench_mttkrp_oracle {
    struct ttv_tensor tensor;
    uint32_t rank;
    struct slc_buffer memory;
    double *want[SLC_MAX_ORDER], *magnitude[SLC_MAX_ORDER]; /* of the group's modes, in `memory` */
};

/*
 * Computes the products of the group's modes. Needs: all-zero. Owns: bench_mttkrp_oracle_destroy,
 * also after an error. Errors: SLC_ERR_BUDGET, SLC_ERR_MEMORY; those of reading.
 */
enum slc_status bench_mttkrp_oracle_create(struct bench_mttkrp_oracle *oracle,
                                           const struct slc_session *session,
                                           struct bench_mttkrp_group *group,
                                           const struct bench_factors *factors,
                                           struct slc_error *err) SLC_NODISCARD;
void bench_mttkrp_oracle_destroy(struct bench_mttkrp_oracle *oracle);

/*
 * The largest difference of an element from the oracle's over the same sum of magnitudes; infinite
 * where something stands in an element to which nothing belongs, or no number.
 */
double bench_mttkrp_oracle_error(const struct bench_mttkrp_oracle *oracle,
                                 unsigned mode,
                                 const struct slc_matrix *output);

#endif
