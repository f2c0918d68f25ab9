/* Divides the tiles of a product between CPU workers and the lanes of a device (base/device.h).
 * Each side has places: one per CPU worker that may compute, and one per lane. A worker that has a
 * tile requests a place for it, and waits if none is free.
 *
 * In [XPLAT] section 3.3 the device starts with the largest tiles. Here it cannot: all tiles except
 * the last have the same size, and if results are delivered in file order, tiles must be computed
 * in about this order. Only the number of tiles per side can be chosen:
 *
 *     static    the device gets a fixed fraction of the tiles, evenly spread; the ordinal of a tile
 *               alone determines its side
 *     queue     a tile goes to the side with a free place, the device first
 *     adaptive  the first tenth of the tiles is a queue, whose measurements determine a fraction;
 *               the rest is divided by this fraction as in `static`
 *
 * Waiting: with `in_order`, each side assigns places in the order of tile ordinals, so a worker may
 * keep its place while it waits for earlier tiles. Without `in_order`, a worker that has a place
 * must not wait for another worker's tile. */
#ifndef SLC_ENGINE_HYBRID_TILES_H
#define SLC_ENGINE_HYBRID_TILES_H

#include "base/error/error.h"
#include "base/memory/limits.h"
#include "engine/hybrid/hybrid.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct slc_hybrid_tiles_options {
    /* SLC_HYBRID_NONE works like SLC_HYBRID_QUEUE; use it if one side has no places. */
    struct slc_hybrid_wish wish;
    /* Number of places per side, at most SLC_MAX_THREADS; at least 1 for a side that may get
     * tiles. */
    unsigned places[SLC_HYBRID_PARTS];
    uint64_t tiles; /* number of tiles of the pass */
    bool in_order; /* see the file comment; every ordinal below `tiles` must request a place once */
};

/* Statistics of both sides. */
struct slc_hybrid_tiles_report {
    uint64_t tiles[SLC_HYBRID_PARTS];
    uint64_t nnz[SLC_HYBRID_PARTS];
    double seconds[SLC_HYBRID_PARTS]; /* computing time, summed over the side's places */
    /* the device's fraction of the tiles that were divided by a fraction; negative if none were */
    double fraction;
};

/* `mutex` protects all members after it. */
struct slc_hybrid_tiles {
    struct slc_hybrid_tiles_options options;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool aborted;
    uint64_t assigned; /* number of tiles whose side is chosen */
    /* the device's fraction; if negative, a tile goes to a side with a free place */
    double fraction;
    uint64_t divided; /* tiles of an adaptive pass that were divided by the fraction */
    struct {
        /* Number of requests for a place, and the request that gets the next free place. */
        uint64_t tickets, serving;
        unsigned free;
        uint16_t numbers[SLC_MAX_THREADS]; /* numbers of the free places */
        uint64_t tiles, nnz, busy_ns;
    } side[SLC_HYBRID_PARTS];
};

/* A place that a worker holds. */
struct slc_hybrid_place {
    enum slc_hybrid_side side;
    unsigned number; /* below the side's number of places; unique while held */
};

/* Initializes the division of one pass. Ownership: release with slc_hybrid_tiles_destroy. */
void slc_hybrid_tiles_init(struct slc_hybrid_tiles *queue,
                           const struct slc_hybrid_tiles_options *options);
void slc_hybrid_tiles_destroy(struct slc_hybrid_tiles *queue);

/* Waits until the tile `ordinal` has a place. Errors: SLC_ERR_INTERRUPTED after
 * slc_hybrid_tiles_abort. */
enum slc_status slc_hybrid_tiles_acquire(struct slc_hybrid_tiles *queue,
                                         uint64_t ordinal,
                                         struct slc_hybrid_place *place,
                                         struct slc_error *err) SLC_NODISCARD;
/* Records the time spent on a tile or on a part of a tile. One call per tile passes its number of
 * nonzeros as `nnz`; all other calls for the tile pass 0. */
void slc_hybrid_tiles_computed(struct slc_hybrid_tiles *queue,
                               const struct slc_hybrid_place *place,
                               uint64_t nnz,
                               uint64_t busy_ns);
void slc_hybrid_tiles_release(struct slc_hybrid_tiles *queue, const struct slc_hybrid_place *place);

/* Wakes all waiting workers and rejects all later requests for places. Any thread may call it. */
void slc_hybrid_tiles_abort(struct slc_hybrid_tiles *queue);

/* Fills `report`. Needs: no place is in use. */
void slc_hybrid_tiles_report(const struct slc_hybrid_tiles *queue,
                             struct slc_hybrid_tiles_report *report);

#endif
