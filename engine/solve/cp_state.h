/*
 * Declarations shared by the source files of CP-ALS: state of one run, Gram algebra, start and
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

/* Conflict strategies of an MTTKRP. */
struct cp_strategy {
    enum slc_conflict conflict, rival;
};

/* The current pass of a run with checkpoints. */
struct cp_current_pass {
    struct slc_pass_cuts cuts;
    unsigned jobs;
    bool fused; /* the pass computes two jobs */
    struct slc_backend *backend[2];
    struct cp_strategy strategy[2];
    const struct slc_reader *reader;
    const uint64_t *order; /* order of its blocks */
    struct slc_pass_pace *pace;
    uint64_t bytes_left;             /* bytes of the pass after the current part */
    uint64_t part_bytes, part_ns;    /* bytes and start time of the current part */
    uint64_t first_block, end_block; /* blocks of the current part */
    uint64_t position;               /* position between two parts; otherwise 0 */
    bool left;                       /* a stop ended the pass at this position */
    struct slc_mttkrp_state sums[2];
};

/* How to run a pass. */
struct cp_pass {
    const struct slc_pass_cuts *cuts; /* NULL: the pass is made in one part */
    const volatile int *stop;
    /* The context is the state. */
    void (*progress)(void *context, uint64_t done, uint64_t blocks, uint64_t bytes);
};

/*
 * One run. The factors are in the result from the start, so that a model exists wherever the run
 * stops. The model is always [lambda; A(0), .., A(N-1)] with A(n) = result->factors[n]
 * diag(scale[n]) (see cp_update.c for the reason) and lambda from the mode updated last.
 */
struct cp_state {
    const struct slc_store *store;
    struct slc_stream *stream;
    struct slc_backend *backend;
    struct slc_executor *executor; /* computes MTTKRPs and updates; holds its own factors */
    const struct slc_plan *plan;
    const struct slc_cp_als_options *options;
    struct slc_cp_result *result;

    unsigned order;
    uint32_t rank;
    const uint64_t *dims;
    unsigned mode_order[SLC_MAX_ORDER];
    double norm_x;
    uint64_t start_ns;
    unsigned iteration;            /* current iteration, from 1 */
    unsigned mode;                 /* current mode, 0-based */
    bool copies;                   /* the backend holds copies per mode */
    bool copies_refused;           /* the allocation of copies failed */
    unsigned copies_due_after;     /* iterations before copies were built or refused */
    struct slc_error copies_fault; /* why the allocation failed */
    unsigned place;                /* next update, as a position in the order of modes */
    double fit;                    /* fit of the last completed iteration */

    /* For runs with checkpoints (cp_checkpoint.c). */
    char *identity;
    struct slc_cp_iteration *past; /* records of completed iterations */
    unsigned past_capacity;
    uint64_t saved_ns;     /* time of the last checkpoint, or of the start of the run */
    double saving_seconds; /* duration of the last checkpoint, measured or expected */
    double seconds_before; /* duration of the runs before the resume */
    bool unsaved;          /* updates have been made since the last checkpoint */
    bool half_updated;     /* an update is only half done, so this state cannot be resumed */
    /* Position restored from a checkpoint, until the pass of that part has begun. */
    struct slc_cp_part part;
    /* Per mode: of passes for that mode alone, and of passes for that mode and the next. */
    struct slc_pass_pace pace[SLC_MAX_ORDER][2];
    struct cp_current_pass current;
    volatile int pass_stop; /* set to end a pass that would delay a stop for too long */

    struct slc_dense *dense;
    struct slc_solver solver;
    struct slc_buffer output; /* MTTKRP results of modes that have a separate pass */
    /* Second output and backend of passes that update two modes. */
    struct slc_buffer second_output;
    struct slc_backend *second_backend;
    /* Ranges of each mode that begins a pass for two modes. */
    struct slc_row_ranges ranges[SLC_MAX_ORDER];
    bool *solved;     /* per range: true if its rows have been solved */
    unsigned pending; /* mode whose MTTKRP is in second_output; SLC_MAX_ORDER if there is none */
    uint32_t settled; /* bit n: result->second_choices[n] holds the result of the trial of mode n */
    struct slc_buffer squares;  /* memory of all matrices and vectors below */
    struct slc_holdout holdout; /* selection, if options->holdout is set */
    struct slc_held held;
    struct slc_buffer holdout_scratch; /* weights, and scratch of the workers */
    double *gram[SLC_MAX_ORDER];       /* R x R: A(n)^T A(n) */
    double *system;                    /* R x R: Hadamard product of Gram matrices */
    /* R numbers each. */
    double *scale[SLC_MAX_ORDER];
    double *norm[SLC_MAX_ORDER];    /* last divisor of A(n) */
    double *left, *right;           /* scales of the MTTKRP and of the factor being solved */
    double *largest, *column_inner; /* results of the update */
    double inner;                   /* inner product <X, M> after the update of a mode */
};

/* Allocates the memory of a run. cp_state_destroy accepts a partly created state. */
enum slc_status cp_state_create(struct cp_state *state, struct slc_error *err) SLC_NODISCARD;
void cp_state_destroy(struct cp_state *state);

/*
 * Do nothing unless options->holdout is set. The first is called before anything is computed: it
 * collects the held-out nonzeros and makes the stream skip them from then on. The second stores the
 * model's error on these nonzeros in the result.
 */
enum slc_status cp_holdout_begin(struct cp_state *state, struct slc_error *err) SLC_NODISCARD;
enum slc_status cp_holdout_measure(struct cp_state *state, struct slc_error *err) SLC_NODISCARD;
void cp_holdout_end(struct cp_state *state);

/* Creates the factors of the result, filled with zeros. */
enum slc_status cp_factors_create(struct cp_state *state, struct slc_error *err) SLC_NODISCARD;

/* Fills the factors (random or from files), lambda and the Gram matrices. */
enum slc_status cp_start(struct cp_state *state, struct slc_error *err) SLC_NODISCARD;

/* cp_factor_name sets the name of the section that holds a factor; cp_saved_write writes the
 * section that slc_cp_saved_read reads. */
void cp_factor_name(unsigned mode, char name[SLC_CHECKPOINT_NAME_BYTES]);
void cp_saved_write(struct slc_checkpoint *checkpoint, const struct slc_cp_saved *saved);

/* Writes everything that affects the result to `text` (SLC_CP_IDENTITY_BYTES bytes), as lines
 * `name=value`. */
enum slc_status
cp_identity(const struct cp_state *state, char *text, struct slc_error *err) SLC_NODISCARD;
/* Returns SLC_ERR_USAGE, naming the first difference, if the identity of a checkpoint, `theirs`,
 * differs from the identity of this run. */
enum slc_status
cp_identity_compare(const char *ours, const char *theirs, struct slc_error *err) SLC_NODISCARD;

/* Called before the starting factors are computed: resumes the checkpoint if there is one, sets
 * *resumed, and restores the state except that of devices. Does nothing without
 * options->checkpoint. */
enum slc_status
cp_resume(struct cp_state *state, bool *resumed, struct slc_error *err) SLC_NODISCARD;
/* Called after the start of the run: reserves disk space for checkpoints. */
enum slc_status cp_checkpoint_start(struct cp_state *state, struct slc_error *err) SLC_NODISCARD;
/* Called after an update: writes a checkpoint if one is due. */
enum slc_status cp_checkpoint_due(struct cp_state *state, struct slc_error *err) SLC_NODISCARD;
enum slc_status cp_checkpoint_now(struct cp_state *state, struct slc_error *err) SLC_NODISCARD;
/*
 * Called at the end of a run that may be resumed: writes a checkpoint unless this state has been
 * saved.
 */
enum slc_status cp_checkpoint_last(struct cp_state *state, struct slc_error *err) SLC_NODISCARD;
/* Records a completed iteration. */
enum slc_status cp_checkpoint_past(struct cp_state *state,
                                   const struct slc_cp_iteration *iteration,
                                   struct slc_error *err) SLC_NODISCARD;

/*
 * Called before the pass for one or two jobs that updates state->mode: fills *pass. In runs with
 * checkpoints the pass is made in parts and starts at the position of the resumed checkpoint. After
 * SLC_ERR_INTERRUPTED, current.left means that the pass can be resumed. Errors: SLC_ERR_USAGE if
 * the checkpoint was written within a different pass for two modes.
 */
enum slc_status cp_pass_begin(struct cp_state *state,
                              const struct cp_strategy *strategies,
                              unsigned count,
                              struct cp_pass *pass,
                              struct slc_error *err) SLC_NODISCARD;
/*
 * Called before the first pass of a resumed run. Errors: SLC_ERR_USAGE, as in cp_pass_begin, if the
 * plan does not have the pass in which the checkpoint was written.
 */
enum slc_status cp_part_check(const struct cp_state *state,
                              const struct slc_cp_saved *saved,
                              struct slc_error *err) SLC_NODISCARD;
/*
 * cp_part_saved returns the position of the current pass for a checkpoint. cp_part_gather collects
 * the sums of the pass; cp_part_write must be called after it and writes the sums as sections.
 */
enum { CP_PART_SECTIONS = 2 * SLC_MTTKRP_REGIONS };
struct slc_cp_part cp_part_saved(const struct cp_state *state);
enum slc_status cp_part_gather(struct cp_state *state, struct slc_error *err) SLC_NODISCARD;
void cp_part_write(const struct cp_state *state);
/* Sets upper bounds of the sizes of these sections, and returns the number of sections. */
unsigned cp_part_bytes(const struct slc_plan *plan,
                       unsigned order,
                       const uint64_t *dims,
                       uint64_t bytes[CP_PART_SECTIONS]);

/* Returns a view of an output buffer with the shape of factor `mode`. */
static inline struct slc_matrix
cp_output_view(const struct cp_state *state, const struct slc_buffer *output, unsigned mode)
{
    struct slc_matrix view = state->result->factors[mode];

    /*
     * The view has the same type, rows and pitch as the factor; the buffer holds at least as many
     * rows.
     */
    view.buffer = *output;
    return view;
}

/* Computes system = Hadamard product of all Gram matrices except `skip` (SLC_MAX_ORDER: of all). */
void cp_hadamard(struct cp_state *state, unsigned skip);

/*
 * Computes A(mode) = M V^-1 from the MTTKRP in `output`, normalized, and with it lambda, scale, the
 * Gram matrix, and the inner product of tensor and model. Sets *singular if V was singular.
 * Overwrites state->system. Errors: SLC_ERR_NUMERIC if a component is not finite.
 */
enum slc_status cp_update(struct cp_state *state,
                          unsigned mode,
                          const struct slc_buffer *output,
                          bool *singular,
                          struct slc_error *err) SLC_NODISCARD;
/*
 * cp_update in two steps. In between, state->solver solves every row with slc_dense_update_rows.
 * The second step computes the factor's sums and normalizes the factor. It also scales a pending
 * MTTKRP, which was computed from the factor as stored, by the same scales.
 */
enum slc_status cp_update_begin(struct cp_state *state,
                                unsigned mode,
                                bool *singular,
                                struct slc_error *err) SLC_NODISCARD;
enum slc_status cp_update_end(struct cp_state *state,
                              unsigned mode,
                              const struct slc_buffer *output,
                              struct slc_error *err) SLC_NODISCARD;

/*
 * Creates the state of passes that update two modes; does nothing if the plan has no such passes.
 */
enum slc_status cp_fused_create(struct cp_state *state, struct slc_error *err) SLC_NODISCARD;

/* True if one pass computes the update at `place` in the order of modes and the MTTKRP of the next
 * mode: the plan has such a pass, and there is a next update. */
bool cp_fuses(const struct cp_state *state, unsigned place);

/*
 * Makes the update at `place` by a pass for two modes; the MTTKRP of the next mode is then pending.
 * Sets *stopped if options->stop ended the pass. In that case the rows solved so far are new, the
 * others are old, and the factor is normalized. Because rows are independent of one another, the
 * model does not fit worse. Errors: those of passes and updates.
 */
enum slc_status cp_fused_update(struct cp_state *state,
                                unsigned place,
                                bool *singular,
                                bool *stopped,
                                struct slc_error *err) SLC_NODISCARD;

/* True if the run must end because of options->stop or the time limit. */
bool cp_stop_due(const struct cp_state *state);
/* True if options->stop is set. */
bool cp_stop_requested(const struct cp_state *state);
/* Progress callback of passes; its context is the state. */
void cp_report_progress(void *context, uint64_t blocks_done, uint64_t blocks, uint64_t bytes);

/* Returns a job for `mode`, with the members that all jobs of a run share. */
struct slc_mttkrp_job
cp_job(const struct cp_state *state, unsigned mode, struct slc_matrix *output);

/*
 * Computes the fit of the model after the update of a mode:
 * ||X - M||^2 = ||X||^2 + lambda^T (Hadamard of all Gram matrices) lambda - 2 <X, M>, clamped at 0.
 * Overwrites state->system. Errors: SLC_ERR_NUMERIC if a term is not finite.
 */
enum slc_status cp_fit(struct cp_state *state, double *fit, struct slc_error *err) SLC_NODISCARD;

/* Moves 2-norms into lambda, sorts the components and fixes their signs. */
enum slc_status cp_finish(struct cp_state *state, struct slc_error *err) SLC_NODISCARD;

#endif
