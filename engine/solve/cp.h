/* Implements CP-ALS over a streamed store ([Kolda2009] section 3.4). An iteration computes N
 * MTTKRPs, N solves and the fit. */
#ifndef SLC_ENGINE_SOLVE_CP_H
#define SLC_ENGINE_SOLVE_CP_H

#include "base/backend.h"
#include "base/error/error.h"
#include "base/loss.h"
#include "engine/executor/executor.h"
#include "engine/plan/plan.h"
#include "engine/solve/cp_terms.h"
#include "engine/stream/stream.h"
#include "storage/checkpoint/checkpoint.h"
#include "storage/manifest/store.h"
#include "storage/model/model.h"

#include <stdbool.h>
#include <stdint.h>

enum slc_stop_reason {
    SLC_STOP_TOLERANCE,
    SLC_STOP_ITERATIONS,
    SLC_STOP_TIME,
    SLC_STOP_SIGNAL,
    SLC_STOP_HOLDOUT /* the held-out error has not improved for some iterations */
};
const char *slc_stop_reason_name(enum slc_stop_reason reason); /* "tol", "iterations", .. */

/* Components of a completion whose elements are not all free. The bias of mode n is a component
 * with ones in all modes except mode n. The mean is a component with the same value in all cells,
 * which no update changes. These components follow the other components: the biases in the order of
 * modes, then the mean. */
enum slc_biases {
    SLC_BIASES_AUTO, /* all, if unlisted cells are unknown; otherwise none */
    SLC_BIASES_NONE,
    SLC_BIASES_MEAN,
    SLC_BIASES_ALL
};
const char *slc_biases_name(enum slc_biases biases); /* "auto", "none", .. */
bool slc_biases_parse(const char *name, enum slc_biases *biases);

/* Elapsed times in seconds. A resumed run includes the times of the earlier runs up to the
 * checkpoint. */
struct slc_cp_times {
    double total, mttkrp, solve, fit, init;
    double copies; /* time to make copies per mode */
};

/* Statistics of checkpoints. A resumed run includes the statistics of the earlier runs up to the
 * checkpoint. */
struct slc_cp_checkpoints {
    unsigned resumes; /* number of times a checkpoint was resumed */
    uint64_t count;   /* checkpoints written */
    double seconds;   /* time spent writing checkpoints */
};

enum {
    /* With SLC_COPIES_AUTO, copies per mode are made after this many iterations, and only if
     * options->iterations is more than twice this number. Ten to thirty iterations with copies save
     * as much time as making the copies takes. Few runs reach the tolerance within ten iterations.
     * If copies cannot be allocated, the run continues without them. */
    SLC_CP_COPIES_AFTER = 10
};

/* Returns true if a run of at most `iterations` iterations makes copies with SLC_COPIES_AUTO. */
static inline bool slc_cp_copies_pay(unsigned iterations)
{
    return iterations > 2 * SLC_CP_COPIES_AFTER;
}

enum {
    /* Number of consecutive iterations with a small change of the fit after which a run stops.
     * docs/PERFORMANCE.md, "Stopping rule", has the measurements. */
    SLC_CP_SMALL_CHANGES = 3
};

enum {
    SLC_CP_INNER = 10,
    /* Largest rank for which SLC_CP_AUTO completes by normal equations. The cost per row grows with
     * the cube of the rank for normal equations, with the rank for coordinate descent
     * (docs/PERFORMANCE.md). */
    SLC_CP_ALS_RANK = 192
};

/* Default tolerance of the KKT violation, with the loss poisson. */
#define SLC_CP_VIOLATION 1e-4

/* Default tolerance (struct slc_cp_options). */
#define SLC_CP_TOLERANCE 1e-5

struct slc_cp_iteration {
    unsigned iteration; /* number of the iteration, from 1 */
    double fit;
    double objective; /* see struct slc_cp_result */
    /* name of the objective, such as "log-likelihood"; NULL: no objective */
    const char *objective_name;
    double delta; /* change of the fit; equal to the fit in the first iteration */
    double seconds;
    double mode_seconds[SLC_MAX_ORDER]; /* a pass for two modes counts for the first mode */
    uint64_t bytes_read;
    /* Number of passes. A pass for two modes counts in the iteration in which it is made. */
    unsigned passes;
    bool singular[SLC_MAX_ORDER]; /* true if V of this mode was singular (see slc_cp_run) */
    /* number of held-out nonzeros; 0 if none are held out, or if the iteration was read from a
     * checkpoint that has no held-out errors */
    uint64_t heldout;
    double heldout_rmse;     /* root mean square error of the model on held-out nonzeros */
    double heldout_mae;      /* mean absolute error of the model on held-out nonzeros */
    double heldout_deviance; /* mean deviance of the held-out nonzeros (base/loss.h) */
    /* Methods that update rows from their nonzeros: the violation of the conditions of optimality
     * before the updates (poisson, otherwise 0), and the mean number of inner iterations of the
     * rows. */
    double violation, inner;
    bool first_of_copies; /* true in the first iteration that uses copies per mode */
    /* The reason why copies per mode could not be made before this iteration, otherwise NULL.
     * Borrowed. */
    const struct slc_error *copies_fault;
    uint64_t copies_bytes; /* planned bytes of the copies */
    /* Strategy per mode, see slc_cp_result. From the end of the first iteration on, it includes the
     * measurements of the trial. Borrowed. */
    const struct slc_conflict_choice *choices;
    /* Like `choices`, for a mode that is the second mode of a pass. Bit n of `settled` is set if
     * mode n was the second mode of a pass for the first time in this iteration. */
    const struct slc_conflict_choice *second_choices;
    uint32_t settled;
    /* form of each copy if copies are in use, otherwise NULL; borrowed */
    const struct slc_replica_form *copies;
};

/* The checkpoint that a run resumes. */
struct slc_cp_resume {
    unsigned iteration;                  /* next iteration, from 1 */
    unsigned mode;                       /* next mode, 0-based */
    double seconds;                      /* time of the run up to the checkpoint */
    const struct slc_cp_iteration *past; /* records of the earlier iterations; borrowed */
    unsigned past_count;
};

/* Statistics of one written checkpoint. */
struct slc_cp_checkpointed {
    unsigned iteration; /* iteration with which a resumed run starts, from 1 */
    unsigned mode;      /* mode with which a resumed run starts, 0-based */
    double seconds;     /* time spent writing this checkpoint */
    uint64_t bytes;
};

struct slc_cp_options {
    const struct slc_files *files; /* used to read init_folder; NULL: the operating system */
    uint32_t rank;
    unsigned iterations; /* maximum number of iterations; 0: compute only the starting factors */
    /* Stop after SLC_CP_SMALL_CHANGES consecutive iterations with |change of fit| < tolerance *
     * min(|fit|, 1 - fit), or with changes within the rounding error of the fit; 0: never. */
    double tolerance;
    /* Time limit in seconds; 0: no limit. Checked before every MTTKRP, after every iteration, and
     * while copies are made. */
    double max_seconds;
    enum slc_cp_algorithm algorithm;
    /* Row solver that updates the rows from their nonzeros; NULL: the algorithm does. Needs the
     * loss ls, unlisted cells that are unknown, and no biases. Checkpoints contain its name.
     * Borrowed. */
    const struct slc_row_solver *row_solver;
    /* Constraints and penalties per mode. With SLC_CP_ALS, `ridge` is added to the diagonal of V of
     * the normalized factors before solving. The other algorithms minimize half of the squared
     * error plus the penalties of the factors. A completion minimizes the loss plus `ridge` times
     * the squares of the factors. */
    struct slc_row_terms terms[SLC_MAX_ORDER];
    /* Completion: the ridge follows the error of the model (cp_complete.c), and terms are not
     * used. */
    bool ridge_chosen;
    enum slc_loss loss;
    enum slc_unlisted unlisted;
    enum slc_biases biases;
    double huber;   /* delta of Huber's loss (base/loss.h), above 0; used only with this loss */
    unsigned inner; /* maximum number of inner iterations per row; 0: SLC_CP_INNER */
    uint64_t seed;
    /* Fraction of the nonzeros to hold out, at most 0.5 (engine/stream/holdout.h); 0: none. The
     * factorization treats held-out nonzeros as zeros, and ||X|| excludes them. The model's error
     * on these nonzeros is reported after every iteration and at the end. Not available with groups
     * or GPUs. The plan's beside_bytes must equal slc_cp_holdout_bytes. */
    double holdout;
    uint64_t holdout_seed;
    /* Folder with the starting factors, mode-K.npy for every mode; NULL: starting factors are
     * uniform random numbers from `seed`. Weights in lambda.npy of the folder are used only if
     * iterations is 0, because otherwise the first updates determine all scales. If the folder has
     * weights and a factor has fewer rows than the mode, the folder holds the model of an earlier
     * state of the tensor. The rows of this factor then become the first rows of the mode or, if
     * the store of that model still exists and both stores have names, the rows of the same names.
     * The other rows are random numbers from `seed` with the same root mean square. A note is
     * logged for each such mode. */
    const char *init_folder;
    /* Order in which modes are updated, a 0-based permutation. Used only if mode_order_set;
     * otherwise the plan's order is used. A plan with passes that update two modes must be made for
     * this order. */
    unsigned mode_order[SLC_MAX_ORDER];
    bool mode_order_set;
    bool deterministic;
    struct slc_executor_parts parts; /* devices that the plan needs in addition to the backend */
    /* If *stop becomes other than 0, the run ends early and can be resumed. May be NULL. */
    const volatile int *stop;
    /* The checkpoint of the run. If it exists already, the run resumes from it. NULL: no
     * checkpoints are written. Borrowed. The caller removes the checkpoint when the results of a
     * completed run are safe. */
    struct slc_checkpoint *checkpoint;
    /* Least number of seconds between two checkpoints, which are written after updates. A negative
     * value means 10 seconds, or 100 times the duration of writing a checkpoint if that is
     * longer. */
    double checkpoint_seconds;
    /* Bytes of blocks per part of a pass. Checkpoints may also be written between two parts of a
     * pass, and a run can be resumed there. 0: chosen so that a part takes a few seconds. */
    uint64_t part_bytes;
    /* `resumed` is called before the first update of a resumed run, `checkpointed` after each
     * checkpoint. Both may be NULL. */
    void (*resumed)(void *context, const struct slc_cp_resume *resume);
    void (*checkpointed)(void *context, const struct slc_cp_checkpointed *checkpointed);
    /* Called after every iteration by the calling thread; may be NULL. */
    void (*iteration)(void *context, const struct slc_cp_iteration *iteration);
    /* Called during passes; `mode` is 0-based. May be NULL. */
    void (*progress)(
        void *context, unsigned iteration, unsigned mode, uint64_t blocks_done, uint64_t blocks);
    void *context;
};

/* Properties of the final model that may make it unreliable. All numbers are 0 if no iteration was
 * made. */
struct slc_cp_diagnosis {
    /* The smallest and the largest congruence of two components (the product over modes of the
     * cosine of their columns) and these components, 0-based, the smaller number first. Components
     * nearly cancel each other if their congruence is near -1, and are collinear if it is near 1.
     * For a single component, the smallest congruence is 1 and the largest is 0. */
    double congruence, largest_congruence;
    uint32_t cancelling[2], collinear[2];
    /* Condition number of each factor without its zero columns, at most (R 2^-52)^-1/2; 0 if the
     * factor has fewer rows than columns. */
    double condition[SLC_MAX_ORDER];
    /* condition number of the components as vectors of all cells of the tensor: that of the
     * Khatri-Rao product of all factors */
    double joint_condition;
    /* true if the fit may still rise: it rose in the last iteration, and either this rise was not
     * small or each of the last two changes of the fit was larger than the change before it */
    bool rising;
};

/* Result of slc_cp_run. Owns its matrices; release it with slc_cp_result_destroy, which accepts an
 * all-zero struct. */
struct slc_cp_result {
    unsigned order;
    uint32_t rank;
    /* Every column has 2-norm 1, or only zeros if the weight of the component is 0. */
    struct slc_matrix factors[SLC_MAX_ORDER];
    double *lambda;      /* weights in descending order, >= 0 */
    unsigned iterations; /* number of completed iterations */
    /* Number of iterations before copies were made; UINT_MAX if no copies were made. */
    unsigned copies_after;
    /* Per mode, the strategy of MTTKRPs from the stream: the plan's choice, or the result of the
     * trial in the first iteration. SLC_CONFLICT_REPLICA if the run starts with copies. */
    struct slc_conflict_choice choices[SLC_MAX_ORDER];
    /* Like `choices`, for a mode that is the second mode of a pass for two modes. */
    struct slc_conflict_choice second_choices[SLC_MAX_ORDER];
    unsigned mode_order[SLC_MAX_ORDER];            /* order in which modes were updated */
    struct slc_replica_form copies[SLC_MAX_ORDER]; /* form of each copy, if copies were made */
    /* Fit of the factors above. If a stop interrupted a pass, it is the fit of the last completed
     * iteration, or 0 if there is none; later updates can only have improved the fit. */
    double fit;
    /* With penalties: the function that the algorithm minimizes. For poisson: the log-likelihood
     * without the terms log x!. With unlisted cells that are unknown: the sum of the loss over the
     * listed cells that are not held out or, for ls, the root mean square error on these cells.
     * Otherwise 0. */
    double objective;
    enum slc_cp_algorithm algorithm;
    double norm_x;
    uint64_t heldout; /* number of held-out nonzeros; 0: none */
    double heldout_norm, heldout_rmse, heldout_mae, heldout_deviance;
    enum slc_loss loss;
    double huber; /* delta of Huber's loss */
    enum slc_unlisted unlisted;
    double violation; /* see struct slc_cp_iteration */
    /* The last components, `biases` of them, are biases and mean (enum slc_biases): the bias of
     * mode n if `bias_modes` has the bit n, then the mean if `bias_mean`. */
    unsigned biases;
    uint32_t bias_modes;
    bool bias_mean;
    unsigned best_iteration; /* iteration of the model with the least held-out error, if kept */
    enum slc_stop_reason reason;
    struct slc_cp_diagnosis diagnosis;
    struct slc_cp_times times;
    struct slc_cp_checkpoints checkpoints;
    /* For a run with checkpoints that ended early: the iteration (from 1) and the mode with which a
     * resumed run starts. The iteration is 0 if no checkpoint was written. */
    unsigned resume_iteration, resume_mode;
    unsigned device_count; /* number of groups or GPUs; 0: the work was not divided */
    struct slc_member_stats devices[SLC_MAX_DEVICES];
    /* Statistics of the GPU, or of several GPUs together; zeros without a GPU. */
    struct slc_device_stats gpu;
    /* Per mode, if the GPU and the backend share the work, the statistics of both. */
    struct slc_hybrid hybrid[SLC_MAX_ORDER];
};
void slc_cp_result_destroy(struct slc_cp_result *result);

/* Returns the bytes that slc_cp_run maps in addition to factors, MTTKRP output and kernel scratch:
 * scratch of dense algebra, the solver, the R x R matrices and the checkpoint buffer. UINT64_MAX on
 * overflow. */
uint64_t slc_cp_memory_bytes(unsigned order, uint32_t rank, unsigned workers, uint64_t rows_max);

/* Replaces SLC_CP_AUTO in *algorithm with the algorithm that a run uses. Errors: SLC_ERR_USAGE if
 * loss, unlisted cells, biases, constraints, penalties and algorithm do not fit together (the
 * message names a combination that fits); those of slc_cp_choose. */
enum slc_status slc_cp_choose_method(const struct slc_cp_options *options,
                                     unsigned order,
                                     enum slc_cp_algorithm *algorithm,
                                     struct slc_error *err) SLC_NODISCARD;
/* Returns the name of the objective of methods that update rows from their nonzeros. */
const char *slc_cp_objective_name(enum slc_loss loss, enum slc_unlisted unlisted);
/* Returns true if the methods for the loss update rows from their nonzeros. */
bool slc_cp_needs_nonzeros(const struct slc_cp_options *options);
/* Returns the name of the method for messages: "CP-ALS", "completion by ALS", .. */
const char *slc_cp_title(const struct slc_cp_options *options, enum slc_cp_algorithm algorithm);

/* Returns the number of components of the model: the rank, and the biases. The plan must be made
 * for this number. */
uint32_t slc_cp_components(unsigned order, const struct slc_cp_options *options);
/* Returns the biases that SLC_BIASES_AUTO chooses, or those that are requested. */
enum slc_biases slc_cp_biases_in_effect(const struct slc_cp_options *options);

/* Sets the members of the plan request that depend on loss, unlisted cells and biases: rank
 * (slc_cp_components) and rows. Adds the memory of methods that update rows from their nonzeros to
 * beside_bytes. Errors: SLC_ERR_MEMORY. */
enum slc_status slc_cp_plan_request(unsigned order,
                                    const uint64_t *dims,
                                    const struct slc_cp_options *options,
                                    struct slc_plan_request *request,
                                    struct slc_error *err) SLC_NODISCARD;
/* Returns the bytes that algorithms with constraints map in addition, for plans with host_rows. */
uint64_t slc_cp_rows_memory_bytes(uint32_t rank, unsigned workers);
/* Returns the additional bytes for smoothness penalties, for the plan's beside_bytes. 0 if there
 * are none; UINT64_MAX on overflow. Passes of such runs must update one mode. */
uint64_t slc_cp_smooth_bytes(const struct slc_row_terms *terms,
                             unsigned order,
                             const uint64_t *dims,
                             uint32_t rank);

/* Returns the additional bytes for holding out the fraction `holdout`, for the plan's beside_bytes.
 * 0 if the fraction is 0; UINT64_MAX on overflow. */
uint64_t slc_cp_holdout_bytes(unsigned order, uint64_t nnz, double holdout, unsigned workers);

/* Factorizes the tensor. `plan` must have been made with SLC_OP_CPD for the same reader and rank.
 * Math: for each mode n in the order of modes, A(n) = M(n) V(n)^-1, where M(n) is the MTTKRP and
 * V(n) the Hadamard product of the Gram matrices of all other modes. fit = 1 - ||X - M|| / ||X||
 * for the model M, with <X, M> computed from the MTTKRP of the last mode ([Phipps2019] section 2).
 * Constraints: SLC_CP_HALS solves the rows of M(n) by coordinate descent (cpu/row/descent.h)
 * instead. Columns are not normalized during a run with penalties or with bounds other than 0, so
 * that the objective has a meaning and never increases.
 * Normalization: columns are divided by their 2-norm in iteration 1, and by max(1, max-norm) in
 * later iterations; if ||X|| < 2^-40, by max(2^floor(log2 ||X||), max-norm). At the end the 2-norms
 * are moved into lambda, and components are sorted by descending lambda.
 * Signs: in each component, the element of largest magnitude is positive in all modes, or in all
 * modes but one if the product of the signs is negative. This mode is the mode whose sign is least
 * certain: the largest element of the opposite sign is closest in magnitude to the element of
 * largest magnitude (of several equal modes, the last one). Signs do not depend on the signs of the
 * starting factors. The tolerance is checked from the second iteration on, because a change needs
 * two fits. A tensor of order 1 is possible: its V (all ones) is singular, and the pseudo-inverse
 * is used.
 * Devices: if the plan has groups or GPUs, they compute and `backend` is ignored. A GPU receives
 * the starting factors and returns the factors at the end of the run; during the run it returns
 * only sums over rows, R x R or smaller. If the plan divides the work between a GPU and `backend`,
 * `backend` computes some of the blocks of every MTTKRP, and updated factors are copied to host
 * memory.
 * Passes: if the plan has passes that update two modes (slc_plan_fusion), factors and fit equal, up
 * to rounding, the results of plain passes in the same order of modes. If the last pass has
 * computed an MTTKRP for an iteration that is not started, this MTTKRP is dropped.
 * Checkpoints: a run that ended early for any reason resumes from its last checkpoint. If a time
 * limit or a signal ends the run, the current part of the pass is completed and a checkpoint is
 * written, so that no work is lost. If after a signal the rest of the part would take more than a
 * few seconds, the part is stopped at once, and the resumed run repeats it. All options that affect
 * the result must match; iterations, tolerance, limits, threads, I/O method and layouts may differ.
 * A deterministic run that is resumed has the same bits as a run that was not stopped.
 * Strategies: if the plan names a rival strategy, the first pass of a mode tries both strategies on
 * some tiles. The faster strategy computes the rest of the pass and all later passes of the mode.
 * Deterministic runs try no rivals.
 * Order: if `deterministic`, bitwise reproducible for any number of threads and devices, I/O
 * method, block size, codec and budget; otherwise reproducible up to rounding.
 * Errors: SLC_ERR_NUMERIC if ||X|| = 0 or if values overflow; SLC_ERR_USAGE if options and plan do
 * not match; SLC_ERR_INPUT if the starting factors in init_folder contain a NaN or an infinity;
 * errors of reading models, of the stream and of the checkpoint. SLC_ERR_USAGE if the checkpoint
 * belongs to a different run; the message names the difference. *result is empty after an error. A
 * stop by the time limit or a signal is not an error: *result then holds the current factors. */
enum slc_status slc_cp_run(const struct slc_store *store,
                           struct slc_stream *stream,
                           struct slc_backend *backend,
                           const struct slc_plan *plan,
                           const struct slc_cp_options *options,
                           struct slc_cp_result *result,
                           struct slc_error *err) SLC_NODISCARD;

#endif
