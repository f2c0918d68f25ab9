/* Gathers the nonzeros of ranges in memory, with the keys of the layout that is being built. A scan
 * visits tiles in file order. In this order, places in the ranges are reserved for the nonzeros of
 * each tile. The places are filled later, concurrently with those of other tiles. The result
 * therefore does not depend on threads. The nonzeros of a range are in file order. If the keys of
 * the layout differ from those of the file, the caller must sort the nonzeros. */
#ifndef SLC_CONVERT_SORTED_GATHER_H
#define SLC_CONVERT_SORTED_GATHER_H

#include "base/error/error.h"
#include "convert/build/sort/column_sort.h"
#include "storage/scan/tile_scan.h"

#include <stdbool.h>
#include <stdint.h>

/* A range: the nonzeros in rows first_row to last_row with keys from first_key to last_key. Two
 * neighbouring ranges have either the same rows and different keys, or different rows. */
struct slc_gather_range {
    uint64_t first_row, last_row;
    slc_u128 first_key, last_key;
    uint64_t sibling; /* number of preceding ranges with the same rows */
    uint64_t nnz;
};

/* A sampled key, and the number of its range. */
struct slc_gather_sample {
    slc_u128 key;
    uint64_t range;
};

struct slc_gather;

/* Returns the memory of a gatherer in bytes: scratch for one tile per worker. A call also needs the
 * memory of a scan (storage/scan/tile_scan.h). */
uint64_t
slc_gather_memory_bytes(const struct slc_layout_info *info, unsigned workers, uint64_t ranges_max);

/* `scan`: the file to read, and the mode whose indices are called rows. `keys`: borrowed keys of
 * the layout to be built. `ranges_max`: maximum number of ranges per call. Ownership: release with
 * slc_gather_destroy. */
enum slc_status slc_gather_create(const struct slc_tile_scan_options *scan,
                                  const struct slc_key_layout *keys,
                                  uint64_t ranges_max,
                                  struct slc_gather **gather,
                                  struct slc_error *err) SLC_NODISCARD;
void slc_gather_destroy(struct slc_gather *gather); /* accepts NULL */

/* Gathers ranges, which must ascend by row and then by key, into consecutive memory. Errors: those
 * of a scan; SLC_ERR_DAMAGED if a range does not have exactly `nnz` nonzeros in the file. */
enum slc_status slc_gather_ranges(struct slc_gather *gather,
                                  const struct slc_gather_range *ranges,
                                  uint64_t count,
                                  const struct slc_key_columns *out,
                                  struct slc_error *err) SLC_NODISCARD;

/* Sets `nnz` of each range to its number of nonzeros in the file. Errors: those of a scan. */
enum slc_status slc_gather_count(struct slc_gather *gather,
                                 struct slc_gather_range *ranges,
                                 uint64_t count,
                                 struct slc_error *err) SLC_NODISCARD;

/* Samples nonzeros of ranges, each with probability `chance` / 2^64. The choice depends only on
 * the key. Keeps only the first `capacity` samples. Errors: those of a scan. */
enum slc_status slc_gather_sample(struct slc_gather *gather,
                                  const struct slc_gather_range *ranges,
                                  uint64_t count,
                                  uint64_t chance,
                                  struct slc_gather_sample *samples,
                                  uint64_t capacity,
                                  uint64_t *drawn,
                                  struct slc_error *err) SLC_NODISCARD;

#endif
