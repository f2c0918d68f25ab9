#include "engine/hybrid/hybrid_tiles.h"

#include <assert.h>
#include <math.h>

/* An adaptive pass works like SLC_HYBRID_QUEUE for the first 1/10 of the tiles. */
enum { MEASURED_PART = 10 };

void slc_hybrid_tiles_init(struct slc_hybrid_tiles *queue,
                           const struct slc_hybrid_tiles_options *options)
{
    assert(options->places[SLC_HYBRID_GPU] + options->places[SLC_HYBRID_CPU] > 0);
    *queue = (struct slc_hybrid_tiles){.options = *options, .fraction = -1};
    if (options->wish.kind == SLC_HYBRID_STATIC) {
        queue->fraction = options->wish.fraction;
    }
    for (unsigned s = 0; s < SLC_HYBRID_PARTS; s++) {
        assert(options->places[s] <= SLC_MAX_THREADS);
        queue->side[s].free = options->places[s];
        for (unsigned i = 0; i < options->places[s]; i++) {
            queue->side[s].numbers[i] = (uint16_t)i;
        }
    }
    pthread_mutex_init(&queue->mutex, NULL);
    pthread_cond_init(&queue->changed, NULL);
}

void slc_hybrid_tiles_destroy(struct slc_hybrid_tiles *queue)
{
    pthread_cond_destroy(&queue->changed);
    pthread_mutex_destroy(&queue->mutex);
}

/* Sets the fraction of an adaptive pass once enough tiles have been measured. Needs: the caller
 * holds the mutex; this is also true for all static functions below. */
static void update_fraction(struct slc_hybrid_tiles *queue)
{
    struct slc_hybrid_rates rates = {{0}, {0}};

    if (queue->options.wish.kind != SLC_HYBRID_ADAPTIVE || queue->fraction >= 0 ||
        queue->assigned < queue->options.tiles / MEASURED_PART) {
        return;
    }
    for (unsigned s = 0; s < SLC_HYBRID_PARTS; s++) {
        if (queue->options.places[s] > 0) {
            const struct slc_hybrid_part part = {.nnz = queue->side[s].nnz,
                                                 .seconds = (double)queue->side[s].busy_ns * 1e-9 /
                                                            queue->options.places[s]};

            slc_hybrid_rates_record(&rates, (enum slc_hybrid_side)s, &part);
        }
    }
    queue->fraction = slc_hybrid_rates_fraction(&rates);
}

/* Returns the side of tile number `k` if the device gets `fraction` of the tiles. The tiles of each
 * side are spread as evenly as possible. */
static enum slc_hybrid_side side_of(double fraction, uint64_t k)
{
    const bool steps = floor((double)(k + 1) * fraction) > floor((double)k * fraction);

    return steps ? SLC_HYBRID_GPU : SLC_HYBRID_CPU;
}

static bool any_free(const struct slc_hybrid_tiles *queue)
{
    return queue->side[SLC_HYBRID_GPU].free > 0 || queue->side[SLC_HYBRID_CPU].free > 0;
}

/* Chooses the side of the next tile. If both sides may compute it, waits until a side has a free
 * place. */
static enum slc_hybrid_side choose_side(struct slc_hybrid_tiles *queue, uint64_t ordinal)
{
    update_fraction(queue);
    if (queue->fraction >= 0) {
        return side_of(queue->fraction,
                       queue->options.wish.kind == SLC_HYBRID_STATIC ? ordinal : queue->divided++);
    }
    while (!any_free(queue) && !queue->aborted) {
        pthread_cond_wait(&queue->changed, &queue->mutex);
    }
    return queue->side[SLC_HYBRID_GPU].free > 0 ? SLC_HYBRID_GPU : SLC_HYBRID_CPU;
}

/* Waits until side `s` has a free place and all earlier requests for a place of this side are
 * served. */
static void wait_for_place(struct slc_hybrid_tiles *queue, enum slc_hybrid_side s)
{
    const uint64_t ticket = queue->side[s].tickets++;

    while ((queue->side[s].serving != ticket || queue->side[s].free == 0) && !queue->aborted) {
        pthread_cond_wait(&queue->changed, &queue->mutex);
    }
}

enum slc_status slc_hybrid_tiles_acquire(struct slc_hybrid_tiles *queue,
                                         uint64_t ordinal,
                                         struct slc_hybrid_place *place,
                                         struct slc_error *err)
{
    pthread_mutex_lock(&queue->mutex);
    while (queue->options.in_order && queue->assigned != ordinal && !queue->aborted) {
        pthread_cond_wait(&queue->changed, &queue->mutex);
    }
    if (!queue->aborted) {
        place->side = choose_side(queue, ordinal);
        queue->assigned++;
        /* Other workers may choose the side of the next tile while this tile waits for its
         * place. */
        pthread_cond_broadcast(&queue->changed);
        wait_for_place(queue, place->side);
    }
    bool aborted = queue->aborted;
    if (!aborted) {
        assert(queue->options.places[place->side] > 0);
        queue->side[place->side].serving++;
        place->number = queue->side[place->side].numbers[--queue->side[place->side].free];
        pthread_cond_broadcast(&queue->changed);
    }
    pthread_mutex_unlock(&queue->mutex);
    return aborted ? slc_fail(err, SLC_ERR_INTERRUPTED,
                              "the computation was stopped while a tile was waiting for a place")
                   : SLC_OK;
}

void slc_hybrid_tiles_computed(struct slc_hybrid_tiles *queue,
                               const struct slc_hybrid_place *place,
                               uint64_t nnz,
                               uint64_t busy_ns)
{
    pthread_mutex_lock(&queue->mutex);
    queue->side[place->side].tiles += nnz > 0;
    queue->side[place->side].nnz += nnz;
    queue->side[place->side].busy_ns += busy_ns;
    pthread_mutex_unlock(&queue->mutex);
}

void slc_hybrid_tiles_release(struct slc_hybrid_tiles *queue, const struct slc_hybrid_place *place)
{
    pthread_mutex_lock(&queue->mutex);
    queue->side[place->side].numbers[queue->side[place->side].free++] = (uint16_t)place->number;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->mutex);
}

void slc_hybrid_tiles_abort(struct slc_hybrid_tiles *queue)
{
    pthread_mutex_lock(&queue->mutex);
    queue->aborted = true;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->mutex);
}

void slc_hybrid_tiles_report(const struct slc_hybrid_tiles *queue,
                             struct slc_hybrid_tiles_report *report)
{
    *report = (struct slc_hybrid_tiles_report){.fraction = queue->fraction};
    for (unsigned s = 0; s < SLC_HYBRID_PARTS; s++) {
        report->tiles[s] = queue->side[s].tiles;
        report->nnz[s] = queue->side[s].nnz;
        report->seconds[s] = (double)queue->side[s].busy_ns * 1e-9;
    }
}
