/* Writes the JSON log of a run, and opens and closes it for the current command. */
#include "tools/progress/log_json.h"

#include "base/error/clock.h"
#include "base/memory/memory.h"
#include "base/version.h"
#include "cpu/cpu.h"
#include "report/json_parts.h"
#include "report/json_plan.h"
#include "storage/manifest/json_text.h"
#include "storage/manifest/path_guard.h"
#include "tools/progress/console.h"
#include "tools/progress/json_out.h"
#include "tools/progress/progress.h"

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
    pthread_mutex_t lock; /* protects the file */
    FILE *file;
    bool failed; /* a write failed, and the error was reported */
    char path[512];
};

/* Rejects paths inside stores. Symbolic links are resolved, because the log is written in place.
 * Sets *mode such that opening the path creates no file at the end of a dangling link. Existing
 * content is kept, because a resumed run appends to it (log_json_truncate). */
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

    *log = NULL;
    if (path == NULL) {
        return SLC_OK;
    }
    if (strcmp(path, "-") == 0) {
        return slc_fail(
            err, SLC_ERR_USAGE,
            "--log-json - is not supported; use a file such as /dev/stdout or /dev/stderr");
    }
    SLC_TRY(check_place(path, &mode, err));
    SLC_TRY(slc_check_own_form(NULL, path, "{\"schema\":\"sluice-log-1\"", "a log of sluice", err));
    struct log_json *fresh = slc_calloc(1, sizeof *fresh);
    SLC_TRY(slc_check_memory(fresh != NULL, err, "for the JSON log"));
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

void log_json_truncate(struct log_json *log)
{
    /* A file that cannot be truncated, such as a pipe, has no earlier content. */
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

/* Writes `text` as one line. Needs: the lock is held. */
static void write_line(struct log_json *log, const char *text)
{
    const bool wrote = text != NULL && fputs(text, log->file) >= 0 &&
                       fputc('\n', log->file) != EOF && fflush(log->file) == 0;

    if (!wrote && !log->failed) {
        log->failed = true;
        console_note("warning: %s: cannot write the JSON log; continuing without it", log->path);
    }
}

static void write_text(struct log_json *log, const char *text)
{
    (void)pthread_mutex_lock(&log->lock);
    write_line(log, text);
    (void)pthread_mutex_unlock(&log->lock);
}

/* Writes `object` as one line and destroys it. `object` is NULL if memory was exhausted. */
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

json_t *json_command_line(int argc, char **argv)
{
    json_t *list = json_array();

    (void)json_array_append_new(list, json_string("sluice"));
    for (int i = 0; i < argc; i++) {
        (void)json_array_append_new(list, slc_json_string(argv[i]));
    }
    return list;
}

void log_json_plan(struct log_json *log, const struct slc_store *store, const struct slc_plan *plan)
{
    if (log != NULL) {
        const struct slc_manifest *manifest = &store->manifest;
        json_t *object = event("plan");

        slc_json_set_path(object, "tensor", store->path);
        slc_json_set(object, "dims", slc_json_dims(manifest->order, manifest->dims));
        slc_json_set_count(object, "nnz", manifest->nnz);
        slc_json_set_count(object, "rank", plan->request.rank);
        slc_json_set(object, "plan", slc_json_plan(plan, manifest->order));
        write_event(log, object);
    }
}

void log_json_iteration(struct log_json *log,
                        const struct slc_cp_iteration *iteration,
                        unsigned order)
{
    if (log != NULL) {
        json_t *object = event("iteration");
        json_t *members = slc_json_iteration(iteration, order);

        (void)json_object_update(object, members);
        json_decref(members);
        write_event(log, object);
    }
}

void log_json_resume(struct log_json *log, const struct slc_cp_resume *resume, const char *folder)
{
    if (log != NULL) {
        json_t *object = event("resume");

        slc_json_set_count(object, "iteration", resume->iteration);
        slc_json_set_count(object, "mode", resume->mode + 1);
        slc_json_set_path(object, "path", folder);
        slc_json_set_real(object, "seconds_before", resume->seconds);
        write_event(log, object);
    }
}

void log_json_checkpoint(struct log_json *log,
                         const struct slc_cp_checkpointed *written,
                         const char *folder)
{
    if (log != NULL) {
        json_t *object = event("checkpoint");

        slc_json_set_count(object, "iteration", written->iteration);
        slc_json_set_count(object, "mode", written->mode + 1);
        slc_json_set_path(object, "path", folder);
        slc_json_set_count(object, "bytes", written->bytes);
        slc_json_set_real(object, "seconds", written->seconds);
        write_event(log, object);
    }
}

void log_json_results(struct log_json *log, unsigned iteration, const char *path, double seconds)
{
    if (log != NULL) {
        json_t *object = event("results");

        slc_json_set_count(object, "iteration", iteration);
        slc_json_set_path(object, "path", path);
        slc_json_set_real(object, "seconds", seconds);
        write_event(log, object);
    }
}

const char *log_json_boot(char boot[LOG_BOOT_BYTES])
{
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");

    boot[0] = '\0';
    if (file != NULL) {
        if (fgets(boot, LOG_BOOT_BYTES, file) != NULL) {
            boot[strcspn(boot, "\n")] = '\0';
        }
        (void)fclose(file);
    }
    return boot;
}

void log_json_start(struct log_json *log, const struct command *command, int argc, char **argv)
{
    char boot[LOG_BOOT_BYTES];
    struct utsname host;

    if (log == NULL) {
        return;
    }
    json_t *object = event("start");
    slc_json_set_text(object, "name", command->name);
    slc_json_set(object, "command", json_command_line(argc, argv));
    slc_json_set(object, "pid", json_integer(getpid()));
    slc_json_set_text(object, "host", uname(&host) == 0 ? host.nodename : "");
    slc_json_set_text(object, "boot", log_json_boot(boot));
    slc_json_set(object, "time", json_integer((json_int_t)time(NULL)));
    write_event(log, object);
}

/* Phase and progress events contain only numbers and fixed names, so they are formatted without the
 * JSON library and without allocations. */
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
    if (log == NULL) {
        json_decref(end->estimate);
        return;
    }
    json_t *object = event("end");
    slc_json_set_text(object, "reason", end->reason);
    slc_json_set(object, "exit_code", json_integer(end->exit_code));
    if (end->result != NULL) {
        slc_json_set_count(object, "iterations", end->result->iterations);
        slc_json_set_text(object, "method", slc_cp_algorithm_name(end->result->algorithm));
        slc_json_set_real(object, "fit", end->result->fit);
    }
    slc_json_set_real(object, "seconds", end->seconds);
    slc_json_set_count(object, "peak_memory_bytes", slc_memory_peak());
    if (end->estimate != NULL) {
        slc_json_set(object, "estimate", end->estimate);
    }
    write_event(log, object);
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

static struct {
    struct log_json *log;
    bool own; /* opened by run_log_begin */
    uint64_t start_ns;
    json_t *estimate; /* member `estimate` of the last event; NULL: none */
} current;
/* Needed because the signal thread may end the log while the run is completing. */
static pthread_mutex_t current_mutex = PTHREAD_MUTEX_INITIALIZER;

static const char *path_of(const struct command *command, const void *values)
{
    for (const struct option *option = command->options; option->name != NULL; option++) {
        if (strcmp(option->name, "log-json") == 0) {
            const char *path;

            memcpy(&path, (const char *)values + option->offset, sizeof path);
            return path;
        }
    }
    return NULL;
}

void run_log_set(struct log_json *log)
{
    pthread_mutex_lock(&current_mutex);
    current.log = log;
    current.own = false;
    current.start_ns = slc_clock_ns();
    pthread_mutex_unlock(&current_mutex);
    progress_log(log);
}

bool run_log_begin(
    const struct command *command, int argc, char **argv, const void *values, int *exit_code)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct log_json *log = NULL;

    if (command->resumes) {
        return true;
    }
    if (log_json_open(path_of(command, values), &log, &err) != SLC_OK) {
        *exit_code = console_error(&err);
        return false;
    }
    if (log != NULL) {
        log_json_truncate(log);
        run_log_set(log);
        current.own = true;
        log_json_start(log, command, argc, argv);
    }
    return true;
}

bool run_log_is_open(void)
{
    return current.own;
}

void run_log_estimate(json_t *estimate)
{
    json_decref(current.estimate);
    current.estimate = estimate;
}

void run_log_end(int exit_code)
{
    struct log_json *log = current.log;
    const bool signalled = exit_code == 130 || exit_code == 143;
    const struct log_end end = {.reason = exit_code == 0 ? "done"
                                          : signalled    ? "signal"
                                                         : console_last_status(),
                                .exit_code = exit_code,
                                .estimate = current.estimate,
                                .seconds = slc_seconds_since(current.start_ns)};

    current.estimate = NULL;
    if (log == NULL || !current.own) {
        json_decref(end.estimate);
        return;
    }
    progress_log(NULL);
    pthread_mutex_lock(&current_mutex);
    current.log = NULL;
    pthread_mutex_unlock(&current_mutex);
    log_json_end(log, &end);
    log_json_close(log);
}

void run_log_abort(int exit_code)
{
    /* The mutex stays locked: the process ends, and no other thread may close the log before
     * that. */
    pthread_mutex_lock(&current_mutex);
    log_json_abort(current.log, exit_code, slc_seconds_since(current.start_ns));
}
