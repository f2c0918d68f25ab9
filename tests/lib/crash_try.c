/* Tries reruns on crash states. States with equal files and equal demands are tried once; a set of
 * hashes identifies them. */
#include "crash_try.h"

#include "base/hash.h"
#include "base/random.h"

#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PRINTED_MAX = 3, KEPT_BYTES = 1 << 30 };

struct set {
    uint64_t *hashes; /* hashes of the members; 0 marks a free place */
    uint64_t room;
    uint64_t count;
};

struct trial {
    const struct slc_recorded *disk;
    const struct slc_crash_operation *operation;
    const struct slc_crash_try_bounds *bounds;
    struct slc_crash_report *report;
    struct set seen;
    const struct slc_change *changes;
    uint64_t change_count;
    uint64_t final_hash;
    uint64_t again_left;
};

/* Adds to the set; returns false if it was already a member. */
static bool set_add(struct set *set, uint64_t hash)
{
    uint64_t at;

    hash += hash == 0;
    if (2 * (set->count + 1) > set->room) {
        struct set larger = {.room = set->room == 0 ? 256 : 2 * set->room};

        larger.hashes = slc_tree_memory(NULL, larger.room * sizeof *larger.hashes);
        memset(larger.hashes, 0, larger.room * sizeof *larger.hashes);
        for (uint64_t i = 0; i < set->room; i++) {
            if (set->hashes[i] != 0) {
                (void)set_add(&larger, set->hashes[i]);
            }
        }
        free(set->hashes);
        *set = larger;
    }
    for (at = hash % set->room; set->hashes[at] != 0; at = (at + 1) % set->room) {
        if (set->hashes[at] == hash) {
            return false;
        }
    }
    set->hashes[at] = hash;
    set->count++;
    return true;
}

static void note_bad(struct trial *trial,
                     const struct slc_crash_state *state,
                     const char *phase,
                     const char *why)
{
    if (++trial->report->bad <= PRINTED_MAX && !trial->bounds->expect_bad) {
        printf("# %s: %s a crash after %" PRIu64 " of %" PRIu64 " changes: %s\n",
               trial->operation->name, phase, state->moment, trial->change_count, why);
        slc_crash_print(trial->disk, state);
    }
}

/* Returns a description of the fault after a rerun, or NULL. */
static const char *
check_rerun(struct trial *trial, const struct slc_recorded *disk, struct slc_crash_moment moment)
{
    const struct slc_crash_operation *operation = trial->operation;
    const struct slc_files *files = slc_recorded_files(disk);
    static char message[1200];
    struct slc_error err = SLC_ERROR_INIT;
    enum slc_status status = operation->run(operation->context, files, &err);
    const char *wrong = NULL;

    moment.done = true;
    moment.again = true;
    if (slc_recorded_open_count(disk) > 0) {
        return "descriptors leaked";
    }
    if (status != SLC_OK) {
        if (operation->may_refuse == NULL || !operation->may_refuse(operation->context, &err)) {
            (void)snprintf(message, sizeof message, "it fails: %s", err.message);
            return message;
        }
        trial->report->refused++;
    } else if (slc_tree_hash(slc_recorded_tree(disk), operation->varies) != trial->final_hash) {
        if (trial->report->bad < PRINTED_MAX && !trial->bounds->expect_bad) {
            slc_tree_print(slc_recorded_tree(disk));
        }
        return "it leaves other files than the uninterrupted run";
    }
    if (operation->look != NULL) {
        wrong = operation->look(operation->context, files, &moment);
    }
    return wrong;
}

/* Crashes a recorded rerun. */
static void crash_rerun(struct trial *trial, const struct slc_recorded *disk)
{
    struct slc_crash_try_bounds bounds = *trial->bounds;

    bounds.again = 0;
    bounds.continued = 0;
    /* Few states of each of many reruns find more than many states of few reruns. */
    bounds.every = 3;
    bounds.states.all = 16;
    bounds.states.extremes = 4;
    bounds.states.samples = 1;
    trial->report->reruns_crashed++;
    slc_crash_try(disk, trial->operation, &bounds, trial->report);
}

static void
try_state(struct trial *trial, const struct slc_crash_state *state, struct slc_crash_moment moment)
{
    const struct slc_crash_operation *operation = trial->operation;
    struct slc_recorded *disk = slc_recorded_create_with(state->tree);
    const bool again =
        trial->again_left > 0 && slc_random_below(trial->bounds->states.seed,
                                                  trial->report->distinct, state->moment, 8) == 0;
    const uint64_t refused = trial->report->refused;
    const char *wrong = NULL;

    if (operation->look != NULL) {
        wrong = operation->look(operation->context, slc_recorded_files(disk), &moment);
    }
    if (wrong != NULL) {
        note_bad(trial, state, "as left by", wrong);
    } else if (!trial->bounds->look_only) {
        if (again) {
            slc_recorded_start(disk);
        }
        wrong = check_rerun(trial, disk, moment);
        if (wrong != NULL) {
            note_bad(trial, state, "run again after", wrong);
        } else if (again && trial->report->refused == refused) {
            trial->again_left--;
            crash_rerun(trial, disk);
        }
    }
    slc_recorded_destroy(disk);
}

static bool visit(void *context, const struct slc_crash_state *state)
{
    struct trial *trial = context;
    struct slc_crash_moment moment = {.done = state->moment == trial->change_count};
    uint64_t parts[3];

    if (trial->operation->demand != NULL) {
        moment.demand =
            trial->operation->demand(trial->operation->context, trial->changes, state->moment);
    }
    trial->report->states++;
    parts[0] = slc_tree_hash(state->tree, NULL);
    parts[1] = moment.done;
    parts[2] = moment.demand;
    if (set_add(&trial->seen, slc_hash64(parts, sizeof parts))) {
        trial->report->distinct++;
        try_state(trial, state, moment);
    }
    return trial->report->bad == 0 || !trial->bounds->expect_bad;
}

/* A run killed, run again at once and then crashed: the unsynced changes of the first run are
 * still open. */
static void try_continued(struct trial *trial)
{
    const uint64_t count = trial->bounds->continued;

    for (uint64_t i = 0; i < count; i++) {
        /* Moments are denser towards the end, where names change. */
        const uint64_t moment = trial->change_count * (count * count - i * i) / (count * count);
        struct slc_recorded *disk = slc_recorded_continue(trial->disk, moment);
        struct slc_error err = SLC_ERROR_INIT;

        /* A rerun that fails has nothing to check; try_state has checked whether it may fail. */
        if (trial->operation->run(trial->operation->context, slc_recorded_files(disk), &err) ==
            SLC_OK) {
            crash_rerun(trial, disk);
        }
        slc_recorded_destroy(disk);
    }
}

void slc_crash_try(const struct slc_recorded *disk,
                   const struct slc_crash_operation *operation,
                   const struct slc_crash_try_bounds *bounds,
                   struct slc_crash_report *report)
{
    const uint64_t every = bounds->every == 0 ? 1 : bounds->every;
    struct trial trial = {.disk = disk,
                          .operation = operation,
                          .bounds = bounds,
                          .report = report,
                          .final_hash = slc_tree_hash(slc_recorded_tree(disk), operation->varies),
                          .again_left = bounds->again};
    bool more = true;

    /* Thousands of short runs allocate and free the same memory. Without this, the allocator
     * returns it to the system each time, and page faults dominate the run time. */
    (void)mallopt(M_MMAP_THRESHOLD, KEPT_BYTES);
    (void)mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
    trial.changes = slc_recorded_changes(disk, &trial.change_count);
    for (uint64_t moment = 0; moment <= trial.change_count && more; moment++) {
        bool all = false;

        if (moment % every == 0 || moment == trial.change_count) {
            more = slc_crash_states(disk, moment, &bounds->states, visit, &trial, &all);
            report->moments++;
            report->all += all;
        }
    }
    if (more) {
        try_continued(&trial);
    }
    free(trial.seen.hashes);
}

struct slc_recorded *slc_crash_record(const struct slc_crash_operation *operation, uint64_t ignored)
{
    struct slc_recorded *disk = slc_recorded_create();
    struct slc_error err = SLC_ERROR_INIT;

    if (operation->prepare != NULL) {
        operation->prepare(operation->context, slc_recorded_files(disk));
    }
    slc_recorded_start(disk);
    slc_recorded_ignore_sync(disk, ignored);
    if (operation->run(operation->context, slc_recorded_files(disk), &err) == SLC_OK) {
        return disk;
    }
    printf("# %s fails: %s\n", operation->name, err.message);
    slc_recorded_destroy(disk);
    return NULL;
}

bool slc_crash_shows(const struct slc_crash_operation *operation,
                     const struct slc_crash_try_bounds *bounds,
                     uint64_t ignored)
{
    struct slc_crash_try_bounds rerun = *bounds, look = *bounds;
    struct slc_crash_report report = {.bad = 0};
    struct slc_recorded *disk = slc_crash_record(operation, ignored);

    if (disk == NULL) {
        return false;
    }
    /* Most faults show without a rerun, and far more states can be tried that way. */
    look.states.seed = rerun.states.seed = 1; /* fixed, so that the result does not depend on
                                               * chance */
    look.expect_bad = true;
    look.look_only = true;
    look.states.all = 256;
    look.states.extremes = 512;
    look.continued = 0;
    slc_crash_try(disk, operation, &look, &report);
    if (report.bad == 0) {
        rerun.expect_bad = true;
        rerun.again = 0;
        rerun.states.all = 16;
        rerun.states.extremes = 4;
        rerun.states.samples = 1;
        slc_crash_try(disk, operation, &rerun, &report);
    }
    slc_recorded_destroy(disk);
    return report.bad > 0;
}

uint64_t slc_crash_needless(const struct slc_crash_operation *operation,
                            const struct slc_crash_try_bounds *bounds)
{
    struct slc_recorded *disk = slc_crash_record(operation, 0);
    const uint64_t syncs = disk == NULL ? 0 : slc_recorded_syncs(disk);
    uint64_t needless = slc_crash_shows(operation, bounds, UINT64_MAX) ? 0 : UINT64_C(1) << 63;

    slc_recorded_destroy(disk);
    for (uint64_t k = 1; k <= syncs; k++) {
        needless |= slc_crash_shows(operation, bounds, k) ? 0 : UINT64_C(1) << (k - 1);
    }
    return needless;
}

void slc_crash_report_print(const struct slc_crash_report *report,
                            const char *name,
                            const struct slc_crash_try_bounds *bounds)
{
    printf("# %s: %" PRIu64 " states tried at %" PRIu64 " moments (all there are at %" PRIu64
           "), %" PRIu64 " distinct, %" PRIu64 " reruns crashed in turn, %" PRIu64
           " refused, %" PRIu64 " bad; seed %" PRIu64 "\n",
           name, report->states, report->moments, report->all, report->distinct,
           report->reruns_crashed, report->refused, report->bad, bounds->states.seed);
}
