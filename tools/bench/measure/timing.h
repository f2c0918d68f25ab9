/*
 * Repeated timing: warm-up runs that do not count, then samples of which smallest, median and
 * largest are told. The median is the figure; the other two say how quiet the machine was.
 */
#ifndef SLC_TOOLS_BENCH_TIMING_H
#define SLC_TOOLS_BENCH_TIMING_H

#include "base/error/error.h"

#include <jansson.h>
#include <stdint.h>

enum { BENCH_REPEATS_MAX = 1000 };

/*
 * A sample of a ceiling takes as long at least: the start of a team and the clock are less than a
 * hundredth of it, and the shorter it is, the more seldom is a busy moment in all of them.
 */
#define BENCH_SAMPLE_NS UINT64_C(4000000)

/* By what the work of a sample that took `elapsed_ns`, which was too short, is to be multiplied. */
uint64_t bench_sample_growth(uint64_t elapsed_ns);

/* Wall times of one thing. */
struct bench_samples {
    unsigned count;
    double seconds[BENCH_REPEATS_MAX];
};

struct bench_times {
    unsigned samples;
    double min, median, max; /* seconds; 0 without samples */
};

/* Samples beyond BENCH_REPEATS_MAX are dropped: option tables do not let them be asked for. */
void bench_samples_add(struct bench_samples *samples, double seconds);

/* The median of an even number of samples is the mean of the middle two. */
struct bench_times bench_samples_summary(const struct bench_samples *samples);

/* Sets "median_ms", "min_ms", "max_ms" and "samples" of `object`. */
void bench_times_to_json(json_t *object, const struct bench_times *times);

#endif
