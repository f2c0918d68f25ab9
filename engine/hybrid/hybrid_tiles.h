/*
 * Which side of a machine computes a tile: a worker of the CPU, or a lane of a device
 * (base/device.h). There are so many places on each side; a worker that has a tile asks for one,
 * and may have to wait.
 *
 * Tiles are all of one size but the last, and where results leave in the order of the file they
 * have to be computed in about that order, so that neither side has larger tiles to begin with
 * (XPLAT section 3.3 has the device begin with those): which side takes how many is all there is to
 * choose.
 *
 *     static    the device has a fixed fraction of the tiles, evenly among the others. Which these
 *               are follows from their ordinals alone.
 *     queue     whichever side has a free place, the device first.
 *     adaptive  the first tenth as a queue; what was measured there divides the rest as above.
 *
 * Waiting: with `in_order` places are given in the order of ordinals, on each side for itself, so
 * that a worker may keep its place while it waits for the tiles before its own. Else nobody may
 * wait for another's tile while it has a place.
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
    struct slc_hybrid_wish wish; /* NONE: as a queue, for sides of which one has no places */
    /* Up to SLC_MAX_THREADS; at least one where tiles may fall to the side. */
    unsigned places[SLC_HYBRID_PARTS];
    uint64_t tiles; /* of the pass */
    bool in_order;  /* every tile of the pass asks, once, by its ordinal */
};

/* What both have done. */
struct slc_hybrid_tiles_report {
    uint64_t tiles[SLC_HYBRID_PARTS];
    uint64_t nnz[SLC_HYBRID_PARTS];
    double seconds[SLC_HYBRID_PARTS]; /* of computing, summed over the side's places */
    double fraction; /* the device's, by which tiles were divided; negative: nothing was */
};

/* Under the mutex. */
struct slc_hybrid_tiles {
    struct slc_hybrid_tiles_options options;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool aborted;
    uint64_t asked;   /* tiles that have a side */
    double fraction;  /* negative: whoever has a free place */
    uint64_t divided; /* tiles that were, of an adaptive pass */
    struct {
        uint64_t tickets, serving; /* given out; whose turn it is to wait for a free place */
        unsigned free;
        uint16_t numbers[SLC_MAX_THREADS]; /* of the free ones */
        uint64_t tiles, nnz, busy_ns;
    } side[SLC_HYBRID_PARTS];
};

/* A place that a worker has. */
struct slc_hybrid_place {
    enum slc_hybrid_side side;
    unsigned number; /* below the side's places; nobody else has it */
};

/* Owns: slc_hybrid_tiles_destroy. */
void slc_hybrid_tiles_init(struct slc_hybrid_tiles *queue,
                           const struct slc_hybrid_tiles_options *options);
void slc_hybrid_tiles_destroy(struct slc_hybrid_tiles *queue);

/* A place for a tile. Errors: SLC_ERR_INTERRUPTED after slc_hybrid_tiles_abort. */
enum slc_status slc_hybrid_tiles_take(struct slc_hybrid_tiles *queue,
                                      uint64_t ordinal,
                                      struct slc_hybrid_place *place,
                                      struct slc_error *err) SLC_NODISCARD;
/* Notes what computing the tile, or a part of it, has taken; with `nnz` not 0 it is complete. */
void slc_hybrid_tiles_computed(struct slc_hybrid_tiles *queue,
                               const struct slc_hybrid_place *place,
                               uint64_t nnz,
                               uint64_t busy_ns);
/* Gives the place back. */
void slc_hybrid_tiles_leave(struct slc_hybrid_tiles *queue, const struct slc_hybrid_place *place);

/* Wakes whoever waits; nobody gets a place any more. Any thread. */
void slc_hybrid_tiles_abort(struct slc_hybrid_tiles *queue);

/* Not while places are taken. */
void slc_hybrid_tiles_report(const struct slc_hybrid_tiles *queue,
                             struct slc_hybrid_tiles_report *report);

#endif
