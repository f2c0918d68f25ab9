/* Algorithms of CP decompositions, and the constraints and penalties that they apply. */
#ifndef SLC_ENGINE_SOLVE_CP_TERMS_H
#define SLC_ENGINE_SOLVE_CP_TERMS_H

#include "base/error/error.h"
#include "cpu/row/row_terms.h"

/* SLC_CP_AUTO selects admm if a mode has rows on the simplex or a smoothness penalty, als if there
 * are no constraints and no penalties other than the ridge, and otherwise hals. admm fits all
 * constraints and penalties, hals all except simplex and smoothness. */
enum slc_cp_algorithm {
    SLC_CP_AUTO,
    SLC_CP_ALS,
    SLC_CP_HALS,
    SLC_CP_ADMM,
    /* Algorithms that update rows from their nonzeros (slc_cp_choose_method of cp.h). SLC_CP_ALS
     * also does so if unlisted cells are unknown. */
    SLC_CP_MU,
    SLC_CP_PDNR,
    SLC_CP_CCD,
    SLC_CP_NEWTON,
    SLC_CP_GIVEN /* the row solver of the caller; no name selects it */
};
const char *slc_cp_algorithm_name(enum slc_cp_algorithm algorithm);  /* "auto", "als", .. */
const char *slc_cp_algorithm_title(enum slc_cp_algorithm algorithm); /* "CP-ALS", .. */
bool slc_cp_algorithm_parse(const char *name, enum slc_cp_algorithm *algorithm);

/* Replaces SLC_CP_AUTO in *algorithm with the algorithm that a run uses for the terms of `order`
 * modes. Errors: SLC_ERR_USAGE if a term is invalid, if terms contradict each other, or if the
 * algorithm does not fit the terms; the message names the algorithms that fit. */
enum slc_status slc_cp_choose(const struct slc_row_terms *terms,
                              unsigned order,
                              enum slc_cp_algorithm *algorithm,
                              struct slc_error *err) SLC_NODISCARD;

/* Writes the terms, except the ridge, as text, such as "nonnegative; l1 0.1". Equal terms have
 * equal texts; the text is empty if there are no terms. */
enum { SLC_CP_TERMS_BYTES = 2048 };
void slc_cp_terms_text(const struct slc_row_terms *terms,
                       unsigned order,
                       char text[SLC_CP_TERMS_BYTES]);

#endif
