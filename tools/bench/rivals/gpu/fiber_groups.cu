/* Cuts fibers into groups, and adds the carries of groups to the sums of fibers (products.h). */
#include "tools/bench/rivals/gpu/products.h"

#include "gpu/cuda/staged_copy.h"

#include <string.h>

enum {
    THREADS = 256,
    FEW = 16 /* largest number of carries that a vector of threads adds up alone */
};
/* Least number of items per group. The start and end of a warp cost as much as 100 items. */
static const uint64_t items_min = 512;
/* Groups per multiprocessor if there is enough work: four times the resident warps of a
 * multiprocessor. */
static const uint64_t groups_per_multiprocessor = 256;

/* The fibers to be cut, and the groups. */
struct cut_view {
    const uint32_t *begin;
    uint64_t fibers, nnz, items;
    struct slc_fiber_cut *cuts;
    uint32_t count; /* number of groups */
    uint32_t *divides;
};

/* Finds one cut per thread, by a binary search along a diagonal of the merge of fiber ends and
 * nonzeros. */
__global__ static void slc_fiber_cut_groups(const struct cut_view view)
{
    const uint64_t cut = static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    const uint64_t all = view.fibers + view.nnz;
    const uint64_t at = cut * view.items < all ? cut * view.items : all;
    uint64_t first = at > view.nnz ? at - view.nnz : 0;
    uint64_t last = at < view.fibers ? at : view.fibers;

    if (cut > view.count) {
        return;
    }
    while (first < last) {
        const uint64_t middle = first + (last - first) / 2;

        if (view.begin[middle + 1] < at - middle) {
            first = middle + 1;
        } else {
            last = middle;
        }
    }
    uint32_t nonzero = static_cast<uint32_t>(at - first);

    if (first < view.fibers && view.begin[first] < nonzero) {
        if (view.begin[first + 1] - view.begin[first] <= SLC_FIBER_WHOLE) {
            nonzero = view.begin[first];
        } else {
            atomicOr(view.divides, 1U);
        }
    }
    view.cuts[cut].fiber = static_cast<uint32_t>(first);
    view.cuts[cut].nonzero = nonzero;
}

/* Returns the number of items per group if there are `all` items (nonzeros and fiber ends). */
static uint64_t items_of(const struct slc_fiber_groups *groups, uint64_t all)
{
    const uint64_t each = (all + groups->wanted - 1) / groups->wanted;

    if (groups->items > 0) {
        return groups->items;
    }
    return each < items_min ? items_min : each;
}

static uint32_t count_of(const struct slc_fiber_groups *groups, uint64_t all)
{
    const uint64_t each = items_of(groups, all);

    return static_cast<uint32_t>((all + each - 1) / each);
}

cudaError_t slc_fiber_groups_reserve(struct slc_fiber_groups *groups,
                                     const struct slc_gpu_fibers *fibers,
                                     uint32_t items,
                                     const struct slc_gpu_machine *machine)
{
    groups->wanted = groups_per_multiprocessor * machine->multiprocessors;
    groups->items = items;
    /* An upper bound for every list within the capacity, because a list with fewer items may have
     * more, but shorter, groups. */
    const uint64_t most = (fibers->room + items_min - 1) / items_min;

    groups->room = static_cast<uint32_t>(items > 0               ? count_of(groups, fibers->room)
                                         : groups->wanted < most ? groups->wanted
                                                                 : most);
    SLC_CUDA_TRY(cudaMalloc(reinterpret_cast<void **>(&groups->cuts),
                            (groups->room + UINT64_C(1)) * sizeof *groups->cuts));
    return cudaMalloc(reinterpret_cast<void **>(&groups->found), sizeof *groups->found);
}

cudaError_t slc_fiber_groups_cut(struct slc_fiber_groups *groups,
                                 const struct slc_gpu_fibers *fibers,
                                 cudaStream_t stream)
{
    const uint64_t all = fibers->count + fibers->nnz;

    groups->count = count_of(groups, all);
    if (groups->count > groups->room) {
        return cudaErrorInvalidValue;
    }
    const struct cut_view view = {fibers->begin, fibers->count, fibers->nnz,  items_of(groups, all),
                                  groups->cuts,  groups->count, groups->found};
    uint32_t found = 0;

    SLC_CUDA_TRY(cudaMemsetAsync(groups->found, 0, sizeof *groups->found, stream));
    SLC_CUDA_TRY(slc_launch(slc_fiber_cut_groups, dim3(groups->count / THREADS + 1), dim3(THREADS),
                            0, stream, view));
    SLC_CUDA_TRY(slc_staged_to_host(&found, groups->found, sizeof found, stream));
    groups->divides = found != 0;
    return cudaSuccess;
}

void slc_fiber_groups_destroy(struct slc_fiber_groups *groups)
{
    (void)cudaFree(groups->cuts);
    (void)cudaFree(groups->found);
    memset(groups, 0, sizeof *groups);
}

/* The carries of groups and the rows to which they are added. */
struct carry_view {
    const uint32_t *begin; /* start of each fiber */
    uint64_t fibers;
    struct slc_fiber_groups groups;
    const double *carries;
    uint32_t carry_pitch;
    struct slc_gpu_matrix rows;
};

/* Returns true if the fiber in which the group ends begins in this group and continues in the next
 * group. */
__device__ static inline bool begins_carry(const struct carry_view *view, uint32_t group)
{
    const struct slc_fiber_cut *cuts = view->groups.cuts + group;
    const uint32_t fiber = cuts[1].fiber;

    return fiber < view->fibers && cuts[0].nonzero <= view->begin[fiber] &&
           cuts[1].nonzero > view->begin[fiber];
}

/* Returns true if group `g` exists and ends in the fiber. */
__device__ static inline bool carries_to(const struct carry_view *view, uint32_t g, uint32_t fiber)
{
    return g < view->groups.count && view->groups.cuts[g + 1].fiber == fiber;
}

__device__ static inline double
carry_of(const struct carry_view *view, uint32_t group, uint32_t column)
{
    return view->carries[static_cast<uint64_t>(group) * view->carry_pitch + column];
}

__device__ static inline void
add_to_row(const struct carry_view *view, uint32_t fiber, uint32_t column, double sum)
{
    static_cast<double *>(
        view->rows.data)[static_cast<uint64_t>(fiber) * view->rows.pitch + column] += sum;
}

/* Adds up the carries of group `group` and of the following groups that end in the same fiber, with
 * a whole thread block. The carries are divided among the threads in y, whose sums are then added
 * in order. */
__device__ static inline void
add_many(const struct carry_view *view, uint32_t group, double *shared)
{
    const uint32_t fiber = view->groups.cuts[group + 1].fiber;

    for (uint32_t first = 0; first < view->rows.cols; first += blockDim.x) {
        const uint32_t column = first + threadIdx.x;
        double sum = 0;

        for (uint32_t g = group + threadIdx.y;
             column < view->rows.cols && carries_to(view, g, fiber); g += blockDim.y) {
            sum += carry_of(view, g, column);
        }
        shared[threadIdx.y * blockDim.x + threadIdx.x] = sum;
        SLC_PLANT(fiber_carries_not_there, __syncthreads());
        if (threadIdx.y == 0 && column < view->rows.cols) {
            for (uint32_t y = 1; y < blockDim.y; y++) {
                sum += shared[y * blockDim.x + threadIdx.x];
            }
            add_to_row(view, fiber, column, sum);
        }
        SLC_PLANT(fiber_carries_overwritten, __syncthreads());
    }
}

/* Each vector of threads (x) processes one group. If a fiber begins in the group and continues in
 * the next group, the carries of the fiber are added up. If they are few, as nearly always, the
 * vector adds them up; otherwise the whole thread block does, one fiber after the other. */
__global__ static void __launch_bounds__(THREADS)
    slc_fiber_add_carries(const struct carry_view view)
{
    SLC_DYNAMIC_SHARED(double, shared);
    uint32_t *many_count = reinterpret_cast<uint32_t *>(shared + THREADS);
    uint32_t *many = many_count + 1; /* the groups with many carries: at most one of FEW groups */
    const uint32_t group = blockIdx.x * blockDim.y + threadIdx.y;

    if (threadIdx.x == 0 && threadIdx.y == 0) {
        *many_count = 0;
    }
    __syncthreads();
    if (group < view.groups.count && begins_carry(&view, group)) {
        const uint32_t fiber = view.groups.cuts[group + 1].fiber;
        uint32_t end = group + 1;

        while (end - group <= FEW && carries_to(&view, end, fiber)) {
            end++;
        }
        if (end - group > FEW && threadIdx.x == 0) {
            many[atomicAdd(many_count, 1U)] = group;
        }
        for (uint32_t c = threadIdx.x; end - group <= FEW && c < view.rows.cols; c += blockDim.x) {
            double sum = 0;

            for (uint32_t g = group; g < end; g++) {
                sum += carry_of(&view, g, c);
            }
            add_to_row(&view, fiber, c, sum);
        }
    }
    __syncthreads();
    for (uint32_t m = 0; m < *many_count; m++) {
        add_many(&view, many[m], shared);
    }
}

cudaError_t slc_fiber_carries(const struct slc_gpu_fibers *fibers,
                              const struct slc_fiber_groups *groups,
                              const double *carries,
                              uint32_t carry_pitch,
                              const struct slc_gpu_matrix *rows,
                              cudaStream_t stream)
{
    const struct carry_view view = {fibers->begin, fibers->count, *groups,
                                    carries,       carry_pitch,   *rows};
    const size_t shared = THREADS * sizeof(double) + (THREADS / FEW + 2) * sizeof(uint32_t);
    uint32_t columns = 1;

    if (!groups->divides) {
        return cudaSuccess;
    }
    while (columns < rows->cols && columns < SLC_WARP) {
        columns *= 2;
    }
    const dim3 block(columns, THREADS / columns);

    return slc_launch(slc_fiber_add_carries, dim3((groups->count + block.y - 1) / block.y), block,
                      shared, stream, view);
}
