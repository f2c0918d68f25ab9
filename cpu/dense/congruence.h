/*
 * How alike two models of one tensor are: the factor match score, as the Tensor Toolbox's `score`
 * has it. Factors are looked at mode by mode, so that no more than one of each model is in memory.
 */
#ifndef SLC_CPU_CONGRUENCE_H
#define SLC_CPU_CONGRUENCE_H

#include "base/error/error.h"
#include "base/matrix.h"

#include <stdint.h>

/* Of every component of one model with every one of the other. */
struct slc_congruence {
    uint32_t rank;
    unsigned modes;   /* that have been added */
    double *products; /* rank x rank: over these modes, of the magnitude of the cosine of columns */
    double *norms[2]; /* per component and model: the product of its columns' 2-norms */
    double *scratch;  /* rank * (rank + 2) */
};

/* Owns: slc_congruence_destroy, which takes an all-zero struct. Errors: SLC_ERR_MEMORY. */
enum slc_status slc_congruence_create(struct slc_congruence *congruence,
                                      uint32_t rank,
                                      struct slc_error *err) SLC_NODISCARD;
void slc_congruence_destroy(struct slc_congruence *congruence);
/* What the above and slc_congruence_score allocate, for plans. */
uint64_t slc_congruence_memory_bytes(uint32_t rank);

/*
 * Adds a mode. Shapes: both of the same rows, `rank` columns, f64. Order: the same bits every time.
 * Cost: 2 rows * rank^2 flops.
 */
void slc_congruence_add(struct slc_congruence *congruence,
                        const struct slc_matrix *one,
                        const struct slc_matrix *two);

/*
 * The factor match score once all modes have been added.
 * Math: the mean over components r of c(r, p(r)), where c(r, s) is the product over modes of
 * |cos(a_r, b_s)| times 1 - |la - lb| / max(la, lb) of their weights, la = lambda_one[r] times the
 * norms of its columns, and p the assignment with the largest mean, which the Hungarian method
 * finds exactly (Kuhn 1955; the shortest augmenting paths of Jonker and Volgenant 1987). A
 * component of zeros is like no other. 1: the same model but for order and signs. Shapes:
 * match[rank], or NULL: p. Cost: rank^3. Errors: SLC_ERR_MEMORY; *score is unchanged then.
 */
enum slc_status slc_congruence_score(struct slc_congruence *congruence,
                                     const double *lambda_one,
                                     const double *lambda_two,
                                     double *score,
                                     uint32_t *match,
                                     struct slc_error *err) SLC_NODISCARD;

/*
 * The assignment of columns to rows with the largest sum: match[row] is a column, each once.
 * Shapes: `gains` size x size, row-major, finite. Errors: SLC_ERR_MEMORY.
 */
enum slc_status slc_assignment(uint32_t size,
                               const double *gains,
                               uint32_t *match,
                               struct slc_error *err) SLC_NODISCARD;

#endif
