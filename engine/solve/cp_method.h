/* Methods of a CP decomposition: the steps in which they differ. The loop over iterations and modes
 * (cp.c), checkpoints and results are common to all methods. Private to engine/solve. */
#ifndef SLC_ENGINE_SOLVE_CP_METHOD_H
#define SLC_ENGINE_SOLVE_CP_METHOD_H

#include "engine/solve/cp_state.h"

struct cp_identity; /* cp_identity.c */

/* A member may be NULL only if its comment states this; the loop then omits this step. */
struct cp_method {
    /* Checks options and plan, before anything is allocated. May be NULL. */
    enum slc_status (*check)(const struct cp_state *state, struct slc_error *err);
    /* Allocates the memory of the method, after the memory that all methods share. destroy accepts
     * a partly created state. Both may be NULL. */
    enum slc_status (*create)(struct cp_state *state, struct slc_error *err);
    void (*destroy)(struct cp_state *state);
    /* Called when the starting factors have been computed or a checkpoint has been restored, before
     * the executor loads the factors. May be NULL. */
    enum slc_status (*begin)(struct cp_state *state, bool resumed, struct slc_error *err);

    /* Makes the update at position `place` in the order of modes, with all passes that it needs.
     * Sets *singular as in struct slc_cp_iteration. Sets *stopped if a stop ended a pass and the
     * update is incomplete; the result then still holds a complete model. */
    enum slc_status (*update)(struct cp_state *state,
                              unsigned place,
                              bool *singular,
                              bool *stopped,
                              struct slc_error *err);
    /* Computes the objective of the current model, in the method's own terms, and stores it in the
     * result. If `report` is not NULL, an iteration has been completed, and the report receives the
     * objective and its change. */
    enum slc_status (*measure)(struct cp_state *state,
                               struct slc_cp_iteration *report,
                               struct slc_error *err);
    /* Records a completed iteration for the stopping rule. Called for the iterations in order, also
     * for those before the checkpoint of a resumed run. */
    void (*record)(struct cp_state *state, const struct slc_cp_iteration *report);
    /* Returns true if the run must end because the stopping rule is met. */
    bool (*settled)(const struct cp_state *state);
    /* Gives the final model columns of 2-norm 1, descending weights and rows in the order of the
     * input. */
    enum slc_status (*finish)(struct cp_state *state, struct slc_error *err);

    /* Appends the lines of the identity that only this method has. May be NULL. */
    void (*identify)(const struct cp_state *state, struct cp_identity *identity);
    /* Write and read the sections of a checkpoint that only this method has. May be NULL. */
    void (*save)(const struct cp_state *state, struct slc_checkpoint *checkpoint);
    enum slc_status (*restore)(struct cp_state *state,
                               struct slc_checkpoint_reader *reader,
                               struct slc_error *err);
};

extern const struct cp_method cp_method_als, cp_method_constraint;
/* The row solver of these methods depends on the algorithm (cp_rows_method). */
extern const struct cp_method cp_method_poisson, cp_method_complete;

/* Returns true if the held-out error of a completion has not improved for some iterations. */
bool cp_complete_overfits(const struct cp_state *state);

/* Replaces SLC_CP_AUTO in the options of the run, and sets state->method. Errors: those of
 * slc_cp_choose_method. */
enum slc_status cp_method_choose(struct cp_state *state, struct slc_error *err) SLC_NODISCARD;

/* Steps of methods that update a factor from its MTTKRP (cp_als.c). */
enum slc_status cp_mttkrp_update(struct cp_state *state,
                                 unsigned place,
                                 bool *singular,
                                 bool *stopped,
                                 struct slc_error *err) SLC_NODISCARD;
enum slc_status cp_mttkrp_measure(struct cp_state *state,
                                  struct slc_cp_iteration *report,
                                  struct slc_error *err) SLC_NODISCARD;
void cp_mttkrp_record(struct cp_state *state, const struct slc_cp_iteration *report);

/* Appends a number to an identity, with a decimal point in every locale. */
void cp_identity_number(struct cp_identity *identity, double number);

/* Appends formatted text to an identity. */
void cp_identity_append(struct cp_identity *identity, const char *format, ...) SLC_PRINTF(2, 3);

/* Returns true if the checkpoint that is resumed was written within a pass that had updated some
 * rows of a factor, so that this pass must be completed before the run can end. */
static inline bool cp_rows_due(const struct cp_state *state)
{
    return state->part.position != 0 && state->part.fused;
}

#endif
