/* Makes BLCO's form of a list, on the host. See blco.h. */
#include "tools/bench/rivals/gpu/blco.h"

#include "gpu/cuda/staged_copy.h"

#include <string.h>

extern "C" {
#include "base/error/clock.h"
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

/* Whether nonzero i differs from the one before it in bits that the index lacks. */
static bool leaves_block(const struct slc_gpu_blco *blco, const uint32_t *coords, uint64_t i)
{
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

/* Counts the blocks and, if `blocks` is not NULL, describes each. */
static uint64_t find_blocks(const struct slc_gpu_blco *blco,
                            const uint32_t *coords,
                            uint64_t block_nnz,
                            struct slc_gpu_blco_block *blocks)
{
    uint64_t count = 0, first = 0;

    for (uint64_t i = 0; i < blco->nnz; i++) {
        if (i > 0 && i - first < block_nnz && !leaves_block(blco, coords, i)) {
            continue;
        }
        first = i;
        if (blocks != nullptr) {
            blocks[count].first = i;
            for (unsigned m = 0; m < blco->order; m++) {
                blocks[count].upper[m] = coords[i * blco->order + m] & ~lower_mask(blco, m);
            }
        }
        count++;
    }
    return count;
}

cudaError_t slc_gpu_blco_encode(struct slc_gpu_blco *blco,
                                const struct slc_gpu_host_list *list,
                                const uint64_t *dims,
                                unsigned index_bits,
                                uint64_t block_nnz)
{
    uint64_t *indices;

    blco->order = list->order;
    blco->type = list->type;
    blco->nnz = list->nnz;
    blco->host_values = list->values;
    for (unsigned m = 0; m < list->order; m++) {
        if (dims[m] > UINT32_MAX) {
            return cudaErrorInvalidValue;
        }
    }
    divide_bits(blco, dims, index_bits);
    blco->block_count = find_blocks(blco, list->coords, block_nnz, nullptr);
    if (blco->block_count > UINT32_MAX) {
        return cudaErrorInvalidValue;
    }
    if (slc_buffer_create(&blco->host_indices, blco->nnz * sizeof *indices, SLC_PAGES_HUGE,
                          nullptr) != SLC_OK ||
        slc_buffer_create(&blco->host_blocks, blco->block_count * sizeof(struct slc_gpu_blco_block),
                          SLC_PAGES_SMALL, nullptr) != SLC_OK) {
        return cudaErrorMemoryAllocation;
    }
    (void)find_blocks(blco, list->coords, block_nnz,
                      static_cast<struct slc_gpu_blco_block *>(blco->host_blocks.data));
    indices = static_cast<uint64_t *>(blco->host_indices.data);
    for (uint64_t i = 0; i < blco->nnz; i++) {
        indices[i] = index_of(blco, list->coords + i * blco->order);
    }
    return cudaSuccess;
}

cudaError_t slc_gpu_blco_upload_blocks(struct slc_gpu_blco *blco, cudaStream_t stream)
{
    return slc_staged_create(reinterpret_cast<void **>(&blco->blocks), blco->host_blocks.data,
                             blco->block_count * sizeof *blco->blocks, stream);
}

cudaError_t slc_gpu_blco_upload(struct slc_gpu_blco *blco, cudaStream_t stream)
{
    SLC_CUDA_TRY(slc_gpu_blco_upload_blocks(blco, stream));
    SLC_CUDA_TRY(slc_staged_create(reinterpret_cast<void **>(&blco->indices),
                                   blco->host_indices.data, blco->nnz * sizeof *blco->indices,
                                   stream));
    slc_buffer_destroy(&blco->host_indices);
    return slc_staged_create(&blco->values, blco->host_values,
                             blco->nnz * slc_value_bytes(blco->type), stream);
}

/* ---- maps */

/* Counts the work-groups and, if `groups` is not NULL, describes each. */
static uint64_t
find_groups(const struct slc_gpu_blco *blco, uint32_t elements, struct slc_gpu_blco_group *groups)
{
    const struct slc_gpu_blco_block *blocks =
        static_cast<const struct slc_gpu_blco_block *>(blco->host_blocks.data);
    uint64_t count = 0;

    for (uint64_t b = 0; b < blco->block_count; b++) {
        const uint64_t end = b + 1 < blco->block_count ? blocks[b + 1].first : blco->nnz;

        for (uint64_t first = blocks[b].first; first < end; first += elements) {
            const uint64_t left = end - first;

            if (groups != nullptr) {
                groups[count].first = first;
                groups[count].count = static_cast<uint32_t>(left < elements ? left : elements);
                groups[count].block = static_cast<uint32_t>(b);
            }
            count++;
        }
    }
    return count;
}

const struct slc_gpu_blco_map *slc_gpu_blco_find_map(const struct slc_gpu_blco *blco,
                                                     uint32_t elements)
{
    for (unsigned k = 0; k < SLC_BLCO_MAPS; k++) {
        if (blco->maps[k].elements == elements) {
            return &blco->maps[k];
        }
    }
    return nullptr;
}

static cudaError_t make_map(struct slc_gpu_blco_map *map,
                            const struct slc_gpu_blco *blco,
                            uint32_t elements,
                            cudaStream_t stream)
{
    const uint64_t start_ns = slc_clock_ns();
    cudaError_t error;

    map->count = find_groups(blco, elements, nullptr);
    if (map->count > INT32_MAX) {
        return cudaErrorInvalidValue;
    }
    if (slc_buffer_create(&map->host, map->count * sizeof(struct slc_gpu_blco_group),
                          SLC_PAGES_HUGE, nullptr) != SLC_OK) {
        return cudaErrorMemoryAllocation;
    }
    (void)find_groups(blco, elements, static_cast<struct slc_gpu_blco_group *>(map->host.data));
    error = slc_staged_create(reinterpret_cast<void **>(&map->groups), map->host.data,
                              map->count * sizeof *map->groups, stream);
    if (error != cudaSuccess) {
        slc_buffer_destroy(&map->host);
        return error;
    }
    map->elements = elements;
    map->seconds = slc_seconds_since(start_ns);
    return cudaSuccess;
}

cudaError_t slc_gpu_blco_map(struct slc_gpu_blco *blco,
                             uint32_t elements,
                             cudaStream_t stream,
                             const struct slc_gpu_blco_map **map)
{
    cudaError_t error;

    *map = slc_gpu_blco_find_map(blco, elements);
    if (*map != nullptr) {
        return cudaSuccess;
    }
    for (unsigned k = 0; k < SLC_BLCO_MAPS; k++) {
        if (blco->maps[k].elements == 0) {
            error = make_map(&blco->maps[k], blco, elements, stream);
            *map = error == cudaSuccess ? &blco->maps[k] : nullptr;
            return error;
        }
    }
    return cudaErrorInvalidValue;
}

struct slc_gpu_blco_part slc_gpu_blco_whole(const struct slc_gpu_blco *blco,
                                            const struct slc_gpu_blco_map *map)
{
    struct slc_gpu_blco_part part = {};

    part.order = blco->order;
    part.type = blco->type;
    memcpy(part.shift, blco->shift, sizeof part.shift);
    memcpy(part.bits, blco->bits, sizeof part.bits);
    part.indices = blco->indices;
    part.values = blco->values;
    part.blocks = blco->blocks;
    part.groups = map->groups;
    part.group_count = static_cast<uint32_t>(map->count);
    return part;
}

void slc_gpu_blco_destroy(struct slc_gpu_blco *blco)
{
    (void)cudaFree(blco->indices);
    (void)cudaFree(blco->values);
    (void)cudaFree(blco->blocks);
    slc_buffer_destroy(&blco->host_indices);
    slc_buffer_destroy(&blco->host_blocks);
    for (unsigned k = 0; k < SLC_BLCO_MAPS; k++) {
        (void)cudaFree(blco->maps[k].groups);
        slc_buffer_destroy(&blco->maps[k].host);
    }
    memset(blco, 0, sizeof *blco);
}
