/* Divides the rows of a mode into ranges, for passes over ranges of rows (engine/stream/stream.h):
 * one worker computes all nonzeros of a range, more than once if necessary, while the blocks with
 * these nonzeros stay in memory. */
#ifndef SLC_ENGINE_ROW_RANGES_H
#define SLC_ENGINE_ROW_RANGES_H

#include "base/error/error.h"
#include "storage/block/reader.h"

#include <stdbool.h>
#include <stdint.h>

struct slc_row_range {
    uint64_t first_row, end_row;       /* ranges are disjoint and cover all rows of the mode */
    uint64_t first_block, block_count; /* all blocks with nonzeros in these rows */
    uint64_t nnz; /* nonzeros of these blocks, including nonzeros in rows of other ranges */
};

struct slc_row_ranges {
    unsigned mode;
    /* True if a block may have rows of several ranges. Tiles are then restricted to rows of the
     * range. */
    bool shared;
    uint64_t count;
    struct slc_row_range *ranges; /* ranges in the order in which workers claim them */
    uint64_t block_count;
    uint64_t *block_order; /* all blocks, ordered by the first range that needs them */
    /* Largest number of blocks of a range. Passes need as many slots. May be reduced if no pass
     * includes larger ranges. */
    uint64_t max_blocks;
    uint64_t max_bytes; /* largest number of padded bytes of the blocks of a range */
};

/* Divides mode `mode` of a layout into ranges.
 *
 * In a layout that is sorted by the mode, a range is a partition, or several partitions if they
 * share a split row. The ranges are in file order if `in_order`, otherwise largest first.
 *
 * In any other layout, the ranges are in file order. A range may end after a block if all later
 * blocks have only larger rows. Neighbouring ranges may share blocks. If keys begin with bits of
 * the mode (base/key.h: the surplus bits of the largest mode), a range may also end within a block,
 * between rows that differ in these bits. max_bytes shows whether the division is useful: if rows
 * are complete only near the end of the file, one range has most of the blocks.
 *
 * Ownership: release with slc_row_ranges_destroy. Cost: a few scans of all index entries. Errors:
 * SLC_ERR_MEMORY. */
enum slc_status slc_row_ranges_make(const struct slc_reader *reader,
                                    unsigned mode,
                                    bool in_order,
                                    struct slc_row_ranges *ranges,
                                    struct slc_error *err) SLC_NODISCARD;
/* Releases the ranges. Accepts an all-zero struct. */
void slc_row_ranges_destroy(struct slc_row_ranges *ranges);
/* Determines the blocks of the ranges first .. end - 1: the positions *first_block .. *end_block -
 * 1 in block_order. If blocks are shared, these blocks may also belong to earlier or later ranges.
 * Cost: a scan of the ranges. */
void slc_row_ranges_blocks(const struct slc_row_ranges *ranges,
                           uint64_t first,
                           uint64_t end,
                           uint64_t *first_block,
                           uint64_t *end_block);
/* Returns the bytes that `ranges` occupies. */
uint64_t slc_row_ranges_memory_bytes(const struct slc_row_ranges *ranges);

#endif
