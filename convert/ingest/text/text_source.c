/* Row source of a text tensor. Pieces end at line ends; convert/ingest/text/rows.c parses them. */
#include "convert/ingest/text/text.h"

#include <string.h>

struct text_source {
    struct slc_row_source source;
    struct slc_input *input;
};

static enum slc_status
text_next(struct slc_row_source *source, struct slc_piece *piece, struct slc_error *err)
{
    struct slc_input *input = ((struct text_source *)source)->input;

    piece->position = 0;
    piece->lines_before = slc_input_lines(input);
    return slc_input_next(input, piece->buffer.data, SLC_PIECE_BYTES, &piece->bytes, err);
}

static enum slc_status text_go_to(struct slc_row_source *source,
                                  uint64_t offset,
                                  uint64_t lines,
                                  struct slc_piece *piece,
                                  bool *there,
                                  struct slc_error *err)
{
    return slc_input_go_to(((struct text_source *)source)->input, offset, lines, piece->buffer.data,
                           SLC_PIECE_BYTES, there, err);
}

static enum slc_status text_sample(struct slc_row_source *source,
                                   uint64_t offset,
                                   size_t bytes,
                                   struct slc_piece *piece,
                                   struct slc_error *err)
{
    piece->position = 0;
    return slc_input_sample(((struct text_source *)source)->input,
                            source->header->header_bytes + offset, piece->buffer.data, bytes,
                            &piece->bytes, err);
}

static enum slc_status text_parse(const struct slc_row_source *source,
                                  const struct slc_piece *piece,
                                  size_t *position,
                                  struct slc_text_rows *rows,
                                  struct slc_error *err)
{
    enum slc_status status =
        slc_text_parse_rows(source->header, piece->buffer.data, piece->bytes, position, rows, err);

    if (status != SLC_OK && err != NULL) {
        err->line += piece->lines_before;
        slc_error_locate_file(err, source->name);
    }
    return status;
}

static void text_place(const struct slc_row_source *source,
                       const struct slc_piece *piece,
                       size_t begin,
                       size_t end,
                       unsigned mode,
                       struct slc_mark *mark)
{
    const char *text = piece->buffer.data;
    size_t line_end = text[end - 1] == '\n' ? end - 1 : end;
    /* Search from `begin` on, because a byte order mark before `begin` is not part of the first
     * line. */
    const char *newline = memrchr(text + begin, '\n', line_end - begin);
    size_t line_start = newline ? (size_t)(newline - text) + 1 : begin;

    (void)source;
    mark->column = slc_text_field_column(text, piece->bytes, line_start, mode);
}

static void text_locate_fault(const struct slc_row_source *source,
                              uint64_t line,
                              uint64_t column,
                              struct slc_error *err)
{
    slc_error_locate_text(err, source->name, line, column);
}

static uint64_t text_lines(const struct slc_row_source *source)
{
    return slc_input_lines(((const struct text_source *)source)->input);
}

static uint64_t text_consumed(const struct slc_row_source *source)
{
    return slc_input_consumed(((const struct text_source *)source)->input);
}

static void text_close(struct slc_row_source *source)
{
    slc_free(source);
}

enum slc_status slc_text_source_open(struct slc_input *input,
                                     const struct slc_text_header *header,
                                     struct slc_row_source **source,
                                     struct slc_error *err)
{
    static const struct slc_row_source_ops ops = {
        .next = text_next,
        .go_to = text_go_to,
        .sample = text_sample,
        .parse = text_parse,
        .place = text_place,
        .locate_fault = text_locate_fault,
        .lines = text_lines,
        .consumed = text_consumed,
        .close = text_close,
    };
    struct text_source *text = slc_calloc(1, sizeof *text);
    struct slc_input_info info;

    *source = NULL;
    SLC_TRY(slc_check_memory(text != NULL, err, "to read the input"));
    slc_input_info(input, &info);
    text->input = input;
    text->source.ops = &ops;
    text->source.name = info.name;
    text->source.header = header;
    if (info.seekable && info.stored_bytes > header->header_bytes) {
        text->source.sampled_bytes = info.stored_bytes - header->header_bytes;
    }
    *source = &text->source;
    return SLC_OK;
}
