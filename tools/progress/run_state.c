/* Reads the state of a run from the events of its log. If a member of an event is missing, has a
 * wrong type or is out of range, the value in the state stays unchanged. */
#include "tools/progress/run_state.h"

#include "base/text/plain_text.h"
#include "report/json_parts.h"
#include "tools/progress/format.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static void read_text(const json_t *event, const char *name, char *text, size_t bytes)
{
    const char *found = json_string_value(json_object_get(event, name));

    if (found != NULL) {
        (void)snprintf(text, bytes, "%s", found);
        slc_text_make_plain(text);
    }
}

static void read_count(const json_t *event, const char *name, uint64_t *number)
{
    const json_t *found = json_object_get(event, name);

    if (json_is_integer(found) && json_integer_value(found) >= 0) {
        *number = (uint64_t)json_integer_value(found);
    }
}

/* Larger times and rates are invalid; printing relies on this bound. */
#define NUMBER_MAX 1e15

static void read_number(const json_t *event, const char *name, double *number)
{
    const json_t *found = json_object_get(event, name);

    if (json_is_number(found) && fabs(json_number_value(found)) <= NUMBER_MAX) {
        *number = json_number_value(found);
    }
}

static void apply_start(struct run_state *state, const json_t *event)
{
    uint64_t pid = 0;

    *state = (struct run_state){.started = true, .seconds_left = -1};
    read_text(event, "name", state->name, sizeof state->name);
    read_text(event, "host", state->host, sizeof state->host);
    read_text(event, "boot", state->boot, sizeof state->boot);
    read_count(event, "pid", &pid);
    state->pid = pid <= INT32_MAX ? (int64_t)pid : 0;
}

static void apply_progress(struct run_state *state, const json_t *event)
{
    state->seconds_left = -1;
    state->phase[0] = '\0';
    read_text(event, "phase", state->phase, sizeof state->phase);
    read_number(event, "seconds", &state->seconds);
    read_number(event, "seconds_left", &state->seconds_left);
    read_number(event, "bytes_per_second", &state->bytes_per_second);
    read_number(event, "nnz_per_second", &state->nnz_per_second);
    read_number(event, "fit", &state->fit);
    read_count(event, "iterations", &state->iterations);
    read_count(event, "iteration", &state->iteration);
    read_count(event, "completed", &state->completed);
    read_count(event, "mode", &state->mode);
    read_count(event, "done", &state->done);
    read_count(event, "total", &state->total);
}

static void apply_iteration(struct run_state *state, const json_t *event)
{
    read_count(event, "iteration", &state->completed);
    read_number(event, "fit", &state->fit);
    read_number(event, "delta", &state->delta);
    read_number(event, "seconds", &state->iteration_seconds);
}

static void apply_end(struct run_state *state, const json_t *event)
{
    uint64_t code = 1;

    state->ended = true;
    read_text(event, "reason", state->reason, sizeof state->reason);
    read_number(event, "seconds", &state->seconds);
    read_number(event, "fit", &state->fit);
    read_count(event, "iterations", &state->completed);
    read_count(event, "exit_code", &code);
    state->exit_code = code <= 255 ? (int)code : 1;
}

/* Dispatches by the name of the event; an unknown event leaves *state unchanged. */
static enum run_news apply_event(struct run_state *state, const json_t *event)
{
    static const struct {
        const char *name;
        void (*apply)(struct run_state *state, const json_t *event);
        enum run_news news;
    } events[] = {{"start", apply_start, RUN_NEWS_START},
                  {"progress", apply_progress, RUN_NEWS_PROGRESS},
                  {"iteration", apply_iteration, RUN_NEWS_ITERATION},
                  {"end", apply_end, RUN_NEWS_END}};
    const char *schema = json_string_value(json_object_get(event, "schema"));
    const char *name = json_string_value(json_object_get(event, "event"));

    if (schema == NULL || name == NULL || strcmp(schema, "sluice-log-1") != 0) {
        return RUN_NEWS_NONE;
    }
    if (strcmp(name, "phase") == 0) {
        read_text(event, "phase", state->phase, sizeof state->phase);
        read_number(event, "seconds", &state->seconds);
        return RUN_NEWS_PHASE;
    }
    for (size_t i = 0; i < sizeof events / sizeof events[0]; i++) {
        if (strcmp(name, events[i].name) == 0) {
            events[i].apply(state, event);
            return events[i].news;
        }
    }
    return RUN_NEWS_NONE;
}

enum run_news run_state_apply(struct run_state *state, const char *line, size_t bytes)
{
    json_t *event = json_loadb(line, bytes, 0, NULL);
    enum run_news news = RUN_NEWS_NONE;

    if (json_is_object(event)) {
        news = apply_event(state, event);
    }
    json_decref(event);
    return news;
}

/* Returns ", ETA 3m 05s", or "" if unknown. */
static const char *eta(const struct run_state *state, char *text, size_t bytes)
{
    struct format_text left;

    text[0] = '\0';
    if (state->seconds_left >= 0) {
        (void)snprintf(text, bytes, ", ETA %s", format_seconds(&left, state->seconds_left));
    }
    return text;
}

void run_state_describe(const struct run_state *state, char *text, size_t bytes)
{
    struct format_text a, b, c;
    char left[64];

    if (!state->started) {
        (void)snprintf(text, bytes, "not started");
    } else if (state->ended) {
        (void)snprintf(text, bytes, "%s ended after %s: %s, exit code %d", state->name,
                       format_seconds(&a, state->seconds), state->reason, state->exit_code);
    } else if (state->phase[0] != '\0') {
        (void)snprintf(text, bytes, "%s: %s, %s of %s%s", state->name, state->phase,
                       format_scaled(&a, (double)state->done),
                       format_scaled(&b, (double)state->total), eta(state, left, sizeof left));
    } else if (state->total == 0 && state->iterations == 0) {
        (void)snprintf(text, bytes, "%s: %" PRIu64 " iterations done, fit %.5f", state->name,
                       state->completed, state->fit);
    } else if (state->completed > 0 && state->total == 0) {
        (void)snprintf(text, bytes, "%s: %" PRIu64 " of %" PRIu64 " iterations done, fit %.5f%s",
                       state->name, state->completed, state->iterations, state->fit,
                       eta(state, left, sizeof left));
    } else {
        (void)snprintf(text, bytes,
                       "%s: its = %3" PRIu64 " of %" PRIu64 ", mode %" PRIu64 ": block %" PRIu64
                       " of %" PRIu64 ", fit %.5f, %s/s, %snnz/s%s",
                       state->name, state->iteration, state->iterations, state->mode, state->done,
                       state->total, state->fit, format_data(&b, state->bytes_per_second),
                       format_scaled(&c, state->nnz_per_second), eta(state, left, sizeof left));
    }
}

json_t *run_state_json(const struct run_state *state, int alive)
{
    json_t *object =
        json_pack("{s:s, s:s, s:b, s:b, s:I, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f}",
                  "schema", "sluice-watch-1", "name", state->name, "started", (int)state->started,
                  "ended", (int)state->ended, "pid", (json_int_t)state->pid, "host", state->host,
                  "phase", state->phase, "iterations", (json_int_t)state->iterations, "iteration",
                  (json_int_t)state->iteration, "completed", (json_int_t)state->completed, "mode",
                  (json_int_t)state->mode, "done", (json_int_t)state->done, "total",
                  (json_int_t)state->total, "fit", state->fit, "seconds", state->seconds);

    slc_json_set_known_real(object, "seconds_left", state->ended ? -1 : state->seconds_left);
    slc_json_set(object, "alive", alive < 0 ? json_null() : json_boolean(alive > 0));
    slc_json_set_text(object, "reason", state->ended ? state->reason : NULL);
    slc_json_set(object, "exit_code", state->ended ? json_integer(state->exit_code) : json_null());
    return object;
}
