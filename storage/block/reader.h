/* Opens a block file, checks everything that can be checked without reading its blocks, and checks
 * encoded blocks in memory; storage/codec/decoder.h decodes them. Files are not trusted: every
 * count and offset is checked before use, and a block is decoded only after its checksum
 * matched. */
#ifndef SLC_STORAGE_READER_H
#define SLC_STORAGE_READER_H

#include "base/error/error.h"
#include "storage/block/writer.h"
#include "storage/codec/decoder.h"
#include "storage/codec/layout_info.h"
#include "storage/file/files.h"

#include <stdbool.h>
#include <stdint.h>

/* A partition of a sorted-n layout: consecutive blocks that hold whole rows of mode n, or part of a
 * single row that was too large for one partition. Rows ascend from partition to partition. */
struct slc_partition {
    uint64_t first_block;
    uint64_t block_count;
    uint64_t nnz;
    uint64_t padded_bytes; /* padded bytes of its blocks, which are contiguous */
    uint64_t first_row;    /* smallest and largest coordinate of its nonzeros in mode n */
    uint64_t last_row;
    bool continued; /* continues the row of the previous partition */
};

struct slc_reader;

/* Opens a block file and validates header, closing page and index. Memory: the index, 88 + 16 N
 * bytes per block, and 32 bytes per block for the partitions of sorted-n.
 * `files` may be NULL and is borrowed until the reader is closed; `path` is copied. Ownership:
 * release with slc_reader_close, which accepts NULL. Errors: SLC_ERR_IO; SLC_ERR_FORMAT (not a
 * block file); SLC_ERR_UNSUPPORTED (newer version, unknown reserved bits); SLC_ERR_DAMAGED (wrong
 * checksum, size or count) with file and offset. */
enum slc_status slc_reader_open(const struct slc_files *files,
                                const char *path,
                                struct slc_reader **reader,
                                struct slc_error *err) SLC_NODISCARD;
/* Like slc_reader_open, but returns SLC_ERR_BUDGET, before reading the index, if the index alone
 * needs more than `memory_bytes`. An index of up to 8 MiB is always read, so that the caller can
 * report the smallest budget that suffices for its whole run. */
enum slc_status slc_reader_open_within(const struct slc_files *files,
                                       const char *path,
                                       uint64_t memory_bytes,
                                       struct slc_reader **reader,
                                       struct slc_error *err) SLC_NODISCARD;
void slc_reader_close(struct slc_reader *reader);

const struct slc_layout_info *slc_reader_info(const struct slc_reader *reader);
const char *slc_reader_path(const struct slc_reader *reader);
/* Returns the table of file operations with which the file was opened. */
const struct slc_files *slc_reader_files(const struct slc_reader *reader);
/* Decodes the index entry of block number `block` < block_count. */
void slc_reader_entry(const struct slc_reader *reader,
                      uint64_t block,
                      struct slc_block_entry *entry);
/* Sets *partition to partition `ordinal` < partition_count of a sorted-n file. Cost: constant. */
void slc_reader_partition(const struct slc_reader *reader,
                          uint64_t ordinal,
                          struct slc_partition *partition);
/* Returns the bytes of memory that the reader holds, for the memory plan. */
uint64_t slc_reader_memory_bytes(const struct slc_reader *reader);

/* Checks `data` (entry.padded_bytes bytes) against the index: checksum, block header, tile
 * directory. If `verified`, skips the checksum, for a cached block that was checked before. `view`
 * borrows the reader and `data`. Cost: one xxh3 pass. Threads: any number on one reader.
 * Errors: SLC_ERR_DAMAGED with file, block and offset. */
enum slc_status slc_block_open(const struct slc_reader *reader,
                               uint64_t block,
                               const void *data,
                               bool verified,
                               struct slc_block_view *view,
                               struct slc_error *err) SLC_NODISCARD;

#endif
