/*
 * The rows of a mode in ranges, for passes in two phases (engine/stream/stream.h): one worker takes
 * all nonzeros of a range, then all of them once more, while the blocks that hold them stay in
 * memory.
 */
#ifndef SLC_ENGINE_ROW_RANGES_H
#define SLC_ENGINE_ROW_RANGES_H

#include "base/error/error.h"
#include "storage/block/reader.h"

#include <stdbool.h>
#include <stdint.h>

struct slc_row_range {
    uint64_t first_row, end_row; /* ranges share no row, and together they have all of the mode */
    uint64_t first_block, block_count; /* every block that has nonzeros in these rows */
    uint64_t nnz;                      /* of these blocks, those of other ranges included */
};

struct slc_row_ranges {
    unsigned mode;
    /* Blocks may hold rows of several ranges: their tiles have to be looked at row by row. */
    bool shared;
    uint64_t count;
    struct slc_row_range *ranges; /* in the order in which workers take them */
    uint64_t block_count;
    uint64_t *block_order; /* all blocks, each where the first range that has it needs it */
    uint64_t max_blocks;   /* of a range */
    uint64_t max_bytes;    /* padded, of the blocks of a range */
};

/*
 * Cuts mode `mode` of a layout.
 *
 * A layout sorted by the mode: a range is a partition, or all pieces of a row that was split over
 * several; with `in_order` in file order, else largest first.
 *
 * Any other layout, in file order: a cut is where no later block has a row before it, and the
 * blocks that a range shares with its neighbours are those on either side of its cuts. Where keys
 * begin with bits of the mode (base/key.h: the surplus bits of the longest one), blocks are cut
 * between the rows that differ in these bits, too, which lie one behind the other. What the open
 * part of DESIGN section 7 takes is seen in max_bytes: where the scan closes rows late it is most
 * of the file.
 *
 * Owns: slc_row_ranges_destroy. Cost: some looks at every index entry. Errors: SLC_ERR_MEMORY.
 */
enum slc_status slc_row_ranges_make(const struct slc_reader *reader,
                                    unsigned mode,
                                    bool in_order,
                                    struct slc_row_ranges *ranges,
                                    struct slc_error *err) SLC_NODISCARD;
/* Takes an all-zero struct. */
void slc_row_ranges_destroy(struct slc_row_ranges *ranges);
/*
 * The blocks of ranges [first, end): positions [*first_block, *end_block) in block_order, which may
 * belong to ranges before or after these, too, where blocks are shared. Cost: a look at each range.
 */
void slc_row_ranges_blocks(const struct slc_row_ranges *ranges,
                           uint64_t first,
                           uint64_t end,
                           uint64_t *first_block,
                           uint64_t *end_block);
/* What slc_row_ranges_make holds, for plans. */
uint64_t slc_row_ranges_memory_bytes(const struct slc_row_ranges *ranges);

#endif
