/* Describes the machine: processors, their cores and NUMA nodes, and cache sizes.
 *
 * In builds with hwloc, cores and nodes come from hwloc. In other builds every processor counts as
 * a core, and all processors are on one node. Cache sizes never come from hwloc, so results that
 * depend on cache sizes do not depend on hwloc. */
#ifndef SLC_BASE_TOPOLOGY_H
#define SLC_BASE_TOPOLOGY_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    SLC_CACHE_LEVELS = 3,
    SLC_MAX_NODES = 64 /* maximum number of nodes; a machine with more nodes counts as one node */
};

struct slc_processor {
    uint16_t number; /* system number */
    uint16_t core;   /* a number that identifies the core of the processor */
    uint16_t node;   /* system number of the NUMA node with the nearest memory */
};

/* Processors of a core are adjacent in the list. With hwloc, processors that share a cache and
 * processors of a node are also adjacent. */
struct slc_topology {
    unsigned processor_count;
    unsigned core_count;
    unsigned node_count;
    struct slc_processor processors[CPU_SETSIZE];
};

/* Returns the topology of the machine or container, which is read once and kept. Threads: any. */
const struct slc_topology *slc_topology(void);

/* Reads the topology again. If HWLOC_SYNTHETIC or HWLOC_XMLFILE is in the environment, hwloc
 * describes the machine given there. */
void slc_topology_read(struct slc_topology *topology);

/* Removes processors that are not in `allowed`. */
void slc_topology_keep(struct slc_topology *topology, const cpu_set_t *allowed);

/* Stores the processors of slc_topology() that the calling thread may use. */
void slc_topology_allowed(struct slc_topology *topology);

/* Returns the size in bytes of the data or unified cache of level `level` (1 to SLC_CACHE_LEVELS)
 * of a processor; 0 if there is no such cache or its size is unknown. The sizes are read once and
 * kept. Threads: any. */
uint64_t slc_cache_bytes(unsigned level);

/* Fills in the processors that hwloc reports (numbers below CPU_SETSIZE), in the order of hwloc.
 * Returns false if hwloc fails. */
bool slc_topology_read_hwloc(struct slc_topology *topology);

#endif
