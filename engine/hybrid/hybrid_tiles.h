/*
 * Division of the tiles of a product between workers of the CPU and lanes of a device
 * (base/device.h). Each side has a number of places; a worker with a tile requests a place and may
 * have to wait.
 *
 * All tiles but the last have the same size, and if results are delivered in file order the tiles
 * must be computed in about that order. Therefore neither side can start with larger tiles, as the
 * device does in [XPLAT] section 3.3. Only the number of tiles per side can be chosen:
 *
 *     static    the device gets a fixed fraction of the tiles, evenly spread; the ordinal of a tile
 *               alone determines its side
 *     queue     a tile goes to the side with a free place, the device first
 *     adaptive  the first tenth of the tiles is a queue, whose measurements determine a fraction;
 *               the rest is divided by this fraction as in `static`
 *
 * Waiting: with `in_order` each side assigns places in the order of ordinals, so a worker may keep
 * its place while it waits for earlier tiles. Otherwise a worker with a place must not wait for
 * another worker's tile.
 */
#ifndef SLC_ENGINE_HYBRID_TILES_H
#define SLC_ENGINE_HYBRID_TILES_H

#include "base/error/error.h"
#include "base/memory/limits.h"
#include "engine/hybrid/hybrid.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct slc_hybrid_tiles_options {
    /* NONE works like QUEUE, for passes in which one side has no places. */
    struct slc_hybrid_wish wish;
    /*
     * Number of places per side, up to SLC_MAX_THREADS; at least one for a side that may get tiles.
     */
    unsigned places[SLC_HYBRID_PARTS];
    uint64_t tiles; /* number of tiles of the pass */
    bool in_order;  /* every tile of the pass requests a place once, by its ordinal */
};

/* Work of both sides. */
struct slc_hybrid_tiles_report {
    uint64_t tiles[SLC_HYBRID_PARTS];
    uint64_t nnz[SLC_HYBRID_PARTS];
    double seconds[SLC_HYBRID_PARTS]; /* computing time, summed over the side's places */
    double fraction; /* the device's fraction of the divided tiles; negative if none were divided */
};

/* Members after `mutex` are protected by it. */
struct slc_hybrid_tiles {
    struct slc_hybrid_tiles_options options;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool aborted;
    uint64_t assigned; /* tiles that have a side */
    double fraction;   /* the device's fraction; negative: tiles go to the side with a free place */
    uint64_t divided;  /* tiles of an adaptive pass divided by the fraction */
    struct {
        /* Number of tickets issued, and the ticket that gets the next free place. */
        uint64_t tickets, serving;
        unsigned free;
        uint16_t numbers[SLC_MAX_THREADS]; /* numbers of the free places */
        uint64_t tiles, nnz, busy_ns;
    } side[SLC_HYBRID_PARTS];
};

/* A worker's place. */
struct slc_hybrid_place {
    enum slc_hybrid_side side;
    unsigned number; /* below the side's places; unique while held */
};

/* Owns: release with slc_hybrid_tiles_destroy. */
void slc_hybrid_tiles_init(struct slc_hybrid_tiles *queue,
                           const struct slc_hybrid_tiles_options *options);
void slc_hybrid_tiles_destroy(struct slc_hybrid_tiles *queue);

/* Waits for a place for a tile. Errors: SLC_ERR_INTERRUPTED after slc_hybrid_tiles_abort. */
enum slc_status slc_hybrid_tiles_acquire(struct slc_hybrid_tiles *queue,
                                         uint64_t ordinal,
                                         struct slc_hybrid_place *place,
                                         struct slc_error *err) SLC_NODISCARD;
/* Records the time spent on a tile or a part of it; `nnz` is 0 until the tile is complete. */
void slc_hybrid_tiles_computed(struct slc_hybrid_tiles *queue,
                               const struct slc_hybrid_place *place,
                               uint64_t nnz,
                               uint64_t busy_ns);
/* Releases the place. */
void slc_hybrid_tiles_release(struct slc_hybrid_tiles *queue, const struct slc_hybrid_place *place);

/* Wakes all waiting workers and refuses all later requests for places. Threads: any. */
void slc_hybrid_tiles_abort(struct slc_hybrid_tiles *queue);

/* Must be called only while no place is in use. */
void slc_hybrid_tiles_report(const struct slc_hybrid_tiles *queue,
                             struct slc_hybrid_tiles_report *report);

#endif
