/* Declarations that the source files of CP decompositions share. Private to engine/solve. */
#ifndef SLC_ENGINE_SOLVE_CP_STATE_H
#define SLC_ENGINE_SOLVE_CP_STATE_H

#include "base/row_solver.h"
#include "cpu/dense/dense.h"
#include "engine/solve/cp.h"
#include "engine/solve/cp_checkpoint.h"
#include "engine/solve/held.h"
#include "engine/stream/pass_cuts.h"
#include "engine/stream/pass_pace.h"
#include "engine/stream/row_ranges.h"
#include "storage/model/run_names.h"

struct cp_method;
struct cp_rows;
struct slc_row_passes;

/* Conflict strategies of an MTTKRP. */
struct cp_strategy {
    enum slc_conflict conflict, rival;
};

/* The current pass of a run with checkpoints. */
struct cp_current_pass {
    struct slc_pass_cuts cuts;
    unsigned jobs;
    bool fused; /* true if the pass is for two modes */
    /* the passes of a method that updates rows from their nonzeros; otherwise NULL */
    const struct slc_row_passes *rows;
    struct slc_backend *backend[2];
    struct cp_strategy strategy[2];
    const struct slc_reader *reader;
    const uint64_t *order; /* order of the pass's blocks */
    struct slc_pass_pace *pace;
    uint64_t bytes_left;          /* bytes of the blocks after the current part */
    uint64_t part_bytes, part_ns; /* bytes and start time of the current part */
    /* Blocks of the current part; positions in a pass that updates rows from their nonzeros. */
    uint64_t first_block, end_block;
    uint64_t position; /* between two parts: number of blocks or ranges done; otherwise 0 */
    bool left;         /* true if a stop ended the pass at this position */
    struct slc_mttkrp_state sums[2];
};

/* Arguments of a pass. */
struct cp_pass {
    const struct slc_pass_cuts *cuts; /* NULL: the pass is not divided */
    const volatile int *stop;
    /* Its context is the struct cp_state. */
    void (*progress)(void *context, uint64_t done, uint64_t blocks, uint64_t bytes);
};

/* Correspondence of the rows of starting factors in a folder with the rows of the tensor, which may
 * have grown since (cp_init.c). */
struct cp_init {
    uint64_t rows[SLC_MAX_ORDER]; /* rows of each file */
    struct slc_run_names names;   /* open names of the modes whose rows correspond by name */
    bool differs;                 /* true if a mode has new rows, or corresponds by name */
};

/* State of one run. The factors are in the result from the start, so that a model exists whenever
 * the run stops. The model is [lambda; A(0), .., A(N-1)] with A(n) = result->factors[n]
 * diag(scale[n]) (cp_update.c explains why) and lambda from the last update. */
struct cp_state {
    const struct slc_store *store;
    struct slc_stream *stream;
    struct slc_backend *backend;
    struct slc_executor *executor; /* computes MTTKRPs and updates; may hold its own factors */
    const struct slc_plan *plan;
    const struct slc_cp_options *options; /* points to `choices` */
    struct slc_cp_options choices;        /* copy of the options of the caller */
    const struct cp_method *method;       /* cp_method.h */
    struct cp_rows *nonzeros; /* for methods that update rows from their nonzeros; else NULL */
    struct slc_cp_result *result;

    unsigned order;
    uint32_t rank;
    const uint64_t *dims;
    unsigned mode_order[SLC_MAX_ORDER];
    double norm_x;
    uint64_t start_ns;
    struct cp_init init;
    unsigned iteration;            /* current iteration, from 1 */
    unsigned mode;                 /* current mode, 0-based */
    bool copies;                   /* true if the backend holds copies per mode */
    bool copies_refused;           /* true if copies could not be allocated */
    unsigned copies_due_after;     /* number of iterations before copies were made or refused */
    struct slc_error copies_fault; /* the reason why copies were refused */
    unsigned place;                /* position of the next update in mode_order */
    double fit;                    /* fit of the last completed iteration */
    /* Changes of the fit (cp_fit_changed): the last change; how many consecutive changes, up to the
     * last, were small; and how many were larger than the change before them. */
    double last_change;
    unsigned small_changes, growing_changes;

    /* For runs with checkpoints (cp_checkpoint.c). */
    char *identity;
    struct slc_cp_iteration *past; /* records of completed iterations */
    unsigned past_capacity;
    unsigned past_count;   /* records from the checkpoint */
    uint64_t saved_ns;     /* time of the last checkpoint, or of the start of the run */
    double saving_seconds; /* duration of the last checkpoint, measured or expected */
    double seconds_before; /* time of the earlier runs of a resumed run */
    bool unsaved;          /* true if updates have been made since the last checkpoint */
    bool half_updated; /* true if an update is incomplete, so that no checkpoint can be written */
    /* Position from the checkpoint, until the pass with this position has begun. */
    struct slc_cp_part part;
    /* Per mode: pace of passes for this mode alone [0], and for this mode and the next [1]. */
    struct slc_pass_pace pace[SLC_MAX_ORDER][2];
    struct cp_current_pass current;
    volatile int pass_stop; /* set to end a pass that would delay a stop too long */

    struct slc_dense *dense;
    struct slc_solver solver;
    /* Methods with constraints (cp_constraint.c): the solver of rows; solver.rows is NULL or points
     * to it. Columns are not normalized if plain_units is set: lambda is 1, and the norms stay in
     * the factors. */
    struct slc_row_solver rows;
    bool plain_units;
    struct slc_buffer smooth; /* scratch of modes with a smoothness penalty */
    double residual_squared;  /* set by the last cp_fit */
    struct slc_buffer output; /* MTTKRP, or first MTTKRP of a pass for two modes */
    /* Second output and backend of passes that update two modes. */
    struct slc_buffer second_output;
    struct slc_backend *second_backend;
    /* Ranges of rows of each mode that begins a pass for two modes. */
    struct slc_row_ranges ranges[SLC_MAX_ORDER];
    bool *solved;     /* per range: true if its rows have been solved */
    unsigned pending; /* mode whose MTTKRP is in second_output; SLC_MAX_ORDER if there is none */
    uint32_t settled; /* bit n: result->second_choices[n] holds the result of the trial of mode n */
    struct slc_buffer squares;  /* memory of all matrices and vectors below */
    struct slc_holdout holdout; /* selects nonzeros, if options->holdout is not 0 */
    struct slc_held held;
    /* for the held-out error: weights, and scratch of all workers */
    struct slc_buffer holdout_scratch;
    double *gram[SLC_MAX_ORDER]; /* R x R: A(n)^T A(n) */
    double *system;              /* R x R: Hadamard product of Gram matrices */
    /* Vectors of R numbers. */
    double *scale[SLC_MAX_ORDER];
    double *norm[SLC_MAX_ORDER]; /* norms by which A(n) was last divided */
    double *left, *right; /* scales that the solver applies to the MTTKRP and to the solution */
    double *start;        /* scales of the row solver's start (struct slc_solver) */
    double *largest, *column_inner; /* sums of the last update (struct slc_update_sums) */
    double inner;                   /* inner product <X, M> after the last update */
};

/* Allocates the memory of a run that all methods share, and the memory of the method.
 * cp_state_destroy accepts a partly created state. */
enum slc_status cp_state_create(struct cp_state *state, struct slc_error *err) SLC_NODISCARD;
void cp_state_destroy(struct cp_state *state);
/* Allocates the memory of methods that update a factor from its MTTKRP. */
enum slc_status cp_mttkrp_create(struct cp_state *state, struct slc_error *err) SLC_NODISCARD;
void cp_mttkrp_destroy(struct cp_state *state);

/* Do nothing if options->holdout is 0. cp_holdout_begin collects the held-out nonzeros and makes
 * the stream deliver them as 0 in all later passes. cp_holdout_measure stores the model's error on
 * these nonzeros in the result. */
enum slc_status cp_holdout_begin(struct cp_state *state, struct slc_error *err) SLC_NODISCARD;
enum slc_status cp_holdout_measure(struct cp_state *state, struct slc_error *err) SLC_NODISCARD;
/* Makes the stream deliver the held-out nonzeros as 0 again. */
void cp_holdout_apply(struct cp_state *state);
void cp_holdout_end(struct cp_state *state);

/* Creates the factors of the result, filled with zeros. */
enum slc_status cp_factors_create(struct cp_state *state, struct slc_error *err) SLC_NODISCARD;

/* Do nothing if options->init_folder is NULL. cp_init_find, called before cp_resume, finds out how
 * the rows of the starting factors correspond to the rows of the tensor. cp_init_read reads them
 * into the factors of the result. */
enum slc_status cp_init_find(struct cp_state *state, struct slc_error *err) SLC_NODISCARD;
enum slc_status cp_init_read(struct cp_state *state, struct slc_error *err) SLC_NODISCARD;

/* Computes or reads the starting factors, and sets lambda and the Gram matrices. */
enum slc_status cp_start(struct cp_state *state, struct slc_error *err) SLC_NODISCARD;

/* cp_factor_name sets `name` to the name of a factor's section. cp_saved_write writes the section
 * `state`, which slc_cp_saved_read reads. */
void cp_factor_name(unsigned mode, char name[SLC_CHECKPOINT_NAME_BYTES]);
void cp_saved_write(struct slc_checkpoint *checkpoint, const struct slc_cp_saved *saved);

/* Fills `text` (SLC_CP_IDENTITY_BYTES bytes) with lines `name=value` for everything that affects
 * the result. */
enum slc_status
cp_identity(const struct cp_state *state, char *text, struct slc_error *err) SLC_NODISCARD;
/* Returns SLC_ERR_USAGE if the identity of a checkpoint, `theirs`, differs from the identity of
 * this run, `ours`. The message names the first difference. */
enum slc_status
cp_identity_compare(const char *ours, const char *theirs, struct slc_error *err) SLC_NODISCARD;

/* Called before the starting factors are computed. If options->checkpoint has a checkpoint,
 * restores the state, except the memory of devices, and sets *resumed. */
enum slc_status
cp_resume(struct cp_state *state, bool *resumed, struct slc_error *err) SLC_NODISCARD;
/* Called when the run has started. Reserves disk space for checkpoints. */
enum slc_status cp_checkpoint_start(struct cp_state *state, struct slc_error *err) SLC_NODISCARD;
/* cp_checkpoint_due, called after an update or a part of a pass, writes a checkpoint if the
 * interval since the last one has passed. cp_checkpoint_now always writes a checkpoint. */
enum slc_status cp_checkpoint_due(struct cp_state *state, struct slc_error *err) SLC_NODISCARD;
enum slc_status cp_checkpoint_now(struct cp_state *state, struct slc_error *err) SLC_NODISCARD;
/* Called at the end of a run. If the run was stopped, writes a checkpoint, unless the current state
 * is already saved. */
enum slc_status cp_checkpoint_last(struct cp_state *state, struct slc_error *err) SLC_NODISCARD;
/* Adds a completed iteration to the records for the section `past`. */
enum slc_status cp_checkpoint_past(struct cp_state *state,
                                   const struct slc_cp_iteration *iteration,
                                   struct slc_error *err) SLC_NODISCARD;

/* Called before a pass that updates state->mode, with one strategy, or with two strategies if the
 * pass is for two modes. Fills *pass. In runs with checkpoints the pass is made in parts, and a
 * resumed pass starts at the position of the checkpoint. If the pass then returns
 * SLC_ERR_INTERRUPTED, current.left states whether it can be resumed. Errors: SLC_ERR_USAGE if the
 * checkpoint was written within a pass for two modes that this run would make differently. */
enum slc_status cp_pass_begin(struct cp_state *state,
                              const struct cp_strategy *strategies,
                              unsigned count,
                              struct cp_pass *pass,
                              struct slc_error *err) SLC_NODISCARD;
/* Does the same for a pass that updates the rows of state->mode from their nonzeros. Errors:
 * SLC_ERR_USAGE if a deterministic run would divide the rows differently than the run that wrote
 * the checkpoint within this pass. Any other run begins the pass again: rows that were updated
 * already are updated once more. */
enum slc_status cp_row_pass_begin(struct cp_state *state,
                                  const struct slc_row_passes *rows,
                                  struct cp_pass *pass,
                                  struct slc_error *err) SLC_NODISCARD;
/* Called before the first pass of a resumed run. Errors: SLC_ERR_USAGE if the checkpoint was
 * written within a pass for two modes that the plan does not have. */
enum slc_status cp_part_check(const struct cp_state *state,
                              const struct slc_cp_saved *saved,
                              struct slc_error *err) SLC_NODISCARD;
/* cp_part_saved returns the position in the current pass for a checkpoint. cp_part_gather collects
 * the partial sums of the pass. cp_part_write, called after cp_part_gather, writes these sums as
 * sections. */
enum { CP_PART_SECTIONS = 2 * SLC_MTTKRP_REGIONS };
struct slc_cp_part cp_part_saved(const struct cp_state *state);
enum slc_status cp_part_gather(struct cp_state *state, struct slc_error *err) SLC_NODISCARD;
void cp_part_write(const struct cp_state *state);
/* Sets bytes[] to upper bounds for the sizes of the sections that cp_part_write writes, and returns
 * the number of sections. */
unsigned cp_part_bytes(const struct slc_plan *plan,
                       unsigned order,
                       const uint64_t *dims,
                       uint64_t bytes[CP_PART_SECTIONS]);

/* Write a matrix to the current section of a checkpoint, and read it from the section `name`. */
void cp_matrix_write(struct slc_checkpoint *checkpoint, const struct slc_matrix *matrix);
enum slc_status cp_matrix_read(struct slc_checkpoint_reader *reader,
                               const char *name,
                               const struct slc_matrix *matrix,
                               struct slc_error *err) SLC_NODISCARD;

/* Returns a view of an output buffer with the shape of factor `mode`. */
static inline struct slc_matrix
cp_output_view(const struct cp_state *state, const struct slc_buffer *output, unsigned mode)
{
    struct slc_matrix view = state->result->factors[mode];

    /* The view has the type, rows and pitch of the factor. The buffer has space for all these
     * rows. */
    view.buffer = *output;
    return view;
}

/* Sets state->system to the Hadamard product of all Gram matrices except that of mode `skip`
 * (SLC_MAX_ORDER: of all Gram matrices). */
void cp_hadamard(struct cp_state *state, unsigned skip);

/* cp_keeps_units returns true if the columns of a mode are not normalized at the end of the run, so
 * that their constraint holds in the final model. cp_constraint_begin is called before the rows of
 * a mode are solved, if state->solver.rows is set: starts the row solver and sets the scales of its
 * start. */
bool cp_keeps_units(const struct cp_state *state, unsigned mode);
enum slc_status
cp_constraint_begin(struct cp_state *state, unsigned mode, struct slc_error *err) SLC_NODISCARD;

/* Does the work of cp_update between cp_update_begin and the sums, for a mode with a smoothness
 * penalty. */
enum slc_status cp_smooth_update(struct cp_state *state,
                                 unsigned mode,
                                 const struct slc_matrix *mttkrp,
                                 struct slc_error *err) SLC_NODISCARD;

/* Computes A(mode) = M V^-1 from the MTTKRP M in `output`, and normalizes it. Also computes lambda,
 * scale, the Gram matrix, and the inner product of tensor and model. Sets *singular to true if V is
 * singular. Overwrites state->system. Errors: SLC_ERR_NUMERIC if a component is not finite. */
enum slc_status cp_update(struct cp_state *state,
                          unsigned mode,
                          const struct slc_buffer *output,
                          bool *singular,
                          struct slc_error *err) SLC_NODISCARD;
/* cp_update in two steps. Between cp_update_begin and cp_update_end, the caller solves every row
 * with state->solver (slc_dense_update_rows). cp_update_end computes the factor's sums and
 * normalizes the factor. If it scales stored columns, it also scales the columns of a pending
 * MTTKRP, which was computed from the stored factor. */
enum slc_status cp_update_begin(struct cp_state *state,
                                unsigned mode,
                                bool *singular,
                                struct slc_error *err) SLC_NODISCARD;
enum slc_status cp_update_end(struct cp_state *state,
                              unsigned mode,
                              const struct slc_buffer *output,
                              struct slc_error *err) SLC_NODISCARD;

/* Allocates the state for passes that update two modes. Does nothing if the plan has no such
 * passes. */
enum slc_status cp_fused_create(struct cp_state *state, struct slc_error *err) SLC_NODISCARD;

/* Returns true if the pass for the update at position `place` also computes the MTTKRP of the next
 * mode: the plan has this pass, and another update follows. */
bool cp_fuses(const struct cp_state *state, unsigned place);

/* Makes the update at position `place` with a pass for two modes. Afterwards the MTTKRP of the next
 * mode is pending. Sets *stopped if a stop ended the pass. In this case only some rows are updated,
 * and the factor is normalized. The fit of the model is not worse than before, because the rows of
 * a factor are independent of each other. Errors: those of passes and updates. */
enum slc_status cp_fused_update(struct cp_state *state,
                                unsigned place,
                                bool *singular,
                                bool *stopped,
                                struct slc_error *err) SLC_NODISCARD;

/* Returns true if the run must end because of options->stop or the time limit. */
bool cp_stop_due(const struct cp_state *state);
/* Returns true if options->stop is set. */
bool cp_stop_requested(const struct cp_state *state);
/* Progress callback of passes; its context is the state. */
void cp_report_progress(void *context, uint64_t blocks_done, uint64_t blocks, uint64_t bytes);

/* Returns a job for `mode`. Only the members that are equal in all jobs of a run, and the output,
 * are set. */
struct slc_mttkrp_job
cp_job(const struct cp_state *state, unsigned mode, struct slc_matrix *output);

/* Computes the fit of the model after the update of a mode: ||X - M||^2 = ||X||^2 + lambda^T
 * (Hadamard product of all Gram matrices) lambda - 2 <X, M>, at least 0. Overwrites state->system.
 * Errors: SLC_ERR_NUMERIC if a term is not finite. */
enum slc_status cp_fit(struct cp_state *state, double *fit, struct slc_error *err) SLC_NODISCARD;

/* Records the change of the fit by a completed iteration; called for the iterations in order, also
 * for those before the checkpoint of a resumed run. cp_fit_settled then returns true if the run
 * must stop by the tolerance. cp_fit_rises returns true if further iterations may raise the fit:
 * the fit rose in the last iteration, and either this rise was not small or each of the last two
 * changes was larger than the change before it. */
void cp_fit_changed(struct cp_state *state, unsigned iteration, double fit, double delta);
bool cp_fit_settled(const struct cp_state *state);
bool cp_fit_rises(const struct cp_state *state);

/* Moves 2-norms into lambda, sorts the components, fixes their signs, and diagnoses the model. */
enum slc_status cp_finish(struct cp_state *state, struct slc_error *err) SLC_NODISCARD;

/* Fills result->diagnosis of the final model. Overwrites the Gram matrices. */
enum slc_status cp_diagnose(struct cp_state *state, struct slc_error *err) SLC_NODISCARD;

#endif
