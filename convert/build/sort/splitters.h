/* Chooses key splitters from a sample, before the mode sizes are known. Splitters are coordinates
 * that cut the tensor into buckets of about equal size. Bucket b holds the coordinates from
 * splitter b - 1 (inclusive) to splitter b (exclusive) in key order.
 *
 * Buckets are found by comparing keys (struct slc_splitter_keys). Any layout that can hold the
 * splitters works, because layouts with the same fiber run order coordinates in the same way. */
#ifndef SLC_CONVERT_SPLITTERS_H
#define SLC_CONVERT_SPLITTERS_H

#include "base/error/error.h"
#include "base/key.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    SLC_SPLITTER_SAMPLE_MAX = 1 << 16, /* larger samples hardly balance the buckets better */
    SLC_BUCKETS_MAX = 4096,
    /* Number of cells of the table in which a search starts: 8 KiB, a few cells per splitter. */
    SLC_SPLITTER_CELLS = 4096
};

struct slc_splitters {
    unsigned order;
    struct slc_fiber_run run;
    uint32_t count;   /* number of splitters; the number of buckets is one larger */
    uint64_t *coords; /* count x order coordinates of the splitters, ascending */
    /* Largest coordinates of the sample; all zero without a sample. */
    uint64_t largest[SLC_MAX_ORDER];
};

/* Chooses at most buckets - 1 splitters from `rows` (count x order coordinates; sorted in place),
 * in key order under the fiber run `run`. Equal splitters are merged, so frequent coordinates
 * reduce the number of splitters. Ownership: release with slc_splitters_destroy, which accepts an
 * all-zero struct. Errors: SLC_ERR_MEMORY. */
enum slc_status slc_splitters_choose(struct slc_splitters *splitters,
                                     unsigned order,
                                     struct slc_fiber_run run,
                                     uint64_t *rows,
                                     uint32_t count,
                                     uint32_t buckets,
                                     struct slc_error *err) SLC_NODISCARD;
void slc_splitters_destroy(struct slc_splitters *splitters);

/* Splitters as keys under one layout. */
struct slc_splitter_keys {
    uint32_t count;
    bool wide;    /* keys have more than 64 bits */
    uint64_t *lo; /* low words of keys, ascending, then `cell_most` words of all ones */
    uint64_t *hi;
    /* Key bits from `cell_shift` to the highest bit of the last splitter select a cell. */
    unsigned cell_shift;
    uint32_t cell_most;                          /* largest number of splitters in one cell */
    uint16_t cell_start[SLC_SPLITTER_CELLS + 1]; /* number of splitters below each cell */
};

/* `layout`: must fit every splitter. Ownership: release with slc_splitter_keys_destroy, which
 * accepts an all-zero struct. Errors: SLC_ERR_MEMORY. */
enum slc_status slc_splitter_keys_init(struct slc_splitter_keys *keys,
                                       const struct slc_splitters *splitters,
                                       const struct slc_key_layout *layout,
                                       struct slc_error *err) SLC_NODISCARD;
void slc_splitter_keys_destroy(struct slc_splitter_keys *keys);

/* Finds the buckets of `count` keys; hi is used only if keys are wide. Cost: 3 ns per key for a
 * hundred buckets. */
void slc_splitter_keys_find(const struct slc_splitter_keys *keys,
                            const uint64_t *lo,
                            const uint64_t *hi,
                            uint32_t count,
                            uint32_t *buckets);

/* Returns the number of keys, in an ascending array, that are <= the given key. The binary search
 * has no branches that depend on the data. */
uint32_t slc_keys_upper(
    const uint64_t *lo, const uint64_t *hi, uint32_t count, uint64_t key_lo, uint64_t key_hi);

#endif
