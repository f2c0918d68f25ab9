/* The loops of every instruction set this build knows; see bandwidth.h. */
#include "tools/bench/measure/bandwidth.h"

#include <stddef.h>
#include <string.h>

/* Rows of less than a cache line, word by word: wider loads would read beyond them. */
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

#define SET_NAME portable
#if defined(__aarch64__)
#undef SET_NAME
#define SET_NAME neon
#endif
#define VECTOR_BYTES 16
#define TARGET
#include "tools/bench/measure/bandwidth_tmpl.h"

#if defined(__x86_64__)
#define SET_NAME     avx2
#define VECTOR_BYTES 32
#define TARGET       __attribute__((target("avx2")))
#include "tools/bench/measure/bandwidth_tmpl.h"

#define SET_NAME     avx512
#define VECTOR_BYTES 64
#define TARGET       __attribute__((target("avx512f")))
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
