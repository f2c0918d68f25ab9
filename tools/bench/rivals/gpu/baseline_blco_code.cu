/* The hierarchical kernel of BLCO's authors' program, one warp per work-group; see baselines.h. */
#include "tools/bench/rivals/gpu/baseline_blco.h"

/* Sums of a few rows, each at the place that its number says: row modulo `rows`. */
struct warp_stash {
    double *sums;   /* rows x rank; a column is used by one lane only */
    uint32_t *tags; /* per place one of each lane, so that no lane waits for another's: row + 1 */
    uint32_t rows;
};

/* Adds what a place holds to the output, and empties it. */
__device__ static inline void flush(const struct slc_baseline_job *job,
                                    double *output,
                                    const struct warp_stash *stash,
                                    uint32_t at)
{
    uint32_t *tag = stash->tags + at * SLC_WARP + threadIdx.x;
    double *row;

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
template <typename Element, unsigned factors>
__device__ static inline void add_row(const struct slc_baseline_job *job,
                                      double *output,
                                      const struct warp_stash *stash,
                                      const struct slc_blco_tile *tile,
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
        double sum = there ? stash->sums[at * job->rank + c] : 0;

        for (uint32_t k = begin; k < end; k++) {
            sum += slc_baseline_product<Element, factors>(job, tile->coords + k * order,
                                                          tile->values[k], c);
        }
        stash->sums[at * job->rank + c] = sum;
    }
}

/* A block is a warp; block b adds to copy b modulo `copies` of the output. */
template <typename Element, unsigned factors>
__global__ void __launch_bounds__(SLC_WARP)
    slc_blco_code_stash(const __grid_constant__ struct slc_gpu_blco_part part,
                        const __grid_constant__ struct slc_baseline_job job,
                        const __grid_constant__ struct slc_baseline_copies copies,
                        uint32_t coarsening,
                        uint32_t stash_rows)
{
    SLC_DYNAMIC_SHARED(double, shared);
    const struct slc_gpu_blco_group group = part.groups[blockIdx.x];
    double *output =
        static_cast<double *>(copies.data) + blockIdx.x % copies.count * copies.elements;
    struct slc_blco_tile tile;
    struct warp_stash stash;
    uint32_t *upper;

    tile.values = shared;
    stash.sums = shared + SLC_WARP;
    stash.tags = reinterpret_cast<uint32_t *>(stash.sums + stash_rows * job.rank);
    stash.rows = stash_rows;
    upper = stash.tags + stash_rows * SLC_WARP;
    tile.coords = upper + part.order;
    if (threadIdx.x < part.order) {
        upper[threadIdx.x] = part.blocks[group.block].upper[threadIdx.x];
    }
    for (uint32_t s = 0; s < stash_rows; s++) {
        stash.tags[s * SLC_WARP + threadIdx.x] = 0;
    }
    SLC_PLANT(blco_code_upper_not_there, __syncwarp());
    for (uint32_t t = 0; t < coarsening; t++) {
        uint32_t first;
        const uint32_t count = slc_blco_tile_count(&group, t, &first);

        if (count == 0) {
            break;
        }
        slc_blco_stage(&part, upper, job.mode, group.first - part.base + first, count, &tile);
        for (uint32_t begin = 0, end; begin < tile.count; begin = end) {
            end = slc_blco_row_end(&tile, begin);
            add_row<Element, factors>(&job, output, &stash, &tile, part.order, begin, end);
        }
        SLC_PLANT(blco_code_tile_overwritten, __syncwarp());
    }
    for (uint32_t s = 0; s < stash_rows; s++) {
        flush(&job, output, &stash, s);
    }
}

template <typename Element, unsigned factors>
static cudaError_t launch_with(const struct slc_baseline_job *job,
                               const struct slc_gpu_blco_part *part,
                               const struct slc_baseline_copies *copies,
                               const struct slc_gpu_lists_options *options,
                               cudaStream_t stream)
{
    const uint32_t rows = options->stash_rows;
    const size_t shared = slc_baseline_blco_shared_bytes(part->order, SLC_WARP) +
                          rows * (job->rank * sizeof(double) + SLC_WARP * sizeof(uint32_t));

    return slc_launch(slc_blco_code_stash<Element, factors>, dim3(part->group_count),
                      dim3(SLC_WARP), shared, stream, *part, *job, *copies, options->coarsening,
                      rows);
}

SLC_BLCO_KERNEL(slc_baseline_blco_code_stash)
