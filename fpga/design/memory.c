/* Readers and the writer of the designs, and the memory port that they share. */
#include "fpga/design/memory.h"

#include <string.h>

/* Requests the port for one beat. Returns true if the port accepts. */
static bool request_port(struct slc_fpga_port *port)
{
    if (port->taken) {
        return false;
    }
    port->taken = true;
    port->beats++;
    return true;
}

void slc_fpga_word_reader_step(struct slc_fpga_word_reader *reader,
                               const struct slc_fpga_parameters *parameters,
                               struct slc_fpga_port *port,
                               uint64_t now)
{
    const uint32_t *words = reader->array;
    const uint64_t end = slc_min_u64(reader->next + parameters->beat_words, reader->count);

    if (reader->next == end || slc_fpga_fifo_space(reader->to) < parameters->beat_words ||
        !request_port(port)) {
        return;
    }
    for (; reader->next < end; reader->next++) {
        if (reader->next > 0 || !reader->pointers) {
            slc_fpga_fifo_push(reader->to, words + reader->next, 1,
                               now + parameters->memory_latency);
        }
    }
}

/* Pushes the next beat of a row. Returns true if it was the last. */
static bool push_beat(struct slc_fpga_row_reader *reader,
                      const struct slc_fpga_parameters *parameters,
                      uint32_t index,
                      uint64_t ready)
{
    const float *row = slc_matrix_row_f32(reader->matrix, index);
    const uint32_t first = reader->beat * parameters->beat_words;
    const uint32_t words = (uint32_t)slc_min_u64(parameters->cols - first, parameters->beat_words);

    slc_fpga_fifo_push(reader->to, row + first, words, ready);
    reader->beat = first + words < parameters->cols ? reader->beat + 1 : 0;
    return reader->beat == 0;
}

void slc_fpga_row_reader_step(struct slc_fpga_row_reader *reader,
                              const struct slc_fpga_parameters *parameters,
                              struct slc_fpga_port *port,
                              uint64_t now)
{
    const uint32_t *index = slc_fpga_fifo_peek(reader->from, 0, now);
    const uint32_t beats = reader->on_chip ? slc_fpga_row_beats(parameters) : 1;
    bool done = false;

    if (index == NULL || slc_fpga_fifo_space(reader->to) < beats ||
        !(reader->on_chip || request_port(port))) {
        return;
    }
    for (uint32_t b = 0; b < beats; b++) {
        done = push_beat(reader, parameters, *index,
                         now + (reader->on_chip ? 1 : parameters->memory_latency));
    }
    if (done) {
        slc_fpga_fifo_pop(reader->from, 1);
    }
}

void slc_fpga_writer_step(struct slc_fpga_writer *writer,
                          const struct slc_fpga_parameters *parameters,
                          struct slc_fpga_port *port,
                          uint64_t now)
{
    const uint32_t *row = slc_fpga_fifo_peek(writer->from, 0, now);

    if (row == NULL || !request_port(port)) {
        return;
    }
    writer->beat++;
    if (writer->beat == slc_fpga_row_beats(parameters)) {
        memcpy(slc_matrix_row_f32(writer->output, writer->row), row,
               parameters->cols * sizeof(float));
        slc_fpga_fifo_pop(writer->from, 1);
        writer->beat = 0;
        writer->row++;
    }
}
