/* Makes JSON members that several records share. */
#include "report/json_parts.h"

#include "base/memory/memory.h"
#include "base/topology/topology.h"
#include "base/version.h"
#include "cpu/cpu.h"
#include "storage/manifest/json_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/utsname.h>

json_t *slc_json_versions(void)
{
    json_t *object = json_object();
    struct utsname host;

    (void)json_object_set_new(object, "sluice", json_string(SLC_VERSION));
    (void)json_object_set_new(object, "compiler", json_string(__VERSION__));
    (void)json_object_set_new(object, "instruction_set", json_string(slc_cpu_instruction_set()));
    if (uname(&host) == 0) {
        (void)json_object_set_new(
            object, "system", json_sprintf("%s %s %s", host.sysname, host.release, host.machine));
    }
    return object;
}

json_t *slc_json_machine(void)
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

json_t *slc_json_dims(unsigned order, const uint64_t *dims)
{
    json_t *list = json_array();

    for (unsigned n = 0; n < order; n++) {
        (void)json_array_append_new(list, json_integer((json_int_t)dims[n]));
    }
    return list;
}

json_t *slc_json_modes(uint32_t modes)
{
    json_t *list = json_array();

    for (json_int_t n = 0; n < 32; n++) {
        if ((modes >> n & 1) != 0) {
            (void)json_array_append_new(list, json_integer(n + 1));
        }
    }
    return list;
}

json_t *slc_json_hex(uint64_t number)
{
    char digits[20];

    (void)snprintf(digits, sizeof digits, "%016" PRIx64, number);
    return json_string(digits);
}

void slc_json_set(json_t *object, const char *name, json_t *value)
{
    (void)json_object_set_new(object, name, value);
}

void slc_json_set_count(json_t *object, const char *name, uint64_t number)
{
    slc_json_set(object, name, json_integer((json_int_t)number));
}

void slc_json_set_real(json_t *object, const char *name, double number)
{
    slc_json_set(object, name, json_real(number));
}

void slc_json_set_text(json_t *object, const char *name, const char *text)
{
    slc_json_set(object, name, text != NULL ? slc_json_string(text) : json_null());
}

void slc_json_set_known_count(json_t *object, const char *name, uint64_t number)
{
    slc_json_set(object, name,
                 number != UINT64_MAX ? json_integer((json_int_t)number) : json_null());
}

void slc_json_set_known_real(json_t *object, const char *name, double number)
{
    slc_json_set(object, name, number >= 0 ? json_real(number) : json_null());
}
