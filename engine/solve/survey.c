#include "engine/solve/survey.h"

#include "storage/manifest/labels.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum {
    CHUNK = 1024,
    /* A term is rounded to an integer of at most this many bits. */
    TERM_BITS = 60
};

struct survey_run {
    struct slc_survey *survey;
    pthread_mutex_t lock;
    /* The nonzero with the smallest indices in the store among those that the loss does not
     * accept. */
    bool found;
    double value;
    uint64_t index[SLC_MAX_ORDER];
};

/* Returns a power of two such that every term up to `largest` is at most 2^TERM_BITS times it. */
static double unit_for(double largest)
{
    int exponent;

    (void)frexp(largest, &exponent);
    return ldexp(1.0, exponent - TERM_BITS);
}

/* Returns the term of a value in the sum that slc_survey_entropy returns. */
static double entropy(enum slc_loss loss, double value)
{
    if (value <= 0.0) {
        return 0.0;
    }
    return loss == SLC_LOSS_POISSON ? value * log(value)
           : loss == SLC_LOSS_GAMMA ? log(value)
                                    : 0.0;
}

/* Adds `times` times the value to the sums. */
static void add_value(struct slc_survey *survey, double value, int times)
{
    survey->count += (uint64_t)(int64_t)times;
    survey->values += times * (int64_t)llrint(value / survey->value_unit);
    survey->entropies +=
        times * (int64_t)llrint(entropy(survey->loss, value) / survey->entropy_unit);
}

/* Keeps the nonzero if it is the first in the order of indices. */
static void keep_refused(struct survey_run *run,
                         const struct slc_tile_view *tile,
                         const struct slc_chunk_view *chunk,
                         uint32_t i,
                         double value)
{
    uint64_t index[SLC_MAX_ORDER] = {0};
    unsigned n = 0;

    for (unsigned m = 0; m < tile->order; m++) {
        index[m] = tile->corner[m] + chunk->offset[m][i];
    }
    (void)pthread_mutex_lock(&run->lock);
    while (run->found && n < tile->order && index[n] == run->index[n]) {
        n++;
    }
    if (!run->found || (n < tile->order && index[n] < run->index[n])) {
        run->found = true;
        run->value = value;
        memcpy(run->index, index, tile->order * sizeof index[0]);
    }
    (void)pthread_mutex_unlock(&run->lock);
}

static enum slc_status
add_tile(void *context, unsigned worker, struct slc_tile_view *tile, struct slc_error *err)
{
    struct survey_run *run = context;
    struct slc_survey sums = {.loss = run->survey->loss,
                              .value_unit = run->survey->value_unit,
                              .entropy_unit = run->survey->entropy_unit};
    struct slc_chunk_view chunk = {.nnz = 1};

    (void)worker;
    while (chunk.nnz > 0) {
        SLC_TRY(tile->next(tile, CHUNK, &chunk, err));
        for (uint32_t i = 0; i < chunk.nnz; i++) {
            const double value = slc_chunk_value(tile, &chunk, i);

            if (!slc_loss_accepts(sums.loss, value)) {
                keep_refused(run, tile, &chunk, i, value);
            } else {
                add_value(&sums, value, 1);
            }
        }
    }
    (void)pthread_mutex_lock(&run->lock);
    run->survey->count += sums.count;
    run->survey->values += sums.values;
    run->survey->entropies += sums.entropies;
    (void)pthread_mutex_unlock(&run->lock);
    return SLC_OK;
}

/* Replaces the index in the store by the index of the input. */
static enum slc_status
restore_index(const struct slc_store *store, unsigned mode, uint64_t *index, struct slc_error *err)
{
    const struct slc_store_permutation *listed = slc_manifest_permutation(&store->manifest, mode);
    struct slc_labels labels = {0};

    if (listed == NULL) {
        return SLC_OK;
    }
    SLC_TRY(slc_store_labels(store, listed, &labels, err));
    slc_labels_invert(&labels);
    *index = labels.label[*index];
    slc_labels_destroy(&labels);
    return SLC_OK;
}

static const char *advice_for(const struct survey_run *run)
{
    switch (run->survey->loss) {
    case SLC_LOSS_LS:
    case SLC_LOSS_HUBER:
        break;
    case SLC_LOSS_POISSON:
        return run->value < 0.0
                   ? "convert only the values that are counts, or choose the loss 'ls'"
                   : "convert counts instead of means or rates, or choose the loss 'ls' or 'gamma'";
    case SLC_LOSS_BERNOULLI:
        return "convert the values to 0 and 1, or choose the loss 'poisson' for counts or 'ls'";
    case SLC_LOSS_GAMMA:
        return "convert only the values above 0, or choose the loss 'ls' or 'huber'";
    }
    return "choose another loss";
}

static enum slc_status
fail_refused(const struct slc_store *store, struct survey_run *run, struct slc_error *err)
{
    const enum slc_loss loss = run->survey->loss;
    char text[SLC_MAX_ORDER * 21 + 1];
    size_t used = 0;

    for (unsigned n = 0; n < store->manifest.order; n++) {
        SLC_TRY(restore_index(store, n, &run->index[n], err));
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%" PRIu64, n > 0 ? "," : "",
                                 run->index[n] + 1);
    }
    (void)slc_fail(err, SLC_ERR_INPUT,
                   "nonzero (%s) is %.17g, but the loss '%s' is defined only for %s: %s", text,
                   run->value, slc_loss_name(loss), slc_loss_values(loss), advice_for(run));
    slc_error_locate_file(err, store->path);
    return SLC_ERR_INPUT;
}

enum slc_status slc_survey_store(const struct slc_store *store,
                                 struct slc_stream *stream,
                                 unsigned layout,
                                 enum slc_loss loss,
                                 const volatile int *stop,
                                 struct slc_survey *survey,
                                 struct slc_error *err)
{
    /* No value exceeds the norm. The factor covers rounding of the norm, and of values to f32. */
    const double largest = 1.001 * sqrt(store->manifest.sum_of_squares);
    struct survey_run run = {.survey = survey, .lock = PTHREAD_MUTEX_INITIALIZER, .found = false};
    const struct slc_pass pass = {
        .tiles = {.consumer = {.tile = add_tile, .context = &run}}, .layout = layout, .stop = stop};

    /* |x log x| is at most 1 / e for x up to 1, and |log x| at most 746. */
    *survey = (struct slc_survey){.loss = loss,
                                  .value_unit = unit_for(largest),
                                  .entropy_unit = unit_for(fmax(1024.0, entropy(loss, largest)))};
    SLC_TRY(slc_stream_pass(stream, &pass, err));
    return run.found ? fail_refused(store, &run, err) : SLC_OK;
}

void slc_survey_remove(struct slc_survey *survey, double value)
{
    add_value(survey, value, -1);
}

double slc_survey_sum(const struct slc_survey *survey)
{
    return (double)survey->values * survey->value_unit;
}

double slc_survey_entropy(const struct slc_survey *survey)
{
    return (double)survey->entropies * survey->entropy_unit;
}
