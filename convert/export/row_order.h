/*
 * Nonzeros in ascending order of their coordinates, mode 1 first, as readers of NumPy's arrays
 * expect them: what a store of another order is written in within a budget. Nonzeros are counted
 * by the upper bits of that order; then each scan gathers the next ones that fit into memory, which
 * are sorted and written.
 */
#ifndef SLC_CONVERT_ROW_ORDER_H
#define SLC_CONVERT_ROW_ORDER_H

#include "base/error/error.h"
#include "convert/export/input_numbers.h"
#include "convert/export/list_output.h"
#include "storage/manifest/store.h"

#include <stdint.h>

struct slc_row_order_options {
    const struct slc_store *store;
    const struct slc_input_numbers *numbers; /* read already */
    struct slc_list_output *output;          /* open */
    uint64_t memory_bytes;                   /* of the process; 0: no limit */
    unsigned workers;
    const struct slc_stop *stop; /* ends it with SLC_ERR_INTERRUPTED; may be NULL */
    void (*progress)(void *context, const char *phase, uint64_t done, uint64_t total); /* or NULL */
    void *context;
};

/*
 * Writes all nonzeros into the lists. Cost: one scan where all of them fit into memory, else one to
 * count and one for each part that does. Errors: SLC_ERR_BUDGET naming what is enough; those of
 * slc_tile_scan and of writing.
 */
enum slc_status slc_row_order_write(const struct slc_row_order_options *options,
                                    struct slc_error *err) SLC_NODISCARD;

/*
 * What that would hold beside the process and how many scans it would make, bins that are alike
 * taken for granted; `output` is not looked at, nor `numbers`. Errors: SLC_ERR_BUDGET.
 */
enum slc_status slc_row_order_forecast(const struct slc_row_order_options *options,
                                       uint64_t *memory_bytes,
                                       uint64_t *scans,
                                       struct slc_error *err) SLC_NODISCARD;

#endif
