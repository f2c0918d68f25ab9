/*
 * Key splitters: coordinates that cut the tensor into buckets of about equal size, chosen from a
 * sample before the mode lengths are known. Bucket b holds the coordinates from splitter b - 1
 * (inclusive) to splitter b (exclusive) in key order.
 */
#ifndef SLC_CONVERT_SPLITTERS_H
#define SLC_CONVERT_SPLITTERS_H

#include "base/error.h"
#include "convert/key_tables.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    SLC_SPLITTER_SAMPLE_MAX = 1 << 16, /* more coordinates would not even out the buckets much */
    SLC_BUCKETS_MAX = 4096,
    /* Cells of the table where a search starts: 8 KiB, a few cells per splitter. */
    SLC_SPLITTER_CELLS = 4096
};

struct slc_splitters {
    unsigned order;
    struct slc_fiber_run run;
    uint32_t count;   /* splitters; one bucket more */
    uint64_t *coords; /* count x order, ascending */
    /*
     * Keys under provisional bit widths, a little above what the sample needs: they compare like
     * coordinates as long as these fit. Not `keyed` where they would exceed 128 bits.
     */
    bool keyed;
    struct slc_key_layout layout;
    struct slc_key_tables tables;
    uint64_t *key_lo; /* ascending; behind them a cell's most, of all ones */
    uint64_t *key_hi;
    /* The highest bits of a key, up to those of the last splitter, name a cell. */
    unsigned cell_shift;
    uint32_t cell_most;                          /* splitters in any one cell */
    uint16_t cell_start[SLC_SPLITTER_CELLS + 1]; /* splitters below the cell */
};

/*
 * Chooses at most buckets - 1 splitters from `rows` (count x order coordinates; sorted in place),
 * in the order of keys with the fiber run `run`. Equal ones are merged, so heavy coordinates give
 * fewer. Owns: slc_splitters_destroy, which takes an all-zero struct. Errors: SLC_ERR_MEMORY.
 */
enum slc_status slc_splitters_choose(struct slc_splitters *splitters,
                                     unsigned order,
                                     struct slc_fiber_run run,
                                     uint64_t *rows,
                                     uint32_t count,
                                     uint32_t buckets,
                                     struct slc_error *err) SLC_NODISCARD;
void slc_splitters_destroy(struct slc_splitters *splitters);

/*
 * Buckets of the entries begin .. begin + count - 1 (count at most SLC_KEY_BATCH) of coordinate
 * columns, after `index_base` is subtracted from every coordinate. Cost: about 8 ns an entry for a
 * hundred buckets.
 */
void slc_splitters_find(const struct slc_splitters *splitters,
                        const uint64_t *const *coords,
                        uint32_t begin,
                        uint32_t count,
                        uint64_t index_base,
                        uint32_t *buckets);

/* Number of keys (ascending) that are <= key: a binary search without branches on the data. */
uint32_t slc_keys_upper(
    const uint64_t *lo, const uint64_t *hi, uint32_t count, uint64_t key_lo, uint64_t key_hi);

#endif
