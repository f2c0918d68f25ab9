/*
 * What the baselines have in common whose threads add to the output atomically (coo.h,
 * fiber_forms.h): an output of zeros, and a factor for tensors of one mode.
 */
#ifndef SLC_CPU_ATOMIC_JOB_H
#define SLC_CPU_ATOMIC_JOB_H

#include "base/backend.h"
#include "cpu/kernel/kernels.h"

/* Of the row of ones that stands in for a factor: always row 0. */
extern const uint32_t slc_zero_offsets[SLC_CHUNK_NNZ];

/*
 * Sets the output of a job that has been checked to zero, by job->workers threads. For order 1,
 * which has no factors, *ones becomes a row of ones, with zeros in the padding; else it stays
 * without memory. Needs: *ones all-zero. Owns: slc_matrix_destroy on it, also after an error.
 * Errors: SLC_ERR_MEMORY, SLC_ERR_SYSTEM.
 */
enum slc_status slc_atomic_job_begin(const struct slc_mttkrp_job *job,
                                     struct slc_matrix *ones,
                                     struct slc_error *err) SLC_NODISCARD;

#endif
