/* Public functions for CP decompositions and their checkpoints. */
#include "api/cpd.h"

#include "api/call.h"
#include "api/row_solver.h"
#include "api/session.h"
#include "base/error/log.h"
#include "base/memory/memory.h"
#include "base/thread/team.h"
#include "engine/plan/plan_sizes.h"
#include "engine/solve/cp_checkpoint.h"
#include "report/json_parts.h"
#include "report/json_plan.h"
#include "report/run_record.h"
#include "storage/manifest/json_text.h"
#include "storage/manifest/path_guard.h"
#include "storage/model/run_folder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Options and resources of a run. */
struct run {
    const struct sluice_cpd_options *options;
    struct api_run call;
    struct slc_checkpoint *checkpoint;
    struct slc_session session;
    struct api_row_solver row_solver; /* if options->row_solver is set */
    struct api_history history;
    double seconds_before; /* time of the earlier runs that this run resumed */
};

struct api_cpd_limits api_cpd_limits(const struct sluice_cpd_options *options)
{
    struct api_cpd_limits limits = {
        .iterations = options->iterations != 0 ? options->iterations : 50,
        .tolerance =
            options->tolerance != 0 ? options->tolerance
            : options->loss == SLUICE_LOSS_POISSON && options->unlisted == SLUICE_UNLISTED_ZERO
                ? SLC_CP_VIOLATION
                : SLC_CP_TOLERANCE,
        .checkpoint_seconds = options->checkpoint_seconds == 0 ? -1 : options->checkpoint_seconds};

    if (options->start_only != 0) {
        limits.iterations = 0;
    }
    if (options->tolerance < 0) {
        limits.tolerance = 0;
    }
    if (options->checkpoint_seconds < 0) {
        limits.checkpoint_seconds = 0;
    }
    return limits;
}

enum slc_status api_cpd_read_options(struct sluice_cpd_options *known,
                                     const struct sluice_cpd_options *options,
                                     struct slc_error *err)
{
    enum slc_status status = API_READ_OPTIONS(sluice_cpd_options, known, options, err);

    SLC_THEN(status, api_check_compute(&known->compute, err));
    /* Invalid options are reported before planning. The condition below also rejects NaN. */
    SLC_TRY(status);
    if (!(known->holdout >= 0.0) || !(known->holdout <= 0.5)) {
        return slc_fail(err, SLC_ERR_USAGE, "holdout is %g: it must be a fraction from 0 to 0.5",
                        known->holdout);
    }
    return SLC_OK;
}

static struct sluice_iteration public_iteration(const struct slc_cp_iteration *iteration)
{
    struct sluice_iteration known = {.iteration = iteration->iteration,
                                     .fit = iteration->fit,
                                     .delta = iteration->delta,
                                     .seconds = iteration->seconds,
                                     .bytes_read = iteration->bytes_read,
                                     .heldout = iteration->heldout,
                                     .heldout_rmse = iteration->heldout_rmse,
                                     .heldout_mae = iteration->heldout_mae,
                                     .objective = iteration->objective,
                                     .violation = iteration->violation,
                                     .inner = iteration->inner,
                                     .heldout_deviance = iteration->heldout_deviance};

    for (unsigned n = 0; n < SLC_MAX_ORDER; n++) {
        known.singular |= (uint32_t)iteration->singular[n] << n;
    }
    return known;
}

static void on_iteration(void *context, const struct slc_cp_iteration *iteration)
{
    struct run *run = context;
    const struct sluice_iteration known = public_iteration(iteration);

    api_history_add(&run->history, iteration);
    if (run->options->iteration != NULL &&
        run->options->iteration(run->options->run.context, &known) != 0) {
        api_run_stop(&run->call);
    }
}

static void
on_blocks(void *context, unsigned iteration, unsigned mode, uint64_t done, uint64_t blocks)
{
    struct run *run = context;
    const struct sluice_progress known = {
        .phase = "factorize", .done = done, .total = blocks, .iteration = iteration, .mode = mode};

    if (run->options->run.progress(run->options->run.context, &known) != 0) {
        api_run_stop(&run->call);
    }
}

/* Reports that the run resumes. If memory does not suffice to copy the earlier iterations, none are
 * reported. */
static void report_resume(const struct run *run, const struct slc_cp_resume *resume)
{
    const unsigned count = resume->past_count;
    struct sluice_iteration *past = count > 0 ? slc_calloc(count, sizeof *past) : NULL;
    const struct sluice_iteration **list = count > 0 ? slc_calloc(count, sizeof *list) : NULL;
    const bool have = past != NULL && list != NULL;
    const struct sluice_checkpoint known = {.iteration = resume->iteration,
                                            .mode = resume->mode,
                                            .seconds = resume->seconds,
                                            .past_count = have ? count : 0,
                                            .past = list};

    for (unsigned i = 0; have && i < count; i++) {
        past[i] = public_iteration(&resume->past[i]);
        list[i] = &past[i];
    }
    run->options->resumed(run->options->run.context, &known);
    slc_free(past);
    slc_free(list);
}

static void on_resume(void *context, const struct slc_cp_resume *resume)
{
    struct run *run = context;

    run->seconds_before = resume->seconds;
    for (unsigned i = 0; i < resume->past_count; i++) {
        api_history_add(&run->history, &resume->past[i]);
    }
    if (run->options->resumed != NULL) {
        report_resume(run, resume);
    }
}

static void on_checkpoint(void *context, const struct slc_cp_checkpointed *written)
{
    const struct run *run = context;
    const struct sluice_checkpoint known = {.iteration = written->iteration,
                                            .mode = written->mode,
                                            .seconds = written->seconds,
                                            .bytes = written->bytes};

    run->options->checkpointed(run->options->run.context, &known);
}

static struct slc_cp_options solver_options(struct run *run, unsigned order, uint32_t rank)
{
    const struct sluice_cpd_options *known = run->options;
    const struct api_cpd_limits limits = api_cpd_limits(known);
    struct slc_cp_options options = {.rank = rank,
                                     .iterations = limits.iterations,
                                     .tolerance = limits.tolerance,
                                     .max_seconds = known->max_seconds,
                                     .seed = known->seed,
                                     .holdout = known->holdout,
                                     .holdout_seed = known->holdout_seed,
                                     .init_folder = known->init_folder,
                                     .deterministic = known->compute.deterministic != 0,
                                     .stop = run->call.stop.flag,
                                     .checkpoint = run->checkpoint,
                                     .checkpoint_seconds = limits.checkpoint_seconds,
                                     .iteration = on_iteration,
                                     .resumed = on_resume,
                                     .context = run};

    api_cpd_fill_terms(known, order, &options); /* cpd_request has checked the terms */
    options.progress = known->run.progress != NULL ? on_blocks : NULL;
    options.checkpointed = known->checkpointed != NULL ? on_checkpoint : NULL;
    return options;
}

static enum slc_status open_checkpoint(struct run *run, struct slc_error *err)
{
    if (run->options->checkpoint_folder == NULL || api_cpd_limits(run->options).iterations == 0) {
        return SLC_OK;
    }
    enum slc_status status =
        slc_check_outside_stores(slc_files_system(), run->options->checkpoint_folder, err);
    SLC_THEN(status, slc_checkpoint_open(NULL, run->options->checkpoint_folder,
                                         run->options->restart != 0, &run->checkpoint, err));
    SLC_TRY(status);
    const struct slc_error *fault = slc_checkpoint_fault(run->checkpoint);
    if (fault->status != SLC_OK) {
        slc_log(SLC_LOG_WARNING,
                "%s: %s; the run resumes from the previous generation of the checkpoint",
                fault->file, fault->message);
    }
    return SLC_OK;
}

/* Makes the plan request of a decomposition. If `checkpoint` is not NULL, it provides the order in
 * which the run updates modes. */
static enum slc_status cpd_request(const struct sluice_cpd_options *options,
                                   const struct sluice_store *store,
                                   uint32_t rank,
                                   struct slc_checkpoint *checkpoint,
                                   struct slc_plan_request *request,
                                   struct slc_error *err)
{
    const struct slc_manifest *manifest = &store->store.manifest;
    const uint32_t threads = options->run.threads;
    struct slc_cp_options solver = {.rank = rank};
    struct api_row_solver wrapped;

    if (options->mode_order_count != 0 && options->mode_order_count != manifest->order) {
        return slc_fail(err, SLC_ERR_USAGE, "mode_order_count is %u, but the tensor has %u modes",
                        options->mode_order_count, manifest->order);
    }
    if (options->row_solver != NULL) {
        SLC_TRY(api_row_solver_wrap(&wrapped, options->row_solver, err));
        solver.row_solver = &wrapped.solver;
    }
    SLC_TRY(api_cpd_terms(options, manifest->order, &solver, err));
    *request = api_plan_request(&options->compute, &options->run, SLC_OP_CPD, 0, rank);
    request->beside_bytes =
        slc_cp_holdout_bytes(manifest->order, manifest->nnz, options->holdout,
                             threads != 0 ? threads : slc_team_default_workers());
    request->host_rows = solver.algorithm != SLC_CP_ALS && !slc_cp_needs_nonzeros(&solver);
    SLC_TRY(slc_cp_plan_request(manifest->order, manifest->dims, &solver, request, err));
    const uint64_t smooth =
        slc_cp_smooth_bytes(solver.terms, manifest->order, manifest->dims, rank);
    request->beside_bytes = slc_plan_plus(request->beside_bytes, smooth);
    if (smooth > 0 && request->passes == SLC_PASSES_AUTO) {
        request->passes = SLC_PASSES_PLAIN; /* all rows of a mode are solved together */
    }
    request->mode_order_set = options->mode_order_count != 0;
    for (unsigned n = 0; n < SLC_MAX_ORDER; n++) {
        request->mode_order[n] = options->mode_order[n];
    }
    if (!request->mode_order_set && !request->deterministic && checkpoint != NULL) {
        request->mode_order_set =
            slc_cp_saved_order(checkpoint, manifest->order, request->mode_order);
    }
    return SLC_OK;
}

enum slc_status api_cpd_plan(const struct sluice_store *store,
                             uint32_t rank,
                             const struct sluice_cpd_options *known,
                             struct sluice_plan *plan,
                             struct slc_error *err)
{
    struct slc_plan_request request;

    (void)api_limit_memory(known->run.memory_bytes);
    SLC_TRY(cpd_request(known, store, rank, NULL, &request, err));
    return api_plan(store, &request, &known->compute, plan, err);
}

static enum slc_status factorize(struct run *run,
                                 const struct sluice_store *store,
                                 uint32_t rank,
                                 struct sluice_model *model,
                                 struct slc_error *err)
{
    struct slc_plan_request request;
    struct slc_cp_options solver;
    struct slc_stream_stats stats;

    if (run->options->row_solver != NULL) {
        SLC_TRY(api_row_solver_wrap(&run->row_solver, run->options->row_solver, err));
    }
    SLC_TRY(open_checkpoint(run, err));
    enum slc_status status = cpd_request(run->options, store, rank, run->checkpoint, &request, err);
    request.memory_bytes = run->call.options.memory_bytes;
    SLC_THEN(status, api_session_open(&run->session, store, &request, &run->options->compute, err));
    if (status == SLC_OK) {
        solver = solver_options(run, store->store.manifest.order, rank);
        solver.row_solver = run->options->row_solver != NULL ? &run->row_solver.solver : NULL;
        solver.parts = run->session.parts;
        status = slc_cp_run(&store->store, run->session.stream, run->session.backend,
                            &run->session.plan, &solver, &model->result, err);
        slc_stream_stats(run->session.stream, &stats);
        model->bytes_read = stats.bytes_read;
    }
    if (status == SLC_OK) {
        const struct api_record_facts made = {.store = store,
                                              .rank = rank,
                                              .options = run->options,
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

enum slc_status api_cpd(const struct sluice_store *store,
                        uint32_t rank,
                        const struct sluice_cpd_options *known,
                        struct sluice_model **ret_model,
                        struct slc_error *err)
{
    struct run run = {.options = known};
    struct sluice_model *model = slc_calloc(1, sizeof *model);

    SLC_TRY(slc_check_memory(model != NULL, err, "for a model"));
    api_run_init(&run.call, &known->run);
    enum slc_status status = factorize(&run, store, rank, model, err);
    if (status != SLC_OK) {
        sluice_model_destroy(model);
        return status;
    }
    memcpy(model->dialect, store->store.manifest.origin.dialect, sizeof model->dialect);
    model->index_base = store->store.manifest.origin.index_base;
    *ret_model = model;
    return SLC_OK;
}

enum sluice_status sluice_cpd(const struct sluice_store *store,
                              uint32_t rank,
                              const struct sluice_cpd_options *options,
                              struct sluice_model **ret_model,
                              struct sluice_error *ret_err)
{
    struct slc_error fault = SLC_ERROR_INIT, *const err = &fault;

    API_NEED(err, ret_err, {"store", store}, {"ret_model", ret_model});
    struct sluice_cpd_options known = {0};
    enum slc_status status = api_cpd_read_options(&known, options, err);

    SLC_THEN(status, api_cpd(store, rank, &known, ret_model, err));
    return api_return(status, err, ret_err);
}

enum sluice_status sluice_cpd_plan(const struct sluice_store *store,
                                   uint32_t rank,
                                   const struct sluice_cpd_options *options,
                                   struct sluice_plan *plan,
                                   struct sluice_error *ret_err)
{
    struct slc_error fault = SLC_ERROR_INIT, *const err = &fault;

    API_NEED(err, ret_err, {"store", store}, {"plan", plan});
    struct sluice_cpd_options known = {0};
    enum slc_status status = api_cpd_read_options(&known, options, err);

    SLC_THEN(status, api_cpd_plan(store, rank, &known, plan, err));
    return api_return(status, err, ret_err);
}

enum sluice_status sluice_checkpoint_remove(const char *folder, struct sluice_error *ret_err)
{
    struct slc_error fault = SLC_ERROR_INIT, *const err = &fault;

    API_NEED(err, ret_err, {"folder", folder});
    const struct slc_files *files = slc_files_system();
    struct slc_file_stat stat;
    enum slc_status status = SLC_OK;

    if (files->stat_path(files->self, folder, &stat) != -ENOENT) {
        status = slc_checkpoint_discard(files, folder, err);
        /* The folder is not removed if it has other files. */
        if (status == SLC_OK) {
            (void)files->remove_folder(files->self, folder);
        }
    }
    return api_return(status, err, ret_err);
}

/* Functions for records of runs. A record is made when a run ends, and is loaded with the
 * factors. */
void api_history_add(struct api_history *history, const struct slc_cp_iteration *iteration)
{
    if (history->count == history->capacity && !history->lost) {
        const uint64_t capacity = history->capacity == 0 ? 64 : 2 * history->capacity;
        struct slc_cp_iteration *more = slc_realloc(history->iterations, capacity * sizeof *more);

        if (more == NULL) {
            history->lost = true;
            return;
        }
        history->iterations = more;
        history->capacity = capacity;
    }
    if (!history->lost) {
        history->iterations[history->count++] = *iteration;
    }
}

void api_history_destroy(struct api_history *history)
{
    slc_free(history->iterations);
    *history = (struct api_history){.iterations = NULL};
}

static json_t *mode_order(const struct api_record_facts *run)
{
    char text[SLC_MAX_ORDER * 4];
    int used = 0;

    if (run->options->mode_order_count == 0) {
        return json_null();
    }
    for (unsigned k = 0; k < run->result->order; k++) {
        used += snprintf(text + used, sizeof text - (size_t)used, "%s%u", k > 0 ? "," : "",
                         run->options->mode_order[k] + 1);
    }
    return json_string(text);
}

/* Returns the options as JSON, with the option names of the command. */
static json_t *options_json(const struct api_record_facts *run)
{
    const struct sluice_cpd_options *options = run->options;
    const struct api_cpd_limits limits = api_cpd_limits(options);
    json_t *object = json_object();

    slc_json_set(object, "rank", json_integer(run->rank));
    slc_json_set(object, "iters", json_integer(limits.iterations));
    slc_json_set(object, "tol", json_real(limits.tolerance));
    slc_json_set(object, "maxsecs",
                 options->max_seconds > 0 ? json_real(options->max_seconds) : json_null());
    api_cpd_terms_json(object, run->options, run->result->order);
    slc_json_set(object, "seed", json_integer((json_int_t)options->seed));
    slc_json_set(object, "init",
                 options->init_folder != NULL ? slc_json_string(options->init_folder)
                                              : json_null());
    slc_json_set(object, "holdout",
                 options->holdout > 0 ? json_real(options->holdout) : json_null());
    slc_json_set(object, "holdout-seed",
                 options->holdout > 0 ? json_integer((json_int_t)options->holdout_seed)
                                      : json_null());
    slc_json_set(object, "mode-order", mode_order(run));
    slc_json_set(object, "precision",
                 json_string(options->compute.precision == SLUICE_F32 ? "f32" : "f64"));
    slc_json_set(object, "deterministic", json_boolean(options->compute.deterministic != 0));
    slc_json_set(object, "threads", json_integer(options->run.threads));
    slc_json_set(object, "memory", json_integer((json_int_t)run->plan->budget_bytes));
    return object;
}

/* Returns the exit code that the command would have after the same run. */
static int exit_code(enum slc_stop_reason reason)
{
    return reason == SLC_STOP_TIME     ? slc_status_exit_code(SLC_ERR_TIME_LIMIT)
           : reason == SLC_STOP_SIGNAL ? slc_status_exit_code(SLC_ERR_INTERRUPTED)
                                       : 0;
}

char *api_record_make(const struct api_record_facts *run)
{
    const struct slc_cp_result *result = run->result;
    struct slc_run_facts facts = {.store = &run->store->store,
                                  .plan = run->plan,
                                  .result = result,
                                  .stats = run->stats,
                                  .total_seconds = result->times.total,
                                  .seconds_before = run->seconds_before,
                                  .checkpoint_folder = run->options->checkpoint_folder,
                                  .exit_code = exit_code(result->reason)};
    json_t *iterations = NULL;
    json_t *options = NULL;
    char *text = NULL;
    enum slc_status status = run->history->lost ? SLC_ERR_MEMORY : SLC_OK;

    slc_json_begin();
    iterations = json_array();
    for (uint64_t i = 0; i < run->history->count; i++) {
        (void)json_array_append_new(
            iterations, slc_json_iteration(&run->history->iterations[i], result->order));
    }
    options = options_json(run);
    facts.iterations = iterations;
    facts.options = options;
    SLC_THEN(status, slc_json_whole("the record of a run", NULL));
    SLC_THEN(status, slc_run_record_text(&facts, &text, NULL));
    json_decref(iterations);
    json_decref(options);
    if (status != SLC_OK) {
        slc_log(SLC_LOG_WARNING,
                "memory does not suffice for the record of the run: the model has no record");
    }
    return text;
}

static bool is_of(const struct slc_run_record *record, const struct slc_cp_result *result)
{
    bool same = record->order == result->order;

    for (unsigned n = 0; same && n < result->order; n++) {
        same = record->dims[n] == result->factors[n].rows;
    }
    return same;
}

/* Copies fit, iterations and stop reason from the record; an unknown reason is not copied. */
static void set_outcome(const struct slc_run_record *record, struct slc_cp_result *result)
{
    result->fit = record->fit;
    result->iterations = record->iterations;
    result->loss = record->loss;
    result->huber = record->huber;
    for (unsigned reason = SLC_STOP_TOLERANCE; reason <= SLC_STOP_SIGNAL; reason++) {
        if (strcmp(record->reason, slc_stop_reason_name((enum slc_stop_reason)reason)) == 0) {
            result->reason = (enum slc_stop_reason)reason;
        }
    }
}

enum slc_status api_record_load(const struct slc_files *files,
                                const char *folder,
                                struct slc_cp_result *result,
                                char **ret_text,
                                struct slc_error *err)
{
    struct slc_run_record *record = slc_calloc(1, sizeof *record);
    char *path = slc_path_join(folder, "run.json");
    struct slc_error fault = SLC_ERROR_INIT;
    void *loaded = NULL;
    uint64_t bytes = 0;
    enum slc_status status =
        record == NULL || path == NULL
            ? slc_fail(&fault, SLC_ERR_MEMORY, "no memory for the record of a run")
            : slc_file_load(files, path, SLC_RUN_RECORD_MAX_BYTES, &loaded, &bytes, &fault);

    if (status == SLC_OK && memchr(loaded, '\0', bytes) != NULL) {
        status = slc_fail(&fault, SLC_ERR_INPUT, "run.json contains a zero byte and is not a text");
    }
    SLC_THEN(status, slc_run_record_parse(loaded, bytes, record, &fault));
    if (status == SLC_OK && is_of(record, result)) {
        *ret_text = malloc(bytes + 1);
        if (*ret_text == NULL) {
            status = slc_fail(&fault, SLC_ERR_MEMORY, "no memory for the record of a run");
        } else {
            memcpy(*ret_text, loaded, bytes);
            (*ret_text)[bytes] = '\0';
            set_outcome(record, result);
        }
    }
    slc_free(loaded);
    slc_free(path);
    slc_free(record);
    if (status == SLC_ERR_INPUT || fault.system_errno == ENOENT || fault.system_errno == ENOTDIR) {
        return SLC_OK;
    }
    if (status != SLC_OK && err != NULL) {
        *err = fault;
    }
    return status;
}

char *api_record_path(enum sluice_model_form form, const char *path)
{
    const size_t bytes = strlen(path) + sizeof "/run.json";
    char *made = slc_malloc(bytes);

    if (made != NULL) {
        (void)snprintf(made, bytes, "%s%s", path,
                       form == SLUICE_MODEL_NPY      ? "/run.json"
                       : form == SLUICE_MODEL_SPLATT ? "run.json"
                                                     : ".run.json");
    }
    return made;
}
