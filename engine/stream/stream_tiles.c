/* Assigns tiles to workers.
 *
 * All workers take tiles of the open blocks. A worker that finds no tile opens the next block: it
 * verifies the checksum of the block, and copies the block to the cache if it belongs there. The
 * other workers continue with the remaining tiles. Block and tile are chosen under one lock. In
 * file order, tiles are therefore assigned in strictly ascending ordinal: only tiles of block
 * `serving` are assigned, and later blocks that are already open wait in a sorted list.
 *
 * No worker sleeps while a tile is available. A worker first calls slc_ring_news, then searches for
 * a tile, then waits in the ring. Every event that makes a tile available (a block was opened, or
 * it is now the turn of a block) notifies the ring, which wakes the worker.
 *
 * In file order, cached blocks are opened when it is their turn. In any other order, a worker opens
 * a cached block only if no block has arrived, because the slots of arrived blocks are needed for
 * more reads.
 *
 * If every worker needs every tile, all workers visit the blocks in the same order (file order or
 * the order of opening), but each worker may be at a different block. A block leaves the list when
 * all workers have taken its last tile.
 *
 * If tiles are delivered by partition, a worker takes a whole block when all earlier blocks of its
 * partition are done. Blocks of a partition are adjacent in the schedule. Slots are claimed, and
 * cached blocks are opened, in the order of the schedule. Therefore the first block that is not
 * done can always be taken, and the pass cannot deadlock for any number of slots.
 *
 * Each open cached block needs a record, and there is one record per worker. A worker opens a
 * cached block only if there is no tile to take. At that time each open cached block has a worker
 * that computes its last tiles or is opening it, so a record is free. In two cases a worker must
 * wait for a record. If every worker needs every tile, a worker may be ahead of the other workers
 * by as many blocks as there are records. If tiles are delivered by partition, open blocks may wait
 * for their turn. A group of workers uses only the records of its own workers. Any worker opens
 * arrived blocks, for any group. */
#include "engine/stream/stream_impl.h"

#include "base/error/clock.h"

#include <assert.h>
#include <string.h>

/* Interval between two calls of pass->progress: 100 ms. */
#define PROGRESS_INTERVAL_NS UINT64_C(100000000)

void slc_stream_abort(struct slc_stream *stream, const struct slc_error *fault)
{
    const struct slc_tile_consumer *consumer = stream->consumer;

    slc_ring_abort(stream->ring, fault);
    if (!atomic_exchange(&stream->aborted, true) && consumer != NULL && consumer->wake != NULL) {
        consumer->wake(consumer->context);
    }
}

/* For passes by partition: sets the number of completed blocks of the partition in which the part
 * of the pass begins, because earlier parts may have computed some of its blocks. */
static void count_earlier_blocks(struct slc_stream *stream)
{
    const uint64_t block = stream->order[stream->first];
    struct slc_block_entry entry;
    struct slc_partition partition;

    slc_reader_entry(stream->layout->reader, block, &entry);
    slc_reader_partition(stream->layout->reader, entry.partition, &partition);
    stream->layout->partition_done[entry.partition] = block - partition.first_block;
}

void slc_stream_tiles_begin(struct slc_stream *stream)
{
    /* If every worker gets every tile, the order of a strict pass is file order, so a position is a
     * block number. */
    const uint64_t serving = stream->strict ? stream->first : 0;

    stream->open = NULL;
    stream->serving = serving;
    stream->opened = 0;
    stream->cache_cursor = stream->first;
    for (unsigned w = 0; w < stream->worker_count; w++) {
        stream->cache_blocks[w].used = false;
        stream->workers[w].serving = serving;
        stream->workers[w].next_tile = 0;
        stream->workers[w].taken = NULL;
        stream->workers[w].cache_cursor = stream->first;
    }
    for (uint64_t p = 0; p < stream->layout->info->partition_count; p++) {
        stream->layout->partition_done[p] = 0;
    }
    if (stream->by_partition && stream->first < stream->end) {
        count_earlier_blocks(stream);
    }
}

/* Makes the tiles of a block available, and wakes waiting workers. */
static void publish_block(struct slc_stream *stream, struct slc_open_block *block)
{
    struct slc_open_block **link = &stream->open;
    const uint64_t tiles = block->view.entry.tile_count;

    block->next_tile = 0;
    block->takers = stream->worker_count;
    atomic_store(&block->tiles_left, stream->every_worker ? tiles * stream->worker_count : tiles);
    pthread_mutex_lock(&stream->mutex);
    block->number = stream->strict ? block->view.block : stream->opened++;
    while (*link != NULL && (!stream->strict || (*link)->view.block < block->view.block)) {
        link = &(*link)->next;
    }
    block->next = *link;
    *link = block;
    pthread_mutex_unlock(&stream->mutex);
    slc_ring_notify(stream->ring);
}

/* For passes in which every worker needs every tile: takes the worker's next tile, if the block of
 * this tile is open. */
static bool take_own_tile(struct slc_stream *stream,
                          struct slc_stream_worker *worker,
                          struct slc_open_block **block,
                          uint32_t *tile)
{
    struct slc_open_block **link = &stream->open;

    pthread_mutex_lock(&stream->mutex);
    while (*link != NULL && (*link)->number != worker->serving) {
        link = &(*link)->next;
    }
    struct slc_open_block *found = *link;
    if (found != NULL) {
        *block = found;
        *tile = worker->next_tile++;
        if (worker->next_tile == found->view.entry.tile_count) {
            worker->serving++;
            worker->next_tile = 0;
            if (--found->takers == 0) {
                *link = found->next;
            }
        }
    }
    pthread_mutex_unlock(&stream->mutex);
    return found != NULL;
}

/* Returns true if the worker's group owns a block, or if there are no groups. */
static bool
is_own(const struct slc_stream *stream, const struct slc_stream_worker *worker, uint64_t block)
{
    const struct slc_pass_division *division = stream->division;
    const unsigned number = (unsigned)(worker - stream->workers);

    return division == NULL || division->owner[block] == number / division->group_workers;
}

bool slc_stream_take_open_tile(struct slc_stream *stream,
                               const struct slc_stream_worker *worker,
                               struct slc_open_block **block,
                               uint32_t *tile)
{
    struct slc_open_block **link = &stream->open;
    bool turn_passes = false;
    bool found = false;

    pthread_mutex_lock(&stream->mutex);
    while (*link != NULL && !is_own(stream, worker, (*link)->view.block)) {
        link = &(*link)->next;
    }
    struct slc_open_block *first = *link;
    if (first != NULL && (!stream->strict || first->view.block == stream->order[stream->serving])) {
        *block = first;
        *tile = first->next_tile++;
        found = true;
        if (first->next_tile == first->view.entry.tile_count) {
            *link = first->next;
            stream->serving++;
            turn_passes = stream->strict;
        }
    }
    pthread_mutex_unlock(&stream->mutex);
    if (turn_passes) {
        slc_ring_notify(stream->ring);
    }
    return found;
}

/* Returns true if all earlier blocks of this block's partition are done. */
static bool partition_turn(const struct slc_stream *stream, const struct slc_open_block *block)
{
    const uint64_t number = block->view.entry.partition;
    struct slc_partition partition;

    slc_reader_partition(stream->layout->reader, number, &partition);
    return block->view.block == partition.first_block + stream->layout->partition_done[number];
}

/* For passes by partition: takes the next tile of the worker's block or, if that has no tile left,
 * of another block. */
static bool take_partition_tile(struct slc_stream *stream,
                                struct slc_stream_worker *worker,
                                struct slc_open_block **block,
                                uint32_t *tile)
{
    struct slc_open_block **link = &stream->open;

    if (worker->taken == NULL) {
        pthread_mutex_lock(&stream->mutex);
        while (*link != NULL &&
               (!is_own(stream, worker, (*link)->view.block) || !partition_turn(stream, *link))) {
            link = &(*link)->next;
        }
        worker->taken = *link;
        if (worker->taken != NULL) {
            *link = worker->taken->next;
        }
        pthread_mutex_unlock(&stream->mutex);
    }
    if (worker->taken == NULL) {
        return false;
    }
    *block = worker->taken;
    *tile = worker->taken->next_tile++;
    if (worker->taken->next_tile == worker->taken->view.entry.tile_count) {
        worker->taken = NULL;
    }
    return true;
}

/* Returns NULL if all records are in use. This can happen only in the kinds of passes that the
 * assertion below lists. */
struct slc_open_block *
slc_stream_cached_record(struct slc_stream *stream, unsigned first, unsigned end, uint64_t block)
{
    for (unsigned w = first; w < end; w++) {
        struct slc_open_block *record = &stream->cache_blocks[w];

        if (!record->used) {
            record->used = true;
            record->slot = SLC_NO_SLOT;
            record->view.block = block;
            return record;
        }
    }
    assert(stream->every_worker || stream->by_partition || stream->division != NULL);
    return NULL;
}

/* Returns a record for the next cached block, or NULL if no cached block can be opened now. A group
 * opens only its own blocks, in the records of its workers, so groups never wait for each other. */
static struct slc_open_block *claim_cached(struct slc_stream *stream,
                                           struct slc_stream_worker *worker)
{
    const struct slc_pass_division *division = stream->division;
    const unsigned group_workers =
        division != NULL ? division->group_workers : stream->worker_count;
    const unsigned number = (unsigned)(worker - stream->workers);
    const unsigned first = number - number % group_workers;
    const uint64_t count = stream->end;
    uint64_t *cursor =
        division != NULL ? &stream->workers[first].cache_cursor : &stream->cache_cursor;
    struct slc_open_block *record = NULL;

    pthread_mutex_lock(&stream->mutex);
    uint64_t serving = stream->every_worker ? worker->serving : stream->serving;
    while (*cursor < count && (stream->layout->cached[stream->order[*cursor]] != SLC_CACHE_YES ||
                               !is_own(stream, worker, stream->order[*cursor]))) {
        ++*cursor;
    }
    if (*cursor < count && (!stream->strict || *cursor == serving)) {
        record =
            slc_stream_cached_record(stream, first, first + group_workers, stream->order[*cursor]);
        *cursor += record != NULL;
    }
    pthread_mutex_unlock(&stream->mutex);
    return record;
}

void *slc_stream_cache_place(const struct slc_stream *stream, uint64_t block)
{
    return (char *)stream->cache.data + stream->layout->cache_offset[block];
}

void slc_stream_open_cached(struct slc_stream *stream, struct slc_open_block *record)
{
    const uint64_t block = record->view.block;
    struct slc_error fault = SLC_ERROR_INIT;

    if (slc_block_open(stream->layout->reader, block, slc_stream_cache_place(stream, block), true,
                       &record->view, &fault) != SLC_OK) {
        slc_stream_abort(stream, &fault);
        return;
    }
    atomic_fetch_add(&stream->bytes_cached, record->view.entry.padded_bytes);
    publish_block(stream, record);
}

enum slc_status slc_stream_copy_arrived(
    struct slc_stream *stream, unsigned slot, uint64_t block, void *to, struct slc_error *fault)
{
    const struct slc_io_request *request = &stream->requests[slot];

    memcpy(to, request->data, request->bytes);
    if (stream->mapped && slc_io_check(stream->io, request, fault) != SLC_OK) {
        slc_error_locate_block(fault, NULL, block, SLC_NOWHERE);
        return fault->status;
    }
    return SLC_OK;
}

enum slc_status slc_stream_check_arrived(struct slc_stream *stream,
                                         unsigned slot,
                                         uint64_t block,
                                         struct slc_error *fault)
{
    struct slc_open_block *record = &stream->slot_blocks[slot];
    const struct slc_io_request *request = &stream->requests[slot];
    /* No other worker accesses the state of a block while this worker opens it. */
    const bool wanted = stream->layout->cached[block] == SLC_CACHE_WANTED;
    const void *data = request->data;
    enum slc_status status;

    record->slot = slot;
    /* The copy in the cache is verified, not the slot, because a mapped file may change at any
     * time. */
    if (wanted) {
        status = slc_stream_copy_arrived(stream, slot, block, slc_stream_cache_place(stream, block),
                                         fault);
        SLC_TRY(status);
        data = slc_stream_cache_place(stream, block);
    }
    SLC_TRY(slc_block_open(stream->layout->reader, block, data, false, &record->view, fault));
    if (wanted) {
        pthread_mutex_lock(&stream->mutex);
        stream->layout->cached[block] = SLC_CACHE_NEW;
        pthread_mutex_unlock(&stream->mutex);
    }
    return SLC_OK;
}

void slc_stream_open_arrived(struct slc_stream *stream, unsigned slot, uint64_t block)
{
    struct slc_error fault = SLC_ERROR_INIT;

    if (slc_stream_check_arrived(stream, slot, block, &fault) == SLC_OK) {
        publish_block(stream, &stream->slot_blocks[slot]);
    } else {
        slc_stream_abort(stream, &fault);
    }
}

/* Takes an arrived block and opens it. With `wait`, waits for a block. */
static enum slc_ring_event take_arrived_block(struct slc_stream *stream,
                                              struct slc_stream_worker *worker,
                                              uint64_t news,
                                              bool wait)
{
    uint64_t block, start_ns;
    unsigned slot;
    const enum slc_ring_event event =
        slc_ring_take_block(stream->ring, news, wait, &slot, &block, &worker->wait_ns);

    if (event == SLC_RING_BLOCK) {
        start_ns = slc_clock_ns();
        slc_stream_open_arrived(stream, slot, block);
        worker->decode_ns += slc_clock_ns() - start_ns;
    }
    return event;
}

bool slc_stream_await(struct slc_stream *stream, struct slc_stream_worker *worker, uint64_t news)
{
    return take_arrived_block(stream, worker, news, true) != SLC_RING_END;
}

/* Opens the next block, or waits until a block arrives. Returns false at the end of the pass. */
static bool open_next(struct slc_stream *stream, struct slc_stream_worker *worker, uint64_t news)
{
    enum slc_ring_event event = SLC_RING_NOTHING;
    struct slc_open_block *record;
    uint64_t start_ns;

    if (!stream->strict) {
        event = take_arrived_block(stream, worker, news, false);
    }
    if (event == SLC_RING_NOTHING) {
        record = claim_cached(stream, worker);
        if (record != NULL) {
            start_ns = slc_clock_ns();
            slc_stream_open_cached(stream, record);
            worker->decode_ns += slc_clock_ns() - start_ns;
            return true;
        }
        event = take_arrived_block(stream, worker, news, true);
    }
    return event != SLC_RING_END;
}

/* Takes a tile of an open block, as the order of the current pass requires. */
static bool take_tile(struct slc_stream *stream,
                      struct slc_stream_worker *worker,
                      struct slc_open_block **block,
                      uint32_t *tile)
{
    if (stream->every_worker) {
        return take_own_tile(stream, worker, block, tile);
    }
    if (stream->by_partition) {
        return take_partition_tile(stream, worker, block, tile);
    }
    return slc_stream_take_open_tile(stream, worker, block, tile);
}

/* Takes the next tile. Opens blocks and waits for data as necessary. Returns false at the end of
 * the pass and if the pass is aborted. */
static bool take_next_tile(struct slc_stream *stream,
                           struct slc_stream_worker *own,
                           struct slc_open_block **block,
                           uint32_t *tile)
{
    for (;;) {
        uint64_t news = slc_ring_news(stream->ring);

        if (atomic_load(&stream->aborted)) {
            return false;
        }
        if (take_tile(stream, own, block, tile)) {
            return true;
        }
        if (!open_next(stream, own, news)) {
            return false;
        }
    }
}

void slc_stream_block_release(struct slc_stream *stream, const struct slc_open_block *block)
{
    const unsigned slot = block->slot;

    if (stream->hybrid != NULL) {
        pthread_mutex_lock(&stream->mutex);
        slc_hybrid_blocks_release(&stream->sharing, block->view.block);
        pthread_mutex_unlock(&stream->mutex);
    }
    stream->delivered[slot] = false;
    slc_io_release(stream->io, &stream->requests[slot]);
    slc_ring_release(stream->ring, slot);
}

void slc_stream_tile_done(struct slc_stream *stream, struct slc_open_block *block)
{
    const bool turns = stream->every_worker || stream->by_partition || stream->division != NULL;

    if (atomic_fetch_sub(&block->tiles_left, 1) != 1) {
        return;
    }
    atomic_fetch_add(&stream->blocks_done, 1);
    if (stream->by_partition) {
        pthread_mutex_lock(&stream->mutex);
        stream->layout->partition_done[block->view.entry.partition]++;
        pthread_mutex_unlock(&stream->mutex);
    }
    if (block->slot == SLC_NO_SLOT) {
        pthread_mutex_lock(&stream->mutex);
        block->used = false;
        pthread_mutex_unlock(&stream->mutex);
        slc_ring_skip(stream->ring);
    } else {
        slc_stream_block_release(stream, block);
    }
    if (turns) {
        /* Other workers may wait for a record, or for the next block of a partition. */
        slc_ring_notify(stream->ring);
    }
}

void slc_stream_progress(struct slc_stream *stream, unsigned number)
{
    const struct slc_pass *pass = stream->pass;
    struct slc_stream_worker *worker = &stream->workers[number];

    if (number != 0 || pass->progress == NULL) {
        return;
    }
    uint64_t now_ns = slc_clock_ns();
    if (now_ns - worker->progress_ns >= PROGRESS_INTERVAL_NS) {
        worker->progress_ns = now_ns;
        pass->progress(pass->progress_context, stream->first + atomic_load(&stream->blocks_done),
                       stream->block_count,
                       atomic_load(&stream->bytes_read) - stream->stats.bytes_read);
    }
}

void slc_stream_tiles_run(struct slc_stream *stream, unsigned number)
{
    struct slc_open_block *block;
    uint32_t tile;

    while (take_next_tile(stream, &stream->workers[number], &block, &tile)) {
        struct slc_error fault = SLC_ERROR_INIT;

        if (slc_stream_tile_compute(stream, number, block, tile, NULL, stream->consumer->tile,
                                    &fault) != SLC_OK) {
            slc_stream_abort(stream, &fault);
            return;
        }
        slc_stream_tile_done(stream, block);
        slc_stream_progress(stream, number);
    }
}
