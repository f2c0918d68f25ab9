/* Instantiates the kernels for exact sums, with factors in f64 or f32. */
#include "gpu/mttkrp/mttkrp_kernel.h"

cudaError_t slc_gpu_mttkrp_exact(const struct slc_gpu_mttkrp *job,
                                 const struct slc_gpu_batch *batch,
                                 const struct slc_gpu_machine *machine,
                                 const struct slc_gpu_mttkrp_plan *plan,
                                 cudaStream_t stream)
{
    return job->precision == SLC_F64
               ? slc_mttkrp_launch<double, true, false>(job, batch, machine, plan, stream)
               : slc_mttkrp_launch<float, true, false>(job, batch, machine, plan, stream);
}
