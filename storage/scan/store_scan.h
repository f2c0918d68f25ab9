/* Passes all nonzeros of a store to a callback, a few thousand at a time, on several threads. */
#ifndef SLC_CONVERT_STORE_SCAN_H
#define SLC_CONVERT_STORE_SCAN_H

#include "base/error/error.h"
#include "base/error/stop.h"
#include "base/memory/limits.h"
#include "storage/manifest/store.h"

#include <stdint.h>

/* Consecutive nonzeros in memory of the worker, which the callback may change. */
struct slc_scan_rows {
    uint64_t sequence; /* unique per call, ascending in the layout's order */
    uint32_t count;
    uint64_t *coords[SLC_MAX_ORDER];
    double *values;
};

/* Called concurrently by workers 0 .. workers-1. Each worker passes its nonzeros in the layout's
 * order. */
typedef enum slc_status
slc_scan_fn(void *context, unsigned worker, struct slc_scan_rows *rows, struct slc_error *err);

/* Returns the bytes that a scan maps: a block, a decoder and rows per worker (tile_scan.h). */
uint64_t slc_store_scan_memory_bytes(const struct slc_layout_info *info, unsigned workers);

/* Returns a number that is above all sequence numbers of a scan. */
uint64_t slc_store_scan_sequences(const struct slc_layout_info *info);

/* Calls `fn` for all nonzeros of the open store. With one worker, all calls are in the layout's
 * order. `stop` may be NULL. Errors: the first error of `fn` or of reading; SLC_ERR_DAMAGED with
 * file, block and offset. */
enum slc_status slc_store_scan(const struct slc_store *store,
                               unsigned workers,
                               const struct slc_stop *stop,
                               slc_scan_fn *fn,
                               void *context,
                               struct slc_error *err) SLC_NODISCARD;

#endif
