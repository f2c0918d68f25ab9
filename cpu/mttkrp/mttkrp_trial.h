/*
 * Trying two strategies, private copies and tile-local sums, in the first pass of a mode.
 *
 * At four places of the pass, the first of them at its start, workers take some tiles by one
 * candidate and as many by the other, one behind the other, so that nearly all workers are busy
 * with the same one at a time and meet one another's locks and memory traffic as in a whole pass.
 * All tiles between go to the candidate that has been faster so far. (The start alone misleads: in
 * a mode of 1.7 M rows copies took 6.2 ns a nonzero there against 5.5, in all 12 against 16.) Every
 * tile counts towards the result once, whichever candidate adds it.
 *
 * What is timed are calls inside a worker, after its block has arrived: waiting for I/O does not
 * count. A median of the tiles of a turn stands for it, because a worker may be interrupted in one
 * of them, and the first of each touches its scratch for the first time. Copies also have to be
 * zeroed and added up: this is counted by the bytes that the trial's tiles reached first, at what
 * adding up usually takes per byte, and in the end at what it took. Mapping fresh memory is left
 * out: a run does that once, or in a few passes where workers reach other rows in each.
 */
#ifndef SLC_CPU_MTTKRP_TRIAL_H
#define SLC_CPU_MTTKRP_TRIAL_H

#include "base/backend.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    SLC_TRIAL_PLACES = 4,
    SLC_TRIAL_TURN_TILES = 2, /* of a worker in one turn */
    /* Of the whole trial, for each worker. */
    SLC_TRIAL_TILES_PER_WORKER = SLC_TRIAL_PLACES * SLC_CONFLICT_CANDIDATES * SLC_TRIAL_TURN_TILES,
    SLC_TRIAL_SAMPLES = 64 /* kept of a turn */
};

/* One candidate at one place. */
struct slc_trial_turn {
    uint64_t returned;                 /* tiles */
    uint64_t count;                    /* samples so far; the latest are kept */
    double samples[SLC_TRIAL_SAMPLES]; /* ns a nonzero */
};

struct slc_trial {
    bool on;
    enum slc_conflict candidates[SLC_CONFLICT_CANDIDATES]; /* the one expected to be faster first */
    unsigned workers;
    uint64_t nnz;
    uint64_t place_tiles;       /* from place to place */
    uint64_t copy_bytes;        /* of a whole copy of the output's sums */
    uint64_t (*clock_ns)(void); /* slc_clock_ns; tests have another */

    pthread_mutex_t mutex; /* of all that follows */
    uint64_t dealt;        /* tiles of the pass */
    uint64_t copied_bytes; /* of copies, that tiles of the trial reached first */
    struct slc_trial_turn turns[SLC_TRIAL_PLACES][SLC_CONFLICT_CANDIDATES];
    struct slc_trial_turn adding;                /* its samples are ns a byte */
    unsigned places;                             /* judged */
    unsigned leader;                             /* index of a candidate */
    double measured_ns[SLC_CONFLICT_CANDIDATES]; /* once a place is judged */
};

void slc_trial_init(struct slc_trial *trial);
void slc_trial_destroy(struct slc_trial *trial);

/* Starts the trial of a job; where it has no rival there is none. */
void slc_trial_begin(struct slc_trial *trial,
                     const struct slc_mttkrp_job *job,
                     uint64_t copy_bytes);

/* The strategy of the next tile. *turn: NULL, or where to give back what it took. Any thread. */
enum slc_conflict slc_trial_take(struct slc_trial *trial, struct slc_trial_turn **turn);

/*
 * A tile of `turn` has been added in work_ns, once `copied_bytes` more of the worker's copy had
 * been zeroed for it. Any thread.
 */
void slc_trial_give(struct slc_trial *trial,
                    struct slc_trial_turn *turn,
                    uint64_t nnz,
                    uint64_t work_ns,
                    uint64_t copied_bytes);

/* When the pass is over: `bytes` of copies have been added up in add_ns. Any thread. */
void slc_trial_added(struct slc_trial *trial, uint64_t bytes, uint64_t add_ns);

/* All copies are added up: judges again by what that took. */
void slc_trial_end(struct slc_trial *trial);

/* Fills in what was measured; false where there was no trial, or the pass ended before it. */
bool slc_trial_result(const struct slc_trial *trial, struct slc_conflict_choice *choice);

#endif
