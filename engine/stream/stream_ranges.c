/* Makes passes over ranges of rows. In two phases, a worker claims a range of rows, computes all
 * tiles of its blocks, calls the consumer's `range_done`, and computes the same tiles again.
 * Otherwise the consumer's function `compute` requests tiles of the range one by one.
 *
 * Arrived blocks stay in the list of open blocks until the last range that needs them is done.
 * While a worker waits for a block, it opens any block that arrives. A cached block needs no slot;
 * each worker opens the block in its own record.
 *
 * A pass cannot deadlock. Slots are claimed in the order of ranges, and a block that only finished
 * ranges need has no slot. Therefore occupied slots hold blocks of the first unfinished range or of
 * later ranges, and blocks of later ranges get slots only when the first unfinished range has all
 * its blocks. There are at least as many slots as the largest range has blocks, so the first
 * unfinished range gets all its blocks. The worker that computes this range waits only for blocks,
 * even if all other workers wait for this range in the consumer. */
#include "engine/stream/stream_impl.h"

#include "base/error/clock.h"
#include "base/memory/checked.h"

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

/* Claims the next range. Returns false if there is no further range. */
static bool claim_range(struct slc_stream *stream, uint64_t *number)
{
    pthread_mutex_lock(&stream->mutex);
    bool found = stream->next_range < stream->end_range;
    if (found) {
        *number = stream->next_range++;
    }
    pthread_mutex_unlock(&stream->mutex);
    return found;
}

/* Returns true if a block is in the cache. Needs: the caller holds the mutex. */
static bool is_cached(const struct slc_stream *stream, uint64_t block)
{
    return stream->layout->cached[block] == SLC_CACHE_YES;
}

/* Returns the link in the list of open blocks that points to the block, or the end of the list.
 * Needs: the caller holds the mutex. */
static struct slc_open_block **find_open(struct slc_stream *stream, uint64_t block)
{
    struct slc_open_block **link = &stream->open;

    while (*link != NULL && (*link)->view.block != block) {
        link = &(*link)->next;
    }
    return link;
}

/* Opens a cached block in the record of this worker, unless the record already has this block. */
static struct slc_open_block *
open_cached(struct slc_stream *stream, unsigned worker, uint64_t block)
{
    struct slc_open_block *record = &stream->cache_blocks[worker];
    const char *data = (const char *)stream->cache.data + stream->layout->cache_offset[block];
    const uint64_t start_ns = slc_clock_ns();
    struct slc_error fault = SLC_ERROR_INIT;

    if (record->view.block == block && record->view.data == (const void *)data) {
        return record;
    }
    const enum slc_status status =
        slc_block_open(stream->layout->reader, block, data, true, &record->view, &fault);

    stream->workers[worker].decode_ns += slc_clock_ns() - start_ns;
    record->slot = SLC_NO_SLOT;
    if (status != SLC_OK) {
        record->view.data = NULL;
        slc_stream_abort(stream, &fault);
        return NULL;
    }
    return record;
}

/* Returns a block of the worker's range. Waits until the block is available; returns NULL if the
 * pass is aborted. */
static struct slc_open_block *get_block(struct slc_stream *stream, unsigned worker, uint64_t block)
{
    for (;;) {
        const uint64_t news = slc_ring_news(stream->ring);

        if (atomic_load(&stream->aborted)) {
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

/* Delivers all tiles of the range to `fn`. Returns false if the pass is aborted. */
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
                slc_stream_abort(stream, &fault);
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

enum slc_status slc_stream_range_tile(struct slc_stream *stream,
                                      unsigned worker,
                                      uint64_t range,
                                      uint64_t block,
                                      uint32_t tile,
                                      slc_tile_fn *fn,
                                      struct slc_error *err)
{
    const struct slc_open_block *open = get_block(stream, worker, block);

    if (open == NULL) {
        return slc_fail(err, SLC_ERR_INTERRUPTED, "the pass was aborted");
    }
    const enum slc_status status = slc_stream_tile_compute(stream, worker, open, tile,
                                                           &stream->ranges->ranges[range], fn, err);
    slc_stream_progress(stream, worker);
    return status;
}

/* Returns the time of the worker that is already counted. */
static uint64_t counted_ns(const struct slc_stream_worker *worker)
{
    return worker->wait_ns + worker->decode_ns + worker->compute_ns;
}

/* Calls range_done or compute, and counts the time that the function spends outside tiles. */
static bool
run_range(struct slc_stream *stream, unsigned worker, slc_range_done_fn *fn, uint64_t number)
{
    struct slc_error fault = SLC_ERROR_INIT;
    const uint64_t start_ns = slc_clock_ns();
    const uint64_t counted = counted_ns(&stream->workers[worker]);
    const enum slc_status status = fn(stream->consumer->context, worker, number, &fault);
    const uint64_t spent = slc_clock_ns() - start_ns;

    stream->workers[worker].compute_ns +=
        spent - slc_min_u64(spent, counted_ns(&stream->workers[worker]) - counted);
    if (status != SLC_OK) {
        (void)slc_fail(&fault, status, "processing the rows of a range failed");
        slc_stream_abort(stream, &fault);
    }
    return status == SLC_OK;
}

/* Called when a range no longer needs a block. The last range that needs the block releases it. */
static void release_block(struct slc_stream *stream, uint64_t block)
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
    const struct slc_pass *pass = stream->pass;
    uint64_t number;

    while (claim_range(stream, &number)) {
        const struct slc_row_range *range = &stream->ranges->ranges[number];

        if (pass->ranges.compute != NULL
                ? !run_range(stream, worker, pass->ranges.compute, number)
                : !run_phase(stream, worker, range, stream->consumer->tile) ||
                      !run_range(stream, worker, pass->ranges.range_done, number) ||
                      !run_phase(stream, worker, range, pass->ranges.again)) {
            return;
        }
        for (uint64_t b = 0; b < range->block_count; b++) {
            release_block(stream, range->first_block + b);
        }
    }
}
