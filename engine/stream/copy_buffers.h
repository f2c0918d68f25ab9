/*
 * Buffers of one size that copies of blocks are made to, taken and given back by any thread. A
 * device reads from them, so that they are one piece of memory, which it is told of.
 */
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
    unsigned count; /* 0: there are none */
    unsigned *free; /* those that nobody has, under the mutex */
    unsigned free_count;
    pthread_mutex_t mutex;
};

/* What they take. */
uint64_t slc_copy_buffers_bytes(unsigned count, uint64_t each_bytes);

/* Owns: slc_copy_buffers_destroy, which takes zeros, too. Errors: SLC_ERR_MEMORY. */
enum slc_status slc_copy_buffers_create(struct slc_copy_buffers *buffers,
                                        unsigned count,
                                        uint64_t each_bytes,
                                        struct slc_error *err) SLC_NODISCARD;
void slc_copy_buffers_destroy(struct slc_copy_buffers *buffers);

/* All of them are free: for whoever knows that nobody uses any. */
void slc_copy_buffers_reset(struct slc_copy_buffers *buffers);

/* False where none is free. */
bool slc_copy_buffers_take(struct slc_copy_buffers *buffers, unsigned *buffer);
void slc_copy_buffers_give_back(struct slc_copy_buffers *buffers, unsigned buffer);

static inline void *slc_copy_buffers_place(const struct slc_copy_buffers *buffers, unsigned buffer)
{
    return (char *)buffers->memory.data + buffer * buffers->each_bytes;
}

#endif
