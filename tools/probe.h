/*
 * The beginning of an operation, for an estimate: it is run as planned, on random factors, until it
 * is through or a second or two have passed. Nothing is written.
 */
#ifndef SLC_TOOLS_PROBE_H
#define SLC_TOOLS_PROBE_H

#include "estimate.h"
#include "session.h"

/*
 * Of the operation that `session` has planned; starts and stops it. `iterations`: at most, of a
 * CP-ALS. Errors: those of the operation; SLC_ERR_BUDGET where this machine has less memory than
 * the plan would hold; SLC_ERR_UNSUPPORTED for an MTTKRP on devices, which is not begun;
 * SLC_ERR_INTERRUPTED.
 */
enum slc_status probe_run(struct session *session,
                          unsigned iterations,
                          struct estimate *estimate,
                          struct slc_error *err) SLC_NODISCARD;

#endif
