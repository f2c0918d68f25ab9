/*
 * Whole batches to lists of coordinates. Each warp decodes runs to shared memory, from where they
 * go out in the order of the list: whole lines, though runs begin anywhere.
 */
#include "gpu/decode_batch.h"

#include "gpu/decode.h"

enum {
    WARPS_MAX = 4, /* of a thread block: enough where runs have few modes */
    /* What every device gives a thread block without being asked: one warp with 16 modes fits. */
    SHARED_BYTES = 48 << 10
};

/* Coordinates of `count` nonzeros side by side, from their offsets: element e is of nonzero
 * e / order and mode e % order, without a division for each. */
__device__ static void put_coordinates(const struct slc_gpu_tile *tile,
                                       const uint32_t *offsets,
                                       uint32_t count,
                                       uint32_t order,
                                       uint32_t lane,
                                       uint32_t *coords)
{
    const uint32_t steps = SLC_WARP / order, rest = SLC_WARP % order;
    uint32_t i = lane / order, n = lane % order;

    for (uint32_t e = lane; e < count * order; e += SLC_WARP) {
        coords[e] = (uint32_t)tile->tile.corner[n] + offsets[n * SLC_RUN_NNZ + i];
        n += rest;
        i += steps + (n >= order);
        n -= n >= order ? order : 0;
    }
}

/* A thread block per chunk; each of its warps takes runs. */
template <typename T>
__global__ static void __launch_bounds__(SLC_WARP *WARPS_MAX, 1)
    decode_chunks(struct slc_gpu_batch batch,
                  uint32_t warp_bytes,
                  const uint64_t *tile_begin,
                  uint32_t *coords,
                  T *values)
{
    SLC_DYNAMIC_SHARED(unsigned char, shared);
    const uint32_t warps = blockDim.x / SLC_WARP;
    const uint32_t warp = threadIdx.x / SLC_WARP, lane = threadIdx.x % SLC_WARP;
    const uint32_t t = slc_gpu_tile_of_chunk(&batch, blockIdx.x), order = batch.layout->order;
    const struct slc_gpu_tile *tile = &batch.tiles[t];
    const uint32_t first = (blockIdx.x - batch.chunk_begin[t]) * batch.chunk_runs;
    auto *scratch = reinterpret_cast<struct slc_decode_scratch *>(shared + warp * warp_bytes);
    T *decoded = reinterpret_cast<T *>(scratch + 1);
    uint32_t *offsets = reinterpret_cast<uint32_t *>(decoded + SLC_RUN_NNZ);

    for (uint32_t run = first + warp; run < first + batch.chunk_runs; run += warps) {
        if (run * SLC_RUN_NNZ >= tile->tile.nnz) {
            return;
        }
        const uint64_t at = tile_begin[t] + (uint64_t)run * SLC_RUN_NNZ;
        const uint32_t count = slc_decode_run(batch.layout, tile, run, scratch, offsets,
                                              SLC_RUN_NNZ, decoded, batch.fault);

        SLC_PLANT(decode_run_unfinished, __syncwarp());
        put_coordinates(tile, offsets, count, order, lane, coords + at * order);
        for (uint32_t i = lane; i < count; i += SLC_WARP) {
            values[at + i] = decoded[i];
        }
        SLC_PLANT(decode_run_overwritten, __syncwarp());
    }
}

template <typename T>
static cudaError_t launch(const struct slc_gpu_batch *batch,
                          const uint64_t *tile_begin,
                          const struct slc_gpu_coo *coo,
                          cudaStream_t stream)
{
    const uint32_t warp_bytes =
        (uint32_t)(sizeof(struct slc_decode_scratch) +
                   SLC_RUN_NNZ * (coo->order * sizeof(uint32_t) + sizeof(T)));
    const uint32_t warps = slc_least(WARPS_MAX, SHARED_BYTES / warp_bytes);

    return slc_launch(decode_chunks<T>, dim3(batch->chunk_count), dim3(SLC_WARP * warps),
                      (size_t)warps * warp_bytes, stream, *batch, warp_bytes, tile_begin,
                      coo->coords, static_cast<T *>(coo->values));
}

cudaError_t slc_gpu_decode_batch(const struct slc_gpu_batch *batch,
                                 const uint64_t *tile_begin,
                                 const struct slc_gpu_coo *coo,
                                 cudaStream_t stream)
{
    if (batch->chunk_count == 0) {
        return cudaSuccess;
    }
    return coo->type == SLC_F32 ? launch<float>(batch, tile_begin, coo, stream)
                                : launch<double>(batch, tile_begin, coo, stream);
}
