/* See engine/hybrid/hybrid_tiles.h. */
#include "engine/hybrid/hybrid_tiles.h"

#include <assert.h>
#include <math.h>

/* An adaptive pass is a queue for one tile in so many. */
enum { MEASURED_PART = 10 };

void slc_sides_init(struct slc_sides *sides, const struct slc_sides_options *options)
{
    assert(options->seats[SLC_SHARE_DEVICE] + options->seats[SLC_SHARE_CPU] > 0);
    *sides = (struct slc_sides){.options = *options, .fraction = -1};
    if (options->wish.kind == SLC_SHARE_STATIC) {
        sides->fraction = options->wish.fraction;
    }
    for (unsigned s = 0; s < SLC_SHARE_SIDES; s++) {
        assert(options->seats[s] <= SLC_MAX_THREADS);
        sides->side[s].free = options->seats[s];
        for (unsigned i = 0; i < options->seats[s]; i++) {
            sides->side[s].numbers[i] = (uint16_t)i;
        }
    }
    pthread_mutex_init(&sides->mutex, NULL);
    pthread_cond_init(&sides->changed, NULL);
}

void slc_sides_destroy(struct slc_sides *sides)
{
    pthread_cond_destroy(&sides->changed);
    pthread_mutex_destroy(&sides->mutex);
}

/* Of an adaptive pass: the fraction, once enough has been measured. Under the mutex, as what
 * follows. */
static void settle_fraction(struct slc_sides *sides)
{
    struct slc_share_rates rates = {{0}, {0}};

    if (sides->options.wish.kind != SLC_SHARE_ADAPTIVE || sides->fraction >= 0 ||
        sides->asked < sides->options.tiles / MEASURED_PART) {
        return;
    }
    for (unsigned s = 0; s < SLC_SHARE_SIDES; s++) {
        if (sides->options.seats[s] > 0) {
            const struct slc_share_part part = {.nnz = sides->side[s].nnz,
                                                .seconds = (double)sides->side[s].busy_ns * 1e-9 /
                                                           sides->options.seats[s]};

            slc_share_rates_note(&rates, (enum slc_share_side)s, &part);
        }
    }
    sides->fraction = slc_share_rates_fraction(&rates);
}

/* The side of tile `k` of those that a fraction divides, as evenly as whole tiles can be. */
static enum slc_share_side side_of(double fraction, uint64_t k)
{
    const bool steps = floor((double)(k + 1) * fraction) > floor((double)k * fraction);

    return steps ? SLC_SHARE_DEVICE : SLC_SHARE_CPU;
}

static bool any_free(const struct slc_sides *sides)
{
    return sides->side[SLC_SHARE_DEVICE].free > 0 || sides->side[SLC_SHARE_CPU].free > 0;
}

/* The side of a tile whose turn it is to have one. Waits for a seat where any will do. */
static enum slc_share_side choose(struct slc_sides *sides, uint64_t ordinal)
{
    settle_fraction(sides);
    if (sides->fraction >= 0) {
        return side_of(sides->fraction,
                       sides->options.wish.kind == SLC_SHARE_STATIC ? ordinal : sides->divided++);
    }
    while (!any_free(sides) && !sides->aborted) {
        pthread_cond_wait(&sides->changed, &sides->mutex);
    }
    return sides->side[SLC_SHARE_DEVICE].free > 0 ? SLC_SHARE_DEVICE : SLC_SHARE_CPU;
}

/* Waits for a seat on a side, behind those who came before. */
static void wait_for_seat(struct slc_sides *sides, enum slc_share_side s)
{
    const uint64_t ticket = sides->side[s].tickets++;

    while ((sides->side[s].serving != ticket || sides->side[s].free == 0) && !sides->aborted) {
        pthread_cond_wait(&sides->changed, &sides->mutex);
    }
}

enum slc_status slc_sides_take(struct slc_sides *sides,
                               uint64_t ordinal,
                               struct slc_seat *seat,
                               struct slc_error *err)
{
    bool aborted;

    pthread_mutex_lock(&sides->mutex);
    while (sides->options.in_order && sides->asked != ordinal && !sides->aborted) {
        pthread_cond_wait(&sides->changed, &sides->mutex);
    }
    if (!sides->aborted) {
        seat->side = choose(sides, ordinal);
        sides->asked++;
        /* Whose turn it is to have a side need not wait for this one's seat. */
        pthread_cond_broadcast(&sides->changed);
        wait_for_seat(sides, seat->side);
    }
    aborted = sides->aborted;
    if (!aborted) {
        assert(sides->options.seats[seat->side] > 0);
        sides->side[seat->side].serving++;
        seat->number = sides->side[seat->side].numbers[--sides->side[seat->side].free];
        pthread_cond_broadcast(&sides->changed);
    }
    pthread_mutex_unlock(&sides->mutex);
    return aborted ? slc_fail(err, SLC_ERR_INTERRUPTED,
                              "the computation was stopped while a tile waited to be computed")
                   : SLC_OK;
}

void slc_sides_computed(struct slc_sides *sides,
                        const struct slc_seat *seat,
                        uint64_t nnz,
                        uint64_t busy_ns)
{
    pthread_mutex_lock(&sides->mutex);
    sides->side[seat->side].tiles += nnz > 0;
    sides->side[seat->side].nnz += nnz;
    sides->side[seat->side].busy_ns += busy_ns;
    pthread_mutex_unlock(&sides->mutex);
}

void slc_sides_leave(struct slc_sides *sides, const struct slc_seat *seat)
{
    pthread_mutex_lock(&sides->mutex);
    sides->side[seat->side].numbers[sides->side[seat->side].free++] = (uint16_t)seat->number;
    pthread_cond_broadcast(&sides->changed);
    pthread_mutex_unlock(&sides->mutex);
}

void slc_sides_abort(struct slc_sides *sides)
{
    pthread_mutex_lock(&sides->mutex);
    sides->aborted = true;
    pthread_cond_broadcast(&sides->changed);
    pthread_mutex_unlock(&sides->mutex);
}

void slc_sides_report(const struct slc_sides *sides, struct slc_sides_report *report)
{
    *report = (struct slc_sides_report){.fraction = sides->fraction};
    for (unsigned s = 0; s < SLC_SHARE_SIDES; s++) {
        report->tiles[s] = sides->side[s].tiles;
        report->nnz[s] = sides->side[s].nnz;
        report->seconds[s] = (double)sides->side[s].busy_ns * 1e-9;
    }
}
