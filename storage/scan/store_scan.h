/* All nonzeros of a store, a few thousand at a time, by several threads. */
#ifndef SLC_CONVERT_STORE_SCAN_H
#define SLC_CONVERT_STORE_SCAN_H

#include "base/error/error.h"
#include "base/error/stop.h"
#include "base/memory/limits.h"
#include "storage/manifest/store.h"

#include <stdint.h>

/* Consecutive nonzeros. The consumer may change them: they are the worker's own. */
struct slc_scan_rows {
    uint64_t sequence; /* another for every call, ascending with the layout's order */
    uint32_t count;
    uint64_t *coords[SLC_MAX_ORDER];
    double *values;
};

/* Called by workers 0 .. workers-1 at the same time, by each with rows in the layout's order. */
typedef enum slc_status
slc_scan_fn(void *context, unsigned worker, struct slc_scan_rows *rows, struct slc_error *err);

/* What a scan maps: a block, a decoder and rows per worker (storage/scan/tile_scan.h). */
uint64_t slc_store_scan_memory_bytes(const struct slc_layout_info *info, unsigned workers);

/* All sequence numbers of a scan are below this. */
uint64_t slc_store_scan_sequences(const struct slc_layout_info *info);

/*
 * Calls `fn` for all nonzeros of the open store. With one worker in the layout's order. `stop` may
 * be NULL. Errors: the first of `fn` or of reading; SLC_ERR_DAMAGED names file, block and offset.
 */
enum slc_status slc_store_scan(const struct slc_store *store,
                               unsigned workers,
                               const struct slc_stop *stop,
                               slc_scan_fn *fn,
                               void *context,
                               struct slc_error *err) SLC_NODISCARD;

#endif
