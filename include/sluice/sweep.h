/* Sweeps over ranks and starts, for choosing the rank of a decomposition. */
#ifndef SLUICE_SWEEP_H
#define SLUICE_SWEEP_H

#include "sluice/cpd.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One run that is through. Numbers that are not known are NaN. */
struct sluice_sweep_run {
    uint64_t struct_bytes; /* where the caller gives it: sizeof of the struct, before the call */
    uint32_t rank;
    uint32_t iterations;
    uint64_t seed;
    double fit;
    double seconds;
    double heldout_rmse;
    double match;          /* factor match score with the best run of its rank, once compared */
    enum sluice_stop stop; /* SLUICE_STOP_TOLERANCE or SLUICE_STOP_ITERATIONS */
    uint32_t kept;         /* its factors are in its folder, .. */
    char folder[48];       /* .. in that of the sweep */
};

/* What the runs of a rank tell. */
struct sluice_sweep_rank {
    uint64_t struct_bytes; /* set by the caller to sizeof of the struct before the call */
    uint32_t rank;
    uint32_t runs;      /* that it was judged by */
    uint64_t best_seed; /* of these: of the largest fit */
    double best_fit;
    double agreement;   /* mean of the others' factor match scores with it; NaN: of none */
    double consistency; /* core consistency (CORCONDIA) of it, in percent; NaN: not computed .. */
    uint32_t compared;  /* so many others */
    uint32_t reserved;
    char note[192]; /* .. and why */
};

/* What a sweep suggests. */
struct sluice_sweep_suggestion {
    uint64_t struct_bytes; /* set by the caller to sizeof of the struct before the call */
    uint32_t rank;         /* 0: none */
    uint32_t best_rank;    /* whose best run is the result: that, or of the largest fit */
    char folder[48];       /* of that run, in that of the sweep */
    char why[320];         /* a sentence without its end */
};

/* Whether the core consistency of each rank's best run is computed. */
enum sluice_consistency {
    SLUICE_CONSISTENCY_AUTO, /* where that takes some minutes at most */
    SLUICE_CONSISTENCY_ALWAYS,
    SLUICE_CONSISTENCY_NEVER
};

struct sluice_sweep_options {
    uint64_t struct_bytes;
    uint32_t runs;     /* of each rank; default 1 */
    uint32_t keep_all; /* non-zero: factors of all runs are kept; else of the best of each rank */
    uint64_t seed;     /* of the first run of each rank, of the others one more each; default 0 */
    enum sluice_consistency consistency;
    uint32_t restart;   /* non-zero: what the folder has of a sweep is made anew */
    double max_seconds; /* of the sweep; 0: none */
    /*
     * Of each run; NULL: the defaults. seed, max_seconds, checkpoint_folder and restart are the
     * sweep's, and init_folder has to be NULL.
     */
    const struct sluice_cpd_options *cpd;
    /*
     * Called by the calling thread for every run that is through, also for those that were when the
     * sweep went on; may be NULL. Where it returns another number than 0 the sweep ends with
     * SLC_ERR_INTERRUPTED. What it is given is lent for the call.
     */
    int (*run)(void *context, const struct sluice_sweep_run *run);
    void *context;
};

SLC_API void sluice_sweep_options_init(struct sluice_sweep_options *options, uint64_t bytes);

/* A sweep that is through. */
struct sluice_sweep;

/*
 * Factorizes a store with each of the ranks, from several starts each, and tells by core
 * consistency and by how well runs agree (factor match score) which rank to take. `folder`, which
 * is made where it is missing, gets a folder with mode-1.npy, .. and lambda.npy for each run
 * (r16-seed3), and sweep.json. A sweep that ended early, in whatever way, goes on when the same
 * call is made again, also with further ranks and runs, and so does that of `sluice cpd`: a run
 * that was on its way goes on from its checkpoint. What else decides results may not differ:
 * SLC_ERR_USAGE, which tells the difference.
 * Needs: 1 to 256 different ranks.
 * Owns: the caller destroys *ret_sweep with sluice_sweep_destroy, which takes NULL.
 * Cost: that of all runs, one pass for each rank's core consistency, and reading factors to
 * compare. Errors: SLC_ERR_INTERRUPTED where cpd->compute->stop or a callback ended it,
 * SLC_ERR_TIME_LIMIT behind max_seconds; SLC_ERR_BUDGET before the first run, where there is no
 * memory for the largest rank; SLC_ERR_IO where another process has the folder; those of sluice_cpd
 * and sluice_cpd_save.
 */
SLC_API enum slc_status sluice_sweep(const struct sluice_store *store,
                                     const char *folder,
                                     uint32_t rank_count,
                                     const uint32_t *ranks,
                                     const struct sluice_sweep_options *options,
                                     struct sluice_sweep **ret_sweep,
                                     struct slc_error *err);
SLC_API void sluice_sweep_destroy(struct sluice_sweep *sweep);

/* How many runs and ranks the folder knows, those of earlier sweeps included. */
SLC_API uint32_t sluice_sweep_run_count(const struct sluice_sweep *sweep);
SLC_API uint32_t sluice_sweep_rank_count(const struct sluice_sweep *sweep);

/* Run `number`, from 0: by rank, then by seed. Errors: SLC_ERR_USAGE. */
SLC_API enum slc_status sluice_sweep_get_run(const struct sluice_sweep *sweep,
                                             uint32_t number,
                                             struct sluice_sweep_run *run,
                                             struct slc_error *err);
/* Rank `number`, from 0, ascending. Errors: SLC_ERR_USAGE. */
SLC_API enum slc_status sluice_sweep_get_rank(const struct sluice_sweep *sweep,
                                              uint32_t number,
                                              struct sluice_sweep_rank *rank,
                                              struct slc_error *err);
/*
 * The largest rank whose best run has a core consistency of 80 % or more and whose runs agree to
 * 0.9 or more; where none has, the largest whose runs agree; else none, and the best fit is the
 * result. Errors: SLC_ERR_USAGE.
 */
SLC_API enum slc_status sluice_sweep_suggest(const struct sluice_sweep *sweep,
                                             struct sluice_sweep_suggestion *suggestion,
                                             struct slc_error *err);

#ifdef __cplusplus
}
#endif
#endif
