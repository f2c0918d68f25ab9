/*
 * Fibers cut into groups of equal work, for kernels that store each fiber's sum once, without
 * atomics, however long fibers are. Private to gpu/.
 *
 * Work is a list of nonzeros and ends of fibers, each end behind its fiber's last nonzero (Merrill
 * and Garland, "Merge-based parallel sparse matrix-vector multiplication", SC 2016); a group is a
 * stretch of it of fixed length. So empty fibers count, and a long one is divided between groups:
 * each but the last leaves what it added up as a carry, and slc_fiber_carries adds those to the
 * fiber's sum. All of that depends on where fibers begin and, unless the length of groups is given,
 * on the number of multiprocessors alone, so sums have the same bits every time.
 */
#ifndef SLC_GPU_FIBER_GROUPS_H
#define SLC_GPU_FIBER_GROUPS_H

#include "gpu/mttkrp/mttkrp.h"
#include "tools/bench/rivals/gpu/fibers.h"

/* Where a group begins: behind so many ends of fibers, and so many nonzeros. */
struct slc_fiber_cut {
    uint32_t fiber, nonzero;
};

struct slc_fiber_groups {
    uint32_t count, room;
    uint64_t wanted;            /* groups where there is enough work, */
    uint32_t items;             /* or items of each, if not 0 */
    struct slc_fiber_cut *cuts; /* count + 1 */
};

/*
 * Makes room for the groups of `fibers`, whatever is found in the room that they have. A group has
 * `items` nonzeros and ends; 0: as many as keep all multiprocessors busy. Needs: all-zero. Owns:
 * slc_fiber_groups_destroy, also after an error.
 */
cudaError_t slc_fiber_groups_reserve(struct slc_fiber_groups *groups,
                                     const struct slc_gpu_fibers *fibers,
                                     uint32_t items,
                                     const struct slc_gpu_machine *machine);
/* Cuts fibers: again whenever others have been found. */
cudaError_t slc_fiber_groups_cut(struct slc_fiber_groups *groups,
                                 const struct slc_gpu_fibers *fibers,
                                 cudaStream_t stream);
/* Takes an all-zero struct. */
void slc_fiber_groups_destroy(struct slc_fiber_groups *groups);

/*
 * Adds carries to rows of sums: that of group g, at g * carry_pitch, to the row of the fiber in
 * which the group ends. Both are f64.
 */
cudaError_t slc_fiber_carries(const struct slc_gpu_fibers *fibers,
                              const struct slc_fiber_groups *groups,
                              const double *carries,
                              uint32_t carry_pitch,
                              const struct slc_gpu_matrix *rows,
                              cudaStream_t stream);

#endif
