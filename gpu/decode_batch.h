/*
 * Decoding whole batches into a list of coordinates in the device's memory: where kernels that
 * compute from lists (coo.h) get theirs. Private to gpu/.
 */
#ifndef SLC_GPU_DECODE_BATCH_H
#define SLC_GPU_DECODE_BATCH_H

#include "gpu/batch.h"
#include "gpu/coo.h"

/*
 * Puts nonzero i of the batch's tile t in place tile_begin[t] + i of the list; `tile_begin`, of all
 * tiles, lies in the device's memory, `batch` and `coo` themselves in the host's. LZ4 sections have
 * been expanded (expand.h). Values are rounded to the list's type.
 * Needs: a list of the order of the batch's layout; lengths below 2^32, as lists do. What the bytes
 * contradict goes to *batch->fault, and the list has coordinates within their tiles all the same.
 */
cudaError_t slc_gpu_decode_batch(const struct slc_gpu_batch *batch,
                                 const uint64_t *tile_begin,
                                 const struct slc_gpu_coo *coo,
                                 cudaStream_t stream);

#endif
