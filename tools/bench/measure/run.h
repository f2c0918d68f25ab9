/*
 * What all benchmarks do alike: parse options, start the record, measure, print the record or
 * tables of it, close. A benchmark brings the steps in between.
 */
#ifndef SLC_TOOLS_BENCH_RUN_H
#define SLC_TOOLS_BENCH_RUN_H

#include "tools/bench/measure/timing.h"
#include "tools/options/options.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How often to measure and how to print; field `bench` of a benchmark's arguments. */
struct bench_options {
    uint64_t repeats;
    uint64_t warm_up;
    bool json;
};

/* Row of an option table for a field that bench_memory_set_bytes (ceiling.h) is given. */
#define BENCH_OPTION_ROW_MEMORY_SET(type, field)                                                   \
    OPTION_ROW("memory-set", OPTION_SIZE, type, field, .value = "SIZE",                            \
               .help = "bytes swept for the bandwidth of memory, 1MiB at least; four times the "   \
                       "last cache, 256MiB at least, if not given")

/* Rows of what is measured: several ranks, one mode or all, several numbers of threads. */
#define BENCH_OPTION_ROW_RANKS(type, field, text)                                                  \
    OPTION_ROW("rank", OPTION_COUNTS, type, field, .letter = 'r', .required = true,                \
               .value = "R[,R..]", .minimum = 1, .maximum = SLC_MAX_RANK, .help = (text))
#define BENCH_OPTION_ROW_MODE(type, field)                                                         \
    OPTION_ROW("mode", OPTION_U64, type, field, .value = "K", .fallback = "0",                     \
               .maximum = SLC_MAX_ORDER, .help = "only mode K; 0: all")
#define BENCH_OPTION_ROW_THREADS(type, field)                                                      \
    OPTION_ROW("threads", OPTION_COUNTS, type, field, .letter = 't', .value = "T[,T..]",           \
               .fallback = "0", .maximum = SLC_MAX_THREADS,                                        \
               .help = "threads; 0: one per processor this process may use; several make a sweep")

/* Rows of an option table for the field `bench` of struct `type`. */
#define BENCH_OPTION_ROWS(type, repeats_default)                                                   \
    OPTION_ROW("repeat", OPTION_U64, type, bench.repeats, .letter = 'n', .value = "N",             \
               .fallback = (repeats_default), .minimum = 1, .maximum = BENCH_REPEATS_MAX,          \
               .help = "times each thing is measured; the median is told"),                        \
        OPTION_ROW("warm-up", OPTION_U64, type, bench.warm_up, .value = "N", .fallback = "1",      \
                   .maximum = BENCH_REPEATS_MAX, .help = "runs before those that count"),          \
        OPTION_ROW("json", OPTION_FLAG, type, bench.json,                                          \
                   .help = "one JSON object in place of tables")

/* The steps of a benchmark; `state` is its own and passed to its steps. */
struct bench_steps {
    void *values;                       /* of the command's options, all-zero */
    const struct bench_options *common; /* within `values` */
    void *state;
    /* Adds the figures to the record. `operand`: the first, or NULL. */
    enum slc_status (*measure)(void *state,
                               const char *operand,
                               json_t *record,
                               struct slc_error *err);
    /* Prints tables of a record that `measure` filled. */
    void (*print)(const json_t *record);
    /* Releases what `measure` left, also after an error; NULL: nothing to release. */
    void (*close)(void *state);
};

/* Runs the benchmark and returns the exit code of the command. */
int bench_run(const struct command *command,
              int argc,
              char **argv,
              const struct bench_steps *steps);

/* The same for a benchmark of several operands: `operands` holds all of them before `measure`. */
int bench_run_many(const struct command *command,
                   int argc,
                   char **argv,
                   const struct bench_steps *steps,
                   struct operands *operands);

#endif
