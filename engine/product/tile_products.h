/*
 * Interface of multiplying tiles in place of a contraction's workers (contract.h), or of some of
 * them, on a device (device_products.h).
 */
#ifndef SLC_ENGINE_TILE_PRODUCTS_H
#define SLC_ENGINE_TILE_PRODUCTS_H

#include "base/block.h"
#include "base/device.h"
#include "base/error/error.h"
#include "base/matrix.h"
#include "storage/block/reader.h"

#include <stdint.h>

/* The plan of a pass that also uses a device. */
struct slc_products_plan {
    /* Number of workers that keeps both sides busy. The caller counts their own memory. */
    unsigned workers;
    uint64_t host_bytes; /* host memory that `open` allocates */
};

/*
 * A device that multiplies tiles, fiber by fiber, in one or more modes, in addition to or in place
 * of CPU workers (--device, --split):
 *
 *     plan -> open -> { take -> more .. -> leave } by all workers .. -> close
 */
struct slc_tile_products {
    void *self;
    /*
     * Plans products of a layout in `modes` (bit n: mode n) with matrices of `columns` columns, if
     * `threads` workers could multiply tiles on the CPU; 0: one worker and the least memory that
     * works. May be called repeatedly; `open` uses the last plan. Errors: SLC_ERR_BUDGET naming the
     * --device-memory that is enough; never if the device is optional: then workers multiply every
     * tile.
     */
    enum slc_status (*plan)(void *self,
                            const struct slc_reader *reader,
                            uint32_t modes,
                            uint32_t columns,
                            unsigned threads,
                            struct slc_products_plan *plan,
                            struct slc_error *err);
    /*
     * Opens the device with an f64 matrix per mode, a row per index; NULL for the kept modes. The
     * caller owns them and keeps them until `close`. Errors: SLC_ERR_MEMORY, SLC_ERR_SYSTEM;
     * nothing is held then.
     */
    enum slc_status (*open)(void *self,
                            const struct slc_matrix *const matrices[SLC_MAX_ORDER],
                            struct slc_error *err);
    /*
     * Chooses who multiplies the worker's tile. The device: *fibers has the first fibers of its
     * nonzeros, with f64 sums, valid until `more` or `leave`. The worker: fibers->count is 0. May
     * wait for other workers to leave, so a worker must not wait for another's tile in between.
     * Errors: SLC_ERR_DAMAGED, SLC_ERR_SYSTEM; do not call `leave` then.
     */
    enum slc_status (*take)(void *self,
                            unsigned worker,
                            struct slc_tile_view *tile,
                            struct slc_device_fibers *fibers,
                            struct slc_error *err);
    /* The next fibers of the worker's tile, if *fibers says that there are more. Errors: as take,
     * but the worker must call `leave`. */
    enum slc_status (*more)(void *self,
                            unsigned worker,
                            struct slc_device_fibers *fibers,
                            struct slc_error *err);
    /*
     * Called when the worker no longer needs the fibers, or has multiplied the tile, or failed to.
     */
    void (*leave)(void *self, unsigned worker);
    void (*close)(void *self);
};

#endif
