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
    struct slc_device *device; /* NULL: workers multiply every tile */
    struct slc_hybrid_wish hybrid;
    unsigned streams; /* 1 to SLC_DEVICE_STREAMS; 0: chosen */
    bool optional;    /* continue without a device that has too little memory or cannot be opened */

    /* Of the last plan. */
    bool used;            /* the device computes */
    struct slc_error why; /* why the device is not used */
    struct slc_plan_gpu plan;
    struct slc_products_report report; /* set when closed */

    /* Private. */
    const struct slc_reader *reader;
    unsigned threads, workers;
    struct slc_products *products;
    uint64_t *start_ns; /* start time per worker that multiplies its tile itself; otherwise 0 */
};

/* The table of `products`, which must outlive it. */
struct slc_tile_products slc_device_products_table(struct slc_device_products *products);

#endif
