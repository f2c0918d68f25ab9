/*
 * What a conversion would take; see slc_convert_forecast. The sample tells how many entries come
 * and what they look like: its rows are parsed once more, with the clock on, and encoded as one
 * tile of the store would be (build_forecast.h).
 *
 * A pipe, or a compressed file without a header, does not say how much it is; of the latter the
 * first pieces tell by how much it shrank.
 */
#include "base/checked.h"
#include "base/clock.h"
#include "base/memory.h"
#include "convert/build_forecast.h"
#include "convert/convert_internal.h"
#include "convert/sheet_sample.h"

#include <string.h>

enum {
    /* Pieces that a compressed input is judged by: some megabytes, a few hundredths of a second. */
    UNPACKED_PIECES = 4
};

/* What every conversion takes beside: begin, sample and syncs. */
#define ALWAYS_SECONDS 0.1
/* Of a row of a table that is read back from its temporary file: measured. */
#define ROW_SECONDS 15e-9
/* Of memory for pieces and parsers, that is touched. */
#define PIECES_FILLED 0.5

/* The rows of the first piece once more, a thread's: seconds of a byte. */
static double parsing_of_byte(const struct slc_conversion *c, struct slc_text_rows *rows)
{
    const struct slc_piece *piece = &c->job.pieces[0];
    const uint64_t start_ns = slc_clock_ns();
    size_t at = piece->position;
    enum slc_status status = SLC_OK;

    while (at < piece->bytes && status == SLC_OK) {
        const size_t before = at;

        slc_text_rows_clear(rows);
        status = slc_row_source_parse(c->job.source, piece, &at, rows, NULL);
        if (at == before) {
            break;
        }
    }
    return at > piece->position ? slc_seconds_since(start_ns) / (double)(at - piece->position) : 0;
}

/* How much text there is, and what unpacking a byte of it takes the thread that reads. */
static enum slc_status try_unpacking(struct slc_conversion *c, struct slc_error *err)
{
    struct slc_convert_forecast *f = c->forecast;
    const uint64_t start_ns = slc_clock_ns();
    struct slc_piece *piece = &c->job.pieces[1];
    uint64_t text = 0;
    enum slc_status status = SLC_OK;

    for (unsigned k = 0; k < UNPACKED_PIECES && status == SLC_OK; k++) {
        status = slc_row_source_next(c->job.source, piece, err);
        text += status == SLC_OK ? piece->bytes : 0;
    }
    if (status == SLC_OK && text > 0) {
        f->unpack_seconds = slc_seconds_since(start_ns) / (double)text;
    }
    f->text_bytes = slc_input_text_bytes(c->input);
    return status;
}

static enum slc_status
judge_input(struct slc_conversion *c, struct slc_conversion_sample *sample, struct slc_error *err)
{
    struct slc_convert_forecast *f = c->forecast;
    enum slc_status status = SLC_OK;

    f->dialect = c->header.dialect;
    f->compression = c->info.compression;
    f->order = c->header.order;
    f->dims_declared = c->job.dims_declared;
    f->workers = c->job.workers;
    f->input_bytes = c->info.stored_bytes;
    f->sample_bytes = sample->read_bytes;
    if (c->table != NULL) {
        memcpy(f->dims, c->header.dims, sizeof f->dims);
        f->text_bytes = sample->text_bytes;
        f->entries = sample->expected;
        return SLC_OK;
    }
    for (unsigned m = 0; m < f->order; m++) {
        const uint64_t seen = sample->rows.count > 0 ? sample->rows.largest[m] : 0;

        f->dims[m] = f->dims_declared ? c->job.lengths[m] : seen + 1 - c->build.assumed_base;
        f->dims[m] = slc_max_u64(f->dims[m], c->report->old_dims[m]); /* 0 without an old store */
    }
    f->text_bytes = c->complete ? c->job.pieces[0].bytes : f->input_bytes;
    if (!c->complete && strcmp(f->compression, "none") != 0) {
        f->text_bytes = 0;
        status = try_unpacking(c, err);
    }
    f->entries = sample->expected;
    if (f->entries == 0 && sample->text_bytes > 0) {
        f->entries =
            (uint64_t)((double)f->text_bytes * sample->rows.count / (double)sample->text_bytes);
        f->entries *= c->header.symmetry != 0 ? 2 : 1;
    }
    return status;
}

enum slc_status slc_conversion_forecast(struct slc_conversion *conversion, struct slc_error *err)
{
    struct slc_conversion *c = conversion;
    struct slc_convert_forecast *f = c->forecast;
    struct slc_conversion_sample sample;
    struct slc_build_job job = {.build = &c->build, .sample = &sample.entries, .dims = f->dims};
    struct slc_build_forecast built = {.store_bytes = 0};
    enum slc_status status = SLC_OK;

    if (c->table != NULL) {
        slc_conversion_table_rows(c, &sample);
    } else {
        status = slc_conversion_sample(c, &sample, err);
    }
    if (status == SLC_OK) {
        status = judge_input(c, &sample, err);
    }
    if (status == SLC_OK) {
        job.base = c->build.assumed_base;
        job.stretches = sample.stretches;
        job.cells = c->table != NULL && f->old_nnz == 0 ? &c->table->cells : NULL;
        job.expected = sample.expected; /* the builder knows no more */
        f->old_nnz = c->report->old_nnz;
        job.entries = f->entries > 0 ? f->entries + f->old_nnz : 0;
        status = slc_build_forecast(&job, &built, err);
    }
    if (status != SLC_OK || built.store_bytes == 0) {
        return status;
    }
    f->store_bytes = built.store_bytes + f->names_bytes;
    f->store_most_bytes = built.store_most_bytes + f->names_most_bytes;
    f->spill_bytes = built.spill_bytes;
    f->parse_bytes = c->resident_bytes +
                     (uint64_t)(PIECES_FILLED * (double)(c->build.beside_bytes - c->resident_bytes -
                                                         f->names_memory_bytes));
    f->push_bytes = f->parse_bytes + built.push_bytes;
    f->sort_bytes = c->resident_bytes + built.sort_bytes;
    f->parse_seconds = c->table == NULL
                           ? parsing_of_byte(c, &sample.rows) * (double)f->text_bytes / f->workers
                           : ROW_SECONDS * (double)f->entries / f->workers;
    f->unpack_seconds *= (double)f->text_bytes;
    f->always_seconds = ALWAYS_SECONDS;
    f->scatter_seconds = built.scatter_seconds;
    f->sort_seconds = built.sort_seconds;
    f->encode_seconds = built.encode_seconds;
    return c->appending != NULL ? slc_conversion_forecast_old(c, err) : SLC_OK;
}
