/*
 * Loops that only multiply and add in registers, one table per instruction set: what a processor
 * computes when nothing has to be moved. The sets are those of bandwidth.h, by the same names.
 */
#ifndef SLC_TOOLS_BENCH_PEAK_LOOPS_H
#define SLC_TOOLS_BENCH_PEAK_LOOPS_H

#include <stdint.h>

/*
 * x = x * factor + term, `steps` times for each of many independent x; returns their sum, so that
 * nothing can be left out. A multiplication and an addition count as two operations, also where the
 * set fuses them into one instruction.
 */
typedef double bench_peak_fn(uint64_t steps, double factor, double term);

struct bench_peak_set {
    const char *name;
    bench_peak_fn *f64, *f32;
    unsigned f64_per_step, f32_per_step; /* operations */
};

/* The set of that name, which this machine has, or NULL. */
const struct bench_peak_set *bench_peak_set(const char *name);

#endif
