/* Instantiates the kernels for sums in f64, with factors in f64 or f32. */
#include "gpu/mttkrp/mttkrp_kernel.h"

template <typename F>
static cudaError_t launch(const struct slc_gpu_mttkrp *job,
                          const struct slc_gpu_batch *batch,
                          const struct slc_gpu_machine *machine,
                          const struct slc_gpu_mttkrp_plan *plan,
                          cudaStream_t stream)
{
    return batch->transcoded != nullptr
               ? slc_mttkrp_launch<F, false, true>(job, batch, machine, plan, stream)
               : slc_mttkrp_launch<F, false, false>(job, batch, machine, plan, stream);
}

cudaError_t slc_gpu_mttkrp_ordinary(const struct slc_gpu_mttkrp *job,
                                    const struct slc_gpu_batch *batch,
                                    const struct slc_gpu_machine *machine,
                                    const struct slc_gpu_mttkrp_plan *plan,
                                    cudaStream_t stream)
{
    return job->precision == SLC_F64 ? launch<double>(job, batch, machine, plan, stream)
                                     : launch<float>(job, batch, machine, plan, stream);
}
