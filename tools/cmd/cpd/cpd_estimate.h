/* The estimate of one `sluice cpd`: of a dry run by a probe, of a run by its own beginning. */
#ifndef SLC_TOOLS_CPD_ESTIMATE_H
#define SLC_TOOLS_CPD_ESTIMATE_H

#include "tools/forecast/estimate.h"
#include "tools/session/session.h"

struct cpd_estimate {
    struct estimator estimator; /* told until `judged` */
    bool judged;
    bool estimated; /* what follows is known */
    struct estimate estimate;
    struct estimate_actual actual;
};

void cpd_estimate_start(struct cpd_estimate *of);
/* What the solver calls. */
void cpd_estimate_blocks(struct cpd_estimate *of, unsigned mode, uint64_t done, uint64_t blocks);
void cpd_estimate_iteration(struct cpd_estimate *of,
                            const struct slc_stream *stream,
                            const struct slc_cp_iteration *iteration);

/* What that comes to for so many iterations, and what they took. Not for a run that went on from
 * another, or followed one in the same process. */
void cpd_estimate_end(struct cpd_estimate *of,
                      const struct slc_session *session,
                      unsigned iterations);

/* Begins what is planned and prints the estimate; a note where none can be had. Errors: those of
 * probe_run that are more than that. */
enum slc_status cpd_estimate_dry_run(struct cpd_estimate *of,
                                     struct slc_session *session,
                                     unsigned iterations,
                                     double seconds,
                                     struct slc_error *err) SLC_NODISCARD;

#endif
