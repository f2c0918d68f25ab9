/* Ring buffer of items with the cycle in which each becomes visible. */
#include "fpga/design/fifo.h"

#include "base/memory/memory.h"

#include <assert.h>
#include <string.h>

enum slc_status slc_fpga_fifo_create(struct slc_fpga_fifo *fifo,
                                     uint32_t capacity,
                                     uint32_t width,
                                     struct slc_error *err)
{
    *fifo = (struct slc_fpga_fifo){.width = width,
                                   .capacity = capacity,
                                   .words = slc_calloc((size_t)capacity * width, sizeof(uint32_t)),
                                   .ready = slc_calloc(capacity, sizeof(uint64_t))};
    return slc_check_memory(fifo->words != NULL && fifo->ready != NULL, err,
                            "for a FIFO of %u items of %u words", capacity, width);
}

void slc_fpga_fifo_destroy(struct slc_fpga_fifo *fifo)
{
    slc_free(fifo->words);
    slc_free(fifo->ready);
    memset(fifo, 0, sizeof *fifo);
}

void slc_fpga_fifo_push(struct slc_fpga_fifo *fifo,
                        const void *item,
                        uint32_t words,
                        uint64_t ready)
{
    const uint32_t at = (fifo->head + fifo->count) % fifo->capacity;
    uint32_t *to = fifo->words + (size_t)at * fifo->width;

    assert(fifo->count < fifo->capacity && words <= fifo->width);
    memcpy(to, item, words * sizeof *to);
    memset(to + words, 0, (fifo->width - words) * sizeof *to);
    fifo->ready[at] = ready;
    fifo->count++;
}

const uint32_t *slc_fpga_fifo_peek(const struct slc_fpga_fifo *fifo, uint32_t i, uint64_t now)
{
    const uint32_t at = (fifo->head + i) % fifo->capacity;

    return i < fifo->count && fifo->ready[at] <= now ? fifo->words + (size_t)at * fifo->width
                                                     : NULL;
}

void slc_fpga_fifo_pop(struct slc_fpga_fifo *fifo, uint32_t items)
{
    assert(items <= fifo->count);
    fifo->head = (fifo->head + items) % fifo->capacity;
    fifo->count -= items;
}
