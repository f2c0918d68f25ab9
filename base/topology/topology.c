/* Reads processors and cache sizes of the machine. */
#include "base/topology/topology.h"

#include "base/memory/checked.h"
#include "base/topology/affinity.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Maximum number of caches of a processor; a level has one cache, or one for data and one for
 * instructions. */
enum { SYSFS_CACHES_MAX = 8 };

static struct slc_topology machine;
static uint64_t caches[SLC_CACHE_LEVELS];

/* Stores the number of cores and of nodes in the topology. */
static void count_parts(struct slc_topology *topology)
{
    bool seen[SLC_MAX_NODES] = {false};

    topology->core_count = 0;
    topology->node_count = 0;
    for (unsigned i = 0; i < topology->processor_count; i++) {
        const struct slc_processor *processor = &topology->processors[i];

        topology->core_count += i == 0 || processor->core != processor[-1].core;
        topology->node_count += !seen[processor->node];
        seen[processor->node] = true;
    }
}

/* Describes every processor as a core, and all cores on one node. */
static void read_flat(struct slc_topology *topology)
{
    const long configured = sysconf(_SC_NPROCESSORS_CONF);

    topology->processor_count =
        configured > 0 ? (unsigned)slc_min_u64((uint64_t)configured, CPU_SETSIZE) : 1;
    for (unsigned i = 0; i < topology->processor_count; i++) {
        topology->processors[i] = (struct slc_processor){(uint16_t)i, (uint16_t)i, 0};
    }
}

void slc_topology_read(struct slc_topology *topology)
{
    memset(topology, 0, sizeof *topology);
#ifdef SLC_HAVE_HWLOC
    if (!slc_topology_read_hwloc(topology)) {
        read_flat(topology);
    }
#else
    read_flat(topology);
#endif
    count_parts(topology);
}

void slc_topology_keep(struct slc_topology *topology, const cpu_set_t *allowed)
{
    unsigned kept = 0;

    for (unsigned i = 0; i < topology->processor_count; i++) {
        if (CPU_ISSET(topology->processors[i].number, allowed)) {
            topology->processors[kept++] = topology->processors[i];
        }
    }
    topology->processor_count = kept;
    count_parts(topology);
}

static void read_machine(void)
{
    slc_topology_read(&machine);
}

const struct slc_topology *slc_topology(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, read_machine);
    return &machine;
}

void slc_topology_allowed(struct slc_topology *topology)
{
    cpu_set_t allowed;

    *topology = *slc_topology();
    if (slc_thread_allowed(&allowed)) {
        slc_topology_keep(topology, &allowed);
    }
}

/* Reads one line of a file of the cache `index` of a processor. */
static bool
read_line(unsigned processor, unsigned index, const char *name, char *line, int line_bytes)
{
    char path[96];
    FILE *file;

    (void)snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%u/cache/index%u/%s", processor,
                   index, name);
    file = fopen(path, "re");
    if (file == NULL) {
        return false;
    }
    bool read = fgets(line, line_bytes, file) != NULL;
    (void)fclose(file);
    return read;
}

/* Reads the size of a data or unified cache; Linux lists caches in sysfs on every architecture. */
static void read_cache(unsigned processor, unsigned index)
{
    char text[32];
    unsigned level;
    uint64_t kib;

    if (read_line(processor, index, "level", text, sizeof text) &&
        sscanf(text, "%u", &level) == 1 && level >= 1 && level <= SLC_CACHE_LEVELS &&
        read_line(processor, index, "type", text, sizeof text) &&
        strncmp(text, "Instruction", 11) != 0 &&
        read_line(processor, index, "size", text, sizeof text) &&
        sscanf(text, "%" SCNu64 "K", &kib) == 1) {
        caches[level - 1] = kib << 10;
    }
}

static uint64_t configured_bytes(int name)
{
    const long bytes = sysconf(name);

    return bytes > 0 ? (uint64_t)bytes : 0;
}

static void read_caches(void)
{
    const int names[SLC_CACHE_LEVELS] = {_SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE,
                                         _SC_LEVEL3_CACHE_SIZE};
    cpu_set_t allowed;
    unsigned processor = 0;

    if (slc_thread_allowed(&allowed)) {
        while (processor < CPU_SETSIZE - 1 && !CPU_ISSET(processor, &allowed)) {
            processor++;
        }
    }
    for (unsigned index = 0; index < SYSFS_CACHES_MAX; index++) {
        read_cache(processor, index);
    }
    /* Containers may hide sysfs. Then ask the C library, which queries the processor. */
    for (unsigned i = 0; i < SLC_CACHE_LEVELS; i++) {
        caches[i] = caches[i] > 0 ? caches[i] : configured_bytes(names[i]);
    }
}

uint64_t slc_cache_bytes(unsigned level)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, read_caches);
    return level >= 1 && level <= SLC_CACHE_LEVELS ? caches[level - 1] : 0;
}
