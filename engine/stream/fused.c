#include "engine/stream/fused.h"

#include <assert.h>

static enum slc_status
add_first(void *context, unsigned worker, struct slc_tile_view *tile, struct slc_error *err)
{
    const struct slc_fused_jobs *jobs = context;

    return jobs->first->ops->mttkrp_tile(jobs->first, worker, tile, err);
}

static enum slc_status
add_second(void *context, unsigned worker, struct slc_tile_view *tile, struct slc_error *err)
{
    const struct slc_fused_jobs *jobs = context;

    return jobs->second->ops->mttkrp_tile(jobs->second, worker, tile, err);
}

static enum slc_status
finish_range(void *context, unsigned worker, uint64_t number, struct slc_error *err)
{
    const struct slc_fused_jobs *jobs = context;
    const struct slc_row_range *range = &jobs->ranges->ranges[number];

    jobs->first->ops->mttkrp_rows(jobs->first, range->first_row, range->end_row);
    return jobs->range_done(jobs->context, worker, number, err);
}

static void abort_jobs(void *context)
{
    const struct slc_fused_jobs *jobs = context;

    jobs->first->ops->mttkrp_abort(jobs->first);
    jobs->second->ops->mttkrp_abort(jobs->second);
}

/* Returns a copy of the second job whose first_tile is the first tile of the range at which the
 * pass starts or resumes. */
static struct slc_mttkrp_job
resumed_second(const struct slc_stream *stream, unsigned layout, const struct slc_fused_jobs *jobs)
{
    struct slc_mttkrp_job resumed = *jobs->second_job;
    struct slc_block_entry entry;

    if (jobs->cuts != NULL && jobs->cuts->first < jobs->ranges->count) {
        slc_reader_entry(slc_stream_reader(stream, layout),
                         jobs->ranges->ranges[jobs->cuts->first].first_block, &entry);
        resumed.first_tile = entry.first_tile;
    }
    return resumed;
}

enum slc_status slc_fused_stream(struct slc_stream *stream,
                                 unsigned layout,
                                 const struct slc_fused_jobs *jobs,
                                 const volatile int *stop,
                                 void (*progress)(void *, uint64_t, uint64_t, uint64_t),
                                 void *progress_context,
                                 struct slc_error *err)
{
    const struct slc_mttkrp_job second = resumed_second(stream, layout, jobs);
    struct slc_fused_jobs copy = *jobs;
    const struct slc_pass pass = {
        .kind = SLC_PASS_RANGES,
        .layout = layout,
        .ranges = {.consumer = {.tile = add_first, .wake = abort_jobs, .context = &copy},
                   .ranges = jobs->ranges,
                   .range_done = finish_range,
                   .again = add_second},
        .stop = stop,
        .progress = progress,
        .progress_context = progress_context};

    assert(jobs->second_job->conflict != SLC_CONFLICT_COLUMNS &&
           jobs->second_job->conflict != SLC_CONFLICT_REPLICA);
    SLC_TRY(jobs->first->ops->mttkrp_begin(jobs->first, jobs->first_job, err));
    enum slc_status status = jobs->second->ops->mttkrp_begin(jobs->second, &second, err);
    SLC_THEN(status, slc_pass_in_parts(stream, &pass, jobs->ranges->count, jobs->cuts, err));
    if (status != SLC_OK) {
        /* The error of the pass is reported, so errors of mttkrp_end are ignored. The second job
         * may not have begun. */
        (void)jobs->first->ops->mttkrp_end(jobs->first, NULL);
        (void)jobs->second->ops->mttkrp_end(jobs->second, NULL);
        return status;
    }
    status = jobs->first->ops->mttkrp_end(jobs->first, err);
    if (status != SLC_OK) {
        (void)jobs->second->ops->mttkrp_end(jobs->second, NULL);
        return status;
    }
    return jobs->second->ops->mttkrp_end(jobs->second, err);
}
