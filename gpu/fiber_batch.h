/*
 * Fibers of batches of encoded blocks: what SpTV (sptv.h) and TTM (ttm.h) of a tensor that is
 * streamed compute from. Private to gpu/.
 *
 * A batch is decoded into a list, and its fibers are found there: some 40 bytes a nonzero written
 * and read again in the device's memory, next to which the 4 or 5 that come over the bus take ten
 * times as long. Products then run as over fibers in memory. A fiber that goes on in the next batch
 * comes once from each; whoever takes the sums adds up neighbours with equal coordinates, as with
 * cpu/ttm.h.
 *
 *     create -> slc_gpu_sptv_create or slc_gpu_ttm_create, with `fibers` ->
 *         { find -> prepare -> multiply -> take fibers.count sums, and their coords } .. -> destroy
 */
#ifndef SLC_GPU_FIBER_BATCH_H
#define SLC_GPU_FIBER_BATCH_H

#include "gpu/batch.h"
#include "gpu/fibers.h"

struct slc_gpu_fiber_batch {
    uint64_t room;          /* nonzeros */
    struct slc_gpu_coo coo; /* of the last batch */
    struct slc_gpu_fibers fibers;
};

/*
 * Makes room for batches of up to `nnz` nonzeros of tensors with `order` modes. `type` is that of
 * decoded values. Needs: all-zero. Owns: slc_gpu_fiber_batch_destroy, also after an error. Errors:
 * cudaErrorInvalidValue for 2^32 - 1 nonzeros and more, cudaErrorMemoryAllocation.
 */
cudaError_t slc_gpu_fiber_batch_create(struct slc_gpu_fiber_batch *fibers,
                                       unsigned order,
                                       uint64_t nnz,
                                       enum slc_value_type type);

/*
 * Decodes a batch of `nnz` nonzeros and finds its fibers of `mode`; `tile_begin` as in
 * slc_gpu_decode_batch. Waits for the stream. What the bytes contradict goes to *batch->fault; what
 * is found is then of no use, but stays within the tiles' coordinates. Errors:
 * cudaErrorInvalidValue where there is no room, cudaErrorMemoryAllocation of the host.
 */
cudaError_t slc_gpu_fiber_batch_find(struct slc_gpu_fiber_batch *fibers,
                                     const struct slc_gpu_batch *batch,
                                     const uint64_t *tile_begin,
                                     uint64_t nnz,
                                     unsigned mode,
                                     cudaStream_t stream);

/* Takes an all-zero struct. */
void slc_gpu_fiber_batch_destroy(struct slc_gpu_fiber_batch *fibers);

#endif
