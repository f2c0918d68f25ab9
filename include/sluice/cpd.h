/* CP decompositions: running one, and what can be asked of its result. */
#ifndef SLUICE_CPD_H
#define SLUICE_CPD_H

#include "sluice/compute.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One completed iteration. */
struct sluice_cpd_iteration {
    uint32_t iteration; /* from 1 */
    uint32_t singular;  /* bit n: the Gram matrix of mode n was singular, a pseudo-inverse served */
    double fit;
    double delta; /* change of fit; the fit itself in the first iteration */
    double seconds;
    uint64_t bytes_read; /* from the drive */
    /* Of sluice_cpd_options.holdout: nonzeros held out, 0 where there are none or, of iterations
     * before a checkpoint, where it is not known any more; and the model's error on them. */
    uint64_t heldout;
    double heldout_rmse, heldout_mae;
    uint64_t reserved[5]; /* room for more: lists of these keep their stride */
};

/* Where a run stands within an iteration. */
struct sluice_cpd_progress {
    uint32_t iteration; /* from 1 */
    uint32_t mode;
    uint64_t blocks_done, blocks; /* of the pass */
};

/* A checkpoint: that a run goes on from, or that was written. */
struct sluice_cpd_checkpoint {
    uint32_t iteration; /* that goes on behind it, from 1 */
    uint32_t mode;
    double seconds;                          /* that had gone before; that writing it took */
    uint64_t bytes;                          /* that were written */
    uint64_t past_count;                     /* of a run that goes on: iterations before */
    const struct sluice_cpd_iteration *past; /* the same; borrowed while the call lasts */
};

struct sluice_cpd_options {
    uint64_t struct_bytes;
    uint32_t iterations; /* at most; default 50; 0: the start */
    uint32_t mode_order_set;
    double tolerance;        /* on |change of fit|; default 1e-5; 0: none */
    double max_seconds;      /* looked at between passes and while copies are made; 0: none */
    double regularization;   /* added to the diagonal of the Gram matrices; default 0 */
    uint64_t seed;           /* of the uniform random start; default 0 */
    const char *init_folder; /* start from mode-1.npy, .. in this folder instead; NULL: random */
    /* Order of updates, where mode_order_set; else that of the modes, or one by which passes that
     * update two modes read less. */
    uint32_t mode_order[SLUICE_MAX_ORDER];
    /*
     * Called by the calling thread, after every iteration, and ten times a second at most within
     * passes that take longer; may be NULL. Where one returns another number than 0 the run stops,
     * and sluice_compute_options.stop is set to 1, if given. What they are given is lent for the
     * call.
     */
    int (*iteration)(void *context, const struct sluice_cpd_iteration *iteration);
    int (*progress)(void *context, const struct sluice_cpd_progress *progress);
    /* Called before the first update of a run that goes on, and behind every checkpoint. */
    void (*resumed)(void *context, const struct sluice_cpd_checkpoint *checkpoint);
    void (*checkpointed)(void *context, const struct sluice_cpd_checkpoint *checkpoint);
    void *context;
    const struct sluice_compute_options *compute; /* NULL: the defaults */
    /*
     * Folder where the run is kept, as `sluice cpd --checkpoint` does, and which is made where it
     * is missing. What is found there is gone on from, also what the command has left. NULL: the
     * run is kept nowhere.
     */
    const char *checkpoint_folder;
    /* Seconds between two checkpoints at least; 0: after every update; below 0, the default: ten,
     * and such that they take a percent of the time. */
    double checkpoint_seconds;
    uint32_t restart; /* non-zero: what is found in the folder is removed */
    uint32_t reserved;
    /*
     * The part of the nonzeros, up to 0.5, that takes no part: they are zeros to the factorization,
     * ||X|| is that of the others, and the model's error on them is told after every iteration and
     * in the report. Which they are follows from a hash of their indices and holdout_seed. 0, the
     * default: none. sluice_cpd_plan does not count the memory they are kept in.
     */
    double holdout;
    uint64_t holdout_seed;
};

SLC_API void sluice_cpd_options_init(struct sluice_cpd_options *options, uint64_t bytes);

/* A finished decomposition: sum over r of lambda[r] times the outer product of columns r. */
struct sluice_cpd;

/*
 * CP decomposition by alternating least squares.
 * Math: A(n) = X_(n) (Khatri-Rao of the others) V(n)^-1 for each mode in turn; fit =
 * 1 - ||X - M|| / ||X||. Columns come with 2-norm 1, weights in lambda, descending, signs fixed.
 * Needs: 1 <= rank <= 4096.
 * Checkpoints: a run that ended early, in whatever way, goes on from its last one when it is called
 * again, with other iterations, tolerance, limits, threads and ways of reading where wanted; all
 * else that decides the result has to be what it was, which SLC_ERR_USAGE tells the difference of.
 * They stay when the run is complete, until its results are safe and sluice_cpd_checkpoint_remove
 * is called. Nobody else may have the folder in use: SLC_ERR_IO.
 * Owns: the caller destroys *ret_model with sluice_cpd_destroy, which takes NULL.
 * Order: as options->compute->deterministic says; the same seed gives the same result to rounding.
 * A deterministic run that was stopped and went on has the bits of one that was not.
 * Cost: N passes over the store per iteration, or down to N/2 where passes update two modes.
 * A stop, by whatever, is no error: the model is what there is, and sluice_cpd_stop tells.
 * Errors: SLC_ERR_NUMERIC for a tensor without nonzeros; SLC_ERR_BUDGET, SLC_ERR_IO, ..
 */
SLC_API enum slc_status sluice_cpd(const struct sluice_store *store,
                                   uint32_t rank,
                                   const struct sluice_cpd_options *options,
                                   struct sluice_cpd **ret_model,
                                   struct slc_error *err);
SLC_API void sluice_cpd_destroy(struct sluice_cpd *model);

/*
 * Removes the checkpoint in a folder, and the folder where nothing else is in it. There may be
 * none. Errors: SLC_ERR_IO where a run is using it; SLC_ERR_FORMAT where a file of that name is no
 * checkpoint.
 */
SLC_API enum slc_status sluice_cpd_checkpoint_remove(const char *folder, struct slc_error *err);

/*
 * The model whose mode-1.npy, .. and lambda.npy are in `folder`, of the shape of `store`: of
 * sluice_cpd_save or the command. Where `store` is NULL the shape is that of the files, and there
 * is no norm (NaN). Weights are 1 without lambda.npy. There is no fit (NaN), and there are no
 * iterations; a run.json beside them is its record (sluice_cpd_record). Owns: as sluice_cpd.
 * Errors: SLC_ERR_INPUT or SLC_ERR_FORMAT for other files or shapes, SLC_ERR_IO, SLC_ERR_MEMORY.
 */
SLC_API enum slc_status sluice_cpd_load(const struct sluice_store *store,
                                        const char *folder,
                                        struct sluice_cpd **ret_model,
                                        struct slc_error *err);

/* What a run came to. */
struct sluice_cpd_report {
    uint64_t struct_bytes; /* set by the caller to sizeof of the struct before the call */
    uint32_t order, rank;
    uint32_t iterations; /* completed */
    enum sluice_stop stop;
    double fit;
    double norm; /* of the tensor */
    /* Of a run with a checkpoint that ended early: where that goes on, the iteration from 1; 0
     * where there is none. */
    uint32_t resume_iteration, resume_mode;
    uint32_t resumes; /* how often it went on from one */
    uint32_t reserved;
    uint64_t checkpoints; /* that were written */
    /* Of the calling thread, with all that led to the checkpoint that it went on from. */
    double seconds, mttkrp_seconds, solve_seconds, fit_seconds, checkpoint_seconds;
    uint64_t bytes_read;                   /* from the drive, since it was begun or went on */
    uint32_t mode_order[SLUICE_MAX_ORDER]; /* of updates */
    /* Nonzeros held out, 0: none; the model's error on them, and the norm of their values. */
    uint64_t heldout;
    double heldout_rmse, heldout_mae, heldout_norm;
    uint64_t device_nnz; /* nonzeros that GPUs multiplied, of all passes */
};

SLC_API enum slc_status sluice_cpd_report(const struct sluice_cpd *model,
                                          struct sluice_cpd_report *report,
                                          struct slc_error *err);

SLC_API uint32_t sluice_cpd_order(const struct sluice_cpd *model);
SLC_API uint32_t sluice_cpd_rank(const struct sluice_cpd *model);
SLC_API double sluice_cpd_fit(const struct sluice_cpd *model);
SLC_API uint32_t sluice_cpd_iterations(const struct sluice_cpd *model);
SLC_API enum sluice_stop sluice_cpd_stop(const struct sluice_cpd *model);
/* Copies the weights into lambda[rank]. */
SLC_API void sluice_cpd_lambda(const struct sluice_cpd *model, double *lambda);
/* Rows of the factor of `mode` (below the order): dims[mode]. */
SLC_API uint64_t sluice_cpd_rows(const struct sluice_cpd *model, uint32_t mode);
/* Copies the factor of `mode` (below the order) into factor[rows * rank]. */
SLC_API void sluice_cpd_factor(const struct sluice_cpd *model, uint32_t mode, double *factor);
/*
 * Writes the model, without names in CSV (see sluice_cpd_export); each file is replaced atomically.
 * Behind them comes the record of its run (sluice/report.h), where it has one: run.json in the
 * folder, STEMrun.json or PATH.run.json; that of an earlier run goes first. Errors: SLC_ERR_USAGE
 * for another form, SLC_ERR_UNSUPPORTED for one that cannot hold it, SLC_ERR_IO, SLC_ERR_NOSPACE,
 * SLC_ERR_MEMORY.
 */
SLC_API enum slc_status sluice_cpd_save(const struct sluice_cpd *model,
                                        enum sluice_model_form form,
                                        const char *path,
                                        struct slc_error *err);

#ifdef __cplusplus
}
#endif
#endif
