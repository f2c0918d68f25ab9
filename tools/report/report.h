/* Prints the report of a run on standard output, in the format of SPLATT
 * (docs/man/sluice-cpd.1). */
#ifndef SLC_TOOLS_REPORT_H
#define SLC_TOOLS_REPORT_H

#include "engine/plan/plan.h"
#include "engine/solve/cp.h"
#include "engine/stream/stream.h"
#include "storage/manifest/store.h"

#include <stdbool.h>
#include <stdint.h>

/* Data of the line "share", collected per iteration (or in the single pass of an MTTKRP). */
struct report_reads {
    uint64_t iterations;
    /* fraction of an iteration's bytes that was read from the drive, in the iteration with the
     * smallest fraction */
    double lowest_share;
};
void report_reads_add(struct report_reads *reads, const struct slc_plan *plan, uint64_t bytes_read);

/* Prints "Tensor information". */
void report_tensor(const struct slc_store *store);

/* Prints "Factoring": the options that affect the result. */
void report_factoring(const struct slc_plan *plan,
                      unsigned order,
                      const struct slc_cp_options *options);
/* Prints which device computes. If `no_gpu` is an error, also prints why no GPU is used. */
void report_device(const struct slc_plan *plan, const struct slc_error *no_gpu);
/* Prints why no pass updates two modes, if the reason is worth reporting. */
void report_not_fused(const struct slc_plan *plan);

/* report_part prints a part of the memory, unless it has no bytes; report_plan prints all parts of
 * the plan, one per line. */
void report_part(const char *name, uint64_t bytes, const char *what);
void report_plan(const struct slc_plan *plan, unsigned order);

/* Prints the memory that replicas need, if the budget is too small for them. */
void report_copies_missed(const struct slc_plan *plan);

/* Prints how the strategy of a mode was chosen. Prints nothing if there was no choice. */
void report_conflict(unsigned mode, bool second, const struct slc_conflict_choice *choice);

/* Prints the line of an iteration. With `verbose` also prints a line per mode and, in the first
 * iteration, how strategies were chosen. When replicas are first used, prints a line per mode with
 * the form of the replica. Prints a line if replicas are abandoned. */
void report_iteration(const struct slc_cp_iteration *iteration, unsigned order, bool verbose);

/* Prints "Final fit" and the reason for stopping. */
void report_fit(const struct slc_cp_result *result);

/* Prints a note if the values of the store look like ratings; `unknown`: the run treats cells that
 * are not listed as unknown, not as zeros. */
void report_ratings(const struct slc_manifest *manifest, bool unknown);

/* Prints "Timing information". `times` is NULL for an MTTKRP; `write_seconds` is below 0 if nothing
 * was written. The total includes `seconds_before`, the time before the run was resumed. */
void report_times(const struct slc_cp_result *result,
                  double total_seconds,
                  double seconds_before,
                  double write_seconds,
                  const struct slc_stream_stats *stats,
                  unsigned threads);

/* Prints the bytes read, peak memory, the budget, and the fraction of an iteration's bytes that was
 * read from the drive, for the iteration with the smallest fraction. */
void report_resources(const struct slc_plan *plan,
                      const struct slc_stream_stats *stats,
                      const struct report_reads *reads);

#endif
