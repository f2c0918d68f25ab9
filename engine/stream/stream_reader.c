/* Implements the reader thread. It claims free slots in the order of the schedule, starts a read
 * for every claimed slot, and delivers completed and failed reads to the ring.
 *
 * A pass starts with one read per worker, so that workers get their first blocks early. Each
 * completed read adds one more read in flight, until all slots are in use. A drive serves all
 * requests at once: with 15 requests for blocks of 4 MiB, a measured drive delivered the first
 * block after 24 ms, at about the same time as the last block. With 2 requests, it delivered the
 * first block after 3 ms, at nearly its full rate.
 *
 * The reader waits for a free slot only if no read is in flight; otherwise it waits for a completed
 * read. Therefore it never delays a completed block, and it leaves an aborted pass as soon as the
 * pending reads have returned. */
#include "engine/stream/stream_impl.h"

#include "base/error/clock.h"

#include <time.h>

/* While the reader delays a read, it checks for a stop at least every 20 ms. */
#define LONGEST_NAP_NS UINT64_C(20000000)

/* Returns the first position in the schedule, starting at `position`, whose block must be read. */
static uint64_t next_to_read(const struct slc_stream *stream, uint64_t position)
{
    const bool feeds = stream->feeds;

    while (position < stream->end) {
        const uint8_t state = stream->layout->cached[stream->order[position]];

        if (state != SLC_CACHE_YES && !(feeds && state == SLC_CACHE_RESIDENT)) {
            break;
        }
        position++;
    }
    return position;
}

static enum slc_status start_read(struct slc_stream *stream, uint64_t block, unsigned slot)
{
    struct slc_io_request *request = &stream->requests[slot];
    struct slc_error fault = SLC_ERROR_INIT;
    struct slc_block_entry entry;

    stream->slot_blocks[slot].view.block = block;
    slc_reader_entry(stream->layout->reader, block, &entry);
    request->offset = entry.offset;
    request->bytes = entry.padded_bytes;
    request->file = stream->layout->file;
    request->slot = slot;
    request->user = NULL;
    stream->slot_blocks[slot].due_ns =
        slc_read_limit_due(&stream->read_limit, slc_clock_ns(), entry.padded_bytes);
    enum slc_status status = slc_io_submit(stream->io, request, &fault);
    if (status != SLC_OK) {
        slc_error_locate_block(&fault, slc_reader_path(stream->layout->reader), block,
                               entry.offset);
        slc_ring_ready(stream->ring, slot, block, &fault);
        slc_stream_abort(stream, &fault);
    }
    return status;
}

/* Delays a completed read until a drive with the limited rate would have completed it. Returns at
 * once if the pass is aborted or a stop is requested. */
static void await_limit(const struct slc_stream *stream, unsigned slot)
{
    const uint64_t due_ns = stream->slot_blocks[slot].due_ns;
    const volatile int *stop = stream->pass->stop;
    uint64_t now_ns;

    while (stream->read_limit.bytes_per_second != 0 && (now_ns = slc_clock_ns()) < due_ns &&
           !slc_ring_aborted(stream->ring) &&
           (stop == NULL || __atomic_load_n(stop, __ATOMIC_RELAXED) == 0)) {
        const uint64_t nap_ns = slc_min_u64(due_ns - now_ns, LONGEST_NAP_NS);

        (void)nanosleep(&(struct timespec){.tv_nsec = (long)nap_ns}, NULL);
    }
}

/* Waits for one read and delivers it. Returns false if the I/O method itself has failed. */
static bool finish_read(struct slc_stream *stream)
{
    struct slc_error fault = SLC_ERROR_INIT;
    struct slc_io_request *request;

    if (slc_io_wait(stream->io, &request, &fault) != SLC_OK) {
        stream->io_failed = true;
        slc_stream_abort(stream, &fault);
        return false;
    }
    uint64_t block = stream->slot_blocks[request->slot].view.block;
    if (request->status != SLC_OK) {
        slc_error_locate_block(&request->error, slc_reader_path(stream->layout->reader), block,
                               request->offset);
        slc_io_release(stream->io, request);
        slc_ring_ready(stream->ring, request->slot, block, &request->error);
        slc_stream_abort(stream, &request->error);
        return true;
    }
    await_limit(stream, request->slot);
    atomic_fetch_add(&stream->bytes_read, request->bytes);
    stream->delivered[request->slot] = true;
    slc_ring_ready(stream->ring, request->slot, block, NULL);
    return true;
}

/* Returns true if there is a block to read, and advances *position to it. Only the reader takes
 * blocks to read, so the block is still available when a slot is free. */
static bool has_more(struct slc_stream *stream, uint64_t *position)
{
    if (stream->hybrid != NULL) {
        return slc_stream_hybrid_to_read(stream);
    }
    *position = next_to_read(stream, *position);
    return *position < stream->end;
}

/* Takes the next block to read. */
static uint64_t choose_block(struct slc_stream *stream, uint64_t *position)
{
    return stream->hybrid != NULL ? slc_stream_hybrid_read(stream) : stream->order[(*position)++];
}

void *slc_stream_reader_run(void *context)
{
    struct slc_stream *stream = context;
    uint64_t position = stream->first;
    unsigned in_flight = 0;
    unsigned in_flight_most = stream->worker_count;

    for (;;) {
        unsigned slot;

        while (in_flight < in_flight_most && has_more(stream, &position) &&
               slc_ring_claim(stream->ring, in_flight == 0, &slot)) {
            if (start_read(stream, choose_block(stream, &position), slot) != SLC_OK) {
                break;
            }
            in_flight++;
        }
        if (in_flight == 0) {
            return NULL;
        }
        if (!finish_read(stream)) {
            return NULL;
        }
        in_flight--;
        /* At most slot_count reads are in flight. */
        in_flight_most += in_flight_most < stream->slot_count;
    }
}
