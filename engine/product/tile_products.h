/* Interface of a device (device_products.h) that multiplies some or all tiles of a contraction
 * (contract.h) instead of the workers. */
#ifndef SLC_ENGINE_TILE_PRODUCTS_H
#define SLC_ENGINE_TILE_PRODUCTS_H

#include "base/block.h"
#include "base/device.h"
#include "base/error/error.h"
#include "base/matrix.h"
#include "base/used.h"
#include "storage/block/reader.h"

#include <stdint.h>

/* The plan of a pass that also uses a device. */
struct slc_products_plan {
    /* Number of workers that keeps CPU and device busy. The caller counts the memory of the
     * workers. */
    unsigned workers;
    uint64_t host_bytes; /* host memory that `open` allocates */
};

/* A device that multiplies tiles, fiber by fiber, in one or more modes, in addition to or instead
 * of CPU workers (--device, --split). The calls are, in this order:
 *
 *  1. `plan`, then `open`.
 *  2. Every worker, for each of its tiles: `take`, then `more` as long as there are more fibers,
 *     then `leave`.
 *  3. `close`. */
struct slc_tile_products {
    void *self;
    /* Plans products of a layout in `modes` (bit n: mode n) with matrices of `columns` columns.
     * used[n] states which rows the matrix of mode n has, where used[n].count may be an upper
     * bound; `used` may be NULL if all matrices have a row for each index. `threads` is the number
     * of workers that can multiply tiles on the CPU; 0 plans one worker and the smallest sufficient
     * memory. May be called repeatedly; `open` uses the last plan. Errors: SLC_ERR_BUDGET, with the
     * smallest sufficient device memory. An optional device causes no error: if it cannot be used,
     * workers multiply every tile. */
    enum slc_status (*plan)(void *self,
                            const struct slc_reader *reader,
                            uint32_t modes,
                            const struct slc_used used[SLC_MAX_ORDER],
                            uint32_t columns,
                            unsigned threads,
                            struct slc_products_plan *plan,
                            struct slc_error *err);
    /* Opens the device. matrices[n] is an f64 matrix with slc_used_elements(&used[n], dims[n]) rows
     * if mode n is contracted, and NULL if mode n is kept. The caller owns the matrices and the
     * maps of used indices, and must keep them until `close`. Errors: SLC_ERR_MEMORY,
     * SLC_ERR_SYSTEM; after an error the device is closed. */
    enum slc_status (*open)(void *self,
                            const struct slc_matrix *const matrices[SLC_MAX_ORDER],
                            const struct slc_used used[SLC_MAX_ORDER],
                            struct slc_error *err);
    /* Chooses whether the device or the worker multiplies the worker's tile. If the device does,
     * *fibers has the first fibers of the tile with f64 sums, valid until `more` or `leave`. If the
     * worker must multiply the tile, fibers->count is 0. The call may wait for other workers to
     * call `leave`, so a worker must not wait for the tile of another worker between `take` and
     * `leave`. Errors: SLC_ERR_DAMAGED, SLC_ERR_SYSTEM; after an error `leave` must not be
     * called. */
    enum slc_status (*take)(void *self,
                            unsigned worker,
                            struct slc_tile_view *tile,
                            struct slc_device_fibers *fibers,
                            struct slc_error *err);
    /* Sets *fibers to the next fibers of the worker's tile. Needs: *fibers states that more fibers
     * follow. Errors: those of `take`; even after an error the worker must call `leave`. */
    enum slc_status (*more)(void *self,
                            unsigned worker,
                            struct slc_device_fibers *fibers,
                            struct slc_error *err);
    /* Ends the worker's tile: called when the worker no longer needs the fibers, or has multiplied
     * the tile itself, or has failed to do so. */
    void (*leave)(void *self, unsigned worker);
    void (*close)(void *self);
};

#endif
