/* Summarizes repeated timings. */
#include "tools/bench/measure/timing.h"

#include "base/memory/checked.h"
#include "report/json_parts.h"

#include <stdlib.h>
#include <string.h>

void bench_samples_add(struct bench_samples *samples, double seconds)
{
    if (samples->count < BENCH_REPEATS_MAX) {
        samples->seconds[samples->count++] = seconds;
    }
}

uint64_t bench_sample_growth(uint64_t elapsed_ns)
{
    /* Limits the growth, because a coarse clock may report 0 ns for a short sample. */
    const uint64_t most = 64;

    return slc_min_u64(BENCH_SAMPLE_NS / slc_max_u64(elapsed_ns, 1) + 1, most);
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;

    return x < y ? -1 : x > y;
}

struct bench_times bench_samples_summary(const struct bench_samples *samples)
{
    struct bench_times times = {.samples = samples->count};
    double sorted[BENCH_REPEATS_MAX];

    if (samples->count > 0) {
        memcpy(sorted, samples->seconds, samples->count * sizeof *sorted);
        qsort(sorted, samples->count, sizeof *sorted, ascending);
        times.median = (sorted[(samples->count - 1) / 2] + sorted[samples->count / 2]) / 2;
        times.min = sorted[0];
        times.max = sorted[samples->count - 1];
    }
    return times;
}

void bench_times_to_json(json_t *object, const struct bench_times *times)
{
    slc_json_set_real(object, "median_ms", times->median * 1e3);
    slc_json_set_real(object, "min_ms", times->min * 1e3);
    slc_json_set_real(object, "max_ms", times->max * 1e3);
    slc_json_set_count(object, "samples", times->samples);
}
