/* XPLAT's row-centric form over fibers; see baselines.h. */
#include "gpu/baseline.h"

/* The product of the rows that all nonzeros of a fiber have in common: those of modes but its own.
 */
template <typename Element, typename Sum>
__device__ static inline Sum shared_product(const struct slc_baseline_job *job,
                                            unsigned fiber_mode,
                                            const uint32_t *coords,
                                            Sum product,
                                            uint32_t column)
{
    for (unsigned f = 0; f < job->others; f++) {
        if (job->mode_of[f] != fiber_mode) {
            product *= static_cast<Sum>(slc_baseline_element<Element>(job, f, coords, column));
        }
    }
    return product;
}

/* One vector of threads computes a fiber. */
template <typename Element, typename Sum>
__global__ void __launch_bounds__(SLC_BASELINE_THREADS)
    slc_fiber_rows(const struct slc_gpu_fibers fibers, const struct slc_baseline_job job)
{
    const uint64_t fiber = static_cast<uint64_t>(blockIdx.x) * blockDim.y + threadIdx.y;

    if (fiber >= fibers.count) {
        return;
    }
    const uint32_t *coords = fibers.coords + fiber * fibers.order;
    const uint32_t begin = fibers.begin[fiber], end = fibers.begin[fiber + 1];

    for (uint32_t c = threadIdx.x; c < job.rank; c += blockDim.x) {
        if (job.mode == fibers.mode) {
            const Sum h = shared_product<Element, Sum>(&job, fibers.mode, coords, 1, c);

            for (uint32_t i = begin; i < end; i++) {
                atomicAdd(slc_baseline_row<Sum>(&job, fibers.index[i]) + c,
                          h * slc_baseline_value<Sum>(fibers.type, fibers.values, i));
            }
        } else {
            /* Modes are in order: that of the fibers stands before or behind the output's. */
            const unsigned f = fibers.mode - (fibers.mode > job.mode);
            const Element *factor = static_cast<const Element *>(job.factor[f]) + c;
            Sum sum = 0;

            for (uint32_t i = begin; i < end; i++) {
                sum += slc_baseline_value<Sum>(fibers.type, fibers.values, i) *
                       static_cast<Sum>(
                           factor[static_cast<uint64_t>(fibers.index[i]) * job.factor_pitch[f]]);
            }
            sum = shared_product<Element>(&job, fibers.mode, coords, sum, c);
            atomicAdd(slc_baseline_row<Sum>(&job, coords[job.mode]) + c, sum);
        }
    }
}

template <typename Element, typename Sum>
static cudaError_t
launch(const struct slc_gpu_fibers *fibers, const struct slc_gpu_mttkrp *job, cudaStream_t stream)
{
    const dim3 block = slc_baseline_block(job->rank);
    const uint64_t blocks = (fibers->count + block.y - 1) / block.y;

    return slc_launch(slc_fiber_rows<Element, Sum>, dim3(static_cast<unsigned>(blocks)), block, 0,
                      stream, *fibers, slc_baseline_job_of(job));
}

cudaError_t slc_baseline_fiber_rows(const struct slc_gpu_fibers *fibers,
                                    const struct slc_gpu_mttkrp *job,
                                    cudaStream_t stream)
{
    return SLC_BASELINE_BY_TYPES(job, launch, fibers, job, stream);
}
