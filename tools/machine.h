/* What was found of the machine, for the records of runs and benchmarks. */
#ifndef SLC_TOOLS_MACHINE_H
#define SLC_TOOLS_MACHINE_H

#include <jansson.h>

/*
 * "processors" that this process may use, the "cores" and "numa_nodes" they belong to,
 * "cache_bytes" (one per level; 0: none, or unknown), "memory_bytes".
 */
json_t *machine_to_json(void);

#endif
