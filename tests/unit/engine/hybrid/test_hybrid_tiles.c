/* Assignment of tiles to the CPU and the device, and waiting. */
#include "engine/hybrid/hybrid_tiles.h"
#include "slc_test.h"

#include <stdlib.h>
#include <unistd.h>

static struct slc_hybrid_tiles sides;

static void open_sides(enum slc_hybrid_kind kind,
                       double fraction,
                       unsigned threads,
                       unsigned lanes,
                       uint64_t tiles,
                       bool in_order)
{
    const struct slc_hybrid_tiles_options options = {
        .wish = {kind, fraction},
        .places = {[SLC_HYBRID_CPU] = threads, [SLC_HYBRID_GPU] = lanes},
        .tiles = tiles,
        .in_order = in_order};

    slc_hybrid_tiles_init(&sides, &options);
}

/* Returns the side of a tile that is computed at once. */
static enum slc_hybrid_side one(uint64_t ordinal, uint64_t busy_ns)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_hybrid_place place;

    SLC_ASSERT_OK(slc_hybrid_tiles_acquire(&sides, ordinal, &place, &err), &err);
    slc_hybrid_tiles_computed(&sides, &place, 1000, busy_ns);
    slc_hybrid_tiles_release(&sides, &place);
    return place.side;
}

/* After k tiles the device has had the integer part of its fraction of k. */
static void a_fraction_divides(void)
{
    static const double fractions[] = {0, 0.1, 0.25, 0.4, 0.5, 0.7, 0.99, 1};

    for (size_t i = 0; i < SLC_COUNT(fractions); i++) {
        uint64_t device = 0;

        open_sides(SLC_HYBRID_STATIC, fractions[i], 1, 1, 1000, true);
        for (uint64_t k = 0; k < 1000; k++) {
            device += one(k, 1) == SLC_HYBRID_GPU;
            CU_ASSERT_EQUAL(device, (uint64_t)((double)(k + 1) * fractions[i]));
        }
        slc_hybrid_tiles_destroy(&sides);
    }
}

/* The side of a tile does not depend on the order of arrival. */
static void ordinals_decide(void)
{
    enum slc_hybrid_side seen[100];

    open_sides(SLC_HYBRID_STATIC, 0.37, 1, 1, 100, false);
    for (uint64_t k = 0; k < 100; k++) {
        seen[k] = one(k, 1);
    }
    slc_hybrid_tiles_destroy(&sides);
    open_sides(SLC_HYBRID_STATIC, 0.37, 1, 1, 100, false);
    for (uint64_t k = 100; k-- > 0;) {
        CU_ASSERT_EQUAL(one(k, 1), seen[k]);
    }
    slc_hybrid_tiles_destroy(&sides);
}

/* With a queue, the device's places are filled first; every place has its own number. */
static void the_device_first(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_hybrid_tiles_report report;
    struct slc_hybrid_place place[5];
    unsigned seen[SLC_HYBRID_PARTS] = {0, 0};

    open_sides(SLC_HYBRID_QUEUE, 0, 2, 3, 100, true);
    for (unsigned k = 0; k < 5; k++) {
        SLC_ASSERT_OK(slc_hybrid_tiles_acquire(&sides, k, &place[k], &err), &err);
        CU_ASSERT_EQUAL(place[k].side, k < 3 ? SLC_HYBRID_GPU : SLC_HYBRID_CPU);
        seen[place[k].side] |= 1U << place[k].number;
    }
    CU_ASSERT(seen[SLC_HYBRID_GPU] == 7 && seen[SLC_HYBRID_CPU] == 3);
    slc_hybrid_tiles_release(&sides, &place[1]);
    CU_ASSERT_EQUAL(one(5, 1), SLC_HYBRID_GPU);
    slc_hybrid_tiles_report(&sides, &report);
    CU_ASSERT(report.fraction < 0 && report.tiles[SLC_HYBRID_GPU] == 1);
    slc_hybrid_tiles_destroy(&sides);
}

/* The device needs a third of the time: after a tenth of the tiles it gets three quarters. */
static void a_tenth_is_measured(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_hybrid_tiles_report report;
    struct slc_hybrid_place place[2];
    uint64_t device = 0;

    open_sides(SLC_HYBRID_ADAPTIVE, 0, 1, 1, 100, true);
    for (uint64_t k = 0; k < 10; k += 2) {
        for (unsigned i = 0; i < 2; i++) {
            SLC_ASSERT_OK(slc_hybrid_tiles_acquire(&sides, k + i, &place[i], &err), &err);
        }
        for (unsigned i = 0; i < 2; i++) {
            slc_hybrid_tiles_computed(&sides, &place[i], 1000, i == 0 ? 100 : 300);
            slc_hybrid_tiles_release(&sides, &place[i]);
        }
    }
    slc_hybrid_tiles_report(&sides, &report);
    CU_ASSERT(report.fraction < 0);
    for (uint64_t k = 10; k < 90; k++) {
        device += one(k, 7) == SLC_HYBRID_GPU;
    }
    CU_ASSERT(device == 59 || device == 60); /* the fraction is 0.75 up to rounding */
    slc_hybrid_tiles_report(&sides, &report);
    CU_ASSERT(report.fraction > 0.75 - 1e-9 && report.fraction < 0.75 + 1e-9);
    slc_hybrid_tiles_destroy(&sides);
}

/* A side without measurements gets no tiles by a fraction. */
static void one_side_is_not_measured(void)
{
    open_sides(SLC_HYBRID_ADAPTIVE, 0, 1, 1, 20, false);
    for (uint64_t k = 0; k < 20; k++) {
        CU_ASSERT_EQUAL(one(k, 5), SLC_HYBRID_GPU);
    }
    slc_hybrid_tiles_destroy(&sides);
}

struct waiting {
    pthread_t thread;
    uint64_t ordinal;
    enum slc_status status;
};

/* Acquires a place, holds it until all earlier tiles have released theirs, and releases it. */
static uint64_t passed;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER;

static void *hold_in_order(void *context)
{
    struct waiting *waiting = context;
    struct slc_hybrid_place place;

    waiting->status = slc_hybrid_tiles_acquire(&sides, waiting->ordinal, &place, NULL);
    if (waiting->status != SLC_OK) {
        return NULL;
    }
    pthread_mutex_lock(&mutex);
    while (passed != waiting->ordinal) {
        pthread_cond_wait(&moved, &mutex);
    }
    passed++;
    pthread_cond_broadcast(&moved);
    pthread_mutex_unlock(&mutex);
    slc_hybrid_tiles_release(&sides, &place);
    return NULL;
}

/* Started in reverse order, with fewer places than tiles, each held until the earlier tiles are
 * done. */
static void no_thread_waits_forever(void)
{
    static const double fractions[] = {0, 0.5, 1};

    for (size_t i = 0; i < SLC_COUNT(fractions); i++) {
        struct waiting waiting[12];

        passed = 0;
        open_sides(SLC_HYBRID_STATIC, fractions[i], 2, 2, SLC_COUNT(waiting), true);
        for (unsigned w = 0; w < SLC_COUNT(waiting); w++) {
            waiting[w].ordinal = SLC_COUNT(waiting) - 1 - w;
            CU_ASSERT_EQUAL_FATAL(
                pthread_create(&waiting[w].thread, NULL, hold_in_order, &waiting[w]), 0);
        }
        for (unsigned w = 0; w < SLC_COUNT(waiting); w++) {
            CU_ASSERT_EQUAL(pthread_join(waiting[w].thread, NULL), 0);
            CU_ASSERT_EQUAL(waiting[w].status, SLC_OK);
        }
        slc_hybrid_tiles_destroy(&sides);
    }
}

/* An abort wakes all waiters: for an earlier tile, for any place, and for a place of one side. */
static void an_abort_wakes(void)
{
    for (unsigned i = 0; i < 3; i++) {
        struct slc_error err = SLC_ERROR_INIT;
        struct waiting waiting = {.ordinal = i == 0 ? 7 : 1};
        struct slc_hybrid_place place;

        open_sides(i == 2 ? SLC_HYBRID_STATIC : SLC_HYBRID_QUEUE, 1, 0, 1, 10, true);
        SLC_ASSERT_OK(slc_hybrid_tiles_acquire(&sides, 0, &place, &err), &err);
        CU_ASSERT_EQUAL_FATAL(pthread_create(&waiting.thread, NULL, hold_in_order, &waiting), 0);
        (void)usleep(2000);
        slc_hybrid_tiles_abort(&sides);
        CU_ASSERT_EQUAL(pthread_join(waiting.thread, NULL), 0);
        CU_ASSERT_EQUAL(waiting.status, SLC_ERR_INTERRUPTED);
        slc_hybrid_tiles_release(&sides, &place);
        SLC_ASSERT_FAILS(slc_hybrid_tiles_acquire(&sides, 1, &place, &err), SLC_ERR_INTERRUPTED,
                         &err, "stopped");
        slc_hybrid_tiles_destroy(&sides);
    }
}

static const struct slc_test tests[] = {
    {"a fraction divides evenly", a_fraction_divides},
    {"ordinals decide", ordinals_decide},
    {"the device first", the_device_first},
    {"a tenth is measured", a_tenth_is_measured},
    {"one side is not measured", one_side_is_not_measured},
    {"no thread waits forever", no_thread_waits_forever},
    {"an abort wakes", an_abort_wakes},
};

SLC_SUITE(hybrid_tiles)
{
    return slc_test_main("sides", tests, SLC_COUNT(tests), argc, argv);
}
