/* Reads the topology with hwloc. hwloc excludes processors and nodes that the cpuset of a container
 * forbids. */
#include "base/topology/topology.h"

#include <hwloc.h>

/* Returns the NUMA node nearest to a processor, or the first node if the nearest node may not be
 * used. */
static int node_of(hwloc_topology_t machine, hwloc_obj_t processor)
{
    const int nearest = hwloc_bitmap_first(processor->nodeset);

    return nearest >= 0 ? nearest : hwloc_bitmap_first(hwloc_get_root_obj(machine)->nodeset);
}

static bool load_machine(hwloc_topology_t machine)
{
    /* The filter removes only levels of the topology that group nothing. The other levels determine
     * the order of processors, and removing a level would also remove the nodes attached to it.
     * Cores are kept even if they have only one processor. */
    return hwloc_topology_set_all_types_filter(machine, HWLOC_TYPE_FILTER_KEEP_STRUCTURE) == 0 &&
           hwloc_topology_set_type_filter(machine, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL) ==
               0 &&
           hwloc_topology_load(machine) == 0;
}

/* Copies the processors in hwloc's order. Returns false for more than SLC_MAX_NODES nodes. */
static bool copy_processors(hwloc_topology_t machine, struct slc_topology *topology)
{
    bool known = true;

    for (hwloc_obj_t processor = hwloc_get_next_obj_by_type(machine, HWLOC_OBJ_PU, NULL);
         processor != NULL;
         processor = hwloc_get_next_obj_by_type(machine, HWLOC_OBJ_PU, processor)) {
        hwloc_obj_t core = hwloc_get_ancestor_obj_by_type(machine, HWLOC_OBJ_CORE, processor);
        const int node = node_of(machine, processor);

        if (processor->os_index >= CPU_SETSIZE || topology->processor_count == CPU_SETSIZE) {
            continue;
        }
        known = known && node < SLC_MAX_NODES;
        /* `core` is NULL on systems that provide no information about cores. */
        topology->processors[topology->processor_count++] = (struct slc_processor){
            .number = (uint16_t)processor->os_index,
            .core = (uint16_t)(core != NULL ? core->logical_index : processor->logical_index),
            .node = (uint16_t)(node > 0 ? node : 0)};
    }
    return known;
}

bool slc_topology_read_hwloc(struct slc_topology *topology)
{
    hwloc_topology_t machine;

    if (hwloc_topology_init(&machine) != 0) {
        return false;
    }
    if (!load_machine(machine)) {
        hwloc_topology_destroy(machine);
        return false;
    }
    bool known = copy_processors(machine, topology);
    for (unsigned i = 0; i < topology->processor_count && !known; i++) {
        topology->processors[i].node = 0;
    }
    hwloc_topology_destroy(machine);
    return topology->processor_count > 0;
}
