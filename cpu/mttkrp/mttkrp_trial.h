/* Compares the times of two strategies (candidates), private copies and tile-local sums, in the
 * first pass of a mode. There are four places in the pass, the first of which is its start. At a
 * place, workers process some tiles with one candidate, and then the same number of tiles with the
 * other candidate; these are the two turns of a place. Nearly all workers therefore use the same
 * candidate at any time, and contend for locks and memory as in a whole pass. All other tiles use
 * the candidate that has been faster so far. (The start alone is misleading: in a mode of 1.7 M
 * rows, copies took 6.2 ns per nonzero at the start and tile-local sums 5.5 ns, but over the whole
 * pass copies took 12 ns and tile-local sums 16 ns.) Every tile is added to the result once, by one
 * of the candidates. Only the work on a block that has arrived is timed, so waiting for I/O is not
 * included. The time of a turn is the median over its tiles, because a worker may be interrupted
 * during a tile, and the first tile touches the worker's scratch for the first time. Copies must
 * also be zeroed and added up. The trial therefore adds a cost for each byte of a copy that its
 * tiles were the first to reach: a typical cost during the pass, and the measured cost at the end.
 * The cost of mapping new memory is not included, because a run maps the memory only once, or in a
 * few passes if workers reach other rows in each pass. */
#ifndef SLC_CPU_MTTKRP_TRIAL_H
#define SLC_CPU_MTTKRP_TRIAL_H

#include "base/backend.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    SLC_TRIAL_PLACES = 4,
    SLC_TRIAL_TURN_TILES = 2, /* number of tiles per worker in a turn */
    /* Number of tiles per worker in the whole trial. */
    SLC_TRIAL_TILES_PER_WORKER = SLC_TRIAL_PLACES * SLC_CONFLICT_CANDIDATES * SLC_TRIAL_TURN_TILES,
    SLC_TRIAL_SAMPLES = 64 /* number of samples that are kept per turn */
};

/* The measurements of one candidate at one place. */
struct slc_trial_turn {
    uint64_t returned; /* number of tiles reported */
    /* number of samples so far; the latest SLC_TRIAL_SAMPLES samples are kept */
    uint64_t count;
    double samples[SLC_TRIAL_SAMPLES]; /* ns per nonzero */
};

struct slc_trial {
    bool on;
    /* the candidate with the lower predicted cost is first */
    enum slc_conflict candidates[SLC_CONFLICT_CANDIDATES];
    unsigned workers;
    uint64_t nnz;
    uint64_t place_tiles;       /* number of tiles from one place to the next */
    uint64_t copy_bytes;        /* size of a whole copy of the output's sums */
    uint64_t (*clock_ns)(void); /* slc_clock_ns, which tests replace */

    pthread_mutex_t mutex; /* protects the members below */
    uint64_t started;      /* number of tiles started in the pass */
    uint64_t copied_bytes; /* bytes of copies that tiles of the trial were the first to reach */
    struct slc_trial_turn turns[SLC_TRIAL_PLACES][SLC_CONFLICT_CANDIDATES];
    struct slc_trial_turn adding; /* samples of adding up copies, in ns per byte */
    unsigned places;              /* number of places evaluated */
    unsigned leader;              /* index of the candidate that is faster so far */
    /* ns per nonzero of each candidate, once a place is evaluated */
    double measured_ns[SLC_CONFLICT_CANDIDATES];
};

void slc_trial_init(struct slc_trial *trial);
void slc_trial_destroy(struct slc_trial *trial);

/* Starts the trial of a job, if the job has two candidates. */
void slc_trial_start(struct slc_trial *trial,
                     const struct slc_mttkrp_job *job,
                     uint64_t copy_bytes);

/* Returns the strategy of the next tile. *turn becomes the turn to which the tile's time is
 * reported, or NULL if the tile is not timed. Threads: any. */
enum slc_conflict slc_trial_next_strategy(struct slc_trial *trial, struct slc_trial_turn **turn);

/* Reports that adding a tile of `turn` took `work_ns` ns and zeroed `copied_bytes` further bytes of
 * the worker's copy. Threads: any. */
void slc_trial_add_tile(struct slc_trial *trial,
                        struct slc_trial_turn *turn,
                        uint64_t nnz,
                        uint64_t work_ns,
                        uint64_t copied_bytes);

/* Reports, after the pass, that adding up `bytes` bytes of copies took `add_ns` ns. Threads:
 * any. */
void slc_trial_add_copies(struct slc_trial *trial, uint64_t bytes, uint64_t add_ns);

/* After all copies were added up, evaluates the trial again with the measured cost of adding up. */
void slc_trial_end(struct slc_trial *trial);

/* Stores the measurements in *choice. Returns false if there was no trial, or if the pass ended
 * before the trial was complete. */
bool slc_trial_result(const struct slc_trial *trial, struct slc_conflict_choice *choice);

#endif
