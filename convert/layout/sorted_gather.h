/*
 * Brings the nonzeros of ranges together in memory, under the keys of a layout that is being built.
 * A scan meets nonzeros in the order of the file that is read, and each tile reserves, in its turn,
 * the next places in the ranges it has nonzeros of, and fills them when it likes. So what comes out
 * does not depend on threads; where the keys are those of the file it is in their order, and else
 * the caller sorts each range.
 */
#ifndef SLC_CONVERT_SORTED_GATHER_H
#define SLC_CONVERT_SORTED_GATHER_H

#include "base/error/error.h"
#include "convert/build/sort/column_sort.h"
#include "storage/scan/tile_scan.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Nonzeros that are kept together: of some rows, those with keys from first_key to last_key.
 * Neighbours have either the same rows and other keys, or other rows.
 */
struct slc_gather_range {
    uint64_t first_row, last_row;
    slc_u128 first_key, last_key;
    uint64_t sibling; /* how many ranges before it have the same rows */
    uint64_t nnz;
};

/* A key that was drawn, and the range it belongs to. */
struct slc_gather_sample {
    slc_u128 key;
    uint64_t range;
};

struct slc_gather;

/* Memory: scratch for a tile per worker, which a call adds a scan's to (storage/scan/tile_scan.h).
 */
uint64_t
slc_gather_memory_bytes(const struct slc_layout_info *info, unsigned workers, uint64_t ranges_max);

/*
 * `scan`: the file that is read, and the mode whose coordinates are rows; `keys`: of the layout to
 * be built, borrowed; `ranges_max`: of one call.
 */
enum slc_status slc_gather_create(const struct slc_tile_scan_options *scan,
                                  const struct slc_key_layout *keys,
                                  uint64_t ranges_max,
                                  struct slc_gather **gather,
                                  struct slc_error *err) SLC_NODISCARD;
void slc_gather_destroy(struct slc_gather *gather); /* takes NULL */

/*
 * Gathers ranges, ascending by row and then by key, one behind the other. Errors: those of a scan;
 * SLC_ERR_DAMAGED where the file holds other numbers of nonzeros than the ranges say.
 */
enum slc_status slc_gather_ranges(struct slc_gather *gather,
                                  const struct slc_gather_range *ranges,
                                  uint64_t count,
                                  const struct slc_key_columns *out,
                                  struct slc_error *err) SLC_NODISCARD;

/* Counts the nonzeros of ranges, into their nnz. Errors: those of a scan. */
enum slc_status slc_gather_count(struct slc_gather *gather,
                                 struct slc_gather_range *ranges,
                                 uint64_t count,
                                 struct slc_error *err) SLC_NODISCARD;

/*
 * Draws nonzeros of ranges, each with a chance of `chance` / 2^64 that depends on its key alone;
 * of more than `room` only the first. Errors: those of a scan.
 */
enum slc_status slc_gather_sample(struct slc_gather *gather,
                                  const struct slc_gather_range *ranges,
                                  uint64_t count,
                                  uint64_t chance,
                                  struct slc_gather_sample *samples,
                                  uint64_t room,
                                  uint64_t *drawn,
                                  struct slc_error *err) SLC_NODISCARD;

#endif
