/* A tensor as fibers of one mode in device memory: the input of SpTV, TTM and the kernels
 * atomic-fiber and atomic-nonzero. Only files of this folder and tests include this header.
 *
 * As in [SPTV] section 4, a fiber consists of the indices and values of its nonzeros, at adjacent
 * positions, and of the position of its first nonzero. */
#ifndef SLC_GPU_FIBERS_H
#define SLC_GPU_FIBERS_H

#include "tools/bench/rivals/gpu/coo.h"

/* The fibers of a list. The values are borrowed from the list. */
struct slc_gpu_fibers {
    unsigned order, mode; /* order of the tensor, and the mode in which a fiber varies */
    enum slc_value_type type;
    uint64_t nnz, count;
    uint32_t *begin; /* count + 1 elements: the first nonzero of each fiber, then nnz */
    uint32_t *index; /* index in `mode` of each nonzero */
    const void *values;
    uint32_t *coords;   /* coordinate of fiber f in mode m: element f * order + m; 0 in `mode` */
    uint32_t *fiber_of; /* number of the fiber of each nonzero */
    uint64_t room;      /* capacity: largest sum of the numbers of nonzeros and fibers */
    uint32_t *found;    /* scratch of slc_gpu_fibers_find */
};

/* Allocates memory for the nonempty fibers of a list of `order` modes and up to `nnz` nonzeros.
 * Several such lists can use the memory one after the other. Needs: *fibers is all-zero. The caller
 * must call slc_gpu_fibers_destroy, also after an error. Errors: cudaErrorInvalidValue for 2^32 - 1
 * nonzeros or more; cudaErrorMemoryAllocation. */
cudaError_t slc_gpu_fibers_reserve(struct slc_gpu_fibers *fibers, unsigned order, uint64_t nnz);

/* Finds the fibers of a list: neighbours that agree in all modes but `mode` form a fiber. If the
 * order of the list keeps fibers together (layout fiber-n), each fiber is found once. Waits for the
 * stream, to read the number of fibers. Errors: cudaErrorInvalidValue if the list does not have the
 * mode or exceeds the reserved memory. */
cudaError_t slc_gpu_fibers_find(struct slc_gpu_fibers *fibers,
                                const struct slc_gpu_coo *coo,
                                unsigned mode,
                                cudaStream_t stream);

/* Builds all fibers of a list, including empty fibers, on the host. A benchmark uses them to
 * measure the gain of dropping empty fibers. Fibers are in the order of their coordinates, mode 0
 * first, and the list must be in this order. Needs: *fibers is all-zero. The caller must call
 * slc_gpu_fibers_destroy, also after an error. Errors: cudaErrorInvalidValue if the list does not
 * have the mode, has 2^32 - 1 nonzeros or fibers or more, or is not in order;
 * cudaErrorMemoryAllocation, also if there is not enough host memory. */
cudaError_t slc_gpu_fibers_create_all(struct slc_gpu_fibers *fibers,
                                      const struct slc_gpu_coo *coo,
                                      unsigned mode,
                                      const uint64_t *dims,
                                      cudaStream_t stream);

/* Releases the memory. *fibers may be all-zero. */
void slc_gpu_fibers_destroy(struct slc_gpu_fibers *fibers);

#endif
