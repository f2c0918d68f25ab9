/* Connects the processes of a design by FIFOs and runs them by a common clock. */
#include "fpga/design/design.h"

#include "fpga/design/mac.h"
#include "fpga/design/memory.h"

#include <string.h>

/* FIFOs, named after their items. */
enum channel {
    SLICE_ENDS,
    FIBER_ENDS,
    FIBER_INDICES,
    INDICES,
    VALUES,
    ROWS,
    FIBER_ROWS,
    FIBER_SUMS,
    RESULTS,
    CHANNELS
};

/* Readers of words, in the order of their priority. */
enum { WORD_READERS = 5, ROW_READERS = 2, STAGES = 2 };

struct machine {
    const struct slc_fpga_parameters *parameters;
    struct slc_fpga_fifo fifos[CHANNELS];
    struct slc_fpga_port port;
    struct slc_fpga_word_reader words[WORD_READERS];
    struct slc_fpga_row_reader rows[ROW_READERS]; /* in the order of their priority */
    struct slc_fpga_mac stages[STAGES];           /* the last one that is used writes RESULTS */
    unsigned stage_count;
    struct slc_fpga_writer writer;
};

/* ---- checks */

static enum slc_status check_matrix(const struct slc_matrix *matrix,
                                    uint64_t rows,
                                    uint32_t cols,
                                    const char *name,
                                    struct slc_error *err)
{
    if (matrix->type != SLC_F32 || matrix->cols != cols || matrix->rows < rows) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "the %s of an FPGA design has %llu x %u numbers of %u bytes; at least "
                        "%llu x %u numbers of 4 bytes are needed",
                        name, (unsigned long long)matrix->rows, matrix->cols,
                        slc_value_bytes(matrix->type), (unsigned long long)rows, cols);
    }
    return SLC_OK;
}

static enum slc_status check_pointers(
    const uint32_t *pointers, uint32_t count, uint32_t end, const char *name, struct slc_error *err)
{
    bool ordered = pointers[0] == 0 && pointers[count] == end;

    for (uint32_t i = 0; i < count; i++) {
        ordered = ordered && pointers[i] <= pointers[i + 1];
    }
    return ordered ? SLC_OK
                   : slc_fail(err, SLC_ERR_USAGE,
                              "the %u %s pointers must begin at 0, not decrease, and end at %u",
                              count + 1, name, end);
}

/* Returns the smallest number of rows that a matrix needs for the given indices. */
static uint64_t rows_needed(const uint32_t *indices, uint32_t count)
{
    uint64_t rows = 0;

    for (uint32_t i = 0; i < count; i++) {
        rows = slc_max_u64(rows, (uint64_t)indices[i] + 1);
    }
    return rows;
}

static enum slc_status check_parameters(const struct slc_fpga_parameters *parameters,
                                        struct slc_error *err)
{
    if (parameters->lanes < 1 || parameters->lanes > parameters->cols ||
        parameters->beat_words < 1 || parameters->beat_words > SLC_FPGA_FIFO_WORDS ||
        slc_fpga_row_beats(parameters) > SLC_FPGA_FIFO_BEATS || parameters->memory_latency < 1 ||
        parameters->multiply_latency < 1 || parameters->add_latency < 1) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "an FPGA design needs latencies of 1 or more, 1 to %u MAC lanes for %u "
                        "columns, and beats of 1 to %u words, of which a row fills at most %u",
                        parameters->cols, parameters->cols, SLC_FPGA_FIFO_WORDS,
                        SLC_FPGA_FIFO_BEATS);
    }
    return SLC_OK;
}

static enum slc_status check_tensor(enum slc_fpga_design design,
                                    const struct slc_fpga_tensor *tensor,
                                    const struct slc_matrix *matrix,
                                    const struct slc_matrix *fiber_matrix,
                                    const struct slc_matrix *output,
                                    uint32_t cols,
                                    struct slc_error *err)
{
    SLC_TRY(check_pointers(tensor->fiber_ptr, tensor->fibers, tensor->nnz, "fiber", err));
    SLC_TRY(check_matrix(matrix, rows_needed(tensor->index, tensor->nnz), cols, "matrix", err));
    if (design == SLC_FPGA_MTTKRP) {
        SLC_TRY(check_pointers(tensor->slice_ptr, tensor->slices, tensor->fibers, "slice", err));
        SLC_TRY(check_matrix(fiber_matrix, rows_needed(tensor->fiber_index, tensor->fibers), cols,
                             "matrix of fibers", err));
    }
    return check_matrix(output, design == SLC_FPGA_MTTKRP ? tensor->slices : tensor->fibers, cols,
                        "output", err);
}

/* ---- wiring */

static enum slc_status create_fifos(struct machine *machine, struct slc_error *err)
{
    for (unsigned c = 0; c < CHANNELS; c++) {
        uint32_t capacity = SLC_FPGA_FIFO_WORDS;
        uint32_t width = 1;

        if (c == ROWS || c == FIBER_ROWS) {
            capacity = SLC_FPGA_FIFO_BEATS;
            width = machine->parameters->beat_words;
        } else if (c == FIBER_SUMS || c == RESULTS) {
            capacity = SLC_FPGA_FIFO_ROWS;
            width = machine->parameters->cols;
        }
        SLC_TRY(slc_fpga_fifo_create(&machine->fifos[c], capacity, width, err));
    }
    return SLC_OK;
}

static enum slc_status create_stages(struct machine *machine, struct slc_error *err)
{
    for (unsigned s = 0; s < machine->stage_count; s++) {
        struct slc_fpga_mac *stage = &machine->stages[s];

        SLC_TRY(slc_fpga_mac_create(stage, machine->parameters, err));
        stage->ends = &machine->fifos[s == 0 ? FIBER_ENDS : SLICE_ENDS];
        stage->multiplicands = &machine->fifos[s == 0 ? VALUES : FIBER_SUMS];
        stage->rows = &machine->fifos[s == 0 ? ROWS : FIBER_ROWS];
        stage->sums = &machine->fifos[s + 1 < machine->stage_count ? FIBER_SUMS : RESULTS];
    }
    return SLC_OK;
}

static void connect_readers(struct machine *machine,
                            enum slc_fpga_design design,
                            const struct slc_fpga_tensor *tensor,
                            const struct slc_matrix *matrix,
                            const struct slc_matrix *fiber_matrix)
{
    const bool two_stages = design == SLC_FPGA_MTTKRP;
    struct slc_fpga_fifo *fifos = machine->fifos;

    machine->words[0] = (struct slc_fpga_word_reader){
        .array = tensor->index, .count = tensor->nnz, .to = &fifos[INDICES]};
    machine->words[1] = (struct slc_fpga_word_reader){
        .array = tensor->value, .count = tensor->nnz, .to = &fifos[VALUES]};
    machine->words[2] = (struct slc_fpga_word_reader){.array = tensor->fiber_ptr,
                                                      .count = (uint64_t)tensor->fibers + 1,
                                                      .pointers = true,
                                                      .to = &fifos[FIBER_ENDS]};
    machine->words[3] = (struct slc_fpga_word_reader){.array = tensor->fiber_index,
                                                      .count = two_stages ? tensor->fibers : 0,
                                                      .to = &fifos[FIBER_INDICES]};
    machine->words[4] =
        (struct slc_fpga_word_reader){.array = tensor->slice_ptr,
                                      .count = two_stages ? (uint64_t)tensor->slices + 1 : 0,
                                      .pointers = true,
                                      .to = &fifos[SLICE_ENDS]};
    machine->rows[0] = (struct slc_fpga_row_reader){
        .matrix = fiber_matrix, .from = &fifos[FIBER_INDICES], .to = &fifos[FIBER_ROWS]};
    machine->rows[1] = (struct slc_fpga_row_reader){.matrix = matrix,
                                                    .on_chip = design == SLC_FPGA_TTM_ON_CHIP,
                                                    .from = &fifos[INDICES],
                                                    .to = &fifos[ROWS]};
}

/* ---- the clock */

/* Simulates one cycle. The order of the calls is the priority of the port. */
static void step(struct machine *machine, uint64_t now)
{
    const struct slc_fpga_parameters *parameters = machine->parameters;

    machine->port.taken = false;
    for (unsigned w = 0; w < WORD_READERS; w++) {
        slc_fpga_word_reader_step(&machine->words[w], parameters, &machine->port, now);
    }
    slc_fpga_writer_step(&machine->writer, parameters, &machine->port, now);
    for (unsigned s = machine->stage_count; s-- > 0;) {
        slc_fpga_mac_step(&machine->stages[s], parameters, now);
    }
    for (unsigned r = 0; r < ROW_READERS; r++) {
        slc_fpga_row_reader_step(&machine->rows[r], parameters, &machine->port, now);
    }
}

/* Loads the matrix of SLC_FPGA_TTM_ON_CHIP into on-chip memory. Computing starts when the last beat
 * has arrived. */
static void
load_matrix(struct machine *machine, const struct slc_matrix *matrix, struct slc_fpga_count *count)
{
    count->beats += matrix->rows * slc_fpga_row_beats(machine->parameters);
    count->cycles += count->beats + machine->parameters->memory_latency;
}

enum slc_status slc_fpga_run(enum slc_fpga_design design,
                             const struct slc_fpga_parameters *parameters,
                             const struct slc_fpga_tensor *tensor,
                             const struct slc_matrix *matrix,
                             const struct slc_matrix *fiber_matrix,
                             struct slc_matrix *output,
                             struct slc_fpga_count *count,
                             struct slc_error *err)
{
    const bool two_stages = design == SLC_FPGA_MTTKRP;
    const uint64_t rows = two_stages ? tensor->slices : tensor->fibers;
    struct machine machine = {.parameters = parameters,
                              .stage_count = two_stages ? 2 : 1,
                              .writer = {.output = output, .from = &machine.fifos[RESULTS]}};
    enum slc_status status = check_parameters(parameters, err);

    SLC_THEN(status,
             check_tensor(design, tensor, matrix, fiber_matrix, output, parameters->cols, err));
    SLC_THEN(status, create_fifos(&machine, err));
    SLC_THEN(status, create_stages(&machine, err));
    if (status == SLC_OK) {
        *count = (struct slc_fpga_count){0, 0};
        connect_readers(&machine, design, tensor, matrix, fiber_matrix);
        if (design == SLC_FPGA_TTM_ON_CHIP) {
            load_matrix(&machine, matrix, count);
        }
        for (; machine.writer.row < rows; count->cycles++) {
            step(&machine, count->cycles);
        }
        count->beats += machine.port.beats;
    }
    for (unsigned s = 0; s < STAGES; s++) {
        slc_fpga_mac_destroy(&machine.stages[s]);
    }
    for (unsigned c = 0; c < CHANNELS; c++) {
        slc_fpga_fifo_destroy(&machine.fifos[c]);
    }
    return status;
}
