/* Samples a table. A piece begins after a line end, which may be within quotes. In that case the
 * text after it most likely does not form a record with the right number of fields. Lines are
 * therefore skipped until the text forms such a record. In the sample, the hash of a string
 * replaces its number. */
#include "convert/ingest/csv/csv_sample.h"

#include "base/error/clock.h"
#include "base/hash.h"
#include "base/memory/bytes.h"
#include "base/memory/checked.h"
#include "convert/ingest/csv/csv_index.h"
#include "convert/ingest/csv/csv_internal.h"
#include "convert/ingest/csv/csv_rows.h"
#include "convert/ingest/input/foreign.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    PIECES = 64, /* number of pieces, enough to estimate how often strings recur */
    PIECE_BYTES_MAX = 256 << 10,
    PIECE_BYTES_MIN = 16 << 10,
    ROWS_MAX = 1 << 16, /* maximum number of rows, as many as a tile has */
    NUMBER_SLOTS = 2 * ROWS_MAX
};

struct sampling {
    const struct slc_csv_request *request;
    struct slc_csv_sample *sample;
    struct slc_input_info info;
    struct slc_csv_table table;
    struct slc_csv_part part;
    struct slc_species strings[SLC_MAX_ORDER], cells;
    int64_t lowest[SLC_MAX_ORDER], highest[SLC_MAX_ORDER];
    size_t piece_bytes;
    bool ranges;   /* true if pieces are read at random offsets; false if sequentially */
    bool ended;    /* true if a sequential input has ended */
    uint64_t text; /* bytes of rows and of the text that was skipped between them */
    uint64_t rows, skipped;
    uint64_t ns;
    uint32_t piece_rows;           /* maximum number of rows kept per piece */
    uint32_t piece_begins[PIECES]; /* first kept row of each piece */
    struct slc_error fault;        /* the first fault */
};

void slc_csv_sample_destroy(struct slc_csv_sample *sample)
{
    slc_buffer_destroy(&sample->memory);
}

static bool is_strings(const struct sampling *s, unsigned m)
{
    return s->table.spec->items[m].rule == SLC_CSV_STRINGS;
}

/* Sets the layout of rows. All indices have 8 bytes, because hashes replace the numbers of
 * strings. */
static void lay_out_rows(struct slc_csv_table *table)
{
    for (unsigned m = 0; m <= table->spec->order; m++) {
        table->widths[m] = 8;
        table->offsets[m] = 8 * m;
    }
    table->row_bytes = 8 * ((size_t)table->spec->order + 1);
}

/* Counts the strings of the rows in the part, and writes their hashes to the rows. */
static void count_strings(struct sampling *s)
{
    const struct slc_csv_part *part = &s->part;

    for (unsigned i = 0; i < part->key_count; i++) {
        const struct slc_csv_key *key = &part->keys[i];

        const uint64_t hash = slc_mix64(key->key.hash);

        slc_species_add(&s->strings[key->mode], hash, key->key.bytes);
        slc_store_u64(part->rows + s->table.row_bytes * key->row + s->table.offsets[key->mode],
                      hash);
    }
}

/* Copies rows of the part to the sample until the maximum per piece is reached, and counts all
 * rows. */
static void keep_rows(struct sampling *s, uint32_t rows_end)
{
    const unsigned order = s->table.spec->order;
    struct slc_csv_sample *sample = s->sample;

    for (uint32_t i = 0; i < s->part.row_count; i++) {
        const uint8_t *row = s->part.rows + s->table.row_bytes * i;

        slc_species_add(&s->cells, slc_hash64(row, 8 * (size_t)order), 0);
        if (sample->row_count < rows_end) {
            for (unsigned m = 0; m < order; m++) {
                sample->coords[m][sample->row_count] = slc_load_u64(row + 8 * (size_t)m);
            }
            sample->values[sample->row_count++] = slc_load_f64(row + 8 * (size_t)order);
        }
    }
    for (unsigned m = 0; m < order; m++) {
        s->lowest[m] = s->part.lowest[m] < s->lowest[m] ? s->part.lowest[m] : s->lowest[m];
        s->highest[m] = s->part.highest[m] > s->highest[m] ? s->part.highest[m] : s->highest[m];
    }
    s->rows += s->part.records;
    s->skipped += s->part.skipped;
}

/* Advances past the next line end. */
static void skip_line(struct slc_csv_part *part)
{
    const char *at = part->text + part->position;
    const char *end = memchr(at, '\n', part->bytes - part->position);

    part->position = end != NULL ? (size_t)(end - part->text) + 1 : part->bytes;
}

/* Translates the text in the part and adds its rows to the sample. */
static void translate_piece(struct sampling *s, unsigned piece, bool whole)
{
    const uint64_t start_ns = slc_clock_thread_ns();
    const uint32_t rows_end =
        (uint32_t)slc_min_u64(s->sample->row_count + (uint64_t)s->piece_rows, ROWS_MAX);
    struct slc_csv_part *part = &s->part;
    const size_t begin = part->position;

    s->piece_begins[piece] = s->sample->row_count;
    slc_species_piece(&s->cells, whole);
    for (unsigned m = 0; m < s->table.spec->order; m++) {
        if (is_strings(s, m)) {
            slc_species_piece(&s->strings[m], whole);
        }
    }
    while (part->position < part->bytes) {
        slc_csv_part_clear(part);
        slc_csv_translate(part);
        count_strings(s);
        keep_rows(s, rows_end);
        if (part->fault.status != SLC_OK) {
            if (s->fault.status == SLC_OK) {
                s->fault = part->fault;
                s->fault.line += part->lines;
            }
            skip_line(part);
        }
    }
    s->text += part->bytes - begin;
    s->sample->stretches++;
    s->ns += slc_clock_thread_ns() - start_ns;
}

/* Reads more of a sequential input into the part, after the `kept` bytes that the part already
 * has. */
static enum slc_status
read_on(struct sampling *s, size_t kept, size_t *filled, struct slc_error *err)
{
    const size_t capacity = s->request->buffer_bytes - SLC_CSV_SLACK;
    size_t needed = kept + s->piece_bytes;
    struct slc_csv_part *part = &s->part;

    *filled = kept;
    part->bytes = 0;
    while (part->bytes == 0 && !s->ended && needed <= capacity) {
        size_t got;

        SLC_TRY(
            slc_input_read(s->request->input, part->text + *filled, needed - *filled, &got, err));
        *filled += got;
        s->ended = got == 0;
        part->bytes = slc_csv_cut(part->text, *filled, s->table.delimiter);
        needed =
            slc_min_u64(slc_max_u64(2 * *filled, needed), needed == capacity ? SIZE_MAX : capacity);
    }
    part->bytes = s->ended ? *filled : part->bytes;
    part->position = 0;
    part->lines = 0;
    part->last = true;
    return SLC_OK;
}

/* Finds the columns by the first record of the first piece. */
static enum slc_status read_header(struct sampling *s, struct slc_error *err)
{
    struct slc_csv_part *part = &s->part;
    enum slc_status status = SLC_OK;
    unsigned count;
    size_t end;

    part->position += slc_byte_order_mark_bytes(part->text, part->bytes);
    while (s->table.columns == 0 && status == SLC_OK && slc_csv_next_record(part, &count, &end)) {
        if (count > 0) {
            status = slc_csv_bind_columns(&s->table, part->fields, count, 1 + part->lines, err);
        }
        if (count == 0 || !s->table.spec->no_header) {
            slc_csv_pass_record(part, end);
        }
    }
    if (status == SLC_OK && s->table.columns == 0) {
        status = part->fault.status != SLC_OK
                     ? part->fault.status
                     : slc_fail(err, SLC_ERR_INPUT, "the beginning of the table has no valid rows");
        if (part->fault.status != SLC_OK && err != NULL) {
            *err = part->fault;
            err->line += 1;
        }
        slc_error_locate_file(err, s->table.name);
    }
    return status;
}

/* Reads pieces sequentially, up to the end of the input or of the sample. */
static enum slc_status read_pieces(struct sampling *s, struct slc_error *err)
{
    size_t filled = 0;
    enum slc_status status = SLC_OK;

    for (unsigned piece = 0; piece < PIECES && status == SLC_OK && !s->ended; piece++) {
        const size_t done = s->part.bytes;

        if (piece > 0) {
            memmove(s->part.text, s->part.text + done, filled - done);
        }
        status = read_on(s, filled - done, &filled, err);
        if (status == SLC_OK && piece == 0) {
            status = read_header(s, err);
        }
        if (status == SLC_OK) {
            translate_piece(s, piece, piece == 0);
        }
    }
    s->sample->whole = s->ended;
    return status;
}

/* Reads pieces at positions spread over a file. */
static enum slc_status read_ranges(struct sampling *s, struct slc_error *err)
{
    const uint64_t last = s->info.stored_bytes - s->piece_bytes;
    enum slc_status status = SLC_OK;

    for (unsigned piece = 0; piece < PIECES && status == SLC_OK; piece++) {
        status = slc_input_sample(s->request->input, last / (PIECES - 1) * piece, s->part.text,
                                  s->piece_bytes, &s->part.bytes, err);
        s->part.position = 0;
        s->part.lines = 0;
        s->part.last = true;
        if (status == SLC_OK && piece == 0) {
            status = read_header(s, err);
        }
        if (status == SLC_OK) {
            translate_piece(s, piece, piece == 0);
        }
    }
    return status;
}

/* Replaces the hashes in the coordinates of a mode with numbers. The numbers are in order of first
 * appearance in the kept rows and are spread over the expected mode size. */
static enum slc_status number_strings(struct sampling *s, unsigned m, struct slc_error *err)
{
    struct number {
        uint64_t hash, number;
    } *table = slc_calloc(NUMBER_SLOTS, sizeof *table);
    struct slc_csv_sample *sample = s->sample;
    uint64_t count = 0, base = 0, piece_count = 0;
    double each = 1;

    SLC_TRY(slc_check_memory(table != NULL, err, "to number the strings of a sample"));
    /* The first round counts the strings. Their number determines the distance between the numbers
     * of different pieces in the second round. */
    for (unsigned turn = 0; turn < 2; turn++) {
        unsigned piece = 0;

        memset(table, 0, NUMBER_SLOTS * sizeof *table);
        each = turn == 0 || count == 0 ? 1 : (double)sample->modes[m].length / (double)count;
        count = base = piece_count = 0;
        for (uint32_t i = 0; i < sample->row_count; i++) {
            const uint64_t hash = sample->coords[m][i];
            uint64_t at = hash & (NUMBER_SLOTS - 1);

            for (; piece + 1 < sample->stretches && s->piece_begins[piece + 1] <= i; piece++) {
                base = (uint64_t)(each * (double)count);
                piece_count = count;
            }
            while (table[at].hash != 0 && table[at].hash != (hash | 1)) {
                at = (at + 1) & (NUMBER_SLOTS - 1);
            }
            if (table[at].hash == 0) {
                table[at] = (struct number){hash | 1, base + (count++ - piece_count)};
            }
            if (turn == 1) {
                sample->coords[m][i] = slc_min_u64(table[at].number, sample->modes[m].length - 1);
            }
        }
    }
    slc_free(table);
    return SLC_OK;
}

/* Returns the maximum length of the names of bins. For BIN and LOG, examines ten bins at each end
 * of the range, because the last digit of their bounds varies. */
static double bin_name_bytes(const struct slc_csv_item *item, int64_t lowest, int64_t highest)
{
    char name[SLC_CSV_BIN_BYTES];
    size_t low, high;

    switch (item->rule) {
    case SLC_CSV_INTEGER:
        return (double)snprintf(name, sizeof name, "%" PRId64, highest);
    case SLC_CSV_TIME:
        low = slc_time_name(item->unit, lowest, name);
        high = slc_time_name(item->unit, highest, name);
        break;
    default:
        low = high = 0;
        for (int64_t i = 0; i < 10; i++) {
            low = slc_max_u64(low, slc_csv_bin_name(item, lowest + i, name));
            high = slc_max_u64(high, slc_csv_bin_name(item, highest - i, name));
        }
    }
    return (double)slc_max_u64(low, high);
}

/* Estimates the size of a mode of bins: the range of bins in the sample. */
static enum slc_status estimate_bins(struct sampling *s, unsigned m, struct slc_error *err)
{
    const struct slc_csv_item *item = &s->table.spec->items[m];
    struct slc_csv_mode *mode = &s->sample->modes[m];
    const unsigned cycle = item->rule == SLC_CSV_TIME ? slc_time_cycle(item->unit) : 0;
    const bool consecutive = slc_csv_is_consecutive(item);
    const int64_t lowest = consecutive ? s->lowest[m] : 0;
    const int64_t highest = cycle > 0 ? (int64_t)cycle - 1 : s->highest[m];

    mode->length = (uint64_t)highest - (uint64_t)lowest + 1;
    SLC_TRY(slc_csv_check_bins(item, mode->length, s->table.name, err));
    mode->named = slc_csv_is_named(item, mode->length);
    mode->least = mode->length;
    mode->most = mode->length;
    mode->name_bytes = (double)mode->length * bin_name_bytes(item, lowest, highest);
    mode->name_bytes_most = mode->name_bytes;
    for (uint32_t i = 0; i < s->sample->row_count; i++) {
        s->sample->coords[m][i] -= (uint64_t)lowest;
    }
    return SLC_OK;
}

/* Estimates the size of a mode of strings, which is at most the number of rows. */
static void estimate_strings(struct sampling *s, unsigned m, double times, double rows)
{
    struct slc_csv_mode *mode = &s->sample->modes[m];
    struct slc_species_estimate found;

    slc_species_extrapolate(&s->strings[m], times, &found);
    double most = found.most < rows ? found.most : rows;
    mode->length = (uint64_t)(found.count < most ? found.count : most);
    mode->least = (uint64_t)(found.least < most ? found.least : most);
    mode->most = (uint64_t)most;
    mode->length = slc_max_u64(mode->length, 1);
    mode->named = true;
    mode->name_bytes = found.seen * found.bytes_each;
    mode->name_bytes_most = mode->name_bytes;
    mode->name_bytes += ((double)mode->length - found.seen) * found.new_bytes_each;
    mode->name_bytes_most += (most - found.seen) * found.new_bytes_each;
}

static enum slc_status estimate_columns(struct sampling *s, struct slc_error *err)
{
    struct slc_csv_sample *sample = s->sample;
    double times = 1;
    enum slc_status status = SLC_OK;

    if (s->rows == s->skipped) {
        if (s->fault.status != SLC_OK && err != NULL) {
            *err = s->fault;
            slc_error_locate_file(err, s->table.name);
            return s->fault.status;
        }
        return slc_fail(err, SLC_ERR_INPUT, "the table has no rows%s",
                        s->rows > 0 ? " without empty fields" : "");
    }
    sample->seconds_each = 1e-9 * (double)s->ns / (double)slc_max_u64(s->text, 1);
    sample->text_bytes =
        sample->whole ? slc_max_u64(s->text, 1) : slc_input_text_bytes(s->request->input);
    if (!sample->whole && sample->text_bytes > 0) {
        times = (double)sample->text_bytes / (double)slc_max_u64(s->text, 1);
        times = times < 1 ? 1 : times;
    }
    if (sample->text_bytes > 0) {
        sample->rows = (uint64_t)(times * (double)s->rows + 0.5);
        sample->skipped = (uint64_t)(times * (double)s->skipped + 0.5);
    }
    slc_species_extrapolate(&s->cells, times, &sample->cells);
    for (unsigned m = 0; m < s->table.spec->order && status == SLC_OK; m++) {
        if (is_strings(s, m)) {
            estimate_strings(s, m, times, times * (double)(s->rows - s->skipped));
            status = number_strings(s, m, err);
        } else {
            status = estimate_bins(s, m, err);
        }
    }
    return status;
}

/* Allocates the counters and the kept rows. */
static enum slc_status prepare_sample(struct sampling *s, struct slc_error *err)
{
    const unsigned order = s->table.spec->order;
    struct slc_csv_sample *sample = s->sample;
    uint64_t *next;
    enum slc_status status = slc_buffer_create(
        &sample->memory, (order + UINT64_C(1)) * ROWS_MAX * sizeof *next, SLC_PAGES_SMALL, err);

    next = sample->memory.data;
    for (unsigned m = 0; m < order && status == SLC_OK; m++, next += ROWS_MAX) {
        sample->coords[m] = next;
        s->lowest[m] = INT64_MAX;
        s->highest[m] = INT64_MIN;
        s->table.floor[m] = INT64_MIN;
        if (is_strings(s, m)) {
            status = slc_species_create(&s->strings[m], err);
        }
    }
    sample->values = (double *)next;
    SLC_THEN(status, slc_species_create(&s->cells, err));
    if (status == SLC_OK) {
        status = slc_csv_part_create(&s->table, 0, &s->part, err);
        s->part.text = s->request->buffer;
    }
    return status;
}

enum slc_status slc_csv_sample(const struct slc_csv_request *request,
                               uint64_t bytes,
                               struct slc_csv_sample *sample,
                               struct slc_error *err)
{
    struct sampling *s = slc_calloc(1, sizeof *s);

    *sample = (struct slc_csv_sample){.whole = false};
    SLC_TRY(slc_check_memory(s != NULL, err, "for a sample of a table"));
    s->request = request;
    s->sample = sample;
    slc_input_info(request->input, &s->info);
    slc_csv_table_init(&s->table, request->spec, s->info.name);
    lay_out_rows(&s->table);
    s->piece_bytes =
        (size_t)slc_max_u64(slc_min_u64(bytes / PIECES, PIECE_BYTES_MAX), PIECE_BYTES_MIN);
    s->ranges = s->info.seekable && s->info.stored_bytes > s->piece_bytes * (uint64_t)(PIECES - 1);
    s->piece_rows = s->ranges ? ROWS_MAX / PIECES : ROWS_MAX;
    enum slc_status status = prepare_sample(s, err);
    SLC_THEN(status, s->ranges ? read_ranges(s, err) : read_pieces(s, err));
    SLC_THEN(status, estimate_columns(s, err));
    for (unsigned m = 0; m < SLC_MAX_ORDER; m++) {
        slc_species_destroy(&s->strings[m]);
    }
    slc_species_destroy(&s->cells);
    slc_csv_part_destroy(&s->part);
    slc_free(s);
    return status;
}
