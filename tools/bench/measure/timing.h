/*
 * Repeated timing: warm-up runs that are not recorded, then samples, whose smallest, median and
 * largest value are reported. The median is the result; the other two show the noise of the
 * machine.
 */
#ifndef SLC_TOOLS_BENCH_TIMING_H
#define SLC_TOOLS_BENCH_TIMING_H

#include "base/error/error.h"

#include <jansson.h>
#include <stdint.h>

enum { BENCH_REPEATS_MAX = 1000 };

/*
 * Minimum time of a sample of a ceiling: starting a team and reading the clock take less than a
 * hundredth of this time. The shorter a sample is, the less likely a disturbance affects every
 * sample.
 */
#define BENCH_SAMPLE_NS UINT64_C(4000000)

/* Returns the factor by which to increase the work of a sample that took only `elapsed_ns`. */
uint64_t bench_sample_growth(uint64_t elapsed_ns);

/* Wall times of repeated runs. */
struct bench_samples {
    unsigned count;
    double seconds[BENCH_REPEATS_MAX];
};

struct bench_times {
    unsigned samples;
    double min, median, max; /* seconds; 0 without samples */
};

/* Adds a sample. Samples beyond BENCH_REPEATS_MAX, which option tables do not allow, are
 * dropped. */
void bench_samples_add(struct bench_samples *samples, double seconds);

/* The median of an even number of samples is the mean of the middle two. */
struct bench_times bench_samples_summary(const struct bench_samples *samples);

/* Sets "median_ms", "min_ms", "max_ms" and "samples" of `object`. */
void bench_times_to_json(json_t *object, const struct bench_times *times);

#endif
