/*
 * The parts of CP-ALS that its source files share: state of one run, Gram algebra, start and
 * finish. Internal to engine/solve.
 */
#ifndef SLC_ENGINE_SOLVE_CP_STATE_H
#define SLC_ENGINE_SOLVE_CP_STATE_H

#include "cpu/dense/dense.h"
#include "engine/solve/cp_als.h"
#include "engine/solve/cp_checkpoint.h"
#include "engine/solve/held.h"
#include "engine/stream/pass_cuts.h"
#include "engine/stream/pass_pace.h"
#include "engine/stream/row_ranges.h"

/* How an MTTKRP of a pass is computed. */
struct cp_strategy {
    enum slc_conflict conflict, rival;
};

/* The pass at hand of a run with checkpoints. */
struct cp_passing {
    struct slc_pass_cuts cuts;
    unsigned jobs;
    bool fused; /* there are two */
    struct slc_backend *backend[2];
    struct cp_strategy strategy[2];
    const struct slc_reader *reader;
    const uint64_t *order; /* of its blocks */
    struct slc_pass_pace *pace;
    uint64_t bytes_left;             /* behind the part at hand */
    uint64_t part_bytes, part_ns;    /* of that, and when it began */
    uint64_t first_block, end_block; /* of it */
    uint64_t position;               /* between two parts; else 0 */
    bool left;                       /* there, by a stop */
    struct slc_mttkrp_state sums[2];
};

/* How to make it. */
struct cp_pass {
    const struct slc_pass_cuts *cuts; /* NULL: in one part */
    const volatile int *stop;
    void (*progress)(void *context, uint64_t done, uint64_t blocks, uint64_t bytes); /* the state */
};

/*
 * One run. Factors live in the result from the start, so that a stop at any point leaves a model
 * behind: at every moment it is [lambda; A(0), .., A(N-1)], A(n) = result->factors[n]
 * diag(scale[n]) (cp_update.c says why), lambda from the mode updated last.
 */
struct cp_state {
    const struct slc_store *store;
    struct slc_stream *stream;
    struct slc_backend *backend;
    struct slc_executor *executor; /* computes MTTKRPs and updates; has factors of its own */
    const struct slc_plan *plan;
    const struct slc_cp_als_options *options;
    struct slc_cp_result *result;

    unsigned order;
    uint32_t rank;
    const uint64_t *dims;
    unsigned mode_order[SLC_MAX_ORDER];
    double norm_x;
    uint64_t start_ns;
    unsigned iteration;            /* being computed, from 1 */
    unsigned mode;                 /* being computed, 0-based */
    bool copies;                   /* the backend holds copies per mode */
    bool copies_refused;           /* there was no memory for them */
    unsigned copies_due_after;     /* iterations, when they were made or refused */
    struct slc_error copies_fault; /* why they were refused */
    unsigned place;                /* in the order of modes, of the next update */
    double fit;                    /* of the last iteration that was completed */

    /* Of checkpoints, where the run has them (cp_checkpoint.c). */
    char *identity;
    struct slc_cp_iteration *past; /* iterations that were completed */
    unsigned past_room;
    uint64_t saved_ns;       /* when the last one was written, or the run begun */
    double saving_seconds;   /* that one took, or is expected to take */
    double seconds_before;   /* of the runs that this one goes on from */
    bool unsaved;            /* there have been updates since */
    bool mixed;              /* an update was left half made: there is none to resume from */
    struct slc_cp_part part; /* of a checkpoint, until the pass that stands there has begun */
    struct slc_pass_pace pace[SLC_MAX_ORDER][2]; /* of passes for a mode; for it and the next */
    struct cp_passing passing;
    volatile int pass_stop; /* ends a pass that a stop would have to wait for too long */

    struct slc_dense *dense;
    struct slc_solver solver;
    struct slc_buffer output; /* MTTKRP results of modes that have a pass of their own */
    /* Passes that update two modes: of the second one. */
    struct slc_buffer second_output;
    struct slc_backend *second_backend;
    struct slc_row_ranges ranges[SLC_MAX_ORDER]; /* of each mode that begins such a pass */
    bool *turned;               /* per range, which of the rows have been solved for */
    unsigned pending;           /* the mode whose MTTKRP is in second_output; SLC_MAX_ORDER: none */
    uint32_t settled;           /* bit n: result->second_choices[n] is what its trial made of it */
    struct slc_buffer squares;  /* all that follows */
    struct slc_holdout holdout; /* where options->holdout says so */
    struct slc_held held;
    struct slc_buffer held_rooms; /* of workers, and weights */
    double *gram[SLC_MAX_ORDER];  /* R x R: A(n)^T A(n) */
    double *system;               /* R x R: Hadamard product of Gram matrices */
    /* R numbers each. */
    double *scale[SLC_MAX_ORDER];
    double *norm[SLC_MAX_ORDER];    /* by which A(n) was divided last */
    double *left, *right;           /* scales of the MTTKRP and of the factor being solved for */
    double *largest, *column_inner; /* what its update found */
    double inner;                   /* <X, M> after the update of a mode */
};

/* Takes the memory of a run; cp_state_destroy takes a partly created one. */
enum slc_status cp_state_create(struct cp_state *state, struct slc_error *err) SLC_NODISCARD;
void cp_state_destroy(struct cp_state *state);

/*
 * Before anything is computed, where options->holdout says so: collects the nonzeros that are held
 * out and has the stream leave them out from then on. And the model's error on them, into the
 * result. Nothing where there are none.
 */
enum slc_status cp_holdout_begin(struct cp_state *state, struct slc_error *err) SLC_NODISCARD;
enum slc_status cp_holdout_judge(struct cp_state *state, struct slc_error *err) SLC_NODISCARD;
void cp_holdout_end(struct cp_state *state);

/* Has the result hold factors, of zeros. */
enum slc_status cp_factors_create(struct cp_state *state, struct slc_error *err) SLC_NODISCARD;

/* Fills the factors (random or from files), lambda and the Gram matrices. */
enum slc_status cp_start(struct cp_state *state, struct slc_error *err) SLC_NODISCARD;

/* The section of a checkpoint that a factor is in, and that slc_cp_saved_read reads. */
void cp_factor_name(unsigned mode, char name[SLC_CHECKPOINT_NAME_BYTES]);
void cp_saved_write(struct slc_checkpoint *checkpoint, const struct slc_cp_saved *saved);

/* All that decides the result, a line `name=value` each, in SLC_CP_IDENTITY_BYTES. */
enum slc_status
cp_identity(const struct cp_state *state, char *text, struct slc_error *err) SLC_NODISCARD;
/* SLC_ERR_USAGE naming the first difference of a checkpoint's identity `theirs` from ours. */
enum slc_status
cp_identity_compare(const char *ours, const char *theirs, struct slc_error *err) SLC_NODISCARD;

/*
 * Before the start: goes on from the checkpoint, where there is one; *resumed says so, and the
 * state is then what it was, but for devices. Nothing without options->checkpoint.
 */
enum slc_status
cp_resume(struct cp_state *state, bool *resumed, struct slc_error *err) SLC_NODISCARD;
/* After the start: has the disk keep room for checkpoints. */
enum slc_status cp_checkpoint_start(struct cp_state *state, struct slc_error *err) SLC_NODISCARD;
/* After an update: writes one if it is time. */
enum slc_status cp_checkpoint_due(struct cp_state *state, struct slc_error *err) SLC_NODISCARD;
enum slc_status cp_checkpoint_now(struct cp_state *state, struct slc_error *err) SLC_NODISCARD;
/* At the end of a run that goes on another day: writes one unless there is one of this state. */
enum slc_status cp_checkpoint_last(struct cp_state *state, struct slc_error *err) SLC_NODISCARD;
/* Notes an iteration that was completed. */
enum slc_status cp_checkpoint_past(struct cp_state *state,
                                   const struct slc_cp_iteration *iteration,
                                   struct slc_error *err) SLC_NODISCARD;

/*
 * Before the pass for one or two jobs that updates state->mode: says how to make it; in parts where
 * the run has checkpoints, and from where a checkpoint stands in it. When it was ended with
 * SLC_ERR_INTERRUPTED, passing.left says that it can be gone on with. Errors: SLC_ERR_USAGE where a
 * checkpoint stands in a pass for two modes that this is not.
 */
enum slc_status cp_pass_begin(struct cp_state *state,
                              const struct cp_strategy *strategies,
                              unsigned count,
                              struct cp_pass *pass,
                              struct slc_error *err) SLC_NODISCARD;
/* Before the first pass of a run that goes on: the same error where there is no such pass. */
enum slc_status cp_part_check(const struct cp_state *state,
                              const struct slc_cp_saved *saved,
                              struct slc_error *err) SLC_NODISCARD;
/* Where the pass at hand stands, for a checkpoint; `gather` before `put` writes its sections. */
enum { CP_PART_SECTIONS = 2 * SLC_MTTKRP_REGIONS };
struct slc_cp_part cp_part_saved(const struct cp_state *state);
enum slc_status cp_part_gather(struct cp_state *state, struct slc_error *err) SLC_NODISCARD;
void cp_part_put(const struct cp_state *state);
/* How long these may get. Returns how many there are. */
unsigned cp_part_bytes(const struct slc_plan *plan,
                       unsigned order,
                       const uint64_t *dims,
                       uint64_t bytes[CP_PART_SECTIONS]);

/* A view of an output buffer with the shape of factor `mode`. */
static inline struct slc_matrix
cp_output_view(const struct cp_state *state, const struct slc_buffer *output, unsigned mode)
{
    struct slc_matrix view = state->result->factors[mode];

    /* Same type, rows and pitch as the factor; the buffer holds at least as many rows. */
    view.buffer = *output;
    return view;
}

/* system = Hadamard product of all Gram matrices but `skip` (SLC_MAX_ORDER: of all). */
void cp_hadamard(struct cp_state *state, unsigned skip);

/*
 * A(mode) = M V^-1 from the MTTKRP in `output`, normalized: its lambda, scale, Gram matrix, and the
 * inner product of tensor and model. *singular: V was. Overwrites state->system.
 * Errors: SLC_ERR_NUMERIC when a component is not finite.
 */
enum slc_status cp_update(struct cp_state *state,
                          unsigned mode,
                          const struct slc_buffer *output,
                          bool *singular,
                          struct slc_error *err) SLC_NODISCARD;
/*
 * The same in steps. Between them every row is solved for by state->solver, by
 * slc_dense_update_rows; the second finds the factor's sums and normalizes it, and with it an
 * MTTKRP that is pending: that was computed from this factor as it was stored.
 */
enum slc_status cp_update_begin(struct cp_state *state,
                                unsigned mode,
                                bool *singular,
                                struct slc_error *err) SLC_NODISCARD;
enum slc_status cp_update_end(struct cp_state *state,
                              unsigned mode,
                              const struct slc_buffer *output,
                              struct slc_error *err) SLC_NODISCARD;

/* What passes that update two modes need; nothing where the plan has none. */
enum slc_status cp_fused_create(struct cp_state *state, struct slc_error *err) SLC_NODISCARD;

/*
 * Whether the update that stands at `place` in the order of modes is to be made by a pass for the
 * next one, too: the plan says so, and there is a next one.
 */
bool cp_fuses(const struct cp_state *state, unsigned place);

/*
 * The update at `place` by such a pass; the MTTKRP of the next mode is then pending.
 * *stopped: options->stop ended the pass; rows that had been solved for by then are new, the others
 * as before, and the factor is normalized: rows are independent of one another, so that the model
 * fits no worse. Errors: those of passes and updates.
 */
enum slc_status cp_fused_update(struct cp_state *state,
                                unsigned place,
                                bool *singular,
                                bool *stopped,
                                struct slc_error *err) SLC_NODISCARD;

/* Whether the run is to end, by options->stop or for the time. */
bool cp_stop_due(const struct cp_state *state);
/* Whether options->stop says so. And progress of a pass for it; the context is the state. */
bool cp_stop_requested(const struct cp_state *state);
void cp_report_progress(void *context, uint64_t blocks_done, uint64_t blocks, uint64_t bytes);

/* Fills in a job for mode `mode` with what all jobs of a run share. */
struct slc_mttkrp_job
cp_job(const struct cp_state *state, unsigned mode, struct slc_matrix *output);

/*
 * Fit of the model after the update of a mode:
 * ||X - M||^2 = ||X||^2 + lambda^T (Hadamard of all Gram matrices) lambda - 2 <X, M>, clamped at 0.
 * Overwrites state->system. Errors: SLC_ERR_NUMERIC when a term is not finite.
 */
enum slc_status cp_fit(struct cp_state *state, double *fit, struct slc_error *err) SLC_NODISCARD;

/* 2-norms into lambda, components sorted, signs fixed. */
enum slc_status cp_finish(struct cp_state *state, struct slc_error *err) SLC_NODISCARD;

#endif
