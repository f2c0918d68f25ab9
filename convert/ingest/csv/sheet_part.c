/* See convert/ingest/csv/sheet_part.h. */
#include "convert/ingest/csv/sheet_part.h"

#include "base/memory/checked.h"

uint64_t slc_sheet_part_bytes(size_t text_bytes)
{
    return slc_buffer_footprint(
        text_bytes + SLC_SHEET_ROWS_BYTES + SLC_SHEET_KEYS * sizeof(struct slc_sheet_key) +
            SLC_SHEET_COLUMNS_MAX * sizeof(struct slc_sheet_field) +
            SLC_MAX_ORDER * SLC_SHEET_BATCH * sizeof(struct slc_dictionary_key) +
            SLC_SHEET_STARTS * sizeof(uint32_t),
        SLC_PAGES_SMALL);
}

enum slc_status slc_sheet_part_create(const struct slc_sheet_table *table,
                                      size_t text_bytes,
                                      struct slc_sheet_part *part,
                                      struct slc_error *err)
{
    const enum slc_status status =
        slc_buffer_create(&part->memory, slc_sheet_part_bytes(text_bytes), SLC_PAGES_SMALL, err);

    if (status == SLC_OK) {
        part->table = table;
        part->keys = part->memory.data;
        part->fields = (struct slc_sheet_field *)(part->keys + SLC_SHEET_KEYS);
        part->strings = (struct slc_dictionary_key *)(part->fields + SLC_SHEET_COLUMNS_MAX);
        part->starts = (uint32_t *)(part->strings + SLC_MAX_ORDER * SLC_SHEET_BATCH);
        part->rows = (uint8_t *)(part->starts + SLC_SHEET_STARTS);
        part->text = (char *)part->rows + SLC_SHEET_ROWS_BYTES;
        slc_sheet_part_clear(part);
    }
    return status;
}

void slc_sheet_part_destroy(struct slc_sheet_part *part)
{
    slc_buffer_destroy(&part->memory);
}

void slc_sheet_part_clear(struct slc_sheet_part *part)
{
    part->key_count = 0;
    part->spare = part->spare_begin;
    part->row_count = 0;
    part->taken = part->skipped = 0;
    part->fault = (struct slc_error)SLC_ERROR_INIT;
    for (unsigned m = 0; m < part->table->spec->order; m++) {
        part->lowest[m] = INT64_MAX;
        part->highest[m] = INT64_MIN;
    }
}

void slc_sheet_lay_out_rows(struct slc_sheet_table *table, uint64_t memory_bytes)
{
    const struct slc_sheet_spec *spec = table->spec;
    const bool few = memory_bytes / SLC_DICTIONARY_STRING_BYTES <= UINT32_MAX;

    table->row_bytes = 0;
    for (unsigned m = 0; m <= spec->order; m++) {
        const struct slc_sheet_item *item = &spec->items[m];

        table->widths[m] = 8;
        if (m < spec->order && item->rule == SLC_SHEET_STRINGS && few) {
            table->widths[m] = 4;
        } else if (m < spec->order && item->rule == SLC_SHEET_TIME &&
                   slc_time_cycle(item->unit) != 0) {
            table->widths[m] = 1;
        }
        table->offsets[m] = (uint32_t)table->row_bytes;
        table->row_bytes += table->widths[m];
    }
}

void slc_sheet_look_up(const struct slc_sheet_table *table,
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
