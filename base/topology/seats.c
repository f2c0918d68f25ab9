/* Workers that keep out of each other's way; see seats.h. */
#include "base/topology/seats.h"

#include "base/topology/affinity.h"

#include <sched.h>
#include <stdbool.h>

static unsigned seat_of(const struct slc_seats *seats, unsigned worker)
{
    return atomic_load_explicit(&seats->of_worker[worker], memory_order_relaxed);
}

/* Whether the seat of a worker other than `worker` is on `processor`. */
static bool
is_taken(const struct slc_seats *seats, unsigned worker, unsigned workers, unsigned processor)
{
    for (unsigned k = 0; k < workers; k++) {
        if (k != worker && seat_of(seats, k) == processor + 1) {
            return true;
        }
    }
    return false;
}

static const struct slc_processor *find_processor(const struct slc_topology *topology,
                                                  unsigned number)
{
    for (unsigned i = 0; i < topology->processor_count; i++) {
        if (topology->processors[i].number == number) {
            return &topology->processors[i];
        }
    }
    return NULL;
}

/* Whether the seat of another worker is on the core of `processor`. */
static bool shares_core(const struct slc_seats *seats,
                        unsigned worker,
                        unsigned workers,
                        const struct slc_topology *allowed,
                        const struct slc_processor *processor)
{
    for (unsigned i = 0; i < allowed->processor_count; i++) {
        const struct slc_processor *mate = &allowed->processors[i];

        if (mate->core == processor->core && mate->node == processor->node &&
            is_taken(seats, worker, workers, mate->number)) {
            return true;
        }
    }
    return false;
}

unsigned slc_seat_choose(const struct slc_seats *seats,
                         unsigned worker,
                         unsigned workers,
                         unsigned here,
                         const struct slc_topology *allowed)
{
    const struct slc_processor *home = find_processor(allowed, here);
    unsigned best = here;
    unsigned least = 4; /* of what speaks against it: more than can */

    if (!is_taken(seats, worker, workers, here)) {
        return here;
    }
    for (unsigned i = 0; i < allowed->processor_count && least > 0; i++) {
        const struct slc_processor *processor = &allowed->processors[i];
        unsigned against;

        if (is_taken(seats, worker, workers, processor->number)) {
            continue;
        }
        against = 2U * shares_core(seats, worker, workers, allowed, processor) +
                  (home != NULL && processor->node != home->node);
        if (against < least) {
            least = against;
            best = processor->number;
        }
    }
    return best;
}

/* Leaves for a processor of its own, if there is one; returns where it is then. */
static unsigned
evade(const struct slc_seats *seats, unsigned worker, unsigned workers, unsigned here)
{
    struct slc_topology allowed;
    unsigned seat;

    slc_topology_allowed(&allowed);
    seat = slc_seat_choose(seats, worker, workers, here, &allowed);
    if (seat != here) {
        slc_thread_move(seat);
    }
    return seat;
}

void slc_seat_take(struct slc_seats *seats, unsigned worker, unsigned workers)
{
    const int here = sched_getcpu();
    unsigned seat = (unsigned)here;

    if (here < 0) {
        return;
    }
    if (worker > 0 && is_taken(seats, worker, workers, seat)) {
        seat = evade(seats, worker, workers, seat);
    }
    atomic_store_explicit(&seats->of_worker[worker], seat + 1, memory_order_relaxed);
}
