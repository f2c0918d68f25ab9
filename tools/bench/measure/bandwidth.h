/*
 * Loops that only move data, one table per instruction set: what the other benchmarks are measured
 * against. All tables do the same in wider or narrower loads.
 */
#ifndef SLC_TOOLS_BENCH_BANDWIDTH_H
#define SLC_TOOLS_BENCH_BANDWIDTH_H

#include <stdbool.h>
#include <stdint.h>

enum {
    /* Arrays of read, copy and triad are a multiple of this, and start on a page. */
    BENCH_SWEEP_BYTES = 4096,
    /* Rows ahead that a gather prefetches, as cpu/kernel/kernel_set.c does; an index array needs as
       many entries past its end. */
    BENCH_PREFETCH_ROWS = 16
};

struct bench_bandwidth_set {
    const char *name; /* "portable", "avx2", "avx512", "neon" */

    /* Reads every byte; returns something that depends on all of them. */
    uint64_t (*read)(const void *from, uint64_t bytes);
    void (*copy)(void *to, const void *from, uint64_t bytes);
    /* to[i] = a[i] + 3 b[i], in f64 (McCalpin's STREAM). */
    void (*triad)(void *to, const void *a, const void *b, uint64_t bytes);
    /*
     * Reads the rows index[0 .. count-1] of `row_bytes` bytes: 8, 16, 32 or a multiple of 64. As
     * read, returns something that depends on all bytes.
     */
    uint64_t (*gather)(
        const void *rows, uint64_t row_bytes, const uint32_t *index, uint64_t count, bool prefetch);
};

/*
 * The sets this machine can run, best first; `sets` holds BENCH_BANDWIDTH_SETS. Returns how many.
 */
enum { BENCH_BANDWIDTH_SETS = 3 };
unsigned bench_bandwidth_sets(const struct bench_bandwidth_set **sets);

/* The set of that name, which this machine has, or NULL. */
const struct bench_bandwidth_set *bench_bandwidth_set(const char *name);

#endif
