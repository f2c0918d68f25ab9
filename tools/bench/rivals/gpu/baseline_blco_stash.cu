/* BLCO's hierarchical kernel, with one stash for a work-group; see baselines.h. */
#include "tools/bench/rivals/gpu/baseline_blco.h"

/*
 * Sums of some rows in shared memory, which all warps of the work-group add to. A row has one
 * place: its number modulo `rows`. The first row that comes to a place holds it until the end;
 * other rows are added to the output directly.
 */
struct stash {
    double *sums;   /* rows x rank */
    uint32_t *tags; /* per place: row + 1; 0: empty */
    uint32_t rows;
};

/* Whether `row` holds its place, which it takes if that is empty. By all lanes of a warp. */
__device__ static inline bool hold_place(const struct stash *stash, uint32_t row)
{
    unsigned before = 0;

    if (threadIdx.x % SLC_WARP == 0) {
        before = atomicCAS(stash->tags + row % stash->rows, 0U, row + 1U);
    }
    before = __shfl_sync(SLC_ALL_LANES, before, 0);
    return before == 0 || before == row + 1;
}

/* Adds a tile, row by row. */
template <typename Element, unsigned factors>
__device__ static inline void add_tile(const struct slc_baseline_job *job,
                                       double *output,
                                       const struct stash *stash,
                                       const struct slc_blco_tile *tile,
                                       unsigned order)
{
    for (uint32_t begin = 0, end; begin < tile->count; begin = end) {
        const uint32_t row = tile->coords[begin * order + job->mode];
        const bool held = hold_place(stash, row);

        end = slc_blco_row_end(tile, begin);
        for (uint32_t c = threadIdx.x % SLC_WARP; c < job->rank; c += SLC_WARP) {
            double sum = 0;

            for (uint32_t k = begin; k < end; k++) {
                sum += slc_baseline_product<Element, factors>(job, tile->coords + k * order,
                                                              tile->values[k], c);
            }
            if (held) {
                double *to = stash->sums + row % stash->rows * job->rank + c;

                SLC_PLANT_OTHER(blco_stash_plain_add, atomicAdd(to, sum), *to += sum);
            } else {
                atomicAdd(output + static_cast<uint64_t>(row) * job->pitch + c, sum);
            }
        }
    }
}

__device__ static inline void clear(const struct stash *stash, uint32_t rank)
{
    for (uint32_t i = threadIdx.x; i < stash->rows * rank; i += blockDim.x) {
        stash->sums[i] = 0;
    }
    for (uint32_t s = threadIdx.x; s < stash->rows; s += blockDim.x) {
        stash->tags[s] = 0;
    }
}

/* Adds what the stash holds to the output; a place for each warp. */
__device__ static inline void
flush(const struct slc_baseline_job *job, double *output, const struct stash *stash)
{
    for (uint32_t s = threadIdx.x / SLC_WARP; s < stash->rows; s += blockDim.x / SLC_WARP) {
        const uint32_t tag = stash->tags[s];

        for (uint32_t c = threadIdx.x % SLC_WARP; tag != 0 && c < job->rank; c += SLC_WARP) {
            atomicAdd(output + static_cast<uint64_t>(tag - 1) * job->pitch + c,
                      stash->sums[s * job->rank + c]);
        }
    }
}

/* A block is a work-group; block b adds to copy b modulo `copies` of the output. */
template <typename Element, unsigned factors>
__global__ void __launch_bounds__(SLC_BLCO_GROUP_MAX, SLC_BLCO_GROUPS)
    slc_blco_stash(const __grid_constant__ struct slc_gpu_blco_part part,
                   const __grid_constant__ struct slc_baseline_job job,
                   const __grid_constant__ struct slc_baseline_copies copies,
                   uint32_t coarsening,
                   uint32_t stash_rows)
{
    SLC_DYNAMIC_SHARED(double, shared);
    const struct slc_gpu_blco_group group = part.groups[blockIdx.x];
    const uint32_t warp = threadIdx.x / SLC_WARP;
    double *output =
        static_cast<double *>(copies.data) + blockIdx.x % copies.count * copies.elements;
    struct stash stash;
    struct slc_blco_tile tile;
    uint32_t *upper;

    tile.values = shared + warp * SLC_WARP;
    stash.sums = shared + blockDim.x;
    stash.tags = reinterpret_cast<uint32_t *>(stash.sums + stash_rows * job.rank);
    stash.rows = stash_rows;
    upper = stash.tags + stash_rows;
    tile.coords = upper + part.order + warp * SLC_WARP * part.order;
    if (threadIdx.x < part.order) {
        upper[threadIdx.x] = part.blocks[group.block].upper[threadIdx.x];
    }
    clear(&stash, job.rank);
    SLC_PLANT(blco_stash_not_clear, __syncthreads());
    for (uint32_t t = 0; t < coarsening; t++) {
        uint32_t first;
        const uint32_t count = slc_blco_tile_count(&group, t, &first);

        if (count == 0) {
            break;
        }
        slc_blco_stage(&part, upper, job.mode, group.first - part.base + first, count, &tile);
        add_tile<Element, factors>(&job, output, &stash, &tile, part.order);
        SLC_PLANT(blco_stash_tile_overwritten, __syncwarp());
    }
    SLC_PLANT(blco_stash_unfinished, __syncthreads());
    flush(&job, output, &stash);
}

template <typename Element, unsigned factors>
static cudaError_t launch_with(const struct slc_baseline_job *job,
                               const struct slc_gpu_blco_part *part,
                               const struct slc_baseline_copies *copies,
                               const struct slc_gpu_lists_options *options,
                               cudaStream_t stream)
{
    const uint32_t rows = options->stash_rows;
    const size_t shared = slc_baseline_blco_shared_bytes(part->order, options->work_group) +
                          rows * (job->rank * sizeof(double) + sizeof(uint32_t));
    const cudaError_t error =
        cudaFuncSetAttribute(slc_blco_stash<Element, factors>,
                             cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared));

    if (error != cudaSuccess) {
        return error;
    }
    return slc_launch(slc_blco_stash<Element, factors>, dim3(part->group_count),
                      dim3(options->work_group), shared, stream, *part, *job, *copies,
                      options->coarsening, rows);
}

SLC_BLCO_KERNEL(slc_baseline_blco_stash)

/* ---- copies of the output */

/* output += all copies. */
__global__ void
slc_blco_merge(double *output, const double *outputs, uint32_t copies, uint64_t elements)
{
    const uint64_t i = static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    double sum = 0;

    if (i < elements) {
        for (uint32_t c = 0; c < copies; c++) {
            sum += outputs[c * elements + i];
        }
        output[i] += sum;
    }
}

cudaError_t slc_baseline_blco_merge(const struct slc_gpu_mttkrp *job,
                                    const struct slc_baseline_copies *copies,
                                    cudaStream_t stream)
{
    const uint64_t blocks = (copies->elements + SLC_BASELINE_THREADS - 1) / SLC_BASELINE_THREADS;

    return slc_launch(slc_blco_merge, dim3(static_cast<unsigned>(blocks)),
                      dim3(SLC_BASELINE_THREADS), 0, stream,
                      static_cast<double *>(job->output.data),
                      static_cast<const double *>(copies->data), copies->count, copies->elements);
}
