/* BLCO's hierarchical kernel; see baselines.h. */
#include "gpu/baseline_blco.h"

/* Sums of a few rows, each at the place that its number says: row modulo `rows`. */
template <typename Sum> struct stash {
    Sum *sums;      /* rows x rank; a column is one lane's alone */
    uint32_t *tags; /* per place one of each lane, so that no lane waits for another's: row + 1 */
    uint32_t rows;
};

/* Adds what a place holds to the output, and empties it. */
template <typename Sum>
__device__ static inline void
flush(const struct slc_baseline_job *job, Sum *output, const struct stash<Sum> *stash, uint32_t at)
{
    uint32_t *tag = stash->tags + at * SLC_WARP + threadIdx.x;
    Sum *row;

    if (*tag == 0) {
        return;
    }
    row = output + static_cast<uint64_t>(*tag - 1) * job->pitch;
    for (uint32_t c = threadIdx.x; c < job->rank; c += SLC_WARP) {
        atomicAdd(row + c, stash->sums[at * job->rank + c]);
    }
    *tag = 0;
}

/* Adds the nonzeros [begin, end) of a tile, which are of one row. */
template <typename Element, typename Sum, unsigned factors>
__device__ static inline void add_row(const struct slc_baseline_job *job,
                                      Sum *output,
                                      const struct stash<Sum> *stash,
                                      const struct slc_blco_tile<Sum> *tile,
                                      unsigned order,
                                      uint32_t begin,
                                      uint32_t end)
{
    const uint32_t row = tile->coords[begin * order + job->mode];
    const uint32_t at = row % stash->rows;
    const bool there = stash->tags[at * SLC_WARP + threadIdx.x] == row + 1;

    if (!there) {
        flush(job, output, stash, at);
        stash->tags[at * SLC_WARP + threadIdx.x] = row + 1;
    }
    for (uint32_t c = threadIdx.x; c < job->rank; c += SLC_WARP) {
        Sum sum = there ? stash->sums[at * job->rank + c] : 0;

        for (uint32_t k = begin; k < end; k++) {
            sum += slc_baseline_product<Element, Sum, factors>(job, tile->coords + k * order,
                                                               tile->values[k], c);
        }
        stash->sums[at * job->rank + c] = sum;
    }
}

/* A block is a warp; block b adds to copy b modulo `copies` of the output. */
template <typename Element, typename Sum, unsigned factors>
__global__ void __launch_bounds__(SLC_WARP)
    slc_blco_stash(const __grid_constant__ struct slc_gpu_blco blco,
                   const __grid_constant__ struct slc_baseline_job job,
                   Sum *outputs,
                   uint32_t copies,
                   uint64_t copy_elements,
                   uint32_t coarsening,
                   uint32_t stash_rows)
{
    SLC_DYNAMIC_SHARED(Sum, shared);
    const uint64_t first = static_cast<uint64_t>(blockIdx.x) * coarsening * SLC_WARP;
    Sum *output = outputs + blockIdx.x % copies * copy_elements;
    struct slc_blco_tile<Sum> tile;
    struct stash<Sum> stash;

    tile.values = shared;
    stash.sums = shared + SLC_WARP;
    stash.tags = reinterpret_cast<uint32_t *>(stash.sums + stash_rows * job.rank);
    stash.rows = stash_rows;
    tile.coords = stash.tags + stash_rows * SLC_WARP;
    for (uint32_t s = 0; s < stash_rows; s++) {
        stash.tags[s * SLC_WARP + threadIdx.x] = 0;
    }
    for (uint32_t t = 0; t < coarsening && first + t * SLC_WARP < blco.nnz; t++) {
        slc_blco_stage(&blco, job.mode, first + t * SLC_WARP, &tile);
        for (uint32_t begin = 0, end; begin < tile.count; begin = end) {
            end = begin + 1;
            while (!slc_blco_ends_row(&tile, end - 1)) {
                end++;
            }
            add_row<Element, Sum, factors>(&job, output, &stash, &tile, blco.order, begin, end);
        }
        SLC_PLANT(blco_stash_tile_overwritten, __syncwarp());
    }
    for (uint32_t s = 0; s < stash_rows; s++) {
        flush(&job, output, &stash, s);
    }
}

/* output += all copies. */
template <typename Sum>
__global__ void slc_blco_merge(Sum *output, const Sum *outputs, uint32_t copies, uint64_t elements)
{
    const uint64_t i = static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    Sum sum = 0;

    if (i < elements) {
        for (uint32_t c = 0; c < copies; c++) {
            sum += outputs[c * elements + i];
        }
        output[i] += sum;
    }
}

template <typename Element, typename Sum, unsigned factors>
static cudaError_t launch_with(const struct slc_gpu_forms *forms,
                               const struct slc_baseline_job *job,
                               uint64_t elements,
                               const struct slc_gpu_baseline_options *options,
                               cudaStream_t stream)
{
    const struct slc_gpu_blco *blco = &forms->blco;
    const uint32_t rows = options->stash_rows;
    const uint64_t tiles = (blco->nnz + SLC_WARP - 1) / SLC_WARP;
    const uint64_t blocks = (tiles + options->coarsening - 1) / options->coarsening;
    const size_t shared = slc_blco_tile_bytes(blco->order, sizeof(Sum)) +
                          rows * (job->rank * sizeof(Sum) + SLC_WARP * sizeof(uint32_t));

    return slc_launch(slc_blco_stash<Element, Sum, factors>, dim3(static_cast<unsigned>(blocks)),
                      dim3(SLC_WARP), shared, stream, *blco, *job,
                      static_cast<Sum *>(forms->copies), options->copies, elements,
                      options->coarsening, rows);
}

template <typename Element, typename Sum>
static cudaError_t launch(const struct slc_gpu_forms *forms,
                          const struct slc_gpu_mttkrp *job,
                          const struct slc_gpu_baseline_options *options,
                          cudaStream_t stream)
{
    const struct slc_baseline_job given = slc_baseline_job_of(job);
    const uint64_t elements = job->output.rows * job->output.pitch;
    const dim3 merge(
        static_cast<unsigned>((elements + SLC_BASELINE_THREADS - 1) / SLC_BASELINE_THREADS));
    cudaError_t error =
        cudaMemsetAsync(forms->copies, 0, options->copies * elements * sizeof(Sum), stream);

    if (error == cudaSuccess && given.others == 2) {
        error = launch_with<Element, Sum, 2>(forms, &given, elements, options, stream);
    } else if (error == cudaSuccess && given.others == 3) {
        error = launch_with<Element, Sum, 3>(forms, &given, elements, options, stream);
    } else if (error == cudaSuccess) {
        error = launch_with<Element, Sum, 0>(forms, &given, elements, options, stream);
    }
    if (error == cudaSuccess) {
        error = slc_launch(slc_blco_merge<Sum>, merge, dim3(SLC_BASELINE_THREADS), 0, stream,
                           static_cast<Sum *>(job->output.data),
                           static_cast<const Sum *>(forms->copies), options->copies, elements);
    }
    return error;
}

cudaError_t slc_baseline_blco_stash(const struct slc_gpu_forms *forms,
                                    const struct slc_gpu_mttkrp *job,
                                    const struct slc_gpu_baseline_options *options,
                                    cudaStream_t stream)
{
    return SLC_BASELINE_BY_TYPES(job, launch, forms, job, options, stream);
}
