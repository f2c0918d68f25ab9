/*
 * Products of tiles (tile_products.h) by a device: engine/product/products.h behind that table.
 * Tiles come in any order.
 */
#ifndef SLC_ENGINE_DEVICE_PRODUCTS_H
#define SLC_ENGINE_DEVICE_PRODUCTS_H

#include "engine/product/products.h"
#include "engine/product/tile_products.h"

/* What computes, and what it has done. */
struct slc_device_products {
    struct slc_device *device; /* NULL: every tile is the worker's own */
    struct slc_hybrid_wish hybrid;
    unsigned streams; /* 1 to SLC_DEVICE_STREAMS; 0: chosen */
    bool optional; /* a device that has too little memory, or cannot be opened, is done without */

    /* Of the last plan. */
    bool used;            /* the device computes */
    struct slc_error why; /* where it does not, but was to: why */
    struct slc_plan_gpu plan;
    struct slc_products_report report; /* once closed */

    /* Private. */
    const struct slc_reader *reader;
    unsigned threads, workers;
    struct slc_products *products;
    uint64_t *start_ns; /* of each worker that multiplies its tile itself; else 0 */
};

/* The table of `products`, which has to live as long. */
struct slc_tile_products slc_device_products_table(struct slc_device_products *products);

#endif
