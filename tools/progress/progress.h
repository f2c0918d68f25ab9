/* Progress on standard error: a live line on a terminal (at most ten times a second), otherwise one
 * plain line per phase or iteration, or nothing. SIGUSR1 prints the state in any case. */
#ifndef SLC_TOOLS_PROGRESS_H
#define SLC_TOOLS_PROGRESS_H

#include "tools/progress/log_json.h"

#include <stdbool.h>
#include <stdint.h>

/* Values of --progress, for option tables. */
extern const char *const progress_choices[];

/* `choice`: "auto" (a live line on a terminal, otherwise a plain line per iteration), "always"
 * (even if standard output already shows the iterations), "never". */
void progress_start(const char *choice, bool quiet);
/* Stops all progress output and erases the live line. */
void progress_stop(void);

/* Size of a pass, for rates and the remaining time. */
struct progress_shape {
    unsigned order;
    unsigned iterations;   /* maximum number of iterations; 0: one operation without iterations */
    double passes;         /* average number of passes per iteration */
    uint64_t nnz;          /* nonzeros that a pass processes */
    uint64_t bytes;        /* encoded bytes that a pass processes */
    const char *operation; /* name, such as "MTTKRP", of an operation without iterations */
};
void progress_shape(const struct progress_shape *shape);

/* Reports blocks of a pass. `mode` starts at 0, `iteration` at 1. Workers call it between tiles. */
void progress_blocks(unsigned iteration, unsigned mode, uint64_t done, uint64_t blocks);

/* Reports a complete iteration. Prints a plain line if there is no live line. */
void progress_iteration(unsigned iteration, double fit, double delta, double seconds);

/* Reports the progress of a phase. Usable as a progress callback of the library. */
void progress_phase(void *unused, const char *phase, uint64_t done, uint64_t total);

/* Sets the log for phase and progress events; NULL: none. */
void progress_log(struct log_json *log);

/* Called every second by the signal thread: redraws the live line and logs the progress, even if
 * nothing was reported. */
void progress_tick(void);

/* Prints one line with the progress. Called by the signal thread. */
void progress_print_state(void);

#endif
