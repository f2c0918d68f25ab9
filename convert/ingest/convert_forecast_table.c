/* Forecast of the conversion of a table. A conversion reads the whole table first. A forecast reads
 * only a sample (csv_sample.h), which costs a small fraction of the conversion. */
#include "base/memory/checked.h"
#include "convert/ingest/convert_internal.h"
#include "convert/ingest/csv/csv_sample.h"

#include <assert.h>
#include <string.h>

/* Maximum size of the sample in bytes. The brief forecast at the start of a run reads 1/64 of the
 * table, but at least 1 MiB. */
#define SAMPLE_BYTES       (UINT64_C(16) << 20)
#define BRIEF_SHARE        64
#define BRIEF_BYTES_MIN    (UINT64_C(1) << 20)
#define UNKNOWN_INPUT_SIZE (UINT64_C(256) << 20)

/* Raises the estimated size of a mode to its size in the old store. For a mode of strings, adds the
 * sizes: it is unknown how many strings the table and the old store have in common. */
static void add_old(const struct slc_csv_old *old,
                    const struct slc_csv_spec *spec,
                    unsigned m,
                    struct slc_csv_mode *mode)
{
    const struct slc_store_names *listed = slc_manifest_names(old->manifest, m);
    const uint64_t length = old->manifest->dims[m];

    if (spec->items[m].rule != SLC_CSV_STRINGS) {
        mode->length = slc_max_u64(mode->length, length);
        mode->most = slc_max_u64(mode->most, length);
        return;
    }
    mode->length += length;
    mode->most += length;
    mode->least = slc_max_u64(mode->least, length);
    if (listed != NULL && listed->file_bytes > 4 * listed->count) {
        mode->name_bytes += (double)(listed->file_bytes - 4 * listed->count);
        mode->name_bytes_most += (double)(listed->file_bytes - 4 * listed->count);
    }
}

static void report_table(struct slc_conversion *c,
                         const struct slc_csv_request *request,
                         const struct slc_csv_forecast *found)
{
    struct slc_convert_forecast *f = c->forecast;
    const struct slc_csv_sample *table = c->table;

    f->table = true;
    f->table_bytes = c->resident_bytes + found->memory_bytes;
    f->table_most_bytes = c->resident_bytes + found->memory_most_bytes;
    f->spool_bytes = found->spool_bytes;
    f->spool_most_bytes = found->spool_most_bytes;
    f->spool_read_bytes = found->read_bytes;
    f->names_bytes = found->names_bytes;
    f->names_most_bytes = found->names_most_bytes;
    f->labels_bytes = found->labels_bytes;
    f->table_seconds = found->seconds;
    f->too_small = found->tables_bytes > found->left_bytes;
    f->tight = found->tables_most_bytes > found->left_bytes;
    f->enough_bytes = c->memory_bytes - request->memory_bytes + found->enough_bytes;
    for (unsigned m = 0; m < request->spec->order; m++) {
        f->dims_least[m] = table->modes[m].least;
        f->dims_most[m] = table->modes[m].most;
    }
}

enum slc_status slc_conversion_sample_table(struct slc_conversion *c, struct slc_error *err)
{
    const uint64_t size = c->info.stored_bytes != 0 ? c->info.stored_bytes : UNKNOWN_INPUT_SIZE;
    const uint64_t bytes =
        c->brief ? slc_min_u64(slc_max_u64(size / BRIEF_SHARE, BRIEF_BYTES_MIN), SAMPLE_BYTES)
                 : SAMPLE_BYTES;
    struct slc_csv_request request;
    struct slc_csv_forecast found;
    struct slc_csv_old old;
    enum slc_status status = slc_conversion_request_csv(c, &request, &old, err);

    assert(c->table == NULL);
    SLC_TRY(status);
    c->table = slc_calloc(1, sizeof *c->table);
    SLC_TRY(slc_check_memory(c->table != NULL, err, "for a sample of a table"));
    SLC_TRY(slc_csv_sample(&request, bytes, c->table, err));
    for (unsigned m = 0; m < request.spec->order && request.old != NULL; m++) {
        add_old(request.old, request.spec, m, &c->table->modes[m]);
    }
    slc_csv_forecast(&request, c->table, &found);
    report_table(c, &request, &found);
    c->info.memory_bytes += found.memory_later;
    c->names_bytes = found.names_memory_bytes;
    c->header = (struct slc_text_header){.dialect = SLC_DIALECT_CSV,
                                         .order = request.spec->order,
                                         .has_dims = true,
                                         .has_nnz = true,
                                         .nnz = c->table->rows - c->table->skipped,
                                         .has_values = true};
    for (unsigned m = 0; m < request.spec->order; m++) {
        c->header.dims[m] = c->table->modes[m].length;
    }
    return SLC_OK;
}

void slc_conversion_table_rows(struct slc_conversion *c, struct slc_conversion_sample *sample)
{
    const struct slc_csv_sample *table = c->table;

    *sample = (struct slc_conversion_sample){
        .entries = {.order = c->header.order, .count = table->row_count, .values = table->values},
        .stretches = table->stretches,
        .text_bytes = table->text_bytes,
        .expected = c->header.nnz};
    for (unsigned m = 0; m < c->header.order; m++) {
        sample->entries.coords[m] = table->coords[m];
    }
    c->build.assumed_base = 0;
}

void slc_conversion_drop_table(struct slc_conversion *c)
{
    if (c->table != NULL) {
        slc_csv_sample_destroy(c->table);
        slc_free(c->table);
        c->table = NULL;
    }
}
