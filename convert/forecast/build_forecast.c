/* Estimates the cost of a build. The builder's own functions divide the memory. */
#include "convert/forecast/build_forecast.h"

#include "base/hash.h"
#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "convert/build/build_memory.h"
#include "convert/build/sort/fiber_guess.h"
#include "convert/forecast/species_estimate.h"

#include <math.h>

enum {
    /* Bytes that a tile adds to the store: an entry of the tile directory. Bytes that a block adds:
     * its header, half a page of padding and an index entry. */
    TILE_ENTRY_BYTES = 104,
    BLOCK_EXTRA_BYTES = 2048 + 64 + 88
};

/* Costs per entry on one thread, as multiples of the cost of encoding a nonzero. Scatter: forming
 * the key, counting fibers and moving the entry to its bucket. Sort: sorting the bucket. Measured
 * on tensors of 0.3 to 6 M nonzeros. */
#define SCATTER_OF_ENCODE 4.0
#define SORT_OF_ENCODE    4.0
/* The scatter cost with a single bucket: no search for the bucket, and sequential writes. */
#define ONE_BUCKET_OF_ENCODE 2.0
/* Bytes of a row in a sort area, with keys of at most 62 bits and with longer keys. If buckets are
 * merged and split again, each entry also needs the bytes of its sequence. */
enum { ROW_BYTES = 34, WIDE_ROW_BYTES = 50, SEQUENCE_BYTES = 5 };
/* Largest ratio of a tile's bytes to their estimate from the sample, measured on ten tensors. */
#define CODING_MOST 1.35
/* If `bucket_share` of a build is at most this fraction, one bucket is assumed to be filled. */
#define BUCKET_SHARE_LEAST 0.04
/* Fraction of the memory of encoders and the writer that is actually touched. */
#define ENCODERS_FILLED 0.35

enum {
    /* A sample that is a single stretch, or whose rows were drawn independently
     * (slc_builder_sample), is divided into this number of parts; csv_sample.c explains why a
     * sample must have parts. */
    PARTS = 64
};

/* Copies the coordinates of the sample to rows, as the builder does; indices start at 0. */
static uint64_t *make_rows(const struct slc_build_job *job)
{
    const struct slc_entries *sample = job->sample;
    uint64_t *rows = slc_malloc((sample->count * (size_t)sample->order + 1) * sizeof *rows);

    for (uint32_t i = 0; rows != NULL && i < sample->count; i++) {
        for (unsigned m = 0; m < sample->order; m++) {
            const uint64_t index = sample->coords[m][i];

            rows[i * (size_t)sample->order + m] = index - (index >= job->base ? job->base : 0);
        }
    }
    return rows;
}

/* Estimates the number of distinct pieces of a mode's fibers in all entries. For a mode equal to
 * the order, estimates the number of distinct coordinates. */
static enum slc_status estimate_mode(const struct slc_build_job *job,
                                     const struct slc_fiber_counts *counts,
                                     const uint64_t *rows,
                                     unsigned mode,
                                     struct slc_species_estimate *estimate,
                                     struct slc_error *err)
{
    const uint32_t count = job->sample->count;
    const uint64_t stretches =
        job->stretches > 1 && job->stretches < count ? job->stretches : PARTS;
    const double times = (double)job->entries / count;
    struct slc_species species;
    uint64_t last = UINT64_MAX;

    SLC_TRY(slc_species_create(&species, err));
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t stretch = (uint64_t)i * stretches / count;

        if (stretch != last) {
            slc_species_piece(&species, i == 0);
            last = stretch;
        }
        slc_species_add(
            &species,
            slc_mix64(slc_fiber_number(counts, rows + (size_t)i * job->sample->order, mode)), 0);
    }
    slc_species_extrapolate(&species, times > 1 ? times : 1, estimate);
    slc_species_destroy(&species);
    return SLC_OK;
}

/* Chooses the fiber run like the builder (slc_fiber_counts_choose), but from expected counts. */
static enum slc_status choose_fibers(const struct slc_build_job *job,
                                     struct slc_fiber_counts *counts,
                                     const uint64_t *rows,
                                     struct slc_build_sample *found,
                                     struct slc_error *err)
{
    const unsigned order = job->sample->order;
    enum slc_status status = SLC_OK;
    unsigned mode = 0;

    for (unsigned n = 0; n < order && status == SLC_OK; n++) {
        struct slc_species_estimate pieces = {.count = 0};

        status = estimate_mode(job, counts, rows, n, &pieces, err);
        if (n == 0 || pieces.count < found->pieces) {
            found->pieces = fmin(pieces.count, found->nnz);
            mode = n;
        }
    }
    if (order > 1 && found->nnz >= SLC_FIBER_NNZ_MIN &&
        slc_fiber_pieces_gain((uint64_t)found->nnz, (uint64_t)found->pieces)) {
        found->run = (struct slc_fiber_run){mode, SLC_FIBER_BITS};
    }
    return status;
}

/* Sets found->regroup if the builder, which must predict the fiber run before all entries are
 * pushed, will form buckets under another run. */
static enum slc_status compare_guess(const struct slc_build_job *job,
                                     struct slc_fiber_counts *counts,
                                     const uint64_t *rows,
                                     struct slc_build_sample *found,
                                     struct slc_error *err)
{
    struct slc_fiber_run guess;

    SLC_TRY(slc_fiber_guess(counts, rows, job->sample->count, job->stretches, job->expected, &guess,
                            err));
    found->regroup = guess.mode != found->run.mode || guess.bits != found->run.bits;
    return SLC_OK;
}

/* Derives *found from the sample. The builder counts the distinct coordinates and the distinct
 * pieces of fibers of all entries; here both numbers are estimated from the sample, mode by mode,
 * with the builder's hashes. Errors: SLC_ERR_MEMORY. */
static enum slc_status estimate_sample(const struct slc_build_job *job,
                                       struct slc_build_sample *found,
                                       struct slc_error *err)
{
    struct slc_fiber_counts *counts = slc_calloc(1, sizeof *counts);
    void *memory = slc_malloc(slc_fiber_counts_bytes(job->sample->order));
    uint64_t *rows = make_rows(job);
    struct slc_species_estimate estimate = {.count = 0};
    enum slc_status status = SLC_OK;

    *found = (struct slc_build_sample){.nnz = 0};
    if (counts == NULL || memory == NULL || rows == NULL) {
        status = slc_fail(err, SLC_ERR_MEMORY, "no memory to evaluate a sample");
    } else {
        slc_fiber_counts_init(counts, job->sample->order, memory);
        status = job->cells != NULL
                     ? SLC_OK
                     : estimate_mode(job, counts, rows, job->sample->order, &estimate, err);
        estimate = job->cells != NULL ? *job->cells : estimate;
        found->nnz = fmin(estimate.count, (double)job->entries);
        found->nnz_most = fmin(estimate.most, (double)job->entries);
    }
    if (status == SLC_OK && job->build->fibers == SLC_FIBERS_AUTO) {
        status = choose_fibers(job, counts, rows, found, err);
        SLC_THEN(status, compare_guess(job, counts, rows, found, err));
    } else if (status == SLC_OK && job->build->fibers == SLC_FIBERS_GIVEN) {
        found->run = job->build->run;
        status = estimate_mode(job, counts, rows, found->run.mode, &estimate, err);
        found->pieces = fmin(estimate.count, found->nnz);
    }
    slc_free(rows);
    slc_free(memory);
    slc_free(counts);
    return status;
}

/* Returns the estimated bytes of the store. */
static uint64_t estimate_store(const struct slc_build_job *job,
                               const struct slc_build_sample *found,
                               const struct slc_build_trial *trial)
{
    const double tiles = fmax(ceil(found->nnz / SLC_TILE_NNZ), trial->tiles);
    const double data = found->nnz * (trial->index_bits + trial->value_bits) / 8;
    const double target =
        (double)(job->build->block_bytes != 0 ? job->build->block_bytes : SLC_DEFAULT_BLOCK_BYTES);
    const double blocks = ceil(data / target);

    return (uint64_t)(3 * SLC_PAGE_BYTES + data + tiles * TILE_ENTRY_BYTES +
                      blocks * (BLOCK_EXTRA_BYTES + 16 * job->sample->order));
}

/* Returns the fraction of all scatter buffers that rows never touch. */
static double untouched(const struct slc_build_job *job)
{
    const double others = (double)(job->build->workers - 1) / job->build->workers;

    return job->bucket_share > 0 ? others * (1 - job->bucket_share) : 0;
}

/* Returns the number of buckets that receive nearly all entries. It is small if the input is sorted
 * and the sample is its beginning. */
static uint32_t buckets_filled(const struct slc_build_job *job, uint32_t buckets)
{
    const double share = job->bucket_share;

    return share > BUCKET_SHARE_LEAST || share <= 0
               ? (uint32_t)ceil(buckets * (share > 0 ? share : 1))
               : 1;
}

/* Estimates memory and spilled bytes with the builder's division of memory, except that buckets and
 * tiles are assumed to fill only a part of areas and encoders. Measured on tensors of 0.3 to 6 M
 * nonzeros. */
static void estimate_memory(const struct slc_build_job *job,
                            const struct slc_build_trial *trial,
                            bool regroup,
                            struct slc_build_forecast *f)
{
    const struct slc_builder_options *build = job->build;
    const unsigned order = job->sample->order;
    const uint32_t buckets =
        job->unsampled ? 1 : slc_build_bucket_count(build, job->sample, job->expected);
    const struct slc_push_memory push = slc_push_memory_plan(build, order, buckets, job->expected);
    const uint64_t stream = (uint64_t)push.segment_bytes * push.segment_count;
    /* Bytes per entry in a chunk: the key within the bucket, and the value. */
    const double each = ceil((trial->key_bits - log2(buckets)) / 8) + ceil(trial->value_bits / 8);
    const uint64_t packed = (uint64_t)(each * (double)job->entries);
    const uint64_t area = job->entries / buckets_filled(job, buckets) *
                          (trial->key_bits > 62 ? WIDE_ROW_BYTES : ROW_BYTES);
    struct slc_sort_memory sort =
        slc_sort_memory_plan(build, slc_sort_workers(build, false), packed, area);
    uint64_t resident = packed, areas, fixed;
    bool split = regroup && buckets > 1; /* all entries are spilled again */

    if (packed > stream || sort.workers == 0 || sort.area_bytes < area || regroup) {
        resident = (uint64_t)SLC_SPILL_SEGMENTS_MIN * push.segment_bytes;
        sort = slc_sort_memory_plan(build, slc_sort_workers(build, true), resident, area);
        f->spill_bytes = packed > resident ? packed - resident : 0;
    }
    split = split || sort.area_bytes < area;
    if (split) {
        f->spill_bytes = 2 * packed + (regroup ? SEQUENCE_BYTES * job->entries : 0);
    }
    areas = slc_min_u64(sort.workers, buckets) * slc_min_u64(area, sort.area_bytes);
    fixed = slc_sort_memory_bytes(build, &sort) - sort.workers * sort.area_bytes;
    f->push_bytes = slc_push_memory_bytes(build, order, &push) - stream +
                    slc_min_u64(stream, packed) -
                    (uint64_t)((double)slc_scatter_bytes(&push.shape) * untouched(job));
    f->sort_bytes =
        (uint64_t)(ENCODERS_FILLED * (double)fixed) + areas + slc_min_u64(resident, stream);
}

enum slc_status slc_build_forecast(const struct slc_build_job *job,
                                   struct slc_build_forecast *forecast,
                                   struct slc_error *err)
{
    struct slc_build_sample found = {.nnz = (double)job->entries, .nnz_most = (double)job->entries};
    struct slc_build_trial trial = {.nnz = 0};
    enum slc_status status = SLC_OK;

    *forecast = (struct slc_build_forecast){.store_bytes = 0};
    if (job->sample->count > 0 && job->entries > 0 && !job->unsampled) {
        status = estimate_sample(job, &found, err);
    }
    if (status == SLC_OK && job->sample->count > 0 && job->entries > 0) {
        status = slc_build_trial(job, &found, &trial, err);
    }
    if (status != SLC_OK || trial.nnz == 0) {
        return status;
    }
    forecast->store_bytes = estimate_store(job, &found, &trial);
    forecast->store_most_bytes =
        (uint64_t)(CODING_MOST * (double)forecast->store_bytes * found.nnz_most / found.nnz);
    estimate_memory(job, &trial, found.regroup, forecast);
    forecast->encode_seconds =
        1e-9 * trial.nanoseconds * (double)job->entries / job->build->workers;
    forecast->scatter_seconds =
        (job->unsampled ? ONE_BUCKET_OF_ENCODE : SCATTER_OF_ENCODE) * forecast->encode_seconds;
    forecast->sort_seconds =
        (SORT_OF_ENCODE + (found.regroup ? SCATTER_OF_ENCODE : 0)) * forecast->encode_seconds;
    return SLC_OK;
}
