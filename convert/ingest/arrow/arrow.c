#include "convert/ingest/arrow/arrow.h"

#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "convert/ingest/arrow/arrow_cell.h"
#include "convert/ingest/csv/csv_internal.h"

#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum {
    USES_MAX = SLC_MAX_ORDER + 1, /* the modes and the value */
    /* Rows of a piece: about 1 ms of work, whose fields fit in the second-level cache. */
    PIECE_ROWS = 8192
};

struct slc_arrow {
    struct ArrowArrayStream *stream;
    const char *name;
    struct ArrowSchema schema;
    struct slc_csv_feed feed;
    /* The fields of a row. A field is a "use": a column together with the form in which its
     * elements are written (arrow_cell.h). A column that is needed in two forms has two uses. */
    unsigned use_count;
    struct slc_arrow_column columns[USES_MAX];
    enum slc_arrow_form forms[USES_MAX];
    struct slc_arrow_batch *batch; /* its rows from `row` on are not assigned yet; NULL at first */
    int64_t row;
    uint64_t rows;        /* rows in earlier batches, for messages */
    pthread_mutex_t lock; /* protects the references of batches */
};

/* Records an error of the producer, with its message. */
static enum slc_status producer_fault(struct slc_arrow *arrow, int code, struct slc_error *err)
{
    const char *text =
        arrow->stream->get_last_error != NULL ? arrow->stream->get_last_error(arrow->stream) : NULL;

    return slc_fail_file(err, SLC_ERR_INPUT, arrow->name, "the producer of the stream reports: %s",
                         text != NULL && text[0] != '\0' ? text : strerror(code));
}

/* Checks the parts of the schema that do not depend on the used columns. */
static enum slc_status check_schema(const struct slc_arrow *arrow, struct slc_error *err)
{
    const struct ArrowSchema *schema = &arrow->schema;
    const char *fault = NULL;

    if (schema->release == NULL || schema->format == NULL) {
        fault = "the stream has no schema";
    } else if (strcmp(schema->format, "+s") != 0) {
        fault = "the stream is not a table: it has a single column without a name";
    } else if (schema->n_children < 0 || schema->n_children > SLC_CSV_COLUMNS_MAX ||
               (schema->n_children > 0 && schema->children == NULL)) {
        return slc_fail_file(err, SLC_ERR_INPUT, arrow->name,
                             "the schema has %" PRId64 " columns: expected 0 to %d",
                             schema->n_children, (int)SLC_CSV_COLUMNS_MAX);
    }
    for (int64_t i = 0; fault == NULL && i < schema->n_children; i++) {
        const struct ArrowSchema *child = schema->children[i];

        fault = child == NULL || child->format == NULL ? "the schema lacks a column" : NULL;
    }
    return fault == NULL ? SLC_OK : slc_fail_file(err, SLC_ERR_INPUT, arrow->name, "%s", fault);
}

static const char *column_name(const struct slc_arrow *arrow, int64_t child)
{
    const char *name = arrow->schema.children[child]->name;

    return name != NULL ? name : "";
}

/* Writes a name as an item of a specification, in quotes if necessary. Returns its length. */
static size_t write_item(const char *name, char *to)
{
    const size_t bytes = strlen(name);
    const bool quoted =
        bytes == 0 || strpbrk(name, ",()\"") != NULL || name[0] == ' ' || name[bytes - 1] == ' ';
    char *out = to;

    if (!quoted) {
        memcpy(out, name, bytes);
        return bytes;
    }
    *out++ = '"';
    for (size_t i = 0; i < bytes; i++) {
        *out++ = name[i];
        if (name[i] == '"') {
            *out++ = '"';
        }
    }
    *out++ = '"';
    return (size_t)(out - to);
}

enum slc_status slc_arrow_all_columns(const struct slc_arrow *arrow,
                                      const char *value,
                                      char items[SLC_ARROW_ITEMS_BYTES],
                                      struct slc_error *err)
{
    unsigned count = 0;
    char *to = items;

    for (int64_t i = 0; i < arrow->schema.n_children; i++) {
        const char *name = column_name(arrow, i);

        if (value != NULL && strcmp(name, value) == 0) {
            continue;
        }
        if (count == SLC_MAX_ORDER || strlen(name) >= SLC_CSV_NAME_BYTES) {
            return slc_fail_file(err, SLC_ERR_USAGE, arrow->name,
                                 "the table has %" PRId64
                                 " columns: choose up to %d of them as modes",
                                 arrow->schema.n_children, (int)SLC_MAX_ORDER);
        }
        if (count++ > 0) {
            *to++ = ',';
        }
        to += write_item(name, to);
    }
    *to = '\0';
    return count > 0 ? SLC_OK
                     : slc_fail_file(err, SLC_ERR_USAGE, arrow->name,
                                     "the table has no column that could be a mode");
}

/* Parses the type of a used column. */
static enum slc_status set_column(struct slc_arrow *arrow,
                                  int64_t child,
                                  struct slc_arrow_column *column,
                                  struct slc_error *err)
{
    const struct ArrowSchema *schema = arrow->schema.children[child];
    struct slc_error fault = SLC_ERROR_INIT;

    *column = (struct slc_arrow_column){
        .name = column_name(arrow, child), .child = child, .coded = schema->dictionary != NULL};
    enum slc_status status = slc_arrow_type_check_extension(schema->metadata, &fault);
    SLC_THEN(status, slc_arrow_type_parse(schema->format, &column->type, &fault));
    if (status == SLC_OK && column->coded) {
        column->codes = column->type;
        status =
            column->codes.kind != SLC_ARROW_SIGNED && column->codes.kind != SLC_ARROW_UNSIGNED
                ? slc_fail(&fault, SLC_ERR_INPUT, "the indices of its dictionary are not integers")
            : schema->dictionary->format == NULL || schema->dictionary->dictionary != NULL
                ? slc_fail(&fault, SLC_ERR_INPUT, "its dictionary has no type")
                : slc_arrow_type_parse(schema->dictionary->format, &column->type, &fault);
    }
    if (status == SLC_OK && column->type.has_zone) {
        status = slc_arrow_zone_open(column->type.zone, &column->zone, &fault);
    }
    return status == SLC_OK ? SLC_OK
                            : slc_fail_file(err, status, arrow->name, "column %s: %s", column->name,
                                            fault.message);
}

/* Returns the number of the use of a column in a form; adds the use if it is new. */
static enum slc_status add_use(struct slc_arrow *arrow,
                               int64_t child,
                               bool times,
                               bool value,
                               unsigned *use,
                               struct slc_error *err)
{
    const unsigned next = arrow->use_count;
    struct slc_arrow_column *column = &arrow->columns[next];

    SLC_TRY(set_column(arrow, child, column, err));
    arrow->forms[next] = times || value ? slc_arrow_form_of(column, times) : SLC_ARROW_TEXT;
    for (*use = 0; *use < next; (*use)++) {
        if (arrow->columns[*use].child == child && arrow->forms[*use] == arrow->forms[next]) {
            slc_arrow_zone_close(column->zone);
            column->zone = NULL;
            return SLC_OK;
        }
    }
    arrow->use_count++;
    return SLC_OK;
}

/* Finds the columns of the table. The fields of a row are the uses; each has two positions, where
 * it begins and one byte after its end. */
static enum slc_status bind(void *context, struct slc_csv_table *table, struct slc_error *err)
{
    struct slc_arrow *arrow = context;
    const struct slc_csv_spec *spec = table->spec;
    const unsigned count = (unsigned)arrow->schema.n_children;
    struct slc_csv_field *fields = slc_calloc((size_t)count + 1, sizeof *fields);

    SLC_TRY(slc_check_memory(fields != NULL, err, "for the names of %u columns", count));
    for (unsigned i = 0; i < count; i++) {
        fields[i].text = column_name(arrow, i);
        fields[i].bytes = strlen(fields[i].text);
    }
    enum slc_status status = slc_csv_bind_columns(table, fields, count, 1, err);
    slc_free(fields);
    for (unsigned m = 0; m <= spec->order && status == SLC_OK; m++) {
        const bool times = m < spec->order && spec->items[m].rule == SLC_CSV_TIME;
        const unsigned child = table->at[m];
        unsigned use = 0;

        if (child == UINT_MAX) {
            break;
        }
        status = add_use(arrow, child, times, m == spec->order, &use, err);
        table->numbers[m] = child + 1;
        table->at[m] = 2 * use;
        table->binary |= (uint32_t)(arrow->forms[use] != SLC_ARROW_TEXT) << m;
    }
    table->columns = 2 * arrow->use_count;
    return status;
}

/* Removes a reference to a batch. */
static void release_batch(struct slc_arrow *arrow, struct slc_arrow_batch *batch)
{
    bool last = false;

    if (batch != NULL) {
        pthread_mutex_lock(&arrow->lock);
        last = --batch->refs == 0;
        pthread_mutex_unlock(&arrow->lock);
    }
    if (last) {
        slc_arrow_batch_destroy(batch);
    }
}

static void release(void *context, struct slc_csv_part *part)
{
    release_batch(context, part->held);
    part->held = NULL;
}

/* Gets the next batch with rows. *ended becomes true at the end of the stream. */
static enum slc_status next_batch(struct slc_arrow *arrow, bool *ended, struct slc_error *err)
{
    enum slc_status status = SLC_OK;

    while (status == SLC_OK && !*ended &&
           (arrow->batch == NULL || arrow->row == arrow->batch->rows)) {
        struct ArrowArray array = {.release = NULL};
        const int64_t rows = arrow->batch != NULL ? arrow->batch->rows : 0;

        release_batch(arrow, arrow->batch);
        arrow->batch = NULL;
        arrow->row = 0;
        arrow->rows += (uint64_t)rows;
        const int code = arrow->stream->get_next(arrow->stream, &array);
        if (code != 0) {
            return producer_fault(arrow, code, err);
        }
        if (array.release == NULL) {
            *ended = true;
        } else {
            status = slc_arrow_batch_create(&array, arrow->columns, arrow->use_count,
                                            arrow->schema.n_children, &arrow->batch, err);
            slc_error_locate_text(status == SLC_OK ? NULL : err, arrow->name, arrow->rows + 1, 1);
        }
    }
    return status;
}

static enum slc_status next(void *context, struct slc_csv_part *part, struct slc_error *err)
{
    struct slc_arrow *arrow = context;
    bool ended = false;

    SLC_TRY(next_batch(arrow, &ended, err));
    if (ended) {
        return SLC_OK;
    }
    const int64_t left = arrow->batch->rows - arrow->row;
    part->bytes = (size_t)(left < PIECE_ROWS ? left : PIECE_ROWS);
    part->first = (uint64_t)arrow->row;
    arrow->row += (int64_t)part->bytes;
    pthread_mutex_lock(&arrow->lock);
    arrow->batch->refs++;
    pthread_mutex_unlock(&arrow->lock);
    part->held = arrow->batch;
    return SLC_OK;
}

/* Writes the fields of up to `rows` rows. Returns the number of rows that are complete. If it is 0,
 * *use is the use whose field of the first row is not written, because of *fault or for lack of
 * space. */
static unsigned write_rows(const struct slc_arrow *arrow,
                           struct slc_csv_part *part,
                           unsigned rows,
                           unsigned *use,
                           struct slc_error *fault)
{
    const struct slc_arrow_batch *batch = part->held;
    const int64_t first = (int64_t)(part->first + part->position);

    for (*use = 0; *use < arrow->use_count; (*use)++) {
        struct slc_arrow_cells cells = {.column = &arrow->columns[*use],
                                        .vector = &batch->vectors[*use],
                                        .dictionary = &batch->dictionaries[*use],
                                        .form = arrow->forms[*use]};

        /* Forget the fault of a row after the first: only the rows before it are complete. The next
         * call begins with that row and finds the fault again. */
        *fault = (struct slc_error)SLC_ERROR_INIT;
        rows =
            slc_arrow_write(&cells, batch, first, rows, part->text, &part->spare, part->spare_end,
                            part->starts + 2 * (size_t)*use, 2 * arrow->use_count, fault);
        if (rows == 0) {
            return 0;
        }
    }
    return rows;
}

static unsigned render(void *context, struct slc_csv_part *part, unsigned most)
{
    const struct slc_arrow *arrow = context;
    const size_t before = part->spare;
    struct slc_error fault = SLC_ERROR_INIT;
    unsigned use, written;
    unsigned rows = (unsigned)slc_min_u64(
        slc_min_u64(most, part->bytes - part->position),
        arrow->use_count > 0 ? SLC_CSV_STARTS / (2 * arrow->use_count) - 1 : SLC_CSV_BATCH);

    if (rows == 0) {
        return 0;
    }
    /* Columns are written one after another, and the first ones may have used all space: with fewer
     * rows, all columns fit. */
    while ((written = write_rows(arrow, part, rows, &use, &fault)) == 0) {
        part->spare = before;
        if (fault.status != SLC_OK || rows == 1) {
            break;
        }
        rows /= 2;
    }
    if (written == 0 && fault.status == SLC_OK && before == 0) {
        (void)slc_fail(&fault, SLC_ERR_INPUT, "the row has more than %zu bytes", part->spare_end);
    }
    if (written == 0 && fault.status != SLC_OK) {
        (void)slc_fail(&part->fault, fault.status, "column %s: %s", arrow->columns[use].name,
                       fault.message);
        slc_error_locate_text(&part->fault, arrow->name, part->lines,
                              (uint64_t)arrow->columns[use].child + 1);
    }
    return written;
}

enum slc_status slc_arrow_open(struct ArrowArrayStream *stream,
                               const char *name,
                               struct slc_arrow **arrow,
                               struct slc_error *err)
{
    struct slc_arrow *made = slc_calloc(1, sizeof *made);

    *arrow = made;
    SLC_TRY(slc_check_memory(made != NULL, err, "to read an Arrow stream"));
    made->stream = stream;
    made->name = name;
    made->feed = (struct slc_csv_feed){
        .context = made, .bind = bind, .next = next, .render = render, .release = release};
    pthread_mutex_init(&made->lock, NULL);
    if (stream->release == NULL || stream->get_schema == NULL || stream->get_next == NULL) {
        return slc_fail_file(err, SLC_ERR_USAGE, name,
                             "the stream was released before: a stream can be read once");
    }
    const int code = stream->get_schema(stream, &made->schema);
    if (code != 0) {
        made->schema.release = NULL;
        return producer_fault(made, code, err);
    }
    return check_schema(made, err);
}

void slc_arrow_close(struct slc_arrow *arrow)
{
    if (arrow == NULL) {
        return;
    }
    release_batch(arrow, arrow->batch);
    for (unsigned use = 0; use < arrow->use_count; use++) {
        slc_arrow_zone_close(arrow->columns[use].zone);
    }
    if (arrow->schema.release != NULL) {
        arrow->schema.release(&arrow->schema);
    }
    pthread_mutex_destroy(&arrow->lock);
    slc_free(arrow);
}

const char *slc_arrow_name(const struct slc_arrow *arrow)
{
    return arrow->name;
}

const struct slc_csv_feed *slc_arrow_feed(struct slc_arrow *arrow)
{
    return &arrow->feed;
}
