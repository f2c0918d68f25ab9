/*
 * Public API: sweeps over ranks and starts. Each run is one of sluice_cpd, with a checkpoint in the
 * folder of its results.
 */
#include "sweep/sweep.h"
#include "api/internal.h"
#include "base/error/clock.h"
#include "base/memory/memory.h"
#include "storage/checkpoint/checkpoint.h"
#include "storage/manifest/path_guard.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

_Static_assert(sizeof((struct sluice_sweep_run *)0)->folder == SLC_SWEEP_FOLDER_BYTES &&
                   sizeof((struct sluice_sweep_rank *)0)->note ==
                       sizeof((struct slc_sweep_rank *)0)->note &&
                   sizeof((struct sluice_sweep_suggestion *)0)->why ==
                       sizeof((struct slc_sweep_suggestion *)0)->why,
               "texts have the same room outside");

struct sluice_sweep {
    struct slc_sweep_record record;
    struct slc_sweep_suggestion suggestion;
};

/* One sweep: what was asked for. */
struct sweep {
    const struct sluice_store *store;
    struct sluice_sweep_options options;
    struct sluice_cpd_options cpd;
    struct sluice_compute_options compute;
    volatile int stopped;   /* where the caller has no flag of its own */
    struct slc_error fault; /* of a run */
};

static enum slc_status
take_options(struct sweep *sweep, const struct sluice_sweep_options *options, struct slc_error *err)
{
    enum slc_status status;

    sluice_sweep_options_init(&sweep->options, sizeof sweep->options);
    status = api_take_options(&sweep->options, sizeof sweep->options, options,
                              "sluice_sweep_options", err);
    sluice_cpd_options_init(&sweep->cpd, sizeof sweep->cpd);
    if (status == SLC_OK) {
        status = api_take_options(&sweep->cpd, sizeof sweep->cpd, sweep->options.cpd,
                                  "sluice_cpd_options", err);
    }
    if (status == SLC_OK) {
        status = api_take_compute(&sweep->compute, sweep->cpd.compute, err);
    }
    if (status == SLC_OK &&
        (unsigned)sweep->options.consistency > (unsigned)SLUICE_CONSISTENCY_NEVER) {
        status = slc_fail(err, SLC_ERR_USAGE, "consistency %d is not one of the enumeration",
                          (int)sweep->options.consistency);
    }
    if (status == SLC_OK && sweep->cpd.init_folder != NULL) {
        status = slc_fail(err, SLC_ERR_USAGE,
                          "the runs of a sweep differ by their random starts: init_folder has to "
                          "be NULL");
    }
    sweep->cpd.struct_bytes = sizeof sweep->cpd;
    sweep->compute.struct_bytes = sizeof sweep->compute;
    sweep->cpd.compute = &sweep->compute;
    if (sweep->compute.stop == NULL) {
        sweep->compute.stop = &sweep->stopped;
    }
    return status;
}

static struct sluice_sweep_run give_run(const struct slc_sweep_run *run)
{
    struct sluice_sweep_run known = {
        .struct_bytes = sizeof known,
        .rank = run->rank,
        .iterations = run->iterations,
        .seed = run->seed,
        .fit = run->fit,
        .seconds = run->seconds,
        .heldout_rmse = run->heldout_rmse,
        .match = run->match,
        .stop = strcmp(run->reason, "tol") == 0 ? SLUICE_STOP_TOLERANCE : SLUICE_STOP_ITERATIONS,
        .kept = run->kept};

    (void)slc_sweep_folder_name(known.folder, run->rank, run->seed);
    return known;
}

/* Plans for the largest rank: what does not fit is told before the first run. */
static enum slc_status
prepare(void *context, uint32_t rank, json_t **identity, struct slc_error *err)
{
    const struct sweep *sweep = context;
    const struct slc_sweep_method method = {.iterations = sweep->cpd.iterations,
                                            .tolerance = sweep->cpd.tolerance,
                                            .regularization = sweep->cpd.regularization,
                                            .precision =
                                                (enum slc_value_type)sweep->compute.precision,
                                            .deterministic = sweep->compute.deterministic != 0,
                                            .holdout = sweep->cpd.holdout,
                                            .holdout_seed = sweep->cpd.holdout_seed};
    struct sluice_plan plan = {.struct_bytes = sizeof plan};
    const enum slc_status status = sluice_cpd_plan(sweep->store, rank, &sweep->compute, &plan, err);

    *identity =
        status == SLC_OK ? slc_sweep_identity(&sweep->store->store.manifest, &method) : NULL;
    return status;
}

/* Nobody needs to know. */
static void begin(void *context, bool fresh)
{
    (void)context;
    (void)fresh;
}

static void told(void *context, const struct slc_sweep_run *run, bool before)
{
    struct sweep *sweep = context;
    const struct sluice_sweep_run known = give_run(run);

    (void)before;
    if (sweep->options.run != NULL && sweep->options.run(sweep->options.context, &known) != 0) {
        *sweep->compute.stop = 1;
    }
}

/* Writes the results of a run that is through and records it, and then lets go of its checkpoint.
 */
static enum slc_status
keep_run(const struct sluice_cpd *model, struct slc_sweep_job *job, struct slc_error *err)
{
    const struct slc_cp_result *result = &model->result;
    enum slc_status status = sluice_cpd_save(model, SLUICE_MODEL_NPY, job->folder, err);

    if (status != SLC_OK) {
        return status;
    }
    job->record.fit = result->fit;
    job->record.iterations = result->iterations;
    job->record.seconds = result->times.total;
    if (result->heldout > 0) {
        job->record.heldout_rmse = result->heldout_rmse;
    }
    (void)snprintf(job->record.reason, sizeof job->record.reason, "%s",
                   slc_stop_reason_name(result->reason));
    status = job->written(job, err);
    return status == SLC_OK && result->checkpoints.count + result->checkpoints.resumes > 0
               ? slc_checkpoint_discard(slc_files_system(), job->folder, err)
               : status;
}

/* The status of a run, which is 0 when it is through; the fault is kept. */
static int run(void *context, struct slc_sweep_job *job)
{
    struct sweep *sweep = context;
    struct sluice_cpd_options options = sweep->cpd;
    struct sluice_cpd *model = NULL;
    enum slc_status status;

    options.seed = job->record.seed;
    options.max_seconds = job->max_seconds;
    options.checkpoint_folder = job->folder;
    options.restart = sweep->options.restart;
    status = sluice_cpd(sweep->store, job->record.rank, &options, &model, &sweep->fault);
    if (status != SLC_OK) {
        return (int)status;
    }
    switch (sluice_cpd_stop(model)) {
    case SLUICE_STOP_TIME:
        status = SLC_ERR_TIME_LIMIT;
        break;
    case SLUICE_STOP_SIGNAL:
        status = SLC_ERR_INTERRUPTED;
        break;
    case SLUICE_STOP_TOLERANCE:
    case SLUICE_STOP_ITERATIONS:
        status = keep_run(model, job, &sweep->fault);
        break;
    }
    sluice_cpd_destroy(model);
    return (int)status;
}

/* What the end of a sweep is to its caller. */
static enum slc_status
end_status(const struct sweep *sweep, enum slc_sweep_end end, int code, struct slc_error *err)
{
    enum slc_status status = SLC_OK;

    switch (end) {
    case SLC_SWEEP_THROUGH:
        return SLC_OK;
    case SLC_SWEEP_STOPPED:
        status = SLC_ERR_INTERRUPTED;
        break;
    case SLC_SWEEP_TIME:
        status = SLC_ERR_TIME_LIMIT;
        break;
    case SLC_SWEEP_RUN:
        status = (enum slc_status)code;
        break;
    }
    if (status == SLC_ERR_TIME_LIMIT || status == SLC_ERR_INTERRUPTED) {
        return slc_fail(err, status, "the sweep was stopped; the same call goes on with it");
    }
    if (err != NULL) {
        *err = sweep->fault;
    }
    return status;
}

static enum slc_status make_sweep(struct sweep *sweep,
                                  const char *folder,
                                  uint32_t rank_count,
                                  const uint32_t *ranks,
                                  struct sluice_sweep *made,
                                  struct slc_error *err)
{
    const struct slc_sweep_options options = {.store = sweep->store->store.path,
                                              .folder = folder,
                                              .ranks = ranks,
                                              .rank_count = rank_count,
                                              .runs = sweep->options.runs,
                                              .seed = sweep->options.seed,
                                              .keep_all = sweep->options.keep_all != 0,
                                              .consistency =
                                                  (enum slc_consistency)sweep->options.consistency,
                                              .restart = sweep->options.restart != 0,
                                              .max_seconds = sweep->options.max_seconds,
                                              .memory_bytes = sweep->compute.memory_bytes,
                                              .threads = sweep->compute.threads,
                                              .stop = sweep->compute.stop,
                                              .prepare = prepare,
                                              .begin = begin,
                                              .run = run,
                                              .told = told,
                                              .context = sweep};
    enum slc_sweep_end end;
    int code;
    const enum slc_status status =
        slc_sweep(&options, &made->record, &made->suggestion, &end, &code, err);

    return status == SLC_OK ? end_status(sweep, end, code, err) : status;
}

enum slc_status sluice_sweep(const struct sluice_store *store,
                             const char *folder,
                             uint32_t rank_count,
                             const uint32_t *ranks,
                             const struct sluice_sweep_options *options,
                             struct sluice_sweep **ret_sweep,
                             struct slc_error *err)
{
    struct sweep sweep = {.store = store, .fault = SLC_ERROR_INIT};
    struct sluice_sweep *made;
    enum slc_status status = take_options(&sweep, options, err);

    if (status == SLC_OK) {
        status = api_need_path(folder, "folder", err);
    }
    if (status == SLC_OK) {
        status = slc_check_outside_stores(slc_files_system(), folder, err);
    }
    if (status != SLC_OK) {
        return status;
    }
    made = slc_calloc(1, sizeof *made);
    if (made == NULL) {
        return slc_fail(err, SLC_ERR_MEMORY, "no memory for the record of the sweep");
    }
    status = make_sweep(&sweep, folder, rank_count, ranks, made, err);
    if (status != SLC_OK) {
        sluice_sweep_destroy(made);
        return status;
    }
    *ret_sweep = made;
    return SLC_OK;
}

void sluice_sweep_destroy(struct sluice_sweep *sweep)
{
    if (sweep != NULL) {
        slc_sweep_record_destroy(&sweep->record);
        slc_free(sweep);
    }
}

uint32_t sluice_sweep_run_count(const struct sluice_sweep *sweep)
{
    return sweep->record.run_count;
}

uint32_t sluice_sweep_rank_count(const struct sluice_sweep *sweep)
{
    return sweep->record.rank_count;
}

static enum slc_status
check_number(uint32_t number, uint32_t count, const char *what, struct slc_error *err)
{
    return number < count
               ? SLC_OK
               : slc_fail(err, SLC_ERR_USAGE, "%s %u of %u, from 0 on", what, number, count);
}

enum slc_status sluice_sweep_get_run(const struct sluice_sweep *sweep,
                                     uint32_t number,
                                     struct sluice_sweep_run *run,
                                     struct slc_error *err)
{
    struct sluice_sweep_run known;
    const enum slc_status status = check_number(number, sweep->record.run_count, "run", err);

    if (status != SLC_OK) {
        return status;
    }
    known = give_run(&sweep->record.runs[number]);
    return api_give_report(run, &known, sizeof known, "sluice_sweep_run", err);
}

enum slc_status sluice_sweep_get_rank(const struct sluice_sweep *sweep,
                                      uint32_t number,
                                      struct sluice_sweep_rank *rank,
                                      struct slc_error *err)
{
    const struct slc_sweep_rank *found =
        &sweep->record.ranks[number < SLC_SWEEP_RANKS_MAX ? number : 0];
    struct sluice_sweep_rank known = {.struct_bytes = sizeof known};
    const struct slc_sweep_run *best;
    const enum slc_status status = check_number(number, sweep->record.rank_count, "rank", err);

    if (status != SLC_OK) {
        return status;
    }
    best = slc_sweep_record_best(&sweep->record, found->rank);
    known.rank = found->rank;
    known.runs = found->runs;
    known.best_seed = found->best_seed;
    known.best_fit = best != NULL ? best->fit : (double)NAN;
    known.agreement = found->agreement;
    known.consistency = found->consistency;
    known.compared = found->compared;
    memcpy(known.note, found->note, sizeof known.note);
    return api_give_report(rank, &known, sizeof known, "sluice_sweep_rank", err);
}

enum slc_status sluice_sweep_suggest(const struct sluice_sweep *sweep,
                                     struct sluice_sweep_suggestion *suggestion,
                                     struct slc_error *err)
{
    struct sluice_sweep_suggestion known = {.struct_bytes = sizeof known,
                                            .rank = sweep->suggestion.rank,
                                            .best_rank = sweep->suggestion.best_rank};

    memcpy(known.folder, sweep->suggestion.folder, sizeof known.folder);
    memcpy(known.why, sweep->suggestion.why, sizeof known.why);
    return api_give_report(suggestion, &known, sizeof known, "sluice_sweep_suggestion", err);
}
