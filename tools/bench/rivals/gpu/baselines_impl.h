/* Shared by tools/bench/rivals/gpu/baselines.cu and tools/bench/rivals/gpu/baseline_forms.cu;
 * private to them. */
#ifndef SLC_GPU_BASELINES_IMPL_H
#define SLC_GPU_BASELINES_IMPL_H

#include "tools/bench/rivals/gpu/baseline.h"

/* The options with the defaults of the chosen kernel for 0. */
struct slc_gpu_lists_options slc_baseline_options_of(const struct slc_gpu_lists_options *options,
                                                     enum slc_gpu_kernel chosen,
                                                     const struct slc_gpu_mttkrp *job,
                                                     const struct slc_gpu_machine *machine);

/* Nonzeros of a work-group of one of BLCO's kernels. */
uint32_t slc_baseline_group_nnz(const struct slc_gpu_lists_options *options,
                                enum slc_gpu_kernel chosen);

/* Whether a kernel adds to copies of the output. */
bool slc_baseline_has_stash(enum slc_gpu_kernel chosen);

struct slc_baseline_copies slc_baseline_copies_of(const struct slc_gpu_forms *forms,
                                                  const struct slc_gpu_mttkrp *job,
                                                  const struct slc_gpu_lists_options *all);
uint64_t slc_baseline_copies_bytes(const struct slc_baseline_copies *copies);

/* Whether the list, permutation, partitions or fibers that a kernel needs were made. */
bool slc_baseline_is_prepared(const struct slc_gpu_forms *forms,
                              enum slc_gpu_kernel kernel,
                              unsigned mode);

#endif
