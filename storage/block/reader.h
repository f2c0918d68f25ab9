/*
 * Opens a block file, checks everything that can be checked without reading its blocks, and turns
 * encoded blocks in memory into tiles. Nothing in a file is trusted: every count and offset is
 * checked before use, and a block only yields tiles after its checksum held.
 */
#ifndef SLC_STORAGE_READER_H
#define SLC_STORAGE_READER_H

#include "base/block.h"
#include "base/error/error.h"
#include "base/key.h"
#include "storage/block/writer.h"
#include "storage/codec/codec.h"
#include "storage/file/files.h"

#include <stdbool.h>
#include <stdint.h>

/* The header of a block file. */
struct slc_layout_info {
    enum slc_layout_kind layout;
    unsigned layout_mode; /* 0-based mode of sorted-n and fiber-n; 0 for blco */
    enum slc_codec codec; /* of new blocks; each block records its own */
    enum slc_value_type value_type;
    unsigned order;
    uint64_t dims[SLC_MAX_ORDER];
    uint64_t relabelled_modes; /* bit n: indices of mode n are those of the store's permutation */
    struct slc_key_layout keys;
    /*
     * What the content sum is taken over: keys of the same coordinates with the run of the store's
     * `blco`, so that all layouts of a store have one sum whatever their own runs are.
     */
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
    uint64_t fiber_count;         /* of fiber-n: all that are not empty; 0 for other layouts */
    uint64_t partition_count;     /* of sorted-n; 0 for other layouts */
    uint64_t max_partition_bytes; /* padded bytes of the blocks of the largest partition */
    uint64_t max_partition_nnz;
};

/* One entry of the index. */
struct slc_block_entry {
    uint64_t offset;       /* in the file, a multiple of SLC_PAGE_BYTES */
    uint64_t bytes;        /* payload without padding */
    uint64_t padded_bytes; /* what is read and checksummed: a multiple of SLC_PAGE_BYTES */
    uint64_t nnz;
    uint64_t hash; /* xxh3-64 of the padded bytes */
    uint64_t first_tile;
    uint32_t tile_count;
    enum slc_codec codec;
    uint64_t first_key_lo, first_key_hi;
    double sum_of_squares;
    uint64_t content_sum;
    /* Of sorted-n: ordinal of the partition it belongs to, from 0. Of fiber-n: fibers whose last
       nonzero it holds. */
    uint32_t partition;
    bool continued; /* the partition's row began in the one before */
    uint64_t min[SLC_MAX_ORDER];
    uint64_t max[SLC_MAX_ORDER];
};

/*
 * A partition of sorted-n: consecutive blocks that hold whole rows of mode n, or a piece of one row
 * that was too large for a partition. Rows ascend from one to the next.
 */
struct slc_partition {
    uint64_t first_block;
    uint64_t block_count;
    uint64_t nnz;
    uint64_t padded_bytes; /* of its blocks, which lie one after another */
    uint64_t first_row;    /* smallest and largest coordinate of mode n that occur */
    uint64_t last_row;
    bool continued; /* a further piece of the row of the partition before */
};

struct slc_reader;

/*
 * Opens and validates header, closing page and index. Memory: the index, 88 + 16 N bytes a block,
 * and 32 bytes a block for the partitions of sorted-n.
 * `files` may be NULL; `path` is copied. Owns: slc_reader_close, which takes NULL.
 * Errors: SLC_ERR_IO; SLC_ERR_FORMAT (not a block file); SLC_ERR_UNSUPPORTED (newer version,
 * unknown reserved bits); SLC_ERR_DAMAGED (a checksum, size or count does not hold) with file and
 * offset.
 */
enum slc_status slc_reader_open(const struct slc_files *files,
                                const char *path,
                                struct slc_reader **reader,
                                struct slc_error *err) SLC_NODISCARD;
/*
 * The same within a budget: a file whose index alone takes more than `memory_bytes` is refused
 * before the index is read. Small ones, up to 8 MiB, are read whatever the budget, so that the
 * caller can name the smallest that is enough for all it does. Errors: SLC_ERR_BUDGET, too.
 */
enum slc_status slc_reader_open_within(const struct slc_files *files,
                                       const char *path,
                                       uint64_t memory_bytes,
                                       struct slc_reader **reader,
                                       struct slc_error *err) SLC_NODISCARD;
void slc_reader_close(struct slc_reader *reader);

const struct slc_layout_info *slc_reader_info(const struct slc_reader *reader);
const char *slc_reader_path(const struct slc_reader *reader);
/* Entry `block` < block_count. */
void slc_reader_entry(const struct slc_reader *reader,
                      uint64_t block,
                      struct slc_block_entry *entry);
/* Partition `ordinal` < partition_count of a sorted-n file. Cost: constant. */
void slc_reader_partition(const struct slc_reader *reader,
                          uint64_t ordinal,
                          struct slc_partition *partition);
/* Bytes of memory the reader holds, for the plan. */
uint64_t slc_reader_memory_bytes(const struct slc_reader *reader);

/* An encoded block in memory, found sound. Borrows `data`. */
struct slc_block_view {
    const struct slc_reader *reader;
    uint64_t block;
    struct slc_block_entry entry;
    const uint8_t *data;
};

/*
 * Checks `data` (entry.padded_bytes at `data`) against the index: checksum (unless `verified`, for
 * a block that was checked when it was cached), block header, tile directory. `view` borrows both.
 * Cost: one xxh3 pass. Threads: any number on one reader.
 * Errors: SLC_ERR_DAMAGED with file, block and offset.
 */
enum slc_status slc_block_open(const struct slc_reader *reader,
                               uint64_t block,
                               const void *data,
                               bool verified,
                               struct slc_block_view *view,
                               struct slc_error *err) SLC_NODISCARD;

/* Decodes tiles; one per worker. */
struct slc_decoder;

/*
 * `value_type`: type of the values it delivers, independent of how they are stored.
 * Scratch: about 1 MiB plus one chunk. Owns: slc_decoder_destroy, which takes NULL.
 */
enum slc_status slc_decoder_create(const struct slc_layout_info *info,
                                   enum slc_value_type value_type,
                                   struct slc_decoder **decoder,
                                   struct slc_error *err) SLC_NODISCARD;
void slc_decoder_destroy(struct slc_decoder *decoder);
/* From here on the decoder takes blocks of another layout of the same store. Cost: some copying. */
void slc_decoder_bind(struct slc_decoder *decoder, const struct slc_layout_info *info);
uint64_t slc_decoder_memory_bytes(const struct slc_layout_info *info,
                                  enum slc_value_type value_type);

/*
 * Points `tile` at tile `index` (0 .. entry.tile_count - 1) of an open block. The view uses the
 * decoder's scratch: one tile at a time per decoder. Errors: SLC_ERR_DAMAGED.
 */
enum slc_status slc_tile_open(struct slc_decoder *decoder,
                              const struct slc_block_view *block,
                              uint32_t index,
                              struct slc_tile_view *tile,
                              struct slc_error *err) SLC_NODISCARD;

/*
 * Restricts the process to instruction set `name` ("portable", "avx2", "avx512", "neon") for
 * decoding; NULL is the best this machine has. False when unknown or not available here. For tests
 * and benchmarks.
 */
bool slc_decoder_force(const char *name);

#endif
