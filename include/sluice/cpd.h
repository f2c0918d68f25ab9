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
    uint32_t iteration; /* number of the iteration, from 1 */
    /* bit n is set if a pseudo-inverse replaced the inverse of the singular Gram matrix of mode
     * n */
    uint32_t singular;
    /* loss ls: 1 - ||X - M|| / ||X||, over the listed cells if unlisted cells are unknown; other
     * losses: the fraction of the deviance of a constant model that the model removes */
    double fit;
    double delta; /* change of the fit; in the first iteration, the fit itself */
    double seconds;
    uint64_t bytes_read; /* bytes read from the drive */
    /* Number of held-out nonzeros, and the model's error on held-out nonzeros. The number is 0
     * without a hold-out. A resumed run reports the iterations of earlier runs again; for these the
     * number is 0, except for poisson and completion. */
    uint64_t heldout;
    double heldout_rmse, heldout_mae;
    /* With penalties, the objective that is minimized. With the loss poisson, the log-likelihood
     * without the terms log x!. For completion, the root mean square error on the listed cells that
     * are not held out (loss ls), or the sum of another loss over these cells. Otherwise 0. */
    double objective;
    double violation;        /* poisson: violation of the KKT conditions before the updates */
    double inner;            /* mean number of inner iterations of a row, or 0 */
    double heldout_deviance; /* mean deviance of the held-out nonzeros */
};

/* A checkpoint that was written, or from which a run resumes. */
struct sluice_checkpoint {
    /* the iteration that continues from the checkpoint; iterations start at 1 */
    uint32_t iteration;
    uint32_t mode; /* the mode that is updated next, from 0 */
    /* time to write the checkpoint; when a run resumes, total time of the earlier runs */
    double seconds;
    uint64_t bytes;      /* bytes written; 0 when a run resumes */
    uint64_t past_count; /* number of completed iterations when a run resumes, otherwise 0 */
    /* the completed iterations, valid during the callback */
    const struct sluice_iteration *const *past;
};

/* Algorithms. */
enum sluice_method {
    SLUICE_METHOD_AUTO,  /* the first of the following that supports loss and constraints */
    SLUICE_METHOD_ALS,   /* alternating least squares: regularization, but no constraints */
    SLUICE_METHOD_HALS,  /* coordinate descent: all constraints except simplex and smooth */
    SLUICE_METHOD_ADMM,  /* alternating direction method of multipliers: all constraints */
    SLUICE_METHOD_MU,    /* poisson: multiplicative updates */
    SLUICE_METHOD_PDNR,  /* poisson: projected damped Newton steps */
    SLUICE_METHOD_CCD,   /* completion: cyclic coordinate descent */
    SLUICE_METHOD_NEWTON /* completion: damped Newton steps, for every loss */
};

/* Meaning of the cells that a store does not list. */
enum sluice_unlisted {
    SLUICE_UNLISTED_ZERO,
    SLUICE_UNLISTED_UNKNOWN /* completion: only listed cells count */
};

/* Additional components of a completion, after the `rank` others. The bias of mode n has one number
 * per row in mode n, and equal numbers in the other modes; the mean has equal numbers in all
 * modes. */
enum sluice_biases {
    SLUICE_BIASES_AUTO, /* all for completion, unless the model has no negative numbers */
    SLUICE_BIASES_NONE,
    SLUICE_BIASES_MEAN,
    SLUICE_BIASES_ALL /* one bias per mode, then the mean */
};

struct sluice_row_solver;

struct sluice_cpd_options {
    uint64_t struct_bytes;
    struct sluice_run_options run; /* progress is called at most ten times a second */
    struct sluice_compute_options compute;
    uint32_t iterations; /* maximum number of iterations; 0 means 50 */
    uint32_t start_only; /* if not 0, no iterations run, and the model is the start */
    /* The run stops after three consecutive iterations that change the fit by less than this number
     * times the smaller of the fit and 1 - fit; 0 means 1e-5; negative means never. With the loss
     * poisson, it stops when the violation is at most this number; 0 means 1e-4. */
    double tolerance;
    /* time limit, checked between passes or their parts, and while replicas are made; 0 means no
     * limit */
    double max_seconds;
    /* added to the diagonal of the matrix V(n) with which mode n is solved (see sluice_cpd) */
    double regularization;
    uint64_t seed; /* seed of the uniform random start */
    /* Folder with the start (mode-1.npy, ..); NULL means a random start. A factor of a saved model
     * (with lambda.npy) may have fewer rows than the mode, which has grown: new rows start random.
     * Rows correspond by index, or by name if the store of the model still exists unchanged. */
    const char *init_folder;
    /* The order in which modes are updated. mode_order_count is the order of the tensor, or 0. With
     * 0, modes are updated in ascending order, or in an order in which fused passes read fewer
     * bytes. */
    uint32_t mode_order[SLUICE_MAX_ORDER];
    uint32_t mode_order_count;
    uint32_t restart; /* if not 0, a checkpoint in checkpoint_folder is discarded */
    /* Folder of the checkpoint, created if missing. A run resumes from a checkpoint in this folder,
     * including a checkpoint of `sluice cpd`. NULL means no checkpoints. */
    const char *checkpoint_folder;
    /* Minimum seconds between checkpoints. Negative means a checkpoint after every update; 0 means
     * ten seconds, or more if writing checkpoints would take over one percent of the run time. */
    double checkpoint_seconds;
    /* Fraction of the nonzeros to hold out, up to 0.5. The decomposition treats held-out nonzeros
     * as zeros and excludes held-out nonzeros from the norm; the model's error on held-out nonzeros
     * is reported. A hash of the indices and holdout_seed selects the held-out nonzeros. */
    double holdout;
    uint64_t holdout_seed;
    /* Called by the calling thread; NULL means no callback. The run stops if `iteration` returns a
     * value other than 0. `resumed` is called before the first update of a run that resumes. */
    int (*iteration)(void *context, const struct sluice_iteration *iteration);
    void (*resumed)(void *context, const struct sluice_checkpoint *checkpoint);
    void (*checkpointed)(void *context, const struct sluice_checkpoint *checkpoint);
    uint32_t method;      /* enum sluice_method */
    uint32_t nonnegative; /* bit n: the factor of mode n has no negative numbers */
    /* bit n: the rows of the factor of mode n are on the simplex (no negative number, sum 1), and
     * its columns are not normalized */
    uint32_t simplex;
    uint32_t reserved; /* 0 */
    /* Arrays with one number per mode of the tensor, or NULL. */
    const double *l1; /* penalties: l1[n] times the sum of the magnitudes of the factor of mode n */
    /* regularization of each mode, in addition to `regularization` */
    const double *regularizations;
    /* penalties: smooth[n] times the sum of the squared differences of consecutive rows of mode n,
     * which must not be relabelled */
    const double *smooth;
    /* The smallest and the largest number that each factor may have; -INFINITY and INFINITY mean no
     * bound. Columns of a factor with a bound are not normalized. Set both arrays or none. */
    const double *low, *high;
    uint32_t loss;     /* enum sluice_loss */
    uint32_t unlisted; /* enum sluice_unlisted */
    uint32_t biases;   /* enum sluice_biases */
    uint32_t inner;    /* maximum number of inner iterations of a row; 0 means 10 */
    double huber;      /* magnitude of x - m above which the loss huber is linear; 0 means 1 */
    /* Functions of the program that update rows in a completion (sluice/row_solver.h); method, loss
     * and biases must then be 0. NULL means that `method` updates rows. */
    const struct sluice_row_solver *row_solver;
};

/* Plans the memory and reads of sluice_cpd with the same arguments. Nothing is computed.
 * Errors: those of sluice_mttkrp_plan. On error, `plan` is unchanged, with one exception: after
 * SLUICE_ERR_BUDGET, `plan` describes the plan that exceeds the budget, or is all zero if the
 * indices of the block files alone exceed the budget.
 * Cost: reads the index of each layout. */
SLUICE_API enum sluice_status sluice_cpd_plan(const struct sluice_store *store,
                                              uint32_t rank,
                                              const struct sluice_cpd_options *options,
                                              struct sluice_plan *plan,
                                              struct sluice_error *err);

/* Computes a CP decomposition of rank 1 to 4096. Stopping early, for any reason, is not an error:
 * *ret_model is the partial model, and sluice_model_info.stop_reason states why the run ended.
 * Math: without constraints, A(n) = X_(n) (Khatri-Rao product of the other factors) V(n)^-1 for
 * each mode in turn, where V(n) is the elementwise product of the other Gram matrices; fit = 1 -
 * ||X - M|| / ||X|| (Kolda and Bader, SIAM Review 2009, section 3.4). Columns of factors have
 * 2-norm 1, components are sorted by descending weight, and the element of largest magnitude of a
 * column is positive in all modes, or in all modes but one.
 * Constraints: SLUICE_METHOD_HALS and SLUICE_METHOD_ADMM minimize ||X - M||^2 / 2 plus, for each
 * mode, the penalties and half of the regularization times the sum of the squares of the factor.
 * These terms use the factors before their columns are normalized; the objective never
 * increases. If only some modes have penalties, the scale of the model moves to the other modes.
 * Losses: with SLUICE_LOSS_POISSON, or if unlisted cells are unknown, rows of factors are computed
 * from their nonzeros, and the model minimizes the sum of the loss (sluice-cpd(1)).
 * Checkpoints: if a run ended for any reason, the same call resumes the run from the last
 * checkpoint. Iterations, tolerance, limits, threads and I/O may differ; all other options that
 * affect the result must match, otherwise the call fails with SLUICE_ERR_USAGE, and the message
 * names the mismatch. The checkpoint of a complete run stays until sluice_checkpoint_remove. The
 * call fails with SLUICE_ERR_IO if another process uses the checkpoint folder.
 * Ownership: the caller destroys *ret_model with sluice_model_destroy.
 * Order: with compute.deterministic, the model has the same bits for any number of threads, whether
 * or not the run was interrupted; otherwise runs with the same seed differ by rounding.
 * Errors: SLUICE_ERR_USAGE, SLUICE_ERR_UNSUPPORTED, SLUICE_ERR_INPUT and SLUICE_ERR_FORMAT for
 * init_folder, SLUICE_ERR_BUDGET stating the smallest sufficient budget, SLUICE_ERR_IO,
 * SLUICE_ERR_DAMAGED, SLUICE_ERR_MEMORY, SLUICE_ERR_SYSTEM, SLUICE_ERR_NUMERIC for a tensor without
 * nonzeros, SLUICE_ERR_NOSPACE for a checkpoint. On error, *ret_model is unchanged and the last
 * checkpoint stays.
 * Cost: each iteration makes one pass over the store per mode; a fused pass updates two modes. Once
 * replicas are made, iterations read from memory. */
SLUICE_API enum sluice_status sluice_cpd(const struct sluice_store *store,
                                         uint32_t rank,
                                         const struct sluice_cpd_options *options,
                                         struct sluice_model **ret_model,
                                         struct sluice_error *err);

/* Removes the checkpoint in `folder`, and the folder if it is then empty. Does nothing if there is
 * no checkpoint.
 * Errors: SLUICE_ERR_USAGE, SLUICE_ERR_IO while a run uses the checkpoint, SLUICE_ERR_FORMAT if a
 * file with the name of a checkpoint is not a checkpoint. On error, files that are not part of a
 * checkpoint are unchanged.
 * Cost: removes two files. */
SLUICE_API enum sluice_status sluice_checkpoint_remove(const char *folder,
                                                       struct sluice_error *err);

#ifdef __cplusplus
}
#endif
#endif
