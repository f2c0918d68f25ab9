/* run.json; see run_json.h. */
#include "run_json.h"

#include "accelerator.h"
#include "base/memory.h"
#include "devices.h"
#include "json_out.h"
#include "log_json.h"
#include "machine.h"
#include "report.h"
#include "share.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void set(json_t *object, const char *name, json_t *value)
{
    (void)json_object_set_new(object, name, value);
}

static void set_count(json_t *object, const char *name, uint64_t number)
{
    set(object, name, json_integer((json_int_t)number));
}

static json_t *tensor(const struct slc_store *store)
{
    const struct slc_manifest *manifest = &store->manifest;
    json_t *object = json_object();

    set(object, "path", json_string(store->path));
    set(object, "dims", json_dims(manifest->order, manifest->dims));
    set_count(object, "nnz", manifest->nnz);
    set(object, "value_type", json_string(manifest->value_type == SLC_F32 ? "f32" : "f64"));
    set(object, "norm", json_real(sqrt(manifest->sum_of_squares)));
    set(object, "content_sum", json_hex(manifest->content_sum));
    set(object, "source", json_string(manifest->origin.source));
    return object;
}

static json_t *times(const struct run_record *record)
{
    const struct slc_cp_times *cp = &record->result->times;
    json_t *object = json_object();

    set(object, "total", json_real(record->total_seconds));
    set(object, "init", json_real(cp->init));
    set(object, "mttkrp", json_real(cp->mttkrp));
    set(object, "copies", json_real(cp->copies));
    set(object, "solve", json_real(cp->solve));
    set(object, "fit", json_real(cp->fit));
    set(object, "checkpoint", json_real(record->result->checkpoints.seconds));
    set(object, "passes_wall", json_real(record->stats->pass_seconds));
    set(object, "wait_all_threads", json_real(record->stats->wait_seconds));
    set(object, "decode_all_threads", json_real(record->stats->decode_seconds));
    set(object, "multiply_all_threads", json_real(record->stats->compute_seconds));
    return object;
}

static json_t *counters(const struct slc_stream_stats *stats)
{
    uint64_t kernel = report_kernel_read_bytes();
    json_t *object = json_object();

    set_count(object, "passes", stats->passes);
    set_count(object, "blocks", stats->blocks);
    set_count(object, "bytes_read", stats->bytes_read);
    set_count(object, "bytes_cached", stats->bytes_cached);
    set_count(object, "bytes_resident", stats->bytes_resident);
    set_count(object, "cache_blocks", stats->cache_blocks);
    set(object, "kernel_read_bytes",
        kernel != UINT64_MAX ? json_integer((json_int_t)kernel) : json_null());
    set(object, "io", json_string(slc_io_name(stats->io)));
    set(object, "direct", json_boolean(stats->direct));
    set(object, "note", json_string(stats->note));
    return object;
}

/* Where a mode's MTTKRPs came to be computed from a copy: since when, and how it is sorted. */
static json_t *copy(const struct slc_cp_result *result, unsigned mode)
{
    const struct slc_owned_form *form = &result->copies[mode];
    json_t *object;

    if (result->copies_after == UINT_MAX) {
        return json_null();
    }
    object = json_object();
    set_count(object, "from_iteration", result->copies_after + UINT64_C(1));
    set(object, "varying", json_modes(form->varying));
    set(object, "nnz_per_run", json_real(form->nnz_per_run));
    set_count(object, "tried", form->tried);
    return object;
}

/* Per mode, with what was chosen where its MTTKRP is the second of a pass for two modes. */
static json_t *conflicts(const struct slc_cp_result *result, uint32_t seconds)
{
    json_t *list = json_array();

    for (unsigned n = 0; n < result->order; n++) {
        json_t *mode = json_choice(n, &result->choices[n]);

        set(mode, "second",
            (seconds >> n & 1U) != 0 ? json_choice(n, &result->second_choices[n]) : json_null());
        set(mode, "copy", copy(result, n));
        (void)json_array_append_new(list, mode);
    }
    return list;
}

/* The error on what was held out; null: nothing was. */
static json_t *holdout(const struct slc_cp_result *result)
{
    if (result->heldout == 0) {
        return json_null();
    }
    return json_pack("{s:I, s:f, s:f, s:f}", "count", (json_int_t)result->heldout, "rmse",
                     result->heldout_rmse, "mae", result->heldout_mae, "norm",
                     result->heldout_norm);
}

static json_t *record_to_json(const struct run_record *record)
{
    const struct slc_cp_result *result = record->result;
    json_t *object = json_pack("{s:s}", "schema", "sluice-run-1");
    json_t *lambda = json_array();
    char finished[32] = "";
    time_t now = time(NULL);
    struct tm utc;

    if (gmtime_r(&now, &utc) != NULL) {
        (void)strftime(finished, sizeof finished, "%Y-%m-%dT%H:%M:%SZ", &utc);
    }
    for (uint32_t r = 0; r < result->rank; r++) {
        (void)json_array_append_new(lambda, json_real(result->lambda[r]));
    }
    set(object, "command", json_command_line(record->argc, record->argv));
    set(object, "options", options_to_json(record->command, record->values));
    set(object, "versions", json_versions());
    set(object, "finished", json_string(finished));
    set(object, "machine", machine_to_json());
    set(object, "tensor", tensor(record->store));
    set(object, "plan", json_plan(record->plan, record->store->manifest.order));
    set_count(object, "rank", result->rank);
    set_count(object, "iterations_done", result->iterations);
    set(object, "copies_after",
        result->copies_after != UINT_MAX ? json_integer(result->copies_after) : json_null());
    set(object, "devices", devices_stats_json(record->plan, result->devices));
    set(object, "device", accelerator_stats_json(record->plan, &result->accelerator));
    set(object, "share", share_json(result->shares, result->order));
    set(object, "conflicts", conflicts(result, record->plan->fusion.seconds));
    set(object, "fit", json_real(result->fit));
    set(object, "holdout", holdout(result));
    set(object, "reason", json_string(slc_stop_reason_name(result->reason)));
    set_count(object, "exit_code", (uint64_t)record->exit_code);
    set(object, "lambda", lambda);
    (void)json_object_set(object, "iterations", record->iterations);
    set(object, "checkpoint", cpd_checkpoint_json(record->checkpoint, &result->checkpoints));
    set(object, "seconds", times(record));
    set(object, "counters", counters(record->stats));
    set_count(object, "peak_memory_bytes", slc_memory_peak());
    set(object, "estimate",
        record->estimate != NULL ? estimate_compare_json(record->estimate, record->actual)
                                 : json_null());
    return object;
}

enum slc_status
run_json_write(const struct run_record *record, const char *path, struct slc_error *err)
{
    char *text;
    enum slc_status status = json_out_text(record_to_json(record), false, &text, err);

    if (status == SLC_OK) {
        status = slc_file_replace(slc_files_system(), path, text, strlen(text), err);
    }
    free(text);
    return status;
}
