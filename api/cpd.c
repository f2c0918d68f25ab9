/*
 * Public API: CP decomposition, its checkpoints, and what can be asked of its result.
 */
#include "api/internal.h"
#include "api/record.h"
#include "base/error/log.h"
#include "base/memory/memory.h"
#include "engine/solve/cp_als.h"
#include "engine/solve/cp_checkpoint.h"
#include "storage/manifest/path_guard.h"
#include "storage/model/model.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One run: what was asked for and what it holds. */
struct run {
    struct sluice_cpd_options options;
    struct sluice_compute_options compute;
    volatile int stopped; /* where the caller has no flag of its own */
    volatile int *stop;
    struct slc_checkpoint *checkpoint;
    struct slc_session session;
    struct api_history history;
    double seconds_before; /* of the runs that this one goes on from */
};

static struct sluice_cpd_iteration give_iteration(const struct slc_cp_iteration *iteration)
{
    struct sluice_cpd_iteration known = {.iteration = iteration->iteration,
                                         .fit = iteration->fit,
                                         .delta = iteration->delta,
                                         .seconds = iteration->seconds,
                                         .bytes_read = iteration->bytes_read,
                                         .heldout = iteration->heldout,
                                         .heldout_rmse = iteration->heldout_rmse,
                                         .heldout_mae = iteration->heldout_mae};

    for (unsigned n = 0; n < SLC_MAX_ORDER; n++) {
        known.singular |= (uint32_t)iteration->singular[n] << n;
    }
    return known;
}

static void on_iteration(void *context, const struct slc_cp_iteration *iteration)
{
    struct run *run = context;
    const struct sluice_cpd_iteration known = give_iteration(iteration);

    api_history_add(&run->history, iteration);
    if (run->options.iteration != NULL &&
        run->options.iteration(run->options.context, &known) != 0) {
        *run->stop = 1;
    }
}

static void
on_blocks(void *context, unsigned iteration, unsigned mode, uint64_t done, uint64_t blocks)
{
    struct run *run = context;
    const struct sluice_cpd_progress known = {
        .iteration = iteration, .mode = mode, .blocks_done = done, .blocks = blocks};

    if (run->options.progress(run->options.context, &known) != 0) {
        *run->stop = 1;
    }
}

/* Without memory for them, it has no iterations before it. */
static void tell_resume(const struct run *run, const struct slc_cp_resume *resume)
{
    struct sluice_cpd_iteration *past =
        resume->past_count > 0 ? slc_calloc(resume->past_count, sizeof *past) : NULL;
    const struct sluice_cpd_checkpoint known = {.iteration = resume->iteration,
                                                .mode = resume->mode,
                                                .seconds = resume->seconds,
                                                .past_count = past != NULL ? resume->past_count : 0,
                                                .past = past};

    for (uint64_t i = 0; i < known.past_count; i++) {
        past[i] = give_iteration(&resume->past[i]);
    }
    run->options.resumed(run->options.context, &known);
    slc_free(past);
}

static void on_resume(void *context, const struct slc_cp_resume *resume)
{
    struct run *run = context;

    run->seconds_before = resume->seconds;
    for (unsigned i = 0; i < resume->past_count; i++) {
        api_history_add(&run->history, &resume->past[i]);
    }
    if (run->options.resumed != NULL) {
        tell_resume(run, resume);
    }
}

static void on_checkpoint(void *context, const struct slc_cp_checkpointed *written)
{
    const struct run *run = context;
    const struct sluice_cpd_checkpoint known = {.iteration = written->iteration,
                                                .mode = written->mode,
                                                .seconds = written->seconds,
                                                .bytes = written->bytes};

    run->options.checkpointed(run->options.context, &known);
}

static struct slc_cp_als_options solver_options(struct run *run, uint32_t rank)
{
    const struct sluice_cpd_options *known = &run->options;
    struct slc_cp_als_options options = {.rank = rank,
                                         .iterations = known->iterations,
                                         .tolerance = known->tolerance,
                                         .max_seconds = known->max_seconds,
                                         .regularization = known->regularization,
                                         .seed = known->seed,
                                         .holdout = known->holdout,
                                         .holdout_seed = known->holdout_seed,
                                         .init_folder = known->init_folder,
                                         .deterministic = run->compute.deterministic != 0,
                                         .stop = run->stop,
                                         .checkpoint = run->checkpoint,
                                         .checkpoint_seconds = known->checkpoint_seconds,
                                         .iteration = on_iteration,
                                         .resumed = on_resume,
                                         .context = run};

    options.progress = known->progress != NULL ? on_blocks : NULL;
    options.checkpointed = known->checkpointed != NULL ? on_checkpoint : NULL;
    return options;
}

static enum slc_status
take_options(struct run *run, const struct sluice_cpd_options *options, struct slc_error *err)
{
    enum slc_status status;

    sluice_cpd_options_init(&run->options, sizeof run->options);
    status =
        api_take_options(&run->options, sizeof run->options, options, "sluice_cpd_options", err);
    if (status == SLC_OK) {
        status = api_take_compute(&run->compute, run->options.compute, err);
    }
    /* Before a plan is made with it; written so that NaN fails, too. */
    if (status == SLC_OK && (!(run->options.holdout >= 0.0) || !(run->options.holdout <= 0.5))) {
        status = slc_fail(err, SLC_ERR_USAGE, "holdout %g is no part of the nonzeros from 0 to 0.5",
                          run->options.holdout);
    }
    run->stop = run->compute.stop != NULL ? run->compute.stop : &run->stopped;
    return status;
}

static enum slc_status open_checkpoint(struct run *run, struct slc_error *err)
{
    const struct slc_error *fault;
    enum slc_status status;

    if (run->options.checkpoint_folder == NULL || run->options.iterations == 0) {
        return SLC_OK;
    }
    status = slc_check_outside_stores(slc_files_system(), run->options.checkpoint_folder, err);
    if (status == SLC_OK) {
        status = slc_checkpoint_open(NULL, run->options.checkpoint_folder,
                                     run->options.restart != 0, &run->checkpoint, err);
    }
    if (status != SLC_OK) {
        return status;
    }
    fault = slc_checkpoint_fault(run->checkpoint);
    if (fault->status != SLC_OK) {
        slc_log(SLC_LOG_WARNING, "%s: %s; going on from the generation before", fault->file,
                fault->message);
    }
    return SLC_OK;
}

/* What is planned: in the order of modes that the run was begun with, where that goes on. */
static struct slc_plan_request
cpd_request(const struct run *run, const struct sluice_store *store, uint32_t rank)
{
    struct slc_plan_request request = api_plan_request(&run->compute, SLC_OP_CPD, 0, rank);
    const struct slc_manifest *manifest = &store->store.manifest;

    request.beside_bytes = slc_cp_holdout_bytes(
        manifest->order, manifest->nnz, run->options.holdout, api_threads(run->compute.threads));
    request.mode_order_set = run->options.mode_order_set != 0;
    for (unsigned n = 0; n < SLC_MAX_ORDER; n++) {
        request.mode_order[n] = run->options.mode_order[n];
    }
    if (!request.mode_order_set && !request.deterministic && run->checkpoint != NULL) {
        request.mode_order_set =
            slc_cp_saved_order(run->checkpoint, manifest->order, request.mode_order);
    }
    return request;
}

static enum slc_status factorize(struct run *run,
                                 const struct sluice_store *store,
                                 uint32_t rank,
                                 struct sluice_cpd *model,
                                 struct slc_error *err)
{
    struct slc_plan_request request;
    struct slc_cp_als_options solver;
    struct slc_stream_stats stats;
    enum slc_status status = open_checkpoint(run, err);

    if (status != SLC_OK) {
        return status;
    }
    request = cpd_request(run, store, rank);
    status = api_session_open(&run->session, store, &request, &run->compute, err);
    if (status == SLC_OK) {
        solver = solver_options(run, rank);
        solver.devices = run->session.devices;
        solver.layouts = &run->session.layouts;
        solver.gpus = run->session.group;
        solver.gpu = run->session.group == NULL ? run->session.gpu : NULL;
        status = slc_cp_als(&store->store, run->session.stream, run->session.backend,
                            &run->session.plan, &solver, &model->result, err);
        slc_stream_stats(run->session.stream, &stats);
        model->bytes_read = stats.bytes_read;
    }
    if (status == SLC_OK) {
        const struct api_run made = {.store = store,
                                     .rank = rank,
                                     .options = &run->options,
                                     .compute = &run->compute,
                                     .plan = &run->session.plan,
                                     .result = &model->result,
                                     .stats = &stats,
                                     .history = &run->history,
                                     .seconds_before = run->seconds_before};

        model->record = api_record_make(&made);
    }
    api_history_destroy(&run->history);
    slc_session_close(&run->session);
    slc_checkpoint_close(run->checkpoint);
    return status;
}

enum slc_status sluice_cpd(const struct sluice_store *store,
                           uint32_t rank,
                           const struct sluice_cpd_options *options,
                           struct sluice_cpd **ret_model,
                           struct slc_error *err)
{
    struct run run = {.stopped = 0};
    struct sluice_cpd *model = NULL;
    enum slc_status status = take_options(&run, options, err);

    if (status != SLC_OK) {
        return status;
    }
    model = slc_calloc(1, sizeof *model);
    if (model == NULL) {
        return slc_fail(err, SLC_ERR_MEMORY, "no memory for a model");
    }
    status = factorize(&run, store, rank, model, err);
    if (status != SLC_OK) {
        sluice_cpd_destroy(model);
        return status;
    }
    memcpy(model->dialect, store->store.manifest.origin.dialect, sizeof model->dialect);
    model->index_base = store->store.manifest.origin.index_base;
    *ret_model = model;
    return SLC_OK;
}

enum slc_status sluice_cpd_checkpoint_remove(const char *folder, struct slc_error *err)
{
    const struct slc_files *files = slc_files_system();
    struct slc_file_stat stat;
    enum slc_status status = api_need_path(folder, "folder", err);

    if (status != SLC_OK) {
        return status;
    }
    if (files->stat_path(files->self, folder, &stat) == -ENOENT) {
        return SLC_OK;
    }
    status = slc_checkpoint_discard(files, folder, err);
    /* Where anything else is in it, it stays, as the system sees to. */
    if (status == SLC_OK) {
        (void)files->remove_folder(files->self, folder);
    }
    return status;
}

enum slc_status sluice_cpd_report(const struct sluice_cpd *model,
                                  struct sluice_cpd_report *report,
                                  struct slc_error *err)
{
    const struct slc_cp_result *result = &model->result;
    struct sluice_cpd_report known = {.struct_bytes = sizeof known,
                                      .order = result->order,
                                      .rank = result->rank,
                                      .iterations = result->iterations,
                                      .stop = (enum sluice_stop)result->reason,
                                      .fit = result->fit,
                                      .norm = result->norm_x,
                                      .resumes = result->checkpoints.resumes,
                                      .checkpoints = result->checkpoints.count,
                                      .seconds = result->times.total,
                                      .mttkrp_seconds = result->times.mttkrp,
                                      .solve_seconds = result->times.solve,
                                      .fit_seconds = result->times.fit,
                                      .checkpoint_seconds = result->checkpoints.seconds,
                                      .bytes_read = model->bytes_read,
                                      .heldout = result->heldout,
                                      .heldout_rmse = result->heldout_rmse,
                                      .heldout_mae = result->heldout_mae,
                                      .heldout_norm = result->heldout_norm,
                                      .device_nnz = result->gpu.nnz};

    if (result->reason == SLC_STOP_TIME || result->reason == SLC_STOP_SIGNAL) {
        known.resume_iteration = result->resume_iteration;
        known.resume_mode = result->resume_mode;
    }
    for (unsigned n = 0; n < result->order; n++) {
        known.mode_order[n] = result->mode_order[n];
    }
    return api_give_report(report, &known, sizeof known, "sluice_cpd_report", err);
}

void sluice_cpd_destroy(struct sluice_cpd *model)
{
    if (model != NULL) {
        slc_cp_result_destroy(&model->result);
        free(model->record);
        slc_free(model);
    }
}

uint32_t sluice_cpd_order(const struct sluice_cpd *model)
{
    return model->result.order;
}

uint32_t sluice_cpd_rank(const struct sluice_cpd *model)
{
    return model->result.rank;
}

double sluice_cpd_fit(const struct sluice_cpd *model)
{
    return model->result.fit;
}

uint32_t sluice_cpd_iterations(const struct sluice_cpd *model)
{
    return model->result.iterations;
}

enum sluice_stop sluice_cpd_stop(const struct sluice_cpd *model)
{
    return (enum sluice_stop)model->result.reason;
}

void sluice_cpd_lambda(const struct sluice_cpd *model, double *lambda)
{
    memcpy(lambda, model->result.lambda, model->result.rank * sizeof *lambda);
}

uint64_t sluice_cpd_rows(const struct sluice_cpd *model, uint32_t mode)
{
    return model->result.factors[mode].rows;
}

void sluice_cpd_factor(const struct sluice_cpd *model, uint32_t mode, double *factor)
{
    api_copy_out(&model->result.factors[mode], factor);
}
