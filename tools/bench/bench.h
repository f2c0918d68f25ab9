/* Declares the benchmarks of `sluice bench`, each with its own file and command table.
 * tools/cmd/cmd_bench.c lists them. Each benchmark
 *
 *   1. passes its steps to bench_run (run.h), which parses options and creates the record;
 *   2. measures with timing.h, and measures the ceiling of every figure in the same run;
 *   3. prints tables from the record, or with --json only the record. */
#ifndef SLC_TOOLS_BENCH_BENCH_H
#define SLC_TOOLS_BENCH_BENCH_H

#include "tools/options/options.h"

extern const struct command bench_codec;
extern const struct command bench_convert;
extern const struct command bench_cpd;
extern const struct command bench_device;
extern const struct command bench_fpga;
extern const struct command bench_io;
extern const struct command bench_mttkrp;
extern const struct command bench_pass;
extern const struct command bench_roofline;
extern const struct command bench_stream;
extern const struct command bench_ttm;
extern const struct command bench_ttv;

#endif
