/* Counts the nonempty fibers of a mode and the nonempty slices of all modes of a store. */
#ifndef SLC_TOOLS_BENCH_FIBER_COUNT_H
#define SLC_TOOLS_BENCH_FIBER_COUNT_H

#include "storage/manifest/store.h"
#include "tools/report/fiber_order.h"

#include <stdint.h>

struct fiber_count {
    uint64_t fibers;
    uint64_t slices[SLC_MAX_ORDER]; /* per mode: indices that occur */
};

/* Counts by one scan of a layout that keeps the fibers of `options->mode` whole; if the store has
 * none, of a temporary store (engine/product/fiber_order.h). Memory: one bit per index of all
 * modes. Errors: those of opening the layout and of the scan; SLC_ERR_MEMORY. */
enum slc_status fiber_count_scan(const struct slc_store *store,
                                 const struct fiber_order_options *options,
                                 struct fiber_count *count,
                                 struct slc_error *err) SLC_NODISCARD;

#endif
