/* Estimates the cost of reading a table. Dictionaries grow while the table is read and are freed
 * afterwards. When the hash table of a dictionary doubles, the old and the new table exist at the
 * same time for a moment. Memory is therefore largest either at the end or when a dictionary grows
 * for the last time. */
#include "convert/ingest/csv/csv_sample.h"

#include "base/memory/checked.h"
#include "convert/ingest/csv/csv_internal.h"
#include "convert/ingest/input/row_source.h"
#include "storage/manifest/names.h"

/* Expected fraction of the memory of a worker that is touched (text and rows of a piece, new
 * strings). */
#define WORKER_FILLED 0.35
/* Seconds of one thread to look up a known string (one cache miss) and to add a new string (two
 * cache misses). */
#define LOOK_UP_SECONDS 30e-9
#define ADD_SECONDS     250e-9
/* Memory of the program and heap that is touched while the table is read, without the pieces of
 * rows. */
static const uint64_t touched_bytes = UINT64_C(1) << 20;
/* Bytes of the file of rows that are read for the sample of the builder (convert_sample.c). */
static const uint64_t row_sample_bytes = UINT64_C(2) << 20;

/* A column of strings, after its dictionary has all of them. */
struct column {
    double count, text; /* number of strings, and bytes of their records in the file */
    uint64_t table;
};

struct columns {
    unsigned count;
    struct column list[SLC_MAX_ORDER];
    /* maximum number of bytes of strings that each dictionary keeps in memory */
    uint64_t text_bytes;
};

/* Returns the columns of strings, with the expected or the maximum number of strings. */
static struct columns collect_columns(const struct slc_csv_request *request,
                                      const struct slc_csv_sample *sample,
                                      bool most,
                                      uint64_t text_bytes)
{
    struct columns columns = {.text_bytes = text_bytes};

    for (unsigned m = 0; m < request->spec->order; m++) {
        const struct slc_csv_mode *mode = &sample->modes[m];

        if (request->spec->items[m].rule == SLC_CSV_STRINGS) {
            struct column *column = &columns.list[columns.count++];

            column->count = (double)(most ? mode->most : mode->length);
            column->text = slc_dictionary_text_bytes(column->count, most ? mode->name_bytes_most
                                                                         : mode->name_bytes);
            column->table = slc_dictionary_table_bytes((uint64_t)column->count);
        }
    }
    return columns;
}

/* Computes the memory of the hash tables, and the memory of hash tables and strings, when a
 * fraction `share` of the strings has been added. */
static void held_bytes(const struct columns *columns, double share, uint64_t *tables, uint64_t *all)
{
    *tables = *all = 0;
    for (unsigned k = 0; k < columns->count; k++) {
        const struct column *column = &columns->list[k];
        const double text = share * column->text;

        *tables += slc_dictionary_table_bytes((uint64_t)(share * column->count));
        *all += text < (double)columns->text_bytes ? (uint64_t)text : columns->text_bytes;
    }
    *all += *tables;
}

/* Computes the maximum of each result of held_bytes while the table is read. */
static void peak(const struct columns *columns, uint64_t *tables, uint64_t *all)
{
    held_bytes(columns, 1, tables, all);
    for (unsigned k = 0; k < columns->count; k++) {
        const struct column *column = &columns->list[k];
        const double grows_at = (double)slc_dictionary_grows_at(column->table);
        uint64_t now_tables, now;

        if (grows_at > 0) {
            /* One string less than grows_at, because with grows_at strings the table has already
             * grown. */
            held_bytes(columns, (grows_at - 1) / column->count, &now_tables, &now);
            now_tables += column->table;
            *tables = slc_max_u64(*tables, now_tables);
            *all = slc_max_u64(*all, now + column->table);
        }
    }
}

/* Estimates the sizes of the files of names, and the memory that the dictionaries need after the
 * table has been read. */
static void estimate_names(const struct slc_csv_request *request,
                           const struct slc_csv_sample *sample,
                           struct slc_csv_forecast *forecast)
{
    const double each = 4 + (double)SLC_NAMES_ENTRY_BYTES / SLC_NAMES_PIECE;
    double names = 0, most = 0;
    uint64_t longest = 0;

    for (unsigned m = 0; m < request->spec->order; m++) {
        const struct slc_csv_mode *mode = &sample->modes[m];

        if (mode->named) {
            longest = slc_max_u64(longest, mode->most);
            names += SLC_NAMES_HEAD_BYTES + SLC_NAMES_TAIL_BYTES + each * (double)mode->length +
                     mode->name_bytes;
            most += SLC_NAMES_HEAD_BYTES + SLC_NAMES_TAIL_BYTES + each * (double)mode->most +
                    mode->name_bytes_most;
        }
        if (request->spec->items[m].sorted) {
            forecast->labels_bytes += slc_dictionary_labels_bytes(mode->length);
        }
    }
    forecast->names_bytes = (uint64_t)names;
    forecast->names_most_bytes = (uint64_t)most;
    forecast->memory_later =
        request->spec->order * (uint64_t)SLC_DICTIONARY_FIXED_BYTES + forecast->labels_bytes;
    forecast->names_memory_bytes = slc_names_memory_bytes(longest);
}

/* Estimates the temporary files: rows are read back once, and strings are read back to write
 * names. */
static void estimate_spools(const struct slc_csv_request *request,
                            const struct slc_csv_sample *sample,
                            const struct columns *columns,
                            const struct columns *most,
                            struct slc_csv_forecast *forecast)
{
    struct slc_csv_table table;
    double text = 0, text_most = 0;

    slc_csv_table_init(&table, request->spec, "");
    slc_csv_lay_out_rows(&table, request->memory_bytes);
    uint64_t rows = (sample->rows - sample->skipped) * table.row_bytes;

    for (unsigned k = 0; k < columns->count; k++) {
        text += columns->list[k].text;
        text_most += most->list[k].text;
    }
    forecast->spool_bytes = rows + (uint64_t)text;
    forecast->spool_most_bytes = rows + (uint64_t)text_most;
    /* The rows in the sample of the builder are read twice, unless they are all rows. */
    forecast->read_bytes = forecast->spool_bytes + (rows > SLC_PIECE_BYTES ? row_sample_bytes : 0);
}

void slc_csv_forecast(const struct slc_csv_request *request,
                      const struct slc_csv_sample *sample,
                      struct slc_csv_forecast *forecast)
{
    const unsigned workers = slc_csv_workers(request);
    uint64_t text_bytes;
    double looked_up = 0, added = 0;

    *forecast = (struct slc_csv_forecast){.memory_bytes = 0};
    slc_csv_divide(request, workers, &text_bytes, &forecast->left_bytes);
    struct columns columns = collect_columns(request, sample, false, text_bytes);
    struct columns most = collect_columns(request, sample, true, text_bytes);
    uint64_t fixed = touched_bytes +
                     (uint64_t)(WORKER_FILLED * (double)slc_csv_worker_bytes() * workers) +
                     columns.count * (uint64_t)SLC_DICTIONARY_FIXED_BYTES;
    peak(&columns, &forecast->tables_bytes, &forecast->memory_bytes);
    peak(&most, &forecast->tables_most_bytes, &forecast->memory_most_bytes);
    forecast->memory_bytes += fixed;
    forecast->memory_most_bytes += fixed;
    forecast->enough_bytes =
        forecast->tables_most_bytes / 3 * 4 + 4 + (workers - 1) * slc_csv_worker_bytes();
    estimate_names(request, sample, forecast);
    estimate_spools(request, sample, &columns, &most, forecast);
    for (unsigned k = 0; k < columns.count; k++) {
        looked_up += (double)sample->rows;
        added += columns.list[k].count;
    }
    /* Only one thread at a time adds strings, because they are added in the order of the table. */
    forecast->seconds =
        (sample->seconds_each * (double)sample->text_bytes + LOOK_UP_SECONDS * looked_up) /
            workers +
        ADD_SECONDS * added;
}
