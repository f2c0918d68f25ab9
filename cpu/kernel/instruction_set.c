/* Selects the kernels: the best kernels for the processor, or the kernels that a test forces. */
#include "cpu/kernel/instruction_set.h"

#include "base/topology/topology.h"
#include "cpu/kernel/kernels.h"

#include <stddef.h>
#include <string.h>

/* The instruction set that a test or benchmark forced; NULL selects the best instruction set. */
static const struct slc_kernel_set *_Atomic forced_set;

/* Stores this machine's instruction sets, at most 3, best first, and returns their number. */
static unsigned available_sets(const struct slc_kernel_set **sets)
{
    unsigned count = 0;

#ifdef SLC_HAVE_AVX512
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("fma")) {
        sets[count++] = &slc_kernels_avx512;
    }
#endif
#ifdef SLC_HAVE_AVX2
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        sets[count++] = &slc_kernels_avx2;
    }
#endif
#ifdef SLC_HAVE_NEON
    sets[count++] = &slc_kernels_neon;
#endif
    sets[count++] = &slc_kernels_portable;
    return count;
}

const struct slc_kernel_set *slc_kernels(void)
{
    const struct slc_kernel_set *sets[3];
    const struct slc_kernel_set *forced = forced_set;

    if (forced != NULL) {
        return forced;
    }
    (void)available_sets(sets);
    return sets[0];
}

const char *slc_cpu_instruction_set(void)
{
    return slc_kernels()->name;
}

bool slc_cpu_force_instruction_set(const char *name)
{
    const struct slc_kernel_set *sets[3];
    const unsigned count = available_sets(sets);

    if (name == NULL) {
        forced_set = NULL;
        return true;
    }
    for (unsigned i = 0; i < count; i++) {
        if (strcmp(sets[i]->name, name) == 0) {
            forced_set = sets[i];
            return true;
        }
    }
    return false;
}

uint64_t slc_cpu_cache_bytes(void)
{
    const uint64_t unknown_bytes = UINT64_C(32) << 20;
    const uint64_t bytes = slc_cache_bytes(SLC_CACHE_LEVELS);

    return bytes > 0 ? bytes : unknown_bytes;
}
