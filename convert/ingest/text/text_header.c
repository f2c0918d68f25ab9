/* Detects the dialect of a text and parses its header. docs/FORMATS-TEXT.md states the grammars.
 *
 * At most the first three lines that are not empty determine the dialect. A Matrix Market banner,
 * the magic comment of extended FROSTT and the word `sptensor` each identify their dialect. A first
 * line of one number is the order in a header of ParTI, or of GenTen without `sptensor`; the third
 * line distinguishes the two. If the first line is none of these, it is a row. Only the header is
 * consumed; convert/ingest/text/rows.c parses the rows. */
#include "convert/ingest/input/foreign.h"
#include "convert/ingest/text/text_scan.h"
#include "convert/number/number.h"

#include <inttypes.h>
#include <string.h>

/* Characters that start a comment in all dialects except Matrix Market: '#' as in FROSTT, '//' as
 * in GenTen, ';' as MLIR writes extended FROSTT. */
static const char hash_comments[] = "#/;";
static const char percent_comments[] = "%";
static const char extended_frostt_magic[] = "extended FROSTT format";
static const char matrix_market_magic[] = "%%matrixmarket";

struct cursor {
    const char *text;
    const char *end;
    bool complete;        /* true if the text is the whole input */
    const char *comment;  /* characters that start a comment line */
    const char *next;     /* next unread line */
    uint64_t line_number; /* number of `line` */
    struct slc_text_line line;
    bool extended_frostt; /* true if the magic comment of extended FROSTT was found */
};

static enum slc_status
fault_at(struct slc_error *err, const struct cursor *c, const char *where, enum slc_status status)
{
    slc_error_locate_text(err, NULL, c->line_number, (uint64_t)(where - c->line.begin) + 1);
    return status;
}

static bool contains(const struct slc_text_line *line, const char *words)
{
    return memmem(line->begin, (size_t)(line->end - line->begin), words, strlen(words)) != NULL;
}

/* Moves to the next line with content, which is neither empty nor a comment. Returns false at the
 * end. */
static bool next_content(struct cursor *c)
{
    while (c->next < c->end) {
        c->line = slc_text_line_at(c->next, c->end);
        c->next = c->line.next;
        c->line_number++;

        const char *p = slc_skip_blanks(c->line.begin, c->line.end);

        if (slc_text_is_comment(c->comment, p, c->line.end)) {
            c->extended_frostt = c->extended_frostt || contains(&c->line, extended_frostt_magic);
        } else if (p < c->line.end) {
            return true;
        }
    }
    return false;
}

/* Moves to the next line with content; records a fault if there is none, because the header
 * requires `what`. */
static enum slc_status need_content(struct cursor *c, const char *what, struct slc_error *err)
{
    if (next_content(c)) {
        return SLC_OK;
    }
    (void)slc_fail(err, SLC_ERR_INPUT, "expected %s, found the end of the %s", what,
                   c->complete ? "file" : "first part of the input, where headers must end");
    slc_error_locate_text(err, NULL, c->line_number + 1, 1);
    return SLC_ERR_INPUT;
}

/* Parses a whole number of a header at *p, and advances *p past it. */
static enum slc_status header_number(struct cursor *c,
                                     const char **p,
                                     const char *what,
                                     uint64_t least,
                                     uint64_t *number,
                                     struct slc_error *err)
{
    char quoted[SLC_QUOTE_BYTES];
    struct slc_text_field field;

    if (!slc_text_field_next(p, c->line.end, &field)) {
        (void)slc_fail(err, SLC_ERR_INPUT, "expected %s, found the end of the line", what);
        return fault_at(err, c, field.begin, SLC_ERR_INPUT);
    }
    if (slc_parse_index(field.begin, field.end, number) != field.end || *number < least) {
        (void)slc_fail(err, SLC_ERR_INPUT,
                       "expected %s, a whole number from %" PRIu64 " to %" PRIu64 ", found %s",
                       what, least, SLC_MAX_MODE_LENGTH, slc_text_quote(quoted, &field));
        return fault_at(err, c, field.begin, SLC_ERR_INPUT);
    }
    return SLC_OK;
}

static enum slc_status end_of_header_line(struct cursor *c, const char *p, struct slc_error *err)
{
    char quoted[SLC_QUOTE_BYTES];
    struct slc_text_field field;

    if (!slc_text_field_next(&p, c->line.end, &field)) {
        return SLC_OK;
    }
    (void)slc_fail(err, SLC_ERR_INPUT, "expected the end of the header line, found %s",
                   slc_text_quote(quoted, &field));
    return fault_at(err, c, field.begin, SLC_ERR_INPUT);
}

static enum slc_status
set_order(struct cursor *c, struct slc_text_header *h, uint64_t order, struct slc_error *err)
{
    if (order < 1 || order > SLC_MAX_ORDER) {
        (void)slc_fail(err, SLC_ERR_UNSUPPORTED, "%" PRIu64 " modes: 1 to %d are supported", order,
                       (int)SLC_MAX_ORDER);
        return fault_at(err, c, slc_skip_blanks(c->line.begin, c->line.end), SLC_ERR_UNSUPPORTED);
    }
    h->order = (unsigned)order;
    return SLC_OK;
}

static enum slc_status
read_dims(struct cursor *c, const char **p, struct slc_text_header *h, struct slc_error *err)
{
    for (unsigned m = 0; m < h->order; m++) {

        SLC_TRY(header_number(c, p, "the size of a mode", 1, &h->dims[m], err));
    }
    h->has_dims = true;
    return SLC_OK;
}

static enum slc_status
read_nnz(struct cursor *c, const char **p, struct slc_text_header *h, struct slc_error *err)
{
    h->has_nnz = true;
    return header_number(c, p, "the number of entries", 0, &h->nnz, err);
}

/* Reads the current line, "N", and the next line, "dims". */
static enum slc_status
read_order_and_dims(struct cursor *c, struct slc_text_header *h, struct slc_error *err)
{
    const char *p = c->line.begin;
    uint64_t order;

    SLC_TRY(header_number(c, &p, "the number of modes", 0, &order, err));
    SLC_TRY(end_of_header_line(c, p, err));
    SLC_TRY(set_order(c, h, order, err));
    SLC_TRY(need_content(c, "the mode sizes", err));
    p = c->line.begin;
    SLC_TRY(read_dims(c, &p, h, err));
    return end_of_header_line(c, p, err);
}

static void rows_start_at(struct slc_text_header *h, const struct cursor *c, const char *where)
{
    h->header_bytes = (uint64_t)(where - c->text);
    h->header_lines = where > c->text ? c->line_number : 0;
}

/* Reads the last line of a header, which has only the number of entries. */
static enum slc_status
read_nnz_line(struct cursor *c, struct slc_text_header *h, struct slc_error *err)
{
    const char *p = c->line.begin;
    enum slc_status status = read_nnz(c, &p, h, err);

    SLC_THEN(status, end_of_header_line(c, p, err));
    rows_start_at(h, c, c->line.next);
    return status;
}

/* Reads a header with lines `sptensor [indices-start-at-zero|indices-start-at-one]`, N, dims and
 * nnz. */
static enum slc_status read_sptensor(struct cursor *c,
                                     enum slc_dialect forced,
                                     struct slc_text_header *h,
                                     struct slc_error *err)
{
    char quoted[SLC_QUOTE_BYTES];
    struct slc_text_field field;
    const char *p = c->line.begin;
    enum slc_status status = SLC_OK;

    (void)slc_text_field_next(&p, c->line.end, &field);
    if (slc_text_field_next(&p, c->line.end, &field)) {
        if (slc_text_field_is(&field, "indices-start-at-zero")) {
            h->index_base = 0;
        } else if (slc_text_field_is(&field, "indices-start-at-one")) {
            h->index_base = 1;
        } else {
            (void)slc_fail(err, SLC_ERR_INPUT,
                           "expected 'indices-start-at-zero' or 'indices-start-at-one' after "
                           "'sptensor', found %s",
                           slc_text_quote(quoted, &field));
            return fault_at(err, c, field.begin, SLC_ERR_INPUT);
        }
        status = end_of_header_line(c, p, err);
    }
    h->dialect = forced == SLC_DIALECT_AUTO ? SLC_DIALECT_GENTEN : forced;
    h->ambiguous_base = forced == SLC_DIALECT_AUTO && h->index_base < 0;
    SLC_TRY(status);
    SLC_TRY(need_content(c, "the number of modes", err));
    SLC_TRY(read_order_and_dims(c, h, err));
    SLC_TRY(need_content(c, "the number of entries", err));
    return read_nnz_line(c, h, err);
}

/* Reads a header with lines `tensor`, N and dims. */
static enum slc_status
read_tensor(struct cursor *c, struct slc_text_header *h, struct slc_error *err)
{
    struct slc_text_field field;
    const char *p = c->line.begin;

    (void)slc_text_field_next(&p, c->line.end, &field);
    h->dialect = SLC_DIALECT_TENSOR;
    h->index_base = 0;
    SLC_TRY(end_of_header_line(c, p, err));
    SLC_TRY(need_content(c, "the number of modes", err));
    SLC_TRY(read_order_and_dims(c, h, err));
    rows_start_at(h, c, c->line.next);
    return SLC_OK;
}

/* Rejects the objects of the Tensor Toolbox that are not tensors. */
static enum slc_status
reject_object(const struct cursor *c, const struct slc_text_field *field, struct slc_error *err)
{
    if (slc_text_field_is(field, "ktensor")) {
        (void)slc_fail(err, SLC_ERR_UNSUPPORTED,
                       "this is a ktensor, the weights and factors of a model, not a tensor: "
                       "convert the tensor, or compute the elements (full) and save them as a "
                       "tensor");
    } else if (slc_text_field_is(field, "matrix")) {
        (void)slc_fail(err, SLC_ERR_UNSUPPORTED,
                       "this is a dense matrix of the Tensor Toolbox: save it as a tensor, or as "
                       "a .npy file");
    } else {
        return SLC_OK;
    }
    return fault_at(err, c, field->begin, SLC_ERR_UNSUPPORTED);
}

/* Reads a header with lines N and dims. Then rows follow (ParTI), or a line with the number of
 * entries (GenTen without its first line). */
static enum slc_status read_numbers_first(struct cursor *c,
                                          enum slc_dialect forced,
                                          struct slc_text_header *h,
                                          struct slc_error *err)
{
    SLC_TRY(read_order_and_dims(c, h, err));
    struct cursor third = *c;
    h->dialect = forced;
    if (forced == SLC_DIALECT_AUTO) {
        bool one_field =
            next_content(&third) && slc_text_field_count(third.line.begin, third.line.end) == 1;

        h->dialect = one_field ? SLC_DIALECT_GENTEN : SLC_DIALECT_PARTI;
    }
    if (h->dialect == SLC_DIALECT_PARTI) {
        rows_start_at(h, c, c->line.next);
        return SLC_OK;
    }
    SLC_TRY(need_content(c, "the number of entries", err));
    return read_nnz_line(c, h, err);
}

/* Reads a header with lines "N nnz" and dims. */
static enum slc_status
read_extended_frostt(struct cursor *c, struct slc_text_header *h, struct slc_error *err)
{
    const char *p = c->line.begin;
    uint64_t order;
    enum slc_status status = header_number(c, &p, "the number of modes", 0, &order, err);

    h->dialect = SLC_DIALECT_FROSTT_EXT;
    h->index_base = 1;
    SLC_THEN(status, set_order(c, h, order, err));
    SLC_THEN(status, read_nnz(c, &p, h, err));
    SLC_THEN(status, end_of_header_line(c, p, err));
    SLC_THEN(status, need_content(c, "the mode sizes", err));
    if (status == SLC_OK) {
        p = c->line.begin;
        status = read_dims(c, &p, h, err);
    }
    SLC_THEN(status, end_of_header_line(c, p, err));
    rows_start_at(h, c, c->line.next);
    return status;
}

/* Returns true if the current line is "N nnz" and the next two lines have N and N + 1 fields, which
 * no text without a header has. */
static bool is_unmarked_extended_frostt(const struct cursor *c)
{
    struct cursor next = *c;
    struct slc_text_field field;
    const char *p = c->line.begin;
    uint64_t order = 0;

    return slc_text_field_next(&p, c->line.end, &field) &&
           slc_parse_index(field.begin, field.end, &order) == field.end && next_content(&next) &&
           slc_text_field_count(next.line.begin, next.line.end) == order && next_content(&next) &&
           slc_text_field_count(next.line.begin, next.line.end) == order + 1 && order != 1;
}

/* Determines the order of a text without a header from its first row. */
static enum slc_status
read_rows_only(struct cursor *c, struct slc_text_header *h, struct slc_error *err)
{
    char quoted[SLC_QUOTE_BYTES];
    const char *p = c->line.begin;
    uint64_t fields = slc_text_field_count(p, c->line.end);
    struct slc_text_field field;

    h->dialect = SLC_DIALECT_TNS;
    (void)slc_text_field_next(&p, c->line.end, &field);
    /* Check only the first character, because the row parser reports faulty numbers. */
    if (!strchr("0123456789+-.", *field.begin) || *field.begin == '\0') {
        const bool table =
            memchr(c->line.begin, ',', (size_t)(c->line.end - c->line.begin)) != NULL;

        (void)slc_fail_field(
            err, SLC_ERR_INPUT, table ? SLC_FIELD_COLUMNS : SLC_FIELD_NONE,
            "expected a row of indices and a value, or the header of a known dialect, "
            "found %s%s",
            slc_text_quote(quoted, &field),
            table ? "; for a table (CSV, TSV), name the columns that become modes" : "");
        return fault_at(err, c, field.begin, SLC_ERR_INPUT);
    }
    if (fields < 2) {
        const bool table = memchr(field.begin, ',', (size_t)(field.end - field.begin)) != NULL;

        (void)slc_fail_field(
            err, SLC_ERR_INPUT, table ? SLC_FIELD_COLUMNS : SLC_FIELD_NONE,
            "found 1 field, expected at least 2 (an index and a value)%s",
            table ? "; blanks separate fields: for a table with commas, name the columns that "
                    "become modes"
                  : "");
        return fault_at(err, c, field.end, SLC_ERR_INPUT);
    }
    if (fields == 2 && is_unmarked_extended_frostt(c)) {
        (void)slc_fail_field(
            err, SLC_ERR_INPUT, SLC_FIELD_DIALECT,
            "the first lines look like a header of extended FROSTT (the number of "
            "modes and of entries, then the mode sizes) without its first comment; "
            "give the format frostt-ext");
        return fault_at(err, c, field.begin, SLC_ERR_INPUT);
    }
    return set_order(c, h, fields - 1, err);
}

/* Reads one word of a Matrix Market banner and stores its index in `words`. */
static enum slc_status banner_word(struct cursor *c,
                                   const char **p,
                                   const char *what,
                                   const char *const *words,
                                   unsigned supported,
                                   unsigned *found,
                                   struct slc_error *err)
{
    char quoted[SLC_QUOTE_BYTES];
    struct slc_text_field field;
    unsigned i = 0;

    if (!slc_text_field_next(p, c->line.end, &field)) {
        (void)slc_fail(err, SLC_ERR_INPUT,
                       "expected the %s in the Matrix Market banner, found the end of the line",
                       what);
        return fault_at(err, c, field.begin, SLC_ERR_INPUT);
    }
    while (words[i] && !slc_text_field_is(&field, words[i])) {
        i++;
    }
    if (!words[i]) {
        (void)slc_fail(err, SLC_ERR_INPUT, "unknown Matrix Market %s %s", what,
                       slc_text_quote(quoted, &field));
        return fault_at(err, c, field.begin, SLC_ERR_INPUT);
    }
    if (i >= supported) {
        (void)slc_fail(
            err, SLC_ERR_UNSUPPORTED,
            "Matrix Market %s '%s' is not supported: only sparse, real data are supported", what,
            words[i]);
        return fault_at(err, c, field.begin, SLC_ERR_UNSUPPORTED);
    }
    *found = i;
    return SLC_OK;
}

/* Reads the words of the banner. In each list the supported words come first. */
static enum slc_status
read_banner(struct cursor *c, struct slc_text_header *h, struct slc_error *err)
{
    static const char *const objects[] = {"matrix", "tensor", "vector", NULL};
    static const char *const formats[] = {"coordinate", "array", NULL};
    static const char *const fields[] = {"real", "integer", "pattern", "complex", NULL};
    static const char *const symmetries[] = {"general", "symmetric", "skew-symmetric", "hermitian",
                                             NULL};
    static const int signs[] = {0, 1, -1};
    const char *p = slc_skip_blanks(c->line.begin, c->line.end) + strlen(matrix_market_magic);
    unsigned object = 0, format = 0, field = 0, symmetry = 0;

    SLC_TRY(banner_word(c, &p, "object", objects, 2, &object, err));
    SLC_TRY(banner_word(c, &p, "format", formats, 1, &format, err));
    SLC_TRY(banner_word(c, &p, "field", fields, 3, &field, err));
    /* For tensors, only "general" is supported, because symmetry of a tensor has several meanings.
     * TACO writes only general files. */
    SLC_TRY(banner_word(c, &p, "symmetry", symmetries, object == 0 ? 3 : 1, &symmetry, err));
    SLC_TRY(end_of_header_line(c, p, err));
    h->dialect = object == 0 ? SLC_DIALECT_MATRIXMARKET : SLC_DIALECT_TACO;
    h->has_values = field != 2;
    h->symmetry = signs[symmetry];
    return SLC_OK;
}

/* Reads a Matrix Market header: the banner, comments, and a line "dims.. nnz". */
static enum slc_status
read_matrix_market(struct cursor *c, struct slc_text_header *h, struct slc_error *err)
{
    c->line = slc_text_line_at(c->next, c->end);
    c->next = c->line.next;
    c->line_number++;
    c->comment = percent_comments;
    h->comment[0] = percent_comments[0];
    h->comment[1] = '\0';
    h->index_base = 1;
    SLC_TRY(read_banner(c, h, err));
    SLC_TRY(need_content(c, "the mode sizes and the number of entries", err));
    const char *p = c->line.begin;
    uint64_t fields = slc_text_field_count(p, c->line.end);
    if (h->dialect == SLC_DIALECT_MATRIXMARKET ? fields != 3 : fields < 2) {
        (void)slc_fail(
            err, SLC_ERR_INPUT,
            "found %" PRIu64 " fields, expected the %s and the number of entries", fields,
            h->dialect == SLC_DIALECT_MATRIXMARKET ? "numbers of rows and columns" : "mode sizes");
        return fault_at(err, c, slc_skip_blanks(p, c->line.end), SLC_ERR_INPUT);
    }
    enum slc_status status = set_order(c, h, fields - 1, err);
    SLC_THEN(status, read_dims(c, &p, h, err));
    SLC_THEN(status, read_nnz(c, &p, h, err));
    if (status == SLC_OK && h->symmetry != 0 && h->dims[0] != h->dims[1]) {
        (void)slc_fail(err, SLC_ERR_INPUT,
                       "a %s matrix must be square: %" PRIu64 " rows, %" PRIu64 " columns",
                       h->symmetry > 0 ? "symmetric" : "skew-symmetric", h->dims[0], h->dims[1]);
        return fault_at(err, c, slc_skip_blanks(c->line.begin, c->line.end), SLC_ERR_INPUT);
    }
    rows_start_at(h, c, c->line.next);
    return status;
}

/* Detects the dialect of a text without a banner. The cursor is at the first line with content. */
static enum slc_status read_without_banner(struct cursor *c,
                                           enum slc_dialect forced,
                                           struct slc_text_header *h,
                                           struct slc_error *err)
{
    const char *p = c->line.begin;
    struct slc_text_field field;

    (void)slc_text_field_next(&p, c->line.end, &field);
    bool one_field = slc_text_field_count(p, c->line.end) == 0;
    switch (forced) {
    case SLC_DIALECT_TNS:
        return read_rows_only(c, h, err);
    case SLC_DIALECT_FROSTT_EXT:
        return read_extended_frostt(c, h, err);
    case SLC_DIALECT_PARTI:
        return read_numbers_first(c, forced, h, err);
    default:
        break;
    }
    SLC_TRY(one_field ? reject_object(c, &field, err) : SLC_OK);
    if (slc_text_field_is(&field, "tensor") &&
        (forced == SLC_DIALECT_AUTO || forced == SLC_DIALECT_TENSOR)) {
        return read_tensor(c, h, err);
    }
    if (forced == SLC_DIALECT_TENSOR) {
        (void)slc_fail(err, SLC_ERR_INPUT, "expected the word 'tensor'");
        return fault_at(err, c, field.begin, SLC_ERR_INPUT);
    }
    if (slc_text_field_is(&field, "sptensor")) {
        return read_sptensor(c, forced, h, err);
    }
    if (forced != SLC_DIALECT_AUTO) {
        return read_numbers_first(c, forced, h, err);
    }
    if (c->extended_frostt) {
        return read_extended_frostt(c, h, err);
    }
    const bool table = memchr(field.begin, ',', (size_t)(field.end - field.begin)) != NULL;
    if (one_field && *field.begin >= '0' && *field.begin <= '9' && !table) {
        return read_numbers_first(c, forced, h, err);
    }
    return read_rows_only(c, h, err);
}

enum slc_status slc_text_sniff(const char *text,
                               size_t bytes,
                               bool complete,
                               enum slc_dialect forced,
                               struct slc_text_header *header,
                               struct slc_error *err)
{
    struct slc_text_header h = {.dialect = SLC_DIALECT_TNS, .index_base = -1, .has_values = true};
    struct cursor c = {
        .text = text, .end = text + bytes, .complete = complete, .comment = hash_comments};
    struct slc_text_field banner;
    bool market = forced == SLC_DIALECT_TACO || forced == SLC_DIALECT_MATRIXMARKET;
    enum slc_status status;

    c.next = text;
    c.next += slc_byte_order_mark_bytes(text, bytes);
    struct cursor first = c;
    const bool content = next_content(&first);
    const char *p = first.line.begin;
    memcpy(h.comment, hash_comments, sizeof hash_comments);
    h.header_bytes = (uint64_t)(c.next - text);
    if (content && slc_text_field_next(&p, first.line.end, &banner) &&
        slc_text_field_is(&banner, matrix_market_magic)) {
        c.next = first.line.begin;
        c.line_number = first.line_number - 1;
        if (forced != SLC_DIALECT_AUTO && !market) {
            return slc_fail(err, SLC_ERR_INPUT,
                            "the file starts with a Matrix Market banner, so its dialect is not %s",
                            slc_dialect_name(forced));
        }
        status = read_matrix_market(&c, &h, err);
    } else if (market) {
        status = slc_fail(err, SLC_ERR_INPUT, "expected the banner '%%%%MatrixMarket ..' first");
        slc_error_locate_text(err, NULL, 1, 1);
    } else if (next_content(&c)) {
        status = read_without_banner(&c, forced, &h, err);
    } else if (complete) {
        h.dialect = forced == SLC_DIALECT_AUTO ? SLC_DIALECT_TNS : forced;
        status = SLC_OK;
    } else {
        status = slc_fail(err, SLC_ERR_INPUT,
                          "the first %zu bytes contain only comments and empty lines", bytes);
    }
    SLC_TRY(status);
    *header = h;
    return SLC_OK;
}
