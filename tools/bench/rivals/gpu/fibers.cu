/* Finds the fibers of a list (fibers.h).
 *
 * A warp processes 256 neighbouring nonzeros. First, each warp counts the fibers that begin among
 * its nonzeros. Then one thread block computes the prefix sums of these counts; each sum is the
 * number of the first fiber of a warp. Last, each warp writes its fibers. */
#include "tools/bench/rivals/gpu/fibers.h"

#include "gpu/cuda/staged_copy.h"

#include <string.h>

enum {
    THREADS = 256,
    WARP_NNZ = 256,    /* neighbouring nonzeros that a warp processes */
    SCAN_THREADS = 256 /* threads of the thread block that computes prefix sums */
};

/* A list as the kernels read it. */
struct list_view {
    const uint32_t *coords;
    uint32_t nnz, order, mode;
};

/* Returns true if nonzero i is the first of a fiber, false also after the end of the list. */
__device__ static inline bool begins_fiber(const struct list_view *list, uint64_t i)
{
    const uint32_t *here = list->coords + i * list->order;
    bool begins = i == 0;

    if (i >= list->nnz) {
        return false;
    }
    for (uint32_t m = 0; m < list->order && !begins; m++) {
        begins = m != list->mode && here[m] != *(here + m - list->order);
    }
    return begins;
}

__global__ static void __launch_bounds__(THREADS)
    slc_fibers_count(const struct list_view list, uint32_t *counts)
{
    const uint64_t warp = (static_cast<uint64_t>(blockIdx.x) * THREADS + threadIdx.x) / SLC_WARP;
    uint32_t count = 0;

    for (uint32_t at = 0; at < WARP_NNZ; at += SLC_WARP) {
        const uint64_t i = warp * WARP_NNZ + at + threadIdx.x % SLC_WARP;

        count +=
            static_cast<uint32_t>(__popc(__ballot_sync(SLC_ALL_LANES, begins_fiber(&list, i))));
    }
    if (threadIdx.x % SLC_WARP == 0 && warp * WARP_NNZ < list.nnz) {
        counts[warp] = count;
    }
}

/* Replaces counts[i] with the sum of the counts before it, and sets counts[count] to the sum of all
 * counts. Runs as one thread block. */
__global__ static void __launch_bounds__(SCAN_THREADS)
    slc_fibers_add_up(uint32_t *counts, uint32_t count)
{
    SLC_DYNAMIC_SHARED(uint32_t, sums); /* sum of each warp, later the sum of all previous warps */
    const uint32_t lane = threadIdx.x % SLC_WARP, warp = threadIdx.x / SLC_WARP;
    uint32_t before = 0;

    for (uint32_t first = 0; first < count; first += SCAN_THREADS) {
        const uint32_t i = first + threadIdx.x;
        const uint32_t mine = i < count ? counts[i] : 0;
        uint32_t sum = mine;

        for (uint32_t delta = 1; delta < SLC_WARP; delta *= 2) {
            const uint32_t other = __shfl_up_sync(SLC_ALL_LANES, sum, delta);

            sum += lane >= delta ? other : 0;
        }
        if (lane == SLC_WARP - 1) {
            sums[warp] = sum;
        }
        SLC_PLANT(fibers_counts_unsynced, __syncthreads());
        uint32_t all = 0, warps_before = 0;

        for (uint32_t w = 0; w < SCAN_THREADS / SLC_WARP; w++) {
            warps_before += w < warp ? sums[w] : 0;
            all += sums[w];
        }
        if (i < count) {
            counts[i] = before + warps_before + sum - mine;
        }
        before += all;
        SLC_PLANT(fibers_counts_overwritten, __syncthreads());
    }
    if (threadIdx.x == 0) {
        counts[count] = before;
    }
}

__global__ static void __launch_bounds__(THREADS) slc_fibers_write(const struct list_view list,
                                                                   const uint32_t *counts,
                                                                   const struct slc_gpu_fibers to)
{
    const uint32_t lane = threadIdx.x % SLC_WARP;
    const uint64_t warp = (static_cast<uint64_t>(blockIdx.x) * THREADS + threadIdx.x) / SLC_WARP;

    if (warp * WARP_NNZ >= list.nnz) {
        return;
    }
    uint32_t before = counts[warp]; /* number of fibers before those of the warp */

    for (uint32_t at = 0; at < WARP_NNZ; at += SLC_WARP) {
        const uint64_t i = warp * WARP_NNZ + at + lane;
        const bool begins = begins_fiber(&list, i);
        const unsigned heads = __ballot_sync(SLC_ALL_LANES, begins);
        const unsigned upto = heads & (SLC_ALL_LANES >> (SLC_WARP - 1 - lane));
        const uint32_t fiber = before + static_cast<uint32_t>(__popc(upto)) - 1;
        const uint32_t *here = list.coords + i * list.order;

        if (i < list.nnz) {
            to.index[i] = here[list.mode];
            to.fiber_of[i] = fiber;
        }
        if (begins) {
            uint32_t *coords = to.coords + static_cast<uint64_t>(fiber) * list.order;

            to.begin[fiber] = static_cast<uint32_t>(i);
            for (uint32_t m = 0; m < list.order; m++) {
                coords[m] = m == list.mode ? 0 : here[m];
            }
        }
        if (i + 1 == list.nnz) {
            to.begin[fiber + 1] = list.nnz;
        }
        before += static_cast<uint32_t>(__popc(heads));
    }
}

/* Allocates memory for `count` numbers of 32 bits, but for at least one number. */
static cudaError_t allocate(uint32_t **memory, uint64_t count)
{
    return cudaMalloc(reinterpret_cast<void **>(memory), (count + 1) * sizeof(uint32_t));
}

static uint32_t warps_of(uint64_t nnz)
{
    return static_cast<uint32_t>((nnz + WARP_NNZ - 1) / WARP_NNZ);
}

/* Allocates the arrays of `fibers` for lists of up to `nnz` nonzeros in up to `count` fibers. */
static cudaError_t
make_room(struct slc_gpu_fibers *fibers, unsigned order, uint64_t nnz, uint64_t count)
{
    if (order < 1 || order > SLC_MAX_ORDER || nnz >= UINT32_MAX || count >= UINT32_MAX) {
        return cudaErrorInvalidValue;
    }
    fibers->order = order;
    fibers->room = nnz + count;
    SLC_CUDA_TRY(allocate(&fibers->begin, count + 1));
    SLC_CUDA_TRY(allocate(&fibers->index, nnz));
    SLC_CUDA_TRY(allocate(&fibers->coords, count * order));
    return allocate(&fibers->fiber_of, nnz);
}

cudaError_t slc_gpu_fibers_reserve(struct slc_gpu_fibers *fibers, unsigned order, uint64_t nnz)
{
    SLC_CUDA_TRY(make_room(fibers, order, nnz, nnz));
    return allocate(&fibers->found, warps_of(nnz) + 1);
}

static void describe(struct slc_gpu_fibers *fibers, const struct slc_gpu_coo *coo, unsigned mode)
{
    fibers->mode = mode;
    fibers->type = coo->type;
    fibers->nnz = coo->nnz;
    fibers->values = coo->values;
}

cudaError_t slc_gpu_fibers_find(struct slc_gpu_fibers *fibers,
                                const struct slc_gpu_coo *coo,
                                unsigned mode,
                                cudaStream_t stream)
{
    const struct list_view list = {coo->coords, static_cast<uint32_t>(coo->nnz), coo->order, mode};
    const uint32_t warps = warps_of(coo->nnz);
    const dim3 grid(warps / (THREADS / SLC_WARP) + 1);
    uint32_t count = 0;

    if (mode >= coo->order || coo->order != fibers->order || 2 * coo->nnz > fibers->room ||
        fibers->found == nullptr) {
        return cudaErrorInvalidValue;
    }
    describe(fibers, coo, mode);
    fibers->count = 0;
    if (coo->nnz == 0) {
        return cudaMemsetAsync(fibers->begin, 0, sizeof(uint32_t), stream);
    }
    SLC_CUDA_TRY(slc_launch(slc_fibers_count, grid, dim3(THREADS), 0, stream, list, fibers->found));
    SLC_CUDA_TRY(slc_launch(slc_fibers_add_up, dim3(1), dim3(SCAN_THREADS),
                            SCAN_THREADS / SLC_WARP * sizeof(uint32_t), stream, fibers->found,
                            warps));
    SLC_CUDA_TRY(
        slc_launch(slc_fibers_write, grid, dim3(THREADS), 0, stream, list, fibers->found, *fibers));
    SLC_CUDA_TRY(slc_staged_to_host(&count, fibers->found + warps, sizeof count, stream));
    fibers->count = count;
    return cudaSuccess;
}

/* ---- lists with empty fibers, built on the host */

/* The arrays of all fibers on the host, in one buffer. */
struct host_fibers {
    uint32_t *begin, *coords, *index, *fiber_of;
};

/* Returns the number of the fiber of a nonzero among all possible fibers. */
static uint64_t
number_of(const uint32_t *coords, unsigned order, unsigned mode, const uint64_t *dims)
{
    uint64_t number = 0;

    for (unsigned m = 0; m < order; m++) {
        number = m == mode ? number : number * dims[m] + coords[m];
    }
    return number;
}

/* Returns the number of possible fibers, limited to UINT32_MAX. */
static uint64_t count_all(unsigned order, unsigned mode, const uint64_t *dims)
{
    uint64_t count = 1;

    for (unsigned m = 0; m < order; m++) {
        if (m != mode && (dims[m] > UINT32_MAX || count * dims[m] >= UINT32_MAX)) {
            return UINT32_MAX;
        }
        count *= m == mode ? 1 : dims[m];
    }
    return count;
}

/* Fills the host arrays. Returns false if fibers do not ascend, or if a coordinate is not below its
 * mode size. */
static bool find_all(const struct slc_gpu_fibers *fibers,
                     const uint32_t *coords,
                     const uint64_t *dims,
                     const struct host_fibers *found)
{
    const unsigned order = fibers->order, mode = fibers->mode;
    uint64_t begun = 0;

    for (uint64_t i = 0; i < fibers->nnz; i++) {
        const uint32_t *here = coords + i * order;
        const uint64_t fiber = number_of(here, order, mode, dims);

        if (fiber >= fibers->count || fiber + 1 < begun) {
            return false;
        }
        while (begun <= fiber) {
            found->begin[begun++] = static_cast<uint32_t>(i);
        }
        found->index[i] = here[mode];
        found->fiber_of[i] = static_cast<uint32_t>(fiber);
        for (unsigned m = 0; m < order; m++) {
            found->coords[fiber * order + m] = m == mode ? 0 : here[m];
        }
    }
    while (begun <= fibers->count) {
        found->begin[begun++] = static_cast<uint32_t>(fibers->nnz);
    }
    return true;
}

static cudaError_t
copy(const struct slc_gpu_fibers *fibers, const struct host_fibers *found, cudaStream_t stream)
{
    const struct {
        uint32_t *to;
        const uint32_t *from;
        uint64_t count;
    } arrays[] = {{fibers->begin, found->begin, fibers->count + 1},
                  {fibers->coords, found->coords, fibers->count * fibers->order},
                  {fibers->index, found->index, fibers->nnz},
                  {fibers->fiber_of, found->fiber_of, fibers->nnz}};

    for (const auto &array : arrays) {
        SLC_CUDA_TRY(
            slc_staged_to_device(array.to, array.from, array.count * sizeof(uint32_t), stream));
    }
    return cudaSuccess;
}

/* Builds all fibers, including empty fibers, on the host from the coordinates of the list. */
static cudaError_t make_all(const struct slc_gpu_fibers *fibers,
                            const uint32_t *coords,
                            const uint64_t *dims,
                            cudaStream_t stream)
{
    const uint64_t numbers = fibers->count * (fibers->order + 1) + 1 + fibers->nnz * 2;
    struct slc_buffer arrays = SLC_BUFFER_INIT;
    struct host_fibers found;
    cudaError_t error = cudaErrorInvalidValue;

    if (slc_buffer_create(&arrays, numbers * sizeof(uint32_t), SLC_PAGES_HUGE, nullptr) != SLC_OK) {
        return cudaErrorMemoryAllocation;
    }
    found.begin = static_cast<uint32_t *>(arrays.data);
    found.coords = found.begin + fibers->count + 1;
    found.index = found.coords + fibers->count * fibers->order;
    found.fiber_of = found.index + fibers->nnz;
    if (find_all(fibers, coords, dims, &found)) {
        error = copy(fibers, &found, stream);
    }
    slc_buffer_destroy(&arrays);
    return error;
}

cudaError_t slc_gpu_fibers_create_all(struct slc_gpu_fibers *fibers,
                                      const struct slc_gpu_coo *coo,
                                      unsigned mode,
                                      const uint64_t *dims,
                                      cudaStream_t stream)
{
    struct slc_buffer coords;
    cudaError_t error;

    if (mode >= coo->order) {
        return cudaErrorInvalidValue;
    }
    fibers->count = count_all(coo->order, mode, dims);
    SLC_CUDA_TRY(make_room(fibers, coo->order, coo->nnz, fibers->count));
    describe(fibers, coo, mode);
    SLC_CUDA_TRY(slc_gpu_coo_read_coords(coo, &coords, stream));
    error = make_all(fibers, static_cast<const uint32_t *>(coords.data), dims, stream);
    slc_buffer_destroy(&coords);
    return error;
}

void slc_gpu_fibers_destroy(struct slc_gpu_fibers *fibers)
{
    (void)cudaFree(fibers->begin);
    (void)cudaFree(fibers->index);
    (void)cudaFree(fibers->coords);
    (void)cudaFree(fibers->fiber_of);
    (void)cudaFree(fibers->found);
    memset(fibers, 0, sizeof *fibers);
}
