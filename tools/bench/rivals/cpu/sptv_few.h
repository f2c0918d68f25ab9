/*
 * SpTV of so few nonzeros that what a call does beside multiplying is most of it: a list of the
 * first nonzero of every fiber, then of the second of those that have one, and so on. Nothing is
 * cleared, there are no blocks, and neighbours of the list are added to different sums.
 * Order: as sptv.h.
 */
#ifndef SLC_CPU_SPTV_FEW_H
#define SLC_CPU_SPTV_FEW_H

#include "base/error/error.h"
#include "base/memory/memory.h"

#include <stdbool.h>
#include <stdint.h>

/* Nonzeros fiber by fiber. Borrowed. */
struct slc_sptv_source {
    uint64_t length; /* of the vector: 2^31 at most */
    uint64_t fibers;
    const uint64_t *begin; /* fibers + 1: first nonzero of each; equal ones are empty fibers */
    const uint32_t *index; /* per nonzero, below `length` */
    const double *values;  /* per nonzero */
};

/* Only to be read. */
struct slc_sptv_few {
    uint64_t fibers;
    uint64_t more;            /* nonzeros but the first of each fiber */
    struct slc_buffer memory; /* of what follows; empty: there is no such form */
    const double *values;
    const uint32_t *index;
    const uint32_t *row; /* of those in `more`: the fiber */
};

/* Whether the form is as fast as lanes. */
bool slc_sptv_few_pays(const struct slc_sptv_source *source);

/* Needs: slc_sptv_few_pays. Owns: slc_sptv_few_destroy, which takes an all-zero struct. Errors:
 * SLC_ERR_MEMORY. */
enum slc_status slc_sptv_few_create(struct slc_sptv_few *few,
                                    const struct slc_sptv_source *source,
                                    struct slc_error *err) SLC_NODISCARD;
void slc_sptv_few_destroy(struct slc_sptv_few *few);

/* sums[f] for every fiber of the source. */
void slc_sptv_few_multiply(const struct slc_sptv_few *few, const double *vector, double *sums);

#endif
