/* In-memory records of a block file: its header (struct slc_layout_info), an index entry (struct
 * slc_block_entry), and an encoded block (struct slc_block_view). storage/block/ reads and checks
 * them; decoders rely on them. */
#ifndef SLC_STORAGE_LAYOUT_INFO_H
#define SLC_STORAGE_LAYOUT_INFO_H

#include "base/key.h"
#include "base/matrix.h"
#include "base/memory/limits.h"
#include "storage/codec/codec.h"

#include <stdbool.h>
#include <stdint.h>

enum slc_layout_kind { SLC_LAYOUT_BLCO = 1, SLC_LAYOUT_SORTED = 2, SLC_LAYOUT_FIBER = 3 };

/* The header of a block file. */
struct slc_layout_info {
    enum slc_layout_kind layout;
    unsigned layout_mode; /* 0-based mode of sorted-n and fiber-n; 0 for blco */
    enum slc_codec codec; /* requested codec; each block records the codec that it uses */
    enum slc_value_type value_type;
    bool has_zeros; /* values may be 0 (convert --keep-zeros) */
    unsigned order;
    uint64_t dims[SLC_MAX_ORDER];
    uint64_t relabelled_modes; /* bit n is set if the store has a permutation for mode n */
    struct slc_key_layout keys;
    /* Keys of the content sum. They have the fiber run of the store's `blco`, so that all layouts
     * of a store have the same sum, regardless of the fiber runs of their keys. */
    struct slc_key_layout content_keys;
    uint64_t nnz;
    double sum_of_squares;
    uint64_t content_sum;
    uint64_t block_count;
    uint64_t tile_count;
    uint64_t file_bytes;
    uint64_t header_hash;
    uint64_t max_block_bytes; /* largest padded block, from the index */
    uint64_t max_block_nnz;
    uint64_t fiber_count;         /* fiber-n: number of nonempty fibers; 0 for other layouts */
    uint64_t partition_count;     /* sorted-n only; 0 for other layouts */
    uint64_t max_partition_bytes; /* padded bytes of the blocks of the largest partition */
    uint64_t max_partition_nnz;
};

/* One entry of the index. */
struct slc_block_entry {
    uint64_t offset;       /* offset in the file, a multiple of SLC_PAGE_BYTES */
    uint64_t bytes;        /* payload without padding */
    uint64_t padded_bytes; /* bytes read and hashed: a multiple of SLC_PAGE_BYTES */
    uint64_t nnz;
    uint64_t hash; /* xxh3-64 of the padded bytes */
    uint64_t first_tile;
    uint32_t tile_count;
    enum slc_codec codec;
    uint64_t first_key_lo, first_key_hi;
    double sum_of_squares;
    uint64_t content_sum;
    /* sorted-n: ordinal of the partition, 0-based. fiber-n: number of fibers that end here. */
    uint32_t partition;
    bool continued; /* the partition continues the row of the previous partition */
    uint64_t min[SLC_MAX_ORDER];
    uint64_t max[SLC_MAX_ORDER];
};

struct slc_reader; /* storage/block/reader.h */

/* An encoded block in memory that has been checked. Borrows `data` and `path`. */
struct slc_block_view {
    const struct slc_reader *reader;
    const char *path; /* path of the reader, for error messages; may be NULL */
    uint64_t block;
    struct slc_block_entry entry;
    const uint8_t *data;
};

#endif
