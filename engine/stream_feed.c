/*
 * Passes that give whole blocks to a device (base/device.h), or each block to the one of several
 * that it belongs to.
 *
 * Each worker checks and describes the blocks it takes from the ring, which is what costs time, and
 * hands them over under the mutex of their device: so one thread at a time uses it. A slot is in
 * the device's hands until its copy has been made. Copies stand in a queue in the order in which
 * they were asked for; whoever hands over a block looks how far they are, and gives back slots.
 * Workers do not belong to devices: whoever is free prepares the next block, whosever it is.
 *
 * Blocks that have arrived go first, because their slots are wanted for more reads; blocks of the
 * cache and those that stay in the device's memory fill the time between. A worker that finds none
 * of them has the device begin with what it has gathered, then waits for the oldest copy, for
 * without its slot there may be nothing more to read, and sleeps in the ring when there is none.
 * It does not line up for that: who holds the mutex comes here next.
 *
 * Data that lies in a map cannot be registered page by page, and changes when the file does. It is
 * copied to the cache, where it belongs there, or to a buffer, which is what is checked and
 * described; its slot is free at once. Buffers are one more than workers, so that a device copies
 * one while each of them fills another.
 */
#include "engine/assert.h"
#include "engine/copy_buffers.h"
#include "engine/stream_impl.h"

#include "base/checked.h"
#include "base/clock.h"
#include "base/device.h"
#include "base/memory.h"
#include "storage/describe.h"

#include <string.h>

enum {
    REGIONS = 3 /* of memory that a device is told of: slots, cache, buffers */
};

#define NO_BUFFER UINT32_MAX

/* A copy that the device makes. */
struct copy {
    uint64_t ticket;
    uint32_t slot; /* that it reads; SLC_NO_SLOT: a buffer */
    uint32_t buffer;
};

/* What goes to one device. */
struct feed {
    struct slc_device *device;
    pthread_mutex_t mutex; /* whoever holds it uses the device and what follows */
    struct copy *copies;   /* a circle of copy_most */
    unsigned copy_most, first, count;
    bool gathered; /* blocks that the device may not have begun with */

    void *registered[REGIONS];
    unsigned registered_count;
};

struct slc_feeding {
    struct feed feeds[SLC_MAX_DEVICES];
    unsigned count;
    struct slc_buffer tiles; /* descriptions: tiles_most of each worker */
    uint64_t tiles_most;

    struct slc_copy_buffers buffers; /* for blocks of a map */
};

/* Of the device that a block of the pass belongs to. */
static struct feed *feed_of(const struct slc_stream *stream, uint64_t block)
{
    const struct slc_pass_division *division = stream->pass->division;

    return &stream->feeding->feeds[division != NULL ? division->owner[block] : 0];
}

/* Tiles of the block with the most. */
static uint64_t tiles_most(const struct slc_reader *reader)
{
    const uint64_t count = slc_reader_info(reader)->block_count;
    uint64_t most = 0;

    for (uint64_t b = 0; b < count; b++) {
        struct slc_block_entry entry;

        slc_reader_entry(reader, b, &entry);
        most = slc_max_u64(most, entry.tile_count);
    }
    return most;
}

uint64_t slc_stream_device_bytes(const struct slc_layouts *layouts, const struct slc_plan *plan)
{
    const uint64_t buffers_bytes = plan->request.io == SLC_IO_MMAP
                                       ? slc_copy_buffers_bytes(plan->threads + 1, plan->slot_bytes)
                                       : 0;
    uint64_t most = 0, tiles, all;

    for (unsigned l = 0; l < layouts->count; l++) {
        most = slc_max_u64(most, tiles_most(layouts->reader[l]));
    }
    if (!slc_mul_u64(most * plan->threads, sizeof(struct slc_encoded_tile), &tiles) ||
        !slc_add_u64(slc_buffer_footprint(tiles, SLC_PAGES_SMALL), buffers_bytes, &all)) {
        return UINT64_MAX;
    }
    return all;
}

static enum slc_status
tell_device(struct feed *feed, void *memory, uint64_t bytes, struct slc_error *err)
{
    enum slc_status status;

    if (bytes == 0) {
        return SLC_OK;
    }
    status = feed->device->ops->host_register(feed->device, memory, bytes, err);
    if (status == SLC_OK) {
        feed->registered[feed->registered_count++] = memory;
    }
    return status;
}

static enum slc_status
attach_device(struct slc_stream *stream, struct slc_device *device, struct slc_error *err)
{
    struct feed *feed = &stream->feeding->feeds[stream->feeding->count++];
    const struct slc_copy_buffers *buffers = &stream->feeding->buffers;
    uint64_t bytes;
    void *slots = slc_io_slots(stream->io, &bytes);
    enum slc_status status;

    feed->device = device;
    pthread_mutex_init(&feed->mutex, NULL);
    feed->copy_most = buffers->count > 0 ? buffers->count : stream->slot_count;
    feed->copies = slc_calloc(feed->copy_most, sizeof *feed->copies);
    if (feed->copies == NULL) {
        return slc_fail(err, SLC_ERR_MEMORY, "no memory to note %u copies", feed->copy_most);
    }
    status = tell_device(feed, slots, bytes, err);
    if (status == SLC_OK) {
        status = tell_device(feed, stream->cache.data, stream->cache.bytes, err);
    }
    if (status == SLC_OK) {
        status = tell_device(feed, buffers->memory.data, buffers->memory.bytes, err);
    }
    return status;
}

enum slc_status slc_stream_attach(struct slc_stream *stream,
                                  struct slc_device *const *devices,
                                  unsigned count,
                                  struct slc_error *err)
{
    struct slc_feeding *feeding;
    enum slc_status status;

    if (stream->feeding != NULL || count < 1 || count > SLC_MAX_DEVICES) {
        return slc_fail(err, SLC_ERR_USAGE, "the stream has a device already, or %u are too many",
                        count);
    }
    feeding = slc_calloc(1, sizeof *feeding);
    if (feeding == NULL) {
        return slc_fail(err, SLC_ERR_MEMORY, "no memory to feed a device");
    }
    stream->feeding = feeding;
    for (unsigned l = 0; l < stream->layout_count; l++) {
        feeding->tiles_most =
            slc_max_u64(feeding->tiles_most, tiles_most(stream->layouts[l].reader));
    }
    status = slc_buffer_create(&feeding->tiles,
                               feeding->tiles_most * stream->worker_count *
                                   sizeof(struct slc_encoded_tile),
                               SLC_PAGES_SMALL, err);
    if (status == SLC_OK && slc_io_kind(stream->io) == SLC_IO_MMAP) {
        status = slc_copy_buffers_create(&feeding->buffers, stream->worker_count + 1,
                                         stream->slot_bytes, err);
    }
    for (unsigned d = 0; d < count && status == SLC_OK; d++) {
        status = attach_device(stream, devices[d], err);
    }
    if (status != SLC_OK) {
        slc_stream_detach(stream);
    }
    return status;
}

void slc_stream_detach(struct slc_stream *stream)
{
    struct slc_feeding *feeding = stream->feeding;

    if (feeding == NULL) {
        return;
    }
    /* Who was told of memory first is told last that it goes. */
    while (feeding->count > 0) {
        struct feed *feed = &feeding->feeds[--feeding->count];

        for (unsigned i = 0; i < feed->registered_count; i++) {
            feed->device->ops->host_unregister(feed->device, feed->registered[i]);
        }
        slc_free(feed->copies);
        pthread_mutex_destroy(&feed->mutex);
    }
    slc_buffer_destroy(&feeding->tiles);
    slc_copy_buffers_destroy(&feeding->buffers);
    slc_free(feeding);
    stream->feeding = NULL;
    /* Nobody has the blocks that stayed in its memory any more. */
    for (unsigned l = 0; l < stream->layout_count; l++) {
        struct slc_stream_layout *layout = &stream->layouts[l];

        for (uint64_t b = 0; b < layout->info->block_count; b++) {
            if (layout->cached[b] == SLC_CACHE_RESIDENT) {
                layout->cached[b] = SLC_CACHE_RESIDENT_WANTED;
            }
        }
    }
}

const struct slc_device *slc_stream_device(const struct slc_stream *stream)
{
    return stream->feeding != NULL ? stream->feeding->feeds[0].device : NULL;
}

unsigned slc_stream_device_count(const struct slc_stream *stream)
{
    return stream->feeding != NULL ? stream->feeding->count : 0;
}

void slc_stream_feed_begin(struct slc_stream *stream)
{
    for (unsigned d = 0; d < stream->feeding->count; d++) {
        struct feed *feed = &stream->feeding->feeds[d];

        /* What a pass that failed has left here the end of its job has waited for. */
        feed->first = 0;
        feed->count = 0;
        feed->gathered = false;
    }
    slc_copy_buffers_reset(&stream->feeding->buffers);
    stream->cache_cursor = 0;
}

/* What a copy was made of may be used again. */
static void give_back(struct slc_stream *stream, const struct copy *copy)
{
    if (copy->slot != SLC_NO_SLOT) {
        slc_stream_block_release(stream, &stream->slot_blocks[copy->slot]);
    } else {
        slc_copy_buffers_give_back(&stream->feeding->buffers, copy->buffer);
    }
}

/*
 * Gives back the slots and buffers whose copies have been made; with `wait` the oldest copy is
 * waited for. Under the mutex, as are the following.
 */
static enum slc_status
settle(struct slc_stream *stream, struct feed *feed, bool wait, struct slc_error *fault)
{
    while (feed->count > 0) {
        const struct copy *oldest = &feed->copies[feed->first];
        bool done = false;
        const enum slc_status status =
            feed->device->ops->copied(feed->device, oldest->ticket, wait, &done, fault);

        if (status != SLC_OK || !done) {
            return status;
        }
        give_back(stream, oldest);
        feed->first = (feed->first + 1) % feed->copy_most;
        feed->count--;
        wait = false;
    }
    return SLC_OK;
}

/* Has the device take a block; one that belongs into its memory is noted to be there. */
static enum slc_status hand_over(struct slc_stream *stream,
                                 const struct slc_encoded_block *block,
                                 uint64_t *ticket,
                                 struct slc_error *fault)
{
    struct feed *feed = feed_of(stream, block->block);
    uint8_t *state = &stream->layout->cached[block->block];
    /* Only whoever feeds a block touches its state while it is not held. */
    const bool keeps = *state == SLC_CACHE_RESIDENT_WANTED;
    uint32_t keep = SLC_NOT_RESIDENT;
    const enum slc_status status =
        feed->device->ops->block(feed->device, block, keeps ? &keep : NULL, ticket, fault);

    feed->gathered = true;
    if (status == SLC_OK && keep != SLC_NOT_RESIDENT) {
        pthread_mutex_lock(&stream->mutex);
        stream->layout->keep[block->block] = keep;
        *state = SLC_CACHE_RESIDENT_NEW;
        pthread_mutex_unlock(&stream->mutex);
    }
    return status;
}

static void note_copy(struct feed *feed, const struct copy *copy)
{
    SLC_ASSERT(feed->count < feed->copy_most);
    feed->copies[(feed->first + feed->count++) % feed->copy_most] = *copy;
}

/*
 * Takes a buffer; where none is free it waits for a copy. There is one under way then: every other
 * worker has one buffer at most.
 */
static enum slc_status
take_buffer(struct slc_stream *stream, unsigned number, uint32_t *buffer, struct slc_error *fault)
{
    struct slc_feeding *feeding = stream->feeding;
    enum slc_status status = SLC_OK;

    for (unsigned i = number; status == SLC_OK && !slc_copy_buffers_take(&feeding->buffers, buffer);
         i++) {
        struct feed *feed = &feeding->feeds[i % feeding->count];

        pthread_mutex_lock(&feed->mutex);
        status = settle(stream, feed, true, fault);
        pthread_mutex_unlock(&feed->mutex);
    }
    return status;
}

/* Copies a block of the map, gives its slot back, and checks the copy. */
static enum slc_status check_mapped(struct slc_stream *stream,
                                    unsigned number,
                                    unsigned slot,
                                    uint64_t block,
                                    struct slc_block_view *view,
                                    struct copy *copy,
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
    status = take_buffer(stream, number, &copy->buffer, fault);
    if (status != SLC_OK) {
        return status;
    }
    place = slc_copy_buffers_place(&stream->feeding->buffers, copy->buffer);
    status = slc_stream_copy_arrived(stream, slot, block, place, fault);
    if (status != SLC_OK) {
        return status;
    }
    record->slot = slot;
    slc_stream_block_release(stream, record);
    return slc_block_open(stream->layout->reader, block, place, false, view, fault);
}

static struct slc_encoded_tile *worker_tiles(const struct slc_stream *stream, unsigned number)
{
    const struct slc_feeding *feeding = stream->feeding;

    return (struct slc_encoded_tile *)feeding->tiles.data + number * feeding->tiles_most;
}

/* Hands over a block that has arrived, and notes what it is copied from. */
static enum slc_status hand_over_arrived(struct slc_stream *stream,
                                         const struct slc_encoded_block *block,
                                         struct copy *copy,
                                         struct slc_error *fault)
{
    struct feed *feed = feed_of(stream, block->block);
    enum slc_status status;

    pthread_mutex_lock(&feed->mutex);
    if (copy->slot != SLC_NO_SLOT) {
        slc_ring_copy(stream->ring, copy->slot);
    }
    status = hand_over(stream, block, &copy->ticket, fault);
    /* What stays in the cache need not be waited for. */
    if (status == SLC_OK && (copy->slot != SLC_NO_SLOT || copy->buffer != NO_BUFFER)) {
        note_copy(feed, copy);
    }
    if (status == SLC_OK) {
        status = settle(stream, feed, false, fault);
    }
    pthread_mutex_unlock(&feed->mutex);
    return status;
}

/* A block that has arrived: checked, described and handed over. */
static enum slc_status feed_arrived(struct slc_stream *stream,
                                    unsigned number,
                                    unsigned slot,
                                    uint64_t number_of_block,
                                    struct slc_error *fault)
{
    struct slc_stream_worker *worker = &stream->workers[number];
    const uint64_t start_ns = slc_clock_ns();
    struct copy copy = {.slot = slot, .buffer = NO_BUFFER};
    struct slc_encoded_block block;
    struct slc_block_view view;
    uint64_t described_ns;
    enum slc_status status;

    if (stream->feeding->buffers.count > 0) {
        status = check_mapped(stream, number, slot, number_of_block, &view, &copy, fault);
    } else {
        status = slc_stream_check_arrived(stream, slot, number_of_block, fault);
        view = stream->slot_blocks[slot].view;
    }
    if (status == SLC_OK) {
        status =
            slc_describe_block(worker->decoder, &view, worker_tiles(stream, number), &block, fault);
    }
    described_ns = slc_clock_ns();
    worker->decode_ns += described_ns - start_ns;
    if (status != SLC_OK) {
        return status;
    }
    status = hand_over_arrived(stream, &block, &copy, fault);
    worker->compute_ns += slc_clock_ns() - described_ns;
    atomic_fetch_add(&stream->blocks_done, 1);
    return status;
}

/* Takes the next block that need not be read, if there is one. */
static bool claim_held(struct slc_stream *stream, uint64_t *block)
{
    const struct slc_stream_layout *layout = stream->layout;
    const uint64_t count = layout->info->block_count;
    uint64_t *cursor = &stream->cache_cursor;
    bool found;

    pthread_mutex_lock(&stream->mutex);
    while (*cursor < count && layout->cached[stream->order[*cursor]] != SLC_CACHE_YES &&
           layout->cached[stream->order[*cursor]] != SLC_CACHE_RESIDENT) {
        ++*cursor;
    }
    found = *cursor < count;
    if (found) {
        *block = stream->order[(*cursor)++];
    }
    pthread_mutex_unlock(&stream->mutex);
    return found;
}

/* A block of the device's memory. */
static enum slc_status
feed_resident(struct slc_stream *stream, uint64_t block, struct slc_error *fault)
{
    struct feed *feed = feed_of(stream, block);
    struct slc_block_entry entry;
    enum slc_status status;

    slc_reader_entry(stream->layout->reader, block, &entry);
    atomic_fetch_add(&stream->bytes_resident, entry.padded_bytes);
    pthread_mutex_lock(&feed->mutex);
    status = feed->device->ops->resident(feed->device, stream->layout->keep[block], fault);
    feed->gathered = true;
    if (status == SLC_OK) {
        status = settle(stream, feed, false, fault);
    }
    pthread_mutex_unlock(&feed->mutex);
    return status;
}

/* A block of the cache, which stays there longer than any copy takes. */
static enum slc_status feed_cached(struct slc_stream *stream,
                                   unsigned number,
                                   uint64_t number_of_block,
                                   struct slc_error *fault)
{
    struct slc_stream_worker *worker = &stream->workers[number];
    struct feed *feed = feed_of(stream, number_of_block);
    const uint64_t start_ns = slc_clock_ns();
    struct slc_block_view view;
    struct slc_encoded_block block;
    uint64_t ticket, described_ns;
    enum slc_status status =
        slc_block_open(stream->layout->reader, number_of_block,
                       slc_stream_cache_place(stream, number_of_block), true, &view, fault);

    if (status == SLC_OK) {
        status =
            slc_describe_block(worker->decoder, &view, worker_tiles(stream, number), &block, fault);
    }
    described_ns = slc_clock_ns();
    worker->decode_ns += described_ns - start_ns;
    if (status != SLC_OK) {
        return status;
    }
    atomic_fetch_add(&stream->bytes_cached, view.entry.padded_bytes);
    pthread_mutex_lock(&feed->mutex);
    status = hand_over(stream, &block, &ticket, fault);
    if (status == SLC_OK) {
        status = settle(stream, feed, false, fault);
    }
    pthread_mutex_unlock(&feed->mutex);
    worker->compute_ns += slc_clock_ns() - described_ns;
    return status;
}

static enum slc_status
feed_held(struct slc_stream *stream, unsigned number, uint64_t block, struct slc_error *fault)
{
    const enum slc_status status = stream->layout->cached[block] == SLC_CACHE_RESIDENT
                                       ? feed_resident(stream, block, fault)
                                       : feed_cached(stream, number, block, fault);

    atomic_fetch_add(&stream->blocks_done, 1);
    slc_ring_skip(stream->ring);
    return status;
}

/* Has a device begin with what it has gathered; and with `wait` waits for its oldest copy. */
static enum slc_status rest_by(
    struct slc_stream *stream, struct feed *feed, bool wait, bool *worked, struct slc_error *fault)
{
    enum slc_status status = SLC_OK;

    if (pthread_mutex_trylock(&feed->mutex) != 0) {
        return SLC_OK;
    }
    if (feed->gathered) {
        feed->gathered = false;
        status = feed->device->ops->flush(feed->device, fault);
    }
    *worked = wait && feed->count > 0;
    if (status == SLC_OK) {
        status = settle(stream, feed, wait, fault);
    }
    pthread_mutex_unlock(&feed->mutex);
    return status;
}

/*
 * What is left to do while there is no block: *worked says whether there was a copy to wait for.
 * All devices begin before one is waited for; each worker looks at another one first.
 */
static enum slc_status
rest(struct slc_stream *stream, unsigned number, bool *worked, struct slc_error *fault)
{
    struct slc_feeding *feeding = stream->feeding;
    const uint64_t start_ns = slc_clock_ns();
    enum slc_status status = SLC_OK;

    *worked = false;
    for (unsigned i = feeding->count == 1 ? 1 : 0;
         i < 2 * feeding->count && status == SLC_OK && !*worked; i++) {
        status = rest_by(stream, &feeding->feeds[(number + i) % feeding->count],
                         i >= feeding->count, worked, fault);
    }
    stream->workers[number].compute_ns += slc_clock_ns() - start_ns;
    return status;
}

/* One step of a worker. *end: the pass has ended. */
static enum slc_status
step(struct slc_stream *stream, unsigned number, bool *end, struct slc_error *fault)
{
    const uint64_t news = slc_ring_news(stream->ring);
    uint64_t *wait_ns = &stream->workers[number].wait_ns;
    enum slc_ring_event event;
    enum slc_status status;
    uint64_t block;
    unsigned slot;
    bool worked;

    event = slc_ring_take(stream->ring, news, false, &slot, &block, wait_ns);
    if (event == SLC_RING_NOTHING && claim_held(stream, &block)) {
        return feed_held(stream, number, block, fault);
    }
    if (event == SLC_RING_NOTHING) {
        status = rest(stream, number, &worked, fault);
        if (status != SLC_OK || worked) {
            return status;
        }
        event = slc_ring_take(stream->ring, news, true, &slot, &block, wait_ns);
    }
    *end = event == SLC_RING_END;
    return event == SLC_RING_BLOCK ? feed_arrived(stream, number, slot, block, fault) : SLC_OK;
}

void slc_stream_feed_run(struct slc_stream *stream, unsigned number)
{
    struct slc_error fault = SLC_ERROR_INIT;
    bool end = false;

    while (!end) {
        enum slc_status status = slc_stream_stop_wanted(stream->pass)
                                     ? slc_fail(&fault, SLC_ERR_INTERRUPTED, "stopped by a signal")
                                     : step(stream, number, &end, &fault);

        if (status != SLC_OK) {
            slc_stream_give_up(stream, &fault);
            return;
        }
        slc_stream_progress(stream, number);
    }
}
