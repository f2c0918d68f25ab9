/* Byte offsets of a block (docs/FORMAT.md, section "Block"): its header, the tile directory, and
 * the slack at its end. The writer, the reader, the decoder and the verifier use these offsets. */
#ifndef SLC_STORAGE_BLOCK_LAYOUT_H
#define SLC_STORAGE_BLOCK_LAYOUT_H

#include "base/memory/bytes.h"
#include "base/memory/limits.h"

#include <stdint.h>
#include <string.h>

/* "SBLK" as a little-endian u32. */
#define SLC_BLOCK_MAGIC UINT32_C(0x4b4c4253)

/* Offsets within the block header. */
enum {
    SLC_BLOCK_AT_MAGIC = 0,        /* u32 */
    SLC_BLOCK_AT_CODEC = 4,        /* u16 */
    SLC_BLOCK_AT_ZERO16 = 6,       /* u16, zero */
    SLC_BLOCK_AT_ORDINAL = 8,      /* u64 */
    SLC_BLOCK_AT_NNZ = 16,         /* u64 */
    SLC_BLOCK_AT_TILE_COUNT = 24,  /* u32 */
    SLC_BLOCK_AT_ENTRY_BYTES = 28, /* u32 */
    SLC_BLOCK_AT_FIRST_TILE = 32,  /* u64 */
    SLC_BLOCK_AT_ZERO = 40,        /* 24 bytes, zero */
    SLC_BLOCK_HEADER_BYTES = 64    /* the tile directory starts here */
};

/* Offsets within a directory entry. */
enum {
    SLC_TILE_AT_DATA_OFFSET = 0, /* u64 */
    SLC_TILE_AT_DATA_BYTES = 8,  /* u32 */
    SLC_TILE_AT_NNZ = 12,        /* u32 */
    SLC_TILE_AT_FIRST_KEY = 16,  /* u64 lo, u64 hi */
    SLC_TILE_AT_LAST_KEY = 32,   /* u64 lo, u64 hi */
    SLC_TILE_AT_SQUARES = 48,    /* f64 */
    SLC_TILE_AT_CONTENT = 56,    /* u64 */
    SLC_TILE_AT_CORNER = 64      /* corner: u64 per mode; then extent: u32 per mode */
};

/* One directory entry, decoded but not yet checked. */
struct slc_tile_entry {
    uint64_t data_offset; /* offset from the start of the block */
    uint32_t data_bytes;
    uint32_t nnz;
    uint64_t first_lo, first_hi, last_lo, last_hi;
    double sum_of_squares;
    uint64_t content_sum;
    uint64_t corner[SLC_MAX_ORDER];
    uint32_t extent[SLC_MAX_ORDER];
};

static inline uint32_t slc_tile_entry_bytes(unsigned order)
{
    return (SLC_TILE_AT_CORNER + 12 * order + 7) & ~7U;
}

/* Returns the offset of entry `tile`, or of the directory's end if `tile` is the tile count. */
static inline uint64_t slc_tile_entry_offset(unsigned order, uint32_t tile)
{
    return SLC_BLOCK_HEADER_BYTES + (uint64_t)tile * slc_tile_entry_bytes(order);
}

/* Loads the slc_tile_entry_bytes(order) bytes at `bytes`; clears modes `order` and above. */
static inline void
slc_tile_entry_load(const void *bytes, unsigned order, struct slc_tile_entry *entry)
{
    const uint8_t *at = (const uint8_t *)bytes;

    memset(entry, 0, sizeof *entry);
    entry->data_offset = slc_load_u64(at + SLC_TILE_AT_DATA_OFFSET);
    entry->data_bytes = slc_load_u32(at + SLC_TILE_AT_DATA_BYTES);
    entry->nnz = slc_load_u32(at + SLC_TILE_AT_NNZ);
    entry->first_lo = slc_load_u64(at + SLC_TILE_AT_FIRST_KEY);
    entry->first_hi = slc_load_u64(at + SLC_TILE_AT_FIRST_KEY + 8);
    entry->last_lo = slc_load_u64(at + SLC_TILE_AT_LAST_KEY);
    entry->last_hi = slc_load_u64(at + SLC_TILE_AT_LAST_KEY + 8);
    entry->sum_of_squares = slc_load_f64(at + SLC_TILE_AT_SQUARES);
    entry->content_sum = slc_load_u64(at + SLC_TILE_AT_CONTENT);
    for (unsigned n = 0; n < order; n++) {
        entry->corner[n] = slc_load_u64(at + SLC_TILE_AT_CORNER + 8 * n);
        entry->extent[n] = slc_load_u32(at + SLC_TILE_AT_CORNER + 8 * order + 4 * n);
    }
}

/* Stores `entry` in the slc_tile_entry_bytes(order) bytes at `bytes`, including padding. */
static inline void
slc_tile_entry_store(void *bytes, unsigned order, const struct slc_tile_entry *entry)
{
    uint8_t *at = (uint8_t *)bytes;

    memset(at, 0, slc_tile_entry_bytes(order));
    slc_store_u64(at + SLC_TILE_AT_DATA_OFFSET, entry->data_offset);
    slc_store_u32(at + SLC_TILE_AT_DATA_BYTES, entry->data_bytes);
    slc_store_u32(at + SLC_TILE_AT_NNZ, entry->nnz);
    slc_store_u64(at + SLC_TILE_AT_FIRST_KEY, entry->first_lo);
    slc_store_u64(at + SLC_TILE_AT_FIRST_KEY + 8, entry->first_hi);
    slc_store_u64(at + SLC_TILE_AT_LAST_KEY, entry->last_lo);
    slc_store_u64(at + SLC_TILE_AT_LAST_KEY + 8, entry->last_hi);
    slc_store_f64(at + SLC_TILE_AT_SQUARES, entry->sum_of_squares);
    slc_store_u64(at + SLC_TILE_AT_CONTENT, entry->content_sum);
    for (unsigned n = 0; n < order; n++) {
        slc_store_u64(at + SLC_TILE_AT_CORNER + 8 * n, entry->corner[n]);
        slc_store_u32(at + SLC_TILE_AT_CORNER + 8 * order + 4 * n, entry->extent[n]);
    }
}

#endif
