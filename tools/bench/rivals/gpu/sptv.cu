/* Implements sparse tensor times vector from fibers (products.h). */
#include "tools/bench/rivals/gpu/products.h"

#include "gpu/cuda/staged_copy.h"
#include "gpu/decode/decode_bits.h"

#include <string.h>

enum {
    THREADS = 128,
    WARPS = THREADS / SLC_WARP,
    /* The compiler must leave enough registers for this number of blocks per multiprocessor, the
     * largest number for which it spills no registers. */
    BLOCKS = 9,
    WINDOWS = 8, /* largest number of windows of 32 nonzeros in a group */
    END_WINDOWS = 4,
    END_ROUND = END_WINDOWS * SLC_WARP,           /* fiber ends loaded at the same time */
    ITEMS = WINDOWS * SLC_WARP - SLC_FIBER_WHOLE, /* largest number of items per group */
    /* Shared memory of a warp, in units of 8 bytes: whole windows of products, and whole rounds of
       fiber ends with 4 bytes each. A group has at most ITEMS + SLC_FIBER_WHOLE - 1 nonzeros and
       fiber ends together; a fiber end needs less space than the product of a nonzero. */
    SLOTS = WINDOWS * SLC_WARP + END_ROUND / 2
};

/* The input of a warp. */
struct sptv_view {
    const uint32_t *begin, *index;
    const void *values;
    const double *vector;
};

/* The nonzeros and fiber ends of a group. */
struct sptv_group {
    uint32_t nonzero, fiber;   /* first nonzero and first fiber */
    uint32_t nonzeros, fibers; /* numbers of nonzeros and fibers */
    /* the arrays below are in shared memory, filled up to whole rounds */
    uint32_t *ends;   /* end of each fiber, counted from the first nonzero */
    double *products; /* product of each nonzero */
};

/* Loads fiber ends from `at` and returns those of this warp lane in `ends`. Warp lanes after the
 * last fiber of the group load its last end. */
__device__ static inline void
load_ends(const struct sptv_view *view, const struct sptv_group *group, uint32_t at, uint32_t *ends)
{
    const uint32_t first = group->fiber + at + threadIdx.x % SLC_WARP + 1;

    SLC_UNROLL
    for (int w = 0; w < END_WINDOWS; w++) {
        ends[w] =
            __ldcs(view->begin + slc_least(first + w * SLC_WARP, group->fiber + group->fibers));
    }
}

__device__ static inline void
store_ends(const struct sptv_group *group, uint32_t at, const uint32_t *ends)
{
    uint32_t *to = group->ends + at + threadIdx.x % SLC_WARP;

    SLC_UNROLL
    for (int w = 0; w < END_WINDOWS; w++) {
        to[w * SLC_WARP] = ends[w] - group->nonzero;
    }
}

/* Writes the products of a group of up to 32 * windows nonzeros and the ends of its fibers to
 * shared memory. First all loads of the fibers are in flight together, then all loads from the
 * vector. For this, a __syncwarp follows the loads, at almost no cost: without it, the compiler
 * delays loads until their results are needed, to save registers. For the same reason, loads and
 * stores are unconditional: warp lanes after the last nonzero repeat this nonzero. */
template <typename Value, int windows>
__device__ static inline void stage(const struct sptv_view *view, const struct sptv_group *group)
{
    const uint32_t lane = threadIdx.x % SLC_WARP;
    const uint32_t last = group->nonzero + group->nonzeros - 1;
    uint32_t index[windows], ends[END_WINDOWS];
    Value value[windows];
    double element[windows];

    SLC_UNROLL
    for (int w = 0; w < windows; w++) {
        const uint32_t i = slc_least(group->nonzero + lane + w * SLC_WARP, last);

        index[w] = __ldcs(view->index + i);
        value[w] = __ldcs(static_cast<const Value *>(view->values) + i);
    }
    load_ends(view, group, 0, ends);
    __syncwarp();
    store_ends(group, 0, ends);
    SLC_UNROLL
    for (int w = 0; w < windows; w++) {
        element[w] = view->vector[index[w]];
    }
    __syncwarp();
    SLC_UNROLL
    for (int w = 0; w < windows; w++) {
        group->products[w * SLC_WARP + lane] = static_cast<double>(value[w]) * element[w];
    }
    SLC_ROLL
    for (uint32_t at = END_ROUND; at < group->fibers; at += END_ROUND) {
        load_ends(view, group, at, ends);
        store_ends(group, at, ends);
    }
}

template <typename Value>
__device__ static inline void stage_any(const struct sptv_view *view,
                                        const struct sptv_group *group)
{
    const uint32_t windows = (group->nonzeros + SLC_WARP - 1) / SLC_WARP;

    if (windows <= 4) {
        stage<Value, 4>(view, group);
    } else if (windows <= 6) {
        stage<Value, 6>(view, group);
    } else {
        stage<Value, WINDOWS>(view, group);
    }
}

/* Returns the sum of the products [begin, end) in all warp lanes. Called by all warp lanes
 * together. */
__device__ static inline double
sum_together(const struct sptv_group *group, uint32_t begin, uint32_t end)
{
    double sum = 0;

    for (uint32_t i = begin + threadIdx.x % SLC_WARP; i < end; i += SLC_WARP) {
        sum += group->products[i];
    }
    for (int lanes = SLC_WARP / 2; lanes > 0; lanes /= 2) {
        sum += __shfl_xor_sync(SLC_ALL_LANES, sum, lanes);
    }
    return sum;
}

/* Returns the sum of the products [begin, end) of the fiber of this warp lane. Called by all warp
 * lanes together. */
__device__ static inline double
sum_fiber(const struct sptv_group *group, uint32_t begin, uint32_t end)
{
    const bool is_long = end - begin > SLC_WARP;
    double sum = 0;

    for (uint32_t i = begin; !is_long && i < end; i++) {
        sum += group->products[i];
    }
    for (unsigned left = __ballot_sync(SLC_ALL_LANES, is_long); left != 0; left &= left - 1) {
        const int lane = __ffs(left) - 1;
        const uint32_t from = __shfl_sync(SLC_ALL_LANES, begin, lane);
        const double whole = sum_together(group, from, __shfl_sync(SLC_ALL_LANES, end, lane));

        sum = lane == static_cast<int>(threadIdx.x % SLC_WARP) ? whole : sum;
    }
    return sum;
}

/* Stores the sums of a group without nonzeros, whose fibers are empty. */
__device__ static inline void
store_zeros(const struct sptv_group *group, uint32_t number, double *sums, double *carries)
{
    const uint32_t lane = threadIdx.x % SLC_WARP;

    for (uint32_t f = lane; f < group->fibers; f += SLC_WARP) {
        __stcs(sums + group->fiber + f, 0.0);
    }
    if (lane == 0 && carries != nullptr) {
        carries[number] = 0.0;
    }
}

/* Each warp processes a group. `carries` is NULL if no fiber is divided. */
template <typename Value>
__global__ static void __launch_bounds__(THREADS, BLOCKS)
    slc_sptv_groups(const struct sptv_view view,
                    const struct slc_fiber_groups groups,
                    double *sums,
                    double *carries)
{
    SLC_DYNAMIC_SHARED(double, shared);
    const uint32_t warp = threadIdx.x / SLC_WARP, lane = threadIdx.x % SLC_WARP;
    const uint32_t number = blockIdx.x * WARPS + warp;

    if (number >= groups.count) {
        return;
    }
    const struct slc_fiber_cut first = groups.cuts[number], last = groups.cuts[number + 1];
    const uint32_t nonzeros = last.nonzero - first.nonzero, fibers = last.fiber - first.fiber;
    double *const slots = shared + warp * SLOTS;
    const uint32_t rounds = fibers > END_ROUND ? (fibers + END_ROUND - 1) / END_ROUND : 1;
    const struct sptv_group group = {first.nonzero,
                                     first.fiber,
                                     nonzeros,
                                     fibers,
                                     reinterpret_cast<uint32_t *>(slots),
                                     slots + rounds * (END_ROUND / 2)};

    if (nonzeros == 0) {
        store_zeros(&group, number, sums, carries);
        return;
    }
    stage_any<Value>(&view, &group);
    SLC_PLANT(sptv_products_not_there, __syncwarp());
    SLC_ROLL
    for (uint32_t f = 0; f < group.fibers; f += SLC_WARP) {
        /* A warp lane without a fiber processes an empty fiber. */
        const uint32_t mine = f + lane;
        const uint32_t end = mine < group.fibers ? group.ends[mine] : 0;
        const uint32_t begin = mine > 0 && mine < group.fibers ? group.ends[mine - 1] : 0;
        const double sum = sum_fiber(&group, begin, end);

        if (mine < group.fibers) {
            __stcs(sums + group.fiber + mine, sum);
        }
    }
    if (carries != nullptr) {
        const uint32_t begin = group.fibers > 0 ? group.ends[group.fibers - 1] : 0;
        const double sum = sum_together(&group, begin, group.nonzeros);

        if (lane == 0) {
            carries[number] = sum;
        }
    }
}

/* Copies the used elements of a vector to the short vector. */
__global__ static void
slc_sptv_shorten(const double *vector, const uint32_t *used, uint32_t count, double *short_vector)
{
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < count) {
        short_vector[i] = vector[used[i]];
    }
}

cudaError_t slc_gpu_sptv_multiply(const struct slc_gpu_sptv *sptv,
                                  const double *vector,
                                  double *sums,
                                  cudaStream_t stream)
{
    const struct slc_gpu_fibers *fibers = sptv->fibers;
    const uint32_t blocks = (sptv->groups.count + WARPS - 1) / WARPS;
    double *const carries = sptv->groups.divides ? sptv->carries : nullptr;
    const struct slc_gpu_matrix rows = {sums, fibers->count, 1, 1, 0};
    struct sptv_view view = {fibers->begin, fibers->index, fibers->values, vector};

    if (sptv->groups.count == 0) {
        return cudaSuccess;
    }
    if (sptv->index != nullptr) {
        view.index = sptv->index;
        view.vector = sptv->short_vector;
        SLC_CUDA_TRY(slc_launch(slc_sptv_shorten, dim3(sptv->used_count / THREADS + 1),
                                dim3(THREADS), 0, stream, vector, sptv->used, sptv->used_count,
                                sptv->short_vector));
    }
    SLC_CUDA_TRY(slc_launch(
        fibers->type == SLC_F32 ? slc_sptv_groups<float> : slc_sptv_groups<double>, dim3(blocks),
        dim3(THREADS), WARPS * SLOTS * sizeof(double), stream, view, sptv->groups, sums, carries));
    return slc_fiber_carries(fibers, &sptv->groups, sptv->carries, 1, &rows, stream);
}

/* Numbers the used indices from 0 and writes them to `used`; `index` becomes the new numbers.
 * Needs: `number` is all-zero. Returns the count, UINT32_MAX if an index is not below `length`. */
static uint32_t
number_used(uint32_t *index, uint64_t nnz, uint64_t length, uint32_t *number, uint32_t *used)
{
    uint32_t count = 0;

    for (uint64_t i = 0; i < nnz; i++) {
        if (index[i] >= length) {
            return UINT32_MAX;
        }
        number[index[i]] = 1;
    }
    for (uint64_t i = 0; i < length; i++) {
        if (number[i] != 0) {
            used[count] = static_cast<uint32_t>(i);
            number[i] = count++;
        }
    }
    for (uint64_t i = 0; i < nnz; i++) {
        index[i] = number[index[i]];
    }
    return count;
}

static void forget_short(struct slc_gpu_sptv *sptv)
{
    (void)cudaFree(sptv->index);
    (void)cudaFree(sptv->used);
    (void)cudaFree(sptv->short_vector);
    sptv->index = sptv->used = nullptr;
    sptv->short_vector = nullptr;
}

/* Numbers the used indices on the host, then copies `index` and `used` to the device. */
static cudaError_t drop_unused(struct slc_gpu_sptv *sptv, uint64_t length, cudaStream_t stream)
{
    const uint64_t nnz = sptv->fibers->nnz;
    struct slc_buffer arrays = SLC_BUFFER_INIT;
    uint32_t *index, *number, *used;
    cudaError_t error;

    if (length >= UINT32_MAX) {
        return cudaErrorInvalidValue;
    }
    if (slc_buffer_create(&arrays, (nnz + 2 * length) * sizeof(uint32_t), SLC_PAGES_HUGE,
                          nullptr) != SLC_OK) {
        return cudaErrorMemoryAllocation;
    }
    index = static_cast<uint32_t *>(arrays.data);
    number = index + nnz;
    used = number + length;
    error = slc_staged_to_host(index, sptv->fibers->index, nnz * sizeof(uint32_t), stream);
    if (error == cudaSuccess) {
        sptv->used_count = number_used(index, nnz, length, number, used);
        error = sptv->used_count == UINT32_MAX ? cudaErrorInvalidValue : cudaSuccess;
    }
    if (error == cudaSuccess) {
        error = slc_staged_create(reinterpret_cast<void **>(&sptv->index), index,
                                  nnz * sizeof(uint32_t), stream);
    }
    if (error == cudaSuccess) {
        error = slc_staged_create(reinterpret_cast<void **>(&sptv->used), used,
                                  sptv->used_count * sizeof(uint32_t), stream);
    }
    if (error == cudaSuccess) {
        error = cudaMalloc(reinterpret_cast<void **>(&sptv->short_vector),
                           (sptv->used_count + UINT64_C(1)) * sizeof(double));
    }
    slc_buffer_destroy(&arrays);
    return error;
}

cudaError_t slc_gpu_sptv_create(struct slc_gpu_sptv *sptv,
                                const struct slc_gpu_fibers *fibers,
                                const struct slc_gpu_sptv_options *options,
                                const struct slc_gpu_machine *machine)
{
    const bool chosen = options->group_items > 0 && options->group_items < ITEMS;

    sptv->fibers = fibers;
    sptv->drop_unused = options->drop_unused;
    SLC_CUDA_TRY(slc_fiber_groups_reserve(
        &sptv->groups, fibers, chosen ? options->group_items : (uint32_t)ITEMS, machine));
    return cudaMalloc(reinterpret_cast<void **>(&sptv->carries),
                      (sptv->groups.room + UINT64_C(1)) * sizeof(double));
}

cudaError_t slc_gpu_sptv_prepare(struct slc_gpu_sptv *sptv, uint64_t length, cudaStream_t stream)
{
    const cudaError_t error = slc_fiber_groups_cut(&sptv->groups, sptv->fibers, stream);

    if (error != cudaSuccess || !sptv->drop_unused) {
        return error;
    }
    forget_short(sptv);
    return drop_unused(sptv, length, stream);
}

void slc_gpu_sptv_destroy(struct slc_gpu_sptv *sptv)
{
    slc_fiber_groups_destroy(&sptv->groups);
    (void)cudaFree(sptv->carries);
    forget_short(sptv);
    memset(sptv, 0, sizeof *sptv);
}

uint64_t slc_gpu_sptv_bytes(const struct slc_gpu_sptv *sptv, uint64_t length)
{
    const struct slc_gpu_fibers *fibers = sptv->fibers;
    const uint64_t numbers = sptv->index != nullptr ? sptv->used_count : length;

    return fibers->nnz * (sizeof(uint32_t) + slc_value_bytes(fibers->type)) +
           fibers->count * (sizeof(uint32_t) + sizeof(double)) + numbers * sizeof(double);
}
