/* Writes the nonzeros of a store in row-major order (by ascending index of mode 1, then of mode 2,
 * and so on), as readers of NumPy arrays expect, within a memory budget. A first scan counts
 * nonzeros by the upper bits of their keys. Each further scan gathers, sorts and writes as many of
 * the next nonzeros as fit in memory. */
#ifndef SLC_CONVERT_ROW_ORDER_H
#define SLC_CONVERT_ROW_ORDER_H

#include "base/error/error.h"
#include "convert/export/input_numbers.h"
#include "convert/export/list_output.h"
#include "storage/manifest/store.h"

#include <stdint.h>

struct slc_row_order_options {
    const struct slc_store *store;
    const struct slc_input_numbers *numbers; /* must already be read */
    struct slc_list_output *output;          /* must be open */
    uint64_t memory_bytes;                   /* budget of the process; 0: no limit */
    unsigned workers;
    const struct slc_stop *stop; /* stops with SLC_ERR_INTERRUPTED; may be NULL */
    void (*progress)(void *context, const char *phase, uint64_t done, uint64_t total); /* or NULL */
    void *context;
};

/* Writes all nonzeros to the lists. Cost: one scan if all nonzeros fit in memory; otherwise one
 * scan that counts, and one scan per part. Errors: SLC_ERR_BUDGET, which names a sufficient budget;
 * those of slc_tile_scan and of writing. */
enum slc_status slc_row_order_write(const struct slc_row_order_options *options,
                                    struct slc_error *err) SLC_NODISCARD;

/* Estimates the memory (without the process itself) and the number of scans, on the assumption that
 * nonzeros are spread evenly. options->output and options->numbers are ignored. Errors:
 * SLC_ERR_BUDGET. */
enum slc_status slc_row_order_forecast(const struct slc_row_order_options *options,
                                       uint64_t *memory_bytes,
                                       uint64_t *scans,
                                       struct slc_error *err) SLC_NODISCARD;

#endif
