/* --log-json FILE: one JSON object per line, flushed after each line, for programs that watch a
 * run. Every object has `schema` ("sluice-log-1") and `event`: "start", "plan", "phase",
 * "progress", "resume", "iteration", "checkpoint", "results", "end".
 *
 * A write error is reported once and does not stop the run. Events may come from several
 * threads. */
#ifndef SLC_TOOLS_LOG_JSON_H
#define SLC_TOOLS_LOG_JSON_H

#include "engine/plan/plan.h"
#include "engine/solve/cp.h"
#include "storage/manifest/store.h"
#include "tools/options/options.h"

#include <jansson.h>
#include <stdbool.h>

struct log_json;

/* Opens the log. `path` NULL returns a NULL log, which all functions below accept. Existing content
 * is kept for resumed runs until log_json_truncate removes it. Errors: SLC_ERR_IO; SLC_ERR_USAGE if
 * an existing file is not a log of sluice, or if `path` is "-". */
enum slc_status
log_json_open(const char *path, struct log_json **log, struct slc_error *err) SLC_NODISCARD;
void log_json_truncate(struct log_json *log);
void log_json_close(struct log_json *log);

/* Writes the first event of a run: its command line and its process. */
void log_json_start(struct log_json *log, const struct command *command, int argc, char **argv);
/* Writes that a phase of a conversion, check or export has started, `seconds` after the start of
 * the command. */
void log_json_phase(struct log_json *log, const char *phase, double seconds);

/* Content of a progress event. */
struct log_progress {
    double seconds;      /* seconds since the start of the operation */
    double left;         /* remaining seconds; below 0: unknown */
    unsigned iterations; /* maximum number of iterations; 0: an operation without iterations */
    unsigned iteration;  /* number of the current iteration, from 1 */
    /* number of completed iterations; `fit` is the fit of the last completed iteration */
    unsigned completed;
    double fit;
    unsigned mode;     /* current mode, from 0 */
    const char *phase; /* phase of an operation without modes; otherwise "" */
    /* blocks of the pass, or units of the phase, that are done, and their total; total 0:
     * unknown */
    uint64_t done, total;
    double bytes_per_second, nnz_per_second; /* rates in the current pass; 0: unknown */
};
void log_json_progress(struct log_json *log, const struct log_progress *progress);

void log_json_plan(struct log_json *log,
                   const struct slc_store *store,
                   const struct slc_plan *plan);
void log_json_iteration(struct log_json *log,
                        const struct slc_cp_iteration *iteration,
                        unsigned order);
/* Writes that the run has resumed from, or written, the checkpoint in `folder`. */
void log_json_resume(struct log_json *log, const struct slc_cp_resume *resume, const char *folder);
void log_json_checkpoint(struct log_json *log,
                         const struct slc_cp_checkpointed *written,
                         const char *folder);
/* Writes that a model, usable as a start (--init), was written to `path`. */
void log_json_results(struct log_json *log, unsigned iteration, const char *path, double seconds);
/* Content of the last event of a run. */
struct log_end {
    const char *reason; /* reason as in the report, "done", or the status name of a failed run */
    int exit_code;
    double seconds;
    const struct slc_cp_result *result; /* NULL: not a decomposition */
    json_t *estimate;                   /* estimate and actual values, owned by the callee; NULL:
                                         * none */
};
/* Writes the last event. */
void log_json_end(struct log_json *log, const struct log_end *end);
/* Writes the last event of a process that a signal ends immediately, without waiting: if another
 * thread is writing to the log, the event is omitted. */
void log_json_abort(struct log_json *log, int exit_code, double seconds);

/* Returns the boot id of the machine, as the start event records it; "" if unknown. */
enum { LOG_BOOT_BYTES = 64 };
const char *log_json_boot(char boot[LOG_BOOT_BYTES]);

/* Returns the arguments of a command line as a JSON array. */
json_t *json_command_line(int argc, char **argv);

/* The JSON log of the current command (--log-json): opened before the command, updated with its
 * progress, and ended with its exit code on every path. */

/* Opens and truncates the log named by the option log-json, if given, and writes the first event.
 * After an error, prints the error, sets *exit_code and returns false. A command
 * whose member `resumes` is true opens the log itself. */
bool run_log_begin(
    const struct command *command, int argc, char **argv, const void *values, int *exit_code);

/* Makes an open log the log of the current command. The caller still owns the log. NULL: no log. */
void run_log_set(struct log_json *log);

/* Returns whether run_log_begin opened a log. */
bool run_log_is_open(void);
/* Sets the member "estimate" of the last event. Takes ownership of `estimate`, even if there is no
 * log. */
void run_log_estimate(json_t *estimate);

/* Writes the last event and closes a log that run_log_begin opened. */
void run_log_end(int exit_code);

/* Writes the last event of a process that a signal is ending. */
void run_log_abort(int exit_code);

#endif
