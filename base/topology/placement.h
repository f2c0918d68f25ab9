/*
 * Assigns processors to the workers of a team, and NUMA nodes to shared memory.
 *
 * While a thread has a current placement (slc_placement_enter), the teams of the thread follow the
 * placement: worker w is bound to processor[w] while the team runs, ranges are assigned node by
 * node (base/thread/team.h), and large shared buffers are spread over the nodes. Memory that a
 * single worker fills needs no placement: the system allocates it on the node of the thread that
 * first writes it.
 *
 * Threads that read or write files, and threads of a conversion, are never bound: they mostly
 * sleep, and the system finds an idle processor for them.
 */
#ifndef SLC_BASE_PLACEMENT_H
#define SLC_BASE_PLACEMENT_H

#include "base/memory/limits.h"
#include "base/memory/memory.h"
#include "base/topology/topology.h"

#include <stdbool.h>
#include <stdint.h>

/* Whether workers are bound. A bound thread does not avoid another program on its processor, so one
 * busy processor can delay all workers. An unbound thread may run on another node than its
 * memory. */
enum slc_pin {
    SLC_PIN_AUTO, /* if there are several NUMA nodes and a worker for every core */
    SLC_PIN_NEVER,
    SLC_PIN_ALWAYS /* unless there are more workers than processors */
};
const char *slc_pin_name(enum slc_pin pin); /* "auto", "never", "always" */
bool slc_pin_parse(const char *name, enum slc_pin *pin);

/* Workers are numbered node by node, so that adjacent workers share caches and memory. */
struct slc_placement {
    unsigned workers; /* 0: no placement */
    unsigned node_count;
    uint16_t node[SLC_MAX_NODES]; /* system numbers */
    uint16_t first_worker[SLC_MAX_NODES + 1];
    uint16_t processor[SLC_MAX_THREADS]; /* of each worker */
};

/*
 * Places a worker on every core before it places a second worker on any core. Distributes the
 * workers evenly over the nodes as far as the nodes have enough processors, and far apart within a
 * node. Needs: 1 <= workers <= topology->processor_count.
 */
void slc_placement_make(struct slc_placement *placement,
                        const struct slc_topology *topology,
                        unsigned workers);

/* Places `workers` on the processors of the calling thread, or makes an empty placement. */
void slc_placement_choose(struct slc_placement *placement, enum slc_pin pin, unsigned workers);

/* Makes a placement current for the calling thread until slc_placement_leave. The placement is
 * borrowed. An empty placement has no effect on teams. */
void slc_placement_enter(const struct slc_placement *placement);
void slc_placement_leave(void);
/* Returns whether the calling thread is between slc_placement_enter and slc_placement_leave. */
bool slc_placement_entered(void);
/* Returns the current placement for a team of `workers`; NULL: none. */
const struct slc_placement *slc_placement_of_team(unsigned workers);

/*
 * Spreads the untouched pages of a buffer that all workers use over the nodes of the current
 * placement. On failure, which is not an error, each page is on the node of the thread that first
 * touches it. Does nothing on a single node.
 */
void slc_buffer_spread(const struct slc_buffer *buffer);

#endif
