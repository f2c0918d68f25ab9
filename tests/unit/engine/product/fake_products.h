/*
 * Products of tiles (engine/product/tile_products.h) for the tests of contraction, on the processor
 * and by the shortest way. It notes whether whoever uses it keeps to the rules.
 */
#ifndef SLC_FAKE_PRODUCTS_H
#define SLC_FAKE_PRODUCTS_H

#include "engine/product/tile_products.h"

#include <pthread.h>

enum fake_side {
    FAKE_ALL,  /* every tile is multiplied here */
    FAKE_NONE, /* by the worker itself */
    FAKE_ODD,  /* every other one here */
    FAKE_FREE  /* here where a lane is free */
};

enum { FAKE_LANES = 4 };

/* Zeros but for `table`, `side`, `lanes` and `room`. */
struct fake_products {
    struct slc_tile_products table;
    enum fake_side side;
    unsigned lanes;      /* 1 .. FAKE_LANES */
    uint32_t room;       /* fibers delivered at a time */
    uint64_t host_bytes; /* that it says it takes */
    uint64_t refuse;     /* the call that may fail that does so, counting from 1; 0: none */
    uint64_t damaged;    /* ordinal of the tile that is, counting from 1; 0: none */

    unsigned calls;  /* that may fail */
    unsigned wrongs; /* rules that were broken */
    unsigned plans, opens, closes;
    uint64_t here, elsewhere; /* tiles */
    bool is_open;

    pthread_mutex_t mutex;
    pthread_cond_t changed;
    uint32_t modes; /* that are contracted */
    const struct slc_matrix *vectors[SLC_MAX_ORDER];
    struct fake_lane *lane_of[SLC_MAX_THREADS]; /* of each worker's tile; NULL: none */
    bool inside[SLC_MAX_THREADS];               /* between take and leave */
    struct fake_lane *lane;                     /* lanes of them */
};

void fake_products_begin(struct fake_products *fake);
/* Closed, and nobody inside; resets what was counted. */
void fake_products_end(struct fake_products *fake);

#endif
