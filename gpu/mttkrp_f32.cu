/* Sums in f32; see mttkrp.cu. */
#include "gpu/mttkrp_kernel.h"

cudaError_t slc_gpu_mttkrp_f32(const struct slc_gpu_mttkrp *job,
                               const struct slc_gpu_batch *batch,
                               const struct slc_gpu_machine *machine,
                               const struct slc_gpu_mttkrp_plan *plan,
                               cudaStream_t stream)
{
    return slc_mttkrp_launch<float, float, false>(job, batch, machine, plan, stream);
}
