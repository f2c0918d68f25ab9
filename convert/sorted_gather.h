/*
 * Brings the nonzeros of ranges of rows together in memory, those of each range in ascending key
 * order. A scan meets nonzeros in that order already: so each tile reserves, in its turn, the next
 * places in the ranges it has nonzeros of, and fills them when it likes. Nothing is ever sorted,
 * and what comes out does not depend on threads.
 */
#ifndef SLC_CONVERT_SORTED_GATHER_H
#define SLC_CONVERT_SORTED_GATHER_H

#include "base/error.h"
#include "convert/tile_scan.h"

#include <stdbool.h>
#include <stdint.h>

/* Rows whose nonzeros are kept together: a partition's, or one row's that is cut in pieces. */
struct slc_row_range {
    uint64_t first_row, last_row;
    uint64_t nnz;
};

/* Gathered nonzeros: one array of low words, of high words where keys are wide, and of values. */
struct slc_gathered {
    uint64_t *key_lo;
    uint64_t *key_hi; /* NULL where keys have 64 bits at most */
    double *values;
};

/* From where on a range's nonzeros are still to be gathered. */
struct slc_gather_place {
    uint64_t tile;
    uint64_t skip; /* nonzeros of the range, from that tile on, that are not wanted any more */
};

struct slc_gather_options {
    const struct slc_files *files;
    const struct slc_reader *reader;
    unsigned workers;
    unsigned mode;
    uint64_t ranges_max;         /* of one call */
    const struct slc_stop *stop; /* may be NULL */
    void (*progress)(void *context, const char *phase, uint64_t done, uint64_t total); /* or NULL */
};

struct slc_gather;

/* Memory: scratch for a tile per worker, which a call adds a scan's to (convert/tile_scan.h). */
uint64_t
slc_gather_memory_bytes(const struct slc_layout_info *info, unsigned workers, uint64_t ranges_max);
enum slc_status slc_gather_create(const struct slc_gather_options *options,
                                  struct slc_gather **gather,
                                  struct slc_error *err) SLC_NODISCARD;
void slc_gather_destroy(struct slc_gather *gather); /* takes NULL */

/*
 * Gathers whole ranges, ascending, one behind the other. Errors: those of a scan; SLC_ERR_DAMAGED
 * where the file holds other numbers of nonzeros than the ranges say.
 */
enum slc_status slc_gather_ranges(struct slc_gather *gather,
                                  const struct slc_row_range *ranges,
                                  uint64_t count,
                                  const struct slc_gathered *out,
                                  struct slc_error *err) SLC_NODISCARD;

/*
 * Gathers `count` nonzeros of one range from `place` on, and moves that behind them.
 * Errors: as above, where there are fewer.
 */
enum slc_status slc_gather_piece(struct slc_gather *gather,
                                 const struct slc_row_range *range,
                                 struct slc_gather_place *place,
                                 uint64_t count,
                                 const struct slc_gathered *out,
                                 struct slc_error *err) SLC_NODISCARD;

#endif
