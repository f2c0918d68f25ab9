/* State of a run, read from its JSON log (log_json.h) line by line, for `sluice watch`. The log is
 * untrusted input. */
#ifndef SLC_TOOLS_RUN_STATE_H
#define SLC_TOOLS_RUN_STATE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The change that a line of the log causes. */
enum run_news {
    RUN_NEWS_NONE, /* not an event of a log, or nothing new */
    RUN_NEWS_START,
    RUN_NEWS_PROGRESS,
    RUN_NEWS_PHASE,
    RUN_NEWS_ITERATION,
    RUN_NEWS_END
};

struct run_state {
    bool started, ended;
    /* name of the command; texts have no control characters (base/text/plain_text.h) */
    char name[32];
    char host[128], boot[64];
    int64_t pid; /* process id; 0: unknown */
    char phase[32];
    uint64_t iterations, iteration, completed, mode, done, total;
    double fit, delta, iteration_seconds; /* values of the last completed iteration */
    double seconds;                       /* seconds from the start to the last event */
    double seconds_left;                  /* estimated remaining seconds; below 0: unknown */
    double bytes_per_second, nnz_per_second;
    char reason[64];
    int exit_code; /* 0 to 255 */
};

/* Updates the state from a log line without its line end. A "start" event resets the state. */
enum run_news run_state_apply(struct run_state *state, const char *line, size_t bytes);

/* Formats the state as one line into `text`. */
void run_state_describe(const struct run_state *state, char *text, size_t bytes);

/* Returns the state as JSON. `alive`: 1 running, 0 not running, -1 unknown. */
json_t *run_state_json(const struct run_state *state, int alive);

#endif
