/* Exact sums, of factors and products in every arithmetic; see mttkrp.cu. */
#include "gpu/mttkrp_kernel.h"

cudaError_t slc_gpu_mttkrp_exact(const struct slc_gpu_mttkrp *job,
                                 const struct slc_gpu_batch *batch,
                                 const struct slc_gpu_machine *machine,
                                 const struct slc_gpu_mttkrp_plan *plan,
                                 cudaStream_t stream)
{
    switch (job->arithmetic) {
    case SLC_ARITHMETIC_F64:
        return slc_mttkrp_launch<double, double, true>(job, batch, machine, plan, stream);
    case SLC_ARITHMETIC_F32:
        return slc_mttkrp_launch<float, float, true>(job, batch, machine, plan, stream);
    case SLC_ARITHMETIC_MIXED:
        break;
    }
    return slc_mttkrp_launch<float, double, true>(job, batch, machine, plan, stream);
}
