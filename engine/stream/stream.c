/* Opens streams, makes passes, and keeps statistics; stream_impl.h lists the other source files.
 *
 * A pass runs one reader thread and a team of workers, which share the ring. All memory except that
 * of threads is allocated when the stream is opened. The ring keeps the first error of a pass.
 * After an error all threads leave the pass, the reader waits for reads in flight, and the stream
 * is ready for another pass.
 *
 * The plan determines which blocks are cached (slc_plan_caches). A block is cached in the first
 * pass that reads it, when its checksum has been verified, even if the pass fails later. */
#include "engine/stream/stream_impl.h"

#include "base/error/clock.h"
#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "base/thread/team.h"
#include "base/thread/thread.h"
#include "base/topology/placement.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A block and its sort key in the schedule: the number of nonzeros of the block or of its
 * partition. */
struct sized_block {
    uint64_t nnz;
    uint64_t block;
};

static int larger_first(const void *a, const void *b)
{
    const struct sized_block *x = a;
    const struct sized_block *y = b;

    if (x->nnz != y->nnz) {
        return x->nnz > y->nnz ? -1 : 1;
    }
    return x->block < y->block ? -1 : x->block > y->block;
}

/* Fills the layout's order of blocks: file order if `in_order`, otherwise largest first. */
static enum slc_status
make_order(struct slc_stream_layout *layout, bool in_order, struct slc_error *err)
{
    const uint64_t count = layout->info->block_count;

    for (uint64_t b = 0; b < count; b++) {
        layout->order[b] = b;
    }
    if (in_order) {
        return SLC_OK;
    }
    struct sized_block *sorted = slc_calloc(count, sizeof *sorted);
    SLC_TRY(slc_check_memory(sorted != NULL, err, "to order %" PRIu64 " blocks", count));
    for (uint64_t b = 0; b < count; b++) {
        struct slc_block_entry entry;

        slc_reader_entry(layout->reader, b, &entry);
        sorted[b] = (struct sized_block){entry.nnz, b};
        if (layout->info->partition_count > 0) {
            struct slc_partition partition;

            slc_reader_partition(layout->reader, entry.partition, &partition);
            sorted[b].nnz = partition.nnz;
        }
    }
    qsort(sorted, count, sizeof *sorted, larger_first);
    for (uint64_t b = 0; b < count; b++) {
        layout->order[b] = sorted[b].block;
    }
    slc_free(sorted);
    return SLC_OK;
}

/* Assigns a position in the cache, from *used on, to every block of the layout that the plan
 * caches, and marks the blocks that will be resident in device memory. */
static enum slc_status place_blocks(struct slc_stream_layout *layout,
                                    const struct slc_plan_layout *plan,
                                    uint64_t *used,
                                    struct slc_error *err)
{
    const uint64_t count = plan->listed != NULL ? plan->listed_count : layout->info->block_count;
    const uint64_t before = *used;

    for (uint64_t i = 0; i < count; i++) {
        const uint64_t b = plan->listed != NULL ? plan->listed[i] : i;
        struct slc_block_entry entry;

        if (slc_plan_keeps(plan->resident_blocks, count, i)) {
            layout->cached[b] = SLC_CACHE_RESIDENT_WANTED;
        } else if (slc_plan_caches(plan, count, i)) {
            slc_reader_entry(layout->reader, b, &entry);
            layout->cached[b] = SLC_CACHE_WANTED;
            layout->cache_offset[b] = *used;
            *used += entry.padded_bytes;
        }
    }
    if (*used - before != plan->cache_bytes) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "the plan caches %" PRIu64 " blocks, which need %" PRIu64
                        " bytes, in a cache of %" PRIu64 " bytes",
                        plan->cached_blocks, *used - before, plan->cache_bytes);
    }
    return SLC_OK;
}

static enum slc_status make_layout(struct slc_stream *stream,
                                   unsigned index,
                                   const struct slc_reader *reader,
                                   struct slc_error *err)
{
    struct slc_stream_layout *layout = &stream->layouts[index];

    layout->file = index;
    layout->reader = reader;
    layout->info = slc_reader_info(reader);
    uint64_t count = layout->info->block_count;
    layout->order = slc_calloc(count, sizeof *layout->order);
    layout->cached = slc_calloc(count, sizeof *layout->cached);
    layout->cache_offset = slc_calloc(count, sizeof *layout->cache_offset);
    layout->partition_done =
        slc_calloc(layout->info->partition_count, sizeof *layout->partition_done);
    layout->uses = slc_calloc(count, sizeof *layout->uses);
    layout->keep = slc_calloc(count, sizeof *layout->keep);
    layout->nnz = slc_calloc(count, sizeof *layout->nnz);
    layout->hybrid_state = slc_calloc(count, sizeof *layout->hybrid_state);
    SLC_TRY(slc_check_memory(layout->order != NULL && layout->cached != NULL &&
                                 layout->cache_offset != NULL && layout->partition_done != NULL &&
                                 layout->uses != NULL && layout->keep != NULL &&
                                 layout->nnz != NULL && layout->hybrid_state != NULL,
                             err, "for the tables of a stream of %" PRIu64 " blocks", count));
    for (uint64_t b = 0; b < count; b++) {
        struct slc_block_entry entry;

        slc_reader_entry(reader, b, &entry);
        layout->nnz[b] = entry.nnz;
        layout->keep[b] = SLC_NOT_RESIDENT;
    }
    return make_order(layout, stream->in_order, err);
}

static enum slc_status
make_tables(struct slc_stream *stream, const struct slc_layouts *layouts, struct slc_error *err)
{
    stream->layouts = slc_calloc(layouts->count, sizeof *stream->layouts);
    stream->requests = slc_calloc(stream->slot_count, sizeof *stream->requests);
    stream->delivered = slc_calloc(stream->slot_count, sizeof *stream->delivered);
    stream->slot_blocks = slc_calloc(stream->slot_count, sizeof *stream->slot_blocks);
    stream->cache_blocks = slc_calloc(stream->worker_count, sizeof *stream->cache_blocks);
    stream->workers = slc_calloc(stream->worker_count, sizeof *stream->workers);
    SLC_TRY(slc_check_memory(stream->layouts != NULL && stream->requests != NULL &&
                                 stream->delivered != NULL && stream->slot_blocks != NULL &&
                                 stream->cache_blocks != NULL && stream->workers != NULL,
                             err, "for the tables of a stream"));
    for (unsigned l = 0; l < layouts->count; l++) {
        stream->layout_count = l + 1;
        SLC_TRY(make_layout(stream, l, layouts->reader[l], err));
    }
    return SLC_OK;
}

static enum slc_status
make_cache(struct slc_stream *stream, const struct slc_plan *plan, struct slc_error *err)
{
    uint64_t used = 0;

    for (unsigned l = 0; l < stream->layout_count; l++) {
        SLC_TRY(place_blocks(&stream->layouts[l], &plan->layouts[l], &used, err));
    }
    SLC_TRY(slc_buffer_create(&stream->cache, (size_t)used, SLC_PAGES_SMALL, err));
    slc_buffer_spread(&stream->cache);
    return SLC_OK;
}

static enum slc_status open_parts(struct slc_stream *stream,
                                  const struct slc_files *files,
                                  const struct slc_layouts *layouts,
                                  const struct slc_plan *plan,
                                  struct slc_error *err)
{
    const char *paths[SLC_MAX_LAYOUTS];
    const struct slc_io_options options = {
        .files = files != NULL ? files : slc_reader_files(layouts->reader[0]),
        .paths = paths,
        .file_count = layouts->count,
        .slot_count = plan->slot_count,
        .slot_bytes = plan->slot_bytes,
        .direct = true,
    };
    enum slc_status status = make_tables(stream, layouts, err);

    SLC_THEN(status, make_cache(stream, plan, err));
    /* A decoder can decode any layout; each pass binds the decoders to its layout. */
    for (unsigned w = 0; status == SLC_OK && w < stream->worker_count; w++) {
        status = slc_decoder_create(stream->layouts[0].info, plan->request.precision,
                                    &stream->workers[w].decoder, err);
        SLC_THEN(status, slc_tile_rows_create(&stream->workers[w].rows,
                                              stream->layouts[0].info->order, err));
    }
    SLC_THEN(status, slc_ring_create(plan->slot_count, &stream->ring, err));
    for (unsigned l = 0; l < layouts->count; l++) {
        paths[l] = slc_reader_path(layouts->reader[l]);
    }
    SLC_TRY(status);
    SLC_TRY(slc_io_open(plan->request.io, &options, &stream->io, err));
    stream->mapped = slc_io_kind(stream->io) == SLC_IO_MMAP;
    return SLC_OK;
}

/* Checks that the plan was made for these layouts. */
static enum slc_status
check_plan(const struct slc_layouts *layouts, const struct slc_plan *plan, struct slc_error *err)
{
    uint64_t most = 0;

    for (unsigned l = 0; l < layouts->count; l++) {
        most = slc_max_u64(most, slc_reader_info(layouts->reader[l])->max_block_bytes);
    }
    if (plan->threads == 0 || plan->slot_count == 0 || plan->slot_bytes < most ||
        plan->layout_count != layouts->count) {
        return slc_fail(
            err, SLC_ERR_USAGE,
            "the plan has %u threads, %u slots of %" PRIu64
            " bytes and %u layouts, but there are %u layouts and the largest block has %" PRIu64
            " bytes",
            plan->threads, plan->slot_count, plan->slot_bytes, plan->layout_count, layouts->count,
            most);
    }
    return SLC_OK;
}

enum slc_status slc_stream_open(const struct slc_files *files,
                                const struct slc_layouts *layouts,
                                const struct slc_plan *plan,
                                struct slc_stream **result,
                                struct slc_error *err)
{
    SLC_TRY(check_plan(layouts, plan, err));
    struct slc_stream *stream = slc_calloc(1, sizeof *stream);
    SLC_TRY(slc_check_memory(stream != NULL, err, "for a stream"));
    stream->worker_count = plan->threads;
    stream->slot_count = plan->slot_count;
    stream->slot_bytes = plan->slot_bytes;
    stream->in_order = plan->schedule == SLC_SCHEDULE_FILE;
    stream->read_limit.bytes_per_second = plan->request.read_limit;
    stream->may_keep_cached = plan->gpu.keeps_cached;
    pthread_mutex_init(&stream->mutex, NULL);
    enum slc_status status = open_parts(stream, files, layouts, plan, err);
    if (status != SLC_OK) {
        slc_stream_close(stream);
        return status;
    }
    *result = stream;
    return SLC_OK;
}

void slc_stream_close(struct slc_stream *stream)
{
    if (stream == NULL) {
        return;
    }
    slc_stream_detach(stream);
    slc_io_close(stream->io);
    slc_ring_destroy(stream->ring);
    for (unsigned w = 0; stream->workers != NULL && w < stream->worker_count; w++) {
        slc_decoder_destroy(stream->workers[w].decoder);
        slc_tile_rows_destroy(&stream->workers[w].rows);
    }
    slc_buffer_destroy(&stream->cache);
    for (unsigned l = 0; l < stream->layout_count; l++) {
        slc_free(stream->layouts[l].order);
        slc_free(stream->layouts[l].cached);
        slc_free(stream->layouts[l].cache_offset);
        slc_free(stream->layouts[l].partition_done);
        slc_free(stream->layouts[l].uses);
        slc_free(stream->layouts[l].keep);
        slc_free(stream->layouts[l].nnz);
        slc_free(stream->layouts[l].hybrid_state);
    }
    slc_free(stream->layouts);
    slc_free(stream->requests);
    slc_free(stream->delivered);
    slc_free(stream->slot_blocks);
    slc_free(stream->cache_blocks);
    slc_free(stream->workers);
    pthread_mutex_destroy(&stream->mutex);
    slc_free(stream);
}

static void worker_run(void *context, unsigned number, unsigned workers)
{
    struct slc_stream *stream = context;

    (void)workers;
    if (stream->ranges != NULL) {
        slc_stream_ranges_run(stream, number);
    } else if (stream->hybrid != NULL) {
        slc_stream_hybrid_run(stream, number);
    } else if (stream->feeds) {
        slc_stream_feed_run(stream, number);
    } else {
        slc_stream_tiles_run(stream, number);
    }
}

/* Adds the measurements of the pass to the statistics. Blocks that the pass has cached can be used
 * from now on. */
static void finish_pass(struct slc_stream *stream, uint64_t start_ns)
{
    struct slc_stream_stats *stats = &stream->stats;

    for (unsigned slot = 0; slot < stream->slot_count; slot++) {
        if (stream->delivered[slot]) {
            slc_io_release(stream->io, &stream->requests[slot]);
            stream->delivered[slot] = false;
        }
    }
    for (uint64_t b = 0; b < stream->layout->info->block_count; b++) {
        if (stream->layout->cached[b] == SLC_CACHE_NEW) {
            stream->layout->cached[b] = SLC_CACHE_YES;
            stats->cache_blocks++;
        } else if (stream->layout->cached[b] == SLC_CACHE_RESIDENT_NEW) {
            stream->layout->cached[b] = SLC_CACHE_RESIDENT;
        }
    }
    for (unsigned w = 0; w < stream->worker_count; w++) {
        struct slc_stream_worker *worker = &stream->workers[w];

        stats->wait_seconds += (double)worker->wait_ns * 1e-9;
        stats->decode_seconds += (double)worker->decode_ns * 1e-9;
        stats->compute_seconds += (double)worker->compute_ns * 1e-9;
        stats->nnz += worker->nnz;
        worker->nnz = 0;
        worker->wait_ns = 0;
        worker->decode_ns = 0;
        worker->compute_ns = 0;
    }
    stats->passes += stream->blocks == NULL && stream->end == stream->layout->info->block_count;
    stats->blocks += atomic_load(&stream->blocks_done);
    stats->bytes_read = atomic_load(&stream->bytes_read);
    stats->bytes_cached = atomic_load(&stream->bytes_cached);
    stats->bytes_resident = atomic_load(&stream->bytes_resident);
    stats->pass_seconds += slc_seconds_since(start_ns);
}

static enum slc_status check_part(const struct slc_pass_part *part,
                                  uint64_t count,
                                  const char *what,
                                  struct slc_error *err)
{
    if (part->first == 0 && part->end == 0) {
        return SLC_OK;
    }
    if (part->first >= part->end || part->end > count) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "positions %" PRIu64 " to %" PRIu64 " are not part of a pass over %" PRIu64
                        " %s",
                        part->first, part->end, count, what);
    }
    return SLC_OK;
}

static enum slc_status check_ranges(const struct slc_stream *stream,
                                    const struct slc_pass *pass,
                                    const struct slc_layout_info *info,
                                    struct slc_error *err)
{
    const struct slc_row_ranges *ranges = pass->ranges.ranges;

    if (ranges->block_count != info->block_count || ranges->max_blocks > stream->slot_count) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "a pass over ranges of %" PRIu64 " blocks, with up to %" PRIu64
                        " per range, does not fit a layout of %" PRIu64 " blocks and %u slots",
                        ranges->block_count, ranges->max_blocks, info->block_count,
                        stream->slot_count);
    }
    return check_part(&pass->ranges.part, ranges->count, "ranges", err);
}

static enum slc_status check_partitions(const struct slc_stream *stream,
                                        const struct slc_pass *pass,
                                        const struct slc_layout_info *info,
                                        struct slc_error *err)
{
    if (info->partition_count == 0 && info->nnz > 0) {
        return slc_fail(err, SLC_ERR_USAGE, "%s has no partitions to read one by one",
                        slc_reader_path(stream->layouts[pass->layout].reader));
    }
    return SLC_OK;
}

static enum slc_status
check_pass(const struct slc_stream *stream, const struct slc_pass *pass, struct slc_error *err)
{
    const unsigned gpus = slc_stream_device_count(stream);
    enum slc_status status = SLC_OK;
    bool fits = true;

    if (stream->io_failed) {
        return slc_fail(err, SLC_ERR_IO, "reading failed permanently; reopen the stream");
    }
    if (pass->layout >= stream->layout_count) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "layout %u is out of range: the stream has %u layouts (numbers start at 0)",
                        pass->layout, stream->layout_count);
    }
    const struct slc_layout_info *info = stream->layouts[pass->layout].info;
    switch (pass->kind) {
    case SLC_PASS_TILES:
        if (pass->tiles.order == SLC_TILES_BY_PARTITION) {
            status = check_partitions(stream, pass, info, err);
        }
        return status == SLC_OK ? check_part(&pass->tiles.part,
                                             pass->tiles.blocks != NULL ? pass->tiles.block_count
                                                                        : info->block_count,
                                             "blocks", err)
                                : status;
    case SLC_PASS_GROUPS:
        if (pass->groups.division->group_workers == 0 ||
            stream->worker_count % pass->groups.division->group_workers != 0) {
            return slc_fail(err, SLC_ERR_USAGE, "%u workers cannot be divided into groups of %u",
                            stream->worker_count, pass->groups.division->group_workers);
        }
        return pass->groups.by_partition ? check_partitions(stream, pass, info, err) : SLC_OK;
    case SLC_PASS_RANGES:
        return check_ranges(stream, pass, info, err);
    case SLC_PASS_GPU:
    case SLC_PASS_HYBRID:
        fits = gpus == 1;
        break;
    case SLC_PASS_GPU_GROUP:
        fits = gpus > 0;
        break;
    }
    return fits ? SLC_OK
                : slc_fail(err, SLC_ERR_USAGE,
                           "the pass needs a different number of devices than the stream has, %u",
                           gpus);
}

/* Sets the members of the stream that depend on pass->kind. */
static void set_kind(struct slc_stream *stream, const struct slc_pass *pass)
{
    const enum slc_pass_kind kind = pass->kind;

    stream->consumer = slc_pass_consumer(pass);
    stream->division = kind == SLC_PASS_GROUPS      ? pass->groups.division
                       : kind == SLC_PASS_GPU_GROUP ? pass->gpu_group.division
                                                    : NULL;
    stream->ranges = kind == SLC_PASS_RANGES ? pass->ranges.ranges : NULL;
    stream->hybrid = kind == SLC_PASS_HYBRID ? pass->hybrid.sharing : NULL;
    stream->feeds = kind == SLC_PASS_GPU || kind == SLC_PASS_GPU_GROUP || kind == SLC_PASS_HYBRID;
    stream->every_worker = kind == SLC_PASS_TILES && pass->tiles.order == SLC_TILES_TO_EVERY_WORKER;
    stream->by_partition =
        (kind == SLC_PASS_TILES && pass->tiles.order == SLC_TILES_BY_PARTITION) ||
        (kind == SLC_PASS_GROUPS && pass->groups.by_partition);
    stream->part = kind == SLC_PASS_TILES    ? pass->tiles.part
                   : kind == SLC_PASS_RANGES ? pass->ranges.part
                                             : (struct slc_pass_part){0, 0};
    const bool listed = kind == SLC_PASS_TILES && pass->tiles.blocks != NULL;
    assert(!listed || pass->tiles.order == SLC_TILES_BY_SCHEDULE);
    stream->blocks = listed ? pass->tiles.blocks : NULL;
    stream->block_count = listed ? pass->tiles.block_count : stream->layout->info->block_count;
    stream->strict =
        listed || (stream->in_order && kind == SLC_PASS_TILES && !stream->by_partition);
}

/* Sets the order in which the pass reads blocks, and the bounds of its part. */
static void set_part(struct slc_stream *stream)
{
    const struct slc_row_ranges *ranges = stream->ranges;

    stream->order = stream->division != NULL ? stream->division->order
                    : stream->blocks != NULL ? stream->blocks
                                             : stream->layout->order;
    stream->first = stream->part.first;
    stream->end = slc_stream_part_end(stream, stream->block_count);
    if (ranges != NULL) {
        stream->order = ranges->block_order;
        stream->first = 0;
        stream->end = 0;
        if (ranges->count > 0) {
            slc_row_ranges_blocks(ranges, stream->part.first,
                                  slc_stream_part_end(stream, ranges->count), &stream->first,
                                  &stream->end);
        }
    }
}

/* Prepares a pass that has been checked. Called before any thread starts. */
static void begin_pass(struct slc_stream *stream, const struct slc_pass *pass)
{
    stream->pass = pass;
    stream->layout = &stream->layouts[pass->layout];
    set_kind(stream, pass);
    set_part(stream);
    atomic_store(&stream->aborted, false);
    atomic_store(&stream->blocks_done, 0);
    slc_ring_begin(stream->ring, stream->end - stream->first, stream->strict);
    slc_stream_tiles_begin(stream);
    for (unsigned w = 0; w < stream->worker_count; w++) {
        slc_decoder_bind(stream->workers[w].decoder, stream->layout->info);
    }
    if (stream->ranges != NULL) {
        slc_stream_ranges_begin(stream);
    }
    if (stream->feeds) {
        slc_stream_feed_begin(stream);
    }
    if (stream->hybrid != NULL) {
        slc_stream_hybrid_begin(stream);
    }
}

/* Runs the threads of a pass until all blocks are done or the pass is aborted. Errors: those of
 * starting the pass. */
static enum slc_status run_threads(struct slc_stream *stream, struct slc_error *fault)
{
    pthread_t reader;

    if (stream->feeds && stream->hybrid == NULL) {
        SLC_TRY(slc_stream_feed_residents(stream, fault));
        if (atomic_load(&stream->blocks_done) == stream->end - stream->first) {
            /* All blocks are resident. Waking all workers would take longer than the rest of the
             * pass. */
            worker_run(stream, 0, 1);
            return SLC_OK;
        }
    }
    SLC_TRY(slc_thread_start(&reader, slc_stream_reader_run, stream, "the reader thread", fault));
    if (slc_team_run(stream->worker_count, worker_run, stream, fault) != SLC_OK) {
        slc_stream_abort(stream, fault);
    }
    pthread_join(reader, NULL);
    return SLC_OK;
}

enum slc_status
slc_stream_pass(struct slc_stream *stream, const struct slc_pass *pass, struct slc_error *err)
{
    const uint64_t start_ns = slc_clock_ns();
    struct slc_error fault = SLC_ERROR_INIT;

    SLC_TRY(check_pass(stream, pass, err));
    begin_pass(stream, pass);
    stream->workers[0].progress_ns = start_ns;
    if (run_threads(stream, &fault) != SLC_OK) {
        slc_ring_abort(stream->ring, &fault);
    }
    finish_pass(stream, start_ns);
    stream->pass = NULL;
    return slc_ring_end(stream->ring, err);
}

void slc_stream_stats(const struct slc_stream *stream, struct slc_stream_stats *stats)
{
    struct slc_io_stats io;

    *stats = stream->stats;
    slc_io_stats(stream->io, &io);
    stats->direct = io.direct;
    stats->io = slc_io_kind(stream->io);
    memcpy(stats->note, io.note, sizeof stats->note);
}

const uint64_t *slc_stream_order(const struct slc_stream *stream, unsigned layout)
{
    return stream->layouts[layout].order;
}

const struct slc_reader *slc_stream_reader(const struct slc_stream *stream, unsigned layout)
{
    return stream->layouts[layout].reader;
}
