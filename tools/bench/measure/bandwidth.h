/* Loops that only transfer data, and loops that only multiply and add in registers. They measure
 * the ceilings of the other benchmarks. Each instruction set has a table of functions. All tables
 * compute the same results, with vectors of different widths. */
#ifndef SLC_TOOLS_BENCH_BANDWIDTH_H
#define SLC_TOOLS_BENCH_BANDWIDTH_H

#include <stdbool.h>
#include <stdint.h>

enum {
    /* The sizes of the arrays of read, copy and triad are multiples of this number of bytes. The
       arrays start on a page. */
    BENCH_SWEEP_BYTES = 4096,
    /* Number of rows by which a gather prefetches ahead, as in cpu/kernel/kernel_set.c. An index
       array needs this number of additional elements after its end. */
    BENCH_PREFETCH_ROWS = 16
};

/* Computes x = x * factor + term `steps` times for each of many independent x. Returns the sum of
 * all x, so that the compiler cannot omit any computation. A multiplication and an addition count
 * as two operations even if the instruction set fuses them. */
typedef double bench_peak_fn(uint64_t steps, double factor, double term);

struct bench_bandwidth_set {
    const char *name; /* "portable", "avx2", "avx512" or "neon" */

    /* Reads all bytes, and returns a value that depends on all of them. */
    uint64_t (*read)(const void *from, uint64_t bytes);
    void (*copy)(void *to, const void *from, uint64_t bytes);
    /* Computes to[i] = a[i] + 3 b[i] in f64, as McCalpin's STREAM does. */
    void (*triad)(void *to, const void *a, const void *b, uint64_t bytes);
    /* Reads the rows index[0 .. count-1] of `row_bytes` bytes each (8, 16, 32 or a multiple of 64).
     * Like `read`, returns a value that depends on all bytes. */
    uint64_t (*gather)(
        const void *rows, uint64_t row_bytes, const uint32_t *index, uint64_t count, bool prefetch);

    bench_peak_fn *peak_f64, *peak_f32;
    unsigned f64_per_step, f32_per_step; /* operations per step of a peak loop */
};

/* Stores the loops of the instruction sets that this machine supports in `sets`, best first. `sets`
 * has space for BENCH_BANDWIDTH_SETS elements. Returns the number of instruction sets. */
enum { BENCH_BANDWIDTH_SETS = 3 };
unsigned bench_bandwidth_sets(const struct bench_bandwidth_set **sets);

/* Returns the loops of instruction set `name`, or NULL if this machine does not support it. */
const struct bench_bandwidth_set *bench_bandwidth_set(const char *name);

#endif
