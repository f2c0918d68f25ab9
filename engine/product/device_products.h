/* Multiplies tiles on a device: implements the interface tile_products.h with
 * engine/product/products.h. Tiles may arrive in any order. */
#ifndef SLC_ENGINE_DEVICE_PRODUCTS_H
#define SLC_ENGINE_DEVICE_PRODUCTS_H

#include "engine/product/products.h"
#include "engine/product/tile_products.h"

/* Options, state and results. */
struct slc_device_products {
    struct slc_device *device; /* NULL: workers multiply all tiles */
    struct slc_hybrid_wish hybrid;
    unsigned streams; /* streams of the device, 1 to SLC_DEVICE_STREAMS; 0: chosen by the plan */
    /* true: continue without the device if it has too little memory or cannot be opened */
    bool optional;

    /* Results of the last plan. */
    bool used;            /* true if the device is used */
    struct slc_error why; /* the reason why the device is not used */
    struct slc_plan_gpu plan;
    struct slc_products_report report; /* set when the device is closed */

    /* Private to device_products.c. */
    const struct slc_reader *reader;
    unsigned threads, workers;
    struct slc_products *products;
    /* Per worker: the start time if the worker itself multiplies its tile, otherwise 0. */
    uint64_t *start_ns;
};

/* Returns the table of operations of `products`, which must outlive the table. */
struct slc_tile_products slc_device_products_table(struct slc_device_products *products);

#endif
