/*
 * The reader thread: claims free slots in the order of the schedule, keeps a read in flight for
 * every slot that it has claimed, and delivers completed reads to the ring, including failed ones.
 *
 * A pass starts with one read per worker and adds one with every completion, until all slots are in
 * flight. A drive works on all requests at once: with 15 requests for blocks of 4 MiB, a drive
 * delivered the first block after 24 ms, at about the same time as the last; with 2 requests, it
 * delivered the first block after 3 ms, at nearly its full rate.
 *
 * The reader waits in one place at a time: for a free slot only when nothing is in flight,
 * otherwise for a completion. Therefore it never delays a completed block, and leaves an aborted
 * pass as soon as the pending reads have returned.
 */
#include "engine/stream/stream_impl.h"

#include "base/error/clock.h"

#include <time.h>

/* Longest time that the reader does not notice a stop while it delays a read: 20 ms. */
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

/* Delays a completed read until a drive with the limited rate would have completed it. Does not
 * wait if the pass is about to end. */
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

/* Handles one completed read. Returns false if the block reader itself has failed. */
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

/* True if there is a block to read. Only the reader takes such blocks, so the block is still
 * available when a slot is. Advances *position to the next block to be read. */
static bool has_more(struct slc_stream *stream, uint64_t *position)
{
    if (stream->hybrid != NULL) {
        return slc_stream_hybrid_to_read(stream);
    }
    *position = next_to_read(stream, *position);
    return *position < stream->end;
}

/* Chooses the block to be read into the slot. */
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
        /* The number is limited by the number of slots, so it cannot wrap. */
        in_flight_most += in_flight_most < stream->slot_count;
    }
}
