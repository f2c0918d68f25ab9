/* Batches decoded on the emulated device to coordinates and values, run by run, each into memory of
 * the minimal size; and tensors with clustered keys and integers. For tests of decoding. */
#ifndef SLC_DECODE_PROBLEM_H
#define SLC_DECODE_PROBLEM_H

#include "batch_fixture.h"
#include "gpu/decode/decode.h"

extern "C" {
#include "base/random.h"
#include "slc_test.h"
}

enum { WARPS = 2 };

/* Output of a warp, of the minimal size, so that a sanitizer detects overruns. */
template <typename T> struct warp_room {
    uint32_t nnz; /* nonzeros of the tile's runs, rounded up to whole groups */
    unsigned order;

    __host__ __device__ size_t bytes(void) const
    {
        return sizeof(struct slc_decode_scratch) + nnz * (order * sizeof(uint32_t) + sizeof(T));
    }
};

/* A warp for each run; nonzero i of tile t is element tile_begin[t] + i. */
template <typename T>
__global__ static void decode_runs(struct slc_gpu_batch batch,
                                   struct warp_room<T> room,
                                   const uint64_t *tile_begin,
                                   uint64_t nnz,
                                   uint64_t *coords,
                                   T *values)
{
    SLC_DYNAMIC_SHARED(unsigned char, shared);
    const uint32_t lane = threadIdx.x % SLC_WARP, warp = threadIdx.x / SLC_WARP;
    uint32_t t = 0;

    while (batch.chunk_begin[t + 1] <= blockIdx.x) {
        t++;
    }
    const struct slc_gpu_tile *tile = &batch.tiles[t];
    const uint32_t first = (blockIdx.x - batch.chunk_begin[t]) * batch.chunk_runs;
    auto *scratch = reinterpret_cast<struct slc_decode_scratch *>(shared + warp * room.bytes());
    T *decoded = reinterpret_cast<T *>(scratch + 1);
    uint32_t *offsets = reinterpret_cast<uint32_t *>(decoded + room.nnz);

    for (uint32_t run = first + warp; run < first + batch.chunk_runs; run += WARPS) {
        if (run * SLC_RUN_NNZ >= tile->tile.nnz) {
            return;
        }
        const uint64_t at = tile_begin[t] + (uint64_t)run * SLC_RUN_NNZ;
        const uint32_t count = slc_decode_run(batch.layout, tile, run, scratch, offsets, room.nnz,
                                              decoded, batch.fault);

        __syncwarp();
        for (uint32_t i = lane; i < count; i += SLC_WARP) {
            for (unsigned n = 0; n < batch.layout->order; n++) {
                const uint32_t offset = offsets[n * room.nnz + i];

                if (offset > tile->tile.extent[n]) {
                    batch.fault->kind = ~0U; /* impossible for any input */
                }
                coords[n * nnz + at + i] = tile->tile.corner[n] + offset;
            }
            values[at + i] = decoded[i];
        }
        __syncwarp();
    }
}

/* All decoded nonzeros, as f64, and the fault. */
struct decoded_batch {
    std::vector<uint64_t> coords; /* element n * nnz + i is the coordinate of nonzero i in mode n */
    std::vector<double> values;
    struct slc_gpu_fault fault;
};

template <typename T> static void decode(struct batch_fixture *fixture, struct decoded_batch *to)
{
    const uint64_t nnz = fixture->coo.nnz;
    struct warp_room<T> room = {
        0, fixture->coo.order
    };
    std::vector<T> values(nnz);

    for (const struct batch_block &block : fixture->blocks) {
        for (const struct slc_encoded_tile &tile : block.tiles) {
            const uint32_t run = slc_least(tile.nnz, SLC_RUN_NNZ);
            const uint32_t whole = (run + SLC_GROUP_NNZ - 1) / SLC_GROUP_NNZ * SLC_GROUP_NNZ;

            room.nnz = whole > room.nnz ? whole : room.nnz;
        }
    }
    to->coords.resize(room.order * nnz);
    auto *device_coords =
        static_cast<uint64_t *>(batch_to_device(fixture, nullptr, to->coords.size() * 8));
    auto *device_values = static_cast<T *>(batch_to_device(fixture, nullptr, nnz * sizeof(T)));
    const auto *tile_begin = static_cast<const uint64_t *>(
        batch_to_device(fixture, fixture->tile_begin.data(), fixture->tile_begin.size() * 8));

    CU_ASSERT_EQUAL(cudaFuncSetAttribute(decode_runs<T>,
                                         cudaFuncAttributeMaxDynamicSharedMemorySize,
                                         (int)(WARPS * room.bytes())),
                    cudaSuccess);
    CU_ASSERT_EQUAL(slc_launch(decode_runs<T>, dim3(fixture->batch.chunk_count),
                               dim3(WARPS * SLC_WARP), WARPS * room.bytes(), fixture->stream,
                               fixture->batch, room, tile_begin, nnz, device_coords, device_values),
                    cudaSuccess);
    batch_download(fixture, to->coords.data(), device_coords, to->coords.size() * 8);
    batch_download(fixture, values.data(), device_values, nnz * sizeof(T));
    to->values.assign(values.begin(), values.end());
    batch_fault(fixture, &to->fault);
}

/* The seed of the emulation's order changes from case to case. */
static inline void start_device(void)
{
    static unsigned seed = 0;
    const struct slc_emulation emulation = {1, (size_t)64 << 20, 128 << 10, 2, ++seed};

    slc_emulation_set(&emulation);
}

static inline uint64_t draw(uint64_t *index)
{
    return slc_random_u64(slc_test_seed(), 91, (*index)++);
}

/* Clustered keys, so that groups of short gaps have exceptions of up to `far` bits, and integers,
 * some of any length. */
static inline void
cluster(struct slc_made_tensor *tensor, unsigned far, unsigned often, uint64_t *index)
{
    slc_u128 key = 0;

    for (uint64_t i = 0; i < tensor->nnz; i++) {
        slc_u128 gap = draw(index) % 1000;

        if (draw(index) % often == 0) {
            gap = slc_key_join(draw(index), draw(index)) >> (128 - far);
        }
        key += i > 0 ? gap + 1 : 0;
        tensor->key_lo[i] = (uint64_t)key;
        tensor->key_hi[i] = (uint64_t)(key >> 64);
        if (draw(index) % 9 == 0) {
            const int64_t magnitude = (int64_t)(draw(index) >> (11 + draw(index) % 40)) + 1;

            tensor->values[i] = (double)(draw(index) % 2 == 0 ? magnitude : -magnitude);
        }
    }
}

#endif
