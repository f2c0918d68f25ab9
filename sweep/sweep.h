/* Runs sweeps. A sweep consists of decompositions of one store with several ranks or seeds. Each
 * run has a folder in the folder of the sweep (r16-seed3), with the results and the checkpoint of
 * the run. sweep.json records the completed runs, so that a sweep continues when it is started
 * again. */
#ifndef SLC_REPORT_SWEEP_H
#define SLC_REPORT_SWEEP_H

#include "base/error/error.h"
#include "engine/solve/cp.h"
#include "storage/manifest/store.h"
#include "sweep/sweep_compare.h"
#include "sweep/sweep_record.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* One run: its parameters and results. */
struct slc_sweep_job {
    struct slc_sweep_run record; /* rank and seed are set; slc_sweep_options.run sets the rest */
    const char *folder;
    double max_seconds; /* remaining time of the sweep; 0 means no limit */
    /* Records the run. slc_sweep_options.run calls it when the results are on the drive, before it
     * removes the checkpoint. */
    enum slc_status (*written)(struct slc_sweep_job *job, struct slc_error *err);
    void *sweep;
};

struct slc_sweep_options {
    const struct slc_files *files; /* operations for the store, such as those of an open store */
    const char *store;             /* path of the store */
    const char *folder;            /* folder of the sweep; at most 1023 bytes */
    const uint32_t *ranks;
    unsigned rank_count;
    uint64_t runs; /* number of runs per rank */
    /* seed of the first run of each rank; the other runs have seed + 1, seed + 2, .. */
    uint64_t seed;
    bool keep_all; /* true: keep the factors of all runs; false: of the best run per rank */
    enum slc_consistency consistency;
    bool restart;
    double max_seconds;       /* 0 means no limit */
    uint64_t memory_bytes;    /* 0 means the default budget */
    unsigned threads;         /* 0 means one per processor */
    const volatile int *stop; /* ends the sweep after a run if not 0; may be NULL */
    /* Called with the largest rank; fails if memory does not suffice for this rank. Stores the
     * result of slc_sweep_identity in *identity, which the sweep releases. */
    enum slc_status (*prepare)(void *context,
                               uint32_t rank,
                               json_t **identity,
                               struct slc_error *err);
    /* The sweep calls this before its first run. `fresh` is false if the folder has a sweep that
     * now continues. */
    void (*starting)(void *context, bool fresh);
    /* Computes a run. Returns 0 if the run is complete, otherwise the code that ends the sweep. */
    int (*run)(void *context, struct slc_sweep_job *job);
    /* The sweep calls this for each complete run. `before` is true if the run was already complete
     * when the sweep started. */
    void (*completed)(void *context, const struct slc_sweep_run *run, bool before);
    void *context;
};

/* How a sweep ended, if slc_sweep returned SLC_OK. */
enum slc_sweep_end {
    SLC_SWEEP_COMPLETE,
    SLC_SWEEP_STOPPED, /* *stop was not 0 */
    SLC_SWEEP_TIME,    /* max_seconds elapsed before a run */
    SLC_SWEEP_RUN      /* a run returned a value other than 0, which is in *code */
};

/* Computes the missing runs of a sweep. Fills in *record, which must be empty, and, if the sweep is
 * complete, *suggestion. The caller must call slc_sweep_record_destroy, also after an error.
 * Errors: SLC_ERR_USAGE if ranks, runs or seed are out of range, or if the folder has a sweep with
 * other options; SLC_ERR_IO if another process uses the folder; the errors of `prepare`, of reading
 * and writing the record, and of slc_sweep_compare_rank. */
enum slc_status slc_sweep(const struct slc_sweep_options *options,
                          struct slc_sweep_record *record,
                          struct slc_sweep_suggestion *suggestion,
                          enum slc_sweep_end *end,
                          int *code,
                          struct slc_error *err) SLC_NODISCARD;

/* Options that determine the results of all runs of a sweep, except rank and seed. */
struct slc_sweep_method {
    uint64_t iterations;
    double tolerance;
    /* Loss, unlisted cells, biases, algorithm (not SLC_CP_AUTO) and terms; borrowed. */
    const struct slc_cp_options *solver;
    enum slc_value_type precision;
    bool deterministic;
    double holdout;
    uint64_t holdout_seed;
};

/* Returns a JSON object of strings: the options `method` and the properties that identify the
 * tensor. A sweep resumes only if these texts match. Returns NULL if there is no memory. */
json_t *slc_sweep_identity(const struct slc_manifest *manifest,
                           const struct slc_sweep_method *method);

#endif
