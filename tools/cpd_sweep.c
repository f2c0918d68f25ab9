/*
 * See cpd_sweep.h.
 *
 * A run that is through is recorded when its results are on the drive and before its checkpoint
 * goes: at whatever moment a sweep is killed, the run that was on its way goes on from its
 * checkpoint or is recorded. Factors that are not kept are removed when the record says so.
 */
#include "cpd_sweep.h"

#include "base/clock.h"
#include "base/memory.h"
#include "console.h"
#include "cpd_checkpoint.h"
#include "cpd_output.h"
#include "format.h"
#include "signals.h"
#include "storage/folder_lock.h"
#include "sweep_judge.h"
#include "sweep_report.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PATH_BYTES = 1024 + 128 };

struct sweep {
    const struct cpd_sweep_options *options;
    char folder[1024];
    char path[PATH_BYTES]; /* of sweep.json */
    struct sweep_record record;
    int fd; /* of the lock; -1: none */
    uint64_t start_ns;
};

static void run_folder(const struct sweep *sweep, uint32_t rank, uint64_t seed, char *path)
{
    char name[SWEEP_FOLDER_BYTES];

    (void)snprintf(path, PATH_BYTES, "%.1023s/%s", sweep->folder,
                   sweep_folder_name(name, rank, seed));
}

static enum slc_status name_folder(struct sweep *sweep, struct slc_error *err)
{
    const struct cpd_sweep_options *options = sweep->options;
    int length;

    if (options->output != NULL && strlen(options->output) >= sizeof sweep->folder) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "the name of the folder has %zu bytes; %zu are the limit",
                        strlen(options->output), sizeof sweep->folder - 1);
    }
    if (options->output != NULL) {
        (void)snprintf(sweep->folder, sizeof sweep->folder, "%s", options->output);
    } else {
        const char *name = cpd_output_store_name(options->store, &length);

        (void)snprintf(sweep->folder, sizeof sweep->folder, "%.*s.sweep", length, name);
    }
    (void)snprintf(sweep->path, sizeof sweep->path, "%.1023s/sweep.json", sweep->folder);
    return cpd_output_check_folder(sweep->folder, err);
}

static enum slc_status lock_folder(struct sweep *sweep, struct slc_error *err)
{
    const struct slc_files *files = slc_files_system();
    const int rc = files->make_folder(files->self, sweep->folder);
    bool taken;

    if (rc < 0 && rc != -EEXIST) {
        return slc_fail_errno(err, -rc, sweep->folder, "the results cannot be written there");
    }
    if (rc >= 0) {
        enum slc_status status = slc_name_sync(files, sweep->folder, err);

        if (status != SLC_OK) {
            return status;
        }
    }
    return slc_folder_lock(files, sweep->folder,
                           "another sluice makes a sweep in the same folder: wait for it, or name "
                           "another output",
                           &sweep->fd, &taken, err);
}

/* The record that is there, if the sweep is to go on from it; else a new one. */
static enum slc_status take_record(struct sweep *sweep, json_t *identity, struct slc_error *err)
{
    bool found = false;
    enum slc_status status = SLC_OK;

    if (!sweep->options->restart) {
        status = sweep_record_read(sweep->path, &sweep->record, &found, err);
    }
    if (status == SLC_OK && found) {
        status = sweep_record_compare(&sweep->record, identity, err);
    }
    if (status == SLC_OK && !found) {
        log_json_fresh(sweep->options->log);
        sweep->record.identity = json_incref(identity);
    }
    return status;
}

static enum slc_status write_record(struct sweep *sweep, json_t *suggestion, struct slc_error *err)
{
    return sweep_record_write(sweep->path, &sweep->record, sweep->options->store, suggestion, err);
}

/* Called by who runs it, when its results are there. */
static enum slc_status record_run(struct cpd_sweep_run *run, struct slc_error *err)
{
    struct sweep *sweep = run->sweep;
    enum slc_status status;

    run->record.kept = true;
    run->record.match = NAN;
    status = sweep_record_add(&sweep->record, &run->record, err);
    return status == SLC_OK ? write_record(sweep, NULL, err) : status;
}

/* The checkpoint of a run that is through, where a sweep was killed between the two. */
static enum slc_status remove_checkpoint(const char *folder, struct slc_error *err)
{
    const struct slc_files *files = slc_files_system();
    struct cpd_checkpoint checkpoint = {.file = NULL};
    enum slc_status status;
    bool found = false;

    for (unsigned which = 1; which <= 2; which++) {
        struct slc_file_stat stat;
        char path[PATH_BYTES + 32];

        (void)snprintf(path, sizeof path, "%s/checkpoint-%u.ckpt", folder, which);
        found = found || files->stat_path(files->self, path, &stat) >= 0;
    }
    if (!found) {
        return SLC_OK;
    }
    status = cpd_checkpoint_open(&checkpoint, folder, false, true, err);
    if (status == SLC_OK) {
        status = cpd_checkpoint_remove(&checkpoint, err);
    }
    cpd_checkpoint_close(&checkpoint);
    return status;
}

/* Removes the factors of a run, whose record stays. */
static enum slc_status
remove_factors(const struct sweep *sweep, const struct sweep_run *run, struct slc_error *err)
{
    const struct slc_files *files = slc_files_system();
    char folder[PATH_BYTES], path[PATH_BYTES + 32];

    run_folder(sweep, run->rank, run->seed, folder);
    for (unsigned n = 0; n <= SLC_MAX_ORDER; n++) {
        int rc;

        if (n == 0) {
            (void)snprintf(path, sizeof path, "%s/lambda.npy", folder);
        } else {
            (void)snprintf(path, sizeof path, "%s/mode-%u.npy", folder, n);
        }
        rc = files->unlink(files->self, path);
        if (rc < 0 && rc != -ENOENT && rc != -ENOTDIR) {
            return slc_fail_errno(err, -rc, path, "removing factors that are not to be kept");
        }
    }
    return SLC_OK;
}

/* Seconds that are left of the sweep's limit; 0: there is none. At least a moment. */
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

static void print_run(const struct sweep_run *run, bool before)
{
    struct format_text a;

    printf("  rank %4" PRIu32 ", seed %" PRIu64 ": fit %.6f, %s after %u iterations (%s)%s\n",
           run->rank, run->seed, run->fit, run->reason, run->iterations,
           format_seconds(&a, run->seconds), before ? ", from an earlier part of the sweep" : "");
    (void)fflush(stdout);
}

/* One run, unless it is through; an exit code. */
static int make_run(struct sweep *sweep, uint32_t rank, uint64_t seed, struct slc_error *err)
{
    const struct sweep_run *past = sweep_record_find(&sweep->record, rank, seed);
    struct cpd_sweep_run run = {
        .record = {.rank = rank, .seed = seed, .match = NAN, .heldout_rmse = NAN},
        .max_seconds = seconds_left(sweep),
        .written = record_run,
        .sweep = sweep};
    char folder[PATH_BYTES];
    int code;

    run_folder(sweep, rank, seed, folder);
    run.folder = folder;
    if (past != NULL) {
        if (!sweep->options->quiet) {
            print_run(past, true);
        }
        return remove_checkpoint(folder, err) == SLC_OK ? 0 : console_error(err);
    }
    if (signals_stop_wanted()) {
        return signals_exit_code();
    }
    if (time_is_up(sweep)) {
        return slc_status_exit_code(SLC_ERR_TIME_LIMIT);
    }
    code = sweep->options->run(sweep->options->context, &run);
    if (code == 0 && !sweep->options->quiet) {
        print_run(&run.record, false);
    }
    return code;
}

/* Whether what is known of a rank is of all its runs. */
static bool is_judged(struct sweep *sweep, uint32_t rank)
{
    const struct sweep_run *best = sweep_record_best(&sweep->record, rank);
    const struct sweep_rank *known = sweep_record_rank(&sweep->record, rank);
    unsigned runs = 0;

    for (unsigned i = 0; i < sweep->record.run_count; i++) {
        runs += sweep->record.runs[i].rank == rank;
    }
    return known != NULL && known->runs == runs && best != NULL && known->best_seed == best->seed;
}

/* Judges a rank whose runs are through, and lets go of the factors that are not to be kept. */
static enum slc_status finish_rank(struct sweep *sweep, uint32_t rank, struct slc_error *err)
{
    const struct cpd_sweep_options *options = sweep->options;
    const struct sweep_judge judge = {.store = options->store,
                                      .folder = sweep->folder,
                                      .consistency = options->consistency,
                                      .memory_bytes = options->memory_bytes,
                                      .threads = options->threads};
    enum slc_status status = SLC_OK;

    if (!is_judged(sweep, rank)) {
        status = sweep_judge_rank(&judge, &sweep->record, rank, err);
        for (unsigned i = 0; i < sweep->record.run_count && status == SLC_OK; i++) {
            struct sweep_run *run = &sweep->record.runs[i];

            if (run->rank == rank && !options->keep_all) {
                run->kept = run == sweep_record_best(&sweep->record, rank);
            }
        }
        if (status == SLC_OK) {
            status = write_record(sweep, NULL, err);
        }
    }
    for (unsigned i = 0; i < sweep->record.run_count && status == SLC_OK; i++) {
        const struct sweep_run *run = &sweep->record.runs[i];

        if (run->rank == rank && !run->kept) {
            status = remove_factors(sweep, run, err);
        }
    }
    return status;
}

static int all_runs(struct sweep *sweep, struct slc_error *err)
{
    const struct cpd_sweep_options *options = sweep->options;

    for (unsigned r = 0; r < options->ranks.count; r++) {
        const uint32_t rank = (uint32_t)options->ranks.number[r];
        enum slc_status status;

        for (uint64_t k = 0; k < options->runs; k++) {
            const int code = make_run(sweep, rank, options->seed + k, err);

            if (code != 0) {
                return code;
            }
        }
        status = finish_rank(sweep, rank, err);
        if (status != SLC_OK) {
            const int code = console_error(err);

            return status == SLC_ERR_INTERRUPTED ? signals_exit_code() : code;
        }
    }
    return 0;
}

static enum slc_status finish(struct sweep *sweep, struct slc_error *err)
{
    struct sweep_suggestion suggestion;
    enum slc_status status;
    json_t *object;

    sweep_suggest(&sweep->record, &suggestion);
    object = sweep_suggestion_json(&suggestion);
    status = write_record(sweep, object, err);
    json_decref(object);
    if (status == SLC_OK && !sweep->options->quiet) {
        sweep_report(&sweep->record, &suggestion, sweep->folder);
    }
    return status;
}

static void print_start(const struct sweep *sweep)
{
    const struct cpd_sweep_options *options = sweep->options;

    printf("Rank sweep of %s: rank%s ", options->store, options->ranks.count > 1 ? "s" : "");
    for (unsigned r = 0; r < options->ranks.count; r++) {
        printf("%s%" PRIu64, r > 0 ? "," : "", options->ranks.number[r]);
    }
    printf("; seed%s %" PRIu64, options->runs > 1 ? "s" : "", options->seed);
    if (options->runs > 1) {
        printf(" to %" PRIu64, options->seed + options->runs - 1);
    }
    printf("; in %s\n", sweep->folder);
    (void)fflush(stdout);
}

/* Everything up to the first run. */
static enum slc_status begin(struct sweep *sweep, struct slc_error *err)
{
    const struct cpd_sweep_options *options = sweep->options;
    json_t *identity = NULL;
    uint64_t most = 0;
    enum slc_status status = name_folder(sweep, err);

    for (unsigned r = 0; r < options->ranks.count; r++) {
        most = options->ranks.number[r] > most ? options->ranks.number[r] : most;
    }
    if (status == SLC_OK) {
        status = options->prepare(options->context, (uint32_t)most, &identity, err);
    }
    if (status == SLC_OK) {
        status = lock_folder(sweep, err);
    }
    if (status == SLC_OK) {
        status = take_record(sweep, identity, err);
    }
    json_decref(identity);
    return status;
}

int cpd_sweep(const struct cpd_sweep_options *options)
{
    struct sweep sweep = {
        .options = options, .record = SWEEP_RECORD_INIT, .fd = -1, .start_ns = slc_clock_ns()};
    struct slc_error err = SLC_ERROR_INIT;
    enum slc_status status = begin(&sweep, &err);
    int code = 0;

    if (status == SLC_OK) {
        if (!options->quiet) {
            print_start(&sweep);
        }
        code = all_runs(&sweep, &err);
        if (code == 0) {
            status = finish(&sweep, &err);
        } else if (code == slc_status_exit_code(SLC_ERR_TIME_LIMIT) || code > 128) {
            console_note("the same command goes on with the sweep, as %s records it", sweep.path);
        }
    }
    if (status != SLC_OK) {
        code = console_error(&err);
    }
    slc_folder_unlock(slc_files_system(), &sweep.fd);
    sweep_record_destroy(&sweep.record);
    return code;
}
