/* Attaches devices to a stream: allocates one struct slc_feed per device, and registers host memory
 * with the devices. */
#include "engine/stream/stream_feed.h"

#include "base/memory/checked.h"
#include "base/memory/memory.h"

/* Returns the largest number of tiles of a block. */
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
register_memory(struct slc_feed *feed, void *memory, uint64_t bytes, struct slc_error *err)
{
    if (bytes == 0) {
        return SLC_OK;
    }
    SLC_TRY(feed->device->ops->memory.host_register(feed->device, memory, bytes, err));
    feed->registered[feed->registered_count++] = memory;
    return SLC_OK;
}

static enum slc_status
attach_device(struct slc_stream *stream, struct slc_device *device, struct slc_error *err)
{
    struct slc_feed *feed = &stream->feeding->feeds[stream->feeding->count++];
    const struct slc_copy_buffers *buffers = &stream->feeding->buffers;
    uint64_t bytes;
    void *slots = slc_io_slots(stream->io, &bytes);

    feed->device = device;
    pthread_mutex_init(&feed->mutex, NULL);
    feed->copy_most = buffers->count > 0 ? buffers->count : stream->slot_count;
    feed->copies = slc_calloc(feed->copy_most, sizeof *feed->copies);
    SLC_TRY(slc_check_memory(feed->copies != NULL, err, "to record %u copies", feed->copy_most));
    SLC_TRY(register_memory(feed, slots, bytes, err));
    SLC_TRY(register_memory(feed, stream->cache.data, stream->cache.bytes, err));
    return register_memory(feed, buffers->memory.data, buffers->memory.bytes, err);
}

enum slc_status slc_stream_attach(struct slc_stream *stream,
                                  struct slc_device *const *devices,
                                  unsigned count,
                                  struct slc_error *err)
{
    if (stream->feeding != NULL || count < 1 || count > SLC_MAX_DEVICES) {
        return slc_fail(
            err, SLC_ERR_USAGE,
            "the stream already has devices, or the number of devices, %u, is not possible", count);
    }
    struct slc_feeding *feeding = slc_calloc(1, sizeof *feeding);
    SLC_TRY(slc_check_memory(feeding != NULL, err, "to feed a device"));
    stream->feeding = feeding;
    for (unsigned l = 0; l < stream->layout_count; l++) {
        feeding->tiles_most =
            slc_max_u64(feeding->tiles_most, tiles_most(stream->layouts[l].reader));
    }
    enum slc_status status = slc_buffer_create(&feeding->tiles,
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
    /* Devices are detached in reverse order of slc_stream_attach. */
    while (feeding->count > 0) {
        struct slc_feed *feed = &feeding->feeds[--feeding->count];

        for (unsigned i = 0; i < feed->registered_count; i++) {
            feed->device->ops->memory.host_unregister(feed->device, feed->registered[i]);
        }
        slc_free(feed->copies);
        pthread_mutex_destroy(&feed->mutex);
    }
    slc_buffer_destroy(&feeding->tiles);
    slc_copy_buffers_destroy(&feeding->buffers);
    slc_free(feeding);
    stream->feeding = NULL;
    /* The stream assumes that detached devices lose their resident blocks. */
    for (unsigned l = 0; l < stream->layout_count; l++) {
        struct slc_stream_layout *layout = &stream->layouts[l];

        for (uint64_t b = 0; b < layout->info->block_count; b++) {
            layout->keep[b] = SLC_NOT_RESIDENT;
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

bool slc_stream_copies(const struct slc_stream *stream, unsigned layout)
{
    const struct slc_stream_layout *read = &stream->layouts[layout];

    for (uint64_t b = 0; b < read->info->block_count; b++) {
        if (!slc_stream_is_resident(read, b)) {
            return true;
        }
    }
    return false;
}
