/* The machine as JSON; see machine.h. */
#include "machine.h"

#include "base/memory.h"
#include "base/topology.h"

json_t *machine_to_json(void)
{
    json_t *caches = json_array();
    struct slc_topology topology;

    slc_topology_allowed(&topology);
    for (unsigned level = 1; level <= SLC_CACHE_LEVELS; level++) {
        (void)json_array_append_new(caches, json_integer((json_int_t)slc_cache_bytes(level)));
    }
    return json_pack("{s:I, s:I, s:I, s:o, s:I}", "processors",
                     (json_int_t)topology.processor_count, "cores", (json_int_t)topology.core_count,
                     "numa_nodes", (json_int_t)topology.node_count, "cache_bytes", caches,
                     "memory_bytes", (json_int_t)slc_memory_total());
}
