/*
 * A tensor as fibers of one mode in the device's memory: the input of SpTV, TTM and the atomic
 * forms of MTTKRP. Private to gpu/.
 *
 * After [SPTV]:
 * a fiber consists of the indices and values of its nonzeros, in adjacent positions, and of its
 * start (section 4).
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
    uint32_t *coords;   /* of fiber f in mode m at f * order + m; 0 in `mode` */
    uint32_t *fiber_of; /* per nonzero */
    uint64_t room;      /* capacity: nonzeros and fibers together */
    uint32_t *found;    /* scratch of slc_gpu_fibers_find */
};

/*
 * Allocates memory for the fibers of lists of `order` modes and up to `nnz` nonzeros, one list
 * after the other, none of them empty. Needs: *fibers all-zero. Owns: slc_gpu_fibers_destroy, also
 * after an error. Errors: cudaErrorInvalidValue for 2^32 - 1 nonzeros and more;
 * cudaErrorMemoryAllocation.
 */
cudaError_t slc_gpu_fibers_reserve(struct slc_gpu_fibers *fibers, unsigned order, uint64_t nnz);

/*
 * Finds the fibers of a list: neighbours that agree in all modes but one form a fiber, so a list in
 * an order that keeps fibers together (layout fiber-n) has each fiber once. Waits for the stream to
 * read their number. Errors: cudaErrorInvalidValue for a missing mode, or a list that exceeds the
 * reserved memory.
 */
cudaError_t slc_gpu_fibers_find(struct slc_gpu_fibers *fibers,
                                const struct slc_gpu_coo *coo,
                                unsigned mode,
                                cudaStream_t stream);

/*
 * All fibers of a list, including empty ones, in the order of their coordinates, mode 0 first; the
 * list must have that order. Used to measure the gain of dropping empty fibers. Built on the host.
 * Needs, Owns: as slc_gpu_fibers_reserve. Errors: cudaErrorInvalidValue for a missing mode, 2^32 -
 * 1 nonzeros or fibers and more, and fibers that do not ascend; cudaErrorMemoryAllocation, also for
 * the host's memory.
 */
cudaError_t slc_gpu_fibers_create_all(struct slc_gpu_fibers *fibers,
                                      const struct slc_gpu_coo *coo,
                                      unsigned mode,
                                      const uint64_t *dims,
                                      cudaStream_t stream);

/* Accepts an all-zero struct. */
void slc_gpu_fibers_destroy(struct slc_gpu_fibers *fibers);

#endif
