/* A bounded FIFO between two processes of a design. An item is a fixed number of 32-bit words.
 * The producer states the cycle from which the consumer sees an item, so a FIFO also models the
 * latency of a memory or a pipeline. Items in flight occupy space. */
#ifndef SLC_FPGA_FIFO_H
#define SLC_FPGA_FIFO_H

#include "base/error/error.h"

#include <stdint.h>

struct slc_fpga_fifo {
    uint32_t width;    /* words of an item */
    uint32_t capacity; /* items */
    uint32_t head;     /* position of the oldest item */
    uint32_t count;    /* items, including those in flight */
    uint32_t *words;   /* capacity x width */
    uint64_t *ready;   /* first cycle in which the item of a position is visible */
};

/* Allocates an empty FIFO. The caller must call slc_fpga_fifo_destroy, also after an error; it
 * accepts an all-zero struct. Errors: SLC_ERR_MEMORY. */
enum slc_status slc_fpga_fifo_create(struct slc_fpga_fifo *fifo,
                                     uint32_t capacity,
                                     uint32_t width,
                                     struct slc_error *err) SLC_NODISCARD;
void slc_fpga_fifo_destroy(struct slc_fpga_fifo *fifo);

static inline uint32_t slc_fpga_fifo_space(const struct slc_fpga_fifo *fifo)
{
    return fifo->capacity - fifo->count;
}

/* Appends an item of `words` words; the rest of the item is 0. The item becomes visible in cycle
 * `ready`, which must not be before the `ready` of the item before it. Needs: space. */
void slc_fpga_fifo_push(struct slc_fpga_fifo *fifo,
                        const void *item,
                        uint32_t words,
                        uint64_t ready);

/* Returns item number `i` from the head, or NULL if it is not visible in cycle `now`. The pointer
 * is valid until the item is popped. */
const uint32_t *slc_fpga_fifo_peek(const struct slc_fpga_fifo *fifo, uint32_t i, uint64_t now);

/* Removes the first `items` items. Needs: they are visible. */
void slc_fpga_fifo_pop(struct slc_fpga_fifo *fifo, uint32_t items);

#endif
