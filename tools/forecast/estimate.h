/* Estimates peak memory, bytes read and time of a decomposition or an MTTKRP from its first
 * iterations. `sluice plan` and --dry-run make a trial run for the estimate (probe.h). A run makes
 * its own estimate and, at its end, compares the estimate with the actual values. */
#ifndef SLC_TOOLS_ESTIMATE_H
#define SLC_TOOLS_ESTIMATE_H

#include "engine/plan/plan.h"
#include "engine/solve/cp.h"
#include "engine/stream/stream.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* Totals for the whole operation. */
struct estimate {
    unsigned iterations;      /* number of iterations; 1 for an MTTKRP */
    uint64_t memory_bytes;    /* peak memory of the process */
    uint64_t most_bytes;      /* upper limit from the plan */
    uint64_t read_bytes;      /* bytes read from the drive */
    double seconds;           /* time without writing results */
    double iteration_seconds; /* mean time of an iteration */
    double start_seconds;     /* time before the first iteration */
    double
        read_rate;   /* bytes per second of the drive, a lower bound unless `reading`; 0: unknown */
    double nnz_rate; /* nonzeros per second, over all passes of the trial run */
    double wait_share;    /* fraction of the passes spent waiting for data */
    bool reading;         /* true: reading is the bottleneck; false: computing */
    double trial_seconds; /* seconds of the trial run; 0: none, so the time is unknown */
    /* value of --probe-seconds that would suffice, if there was no trial run */
    double enough_seconds;
    /* if the first blocks take too long for a trial run: seconds to read read_bytes at the measured
     * rate of the drive; otherwise 0 */
    double least_seconds;
};

/* Measurements of a trial run. */
struct estimator {
    const struct slc_plan *plan;
    uint64_t nnz;
    uint64_t start_ns;
    double first_seconds;   /* start of the first iteration */
    unsigned completed;     /* number of completed iterations */
    double completed_after; /* time when the last completed iteration ended */
    double all_seconds, first_iteration, recent_seconds;
    unsigned recent; /* number of iterations in `recent_seconds` */
    bool copied;     /* replicas are in use */
    /* current mode; completed passes of this iteration; progress of the current pass, 0 to 1 */
    unsigned mode;
    double passes, share;
    double early_after, early_passes; /* time and passes at the end of EARLY_SECONDS */
    /* Set by estimator_mark. */
    double marked_after;
    uint64_t peak_bytes;
    struct slc_stream_stats stats;
};

/* Starts the clock. Call before anything is opened for the operation. The plan is borrowed and may
 * be set later. */
void estimator_start(struct estimator *estimator);
/* estimator_blocks records the progress of a pass, estimator_iteration a complete iteration. */
void estimator_blocks(struct estimator *estimator, unsigned mode, uint64_t done, uint64_t blocks);
void estimator_iteration(struct estimator *estimator, const struct slc_cp_iteration *iteration);

double estimator_seconds(const struct estimator *estimator);

/* Ends the measurements: estimates use the values measured until this call. Call between passes. */
void estimator_mark(struct estimator *estimator, const struct slc_stream_stats *stats);

/* Computes the estimate for `iterations`. If no block is complete, the time is unknown (below
 * 0). */
void estimator_estimate(const struct estimator *estimator,
                        unsigned iterations,
                        struct estimate *estimate);

/* Returns the expected peak memory according to the plan, without replicas that are made later.
 * Typical values replace the margins of the plan. */
uint64_t estimate_memory(const struct slc_plan *plan);

/* estimate_print prints the heading "Estimate" and the lines of the estimate. estimate_json returns
 * the estimate as JSON. */
void estimate_print(const struct estimate *estimate);
json_t *estimate_json(const struct estimate *estimate);

/* Actual values of a run. */
struct estimate_actual {
    uint64_t memory_bytes, read_bytes;
    double seconds;
};
/* Prints estimate and actual values on standard output, or returns them as JSON. */
void estimate_compare(const struct estimate *estimate, const struct estimate_actual *actual);
json_t *estimate_compare_json(const struct estimate *estimate,
                              const struct estimate_actual *actual);

#endif
