/* Cuts sorted buckets into tiles. Tiles within one bucket are encoded in place; a tile that spans
 * buckets is assembled in a buffer called a stage. There is one more stage than workers: while the
 * next stage is filled, each worker may be encoding a stage. */
#include "convert/build/build_output.h"

#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "convert/build/build_memory.h"
#include "convert/build/tile_cut.h"

#include <string.h>

struct stage {
    uint64_t lo[SLC_TILE_NNZ];
    uint64_t hi[SLC_TILE_NNZ];
    double values[SLC_TILE_NNZ];
};
_Static_assert(sizeof(struct stage) == SLC_BUILD_STAGE_BYTES,
               "must match the planned memory of a stage");

struct slc_output {
    const struct slc_sort_plan *plan;
    struct slc_tiles *tiles;
    unsigned workers;
    struct slc_tile_cutter cutter;

    /* Stages; stage number `stage` is being filled. */
    struct slc_buffer stage_memory;
    uint32_t *stage_borrowed; /* per stage: number of its tiles not yet in the file, 0 or 1 */
    unsigned stage;
    uint32_t stage_nnz;

    /* The last coordinate, of which the next bucket may have more entries; set if `open`. */
    bool open;
    uint64_t open_lo, open_hi;
    double open_value;
    uint64_t open_count; /* number of entries in open_value */

    /* Arguments of the current call. */
    unsigned worker;
    uint32_t *borrowed;

    struct slc_sort_counts counts;
    uint64_t nnz; /* nonzeros so far, including nonzeros already in the file */
    /* Nonzeros of an earlier run that this run has yet to skip; the last one has `last_key`. */
    uint64_t written;
    slc_u128 last_key;
    bool any;          /* a nonzero was appended, by this or an earlier run */
    slc_u128 previous; /* key of the last nonzero appended, if any */
    struct slc_build_progress *progress;
};

static struct stage *stage_of(const struct slc_output *output)
{
    return (struct stage *)output->stage_memory.data + output->stage;
}

enum slc_status slc_output_create(const struct slc_output_options *options,
                                  struct slc_output **output,
                                  struct slc_error *err)
{
    struct slc_output *o = slc_calloc(1, sizeof *o);
    enum slc_status status = SLC_OK;

    SLC_TRY(slc_check_memory(o != NULL, err, "for writing the store"));
    o->plan = options->plan;
    o->tiles = options->tiles;
    o->workers = options->workers;
    o->counts = options->fact.counts;
    o->nnz = options->fact.nnz;
    o->written = options->written;
    o->last_key = options->last_key;
    o->any = o->nnz + o->written > 0;
    o->previous = o->last_key;
    o->progress = options->progress;
    slc_tile_cutter_init(&o->cutter, &o->plan->layout, options->dims);
    o->stage_borrowed = slc_calloc(o->workers + 1, sizeof *o->stage_borrowed);
    if (o->stage_borrowed == NULL) {
        status = slc_fail(err, SLC_ERR_MEMORY, "no memory for writing the store");
    }
    SLC_THEN(status, slc_buffer_create(&o->stage_memory, (o->workers + 1) * sizeof(struct stage),
                                       SLC_PAGES_SMALL, err));
    if (status != SLC_OK) {
        slc_output_destroy(o);
        return status;
    }
    *output = o;
    return SLC_OK;
}

void slc_output_destroy(struct slc_output *output)
{
    if (output == NULL) {
        return;
    }
    slc_buffer_destroy(&output->stage_memory);
    slc_free(output->stage_borrowed);
    slc_free(output);
}

/* Queues the stage as a complete tile and continues with the next stage. */
static enum slc_status close_stage(struct slc_output *output, struct slc_error *err)
{
    const struct stage *stage = stage_of(output);
    bool one_upper = stage->hi[0] == stage->hi[output->stage_nnz - 1]; /* keys ascend */
    struct slc_tile_source tile = {.nnz = output->stage_nnz,
                                   .key_lo = stage->lo,
                                   .key_hi = one_upper ? NULL : stage->hi,
                                   .upper = stage->hi[0],
                                   .values = stage->values};

    SLC_TRY(slc_tiles_queue(output->tiles, output->worker, &tile,
                            &output->stage_borrowed[output->stage], err));
    output->stage = (output->stage + 1) % (output->workers + 1);
    output->stage_nnz = 0;
    return slc_tiles_release(output->tiles, output->worker, &output->stage_borrowed[output->stage],
                             err);
}

static void stage_copy(struct slc_output *output,
                       const uint64_t *lo,
                       const uint64_t *hi,
                       uint64_t upper,
                       const double *values,
                       uint32_t count)
{
    struct stage *stage = stage_of(output);
    uint32_t at = output->stage_nnz;

    memcpy(stage->lo + at, lo, count * sizeof *lo);
    if (hi != NULL) {
        memcpy(stage->hi + at, hi, count * sizeof *hi);
    } else {
        for (uint32_t i = 0; i < count; i++) {
            stage->hi[at + i] = upper;
        }
    }
    memcpy(stage->values + at, values, count * sizeof *values);
    output->stage_nnz += count;
}

static enum slc_status fail_other(struct slc_error *err)
{
    return slc_fail(err, SLC_ERR_DAMAGED,
                    "the input differs from the input of the earlier run that began this store");
}

/* Sets *left_out to n if the first n of the `count` nonzeros are already in the file. The caller
 * skips these nonzeros. The last nonzero in the file ends a tile. */
static enum slc_status skip_written(struct slc_output *output,
                                    const uint64_t *lo,
                                    const uint64_t *hi,
                                    uint64_t upper,
                                    uint64_t count,
                                    uint64_t *left_out,
                                    struct slc_error *err)
{
    const uint64_t n = slc_min_u64(count, output->written);

    *left_out = n;
    output->written -= n;
    return n > 0 && output->written == 0 &&
                   slc_key_join(lo[n - 1], hi == NULL ? upper : hi[n - 1]) != output->last_key
               ? fail_other(err)
               : SLC_OK;
}

/* Checks that keys ascend from one call to the next, because the state of another run may violate
 * this. */
static enum slc_status
check_order(struct slc_output *output, slc_u128 first, slc_u128 last, struct slc_error *err)
{
    if (output->any && first <= output->previous) {
        return fail_other(err);
    }
    output->any = true;
    output->previous = last;
    return SLC_OK;
}

/* Appends nonzeros to the stream of tiles; `upper`: as in struct slc_tile_source. */
static enum slc_status append_nonzeros(struct slc_output *output,
                                       const uint64_t *lo,
                                       const uint64_t *hi,
                                       uint64_t upper,
                                       const double *values,
                                       uint64_t count,
                                       struct slc_error *err)
{
    uint64_t i = 0;
    enum slc_status status = skip_written(output, lo, hi, upper, count, &i, err);

    output->nnz += count;
    if (i < count && status == SLC_OK) {
        status = check_order(output, slc_key_join(lo[i], hi == NULL ? upper : hi[i]),
                             slc_key_join(lo[count - 1], hi == NULL ? upper : hi[count - 1]), err);
    }
    while (i < count && status == SLC_OK) {
        bool started = output->stage_nnz > 0;
        uint32_t capacity = SLC_TILE_NNZ - output->stage_nnz;
        uint32_t needed = (uint32_t)slc_min_u64(capacity, count - i);
        const uint64_t *hi_at = hi == NULL ? NULL : hi + i;
        uint32_t fit =
            output->cutter.wide_modes == 0
                ? needed
                : slc_tile_cutter_fit(&output->cutter, lo + i, hi_at, upper, needed, started);

        if (!started && (fit == SLC_TILE_NNZ || fit < needed)) {
            struct slc_tile_source tile = {.nnz = fit,
                                           .key_lo = lo + i,
                                           .key_hi = hi_at,
                                           .upper = upper,
                                           .values = values + i};

            status = slc_tiles_queue(output->tiles, output->worker, &tile, output->borrowed, err);
        } else {
            stage_copy(output, lo + i, hi_at, upper, values + i, fit);
            if (fit == capacity || fit < needed) {
                status = close_stage(output, err);
            }
        }
        i += fit;
    }
    return status;
}

static enum slc_status close_open(struct slc_output *output, struct slc_error *err)
{
    bool keep;

    if (!output->open) {
        return SLC_OK;
    }
    output->open = false;
    output->open_value = slc_sort_divide(output->plan, output->open_value, output->open_count);
    SLC_TRY(slc_sort_complete_value(output->plan, output->open_lo, output->open_hi,
                                    &output->open_value, &keep, &output->counts, err));
    if (keep) {
        /* A single nonzero is always copied to a stage, so open_value may be reused. */
        SLC_TRY(append_nonzeros(output, &output->open_lo, NULL, output->open_hi,
                                &output->open_value, 1, err));
    }
    return SLC_OK;
}

static enum slc_status
join_raw(struct slc_output *output, const struct slc_sorted *sorted, struct slc_error *err)
{
    enum slc_status status = SLC_OK;
    uint64_t i = 0;

    if (sorted->raw_count == 0) {
        return SLC_OK;
    }
    if (!output->open || output->open_lo != sorted->raw_lo || output->open_hi != sorted->raw_hi) {
        status = close_open(output, err);
        output->open = true;
        output->open_lo = sorted->raw_lo;
        output->open_hi = sorted->raw_hi;
        output->open_value = sorted->raw_values[0];
        output->open_count = 1;
        i = 1;
    }
    for (; i < sorted->raw_count && status == SLC_OK; i++) {
        status = slc_sort_combine(output->plan, sorted->raw_lo, sorted->raw_hi,
                                  sorted->raw_values[i], &output->open_value, err);
        output->open_count++;
        output->counts.duplicates++;
    }
    return status;
}

enum slc_status slc_output_add(struct slc_output *output,
                               unsigned worker,
                               const struct slc_bucket *bucket,
                               const struct slc_sorted *sorted,
                               uint32_t *borrowed,
                               struct slc_error *err)
{
    enum slc_status status = SLC_OK;

    output->worker = worker;
    output->borrowed = borrowed;
    output->counts.duplicates += sorted->counts.duplicates;
    output->counts.explicit_zeros += sorted->counts.explicit_zeros;
    output->counts.rounded_values += sorted->counts.rounded_values;
    if (!bucket->lower_shared) {
        status = close_open(output, err);
    }
    SLC_THEN(status, join_raw(output, sorted, err));
    if (status == SLC_OK && (sorted->count > 0 || sorted->open)) {
        status = close_open(output, err);
    }
    if (status == SLC_OK && sorted->key_hi != NULL) {
        status = append_nonzeros(output, sorted->key_lo, sorted->key_hi, 0, sorted->values,
                                 sorted->count, err);
    } else {
        for (unsigned part = 0; part <= 1 && status == SLC_OK; part++) {
            uint64_t from = part == 0 ? 0 : sorted->carry;
            uint64_t to = part == 0 ? sorted->carry : sorted->count;

            status = append_nonzeros(output, sorted->key_lo + from, NULL, sorted->upper + part,
                                     sorted->values + from, to - from, err);
        }
    }
    if (status == SLC_OK && sorted->open) {
        output->open = true;
        output->open_lo = sorted->open_lo;
        output->open_hi = sorted->open_hi;
        output->open_value = sorted->open_value;
        output->open_count = sorted->open_count;
    }
    if (status == SLC_OK && bucket->completes > 0 && output->progress != NULL) {
        status = close_open(output, err); /* the next bucket does not contain this coordinate */
    }
    if (status == SLC_OK && bucket->completes > 0 && output->progress != NULL) {
        status = slc_build_progress_add(output->progress,
                                        &(struct slc_build_fact){.buckets = bucket->completes,
                                                                 .nnz = output->nnz,
                                                                 .counts = output->counts},
                                        err);
    }
    return status;
}

enum slc_status slc_output_finish(struct slc_output *output, struct slc_error *err)
{
    output->worker = 0;
    output->borrowed = NULL;
    SLC_TRY(close_open(output, err));
    if (output->written > 0) {
        SLC_TRY(fail_other(err));
    }
    if (output->stage_nnz > 0) {
        SLC_TRY(close_stage(output, err));
    }
    for (unsigned i = 0; i <= output->workers; i++) {
        SLC_TRY(slc_tiles_release(output->tiles, 0, &output->stage_borrowed[i], err));
    }
    return SLC_OK;
}

const struct slc_sort_counts *slc_output_counts(const struct slc_output *output)
{
    return &output->counts;
}
