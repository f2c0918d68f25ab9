/* Repeated timing: after warm-up runs, the times of further runs are recorded as samples. The
 * smallest, the median and the largest sample are reported. The median is the result, the smallest
 * and the largest show the noise of the machine. */
#ifndef SLC_TOOLS_BENCH_TIMING_H
#define SLC_TOOLS_BENCH_TIMING_H

#include "base/error/error.h"

#include <jansson.h>
#include <stdint.h>

enum { BENCH_REPEATS_MAX = 1000 };

/* Minimum duration of a sample of a ceiling. It is long enough that starting a team and reading the
 * clock take less than a hundredth of it. It is short enough that a disturbance affects only few
 * samples. */
#define BENCH_SAMPLE_NS UINT64_C(4000000)

/* Returns the factor by which to increase the work of a sample that took only `elapsed_ns`, to
 * reach BENCH_SAMPLE_NS. */
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

/* Adds a sample. Drops the sample if there are already BENCH_REPEATS_MAX samples, which option
 * tables prevent. */
void bench_samples_add(struct bench_samples *samples, double seconds);

/* Returns the smallest, median and largest sample. The median of an even number of samples is the
 * mean of the middle two. */
struct bench_times bench_samples_summary(const struct bench_samples *samples);

/* Sets members "median_ms", "min_ms", "max_ms" and "samples" of `object`. */
void bench_times_to_json(json_t *object, const struct bench_times *times);

#endif
