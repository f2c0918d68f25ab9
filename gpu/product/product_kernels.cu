/* Kernels that multiply a tile fiber by fiber. */
#include "gpu/product/product_kernels.h"

#include "gpu/decode/decode.h"
#include "gpu/product/pack.h"

enum {
    DECODE_WARPS = 4, /* warps per thread block; the scratch of this number fits on every device */
    THREADS = 256,
    /* Number of thread blocks per multiprocessor for which the compiler allocates registers. */
    BLOCKS = 2,
    BATCH = 4, /* nonzeros whose rows are loaded at the same time */
    GROUP_WORDS = SLC_GROUP_NNZ / SLC_WARP,
    RUN_GROUPS = SLC_RUN_NNZ / SLC_GROUP_NNZ
};

/* Value for no fiber; larger than the number of any fiber. */
#define NO_FIBER UINT32_MAX

/* Returns true if nonzeros i and i - 1 are in different fibers. Needs: i > 0. */
__device__ static inline bool leaves_fiber(const struct slc_product_job *job, uint32_t i)
{
    bool leaves = false;

    for (uint32_t k = 0; k < job->kept; k++) {
        const uint32_t *offsets = job->list.offsets + job->kept_mode[k] * (uint32_t)SLC_TILE_NNZ;

        leaves |= offsets[i] != offsets[i - 1];
    }
    return leaves;
}

/* ---- decode */

/* Marks the nonzeros of the run [first, end) at which fibers begin, except nonzero `first`. */
__device__ static inline void
mark_heads(const struct slc_product_job *job, uint32_t first, uint32_t end, uint32_t lane)
{
    for (uint32_t group = first; group < end; group += SLC_GROUP_NNZ) {
        uint32_t count = 0;

        for (uint32_t at = group; at < group + SLC_GROUP_NNZ; at += SLC_WARP) {
            const uint32_t i = at + lane;
            const unsigned word =
                __ballot_sync(SLC_ALL_LANES, i > first && i < end && leaves_fiber(job, i));

            if (lane == 0) {
                job->list.heads[at / SLC_WARP] = word;
            }
            count += (uint32_t)__popc(word);
        }
        if (lane == 0) {
            job->list.counts[group / SLC_GROUP_NNZ] = count;
        }
    }
}

/* Decodes a tile. Each warp decodes one run. */
template <typename T>
__global__ static void __launch_bounds__(SLC_WARP *DECODE_WARPS, 1)
    slc_product_decode_runs(const struct slc_product_job job)
{
    SLC_DYNAMIC_SHARED(struct slc_decode_scratch, scratch);
    const uint32_t warp = threadIdx.x / SLC_WARP, lane = threadIdx.x % SLC_WARP;
    const uint32_t run = blockIdx.x * DECODE_WARPS + warp, first = run * SLC_RUN_NNZ;

    if (first >= job.nnz) {
        return;
    }
    const uint32_t count =
        slc_decode_run(job.layout, job.tile, run, scratch + warp, job.list.offsets + first,
                       SLC_TILE_NNZ, static_cast<T *>(job.list.values) + first, job.fault);

    SLC_PLANT(product_run_unsynced, __syncwarp());
    mark_heads(&job, first, first + count, lane);
}

cudaError_t slc_product_decode(const struct slc_product_job *job, cudaStream_t stream)
{
    const uint32_t runs = (job->nnz + SLC_RUN_NNZ - 1) / SLC_RUN_NNZ;

    return slc_launch(job->precision == SLC_F64 ? slc_product_decode_runs<double>
                                                : slc_product_decode_runs<float>,
                      dim3((runs + DECODE_WARPS - 1) / DECODE_WARPS), dim3(SLC_WARP * DECODE_WARPS),
                      DECODE_WARPS * sizeof(struct slc_decode_scratch), stream, *job);
}

/* ---- starts of fibers */

__device__ static inline uint32_t groups_of(const struct slc_product_job *job)
{
    return (job->nnz + SLC_GROUP_NNZ - 1) / SLC_GROUP_NNZ;
}

/* Returns true if the group's first nonzero is the first nonzero of a run and begins a fiber. The
 * bits of `heads` do not mark the beginning of such a fiber. */
__device__ static inline bool begins_run(const struct slc_product_job *job, uint32_t group)
{
    return group % RUN_GROUPS == 0 && (group == 0 || leaves_fiber(job, group * SLC_GROUP_NNZ));
}

/* Numbers of fibers that begin before a group, and in the whole tile. */
struct slc_fibers_begun {
    uint32_t before, all;
};

/* Counts the fibers that begin before `group` and in the tile. Called by all warp lanes
 * together. */
__device__ static inline struct slc_fibers_begun
count_fibers(const struct slc_product_job *job, uint32_t group, uint32_t lane)
{
    const uint32_t groups = groups_of(job);
    uint32_t before = 0, all = 0;

    for (uint32_t g = lane; g < groups; g += SLC_WARP) {
        const uint32_t count = job->list.counts[g];

        all += count;
        before += g < group ? count : 0;
    }
    for (uint32_t g = lane * RUN_GROUPS; g < groups; g += SLC_WARP * RUN_GROUPS) {
        const uint32_t begins = begins_run(job, g);

        all += begins;
        before += g < group ? begins : 0;
    }
    return {__reduce_add_sync(SLC_ALL_LANES, before), __reduce_add_sync(SLC_ALL_LANES, all)};
}

/* The group that a warp or a vector of threads processes. */
struct slc_product_group {
    uint32_t number, begin, end; /* nonzeros [begin, end) */
    uint32_t before;             /* fibers that begin before the group */
    bool begins_run;
};

/* Returns the bits of the 32 nonzeros that begin at `at`, a multiple of 32: a set bit marks the
 * first nonzero of a fiber. */
__device__ static inline unsigned
heads_at(const struct slc_product_job *job, const struct slc_product_group *group, uint32_t at)
{
    return job->list.heads[at / SLC_WARP] | (at == group->begin && group->begins_run ? 1U : 0U);
}

/* ---- the result */

/* Where the result has the offsets and sums of the requested fibers. */
struct slc_product_place {
    uint32_t *offsets;
    double *sums;
    uint32_t fibers;
};

__device__ static inline struct slc_product_place place_of(const struct slc_product_job *job,
                                                           uint32_t all)
{
    const uint32_t fibers = slc_least(all - job->first, job->room);

    return {reinterpret_cast<uint32_t *>(job->result + SLC_PRODUCT_OFFSETS_AT),
            reinterpret_cast<double *>(job->result + slc_product_sums_at(fibers, job->kept)),
            fibers};
}

__device__ static inline void store_header(const struct slc_product_job *job, uint32_t all)
{
    auto *header = reinterpret_cast<struct slc_product_header *>(job->result);

    header->count = all;
    header->fault = *job->fault;
}

/* Stores the offsets of the fibers that begin in a group. `threads` threads share the work. */
__device__ static inline void store_offsets(const struct slc_product_job *job,
                                            const struct slc_product_group *group,
                                            const struct slc_product_place *place,
                                            uint32_t thread,
                                            uint32_t threads)
{
    uint32_t before = group->before - job->first;

    SLC_ROLL
    for (uint32_t at = group->begin; at < group->end; at += SLC_WARP) {
        const unsigned word = heads_at(job, group, at);

        for (uint32_t bit = thread; bit < SLC_WARP; bit += threads) {
            const uint32_t fiber = before + (uint32_t)__popc(word & ((1U << bit) - 1U));

            for (uint32_t k = 0; (word >> bit & 1U) != 0 && fiber < place->fibers && k < job->kept;
                 k++) {
                place->offsets[k * place->fibers + fiber] =
                    job->list.offsets[job->kept_mode[k] * (uint32_t)SLC_TILE_NNZ + at + bit];
            }
        }
        before += (uint32_t)__popc(word);
    }
}

/* Return the destinations of sums: the row of fiber `fiber`, where the first requested fiber is 0,
 * and the carry of a group. */
__device__ static inline double *
row_of(const struct slc_product_job *job, const struct slc_product_place *place, uint32_t fiber)
{
    return place->sums + static_cast<uint64_t>(fiber) * job->cols;
}

__device__ static inline double *carry_of(const struct slc_product_job *job, uint32_t group)
{
    return job->carries + static_cast<uint64_t>(group) * job->cols;
}

/* Returns the row of a nonzero in the matrix of summed mode s, relative to job->rows[s]. */
__device__ static inline uint64_t
matrix_row(const struct slc_product_job *job, uint32_t s, uint32_t i)
{
    const uint32_t offset = job->list.offsets[job->summed_mode[s] * (uint32_t)SLC_TILE_NNZ + i];

    if (job->used[s] == nullptr) {
        return offset;
    }
    const uint64_t at = job->used_corner[s] + offset;
    const struct slc_used_word word = job->used[s][at / SLC_USED_WORD_BITS];

    return word.before +
           (uint64_t)__popcll(word.bits & ((UINT64_C(1) << at % SLC_USED_WORD_BITS) - 1));
}

/* ---- several columns */

/* Computes the terms of BATCH nonzeros that begin at `at`, in the columns of the pack that begins
 * at `column`. After `end`, terms repeat the last nonzero. */
template <typename Element>
__device__ static inline void load_terms(const struct slc_product_job *job,
                                         uint32_t at,
                                         uint32_t end,
                                         uint32_t column,
                                         double terms[BATCH][slc_pack<Element>::COUNT])
{
    enum { COUNT = slc_pack<Element>::COUNT };
    const Element *values = static_cast<const Element *>(job->list.values);

    SLC_UNROLL
    for (int b = 0; b < BATCH; b++) {
        const double value = static_cast<double>(values[slc_least(at + b, end - 1)]);

        for (int k = 0; k < COUNT; k++) {
            terms[b][k] = value;
        }
    }
    SLC_ROLL
    for (uint32_t s = 0; s < job->summed; s++) {
        const Element *rows = static_cast<const Element *>(job->rows[s]) + column;
        slc_pack<Element> row[BATCH];

        SLC_UNROLL
        for (int b = 0; b < BATCH; b++) {
            row[b] = *reinterpret_cast<const slc_pack<Element> *>(
                rows + matrix_row(job, s, slc_least(at + b, end - 1)) * job->pitch);
        }
        SLC_UNROLL
        for (int b = 0; b < BATCH; b++) {
            for (int k = 0; k < COUNT; k++) {
                terms[b][k] *= static_cast<double>(row[b][k]);
            }
        }
    }
}

template <int count>
__device__ static inline void
store_columns(const struct slc_product_job *job, double *row, uint32_t column, const double *sum)
{
    for (int k = 0; k < count; k++) {
        if (column + static_cast<uint32_t>(k) < job->cols) {
            row[column + static_cast<uint32_t>(k)] = sum[k];
        }
    }
}

/* Computes the columns of one thread for all fibers of a group. */
template <typename Element>
__device__ static inline void multiply_columns(const struct slc_product_job *job,
                                               const struct slc_product_group *group,
                                               const struct slc_product_place *place,
                                               uint32_t column)
{
    enum { COUNT = slc_pack<Element>::COUNT };
    /* the fiber to which the current sum belongs */
    uint32_t fiber = group->before - job->first - 1;
    double sum[COUNT] = {};
    double *to = carry_of(job, group->number);

    SLC_ROLL
    for (uint32_t at = group->begin; at < group->end; at += BATCH) {
        const unsigned word = heads_at(job, group, at / SLC_WARP * SLC_WARP) >> at % SLC_WARP;
        double terms[BATCH][COUNT];

        load_terms<Element>(job, at, group->end, column, terms);
        SLC_UNROLL
        for (int b = 0; b < BATCH; b++) {
            if ((word >> b & 1U) != 0) {
                if (at + b > group->begin && fiber < place->fibers) {
                    store_columns<COUNT>(job, to, column, sum);
                }
                fiber++;
                to = row_of(job, place, fiber);
                for (int k = 0; k < COUNT; k++) {
                    sum[k] = 0;
                }
            }
            for (int k = 0; k < COUNT && at + b < group->end; k++) {
                sum[k] += terms[b][k];
            }
        }
    }
    if (fiber < place->fibers) {
        store_columns<COUNT>(job, to, column, sum);
    }
}

/* Computes products of several columns. A vector of `threads` threads, a power of two up to
 * SLC_WARP, processes a group. */
template <typename Element>
__global__ static void __launch_bounds__(THREADS, BLOCKS)
    slc_product_columns(const struct slc_product_job job, uint32_t threads)
{
    enum { COUNT = slc_pack<Element>::COUNT };
    const uint32_t lane = threadIdx.x % SLC_WARP, thread = lane % threads;
    const uint32_t warp = (blockIdx.x * THREADS + threadIdx.x) / SLC_WARP;
    const uint32_t first = warp * (SLC_WARP / threads), groups = groups_of(&job);

    if (first >= groups) {
        return;
    }
    /* Number of fibers that begin before the warp's first group. */
    const struct slc_fibers_begun begun = count_fibers(&job, first, lane);
    const uint32_t mine = first + lane;
    const bool counted = lane < SLC_WARP / threads && mine < groups;
    const uint32_t here = counted ? job.list.counts[mine] + (begins_run(&job, mine) ? 1 : 0) : 0;
    const uint32_t upto = slc_sum_before(here, lane);
    struct slc_product_group group;

    group.number = first + lane / threads;
    group.before =
        begun.before + __shfl_sync(SLC_ALL_LANES, upto, static_cast<int>(lane / threads));
    if (warp == 0 && lane == 0) {
        store_header(&job, begun.all);
    }
    if (group.number >= groups) {
        return;
    }
    group.begin = group.number * SLC_GROUP_NNZ;
    group.end = slc_least(group.begin + SLC_GROUP_NNZ, job.nnz);
    group.begins_run = begins_run(&job, group.number);
    const struct slc_product_place place = place_of(&job, begun.all);

    store_offsets(&job, &group, &place, thread, threads);
    if (thread == 0) {
        job.carry_fiber[group.number] =
            (heads_at(&job, &group, group.begin) & 1U) != 0 ? NO_FIBER : group.before - 1;
    }
    SLC_ROLL
    for (uint32_t column = thread * COUNT; column < job.cols; column += threads * COUNT) {
        multiply_columns<Element>(&job, &group, &place, column);
    }
}

/* ---- one column */

template <typename Element>
__device__ static inline double term_of(const struct slc_product_job *job, uint32_t i)
{
    double term = static_cast<double>(static_cast<const Element *>(job->list.values)[i]);

    for (uint32_t s = 0; s < job->summed; s++) {
        term *=
            static_cast<double>(static_cast<const Element *>(job->rows[s])[matrix_row(job, s, i)]);
    }
    return term;
}

/* Computes a product of one column. A warp processes a group in windows of 32 nonzeros. `open` is
 * the partial sum that continues from one window to the next. `open` belongs to `fiber`, or to the
 * carry until the first fiber begins. */
template <typename Element>
__global__ static void __launch_bounds__(THREADS)
    slc_product_vector(const struct slc_product_job job)
{
    const uint32_t lane = threadIdx.x % SLC_WARP;
    struct slc_product_group group;

    group.number = (blockIdx.x * THREADS + threadIdx.x) / SLC_WARP;
    if (group.number >= groups_of(&job)) {
        return;
    }
    const struct slc_fibers_begun begun = count_fibers(&job, group.number, lane);
    const struct slc_product_place place = place_of(&job, begun.all);

    group.before = begun.before;
    group.begin = group.number * SLC_GROUP_NNZ;
    group.end = slc_least(group.begin + SLC_GROUP_NNZ, job.nnz);
    group.begins_run = begins_run(&job, group.number);
    if (group.number == 0 && lane == 0) {
        store_header(&job, begun.all);
    }
    store_offsets(&job, &group, &place, lane, SLC_WARP);

    double *const sums = place.sums;
    double *const carry = carry_of(&job, group.number);
    uint32_t fiber = begun.before - job.first - 1;
    double open = 0;
    bool carries = true; /* the open sum belongs to the carry */

    SLC_ROLL
    for (uint32_t at = group.begin; at < group.end; at += SLC_WARP) {
        const unsigned word = heads_at(&job, &group, at);
        const uint32_t last = slc_least(group.end - at, SLC_WARP) - 1;
        /* `back` is the distance from this warp lane to the warp lane at which its fiber starts, or
         * to warp lane 0 if the fiber starts before the window. */
        const unsigned upto = word & (SLC_ALL_LANES >> (SLC_WARP - 1 - lane));
        const uint32_t back = upto == 0 ? lane : lane - (31 - (uint32_t)__clz((int)upto));
        double term = lane <= last ? term_of<Element>(&job, at + lane) : 0;

        for (uint32_t delta = 1; delta < SLC_WARP; delta *= 2) {
            const double before = __shfl_up_sync(SLC_ALL_LANES, term, delta);

            term += back >= delta ? before : 0;
        }
        const double tail = __shfl_sync(SLC_ALL_LANES, term, static_cast<int>(last));

        /* If a fiber begins at the window's first nonzero, the open fiber has ended. */
        if (lane == 0 && at > group.begin && (word & 1U) != 0) {
            if (carries) {
                *carry = open;
            } else if (fiber < place.fibers) {
                sums[fiber] = open;
            }
        }
        if (lane < last && (word >> (lane + 1) & 1U) != 0) {
            const uint32_t ended = fiber + (uint32_t)__popc(upto);

            if (upto == 0 && carries) {
                *carry = open + term;
            } else if (ended < place.fibers) {
                sums[ended] = upto == 0 ? open + term : term;
            }
        }
        open = word == 0 ? open + tail : tail;
        carries = carries && word == 0;
        fiber += (uint32_t)__popc(word);
    }
    if (lane == 0) {
        if (carries) {
            *carry = open;
        } else if (fiber < place.fibers) {
            sums[fiber] = open;
        }
        job.carry_fiber[group.number] =
            (heads_at(&job, &group, group.begin) & 1U) != 0 ? NO_FIBER : group.before - 1;
    }
}

/* ---- carries */

/* Returns the number of consecutive groups, starting at `group`, whose carries belong to `fiber`.
 * Called by all warp lanes together. */
__device__ static inline uint32_t
count_carries(const struct slc_product_job *job, uint32_t group, uint32_t fiber, uint32_t lane)
{
    const uint32_t groups = groups_of(job);
    uint32_t count = 0;
    unsigned there = SLC_ALL_LANES;

    while (there == SLC_ALL_LANES) {
        const uint32_t g = group + count + lane;

        there = __ballot_sync(SLC_ALL_LANES, g < groups && job->carry_fiber[g] == fiber);
        count += (uint32_t)__popc(there);
    }
    return count;
}

/* Adds carries to the rows of fibers. One warp processes each group. If the first carry of a fiber
 * is the carry of the group, the warp adds all carries of the fiber to the fiber's row. The warp
 * lanes process `columns` columns (a power of two, at most SLC_WARP) of several carries in
 * parallel. */
__global__ static void __launch_bounds__(THREADS)
    slc_product_carry(const struct slc_product_job job, uint32_t columns)
{
    const uint32_t lane = threadIdx.x % SLC_WARP;
    const uint32_t group = (blockIdx.x * THREADS + threadIdx.x) / SLC_WARP;

    /* The first group has no carry, because a fiber begins at its first nonzero. */
    if (group == 0 || group >= groups_of(&job)) {
        return;
    }
    const uint32_t fiber = job.carry_fiber[group];

    if (fiber == NO_FIBER || job.carry_fiber[group - 1] == fiber) {
        return;
    }
    const auto *header = reinterpret_cast<const struct slc_product_header *>(job.result);
    const struct slc_product_place place = place_of(&job, header->count);

    if (fiber - job.first >= place.fibers) {
        return;
    }
    const uint32_t count = count_carries(&job, group, fiber, lane);
    double *row = row_of(&job, &place, fiber - job.first);

    for (uint32_t first = 0; first < job.cols; first += columns) {
        const uint32_t column = first + lane % columns;
        double sum = 0;

        for (uint32_t c = lane / columns; c < count && column < job.cols; c += SLC_WARP / columns) {
            sum += carry_of(&job, group + c)[column];
        }
        for (uint32_t lanes = columns; lanes < SLC_WARP; lanes *= 2) {
            sum += __shfl_xor_sync(SLC_ALL_LANES, sum, static_cast<int>(lanes));
        }
        if (lane < columns && column < job.cols) {
            row[column] += sum;
        }
    }
}

/* Returns the smallest power of two that is at least `count`, but at most SLC_WARP. */
static uint32_t power_of_two(uint32_t count)
{
    uint32_t power = 1;

    while (power < count && power < SLC_WARP) {
        power *= 2;
    }
    return power;
}

template <typename Element>
static cudaError_t multiply(const struct slc_product_job *job, cudaStream_t stream)
{
    const uint32_t groups = (job->nnz + SLC_GROUP_NNZ - 1) / SLC_GROUP_NNZ;
    const uint32_t packs = (job->cols + slc_pack<Element>::COUNT - 1) / slc_pack<Element>::COUNT;
    const uint32_t threads = power_of_two(job->cols == 1 ? (uint32_t)SLC_WARP : packs);
    const dim3 grid((groups * threads + THREADS - 1) / THREADS);
    cudaError_t error;

    if (job->cols == 1) {
        error = slc_launch(slc_product_vector<Element>, grid, dim3(THREADS), 0, stream, *job);
    } else {
        error =
            slc_launch(slc_product_columns<Element>, grid, dim3(THREADS), 0, stream, *job, threads);
    }
    if (error != cudaSuccess || groups == 1) {
        return error;
    }
    return slc_launch(slc_product_carry, dim3((groups * SLC_WARP + THREADS - 1) / THREADS),
                      dim3(THREADS), 0, stream, *job, power_of_two(job->cols));
}

cudaError_t slc_product_multiply(const struct slc_product_job *job, cudaStream_t stream)
{
    return job->precision == SLC_F64 ? multiply<double>(job, stream) : multiply<float>(job, stream);
}
