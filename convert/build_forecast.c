/*
 * See build_forecast.h. From a tile to the whole the coordinates get cheaper, for neighbours lie
 * closer: by a bit whenever the number of entries doubles. The tile is in plain order: that fibers
 * which are kept together make a store of a third the size is not foreseen. Memory is divided by
 * the functions that the builder divides it by.
 */
#include "convert/build_forecast.h"

#include "base/checked.h"
#include "base/clock.h"
#include "base/key.h"
#include "base/memory.h"
#include "convert/build_memory.h"
#include "storage/codec.h"

#include <math.h>
#include <stdlib.h>

enum {
    TRIALS = 4, /* of encoding a tile */
    /* A block's head, its directory of tiles and half a page of padding; an index entry. */
    TILE_ENTRY_BYTES = 104,
    BLOCK_EXTRA_BYTES = 2048 + 64 + 88
};

/*
 * What an entry takes one thread, in times of encoding it: forming its key, counting fibers and
 * moving it to its bucket; sorting a bucket. Measured on tensors of 0.3 to 6 M nonzeros.
 */
#define SCATTER_OF_ENCODE 4.0
#define SORT_OF_ENCODE    4.0
/* Where all entries go to one bucket, which finds nothing to choose and writes to one place. */
#define ONE_BUCKET_OF_ENCODE 2.0
/* Of memory for encoders and the writer, that is touched. */
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
static uint32_t sort_sample(const struct slc_entries *sample,
                            unsigned base,
                            const struct slc_key_layout *keys,
                            struct entry *entries)
{
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

/* Encodes them some times; the shortest counts, which nothing came between. */
static enum slc_status encode(enum slc_codec codec,
                              const struct slc_key_layout *keys,
                              const struct entry *entries,
                              struct trial *trial,
                              struct slc_error *err)
{
    uint64_t *memory = slc_malloc(3 * (size_t)trial->nnz * sizeof *memory);
    uint64_t *lo = memory, *hi;
    double *values;
    struct slc_encoder *encoder = NULL;
    struct slc_tile_source source = {.nnz = trial->nnz, .key_lo = lo};
    struct slc_tile_blob blob;
    enum slc_status status = SLC_OK;

    if (memory == NULL) {
        return slc_fail(err, SLC_ERR_MEMORY, "no memory for a trial of encoding");
    }
    source.key_hi = hi = memory + trial->nnz;
    source.values = values = (double *)(void *)(memory + 2 * (size_t)trial->nnz);
    for (uint32_t i = 0; i < trial->nnz; i++) {
        lo[i] = (uint64_t)entries[i].key;
        hi[i] = (uint64_t)(entries[i].key >> 64);
        values[i] = entries[i].value;
    }
    status = slc_encoder_create(keys, codec, &encoder, err);
    for (unsigned k = 0; k < TRIALS && status == SLC_OK; k++) {
        const uint64_t start_ns = slc_clock_ns();
        double nanoseconds;

        status = slc_tile_encode(encoder, &source, &blob, err);
        nanoseconds = (double)(slc_clock_ns() - start_ns) / trial->nnz;
        trial->nanoseconds =
            k == 0 || nanoseconds < trial->nanoseconds ? nanoseconds : trial->nanoseconds;
    }
    if (status == SLC_OK) {
        trial->index_bits = 8.0 * blob.index_bytes / trial->nnz;
        trial->value_bits = 8.0 * (blob.data_bytes - blob.index_bytes) / trial->nnz;
    }
    slc_encoder_destroy(encoder);
    slc_free(memory);
    return status;
}

static enum slc_status
try_encoding(const struct slc_build_job *job, struct trial *trial, struct slc_error *err)
{
    const struct slc_entries *sample = job->sample;
    const uint32_t most = (uint32_t)slc_min_u64(sample->count, SLC_TILE_NNZ);
    struct entry *entries = slc_malloc(((size_t)most + 1) * sizeof *entries);
    struct slc_key_layout keys;
    enum slc_status status = slc_key_layout_init(&keys, sample->order, job->dims, err);

    *trial = (struct trial){.nnz = 0};
    if (status == SLC_OK && entries == NULL) {
        status = slc_fail(err, SLC_ERR_MEMORY, "no memory for a trial of encoding");
    }
    if (status == SLC_OK) {
        trial->key_bits = keys.bits;
        trial->nnz = sort_sample(sample, job->base, &keys, entries);
    }
    if (status == SLC_OK && trial->nnz > 0) {
        status = encode(job->build->codec, &keys, entries, trial, err);
    }
    slc_free(entries);
    return status;
}

/* Bytes of the store. */
static uint64_t judge_store(const struct slc_build_job *job, const struct trial *trial)
{
    const double closer = log2((double)job->entries / trial->nnz);
    const double index = trial->index_bits - closer > 1 ? trial->index_bits - closer : 1;
    const double tiles = ceil((double)job->entries / SLC_TILE_NNZ);
    const double data = (double)job->entries * (index + trial->value_bits) / 8;
    const double target =
        (double)(job->build->block_bytes != 0 ? job->build->block_bytes : SLC_DEFAULT_BLOCK_BYTES);
    const double blocks = ceil(data / target);

    return (uint64_t)(3 * SLC_PAGE_BYTES + data + tiles * TILE_ENTRY_BYTES +
                      blocks * (BLOCK_EXTRA_BYTES + 16 * job->sample->order));
}

/*
 * What is held and spilled, as the builder would divide the memory that it gets; but for areas and
 * encoders, of which buckets and tiles fill a part. Measured on tensors of 0.3 to 6 M nonzeros.
 */
static void judge_memory(const struct slc_build_job *job,
                         const struct trial *trial,
                         struct slc_build_forecast *f)
{
    const struct slc_builder_options *build = job->build;
    const unsigned order = job->sample->order;
    const uint32_t buckets =
        job->unsampled ? 1 : slc_build_buckets_wanted(build, job->sample, job->expected);
    const struct slc_push_memory push = slc_push_memory_plan(build, order, buckets, job->expected);
    const uint64_t stream = (uint64_t)push.segment_bytes * push.segment_count;
    /* A row in a chunk: its key within the bucket, its value, a share of runs and heads. */
    const double each = ceil((trial->key_bits - log2(buckets)) / 8) + ceil(trial->value_bits / 8);
    const uint64_t packed = (uint64_t)(each * (double)job->entries);
    const uint64_t area = job->entries / buckets * (trial->key_bits > 62 ? 50 : 34);
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
    f->push_bytes =
        slc_push_memory_bytes(build, order, &push) - stream + slc_min_u64(stream, packed);
    f->sort_bytes =
        (uint64_t)(ENCODERS_FILLED * (double)fixed) + areas + slc_min_u64(resident, stream);
}

enum slc_status slc_build_forecast(const struct slc_build_job *job,
                                   struct slc_build_forecast *forecast,
                                   struct slc_error *err)
{
    struct trial trial = {.nnz = 0};
    enum slc_status status = SLC_OK;

    *forecast = (struct slc_build_forecast){.store_bytes = 0};
    if (job->sample->count > 0) {
        status = try_encoding(job, &trial, err);
    }
    if (status != SLC_OK || trial.nnz == 0 || job->entries == 0) {
        return status;
    }
    forecast->store_bytes = judge_store(job, &trial);
    judge_memory(job, &trial, forecast);
    forecast->encode_seconds =
        1e-9 * trial.nanoseconds * (double)job->entries / job->build->workers;
    forecast->scatter_seconds =
        (job->unsampled ? ONE_BUCKET_OF_ENCODE : SCATTER_OF_ENCODE) * forecast->encode_seconds;
    forecast->sort_seconds = SORT_OF_ENCODE * forecast->encode_seconds;
    return SLC_OK;
}
