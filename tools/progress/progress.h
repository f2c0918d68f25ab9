/*
 * Progress on standard error: a live line on a terminal (at most ten times a second), otherwise one
 * plain line per phase or iteration, or nothing. SIGUSR1 prints the state in any case.
 */
#ifndef SLC_TOOLS_PROGRESS_H
#define SLC_TOOLS_PROGRESS_H

#include "tools/progress/log_json.h"

#include <stdbool.h>
#include <stdint.h>

/* Values of --progress, for option tables. */
extern const char *const progress_choices[];

/*
 * `choice`: "auto" (a live line on a terminal, else one plain line per iteration), "always" (also
 * where standard output already shows the iterations), "never".
 */
void progress_start(const char *choice, bool quiet);
/* Nothing is told any more, and the live line is gone. */
void progress_stop(void);

/* What a pass streams, for rates and the time left. */
struct progress_shape {
    unsigned order;
    unsigned iterations;   /* at most; 0: one operation without iterations */
    double passes;         /* per iteration, on average */
    uint64_t nnz;          /* per pass */
    uint64_t bytes;        /* per pass, encoded */
    const char *operation; /* "MTTKRP" where there are no iterations */
};
void progress_shape(const struct progress_shape *shape);

/* `mode` from 0; `iteration` from 1. Called from a worker between its tiles. */
void progress_blocks(unsigned iteration, unsigned mode, uint64_t done, uint64_t blocks);

/* An iteration is complete: a plain line where there is no live one. */
void progress_iteration(unsigned iteration, double fit, double delta, double seconds);

/* A phase of conversion or generation, as the library's callbacks report it. */
void progress_phase(void *unused, const char *phase, uint64_t done, uint64_t total);

/* Where events of phases and, every second or less often, of progress go; NULL: nowhere. */
void progress_log(struct log_json *log);

/*
 * A second has passed: the live line is drawn again and the log learns where the run stands, also
 * where nothing was reported since. From the signal thread.
 */
void progress_tick(void);

/* One line that says where the run stands; from the signal thread. */
void progress_print_state(void);

#endif
