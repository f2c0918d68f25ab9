/* Opens the inputs of a conversion. Binary formats are recognized by the first decompressed bytes,
 * text dialects by the first lines. */
#include "base/error/clock.h"
#include "base/memory/checked.h"
#include "convert/ingest/binary/binary.h"
#include "convert/ingest/convert_internal.h"
#include "convert/ingest/csv/csv.h"
#include "convert/ingest/input/foreign.h"
#include "convert/ingest/text/text.h"

enum slc_status slc_conversion_open_inputs(struct slc_conversion *c, struct slc_error *err)
{
    const struct slc_convert_options *options = c->options;

    if (options->arrow != NULL) {
        c->info = (struct slc_input_info){.compression = "none", .name = options->input};
        return SLC_OK;
    }
    enum slc_status status = slc_input_open(options->files, options->input, &c->input, err);

    if (status == SLC_OK) {
        slc_input_info(c->input, &c->info);
    }
    if (status == SLC_OK && options->values) {
        struct slc_input_info values = {.memory_bytes = 0};

        status = slc_input_open(options->files, options->values, &c->values, err);
        if (status == SLC_OK) {
            slc_input_info(c->values, &values);
        }
        c->info.stored_bytes += values.stored_bytes;
        c->info.memory_bytes += values.memory_bytes;
    }
    return status;
}

/* Opens a binary input as the row source and reads its first piece. */
static enum slc_status
open_binary(struct slc_conversion *c, enum slc_dialect dialect, struct slc_error *err)
{
    const struct slc_convert_options *options = c->options;
    struct slc_piece *first = &c->job.pieces[0];
    const struct slc_spool_options spool = {.files = options->files,
                                            .folder = options->temp_folder,
                                            .output = options->output,
                                            .max_bytes = options->max_temp};
    const struct slc_binary_request request = {.input = c->input,
                                               .values = c->values,
                                               .dialect = dialect,
                                               .keep_zeros = c->build.keep_zeros,
                                               .spool = &spool,
                                               .buffer = first->buffer.data,
                                               .buffer_bytes = SLC_PIECE_BYTES};
    uint64_t spooled_bytes;
    enum slc_status status =
        slc_binary_open(&request, &c->header, &c->job.source, &spooled_bytes, err);

    if (status == SLC_OK && options->max_temp > 0) {
        c->build.max_temp = slc_max_u64(options->max_temp - spooled_bytes, 1);
    }
    SLC_THEN(status, slc_row_source_next(c->job.source, first, err));
    c->complete = status == SLC_OK && slc_row_source_lines(c->job.source) == c->header.nnz;
    return slc_conversion_locate_fault(c, status, err);
}

/* Recognizes the dialect of a text from its first piece. */
static enum slc_status open_text(struct slc_conversion *c, struct slc_error *err)
{
    struct slc_piece *first = &c->job.pieces[0];

    SLC_TRY(slc_input_next(c->input, first->buffer.data, SLC_PIECE_BYTES, &first->bytes, err));
    c->complete = slc_input_at_end(c->input);
    enum slc_status status = slc_text_sniff(first->buffer.data, first->bytes, c->complete,
                                            c->options->dialect, &c->header, err);
    if (status != SLC_OK) {
        return slc_conversion_locate_fault(c, status, err);
    }
    first->position = (size_t)c->header.header_bytes;
    first->lines_before = c->header.header_lines;
    if (c->header.dialect == SLC_DIALECT_TENSOR) {
        return slc_conversion_open_dense(c, err);
    }
    return slc_text_source_open(c->input, &c->header, &c->job.source, err);
}

/* Returns whether to read the input as a table. Without an option, an append decides by the file
 * name, because coordinates can also be appended to a store that was made from a table. */
static bool is_table(const struct slc_conversion *c)
{
    const struct slc_convert_options *options = c->options;

    return options->csv != NULL || options->table ||
           (options->append && options->dialect == SLC_DIALECT_AUTO &&
            slc_csv_is_name(c->info.name) && slc_conversion_old_is_table(c));
}

enum slc_status slc_conversion_open_rows(struct slc_conversion *c, struct slc_error *err)
{
    uint64_t start_ns = slc_clock_ns();
    enum slc_dialect dialect = c->options->dialect;
    enum slc_status status =
        slc_buffer_create(&c->job.pieces[0].buffer, SLC_PIECE_BYTES, SLC_PAGES_SMALL, err);

    SLC_TRY(status);
    if (is_table(c)) {
        SLC_TRY(c->input != NULL ? slc_input_check_text(c->input, true, err) : SLC_OK);
        status = c->forecast != NULL ? slc_conversion_sample_table(c, err)
                                     : slc_conversion_open_csv(c, err);
        c->job.read_seconds += slc_seconds_since(start_ns);
        return status;
    }
    if (dialect == SLC_DIALECT_AUTO) {
        size_t head_bytes;
        const unsigned char *head = slc_input_peek(c->input, &head_bytes);

        dialect = slc_binary_detect(head, head_bytes);
        if (dialect == SLC_DIALECT_AUTO) {
            SLC_TRY(slc_input_check_text(c->input, true, err));
        }
        if (dialect == SLC_DIALECT_AUTO && slc_binary_unmarked(head, head_bytes)) {
            return slc_conversion_locate_fault(
                c,
                slc_fail_field(err, SLC_ERR_INPUT, SLC_FIELD_DIALECT,
                               "the input is neither text nor a binary tensor of a recognized "
                               "format; for an ALTO file, give the format alto-bin"),
                err);
        }
    }
    if (c->values && !slc_dialect_is_binary(dialect)) {
        return slc_fail(
            err, SLC_ERR_USAGE,
            "a second input, %s, is for .npy coordinates only, but %s is not a .npy file",
            c->options->values, c->info.name);
    }
    status = slc_dialect_is_binary(dialect) ? open_binary(c, dialect, err) : open_text(c, err);
    c->job.read_seconds += slc_seconds_since(start_ns);
    return status;
}
