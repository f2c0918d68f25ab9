/* Estimates the cost of a conversion (slc_convert_forecast) from a sample of rows. The rows are
 * parsed again to measure the time per byte, and encoded as one tile of a store to estimate the
 * bytes per nonzero (build_forecast.h).
 *
 * The length of a pipe is unknown. For a compressed file that does not record its length, the
 * compression ratio of the first pieces is extrapolated. */
#include "base/error/clock.h"
#include "base/key.h"
#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "convert/forecast/build_forecast.h"
#include "convert/ingest/convert_internal.h"
#include "convert/ingest/csv/csv_sample.h"

#include <stdlib.h>
#include <string.h>

enum {
    /* Number of pieces of a compressed input that are decompressed. They have a few MB, and
     * decompressing them lasts a few hundredths of a second. */
    UNPACKED_PIECES = 4,
    /* Number of buckets that the estimate distinguishes. Each of these buckets represents adjacent
     * buckets of the run, whose memory shares huge pages. */
    BUCKETS_TRIED = 32
};

/* Fixed seconds of every conversion, for its start, the sample and syncs. */
#define ALWAYS_SECONDS 0.1
/* Measured seconds per row of a table to read the row from its temporary file. */
#define ROW_SECONDS 15e-9
/* Expected fraction of the memory for pieces and parsers that is touched. */
#define PIECES_FILLED 0.5

/* Returns the seconds per byte to parse text with one thread, measured on the rows of the first
 * piece. */
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

static int compare_keys(const void *a, const void *b)
{
    const slc_u128 x = *(const slc_u128 *)a, y = *(const slc_u128 *)b;

    return (x > y) - (x < y);
}

/* Computes the keys of rows in plain ALTO order. Indices beyond the mode sizes of the sample are
 * set to the largest index. */
static void make_keys(const struct slc_conversion *c,
                      const struct slc_key_layout *layout,
                      const struct slc_text_rows *rows,
                      slc_u128 *keys)
{
    for (uint32_t i = 0; i < rows->count; i++) {
        uint64_t coords[SLC_MAX_ORDER];

        for (unsigned m = 0; m < c->header.order; m++) {
            const uint64_t base =
                rows->coords[m][i] >= c->build.assumed_base ? c->build.assumed_base : 0;

            coords[m] = slc_min_u64(rows->coords[m][i] - base, c->forecast->dims[m] - 1);
        }
        keys[i] = slc_key_encode(layout, coords);
    }
}

/* Divides the keys of the first piece into buckets, and returns the fraction of these buckets that
 * receive rows of the second piece. The fraction is small if the text is sorted. The fraction
 * determines the memory of a thread, because a thread touches only the buckets for which it has
 * rows. */
static double share_of_buckets(const struct slc_text_rows *first,
                               const slc_u128 *sorted,
                               const struct slc_text_rows *rows,
                               const slc_u128 *keys)
{
    bool hit[BUCKETS_TRIED] = {false};
    unsigned count = 0;

    for (uint32_t i = 0; i < rows->count; i++) {
        uint32_t low = 0, high = first->count;

        while (low < high) {
            const uint32_t middle = low + (high - low) / 2;

            if (sorted[middle] < keys[i]) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        hit[slc_min_u64((uint64_t)low * BUCKETS_TRIED / first->count, BUCKETS_TRIED - 1)] = true;
    }
    for (unsigned b = 0; b < BUCKETS_TRIED; b++) {
        count += hit[b];
    }
    return (double)count / BUCKETS_TRIED;
}

/* Sets *share to the fraction that share_of_buckets returns for two pieces, or to 1 if the second
 * piece has no rows to compare. */
static enum slc_status compare_pieces(const struct slc_conversion *c,
                                      const struct slc_text_rows *first,
                                      double *share,
                                      struct slc_error *err)
{
    const struct slc_piece *piece = &c->job.pieces[1];
    struct slc_text_rows rows = {.capacity = first->count};
    uint64_t *memory = slc_malloc((c->header.order + UINT64_C(1)) * first->count * sizeof *memory +
                                  2 * (size_t)first->count * sizeof(slc_u128) + 1);
    slc_u128 *keys = (slc_u128 *)(void *)memory, *sorted = keys + first->count;
    struct slc_key_layout layout;
    size_t at = piece->position;

    *share = 1;
    SLC_TRY(slc_check_memory(memory != NULL, err, "for a sample of rows"));
    for (unsigned m = 0; m <= c->header.order; m++) {
        uint64_t *column = (uint64_t *)(void *)(sorted + first->count) + (size_t)m * first->count;

        if (m < c->header.order) {
            rows.coords[m] = column;
        } else {
            rows.values = (double *)(void *)column;
        }
    }
    slc_text_rows_clear(&rows);
    if (first->count > 0 &&
        slc_key_layout_init(&layout, c->header.order, c->forecast->dims, NULL) == SLC_OK) {
        /* Errors are ignored here, because the run reports them. */
        (void)!slc_row_source_parse(c->job.source, piece, &at, &rows, NULL);
        make_keys(c, &layout, first, sorted);
        qsort(sorted, first->count, sizeof *sorted, compare_keys);
        make_keys(c, &layout, &rows, keys);
        *share = rows.count > 0 ? share_of_buckets(first, sorted, &rows, keys) : 1;
    }
    slc_free(memory);
    return SLC_OK;
}

/* Estimates the decompressed size, and measures the seconds per byte that the reading thread needs
 * for decompression. */
static enum slc_status try_unpacking(struct slc_conversion *c,
                                     const struct slc_text_rows *first,
                                     double *share,
                                     struct slc_error *err)
{
    struct slc_convert_forecast *f = c->forecast;
    struct slc_piece *piece = &c->job.pieces[1];
    uint64_t text = 0, ns = 0;
    enum slc_status status = SLC_OK;

    for (unsigned k = 0; k < UNPACKED_PIECES && status == SLC_OK; k++) {
        const uint64_t start_ns = slc_clock_ns();

        status = slc_row_source_next(c->job.source, piece, err);
        ns += slc_clock_ns() - start_ns;
        text += status == SLC_OK ? piece->bytes : 0;
        if (status == SLC_OK && k == 0 && piece->bytes > 0) {
            status = compare_pieces(c, first, share, err);
        }
    }
    if (status == SLC_OK && text > 0) {
        f->unpack_seconds = 1e-9 * (double)ns / (double)text;
    }
    f->text_bytes = slc_input_text_bytes(c->input);
    return status;
}

static enum slc_status estimate_input(struct slc_conversion *c,
                                      struct slc_conversion_sample *sample,
                                      double *share,
                                      struct slc_error *err)
{
    struct slc_convert_forecast *f = c->forecast;
    enum slc_status status = SLC_OK;

    f->dialect = c->header.dialect;
    f->compression = c->info.compression;
    f->order = c->header.order;
    f->dims_declared = c->job.dims_declared;
    f->workers = c->job.workers;
    f->input_bytes = c->info.stored_bytes;
    f->sample_bytes =
        slc_input_identity_bytes(c->input) + (c->table == NULL ? sample->read_bytes : 0);
    if (c->table != NULL) {
        memcpy(f->dims, c->header.dims, sizeof f->dims);
        f->text_bytes = sample->text_bytes;
        f->entries = sample->expected;
        return SLC_OK;
    }
    for (unsigned m = 0; m < f->order; m++) {
        const uint64_t seen = sample->rows.count > 0 ? sample->rows.largest[m] : 0;

        f->dims[m] = f->dims_declared ? c->job.lengths[m] : seen + 1 - c->build.assumed_base;
        /* old_dims is 0 without an old store */
        f->dims[m] = slc_max_u64(f->dims[m], c->report->old_dims[m]);
    }
    f->text_bytes = c->complete ? c->job.pieces[0].bytes : f->input_bytes;
    if (!c->complete && strcmp(f->compression, "none") != 0) {
        f->text_bytes = 0;
        status = try_unpacking(c, &sample->rows, share, err);
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
    struct slc_build_job job = {
        .build = &c->build, .sample = &sample.entries, .dims = f->dims, .bucket_share = 1};
    struct slc_build_forecast built = {.store_bytes = 0};
    enum slc_status status = SLC_OK;

    if (c->table != NULL) {
        slc_conversion_table_rows(c, &sample);
    } else {
        status = slc_conversion_sample(c, &sample, err);
    }
    SLC_THEN(status, estimate_input(c, &sample, &job.bucket_share, err));
    if (status == SLC_OK) {
        job.base = c->build.assumed_base;
        job.stretches = sample.stretches;
        job.cells = c->table != NULL && f->old_nnz == 0 ? &c->table->cells : NULL;
        job.expected = sample.expected; /* the builder has no better estimate */
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
    f->parse_bytes = c->resident_bytes + f->labels_bytes +
                     (uint64_t)(PIECES_FILLED * (double)(c->build.caller_bytes - c->resident_bytes -
                                                         f->labels_bytes));
    f->push_bytes = f->parse_bytes + built.push_bytes;
    f->sort_bytes = c->resident_bytes + f->labels_bytes + built.sort_bytes;
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
