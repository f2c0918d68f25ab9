/* Makes BLCO's form of a list, on the host. See blco.h. */
#include "gpu/blco.h"

#include "gpu/staged_copy.h"

#include <string.h>

extern "C" {
#include "base/key.h"
}

/*
 * Which bits of each mode an index has: the lowest `index_bits` of keys in ALTO order, level by
 * level, the last mode lowest.
 */
static void divide_bits(struct slc_gpu_blco *blco, const uint64_t *dims, unsigned index_bits)
{
    unsigned left = index_bits, shift = 0;

    for (unsigned level = 0; level < 32; level++) {
        for (unsigned m = blco->order; m-- > 0;) {
            if (left > 0 && slc_bits_for_length(dims[m]) > level) {
                blco->bits[m]++;
                left--;
            }
        }
    }
    for (unsigned m = 0; m < blco->order; m++) {
        blco->shift[m] = static_cast<uint8_t>(shift < 64 ? shift : 63);
        shift += blco->bits[m];
    }
}

static uint32_t lower_mask(const struct slc_gpu_blco *blco, unsigned mode)
{
    return blco->bits[mode] == 32 ? ~0U : (1U << blco->bits[mode]) - 1U;
}

static bool begins_block(const struct slc_gpu_blco *blco, const uint32_t *coords, uint64_t i)
{
    if (i == 0) {
        return true;
    }
    for (unsigned m = 0; m < blco->order; m++) {
        const uint32_t *here = coords + i * blco->order + m;

        if (((here[0] ^ *(here - blco->order)) & ~lower_mask(blco, m)) != 0) {
            return true;
        }
    }
    return false;
}

static uint64_t index_of(const struct slc_gpu_blco *blco, const uint32_t *coords)
{
    uint64_t index = 0;

    for (unsigned m = 0; m < blco->order; m++) {
        index |= static_cast<uint64_t>(coords[m] & lower_mask(blco, m)) << blco->shift[m];
    }
    return index;
}

/* Fills in both arrays; `blocks` has room for blco->block_count. */
static void encode(const struct slc_gpu_blco *blco,
                   const uint32_t *coords,
                   uint64_t *indices,
                   struct slc_gpu_blco_block *blocks)
{
    for (uint64_t i = 0; i < blco->nnz; i++) {
        const uint32_t *here = coords + i * blco->order;

        indices[i] = index_of(blco, here);
        if (begins_block(blco, coords, i)) {
            blocks->first = i;
            for (unsigned m = 0; m < blco->order; m++) {
                blocks->upper[m] = here[m] & ~lower_mask(blco, m);
            }
            blocks++;
        }
    }
}

/* With the list's coordinates on the host. */
static cudaError_t make_from(struct slc_gpu_blco *blco, const uint32_t *coords, cudaStream_t stream)
{
    struct slc_buffer indices = SLC_BUFFER_INIT, blocks = SLC_BUFFER_INIT;
    cudaError_t error = cudaErrorMemoryAllocation;

    for (uint64_t i = 0; i < blco->nnz; i++) {
        blco->block_count += begins_block(blco, coords, i);
    }
    if (slc_buffer_create(&indices, blco->nnz * sizeof(uint64_t), SLC_PAGES_HUGE, nullptr) ==
            SLC_OK &&
        slc_buffer_create(&blocks, blco->block_count * sizeof(struct slc_gpu_blco_block),
                          SLC_PAGES_SMALL, nullptr) == SLC_OK) {
        encode(blco, coords, static_cast<uint64_t *>(indices.data),
               static_cast<struct slc_gpu_blco_block *>(blocks.data));
        error = slc_staged_create(reinterpret_cast<void **>(&blco->indices), indices.data,
                                  blco->nnz * sizeof(uint64_t), stream);
        if (error == cudaSuccess) {
            error =
                slc_staged_create(reinterpret_cast<void **>(&blco->blocks), blocks.data,
                                  blco->block_count * sizeof(struct slc_gpu_blco_block), stream);
        }
    }
    slc_buffer_destroy(&indices);
    slc_buffer_destroy(&blocks);
    return error;
}

cudaError_t slc_gpu_blco_create(struct slc_gpu_blco *blco,
                                const struct slc_gpu_coo *coo,
                                const uint64_t *dims,
                                unsigned index_bits,
                                cudaStream_t stream)
{
    struct slc_buffer coords;
    cudaError_t error;

    blco->order = coo->order;
    blco->type = coo->type;
    blco->nnz = coo->nnz;
    blco->values = coo->values;
    for (unsigned m = 0; m < coo->order; m++) {
        if (dims[m] > UINT32_MAX || index_bits > 64) {
            return cudaErrorInvalidValue;
        }
    }
    divide_bits(blco, dims, index_bits);
    error = slc_gpu_coo_read_coords(coo, &coords, stream);
    if (error == cudaSuccess) {
        error = make_from(blco, static_cast<const uint32_t *>(coords.data), stream);
        slc_buffer_destroy(&coords);
    }
    return error;
}

void slc_gpu_blco_destroy(struct slc_gpu_blco *blco)
{
    (void)cudaFree(blco->indices);
    (void)cudaFree(blco->blocks);
    memset(blco, 0, sizeof *blco);
}
