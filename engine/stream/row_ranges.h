/*
 * Ranges of the rows of a mode, for passes in two phases (engine/stream/stream.h): one worker
 * computes all nonzeros of a range twice in a row, while the blocks that hold them stay in memory.
 */
#ifndef SLC_ENGINE_ROW_RANGES_H
#define SLC_ENGINE_ROW_RANGES_H

#include "base/error/error.h"
#include "storage/block/reader.h"

#include <stdbool.h>
#include <stdint.h>

struct slc_row_range {
    uint64_t first_row, end_row;       /* ranges are disjoint and cover all rows of the mode */
    uint64_t first_block, block_count; /* every block with nonzeros in these rows */
    uint64_t nnz; /* nonzeros of these blocks, including those in rows of other ranges */
};

struct slc_row_ranges {
    unsigned mode;
    /* Blocks may hold rows of several ranges, so tiles are filtered row by row. */
    bool shared;
    uint64_t count;
    struct slc_row_range *ranges; /* ranges in the order in which workers claim them */
    uint64_t block_count;
    uint64_t *block_order; /* all blocks, each at the first range that needs it */
    uint64_t max_blocks;   /* largest number of blocks of a range */
    uint64_t max_bytes;    /* largest number of padded bytes of the blocks of a range */
};

/*
 * Divides mode `mode` of a layout into ranges.
 *
 * In a layout sorted by the mode, a range is a partition, or all partitions that share a split row.
 * The ranges are in file order if `in_order`, otherwise largest first.
 *
 * In any other layout, the ranges are in file order. Rows may be cut at any row before which all
 * rows are complete, so that no later block has an earlier row; neighbouring ranges share the
 * blocks at the cut. If keys begin with bits of the mode (base/key.h: the surplus bits of the
 * largest mode), blocks are also cut between rows that differ in these bits, which are adjacent in
 * the file. max_bytes shows the cost of this division: if the scan completes rows late, max_bytes
 * is most of the file.
 *
 * Owns: release with slc_row_ranges_destroy. Cost: a few scans of all index entries. Errors:
 * SLC_ERR_MEMORY.
 */
enum slc_status slc_row_ranges_make(const struct slc_reader *reader,
                                    unsigned mode,
                                    bool in_order,
                                    struct slc_row_ranges *ranges,
                                    struct slc_error *err) SLC_NODISCARD;
/* Accepts an all-zero struct. */
void slc_row_ranges_destroy(struct slc_row_ranges *ranges);
/* Determines the blocks of ranges [first, end): positions [*first_block, *end_block) in
 * block_order. If blocks are shared, they may also belong to earlier or later ranges. Cost: a scan
 * of the ranges. */
void slc_row_ranges_blocks(const struct slc_row_ranges *ranges,
                           uint64_t first,
                           uint64_t end,
                           uint64_t *first_block,
                           uint64_t *end_block);
/* Bytes held by slc_row_ranges_make, for plans. */
uint64_t slc_row_ranges_memory_bytes(const struct slc_row_ranges *ranges);

#endif
