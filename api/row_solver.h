/* Presents a public row solver as an internal row solver. */
#ifndef SLC_API_ROW_SOLVER_H
#define SLC_API_ROW_SOLVER_H

#include "base/row_solver.h"
#include "sluice/row_solver.h"

/* A public solver and its internal form, whose context is this struct. */
struct api_row_solver {
    struct sluice_row_solver given;
    uint32_t rank; /* rank of the current mode */
    struct slc_row_solver solver;
};

/* Copies the options of a solver and makes its internal form; `wrapped` must not move afterwards.
 * Errors: SLC_ERR_USAGE for a missing name or function, those of API_READ_OPTIONS. */
enum slc_status api_row_solver_wrap(struct api_row_solver *wrapped,
                                    const struct sluice_row_solver *given,
                                    struct slc_error *err) SLC_NODISCARD;

#endif
