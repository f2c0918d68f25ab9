/*
 * Passes whose blocks a device shares with the CPU (divided by engine/hybrid/hybrid_blocks.h).
 *
 * Every worker serves both sides. Between two tiles it checks whether the device can accept another
 * block, prepares and feeds a block, releases slots whose copies are complete, and makes the device
 * start the gathered batch if the device would be idle. Otherwise the worker computes a tile, or
 * opens another of the CPU's blocks. Arrived blocks are kept in one list per side, so that no block
 * waits for a block of the other side.
 *
 * Workers never wait for the device: a block is fed only if a slot of the device is free for it,
 * counting blocks that other workers are preparing. Devices do not signal a completed copy or a
 * free slot. An idle worker therefore polls again after a short time, less often the more workers
 * there are, and arriving blocks wake it. No worker sleeps for long while there is work for either
 * side.
 *
 * There is no deadlock for any number of slots: the block in a slot is either computed by the
 * workers or copied by a device, and neither waits for another block to be read.
 */
#include "engine/stream/stream_feed.h"

#include "base/error/clock.h"
#include "storage/codec/describe.h"

#include <assert.h>

/* Interval between two polls of the device, counting all idle workers together: 100 us. Copying a
 * block of a few megabytes needs about as long. */
#define POLL_NS UINT64_C(100000)
/* Interval between two checks for a stop request: 50 ms. */
#define STOP_CHECK_NS UINT64_C(50000000)

/* The next block for a device. */
struct candidate {
    /* NULL: the block is held, in host memory or in device memory. */
    struct slc_open_block *arrived;
    uint64_t block;
};

void slc_stream_hybrid_begin(struct slc_stream *stream)
{
    const struct slc_stream_layout *layout = stream->layout;
    const struct slc_hybrid_block_list blocks = {.count = layout->info->block_count,
                                                 .order = layout->order,
                                                 .nnz = layout->nnz,
                                                 .state = layout->hybrid_state};

    for (uint64_t b = 0; b < blocks.count; b++) {
        switch ((enum slc_cache_state)layout->cached[b]) {
        case SLC_CACHE_YES:
            layout->hybrid_state[b] = SLC_HYBRID_HELD;
            break;
        case SLC_CACHE_RESIDENT:
            layout->hybrid_state[b] = SLC_HYBRID_HELD | SLC_HYBRID_OF_GPU;
            break;
        case SLC_CACHE_RESIDENT_WANTED:
        case SLC_CACHE_RESIDENT_NEW:
            layout->hybrid_state[b] = SLC_HYBRID_OF_GPU;
            break;
        case SLC_CACHE_NO:
        case SLC_CACHE_WANTED:
        case SLC_CACHE_NEW:
            layout->hybrid_state[b] = 0;
            break;
        }
    }
    for (enum slc_hybrid_side side = 0; side < SLC_HYBRID_PARTS; side++) {
        stream->arrived[side] = NULL;
        stream->arrived_end[side] = &stream->arrived[side];
    }
    slc_hybrid_blocks_begin(&stream->sharing, stream->hybrid, &blocks, slc_clock_ns());
}

void slc_stream_hybrid_end(struct slc_stream *stream)
{
    slc_hybrid_blocks_end(&stream->sharing, slc_clock_ns());
}

bool slc_stream_hybrid_to_read(struct slc_stream *stream)
{
    pthread_mutex_lock(&stream->mutex);
    bool more = stream->sharing.to_read > 0;
    pthread_mutex_unlock(&stream->mutex);
    return more;
}

uint64_t slc_stream_hybrid_read(struct slc_stream *stream)
{
    uint64_t block = 0;

    pthread_mutex_lock(&stream->mutex);
    bool found = slc_hybrid_blocks_read(&stream->sharing, &block);
    pthread_mutex_unlock(&stream->mutex);
    assert(found);
    (void)found;
    return block;
}

/* Moves all arrived blocks to the lists. Returns SLC_RING_END at the end of the pass. */
static enum slc_ring_event sort_arrived(struct slc_stream *stream, uint64_t *wait_ns)
{
    enum slc_ring_event event;
    uint64_t block;
    unsigned slot;
    bool some = false;

    while ((event = slc_ring_take_block(stream->ring, 0, false, &slot, &block, wait_ns)) ==
           SLC_RING_BLOCK) {
        struct slc_open_block *record = &stream->slot_blocks[slot];

        record->slot = slot;
        record->next = NULL;
        pthread_mutex_lock(&stream->mutex);
        enum slc_hybrid_side side = slc_hybrid_blocks_side(&stream->sharing, block);
        *stream->arrived_end[side] = record;
        stream->arrived_end[side] = &record->next;
        pthread_mutex_unlock(&stream->mutex);
        some = true;
    }
    if (some) {
        slc_ring_notify(stream->ring); /* this worker can start only one of the blocks */
    }
    return event;
}

/*
 * Removes and returns the first element of a list; NULL if the list is empty. The caller holds the
 * mutex.
 */
static struct slc_open_block *pop_arrived(struct slc_stream *stream, enum slc_hybrid_side side)
{
    struct slc_open_block *record = stream->arrived[side];

    if (record != NULL) {
        stream->arrived[side] = record->next;
        if (record->next == NULL) {
            stream->arrived_end[side] = &stream->arrived[side];
        }
    }
    return record;
}

/* ---- the device */

/*
 * Finds the device's next block. The result does not change while the caller holds the feed's
 * mutex.
 */
static bool find_candidate(struct slc_stream *stream, struct candidate *candidate)
{
    pthread_mutex_lock(&stream->mutex);
    candidate->arrived = stream->arrived[SLC_HYBRID_GPU];
    bool found = candidate->arrived != NULL;
    if (found) {
        candidate->block = candidate->arrived->view.block;
    } else {
        found = slc_hybrid_blocks_next_held(&stream->sharing, SLC_HYBRID_GPU, &candidate->block);
    }
    pthread_mutex_unlock(&stream->mutex);
    return found;
}

/* Returns false if the CPU has taken the block in the meantime. */
static bool claim_candidate(struct slc_stream *stream, const struct candidate *candidate)
{
    struct slc_hybrid_blocks *sharing = &stream->sharing;
    uint64_t block;
    bool taken = true;

    pthread_mutex_lock(&stream->mutex);
    if (candidate->arrived != NULL) {
        (void)pop_arrived(stream, SLC_HYBRID_GPU);
    } else {
        taken = slc_hybrid_blocks_next_held(sharing, SLC_HYBRID_GPU, &block) &&
                block == candidate->block;
        if (taken) {
            slc_hybrid_blocks_claim(sharing, SLC_HYBRID_GPU, block);
        }
    }
    pthread_mutex_unlock(&stream->mutex);
    return taken;
}

/*
 * Queries the device's progress, and whether the device can accept a block; NULL: no block is in
 * question.
 */
static enum slc_status query_progress(struct slc_stream *stream,
                                      struct slc_feed *feed,
                                      const struct candidate *candidate,
                                      struct slc_device_progress *progress,
                                      struct slc_error *fault)
{
    struct slc_encoded_block size = {.bytes = 0};
    struct slc_block_entry entry;

    if (candidate != NULL) {
        slc_reader_entry(stream->layout->reader, candidate->block, &entry);
        size.tile_count = entry.tile_count;
        if (stream->layout->cached[candidate->block] != SLC_CACHE_RESIDENT) {
            size.bytes = entry.padded_bytes;
            size.expanded_bytes = slc_describe_expanded_bound(stream->layout->info, &entry);
        }
    }
    SLC_TRY(feed->device->ops->job.poll(feed->device, candidate != NULL ? &size : NULL, progress,
                                        fault));
    pthread_mutex_lock(&stream->mutex);
    slc_hybrid_blocks_done(&stream->sharing, SLC_HYBRID_GPU, progress->nnz, slc_clock_ns());
    pthread_mutex_unlock(&stream->mutex);
    return SLC_OK;
}

/* Serves the device; the caller holds its mutex. Sets *found if the caller must feed the candidate,
 * for which a slot is free. */
static enum slc_status poll_device(struct slc_stream *stream,
                                   struct slc_feed *feed,
                                   struct candidate *candidate,
                                   bool *found,
                                   struct slc_error *fault)
{
    struct slc_device_progress progress;
    const bool any = find_candidate(stream, candidate);
    /* While other workers prepare blocks for a batch that is being gathered, do not query a larger
     * block: that would launch the batch, and the other workers would have to wait for a slot. */
    enum slc_status status = query_progress(
        stream, feed, any && feed->preparing == 0 ? candidate : NULL, &progress, fault);

    *found = false;
    /* This order is required: once everything is computed, the device holds no slot. */
    SLC_THEN(status, slc_stream_feed_reclaim(stream, feed, false, fault));
    SLC_TRY(status);
    /* Each block that is being prepared may begin a new batch. */
    if (any && (progress.free_slots > feed->preparing || (progress.fits && feed->preparing == 0))) {
        *found = claim_candidate(stream, candidate);
        feed->preparing += *found;
    } else if (!any && feed->gathered && !progress.busy && feed->preparing == 0) {
        feed->gathered = false;
        status = feed->device->ops->job.flush(feed->device, fault);
    }
    return status;
}

/* Feeds the device a block that it can accept. Sets *worked if there was a block. */
static enum slc_status
serve_device(struct slc_stream *stream, unsigned number, bool *worked, struct slc_error *fault)
{
    struct slc_feed *feed = &stream->feeding->feeds[0];
    struct candidate candidate;

    pthread_mutex_lock(&feed->mutex);
    enum slc_status status = poll_device(stream, feed, &candidate, worked, fault);
    pthread_mutex_unlock(&feed->mutex);
    if (status != SLC_OK || !*worked) {
        return status;
    }
    status = candidate.arrived != NULL
                 ? slc_stream_feed_arrived(stream, number, candidate.arrived->slot, candidate.block,
                                           fault)
                 : slc_stream_feed_held(stream, number, candidate.block, fault);
    pthread_mutex_lock(&feed->mutex);
    feed->preparing--;
    pthread_mutex_unlock(&feed->mutex);
    return status;
}

/* ---- the CPU */

/* Computes a tile, if there is one. */
static enum slc_status
compute_tile(struct slc_stream *stream, unsigned number, bool *worked, struct slc_error *fault)
{
    struct slc_stream_worker *worker = &stream->workers[number];
    struct slc_hybrid_blocks *sharing = &stream->sharing;
    struct slc_open_block *block;
    uint32_t tile;

    *worked = slc_stream_take_open_tile(stream, worker, &block, &tile);
    if (!*worked) {
        return SLC_OK;
    }
    SLC_TRY(
        slc_stream_tile_compute(stream, number, block, tile, NULL, stream->consumer->tile, fault));
    pthread_mutex_lock(&stream->mutex);
    slc_hybrid_blocks_done(sharing, SLC_HYBRID_CPU,
                           sharing->done[SLC_HYBRID_CPU] + worker->inner.nnz, slc_clock_ns());
    pthread_mutex_unlock(&stream->mutex);
    slc_stream_tile_done(stream, block);
    return SLC_OK;
}

/* Opens another of the CPU's blocks, if there is one. */
static bool open_block(struct slc_stream *stream, struct slc_stream_worker *worker)
{
    const uint64_t start_ns = slc_clock_ns();
    bool held = false;
    uint64_t block;

    pthread_mutex_lock(&stream->mutex);
    struct slc_open_block *record = pop_arrived(stream, SLC_HYBRID_CPU);
    if (record == NULL && slc_hybrid_blocks_next_held(&stream->sharing, SLC_HYBRID_CPU, &block)) {
        slc_hybrid_blocks_claim(&stream->sharing, SLC_HYBRID_CPU, block);
        record = slc_stream_cached_record(stream, 0, stream->worker_count, block);
        held = true;
    }
    pthread_mutex_unlock(&stream->mutex);
    if (record == NULL) {
        return false;
    }
    if (held) {
        slc_stream_open_cached(stream, record);
    } else {
        slc_stream_open_arrived(stream, record->slot, record->view.block);
    }
    worker->decode_ns += slc_clock_ns() - start_ns;
    return true;
}

/* ---- both */

/* Waits for an arriving block, or until the device must be polled again. */
static void
wait_for_news(struct slc_stream *stream, struct slc_stream_worker *worker, uint64_t news)
{
    const struct slc_hybrid_blocks *sharing = &stream->sharing;

    pthread_mutex_lock(&stream->mutex);
    bool polls = sharing->done[SLC_HYBRID_GPU] < sharing->assigned[SLC_HYBRID_GPU];
    pthread_mutex_unlock(&stream->mutex);
    slc_ring_wait(stream->ring, news, polls ? POLL_NS * stream->worker_count : STOP_CHECK_NS,
                  &worker->wait_ns);
}

/* One step of a worker. Sets *end if the pass has ended. */
static enum slc_status
step(struct slc_stream *stream, unsigned number, bool *end, struct slc_error *fault)
{
    struct slc_stream_worker *worker = &stream->workers[number];
    const uint64_t news = slc_ring_news(stream->ring);
    bool worked;

    if (sort_arrived(stream, &worker->wait_ns) == SLC_RING_END) {
        *end = true;
        return SLC_OK;
    }
    SLC_TRY(serve_device(stream, number, &worked, fault));
    if (!worked) {
        SLC_TRY(compute_tile(stream, number, &worked, fault));
    }
    if (!worked && !open_block(stream, worker)) {
        wait_for_news(stream, worker, news);
    }
    return SLC_OK;
}

void slc_stream_hybrid_run(struct slc_stream *stream, unsigned number)
{
    slc_stream_run_steps(stream, number, step);
}
