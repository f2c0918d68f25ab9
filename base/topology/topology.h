/*
 * What the machine is made of: processors, the cores and NUMA nodes they belong to, caches.
 *
 * Nodes and cores come from hwloc where built with it; without, every processor counts as a core
 * and all as one node. Cache sizes come from the system either way, so that what depends on them
 * does not depend on how sluice was built.
 */
#ifndef SLC_BASE_TOPOLOGY_H
#define SLC_BASE_TOPOLOGY_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    SLC_CACHE_LEVELS = 3,
    SLC_MAX_NODES = 64 /* a machine with more counts as one node */
};

struct slc_processor {
    uint16_t number; /* the system's */
    uint16_t core;   /* some number of its core */
    uint16_t node;   /* the system's number of the NUMA node whose memory is nearest */
};

/*
 * Processors that share a core stand together, and as far as hwloc knows also cores that share a
 * cache and cores of a node.
 */
struct slc_topology {
    unsigned processor_count;
    unsigned core_count;
    unsigned node_count;
    struct slc_processor processors[CPU_SETSIZE];
};

/* Everything the machine, or the container, has. Read once and kept. Any thread. */
const struct slc_topology *slc_topology(void);

/* The same, read now. hwloc's HWLOC_SYNTHETIC and HWLOC_XMLFILE put another machine in place. */
void slc_topology_read(struct slc_topology *topology);

/* Drops processors that are not in `allowed`. */
void slc_topology_keep(struct slc_topology *topology, const cpu_set_t *allowed);

/* What the calling thread may use of slc_topology(). */
void slc_topology_allowed(struct slc_topology *topology);

/*
 * Bytes of data (or unified) cache of `level` 1 .. SLC_CACHE_LEVELS that a processor sees; 0 where
 * there is none or the system does not say. Read once and kept. Any thread.
 */
uint64_t slc_cache_bytes(unsigned level);

/*
 * hwloc's part of slc_topology_read: fills in processors (numbers below CPU_SETSIZE), in order.
 * False where hwloc fails.
 */
bool slc_topology_read_hwloc(struct slc_topology *topology);

#endif
