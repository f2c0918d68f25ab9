/*
 * What a conversion would take; see slc_convert_forecast. The sample tells how many entries come
 * and what they look like: its rows are parsed once more, with the clock on, and encoded as one
 * tile of the store would be, in plain order: that fibers which are kept together make a store of a
 * third the size is not foreseen. From a tile to the whole the coordinates get cheaper, for
 * neighbours lie closer: by a bit whenever the number of entries doubles. Memory is divided by the
 * functions that the builder divides it by.
 *
 * A pipe, or a compressed file without a header, does not say how much it is; of the latter the
 * first pieces tell by how much it shrank.
 */
#include "base/checked.h"
#include "base/clock.h"
#include "base/key.h"
#include "base/memory.h"
#include "convert/build_memory.h"
#include "convert/convert_internal.h"
#include "storage/codec.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    /* Pieces that a compressed input is judged by: some megabytes, a few hundredths of a second. */
    UNPACKED_PIECES = 4,
    /* A block's head, its directory of tiles and half a page of padding; an index entry. */
    TILE_ENTRY_BYTES = 104,
    BLOCK_EXTRA_BYTES = 2048 + 64 + 88
};

/*
 * What an entry takes one thread in the builder, in times of encoding it: forming its key, counting
 * fibers and moving it to its bucket; sorting a bucket. And what every conversion takes beside,
 * begin, sample and syncs. Measured on tensors of 0.3 to 6 M nonzeros.
 */
#define SCATTER_OF_ENCODE 4.0
#define SORT_OF_ENCODE    4.0
#define ALWAYS_SECONDS    0.1
/* Of memory for pieces and parsers, and for encoders and the writer, that is touched. */
#define PIECES_FILLED   0.5
#define ENCODERS_FILLED 0.35

/* A nonzero of the sample. */
struct entry {
    slc_u128 key;
    double value;
};

static int compare(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;

    return x->key < y->key ? -1 : x->key > y->key;
}

/* What a tile of sampled nonzeros is when encoded. */
struct trial {
    uint32_t nnz;
    double index_bits, value_bits, key_bits;
    double nanoseconds; /* of a nonzero */
};

/* Distinct nonzeros of the sample by ascending key: how many. */
static uint32_t sort_sample(const struct slc_conversion *c,
                            const struct slc_entries *sample,
                            const struct slc_key_layout *keys,
                            struct entry *entries)
{
    const uint64_t base = c->build.assumed_base;
    uint32_t count = 0, kept = 0;

    for (uint32_t i = 0; i < sample->count && i < SLC_TILE_NNZ; i++) {
        uint64_t coords[SLC_MAX_ORDER];

        for (unsigned m = 0; m < sample->order; m++) {
            coords[m] = sample->coords[m][i] - (sample->coords[m][i] >= base ? base : 0);
        }
        if (sample->values[i] != 0) {
            entries[count++] = (struct entry){slc_key_encode(keys, coords), sample->values[i]};
        }
    }
    qsort(entries, count, sizeof *entries, compare);
    for (uint32_t i = 0; i < count; i++) {
        if (kept == 0 || entries[i].key != entries[kept - 1].key) {
            entries[kept++] = entries[i];
        }
    }
    return kept;
}

/* Encodes them; the second time is the one that counts. */
static enum slc_status encode(const struct slc_conversion *c,
                              const struct slc_key_layout *keys,
                              const struct entry *entries,
                              struct trial *trial,
                              struct slc_error *err)
{
    uint64_t *memory = slc_malloc(3 * (size_t)trial->nnz * sizeof *memory);
    uint64_t *lo = memory, *hi = memory + trial->nnz;
    double *values = (double *)(void *)(memory + 2 * (size_t)trial->nnz);
    struct slc_encoder *encoder = NULL;
    const struct slc_tile_source source = {
        .nnz = trial->nnz, .key_lo = lo, .key_hi = hi, .values = values};
    struct slc_tile_blob blob;
    enum slc_status status = SLC_OK;

    if (memory == NULL) {
        return slc_fail(err, SLC_ERR_MEMORY, "no memory for a trial of encoding");
    }
    for (uint32_t i = 0; i < trial->nnz; i++) {
        lo[i] = (uint64_t)entries[i].key;
        hi[i] = (uint64_t)(entries[i].key >> 64);
        values[i] = entries[i].value;
    }
    status = slc_encoder_create(keys, c->build.codec, &encoder, err);
    for (unsigned k = 0; k < 2 && status == SLC_OK; k++) {
        const uint64_t start_ns = slc_clock_ns();

        status = slc_tile_encode(encoder, &source, &blob, err);
        trial->nanoseconds = (double)(slc_clock_ns() - start_ns) / trial->nnz;
    }
    if (status == SLC_OK) {
        trial->index_bits = 8.0 * blob.index_bytes / trial->nnz;
        trial->value_bits = 8.0 * (blob.data_bytes - blob.index_bytes) / trial->nnz;
    }
    slc_encoder_destroy(encoder);
    slc_free(memory);
    return status;
}

static enum slc_status try_encoding(const struct slc_conversion *c,
                                    const struct slc_entries *sample,
                                    struct trial *trial,
                                    struct slc_error *err)
{
    const uint32_t most = (uint32_t)slc_min_u64(sample->count, SLC_TILE_NNZ);
    struct entry *entries = slc_malloc(((size_t)most + 1) * sizeof *entries);
    struct slc_key_layout keys;
    enum slc_status status = slc_key_layout_init(&keys, sample->order, c->forecast->dims, err);

    *trial = (struct trial){.nnz = 0};
    if (status == SLC_OK && entries == NULL) {
        status = slc_fail(err, SLC_ERR_MEMORY, "no memory for a trial of encoding");
    }
    if (status == SLC_OK) {
        trial->key_bits = keys.bits;
        trial->nnz = sort_sample(c, sample, &keys, entries);
    }
    if (status == SLC_OK && trial->nnz > 0) {
        status = encode(c, &keys, entries, trial, err);
    }
    slc_free(entries);
    return status;
}

/* Bytes of the store. */
static uint64_t judge_store(const struct slc_conversion *c, const struct trial *trial)
{
    const struct slc_convert_forecast *f = c->forecast;
    const double closer = log2((double)f->entries / trial->nnz);
    const double index = trial->index_bits - closer > 1 ? trial->index_bits - closer : 1;
    const double tiles = ceil((double)f->entries / SLC_TILE_NNZ);
    const double data = (double)f->entries * (index + trial->value_bits) / 8;
    const double target =
        (double)(c->build.block_bytes != 0 ? c->build.block_bytes : SLC_DEFAULT_BLOCK_BYTES);
    const double blocks = ceil(data / target);

    return (uint64_t)(3 * SLC_PAGE_BYTES + data + tiles * TILE_ENTRY_BYTES +
                      blocks * (BLOCK_EXTRA_BYTES + 16 * f->order));
}

/*
 * What is held and spilled, as the builder would divide the memory that it gets; but for areas and
 * encoders, of which buckets and tiles fill a part. Measured on tensors of 0.3 to 6 M nonzeros.
 */
static void judge_memory(const struct slc_conversion *c,
                         const struct slc_conversion_sample *sample,
                         const struct trial *trial)
{
    struct slc_convert_forecast *f = c->forecast;
    const struct slc_builder_options *build = &c->build;
    /* The builder knows no more than the sample does. */
    const uint32_t buckets = slc_build_buckets_wanted(build, &sample->entries, sample->expected);
    const struct slc_push_memory push =
        slc_push_memory_plan(build, f->order, buckets, sample->expected);
    const uint64_t stream = (uint64_t)push.segment_bytes * push.segment_count;
    /* A row in a chunk: its key within the bucket, its value, a share of runs and heads. */
    const double each = ceil((trial->key_bits - log2(buckets)) / 8) + ceil(trial->value_bits / 8);
    const uint64_t packed = (uint64_t)(each * (double)f->entries);
    const uint64_t area = f->entries / buckets * (trial->key_bits > 62 ? 50 : 34);
    struct slc_sort_memory sort =
        slc_sort_memory_plan(build, slc_sort_workers(build, false), packed, area);
    uint64_t resident = packed, areas, fixed;

    if (packed > stream || sort.workers == 0 || sort.area_bytes < area) {
        resident = (uint64_t)SLC_SPILL_SEGMENTS_MIN * push.segment_bytes;
        sort = slc_sort_memory_plan(build, slc_sort_workers(build, true), resident, area);
        f->spill_bytes = packed > resident ? packed - resident : 0;
    }
    areas = slc_min_u64(sort.workers, buckets) * slc_min_u64(area, sort.area_bytes);
    fixed = slc_sort_memory_bytes(build, &sort) - sort.workers * sort.area_bytes;
    f->parse_bytes = c->resident_bytes +
                     (uint64_t)(PIECES_FILLED * (double)(build->beside_bytes - c->resident_bytes));
    f->push_bytes = f->parse_bytes + slc_push_memory_bytes(build, f->order, &push) - stream +
                    slc_min_u64(stream, packed);
    f->sort_bytes = c->resident_bytes + (uint64_t)(ENCODERS_FILLED * (double)fixed) + areas +
                    slc_min_u64(resident, stream);
}

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

/* By how much the input shrank, and what unpacking a byte of text takes the thread that reads. */
static enum slc_status try_unpacking(struct slc_conversion *c, struct slc_error *err)
{
    struct slc_convert_forecast *f = c->forecast;
    const uint64_t start_ns = slc_clock_ns(), first = slc_row_source_consumed(c->job.source);
    struct slc_piece *piece = &c->job.pieces[1];
    uint64_t text = 0, stored;
    enum slc_status status = SLC_OK;

    for (unsigned k = 0; k < UNPACKED_PIECES && status == SLC_OK; k++) {
        status = slc_row_source_next(c->job.source, piece, err);
        text += status == SLC_OK ? piece->bytes : 0;
    }
    stored = slc_row_source_consumed(c->job.source) - first;
    if (status == SLC_OK && text > 0) {
        f->unpack_seconds = slc_seconds_since(start_ns) / (double)text;
    }
    if (stored > 0 && text > 0) {
        f->text_bytes = (uint64_t)((double)f->input_bytes * (double)text / (double)stored);
    } else if (piece->bytes == 0) {
        f->text_bytes = c->job.pieces[0].bytes + text; /* that was all */
    }
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
    for (unsigned m = 0; m < f->order; m++) {
        const uint64_t seen = sample->rows.count > 0 ? sample->rows.largest[m] : 0;

        f->dims[m] = f->dims_declared ? c->job.lengths[m] : seen + 1 - c->build.assumed_base;
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
    struct trial trial;
    enum slc_status status = slc_conversion_sample(c, &sample, err);

    if (status == SLC_OK) {
        status = judge_input(c, &sample, err);
    }
    if (status == SLC_OK && sample.entries.count > 0) {
        status = try_encoding(c, &sample.entries, &trial, err);
    }
    if (status != SLC_OK || sample.entries.count == 0 || trial.nnz == 0 || f->entries == 0) {
        return status;
    }
    f->store_bytes = judge_store(c, &trial);
    judge_memory(c, &sample, &trial);
    f->parse_seconds = parsing_of_byte(c, &sample.rows) * (double)f->text_bytes / f->workers;
    f->unpack_seconds *= (double)f->text_bytes;
    f->always_seconds = ALWAYS_SECONDS;
    f->encode_seconds = 1e-9 * trial.nanoseconds * (double)f->entries / f->workers;
    f->scatter_seconds = SCATTER_OF_ENCODE * f->encode_seconds;
    f->sort_seconds = SORT_OF_ENCODE * f->encode_seconds;
    return SLC_OK;
}
