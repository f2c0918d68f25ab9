/*
 * What a decomposition, or one MTTKRP, will have taken when it is through, judged by its beginning:
 * peak memory, bytes read and time. `sluice plan` and --dry-run make a beginning for that
 * (probe.h); a run judges by its own, and compares at its end.
 */
#ifndef SLC_TOOLS_ESTIMATE_H
#define SLC_TOOLS_ESTIMATE_H

#include "engine/plan/plan.h"
#include "engine/solve/cp_als.h"
#include "engine/stream/stream.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* Of all that was asked for. */
struct estimate {
    unsigned iterations;      /* so many; 1 of an MTTKRP */
    uint64_t memory_bytes;    /* peak of the process */
    uint64_t most_bytes;      /* what the plan has it hold at most */
    uint64_t read_bytes;      /* from the drive */
    double seconds;           /* of everything but the writing of results */
    double iteration_seconds; /* of one iteration, on average */
    double start_seconds;     /* before the first */
    double
        read_rate;   /* bytes a second, where the drive was waited for, or at least; 0: none read */
    double nnz_rate; /* a second, all passes of the beginning together */
    double wait_share;     /* of the time of passes, for want of data */
    bool reading;          /* is the bottleneck; else computing */
    double judged_after;   /* seconds of the beginning; 0: nothing was begun, so there is no time */
    double enough_seconds; /* for a beginning, where there was none */
    double least_seconds;  /* which the drive alone takes; 0: not known, or less than the time */
};

/* What is known of a beginning. */
struct estimator {
    const struct slc_plan *plan;
    uint64_t nnz;
    uint64_t start_ns;
    double first_seconds;   /* when the first block came */
    unsigned completed;     /* iterations, .. */
    double completed_after; /* .. the last of them after so many seconds */
    double all_seconds, first_iteration, recent_seconds;
    unsigned recent; /* iterations that `recent_seconds` are of */
    bool copied;     /* copies per mode serve */
    unsigned mode;   /* that is computed, and the passes of this iteration before it */
    double passes, share;
    double early_after,
        early_passes; /* when, and with how many passes, the first moments were over */
    /* Of estimator_mark. */
    double marked_after;
    uint64_t peak_bytes;
    struct slc_stream_stats stats;
};

/* Before anything is opened for the operation; the plan is borrowed and may come later. */
void estimator_start(struct estimator *estimator);
/* What a pass and an iteration tell. */
void estimator_blocks(struct estimator *estimator, unsigned mode, uint64_t done, uint64_t blocks);
void estimator_iteration(struct estimator *estimator, const struct slc_cp_iteration *iteration);

double estimator_seconds(const struct estimator *estimator);

/* Here the beginning ends: what is known now is judged by. Between passes. */
void estimator_mark(struct estimator *estimator, const struct slc_stream_stats *stats);

/* The estimate for `iterations`; a beginning without a single block gives no time (below 0). */
void estimator_estimate(const struct estimator *estimator,
                        unsigned iterations,
                        struct estimate *estimate);

/* What is held at most, by the plan alone, without copies per mode that come later: of its margins,
 * what they turn out to be. */
uint64_t estimate_memory(const struct slc_plan *plan);

/* "Estimate" with its lines, and the member of that name. */
void estimate_print(const struct estimate *estimate);
json_t *estimate_json(const struct estimate *estimate);

/* What happened. */
struct estimate_actual {
    uint64_t memory_bytes, read_bytes;
    double seconds;
};
/* Both side by side, on standard output and as JSON. */
void estimate_compare(const struct estimate *estimate, const struct estimate_actual *actual);
json_t *estimate_compare_json(const struct estimate *estimate,
                              const struct estimate_actual *actual);

#endif
