/*
 * Monotonic time. CLOCK_MONOTONIC should never go back, but goes back on emulators and on virtual
 * machines that were moved. The difference of two unsigned times would then be centuries. The size
 * of a backward jump is therefore added to all later times, so that time continues from the last
 * value returned.
 */
#include "base/error/clock.h"

#include <stdatomic.h>
#include <time.h>

/* Threads may arrive here in another order than they read the clock: only a step back that is much
 * longer than such delays counts as a jump. */
#define JUMP_NS UINT64_C(1000000000)
/* Maximum lag of the time that threads share. A large lag means that the time is written rarely and
 * stays in all caches. */
#define LAG_NS UINT64_C(10000)

static atomic_uint_fast64_t latest_ns; /* latest time returned, minus at most LAG_NS */
static atomic_uint_fast64_t lost_ns;   /* sum of the backward jumps of the system's clock */
/* Latest time returned to this thread. A smaller time that is within LAG_NS is raised to this
 * time. */
static _Thread_local uint64_t returned_ns;

uint64_t slc_clock_ns(void)
{
    struct timespec read;

    /* Cannot fail for CLOCK_MONOTONIC and a valid pointer. */
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
        /* The first thread adds the jump; the other threads read the clock again. */
        (void)atomic_compare_exchange_strong(&lost_ns, &lost, lost + (latest - now));
    }
}

uint64_t slc_clock_thread_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}
