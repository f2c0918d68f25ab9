/* Parses one piece in batches of rows. Each batch is checked against the known index base and mode
 * sizes, expanded if the matrix is symmetric, and passed to the builder.
 *
 * Only the smallest and the largest index of each mode in a batch are checked. If one of them is
 * out of range, the batch is parsed again, row by row, to find the line and column of the first
 * faulty row. Therefore valid input has no cost for tracking positions. */
#include "convert/ingest/convert_parse.h"

#include "base/error/clock.h"
#include "base/hash.h"
#include "base/memory/bytes.h"

#include <inttypes.h>
#include <string.h>

/* Stores a place in *mark, a member of the job, unless *mark holds an earlier place. */
static void
keep_mark(struct slc_parse_job *job, struct slc_mark *mark, const struct slc_mark *place)
{
    pthread_mutex_lock(job->lock);
    if (place->set && (!mark->set || place->sequence < mark->sequence)) {
        *mark = *place;
    }
    pthread_mutex_unlock(job->lock);
}

/* Returns true if piece `sequence` comes before the piece of the place in *mark. */
static bool precedes_mark(struct slc_parse_job *job, const struct slc_mark *mark, uint64_t sequence)
{
    pthread_mutex_lock(job->lock);
    bool needed = !mark->set || sequence < mark->sequence;
    pthread_mutex_unlock(job->lock);
    return needed;
}

uint64_t slc_parser_bytes(unsigned order, bool symmetric)
{
    uint64_t words = (uint64_t)SLC_BATCH_ROWS * (order + 1);

    if (symmetric) {
        words += UINT64_C(2) * SLC_BATCH_ROWS * 3;
    }
    return slc_buffer_footprint(words * sizeof(uint64_t), SLC_PAGES_SMALL);
}

enum slc_status
slc_parser_create(struct slc_parser *parser, unsigned order, bool symmetric, struct slc_error *err)
{
    SLC_TRY(slc_buffer_create(&parser->buffer, slc_parser_bytes(order, symmetric), SLC_PAGES_SMALL,
                              err));
    uint64_t *next = parser->buffer.data;
    parser->rows.capacity = SLC_BATCH_ROWS;
    for (unsigned m = 0; m < order; m++) {
        parser->rows.coords[m] = next;
        next += SLC_BATCH_ROWS;
        parser->smallest[m] = UINT64_MAX;
        parser->largest[m] = 0;
    }
    parser->rows.values = (double *)next;
    next += SLC_BATCH_ROWS;
    if (symmetric) {
        parser->mirror_coords[0] = next;
        parser->mirror_coords[1] = next + 2 * SLC_BATCH_ROWS;
        parser->mirror_values = (double *)(next + 4 * SLC_BATCH_ROWS);
    }
    slc_text_rows_clear(&parser->rows);
    return SLC_OK;
}

void slc_parser_destroy(struct slc_parser *parser)
{
    slc_buffer_destroy(&parser->buffer);
}

/* The rows of a parser that are processed together, and their place in the piece. */
struct batch {
    const struct slc_piece *piece;
    const struct slc_parser *parser;
    size_t begin;          /* byte of the piece where the batch starts */
    uint64_t lines_before; /* number of lines of the piece before the batch */
};

/* Returns true if a row violates a condition, and stores the first mode that violates it. */
typedef bool offends_fn(const void *context, const uint64_t *row, unsigned *mode);

/* Finds the first row of the batch that violates a condition and fills in `place`. Needs: such a
 * row exists. Cost: parses the batch again, one row at a time. */
static void locate_row(const struct slc_parse_job *job,
                       const struct batch *batch,
                       offends_fn *offends,
                       const void *context,
                       struct slc_mark *place)
{
    const struct slc_piece *piece = batch->piece;
    uint64_t row[SLC_MAX_ORDER];
    double value;
    struct slc_text_rows one = {.capacity = 1, .values = &value, .lines = batch->lines_before};
    size_t position = batch->begin;

    for (unsigned m = 0; m < SLC_MAX_ORDER; m++) {
        one.coords[m] = &row[m];
    }
    for (uint32_t i = 0; i < batch->parser->rows.count; i++) {
        unsigned mode = 0;

        slc_text_rows_clear(&one);
        if (slc_row_source_parse(job->source, piece, &position, &one, NULL) != SLC_OK ||
            one.count == 0) {
            break;
        }
        if (!offends(context, row, &mode)) {
            continue;
        }
        *place = (struct slc_mark){.set = true,
                                   .sequence = piece->sequence,
                                   .line = piece->lines_before + one.lines,
                                   .mode = mode,
                                   .index = row[mode]};
        slc_row_source_place(job->source, piece, batch->begin, position, mode, place);
        return;
    }
}

/* Permitted range of the indices of every mode. */
struct bounds {
    unsigned order;
    uint64_t low[SLC_MAX_ORDER];
    uint64_t high[SLC_MAX_ORDER];
};

static bool out_of_bounds(const void *context, const uint64_t *row, unsigned *mode)
{
    const struct bounds *bounds = context;

    for (unsigned m = 0; m < bounds->order; m++) {
        if (row[m] < bounds->low[m] || row[m] > bounds->high[m]) {
            *mode = m;
            return true;
        }
    }
    return false;
}

static bool batch_in_bounds(const struct slc_text_rows *rows, const struct bounds *bounds)
{
    for (unsigned m = 0; m < bounds->order; m++) {
        if (rows->smallest[m] < bounds->low[m] || rows->largest[m] > bounds->high[m]) {
            return false;
        }
    }
    return true;
}

static enum slc_status
bounds_fault(const struct slc_parse_job *job, const struct slc_mark *place, struct slc_error *err)
{
    unsigned mode = place->mode + 1;
    uint64_t length = job->lengths[place->mode];

    if (job->index_base == 1 && place->index == 0) {
        (void)slc_fail(err, SLC_ERR_INPUT, "index 0 of mode %u, but indices start at 1 (%s)", mode,
                       job->base_reason);
    } else if (!job->dims_declared && length < SLC_MAX_MODE_LENGTH) {
        (void)slc_fail_field(err, SLC_ERR_INPUT, SLC_FIELD_FIXED_MODES,
                             "index %" PRIu64 " of mode %u is beyond the mode size %" PRIu64
                             " in the store, and the mode must not grow",
                             place->index, mode, length);
    } else if (!job->dims_declared) {
        (void)slc_fail(err, SLC_ERR_INPUT,
                       "index %" PRIu64 " of mode %u is too large: at most %" PRIu64
                       " indices are supported",
                       place->index, mode, SLC_MAX_MODE_LENGTH);
    } else if (job->index_base >= 0) {
        (void)slc_fail(err, SLC_ERR_INPUT,
                       "index %" PRIu64 " of mode %u is beyond the declared mode size %" PRIu64
                       " (indices start at %d, %s)",
                       place->index, mode, length, job->index_base, job->base_reason);
    } else {
        (void)slc_fail(err, SLC_ERR_INPUT,
                       "index %" PRIu64 " of mode %u is beyond the declared mode size %" PRIu64,
                       place->index, mode, length);
    }
    slc_row_source_locate_fault(job->source, place->line, place->column, err);
    return SLC_ERR_INPUT;
}

/* Stores the first place in the input whose row violates a condition. Parses a batch again only if
 * the batch may contain this place. */
static void mark_first(struct slc_parse_job *job,
                       const struct batch *batch,
                       const struct bounds *bounds,
                       struct slc_mark *mark)
{
    struct slc_mark place = {0};

    if (!batch_in_bounds(&batch->parser->rows, bounds) &&
        precedes_mark(job, mark, batch->piece->sequence)) {
        locate_row(job, batch, out_of_bounds, bounds, &place);
        keep_mark(job, mark, &place);
    }
}

/* Checks every index against the index base and the mode sizes, and stores the places that
 * determine the index base. */
static enum slc_status
check_bounds(struct slc_parse_job *job, const struct batch *batch, struct slc_error *err)
{
    bool known = job->index_base >= 0;
    struct bounds bounds = {.order = job->header->order};
    struct slc_mark place = {0};

    for (unsigned m = 0; m < bounds.order; m++) {
        bounds.low[m] = known ? (uint64_t)job->index_base : 0;
        bounds.high[m] = job->lengths[m] - (known && job->index_base == 0 ? 1 : 0);
    }
    if (!batch_in_bounds(&batch->parser->rows, &bounds)) {
        locate_row(job, batch, out_of_bounds, &bounds, &place);
        return bounds_fault(job, &place, err);
    }
    if (!known) {
        for (unsigned m = 0; m < bounds.order; m++) {
            bounds.low[m] = 1;
        }
        mark_first(job, batch, &bounds, &job->zero);
        for (unsigned m = 0; m < bounds.order; m++) {
            bounds.low[m] = 0;
            bounds.high[m] = job->lengths[m] - 1;
        }
        mark_first(job, batch, &bounds, &job->at_length);
    }
    return SLC_OK;
}

/* Returns true for a row that a symmetric Matrix Market file must not have. The file stores only
 * the lower triangle, and for skew-symmetric matrices not the diagonal. */
static bool above_triangle(const void *context, const uint64_t *row, unsigned *mode)
{
    const int *symmetry = context;

    *mode = 1;
    return row[0] < row[1] || (*symmetry < 0 && row[0] == row[1]);
}

/* Expands a batch of a symmetric matrix: adds the mirrored entries. `entries` then refers to the
 * expanded batch. */
static enum slc_status expand_mirrored(const struct slc_parse_job *job,
                                       const struct batch *batch,
                                       struct slc_entries *entries,
                                       struct slc_error *err)
{
    const struct slc_parser *parser = batch->parser;
    const struct slc_text_rows *rows = &parser->rows;
    int symmetry = job->header->symmetry;
    double sign = symmetry < 0 ? -1.0 : 1.0;
    uint32_t count = 0;

    for (uint32_t i = 0; i < rows->count; i++) {
        uint64_t row = rows->coords[0][i];
        uint64_t column = rows->coords[1][i];

        if (row < column || (symmetry < 0 && row == column)) {
            struct slc_mark place = {0};

            locate_row(job, batch, above_triangle, &symmetry, &place);
            (void)slc_fail(err, SLC_ERR_INPUT,
                           "entry %s the diagonal of a %s matrix: the file must hold only the "
                           "entries below the diagonal%s",
                           row < column ? "above" : "on",
                           symmetry < 0 ? "skew-symmetric" : "symmetric",
                           symmetry < 0 ? "" : " and on it");
            slc_row_source_locate_fault(job->source, place.line, place.column, err);
            return SLC_ERR_INPUT;
        }
        parser->mirror_coords[0][count] = row;
        parser->mirror_coords[1][count] = column;
        parser->mirror_values[count] = rows->values[i];
        count++;
        if (row != column) {
            parser->mirror_coords[0][count] = column;
            parser->mirror_coords[1][count] = row;
            parser->mirror_values[count] = sign * rows->values[i];
            count++;
        }
    }
    entries->count = count;
    entries->coords[0] = parser->mirror_coords[0];
    entries->coords[1] = parser->mirror_coords[1];
    entries->values = parser->mirror_values;
    return SLC_OK;
}

/* Returns the hash of the entries of a batch for slc_parse_content. */
static uint64_t content_of(const struct slc_entries *entries)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < entries->count; i++) {
        uint64_t term = 0;

        for (unsigned m = 0; m < entries->order; m++) {
            term = slc_mix64(term + entries->coords[m][i] + 1);
        }
        sum += slc_mix64(term + slc_bits_f64(entries->values[i]));
    }
    return sum;
}

/* Checks the rows of a batch and passes their entries to the builder. */
static enum slc_status push_batch(struct slc_parse_job *job,
                                  unsigned worker,
                                  const struct batch *batch,
                                  struct slc_error *err)
{
    struct slc_parser *parser = &job->parsers[worker];
    const struct slc_text_rows *rows = &parser->rows;
    struct slc_entries entries = {.order = job->header->order,
                                  .count = rows->count,
                                  .values = rows->values,
                                  .sequence = job->first_sequence + batch->piece->sequence,
                                  .first = parser->piece_entries};
    enum slc_status status = check_bounds(job, batch, err);

    for (unsigned m = 0; m < entries.order; m++) {
        entries.coords[m] = rows->coords[m];
    }
    if (status == SLC_OK && job->header->symmetry != 0) {
        status = expand_mirrored(job, batch, &entries, err);
    }
    parser->piece_entries += entries.count;
    if (status == SLC_OK && job->hashes_content) {
        parser->entry_count += entries.count;
        parser->content += content_of(&entries);
    }
    if (status == SLC_OK && job->builder) {
        uint64_t start_ns = slc_clock_ns();

        status = slc_builder_push(job->builder, worker, &entries, err);
        parser->scatter_seconds += slc_seconds_since(start_ns);
    }
    return status;
}

static void add_to_totals(struct slc_parser *parser, unsigned order)
{
    const struct slc_text_rows *rows = &parser->rows;

    parser->row_count += rows->count;
    for (unsigned m = 0; m < order; m++) {
        if (rows->smallest[m] < parser->smallest[m]) {
            parser->smallest[m] = rows->smallest[m];
        }
        if (rows->largest[m] > parser->largest[m]) {
            parser->largest[m] = rows->largest[m];
        }
    }
}

enum slc_status slc_parse_piece(struct slc_parse_job *job,
                                unsigned worker,
                                const struct slc_piece *piece,
                                struct slc_error *err)
{
    struct slc_parser *parser = &job->parsers[worker];
    size_t position = piece->position;
    enum slc_status status = SLC_OK;

    parser->rows.lines = 0;
    parser->piece_entries = 0;
    while (status == SLC_OK && position < piece->bytes) {
        struct batch batch = {piece, parser, position, parser->rows.lines};
        struct slc_error row_error = SLC_ERROR_INIT;
        uint64_t start_ns = slc_clock_ns();

        slc_text_rows_clear(&parser->rows);
        enum slc_status row_status =
            slc_row_source_parse(job->source, piece, &position, &parser->rows, &row_error);
        parser->parse_seconds += slc_seconds_since(start_ns);
        if (parser->rows.count > 0) {
            add_to_totals(parser, job->header->order);
            status = push_batch(job, worker, &batch, err);
        }
        /* Errors in rows before the row that cannot be parsed are reported first, because they come
         * first in the input. */
        if (status == SLC_OK && row_status != SLC_OK) {
            *err = row_error;
            status = row_status;
        }
    }
    parser->line_count += parser->rows.lines;
    return status;
}
