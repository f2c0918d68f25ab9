#include "engine/product/predict/predict_internal.h"

#include "base/error/stop.h"
#include "base/memory/checked.h"
#include "base/thread/team.h"
#include "convert/ingest/input/foreign.h"
#include "engine/product/predict/predict_source.h"
#include "storage/model/npy_header.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static uint64_t row_text_bytes(unsigned order, enum slc_predict_form form)
{
    switch (form) {
    case SLC_PREDICT_NONE:
        break;
    case SLC_PREDICT_TEXT:
    case SLC_PREDICT_CSV:
        return order * (SLC_FORMAT_U64_BYTES + UINT64_C(1)) + NUMBERS_BYTES;
    case SLC_PREDICT_NPY:
        return 3 * sizeof(double);
    }
    return 0;
}

static uint64_t batch_bytes(unsigned order, enum slc_predict_form form)
{
    /* The batch has one column per mode, one more for the last mode, one for values and one for
     * model values. */
    return BATCH_ROWS * ((order + UINT64_C(3)) * sizeof(uint64_t) + row_text_bytes(order, form));
}

uint64_t slc_predict_memory_bytes(unsigned order, enum slc_predict_form form)
{
    return slc_buffer_footprint(batch_bytes(order, form), SLC_PAGES_SMALL) +
           slc_buffer_footprint(SLC_PIECE_BYTES, SLC_PAGES_SMALL);
}

static enum slc_status allocate_memory(struct predict *predict, struct slc_error *err)
{
    const unsigned order = predict->model->order;

    SLC_TRY(slc_buffer_create(&predict->piece.buffer, SLC_PIECE_BYTES, SLC_PAGES_SMALL, err));
    SLC_TRY(slc_buffer_create(&predict->memory, batch_bytes(order, predict->options->form),
                              SLC_PAGES_SMALL, err));
    uint64_t *columns = predict->memory.data;
    for (unsigned n = 0; n < order; n++) {
        predict->rows.coords[n] = columns + (size_t)n * BATCH_ROWS;
    }
    predict->last = columns + (size_t)order * BATCH_ROWS;
    predict->rows.values = (double *)(void *)(predict->last + BATCH_ROWS);
    predict->predicted = predict->rows.values + BATCH_ROWS;
    predict->text = (char *)(predict->predicted + BATCH_ROWS);
    predict->rows.capacity = BATCH_ROWS;
    predict->row_bytes = row_text_bytes(order, predict->options->form);
    return SLC_OK;
}

static enum slc_status
locate_input(const struct predict *predict, enum slc_status status, struct slc_error *err)
{
    slc_error_locate_file(err, predict->info.name);
    return status;
}

/* Checks that the order and the mode sizes of the header agree with the model. */
static enum slc_status check_shape(struct predict *predict, struct slc_error *err)
{
    const struct slc_text_header *header = &predict->header;
    const struct slc_model_view *model = predict->model;
    const bool rows_alone =
        header->dialect == SLC_DIALECT_TNS && !header->has_dims && header->has_values;

    predict->last_is_value = rows_alone && header->order + 1 == model->order;
    predict->report->has_values = header->has_values && !predict->last_is_value;
    if (header->order != 0 && !predict->last_is_value && header->order != model->order) {
        (void)slc_fail(err, SLC_ERR_INPUT, "rows have %u indices, but the model has %u modes",
                       header->order, model->order);
        return locate_input(predict, SLC_ERR_INPUT, err);
    }
    for (unsigned n = 0; n < header->order && header->has_dims; n++) {
        if (header->dims[n] != model->factors[n]->rows) {
            (void)slc_fail(err, SLC_ERR_INPUT,
                           "the header declares %" PRIu64
                           " indices of mode %u, but the model has %" PRIu64,
                           header->dims[n], n + 1, model->factors[n]->rows);
            return locate_input(predict, SLC_ERR_INPUT, err);
        }
    }
    return SLC_OK;
}

/* Opens a store or a table, and reads its first piece. */
static enum slc_status open_rows(struct predict *predict, struct slc_error *err)
{
    const struct slc_predict_options *options = predict->options;
    struct slc_csv_report found;
    enum slc_status status;

    if (options->store != NULL) {
        predict->info.stored_bytes = slc_reader_info(options->store->reader)->file_bytes;
        predict->info.name = options->input;
        status = slc_store_source_open(options->store, &predict->header, &predict->source, err);
    } else {
        const bool to_file = options->form != SLC_PREDICT_NONE && strcmp(options->output, "-") != 0;
        const struct slc_stop stop = {.flag = options->stop};

        SLC_TRY(slc_input_open(options->files, options->input, &predict->input, err));
        slc_input_info(predict->input, &predict->info);
        const struct slc_csv_request request = {
            .spec = &options->table->spec,
            .old = &options->table->old,
            .input = predict->input,
            .spool = {.files = options->files, .output = to_file ? options->output : NULL},
            .buffer = predict->piece.buffer.data,
            .buffer_bytes = SLC_PIECE_BYTES,
            .memory_bytes = options->table->memory_bytes,
            .threads = options->threads,
            .stop = &stop,
            .progress = options->progress,
            .context = options->context};

        status =
            slc_csv_open(&request, &predict->header, &predict->csv, &predict->source, &found, err);
        predict->header.has_dims = false; /* the table may have new names */
        predict->header.has_values =
            options->table->spec.value[0] != '\0' && !options->table->scaled;
    }
    SLC_TRY(status);
    predict->header.index_base = 0;
    SLC_TRY(check_shape(predict, err));
    return slc_row_source_next(predict->source, &predict->piece, err);
}

static enum slc_status open_input(struct predict *predict, struct slc_error *err)
{
    const struct slc_predict_options *options = predict->options;
    struct slc_piece *piece = &predict->piece;
    enum slc_status status = SLC_OK;

    if (options->store != NULL || options->table != NULL) {
        return open_rows(predict, err);
    }
    if (slc_dialect_is_binary(options->dialect) || options->dialect == SLC_DIALECT_TENSOR) {
        return slc_fail(err, SLC_ERR_USAGE, "coordinates are read from a text file, not from %s",
                        slc_dialect_name(options->dialect));
    }
    SLC_TRY(slc_input_open(options->files, options->input, &predict->input, err));
    slc_input_info(predict->input, &predict->info);
    status = slc_input_check_text(predict->input, true, err);
    SLC_THEN(status, slc_input_next(predict->input, piece->buffer.data, SLC_PIECE_BYTES,
                                    &piece->bytes, err));
    SLC_THEN(status,
             slc_text_sniff(piece->buffer.data, piece->bytes, slc_input_at_end(predict->input),
                            options->dialect, &predict->header, err));
    if (status == SLC_OK && predict->header.dialect == SLC_DIALECT_TENSOR) {
        status = slc_fail(err, SLC_ERR_INPUT,
                          "this is a dense tensor: a row of indices is needed "
                          "for each value that is to be computed");
    }
    if (status != SLC_OK) {
        return locate_input(predict, status, err);
    }
    piece->position = (size_t)predict->header.header_bytes;
    piece->lines_before = predict->header.header_lines;
    SLC_TRY(check_shape(predict, err));
    return slc_text_source_open(predict->input, &predict->header, &predict->source, err);
}

/* Parses the next rows of the piece. In rows that contain only coordinates, the last index is
 * parsed as a value. */
static enum slc_status parse_rows(struct predict *predict, size_t *position, struct slc_error *err)
{
    slc_text_rows_clear(&predict->rows);
    return slc_row_source_parse(predict->source, &predict->piece, position, &predict->rows, err);
}

/* Returns the index in `mode` of a row of the batch, as written in the input, or UINT64_MAX if the
 * number is not an index. */
static uint64_t index_of(const struct predict *predict, unsigned mode, uint32_t row)
{
    if (!predict->last_is_value || mode + 1 < predict->model->order) {
        return predict->rows.coords[mode][row];
    }
    double number = predict->rows.values[row];
    /* Integers up to 2^53 are exact. */
    return number >= 0.0 && number <= 9007199254740992.0 && number == floor(number)
               ? (uint64_t)number
               : UINT64_MAX;
}

/* Determines the index base from the first piece: 0 if the piece contains an index 0, 1 if it
 * contains an index equal to a mode size. */
static enum slc_status base_from_indices(struct predict *predict, struct slc_error *err)
{
    const struct slc_model_view *model = predict->model;
    const uint64_t lines = predict->rows.lines;
    size_t position = predict->piece.position;
    bool zero = false, at_length = false;

    while (position < predict->piece.bytes) {
        const enum slc_status status = parse_rows(predict, &position, err);

        if (status != SLC_OK) {
            /* the same error is reported later, when the rows before the invalid row have been
             * computed */
            slc_error_clear(err);
            break;
        }
        for (uint32_t i = 0; i < predict->rows.count; i++) {
            for (unsigned n = 0; n < model->order; n++) {
                const uint64_t index = index_of(predict, n, i);

                zero = zero || index == 0;
                at_length = at_length || index == model->factors[n]->rows;
            }
        }
    }
    predict->rows.lines = lines;
    slc_text_rows_clear(&predict->rows);
    if (!zero && !at_length && predict->options->store_dialect != NULL &&
        strcmp(predict->options->store_dialect, slc_dialect_name(predict->header.dialect)) == 0) {
        predict->report->index_base = predict->options->store_base;
        (void)snprintf(predict->report->base_reason, sizeof predict->report->base_reason,
                       "as in the source of the model's tensor");
        return SLC_OK;
    }
    if (predict->header.ambiguous_base && !zero && !at_length) {
        (void)slc_fail_field(err, SLC_ERR_INPUT, SLC_FIELD_INDEX_BASE,
                             "indices may start at 0 (GenTen) or at 1 (Tensor Toolbox): the header "
                             "does not state which, and no index is 0 or equal to its mode size; "
                             "please give the index base, 0 or 1");
        return locate_input(predict, SLC_ERR_INPUT, err);
    }
    predict->report->index_base = zero        ? 0
                                  : at_length ? 1
                                              : slc_dialect_base(predict->header.dialect);
    (void)snprintf(predict->report->base_reason, sizeof predict->report->base_reason, "%s",
                   zero        ? "an index 0 occurs"
                   : at_length ? "an index equals the size of its mode"
                               : "the convention of the format");
    return SLC_OK;
}

static enum slc_status choose_base(struct predict *predict, struct slc_error *err)
{
    struct slc_predict_report *report = predict->report;
    const int given = predict->options->index_base;

    report->dialect = predict->header.dialect;
    if (given < 0 && predict->header.index_base < 0) {
        return base_from_indices(predict, err);
    }
    report->index_base = (unsigned)(given >= 0 ? given : predict->header.index_base);
    (void)snprintf(report->base_reason, sizeof report->base_reason, "%s",
                   given >= 0 ? "as given" : "stated by the header");
    return SLC_OK;
}

/* Reports row `row`, the first row with an invalid index in the batch that starts at `begin`. */
static enum slc_status report_index(struct predict *predict,
                                    size_t begin,
                                    uint64_t lines,
                                    uint32_t row,
                                    unsigned mode,
                                    struct slc_error *err)
{
    const uint64_t index = index_of(predict, mode, row);
    struct slc_mark mark = {.mode = mode};
    size_t position = begin;

    if (index == UINT64_MAX) {
        (void)slc_fail(err, SLC_ERR_INPUT,
                       "%.17g is not an index: rows of this text must have the %u indices of a "
                       "nonzero, or its indices and its value",
                       predict->rows.values[row], predict->model->order);
    } else if (index == 0 && predict->report->index_base == 1) {
        (void)slc_fail_field(err, SLC_ERR_INPUT, SLC_FIELD_INDEX_BASE,
                             "index 0 of mode %u, but indices start at 1 (%s): if they start at 0, "
                             "set the index base",
                             mode + 1, predict->report->base_reason);
    } else if (predict->options->store != NULL) {
        (void)slc_fail(err, SLC_ERR_INPUT,
                       "the store has index %" PRIu64 " in mode %u, but the model has %" PRIu64
                       " rows: if the store has grown since the run, make a new run that starts "
                       "from this one",
                       index + 1, mode + 1, predict->model->factors[mode]->rows);
    } else {
        (void)slc_fail(err, SLC_ERR_INPUT,
                       "index %" PRIu64
                       " of mode %u is out of range: the mode size of the model is %" PRIu64
                       " (indices start at %u, %s)",
                       index, mode + 1, predict->model->factors[mode]->rows,
                       predict->report->index_base, predict->report->base_reason);
    }
    /* The batch is parsed again, row by row, to find the line number. */
    predict->rows.lines = lines;
    predict->rows.capacity = 1;
    for (uint32_t i = 0; i <= row; i++) {
        if (parse_rows(predict, &position, NULL) != SLC_OK || predict->rows.count == 0) {
            break;
        }
    }
    mark.line = predict->piece.lines_before + predict->rows.lines;
    slc_row_source_place(predict->source, &predict->piece, begin, position, mode, &mark);
    slc_row_source_locate_fault(predict->source, mark.line, mark.column, err);
    return SLC_ERR_INPUT;
}

/* Checks that all indices, minus the index base, are row numbers of the factors. If the indices of
 * the last mode were parsed as values, converts them to integers. */
static enum slc_status
subtract_base(struct predict *predict, size_t begin, uint64_t lines, struct slc_error *err)
{
    const struct slc_model_view *model = predict->model;
    const uint64_t base = predict->report->index_base;

    for (unsigned n = 0; n < model->order; n++) {
        for (uint32_t i = 0; i < predict->rows.count; i++) {
            const uint64_t index = index_of(predict, n, i);

            if (index - base >= model->factors[n]->rows && predict->csv == NULL) {
                return report_index(predict, begin, lines, i, n, err);
            }
        }
    }
    if (predict->last_is_value) {
        for (uint32_t i = 0; i < predict->rows.count; i++) {
            predict->last[i] = index_of(predict, model->order - 1, i);
        }
    }
    return SLC_OK;
}

static void compute_rows(void *context, uint64_t begin, uint64_t end, unsigned worker)
{
    struct predict *predict = context;
    char *text = predict->text + begin * predict->row_bytes;
    size_t used = 0;

    (void)worker;
    for (uint32_t i = (uint32_t)begin; i < end; i++) {
        predict->predicted[i] = slc_predict_row_value(predict, i);
        if (predict->options->form == SLC_PREDICT_NPY) {
            used += slc_predict_store_row(predict, i, text + used);
        } else if (predict->options->form != SLC_PREDICT_NONE) {
            used += slc_predict_format_row(predict, i, text + used);
        }
    }
    predict->used[begin / GRAIN_ROWS] = (uint32_t)used;
}

static void add_errors(struct predict *predict)
{
    struct slc_predict_report *report = predict->report;

    for (uint32_t i = 0; i < predict->rows.count && report->has_values; i++) {
        const struct slc_model_view *model = predict->model;
        const double value = predict->rows.values[i], m = predict->predicted[i];
        const double residual = value - slc_loss_mean(model->loss, m);

        if (predict->csv != NULL && isnan(residual)) {
            continue;
        }
        predict->sum_deviance += slc_loss_accepts(model->loss, value)
                                     ? slc_loss_deviance(model->loss, model->huber, value, m)
                                     : (double)NAN;
        predict->sum_absolute += fabs(residual);
        slc_squares_add(&predict->squares, residual);
        slc_squares_add(&predict->value_squares, value);
        /* The largest error stays NaN once a residual is NaN. */
        if (!(fabs(residual) <= report->largest) && !isnan(report->largest)) {
            report->largest = fabs(residual);
        }
    }
    for (uint32_t i = 0; i < predict->rows.count && predict->csv != NULL; i++) {
        report->unknown += isnan(predict->predicted[i]) ? 1 : 0;
    }
    report->rows += predict->rows.count;
}

static bool writes_names(const struct predict *predict)
{
    bool any = false;

    for (unsigned n = 0; n < predict->model->order; n++) {
        any = any || slc_predict_names(predict, n) != NULL;
    }
    return any;
}

/* Computes and writes the next batch of the piece. */
static enum slc_status predict_batch(struct predict *predict, struct slc_error *err)
{
    const size_t begin = predict->piece.position;
    const uint64_t lines = predict->rows.lines;
    const struct slc_stop stop = {.flag = predict->options->stop};
    struct slc_error fault = SLC_ERROR_INIT;
    /* If parsing failed, an index error in an earlier row is reported instead, because it comes
     * first in the input. */
    const enum slc_status parsed = parse_rows(predict, &predict->piece.position, &fault);
    enum slc_status status = subtract_base(predict, begin, lines, err);

    if (status == SLC_OK && parsed != SLC_OK) {
        slc_error_pass(err, &fault);
        return parsed;
    }
    SLC_THEN(status, slc_team_for(predict->options->threads, predict->rows.count, GRAIN_ROWS,
                                  compute_rows, predict, err));
    if (status == SLC_OK) {
        add_errors(predict);
    }
    const bool named = writes_names(predict);
    for (uint32_t i = 0; i < predict->rows.count && status == SLC_OK && named; i++) {
        status = slc_predict_write_named(predict, i, err);
    }
    for (uint32_t at = 0;
         at < predict->rows.count && status == SLC_OK && predict->row_bytes > 0 && !named;
         at += GRAIN_ROWS) {
        status = slc_text_output_write(&predict->output, predict->text + at * predict->row_bytes,
                                       predict->used[at / GRAIN_ROWS], err);
    }
    SLC_TRY(status);
    if (slc_stop_wanted(&stop)) {
        return slc_fail(err, SLC_ERR_INTERRUPTED, "stopped before its end");
    }
    return SLC_OK;
}

/* Rejects an output that would replace the input. */
static enum slc_status check_output(const struct slc_predict_options *options,
                                    struct slc_error *err)
{
    const struct slc_files *files = slc_files_or_system(options->files);
    struct slc_file_stat input, output;

    if (files->stat_path(files->self, options->input, &input) < 0 || input.kind != 'f' ||
        files->stat_path(files->self, options->output, &output) < 0 ||
        input.inode != output.inode || input.device != output.device) {
        return SLC_OK;
    }
    return slc_fail_file(err, SLC_ERR_USAGE, options->output,
                         "the output is the file of the coordinates: name another output");
}

static enum slc_status begin_output(struct predict *predict, struct slc_error *err)
{
    const struct slc_predict_options *options = predict->options;
    char text[SLC_MAX_ORDER * 20 + 64];
    size_t used = 0;

    if (options->form == SLC_PREDICT_NONE) {
        return SLC_OK;
    }
    SLC_TRY(check_output(options, err));
    SLC_TRY(slc_text_output_open(&predict->output, slc_files_or_system(options->files),
                                 options->output, options->overwrite, 1, 1, err));
    if (options->form == SLC_PREDICT_NPY) {
        const char zeros[SLC_NPY_STORED_BYTES] = {0};

        return slc_text_output_write(&predict->output, zeros, sizeof zeros, err);
    }
    if (options->form == SLC_PREDICT_CSV) {
        for (unsigned n = 0; n < predict->model->order; n++) {
            used += (size_t)snprintf(text + used, sizeof text - used, "mode_%u,", n + 1);
            if (slc_predict_names(predict, n) != NULL) {
                used += (size_t)snprintf(text + used, sizeof text - used, "name_%u,", n + 1);
            }
        }
        used += (size_t)snprintf(text + used, sizeof text - used, "%s\n",
                                 predict->report->has_values ? "value,model,residual" : "model");
        SLC_TRY(slc_text_output_write(&predict->output, text, used, err));
    }
    return SLC_OK;
}

static enum slc_status end_output(struct predict *predict, struct slc_error *err)
{
    const struct slc_predict_options *options = predict->options;
    enum slc_status status = SLC_OK;

    if (options->form == SLC_PREDICT_NONE) {
        return SLC_OK;
    }
    if (options->form == SLC_PREDICT_NPY) {
        const bool three = predict->report->has_values;
        const struct slc_npy_header header = {.kind = 'f',
                                              .item_bytes = 8,
                                              .dimensions = three ? 2 : 1,
                                              .shape = {predict->report->rows, three ? 3 : 1}};
        uint8_t bytes[SLC_NPY_STORED_BYTES];

        slc_npy_header_store(&header, bytes);
        status = slc_file_write_at(slc_files_or_system(options->files), predict->output.fd,
                                   options->output, bytes, sizeof bytes, 0, err);
    }
    if (status != SLC_OK) {
        slc_text_output_abandon(&predict->output);
        return status;
    }
    return slc_text_output_finish(&predict->output, err);
}

static void compute_errors(const struct predict *predict)
{
    struct slc_predict_report *report = predict->report;

    const uint64_t known = report->rows - report->unknown;

    if (known > 0 && report->has_values) {
        report->rmse = slc_squares_root(&predict->squares, (double)known);
        report->mae = predict->sum_absolute / (double)known;
        report->deviance = predict->sum_deviance / (double)known;
        report->values_norm = slc_squares_root(&predict->value_squares, 1.0);
    }
}

/* Computes and writes all pieces of the input. */
static enum slc_status predict_rows(struct predict *predict, struct slc_error *err)
{
    const struct slc_predict_options *options = predict->options;
    struct slc_piece *piece = &predict->piece;
    enum slc_status status = SLC_OK;

    while (status == SLC_OK && piece->bytes > 0) {
        while (status == SLC_OK && piece->position < piece->bytes) {
            status = predict_batch(predict, err);
        }
        if (status == SLC_OK) {
            predict->rows.lines = 0;
            if (options->progress != NULL) {
                options->progress(options->context, "predict",
                                  slc_row_source_consumed(predict->source),
                                  predict->info.stored_bytes);
            }
            status = slc_row_source_next(predict->source, piece, err);
        }
    }
    if (predict->input != NULL) {
        SLC_THEN(status, slc_input_check(predict->input, err));
    }
    if (status == SLC_OK && predict->header.has_nnz &&
        predict->header.nnz != predict->report->rows) {
        status =
            slc_fail(err, SLC_ERR_INPUT, "the header declares %" PRIu64 " nonzeros, found %" PRIu64,
                     predict->header.nnz, predict->report->rows);
    }
    return status == SLC_OK ? status : locate_input(predict, status, err);
}

enum slc_status slc_predict(const struct slc_predict_options *options,
                            struct slc_predict_report *report,
                            struct slc_error *err)
{
    struct predict predict = {.options = options,
                              .report = report,
                              .model = options->model,
                              .memory = SLC_BUFFER_INIT,
                              .piece = {.buffer = SLC_BUFFER_INIT}};

    memset(report, 0, sizeof *report);
    enum slc_status status = allocate_memory(&predict, err);
    SLC_THEN(status, open_input(&predict, err));
    SLC_THEN(status, choose_base(&predict, err));
    SLC_THEN(status, begin_output(&predict, err));
    SLC_THEN(status, predict_rows(&predict, err));
    if (status == SLC_OK) {
        status = end_output(&predict, err);
    } else {
        slc_text_output_abandon(&predict.output);
    }
    compute_errors(&predict);
    if (options->store != NULL || options->table != NULL) {
        report->index_base = 1;
        (void)snprintf(report->base_reason, sizeof report->base_reason, "the numbers of the store");
    }
    slc_row_source_close(predict.source);
    slc_csv_destroy(predict.csv);
    slc_input_close(predict.input);
    slc_buffer_destroy(&predict.memory);
    slc_buffer_destroy(&predict.piece.buffer);
    return status;
}
