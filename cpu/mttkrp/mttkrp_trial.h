/*
 * Times two strategies, private copies and tile-local sums, against each other in the first pass of
 * a mode.
 * At four places of the pass, the first one at its start, workers process some tiles with one
 * candidate and then as many with the other, so that nearly all workers use the same candidate at
 * any time and contend for locks and memory as in a whole pass. All other tiles use the candidate
 * that has been faster so far. (The start alone is misleading: in a mode of 1.7 M rows, copies cost
 * 6.2 ns per nonzero at the start and tile-local sums 5.5, but over the whole pass copies cost 12
 * and tile-local sums 16.) Every tile is added to the result once, by either candidate.
 * Only calls inside a worker after its block has arrived are timed, so waiting for I/O does not
 * count. The median over the tiles of a turn is used, because a worker may be interrupted during a
 * tile, and the first tile touches the worker's scratch for the first time. Copies also have to be
 * zeroed and added up. The trial charges this per byte that its tiles were the first to reach: at a
 * typical rate during the pass, and at the measured rate at the end. The cost of mapping new memory
 * is not charged, because a run maps it once, or in a few passes if workers reach other rows in
 * each pass.
 */
#ifndef SLC_CPU_MTTKRP_TRIAL_H
#define SLC_CPU_MTTKRP_TRIAL_H

#include "base/backend.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    SLC_TRIAL_PLACES = 4,
    SLC_TRIAL_TURN_TILES = 2, /* tiles of one worker per turn */
    /* Tiles per worker in the whole trial. */
    SLC_TRIAL_TILES_PER_WORKER = SLC_TRIAL_PLACES * SLC_CONFLICT_CANDIDATES * SLC_TRIAL_TURN_TILES,
    SLC_TRIAL_SAMPLES = 64 /* samples kept per turn */
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

/*
 * Returns the strategy of the next tile. *turn is where to report the tile's time, or NULL if it is
 * not timed. Threads: any.
 */
enum slc_conflict slc_trial_next_strategy(struct slc_trial *trial, struct slc_trial_turn **turn);

/*
 * Reports that adding a tile of `turn` took work_ns and zeroed `copied_bytes` additional bytes of
 * the worker's copy. Threads: any.
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
