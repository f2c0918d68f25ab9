/* Assigns processors to the workers of a team, and NUMA nodes to shared memory.
 *
 * While a thread has a current placement (slc_placement_enter), its teams follow the placement.
 * Worker w is bound to processor[w] while the team runs. The ranges of loops are assigned node by
 * node (base/thread/team.h), and large shared buffers are spread over the nodes. Memory that a
 * single worker fills needs no placement: the system allocates it on the node of the thread that
 * first writes it.
 *
 * Threads that read or write files, and threads of a conversion, are never bound: these threads
 * mostly sleep, and the system finds an idle processor for them. */
#ifndef SLC_BASE_PLACEMENT_H
#define SLC_BASE_PLACEMENT_H

#include "base/memory/limits.h"
#include "base/memory/memory.h"
#include "base/topology/topology.h"

#include <stdbool.h>
#include <stdint.h>

/* States when workers are bound. A bound thread cannot leave its processor if another program uses
 * it, so one busy processor can delay all workers. An unbound thread may run on a node that does
 * not hold its memory. */
enum slc_pin {
    SLC_PIN_AUTO, /* ALWAYS if there are several NUMA nodes and a worker per core, else NEVER */
    SLC_PIN_NEVER,
    SLC_PIN_ALWAYS /* bound unless there are more workers than processors */
};
const char *slc_pin_name(enum slc_pin pin); /* "auto", "never", "always" */
bool slc_pin_parse(const char *name, enum slc_pin *pin);

/* Workers are numbered node by node, so that adjacent workers share caches and memory. */
struct slc_placement {
    unsigned workers; /* 0 means no placement */
    unsigned node_count;
    uint16_t node[SLC_MAX_NODES]; /* system number of each node */
    uint16_t first_worker[SLC_MAX_NODES + 1];
    uint16_t processor[SLC_MAX_THREADS]; /* processor of each worker */
};

/* Makes a placement of `workers` workers. No core has two workers while another core has none.
 * Workers are distributed evenly over the nodes as far as the nodes have enough processors, and
 * evenly spaced over the processors of a node. Needs: 1 <= workers <= topology->processor_count. */
void slc_placement_make(struct slc_placement *placement,
                        const struct slc_topology *topology,
                        unsigned workers);

/* Makes a placement of `workers` workers on the processors that the calling thread may use, or an
 * empty placement if workers are not bound (enum slc_pin). */
void slc_placement_choose(struct slc_placement *placement, enum slc_pin pin, unsigned workers);

/* Makes a placement current for the calling thread until slc_placement_leave. The placement is
 * borrowed. With an empty placement, no worker is bound. */
void slc_placement_enter(const struct slc_placement *placement);
void slc_placement_leave(void);
/* Returns whether the calling thread is between slc_placement_enter and slc_placement_leave. */
bool slc_placement_entered(void);
/* Returns the current placement if a team of `workers` workers follows it, otherwise NULL. */
const struct slc_placement *slc_placement_of_team(unsigned workers);

/* Spreads the pages of a buffer that all workers use over the nodes of the current placement. Pages
 * that were already touched stay. If the system refuses, which is not an error, each page is on the
 * node of the thread that first touches it. Does nothing on a single node. */
void slc_buffer_spread(const struct slc_buffer *buffer);

#endif
