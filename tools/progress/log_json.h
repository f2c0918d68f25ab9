/*
 * --log-json FILE: one JSON object per line, flushed line by line, for programs that watch a run.
 * Every object has `schema` ("sluice-log-1") and `event`: "start", "plan", "phase", "progress",
 * "resume", "iteration", "checkpoint", "results", "end".
 * A log that cannot be written is reported once and does not stop the run. Events may come from
 * several threads.
 */
#ifndef SLC_TOOLS_LOG_JSON_H
#define SLC_TOOLS_LOG_JSON_H

#include "engine/plan/plan.h"
#include "engine/solve/cp_als.h"
#include "storage/manifest/store.h"
#include "tools/options/options.h"

#include <jansson.h>
#include <stdbool.h>

struct log_json;

/*
 * `path` NULL gives a NULL log, which every function below takes. What a file holds stays, for a
 * run that goes on adds to it, unless log_json_fresh empties it. Errors: SLC_ERR_IO;
 * SLC_ERR_USAGE where the file holds something else.
 */
enum slc_status
log_json_open(const char *path, struct log_json **log, struct slc_error *err) SLC_NODISCARD;
void log_json_fresh(struct log_json *log);
void log_json_close(struct log_json *log);

/* The first event of every run: its command line, and the process that it is. */
void log_json_start(struct log_json *log, const struct command *command, int argc, char **argv);
/* A phase of a conversion, check or export has begun; seconds since the start. */
void log_json_phase(struct log_json *log, const char *phase, double seconds);

/* Where a run stands. */
struct log_progress {
    double seconds;      /* since its start */
    double left;         /* seconds; below 0: not known */
    unsigned iterations; /* at most; 0: there are none */
    unsigned iteration;  /* that is computed, from 1 */
    unsigned completed;  /* iterations; with their last fit */
    double fit;
    unsigned mode;        /* from 0 */
    const char *phase;    /* of work without modes; else "" */
    uint64_t done, total; /* blocks, or what the phase counts; total 0: not known */
    double bytes_per_second, nnz_per_second; /* of this pass; 0: not known */
};
void log_json_progress(struct log_json *log, const struct log_progress *progress);

void log_json_plan(struct log_json *log,
                   const struct slc_store *store,
                   const struct slc_plan *plan);
void log_json_iteration(struct log_json *log,
                        const struct slc_cp_iteration *iteration,
                        unsigned order);
/* The run goes on from, or has written, the checkpoint in `folder`. */
void log_json_resume(struct log_json *log, const struct slc_cp_resume *resume, const char *folder);
void log_json_checkpoint(struct log_json *log,
                         const struct slc_cp_checkpointed *written,
                         const char *folder);
/* A model a later run can start from (--init) was written to `path`. */
void log_json_results(struct log_json *log, unsigned iteration, const char *path, double seconds);
/* How a run ended. */
struct log_end {
    const char *reason; /* as in the report, "done", or the name of the status of a failed run */
    int exit_code;
    double seconds;
    const struct slc_cp_result *result; /* NULL: it is no decomposition */
    json_t *estimate;                   /* compared with the run: taken; NULL: there was none */
};
/* The last event. */
void log_json_end(struct log_json *log, const struct log_end *end);
/*
 * The same of a process that a signal ends at once: nothing is waited for, and where another thread
 * is writing to the log there is no such event.
 */
void log_json_abort(struct log_json *log, int exit_code, double seconds);

/* Since when the machine runs, as the start of a log has it; "" if that is not known. */
enum { LOG_BOOT_BYTES = 64 };
const char *log_json_boot(char boot[LOG_BOOT_BYTES]);

/* The words of a command line. */
json_t *json_command_line(int argc, char **argv);

/*
 * The JSON log of the command that runs (--log-json): opened before it, told of its progress, and
 * ended with its exit code, whichever way it ends.
 */

/*
 * Opens the log that the option log-json names, if the command has that and it was given, empties
 * it and writes the first event; false after a fault, which has been printed: *exit_code then says
 * how it ended. One whose log goes on where a run does (command.resumes) opens it itself.
 */
bool run_log_begin(
    const struct command *command, int argc, char **argv, const void *values, int *exit_code);

/* The same for a log that is open already; NULL: none any more. It stays the caller's. */
void run_log_use(struct log_json *log);

/* Whether there is a log that run_log_begin opened. */
bool run_log_is_open(void);
/* What the last event is to have as its member "estimate"; owns it, log or not. */
void run_log_estimate(json_t *estimate);

/* The last event and the end of a log that run_log_begin opened. */
void run_log_end(int exit_code);

/* A signal is about to end the process. */
void run_log_abort(int exit_code);

#endif
