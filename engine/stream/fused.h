/* Two MTTKRPs in one pass over a stream. The second MTTKRP uses results computed from the first. */
#ifndef SLC_ENGINE_FUSED_H
#define SLC_ENGINE_FUSED_H

#include "base/backend.h"
#include "engine/stream/pass_cuts.h"
#include "engine/stream/stream.h"

struct slc_fused_jobs {
    /*
     * Two backends, because each holds one job. `first_job` computes the mode of `ranges`, with
     * SLC_CONFLICT_ROWS and as many partitions as there are ranges; `second_job` computes another
     * mode with any strategy except SLC_CONFLICT_COLUMNS and SLC_CONFLICT_REPLICA.
     */
    struct slc_backend *first, *second;
    const struct slc_mttkrp_job *first_job, *second_job;
    const struct slc_row_ranges *ranges;
    /* Called by the worker that has computed all nonzeros of a range, when the rows of the range in
     * the first output are complete. Computes the factor rows that the second job reads. */
    slc_range_done_fn *range_done;
    void *context; /* context of `range_done` */
    /* NULL: the pass is one part. A resumed pass needs the state of both jobs and the factor rows
     * of the earlier ranges, because `range_done` is called only for the remaining ranges. */
    const struct slc_pass_cuts *cuts;
};

/*
 * Runs both jobs in one pass over the stream's layout `layout`, from which the ranges were made.
 * Order: the first output has the same bits for any number of workers; the bits of the second
 * output depend on its strategy (ORDERED needs the schedule in file order). Errors: those of
 * slc_mttkrp_stream (engine/stream/mttkrp.h) and of `range_done`; both outputs are then undefined,
 * and `range_done` has been called for some of the ranges.
 */
enum slc_status slc_fused_stream(struct slc_stream *stream,
                                 unsigned layout,
                                 const struct slc_fused_jobs *jobs,
                                 const volatile int *stop,
                                 void (*progress)(void *, uint64_t, uint64_t, uint64_t),
                                 void *progress_context,
                                 struct slc_error *err) SLC_NODISCARD;

#endif
