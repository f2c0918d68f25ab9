/*
 * The reader thread: claims free slots in the order of the schedule, keeps a read in flight for
 * every slot it gets, and passes completed ones on, faults included.
 *
 * A pass starts with one read per worker and adds one with every completion, until all slots are in
 * flight. A drive works on everything it is given at once: asked for 15 blocks of 4 MiB, it
 * delivered the first after 24 ms, about when it delivered the last; asked for 2, after 3 ms, at
 * nearly its full rate.
 *
 * It waits in one place at a time: for a free slot only when nothing is in flight, for a completion
 * otherwise. So it never holds up a completed block, and after the pass was given up it leaves as
 * soon as the reads under way have come back.
 */
#include "engine/stream_impl.h"

/* The first position in the schedule from `position` on whose block has to be read. */
static uint64_t next_to_read(const struct slc_stream *stream, uint64_t position)
{
    while (position < stream->layout->info->block_count &&
           stream->layout->cached[stream->order[position]] == SLC_CACHE_YES) {
        position++;
    }
    return position;
}

static enum slc_status start_read(struct slc_stream *stream, uint64_t block, unsigned slot)
{
    struct slc_io_request *request = &stream->requests[slot];
    struct slc_error fault = SLC_ERROR_INIT;
    struct slc_block_entry entry;
    enum slc_status status;

    stream->slot_blocks[slot].view.block = block;
    slc_reader_entry(stream->layout->reader, block, &entry);
    request->offset = entry.offset;
    request->bytes = entry.padded_bytes;
    request->file = stream->layout->file;
    request->slot = slot;
    request->user = NULL;
    status = slc_io_submit(stream->io, request, &fault);
    if (status != SLC_OK) {
        slc_error_locate_block(&fault, slc_reader_path(stream->layout->reader), block,
                               entry.offset);
        slc_ring_ready(stream->ring, slot, &fault);
        slc_stream_give_up(stream, &fault);
    }
    return status;
}

/* Takes in one completed read. False when the block reader itself has failed. */
static bool finish_read(struct slc_stream *stream)
{
    struct slc_error fault = SLC_ERROR_INIT;
    struct slc_io_request *request;

    if (slc_io_wait(stream->io, &request, &fault) != SLC_OK) {
        stream->io_failed = true;
        slc_stream_give_up(stream, &fault);
        return false;
    }
    if (request->status != SLC_OK) {
        slc_error_locate_block(&request->error, slc_reader_path(stream->layout->reader),
                               stream->slot_blocks[request->slot].view.block, request->offset);
        slc_io_release(stream->io, request);
        slc_ring_ready(stream->ring, request->slot, &request->error);
        slc_stream_give_up(stream, &request->error);
        return true;
    }
    atomic_fetch_add(&stream->bytes_read, request->bytes);
    stream->delivered[request->slot] = true;
    slc_ring_ready(stream->ring, request->slot, NULL);
    return true;
}

void *slc_stream_reader_run(void *context)
{
    struct slc_stream *stream = context;
    uint64_t position = next_to_read(stream, 0);
    unsigned in_flight = 0;
    unsigned in_flight_most = stream->worker_count;

    for (;;) {
        unsigned slot;

        while (position < stream->layout->info->block_count && in_flight < in_flight_most &&
               slc_ring_claim(stream->ring, stream->order[position], in_flight == 0, &slot)) {
            if (start_read(stream, stream->order[position], slot) != SLC_OK) {
                break;
            }
            in_flight++;
            position = next_to_read(stream, position + 1);
        }
        if (in_flight == 0) {
            return NULL;
        }
        if (!finish_read(stream)) {
            return NULL;
        }
        in_flight--;
        /* The slots bound it, long before it could wrap. */
        in_flight_most += in_flight_most < stream->slot_count;
    }
}
