/*
 * Where a run stands, as its JSON log (log_json.h) tells: what `sluice watch` shows. Lines come one
 * by one, from a file that anybody may have written.
 */
#ifndef SLC_TOOLS_RUN_STATE_H
#define SLC_TOOLS_RUN_STATE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a line changed. */
enum run_news {
    RUN_NEWS_NONE, /* it is no event of a log, or says nothing new */
    RUN_NEWS_START,
    RUN_NEWS_PROGRESS,
    RUN_NEWS_PHASE,
    RUN_NEWS_ITERATION,
    RUN_NEWS_END
};

struct run_state {
    bool started, ended;
    char name[32]; /* of the command; texts are plain (base/text/plain_text.h) */
    char host[128], boot[64];
    int64_t pid; /* above 0, or 0: not told */
    char phase[32];
    uint64_t iterations, iteration, completed, mode, done, total;
    double fit, delta, iteration_seconds; /* of the last completed iteration */
    double seconds;                       /* since the start, as last told */
    double seconds_left;                  /* below 0: not known */
    double bytes_per_second, nnz_per_second;
    char reason[64];
    int exit_code; /* 0 to 255 */
};

/* Takes a line without its end; the start of a run forgets the one before. */
enum run_news run_state_take(struct run_state *state, const char *line, size_t bytes);

/* One line for people, into `text`. */
void run_state_describe(const struct run_state *state, char *text, size_t bytes);

/* The same for programs; `alive`: 1 it goes on, 0 it does not, -1 nobody knows. */
json_t *run_state_json(const struct run_state *state, int alive);

#endif
