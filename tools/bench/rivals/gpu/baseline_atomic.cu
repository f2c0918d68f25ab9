/* Implements kernels over fibers with atomic additions (baselines.h): atomic-fiber, which
 * multiplies the common rows of a fiber's nonzeros only once, and atomic-nonzero. */
#include "tools/bench/rivals/gpu/baseline.h"

/* Returns the product of the rows that all nonzeros of a fiber share: rows of all modes except the
 * output mode and the mode of the fibers. */
template <typename Element>
__device__ static inline double shared_product(const struct slc_baseline_job *job,
                                               unsigned fiber_mode,
                                               const uint32_t *coords,
                                               double product,
                                               uint32_t column)
{
    for (unsigned f = 0; f < job->others; f++) {
        if (job->mode_of[f] != fiber_mode) {
            product *= static_cast<double>(slc_baseline_element<Element>(job, f, coords, column));
        }
    }
    return product;
}

/* The kernel atomic-fiber: each vector of threads computes a fiber. */
template <typename Element>
__global__ void __launch_bounds__(SLC_BASELINE_THREADS)
    slc_atomic_fiber(const struct slc_gpu_fibers fibers, const struct slc_baseline_job job)
{
    const uint64_t fiber = static_cast<uint64_t>(blockIdx.x) * blockDim.y + threadIdx.y;

    if (fiber >= fibers.count) {
        return;
    }
    const uint32_t *coords = fibers.coords + fiber * fibers.order;
    const uint32_t begin = fibers.begin[fiber], end = fibers.begin[fiber + 1];

    for (uint32_t c = threadIdx.x; c < job.rank; c += blockDim.x) {
        if (job.mode == fibers.mode) {
            const double h = shared_product<Element>(&job, fibers.mode, coords, 1, c);

            for (uint32_t i = begin; i < end; i++) {
                atomicAdd(slc_baseline_row(&job, fibers.index[i]) + c,
                          h * slc_baseline_value(fibers.type, fibers.values, i));
            }
        } else {
            /* Factors are in the order of modes, without the output mode. */
            const unsigned f = fibers.mode - (fibers.mode > job.mode);
            const Element *factor = static_cast<const Element *>(job.factor[f]) + c;
            double sum = 0;

            for (uint32_t i = begin; i < end; i++) {
                sum += slc_baseline_value(fibers.type, fibers.values, i) *
                       static_cast<double>(
                           factor[static_cast<uint64_t>(fibers.index[i]) * job.factor_pitch[f]]);
            }
            sum = shared_product<Element>(&job, fibers.mode, coords, sum, c);
            atomicAdd(slc_baseline_row(&job, coords[job.mode]) + c, sum);
        }
    }
}

cudaError_t slc_baseline_atomic_fiber(const struct slc_gpu_fibers *fibers,
                                      const struct slc_gpu_mttkrp *job,
                                      cudaStream_t stream)
{
    return job->precision == SLC_F64
               ? slc_baseline_launch_vectors(slc_atomic_fiber<double>, fibers->count, fibers, job,
                                             stream)
               : slc_baseline_launch_vectors(slc_atomic_fiber<float>, fibers->count, fibers, job,
                                             stream);
}

/* The kernel atomic-nonzero: each vector of threads computes a nonzero. */
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
