/*
 * Passes in two phases: a worker takes a range of rows, computes all tiles of its blocks, has the
 * consumer turn what it found into something new, and computes the same tiles again.
 *
 * Blocks that have arrived wait in the list of open blocks until the last range that has them is
 * through; whoever waits for a block opens any that arrives meanwhile. A cached block takes no
 * slot, so that each worker opens it in a record of its own whenever it comes to one.
 *
 * Nobody waits for ever: slots are claimed in the order in which ranges are taken, and a block that
 * only finished ranges have holds none. So all slots that are held belong to the first range that
 * is not finished or to later blocks, and none to later ones while the first still lacks a block.
 * The slots are as many as the blocks of any range, so it gets them all; and a worker has it, which
 * waits for blocks alone. (That worker may be the only one that does not wait for this range inside
 * the consumer.)
 */
#include "engine/stream/stream_impl.h"

#include "base/error/clock.h"

#include <assert.h>
#include <string.h>

void slc_stream_ranges_begin(struct slc_stream *stream)
{
    const struct slc_row_ranges *ranges = stream->ranges;
    uint32_t *uses = stream->layout->uses;

    stream->next_range = stream->part.first;
    stream->end_range = slc_stream_part_end(stream, ranges->count);
    memset(uses, 0, stream->layout->info->block_count * sizeof *uses);
    for (uint64_t r = stream->next_range; r < stream->end_range; r++) {
        const struct slc_row_range *range = &ranges->ranges[r];

        for (uint64_t b = 0; b < range->block_count; b++) {
            uses[range->first_block + b]++;
        }
    }
}

/* The next range that nobody has begun; false when there is none. */
static bool take_range(struct slc_stream *stream, uint64_t *number)
{
    pthread_mutex_lock(&stream->mutex);
    bool found = stream->next_range < stream->end_range;
    if (found) {
        *number = stream->next_range++;
    }
    pthread_mutex_unlock(&stream->mutex);
    return found;
}

/* Where a block of the layout is. Under the mutex. */
static bool is_cached(const struct slc_stream *stream, uint64_t block)
{
    return stream->layout->cached[block] == SLC_CACHE_YES;
}

/* The place in the list of open blocks where the block stands, or should. Under the mutex. */
static struct slc_open_block **find_open(struct slc_stream *stream, uint64_t block)
{
    struct slc_open_block **link = &stream->open;

    while (*link != NULL && (*link)->view.block != block) {
        link = &(*link)->next;
    }
    return link;
}

/* Opens a block that lies in the cache, for this worker alone. */
static struct slc_open_block *
open_cached(struct slc_stream *stream, unsigned worker, uint64_t block)
{
    struct slc_open_block *record = &stream->cache_blocks[worker];
    const char *data = (const char *)stream->cache.data + stream->layout->cache_offset[block];
    const uint64_t start_ns = slc_clock_ns();
    struct slc_error fault = SLC_ERROR_INIT;
    const enum slc_status status =
        slc_block_open(stream->layout->reader, block, data, true, &record->view, &fault);

    stream->workers[worker].decode_ns += slc_clock_ns() - start_ns;
    record->slot = SLC_NO_SLOT;
    if (status != SLC_OK) {
        slc_stream_give_up(stream, &fault);
        return NULL;
    }
    return record;
}

/* A block of the range that the worker has, waiting for it; NULL when the pass was given up. */
static struct slc_open_block *get_block(struct slc_stream *stream, unsigned worker, uint64_t block)
{
    for (;;) {
        const uint64_t news = slc_ring_news(stream->ring);

        if (atomic_load(&stream->given_up)) {
            return NULL;
        }
        pthread_mutex_lock(&stream->mutex);
        bool cached = is_cached(stream, block);
        struct slc_open_block *found = cached ? NULL : *find_open(stream, block);
        pthread_mutex_unlock(&stream->mutex);
        if (cached) {
            return open_cached(stream, worker, block);
        }
        if (found != NULL) {
            return found;
        }
        if (!slc_stream_await(stream, &stream->workers[worker], news)) {
            return NULL;
        }
    }
}

/* Gives all tiles of the range to `fn`. False when the pass was given up, by whomever. */
static bool run_phase(struct slc_stream *stream,
                      unsigned worker,
                      const struct slc_row_range *range,
                      slc_tile_fn *fn)
{
    for (uint64_t b = 0; b < range->block_count; b++) {
        const struct slc_open_block *block = get_block(stream, worker, range->first_block + b);

        for (uint32_t t = 0; block != NULL && t < block->view.entry.tile_count; t++) {
            struct slc_error fault = SLC_ERROR_INIT;

            if (slc_stream_tile_compute(stream, worker, block, t, range, fn, &fault) != SLC_OK) {
                slc_stream_give_up(stream, &fault);
                return false;
            }
            slc_stream_progress(stream, worker);
        }
        if (block == NULL) {
            return false;
        }
    }
    return true;
}

static bool run_turn(struct slc_stream *stream, unsigned worker, uint64_t number)
{
    struct slc_error fault = SLC_ERROR_INIT;
    const uint64_t start_ns = slc_clock_ns();
    const enum slc_status status =
        stream->pass->ranges.turn(stream->consumer->context, worker, number, &fault);

    stream->workers[worker].compute_ns += slc_clock_ns() - start_ns;
    if (status != SLC_OK) {
        (void)slc_fail(&fault, status, "what follows the rows of a range failed");
        slc_stream_give_up(stream, &fault);
    }
    return status == SLC_OK;
}

/* The range is through with a block; the last range returns what holds it. */
static void leave_block(struct slc_stream *stream, uint64_t block)
{
    struct slc_open_block *open = NULL;

    pthread_mutex_lock(&stream->mutex);
    assert(stream->layout->uses[block] > 0);
    bool last = --stream->layout->uses[block] == 0;
    bool cached = is_cached(stream, block);
    if (last && !cached) {
        struct slc_open_block **link = find_open(stream, block);

        open = *link;
        assert(open != NULL);
        *link = open->next;
    }
    pthread_mutex_unlock(&stream->mutex);
    if (!last) {
        return;
    }
    atomic_fetch_add(&stream->blocks_done, 1);
    if (cached) {
        struct slc_block_entry entry;

        slc_reader_entry(stream->layout->reader, block, &entry);
        atomic_fetch_add(&stream->bytes_cached, entry.padded_bytes);
        slc_ring_skip(stream->ring);
    } else {
        slc_stream_block_release(stream, open);
    }
}

void slc_stream_ranges_run(struct slc_stream *stream, unsigned worker)
{
    slc_tile_fn *again = stream->pass->ranges.again;
    uint64_t number;

    while (take_range(stream, &number)) {
        const struct slc_row_range *range = &stream->ranges->ranges[number];

        if (!run_phase(stream, worker, range, stream->consumer->tile) ||
            !run_turn(stream, worker, number) || !run_phase(stream, worker, range, again)) {
            return;
        }
        for (uint64_t b = 0; b < range->block_count; b++) {
            leave_block(stream, range->first_block + b);
        }
    }
}
