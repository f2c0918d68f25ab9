/* Monotonic time. CLOCK_MONOTONIC should never decrease, but it does on emulators and on virtual
 * machines that were moved to another host. The unsigned difference of two times would then be
 * centuries. Therefore the size of each backward jump is added to all later times, so that time
 * continues from the last value returned. */
#include "base/error/clock.h"

#include <stdatomic.h>
#include <time.h>

/* Minimum size of a backward jump. Two threads may compare their times in the reverse order of
 * their clock reads; such differences are much smaller. */
#define JUMP_NS UINT64_C(1000000000)
/* Maximum lag of latest_ns, the time that threads share. Because of the large lag threads rarely
 * write latest_ns, so that it stays in the caches of all processors. */
#define LAG_NS UINT64_C(10000)

static atomic_uint_fast64_t latest_ns; /* latest time returned, minus at most LAG_NS */
static atomic_uint_fast64_t lost_ns;   /* sum of the backward jumps of CLOCK_MONOTONIC */
/* Latest time returned to this thread. A new time that is smaller by at most LAG_NS is raised to
 * it. */
static _Thread_local uint64_t returned_ns;

uint64_t slc_clock_ns(void)
{
    struct timespec read;

    /* clock_gettime cannot fail for CLOCK_MONOTONIC and a valid pointer. */
    (void)clock_gettime(CLOCK_MONOTONIC, &read);
    uint64_t system_ns = (uint64_t)read.tv_sec * UINT64_C(1000000000) + (uint64_t)read.tv_nsec;
    for (;;) {
        const uint64_t latest = atomic_load_explicit(&latest_ns, memory_order_relaxed);
        uint_fast64_t lost = atomic_load(&lost_ns);
        uint64_t now = system_ns + lost;

        if (now > latest + LAG_NS) {
            atomic_store_explicit(&latest_ns, now, memory_order_relaxed);
        }
        if (now + JUMP_NS >= latest) {
            now = now > latest ? now : latest;
            returned_ns = now > returned_ns ? now : returned_ns;
            return returned_ns;
        }
        /* If several threads detect the jump, only one of them adds it to lost_ns. All of them
         * compute the time again. */
        (void)atomic_compare_exchange_strong(&lost_ns, &lost, lost + (latest - now));
    }
}

uint64_t slc_clock_thread_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}
