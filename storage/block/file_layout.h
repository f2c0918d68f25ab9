/* Byte offsets in a block file's header, index and closing page (docs/FORMAT.md, section 4), and
 * the structs that hold these three parts in memory. Only the reader and the writer use them; the
 * layout of a block is in block_layout.h. */
#ifndef SLC_STORAGE_FILE_LAYOUT_H
#define SLC_STORAGE_FILE_LAYOUT_H

#include "base/memory/limits.h"
#include "storage/codec/layout_info.h"

#include <stdint.h>

#define SLC_FILE_MAGIC    "\x89SLC\r\n\x1a\n"
#define SLC_CLOSING_MAGIC "\x89SLCEND\n"

enum {
    SLC_MAGIC_BYTES = 8,
    SLC_FORMAT_MAJOR = 1,
    SLC_FORMAT_MINOR = 0,

    SLC_HEADER_BYTES = SLC_PAGE_BYTES,
    SLC_HEADER_MAJOR = 8,
    SLC_HEADER_MINOR = 10,
    SLC_HEADER_OWN_BYTES = 12,
    SLC_HEADER_RESERVED_BITS = 16,
    SLC_HEADER_OPTIONAL_BITS = 24,
    SLC_HEADER_LAYOUT = 32,
    SLC_HEADER_LAYOUT_MODE = 33,
    SLC_HEADER_VALUE_TYPE = 34,
    SLC_HEADER_ORDER = 35,
    SLC_HEADER_CODEC = 36,
    SLC_HEADER_NNZ = 40,
    SLC_HEADER_SUM_OF_SQUARES = 48,
    SLC_HEADER_BLOCK_COUNT = 56,
    SLC_HEADER_TILE_COUNT = 64,
    SLC_HEADER_INDEX_OFFSET = 72,
    SLC_HEADER_INDEX_BYTES = 80,
    SLC_HEADER_INDEX_HASH = 88,
    SLC_HEADER_FILE_BYTES = 96,
    SLC_HEADER_CONTENT_SUM = 104,
    SLC_HEADER_RUN_MODE = 112,
    SLC_HEADER_RUN_BITS = 113,
    /* this field and the next are 0 if SLC_CONTENT_RUN_BIT is not set */
    SLC_HEADER_CONTENT_MODE = 114,
    SLC_HEADER_CONTENT_BITS = 115,
    SLC_HEADER_ZERO_A = 116, /* 12 zero bytes */
    SLC_HEADER_DIMS = 128,
    SLC_HEADER_ZERO_B = 256, /* zeros from here to the hash */
    SLC_HEADER_HASH = 4088,

    SLC_INDEX_OFFSET = 0,
    SLC_INDEX_BYTES = 8,
    SLC_INDEX_NNZ = 16,
    SLC_INDEX_HASH = 24,
    SLC_INDEX_FIRST_TILE = 32,
    SLC_INDEX_TILE_COUNT = 40,
    SLC_INDEX_CODEC = 44,
    SLC_INDEX_FIRST_KEY = 48,
    SLC_INDEX_SUM_OF_SQUARES = 64,
    SLC_INDEX_CONTENT_SUM = 72,
    SLC_INDEX_PARTITION = 80,       /* sorted-n: partition; fiber-n: fibers that end in the block */
    SLC_INDEX_PARTITION_FLAGS = 84, /* u32 */
    SLC_INDEX_RANGES = 88,          /* N smallest coordinates, then N largest */

    SLC_CLOSING_BYTES = SLC_PAGE_BYTES,
    SLC_CLOSING_HEADER_HASH = 8,
    SLC_CLOSING_INDEX_OFFSET = 16,
    SLC_CLOSING_INDEX_BYTES = 24,
    SLC_CLOSING_INDEX_HASH = 32,
    SLC_CLOSING_FILE_BYTES = 40,
    SLC_CLOSING_ZERO = 48, /* zeros from here to the hash */
    SLC_CLOSING_HASH = 4088
};

/* Reserved bit: set if content sums use keys with another fiber run than the file's keys. */
#define SLC_CONTENT_RUN_BIT (UINT64_C(1) << 16)
/* Reserved bit of a file in which values may be 0. */
#define SLC_ZEROS_BIT (UINT64_C(1) << 17)

/* Returns the bytes of one index entry of a tensor with `order` modes. */
static inline uint64_t slc_index_entry_bytes(unsigned order)
{
    return SLC_INDEX_RANGES + UINT64_C(16) * order;
}

/* Partition flag: the partition continues the row of the previous partition. */
#define SLC_PARTITION_CONTINUED UINT32_C(1)

/* True if the keys of the block `next` must be above the keys of the previous block, which is in
 * partition `before`. */
static inline bool slc_keys_ascend_across(const struct slc_layout_info *info,
                                          uint32_t before,
                                          const struct slc_block_entry *next)
{
    return info->layout != SLC_LAYOUT_SORTED || next->partition == before || next->continued;
}

/* Makes the checks of slc_block_open. The caller has set all members of `view`. */
enum slc_status slc_block_check(const struct slc_layout_info *info,
                                const struct slc_block_view *view,
                                bool verified,
                                struct slc_error *err) SLC_NODISCARD;
/* True if the hash, header and directory of the block at `data` agree with `entry` and with the
 * number `block`. `entry` need not come from a checked index. If true, *last_key is the last key of
 * the block. Threads: any. */
bool slc_block_agrees(const struct slc_layout_info *info,
                      uint64_t block,
                      const struct slc_block_entry *entry,
                      const void *data,
                      slc_u128 *last_key);

/* The layout info, and the header fields that only the reader and the writer need. */
struct slc_file_header {
    /* members about the largest block and about partitions come from the index */
    struct slc_layout_info info;
    uint64_t index_offset;
    uint64_t index_bytes; /* size of the index with padding */
    uint64_t index_hash;
};

/* Encodes the header into `page`, including its hash, and sets header->info.header_hash. */
void slc_header_encode(struct slc_file_header *header, uint8_t *page);
void slc_closing_encode(const struct slc_file_header *header, uint8_t *page);
/* Encodes slc_index_entry_bytes(order) bytes; entry->padded_bytes is not stored. */
void slc_index_entry_encode(const struct slc_block_entry *entry, unsigned order, uint8_t *bytes);

/* Decodes a header page and performs all checks that need only this page; returns the statuses of
 * FORMAT.md, section 4.1. `file_bytes` is the actual size of the file. Errors carry the offset of
 * the field within the page, but not the file name. */
enum slc_status slc_header_decode(const uint8_t *page,
                                  uint64_t file_bytes,
                                  struct slc_file_header *header,
                                  struct slc_error *err) SLC_NODISCARD;
/* Compares the closing page with the header. Errors: SLC_ERR_DAMAGED with offset in the file. */
enum slc_status slc_closing_check(const uint8_t *page,
                                  const struct slc_file_header *header,
                                  struct slc_error *err) SLC_NODISCARD;
/* Decodes one index entry without checking it. */
void slc_index_entry_decode(const uint8_t *bytes, unsigned order, struct slc_block_entry *entry);

/* Returns the offset of the first byte in [from, to) of `bytes` that is not 0, or `to`. */
uint64_t slc_find_nonzero(const uint8_t *bytes, uint64_t from, uint64_t to);

#endif
