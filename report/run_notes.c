#include "report/run_notes.h"

#include "report/json_parts.h"
#include "storage/manifest/json_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* Two components with a congruence below this nearly cancel each other. */
static const double congruence_least = -0.95;
/* With a larger condition number, a column is almost a combination of the other columns. */
static const double condition_most = 1e3;

static bool cancels(const struct slc_cp_diagnosis *diagnosis)
{
    return diagnosis->congruence < congruence_least;
}

/* Returns the mode with the largest condition number. */
static unsigned most_collinear(const struct slc_cp_result *result)
{
    unsigned most = 0;

    for (unsigned n = 1; n < result->order; n++) {
        most = result->diagnosis.condition[n] > result->diagnosis.condition[most] ? n : most;
    }
    return most;
}

double slc_run_condition(const struct slc_cp_result *result)
{
    const double most = result->diagnosis.condition[most_collinear(result)];

    return most > 0.0 ? most : NAN;
}

static double zero_rmse(const struct slc_cp_result *result)
{
    return result->heldout_norm / sqrt((double)result->heldout);
}

static bool no_better_than_zeros(const struct slc_cp_result *result)
{
    return result->heldout > 0 && !(result->heldout_rmse < zero_rmse(result));
}

unsigned slc_run_notes(const struct slc_cp_result *result, struct slc_run_note notes[SLC_RUN_NOTES])
{
    const struct slc_cp_diagnosis *diagnosis = &result->diagnosis;
    const unsigned mode = most_collinear(result);
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
    if (diagnosis->condition[mode] > condition_most) {
        notes[count].kind = SLC_NOTE_COLLINEAR;
        (void)snprintf(notes[count++].text, SLC_RUN_NOTE_BYTES,
                       "the columns of mode %u are nearly collinear (condition number %.1e): try "
                       "fewer components or a regularization",
                       mode + 1, diagnosis->condition[mode]);
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
    slc_json_set(object, "cancelling",
                 cancels(diagnosis) ? json_pack("[I, I]", (json_int_t)diagnosis->cancelling[0] + 1,
                                                (json_int_t)diagnosis->cancelling[1] + 1)
                                    : json_null());
    slc_json_set(object, "condition", conditions);
    slc_json_set(object, "fit_rising", json_boolean(diagnosis->rising));
    slc_json_set(object, "heldout_no_better_than_zeros",
                 json_boolean(no_better_than_zeros(result)));
    slc_json_set(object, "notes", texts);
    return object;
}
