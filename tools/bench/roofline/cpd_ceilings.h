/*
 * What the phases of a CP-ALS iteration would take if each had the machine to itself, measured
 * after the iterations, with the stream and the threads that they had.
 */
#ifndef SLC_TOOLS_BENCH_CPD_CEILINGS_H
#define SLC_TOOLS_BENCH_CPD_CEILINGS_H

#include "tools/session/session.h"

/* Seconds; NAN where the iterations had nothing of the kind. */
struct bench_cpd_ceilings {
    double read;     /* plain reads of what an iteration reads, looked at as they arrive */
    double decode;   /* its passes, decoding and nothing else */
    double multiply; /* a gather of as many bytes as its MTTKRPs move by the model */
    double update;   /* a copy of the outputs of all modes to their factors */
    double pass;     /* decoding of one pass */
};

/*
 * Measures them for iterations of `passes` passes that read `read_bytes` from the drive, on
 * average. `session` has a stream. Errors: SLC_ERR_MEMORY, SLC_ERR_SYSTEM, those of the stream.
 */
enum slc_status bench_cpd_ceilings_measure(const struct slc_session *session,
                                           double passes,
                                           double read_bytes,
                                           struct bench_cpd_ceilings *ceilings,
                                           struct slc_error *err) SLC_NODISCARD;

/* What it has done since it was opened; times and bytes of several are means. */
void cpd_device_stats(const struct slc_session *session, struct slc_device_stats *stats);

#endif
