/* Computes the missing runs of a sweep, then compares the runs of each rank.
 *
 * A complete run is recorded after its results are on the drive, and before its checkpoint is
 * removed. So a sweep may be killed at any time: its current run either is recorded or continues
 * from its checkpoint. Factors that are not kept are removed only after sweep.json
 * records this. */
#include "sweep/sweep.h"

#include "base/error/clock.h"
#include "base/memory/memory.h"
#include "storage/checkpoint/checkpoint.h"
#include "storage/file/files.h"
#include "storage/file/folder_lock.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PATH_BYTES = 1024 + 128 };

struct sweep {
    const struct slc_sweep_options *options;
    char path[PATH_BYTES]; /* path of sweep.json */
    struct slc_sweep_record *record;
    int fd;    /* descriptor of the lock file; -1 if there is none */
    bool made; /* true if this sweep created its folder */
    uint64_t start_ns;
    int code; /* return value of the run that ended the sweep */
};

static void run_folder(const struct sweep *sweep, uint32_t rank, uint64_t seed, char *path)
{
    char name[SLC_SWEEP_FOLDER_BYTES];

    (void)snprintf(path, PATH_BYTES, "%.1023s/%s", sweep->options->folder,
                   slc_sweep_folder_name(name, rank, seed));
}

/* Checks the options, also those that the command has already checked. */
static enum slc_status check_options(const struct slc_sweep_options *options, struct slc_error *err)
{
    if (strlen(options->folder) > 1023) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "the path of the sweep folder has %zu bytes; the limit is 1023",
                        strlen(options->folder));
    }
    if (options->rank_count == 0 || options->rank_count > SLC_SWEEP_RANKS_MAX ||
        options->runs == 0 || options->runs > SLC_SWEEP_RUNS_MAX) {
        return slc_fail(
            err, SLC_ERR_USAGE,
            "%u ranks with %" PRIu64 " runs each: the limits are 1 to %d ranks and 1 to "
            "%d runs",
            options->rank_count, options->runs, SLC_SWEEP_RANKS_MAX, SLC_SWEEP_RUNS_MAX);
    }
    if (options->seed > (uint64_t)INT64_MAX - options->runs) {
        return slc_fail_field(err, SLC_ERR_USAGE, SLC_FIELD_SEED,
                              "seed %" PRIu64 ": the seed of the last run exceeds 64 bits",
                              options->seed);
    }
    for (unsigned i = 0; i < options->rank_count; i++) {
        for (unsigned j = 0; j < i; j++) {
            if (options->ranks[i] == options->ranks[j]) {
                return slc_fail_field(err, SLC_ERR_USAGE, SLC_FIELD_RANKS,
                                      "rank %" PRIu32 " is listed twice", options->ranks[i]);
            }
        }
    }
    return SLC_OK;
}

static enum slc_status lock_folder(struct sweep *sweep, struct slc_error *err)
{
    const struct slc_files *files = slc_files_system();
    const int rc = files->make_folder(files->self, sweep->options->folder);
    bool taken;

    if (rc < 0 && rc != -EEXIST) {
        return slc_fail_errno(err, -rc, sweep->options->folder,
                              "cannot create the folder of the sweep");
    }
    sweep->made = rc >= 0;
    if (rc >= 0) {
        SLC_TRY(slc_name_sync(files, sweep->options->folder, err));
    }
    return slc_folder_lock(
        files, sweep->options->folder,
        "another process runs a sweep in this folder: wait for it, or use another "
        "folder",
        &sweep->fd, &taken, err);
}

/* Loads the record if the folder has a sweep to continue, otherwise makes a new record. */
static enum slc_status
open_or_create_record(struct sweep *sweep, json_t *identity, bool *found, struct slc_error *err)
{
    if (!sweep->options->restart) {
        SLC_TRY(slc_sweep_record_read(sweep->path, sweep->record, found, err));
    }
    if (*found) {
        SLC_TRY(slc_sweep_record_compare(sweep->record, identity, err));
    }
    if (!*found) {
        sweep->record->identity = json_incref(identity);
    }
    return SLC_OK;
}

static enum slc_status write_record(struct sweep *sweep, json_t *suggestion, struct slc_error *err)
{
    return slc_sweep_record_write(sweep->path, sweep->record, sweep->options->store, suggestion,
                                  err);
}

/* Adds a run whose results are on the drive to sweep.json. */
static enum slc_status record_run(struct slc_sweep_job *job, struct slc_error *err)
{
    struct sweep *sweep = job->sweep;

    job->record.kept = true;
    job->record.match = NAN;
    SLC_TRY(slc_sweep_record_add(sweep->record, &job->record, err));
    return write_record(sweep, NULL, err);
}

/* Removes the checkpoint of a complete run, which still exists if the sweep was killed after it
 * recorded the run. */
static enum slc_status remove_checkpoint(const char *folder, struct slc_error *err)
{
    const struct slc_files *files = slc_files_system();
    bool found = false;

    for (unsigned which = 0; which < 2; which++) {
        struct slc_file_stat stat;
        char *path = slc_checkpoint_path(folder, which);

        SLC_TRY(slc_check_memory(path != NULL, err, "for the path of a checkpoint"));
        found = found || files->stat_path(files->self, path, &stat) >= 0;
        slc_free(path);
    }
    return found ? slc_checkpoint_discard(files, folder, err) : SLC_OK;
}

/* Removes the factor files of a run. Its record in sweep.json stays. */
static enum slc_status
remove_factors(const struct sweep *sweep, const struct slc_sweep_run *run, struct slc_error *err)
{
    const struct slc_files *files = slc_files_system();
    char folder[PATH_BYTES], path[PATH_BYTES + 32];

    run_folder(sweep, run->rank, run->seed, folder);
    for (unsigned n = 0; n <= SLC_MAX_ORDER; n++) {
        if (n == 0) {
            (void)snprintf(path, sizeof path, "%s/lambda.npy", folder);
        } else {
            (void)snprintf(path, sizeof path, "%s/mode-%u.npy", folder, n);
        }
        int rc = files->unlink(files->self, path);
        if (rc < 0 && rc != -ENOENT && rc != -ENOTDIR) {
            return slc_fail_errno(err, -rc, path, "removing factors that are not kept");
        }
    }
    return SLC_OK;
}

/* Returns the seconds that the sweep has left, or 0 if there is no limit. If no time is left,
 * returns a small positive number instead of 0. */
static double seconds_left(const struct sweep *sweep)
{
    const double limit = sweep->options->max_seconds;

    return limit > 0.0 ? fmax(limit - slc_seconds_since(sweep->start_ns), 1e-6) : 0.0;
}

static bool time_is_up(const struct sweep *sweep)
{
    return sweep->options->max_seconds > 0.0 &&
           slc_seconds_since(sweep->start_ns) >= sweep->options->max_seconds;
}

/* Computes the run of a rank and seed, unless it is complete. */
static enum slc_sweep_end make_run(struct sweep *sweep,
                                   uint32_t rank,
                                   uint64_t seed,
                                   enum slc_status *status,
                                   struct slc_error *err)
{
    const struct slc_sweep_options *options = sweep->options;
    const struct slc_sweep_run *past = slc_sweep_record_find(sweep->record, rank, seed);
    struct slc_sweep_job job = {.record = {.rank = rank,
                                           .seed = seed,
                                           .match = NAN,
                                           .heldout_rmse = NAN,
                                           .heldout_deviance = NAN,
                                           .condition = NAN},
                                .max_seconds = seconds_left(sweep),
                                .written = record_run,
                                .sweep = sweep};
    char folder[PATH_BYTES];

    run_folder(sweep, rank, seed, folder);
    job.folder = folder;
    if (past != NULL) {
        options->completed(options->context, past, true);
        *status = remove_checkpoint(folder, err);
        return SLC_SWEEP_COMPLETE;
    }
    if (options->stop != NULL && *options->stop != 0) {
        return SLC_SWEEP_STOPPED;
    }
    if (time_is_up(sweep)) {
        return SLC_SWEEP_TIME;
    }
    sweep->code = options->run(options->context, &job);
    if (sweep->code != 0) {
        return SLC_SWEEP_RUN;
    }
    options->completed(options->context, &job.record, false);
    return SLC_SWEEP_COMPLETE;
}

/* Returns true if the recorded comparison of a rank includes all its runs. */
static bool is_compared(struct sweep *sweep, uint32_t rank)
{
    const struct slc_sweep_run *best = slc_sweep_record_best(sweep->record, rank);
    const struct slc_sweep_rank *known = slc_sweep_record_rank(sweep->record, rank);
    unsigned runs = 0;

    for (unsigned i = 0; i < sweep->record->run_count; i++) {
        runs += sweep->record->runs[i].rank == rank;
    }
    return known != NULL && known->runs == runs && best != NULL && known->best_seed == best->seed;
}

/* Compares the runs of a complete rank, and removes factors that are not kept. */
static enum slc_status finish_rank(struct sweep *sweep, uint32_t rank, struct slc_error *err)
{
    const struct slc_sweep_options *options = sweep->options;
    const struct slc_sweep_comparison comparison = {.files = options->files,
                                                    .store = options->store,
                                                    .folder = sweep->options->folder,
                                                    .consistency = options->consistency,
                                                    .memory_bytes = options->memory_bytes,
                                                    .threads = options->threads,
                                                    .stop = options->stop};
    enum slc_status status = SLC_OK;

    if (!is_compared(sweep, rank)) {
        status = slc_sweep_compare_rank(&comparison, sweep->record, rank, err);
        for (unsigned i = 0; i < sweep->record->run_count && status == SLC_OK; i++) {
            struct slc_sweep_run *run = &sweep->record->runs[i];

            if (run->rank == rank && !options->keep_all) {
                run->kept = run == slc_sweep_record_best(sweep->record, rank);
            }
        }
        SLC_THEN(status, write_record(sweep, NULL, err));
    }
    for (unsigned i = 0; i < sweep->record->run_count && status == SLC_OK; i++) {
        const struct slc_sweep_run *run = &sweep->record->runs[i];

        if (run->rank == rank && !run->kept) {
            status = remove_factors(sweep, run, err);
        }
    }
    return status;
}

/* Computes the missing runs until a run fails or stops. */
static enum slc_sweep_end
compute_runs(struct sweep *sweep, enum slc_status *status, struct slc_error *err)
{
    const struct slc_sweep_options *options = sweep->options;

    for (unsigned r = 0; r < options->rank_count; r++) {
        for (uint64_t k = 0; k < options->runs; k++) {
            const enum slc_sweep_end end =
                make_run(sweep, options->ranks[r], options->seed + k, status, err);

            if (end != SLC_SWEEP_COMPLETE || *status != SLC_OK) {
                return end;
            }
        }
        *status = finish_rank(sweep, options->ranks[r], err);
        if (*status != SLC_OK) {
            break;
        }
    }
    return SLC_SWEEP_COMPLETE;
}

static enum slc_status
finish(struct sweep *sweep, struct slc_sweep_suggestion *suggestion, struct slc_error *err)
{
    slc_sweep_suggest(sweep->record, suggestion);
    json_t *object = slc_sweep_suggestion_json(suggestion);
    /* The suggestion has three members: rank, reason and folder. If any of them were missing, the
     * sweep would appear incomplete. */
    enum slc_status status =
        json_object_size(object) == 3
            ? write_record(sweep, object, err)
            : slc_fail(err, SLC_ERR_MEMORY, "no memory for the record of the sweep");
    json_decref(object);
    return status;
}

/* Prepares the largest rank, and loads or makes the record, before the first run. */
static enum slc_status open_record(struct sweep *sweep, struct slc_error *err)
{
    const struct slc_sweep_options *options = sweep->options;
    json_t *identity = NULL;
    bool found = false;
    uint32_t most = 0;
    enum slc_status status = check_options(options, err);

    for (unsigned r = 0; r < options->rank_count; r++) {
        most = options->ranks[r] > most ? options->ranks[r] : most;
    }
    SLC_THEN(status, options->prepare(options->context, most, &identity, err));
    if (status == SLC_OK && identity == NULL) {
        status = slc_fail(err, SLC_ERR_MEMORY, "no memory for the record of the sweep");
    }
    SLC_THEN(status, lock_folder(sweep, err));
    SLC_THEN(status, open_or_create_record(sweep, identity, &found, err));
    json_decref(identity);
    SLC_TRY(status);
    options->starting(options->context, !found);
    return SLC_OK;
}

enum slc_status slc_sweep(const struct slc_sweep_options *options,
                          struct slc_sweep_record *record,
                          struct slc_sweep_suggestion *suggestion,
                          enum slc_sweep_end *end,
                          int *code,
                          struct slc_error *err)
{
    struct sweep sweep = {
        .options = options, .record = record, .fd = -1, .start_ns = slc_clock_ns()};

    (void)snprintf(sweep.path, sizeof sweep.path, "%.1023s/sweep.json", options->folder);
    *end = SLC_SWEEP_COMPLETE;
    enum slc_status status = open_record(&sweep, err);
    if (status == SLC_OK) {
        *end = compute_runs(&sweep, &status, err);
    }
    if (status == SLC_OK && *end == SLC_SWEEP_COMPLETE) {
        status = finish(&sweep, suggestion, err);
    }
    *code = sweep.code;
    /* Removes a new, empty folder while it is still locked, so that no other sweep can use it. */
    if ((status != SLC_OK || *end != SLC_SWEEP_COMPLETE) && sweep.made && sweep.fd >= 0) {
        (void)slc_files_system()->remove_folder(slc_files_system()->self, options->folder);
    }
    slc_folder_unlock(slc_files_system(), &sweep.fd);
    return status;
}
