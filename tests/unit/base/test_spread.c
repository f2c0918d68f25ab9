/* Workers that avoid each other's processors: which processor one chooses, and that it can
 * leave. */
#include "base/topology/spread.h"

#include "base/topology/affinity.h"
#include "slc_test.h"

#include <sched.h>
#include <string.h>

static void sit(struct slc_spread *spread, unsigned worker, unsigned processor)
{
    atomic_store(&spread->of_worker[worker], processor + 1);
}

/* Processors with these numbers, each its own core on one node. */
static void set_of(struct slc_topology *allowed, unsigned count, const uint16_t *numbers)
{
    memset(allowed, 0, sizeof *allowed);
    allowed->processor_count = count;
    for (unsigned i = 0; i < count; i++) {
        allowed->processors[i] =
            (struct slc_processor){.number = numbers[i], .core = (uint16_t)i, .node = 0};
    }
}

static void stays_on_free_processor(void)
{
    struct slc_topology allowed;
    struct slc_spread spread;

    set_of(&allowed, 3, (const uint16_t[]){0, 1, 7});
    memset(&spread, 0, sizeof spread);
    CU_ASSERT_EQUAL(slc_spread_choose(&spread, 1, 2, 0, &allowed), 0);
    sit(&spread, 0, 0);
    CU_ASSERT_EQUAL(slc_spread_choose(&spread, 1, 2, 7, &allowed), 7);
    /* Records of the worker's own processor, and of workers outside the job, do not count. */
    sit(&spread, 1, 7);
    sit(&spread, 2, 7);
    CU_ASSERT_EQUAL(slc_spread_choose(&spread, 1, 2, 7, &allowed), 7);
    /* The processor chosen by the system, even outside the mask. */
    CU_ASSERT_EQUAL(slc_spread_choose(&spread, 1, 2, 9, &allowed), 9);
}

static void evades_another_worker(void)
{
    struct slc_topology allowed;
    struct slc_spread spread;

    set_of(&allowed, 3, (const uint16_t[]){2, 5, 1000});
    memset(&spread, 0, sizeof spread);
    sit(&spread, 0, 2);
    CU_ASSERT_EQUAL(slc_spread_choose(&spread, 1, 4, 2, &allowed), 5);
    sit(&spread, 2, 5);
    CU_ASSERT_EQUAL(slc_spread_choose(&spread, 1, 4, 2, &allowed), 1000);
    sit(&spread, 3, 1000);
    CU_ASSERT_EQUAL(slc_spread_choose(&spread, 1, 4, 2, &allowed), 2);
    CU_ASSERT_EQUAL(slc_spread_choose(&spread, 1, 3, 2, &allowed), 1000);
    /* The worker is outside its mask, on the same processor as another worker. */
    sit(&spread, 0, 9);
    CU_ASSERT_EQUAL(slc_spread_choose(&spread, 1, 4, 9, &allowed), 2);
}

/* Two nodes of two cores of two hyperthreads, numbered consecutively. */
static void cores_before_hyperthreads(void)
{
    struct slc_topology allowed;
    struct slc_spread spread;

    memset(&allowed, 0, sizeof allowed);
    allowed.processor_count = 8;
    for (unsigned i = 0; i < 8; i++) {
        allowed.processors[i] = (struct slc_processor){
            .number = (uint16_t)i, .core = (uint16_t)(i / 2), .node = (uint16_t)(i / 4)};
    }
    memset(&spread, 0, sizeof spread);
    sit(&spread, 0, 4);
    CU_ASSERT_EQUAL(slc_spread_choose(&spread, 1, 8, 4, &allowed), 6); /* a core of its node */
    sit(&spread, 2, 6);
    CU_ASSERT_EQUAL(slc_spread_choose(&spread, 1, 8, 4, &allowed), 0); /* a core of another node */
    sit(&spread, 3, 1);
    sit(&spread, 4, 2);
    CU_ASSERT_EQUAL(slc_spread_choose(&spread, 1, 8, 4, &allowed), 5); /* next to another worker,
                                                                        * on its node */
    CU_ASSERT_EQUAL(slc_spread_choose(&spread, 1, 8, 2, &allowed), 0);
}

/* Uses the real system calls. All but one of the thread's processors have other workers. The thread
 * moves to the free processor, and keeps its original affinity. */
static void moves_without_binding(void)
{
    unsigned empty = CPU_SETSIZE, worker = 0, bound;
    struct slc_spread spread;
    cpu_set_t before, after;

    memset(&spread, 0, sizeof spread);
    CU_ASSERT_TRUE_FATAL(slc_thread_allowed(&before));
    for (unsigned p = 0; p < CPU_SETSIZE; p++) {
        if (CPU_ISSET(p, &before)) {
            if (empty < CPU_SETSIZE) {
                sit(&spread, worker++, empty);
            }
            empty = p;
        }
    }
    slc_spread_place_worker(&spread, worker, worker + 1);
    CU_ASSERT_EQUAL(atomic_load(&spread.of_worker[worker]), empty + 1);
    CU_ASSERT_FALSE(slc_thread_bound(&bound));
    CU_ASSERT_TRUE(slc_thread_allowed(&after) && CPU_EQUAL(&before, &after));
}

static void the_caller_stays(void)
{
    struct slc_spread spread;
    unsigned bound;
    cpu_set_t allowed;

    memset(&spread, 0, sizeof spread);
    CU_ASSERT_TRUE_FATAL(slc_thread_allowed(&allowed));
    for (unsigned p = 0; p < SLC_MAX_THREADS - 1 && p < CPU_SETSIZE; p++) {
        sit(&spread, 1 + p, p);
    }
    slc_spread_place_worker(&spread, 0, SLC_MAX_THREADS);
    CU_ASSERT_FALSE(slc_thread_bound(&bound));
    CU_ASSERT_TRUE(atomic_load(&spread.of_worker[0]) > 0 &&
                   CPU_ISSET(atomic_load(&spread.of_worker[0]) - 1, &allowed));
}

static const struct slc_test tests[] = {
    {"stays on a free processor", stays_on_free_processor},
    {"evades another worker", evades_another_worker},
    {"cores before hyperthreads", cores_before_hyperthreads},
    {"moves without binding", moves_without_binding},
    {"the caller stays", the_caller_stays},
};

SLC_SUITE(spread)
{
    return slc_test_main("spread", tests, SLC_COUNT(tests), argc, argv);
}
