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
    double copies; /* building copies per mode */
};

/* Checkpoints of one CP-ALS. A resumed run includes the counts of all earlier runs. */
struct slc_cp_checkpoints {
    unsigned resumes; /* number of times a checkpoint was resumed */
    uint64_t count;   /* checkpoints written */
    double seconds;   /* time spent writing */
};

enum {
    /*
     * With SLC_COPIES_AUTO, copies per mode are built after this many iterations, and only if more
     * than twice as many are allowed: building them costs as much as ten to thirty iterations save,
     * and few runs that stop by tolerance stop after ten. If the allocation fails then, the run
     * continues without copies.
     */
    SLC_CP_COPIES_AFTER = 10
};

/* Whether a run of at most this many iterations builds copies with SLC_COPIES_AUTO. */
static inline bool slc_cp_copies_pay(unsigned iterations)
{
    return iterations > 2 * SLC_CP_COPIES_AFTER;
}

struct slc_cp_iteration {
    unsigned iteration; /* from 1 */
    double fit;
    double delta; /* change of fit; equal to fit in the first iteration */
    double seconds;
    double mode_seconds[SLC_MAX_ORDER]; /* a pass for two modes counts for the first */
    uint64_t bytes_read;
    unsigned passes; /* passes made; a pass for two modes counts in the iteration that made it */
    bool singular[SLC_MAX_ORDER]; /* the Gram matrix of this mode's solve was singular */
    uint64_t heldout;             /* nonzeros held out; 0: none, or unknown after a resume */
    double heldout_rmse;          /* error of the model on the held-out nonzeros, if any */
    double heldout_mae;           /* as heldout_rmse */
    bool first_of_copies;         /* the first iteration that uses copies per mode */
    /* Why copies per mode were not built when they were due; NULL if they were. Borrowed. */
    const struct slc_error *copies_fault;
    uint64_t copies_bytes; /* bytes planned for the copies */
    /* Per mode: see slc_cp_result. The first iteration includes the measurements of its trials.
     * Borrowed. */
    const struct slc_conflict_choice *choices;
    /* The same for MTTKRPs computed as the second of a pass. Bit n of `settled`: mode n was
     * computed in this way for the first time in this iteration. */
    const struct slc_conflict_choice *second_choices;
    uint32_t settled;
    const struct slc_replica_form *copies; /* per mode, if copies are in use; borrowed */
};

/* The checkpoint that a run resumes. */
struct slc_cp_resume {
    unsigned iteration;                  /* next iteration, from 1 */
    unsigned mode;                       /* next mode, 0-based */
    double seconds;                      /* run time before the checkpoint */
    const struct slc_cp_iteration *past; /* earlier iterations; borrowed */
    unsigned past_count;
};

/* A checkpoint that was written. */
struct slc_cp_checkpointed {
    unsigned iteration; /* iteration that a resumed run starts with, from 1 */
    unsigned mode;      /* mode that it starts with, 0-based */
    double seconds;     /* time spent writing */
    uint64_t bytes;
};

struct slc_cp_als_options {
    const struct slc_files *files; /* for init_folder; NULL: the operating system */
    uint32_t rank;
    unsigned iterations; /* at most; 0 computes nothing but the start */
    double tolerance;    /* stop when |change of fit| < tolerance; 0: never */
    /* Time limit, 0: none. Checked before every MTTKRP, after every iteration, and while copies are
     * built. */
    double max_seconds;
    double regularization; /* added to the diagonal of every Gram matrix before solving */
    uint64_t seed;
    /*
     * Fraction of the nonzeros, up to 0.5, to hold out (engine/stream/holdout.h). The factorization
     * treats them as zeros, ||X|| excludes them, and the model's error on them is reported after
     * every iteration and at the end. 0: none. Not available with devices; the plan's beside_bytes
     * must be slc_cp_holdout_bytes.
     */
    double holdout;
    uint64_t holdout_seed;
    /*
     * NULL: uniform random from `seed`. Otherwise a folder with mode-K.npy for every mode; weights
     * in its lambda.npy are used only when iterations is 0, because the first solve absorbs the
     * scales of a start.
     */
    const char *init_folder;
    /* 0-based permutation, used if mode_order_set; otherwise the plan's order is used. A plan with
     * passes that update two modes must have been made for this order. */
    unsigned mode_order[SLC_MAX_ORDER];
    bool mode_order_set;
    bool deterministic;
    struct slc_executor_parts parts; /* what the plan needs in addition to the backend */
    const volatile int *stop;        /* non-zero: finish early, resumable; may be NULL */
    /* Where checkpoints are kept; NULL: nowhere. The run resumes the checkpoint found there.
     * Borrowed. The caller removes it once the results of a completed run are safe. */
    struct slc_checkpoint *checkpoint;
    /* Least number of seconds between two checkpoints, which are written after updates. Below 0:
     * ten seconds, and long enough that writing uses at most one percent of the time. */
    double checkpoint_seconds;
    /* Bytes of blocks per part of a pass. Checkpoints may also be written between two parts, and a
     * stop can be resumed from there. 0: chosen so that a part lasts a few seconds. */
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
    struct slc_matrix factors[SLC_MAX_ORDER]; /* unit 2-norm columns; a zero component has zeros */
    double *lambda;                           /* descending, >= 0 */
    unsigned iterations;                      /* completed */
    unsigned copies_after; /* iterations before the copies were built; UINT_MAX: not built */
    /* Per mode, for MTTKRPs from the stream: the plan's strategy, and the outcome of a trial in the
     * first iteration. SLC_CONFLICT_REPLICA if the run starts with copies and streams nothing. */
    struct slc_conflict_choice choices[SLC_MAX_ORDER];
    /* The same for MTTKRPs computed as the second of a pass for two modes. */
    struct slc_conflict_choice second_choices[SLC_MAX_ORDER];
    unsigned mode_order[SLC_MAX_ORDER];            /* order in which modes were updated */
    struct slc_replica_form copies[SLC_MAX_ORDER]; /* how copies are sorted, if they were built */
    /*
     * Fit of the factors above. After SLC_STOP_SIGNAL it is the fit of the last completed
     * iteration, which the modes updated since can only have improved; 0 before the first one
     * completes.
     */
    double fit;
    double norm_x;
    uint64_t heldout; /* nonzeros; 0: none */
    double heldout_norm, heldout_rmse, heldout_mae;
    enum slc_stop_reason reason;
    struct slc_cp_times times;
    struct slc_cp_checkpoints checkpoints;
    /* If a run with a checkpoint ended early: the iteration, from 1, and the mode that a resumed
     * run starts with; iteration 0 if no checkpoint has been written. */
    unsigned resume_iteration, resume_mode;
    unsigned device_count; /* 0: the backend alone */
    struct slc_member_stats devices[SLC_MAX_DEVICES];
    /* Statistics of the GPU, or of several together; zeros without a GPU. */
    struct slc_device_stats gpu;
    /* Per mode, if the GPU shares the work with the backend: statistics of both. */
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
 * product of the other Gram matrices; fit = 1 - ||X - M|| / ||X||, with the inner product from the
 * last mode's MTTKRP ([Phipps2019] section 2). Normalization: 2-norm in iteration 1, max(1,
 * max-norm) after; at the end the 2-norms are moved into lambda, components are sorted by lambda,
 * and signs are fixed as by fixsigns of the Tensor Toolbox: an even number of the factors of a
 * component whose element of largest magnitude is negative is flipped, lower modes first, so that
 * at most one (the last of them) stays negative.
 * The tolerance is checked from the second iteration on (a change needs two fits). N = 1 works: its
 * Gram matrix (all ones) is singular and solved as such.
 * Devices: if the plan has devices or a GPU, they compute in place of `backend`, which is then
 * ignored. A GPU receives the start and returns the factors when the run ends; in between it
 * returns only sums over rows, R x R or smaller. If the plan shares the work between the two,
 * `backend` computes some of the blocks of every MTTKRP, and every factor is copied back when it
 * has been updated.
 * Passes: if the plan has passes that update two modes (slc_plan_fusion), factors and fit equal
 * those of single passes in the same order of modes, up to rounding. An MTTKRP that the last pass
 * computed for an iteration that is not started is dropped.
 * Checkpoints: a run that ended early for any reason resumes from the last checkpoint. After a stop
 * by time or signal that is the point of the stop, except within a pass for two modes: the stop
 * waits if the pass needs a few seconds more, and otherwise the pass is repeated. All options that
 * affect the result must match; iterations, tolerance, limits, threads and the way blocks are read
 * may differ. Order: a deterministic run has the same bits as without the stop.
 * Strategies: if the plan names a rival, the first pass of a mode tries both on its first tiles;
 * the faster one computes the rest of the pass and all later passes of the mode. Never when
 * deterministic.
 * Order: when `deterministic`, bitwise reproducible for any number of threads and devices, I/O
 * method, block size, codec and budget; otherwise up to rounding.
 * Errors: SLC_ERR_NUMERIC if ||X|| = 0 (the message says so) or if values overflow; SLC_ERR_USAGE
 * if options and plan do not match; SLC_ERR_INPUT if the start in init_folder has a NaN or an
 * infinity; those of reading models, of the stream and of the checkpoint; SLC_ERR_USAGE if the
 * checkpoint is from another run, naming the difference. *result is empty after an error. A stop by
 * time or signal is not an error: *result holds the factors reached so far.
 */
enum slc_status slc_cp_als(const struct slc_store *store,
                           struct slc_stream *stream,
                           struct slc_backend *backend,
                           const struct slc_plan *plan,
                           const struct slc_cp_als_options *options,
                           struct slc_cp_result *result,
                           struct slc_error *err) SLC_NODISCARD;

#endif
