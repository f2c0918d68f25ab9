/* Collects the facts of a run and writes run.json. */
#include "report/run_record.h"

#include "base/memory/memory.h"
#include "report/json_parts.h"
#include "report/json_plan.h"
#include "report/ratings.h"
#include "report/run_notes.h"
#include "storage/manifest/json_text.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char what[] = "the record of a run";

/* Facts of the system, collected before JSON is made (storage/manifest/json_text.h). */
struct machine_facts {
    uint64_t kernel_read_bytes, peak_bytes;
    char finished[32];
    char directory[PATH_MAX]; /* current folder, or "" if unknown */
    json_t *versions, *machine;
};

uint64_t slc_run_kernel_read_bytes(void)
{
    FILE *file = fopen("/proc/self/io", "re");
    uint64_t bytes = UINT64_MAX;
    char line[128];

    if (file == NULL) {
        return bytes;
    }
    while (fgets(line, sizeof line, file) != NULL) {
        if (sscanf(line, "read_bytes: %" SCNu64, &bytes) == 1) {
            break;
        }
    }
    (void)fclose(file);
    return bytes;
}

static enum slc_status ask_system(struct machine_facts *facts, struct slc_error *err)
{
    const time_t now = time(NULL);
    struct tm utc;

    facts->finished[0] = '\0';
    if (gmtime_r(&now, &utc) != NULL) {
        (void)strftime(facts->finished, sizeof facts->finished, "%Y-%m-%dT%H:%M:%SZ", &utc);
    }
    if (getcwd(facts->directory, sizeof facts->directory) == NULL) {
        facts->directory[0] = '\0';
    }
    facts->kernel_read_bytes = slc_run_kernel_read_bytes();
    facts->peak_bytes = slc_memory_peak();
    slc_json_begin();
    facts->versions = slc_json_versions();
    enum slc_status status = slc_json_whole(what, err);
    slc_json_begin();
    facts->machine = slc_json_machine();
    SLC_TRY(status);
    return slc_json_whole(what, err);
}

static json_t *tensor(const struct slc_store *store, const struct machine_facts *machine)
{
    const struct slc_manifest *manifest = &store->manifest;
    json_t *object = json_object();

    slc_json_set_path(object, "path", store->path);
    slc_json_set_path(object, "directory",
                      machine->directory[0] != '\0' ? machine->directory : NULL);
    slc_json_set(object, "dims", slc_json_dims(manifest->order, manifest->dims));
    slc_json_set_count(object, "nnz", manifest->nnz);
    slc_json_set_text(object, "value_type", manifest->value_type == SLC_F32 ? "f32" : "f64");
    slc_json_set_real(object, "norm", sqrt(manifest->sum_of_squares));
    slc_json_set(object, "content_sum", slc_json_hex(manifest->content_sum));
    slc_json_set(object, "named", json_boolean(manifest->names_count > 0));
    slc_json_set(object, "source", slc_json_string(manifest->origin.source));
    slc_json_set(object, "dialect", slc_json_string(manifest->origin.dialect));
    slc_json_set_count(object, "index_base", manifest->origin.index_base);
    slc_json_set(object, "looks_like_ratings", json_boolean(slc_looks_like_ratings(manifest)));
    return object;
}

static json_t *times(const struct slc_run_facts *facts)
{
    const struct slc_cp_times *cp = &facts->result->times;
    json_t *object = json_object();

    slc_json_set_real(object, "total", facts->total_seconds);
    slc_json_set_real(object, "init", cp->init);
    slc_json_set_real(object, "mttkrp", cp->mttkrp);
    slc_json_set_real(object, "copies", cp->copies);
    slc_json_set_real(object, "solve", cp->solve);
    slc_json_set_real(object, "fit", cp->fit);
    slc_json_set_real(object, "checkpoint", facts->result->checkpoints.seconds);
    slc_json_set_real(object, "passes_wall", facts->stats->pass_seconds);
    slc_json_set_real(object, "wait_all_threads", facts->stats->wait_seconds);
    slc_json_set_real(object, "decode_all_threads", facts->stats->decode_seconds);
    slc_json_set_real(object, "multiply_all_threads", facts->stats->compute_seconds);
    return object;
}

static json_t *counters(const struct slc_stream_stats *stats, uint64_t kernel)
{
    json_t *object = json_object();

    slc_json_set_count(object, "passes", stats->passes);
    slc_json_set_count(object, "blocks", stats->blocks);
    slc_json_set_count(object, "bytes_read", stats->bytes_read);
    slc_json_set_count(object, "bytes_cached", stats->bytes_cached);
    slc_json_set_count(object, "bytes_resident", stats->bytes_resident);
    slc_json_set_count(object, "cache_blocks", stats->cache_blocks);
    slc_json_set_known_count(object, "kernel_read_bytes", kernel);
    slc_json_set_text(object, "io", slc_io_name(stats->io));
    slc_json_set(object, "direct", json_boolean(stats->direct));
    slc_json_set_text(object, "note", stats->note);
    return object;
}

/* Returns the first iteration that computed the mode's MTTKRP from a replica, and the sort order of
 * the replica; null if there was no replica. */
static json_t *copy(const struct slc_cp_result *result, unsigned mode)
{
    const struct slc_replica_form *form = &result->copies[mode];

    if (result->copies_after == UINT_MAX) {
        return json_null();
    }
    json_t *object = json_object();
    slc_json_set_count(object, "from_iteration", result->copies_after + UINT64_C(1));
    slc_json_set(object, "varying", slc_json_modes(form->varying));
    slc_json_set_real(object, "nnz_per_run", form->nnz_per_run);
    slc_json_set_count(object, "tried", form->tried);
    return object;
}

/* Returns the strategy of each mode, including modes whose MTTKRP is the second of a fused pass. */
static json_t *conflicts(const struct slc_cp_result *result, uint32_t seconds)
{
    json_t *list = json_array();

    for (unsigned n = 0; n < result->order; n++) {
        json_t *mode = slc_json_choice(n, &result->choices[n]);

        slc_json_set(mode, "second",
                     (seconds >> n & 1U) != 0 ? slc_json_choice(n, &result->second_choices[n])
                                              : json_null());
        slc_json_set(mode, "copy", copy(result, n));
        (void)json_array_append_new(list, mode);
    }
    return list;
}

/* Describes the components that are biases, which are the last ones: lists the mode of each,
 * counted from 1, or "mean". */
static json_t *biases(const struct slc_cp_result *result)
{
    json_t *list = json_array();

    for (unsigned n = 0; n < result->order; n++) {
        if ((result->bias_modes >> n & 1U) != 0) {
            (void)json_array_append_new(list, json_integer(n + 1));
        }
    }
    if (result->bias_mean) {
        (void)json_array_append_new(list, json_string("mean"));
    }
    return list;
}

/* Returns the error on held-out nonzeros, or null if no nonzeros are held out. */
static json_t *holdout(const struct slc_cp_result *result)
{
    if (result->heldout == 0) {
        return json_null();
    }
    return json_pack("{s:I, s:f, s:f, s:f, s:f}", "count", (json_int_t)result->heldout, "rmse",
                     result->heldout_rmse, "mae", result->heldout_mae, "deviance",
                     result->heldout_deviance, "norm", result->heldout_norm);
}

static json_t *checkpoint(const struct slc_run_facts *facts)
{
    const struct slc_cp_checkpoints *totals = &facts->result->checkpoints;

    if (facts->checkpoint_folder == NULL) {
        return json_null();
    }
    json_t *object = json_object();
    slc_json_set_path(object, "folder", facts->checkpoint_folder);
    slc_json_set_count(object, "resumes", totals->resumes);
    slc_json_set_count(object, "count", totals->count);
    slc_json_set_real(object, "seconds", totals->seconds);
    slc_json_set_real(object, "seconds_before", facts->seconds_before);
    return object;
}

/* Returns a reference to `value`, or null if `value` is NULL. A copy of many iterations would be
 * large. */
static json_t *shared(json_t *value)
{
    return value != NULL ? json_incref(value) : json_null();
}

static json_t *record_to_json(const struct slc_run_facts *facts, struct machine_facts *machine)
{
    const struct slc_cp_result *result = facts->result;
    json_t *object = json_pack("{s:s}", "schema", "sluice-run-1");
    json_t *lambda = json_array();

    for (uint32_t r = 0; r < result->rank; r++) {
        (void)json_array_append_new(lambda, json_real(result->lambda[r]));
    }
    slc_json_set(object, "command", shared(facts->command));
    slc_json_set(object, "options", shared(facts->options));
    slc_json_set(object, "versions", json_incref(machine->versions));
    slc_json_set_text(object, "finished", machine->finished);
    slc_json_set(object, "machine", json_incref(machine->machine));
    slc_json_set(object, "tensor", tensor(facts->store, machine));
    slc_json_set(object, "plan", slc_json_plan(facts->plan, facts->store->manifest.order));
    slc_json_set_count(object, "rank", result->rank);
    slc_json_set_count(object, "iterations_done", result->iterations);
    slc_json_set(object, "copies_after",
                 result->copies_after != UINT_MAX ? json_integer(result->copies_after)
                                                  : json_null());
    slc_json_set(object, "devices", slc_json_devices_stats(facts->plan, result->devices));
    slc_json_set(object, "device", slc_json_device_stats(facts->plan, &result->gpu));
    slc_json_set(object, "share", slc_json_hybrid(result->hybrid, result->order));
    slc_json_set(object, "conflicts", conflicts(result, facts->plan->fusion.seconds));
    slc_json_set_text(object, "method", slc_cp_algorithm_name(result->algorithm));
    slc_json_set_real(object, "fit", result->fit);
    slc_json_set_text(object, "loss", slc_loss_name(result->loss));
    slc_json_set(object, "huber",
                 result->loss == SLC_LOSS_HUBER ? json_real(result->huber) : json_null());
    slc_json_set_text(object, "unlisted", slc_unlisted_name(result->unlisted));
    slc_json_set(object, "objective",
                 result->objective != 0 ? json_real(result->objective) : json_null());
    slc_json_set(object, "violation",
                 result->loss == SLC_LOSS_POISSON ? json_real(result->violation) : json_null());
    slc_json_set(object, "biases", biases(result));
    slc_json_set(object, "best_iteration",
                 result->best_iteration > 0 ? json_integer(result->best_iteration) : json_null());
    slc_json_set(object, "holdout", holdout(result));
    slc_json_set(object, "diagnosis", slc_run_diagnosis_json(result));
    slc_json_set_text(object, "reason", slc_stop_reason_name(result->reason));
    slc_json_set_count(object, "exit_code", (uint64_t)facts->exit_code);
    slc_json_set(object, "lambda", lambda);
    slc_json_set(object, "iterations", shared(facts->iterations));
    slc_json_set(object, "checkpoint", checkpoint(facts));
    slc_json_set(object, "seconds", times(facts));
    slc_json_set(object, "counters", counters(facts->stats, machine->kernel_read_bytes));
    slc_json_set_count(object, "peak_memory_bytes", machine->peak_bytes);
    slc_json_set(object, "estimate", shared(facts->estimate));
    return object;
}

enum slc_status
slc_run_record_text(const struct slc_run_facts *facts, char **ret_text, struct slc_error *err)
{
    struct machine_facts machine = {.versions = NULL};
    json_t *object = NULL;
    enum slc_status status = ask_system(&machine, err);

    if (status == SLC_OK) {
        slc_json_begin();
        object = record_to_json(facts, &machine);
        status = slc_json_write(object, what, ret_text, err);
    }
    json_decref(object);
    json_decref(machine.versions);
    json_decref(machine.machine);
    return status;
}

enum slc_status slc_run_record_write(const char *text, const char *path, struct slc_error *err)
{
    return slc_file_replace(slc_files_system(), path, text, strlen(text), err);
}

enum slc_status slc_run_record_remove(const char *path, struct slc_error *err)
{
    const struct slc_files *files = slc_files_system();
    const int rc = files->unlink(files->self, path);
    struct slc_error fault = SLC_ERROR_INIT;

    if (rc < 0 && rc != -ENOENT) {
        return slc_fail_errno(err, -rc, path, "removing the record of an earlier run");
    }
    /* Sync even if there is no file, because a run may have been killed after it removed the file
     * and before the sync. */
    enum slc_status status = slc_name_sync(files, path, &fault);
    if (status == SLC_OK || fault.system_errno == ENOENT) {
        return SLC_OK; /* there may be no folder yet */
    }
    slc_error_pass(err, &fault);
    return status;
}
