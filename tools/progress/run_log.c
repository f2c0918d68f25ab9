/* See run_log.h. There is one log, for there is one command. */
#include "tools/progress/run_log.h"

#include "base/error/clock.h"
#include "tools/progress/console.h"
#include "tools/progress/progress.h"

#include <pthread.h>
#include <string.h>

static struct {
    struct log_json *log;
    bool own; /* opened here */
    uint64_t start_ns;
    json_t *estimate; /* beside what happened; NULL: there was none */
} current;
/* A signal's thread ends the log of a run that may just be through. */
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

void run_log_use(struct log_json *log)
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
        log_json_fresh(log);
        run_log_use(log);
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
    /* The process ends: nobody is to close the log before that. */
    pthread_mutex_lock(&current_mutex);
    log_json_abort(current.log, exit_code, slc_seconds_since(current.start_ns));
}
