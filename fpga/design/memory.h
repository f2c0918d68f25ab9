/* The processes of a design that use the memory port. A process is a struct with its registers and
 * a step function, which the clock (design.c) calls once per cycle. The port accepts one request
 * per cycle, to read or to write one beat; of several requests in a cycle it accepts the first. */
#ifndef SLC_FPGA_MEMORY_H
#define SLC_FPGA_MEMORY_H

#include "base/matrix.h"
#include "fpga/design/fifo.h"
#include "fpga/parameters.h"

#include <stdbool.h>
#include <stdint.h>

struct slc_fpga_port {
    bool taken;     /* in this cycle */
    uint64_t beats; /* accepted requests */
};

/* Reads an array of words once, in order, beat after beat. */
struct slc_fpga_word_reader {
    const void *array; /* `count` words of 32 bits */
    uint64_t count;
    uint64_t next; /* word */
    bool pointers; /* drop the first word, which is 0: the ends of fibers (slices) remain */
    struct slc_fpga_fifo *to;
};

/* Reads the rows whose indices arrive in `from`. */
struct slc_fpga_row_reader {
    const struct slc_matrix *matrix; /* f32 */
    bool on_chip;                    /* reads a whole row per cycle, without the port */
    uint32_t beat;                   /* next beat of the row */
    struct slc_fpga_fifo *from, *to;
};

/* Writes rows in order; `row` is the next one. */
struct slc_fpga_writer {
    struct slc_matrix *output; /* f32 */
    uint64_t row;
    uint32_t beat;
    struct slc_fpga_fifo *from;
};

/* Each function simulates one cycle, `now`. Needs: a FIFO `to` of a row reader has items of
 * parameters->beat_words words. */
void slc_fpga_word_reader_step(struct slc_fpga_word_reader *reader,
                               const struct slc_fpga_parameters *parameters,
                               struct slc_fpga_port *port,
                               uint64_t now);
void slc_fpga_row_reader_step(struct slc_fpga_row_reader *reader,
                              const struct slc_fpga_parameters *parameters,
                              struct slc_fpga_port *port,
                              uint64_t now);
void slc_fpga_writer_step(struct slc_fpga_writer *writer,
                          const struct slc_fpga_parameters *parameters,
                          struct slc_fpga_port *port,
                          uint64_t now);

#endif
