/* A naive CP-ALS on a dense array, written for readability: the reference for engine/solve. Shares
 * with the engine only the random numbers of the start and the oracle's MTTKRP. */
#ifndef SLC_TEST_NAIVE_CP_H
#define SLC_TEST_NAIVE_CP_H

#include "cp_fixture.h"

struct naive_cp {
    unsigned order;
    uint32_t rank;
    uint64_t dims[SLC_MAX_ORDER];
    struct slc_matrix factors[SLC_MAX_ORDER];
    double *lambda;
};

/* Uniform start, as drawn by the engine. */
void naive_start(struct naive_cp *model,
                 const struct fixture_tensor *tensor,
                 uint32_t rank,
                 uint64_t seed);
void naive_destroy(struct naive_cp *model);

/* One iteration (number `iteration`, from 1) with the modes in `mode_order`. */
void naive_iterate(struct naive_cp *model,
                   const struct fixture_tensor *tensor,
                   const unsigned *mode_order,
                   unsigned iteration,
                   double regularization);

/* Returns 1 - ||X - M|| / ||X|| over all cells. */
double naive_fit(const struct naive_cp *model, const struct fixture_tensor *tensor);

/* Returns the largest difference of a cell between the two models. */
double naive_distance(const struct naive_cp *model, const struct slc_cp_result *result);

#endif
