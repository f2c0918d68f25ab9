/* The report of a run on standard output, in SPLATT's shape (docs/man/sluice-cpd.1). */
#ifndef SLC_TOOLS_REPORT_H
#define SLC_TOOLS_REPORT_H

#include "engine/plan/plan.h"
#include "engine/solve/cp_als.h"
#include "engine/stream/stream.h"
#include "storage/manifest/store.h"

#include <stdbool.h>
#include <stdint.h>

/* What was read in one iteration (or the one pass of an MTTKRP), for the share of the drive. */
struct report_reads {
    uint64_t iterations;
    double lowest_share; /* of the bytes of its passes, over all iterations */
};
void report_reads_add(struct report_reads *reads, const struct slc_plan *plan, uint64_t bytes_read);

/* "Tensor information". */
void report_tensor(const struct slc_store *store);

/* "Factoring": the options that decide the result. */
void report_factoring(const struct slc_plan *plan,
                      unsigned order,
                      const struct slc_cp_als_options *options);
/* What computes; where `no_accelerator` is a fault, also why nothing else does. */
void report_device(const struct slc_plan *plan, const struct slc_error *no_gpu);
/* Why no pass updates two modes, where that is so and a reason can be told. */
void report_not_fused(const struct slc_plan *plan);

/* A part of memory, unless it has no bytes; and the plan's, one a line. */
void report_part(const char *name, uint64_t bytes, const char *what);
void report_plan(const struct slc_plan *plan, unsigned order);

/* What copies per mode would take that the budget has no room for; nothing where that is not so. */
void report_copies_missed(const struct slc_plan *plan);

/* How a mode's strategy was chosen; nothing where there was no choice. */
void report_conflict(unsigned mode, bool second, const struct slc_conflict_choice *choice);

/*
 * One line per iteration, and one per mode with `verbose`; in the first iteration also how their
 * strategies were chosen. Where copies per mode take over, one line that says so and one per mode
 * of how its copy is sorted; a line where they are given up.
 */
void report_iteration(const struct slc_cp_iteration *iteration, unsigned order, bool verbose);

/* "Final fit" and why it stopped. */
void report_fit(const struct slc_cp_result *result);

/*
 * "Timing information"; `times` is NULL for an MTTKRP, `write_seconds` below 0 where nothing was.
 * The total is with `seconds_before` of the runs that this one goes on from.
 */
void report_times(const struct slc_cp_result *result,
                  double total_seconds,
                  double seconds_before,
                  double write_seconds,
                  const struct slc_stream_stats *stats,
                  unsigned threads);

/* Bytes read and their share of each pass, peak memory against the budget. */
void report_resources(const struct slc_plan *plan,
                      const struct slc_stream_stats *stats,
                      const struct report_reads *reads);

#endif
