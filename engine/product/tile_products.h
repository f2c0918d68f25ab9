/*
 * What multiplies tiles in place of a contraction's workers (contract.h), or of some of them: a
 * device (device_products.h).
 */
#ifndef SLC_ENGINE_TILE_PRODUCTS_H
#define SLC_ENGINE_TILE_PRODUCTS_H

#include "base/block.h"
#include "base/device.h"
#include "base/error/error.h"
#include "base/matrix.h"
#include "storage/block/reader.h"

#include <stdint.h>

/* Of a pass that multiplies on a device, too. */
struct slc_products_plan {
    /* As many keep both sides busy. What each takes by itself the caller counts for all of them. */
    unsigned workers;
    uint64_t host_bytes; /* memory of the host that `open` takes */
};

/*
 * A device that multiplies tiles, fiber by fiber, in one mode or more, beside workers that do so
 * themselves or in place of them, as its owner was asked (--device, --split):
 *
 *     plan -> open -> { take -> more .. -> leave } by all workers .. -> close
 */
struct slc_tile_products {
    void *self;
    /*
     * For products of a layout in `modes` (bit n: mode n) with matrices of `columns` columns where
     * `threads` workers could compute by themselves; 0: one, and the least of all else that works.
     * Can be asked several times; what was asked last is what `open` opens. Errors: SLC_ERR_BUDGET
     * naming the --device-memory that is enough; never where its owner may do without it: then
     * every tile is the worker's own.
     */
    enum slc_status (*plan)(void *self,
                            const struct slc_reader *reader,
                            uint32_t modes,
                            uint32_t columns,
                            unsigned threads,
                            struct slc_products_plan *plan,
                            struct slc_error *err);
    /*
     * A matrix for each of the modes, f64, a row for each index; NULL for the modes that stay. They
     * are the caller's until `close`. Errors: SLC_ERR_MEMORY, SLC_ERR_SYSTEM; nothing is held then.
     */
    enum slc_status (*open)(void *self,
                            const struct slc_matrix *const matrices[SLC_MAX_ORDER],
                            struct slc_error *err);
    /*
     * Has the worker's tile multiplied where it is to be: on the device, then *fibers are the first
     * that it has nonzeros of, with f64 sums, until `more` or `leave`; or by the worker itself,
     * then fibers->count is 0. May wait for other workers to leave: nobody may wait for another's
     * tile in between. Errors: SLC_ERR_DAMAGED, SLC_ERR_SYSTEM; there is nothing to leave then.
     */
    enum slc_status (*take)(void *self,
                            unsigned worker,
                            struct slc_tile_view *tile,
                            struct slc_device_fibers *fibers,
                            struct slc_error *err);
    /* The next fibers of the worker's tile, where the last ones say that there are more. Errors: as
     * take, but the worker has to leave. */
    enum slc_status (*more)(void *self,
                            unsigned worker,
                            struct slc_device_fibers *fibers,
                            struct slc_error *err);
    /* The worker needs the fibers no longer, or has multiplied the tile, or failed to. */
    void (*leave)(void *self, unsigned worker);
    void (*close)(void *self);
};

#endif
