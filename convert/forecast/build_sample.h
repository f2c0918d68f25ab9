/*
 * What a sample of entries says of the store they make: how many nonzeros are left of equal
 * coordinates, which fibers will be kept together (convert/build/sort/fibers.h), and whether
 * buckets will have been cut for them.
 */
#ifndef SLC_CONVERT_BUILD_SAMPLE_H
#define SLC_CONVERT_BUILD_SAMPLE_H

#include "convert/forecast/build_job.h"

struct slc_build_sample {
    double nnz, nnz_most;     /* as expected, and as many as there may be */
    struct slc_fiber_run run; /* of the store; all zero: none */
    double pieces;            /* of fibers, where it has one */
    bool regroup;             /* buckets are cut for another run */
};

/* Errors: SLC_ERR_MEMORY. */
enum slc_status slc_build_sample_judge(const struct slc_build_job *job,
                                       struct slc_build_sample *found,
                                       struct slc_error *err) SLC_NODISCARD;

#endif
