/* Products of tiles (engine/product/tile_products.h) for the tests of contraction, on the CPU in
 * the simplest way. Counts violations of the contract by the caller. */
#ifndef SLC_FAKE_PRODUCTS_H
#define SLC_FAKE_PRODUCTS_H

#include "engine/product/tile_products.h"

#include <pthread.h>

enum fake_side {
    FAKE_ALL,  /* all tiles are multiplied here */
    FAKE_NONE, /* the worker itself multiplies all tiles */
    FAKE_ODD,  /* every other tile is multiplied here */
    FAKE_FREE  /* a tile is multiplied here if a lane is free */
};

enum { FAKE_LANES = 4, FAKE_COLUMNS = 3 };

/* Zero-initialized except `table`, `side`, `lanes`, `room` and `columns`. */
struct fake_products {
    struct slc_tile_products table;
    enum fake_side side;
    unsigned lanes;      /* 1 .. FAKE_LANES */
    uint32_t room;       /* fibers delivered at a time */
    uint32_t columns;    /* columns of the matrices, up to FAKE_COLUMNS; 0: 1 */
    uint64_t host_bytes; /* host memory that the table reports */
    uint64_t refuse;     /* number of the fallible call that fails, from 1; 0: none */
    uint64_t damaged;    /* ordinal of the damaged tile, from 1; 0: none */

    unsigned calls;  /* number of calls that may fail */
    unsigned wrongs; /* violations of the contract */
    unsigned plans, opens, closes;
    uint64_t here, elsewhere; /* tiles multiplied here and by workers */
    bool is_open;

    pthread_mutex_t mutex;
    pthread_cond_t changed;
    uint32_t modes; /* contracted modes */
    const struct slc_matrix *vectors[SLC_MAX_ORDER];
    struct slc_used used[SLC_MAX_ORDER];
    uint64_t planned[SLC_MAX_ORDER];            /* used indices of the last plan, upper bounds */
    struct fake_lane *lane_of[SLC_MAX_THREADS]; /* lane of each worker's tile; NULL: none */
    bool inside[SLC_MAX_THREADS];               /* whether the worker is between take and leave */
    struct fake_lane *lane;                     /* array of `lanes` lanes */
};

void fake_products_begin(struct fake_products *fake);
/* Checks that it is closed and all workers have left; resets the counts. */
void fake_products_end(struct fake_products *fake);

#endif
