/* Makes passes that feed whole blocks to devices (base/device.h). With several devices, each block
 * is fed to the device that owns it.
 *
 * Each worker checks and describes the blocks that it gets from the ring. This takes most of the
 * worker's time. The worker then feeds a block to its device while it holds the mutex of the feed,
 * so only one thread at a time uses a device. The slot of the block stays occupied until the device
 * has copied it. Pending copies are in a queue; a worker that feeds a block also polls this queue
 * and releases slots. Any free worker may prepare the next block for any device.
 *
 * Unless the CPU shares the pass, all resident blocks are fed at the start, so that one launch
 * computes them. Later, a worker prefers arrived blocks to cached blocks, because the slots of
 * arrived blocks are needed for more reads. A worker that finds no block makes the device start the
 * batch of blocks that it has gathered. Then the worker waits for the oldest copy, because the
 * reader may need its slot. If there is no copy, the worker sleeps in the ring. If another thread
 * holds the mutex of a device, that thread does these steps, and the worker skips the device.
 *
 * The memory of a mapped file cannot be registered, and it changes if the file changes. With mmap,
 * a block is therefore first copied to the cache, if it belongs there, or to a buffer. The copy is
 * checked and described, and the slot is free at once. There is one more buffer than workers, so
 * that a device can copy from one buffer while each worker fills another. */
#include "engine/stream/stream_feed.h"

#include "base/error/clock.h"
#include "base/thread/thread.h"
#include "storage/codec/describe.h"

#include <assert.h>

/* Returns the feed of the device that owns a block of the pass. */
static struct slc_feed *feed_of(const struct slc_stream *stream, uint64_t block)
{
    const struct slc_pass_division *division = stream->division;

    return &stream->feeding->feeds[division != NULL ? division->owner[block] : 0];
}

/* Returns true if some block that the plan keeps resident has not arrived yet. */
static bool awaits_residents(const struct slc_stream *stream)
{
    for (unsigned l = 0; l < stream->layout_count; l++) {
        const struct slc_stream_layout *layout = &stream->layouts[l];

        for (uint64_t b = 0; b < layout->info->block_count; b++) {
            if (layout->cached[b] == SLC_CACHE_RESIDENT_WANTED) {
                return true;
            }
        }
    }
    return false;
}

void slc_stream_feed_begin(struct slc_stream *stream)
{
    /* Cached blocks become resident only after all blocks that the plan keeps resident, so that
     * they do not use the memory of these blocks. */
    stream->keeps_cached = stream->may_keep_cached && !awaits_residents(stream);
    for (unsigned d = 0; d < stream->feeding->count; d++) {
        struct slc_feed *feed = &stream->feeding->feeds[d];

        /* Copies that a failed pass left are complete, because the caller has ended the job. */
        feed->first = 0;
        feed->count = 0;
        feed->gathered = false;
        feed->preparing = 0;
    }
    slc_copy_buffers_reset(&stream->feeding->buffers);
    stream->cache_cursor = 0;
}

/* Number of polls before a worker that waits for a feed sleeps, and of pauses between two polls.
 * All polls together last about 50 us. */
enum { LOCK_POLLS = 64, LOCK_PAUSES = 16 };

/* Feeding a block takes about 10 us, and waking a worker from sleep takes about 50 us. If every
 * worker slept while another one feeds, the device would get blocks at the rate of waking. */
void slc_stream_feed_lock(struct slc_feed *feed)
{
    for (unsigned i = 0; i < LOCK_POLLS; i++) {
        if (pthread_mutex_trylock(&feed->mutex) == 0) {
            return;
        }
        for (unsigned j = 0; j < LOCK_PAUSES; j++) {
            slc_thread_pause();
        }
    }
    pthread_mutex_lock(&feed->mutex);
}

/* Releases the slot or the buffer from which a copy was made. */
static void release_source(struct slc_stream *stream, const struct slc_feed_copy *copy)
{
    if (copy->slot != SLC_NO_SLOT) {
        slc_stream_block_release(stream, &stream->slot_blocks[copy->slot]);
    } else {
        slc_copy_buffers_release(&stream->feeding->buffers, copy->buffer);
    }
}

enum slc_status slc_stream_feed_reclaim(struct slc_stream *stream,
                                        struct slc_feed *feed,
                                        bool wait,
                                        struct slc_error *fault)
{
    while (feed->count > 0) {
        const struct slc_feed_copy *oldest = &feed->copies[feed->first];
        bool done = false;
        const enum slc_status status =
            feed->device->ops->job.copied(feed->device, oldest->ticket, wait, &done, fault);

        if (status != SLC_OK || !done) {
            return status;
        }
        release_source(stream, oldest);
        feed->first = (feed->first + 1) % feed->copy_most;
        feed->count--;
        wait = false;
    }
    return SLC_OK;
}

/* Feeds a block to its device, and records a block that becomes resident. */
static enum slc_status feed_block(struct slc_stream *stream,
                                  const struct slc_encoded_block *block,
                                  uint64_t *ticket,
                                  struct slc_error *fault)
{
    struct slc_feed *feed = feed_of(stream, block->block);
    uint8_t *state = &stream->layout->cached[block->block];
    /* No lock is needed: until the block is cached or resident, only the worker that feeds the
     * block accesses its state. */
    const bool keeps =
        *state == SLC_CACHE_RESIDENT_WANTED || (*state == SLC_CACHE_YES && stream->keeps_cached);
    uint32_t keep = SLC_NOT_RESIDENT;
    const enum slc_status status =
        feed->device->ops->job.block(feed->device, block, keeps ? &keep : NULL, ticket, fault);

    feed->gathered = true;
    SLC_TRY(status);
    if (keep != SLC_NOT_RESIDENT) {
        pthread_mutex_lock(&stream->mutex);
        stream->layout->keep[block->block] = keep;
        if (*state == SLC_CACHE_RESIDENT_WANTED) {
            *state = SLC_CACHE_RESIDENT_NEW;
        }
        pthread_mutex_unlock(&stream->mutex);
    }
    return SLC_OK;
}

static void record_copy(struct slc_feed *feed, const struct slc_feed_copy *copy)
{
    assert(feed->count < feed->copy_most);
    feed->copies[(feed->first + feed->count++) % feed->copy_most] = *copy;
}

/* Acquires a buffer. If no buffer is free, waits for a copy. A copy is then in progress, because
 * every other worker uses at most one buffer. */
static enum slc_status acquire_buffer(struct slc_stream *stream,
                                      unsigned number,
                                      uint32_t *buffer,
                                      struct slc_error *fault)
{
    struct slc_feeding *feeding = stream->feeding;
    enum slc_status status = SLC_OK;

    for (unsigned i = number;
         status == SLC_OK && !slc_copy_buffers_acquire(&feeding->buffers, buffer); i++) {
        struct slc_feed *feed = &feeding->feeds[i % feeding->count];

        slc_stream_feed_lock(feed);
        status = slc_stream_feed_reclaim(stream, feed, true, fault);
        pthread_mutex_unlock(&feed->mutex);
    }
    return status;
}

/* Copies a block from the mapped file, releases its slot, and checks the copy. */
static enum slc_status check_mapped(struct slc_stream *stream,
                                    unsigned number,
                                    unsigned slot,
                                    uint64_t block,
                                    struct slc_block_view *view,
                                    struct slc_feed_copy *copy,
                                    struct slc_error *fault)
{
    struct slc_open_block *record = &stream->slot_blocks[slot];
    enum slc_status status;
    void *place;

    copy->slot = SLC_NO_SLOT;
    if (stream->layout->cached[block] == SLC_CACHE_WANTED) {
        status = slc_stream_check_arrived(stream, slot, block, fault);
        *view = record->view;
        if (status == SLC_OK) {
            slc_stream_block_release(stream, record);
        }
        return status;
    }
    SLC_TRY(acquire_buffer(stream, number, &copy->buffer, fault));
    place = slc_copy_buffers_place(&stream->feeding->buffers, copy->buffer);
    SLC_TRY(slc_stream_copy_arrived(stream, slot, block, place, fault));
    record->slot = slot;
    slc_stream_block_release(stream, record);
    return slc_block_open(stream->layout->reader, block, place, false, view, fault);
}

static struct slc_encoded_tile *worker_tiles(const struct slc_stream *stream, unsigned number)
{
    const struct slc_feeding *feeding = stream->feeding;

    return (struct slc_encoded_tile *)feeding->tiles.data + number * feeding->tiles_most;
}

/* Feeds a block that has arrived, and records its slot or buffer, to be released after the copy. */
static enum slc_status feed_arrived_block(struct slc_stream *stream,
                                          const struct slc_encoded_block *block,
                                          struct slc_feed_copy *copy,
                                          struct slc_error *fault)
{
    struct slc_feed *feed = feed_of(stream, block->block);

    slc_stream_feed_lock(feed);
    if (copy->slot != SLC_NO_SLOT) {
        slc_ring_copy(stream->ring, copy->slot);
    }
    enum slc_status status = feed_block(stream, block, &copy->ticket, fault);
    /* A copy from the cache is not recorded, because it occupies no slot or buffer. */
    if (status == SLC_OK && (copy->slot != SLC_NO_SLOT || copy->buffer != SLC_FEED_NO_BUFFER)) {
        record_copy(feed, copy);
    }
    SLC_THEN(status, slc_stream_feed_reclaim(stream, feed, false, fault));
    pthread_mutex_unlock(&feed->mutex);
    return status;
}

enum slc_status slc_stream_feed_arrived(struct slc_stream *stream,
                                        unsigned number,
                                        unsigned slot,
                                        uint64_t number_of_block,
                                        struct slc_error *fault)
{
    struct slc_stream_worker *worker = &stream->workers[number];
    const uint64_t start_ns = slc_clock_ns();
    struct slc_feed_copy copy = {.slot = slot, .buffer = SLC_FEED_NO_BUFFER};
    struct slc_encoded_block block;
    struct slc_block_view view;
    enum slc_status status;

    if (stream->feeding->buffers.count > 0) {
        status = check_mapped(stream, number, slot, number_of_block, &view, &copy, fault);
    } else {
        status = slc_stream_check_arrived(stream, slot, number_of_block, fault);
        view = stream->slot_blocks[slot].view;
    }
    SLC_THEN(status, slc_describe_block(worker->decoder, &view, worker_tiles(stream, number),
                                        &block, fault));
    uint64_t described_ns = slc_clock_ns();
    worker->decode_ns += described_ns - start_ns;
    SLC_TRY(status);
    status = feed_arrived_block(stream, &block, &copy, fault);
    worker->compute_ns += slc_clock_ns() - described_ns;
    atomic_fetch_add(&stream->blocks_done, 1);
    return status;
}

/* Returns true if the block is cached in host memory and not resident in device memory. */
static bool is_only_cached(const struct slc_stream_layout *layout, uint64_t block)
{
    return layout->cached[block] == SLC_CACHE_YES && layout->keep[block] == SLC_NOT_RESIDENT;
}

/* Claims the next block that is only cached, if there is one. */
static bool claim_held(struct slc_stream *stream, uint64_t *block)
{
    const struct slc_stream_layout *layout = stream->layout;
    const uint64_t count = layout->info->block_count;
    uint64_t *cursor = &stream->cache_cursor;

    pthread_mutex_lock(&stream->mutex);
    while (*cursor < count && !is_only_cached(layout, stream->order[*cursor])) {
        ++*cursor;
    }
    bool found = *cursor < count;
    if (found) {
        *block = stream->order[(*cursor)++];
    }
    pthread_mutex_unlock(&stream->mutex);
    return found;
}

/* Feeds a block that is resident in device memory. */
static enum slc_status
feed_resident(struct slc_stream *stream, uint64_t block, struct slc_error *fault)
{
    struct slc_feed *feed = feed_of(stream, block);
    struct slc_block_entry entry;

    slc_reader_entry(stream->layout->reader, block, &entry);
    atomic_fetch_add(&stream->bytes_resident, entry.padded_bytes);
    slc_stream_feed_lock(feed);
    enum slc_status status =
        feed->device->ops->job.resident(feed->device, stream->layout->keep[block], fault);
    feed->gathered = true;
    SLC_THEN(status, slc_stream_feed_reclaim(stream, feed, false, fault));
    pthread_mutex_unlock(&feed->mutex);
    return status;
}

enum slc_status slc_stream_feed_residents(struct slc_stream *stream, struct slc_error *fault)
{
    struct slc_feeding *feeding = stream->feeding;

    for (uint64_t i = stream->first; i < stream->end; i++) {
        if (slc_stream_is_resident(stream->layout, stream->order[i])) {
            SLC_TRY(slc_stream_feed_held(stream, 0, stream->order[i], fault));
        }
    }
    for (unsigned d = 0; d < feeding->count; d++) {
        struct slc_feed *feed = &feeding->feeds[d];

        if (feed->gathered) {
            feed->gathered = false;
            SLC_TRY(feed->device->ops->job.flush(feed->device, fault));
        }
    }
    return SLC_OK;
}

/* Feeds a cached block. Its copy is not recorded, because the block stays in the cache. */
static enum slc_status feed_cached(struct slc_stream *stream,
                                   unsigned number,
                                   uint64_t number_of_block,
                                   struct slc_error *fault)
{
    struct slc_stream_worker *worker = &stream->workers[number];
    struct slc_feed *feed = feed_of(stream, number_of_block);
    const uint64_t start_ns = slc_clock_ns();
    struct slc_block_view view;
    struct slc_encoded_block block;
    uint64_t ticket, described_ns;
    enum slc_status status =
        slc_block_open(stream->layout->reader, number_of_block,
                       slc_stream_cache_place(stream, number_of_block), true, &view, fault);

    SLC_THEN(status, slc_describe_block(worker->decoder, &view, worker_tiles(stream, number),
                                        &block, fault));
    described_ns = slc_clock_ns();
    worker->decode_ns += described_ns - start_ns;
    SLC_TRY(status);
    atomic_fetch_add(&stream->bytes_cached, view.entry.padded_bytes);
    slc_stream_feed_lock(feed);
    status = feed_block(stream, &block, &ticket, fault);
    SLC_THEN(status, slc_stream_feed_reclaim(stream, feed, false, fault));
    pthread_mutex_unlock(&feed->mutex);
    worker->compute_ns += slc_clock_ns() - described_ns;
    return status;
}

enum slc_status slc_stream_feed_held(struct slc_stream *stream,
                                     unsigned number,
                                     uint64_t block,
                                     struct slc_error *fault)
{
    const enum slc_status status = slc_stream_is_resident(stream->layout, block)
                                       ? feed_resident(stream, block, fault)
                                       : feed_cached(stream, number, block, fault);

    atomic_fetch_add(&stream->blocks_done, 1);
    slc_ring_skip(stream->ring);
    return status;
}

/* Starts the gathered batch on a device. With `wait`, also waits for the oldest copy to this device
 * and sets *worked if there was a copy. */
static enum slc_status flush_feed(struct slc_stream *stream,
                                  struct slc_feed *feed,
                                  bool wait,
                                  bool *worked,
                                  struct slc_error *fault)
{
    enum slc_status status = SLC_OK;

    if (pthread_mutex_trylock(&feed->mutex) != 0) {
        return SLC_OK;
    }
    if (feed->gathered) {
        feed->gathered = false;
        status = feed->device->ops->job.flush(feed->device, fault);
    }
    *worked = wait && feed->count > 0;
    SLC_THEN(status, slc_stream_feed_reclaim(stream, feed, wait, fault));
    pthread_mutex_unlock(&feed->mutex);
    return status;
}

/* Called by a worker that has no block. Starts the batches of all devices, and then waits for a
 * copy of one device. Each worker begins with a different device. Sets *worked if there was a copy
 * to wait for. */
static enum slc_status
work_idle(struct slc_stream *stream, unsigned number, bool *worked, struct slc_error *fault)
{
    struct slc_feeding *feeding = stream->feeding;
    const uint64_t start_ns = slc_clock_ns();
    enum slc_status status = SLC_OK;

    *worked = false;
    for (unsigned i = feeding->count == 1 ? 1 : 0;
         i < 2 * feeding->count && status == SLC_OK && !*worked; i++) {
        status = flush_feed(stream, &feeding->feeds[(number + i) % feeding->count],
                            i >= feeding->count, worked, fault);
    }
    stream->workers[number].compute_ns += slc_clock_ns() - start_ns;
    return status;
}

/* Makes one step of a worker. Sets *end if the pass has ended. */
static enum slc_status
feed_step(struct slc_stream *stream, unsigned number, bool *end, struct slc_error *fault)
{
    const uint64_t news = slc_ring_news(stream->ring);
    uint64_t *wait_ns = &stream->workers[number].wait_ns;
    enum slc_status status;
    uint64_t block;
    unsigned slot;
    bool worked;
    enum slc_ring_event event =
        slc_ring_take_block(stream->ring, news, false, &slot, &block, wait_ns);

    if (event == SLC_RING_NOTHING && claim_held(stream, &block)) {
        return slc_stream_feed_held(stream, number, block, fault);
    }
    if (event == SLC_RING_NOTHING) {
        status = work_idle(stream, number, &worked, fault);
        if (status != SLC_OK || worked) {
            return status;
        }
        event = slc_ring_take_block(stream->ring, news, true, &slot, &block, wait_ns);
    }
    *end = event == SLC_RING_END;
    return event == SLC_RING_BLOCK ? slc_stream_feed_arrived(stream, number, slot, block, fault)
                                   : SLC_OK;
}

void slc_stream_run_steps(struct slc_stream *stream, unsigned number, slc_stream_step_fn *step)
{
    struct slc_error fault = SLC_ERROR_INIT;
    bool end = false;

    while (!end) {
        enum slc_status status =
            slc_stream_stop_requested(stream->pass)
                ? slc_fail(&fault, SLC_ERR_INTERRUPTED, "stopped before its end")
                : step(stream, number, &end, &fault);

        if (status != SLC_OK) {
            slc_stream_abort(stream, &fault);
            return;
        }
        slc_stream_progress(stream, number);
    }
}

void slc_stream_feed_run(struct slc_stream *stream, unsigned number)
{
    slc_stream_run_steps(stream, number, feed_step);
}
