/*
 * What all benchmarks do alike: parse options, start the record, measure, print the record or
 * tables of it, close. A benchmark brings the steps in between.
 */
#ifndef SLC_TOOLS_BENCH_RUN_H
#define SLC_TOOLS_BENCH_RUN_H

#include "tools/bench/bench.h"
#include "tools/options/options.h"

#include <jansson.h>

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
