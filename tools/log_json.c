/* JSON lines; see log_json.h. */
#include "log_json.h"

#include "accelerator.h"
#include "base/memory.h"
#include "base/version.h"
#include "console.h"
#include "cpu/cpu.h"
#include "json_out.h"
#include "share.h"
#include "storage/outside.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

struct log_json {
    pthread_mutex_t lock; /* of the file */
    FILE *file;
    bool failed; /* said once */
    char path[512];
};

/*
 * Keeps the log out of stores. It is written in place, so that where links lead counts; *mode then
 * creates no file at the end of one that leads nowhere. What is there stays: a run that is resumed
 * adds to it (log_json_fresh).
 */
static enum slc_status check_place(const char *path, const char **mode, struct slc_error *err)
{
    char *real = realpath(path, NULL);
    const enum slc_status status =
        slc_check_outside_stores(slc_files_system(), real != NULL ? real : path, err);

    *mode = access(path, F_OK) == 0 ? "ae" : "wex";
    free(real);
    return status;
}

enum slc_status log_json_open(const char *path, struct log_json **log, struct slc_error *err)
{
    const char *mode;
    struct log_json *fresh;
    enum slc_status status;

    *log = NULL;
    if (path == NULL) {
        return SLC_OK;
    }
    status = check_place(path, &mode, err);
    if (status != SLC_OK) {
        return status;
    }
    fresh = slc_calloc(1, sizeof *fresh);
    if (fresh == NULL) {
        return slc_fail(err, SLC_ERR_MEMORY, "no memory for the JSON log");
    }
    (void)snprintf(fresh->path, sizeof fresh->path, "%s", path);
    fresh->file = fopen(path, mode);
    if (fresh->file == NULL) {
        int saved = errno;

        slc_free(fresh);
        return slc_fail_errno(err, saved, path, "cannot create the JSON log");
    }
    (void)pthread_mutex_init(&fresh->lock, NULL);
    *log = fresh;
    return SLC_OK;
}

void log_json_fresh(struct log_json *log)
{
    /* What cannot be cut, as a pipe, holds nothing. */
    if (log != NULL && ftruncate(fileno(log->file), 0) == 0) {
        rewind(log->file);
    }
}

void log_json_close(struct log_json *log)
{
    if (log != NULL) {
        (void)fclose(log->file);
        (void)pthread_mutex_destroy(&log->lock);
        slc_free(log);
    }
}

/* A whole line, without its end. The lock is held. */
static void write_line(struct log_json *log, const char *text)
{
    const bool wrote = text != NULL && fputs(text, log->file) >= 0 &&
                       fputc('\n', log->file) != EOF && fflush(log->file) == 0;

    if (!wrote && !log->failed) {
        log->failed = true;
        console_note("warning: %s: the JSON log cannot be written; going on without it", log->path);
    }
}

static void write_text(struct log_json *log, const char *text)
{
    (void)pthread_mutex_lock(&log->lock);
    write_line(log, text);
    (void)pthread_mutex_unlock(&log->lock);
}

/* Writes one line and destroys `object` (NULL without memory). */
static void write_event(struct log_json *log, json_t *object)
{
    char *text = NULL;

    (void)(json_out_text(object, true, &text, NULL) == SLC_OK);
    write_text(log, text);
    free(text);
}

static json_t *event(const char *name)
{
    return json_pack("{s:s, s:s}", "schema", "sluice-log-1", "event", name);
}

json_t *json_versions(void)
{
    json_t *object = json_object();
    struct utsname host;

    (void)json_object_set_new(object, "sluice", json_string(SLC_VERSION));
    (void)json_object_set_new(object, "compiler", json_string(__VERSION__));
    (void)json_object_set_new(object, "instruction_set", json_string(slc_cpu_instruction_set()));
    if (uname(&host) == 0) {
        (void)json_object_set_new(
            object, "system", json_sprintf("%s %s %s", host.sysname, host.release, host.machine));
    }
    return object;
}

json_t *json_command_line(int argc, char **argv)
{
    json_t *list = json_array();

    (void)json_array_append_new(list, json_string("sluice"));
    for (int i = 0; i < argc; i++) {
        json_t *word = json_string(argv[i]);

        /* An argument that is not UTF-8 cannot stand in JSON as it is. */
        (void)json_array_append_new(list, word != NULL ? word : json_string("(not UTF-8)"));
    }
    return list;
}

json_t *json_dims(unsigned order, const uint64_t *dims)
{
    json_t *list = json_array();

    for (unsigned n = 0; n < order; n++) {
        (void)json_array_append_new(list, json_integer((json_int_t)dims[n]));
    }
    return list;
}

json_t *json_modes(uint32_t modes)
{
    json_t *list = json_array();

    for (json_int_t n = 0; n < 32; n++) {
        if ((modes >> n & 1) != 0) {
            (void)json_array_append_new(list, json_integer(n + 1));
        }
    }
    return list;
}

json_t *json_hex(uint64_t number)
{
    char digits[20];

    (void)snprintf(digits, sizeof digits, "%016" PRIx64, number);
    return json_string(digits);
}

/* The processors of the threads; null where the system chooses them. */
static json_t *pinned_to(const struct slc_placement *placement)
{
    json_t *processors = placement->workers > 0 ? json_array() : json_null();

    for (unsigned w = 0; w < placement->workers; w++) {
        (void)json_array_append_new(processors, json_integer(placement->processor[w]));
    }
    return processors;
}

/* The name of a strategy; null for none. */
/* The layout that a mode is read from, by its name. */
static void append_layout(json_t *list, unsigned layout, unsigned mode)
{
    (void)json_array_append_new(list, layout > 0 ? json_sprintf("sorted-%u", mode + 1)
                                                 : json_string("blco"));
}

static void append_conflict(json_t *list, enum slc_conflict conflict)
{
    (void)json_array_append_new(list, conflict != SLC_CONFLICT_AUTO
                                          ? json_string(slc_conflict_name(conflict))
                                          : json_null());
}

/* Passes that update two modes, and why they do or do not; null where there is one to compute. */
static json_t *json_fusion(const struct slc_plan *plan, unsigned order)
{
    static const char *const reasons[] = {
        [SLC_FUSION_TAKEN] = "taken",
        [SLC_FUSION_NOT_ASKED] = "not asked",
        [SLC_FUSION_FIXED_BITS] = "deterministic",
        [SLC_FUSION_COPIES] = "copies",
        [SLC_FUSION_DEVICES] = "devices",
        [SLC_FUSION_ACCELERATOR] = "device",
        [SLC_FUSION_NO_RANGES] = "no ranges",
        [SLC_FUSION_FEW_RANGES] = "few ranges",
        [SLC_FUSION_NO_MEMORY] = "no memory",
        [SLC_FUSION_NO_GAIN] = "no gain",
    };
    const struct slc_plan_fusion *fusion = &plan->fusion;
    json_t *mode_order = json_array();
    json_t *ranges = json_array();
    json_t *object = json_object();

    for (unsigned k = 0; k < order; k++) {
        (void)json_array_append_new(mode_order, json_integer((json_int_t)plan->mode_order[k] + 1));
        (void)json_array_append_new(ranges, (fusion->modes >> k & 1U) != 0
                                                ? json_integer((json_int_t)fusion->ranges[k])
                                                : json_null());
    }
    (void)json_object_set_new(object, "reason", json_string(reasons[fusion->reason]));
    (void)json_object_set_new(object, "modes", json_modes(fusion->modes));
    (void)json_object_set_new(object, "mode_order", mode_order);
    (void)json_object_set_new(object, "ranges", ranges);
    (void)json_object_set_new(object, "second_bytes",
                              json_integer((json_int_t)slc_plan_fused_bytes(fusion)));
    (void)json_object_set_new(object, "other_read_bytes",
                              fusion->other_read_bytes == UINT64_MAX
                                  ? json_null()
                                  : json_integer((json_int_t)fusion->other_read_bytes));
    return object;
}

json_t *json_plan(const struct slc_plan *plan, unsigned order)
{
    const bool copies = slc_plan_starts_with_copies(plan);
    json_t *layouts = json_array();
    json_t *conflicts = json_array();
    json_t *trials = json_array();
    json_t *untried = json_array();
    json_t *object = json_object();
    const struct {
        const char *name;
        uint64_t number;
    } counts[] = {
        {"budget_bytes", plan->budget_bytes},
        {"minimum_bytes", plan->minimum_bytes},
        {"total_bytes", plan->total_bytes},
        {"process_bytes", plan->process_bytes},
        {"index_bytes", plan->index_bytes},
        {"factor_bytes", plan->factor_bytes},
        {"output_bytes", plan->output_bytes},
        {"dense_bytes", plan->dense_bytes},
        {"device_bytes", plan->device_bytes},
        {"scratch_bytes", plan->scratch_bytes},
        {"decoder_bytes", plan->decoder_bytes},
        {"label_bytes", plan->label_bytes},
        {"slot_count", plan->slot_count},
        {"slot_bytes", plan->slot_bytes},
        {"cache_bytes", plan->cache_bytes},
        {"cached_blocks", plan->cached_blocks},
        {"copies_bytes", plan->copies_bytes},
        {"copies_wanted_bytes", plan->copies_wanted_bytes},
        {"copies_room_bytes", plan->copies_room_bytes},
        {"iteration_bytes", plan->iteration_bytes},
        {"iteration_read_bytes", plan->iteration_read_bytes},
        {"threads", plan->threads},
        {"device_count", plan->devices},
    };

    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        (void)json_object_set_new(object, counts[i].name,
                                  json_integer((json_int_t)counts[i].number));
    }
    for (unsigned n = 0; n < order; n++) {
        if (plan->request.operation == SLC_OP_CPD || n == plan->request.mode) {
            append_layout(layouts, plan->mode_layout[n], n);
            append_conflict(conflicts, copies ? SLC_CONFLICT_OWNED : plan->choices[n].chosen);
            append_conflict(trials, copies ? SLC_CONFLICT_AUTO : plan->choices[n].rival);
            append_conflict(untried, copies ? SLC_CONFLICT_AUTO : plan->untried[n]);
        }
    }
    (void)json_object_set_new(object, "passes",
                              plan->passes == floor(plan->passes)
                                  ? json_integer((json_int_t)plan->passes)
                                  : json_real(plan->passes));
    (void)json_object_set_new(object, "fused", json_fusion(plan, order));
    (void)json_object_set_new(object, "device", accelerator_plan_json(plan));
    (void)json_object_set_new(object, "share", share_wish_json(&plan->request.share));
    (void)json_object_set_new(object, "layouts", layouts);
    (void)json_object_set_new(object, "other_read_bytes",
                              plan->other_read_bytes == UINT64_MAX
                                  ? json_null()
                                  : json_integer((json_int_t)plan->other_read_bytes));
    (void)json_object_set_new(object, "conflicts", conflicts);
    (void)json_object_set_new(object, "trials", trials);
    (void)json_object_set_new(object, "untried", untried);
    (void)json_object_set_new(object, "schedule", json_string(slc_schedule_name(plan->schedule)));
    (void)json_object_set_new(object, "io", json_string(slc_io_name(plan->request.io)));
    (void)json_object_set_new(object, "io_limit",
                              json_integer((json_int_t)plan->request.read_limit));
    (void)json_object_set_new(object, "precision",
                              json_string(plan->request.precision == SLC_F32 ? "f32" : "f64"));
    (void)json_object_set_new(object, "deterministic", json_boolean(plan->request.deterministic));
    (void)json_object_set_new(object, "pin", json_string(slc_pin_name(plan->request.pin)));
    (void)json_object_set_new(object, "pinned_to", pinned_to(&plan->placement));
    return object;
}

json_t *json_choice(unsigned mode, const struct slc_conflict_choice *choice)
{
    json_t *candidates = json_array();
    json_t *object = json_object();

    for (unsigned i = 0; i < choice->cost_count; i++) {
        const struct slc_conflict_cost *cost = &choice->costs[i];
        json_t *candidate = json_object();

        (void)json_object_set_new(candidate, "conflict",
                                  json_string(slc_conflict_name(cost->conflict)));
        (void)json_object_set_new(candidate, "predicted_ns", json_real(cost->predicted_ns));
        (void)json_object_set_new(candidate, "measured_ns",
                                  cost->measured_ns > 0 ? json_real(cost->measured_ns)
                                                        : json_null());
        (void)json_array_append_new(candidates, candidate);
    }
    (void)json_object_set_new(object, "mode", json_integer((json_int_t)mode + 1));
    /* Null where nothing was to be chosen: a device keeps additions apart by itself. */
    (void)json_object_set_new(object, "chosen",
                              choice->chosen != SLC_CONFLICT_AUTO
                                  ? json_string(slc_conflict_name(choice->chosen))
                                  : json_null());
    (void)json_object_set_new(object, "candidates", candidates);
    return object;
}

json_t *json_iteration(const struct slc_cp_iteration *iteration, unsigned order)
{
    json_t *modes = json_array();
    json_t *singular = json_array();
    json_t *object;

    for (unsigned n = 0; n < order; n++) {
        (void)json_array_append_new(modes, json_real(iteration->mode_seconds[n]));
        if (iteration->singular[n]) {
            (void)json_array_append_new(singular, json_integer((json_int_t)n + 1));
        }
    }
    object = json_pack("{s:I, s:f, s:f, s:f, s:I, s:I}", "iteration",
                       (json_int_t)iteration->iteration, "fit", iteration->fit, "delta",
                       iteration->delta, "seconds", iteration->seconds, "bytes_read",
                       (json_int_t)iteration->bytes_read, "passes", (json_int_t)iteration->passes);
    if (iteration->heldout > 0) {
        (void)json_object_set_new(object, "heldout_rmse", json_real(iteration->heldout_rmse));
    }
    (void)json_object_set_new(object, "mode_seconds", modes);
    (void)json_object_set_new(object, "singular_modes", singular);
    return object;
}

void log_json_plan(struct log_json *log, const struct slc_store *store, const struct slc_plan *plan)
{
    if (log != NULL) {
        const struct slc_manifest *manifest = &store->manifest;
        json_t *object = event("plan");

        (void)json_object_set_new(object, "tensor", json_string(store->path));
        (void)json_object_set_new(object, "dims", json_dims(manifest->order, manifest->dims));
        (void)json_object_set_new(object, "nnz", json_integer((json_int_t)manifest->nnz));
        (void)json_object_set_new(object, "rank", json_integer((json_int_t)plan->request.rank));
        (void)json_object_set_new(object, "plan", json_plan(plan, manifest->order));
        write_event(log, object);
    }
}

void log_json_iteration(struct log_json *log,
                        const struct slc_cp_iteration *iteration,
                        unsigned order)
{
    if (log != NULL) {
        json_t *object = event("iteration");
        json_t *members = json_iteration(iteration, order);

        (void)json_object_update(object, members);
        json_decref(members);
        write_event(log, object);
    }
}

void log_json_resume(struct log_json *log, const struct slc_cp_resume *resume, const char *folder)
{
    if (log != NULL) {
        json_t *object = event("resume");

        (void)json_object_set_new(object, "iteration", json_integer((json_int_t)resume->iteration));
        (void)json_object_set_new(object, "mode", json_integer((json_int_t)resume->mode + 1));
        (void)json_object_set_new(object, "path", json_string(folder));
        (void)json_object_set_new(object, "seconds_before", json_real(resume->seconds));
        write_event(log, object);
    }
}

void log_json_checkpoint(struct log_json *log,
                         const struct slc_cp_checkpointed *written,
                         const char *folder)
{
    if (log != NULL) {
        json_t *object = event("checkpoint");

        (void)json_object_set_new(object, "iteration",
                                  json_integer((json_int_t)written->iteration));
        (void)json_object_set_new(object, "mode", json_integer((json_int_t)written->mode + 1));
        (void)json_object_set_new(object, "path", json_string(folder));
        (void)json_object_set_new(object, "bytes", json_integer((json_int_t)written->bytes));
        (void)json_object_set_new(object, "seconds", json_real(written->seconds));
        write_event(log, object);
    }
}

void log_json_results(struct log_json *log, unsigned iteration, const char *path, double seconds)
{
    if (log != NULL) {
        json_t *object = event("results");

        (void)json_object_set_new(object, "iteration", json_integer((json_int_t)iteration));
        (void)json_object_set_new(object, "path", json_string(path));
        (void)json_object_set_new(object, "seconds", json_real(seconds));
        write_event(log, object);
    }
}

void log_json_start(struct log_json *log, const struct command *command, int argc, char **argv)
{
    char boot[64] = "";
    struct utsname host;
    FILE *file;
    json_t *object;

    if (log == NULL) {
        return;
    }
    file = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (file != NULL) {
        if (fgets(boot, sizeof boot, file) != NULL) {
            boot[strcspn(boot, "\n")] = '\0';
        }
        (void)fclose(file);
    }
    object = event("start");
    (void)json_object_set_new(object, "name", json_string(command->name));
    (void)json_object_set_new(object, "command", json_command_line(argc, argv));
    (void)json_object_set_new(object, "pid", json_integer(getpid()));
    (void)json_object_set_new(object, "host", json_string(uname(&host) == 0 ? host.nodename : ""));
    (void)json_object_set_new(object, "boot", json_string(boot));
    (void)json_object_set_new(object, "time", json_integer((json_int_t)time(NULL)));
    write_event(log, object);
}

/* The parts of progress and phase events are numbers and names of our own: no JSON library, no
 * memory. */
void log_json_phase(struct log_json *log, const char *phase, double seconds)
{
    char text[256];

    if (log != NULL) {
        (void)snprintf(text, sizeof text,
                       "{\"schema\":\"sluice-log-1\",\"event\":\"phase\",\"phase\":\"%s\","
                       "\"seconds\":%.3f}",
                       phase, seconds);
        write_text(log, text);
    }
}

void log_json_progress(struct log_json *log, const struct log_progress *now)
{
    char where[256];
    char left[32] = "null";
    char text[640];

    if (log == NULL) {
        return;
    }
    if (now->phase[0] != '\0') {
        (void)snprintf(where, sizeof where, "\"phase\":\"%s\"", now->phase);
    } else {
        (void)snprintf(where, sizeof where,
                       "\"iterations\":%u,\"iteration\":%u,\"completed\":%u,\"fit\":%.17g,"
                       "\"mode\":%u",
                       now->iterations, now->iteration, now->completed,
                       isfinite(now->fit) ? now->fit : 0.0, now->mode + 1);
    }
    if (now->left >= 0) {
        (void)snprintf(left, sizeof left, "%.3f", now->left);
    }
    (void)snprintf(text, sizeof text,
                   "{\"schema\":\"sluice-log-1\",\"event\":\"progress\",\"seconds\":%.3f,%s,"
                   "\"done\":%" PRIu64 ",\"total\":%" PRIu64 ",\"bytes_per_second\":%.6g,"
                   "\"nnz_per_second\":%.6g,\"seconds_left\":%s}",
                   now->seconds, where, now->done, now->total, now->bytes_per_second,
                   now->nnz_per_second, left);
    write_text(log, text);
}

void log_json_end(struct log_json *log, const struct log_end *end)
{
    if (log != NULL) {
        json_t *object = event("end");

        (void)json_object_set_new(object, "reason", json_string(end->reason));
        (void)json_object_set_new(object, "exit_code", json_integer(end->exit_code));
        if (end->result != NULL) {
            (void)json_object_set_new(object, "iterations",
                                      json_integer((json_int_t)end->result->iterations));
            (void)json_object_set_new(object, "fit", json_real(end->result->fit));
        }
        (void)json_object_set_new(object, "seconds", json_real(end->seconds));
        (void)json_object_set_new(object, "peak_memory_bytes",
                                  json_integer((json_int_t)slc_memory_peak()));
        if (end->estimate != NULL) {
            (void)json_object_set_new(object, "estimate",
                                      estimate_compare_json(end->estimate, end->actual));
        } else if (end->forecast != NULL) {
            (void)json_object_set_new(object, "estimate", end->forecast);
        }
        write_event(log, object);
    }
}

void log_json_abort(struct log_json *log, int exit_code, double seconds)
{
    char text[256];

    if (log == NULL || pthread_mutex_trylock(&log->lock) != 0) {
        return;
    }
    (void)snprintf(text, sizeof text,
                   "{\"schema\":\"sluice-log-1\",\"event\":\"end\",\"reason\":\"signal\","
                   "\"exit_code\":%d,\"seconds\":%.3f}",
                   exit_code, seconds);
    write_line(log, text);
    (void)pthread_mutex_unlock(&log->lock);
}
