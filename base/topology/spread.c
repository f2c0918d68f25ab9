/* Keeps unbound workers of a team on different processors. */
#include "base/topology/spread.h"

#include "base/topology/affinity.h"

#include <sched.h>
#include <stdbool.h>

static unsigned place_of(const struct slc_spread *spread, unsigned worker)
{
    return atomic_load_explicit(&spread->of_worker[worker], memory_order_relaxed);
}

/* Returns whether another worker is on `processor`. */
static bool
is_taken(const struct slc_spread *spread, unsigned worker, unsigned workers, unsigned processor)
{
    for (unsigned k = 0; k < workers; k++) {
        if (k != worker && place_of(spread, k) == processor + 1) {
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

/* Returns whether another worker is on the core of `processor`. */
static bool shares_core(const struct slc_spread *spread,
                        unsigned worker,
                        unsigned workers,
                        const struct slc_topology *allowed,
                        const struct slc_processor *processor)
{
    for (unsigned i = 0; i < allowed->processor_count; i++) {
        const struct slc_processor *mate = &allowed->processors[i];

        if (mate->core == processor->core && mate->node == processor->node &&
            is_taken(spread, worker, workers, mate->number)) {
            return true;
        }
    }
    return false;
}

unsigned slc_spread_choose(const struct slc_spread *spread,
                           unsigned worker,
                           unsigned workers,
                           unsigned here,
                           const struct slc_topology *allowed)
{
    const struct slc_processor *home = find_processor(allowed, here);
    unsigned best = here;
    unsigned least = 4; /* smallest penalty so far; at first larger than any penalty */

    if (!is_taken(spread, worker, workers, here)) {
        return here;
    }
    for (unsigned i = 0; i < allowed->processor_count && least > 0; i++) {
        const struct slc_processor *processor = &allowed->processors[i];

        if (is_taken(spread, worker, workers, processor->number)) {
            continue;
        }
        unsigned against = 2U * shares_core(spread, worker, workers, allowed, processor) +
                           (home != NULL && processor->node != home->node);
        if (against < least) {
            least = against;
            best = processor->number;
        }
    }
    return best;
}

/* Moves the calling thread to a processor without a worker, if there is such a processor. Returns
 * the processor on which the thread now runs. */
static unsigned move_to_free_processor(const struct slc_spread *spread,
                                       unsigned worker,
                                       unsigned workers,
                                       unsigned here)
{
    struct slc_topology allowed;

    slc_topology_allowed(&allowed);
    unsigned place = slc_spread_choose(spread, worker, workers, here, &allowed);
    if (place != here) {
        slc_thread_move(place);
    }
    return place;
}

void slc_spread_place_worker(struct slc_spread *spread, unsigned worker, unsigned workers)
{
    const int here = sched_getcpu();
    unsigned place = (unsigned)here;

    if (here < 0) {
        return;
    }
    if (worker > 0 && is_taken(spread, worker, workers, place)) {
        place = move_to_free_processor(spread, worker, workers, place);
    }
    atomic_store_explicit(&spread->of_worker[worker], place + 1, memory_order_relaxed);
}
