/* Buffers of equal size for copies of blocks. Any thread may acquire and release a buffer. The
 * buffers are contiguous in memory, so that they can be registered with the device that reads
 * them. */
#ifndef SLC_ENGINE_COPY_BUFFERS_H
#define SLC_ENGINE_COPY_BUFFERS_H

#include "base/error/error.h"
#include "base/memory/memory.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct slc_copy_buffers {
    struct slc_buffer memory;
    uint64_t each_bytes;
    unsigned count; /* number of buffers; 0 if there are none */
    unsigned *free; /* numbers of free buffers, protected by the mutex */
    unsigned free_count;
    pthread_mutex_t mutex;
};

/* Returns the size in bytes of all buffers. */
uint64_t slc_copy_buffers_bytes(unsigned count, uint64_t each_bytes);

/* Creates `count` buffers. Ownership: release with slc_copy_buffers_destroy, which accepts an
 * all-zero struct. Errors: SLC_ERR_MEMORY. */
enum slc_status slc_copy_buffers_create(struct slc_copy_buffers *buffers,
                                        unsigned count,
                                        uint64_t each_bytes,
                                        struct slc_error *err) SLC_NODISCARD;
void slc_copy_buffers_destroy(struct slc_copy_buffers *buffers);

/* Marks all buffers free. Needs: no buffer is in use. */
void slc_copy_buffers_reset(struct slc_copy_buffers *buffers);

/* Sets *buffer to the number of a free buffer. Returns false if no buffer is free. */
bool slc_copy_buffers_acquire(struct slc_copy_buffers *buffers, unsigned *buffer);
void slc_copy_buffers_release(struct slc_copy_buffers *buffers, unsigned buffer);

static inline void *slc_copy_buffers_place(const struct slc_copy_buffers *buffers, unsigned buffer)
{
    return (char *)buffers->memory.data + buffer * buffers->each_bytes;
}

#endif
