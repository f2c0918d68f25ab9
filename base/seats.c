/* Workers that keep out of each other's way; see seats.h. */
#include "base/seats.h"

#include "base/affinity.h"

#include <stdbool.h>

/* Whether the seat of a worker other than `worker` is on `processor`. */
static bool
is_taken(const struct slc_seats *seats, unsigned worker, unsigned workers, unsigned processor)
{
    for (unsigned k = 0; k < workers; k++) {
        if (k != worker &&
            atomic_load_explicit(&seats->of_worker[k], memory_order_relaxed) == processor + 1) {
            return true;
        }
    }
    return false;
}

unsigned slc_seat_choose(const struct slc_seats *seats,
                         unsigned worker,
                         unsigned workers,
                         unsigned here,
                         const cpu_set_t *allowed)
{
    if (!is_taken(seats, worker, workers, here)) {
        return here;
    }
    for (unsigned processor = 0; processor < CPU_SETSIZE; processor++) {
        if (CPU_ISSET(processor, allowed) && !is_taken(seats, worker, workers, processor)) {
            return processor;
        }
    }
    return here;
}

void slc_seat_take(struct slc_seats *seats, unsigned worker, unsigned workers)
{
    const int here = sched_getcpu();
    unsigned seat = (unsigned)here;
    cpu_set_t allowed;

    if (here < 0) {
        return;
    }
    if (worker > 0 && is_taken(seats, worker, workers, seat) && slc_thread_allowed(&allowed)) {
        seat = slc_seat_choose(seats, worker, workers, seat, &allowed);
        if (seat != (unsigned)here) {
            slc_thread_bind(seat);
            slc_thread_unbind();
        }
    }
    atomic_store_explicit(&seats->of_worker[worker], seat + 1, memory_order_relaxed);
}
