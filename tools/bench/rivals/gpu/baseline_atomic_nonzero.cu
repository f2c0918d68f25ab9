/* Atomic additions of every nonzero over fibers; see baselines.h. */
#include "tools/bench/rivals/gpu/baseline.h"

/* One vector of threads computes a nonzero. */
template <typename Element>
__global__ void __launch_bounds__(SLC_BASELINE_THREADS)
    slc_atomic_nonzero(const struct slc_gpu_fibers fibers, const struct slc_baseline_job job)
{
    const uint64_t i = static_cast<uint64_t>(blockIdx.x) * blockDim.y + threadIdx.y;

    if (i >= fibers.nnz) {
        return;
    }
    const uint64_t fiber = fibers.fiber_of[i];
    const uint32_t *coords = fibers.coords + fiber * fibers.order;
    const uint32_t index = fibers.index[i];
    const double value = slc_baseline_value(fibers.type, fibers.values, i);
    const uint32_t row = job.mode == fibers.mode ? index : coords[job.mode];

    for (uint32_t c = threadIdx.x; c < job.rank; c += blockDim.x) {
        double product = value;

        for (unsigned f = 0; f < job.others; f++) {
            const unsigned mode = job.mode_of[f];
            const uint64_t at = mode == fibers.mode ? index : coords[mode];

            product *= static_cast<double>(
                static_cast<const Element *>(job.factor[f])[at * job.factor_pitch[f] + c]);
        }
        atomicAdd(slc_baseline_row(&job, row) + c, product);
    }
}

cudaError_t slc_baseline_atomic_nonzero(const struct slc_gpu_fibers *fibers,
                                        const struct slc_gpu_mttkrp *job,
                                        cudaStream_t stream)
{
    return job->precision == SLC_F64
               ? slc_baseline_launch_vectors(slc_atomic_nonzero<double>, fibers->nnz, fibers, job,
                                             stream)
               : slc_baseline_launch_vectors(slc_atomic_nonzero<float>, fibers->nnz, fibers, job,
                                             stream);
}
