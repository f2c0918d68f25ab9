#include "convert/ingest/csv/csv_part.h"

uint64_t slc_csv_part_bytes(size_t text_bytes)
{
    return slc_buffer_footprint(
        text_bytes + SLC_CSV_ROWS_BYTES + SLC_CSV_KEYS * sizeof(struct slc_csv_key) +
            SLC_CSV_COLUMNS_MAX * sizeof(struct slc_csv_field) +
            SLC_MAX_ORDER * SLC_CSV_BATCH * sizeof(struct slc_dictionary_key) +
            SLC_CSV_STARTS * sizeof(uint32_t),
        SLC_PAGES_SMALL);
}

enum slc_status slc_csv_part_create(const struct slc_csv_table *table,
                                    size_t text_bytes,
                                    struct slc_csv_part *part,
                                    struct slc_error *err)
{
    SLC_TRY(slc_buffer_create(&part->memory, slc_csv_part_bytes(text_bytes), SLC_PAGES_SMALL, err));
    part->table = table;
    part->keys = part->memory.data;
    part->fields = (struct slc_csv_field *)(part->keys + SLC_CSV_KEYS);
    part->strings = (struct slc_dictionary_key *)(part->fields + SLC_CSV_COLUMNS_MAX);
    part->starts = (uint32_t *)(part->strings + SLC_MAX_ORDER * SLC_CSV_BATCH);
    part->rows = (uint8_t *)(part->starts + SLC_CSV_STARTS);
    part->text = (char *)part->rows + SLC_CSV_ROWS_BYTES;
    slc_csv_part_clear(part);
    return SLC_OK;
}

void slc_csv_part_destroy(struct slc_csv_part *part)
{
    slc_buffer_destroy(&part->memory);
}

void slc_csv_part_clear(struct slc_csv_part *part)
{
    part->key_count = 0;
    part->spare = part->spare_begin;
    part->row_count = 0;
    part->records = part->skipped = 0;
    part->fault = (struct slc_error)SLC_ERROR_INIT;
    for (unsigned m = 0; m < part->table->spec->order; m++) {
        part->lowest[m] = INT64_MAX;
        part->highest[m] = INT64_MIN;
        part->days[m] = (struct slc_time_range)SLC_TIME_RANGE_EMPTY;
    }
}

void slc_csv_lay_out_rows(struct slc_csv_table *table, uint64_t memory_bytes)
{
    const struct slc_csv_spec *spec = table->spec;
    const bool few = memory_bytes / SLC_DICTIONARY_STRING_BYTES <= UINT32_MAX;

    table->row_bytes = 0;
    for (unsigned m = 0; m <= spec->order; m++) {
        const struct slc_csv_item *item = &spec->items[m];

        table->widths[m] = 8;
        if (m < spec->order && item->rule == SLC_CSV_STRINGS && few) {
            table->widths[m] = 4;
        } else if (m < spec->order && item->rule == SLC_CSV_TIME &&
                   slc_time_cycle(item->unit) != 0) {
            table->widths[m] = 1;
        }
        table->offsets[m] = (uint32_t)table->row_bytes;
        table->row_bytes += table->widths[m];
    }
}

void slc_csv_look_up(const struct slc_csv_table *table,
                     unsigned m,
                     const char *text,
                     const struct slc_dictionary_key *keys,
                     unsigned count,
                     uint64_t *numbers)
{
    if (table->dictionaries != NULL) {
        slc_dictionary_look_up(table->dictionaries[m], text, keys, count, numbers);
        return;
    }
    for (unsigned i = 0; i < count; i++) {
        numbers[i] = UINT64_MAX;
    }
}
