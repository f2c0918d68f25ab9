/* Transcodes tiles for repeated reading. */
#include "gpu/decode/transcode.h"

#include "gpu/cuda/staged_copy.h"
#include "gpu/decode/decode.h"

extern "C" {
#include "base/memory/memory.h"
}

/* Transcodes tiles. Each warp decodes a run to shared memory and then writes, for each mode, the
 * words of the run's offsets. A run of 512 nonzeros fills 16 words per bit of an offset, so no word
 * belongs to two runs. */
__global__ static void __launch_bounds__(SLC_WARP)
    transcode_kernel(const struct slc_gpu_tile *tiles,
                     const struct slc_gpu_transcoded *made,
                     const struct slc_encoded_layout *layout,
                     struct slc_gpu_fault *fault)
{
    SLC_DYNAMIC_SHARED(uint32_t, shared);
    const struct slc_gpu_tile *tile = tiles + blockIdx.y;
    const struct slc_gpu_transcoded *to = made + blockIdx.y;
    const uint32_t order = layout->order, first = blockIdx.x * SLC_RUN_NNZ;
    double *values = reinterpret_cast<double *>(shared + (size_t)order * SLC_RUN_NNZ);
    auto *scratch = reinterpret_cast<struct slc_decode_scratch *>(values + SLC_RUN_NNZ);
    uint32_t count;

    if (first >= tile->tile.nnz) {
        return;
    }
    count = slc_decode_run<double>(layout, tile, blockIdx.x, scratch, shared, SLC_RUN_NNZ, values,
                                   fault);
    __syncwarp();
    for (uint32_t i = threadIdx.x; i < count; i += SLC_WARP) {
        const_cast<double *>(to->values)[first + i] = values[i];
    }
    for (uint32_t n = 0; n < order; n++) {
        const uint32_t bits = to->bits[n];
        const uint32_t *offsets = shared + (size_t)n * SLC_RUN_NNZ;
        uint32_t *words = const_cast<uint32_t *>(to->words[n]) + first / 32 * bits;
        const uint32_t word_count = (count * bits + 31) / 32;

        for (uint32_t w = threadIdx.x; w < word_count; w += SLC_WARP) {
            uint32_t word = 0;
            uint32_t i = 32 * w / bits;

            /* Number i begins at bit i * bits, in this word or in the previous word. */
            for (int at = (int)(i * bits) - (int)(32 * w); at < 32 && i < count;
                 at += (int)bits, i++) {
                word |= at < 0 ? offsets[i] >> -at : offsets[i] << at;
            }
            words[w] = word;
        }
    }
}

/* Returns the number of words of a mode that has `nnz` offsets of `bits` bits. This includes a
 * spare word, because a read always loads two words, even if `bits` is 0. */
static uint64_t word_count(uint32_t nnz, uint32_t bits)
{
    const uint64_t words = ((uint64_t)nnz * bits + 31) / 32;

    return (words > 0 ? words : 1) + 1;
}

static uint32_t bits_of(uint32_t extent)
{
    return extent == 0 ? 0 : 32 - (uint32_t)__builtin_clz(extent);
}

/* Describes a tile whose memory begins at offset `at`. Returns the offset of the next tile's
 * memory. */
static uint64_t lay_out(const struct slc_encoded_tile *tile,
                        unsigned order,
                        unsigned char *memory,
                        uint64_t at,
                        struct slc_gpu_transcoded *made)
{
    made->values = reinterpret_cast<const double *>(memory + at);
    at += (uint64_t)tile->nnz * sizeof(double);
    for (unsigned n = 0; n < order; n++) {
        made->bits[n] = (uint8_t)bits_of(tile->extent[n]);
        made->words[n] = reinterpret_cast<const uint32_t *>(memory + at);
        at += word_count(tile->nnz, made->bits[n]) * sizeof(uint32_t);
    }
    return (at + 15) / 16 * 16;
}

/* Allocates memory for all tiles and fills in their descriptions. */
static cudaError_t allocate_tiles(const struct slc_gpu_tile *tiles,
                                  unsigned order,
                                  uint64_t bytes_most,
                                  struct slc_gpu_transcoded *described,
                                  struct slc_gpu_transcoded_tiles *made,
                                  cudaStream_t stream)
{
    cudaError_t error;

    for (uint32_t t = 0; t < made->count; t++) {
        made->bytes = lay_out(&tiles[t].tile, order, nullptr, made->bytes, &described[t]);
    }
    if (made->bytes + made->count * sizeof *described > bytes_most) {
        return cudaErrorMemoryAllocation;
    }
    error = cudaMalloc(&made->memory, made->bytes);
    if (error != cudaSuccess) {
        return error;
    }
    /* Clear the spare words: they are read, although their bits are never used. */
    error = cudaMemsetAsync(made->memory, 0, made->bytes, stream);
    if (error != cudaSuccess) {
        return error;
    }
    for (uint64_t t = 0, at = 0; t < made->count; t++) {
        at = lay_out(&tiles[t].tile, order, static_cast<unsigned char *>(made->memory), at,
                     &described[t]);
    }
    return slc_staged_create(reinterpret_cast<void **>(&made->tiles), described,
                             made->count * sizeof *described, stream);
}

static cudaError_t transcode(const struct slc_gpu_tile *tiles,
                             const struct slc_encoded_layout *layout,
                             unsigned order,
                             struct slc_gpu_fault *fault,
                             const struct slc_gpu_transcoded_tiles *made,
                             cudaStream_t stream)
{
    const size_t shared = SLC_RUN_NNZ * (order * sizeof(uint32_t) + sizeof(double)) +
                          sizeof(struct slc_decode_scratch);
    /* Upper limit of a grid's second dimension. */
    const uint32_t tiles_most = 65535;
    cudaError_t error = cudaSuccess;

    for (uint32_t first = 0; first < made->count && error == cudaSuccess; first += tiles_most) {
        const uint32_t left = made->count - first;
        const dim3 grid(SLC_TILE_NNZ / SLC_RUN_NNZ, left < tiles_most ? left : tiles_most);

        error = slc_launch(transcode_kernel, grid, dim3(SLC_WARP), shared, stream, tiles + first,
                           made->tiles + first, layout, fault);
    }
    return error == cudaSuccess ? cudaStreamSynchronize(stream) : error;
}

cudaError_t slc_gpu_transcode(const struct slc_gpu_tile *tiles,
                              uint32_t count,
                              const struct slc_encoded_layout *layout,
                              unsigned order,
                              uint64_t bytes_most,
                              struct slc_gpu_fault *fault,
                              struct slc_gpu_transcoded_tiles *made,
                              cudaStream_t stream)
{
    struct slc_gpu_tile *read = static_cast<struct slc_gpu_tile *>(slc_calloc(count, sizeof *read));
    struct slc_gpu_transcoded *described =
        static_cast<struct slc_gpu_transcoded *>(slc_calloc(count, sizeof *described));
    cudaError_t error = cudaErrorMemoryAllocation;

    made->count = count;
    if (read != nullptr && described != nullptr) {
        error = slc_staged_to_host(read, tiles, count * sizeof *tiles, stream);
        if (error == cudaSuccess) {
            error = allocate_tiles(read, order, bytes_most, described, made, stream);
        }
        if (error == cudaSuccess) {
            error = transcode(tiles, layout, order, fault, made, stream);
        }
    }
    slc_free(read);
    slc_free(described);
    return error;
}

void slc_gpu_transcoded_destroy(struct slc_gpu_transcoded_tiles *made)
{
    (void)cudaFree(made->tiles);
    (void)cudaFree(made->memory);
    *made = {};
}
