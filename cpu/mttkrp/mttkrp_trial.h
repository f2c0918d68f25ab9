/*
 * Times two strategies, private copies and tile-local sums, against each other in the first pass of
 * a mode.
 * At four places of the pass, the first one at its start, workers process some tiles with one
 * candidate and then as many with the other, so that nearly all workers use the same one at a time
 * and contend for locks and memory as in a whole pass. All other tiles use the candidate that has
 * been faster so far. (The start alone misleads: in a mode of 1.7 M rows copies took 6.2 ns per
 * nonzero there against 5.5, but 12 against 16 overall.) Every tile is added to the result once, by
 * either candidate.
 * Timed are calls inside a worker after its block has arrived, so waiting for I/O does not count.
 * The median over the tiles of a turn is used, because a worker may be interrupted in one of them,
 * and the first one touches its scratch for the first time. Copies also have to be zeroed and added
 * up: this is charged per byte that the trial's tiles reached first, at the usual rate and, at the
 * end, at the measured rate. Mapping new memory is not charged: a run does it once, or in a few
 * passes if workers reach other rows in each.
 */
#ifndef SLC_CPU_MTTKRP_TRIAL_H
#define SLC_CPU_MTTKRP_TRIAL_H

#include "base/backend.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    SLC_TRIAL_PLACES = 4,
    SLC_TRIAL_TURN_TILES = 2, /* of one worker */
    /* Per worker, in the whole trial. */
    SLC_TRIAL_TILES_PER_WORKER = SLC_TRIAL_PLACES * SLC_CONFLICT_CANDIDATES * SLC_TRIAL_TURN_TILES,
    SLC_TRIAL_SAMPLES = 64 /* kept per turn */
};

/* One candidate at one place. */
struct slc_trial_turn {
    uint64_t returned;                 /* tiles reported */
    uint64_t count;                    /* samples so far; the latest SLC_TRIAL_SAMPLES are kept */
    double samples[SLC_TRIAL_SAMPLES]; /* ns per nonzero */
};

struct slc_trial {
    bool on;
    enum slc_conflict candidates[SLC_CONFLICT_CANDIDATES]; /* predicted to be faster first */
    unsigned workers;
    uint64_t nnz;
    uint64_t place_tiles;       /* tiles from one place to the next */
    uint64_t copy_bytes;        /* size of a whole copy of the output's sums */
    uint64_t (*clock_ns)(void); /* slc_clock_ns; tests replace it */

    pthread_mutex_t mutex; /* guards the following members */
    uint64_t started;      /* tiles handed out in the pass */
    uint64_t copied_bytes; /* bytes of copies that tiles of the trial reached first */
    struct slc_trial_turn turns[SLC_TRIAL_PLACES][SLC_CONFLICT_CANDIDATES];
    struct slc_trial_turn adding;                /* its samples are ns per byte */
    unsigned places;                             /* number of places evaluated */
    unsigned leader;                             /* index of the candidate that is faster so far */
    double measured_ns[SLC_CONFLICT_CANDIDATES]; /* set once a place is evaluated */
};

void slc_trial_init(struct slc_trial *trial);
void slc_trial_destroy(struct slc_trial *trial);

/* Starts the trial of a job; without a rival there is no trial. */
void slc_trial_start(struct slc_trial *trial,
                     const struct slc_mttkrp_job *job,
                     uint64_t copy_bytes);

/* Returns the strategy of the next tile. *turn: where to report its time, or NULL. Threads: any. */
enum slc_conflict slc_trial_next_strategy(struct slc_trial *trial, struct slc_trial_turn **turn);

/*
 * Reports that a tile of `turn` was added in work_ns, for which `copied_bytes` more of the worker's
 * copy were zeroed. Threads: any.
 */
void slc_trial_add_tile(struct slc_trial *trial,
                        struct slc_trial_turn *turn,
                        uint64_t nnz,
                        uint64_t work_ns,
                        uint64_t copied_bytes);

/* Reports that adding up `bytes` bytes of copies took add_ns, after the pass. Threads: any. */
void slc_trial_add_copies(struct slc_trial *trial, uint64_t bytes, uint64_t add_ns);

/* Evaluates the trial again with the measured cost of adding up, after all copies were added. */
void slc_trial_end(struct slc_trial *trial);

/* Returns the measurements; false if there was no trial or the pass ended before it. */
bool slc_trial_result(const struct slc_trial *trial, struct slc_conflict_choice *choice);

#endif
