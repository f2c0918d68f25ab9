/*
 * Loops that only move data, and loops that only multiply and add in registers, one table per
 * instruction set: what the other benchmarks are measured against. All tables do the same in wider
 * or narrower vectors.
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

/*
 * x = x * factor + term, `steps` times for each of many independent x; returns their sum, so that
 * nothing can be left out. A multiplication and an addition count as two operations, also where the
 * set fuses them into one instruction.
 */
typedef double bench_peak_fn(uint64_t steps, double factor, double term);

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

    bench_peak_fn *peak_f64, *peak_f32;
    unsigned f64_per_step, f32_per_step; /* operations of a peak */
};

/*
 * The sets this machine can run, best first; `sets` holds BENCH_BANDWIDTH_SETS. Returns how many.
 */
enum { BENCH_BANDWIDTH_SETS = 3 };
unsigned bench_bandwidth_sets(const struct bench_bandwidth_set **sets);

/* The set of that name, which this machine has, or NULL. */
const struct bench_bandwidth_set *bench_bandwidth_set(const char *name);

#endif
