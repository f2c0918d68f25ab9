/* Compares each nonzero with the one before it, and marks its indices in one bitmap per mode. */
#include "tools/bench/fpga/fiber_count.h"

#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "storage/scan/store_scan.h"

#include <stdbool.h>
#include <string.h>

struct scan {
    unsigned order, mode;
    bool begun;
    uint64_t last[SLC_MAX_ORDER]; /* coordinates of the last nonzero */
    uint64_t *seen[SLC_MAX_ORDER];
    struct fiber_count *count;
};

static enum slc_status
count_rows(void *context, unsigned worker, struct slc_scan_rows *rows, struct slc_error *err)
{
    struct scan *scan = context;

    (void)worker, (void)err;
    for (uint32_t i = 0; i < rows->count; i++) {
        bool same = scan->begun;

        for (unsigned n = 0; n < scan->order; n++) {
            const uint64_t index = rows->coords[n][i];
            const uint64_t bit = UINT64_C(1) << (index % 64);

            same = same && (n == scan->mode || index == scan->last[n]);
            scan->last[n] = index;
            scan->count->slices[n] += (scan->seen[n][index / 64] & bit) == 0;
            scan->seen[n][index / 64] |= bit;
        }
        scan->begun = true;
        scan->count->fibers += !same;
    }
    return SLC_OK;
}

enum slc_status fiber_count_scan(const struct slc_store *store,
                                 const struct fiber_order_options *options,
                                 struct fiber_count *count,
                                 struct slc_error *err)
{
    const struct slc_manifest *manifest = &store->manifest;
    struct scan scan = {.order = manifest->order, .mode = options->mode, .count = count};
    struct slc_fiber_order order = {.store = NULL};
    struct slc_buffer bits = SLC_BUFFER_INIT;
    uint64_t words = 0;

    memset(count, 0, sizeof *count);
    for (unsigned n = 0; n < manifest->order; n++) {
        words += slc_div_up_u64(manifest->dims[n], 64);
    }
    SLC_TRY(slc_buffer_create(&bits, words * sizeof(uint64_t), SLC_PAGES_SMALL, err));
    words = 0;
    for (unsigned n = 0; n < manifest->order; n++) {
        scan.seen[n] = (uint64_t *)bits.data + words;
        words += slc_div_up_u64(manifest->dims[n], 64);
    }
    enum slc_status status = fiber_order_open(&order, store, options, err);
    if (status == SLC_OK) {
        struct slc_store ordered = *store;

        ordered.reader = order.reader;
        status = slc_store_scan(&ordered, 1, NULL, count_rows, &scan, err);
    }
    fiber_order_close(&order);
    slc_buffer_destroy(&bits);
    return status;
}
