/* GenTen's portable loop, genten-a; see baselines.h. */
#include "gpu/baseline_genten.h"

static const uint32_t block_columns = 32; /* of the array that a product is formed in */
static const uint32_t vector_max = 8;     /* threads of a nonzero */

template <typename Element, typename Sum>
__global__ void __launch_bounds__(SLC_GENTEN_TEAM)
    slc_genten_each(const struct slc_gpu_coo coo, const struct slc_baseline_job job)
{
    SLC_DYNAMIC_SHARED(Sum, shared);
    const uint64_t i = static_cast<uint64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
    /* A thread reads and writes its own columns alone, so that nobody waits for anybody. */
    Sum *product = shared + threadIdx.y * block_columns;

    if (i >= coo.nnz) {
        return;
    }
    const uint32_t *coords = coo.coords + i * coo.order;
    const Sum value = slc_baseline_value<Sum>(coo.type, coo.values, i);
    Sum *row = slc_baseline_row<Sum>(&job, coords[job.mode]);

    for (uint32_t first = 0; first < job.rank; first += block_columns) {
        const uint32_t left = job.rank - first;
        const uint32_t width = left < block_columns ? left : block_columns;

        for (uint32_t c = threadIdx.x; c < width; c += blockDim.x) {
            product[c] = value;
        }
        for (unsigned f = 0; f < job.others; f++) {
            for (uint32_t c = threadIdx.x; c < width; c += blockDim.x) {
                product[c] *=
                    static_cast<Sum>(slc_baseline_element<Element>(&job, f, coords, first + c));
            }
        }
        for (uint32_t c = threadIdx.x; c < width; c += blockDim.x) {
            atomicAdd(row + first + c, product[c]);
        }
    }
}

template <typename Element, typename Sum>
static cudaError_t
launch(const struct slc_gpu_coo *coo, const struct slc_gpu_mttkrp *job, cudaStream_t stream)
{
    const uint32_t vector = slc_genten_vector(job->rank, vector_max);
    const uint32_t nonzeros = SLC_GENTEN_TEAM / vector;
    const uint64_t blocks = (coo->nnz + nonzeros - 1) / nonzeros;

    return slc_launch(slc_genten_each<Element, Sum>, dim3(static_cast<unsigned>(blocks)),
                      dim3(vector, nonzeros), nonzeros * block_columns * sizeof(Sum), stream, *coo,
                      slc_baseline_job_of(job));
}

cudaError_t slc_baseline_genten_each(const struct slc_gpu_coo *coo,
                                     const struct slc_gpu_mttkrp *job,
                                     cudaStream_t stream)
{
    return SLC_BASELINE_BY_TYPES(job, launch, coo, job, stream);
}
