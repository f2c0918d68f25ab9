/* See sheet_batch.h. */
#include "convert/sheet_batch.h"

#include "base/bytes.h"
#include "base/hash.h"
#include "convert/sheet_field.h"

#include <limits.h>

/* Records, of which those that lack nothing become rows. */
struct batch {
    struct slc_sheet_part *part;
    const struct slc_sheet_table *table;
    unsigned found; /* records */
    unsigned count; /* of them with a row so far; what comes behind is at fault */
    uint16_t records[SLC_SHEET_BATCH]; /* of the rows */
};

struct span {
    const char *text;
    size_t bytes;
};

/* A field's text without quotes. */
static inline struct span
field_of(const struct batch *batch, unsigned record, unsigned column, bool ends)
{
    const uint32_t *starts = batch->part->starts + record * batch->table->columns + column;
    const char *begin = batch->part->text + starts[0];
    const char *end = batch->part->text + starts[1] - 1;

    end -= ends && end > begin && end[-1] == '\r';
    if (end > begin && *begin == '"') {
        begin++;
        end--;
    }
    return (struct span){begin, (size_t)(end - begin)};
}

static inline bool is_last(const struct batch *batch, unsigned column)
{
    return column + 1 == batch->table->columns;
}

static uint8_t *cell(const struct batch *batch, unsigned row, unsigned m)
{
    return batch->part->rows + batch->table->row_bytes * (batch->part->row_count + row) +
           8 * (size_t)m;
}

/* Chooses the records that become rows: all up to one that lacks something and must not, or those
 * that lack nothing. */
static void choose_records(struct batch *batch)
{
    const struct slc_sheet_table *table = batch->table;
    const enum slc_sheet_missing missing = table->spec->missing;
    uint8_t lacking[SLC_SHEET_BATCH] = {0};
    unsigned count = 0;

    for (unsigned m = 0; m <= table->spec->order && missing != SLC_SHEET_MISSING_NAME; m++) {
        const unsigned column = table->at[m];
        const bool ends = is_last(batch, column);

        for (unsigned r = 0; column != UINT_MAX && r < batch->found; r++) {
            lacking[r] |= field_of(batch, r, column, ends).bytes == 0;
        }
    }
    for (unsigned r = 0; r < batch->found; r++) {
        if (lacking[r] && missing == SLC_SHEET_MISSING_ERROR) {
            batch->found = r;
            break;
        }
        batch->records[count] = (uint16_t)r;
        count += !lacking[r];
    }
    batch->count = count;
}

/* Whether an earlier mode is of the same column by the same rule. */
static bool is_repeated(const struct slc_sheet_table *table, unsigned m)
{
    for (unsigned i = 0; i < m; i++) {
        if (table->at[i] == table->at[m] &&
            table->spec->items[i].rule == table->spec->items[m].rule) {
            return true;
        }
    }
    return false;
}

/* Puts bins of a mode in their rows. */
static void put_bins(struct batch *batch, unsigned m, const int64_t *bins, unsigned count)
{
    struct slc_sheet_part *part = batch->part;
    const int64_t floor = batch->table->floor[m];
    int64_t lowest = part->lowest[m], highest = part->highest[m];

    for (unsigned i = 0; i < count; i++) {
        if (bins[i] < floor) {
            count = i;
            break;
        }
        lowest = bins[i] < lowest ? bins[i] : lowest;
        highest = bins[i] > highest ? bins[i] : highest;
        slc_store_u64(cell(batch, i, m), (uint64_t)bins[i]);
    }
    part->lowest[m] = lowest;
    part->highest[m] = highest;
    batch->count = count;
}

/* All modes that are of the times of one column, the first of which is m. */
static void take_times(struct batch *batch, unsigned m)
{
    const struct slc_sheet_table *table = batch->table;
    const unsigned column = table->at[m];
    const bool ends = is_last(batch, column);
    struct slc_time times[SLC_SHEET_BATCH];
    int64_t bins[SLC_SHEET_BATCH];

    for (unsigned i = 0; i < batch->count; i++) {
        const struct span field = field_of(batch, batch->records[i], column, ends);

        if (!slc_sheet_time(field.text, field.bytes, &times[i])) {
            batch->count = i;
        }
    }
    for (; m < table->spec->order; m++) {
        const struct slc_sheet_item *item = &table->spec->items[m];

        if (table->at[m] != column || item->rule != SLC_SHEET_TIME) {
            continue;
        }
        for (unsigned i = 0; i < batch->count; i++) {
            bins[i] = slc_time_bin(item->unit, &times[i]);
        }
        put_bins(batch, m, bins, batch->count);
    }
}

static void take_integers(struct batch *batch, unsigned m)
{
    const unsigned column = batch->table->at[m];
    const bool ends = is_last(batch, column);
    int64_t bins[SLC_SHEET_BATCH];
    unsigned count = 0;

    for (; count < batch->count; count++) {
        const struct span field = field_of(batch, batch->records[count], column, ends);
        uint64_t index;

        if (!slc_sheet_integer(field.text, field.bytes, &index)) {
            break;
        }
        bins[count] = (int64_t)index;
    }
    put_bins(batch, m, bins, count);
}

static void take_numbers(struct batch *batch, unsigned m)
{
    const struct slc_sheet_item *item = &batch->table->spec->items[m];
    const unsigned column = batch->table->at[m];
    const bool ends = is_last(batch, column);
    int64_t bins[SLC_SHEET_BATCH];
    unsigned count = 0;

    for (; count < batch->count; count++) {
        const struct span field = field_of(batch, batch->records[count], column, ends);
        double value;

        if (!slc_sheet_value(field.text, field.bytes, &value) ||
            !slc_sheet_bin(item, value, &bins[count])) {
            break;
        }
    }
    put_bins(batch, m, bins, count);
}

static void take_values(struct batch *batch)
{
    const unsigned order = batch->table->spec->order, column = batch->table->at[order];
    const bool ends = is_last(batch, column);

    for (unsigned i = 0; i < batch->count; i++) {
        double value = 1;

        if (column != UINT_MAX) {
            const struct span field = field_of(batch, batch->records[i], column, ends);

            if (!slc_sheet_value(field.text, field.bytes, &value)) {
                batch->count = i;
                break;
            }
        }
        slc_store_u64(cell(batch, i, order), slc_bits_f64(value));
    }
}

/* Notes a string that has no number yet. */
static void note_unknown(struct batch *batch, unsigned m, unsigned row)
{
    struct slc_sheet_part *part = batch->part;
    const unsigned record = batch->records[row], columns = batch->table->columns;
    const uint32_t *starts = part->starts + record * columns;

    part->keys[part->key_count++] =
        (struct slc_sheet_key){.key = part->strings[m * SLC_SHEET_BATCH + row],
                               .row = part->row_count + row,
                               .line = (uint32_t)part->lines + record,
                               .column = starts[batch->table->at[m]] - starts[0] + 1,
                               .mode = m};
}

/* Looks all strings up, and notes in the order of the rows those that are not there. */
static void take_strings(struct batch *batch)
{
    const struct slc_sheet_table *table = batch->table;
    uint64_t numbers[SLC_SHEET_BATCH], unknown[SLC_SHEET_BATCH / 64] = {0};

    for (unsigned m = 0; m < table->spec->order; m++) {
        struct slc_dictionary_key *keys = batch->part->strings + m * SLC_SHEET_BATCH;
        const bool ends = is_last(batch, table->at[m]);

        if (table->spec->items[m].rule != SLC_SHEET_STRINGS) {
            continue;
        }
        for (unsigned i = 0; i < batch->count; i++) {
            const struct span field = field_of(batch, batch->records[i], table->at[m], ends);

            keys[i].hash = slc_hash64(field.text, field.bytes);
            keys[i].at = (uint32_t)(field.text - batch->part->text);
            keys[i].bytes = (uint32_t)field.bytes;
        }
        slc_dictionary_look_up(table->dictionaries[m], batch->part->text, keys, batch->count,
                               numbers);
        for (unsigned i = 0; i < batch->count; i++) {
            slc_store_u64(cell(batch, i, m), numbers[i]);
            unknown[i / 64] |= (uint64_t)(numbers[i] == UINT64_MAX) << i % 64;
        }
    }
    for (unsigned i = 0; i < batch->count; i++) {
        for (unsigned m = 0; m < table->spec->order && (unknown[i / 64] >> i % 64 & 1) != 0; m++) {
            if (table->spec->items[m].rule == SLC_SHEET_STRINGS &&
                slc_load_u64(cell(batch, i, m)) == UINT64_MAX) {
                note_unknown(batch, m, i);
            }
        }
    }
}

bool slc_sheet_take_batch(struct slc_sheet_part *part, unsigned most)
{
    const struct slc_sheet_table *table = part->table;
    struct batch batch = {.part = part, .table = table};
    unsigned kept, done;
    bool more;

    most = most < SLC_SHEET_BATCH ? most : SLC_SHEET_BATCH;
    batch.found = table->index(part->text, part->position, part->bytes, table->delimiter,
                               table->columns, most, part->starts);
    /* Where places ran out the next record is none by itself. */
    more = batch.found == most ||
           (batch.found > 0 && (batch.found + 1) * table->columns > SLC_SHEET_STARTS / 2);
    done = batch.found;
    choose_records(&batch);
    more = more && batch.found == done;
    kept = batch.count;
    for (unsigned m = 0; m < table->spec->order; m++) {
        switch (table->spec->items[m].rule) {
        case SLC_SHEET_STRINGS:
            break;
        case SLC_SHEET_TIME:
            if (!is_repeated(table, m)) {
                take_times(&batch, m);
            }
            break;
        case SLC_SHEET_INTEGER:
            take_integers(&batch, m);
            break;
        default:
            take_numbers(&batch, m);
        }
    }
    take_values(&batch);
    take_strings(&batch);
    done = batch.count < kept ? batch.records[batch.count] : batch.found;
    part->position = part->starts[done * table->columns];
    part->lines += done;
    part->row_count += batch.count;
    part->taken += done;
    part->skipped += done - batch.count;
    return more && batch.count == kept;
}
