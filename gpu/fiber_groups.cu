/* See fiber_groups.h. */
#include "gpu/fiber_groups.h"

#include <string.h>

enum { THREADS = 256 };
/* Nonzeros and ends of a group at least: a warp's start and end cost as much as a hundred. */
static const uint64_t items_min = 512;
/* Groups for each multiprocessor, where there is enough: four times the warps it holds. */
static const uint64_t groups_per_multiprocessor = 256;

/* One thread for each cut: a search along a diagonal of fibers' ends and nonzeros. */
__global__ static void slc_fiber_cut_groups(const uint32_t *begin,
                                            uint64_t fibers,
                                            uint64_t nnz,
                                            uint64_t items,
                                            struct slc_fiber_cut *cuts,
                                            uint32_t count)
{
    const uint64_t cut = static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    const uint64_t all = fibers + nnz;
    const uint64_t at = cut * items < all ? cut * items : all;
    uint64_t first = at > nnz ? at - nnz : 0;
    uint64_t last = at < fibers ? at : fibers;

    if (cut > count) {
        return;
    }
    while (first < last) {
        const uint64_t middle = first + (last - first) / 2;

        if (begin[middle + 1] < at - middle) {
            first = middle + 1;
        } else {
            last = middle;
        }
    }
    cuts[cut].fiber = static_cast<uint32_t>(first);
    cuts[cut].nonzero = static_cast<uint32_t>(at - first);
}

/* How long groups are that `all` nonzeros and ends are cut into. */
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
    groups->room = count_of(groups, fibers->room);
    return cudaMalloc(reinterpret_cast<void **>(&groups->cuts),
                      (groups->room + UINT64_C(1)) * sizeof *groups->cuts);
}

cudaError_t slc_fiber_groups_cut(struct slc_fiber_groups *groups,
                                 const struct slc_gpu_fibers *fibers,
                                 cudaStream_t stream)
{
    const uint64_t all = fibers->count + fibers->nnz;

    groups->count = count_of(groups, all);
    return slc_launch(slc_fiber_cut_groups, dim3(groups->count / THREADS + 1), dim3(THREADS), 0,
                      stream, fibers->begin, fibers->count, fibers->nnz, items_of(groups, all),
                      groups->cuts, groups->count);
}

void slc_fiber_groups_destroy(struct slc_fiber_groups *groups)
{
    (void)cudaFree(groups->cuts);
    memset(groups, 0, sizeof *groups);
}

/*
 * A block looks at one group: if that is where a fiber begins which goes on behind it, the block
 * adds up its carry and those of the groups behind it that lie within the fiber, column by column:
 * its y share them, and are added up in their order.
 */
template <typename Sum>
__global__ static void __launch_bounds__(THREADS)
    slc_fiber_add_carries(const uint32_t *begin,
                          uint64_t fibers,
                          const struct slc_fiber_cut *cuts,
                          uint32_t count,
                          const Sum *carries,
                          uint32_t carry_pitch,
                          const struct slc_gpu_matrix rows)
{
    SLC_DYNAMIC_SHARED(Sum, shared);
    const uint32_t group = blockIdx.x;
    const uint32_t fiber = cuts[group + 1].fiber;

    if (fiber == fibers || cuts[group].nonzero > begin[fiber] ||
        cuts[group + 1].nonzero == begin[fiber]) {
        return;
    }
    for (uint32_t first = 0; first < rows.cols; first += blockDim.x) {
        const uint32_t column = first + threadIdx.x;
        Sum sum = 0;

        for (uint32_t g = group + threadIdx.y;
             column < rows.cols && g < count && cuts[g + 1].fiber == fiber; g += blockDim.y) {
            sum += carries[static_cast<uint64_t>(g) * carry_pitch + column];
        }
        shared[threadIdx.y * blockDim.x + threadIdx.x] = sum;
        SLC_PLANT(fiber_carries_not_there, __syncthreads());
        if (threadIdx.y == 0 && column < rows.cols) {
            for (uint32_t y = 1; y < blockDim.y; y++) {
                sum += shared[y * blockDim.x + threadIdx.x];
            }
            static_cast<Sum *>(rows.data)[static_cast<uint64_t>(fiber) * rows.pitch + column] +=
                sum;
        }
        SLC_PLANT(fiber_carries_overwritten, __syncthreads());
    }
}

cudaError_t slc_fiber_carries(const struct slc_gpu_fibers *fibers,
                              const struct slc_fiber_groups *groups,
                              const void *carries,
                              uint32_t carry_pitch,
                              const struct slc_gpu_matrix *rows,
                              bool f32,
                              cudaStream_t stream)
{
    uint32_t columns = 1;

    while (columns < rows->cols && columns < SLC_WARP) {
        columns *= 2;
    }
    const dim3 block(columns, THREADS / columns);

    if (f32) {
        return slc_launch(slc_fiber_add_carries<float>, dim3(groups->count), block,
                          THREADS * sizeof(float), stream, fibers->begin, fibers->count,
                          groups->cuts, groups->count, static_cast<const float *>(carries),
                          carry_pitch, *rows);
    }
    return slc_launch(slc_fiber_add_carries<double>, dim3(groups->count), block,
                      THREADS * sizeof(double), stream, fibers->begin, fibers->count, groups->cuts,
                      groups->count, static_cast<const double *>(carries), carry_pitch, *rows);
}
