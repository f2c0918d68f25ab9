/*
 * Opens a block file, checks everything that can be checked without reading its blocks, and checks
 * encoded blocks in memory, which storage/codec/decoder.h decodes. Nothing in a file is trusted:
 * every count and offset is checked before use, and a block only yields tiles after its checksum
 * held.
 */
#ifndef SLC_STORAGE_READER_H
#define SLC_STORAGE_READER_H

#include "base/error/error.h"
#include "storage/block/writer.h"
#include "storage/codec/decoder.h"
#include "storage/codec/layout_info.h"
#include "storage/file/files.h"

#include <stdbool.h>
#include <stdint.h>

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

#endif
