/* CP decompositions and their checkpoints. */
#ifndef SLUICE_CPD_H
#define SLUICE_CPD_H

#include "sluice/compute.h"
#include "sluice/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One completed iteration. */
struct sluice_iteration {
    uint32_t iteration; /* from 1 */
    uint32_t singular;  /* bit n: the Gram matrix of mode n was singular; a pseudo-inverse served */
    double fit;
    double delta; /* change of the fit; the fit itself in the first iteration */
    double seconds;
    uint64_t bytes_read; /* from the drive */
    /* Held-out nonzeros, and the model's error on them. 0: none, or an iteration before a
     * checkpoint, for which they are not known. */
    uint64_t heldout;
    double heldout_rmse, heldout_mae;
};

/* A checkpoint that was written, or from which a run resumes. */
struct sluice_checkpoint {
    uint32_t iteration; /* that continues after it, from 1 */
    uint32_t mode;
    double seconds;      /* spent on writing it; or spent by the runs before */
    uint64_t bytes;      /* written; 0 if a run resumes */
    uint64_t past_count; /* iterations before, if a run resumes */
    const struct sluice_iteration *const *past; /* these iterations */
};

struct sluice_cpd_options {
    uint64_t struct_bytes;
    struct sluice_run_options run; /* progress: at most ten times a second within a pass */
    struct sluice_compute_options compute;
    uint32_t iterations;     /* at most; 0: 50 */
    uint32_t start_only;     /* nonzero: no iterations; the model is the start */
    double tolerance;        /* on |change of the fit|; 0: 1e-5; negative: none */
    double max_seconds;      /* checked between passes and while replicas are made; 0: no limit */
    double regularization;   /* added to the diagonal of the Gram matrices */
    uint64_t seed;           /* of the uniform random start */
    const char *init_folder; /* start from its mode-1.npy, ..; NULL: random */
    /* Order of updates, if mode_order_count is the order of the tensor; 0: the order of the modes,
     * or one in which passes that update two modes read less. */
    uint32_t mode_order[SLUICE_MAX_ORDER];
    uint32_t mode_order_count;
    uint32_t restart; /* nonzero: discard a checkpoint in checkpoint_folder */
    /* Folder of the checkpoint, which is created if missing. A run resumes from the checkpoint that
     * it finds there, also one of `sluice cpd`. NULL: no checkpoints. */
    const char *checkpoint_folder;
    /* Seconds between checkpoints at least; negative: after every update; 0: ten, and more if
     * writing them would cost over a percent of the time. */
    double checkpoint_seconds;
    /* Fraction of the nonzeros to hold out, up to 0.5. The decomposition sees them as zeros, the
     * norm excludes them, and the model's error on them is reported. A hash of their indices and
     * holdout_seed selects them. */
    double holdout;
    uint64_t holdout_seed;
    /* All of these are called by the calling thread; NULL: no callback. The run stops if
     * `iteration` returns a nonzero value. `resumed` is called before the first update of a run
     * that resumes. */
    int (*iteration)(void *context, const struct sluice_iteration *iteration);
    void (*resumed)(void *context, const struct sluice_checkpoint *checkpoint);
    void (*checkpointed)(void *context, const struct sluice_checkpoint *checkpoint);
};

/* Plans sluice_cpd with the same arguments. Otherwise as sluice_mttkrp_plan. */
SLUICE_API enum sluice_status sluice_cpd_plan(const struct sluice_store *store,
                                              uint32_t rank,
                                              const struct sluice_cpd_options *options,
                                              struct sluice_plan *plan,
                                              struct sluice_error *err);

/*
 * CP decomposition by alternating least squares, of rank 1 to 4096.
 * Math: A(n) = X_(n) (Khatri-Rao product of the other factors) V(n)^-1 for each mode in turn; fit =
 * 1 - ||X - M|| / ||X|| (Kolda and Bader, SIAM Review 2009, section 3.4). Columns have 2-norm 1,
 * weights descend, signs are fixed.
 * Stopping early, for any reason, is not an error: *ret_model is the model so far, and
 * sluice_model_info.stop_reason tells why.
 * Checkpoints: the same call resumes from the last one after any end, with other iterations,
 * tolerance, limits, threads and I/O if wanted. All other options that affect the result must
 * match; otherwise SLUICE_ERR_USAGE names the mismatch. The checkpoint of a complete run stays
 * until sluice_checkpoint_remove. Another process that uses the folder is SLUICE_ERR_IO.
 * Owns: the caller destroys *ret_model with sluice_model_destroy.
 * Order: as compute.deterministic says; the same seed gives the same result to rounding. A
 * deterministic run has the same bits whether or not it was interrupted.
 * Errors: those of sluice_mttkrp; SLUICE_ERR_NUMERIC for a tensor without nonzeros. Cost: as many
 * passes over the store per iteration as the tensor has modes, or down to half of that with passes
 * that update two modes; from memory once replicas are made.
 */
SLUICE_API enum sluice_status sluice_cpd(const struct sluice_store *store,
                                         uint32_t rank,
                                         const struct sluice_cpd_options *options,
                                         struct sluice_model **ret_model,
                                         struct sluice_error *err);

/*
 * Removes the checkpoint in `folder`, and the folder if nothing else is in it. Does nothing if
 * there is no checkpoint. Errors: SLUICE_ERR_IO while a run uses it; SLUICE_ERR_FORMAT if a file of
 * that name is not a checkpoint.
 */
SLUICE_API enum sluice_status sluice_checkpoint_remove(const char *folder,
                                                       struct sluice_error *err);

#ifdef __cplusplus
}
#endif
#endif
