/* Caches and processors; see machine.h. Linux tells them in sysfs, on every architecture alike. */
#include "machine.h"

#include "base/memory.h"
#include "base/team.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* More entries than any processor has: each level, data and instructions apart. */
enum { SYSFS_CACHES_MAX = 8 };

/* Reads one line of a file of the cache `index` of the first processor. */
static bool read_line(unsigned index, const char *name, char *line, int line_bytes)
{
    char path[96];
    FILE *file;
    bool read;

    (void)snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%u/%s", index, name);
    file = fopen(path, "re");
    if (file == NULL) {
        return false;
    }
    read = fgets(line, line_bytes, file) != NULL;
    (void)fclose(file);
    return read;
}

uint64_t bench_cache_bytes(unsigned level)
{
    for (unsigned index = 0; index < SYSFS_CACHES_MAX; index++) {
        char text[32];
        unsigned its_level;
        uint64_t kib;

        if (read_line(index, "level", text, sizeof text) && sscanf(text, "%u", &its_level) == 1 &&
            its_level == level && read_line(index, "type", text, sizeof text) &&
            strncmp(text, "Instruction", 11) != 0 && read_line(index, "size", text, sizeof text) &&
            sscanf(text, "%" SCNu64 "K", &kib) == 1) {
            return kib << 10;
        }
    }
    return 0;
}

json_t *bench_machine_to_json(void)
{
    json_t *object = json_object();
    json_t *caches = json_array();

    for (unsigned level = 1; level <= BENCH_CACHE_LEVELS; level++) {
        (void)json_array_append_new(caches, json_integer((json_int_t)bench_cache_bytes(level)));
    }
    (void)json_object_set_new(object, "processors",
                              json_integer((json_int_t)slc_team_default_workers()));
    (void)json_object_set_new(object, "cache_bytes", caches);
    (void)json_object_set_new(object, "memory_bytes", json_integer((json_int_t)slc_memory_total()));
    return object;
}
