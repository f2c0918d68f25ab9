/*
 * A sweep of `sluice cpd`: several ranks, or several starts of one, over one store. Each run has
 * the results and the checkpoint that it would have by itself, in a folder of the sweep's
 * (r16-seed3); sweep.json beside them records what is through, so that the same command line goes
 * on.
 */
#ifndef SLC_TOOLS_CPD_SWEEP_H
#define SLC_TOOLS_CPD_SWEEP_H

#include "base/error.h"
#include "log_json.h"
#include "options.h"
#include "sweep_record.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* One run of a sweep: what is to be done, and what has come of it. */
struct cpd_sweep_run {
    struct sweep_run record; /* rank and seed; the rest is filled in by who runs it */
    const char *folder;
    double max_seconds; /* what is left of the sweep's; 0: no limit */
    /* To be called when the results are on the drive, before the checkpoint goes. */
    enum slc_status (*written)(struct cpd_sweep_run *run, struct slc_error *err);
    void *sweep;
};

struct cpd_sweep_options {
    const char *store;
    const char *output; /* NULL: NAME.sweep */
    struct option_counts ranks;
    uint64_t runs;           /* of each rank */
    uint64_t seed;           /* of the first of each; of the others one more each */
    bool keep_all;           /* factors of all runs; else of the best of each rank */
    const char *consistency; /* sweep_judge.h */
    bool restart;
    bool quiet;
    double max_seconds;    /* 0: no limit */
    uint64_t memory_bytes; /* 0: the default budget */
    unsigned threads;      /* 0: all */
    struct log_json *log;
    /*
     * Refuses a rank that there is no memory for, and sets what decides the results of all runs
     * beside rank and seed: an object of texts, which the caller releases.
     */
    enum slc_status (*prepare)(void *context,
                               uint32_t rank,
                               json_t **identity,
                               struct slc_error *err);
    /* Makes one run and tells what went wrong; an exit code, 0 when it is through. */
    int (*run)(void *context, struct cpd_sweep_run *run);
    void *context;
};

/* The whole sweep; an exit code. What went wrong has been told. */
int cpd_sweep(const struct cpd_sweep_options *options);

#endif
