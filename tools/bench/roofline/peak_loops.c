/*
 * The loops of every instruction set this build knows; see peak_loops.h. Compiled on its own, with
 * contraction of products and sums, which the rest of the command does without.
 */
#include "tools/bench/roofline/peak_loops.h"

#include "tools/bench/measure/bandwidth.h"

#include <stddef.h>
#include <string.h>

/* All sums in registers: a loop over them would keep them in memory. */
#if defined(__GNUC__) && !defined(__clang__)
#define UNROLL _Pragma("GCC unroll 16")
#else
#define UNROLL _Pragma("unroll")
#endif

#if defined(__aarch64__)
#define SET_NAME     neon
#define VECTOR_BYTES 16
#define SUMS         16
#define TARGET
#include "tools/bench/roofline/peak_tmpl.h"
#else
#define SET_NAME     portable
#define VECTOR_BYTES 16
#define SUMS         12
#define TARGET
#include "tools/bench/roofline/peak_tmpl.h"
#endif

#if defined(__x86_64__)
#define SET_NAME     avx2
#define VECTOR_BYTES 32
#define SUMS         12
#define TARGET       __attribute__((target("avx2,fma")))
#include "tools/bench/roofline/peak_tmpl.h"

#define SET_NAME     avx512
#define VECTOR_BYTES 64
#define SUMS         16
#define TARGET       __attribute__((target("avx512f,fma")))
#include "tools/bench/roofline/peak_tmpl.h"
#endif

static const struct bench_peak_set *const known_sets[] = {
#if defined(__x86_64__)
    &set_avx512,
    &set_avx2,
#endif
#if defined(__aarch64__)
    &set_neon,
#else
    &set_portable,
#endif
};

const struct bench_peak_set *bench_peak_set(const char *name)
{
    const struct bench_bandwidth_set *available[BENCH_BANDWIDTH_SETS];
    const unsigned count = bench_bandwidth_sets(available);

    for (size_t i = 0; i < sizeof known_sets / sizeof known_sets[0]; i++) {
        for (unsigned k = 0; k < count; k++) {
            if (strcmp(known_sets[i]->name, name) == 0 && strcmp(available[k]->name, name) == 0) {
                return known_sets[i];
            }
        }
    }
    return NULL;
}
