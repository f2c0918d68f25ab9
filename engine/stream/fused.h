/* Two MTTKRPs in one pass over a stream: the second from what was made of the first. */
#ifndef SLC_ENGINE_FUSED_H
#define SLC_ENGINE_FUSED_H

#include "base/backend.h"
#include "engine/stream/pass_cuts.h"
#include "engine/stream/stream.h"

struct slc_fused_jobs {
    /*
     * Two devices, for one holds one job. `first_job` is of the mode of `ranges`, with
     * SLC_CONFLICT_ROWS and as many partitions as there are ranges; `second_job` is of another mode
     * and may have any strategy but SLC_CONFLICT_COLUMNS and OWNED.
     */
    struct slc_backend *first, *second;
    const struct slc_mttkrp_job *first_job, *second_job;
    const struct slc_row_ranges *ranges;
    /*
     * Called by the worker that has all nonzeros of a range, when the range's rows of the first
     * output are complete: makes the factor's rows of them that the second job reads.
     */
    slc_turn_fn *turn;
    void *context; /* of the turn */
    /*
     * NULL: the pass is one part. What has to be there when it goes on besides the state of both
     * jobs are the factor's rows of the ranges before: `turn` is called for the others alone.
     */
    const struct slc_pass_cuts *cuts;
};

/*
 * Runs both jobs over the stream's layout `layout`, which the ranges are of, in one pass.
 * Order: the first output has the same bits for any number of workers; those of the second are as
 * its strategy says, where the schedule is that of the file for ORDERED.
 * Errors: those of slc_mttkrp_stream (engine/stream/mttkrp.h) and of `turn`; both outputs are then
 * undefined, and `turn` has been called for some of the ranges.
 */
enum slc_status slc_fused_stream(struct slc_stream *stream,
                                 unsigned layout,
                                 const struct slc_fused_jobs *jobs,
                                 const volatile int *stop,
                                 void (*progress)(void *, uint64_t, uint64_t, uint64_t),
                                 void *progress_context,
                                 struct slc_error *err) SLC_NODISCARD;

#endif
