/*
 * Records of runs: made when a run ends, and loaded with its factors.
 */
#include "api/record.h"

#include "base/error/log.h"
#include "base/memory/memory.h"
#include "report/json_parts.h"
#include "report/json_plan.h"
#include "report/run_record.h"
#include "storage/manifest/json_text.h"
#include "storage/model/run_folder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* What was asked for, by the names that the command has for it. */
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
    slc_json_set(object, "reg",
                 options->regularization > 0 ? json_real(options->regularization) : json_null());
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

/* What the command would have ended with. */
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
        slc_log(SLC_LOG_WARNING, "no memory for the record of a run: it will have none");
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

enum slc_status api_record_load(const char *folder,
                                const struct slc_cp_result *result,
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
            : slc_file_load(slc_files_system(), path, SLC_RUN_RECORD_MAX_BYTES, &loaded, &bytes,
                            &fault);

    if (status == SLC_OK && memchr(loaded, '\0', bytes) != NULL) {
        status = slc_fail(&fault, SLC_ERR_INPUT, "run.json is not a text");
    }
    SLC_THEN(status, slc_run_record_parse(loaded, bytes, record, &fault));
    if (status == SLC_OK && is_of(record, result)) {
        *ret_text = malloc(bytes + 1);
        if (*ret_text == NULL) {
            status = slc_fail(&fault, SLC_ERR_MEMORY, "no memory for the record of a run");
        } else {
            memcpy(*ret_text, loaded, bytes);
            (*ret_text)[bytes] = '\0';
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
