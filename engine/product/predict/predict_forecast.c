/* Forecasts a prediction from the first piece of its input. Rows are parsed and formatted, and the
 * time of both steps is measured. The formatted numbers have as many digits as typical model
 * values. */
#include "base/error/clock.h"
#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "convert/ingest/input/foreign.h"
#include "convert/ingest/input/input.h"
#include "convert/ingest/text/text.h"
#include "convert/number/format.h"
#include "engine/product/predict/predict.h"
#include "storage/model/npy_header.h"

enum { BATCH_ROWS = 16384 };

/* Seconds per element of a factor row (one multiplication and addition), and per factor row (one
 * cache miss). */
#define PRODUCT_SECONDS 0.5e-9
#define ROW_SECONDS     20e-9

/* Returns the length of a row in the output. The model value is not known, so a number with all
 * digits is assumed. */
static uint64_t row_bytes(const struct slc_predict_options *options,
                          const struct slc_text_rows *rows,
                          bool has_values,
                          uint32_t row)
{
    const double value = rows->values[row], predicted = value * 0.7390851332151607 + 1.0 / 3;
    char text[SLC_FORMAT_F64_BYTES];
    uint64_t bytes = 0;

    switch (options->form) {
    case SLC_PREDICT_NONE:
        return 0;
    case SLC_PREDICT_NPY:
        return (has_values ? 3 : 1) * sizeof(double);
    default:
        break;
    }
    for (unsigned n = 0; n + !has_values < options->model->order; n++) {
        bytes += slc_format_u64(text, rows->coords[n][row]) + UINT64_C(1);
    }
    bytes += slc_format_f64(text, value) + UINT64_C(1);
    bytes += slc_format_f64(text, predicted) + UINT64_C(1);
    return bytes + (has_values ? slc_format_f64(text, value - predicted) + UINT64_C(1) : 0);
}

/* Parses and formats the first rows of the piece, and scales the measured time to the whole
 * input. */
static void measure_rows(const struct slc_predict_options *options,
                         const struct slc_text_header *header,
                         const struct slc_piece *piece,
                         struct slc_text_rows *rows,
                         struct slc_predict_forecast *f)
{
    size_t at = (size_t)header->header_bytes;
    const uint64_t start_ns = slc_clock_thread_ns();
    uint64_t parsed_ns, bytes = 0;

    /* Invalid rows end parsing without an error. The rows before them are enough for a forecast. */
    (void)!slc_text_parse_rows(header, piece->buffer.data, piece->bytes, &at, rows, NULL);
    parsed_ns = slc_clock_thread_ns();
    f->has_values = header->order == options->model->order;
    for (uint32_t i = 0; i < rows->count; i++) {
        bytes += row_bytes(options, rows, f->has_values, i);
    }
    if (rows->count > 0) {
        const double each = 1.0 / rows->count;
        const unsigned order = options->model->order;

        f->rows = (uint64_t)((double)f->text_bytes * rows->count /
                             (double)(at - (size_t)header->header_bytes));
        f->rows = header->has_nnz ? header->nnz : f->rows;
        f->output_bytes = (uint64_t)((double)bytes * each * (double)f->rows);
        f->parse_seconds = 1e-9 * (double)(parsed_ns - start_ns) * each * (double)f->rows;
        f->compute_seconds = (1e-9 * (double)(slc_clock_thread_ns() - parsed_ns) * each +
                              order * (ROW_SECONDS + PRODUCT_SECONDS * options->model->rank)) *
                             (double)f->rows / options->threads;
    }
    if (options->form == SLC_PREDICT_NPY) {
        f->output_bytes += SLC_NPY_STORED_BYTES;
    }
}

enum slc_status slc_predict_forecast(const struct slc_predict_options *options,
                                     struct slc_predict_forecast *forecast,
                                     struct slc_error *err)
{
    struct slc_predict_forecast *f = forecast;
    const unsigned order = options->model->order;
    struct slc_piece piece = {.buffer = SLC_BUFFER_INIT};
    struct slc_buffer memory = SLC_BUFFER_INIT;
    struct slc_text_rows rows = {.capacity = BATCH_ROWS};
    struct slc_text_header header;
    struct slc_input *input = NULL;
    struct slc_input_info info;
    uint64_t start_ns, unpack_ns = 0;
    enum slc_status status = slc_input_open(options->files, options->input, &input, err);

    *f = (struct slc_predict_forecast){.rows = 0};
    if (status == SLC_OK) {
        slc_input_info(input, &info);
        f->input_bytes = info.stored_bytes;
        f->decoder_bytes = info.memory_bytes;
        status = slc_buffer_create(&piece.buffer, SLC_PIECE_BYTES, SLC_PAGES_SMALL, err);
    }
    SLC_THEN(status,
             slc_buffer_create(&memory, (order + UINT64_C(1)) * BATCH_ROWS * sizeof(uint64_t),
                               SLC_PAGES_SMALL, err));
    SLC_THEN(status, slc_input_check_text(input, true, err));
    if (status == SLC_OK) {
        start_ns = slc_clock_thread_ns();
        status = slc_input_next(input, piece.buffer.data, SLC_PIECE_BYTES, &piece.bytes, err);
        unpack_ns = slc_clock_thread_ns() - start_ns;
    }
    if (status == SLC_OK) {
        status = slc_text_sniff(piece.buffer.data, piece.bytes, slc_input_at_end(input),
                                options->dialect, &header, err);
        slc_error_locate_file(err, info.name);
    }
    if (status == SLC_OK && header.order != order && header.order + 1 != order) {
        status =
            slc_fail_file(err, SLC_ERR_INPUT, info.name,
                          "rows have %u indices, but the model has %u modes", header.order, order);
    }
    if (status == SLC_OK) {
        for (unsigned n = 0; n < order; n++) {
            rows.coords[n] = (uint64_t *)memory.data + (size_t)n * BATCH_ROWS;
        }
        rows.values = (double *)memory.data + (size_t)order * BATCH_ROWS;
        slc_text_rows_clear(&rows);
        f->text_bytes = slc_input_text_bytes(input);
        measure_rows(options, &header, &piece, &rows, f);
        /* The parsing thread also decompresses the input. */
        f->parse_seconds +=
            1e-9 * (double)unpack_ns * (double)f->text_bytes / (double)slc_max_u64(piece.bytes, 1);
    }
    slc_buffer_destroy(&memory);
    slc_buffer_destroy(&piece.buffer);
    slc_input_close(input);
    return status;
}
