/* Computes two MTTKRPs in one pass over a stream. The second MTTKRP uses factor rows that are
 * computed from the first. */
#ifndef SLC_ENGINE_FUSED_H
#define SLC_ENGINE_FUSED_H

#include "base/backend.h"
#include "engine/stream/pass_cuts.h"
#include "engine/stream/stream.h"

struct slc_fused_jobs {
    /* There are two backends, because a backend has one job at a time. `first_job` is for the mode
     * of `ranges`, with SLC_CONFLICT_ROWS and one partition per range. `second_job` is for a
     * different mode, with any strategy except SLC_CONFLICT_COLUMNS and SLC_CONFLICT_REPLICA. */
    struct slc_backend *first, *second;
    const struct slc_mttkrp_job *first_job, *second_job;
    const struct slc_row_ranges *ranges;
    /* Called by a worker when it has multiplied all nonzeros of a range, so that the range's rows
     * of the first output are complete. Must compute the factor rows that the second job reads. */
    slc_range_done_fn *range_done;
    void *context; /* context of `range_done` */
    /* Divides the pass into parts; NULL: the pass is not divided. Before a pass is resumed, the
     * state of both jobs and the factor rows of the earlier ranges must be restored, because
     * `range_done` is called only for the remaining ranges. */
    const struct slc_pass_cuts *cuts;
};

/* Runs both jobs in one pass over number `layout` of the stream's layouts, from which the ranges
 * were made. Order: the first output has the same bits for any number of workers; the bits of the
 * second output depend on its strategy (SLC_CONFLICT_ORDERED needs SLC_SCHEDULE_FILE). Errors:
 * those of slc_mttkrp_stream (engine/stream/mttkrp.h) and of `range_done`; both outputs are then
 * undefined, and `range_done` has been called for only some ranges. */
enum slc_status slc_fused_stream(struct slc_stream *stream,
                                 unsigned layout,
                                 const struct slc_fused_jobs *jobs,
                                 const volatile int *stop,
                                 void (*progress)(void *, uint64_t, uint64_t, uint64_t),
                                 void *progress_context,
                                 struct slc_error *err) SLC_NODISCARD;

#endif
