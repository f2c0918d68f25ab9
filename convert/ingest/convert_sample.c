/* Samples the input of a conversion: rows spread over a seekable file, or the first piece of any
 * other input. The sample determines the borders of buckets, the assumed index base and an estimate
 * of the number of entries. A wrong estimate makes the conversion slower, but does not change its
 * result. */
#include "base/memory/checked.h"
#include "base/random.h"
#include "convert/ingest/convert_internal.h"
#include "storage/file/files.h"

enum {
    /* Number of ranges per sample, enough to represent all parts of a file that is sorted by its
     * first mode. */
    SAMPLE_RANGES = 64,
    SAMPLE_RANGE_BYTES = 32 << 10
};

/* Parses rows up to the first fault. The fault is ignored, because the parsers will report it with
 * its position. */
static size_t sample_rows(const struct slc_conversion *c,
                          const struct slc_piece *piece,
                          struct slc_text_rows *rows)
{
    size_t at = piece->position;
    enum slc_status fault = slc_row_source_parse(c->job.source, piece, &at, rows, NULL);

    (void)fault;
    return at - piece->position;
}

/* Parses sampled rows into `rows`: random ranges if the input is seekable (the second piece holds
 * their text), otherwise the first piece. Stores the number of ranges in *stretches and the bytes
 * of the rows in *text_bytes, from which the number of rows is estimated. */
static enum slc_status read_sample(struct slc_conversion *c,
                                   struct slc_text_rows *rows,
                                   uint32_t *stretches,
                                   uint64_t *text_bytes,
                                   struct slc_error *err)
{
    struct slc_piece *part = &c->job.pieces[1];
    uint32_t capacity = rows->capacity;
    uint64_t span = c->job.source->sampled_bytes;

    *text_bytes = 0;
    *stretches = 1;
    if (c->complete || span == 0) {
        *text_bytes = sample_rows(c, &c->job.pieces[0], rows);
        return SLC_OK;
    }
    *stretches = SAMPLE_RANGES;
    for (uint32_t r = 0; r < SAMPLE_RANGES; r++) {
        uint64_t low = span / SAMPLE_RANGES * r;

        SLC_TRY(c->job.source->ops->sample(
            c->job.source, low + slc_random_below(0, 0, r, span / SAMPLE_RANGES + 1),
            SAMPLE_RANGE_BYTES, part, err));
        rows->capacity = capacity / SAMPLE_RANGES * (r + 1);
        *text_bytes += sample_rows(c, part, rows);
    }
    return SLC_OK;
}

/* Returns the index base that is assumed for the borders of buckets. It is nearly always right; a
 * wrong base only makes the conversion slower. */
static unsigned assumed_base(const struct slc_conversion *c, const struct slc_text_rows *rows)
{
    bool at_length = false;

    if (c->job.index_base >= 0) {
        return (unsigned)c->job.index_base;
    }
    for (unsigned m = 0; m < c->header.order && rows->count > 0; m++) {
        if (rows->smallest[m] == 0) {
            return 0;
        }
        at_length = at_length || (c->job.dims_declared && rows->largest[m] == c->job.lengths[m]);
    }
    return at_length ? 1 : slc_dialect_base(c->header.dialect);
}

/* Returns the expected number of entries: the declared number, or an extrapolation from the bytes
 * per row of the sample; 0 if unknown. */
static uint64_t expect_entries(const struct slc_conversion *c,
                               const struct slc_text_rows *rows,
                               uint64_t text_bytes)
{
    uint64_t rows_expected = 0;

    if (c->header.has_nnz) {
        rows_expected = c->header.nnz;
    } else if (c->info.seekable && text_bytes > 0) {
        rows_expected =
            (uint64_t)((double)rows->count / (double)text_bytes * (double)c->info.stored_bytes);
    }
    return c->header.symmetry != 0 ? 2 * rows_expected : rows_expected;
}

enum slc_status slc_conversion_sample(struct slc_conversion *conversion,
                                      struct slc_conversion_sample *sample,
                                      struct slc_error *err)
{
    struct slc_conversion *c = conversion;
    struct slc_text_rows *rows = &sample->rows;
    unsigned order = c->header.order;
    uint32_t capacity = SLC_PIECE_BYTES / (uint32_t)sizeof(uint64_t) / (order + 1);
    uint64_t *next = c->job.pieces[2].buffer.data;

    *sample =
        (struct slc_conversion_sample){.rows = {.capacity = capacity}, .entries = {.order = order}};
    for (unsigned m = 0; m < order; m++, next += capacity) {
        rows->coords[m] = next;
        sample->entries.coords[m] = next;
    }
    rows->values = (double *)next;
    slc_text_rows_clear(rows);
    SLC_TRY(read_sample(c, rows, &sample->stretches, &sample->text_bytes, err));
    c->build.assumed_base = assumed_base(c, rows);
    sample->read_bytes =
        sample->stretches > 1
            ? slc_min_u64((uint64_t)SAMPLE_RANGES * SAMPLE_RANGE_BYTES, c->info.stored_bytes)
            : 0;
    sample->entries.count = rows->count;
    sample->entries.values = rows->values;
    sample->expected = expect_entries(c, rows, sample->text_bytes);
    return SLC_OK;
}

enum slc_status slc_conversion_create_builder(struct slc_conversion *conversion,
                                              struct slc_error *err)
{
    struct slc_conversion *c = conversion;
    struct slc_parse_job *job = &c->job;
    struct slc_conversion_sample sample;

    SLC_TRY(slc_check_open_files(err));
    SLC_TRY(slc_conversion_sample(c, &sample, err));
    SLC_TRY(slc_builder_create(&c->build, c->header.order, &job->builder, err));
    if (sample.rows.count > 0 && slc_builder_resumed(job->builder) == NULL) {
        SLC_TRY(slc_builder_sample(job->builder, &sample.entries, sample.stretches, sample.expected,
                                   err));
    }
    return SLC_OK;
}
