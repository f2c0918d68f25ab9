/*
 * CP-ALS over a streamed store (DESIGN section 7; KB section 3.4): N MTTKRPs, N solves and the fit
 * per iteration.
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
 * Times of one CP-ALS, in seconds of wall time of the calling thread; of a run that was resumed,
 * with all that led to the checkpoint.
 */
struct slc_cp_times {
    double total, mttkrp, solve, fit, init;
    double copies; /* making copies per mode */
};

/* What was kept of one CP-ALS; of a run that was resumed, the sums of all before. */
struct slc_cp_checkpoints {
    unsigned resumes; /* how often it went on from one */
    uint64_t count;   /* that were written */
    double seconds;   /* that writing them took */
};

enum {
    /*
     * With SLC_COPIES_AUTO, copies per mode are made after so many iterations, and only where more
     * than twice as many are allowed: making them takes as long as ten to thirty iterations save,
     * and few runs that stop by tolerance do so after ten. Where memory is refused then, the run
     * goes on without.
     */
    SLC_CP_COPIES_AFTER = 10
};

/* Whether a run of at most so many iterations makes copies with SLC_COPIES_AUTO. */
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
    unsigned passes; /* that were made; one that updates two modes counts where it was made */
    bool singular[SLC_MAX_ORDER]; /* the Gram matrix of this mode's solve was singular */
    uint64_t heldout;             /* nonzeros held out; 0: none, or not known any more */
    double heldout_rmse;          /* of the model after it on these, where there are some */
    double heldout_mae;           /* the same */
    bool first_of_copies;         /* copies per mode were made before it, and serve from it on */
    /* Why copies per mode that were due before it are not made in this run; else NULL. Borrowed. */
    const struct slc_error *copies_fault;
    uint64_t copies_bytes; /* that were planned for them */
    /* Per mode: see slc_cp_result. In the first iteration what a trial measured has just come in.
     * Borrowed. */
    const struct slc_conflict_choice *choices;
    /* The same of MTTKRPs as the second of a pass. Bit n of `settled`: that of mode n was computed
     * so for the first time in this iteration. */
    const struct slc_conflict_choice *second_choices;
    uint32_t settled;
    const struct slc_replica_form *copies; /* per mode, where copies serve; borrowed */
};

/* A checkpoint that a run goes on from. */
struct slc_cp_resume {
    unsigned iteration;                  /* that it goes on with, from 1 */
    unsigned mode;                       /* the same, 0-based */
    double seconds;                      /* that had gone before */
    const struct slc_cp_iteration *past; /* the iterations before; borrowed */
    unsigned past_count;
};

/* One that was written. */
struct slc_cp_checkpointed {
    unsigned iteration; /* that goes on behind it, from 1 */
    unsigned mode;      /* the same, 0-based */
    double seconds;     /* that writing took */
    uint64_t bytes;
};

struct slc_cp_als_options {
    const struct slc_files *files; /* for init_folder; NULL: the operating system */
    uint32_t rank;
    unsigned iterations; /* at most; 0 computes nothing but the start */
    double tolerance;    /* stop when |change of fit| < tolerance; 0 never */
    /* 0: none; looked at before every MTTKRP, after every iteration, and while copies are made. */
    double max_seconds;
    double regularization; /* added to the diagonal of every Gram matrix before solving */
    uint64_t seed;
    /*
     * The part of the nonzeros, up to 0.5, that takes no part (engine/stream/holdout.h): they are
     * zeros to the factorization, ||X|| is that of the others, and the model's error on them is
     * told after every iteration and at the end. 0: none. Not with devices; the plan's beside_bytes
     * have to be slc_cp_holdout_bytes.
     */
    double holdout;
    uint64_t holdout_seed;
    /*
     * NULL: uniform random from `seed`. Else a folder with mode-K.npy for every mode; weights in
     * its lambda.npy count only when iterations is 0, as the first solve absorbs the scales of a
     * start.
     */
    const char *init_folder;
    /* 0-based permutation; used when mode_order_set, and the plan's when not. A plan with passes
     * that update two modes has to have been made for it. */
    unsigned mode_order[SLC_MAX_ORDER];
    bool mode_order_set;
    bool deterministic;
    struct slc_executor_parts parts; /* what the plan needs beside the backend */
    const volatile int *stop;        /* non-zero: finish early, resumable; may be NULL */
    /*
     * Where the state is kept, NULL: nowhere. What is found there is gone on from. Borrowed; it is
     * the caller's to remove once the results of a run that was completed are safe.
     */
    struct slc_checkpoint *checkpoint;
    /*
     * Seconds between two checkpoints at least; they are written after updates. Below 0: ten, and
     * such that writing takes a percent of the time.
     */
    double checkpoint_seconds;
    /* Bytes of blocks of a part of a pass, between two of which checkpoints may be written, too,
     * and a stop can be gone on from; 0: such that a part takes some seconds. */
    uint64_t part_bytes;
    /* Called before the first update of a run that goes on, and behind checkpoints; may be NULL. */
    void (*resumed)(void *context, const struct slc_cp_resume *resume);
    void (*checkpointed)(void *context, const struct slc_cp_checkpointed *checkpointed);
    /* Called after every iteration by the calling thread; may be NULL. */
    void (*iteration)(void *context, const struct slc_cp_iteration *iteration);
    /* Passed to passes; `mode` is 0-based. May be NULL. */
    void (*progress)(
        void *context, unsigned iteration, unsigned mode, uint64_t blocks_done, uint64_t blocks);
    void *context;
};

/* Owns its matrices: slc_cp_result_destroy, which takes an all-zero struct. */
struct slc_cp_result {
    unsigned order;
    uint32_t rank;
    struct slc_matrix factors[SLC_MAX_ORDER]; /* unit 2-norm columns; a zero component has zeros */
    double *lambda;                           /* descending, >= 0 */
    unsigned iterations;                      /* completed */
    unsigned copies_after; /* iterations that went before the copies; UINT_MAX: none were made */
    /*
     * Per mode, of MTTKRPs from the stream: the plan's strategy, and what a trial in the first
     * iteration made of it. SLC_CONFLICT_REPLICA in a run that starts with copies and streams none.
     */
    struct slc_conflict_choice choices[SLC_MAX_ORDER];
    /* The same of MTTKRPs that were computed as the second of a pass for two modes. */
    struct slc_conflict_choice second_choices[SLC_MAX_ORDER];
    unsigned mode_order[SLC_MAX_ORDER];            /* in which modes were updated */
    struct slc_replica_form copies[SLC_MAX_ORDER]; /* how they are sorted, where copies were made */
    /*
     * Of the factors above. After SLC_STOP_SIGNAL that of the last completed iteration, which the
     * modes updated since can only have improved on; 0 while no iteration has completed.
     */
    double fit;
    double norm_x;
    uint64_t heldout; /* nonzeros; 0: none */
    double heldout_norm, heldout_rmse, heldout_mae;
    enum slc_stop_reason reason;
    struct slc_cp_times times;
    struct slc_cp_checkpoints checkpoints;
    /*
     * Of a run with a checkpoint that ended early: where that goes on, the iteration from 1; 0
     * where none has been written.
     */
    unsigned resume_iteration, resume_mode;
    unsigned device_count; /* 0: the backend alone */
    struct slc_member_stats devices[SLC_MAX_DEVICES];
    /* What it has done, or several together; zeros where there is none. */
    struct slc_device_stats gpu;
    /* Per mode, where it shares the work with the backend: what both have done. */
    struct slc_hybrid hybrid[SLC_MAX_ORDER];
};
void slc_cp_result_destroy(struct slc_cp_result *result);

/*
 * Bytes that slc_cp_als maps beside factors, MTTKRP output and kernel scratch: dense algebra's
 * scratch, the solver, the R x R matrices and what checkpoints go through. UINT64_MAX on overflow.
 * For plans.
 */
uint64_t
slc_cp_als_memory_bytes(unsigned order, uint32_t rank, unsigned workers, uint64_t rows_max);

/* What holding out that part takes more. For plans' beside_bytes; 0 of 0; UINT64_MAX on overflow.
 */
uint64_t slc_cp_holdout_bytes(unsigned order, uint64_t nnz, double holdout, unsigned workers);

/*
 * Factorizes. `plan` must have been made with SLC_OP_CPD for the same reader and rank.
 * Math: for each mode n in turn A(n) = M(n) V(n)^-1, V(n) the Hadamard product of the other Gram
 * matrices; fit = 1 - ||X - M|| / ||X||, with the inner product from the last mode's MTTKRP (GENTEN
 * section 2). Normalization: 2-norm in iteration 1, max(1, max-norm) after; at the end 2-norms into
 * lambda, components sorted by lambda, signs fixed as the Tensor Toolbox's fixsigns does: of the
 * factors of a component whose largest-magnitude entry is negative an even number is flipped, lower
 * modes first, so that at most one (the last of them) stays negative.
 * The tolerance is looked at from the second iteration on (a first change needs two fits). N = 1
 * works: its Gram matrix (all ones) is singular and solved as such.
 * Devices: where the plan has some they compute in place of `backend`, which is then not looked at;
 * so does a GPU. That is given the start, and the factors come back when the run ends:
 * between, what leaves it are sums over rows, R x R and less. Where the plan has it share the work,
 * `backend` computes some of the blocks of every MTTKRP, and every factor comes back when it has
 * been updated.
 * Passes: where the plan has such that update two modes (slc_plan_fusion), the factors are those of
 * the same order of modes without, to rounding, and so is the fit. An MTTKRP that the last pass has
 * left for an iteration that is not begun is dropped.
 * Checkpoints: a run that ended early, in whatever way, goes on from the last one; if it was
 * stopped by time or signal that is where it stopped, but for a pass for two modes, which is waited
 * for if it needs a few seconds more and is made again if not. All that decides the result has to
 * be what it was: iterations, tolerance, limits, threads and what is read how may differ. Order: of
 * a deterministic run the same bits as without a stop.
 * Strategies: where the plan names a rival, the first pass of a mode tries both on its first tiles;
 * the faster one computes the rest of it and all later passes of the mode. Never when
 * deterministic. Order: bitwise reproducible for any threads, I/O method, block size, codec and
 * budget when `deterministic`, and for any number of devices; to rounding otherwise. Errors:
 * SLC_ERR_NUMERIC when ||X|| = 0 (names it) or when values overflow; SLC_ERR_USAGE when options and
 * plan do not agree; SLC_ERR_INPUT when the start in init_folder holds a NaN or an infinity; those
 * of reading models, of the stream and of the checkpoint; SLC_ERR_USAGE where the checkpoint is one
 * of another run, naming the difference. *result is empty then. A stop by time or signal is not an
 * error: *result holds the factors as far as they came.
 */
enum slc_status slc_cp_als(const struct slc_store *store,
                           struct slc_stream *stream,
                           struct slc_backend *backend,
                           const struct slc_plan *plan,
                           const struct slc_cp_als_options *options,
                           struct slc_cp_result *result,
                           struct slc_error *err) SLC_NODISCARD;

#endif
