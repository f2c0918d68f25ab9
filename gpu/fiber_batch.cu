/* See fiber_batch.h. */
#include "gpu/fiber_batch.h"

#include "gpu/decode_batch.h"

cudaError_t slc_gpu_fiber_batch_create(struct slc_gpu_fiber_batch *fibers,
                                       unsigned order,
                                       uint64_t nnz,
                                       enum slc_value_type type)
{
    const cudaError_t error = slc_gpu_fibers_reserve(&fibers->fibers, order, nnz);

    fibers->room = nnz;
    return error == cudaSuccess ? slc_gpu_coo_create(&fibers->coo, order, nnz, type) : error;
}

cudaError_t slc_gpu_fiber_batch_find(struct slc_gpu_fiber_batch *fibers,
                                     const struct slc_gpu_batch *batch,
                                     const uint64_t *tile_begin,
                                     uint64_t nnz,
                                     unsigned mode,
                                     cudaStream_t stream)
{
    cudaError_t error;

    if (nnz > fibers->room) {
        return cudaErrorInvalidValue;
    }
    fibers->coo.nnz = nnz;
    error = slc_gpu_decode_batch(batch, tile_begin, &fibers->coo, stream);
    if (error != cudaSuccess) {
        return error;
    }
    return slc_gpu_fibers_find(&fibers->fibers, &fibers->coo, mode, stream);
}

void slc_gpu_fiber_batch_destroy(struct slc_gpu_fiber_batch *fibers)
{
    slc_gpu_coo_destroy(&fibers->coo);
    slc_gpu_fibers_destroy(&fibers->fibers);
    fibers->room = 0;
}
