/* Instantiates the kernels of the variants that benchmarks compare, for f64 factors and f64
 * sums. */
#include "gpu/mttkrp/mttkrp_kernel.h"

cudaError_t slc_gpu_mttkrp_variants(const struct slc_gpu_mttkrp *job,
                                    const struct slc_gpu_batch *batch,
                                    const struct slc_gpu_machine *machine,
                                    const struct slc_gpu_mttkrp_plan *plan,
                                    cudaStream_t stream)
{
    if (job->precision != SLC_F64) {
        return cudaErrorInvalidValue;
    }
    switch (job->variant.flags) {
    case SLC_MTTKRP_WITHOUT_STASH:
        return slc_mttkrp_launch<double, false, SLC_MTTKRP_WITHOUT_STASH>(job, batch, machine, plan,
                                                                          stream);
    case SLC_MTTKRP_FULL_SECTORS:
        return slc_mttkrp_launch<double, false, SLC_MTTKRP_FULL_SECTORS>(job, batch, machine, plan,
                                                                         stream);
    case SLC_MTTKRP_SHARED_FIELDS:
        return slc_mttkrp_launch<double, false, SLC_MTTKRP_SHARED_FIELDS>(job, batch, machine, plan,
                                                                          stream);
    case SLC_MTTKRP_TRANSCODED:
        return slc_mttkrp_launch<double, false, SLC_MTTKRP_TRANSCODED>(job, batch, machine, plan,
                                                                       stream);
    case SLC_MTTKRP_TRANSCODED | SLC_MTTKRP_WITHOUT_STASH | SLC_MTTKRP_THREE_BLOCKS:
        return slc_mttkrp_launch<double, false,
                                 SLC_MTTKRP_TRANSCODED | SLC_MTTKRP_WITHOUT_STASH |
                                     SLC_MTTKRP_THREE_BLOCKS>(job, batch, machine, plan, stream);
    default:
        return cudaErrorInvalidValue;
    }
}
