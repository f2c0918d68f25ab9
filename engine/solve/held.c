#include "engine/solve/held.h"

#include "base/memory/checked.h"
#include "base/thread/team.h"
#include "engine/stream/stream.h"
#include "storage/model/model.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { GRAIN = 4096 };

/* Sums of squared errors, of error magnitudes and of deviances. */
struct error_sums {
    struct slc_squares squares;
    double magnitudes, deviances;
};

/* Returns the capacity for held-out nonzeros: their expected number plus eight standard deviations
 * plus 64. */
static uint64_t capacity_for(uint64_t nnz, double fraction)
{
    const double expected = (double)nnz * fraction;
    const double capacity = expected + 8.0 * sqrt(expected) + 64.0;

    return capacity < (double)nnz ? (uint64_t)capacity : nnz;
}

static uint64_t record_words(unsigned order)
{
    return order + UINT64_C(2);
}

static bool count_bytes(unsigned order, uint64_t capacity, uint64_t *bytes)
{
    uint64_t sums;

    return slc_mul_u64(capacity, record_words(order) * sizeof(uint64_t), bytes) &&
           slc_mul_u64(slc_div_up_u64(capacity, GRAIN), sizeof(struct error_sums), &sums) &&
           slc_add_u64(*bytes, sums, bytes) && *bytes <= INT64_MAX;
}

uint64_t slc_held_memory_bytes(unsigned order, uint64_t nnz, double fraction)
{
    uint64_t bytes;

    return count_bytes(order, capacity_for(nnz, fraction), &bytes)
               ? slc_buffer_footprint(bytes, SLC_PAGES_SMALL)
               : UINT64_MAX;
}

/* Context of the pass that collects held-out nonzeros. */
struct gather {
    const struct slc_holdout *holdout;
    struct slc_held *held;
    atomic_uint_fast64_t count;
};

static enum slc_status
gather_tile(void *context, unsigned worker, struct slc_tile_view *tile, struct slc_error *err)
{
    struct gather *gather = context;
    uint64_t hashes[SLC_HOLDOUT_CHUNK_NNZ];
    struct slc_chunk_view chunk = {.nnz = 1};

    (void)worker;
    while (chunk.nnz > 0) {
        SLC_TRY(tile->next(tile, SLC_HOLDOUT_CHUNK_NNZ, &chunk, err));
        slc_holdout_hash(gather->holdout, tile, &chunk, hashes);
        for (uint32_t i = 0; i < chunk.nnz; i++) {
            const double value = slc_chunk_value(tile, &chunk, i);

            if (hashes[i] >= gather->holdout->threshold) {
                continue;
            }
            uint64_t at = atomic_fetch_add(&gather->count, 1);
            if (at >= gather->held->capacity) {
                return slc_fail_field(
                    err, SLC_ERR_NUMERIC, SLC_FIELD_HOLDOUT_SEED,
                    "far more nonzeros are held out than requested, because with this seed the "
                    "hashes of the tensor's coordinates are not random: choose another seed");
            }
            uint64_t *record =
                (uint64_t *)gather->held->memory.data + at * record_words(tile->order);
            record[0] = hashes[i];
            memcpy(&record[1], &value, sizeof value);
            for (unsigned n = 0; n < tile->order; n++) {
                record[2 + n] = tile->corner[n] + chunk.offset[n][i];
            }
        }
    }
    return SLC_OK;
}

/* Compares the hashes of two records, then their coordinates. The word between them, the value, is
 * not compared. No two records are equal. */
static int compare_records(const void *left, const void *right, unsigned order)
{
    const uint64_t *a = left, *b = right;

    for (unsigned k = 0; k < order + 2; k++) {
        if (k != 1 && a[k] != b[k]) {
            return a[k] < b[k] ? -1 : 1;
        }
    }
    return 0;
}

/* Moves the record at `at` down to its place in a heap. Records are sorted with a heap, because
 * qsort may allocate memory. */
static void
sift_record(uint64_t *records, uint64_t words, unsigned order, uint64_t at, uint64_t count)
{
    uint64_t moved[SLC_MAX_ORDER + 2];

    memcpy(moved, records + at * words, words * sizeof moved[0]);
    for (uint64_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count &&
            compare_records(records + (child + 1) * words, records + child * words, order) > 0) {
            child++;
        }
        if (compare_records(records + child * words, moved, order) <= 0) {
            break;
        }
        memcpy(records + at * words, records + child * words, words * sizeof moved[0]);
    }
    memcpy(records + at * words, moved, words * sizeof moved[0]);
}

static void sort_records(struct slc_held *held)
{
    const uint64_t words = record_words(held->order);
    uint64_t *records = held->memory.data;

    for (uint64_t k = held->count / 2; k-- > 0;) {
        sift_record(records, words, held->order, k, held->count);
    }
    for (uint64_t end = held->count; end > 1; end--) {
        uint64_t last[SLC_MAX_ORDER + 2];

        memcpy(last, records + (end - 1) * words, words * sizeof last[0]);
        memcpy(records + (end - 1) * words, records, words * sizeof last[0]);
        memcpy(records, last, words * sizeof last[0]);
        sift_record(records, words, held->order, 0, end - 1);
    }
}

double slc_held_value(const struct slc_held *held, uint64_t at)
{
    double value;

    memcpy(&value, (const uint64_t *)held->memory.data + at * record_words(held->order) + 1,
           sizeof value);
    return value;
}

enum slc_status slc_held_gather(struct slc_stream *stream,
                                unsigned layout,
                                const struct slc_holdout *holdout,
                                double fraction,
                                unsigned order,
                                uint64_t nnz,
                                const volatile int *stop,
                                struct slc_held *held,
                                struct slc_error *err)
{
    struct gather gather = {.holdout = holdout, .held = held};
    const struct slc_pass pass = {.tiles = {.consumer = {.tile = gather_tile, .context = &gather}},
                                  .layout = layout,
                                  .stop = stop};
    uint64_t bytes;

    memset(held, 0, sizeof *held);
    held->order = order;
    held->capacity = capacity_for(nnz, fraction);
    if (!count_bytes(order, held->capacity, &bytes)) {
        return slc_fail(err, SLC_ERR_MEMORY, "the held-out nonzeros do not fit in memory");
    }
    SLC_TRY(slc_buffer_create(&held->memory, bytes, SLC_PAGES_SMALL, err));
    SLC_TRY(slc_stream_pass(stream, &pass, err));
    held->count = atomic_load(&gather.count);
    if (held->count == 0) {
        return slc_fail_fields(
            err, SLC_ERR_USAGE, SLC_FIELD_HOLDOUT, SLC_FIELD_HOLDOUT_SEED,
            "none of the nonzeros is held out: hold out a larger part, or choose another seed");
    }
    sort_records(held);
    for (uint64_t i = 0; i < held->count; i++) {
        slc_squares_add(&held->squares, slc_held_value(held, i));
    }
    return SLC_OK;
}

void slc_held_destroy(struct slc_held *held)
{
    slc_buffer_destroy(&held->memory);
    memset(held, 0, sizeof *held);
}

struct evaluation {
    const struct slc_held *held;
    struct slc_model_view model;
    enum slc_loss loss;
    double delta;
    struct error_sums *sums; /* one per GRAIN records */
};

static void sum_errors(void *context, uint64_t begin, uint64_t end, unsigned worker)
{
    const struct evaluation *evaluation = context;
    const uint64_t words = record_words(evaluation->held->order);
    const uint64_t *records = evaluation->held->memory.data;
    struct error_sums sums = {.magnitudes = 0.0};

    (void)worker;
    for (uint64_t i = begin; i < end; i++) {
        const double value = slc_held_value(evaluation->held, i);
        const double model = slc_model_value(&evaluation->model, records + i * words + 2);
        const double error = value - slc_loss_mean(evaluation->loss, model);

        slc_squares_add(&sums.squares, error);
        sums.magnitudes += fabs(error);
        sums.deviances += slc_loss_deviance(evaluation->loss, evaluation->delta, value, model);
    }
    evaluation->sums[begin / GRAIN] = sums;
}

enum slc_status slc_held_error(struct slc_held *held,
                               const struct slc_matrix *factors,
                               const double *weights,
                               enum slc_loss loss,
                               double delta,
                               unsigned workers,
                               struct slc_held_errors *errors,
                               struct slc_error *err)
{
    struct evaluation evaluation = {
        .held = held,
        .model = {.order = held->order, .rank = factors[0].cols, .lambda = weights},
        .loss = loss,
        .delta = delta};
    const double count = (double)held->count;
    struct error_sums sums = {.magnitudes = 0.0};

    for (unsigned n = 0; n < held->order; n++) {
        evaluation.model.factors[n] = &factors[n];
    }
    evaluation.sums = (struct error_sums *)(void *)((uint64_t *)held->memory.data +
                                                    held->capacity * record_words(held->order));
    SLC_TRY(slc_team_for(workers, held->count, GRAIN, sum_errors, &evaluation, err));
    for (uint64_t g = 0; g < slc_div_up_u64(held->count, GRAIN); g++) {
        slc_squares_add_sum(&sums.squares, &evaluation.sums[g].squares);
        sums.magnitudes += evaluation.sums[g].magnitudes;
        sums.deviances += evaluation.sums[g].deviances;
    }
    *errors = (struct slc_held_errors){.rmse = slc_squares_root(&sums.squares, count),
                                       .mae = sums.magnitudes / count,
                                       .deviance = sums.deviances / count};
    return SLC_OK;
}
