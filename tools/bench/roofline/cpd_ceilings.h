/* Measures the time that each phase of a CP-ALS iteration would take alone on the machine. The
 * measurements follow the iterations and use the same tile stream and threads. */
#ifndef SLC_TOOLS_BENCH_CPD_CEILINGS_H
#define SLC_TOOLS_BENCH_CPD_CEILINGS_H

#include "tools/session/session.h"

/* Seconds per iteration (`pass`: per pass). NAN if iterations do not have the phase. */
struct bench_cpd_ceilings {
    double read;     /* plain reads of the bytes of an iteration, loading every cache line */
    double decode;   /* the passes of an iteration, if they only decode */
    double multiply; /* a gather of the bytes of all MTTKRPs (mttkrp_model.h, device_summary.h) */
    double update;   /* a copy of the outputs of all modes to their factors */
    double pass;     /* one pass, if it only decodes */
};

/* Measures the ceilings of iterations that have, on average, `passes` passes and read `read_bytes`
 * from the drive. Needs: `session` has a stream. Errors: SLC_ERR_MEMORY, SLC_ERR_SYSTEM, those of
 * the stream. */
enum slc_status bench_cpd_ceilings_measure(const struct slc_session *session,
                                           double passes,
                                           double read_bytes,
                                           struct bench_cpd_ceilings *ceilings,
                                           struct slc_error *err) SLC_NODISCARD;

/* Stores the statistics of the devices of the session since they were opened: seconds as means over
 * the devices, counts as sums. */
void cpd_device_stats(const struct slc_session *session, struct slc_device_stats *stats);

#endif
