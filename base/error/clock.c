/*
 * Monotonic time. The system's clock is meant never to go back; where it does all the same (a
 * virtual machine that was moved, an emulator), differences of unsigned times would be centuries.
 * So what it has lost is added from then on, and time goes on from where it was.
 */
#include "base/error/clock.h"

#include <stdatomic.h>
#include <time.h>

/* Threads that have read the clock in one order may come here in another: only what is far more
 * than they can be kept apart is a jump. */
#define JUMP_NS UINT64_C(1000000000)
/* How far the time that all threads share may lag: rarely written, it stays in every cache. */
#define LAG_NS UINT64_C(10000)

static atomic_uint_fast64_t latest_ns; /* told so far, or a little less */
static atomic_uint_fast64_t lost_ns;   /* by the system's clock */
static _Thread_local uint64_t told_ns; /* to this thread: what is less than it lags by */

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
            told_ns = now > told_ns ? now : told_ns;
            return told_ns;
        }
        /* Whoever comes first adds it; the others look again. */
        (void)atomic_compare_exchange_strong(&lost_ns, &lost, lost + (latest - now));
    }
}

uint64_t slc_clock_thread_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}
