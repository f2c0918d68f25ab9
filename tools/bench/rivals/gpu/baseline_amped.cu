/* Implements AMPED's kernel (baselines.h). */
#include "tools/bench/rivals/gpu/baseline.h"

/* Threads per block, and largest number of columns that have their own threads. The default of the
 * paper is R = 32 and 32 nonzeros at a time (section 5.1.5); for other R, the product of R and this
 * number of nonzeros stays the same (section 4.5). */
static const uint32_t block_threads = 1024, block_columns_max = 32;

template <typename Element>
__global__ void __launch_bounds__(block_threads)
    slc_amped(const struct slc_gpu_coo coo, const struct slc_baseline_job job)
{
    const uint64_t share = (coo.nnz + gridDim.x - 1) / gridDim.x;
    const uint64_t begin = blockIdx.x * share;
    const uint64_t end = begin + share < coo.nnz ? begin + share : coo.nnz;

    for (uint64_t i = begin + threadIdx.y; i < end; i += blockDim.y) {
        const uint32_t *coords = coo.coords + i * coo.order;
        const double value = slc_baseline_value(coo.type, coo.values, i);
        double *row = slc_baseline_row(&job, coords[job.mode]);

        for (uint32_t c = threadIdx.x; c < job.rank; c += blockDim.x) {
            const double product = slc_baseline_product<Element>(&job, coords, value, c);

            SLC_PLANT_OTHER(amped_plain_add, atomicAdd(row + c, product), row[c] += product);
        }
    }
}

template <typename Element>
static cudaError_t launch(const struct slc_gpu_coo *coo,
                          const struct slc_gpu_mttkrp *job,
                          const struct slc_gpu_machine *machine,
                          cudaStream_t stream)
{
    const uint32_t columns = job->rank < block_columns_max ? job->rank : block_columns_max;
    const dim3 block(columns, block_threads / columns);

    return slc_launch(slc_amped<Element>, dim3(machine->multiprocessors), block, 0, stream, *coo,
                      slc_baseline_job_of(job));
}

cudaError_t slc_baseline_amped(const struct slc_gpu_coo *coo,
                               const struct slc_gpu_mttkrp *job,
                               const struct slc_gpu_machine *machine,
                               cudaStream_t stream)
{
    return SLC_BASELINE_BY_PRECISION(job, launch, coo, job, machine, stream);
}
