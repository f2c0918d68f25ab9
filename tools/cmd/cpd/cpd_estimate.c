#include "tools/cmd/cpd/cpd_run.h"

#include "base/memory/memory.h"
#include "tools/forecast/probe.h"

/* Maximum duration of the measurements in seconds, because users expect an early estimate. */
#define ESTIMATE_SECONDS 1.5
enum { ESTIMATE_ITERATIONS = 5 };

void cpd_estimate_start(struct cpd_estimate *of)
{
    *of = (struct cpd_estimate){.complete = false};
    estimator_start(&of->estimator);
}

void cpd_estimate_blocks(struct cpd_estimate *of, unsigned mode, uint64_t done, uint64_t blocks)
{
    if (!of->complete) {
        estimator_blocks(&of->estimator, mode, done, blocks);
    }
}

void cpd_estimate_iteration(struct cpd_estimate *of,
                            const struct slc_stream *stream,
                            const struct slc_cp_iteration *iteration)
{
    struct slc_stream_stats stats;

    if (of->complete) {
        return;
    }
    slc_stream_stats(stream, &stats);
    estimator_iteration(&of->estimator, iteration);
    estimator_mark(&of->estimator, &stats);
    of->complete = of->estimator.marked_after >= ESTIMATE_SECONDS ||
                   of->estimator.completed >= ESTIMATE_ITERATIONS;
}

void cpd_estimate_end(struct cpd_estimate *of,
                      const struct slc_session *session,
                      unsigned iterations)
{
    struct slc_stream_stats stats;

    if (of->estimator.completed == 0) {
        return;
    }
    slc_stream_stats(session->stream, &stats);
    of->estimator.plan = &session->plan;
    of->estimator.nnz = session->store.manifest.nnz;
    estimator_estimate(&of->estimator, iterations, &of->estimate);
    of->actual = (struct estimate_actual){.memory_bytes = slc_memory_peak(),
                                          .read_bytes = stats.bytes_read,
                                          .seconds = estimator_seconds(&of->estimator)};
    of->estimated = true;
}

enum slc_status cpd_estimate_dry_run(struct cpd_estimate *of,
                                     struct slc_session *session,
                                     const struct slc_cp_options *solver,
                                     double seconds,
                                     struct slc_error *err)
{
    const enum slc_status status =
        probe_run(session, solver, solver->iterations, seconds, &of->estimated, &of->estimate, err);

    if (of->estimated) {
        estimate_print(&of->estimate);
    }
    return status;
}
