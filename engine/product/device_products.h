/*
 * Products of tiles (tile_products.h) on a device: implements the table with
 * engine/product/products.h. Tiles may arrive in any order.
 */
#ifndef SLC_ENGINE_DEVICE_PRODUCTS_H
#define SLC_ENGINE_DEVICE_PRODUCTS_H

#include "engine/product/products.h"
#include "engine/product/tile_products.h"

/* Options, state and results. */
struct slc_device_products {
    struct slc_device *device; /* NULL: workers multiply all tiles */
    struct slc_hybrid_wish hybrid;
    unsigned streams; /* streams of the device, 1 to SLC_DEVICE_STREAMS; 0: chosen by the plan */
    bool optional; /* continue without the device if it has too little memory or cannot be opened */

    /* Results of the last plan. */
    bool used;            /* the device computes */
    struct slc_error why; /* why the device is not used */
    struct slc_plan_gpu plan;
    struct slc_products_report report; /* set when the device is closed */

    /* Private. */
    const struct slc_reader *reader;
    unsigned threads, workers;
    struct slc_products *products;
    /* Per worker: start time if the worker multiplies its tile itself, otherwise 0. */
    uint64_t *start_ns;
};

/* Returns the table of operations of `products`, which must outlive the table. */
struct slc_tile_products slc_device_products_table(struct slc_device_products *products);

#endif
