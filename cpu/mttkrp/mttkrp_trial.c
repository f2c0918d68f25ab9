/* Times two strategies on tiles of a pass. */
#include "cpu/mttkrp/mttkrp_trial.h"

#include "base/error/clock.h"
#include "base/memory/checked.h"
#include "base/memory/limits.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Cost of zeroing and adding up a copy, divided by the cost of only adding up. Adding up moves
 * three bytes of memory per byte of a copy: it reads the copy, and reads and writes the sum.
 * Zeroing moves two bytes: it reads and writes the copy. */
#define ZERO_AND_ADD_PER_ADD (5.0 / 3.0)
/* Cost of zeroing and adding up, in ns per byte of a copy, that is assumed until it is measured.
 * Zeroing was measured at 0.08 ns per byte if a copy is no longer in the L2 cache. */
#define USUAL_NS_PER_BYTE 0.2
/* Minimum number of samples of adding up a piece of a copy; with fewer samples, the median is
 * unreliable. */
enum { ADDING_SAMPLES_MIN = 16 };

void slc_trial_init(struct slc_trial *trial)
{
    memset(trial, 0, sizeof *trial);
    trial->clock_ns = slc_clock_ns;
    (void)pthread_mutex_init(&trial->mutex, NULL);
}

void slc_trial_destroy(struct slc_trial *trial)
{
    (void)pthread_mutex_destroy(&trial->mutex);
}

static uint64_t turn_tiles(const struct slc_trial *trial)
{
    return (uint64_t)SLC_TRIAL_TURN_TILES * trial->workers;
}

void slc_trial_start(struct slc_trial *trial, const struct slc_mttkrp_job *job, uint64_t copy_bytes)
{
    const uint64_t tiles = slc_div_up_u64(job->nnz, SLC_TILE_NNZ);

    trial->on = job->rival != SLC_CONFLICT_AUTO;
    trial->candidates[0] = job->conflict;
    trial->candidates[1] = job->rival;
    trial->workers = job->workers;
    trial->nnz = job->nnz;
    trial->place_tiles =
        slc_max_u64(tiles / SLC_TRIAL_PLACES, turn_tiles(trial) * SLC_CONFLICT_CANDIDATES);
    trial->copy_bytes = copy_bytes;
    trial->started = 0;
    trial->copied_bytes = 0;
    memset(trial->turns, 0, sizeof trial->turns);
    memset(&trial->adding, 0, sizeof trial->adding);
    trial->places = 0;
    trial->leader = 0;
}

enum slc_conflict slc_trial_next_strategy(struct slc_trial *trial, struct slc_trial_turn **turn)
{
    (void)pthread_mutex_lock(&trial->mutex);
    uint64_t place = trial->started / trial->place_tiles;
    uint64_t tile = trial->started % trial->place_tiles;
    trial->started++;
    unsigned candidate = trial->leader;
    *turn = NULL;
    if (place < SLC_TRIAL_PLACES && tile < SLC_CONFLICT_CANDIDATES * turn_tiles(trial)) {
        /* The order of the two candidates alternates, so that neither candidate is always first. */
        candidate = (unsigned)((tile / turn_tiles(trial) + place) % SLC_CONFLICT_CANDIDATES);
        *turn = &trial->turns[place][candidate];
    }
    (void)pthread_mutex_unlock(&trial->mutex);
    return trial->candidates[candidate];
}

static void add_sample(struct slc_trial_turn *turn, double sample)
{
    turn->samples[turn->count++ % SLC_TRIAL_SAMPLES] = sample;
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Sorts the kept samples and returns their lower median, or 0 if there are no samples. */
static double median(struct slc_trial_turn *turn)
{
    const uint64_t kept = slc_min_u64(turn->count, SLC_TRIAL_SAMPLES);

    if (kept == 0) {
        return 0.0;
    }
    qsort(turn->samples, kept, sizeof turn->samples[0], compare_doubles);
    return turn->samples[(kept - 1) / 2];
}

/* Returns the estimated bytes of copies that a later pass zeroes and adds up: per tile the same
 * number as in the trial, but in total at most the size of whole copies. In a later pass, worker 0
 * has no copy and adds directly to the output. */
static double pass_copied_bytes(const struct slc_trial *trial)
{
    const double others = (double)(trial->workers - 1);
    const double tiles = (double)trial->nnz / SLC_TILE_NNZ;
    const double tried = (double)trial->places * (double)turn_tiles(trial);
    const double reached = (double)trial->copied_bytes * fmax(tiles / tried, 1.0);

    return fmin(others * (double)trial->copy_bytes, others / trial->workers * reached);
}

/* Compares the times of the candidates at all complete places. Needs: at least one place is
 * complete. */
static void compare_candidates(struct slc_trial *trial, double copy_ns_per_byte)
{
    for (unsigned c = 0; c < SLC_CONFLICT_CANDIDATES; c++) {
        double sum = 0.0;

        for (unsigned p = 0; p < trial->places; p++) {
            sum += median(&trial->turns[p][c]);
        }
        trial->measured_ns[c] = sum / trial->places;
        if (trial->candidates[c] == SLC_CONFLICT_PRIVATE) {
            trial->measured_ns[c] +=
                copy_ns_per_byte * pass_copied_bytes(trial) / (double)trial->nnz;
        }
    }
    trial->leader = trial->measured_ns[1] < trial->measured_ns[0];
}

/* Returns true if all tiles of the next position at which the trial measures have been reported.
 * The positions are completed in the order of the pass. */
static bool place_is_complete(const struct slc_trial *trial)
{
    return trial->places < SLC_TRIAL_PLACES &&
           trial->turns[trial->places][0].returned == turn_tiles(trial) &&
           trial->turns[trial->places][1].returned == turn_tiles(trial);
}

void slc_trial_add_tile(struct slc_trial *trial,
                        struct slc_trial_turn *turn,
                        uint64_t nnz,
                        uint64_t work_ns,
                        uint64_t copied_bytes)
{
    (void)pthread_mutex_lock(&trial->mutex);
    if (nnz > 0) {
        add_sample(turn, (double)work_ns / (double)nnz);
    }
    turn->returned++;
    trial->copied_bytes += copied_bytes;
    while (place_is_complete(trial)) {
        trial->places++;
        compare_candidates(trial, USUAL_NS_PER_BYTE);
    }
    (void)pthread_mutex_unlock(&trial->mutex);
}

void slc_trial_add_copies(struct slc_trial *trial, uint64_t bytes, uint64_t add_ns)
{
    (void)pthread_mutex_lock(&trial->mutex);
    add_sample(&trial->adding, (double)add_ns / (double)bytes);
    (void)pthread_mutex_unlock(&trial->mutex);
}

void slc_trial_end(struct slc_trial *trial)
{
    if (trial->places > 0 && trial->adding.count >= ADDING_SAMPLES_MIN) {
        compare_candidates(trial, ZERO_AND_ADD_PER_ADD * median(&trial->adding));
    }
}

bool slc_trial_result(const struct slc_trial *trial, struct slc_conflict_choice *choice)
{
    if (!trial->on || trial->places < SLC_TRIAL_PLACES) {
        return false;
    }
    for (unsigned i = 0; i < choice->cost_count; i++) {
        choice->costs[i].measured_ns =
            trial->measured_ns[choice->costs[i].conflict == trial->candidates[1]];
    }
    choice->chosen = trial->candidates[trial->leader];
    return true;
}
