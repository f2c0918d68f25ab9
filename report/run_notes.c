#include "report/run_notes.h"

#include "report/json_parts.h"
#include "storage/manifest/json_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* Two components with a congruence below this nearly cancel each other. */
static const double congruence_least = -0.95;
/* Two components with a congruence above this are nearly the same. */
static const double congruence_most = 0.95;
/* With a larger condition number, a component is almost a combination of the other components. */
static const double condition_most = 1e3;

static bool cancels(const struct slc_cp_diagnosis *diagnosis)
{
    return diagnosis->congruence < congruence_least;
}

static bool has_equals(const struct slc_cp_diagnosis *diagnosis)
{
    return diagnosis->largest_congruence > congruence_most;
}

double slc_run_condition(const struct slc_cp_result *result)
{
    double most = 0.0;

    for (unsigned n = 0; n < result->order; n++) {
        most = fmax(most, result->diagnosis.condition[n]);
    }
    return most > 0.0 ? most : NAN;
}

static double zero_rmse(const struct slc_cp_result *result)
{
    return result->heldout_norm / sqrt((double)result->heldout);
}

static bool no_better_than_zeros(const struct slc_cp_result *result)
{
    return result->heldout > 0 && result->unlisted == SLC_UNLISTED_ZERO &&
           !(result->heldout_rmse < zero_rmse(result));
}

unsigned slc_run_notes(const struct slc_cp_result *result, struct slc_run_note notes[SLC_RUN_NOTES])
{
    const struct slc_cp_diagnosis *diagnosis = &result->diagnosis;
    unsigned count = 0;

    if (result->iterations == 0) {
        return 0;
    }
    if (cancels(diagnosis)) {
        notes[count].kind = SLC_NOTE_CANCELLING;
        (void)snprintf(
            notes[count++].text, SLC_RUN_NOTE_BYTES,
            "components %" PRIu32 " and %" PRIu32
            " nearly cancel each other (congruence %.3f), so neither has a meaning of its "
            "own: try a regularization, fewer components or the logarithms of the values",
            diagnosis->cancelling[0] + 1, diagnosis->cancelling[1] + 1, diagnosis->congruence);
    }
    if (has_equals(diagnosis)) {
        notes[count].kind = SLC_NOTE_COLLINEAR;
        (void)snprintf(notes[count++].text, SLC_RUN_NOTE_BYTES,
                       "components %" PRIu32 " and %" PRIu32
                       " are nearly collinear (congruence %.3f), so one of them may be "
                       "superfluous: try fewer components or a regularization",
                       diagnosis->collinear[0] + 1, diagnosis->collinear[1] + 1,
                       diagnosis->largest_congruence);
    } else if (!cancels(diagnosis) && diagnosis->joint_condition > condition_most) {
        notes[count].kind = SLC_NOTE_COLLINEAR;
        (void)snprintf(notes[count++].text, SLC_RUN_NOTE_BYTES,
                       "the components are nearly collinear (condition number %.1e): try fewer "
                       "components or a regularization",
                       diagnosis->joint_condition);
    }
    if (diagnosis->rising &&
        (result->reason == SLC_STOP_TOLERANCE || result->reason == SLC_STOP_ITERATIONS)) {
        notes[count].kind = SLC_NOTE_RISING;
        (void)snprintf(notes[count++].text, SLC_RUN_NOTE_BYTES,
                       "stopped while the fit may still be rising: try more iterations%s",
                       result->reason == SLC_STOP_TOLERANCE ? " and a smaller tolerance" : "");
    }
    if (no_better_than_zeros(result)) {
        notes[count].kind = SLC_NOTE_HOLDOUT;
        (void)snprintf(
            notes[count++].text, SLC_RUN_NOTE_BYTES,
            "the held-out error is no better than that of all zeros (RMSE %.6g and %.6g): "
            "cells that are not listed count as zeros, which is wrong for ratings",
            result->heldout_rmse, zero_rmse(result));
    }
    return count;
}

/* Returns the numbers of two components, counted from 1, or null if `named` is false. */
static json_t *pair_json(bool named, const uint32_t pair[2])
{
    return named ? json_pack("[I, I]", (json_int_t)pair[0] + 1, (json_int_t)pair[1] + 1)
                 : json_null();
}

json_t *slc_run_diagnosis_json(const struct slc_cp_result *result)
{
    const struct slc_cp_diagnosis *diagnosis = &result->diagnosis;
    struct slc_run_note notes[SLC_RUN_NOTES];
    const unsigned count = slc_run_notes(result, notes);
    json_t *object, *conditions, *texts;

    if (result->iterations == 0) {
        return json_null();
    }
    object = json_object();
    conditions = json_array();
    texts = json_array();
    for (unsigned n = 0; n < result->order; n++) {
        (void)json_array_append_new(conditions, diagnosis->condition[n] > 0.0
                                                    ? json_real(diagnosis->condition[n])
                                                    : json_null());
    }
    for (unsigned i = 0; i < count; i++) {
        (void)json_array_append_new(texts, slc_json_string(notes[i].text));
    }
    slc_json_set_real(object, "smallest_congruence", diagnosis->congruence);
    slc_json_set(object, "cancelling", pair_json(cancels(diagnosis), diagnosis->cancelling));
    slc_json_set_real(object, "largest_congruence", diagnosis->largest_congruence);
    slc_json_set(object, "collinear", pair_json(has_equals(diagnosis), diagnosis->collinear));
    slc_json_set(object, "condition", conditions);
    slc_json_set_real(object, "joint_condition", diagnosis->joint_condition);
    slc_json_set(object, "fit_rising", json_boolean(diagnosis->rising));
    slc_json_set(object, "heldout_no_better_than_zeros",
                 json_boolean(no_better_than_zeros(result)));
    slc_json_set(object, "notes", texts);
    return object;
}
