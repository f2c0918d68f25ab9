/* Implements sparse tensor times vector from fibers (products.h). */
#include "tools/bench/rivals/gpu/products.h"

#include "gpu/cuda/staged_copy.h"

#include <string.h>

enum {
    THREADS = 256,
    WINDOWS = 4 /* number of windows of 32 nonzeros whose loads are in flight at the same time */
};

/* The input of a warp. */
struct sptv_view {
    const uint32_t *begin, *index;
    const void *values;
    const double *vector;
};

/* Computes the products of nonzeros `at` to `end` - 1 and the vector. Warp lane l computes products
 * l, l + 32, .. */
template <typename Value>
__device__ static inline void
load_products(const struct sptv_view *view, uint32_t at, uint32_t end, double *products)
{
    const unsigned lane = threadIdx.x % SLC_WARP;
    uint32_t index[WINDOWS];
    double value[WINDOWS];

    for (int w = 0; w < WINDOWS; w++) {
        const uint64_t i = static_cast<uint64_t>(at) + w * SLC_WARP + lane;

        index[w] = i < end ? view->index[i] : 0;
        value[w] = i < end ? static_cast<double>(static_cast<const Value *>(view->values)[i]) : 0.0;
    }
    for (int w = 0; w < WINDOWS; w++) {
        const uint64_t i = static_cast<uint64_t>(at) + w * SLC_WARP + lane;

        products[w] = i < end ? value[w] * view->vector[index[w]] : 0.0;
    }
}

__device__ static inline double warp_sum(double value)
{
    for (int lanes = SLC_WARP / 2; lanes > 0; lanes /= 2) {
        value += __shfl_xor_sync(SLC_ALL_LANES, value, lanes);
    }
    return value;
}

/* The fiber of a warp lane, and the sum of the fiber so far. */
struct lane_fiber {
    uint32_t begin, end; /* nonzeros of the fiber in the group */
    double sum;
};

/* Adds a window of 32 products, which belong to several fibers, to the sums of these fibers. A bit
 * of `heads` is set for each position at which a fiber begins. */
__device__ static inline void
add_window(struct lane_fiber *fiber, uint32_t at, unsigned heads, double product)
{
    const unsigned lane = threadIdx.x % SLC_WARP;
    /* `upto` has the heads up to this warp lane; `back` is the distance to the last of them, or to
     * the start of the window. */
    const unsigned upto = heads & (SLC_ALL_LANES >> (SLC_WARP - 1 - lane));
    const unsigned back = upto == 0 ? lane : lane - (31 - static_cast<unsigned>(__clz(upto)));
    const uint32_t begin = fiber->begin > at ? fiber->begin : at;
    const uint64_t after = static_cast<uint64_t>(at) + SLC_WARP;
    const uint32_t end = fiber->end < after ? fiber->end : static_cast<uint32_t>(after);

    for (unsigned delta = 1; delta < SLC_WARP; delta *= 2) {
        const double before = __shfl_up_sync(SLC_ALL_LANES, product, delta);

        product += back >= delta ? before : 0.0;
    }
    /* The last warp lane of a fiber now has the sum of the fiber. */
    const double whole =
        __shfl_sync(SLC_ALL_LANES, product, begin < end ? static_cast<int>(end - 1 - at) : 0);

    fiber->sum += begin < end ? whole : 0.0;
}

/* Adds up the nonzeros [at, end) of up to 32 fibers, with one fiber per warp lane. While windows
 * belong to a single fiber, each warp lane adds up its own products; at the end of the fiber, the
 * sums of the warp lanes are added. */
template <typename Value>
__device__ static inline void
add_fibers(const struct sptv_view *view, struct lane_fiber *fiber, uint32_t at, uint32_t end)
{
    double open = 0.0;
    bool is_open = false; /* equal in all warp lanes */

    for (uint64_t from = at; from < end; from += WINDOWS * SLC_WARP) {
        double products[WINDOWS];

        load_products<Value>(view, static_cast<uint32_t>(from), end, products);
        for (int w = 0; w < WINDOWS && from + w * SLC_WARP < end; w++) {
            const uint32_t here = static_cast<uint32_t>(from) + w * SLC_WARP;
            const bool begins =
                fiber->begin < fiber->end && fiber->begin >= here && fiber->begin - here < SLC_WARP;
            const unsigned heads =
                __reduce_or_sync(SLC_ALL_LANES, begins ? 1U << (fiber->begin - here) : 0);

            if (heads == 0) {
                open += products[w];
                is_open = true;
                continue;
            }
            if (is_open) {
                /* The fiber of the previous windows ends at the first head. The warp lane of this
                 * fiber adds the partial sums of all warp lanes. */
                open = warp_sum(open);
                fiber->sum += fiber->begin < here && fiber->end >= here ? open : 0.0;
                open = 0.0;
                is_open = false;
            }
            add_window(fiber, here, heads, products[w]);
        }
    }
    if (is_open) {
        open = warp_sum(open);
        fiber->sum += fiber->begin < fiber->end && fiber->end == end ? open : 0.0;
    }
}

template <typename Value>
__global__ static void __launch_bounds__(THREADS)
    slc_sptv_groups(const struct sptv_view view,
                    const struct slc_fiber_groups groups,
                    double *sums,
                    double *carries)
{
    const unsigned lane = threadIdx.x % SLC_WARP;
    const uint32_t group = (blockIdx.x * THREADS + threadIdx.x) / SLC_WARP;

    if (group >= groups.count) {
        return;
    }
    const struct slc_fiber_cut first = groups.cuts[group], last = groups.cuts[group + 1];
    uint32_t at = first.nonzero;

    for (uint32_t f = first.fiber; f < last.fiber; f += SLC_WARP) {
        const uint32_t left = last.fiber - f;
        const uint32_t mine = lane < left ? lane : left - 1;
        const uint32_t end = view.begin[f + mine + 1];
        const uint32_t before = __shfl_up_sync(SLC_ALL_LANES, end, 1);
        const uint32_t all = __shfl_sync(SLC_ALL_LANES, end, SLC_WARP - 1);
        /* A warp lane without a fiber processes an empty fiber at the end. */
        struct lane_fiber fiber = {lane == 0 ? at : before, end, 0.0};

        add_fibers<Value>(&view, &fiber, at, all);
        if (lane < left) {
            sums[f + lane] = fiber.sum;
        }
        at = all;
    }
    struct lane_fiber tail = {lane == 0 ? at : last.nonzero, last.nonzero, 0.0};

    add_fibers<Value>(&view, &tail, at, last.nonzero);
    if (lane == 0) {
        carries[group] = tail.sum;
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
    const uint32_t blocks = (sptv->groups.count + THREADS / SLC_WARP - 1) / (THREADS / SLC_WARP);
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
        dim3(THREADS), 0, stream, view, sptv->groups, sums, sptv->carries));
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
    sptv->fibers = fibers;
    sptv->drop_unused = options->drop_unused;
    SLC_CUDA_TRY(slc_fiber_groups_reserve(&sptv->groups, fibers, options->group_items, machine));
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
