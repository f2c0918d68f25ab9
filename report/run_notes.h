/* Notes about the result of a run that a person should read before using it: one sentence per fact.
 * run.json, the page and the command show the same notes. */
#ifndef SLC_REPORT_RUN_NOTES_H
#define SLC_REPORT_RUN_NOTES_H

#include "engine/solve/cp_als.h"

#include <jansson.h>

enum { SLC_RUN_NOTES = 4, SLC_RUN_NOTE_BYTES = 320 };

/* What a note is about, so that a program can add its own names of options. */
enum slc_run_note_kind {
    SLC_NOTE_CANCELLING, /* two components nearly cancel */
    SLC_NOTE_COLLINEAR,  /* components are nearly dependent */
    SLC_NOTE_RISING,     /* the run stopped although the fit may still rise */
    SLC_NOTE_HOLDOUT     /* the held-out error is not below that of zeros */
};

struct slc_run_note {
    enum slc_run_note_kind kind;
    char text[SLC_RUN_NOTE_BYTES]; /* a sentence without full stop */
};

/* Writes the notes about a result and returns their number. */
unsigned slc_run_notes(const struct slc_cp_result *result,
                       struct slc_run_note notes[SLC_RUN_NOTES]);

/* Returns the member "diagnosis" of run.json: the numbers of the diagnosis and the texts of the
 * notes; null for a run without iterations. */
json_t *slc_run_diagnosis_json(const struct slc_cp_result *result);

/* Returns the largest condition number of the factors; NAN if there is none. */
double slc_run_condition(const struct slc_cp_result *result);

#endif
