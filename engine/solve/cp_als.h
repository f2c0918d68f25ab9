/*
 * CP-ALS over a streamed store ([Kolda2009] section 3.4): N MTTKRPs, N solves and the fit per
 * iteration.
 */
#ifndef SLC_ENGINE_SOLVE_CP_ALS_H
#define SLC_ENGINE_SOLVE_CP_ALS_H

#include "base/backend.h"
#include "base/error/error.h"
#include "engine/executor/executor.h"
#include "engine/plan/plan.h"
#include "engine/stream/stream.h"
#include "storage/checkpoint/checkpoint.h"
#include "storage/manifest/store.h"
#include "storage/model/model.h"

#include <stdbool.h>
#include <stdint.h>

enum slc_stop_reason { SLC_STOP_TOLERANCE, SLC_STOP_ITERATIONS, SLC_STOP_TIME, SLC_STOP_SIGNAL };
const char *slc_stop_reason_name(enum slc_stop_reason reason); /* "tol", "iterations", .. */

/*
 * Wall time of the calling thread in seconds. A resumed run includes the time up to the checkpoint.
 */
struct slc_cp_times {
    double total, mttkrp, solve, fit, init;
    double copies; /* time for building copies per mode */
};

/* Checkpoints of one CP-ALS. A resumed run includes the counts of all earlier runs. */
struct slc_cp_checkpoints {
    unsigned resumes; /* number of times a checkpoint was resumed */
    uint64_t count;   /* checkpoints written */
    double seconds;   /* time spent writing checkpoints */
};

enum {
    /*
     * With SLC_COPIES_AUTO, copies per mode are built after this many iterations, and only if more
     * than twice as many are allowed: building them costs as much as ten to thirty iterations save,
     * and few runs that stop by tolerance stop after only ten. If the allocation of copies fails,
     * the run continues without them.
     */
    SLC_CP_COPIES_AFTER = 10
};

/* True if a run of at most this many iterations builds copies with SLC_COPIES_AUTO. */
static inline bool slc_cp_copies_pay(unsigned iterations)
{
    return iterations > 2 * SLC_CP_COPIES_AFTER;
}

struct slc_cp_iteration {
    unsigned iteration; /* number of the iteration, from 1 */
    double fit;
    double delta; /* change of the fit; equal to the fit in the first iteration */
    double seconds;
    double mode_seconds[SLC_MAX_ORDER]; /* a pass for two modes counts for the first of them */
    uint64_t bytes_read;
    /* Passes made; a pass for two modes counts in the iteration that made the pass. */
    unsigned passes;
    bool singular[SLC_MAX_ORDER]; /* the Gram matrix in the solve of this mode was singular */
    uint64_t heldout;     /* number of nonzeros held out; 0 if none, or if unknown after a resume */
    double heldout_rmse;  /* error of the model on the held-out nonzeros, if there are any */
    double heldout_mae;   /* mean absolute error, like heldout_rmse */
    bool first_of_copies; /* this is the first iteration that uses copies per mode */
    /* Why copies per mode were not built when they were due; NULL if they were built. Borrowed. */
    const struct slc_error *copies_fault;
    uint64_t copies_bytes; /* bytes planned for the copies */
    /* Strategies per mode, see slc_cp_result. The first iteration includes the measurements of its
     * trials. Borrowed. */
    const struct slc_conflict_choice *choices;
    /* Like `choices`, for MTTKRPs computed as the second of a pass. Bit n of `settled` is set if
     * mode n was computed in this way for the first time in this iteration. */
    const struct slc_conflict_choice *second_choices;
    uint32_t settled;
    const struct slc_replica_form *copies; /* per mode, if copies are in use; borrowed */
};

/* The checkpoint that a run resumes. */
struct slc_cp_resume {
    unsigned iteration;                  /* next iteration, from 1 */
    unsigned mode;                       /* next mode, 0-based */
    double seconds;                      /* run time before the checkpoint */
    const struct slc_cp_iteration *past; /* records of the earlier iterations; borrowed */
    unsigned past_count;
};

/* A checkpoint that was written. */
struct slc_cp_checkpointed {
    unsigned iteration; /* iteration with which a resumed run starts, from 1 */
    unsigned mode;      /* mode with which a resumed run starts, 0-based */
    double seconds;     /* time spent writing this checkpoint */
    uint64_t bytes;
};

struct slc_cp_als_options {
    const struct slc_files *files; /* files for init_folder; NULL: the operating system */
    uint32_t rank;
    unsigned iterations; /* largest number of iterations; 0 computes only the starting factors */
    double tolerance;    /* stop when |change of fit| < tolerance; 0: never */
    /* Time limit in seconds; 0: none. Checked before every MTTKRP, after every iteration, and while
     * copies are built. */
    double max_seconds;
    double regularization; /* added to the diagonal of every Gram matrix before solving */
    uint64_t seed;
    /*
     * Fraction of the nonzeros, up to 0.5, to hold out (engine/stream/holdout.h). The factorization
     * treats them as zeros, ||X|| excludes them, and the model's error on them is reported after
     * every iteration and at the end. 0: none. Not available with devices; the plan's beside_bytes
     * must equal slc_cp_holdout_bytes.
     */
    double holdout;
    uint64_t holdout_seed;
    /*
     * NULL: the start is uniform random from `seed`. Otherwise a folder with mode-K.npy for every
     * mode; weights in its lambda.npy are used only when iterations is 0, because otherwise the
     * first solve absorbs the scales of the start.
     */
    const char *init_folder;
    /* 0-based permutation, used if mode_order_set; otherwise the plan's order is used. A plan with
     * passes that update two modes must have been made for this order. */
    unsigned mode_order[SLC_MAX_ORDER];
    bool mode_order_set;
    bool deterministic;
    struct slc_executor_parts parts; /* devices that the plan needs in addition to the backend */
    /* A value other than 0 ends the run early, so that it can be resumed; may be NULL. */
    const volatile int *stop;
    /* Where checkpoints are kept; NULL: no checkpoints are written. The run resumes the checkpoint
     * found there. Borrowed. The caller removes the checkpoint once the results of a completed run
     * are safe. */
    struct slc_checkpoint *checkpoint;
    /* Minimum number of seconds between two checkpoints, which are written after updates. Below 0:
     * at least ten seconds, and long enough that writing uses at most one percent of the time. */
    double checkpoint_seconds;
    /* Bytes of blocks per part of a pass. Checkpoints may also be written between two parts, and a
     * stopped run can be resumed from such a checkpoint. 0: chosen so that a part lasts a few
     * seconds. */
    uint64_t part_bytes;
    /* Called before the first update of a resumed run, and after each checkpoint; may be NULL. */
    void (*resumed)(void *context, const struct slc_cp_resume *resume);
    void (*checkpointed)(void *context, const struct slc_cp_checkpointed *checkpointed);
    /* Called after every iteration by the calling thread; may be NULL. */
    void (*iteration)(void *context, const struct slc_cp_iteration *iteration);
    /* Called during passes; `mode` is 0-based. May be NULL. */
    void (*progress)(
        void *context, unsigned iteration, unsigned mode, uint64_t blocks_done, uint64_t blocks);
    void *context;
};

/* Owns its matrices; release it with slc_cp_result_destroy, which accepts an all-zero struct. */
struct slc_cp_result {
    unsigned order;
    uint32_t rank;
    /* Columns of unit 2-norm; a zero component has zeros. */
    struct slc_matrix factors[SLC_MAX_ORDER];
    double *lambda;      /* weights in descending order, >= 0 */
    unsigned iterations; /* number of completed iterations */
    /* Iterations before the copies were built; UINT_MAX if no copies were built. */
    unsigned copies_after;
    /* Per mode, for MTTKRPs from the stream: the plan's strategy, and the result of a trial in the
     * first iteration. SLC_CONFLICT_REPLICA if the run starts with copies and therefore streams
     * nothing. */
    struct slc_conflict_choice choices[SLC_MAX_ORDER];
    /* Like `choices`, for MTTKRPs computed as the second of a pass for two modes. */
    struct slc_conflict_choice second_choices[SLC_MAX_ORDER];
    unsigned mode_order[SLC_MAX_ORDER];            /* order in which modes were updated */
    struct slc_replica_form copies[SLC_MAX_ORDER]; /* how copies are sorted, if they were built */
    /*
     * Fit of the factors above. After SLC_STOP_SIGNAL it is the fit of the last completed
     * iteration; updates after that iteration can only have improved it. The fit is 0 before the
     * first iteration completes.
     */
    double fit;
    double norm_x;
    uint64_t heldout; /* number of nonzeros held out; 0: none */
    double heldout_norm, heldout_rmse, heldout_mae;
    enum slc_stop_reason reason;
    struct slc_cp_times times;
    struct slc_cp_checkpoints checkpoints;
    /* If a run with a checkpoint ended early: the iteration, from 1, and the mode with which a
     * resumed run starts. The iteration is 0 if no checkpoint has been written. */
    unsigned resume_iteration, resume_mode;
    unsigned device_count; /* number of devices; 0: the backend alone */
    struct slc_member_stats devices[SLC_MAX_DEVICES];
    /* Statistics of the GPU, or of several GPUs together; zeros without a GPU. */
    struct slc_device_stats gpu;
    /* Per mode, if the GPU shares the work with the backend: statistics of both sides. */
    struct slc_hybrid hybrid[SLC_MAX_ORDER];
};
void slc_cp_result_destroy(struct slc_cp_result *result);

/*
 * Bytes that slc_cp_als maps in addition to factors, MTTKRP output and kernel scratch: scratch of
 * dense algebra, the solver, the R x R matrices and the checkpoint buffer. UINT64_MAX on overflow.
 * For plans.
 */
uint64_t
slc_cp_als_memory_bytes(unsigned order, uint32_t rank, unsigned workers, uint64_t rows_max);

/* Additional bytes for holding out this fraction, for the plan's beside_bytes. 0 if the fraction is
 * 0; UINT64_MAX on overflow. */
uint64_t slc_cp_holdout_bytes(unsigned order, uint64_t nnz, double holdout, unsigned workers);

/*
 * Factorizes the tensor. `plan` must have been made with SLC_OP_CPD for the same reader and rank.
 * Math: for each mode n in the order of modes A(n) = M(n) V(n)^-1, where V(n) is the Hadamard
 * product of the other Gram matrices; fit = 1 - ||X - M|| / ||X||, where the inner product is
 * computed from the MTTKRP of the last mode ([Phipps2019] section 2). Normalization: by the 2-norm
 * in iteration 1, by max(1, max-norm) in later iterations. At the end the 2-norms are moved into
 * lambda, components are sorted by lambda, and signs are fixed like in the function fixsigns of the
 * Tensor Toolbox. In each component, the columns whose element of largest magnitude is negative are
 * flipped in pairs, lower modes first, so that at most one of these columns, the one of the highest
 * mode, stays negative.
 * The tolerance is checked from the second iteration on (a change needs two fits). A tensor of
 * order 1 is possible: its Gram matrix (all ones) is singular and is solved with the
 * pseudo-inverse.
 * Devices: if the plan has devices or a GPU, they compute instead of `backend`, which is then
 * ignored. A GPU receives the starting factors and returns the factors when the run ends; in
 * between it returns only sums over rows, R x R or smaller. If the plan divides the work between
 * GPU and `backend`, `backend` computes some of the blocks of every MTTKRP, and every factor is
 * copied back when it has been updated.
 * Passes: if the plan has passes that update two modes (slc_plan_fusion), factors and fit equal, up
 * to rounding, those of passes that update one mode in the same order of modes. An MTTKRP that the
 * last pass computed for an iteration that is not started is dropped.
 * Checkpoints: a run that ended early for any reason resumes from the last checkpoint. After a stop
 * by time or signal, the last checkpoint is from the point of the stop, except within a pass for
 * two modes: if the pass needs only a few more seconds, the stop waits for its end; otherwise the
 * resumed run repeats the pass. All options that affect the result must match; iterations,
 * tolerance, limits, threads and the way blocks are read may differ. Order: a deterministic run
 * that is resumed has the same bits as without the stop.
 * Strategies: if the plan names a rival, the first pass of a mode tries both strategies on some of
 * its tiles; the faster one computes the rest of the pass and all later passes of the mode.
 * Deterministic runs try no rivals.
 * Order: when `deterministic`, bitwise reproducible for any number of threads and devices, I/O
 * method, block size, codec and budget; otherwise up to rounding.
 * Errors: SLC_ERR_NUMERIC if ||X|| = 0 (the message says so) or if values overflow; SLC_ERR_USAGE
 * if options and plan do not match; SLC_ERR_INPUT if the starting factors in init_folder contain a
 * NaN or an infinity; those of reading models, of the stream and of the checkpoint; SLC_ERR_USAGE
 * if the checkpoint is from another run, naming the difference. *result is empty after an error. A
 * stop by time or signal is not an error: *result holds the factors reached so far.
 */
enum slc_status slc_cp_als(const struct slc_store *store,
                           struct slc_stream *stream,
                           struct slc_backend *backend,
                           const struct slc_plan *plan,
                           const struct slc_cp_als_options *options,
                           struct slc_cp_result *result,
                           struct slc_error *err) SLC_NODISCARD;

#endif
