/* Reads the text of a dense tensor: every value, with the first mode changing fastest. The values
 * are copied to a temporary file, which is then read like a dense array. */
#include "base/memory/checked.h"
#include "convert/ingest/binary/binary.h"
#include "convert/ingest/convert_internal.h"
#include "convert/ingest/text/text_scan.h"
#include "convert/number/number.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { BATCH_VALUES = 1024 };

/* Values that have been parsed. */
struct values {
    struct slc_conversion *conversion;
    struct slc_spool *spool;
    uint64_t wanted, count; /* number of values of the tensor, and of those that were parsed */
    double batch[BATCH_VALUES];
};

static enum slc_status flush_values(struct values *values, struct slc_error *err)
{
    return slc_spool_append(values->spool, values->batch,
                            (values->count - 1) % BATCH_VALUES * sizeof(double) + sizeof(double),
                            err);
}

/* Parses the values of a line. Errors state the column, but not the line. */
static enum slc_status
parse_line(struct values *values, const struct slc_text_line *line, struct slc_error *err)
{
    const char *p = line->begin;
    struct slc_text_field field;
    char quoted[SLC_QUOTE_BYTES];

    while (slc_text_field_next(&p, line->end, &field)) {
        double value;

        if (values->count == values->wanted) {
            (void)slc_fail(err, SLC_ERR_INPUT,
                           "expected the end of the file after %" PRIu64 " values, found %s",
                           values->wanted, slc_text_quote(quoted, &field));
        } else if (slc_parse_f64(field.begin, field.end, &value) != field.end || !isfinite(value)) {
            (void)slc_fail(err, SLC_ERR_INPUT, "expected a finite value, found %s",
                           slc_text_quote(quoted, &field));
        } else {
            values->batch[values->count++ % BATCH_VALUES] = value;
            if (values->count % BATCH_VALUES == 0) {
                SLC_TRY(flush_values(values, err));
            }
            continue;
        }
        slc_error_locate_text(err, NULL, 0, (uint64_t)(field.begin - line->begin) + 1);
        return SLC_ERR_INPUT;
    }
    return SLC_OK;
}

/* Parses the lines of a piece. */
static enum slc_status
parse_piece(struct values *values, const struct slc_piece *piece, struct slc_error *err)
{
    const char *text = piece->buffer.data, *end = text + piece->bytes;
    const char *next = text + piece->position;
    uint64_t number = piece->lines_before;

    while (next < end) {
        const struct slc_text_line line = slc_text_line_at(next, end);
        const char *p = slc_skip_blanks(line.begin, line.end);

        number++;
        next = line.next;
        if (slc_text_is_comment(values->conversion->header.comment, p, line.end)) {
            continue;
        }
        const enum slc_status status = parse_line(values, &line, err);
        if (status == SLC_ERR_INPUT && err != NULL) {
            err->line = number;
        }
        SLC_TRY(status);
    }
    return SLC_OK;
}

/* Parses all values, with the first piece as buffer. */
static enum slc_status parse_values(struct values *values, struct slc_error *err)
{
    struct slc_conversion *c = values->conversion;
    struct slc_piece *piece = &c->job.pieces[0];

    while (piece->bytes > 0) {
        SLC_TRY(slc_stop_check(c->options->stop, err));
        SLC_TRY(parse_piece(values, piece, err));
        piece->position = 0;
        piece->lines_before = slc_input_lines(c->input);
        SLC_TRY(slc_input_next(c->input, piece->buffer.data, SLC_PIECE_BYTES, &piece->bytes, err));
    }
    if (values->count != values->wanted) {
        return slc_fail(err, SLC_ERR_INPUT,
                        "the mode sizes need %" PRIu64 " values, found %" PRIu64, values->wanted,
                        values->count);
    }
    return values->count % BATCH_VALUES != 0 ? flush_values(values, err) : SLC_OK;
}

/* Creates the row source of the values in the temporary file, which it owns from now on. */
static enum slc_status open_values(struct values *values, struct slc_error *err)
{
    struct slc_conversion *c = values->conversion;
    struct slc_binary binary = {.dialect = SLC_DIALECT_TENSOR,
                                .order = c->header.order,
                                .has_dims = true,
                                .nnz = values->wanted,
                                .band_count = 1,
                                .dense = true,
                                .fortran_order = true,
                                .keep_zeros = c->build.keep_zeros};

    memcpy(binary.dims, c->header.dims, sizeof binary.dims);
    binary.fields[binary.order] =
        (struct slc_field){.kind = SLC_FIELD_FLOAT,
                           .bytes = sizeof(double),
                           .big_endian = __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__};
    binary.bands[0] = (struct slc_band){.view = {.files = slc_files_or_system(c->options->files),
                                                 .fd = slc_spool_fd(values->spool),
                                                 .name = c->info.name,
                                                 .bytes = slc_spool_bytes(values->spool)},
                                        .record_bytes = sizeof(double)};
    c->header.nnz = values->wanted;
    c->header.header_lines = 0; /* the rows of the source are elements */
    c->header.header_bytes = 0;
    if (c->options->max_temp > 0) {
        c->build.max_temp = slc_max_u64(c->options->max_temp - slc_spool_bytes(values->spool), 1);
    }
    SLC_TRY(slc_binary_source_open(&binary, values->spool, c->info.name, c->info.stored_bytes,
                                   &c->header, &c->job.source, err));
    SLC_TRY(slc_row_source_next(c->job.source, &c->job.pieces[0], err));
    c->complete = slc_row_source_lines(c->job.source) == c->header.nnz;
    return SLC_OK;
}

enum slc_status slc_conversion_open_dense(struct slc_conversion *c, struct slc_error *err)
{
    struct values values = {.conversion = c, .wanted = 1};
    const struct slc_spool_options options = {.files = c->options->files,
                                              .folder = c->options->temp_folder,
                                              .output = c->options->output,
                                              .max_bytes = c->options->max_temp};
    uint64_t bytes = 0;
    bool fits = true;

    for (unsigned m = 0; m < c->header.order; m++) {
        fits = fits && slc_mul_u64(values.wanted, c->header.dims[m], &values.wanted);
    }
    if (!fits || !slc_mul_u64(values.wanted, sizeof(double), &bytes) || bytes > INT64_MAX) {
        return slc_conversion_locate_fault(
            c,
            slc_fail(err, SLC_ERR_UNSUPPORTED,
                     "the mode sizes of this dense tensor are those of more values than a file can "
                     "hold"),
            err);
    }
    if (c->brief) {
        /* The forecast before a run must be brief, but would read the whole text. */
        return slc_fail(err, SLC_ERR_UNSUPPORTED, "no forecast of a dense text");
    }
    SLC_TRY(slc_spool_create(&options, &values.spool, err));
    const enum slc_status status = parse_values(&values, err);
    if (status != SLC_OK) {
        slc_spool_destroy(values.spool);
        return slc_conversion_locate_fault(c, status, err);
    }
    return open_values(&values, err);
}
