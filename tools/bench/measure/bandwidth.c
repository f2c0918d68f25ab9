/* Compiles the loops for every instruction set of this build. This file has its own compiler
 * options: unlike the rest of the command, it allows the compiler to fuse multiplications and
 * additions. */
#include "tools/bench/measure/bandwidth.h"

#include <stddef.h>
#include <string.h>

/* Gathers rows that are shorter than a cache line word by word, because a wider load would read
 * past the end of a row. */
static uint64_t gather_words(
    const void *rows, uint64_t row_bytes, const uint32_t *index, uint64_t count, bool prefetch)
{
    const uint64_t words = row_bytes / sizeof(uint64_t);
    const uint64_t *at = rows;
    uint64_t mixed = 0;

    for (uint64_t i = 0; i < count; i++) {
        if (prefetch) {
            __builtin_prefetch(at + index[i + BENCH_PREFETCH_ROWS] * words);
        }
        for (uint64_t w = 0; w < words; w++) {
            mixed ^= at[index[i] * words + w];
        }
    }
    return mixed;
}

/* Unrolls a loop fully, so that all sums stay in registers. */
#if defined(__GNUC__) && !defined(__clang__)
#define UNROLL _Pragma("GCC unroll 16")
#else
#define UNROLL _Pragma("unroll")
#endif

#if defined(__aarch64__)
#define SET_NAME neon
#define SUMS     16
#else
#define SET_NAME portable
#define SUMS     12
#endif
#define VECTOR_BYTES 16
#define TARGET
#define PEAK_TARGET
#include "tools/bench/measure/bandwidth_tmpl.h"

#if defined(__x86_64__)
#define SET_NAME     avx2
#define VECTOR_BYTES 32
#define SUMS         12
#define TARGET       __attribute__((target("avx2")))
#define PEAK_TARGET  __attribute__((target("avx2,fma")))
#include "tools/bench/measure/bandwidth_tmpl.h"

#define SET_NAME     avx512
#define VECTOR_BYTES 64
#define SUMS         16
#define TARGET       __attribute__((target("avx512f")))
#define PEAK_TARGET  __attribute__((target("avx512f,fma")))
#include "tools/bench/measure/bandwidth_tmpl.h"
#endif

unsigned bench_bandwidth_sets(const struct bench_bandwidth_set **sets)
{
    unsigned count = 0;

#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) {
        sets[count++] = &set_avx512;
    }
    if (__builtin_cpu_supports("avx2")) {
        sets[count++] = &set_avx2;
    }
#endif
#if defined(__aarch64__)
    sets[count++] = &set_neon;
#else
    sets[count++] = &set_portable;
#endif
    return count;
}

const struct bench_bandwidth_set *bench_bandwidth_set(const char *name)
{
    const struct bench_bandwidth_set *sets[BENCH_BANDWIDTH_SETS];
    const unsigned count = bench_bandwidth_sets(sets);

    for (unsigned i = 0; i < count; i++) {
        if (strcmp(sets[i]->name, name) == 0) {
            return sets[i];
        }
    }
    return NULL;
}
