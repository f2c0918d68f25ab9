#include "engine/stream/copy_buffers.h"

#include "base/memory/checked.h"

#include <assert.h>

uint64_t slc_copy_buffers_bytes(unsigned count, uint64_t each_bytes)
{
    uint64_t bytes;

    return slc_mul_u64(count, each_bytes, &bytes) ? slc_buffer_footprint(bytes, SLC_PAGES_MIXED)
                                                  : UINT64_MAX;
}

enum slc_status slc_copy_buffers_create(struct slc_copy_buffers *buffers,
                                        unsigned count,
                                        uint64_t each_bytes,
                                        struct slc_error *err)
{
    *buffers = (struct slc_copy_buffers){.each_bytes = each_bytes};
    buffers->free = slc_calloc(count, sizeof *buffers->free);
    SLC_TRY(slc_check_memory(buffers->free != NULL, err, "to record %u buffers", count));
    enum slc_status status =
        slc_buffer_create(&buffers->memory, count * each_bytes, SLC_PAGES_MIXED, err);
    if (status != SLC_OK) {
        slc_free(buffers->free);
        buffers->free = NULL;
        return status;
    }
    pthread_mutex_init(&buffers->mutex, NULL);
    buffers->count = count;
    slc_copy_buffers_reset(buffers);
    return SLC_OK;
}

void slc_copy_buffers_destroy(struct slc_copy_buffers *buffers)
{
    if (buffers->count == 0) {
        return;
    }
    pthread_mutex_destroy(&buffers->mutex);
    slc_buffer_destroy(&buffers->memory);
    slc_free(buffers->free);
    *buffers = (struct slc_copy_buffers){.count = 0};
}

void slc_copy_buffers_reset(struct slc_copy_buffers *buffers)
{
    for (unsigned i = 0; i < buffers->count; i++) {
        buffers->free[i] = i;
    }
    buffers->free_count = buffers->count;
}

bool slc_copy_buffers_acquire(struct slc_copy_buffers *buffers, unsigned *buffer)
{
    pthread_mutex_lock(&buffers->mutex);
    bool found = buffers->free_count > 0;
    if (found) {
        *buffer = buffers->free[--buffers->free_count];
    }
    pthread_mutex_unlock(&buffers->mutex);
    return found;
}

void slc_copy_buffers_release(struct slc_copy_buffers *buffers, unsigned buffer)
{
    pthread_mutex_lock(&buffers->mutex);
    assert(buffers->free_count < buffers->count);
    buffers->free[buffers->free_count++] = buffer;
    pthread_mutex_unlock(&buffers->mutex);
}
