/* Computes one MTTKRP over a stream in three steps: the backend's job begins, the workers of a pass
 * add every tile to the job, and the job ends. If the pass fails, the job is first aborted, because
 * workers may wait inside the backend for tiles that will not arrive. Then the job is ended, so
 * that the backend is ready for another job. */
#include "engine/stream/mttkrp.h"

#include <assert.h>

enum slc_status slc_mttkrp_stream_tile(void *context,
                                       unsigned worker,
                                       struct slc_tile_view *tile,
                                       struct slc_error *err)
{
    struct slc_backend *backend = context;

    return backend->ops->mttkrp_tile(backend, worker, tile, err);
}

void slc_mttkrp_stream_abort(void *context)
{
    struct slc_backend *backend = context;

    backend->ops->mttkrp_abort(backend);
}

/* Returns a copy of `job` whose first_tile is the first tile of the block at which the pass starts
 * or resumes. */
static struct slc_mttkrp_job resumed_job(const struct slc_stream *stream,
                                         unsigned layout,
                                         const struct slc_mttkrp_job *job,
                                         const struct slc_pass_cuts *cuts)
{
    const struct slc_reader *reader = slc_stream_reader(stream, layout);
    struct slc_mttkrp_job resumed = *job;
    struct slc_block_entry entry;

    if (cuts != NULL && cuts->first < slc_reader_info(reader)->block_count) {
        slc_reader_entry(reader, slc_stream_order(stream, layout)[cuts->first], &entry);
        resumed.first_tile = entry.first_tile;
    }
    return resumed;
}

static enum slc_tile_order order_of(enum slc_conflict conflict)
{
    return conflict == SLC_CONFLICT_COLUMNS ? SLC_TILES_TO_EVERY_WORKER
           : conflict == SLC_CONFLICT_ROWS  ? SLC_TILES_BY_PARTITION
                                            : SLC_TILES_BY_SCHEDULE;
}

enum slc_status slc_mttkrp_stream(struct slc_stream *stream,
                                  unsigned layout,
                                  struct slc_backend *backend,
                                  const struct slc_mttkrp_job *job,
                                  const volatile int *stop,
                                  void (*progress)(void *, uint64_t, uint64_t, uint64_t),
                                  void *progress_context,
                                  struct slc_error *err)
{
    return slc_mttkrp_stream_parts(stream, layout, backend, job, NULL, stop, progress,
                                   progress_context, err);
}

enum slc_status slc_mttkrp_stream_parts(struct slc_stream *stream,
                                        unsigned layout,
                                        struct slc_backend *backend,
                                        const struct slc_mttkrp_job *job,
                                        const struct slc_pass_cuts *cuts,
                                        const volatile int *stop,
                                        void (*progress)(void *, uint64_t, uint64_t, uint64_t),
                                        void *progress_context,
                                        struct slc_error *err)
{
    const struct slc_mttkrp_job resumed = resumed_job(stream, layout, job, cuts);
    const uint64_t blocks = slc_reader_info(slc_stream_reader(stream, layout))->block_count;
    const struct slc_pass pass = {.layout = layout,
                                  .tiles = {.consumer = {.tile = slc_mttkrp_stream_tile,
                                                         .wake = slc_mttkrp_stream_abort,
                                                         .context = backend},
                                            .order = order_of(job->conflict)},
                                  .stop = stop,
                                  .progress = progress,
                                  .progress_context = progress_context};

    if (job->conflict == SLC_CONFLICT_REPLICA) {
        return backend->ops->mttkrp_replica(backend, job, err);
    }
    SLC_TRY(backend->ops->mttkrp_begin(backend, &resumed, err));
    enum slc_status status = slc_pass_in_parts(stream, &pass, blocks, cuts, err);
    if (status != SLC_OK) {
        /* The error of the pass is reported, so an error of mttkrp_end is ignored. */
        (void)backend->ops->mttkrp_end(backend, NULL);
        return status;
    }
    return backend->ops->mttkrp_end(backend, err);
}

/* A backend that computes the tiles of a part, and the part. */
struct part_consumer {
    struct slc_backend *backend;
    const struct slc_part *part;
};

/* Adds a tile under its number within the part, because the backend waits for all earlier tiles. */
static enum slc_status
add_part_tile(void *context, unsigned worker, struct slc_tile_view *tile, struct slc_error *err)
{
    const struct part_consumer *consumer = context;

    tile->ordinal = slc_part_ordinal(consumer->part, tile->block, tile->ordinal);
    return slc_mttkrp_stream_tile(consumer->backend, worker, tile, err);
}

static void abort_part(void *context)
{
    slc_mttkrp_stream_abort(((const struct part_consumer *)context)->backend);
}

enum slc_status slc_mttkrp_stream_part(struct slc_stream *stream,
                                       unsigned layout,
                                       struct slc_backend *backend,
                                       const struct slc_mttkrp_job *job,
                                       const struct slc_part *part,
                                       const volatile int *stop,
                                       void (*progress)(void *, uint64_t, uint64_t, uint64_t),
                                       void *progress_context,
                                       struct slc_error *err)
{
    struct part_consumer consumer = {.backend = backend, .part = part};
    struct slc_pass pass = {
        .layout = layout,
        .tiles = {.consumer = {.tile = add_part_tile, .wake = abort_part, .context = &consumer},
                  .order = order_of(job->conflict)},
        .stop = stop,
        .progress = progress,
        .progress_context = progress_context};

    assert(job->conflict == SLC_CONFLICT_ORDERED || job->conflict == SLC_CONFLICT_ROWS);
    if (part->block_count == 0) {
        return SLC_OK;
    }
    if (job->conflict == SLC_CONFLICT_ROWS) {
        pass.tiles.part =
            (struct slc_pass_part){part->blocks[0], part->blocks[0] + part->block_count};
    } else {
        pass.tiles.blocks = part->blocks;
        pass.tiles.block_count = part->block_count;
    }
    SLC_TRY(backend->ops->mttkrp_begin(backend, job, err));
    enum slc_status status = slc_stream_pass(stream, &pass, err);
    if (status != SLC_OK) {
        (void)backend->ops->mttkrp_end(backend, NULL);
        return status;
    }
    return backend->ops->mttkrp_end(backend, err);
}
