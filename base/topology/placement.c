/* Assigns workers to processors and shared memory to NUMA nodes. */
#include "base/topology/placement.h"

#include "base/error/log.h"

#include <assert.h>
#include <errno.h>
#include <linux/mempolicy.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *const pin_names[] = {"auto", "never", "always"};

static _Thread_local const struct slc_placement *current;
static _Thread_local bool entered;

const char *slc_pin_name(enum slc_pin pin)
{
    return pin_names[pin];
}

bool slc_pin_parse(const char *name, enum slc_pin *pin)
{
    for (unsigned i = 0; i < sizeof pin_names / sizeof pin_names[0]; i++) {
        if (strcmp(name, pin_names[i]) == 0) {
            *pin = (enum slc_pin)i;
            return true;
        }
    }
    return false;
}

/* State of slc_placement_make. The rank of a processor is the number of earlier processors of its
 * core. */
struct layout {
    const struct slc_topology *topology;
    uint8_t rank[CPU_SETSIZE]; /* per processor: its rank */
    uint8_t node[CPU_SETSIZE]; /* per processor: index of its node in the placement */
    bool taken[CPU_SETSIZE];   /* per processor: true if it has a worker */
    /* per node: number of processors of the ranks considered so far */
    unsigned capacity[SLC_MAX_NODES];
    unsigned workers[SLC_MAX_NODES];
};

static void find_ranks(struct layout *layout)
{
    const struct slc_processor *processors = layout->topology->processors;

    for (unsigned i = 1; i < layout->topology->processor_count; i++) {
        if (processors[i].core == processors[i - 1].core) {
            layout->rank[i] = (uint8_t)(layout->rank[i - 1] + 1);
        }
    }
}

static void find_nodes(struct layout *layout, struct slc_placement *placement)
{
    for (unsigned i = 0; i < layout->topology->processor_count; i++) {
        const uint16_t number = layout->topology->processors[i].node;
        unsigned n = 0;

        while (n < placement->node_count && placement->node[n] != number) {
            n++;
        }
        if (n == placement->node_count) {
            placement->node[placement->node_count++] = number;
        }
        layout->node[i] = (uint8_t)n;
    }
}

/* Counts the processors of a node that have the given rank. */
static unsigned count_rank(const struct layout *layout, unsigned node, unsigned rank)
{
    unsigned count = 0;

    for (unsigned i = 0; i < layout->topology->processor_count; i++) {
        count += layout->node[i] == node && layout->rank[i] == rank;
    }
    return count;
}

/* Assigns up to `left` workers, each to the node with the fewest workers among the nodes with a
 * free processor. Returns the number of workers that remain. */
static unsigned assign_workers(struct layout *layout, unsigned node_count, unsigned left)
{
    while (left > 0) {
        unsigned least = node_count;

        for (unsigned n = 0; n < node_count; n++) {
            if (layout->workers[n] < layout->capacity[n] &&
                (least == node_count || layout->workers[n] < layout->workers[least])) {
                least = n;
            }
        }
        if (least == node_count) {
            break;
        }
        layout->workers[least]++;
        left--;
    }
    return left;
}

/* Assigns workers to `wanted` evenly spaced ones of a node's `count` processors of this rank. */
static void
choose_evenly(struct layout *layout, unsigned node, unsigned rank, unsigned wanted, unsigned count)
{
    unsigned nth = 0;

    for (unsigned i = 0; i < layout->topology->processor_count; i++) {
        if (layout->node[i] == node && layout->rank[i] == rank) {
            layout->taken[i] = nth * wanted % count < wanted;
            nth++;
        }
    }
}

static void choose_processors(struct layout *layout, unsigned node)
{
    unsigned left = layout->workers[node];

    for (unsigned rank = 0; left > 0; rank++) {
        const unsigned count = count_rank(layout, node, rank);
        const unsigned wanted = left < count ? left : count;

        choose_evenly(layout, node, rank, wanted, count);
        left -= wanted;
    }
}

/* Numbers the workers node by node, in the order of processors in the topology. */
static void number_workers(const struct layout *layout, struct slc_placement *placement)
{
    unsigned nodes = 0;

    placement->workers = 0;
    for (unsigned n = 0; n < placement->node_count; n++) {
        if (layout->workers[n] == 0) {
            continue;
        }
        placement->node[nodes] = placement->node[n];
        placement->first_worker[nodes++] = (uint16_t)placement->workers;
        for (unsigned i = 0; i < layout->topology->processor_count; i++) {
            if (layout->taken[i] && layout->node[i] == n) {
                placement->processor[placement->workers++] = layout->topology->processors[i].number;
            }
        }
    }
    placement->node_count = nodes;
    placement->first_worker[nodes] = (uint16_t)placement->workers;
}

void slc_placement_make(struct slc_placement *placement,
                        const struct slc_topology *topology,
                        unsigned workers)
{
    struct layout layout = {.topology = topology};
    unsigned left = workers;

    assert(workers >= 1 && workers <= topology->processor_count);
    memset(placement, 0, sizeof *placement);
    find_ranks(&layout);
    find_nodes(&layout, placement);
    for (unsigned rank = 0; left > 0; rank++) {
        for (unsigned n = 0; n < placement->node_count; n++) {
            layout.capacity[n] += count_rank(&layout, n, rank);
        }
        left = assign_workers(&layout, placement->node_count, left);
    }
    for (unsigned n = 0; n < placement->node_count; n++) {
        choose_processors(&layout, n);
    }
    number_workers(&layout, placement);
    assert(placement->workers == workers);
}

void slc_placement_choose(struct slc_placement *placement, enum slc_pin pin, unsigned workers)
{
    struct slc_topology topology;

    memset(placement, 0, sizeof *placement);
    /* A single worker is bound only with SLC_PIN_ALWAYS; otherwise it may use any processor. */
    if (workers == 0 || pin == SLC_PIN_NEVER || (pin == SLC_PIN_AUTO && workers == 1)) {
        return;
    }
    slc_topology_allowed(&topology);
    if (workers > topology.processor_count) {
        slc_log(SLC_LOG_DETAIL, "%u threads are not pinned: only %u processors are available",
                workers, topology.processor_count);
        return;
    }
    if (pin == SLC_PIN_ALWAYS || (topology.node_count > 1 && workers >= topology.core_count)) {
        slc_placement_make(placement, &topology, workers);
    }
}

void slc_placement_enter(const struct slc_placement *placement)
{
    current = placement->workers > 0 ? placement : NULL;
    entered = true;
}

void slc_placement_leave(void)
{
    current = NULL;
    entered = false;
}

bool slc_placement_entered(void)
{
    return entered;
}

const struct slc_placement *slc_placement_of_team(unsigned workers)
{
    /* A team of one worker is not bound: its work is usually too small to divide. */
    const bool placed =
        current != NULL && workers <= current->workers && (workers > 1 || current->workers == 1);

    return placed ? current : NULL;
}

void slc_buffer_spread(const struct slc_buffer *buffer)
{
    static atomic_flag logged = ATOMIC_FLAG_INIT;
    unsigned long nodes = 0;

    _Static_assert(SLC_MAX_NODES <= 8 * sizeof nodes, "a mask of nodes is one word");
    if (current == NULL || current->node_count < 2 || buffer->bytes == 0) {
        return;
    }
    for (unsigned n = 0; n < current->node_count; n++) {
        nodes |= 1UL << current->node[n];
    }
    /* mbind reads one bit less than the number of bits that it is passed. */
    if (syscall(SYS_mbind, buffer->data, buffer->bytes, MPOL_INTERLEAVE, &nodes,
                8 * sizeof nodes + 1, 0) != 0 &&
        !atomic_flag_test_and_set(&logged)) {
        slc_log(SLC_LOG_DETAIL,
                "cannot spread memory over %u NUMA nodes, so pages are on the node that "
                "touches them first: %s",
                current->node_count, strerror(errno));
    }
}
