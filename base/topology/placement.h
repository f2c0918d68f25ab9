/*
 * Where the workers of a team run, and where the memory they share lies.
 *
 * A thread that makes a placement current (slc_placement_enter) has its teams run by it: worker w
 * bound to processor[w] while the team runs, ranges handed out node by node (base/thread/team.h),
 * and large shared buffers spread over the nodes. Memory that one worker alone fills needs nothing:
 * the system takes it from the node of the thread that first writes it.
 *
 * Threads that read or write files, and those of a conversion, are never bound: they sleep most of
 * the time, and the system finds an idle processor for them.
 */
#ifndef SLC_BASE_PLACEMENT_H
#define SLC_BASE_PLACEMENT_H

#include "base/memory/limits.h"
#include "base/memory/memory.h"
#include "base/topology/topology.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Whether workers are bound. A bound thread does not evade another program on its processor, so
 * that one busy processor of many stops all; an unbound one may end up far from its memory.
 */
enum slc_pin {
    SLC_PIN_AUTO, /* where there are several NUMA nodes, and a worker for every core */
    SLC_PIN_NEVER,
    SLC_PIN_ALWAYS /* but for more workers than processors */
};
const char *slc_pin_name(enum slc_pin pin); /* "auto", "never", "always" */
bool slc_pin_parse(const char *name, enum slc_pin *pin);

/* Workers are numbered node by node, so that neighbours share caches and their node's memory. */
struct slc_placement {
    unsigned workers; /* 0: left to the system */
    unsigned node_count;
    uint16_t node[SLC_MAX_NODES]; /* the system's numbers */
    uint16_t first_worker[SLC_MAX_NODES + 1];
    uint16_t processor[SLC_MAX_THREADS]; /* of each worker */
};

/*
 * One worker on every core before the second on any, over the nodes as evenly as their processors
 * allow, within a node as far apart as there is room. Needs: 1 <= workers <=
 * topology->processor_count.
 */
void slc_placement_make(struct slc_placement *placement,
                        const struct slc_topology *topology,
                        unsigned workers);

/* Places `workers` on what the calling thread may use, or leaves them to the system. */
void slc_placement_choose(struct slc_placement *placement, enum slc_pin pin, unsigned workers);

/*
 * Makes a placement the calling thread's, until slc_placement_leave. Borrowed. One that leaves
 * workers to the system is the same as none.
 */
void slc_placement_enter(const struct slc_placement *placement);
void slc_placement_leave(void);
/* Whether the calling thread is between the two. */
bool slc_placement_entered(void);
/* The calling thread's for a team of so many; NULL: left to the system. */
const struct slc_placement *slc_placement_of_team(unsigned workers);

/*
 * Spreads the pages of a buffer that all workers read and write over the nodes of the calling
 * thread's placement, as far as they have not been touched yet. Where the system refuses they lie
 * where they are first touched: no error. On one node nothing is done.
 */
void slc_buffer_spread(const struct slc_buffer *buffer);

#endif
