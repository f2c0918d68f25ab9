/*
 * Which side of a machine computes a tile: a worker of the CPU, or a lane of a device
 * (base/device.h). There are so many seats on each side; a worker that has a tile asks for one, and
 * may have to wait.
 *
 * Tiles are all of one size but the last, and where results leave in the order of the file they
 * have to be computed in about that order, so that neither side has larger tiles to begin with
 * (XPLAT section 3.3 has the device begin with those): which side takes how many is all there is to
 * choose.
 *
 *     static    the device has a fixed fraction of the tiles, evenly among the others. Which these
 *               are follows from their ordinals alone.
 *     queue     whichever side has a free seat, the device first.
 *     adaptive  the first tenth as a queue; what was measured there divides the rest as above.
 *
 * Waiting: with `in_order` seats are given in the order of ordinals, on each side for itself, so
 * that a worker may keep its seat while it waits for the tiles before its own. Else nobody may wait
 * for another's tile while it has a seat.
 */
#ifndef SLC_ENGINE_SIDES_H
#define SLC_ENGINE_SIDES_H

#include "base/error/error.h"
#include "base/memory/limits.h"
#include "engine/hybrid/hybrid.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct slc_sides_options {
    struct slc_share_wish wish; /* NONE: as a queue, for sides of which one has no seats */
    /* Up to SLC_MAX_THREADS; at least one where tiles may fall to the side. */
    unsigned seats[SLC_SHARE_SIDES];
    uint64_t tiles; /* of the pass */
    bool in_order;  /* every tile of the pass asks, once, by its ordinal */
};

/* What both have done. */
struct slc_sides_report {
    uint64_t tiles[SLC_SHARE_SIDES];
    uint64_t nnz[SLC_SHARE_SIDES];
    double seconds[SLC_SHARE_SIDES]; /* of computing, summed over the side's seats */
    double fraction; /* the device's, by which tiles were divided; negative: nothing was */
};

/* Under the mutex. */
struct slc_sides {
    struct slc_sides_options options;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool aborted;
    uint64_t asked;   /* tiles that have a side */
    double fraction;  /* negative: whoever has a free seat */
    uint64_t divided; /* tiles that were, of an adaptive pass */
    struct {
        uint64_t tickets, serving; /* given out; whose turn it is to wait for a free seat */
        unsigned free;
        uint16_t numbers[SLC_MAX_THREADS]; /* of the free ones */
        uint64_t tiles, nnz, busy_ns;
    } side[SLC_SHARE_SIDES];
};

/* A seat that a worker has. */
struct slc_seat {
    enum slc_share_side side;
    unsigned number; /* below the side's seats; nobody else has it */
};

/* Owns: slc_sides_destroy. */
void slc_sides_init(struct slc_sides *sides, const struct slc_sides_options *options);
void slc_sides_destroy(struct slc_sides *sides);

/* A seat for a tile. Errors: SLC_ERR_INTERRUPTED after slc_sides_abort. */
enum slc_status slc_sides_take(struct slc_sides *sides,
                               uint64_t ordinal,
                               struct slc_seat *seat,
                               struct slc_error *err) SLC_NODISCARD;
/* Notes what computing the tile, or a part of it, has taken; with `nnz` not 0 it is complete. */
void slc_sides_computed(struct slc_sides *sides,
                        const struct slc_seat *seat,
                        uint64_t nnz,
                        uint64_t busy_ns);
/* Gives the seat back. */
void slc_sides_leave(struct slc_sides *sides, const struct slc_seat *seat);

/* Wakes whoever waits; nobody gets a seat any more. Any thread. */
void slc_sides_abort(struct slc_sides *sides);

/* Not while seats are taken. */
void slc_sides_report(const struct slc_sides *sides, struct slc_sides_report *report);

#endif
