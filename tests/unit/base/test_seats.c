/* Workers that keep out of each other's way: which processor one goes to, and that it can leave. */
#include "base/seats.h"

#include "base/affinity.h"
#include "slc_test.h"

#include <string.h>

static void sit(struct slc_seats *seats, unsigned worker, unsigned processor)
{
    atomic_store(&seats->of_worker[worker], processor + 1);
}

static cpu_set_t set_of(unsigned count, const unsigned *processors)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    for (unsigned i = 0; i < count; i++) {
        CPU_SET(processors[i], &set);
    }
    return set;
}

static void stays_where_nobody_sits(void)
{
    const cpu_set_t allowed = set_of(3, (const unsigned[]){0, 1, 7});
    struct slc_seats seats;

    memset(&seats, 0, sizeof seats);
    CU_ASSERT_EQUAL(slc_seat_choose(&seats, 1, 2, 0, &allowed), 0);
    sit(&seats, 0, 0);
    CU_ASSERT_EQUAL(slc_seat_choose(&seats, 1, 2, 7, &allowed), 7);
    /* Its own seat, and those of workers that the job does not have. */
    sit(&seats, 1, 7);
    sit(&seats, 2, 7);
    CU_ASSERT_EQUAL(slc_seat_choose(&seats, 1, 2, 7, &allowed), 7);
    /* Where the system put it, even outside the mask. */
    CU_ASSERT_EQUAL(slc_seat_choose(&seats, 1, 2, 9, &allowed), 9);
}

static void evades_another_worker(void)
{
    const cpu_set_t allowed = set_of(3, (const unsigned[]){2, 5, 1000});
    struct slc_seats seats;

    memset(&seats, 0, sizeof seats);
    sit(&seats, 0, 2);
    CU_ASSERT_EQUAL(slc_seat_choose(&seats, 1, 4, 2, &allowed), 5);
    sit(&seats, 2, 5);
    CU_ASSERT_EQUAL(slc_seat_choose(&seats, 1, 4, 2, &allowed), 1000);
    sit(&seats, 3, 1000);
    CU_ASSERT_EQUAL(slc_seat_choose(&seats, 1, 4, 2, &allowed), 2);
    CU_ASSERT_EQUAL(slc_seat_choose(&seats, 1, 3, 2, &allowed), 1000);
}

/*
 * With the real calls: wherever the thread may be there is another worker, but for one processor.
 * It goes there, and may run where it could before.
 */
static void moves_without_binding(void)
{
    unsigned empty = CPU_SETSIZE, worker = 0, bound;
    struct slc_seats seats;
    cpu_set_t before, after;

    memset(&seats, 0, sizeof seats);
    CU_ASSERT_TRUE_FATAL(slc_thread_allowed(&before));
    for (unsigned p = 0; p < CPU_SETSIZE; p++) {
        if (CPU_ISSET(p, &before)) {
            if (empty < CPU_SETSIZE) {
                sit(&seats, worker++, empty);
            }
            empty = p;
        }
    }
    slc_seat_take(&seats, worker, worker + 1);
    CU_ASSERT_EQUAL(atomic_load(&seats.of_worker[worker]), empty + 1);
    CU_ASSERT_FALSE(slc_thread_bound(&bound));
    CU_ASSERT_TRUE(slc_thread_allowed(&after) && CPU_EQUAL(&before, &after));
}

static void the_caller_stays(void)
{
    struct slc_seats seats;
    unsigned bound;
    cpu_set_t allowed;

    memset(&seats, 0, sizeof seats);
    CU_ASSERT_TRUE_FATAL(slc_thread_allowed(&allowed));
    for (unsigned p = 0; p < SLC_MAX_THREADS - 1 && p < CPU_SETSIZE; p++) {
        sit(&seats, 1 + p, p);
    }
    slc_seat_take(&seats, 0, SLC_MAX_THREADS);
    CU_ASSERT_FALSE(slc_thread_bound(&bound));
    CU_ASSERT_TRUE(atomic_load(&seats.of_worker[0]) > 0 &&
                   CPU_ISSET(atomic_load(&seats.of_worker[0]) - 1, &allowed));
}

static const struct slc_test tests[] = {
    {"stays where nobody sits", stays_where_nobody_sits},
    {"evades another worker", evades_another_worker},
    {"moves without binding", moves_without_binding},
    {"the caller stays", the_caller_stays},
};

int main(int argc, char **argv)
{
    return slc_test_main("seats", tests, SLC_COUNT(tests), argc, argv);
}
