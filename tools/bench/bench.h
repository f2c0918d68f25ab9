/*
 * The benchmarks of `sluice bench`, and the options they share. Each is a command of its own table:
 * one file per benchmark, listed in tools/cmd/cmd_bench.c. A benchmark
 *
 *   1. hands its steps to bench_run (run.h), which parses options and starts the record (record.h),
 *   2. measures by timing.h, beside every figure the ceiling measured in the same run,
 *   3. prints tables from the record (table.h), or with --json the record and nothing else.
 */
#ifndef SLC_TOOLS_BENCH_BENCH_H
#define SLC_TOOLS_BENCH_BENCH_H

#include "tools/bench/measure/timing.h"
#include "tools/options/options.h"

#include <stddef.h>
#include <stdint.h>

extern const struct command bench_codec;
extern const struct command bench_convert;
extern const struct command bench_cpd;
extern const struct command bench_device;
extern const struct command bench_io;
extern const struct command bench_mttkrp;
extern const struct command bench_pass;
extern const struct command bench_roofline;
extern const struct command bench_stream;
extern const struct command bench_ttm;
extern const struct command bench_ttv;

/* How often to measure and how to print; field `bench` of a benchmark's arguments. */
struct bench_options {
    uint64_t repeats;
    uint64_t warm_up;
    bool json;
};

/* Row of an option table for a field that bench_memory_set_bytes (ceiling.h) is given. */
#define BENCH_OPTION_ROW_MEMORY_SET(type, field)                                                   \
    {                                                                                              \
        .name = "memory-set", .kind = OPTION_SIZE, .value = "SIZE",                                \
        .help = "bytes swept for the bandwidth of memory, 1MiB at least; four times the last "     \
                "cache, 256MiB at least, if not given",                                            \
        .offset = offsetof(struct type, field)                                                     \
    }

/* Rows of an option table for the field `bench` of struct `type`. */
#define BENCH_OPTION_ROWS(type, repeats_default)                                                   \
    {.name = "repeat",                                                                             \
     .letter = 'n',                                                                                \
     .kind = OPTION_U64,                                                                           \
     .value = "N",                                                                                 \
     .fallback = (repeats_default),                                                                \
     .minimum = 1,                                                                                 \
     .maximum = BENCH_REPEATS_MAX,                                                                 \
     .help = "times each thing is measured; the median is told",                                   \
     .offset = offsetof(struct type, bench.repeats)},                                              \
        {.name = "warm-up",                                                                        \
         .kind = OPTION_U64,                                                                       \
         .value = "N",                                                                             \
         .fallback = "1",                                                                          \
         .maximum = BENCH_REPEATS_MAX,                                                             \
         .help = "runs before those that count",                                                   \
         .offset = offsetof(struct type, bench.warm_up)},                                          \
    {                                                                                              \
        .name = "json", .kind = OPTION_FLAG, .help = "one JSON object in place of tables",         \
        .offset = offsetof(struct type, bench.json)                                                \
    }

#endif
