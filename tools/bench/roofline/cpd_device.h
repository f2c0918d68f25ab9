/* What a GPU did during iterations of CP-ALS, and what it could have done at best. */
#ifndef SLC_TOOLS_BENCH_CPD_DEVICE_H
#define SLC_TOOLS_BENCH_CPD_DEVICE_H

#include "tools/bench/roofline/cpd_ceilings.h"

/* Whether the session computes on a GPU, or several. */
bool cpd_device_used(const struct slc_session *session);

/* What it has done since it was opened; times and bytes of several are means. */
void cpd_device_stats(const struct slc_session *session, struct slc_device_stats *stats);

/*
 * Measures for iterations of one GPU that is open: rows at random places, as many as MTTKRPs of all
 * modes touch (`multiply`), and a copy of all outputs to the factors (`update`). NAN: there is not
 * enough memory left on the device, or there are several. Errors: SLC_ERR_SYSTEM.
 */
enum slc_status cpd_device_ceilings_measure(const struct slc_session *session,
                                            struct bench_cpd_ceilings *ceilings,
                                            struct slc_error *err) SLC_NODISCARD;

#endif
