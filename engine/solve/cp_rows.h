/* State and functions of methods that update rows from their nonzeros: passes in parts, the survey
 * of the values, and sections of a checkpoint. Private to engine/solve. */
#ifndef SLC_ENGINE_SOLVE_CP_ROWS_H
#define SLC_ENGINE_SOLVE_CP_ROWS_H

#include "base/row_solver.h"
#include "cpu/row/row.h"
#include "engine/solve/cp_method.h"
#include "engine/solve/survey.h"
#include "engine/stream/rows/row_pass.h"

/* State of a method that updates rows from their nonzeros. */
struct cp_rows {
    struct slc_row_passes *passes;
    struct slc_row_solver *solver; /* owned by the method */
    struct slc_survey survey;      /* survey of the nonzeros that are not held out */
    struct slc_buffer vectors;     /* memory of the vectors below */
    double *weights;               /* R weights that the rows of the updated mode include */
    double *totals;                /* R numbers, all 1 */
    /* Completion: ridge and fixed columns of each mode, R elements. */
    double *ridge[SLC_MAX_ORDER];
    unsigned char *fixed[SLC_MAX_ORDER];
    struct slc_buffer flags[SLC_MAX_ORDER]; /* mu: inadmissible zeros (cpu/row/row.h) */
    /* true during an update, while the rows include the weights */
    bool absorbed;
    struct slc_row_pass pass; /* the current or last pass */
    /* Statistics of the current iteration. */
    double violation; /* largest KKT violation in the modes that have been updated */
    uint64_t rows, traversals;
    double objective; /* objective after the last iteration */
    /* Stopping rule (cp_complete.c): consecutive iterations without a better held-out error. */
    unsigned worse;
    /* The best model by the held-out error, if nonzeros are held out. */
    bool keeps_best;
    double best_fit, best_objective;
    struct slc_matrix best[SLC_MAX_ORDER];
    unsigned best_iteration; /* number of its iteration; 0: there is no best model yet */
    double best_error;
};

/* Returns the row solver for loss, unlisted cells and algorithm, which must not be SLC_CP_AUTO. */
enum slc_row_method cp_rows_method(const struct slc_cp_options *options);

/* Allocates the vectors. cp_rows_destroy accepts a partly created state. */
enum slc_status cp_rows_create(struct cp_state *state, struct slc_error *err) SLC_NODISCARD;
void cp_rows_destroy(struct cp_state *state);
/* Surveys the values for the loss, and opens the passes. */
enum slc_status
cp_rows_open(struct cp_state *state, enum slc_loss loss, struct slc_error *err) SLC_NODISCARD;

/* Fails if the starting factors have negative numbers. */
enum slc_status cp_rows_check_start(const struct cp_state *state,
                                    struct slc_error *err) SLC_NODISCARD;

/* Updates the rows of state->mode in one pass, which begins at the position of the checkpoint if
 * the run resumes there. `objective`: also computes the objective (rows->pass.measures). Sets
 * *stopped if a stop ended the pass; then only some rows are updated. */
enum slc_status cp_rows_pass(struct cp_state *state,
                             bool objective,
                             bool *stopped,
                             struct slc_error *err) SLC_NODISCARD;

/* Sets the members of the report that these methods share, and resets the statistics for the next
 * iteration. */
void cp_rows_report(struct cp_state *state, struct slc_cp_iteration *report);

/* Operations of struct cp_method. */
void cp_rows_identify(const struct cp_state *state, struct cp_identity *identity);
void cp_rows_save(const struct cp_state *state, struct slc_checkpoint *checkpoint);
enum slc_status cp_rows_restore(struct cp_state *state,
                                struct slc_checkpoint_reader *reader,
                                struct slc_error *err) SLC_NODISCARD;

#endif
