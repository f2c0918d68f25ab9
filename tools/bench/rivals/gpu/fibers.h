/*
 * A tensor as fibers of one mode in device memory: the input of SpTV, TTM and the atomic forms of
 * MTTKRP. Private to gpu/.
 *
 * After [SPTV]:
 * a fiber consists of the indices and values of its nonzeros, at adjacent positions, and of the
 * start of these (section 4).
 */
#ifndef SLC_GPU_FIBERS_H
#define SLC_GPU_FIBERS_H

#include "tools/bench/rivals/gpu/coo.h"

/* Borrows the values of the list. */
struct slc_gpu_fibers {
    unsigned order, mode; /* the fibers' own mode */
    enum slc_value_type type;
    uint64_t nnz, count;
    uint32_t *begin; /* count + 1 elements: first nonzero of each fiber, then nnz */
    uint32_t *index; /* per nonzero: its index in `mode` */
    const void *values;
    uint32_t *coords;   /* coordinate of fiber f in mode m, at f * order + m; 0 in `mode` */
    uint32_t *fiber_of; /* per nonzero */
    uint64_t room;      /* capacity: largest sum of nonzeros and fibers */
    uint32_t *found;    /* scratch of slc_gpu_fibers_find */
};

/*
 * Allocates memory for the nonempty fibers of lists of `order` modes and up to `nnz` nonzeros,
 * which are used one after the other. Needs: *fibers is all-zero. Owns: release with
 * slc_gpu_fibers_destroy, also after an error. Errors: cudaErrorInvalidValue for 2^32 - 1 nonzeros
 * or more; cudaErrorMemoryAllocation.
 */
cudaError_t slc_gpu_fibers_reserve(struct slc_gpu_fibers *fibers, unsigned order, uint64_t nnz);

/*
 * Finds the fibers of a list: neighbours that agree in all modes but one form a fiber, so a list in
 * an order that keeps fibers together (layout fiber-n) has each fiber once. Waits for the stream,
 * to read the number of fibers. Errors: cudaErrorInvalidValue for a missing mode, or a list that
 * exceeds the reserved memory.
 */
cudaError_t slc_gpu_fibers_find(struct slc_gpu_fibers *fibers,
                                const struct slc_gpu_coo *coo,
                                unsigned mode,
                                cudaStream_t stream);

/*
 * Builds all fibers of a list, including empty fibers, on the host. Used to measure the gain of
 * dropping empty fibers. Fibers are in the order of their coordinates, mode 0 first, and the list
 * must be in the same order. Needs, Owns: as for slc_gpu_fibers_reserve. Errors:
 * cudaErrorInvalidValue for a missing mode, for 2^32 - 1 nonzeros or fibers or more, and for fibers
 * that do not ascend; cudaErrorMemoryAllocation, also if host memory is short.
 */
cudaError_t slc_gpu_fibers_create_all(struct slc_gpu_fibers *fibers,
                                      const struct slc_gpu_coo *coo,
                                      unsigned mode,
                                      const uint64_t *dims,
                                      cudaStream_t stream);

/* Accepts an all-zero struct. */
void slc_gpu_fibers_destroy(struct slc_gpu_fibers *fibers);

#endif
