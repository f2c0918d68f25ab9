/* Delivers tiles to the consumer of a pass: opens tiles, restricts them to the rows of a range, and
 * measures the time of decoding. */
#include "engine/stream/holdout.h"
#include "engine/stream/stream_impl.h"

#include "base/error/clock.h"
#include "base/memory/checked.h"

#include <assert.h>

/* The tile views that consumers get contain functions that call the decoder and measure its time.
 * Reading the clock twice takes about 50 ns, and decoding a chunk takes 500 ns or more. Therefore
 * only one chunk in four is timed, and the time of the other chunks is estimated from their numbers
 * of nonzeros. The first chunk, which may expand the tile, is always timed and not included in the
 * estimate. */
enum { CHUNKS_TIMED = 4 };

static uint64_t start_chunk(struct slc_stream_worker *worker)
{
    const uint64_t chunk = worker->chunks++;

    return chunk == 0 || chunk % CHUNKS_TIMED == 1 ? slc_clock_ns() : 0;
}

static void end_chunk(struct slc_stream_worker *worker, uint64_t start_ns, uint32_t nnz)
{
    if (worker->chunks == 1) {
        worker->first_ns += slc_clock_ns() - start_ns;
        return;
    }
    worker->chunks_nnz += nnz;
    if (start_ns != 0) {
        worker->timed_ns += slc_clock_ns() - start_ns;
        worker->timed_nnz += nnz;
    }
}

/* Removes held-out nonzeros from a chunk, or sets their values to 0. Returns false if no nonzero is
 * left. */
static bool mask_chunk(struct slc_stream_worker *worker, struct slc_chunk_view *chunk)
{
    if (worker->holdout == NULL || chunk->nnz == 0) {
        return true;
    }
    if (worker->holdout->drop) {
        slc_holdout_drop(worker->holdout, &worker->inner, chunk, worker->rows.offset,
                         worker->rows.values);
    } else {
        slc_holdout_mask(worker->holdout, &worker->inner, chunk, worker->values);
    }
    return chunk->nnz > 0;
}

static enum slc_status timed_next(struct slc_tile_view *tile,
                                  uint32_t max_nnz,
                                  struct slc_chunk_view *chunk,
                                  struct slc_error *err)
{
    struct slc_stream_worker *worker = tile->decoder;
    const uint32_t most =
        worker->holdout != NULL ? (uint32_t)slc_min_u64(max_nnz, SLC_HOLDOUT_CHUNK_NNZ) : max_nnz;
    const uint64_t start_ns = start_chunk(worker);
    enum slc_status status;

    do {
        status = worker->inner.next(&worker->inner, most, chunk, err);
    } while (status == SLC_OK && !mask_chunk(worker, chunk));
    end_chunk(worker, start_ns, chunk->nnz);
    return status;
}

void slc_stream_hold_out(struct slc_stream *stream,
                         const struct slc_holdout *holdout,
                         void *scratch)
{
    for (unsigned w = 0; w < stream->worker_count; w++) {
        stream->workers[w].holdout = holdout;
        stream->workers[w].values = holdout != NULL && !holdout->drop
                                        ? (char *)scratch + (size_t)w * SLC_HOLDOUT_SCRATCH_BYTES
                                        : NULL;
    }
}

bool slc_stream_drops(const struct slc_stream *stream)
{
    return stream->workers[0].holdout != NULL && stream->workers[0].holdout->drop;
}

static enum slc_status timed_next_fibers(struct slc_tile_view *tile,
                                         uint32_t max_nnz,
                                         struct slc_fiber_view *fibers,
                                         struct slc_error *err)
{
    struct slc_stream_worker *worker = tile->decoder;
    const uint64_t start_ns = start_chunk(worker);
    const enum slc_status status = worker->inner.next_fibers(&worker->inner, max_nnz, fibers, err);

    end_chunk(worker, start_ns, fibers->nnz);
    return status;
}

static enum slc_status timed_describe(struct slc_tile_view *tile,
                                      struct slc_encoded_block *described,
                                      struct slc_error *err)
{
    struct slc_stream_worker *worker = tile->decoder;
    const uint64_t start_ns = slc_clock_ns();
    const enum slc_status status = worker->inner.describe(&worker->inner, described, err);

    worker->first_ns += slc_clock_ns() - start_ns;
    return status;
}

/* Divides the time of a tile, `spent_ns`, between decoding and computing. Opening the tile took
 * `open_ns` of this time. */
static void record_times(struct slc_stream_worker *worker, uint64_t open_ns, uint64_t spent_ns)
{
    uint64_t decode_ns = worker->timed_ns;

    if (worker->timed_nnz > 0) {
        decode_ns = (uint64_t)((double)worker->timed_ns * (double)worker->chunks_nnz /
                               (double)worker->timed_nnz);
    }
    decode_ns = slc_min_u64(open_ns + worker->first_ns + decode_ns, spent_ns);
    worker->decode_ns += decode_ns;
    worker->compute_ns += spent_ns - decode_ns;
}

bool slc_stream_stop_requested(const struct slc_pass *pass)
{
    /* Read atomically, because a signal handler or another thread may set the flag. */
    return pass->stop != NULL && __atomic_load_n(pass->stop, __ATOMIC_RELAXED) != 0;
}

/* Restricts an open tile to the rows of a range. Returns false if the tile has no row of the
 * range. */
static bool restrict_rows(const struct slc_stream *stream,
                          struct slc_tile_rows *rows,
                          const struct slc_row_range *range,
                          struct slc_tile_view *tile)
{
    const struct slc_row_ranges *ranges = stream->ranges;
    const uint64_t first_row = tile->corner[ranges->mode];
    const uint64_t last_row = first_row + tile->extent[ranges->mode];

    tile->partition = (uint64_t)(range - ranges->ranges);
    tile->continued = false;
    if (last_row < range->first_row || first_row >= range->end_row) {
        return false;
    }
    if (first_row < range->first_row || last_row >= range->end_row) {
        assert(ranges->shared);
        slc_tile_rows_cut(rows, ranges->mode, range->first_row, range->end_row, tile);
    }
    return true;
}

/* Passes an open tile to `fn`, and measures the time of decoding. */
static enum slc_status consume_tile(struct slc_stream *stream,
                                    unsigned number,
                                    const struct slc_row_range *range,
                                    slc_tile_fn *fn,
                                    struct slc_error *fault)
{
    struct slc_stream_worker *worker = &stream->workers[number];

    if (range != NULL && !restrict_rows(stream, &worker->rows, range, &worker->inner)) {
        return SLC_OK;
    }
    struct slc_tile_view tile = worker->inner;
    tile.next = timed_next;
    /* Held-out values are set to 0 only in chunks. While nonzeros are held out, fiber runs and
     * descriptions are therefore not available. */
    tile.next_fibers =
        tile.next_fibers != NULL && worker->holdout == NULL ? timed_next_fibers : NULL;
    tile.describe = tile.describe != NULL && worker->holdout == NULL ? timed_describe : NULL;
    tile.decoder = worker;
    return fn(stream->consumer->context, number, &tile, fault);
}

enum slc_status slc_stream_tile_compute(struct slc_stream *stream,
                                        unsigned number,
                                        const struct slc_open_block *block,
                                        uint32_t index,
                                        const struct slc_row_range *range,
                                        slc_tile_fn *fn,
                                        struct slc_error *fault)
{
    struct slc_stream_worker *worker = &stream->workers[number];
    const uint64_t start_ns = slc_clock_ns();

    if (slc_stream_stop_requested(stream->pass)) {
        return slc_fail(fault, SLC_ERR_INTERRUPTED, "stopped before its end");
    }
    enum slc_status status =
        slc_tile_open(worker->decoder, &block->view, index, &worker->inner, fault);
    uint64_t open_ns = slc_clock_ns() - start_ns;
    worker->chunks = 0;
    worker->first_ns = 0;
    worker->chunks_nnz = 0;
    worker->timed_ns = 0;
    worker->timed_nnz = 0;
    SLC_THEN(status, consume_tile(stream, number, range, fn, fault));
    if (status == SLC_OK && stream->mapped && block->slot != SLC_NO_SLOT &&
        slc_io_check(stream->io, &stream->requests[block->slot], fault) != SLC_OK) {
        status = fault->status;
        slc_error_locate_block(fault, NULL, block->view.block, SLC_NOWHERE);
    }
    record_times(worker, open_ns, slc_clock_ns() - start_ns);
    /* A tile that all workers compute counts once; only the first phase of a range counts. */
    if (status == SLC_OK && fn == stream->consumer->tile &&
        (number == 0 || !stream->every_worker)) {
        worker->nnz += worker->inner.nnz;
    }
    if (status != SLC_OK) {
        (void)slc_fail(fault, status, "computing a tile failed");
    }
    if (status == SLC_ERR_DAMAGED) {
        slc_error_locate_block(fault, slc_reader_path(stream->layout->reader), block->view.block,
                               block->view.entry.offset);
    }
    return status;
}
