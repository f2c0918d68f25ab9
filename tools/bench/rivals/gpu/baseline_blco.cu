/* Implements BLCO's kernels (baselines.h). A warp loads a tile of 32 nonzeros into shared memory,
 * sorted by output row. */
#include "tools/bench/rivals/gpu/baseline.h"

/* The compiler must leave enough registers for this number of work-groups of the largest size per
 * multiprocessor. Without this bound, nvcc 13 assumes more work-groups and spills registers. */
enum { SLC_BLCO_GROUPS = 2 };

/* The nonzeros of a warp, in shared memory. */
struct slc_blco_tile {
    double *values;   /* SLC_WARP elements */
    uint32_t *coords; /* element k * order + m is the coordinate of nonzero k in mode m */
    uint32_t count;
    uint32_t heads; /* bit k is set if nonzero k and nonzero k - 1 have different rows */
};

/* Returns the number of nonzeros in tile t of a warp. Sets *first to the start of the tile in the
 * work-group. */
__device__ static inline uint32_t
slc_blco_tile_count(const struct slc_gpu_blco_group *group, uint32_t t, uint32_t *first)
{
    *first = t * blockDim.x + threadIdx.x / SLC_WARP * SLC_WARP;
    if (*first >= group->count) {
        return 0;
    }
    return group->count - *first < SLC_WARP ? group->count - *first : +SLC_WARP;
}

__device__ static inline uint32_t slc_blco_coordinate(const struct slc_gpu_blco_part *part,
                                                      const uint32_t *upper,
                                                      uint64_t index,
                                                      unsigned mode)
{
    const uint64_t mask = (UINT64_C(1) << part->bits[mode]) - 1;

    return upper[mode] | static_cast<uint32_t>(index >> part->shift[mode] & mask);
}

/* Returns the place of this warp lane if the warp lanes of `active` are sorted so that equal rows
 * are adjacent. This is a counting sort, in which the first warp lane with a row represents the
 * row. Sets bit p of *heads if a row begins at place p. */
__device__ static inline unsigned
slc_blco_place(unsigned active, unsigned lane, uint32_t row, uint32_t *heads)
{
    const unsigned same = __match_any_sync(active, row);
    const unsigned leader = static_cast<unsigned>(__ffs(same)) - 1;
    const unsigned size = static_cast<unsigned>(__popc(same));
    unsigned end = lane == leader ? size : 0;

    for (unsigned delta = 1; delta < SLC_WARP; delta *= 2) {
        const unsigned before = __shfl_up_sync(active, end, delta);

        end += lane >= delta ? before : 0;
    }
    const unsigned begin = __shfl_sync(active, end, static_cast<int>(leader)) - size;

    *heads = __reduce_or_sync(active, lane == leader ? 1U << begin : 0);
    return begin + static_cast<unsigned>(__popc(same & ((1U << lane) - 1U)));
}

/* Loads `count` nonzeros, at least one, from position `first` of the arrays of the part into the
 * tile. All warp lanes call this together and can then read the tile. `upper` has the upper bits of
 * the block of the nonzeros, in shared memory. */
__device__ static inline void slc_blco_stage(const struct slc_gpu_blco_part *part,
                                             const uint32_t *upper,
                                             unsigned mode,
                                             uint64_t first,
                                             uint32_t count,
                                             struct slc_blco_tile *tile)
{
    const unsigned lane = threadIdx.x % SLC_WARP;

    tile->count = count;
    tile->heads = 0;
    if (lane < count) {
        const unsigned active = SLC_ALL_LANES >> (SLC_WARP - count);
        const uint64_t index = part->indices[first + lane];
        const double value = slc_baseline_value(part->type, part->values, first + lane);
        const uint32_t row = slc_blco_coordinate(part, upper, index, mode);
        const unsigned place = slc_blco_place(active, lane, row, &tile->heads);

        tile->values[place] = value;
        for (unsigned m = 0; m < part->order; m++) {
            tile->coords[place * part->order + m] = slc_blco_coordinate(part, upper, index, m);
        }
    }
    tile->heads = __shfl_sync(SLC_ALL_LANES, tile->heads, 0);
    SLC_PLANT(blco_tile_not_there, __syncwarp());
}

/* Returns true if nonzero k is the last nonzero of its row in the tile. */
__device__ static inline bool slc_blco_ends_row(const struct slc_blco_tile *tile, uint32_t k)
{
    return k + 1 == tile->count || (tile->heads >> (k + 1) & 1U) != 0;
}

/* Returns the end of the run of nonzeros of one row that starts at `begin`. */
__device__ static inline uint32_t slc_blco_row_end(const struct slc_blco_tile *tile, uint32_t begin)
{
    uint32_t end = begin + 1;

    while (!slc_blco_ends_row(tile, end - 1)) {
        end++;
    }
    return end;
}

/* Arguments of a launch. */
struct blco_launch {
    struct slc_baseline_job job;
    const struct slc_gpu_blco_part *part;
    const struct slc_baseline_blco_run *run;
    cudaStream_t stream;
};

/* ---- the kernel with sums in registers */

/* The kernel blco-registers. Each thread block is a work-group. Each of its warps computes
 * `coarsening` tiles. */
template <typename Element, unsigned factors>
__global__ void __launch_bounds__(SLC_BLCO_GROUP_MAX, SLC_BLCO_GROUPS)
    slc_blco_registers(const __grid_constant__ struct slc_gpu_blco_part part,
                       const __grid_constant__ struct slc_baseline_job job,
                       uint32_t coarsening)
{
    SLC_DYNAMIC_SHARED(double, shared);
    const struct slc_gpu_blco_group group = part.groups[blockIdx.x];
    const uint32_t warp = threadIdx.x / SLC_WARP;
    uint32_t *upper = reinterpret_cast<uint32_t *>(shared + blockDim.x);
    struct slc_blco_tile tile;

    tile.values = shared + warp * SLC_WARP;
    tile.coords = upper + part.order + warp * SLC_WARP * part.order;
    if (threadIdx.x < part.order) {
        upper[threadIdx.x] = part.blocks[group.block].upper[threadIdx.x];
    }
    SLC_PLANT(blco_upper_not_there, __syncthreads());
    for (uint32_t t = 0; t < coarsening; t++) {
        uint32_t first;
        const uint32_t count = slc_blco_tile_count(&group, t, &first);

        if (count == 0) {
            break;
        }
        slc_blco_stage(&part, upper, job.mode, group.first - part.base + first, count, &tile);
        for (uint32_t c = threadIdx.x % SLC_WARP; c < job.rank; c += SLC_WARP) {
            double sum = 0;

            for (uint32_t k = 0; k < tile.count; k++) {
                const uint32_t *coords = tile.coords + k * part.order;

                sum += slc_baseline_product<Element, factors>(&job, coords, tile.values[k], c);
                if (slc_blco_ends_row(&tile, k)) {
                    atomicAdd(slc_baseline_row(&job, coords[job.mode]) + c, sum);
                    sum = 0;
                }
            }
        }
        SLC_PLANT(blco_tile_overwritten, __syncwarp());
    }
}

template <typename Element, unsigned factors>
static cudaError_t launch_registers(const struct blco_launch *with)
{
    return slc_launch(
        slc_blco_registers<Element, factors>, dim3(with->part->group_count),
        dim3(with->run->options->work_group),
        slc_baseline_blco_shared_bytes(with->part->order, with->run->options->work_group),
        with->stream, *with->part, with->job, with->run->options->coarsening);
}

/* ---- the hierarchical kernel, with one stash per work-group */

/* The stash: sums of some output rows in shared memory, to which all warps of the work-group add.
 * The place of a row is its number modulo `rows`. The first row that needs a place keeps it until
 * the end. Other rows with the same place are added to the output directly. */
struct stash {
    double *sums;   /* rows x rank */
    uint32_t *tags; /* per place: its row + 1, or 0 if it is empty */
    uint32_t rows;
};

/* Returns true if `row` has its place in the stash. Occupies the place if it is empty. All warp
 * lanes call this together. */
__device__ static inline bool hold_place(const struct stash *stash, uint32_t row)
{
    unsigned before = 0;

    if (threadIdx.x % SLC_WARP == 0) {
        before = atomicCAS(stash->tags + row % stash->rows, 0U, row + 1U);
    }
    before = __shfl_sync(SLC_ALL_LANES, before, 0);
    return before == 0 || before == row + 1;
}

/* Adds a tile to the stash or to the output, row by row. */
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

/* Adds the stash to the output. Each warp adds one place at a time. */
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

/* The kernel blco-stash. Each thread block is a work-group. Block b adds to copy b modulo `copies`
 * of the output. */
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
    SLC_PLANT(blco_stash_unsynced, __syncthreads());
    flush(&job, output, &stash);
}

template <typename Element, unsigned factors>
static cudaError_t launch_stash(const struct blco_launch *with)
{
    const uint32_t rows = with->run->options->stash_rows;
    const size_t shared =
        slc_baseline_blco_shared_bytes(with->part->order, with->run->options->work_group) +
        rows * (with->job.rank * sizeof(double) + sizeof(uint32_t));

    SLC_CUDA_TRY(cudaFuncSetAttribute(slc_blco_stash<Element, factors>,
                                      cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      static_cast<int>(shared)));
    return slc_launch(slc_blco_stash<Element, factors>, dim3(with->part->group_count),
                      dim3(with->run->options->work_group), shared, with->stream, *with->part,
                      with->job, with->run->copies, with->run->options->coarsening, rows);
}

/* ---- copies of the output */

/* Adds all copies to the output. */
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

/* ---- the hierarchical kernel of the authors' program, with one warp per work-group */

/* The stash: sums of a few output rows. The place of a row is its number modulo `rows`. */
struct warp_stash {
    double *sums;   /* rows x rank; each column is used by only one warp lane */
    uint32_t *tags; /* row + 1 per place; each warp lane has a copy, so that none waits */
    uint32_t rows;
};

/* Adds the sums of a place of the stash to the output and empties the place. */
__device__ static inline void flush_place(const struct slc_baseline_job *job,
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

/* Adds the nonzeros [begin, end) of a tile, which have the same row. */
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
        flush_place(job, output, stash, at);
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

/* The kernel blco-code-stash. A thread block is one warp. Block b adds to copy b modulo `copies` of
 * the output. */
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
        flush_place(&job, output, &stash, s);
    }
}

template <typename Element, unsigned factors>
static cudaError_t launch_code_stash(const struct blco_launch *with)
{
    const uint32_t rows = with->run->options->stash_rows;
    const size_t shared = slc_baseline_blco_shared_bytes(with->part->order, SLC_WARP) +
                          rows * (with->job.rank * sizeof(double) + SLC_WARP * sizeof(uint32_t));

    return slc_launch(slc_blco_code_stash<Element, factors>, dim3(with->part->group_count),
                      dim3(SLC_WARP), shared, with->stream, *with->part, with->job,
                      with->run->copies, with->run->options->coarsening, rows);
}

/* Calls function<Element, factors>(with), where `factors` is the number of factors, or 0 if no
 * kernel is compiled for this number. NOLINTBEGIN(bugprone-macro-parentheses): `function` is a
 * template. */
#define BY_FACTORS(function, Element, with)                                                        \
    ((with)->job.others == 2   ? function<Element, 2>(with)                                        \
     : (with)->job.others == 3 ? function<Element, 3>(with)                                        \
                               : function<Element, 0>(with))
#define BY_TYPE(function, with)                                                                    \
    ((with)->run->job->precision == SLC_F64 ? BY_FACTORS(function, double, with)                   \
                                            : BY_FACTORS(function, float, with))
/* NOLINTEND(bugprone-macro-parentheses) */

cudaError_t
slc_baseline_blco(const void *context, const struct slc_gpu_blco_part *part, cudaStream_t stream)
{
    const struct slc_baseline_blco_run *run =
        static_cast<const struct slc_baseline_blco_run *>(context);
    const struct blco_launch with = {slc_baseline_job_of(run->job), part, run, stream};

    switch (run->chosen) {
    case SLC_GPU_BLCO_STASH:
        return BY_TYPE(launch_stash, &with);
    case SLC_GPU_BLCO_CODE_STASH:
        return BY_TYPE(launch_code_stash, &with);
    default:
        return BY_TYPE(launch_registers, &with);
    }
}
