/* Makes passes whose blocks are divided between a device and the CPU
 * (engine/hybrid/hybrid_blocks.h).
 *
 * Every worker serves both sides, the CPU and the device. Between two tiles it checks whether the
 * device can accept another block. If so, it prepares a block and feeds it. It also releases slots
 * whose copies are complete, and makes the device start the gathered batch if the device would be
 * idle. If there is nothing to do for the device, the worker computes a tile, or opens another
 * block of the CPU. Each side has its own list of arrived blocks, so that no block waits for a
 * block of the other side.
 *
 * Workers never wait for the device: a block is fed only if the device has a free slot for it, not
 * counting slots for blocks that other workers are preparing. Devices do not signal a completed
 * copy or a free slot, so an idle worker polls the device again after a short time. With more
 * workers, each worker polls less often. An arriving block wakes idle workers. Therefore no worker
 * sleeps for long while there is work for either side.
 *
 * A pass cannot deadlock, for any number of slots: the block in a slot is computed by the workers
 * or copied by the device, and neither requires that another block is read first. */
#include "engine/stream/stream_feed.h"

#include "base/error/clock.h"
#include "storage/codec/describe.h"

#include <assert.h>

/* Mean interval between two polls of the device by any idle worker: 100 us, about the time to copy
 * a block of a few megabytes. */
#define POLL_NS UINT64_C(100000)
/* Interval between two checks for a stop request: 50 ms. */
#define STOP_CHECK_NS UINT64_C(50000000)

/* A block that may be fed to the device next. */
struct candidate {
    /* NULL if the block is held: cached in host memory or resident in device memory. */
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

/* Moves all arrived blocks from the ring to the lists of the sides. Returns SLC_RING_END at the end
 * of the pass. */
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
        /* wake other workers, because this worker can start only one block */
        slc_ring_notify(stream->ring);
    }
    return event;
}

/* Removes and returns the first arrived block of a side, or returns NULL. Needs: the caller holds
 * the mutex. */
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

/* Finds the next block for the device. Needs: the caller holds the mutex of the feed, so that no
 * other worker takes the block for the device. */
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

/* Takes the candidate for the device. Returns false if the CPU has taken this block in the
 * meantime. */
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

/* Queries the device's progress and, unless `candidate` is NULL, whether the device can accept this
 * block at once. */
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
        if (!slc_stream_is_resident(stream->layout, candidate->block)) {
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

/* Polls the device, releases slots and starts batches. Sets *found if the device has a free slot
 * for the candidate, which the caller must then feed. Needs: the caller holds the mutex of the
 * feed. */
static enum slc_status poll_device(struct slc_stream *stream,
                                   struct slc_feed *feed,
                                   struct candidate *candidate,
                                   bool *found,
                                   struct slc_error *fault)
{
    struct slc_device_progress progress;
    const bool any = find_candidate(stream, candidate);
    /* While other workers prepare blocks for the gathered batch, the query does not get the
     * candidate: if the candidate did not fit, the device would launch the batch, and the other
     * workers would wait for a slot. */
    enum slc_status status = query_progress(
        stream, feed, any && feed->preparing == 0 ? candidate : NULL, &progress, fault);

    *found = false;
    /* Slots are reclaimed after the query, so that all slots are released when the query reports
     * that all work is done. */
    SLC_THEN(status, slc_stream_feed_reclaim(stream, feed, false, fault));
    SLC_TRY(status);
    /* Each block that is being prepared may begin a new batch and need a slot of the device. */
    if (any && (progress.free_slots > feed->preparing || (progress.fits && feed->preparing == 0))) {
        *found = claim_candidate(stream, candidate);
        feed->preparing += *found;
    } else if (!any && feed->gathered && !progress.busy && feed->preparing == 0) {
        feed->gathered = false;
        status = feed->device->ops->job.flush(feed->device, fault);
    }
    return status;
}

/* Feeds a block to the device if the device can accept one. Sets *worked if a block was fed. */
static enum slc_status
serve_device(struct slc_stream *stream, unsigned number, bool *worked, struct slc_error *fault)
{
    struct slc_feed *feed = &stream->feeding->feeds[0];
    struct candidate candidate;

    slc_stream_feed_lock(feed);
    enum slc_status status = poll_device(stream, feed, &candidate, worked, fault);
    pthread_mutex_unlock(&feed->mutex);
    if (status != SLC_OK || !*worked) {
        return status;
    }
    status = candidate.arrived != NULL
                 ? slc_stream_feed_arrived(stream, number, candidate.arrived->slot, candidate.block,
                                           fault)
                 : slc_stream_feed_held(stream, number, candidate.block, fault);
    slc_stream_feed_lock(feed);
    feed->preparing--;
    pthread_mutex_unlock(&feed->mutex);
    return status;
}

/* ---- the CPU */

/* Computes a tile of the CPU's open blocks. Sets *worked if there was a tile. */
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

/* Opens the next block of the CPU. Returns false if there is no such block now. */
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

/* Waits until a block arrives or the device must be polled again. */
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

/* Makes one step of a worker. Sets *end if the pass has ended. */
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
