/* Shows the progress of passes and phases. Rates are averages over the current pass or phase. The
 * state is written by one thread at a time and read by the signal thread, under one lock. */
#include "tools/progress/progress.h"

#include "base/error/clock.h"
#include "tools/progress/console.h"
#include "tools/progress/format.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *const progress_choices[] = {"auto", "always", "never", NULL};

/* Ten updates per second look continuous and cost a negligible number of writes. */
#define UPDATE_NS UINT64_C(100000000)

/* Interval of progress events in the log: one second at first, then a thousandth of the elapsed
 * time, at most ten seconds. A day of logging is two megabytes. */
#define LOG_NS_LEAST UINT64_C(900000000)
#define LOG_NS_MOST  UINT64_C(10000000000)

/* Phases that start in the first second of a run are not worth a line. */
#define QUIET_SECONDS 1.0

enum style { STYLE_NONE, STYLE_LINES, STYLE_LIVE };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    enum style style;
    bool all_phases; /* with STYLE_LINES: write a line for every phase, also in short runs */
    struct progress_shape shape;
    uint64_t start_ns;  /* start of the operation */
    uint64_t part_ns;   /* start of the current pass or phase */
    uint64_t shown_ns;  /* last update of the live line */
    uint64_t logged_ns; /* last progress event of the log */
    struct log_json *log;
    double fit;         /* fit of the last completed iteration */
    unsigned completed; /* number of completed iterations */
    unsigned iteration, mode;
    double passes_done;
    uint64_t done, total; /* blocks of the pass, or units of the phase */
    char phase[32];
} state;

/* Returns true if standard output and standard error are the same file, in which case lines would
 * appear twice. */
static bool same_output(void)
{
    struct stat out;
    struct stat error;

    return fstat(STDOUT_FILENO, &out) == 0 && fstat(STDERR_FILENO, &error) == 0 &&
           out.st_dev == error.st_dev && out.st_ino == error.st_ino;
}

void progress_start(const char *choice, bool quiet)
{
    const bool terminal = console_can_rewrite();

    state.all_phases = strcmp(choice, "always") == 0;
    if (strcmp(choice, "always") == 0) {
        state.style = terminal ? STYLE_LIVE : STYLE_LINES;
    } else if (strcmp(choice, "never") == 0 || quiet) {
        state.style = STYLE_NONE;
    } else {
        state.style = terminal ? STYLE_LIVE : (same_output() ? STYLE_NONE : STYLE_LINES);
    }
    state.start_ns = slc_clock_ns();
    state.part_ns = state.start_ns;
}

void progress_shape(const struct progress_shape *shape)
{
    (void)pthread_mutex_lock(&lock);
    state.shape = *shape;
    state.start_ns = slc_clock_ns();
    state.part_ns = state.start_ns;
    (void)pthread_mutex_unlock(&lock);
}

/* Returns the estimated seconds until all iterations are done, from the passes so far; below 0 if
 * unknown. */
static double seconds_left(double share)
{
    double passes = state.passes_done + share;
    double all_passes =
        state.shape.passes * (state.shape.iterations == 0 ? 1.0 : (double)state.shape.iterations);

    return passes > 0 && all_passes >= passes
               ? slc_seconds_since(state.start_ns) * (all_passes - passes) / passes
               : -1;
}

/* Returns the blocks of the pass, or units of the phase, per second. */
static double speed_of_part(void)
{
    const double seconds = slc_seconds_since(state.part_ns);

    return slc_ratio((double)state.done, seconds);
}

/* Returns the estimated seconds until the phase is done; below 0 if unknown. */
static double phase_seconds_left(void)
{
    const double speed = speed_of_part();

    return state.total > 0 && speed > 0 && state.done <= state.total
               ? (double)(state.total - state.done) / speed
               : -1;
}

/* Returns the unit that the phase counts; NULL: bytes. */
static const char *unit_of_phase(void)
{
    static const struct {
        const char *phase, *unit;
    } units[] = {{"parse", NULL}, {"check", NULL}, {"multiply", "tiles"}};

    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(state.phase, units[i].phase) == 0) {
            return units[i].unit;
        }
    }
    return "nnz";
}

/* Logs the progress: blocks, bytes and nonzeros of the pass, or units of the phase. */
static void log_state(void)
{
    const bool passes = state.shape.passes > 0;
    const double share = slc_ratio((double)state.done, (double)state.total);
    const double seconds = slc_seconds_since(state.part_ns);
    const double scale = passes && seconds > 0 ? share / seconds : 0;
    const bool bytes = !passes && unit_of_phase() == NULL;
    const bool nnz = !passes && !bytes && strcmp(unit_of_phase(), "nnz") == 0;
    const struct log_progress now = {
        .seconds = slc_seconds_since(state.start_ns),
        .left = passes ? seconds_left(share) : phase_seconds_left(),
        .iterations = state.shape.iterations,
        .iteration = state.iteration,
        .completed = state.completed,
        .fit = state.fit,
        .mode = state.mode,
        .phase = passes                   ? ""
                 : state.phase[0] != '\0' ? state.phase
                                          : "starting",
        .done = state.done,
        .total = state.total,
        .bytes_per_second = bytes ? speed_of_part() : scale * (double)state.shape.bytes,
        .nnz_per_second = nnz ? speed_of_part() : scale * (double)state.shape.nnz};

    state.logged_ns = slc_clock_ns();
    log_json_progress(state.log, &now);
}

/* Logs the progress when it is due. Needs: the lock is held. */
static void log_when_due(void)
{
    const uint64_t now = slc_clock_ns();
    uint64_t interval = (now - state.start_ns) / 1000;

    interval = interval < LOG_NS_LEAST  ? LOG_NS_LEAST
               : interval > LOG_NS_MOST ? LOG_NS_MOST
                                        : interval;
    if (state.log != NULL && now - state.logged_ns >= interval) {
        log_state();
    }
}

static void describe_pass(char *text, size_t bytes)
{
    struct format_text rate;
    struct format_text nonzeros;
    struct format_text left;
    double share = slc_ratio((double)state.done, (double)state.total);
    double seconds = slc_seconds_since(state.part_ns);
    double scale = slc_ratio(share, seconds);
    double eta = seconds_left(share);
    int used = state.shape.iterations > 0
                   ? snprintf(text, bytes, "its = %3u of %u, mode %u", state.iteration,
                              state.shape.iterations, state.mode + 1)
                   : snprintf(text, bytes, "%s, mode %u", state.shape.operation, state.mode + 1);

    (void)snprintf(text + used, bytes - (size_t)used, ": block %llu of %llu, %s/s, %snnz/s, ETA %s",
                   (unsigned long long)state.done, (unsigned long long)state.total,
                   format_data(&rate, scale * (double)state.shape.bytes),
                   format_scaled(&nonzeros, scale * (double)state.shape.nnz),
                   eta < 0 ? "?" : format_seconds(&left, eta));
}

/* Formats `number` as bytes, such as "3.20 MB", or without a unit if the phase has its own unit. */
static const char *format_units(struct format_text *out, double number)
{
    return unit_of_phase() == NULL ? format_data(out, number) : format_scaled(out, number);
}

static void describe_phase(char *text, size_t bytes)
{
    struct format_text done;
    struct format_text total;
    struct format_text rate;
    struct format_text left;
    const char *unit = unit_of_phase() != NULL ? unit_of_phase() : "";
    const double eta = phase_seconds_left();

    if (state.total == 0 && state.done == 0) {
        (void)snprintf(text, bytes, "%s", state.phase); /* a phase without a count */
    } else if (state.total == 0) {
        (void)snprintf(text, bytes, "%s: %s%s done, %s%s/s", state.phase,
                       format_units(&done, (double)state.done), unit,
                       format_units(&rate, speed_of_part()), unit);
    } else {
        (void)snprintf(text, bytes, "%s: %s of %s%s, %s%s/s, ETA %s", state.phase,
                       format_units(&done, (double)state.done),
                       format_units(&total, (double)state.total), unit,
                       format_units(&rate, speed_of_part()), unit,
                       eta < 0 ? "?" : format_seconds(&left, eta));
    }
}

static void describe(char *text, size_t bytes)
{
    struct format_text left;
    double eta = seconds_left(0);

    if (state.shape.iterations > 0 && state.completed >= state.iteration) {
        /* Short passes end before they report any blocks. */
        (void)snprintf(text, bytes, "its = %3u of %u done, ETA %s", state.completed,
                       state.shape.iterations, eta < 0 ? "?" : format_seconds(&left, eta));
    } else if (state.shape.passes > 0) {
        describe_pass(text, bytes);
    } else if (state.phase[0] != '\0') {
        describe_phase(text, bytes);
    } else {
        (void)snprintf(text, bytes, "starting");
    }
}

/* Draws the live line when it is due. Needs: the lock is held. */
static void draw_live_line(void)
{
    uint64_t now = slc_clock_ns();
    char text[256];

    if (state.style == STYLE_LIVE && now - state.shown_ns >= UPDATE_NS) {
        state.shown_ns = now;
        describe(text, sizeof text);
        console_live(text);
    }
    log_when_due();
}

void progress_log(struct log_json *log)
{
    (void)pthread_mutex_lock(&lock);
    state.log = log;
    state.logged_ns = slc_clock_ns();
    state.start_ns = state.start_ns != 0 ? state.start_ns : state.logged_ns;
    (void)pthread_mutex_unlock(&lock);
}

void progress_stop(void)
{
    (void)pthread_mutex_lock(&lock);
    state.style = STYLE_NONE;
    console_clear_live();
    (void)pthread_mutex_unlock(&lock);
}

void progress_tick(void)
{
    (void)pthread_mutex_lock(&lock);
    draw_live_line();
    (void)pthread_mutex_unlock(&lock);
}

void progress_blocks(unsigned iteration, unsigned mode, uint64_t done, uint64_t blocks)
{
    (void)pthread_mutex_lock(&lock);
    if (iteration != state.iteration || state.total == 0) {
        state.passes_done = iteration == 0 ? 0 : (iteration - 1) * state.shape.passes;
        state.part_ns = slc_clock_ns();
    } else if (mode != state.mode) {
        state.passes_done += 1;
        state.part_ns = slc_clock_ns();
    }
    state.iteration = iteration;
    state.mode = mode;
    state.done = done;
    state.total = blocks;
    draw_live_line();
    (void)pthread_mutex_unlock(&lock);
}

void progress_iteration(unsigned iteration, double fit, double delta, double seconds)
{
    char text[128];

    (void)pthread_mutex_lock(&lock);
    state.completed = iteration;
    state.fit = fit;
    state.passes_done = iteration * state.shape.passes;
    if (state.style == STYLE_LINES) {
        (void)snprintf(text, sizeof text, "its = %3u (%.3fs)  fit = %.5f  delta = %+.4e", iteration,
                       seconds, fit, delta);
        console_line(text);
    }
    draw_live_line();
    (void)pthread_mutex_unlock(&lock);
}

void progress_phase(void *unused, const char *phase, uint64_t done, uint64_t total)
{
    (void)unused;
    (void)pthread_mutex_lock(&lock);
    if (strncmp(phase, state.phase, sizeof state.phase - 1) != 0) {
        (void)snprintf(state.phase, sizeof state.phase, "%s", phase);
        state.part_ns = slc_clock_ns();
        log_json_phase(state.log, state.phase, slc_seconds_since(state.start_ns));
        const double seconds = slc_seconds_since(state.start_ns);
        if (state.style == STYLE_LINES && (state.all_phases || seconds >= QUIET_SECONDS)) {
            char text[64];

            (void)snprintf(text, sizeof text, "sluice: after %.1fs: %s", seconds, state.phase);
            console_line(text);
        }
    }
    state.done = done;
    state.total = total;
    draw_live_line();
    (void)pthread_mutex_unlock(&lock);
}

void progress_print_state(void)
{
    char text[256];
    char line[320];

    (void)pthread_mutex_lock(&lock);
    describe(text, sizeof text);
    (void)snprintf(line, sizeof line, "sluice: after %.1fs: %s", slc_seconds_since(state.start_ns),
                   text);
    console_line(line);
    (void)pthread_mutex_unlock(&lock);
}
