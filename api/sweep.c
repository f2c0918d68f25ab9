/* Public functions for sweeps over ranks and starts. Each run is a call of api_cpd, whose
 * checkpoint is in the folder of the run's results. */
#include "sweep/sweep.h"
#include "api/call.h"
#include "api/cpd.h"
#include "base/memory/memory.h"
#include "report/run_notes.h"
#include "sluice/experimental.h"
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
               "public texts have the size of the internal ones");

struct sluice_sweep {
    struct slc_sweep_record record;
    struct slc_sweep_suggestion suggestion;
};

struct sweep {
    const struct sluice_store *store;
    struct sluice_sweep_options options;
    struct sluice_cpd_options cpd;
    struct api_run run;
    struct slc_error fault; /* fault of the last run */
};

static enum slc_status
read_options(struct sweep *sweep, const struct sluice_sweep_options *options, struct slc_error *err)
{
    enum slc_status status = API_READ_OPTIONS(sluice_sweep_options, &sweep->options, options, err);

    SLC_THEN(status, api_cpd_read_options(&sweep->cpd, sweep->options.cpd, err));
    SLC_THEN(status, API_CHECK_CHOICES(err, {"consistency", (int)sweep->options.consistency,
                                             SLUICE_CONSISTENCY_NEVER}));
    if (status == SLC_OK && sweep->cpd.row_solver != NULL) {
        status = slc_fail(err, SLC_ERR_USAGE, "a sweep cannot use a row solver of the program");
    }
    if (status == SLC_OK && sweep->cpd.init_folder != NULL) {
        status = slc_fail(err, SLC_ERR_USAGE,
                          "the runs of a sweep have random starts: init_folder must be NULL");
    }
    api_run_init(&sweep->run, &sweep->cpd.run);
    sweep->cpd.run.memory_bytes = sweep->run.options.memory_bytes;
    sweep->cpd.run.stop = sweep->run.flag; /* a stop of the sweep also stops its current run */
    return status;
}

static struct sluice_sweep_run public_run(const struct slc_sweep_run *run)
{
    struct sluice_sweep_run known = {
        .struct_bytes = sizeof known,
        .rank = run->rank,
        .iterations = run->iterations,
        .seed = run->seed,
        .fit = run->fit,
        .seconds = run->seconds,
        .heldout_rmse = run->heldout_rmse,
        .heldout_deviance = run->heldout_deviance,
        .match = run->match,
        .stop_reason = strcmp(run->reason, "tol") == 0       ? SLUICE_STOP_TOLERANCE
                       : strcmp(run->reason, "holdout") == 0 ? SLUICE_STOP_HOLDOUT
                                                             : SLUICE_STOP_ITERATIONS,
        .kept = run->kept};

    (void)slc_sweep_folder_name(known.folder, run->rank, run->seed);
    return known;
}

/* Plans a run of the largest rank, so that insufficient memory is an error before the first run. */
static enum slc_status
prepare(void *context, uint32_t rank, json_t **identity, struct slc_error *err)
{
    const struct sweep *sweep = context;
    const struct sluice_compute_options *compute = &sweep->cpd.compute;
    const struct api_cpd_limits limits = api_cpd_limits(&sweep->cpd);
    struct slc_cp_options solver = {.rank = rank};
    enum slc_status status =
        api_cpd_terms(&sweep->cpd, sweep->store->store.manifest.order, &solver, err);
    const struct slc_sweep_method method = {
        .iterations = limits.iterations,
        .tolerance = limits.tolerance,
        .solver = &solver,
        .precision = compute->precision != 0 ? (enum slc_value_type)compute->precision : SLC_F64,
        .deterministic = compute->deterministic != 0,
        .holdout = sweep->cpd.holdout,
        .holdout_seed = sweep->cpd.holdout_seed};

    SLC_THEN(status, api_cpd_plan(sweep->store, rank, &sweep->cpd, NULL, err));
    *identity =
        status == SLC_OK ? slc_sweep_identity(&sweep->store->store.manifest, &method) : NULL;
    return status;
}

/* Does nothing, because the public interface has no callback for the start of a sweep. */
static void ignore_start(void *context, bool fresh)
{
    (void)context;
    (void)fresh;
}

static void report_run(void *context, const struct slc_sweep_run *run, bool before)
{
    struct sweep *sweep = context;
    const struct sluice_sweep_run known = public_run(run);

    (void)before;
    if (sweep->options.completed != NULL &&
        sweep->options.completed(sweep->cpd.run.context, &known) != 0) {
        api_run_stop(&sweep->run);
    }
}

/* Writes the results of a complete run, records the run in the sweep, and discards its
 * checkpoint. */
static enum slc_status
keep_run(const struct sluice_model *model, struct slc_sweep_job *job, struct slc_error *err)
{
    const struct slc_cp_result *result = &model->result;

    SLC_TRY(api_model_save(model, SLUICE_MODEL_NPY, job->folder, err));
    job->record.fit = result->fit;
    job->record.iterations = result->iterations;
    job->record.condition = slc_run_condition(result);
    job->record.seconds = result->times.total;
    if (result->heldout > 0) {
        job->record.heldout_rmse = result->heldout_rmse;
        job->record.heldout_deviance = result->heldout_deviance;
    }
    (void)snprintf(job->record.reason, sizeof job->record.reason, "%s",
                   slc_stop_reason_name(result->reason));
    enum slc_status status = job->written(job, err);
    return status == SLC_OK && result->checkpoints.count + result->checkpoints.resumes > 0
               ? slc_checkpoint_discard(slc_files_system(), job->folder, err)
               : status;
}

/* Computes a run and returns its status, which is 0 if the run is complete. A fault is stored in
 * the sweep. */
static int make_run(void *context, struct slc_sweep_job *job)
{
    struct sweep *sweep = context;
    struct sluice_cpd_options options = sweep->cpd;
    struct sluice_model *model = NULL;

    options.seed = job->record.seed;
    options.max_seconds = job->max_seconds;
    options.checkpoint_folder = job->folder;
    options.restart = sweep->options.restart;
    enum slc_status status =
        api_cpd(sweep->store, job->record.rank, &options, &model, &sweep->fault);
    if (status != SLC_OK) {
        return (int)status;
    }
    switch (model->result.reason) {
    case SLC_STOP_TIME:
        status = SLC_ERR_TIME_LIMIT;
        break;
    case SLC_STOP_SIGNAL:
        status = SLC_ERR_INTERRUPTED;
        break;
    case SLC_STOP_TOLERANCE:
    case SLC_STOP_ITERATIONS:
    case SLC_STOP_HOLDOUT:
        status = keep_run(model, job, &sweep->fault);
        break;
    }
    sluice_model_destroy(model);
    return (int)status;
}

/* Returns the status of a sweep that ended by `end`; `code` is the status of the last run. */
static enum slc_status
end_status(const struct sweep *sweep, enum slc_sweep_end end, int code, struct slc_error *err)
{
    enum slc_status status = SLC_OK;

    switch (end) {
    case SLC_SWEEP_COMPLETE:
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
        return slc_fail(err, status, "the sweep was stopped; the same call continues the sweep");
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
    const struct slc_sweep_options options = {
        .files = sweep->store->store.files,
        .store = sweep->store->store.path,
        .folder = folder,
        .ranks = ranks,
        .rank_count = rank_count,
        .runs = sweep->options.runs != 0 ? sweep->options.runs : 1,
        .seed = sweep->options.seed,
        .keep_all = sweep->options.keep_all != 0,
        .consistency = (enum slc_consistency)sweep->options.consistency,
        .restart = sweep->options.restart != 0,
        .max_seconds = sweep->options.max_seconds,
        .memory_bytes = sweep->cpd.run.memory_bytes,
        .threads = sweep->cpd.run.threads,
        .stop = sweep->run.stop.flag,
        .prepare = prepare,
        .starting = ignore_start,
        .run = make_run,
        .completed = report_run,
        .context = sweep};
    enum slc_sweep_end end;
    int code;

    SLC_TRY(slc_sweep(&options, &made->record, &made->suggestion, &end, &code, err));
    return end_status(sweep, end, code, err);
}

enum sluice_status sluice_sweep_ranks(const struct sluice_store *store,
                                      const char *folder,
                                      uint32_t rank_count,
                                      const uint32_t *ranks,
                                      const struct sluice_sweep_options *options,
                                      struct sluice_sweep **ret_sweep,
                                      struct sluice_error *ret_err)
{
    struct slc_error fault = SLC_ERROR_INIT, *const err = &fault;

    API_NEED(err, ret_err, {"store", store}, {"folder", folder},
             {"ranks", API_ARRAY(ranks, rank_count)}, {"ret_sweep", ret_sweep});
    struct sweep sweep = {.store = store, .fault = SLC_ERROR_INIT};
    struct sluice_sweep *made = NULL;
    enum slc_status status = read_options(&sweep, options, err);

    SLC_THEN(status, slc_check_outside_stores(slc_files_system(), folder, err));
    if (status == SLC_OK) {
        made = slc_calloc(1, sizeof *made);
        status = made != NULL
                     ? make_sweep(&sweep, folder, rank_count, ranks, made, err)
                     : slc_fail(err, SLC_ERR_MEMORY, "no memory for the record of the sweep");
    }
    if (status == SLC_OK) {
        *ret_sweep = made;
    } else {
        sluice_sweep_destroy(made);
    }
    return api_return(status, err, ret_err);
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
    return sweep != NULL ? sweep->record.run_count : 0;
}

uint32_t sluice_sweep_rank_count(const struct sluice_sweep *sweep)
{
    return sweep != NULL ? sweep->record.rank_count : 0;
}

static enum slc_status
check_number(uint32_t number, uint32_t count, const char *what, struct slc_error *err)
{
    return number < count
               ? SLC_OK
               : slc_fail(err, SLC_ERR_USAGE,
                          "%s %u does not exist: the sweep has %u, and numbers start at 0", what,
                          number, count);
}

enum sluice_status sluice_sweep_get_run(const struct sluice_sweep *sweep,
                                        uint32_t number,
                                        struct sluice_sweep_run *run,
                                        struct sluice_error *ret_err)
{
    struct slc_error fault = SLC_ERROR_INIT, *const err = &fault;

    API_NEED(err, ret_err, {"sweep", sweep}, {"run", run});
    enum slc_status status = check_number(number, sweep->record.run_count, "run", err);

    if (status == SLC_OK) {
        const struct sluice_sweep_run known = public_run(&sweep->record.runs[number]);

        status = API_FILL_REPORT(sluice_sweep_run, run, &known, err);
    }
    return api_return(status, err, ret_err);
}

enum sluice_status sluice_sweep_get_rank(const struct sluice_sweep *sweep,
                                         uint32_t number,
                                         struct sluice_sweep_rank *rank,
                                         struct sluice_error *ret_err)
{
    struct slc_error fault = SLC_ERROR_INIT, *const err = &fault;

    API_NEED(err, ret_err, {"sweep", sweep}, {"rank", rank});
    enum slc_status status = check_number(number, sweep->record.rank_count, "rank", err);

    if (status == SLC_OK) {
        const struct slc_sweep_rank *found = &sweep->record.ranks[number];
        const struct slc_sweep_run *best = slc_sweep_record_best(&sweep->record, found->rank);
        struct sluice_sweep_rank known = {.rank = found->rank,
                                          .runs = found->runs,
                                          .best_seed = found->best_seed,
                                          .best_fit = best != NULL ? best->fit : (double)NAN,
                                          .agreement = found->agreement,
                                          .consistency = found->consistency,
                                          .compared = found->compared,
                                          .reached = found->reached};

        memcpy(known.note, found->note, sizeof known.note);
        status = API_FILL_REPORT(sluice_sweep_rank, rank, &known, err);
    }
    return api_return(status, err, ret_err);
}

enum sluice_status sluice_sweep_suggest(const struct sluice_sweep *sweep,
                                        struct sluice_sweep_suggestion *suggestion,
                                        struct sluice_error *ret_err)
{
    struct slc_error fault = SLC_ERROR_INIT, *const err = &fault;

    API_NEED(err, ret_err, {"sweep", sweep}, {"suggestion", suggestion});
    struct sluice_sweep_suggestion known = {.rank = sweep->suggestion.rank,
                                            .best_rank = sweep->suggestion.best_rank};

    memcpy(known.folder, sweep->suggestion.folder, sizeof known.folder);
    memcpy(known.why, sweep->suggestion.why, sizeof known.why);
    return api_return(API_FILL_REPORT(sluice_sweep_suggestion, suggestion, &known, err), err,
                      ret_err);
}
