/*
 * A tensor as fibers of one mode in the device's memory: what SpTV, TTM and the atomic forms of
 * MTTKRP compute from. Private to gpu/.
 *
 * SPTV is Chen et al., multi-level parallel sparse tensor-vector product on heterogeneous systems:
 * of a fiber its nonzeros' indices and values alone are held, side by side, and where they begin
 * (section 4).
 */
#ifndef SLC_GPU_FIBERS_H
#define SLC_GPU_FIBERS_H

#include "tools/bench/rivals/gpu/coo.h"

/* Borrows the values of the list it was made from. */
struct slc_gpu_fibers {
    unsigned order, mode; /* the fibers' own mode */
    enum slc_value_type type;
    uint64_t nnz, count;
    uint32_t *begin; /* count + 1: of each fiber's nonzeros, then nnz */
    uint32_t *index; /* per nonzero: in `mode` */
    const void *values;
    uint32_t *coords;   /* of fiber f in mode m at f * order + m; of `mode` 0 */
    uint32_t *fiber_of; /* per nonzero */
    uint64_t room;      /* nonzeros and fibers together that there can be */
    uint32_t *found;    /* scratch of slc_gpu_fibers_find */
};

/*
 * Makes room for the fibers of lists of `order` modes and up to `nnz` nonzeros, one after the
 * other, none of which is empty. Needs: *fibers all-zero. Owns: slc_gpu_fibers_destroy, also after
 * an error. Errors: cudaErrorInvalidValue for 2^32 - 1 nonzeros and more;
 * cudaErrorMemoryAllocation.
 */
cudaError_t slc_gpu_fibers_reserve(struct slc_gpu_fibers *fibers, unsigned order, uint64_t nnz);

/*
 * Finds the fibers of a list: neighbours that agree in all modes but one are a fiber, so that a
 * list in an order that keeps fibers together (layout fiber-n) has each one once. Waits for the
 * stream, for their number. Errors: cudaErrorInvalidValue for a mode that is not there, or a list
 * that there is no room for.
 */
cudaError_t slc_gpu_fibers_find(struct slc_gpu_fibers *fibers,
                                const struct slc_gpu_coo *coo,
                                unsigned mode,
                                cudaStream_t stream);

/*
 * All fibers of a list, empty ones, too, in the order of their coordinates, mode 0 first, as the
 * list's have to be: what dropping empty ones is measured against. Made on the host. Needs, Owns:
 * as slc_gpu_fibers_reserve. Errors: cudaErrorInvalidValue for a mode that is not there, 2^32 - 1
 * nonzeros or fibers and more, and fibers that do not ascend; cudaErrorMemoryAllocation, also for
 * the host's memory.
 */
cudaError_t slc_gpu_fibers_create_all(struct slc_gpu_fibers *fibers,
                                      const struct slc_gpu_coo *coo,
                                      unsigned mode,
                                      const uint64_t *dims,
                                      cudaStream_t stream);

/* Takes an all-zero struct. */
void slc_gpu_fibers_destroy(struct slc_gpu_fibers *fibers);

#endif
