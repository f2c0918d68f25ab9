/*
 * The time that each phase of a CP-ALS iteration would take if it had the machine to itself.
 * Measured after the iterations, with the same stream and threads.
 */
#ifndef SLC_TOOLS_BENCH_CPD_CEILINGS_H
#define SLC_TOOLS_BENCH_CPD_CEILINGS_H

#include "tools/session/session.h"

/* Seconds; NAN if the iterations have no such phase. */
struct bench_cpd_ceilings {
    double read;     /* plain reads of an iteration's bytes, loading every cache line */
    double decode;   /* the passes of an iteration, decoding only */
    double multiply; /* a gather of the model bytes of the iteration's MTTKRPs */
    double update;   /* a copy of the outputs of all modes to their factors */
    double pass;     /* decoding of one pass */
};

/*
 * Measures the ceilings of iterations that have, on average, `passes` passes and read `read_bytes`
 * from the drive. Needs: `session` has a stream. Errors: SLC_ERR_MEMORY, SLC_ERR_SYSTEM, those of
 * the stream.
 */
enum slc_status bench_cpd_ceilings_measure(const struct slc_session *session,
                                           double passes,
                                           double read_bytes,
                                           struct bench_cpd_ceilings *ceilings,
                                           struct slc_error *err) SLC_NODISCARD;

/* Returns statistics of the session's devices since they were opened; with several devices,
 * means. */
void cpd_device_stats(const struct slc_session *session, struct slc_device_stats *stats);

#endif
