/*
 * A sweep: several ranks, or several starts of each, over one store. Each run has the results and
 * the checkpoint that it would have by itself, in a folder of the sweep's (r16-seed3); sweep.json
 * beside them records what is through, so that the same sweep goes on when it is made again.
 */
#ifndef SLC_REPORT_SWEEP_H
#define SLC_REPORT_SWEEP_H

#include "base/error/error.h"
#include "storage/manifest/store.h"
#include "sweep/sweep_compare.h"
#include "sweep/sweep_record.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* One run: what is to be done, and what has come of it. */
struct slc_sweep_job {
    struct slc_sweep_run record; /* rank and seed; the rest is filled in by who runs it */
    const char *folder;
    double max_seconds; /* what is left of the sweep's; 0: no limit */
    /* To be called when the results are on the drive, before the checkpoint goes. */
    enum slc_status (*written)(struct slc_sweep_job *job, struct slc_error *err);
    void *sweep;
};

struct slc_sweep_options {
    const char *store;  /* its path */
    const char *folder; /* of the sweep; at most 1023 bytes */
    const uint32_t *ranks;
    unsigned rank_count;
    uint64_t runs; /* of each rank */
    uint64_t seed; /* of the first of each; of the others one more each */
    bool keep_all; /* factors of all runs; else of the best of each rank */
    enum slc_consistency consistency;
    bool restart;
    double max_seconds;       /* 0: no limit */
    uint64_t memory_bytes;    /* 0: the default budget */
    unsigned threads;         /* 0: all */
    const volatile int *stop; /* non-zero: ends it behind the run on its way; may be NULL */
    /*
     * Refuses a rank that there is no memory for, and sets what decides the results of all runs
     * beside rank and seed (slc_sweep_identity), which is released behind it.
     */
    enum slc_status (*prepare)(void *context,
                               uint32_t rank,
                               json_t **identity,
                               struct slc_error *err);
    /* Called before the first run; `fresh`: it does not go on from one that was begun. */
    void (*begin)(void *context, bool fresh);
    /* Makes one run; 0 when it is through, else what the sweep ends with. */
    int (*run)(void *context, struct slc_sweep_job *job);
    /* Called for each run that is through; `before`: it has been when the sweep went on. */
    void (*told)(void *context, const struct slc_sweep_run *run, bool before);
    void *context;
};

/* How a sweep ended that met no fault of its own. */
enum slc_sweep_end {
    SLC_SWEEP_THROUGH,
    SLC_SWEEP_STOPPED, /* by *stop */
    SLC_SWEEP_TIME,    /* by max_seconds, before a run */
    SLC_SWEEP_RUN      /* by a run: *code is what that has returned */
};

/*
 * The whole sweep, or what is left of it. *record, an empty one, gets all that is known, and
 * *suggestion, where it is through, what it suggests. Owns: slc_sweep_record_destroy, also after an
 * error. Errors: SLC_ERR_USAGE where ranks, runs and seed are no sweep, or the folder has one of
 * other runs; SLC_ERR_IO where another process has the folder; those of `prepare`, of the record
 * and of slc_sweep_compare_rank.
 */
enum slc_status slc_sweep(const struct slc_sweep_options *options,
                          struct slc_sweep_record *record,
                          struct slc_sweep_suggestion *suggestion,
                          enum slc_sweep_end *end,
                          int *code,
                          struct slc_error *err) SLC_NODISCARD;

/* What decides the results of all runs of a sweep beside rank and seed. */
struct slc_sweep_method {
    uint64_t iterations;
    double tolerance, regularization;
    enum slc_value_type precision;
    bool deterministic;
    double holdout;
    uint64_t holdout_seed;
};

/* The same, with the tensor, as texts that a record is compared by; NULL without memory. */
json_t *slc_sweep_identity(const struct slc_manifest *manifest,
                           const struct slc_sweep_method *method);

#endif
