/*
 * A sweep: runs of one store with several ranks or starts. Each run has its own folder in the
 * folder of the sweep (r16-seed3), with the results and checkpoint of a single run. sweep.json
 * records the completed runs, so the same sweep continues when it is started again.
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

/* One run: its parameters and its result. */
struct slc_sweep_job {
    struct slc_sweep_run record; /* rank and seed; slc_sweep_options.run fills in the rest */
    const char *folder;
    double max_seconds; /* remaining time of the sweep; 0: no limit */
    /* slc_sweep_options.run calls this when the results are on the drive, before it removes the
     * checkpoint. */
    enum slc_status (*written)(struct slc_sweep_job *job, struct slc_error *err);
    void *sweep;
};

struct slc_sweep_options {
    const char *store;  /* path */
    const char *folder; /* folder of the sweep; at most 1023 bytes */
    const uint32_t *ranks;
    unsigned rank_count;
    uint64_t runs; /* per rank */
    uint64_t seed; /* seed of the first run per rank; the other runs have seed + 1, .. */
    bool keep_all; /* keep the factors of all runs, not only those of the best run per rank */
    enum slc_consistency consistency;
    bool restart;
    double max_seconds;       /* 0: no limit */
    uint64_t memory_bytes;    /* 0: the default budget */
    unsigned threads;         /* 0: all */
    const volatile int *stop; /* not 0: end the sweep after the current run; may be NULL */
    /* Fails if memory does not suffice for a rank, and stores the parameters that determine the
     * results of all runs except rank and seed (slc_sweep_identity). The sweep releases them. */
    enum slc_status (*prepare)(void *context,
                               uint32_t rank,
                               json_t **identity,
                               struct slc_error *err);
    /* Called before the first run. `fresh` is true if the sweep is new, false if it continues. */
    void (*starting)(void *context, bool fresh);
    /* Computes a run. Returns 0 if it is complete, otherwise the code that ends the sweep. */
    int (*run)(void *context, struct slc_sweep_job *job);
    /* Called for each complete run. `before` is true if the run was complete when the sweep
     * started. */
    void (*completed)(void *context, const struct slc_sweep_run *run, bool before);
    void *context;
};

/* How a sweep without an error of its own ended. */
enum slc_sweep_end {
    SLC_SWEEP_COMPLETE,
    SLC_SWEEP_STOPPED, /* by *stop */
    SLC_SWEEP_TIME,    /* stopped by max_seconds, before a run */
    SLC_SWEEP_RUN      /* stopped by a run, whose return value is in *code */
};

/*
 * Computes the missing runs of a sweep. Fills in *record, which must be empty, and, if the sweep is
 * complete, *suggestion. Ownership: slc_sweep_record_destroy, also after an error. Errors:
 * SLC_ERR_USAGE if ranks, runs and seed are out of range, or the folder has a sweep with other
 * options; SLC_ERR_IO if another process uses the folder; those of `prepare`, of the record and of
 * slc_sweep_compare_rank.
 */
enum slc_status slc_sweep(const struct slc_sweep_options *options,
                          struct slc_sweep_record *record,
                          struct slc_sweep_suggestion *suggestion,
                          enum slc_sweep_end *end,
                          int *code,
                          struct slc_error *err) SLC_NODISCARD;

/* Options that determine the results of all runs of a sweep, except rank and seed. */
struct slc_sweep_method {
    uint64_t iterations;
    double tolerance, regularization;
    enum slc_value_type precision;
    bool deterministic;
    double holdout;
    uint64_t holdout_seed;
};

/* Returns the options `method` and the identity of the tensor as texts, by which records are
 * compared; NULL if there is no memory. */
json_t *slc_sweep_identity(const struct slc_manifest *manifest,
                           const struct slc_sweep_method *method);

#endif
