/* Measures ceilings and caches them. */
#include "tools/bench/roofline/ceiling.h"

#include "base/error/clock.h"
#include "base/memory/checked.h"
#include "base/memory/limits.h"
#include "base/memory/memory.h"
#include "base/random.h"
#include "base/thread/team.h"
#include "base/topology/topology.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Number of samples of a ceiling per repeat of the benchmark, and the maximum number. The ceiling
 * is the rate of the fastest sample. Four samples suffice, because a disturbance affects only one
 * or two of them. */
enum { CEILING_SAMPLES = 2, CEILING_SAMPLES_MAX = 4 };

/* Smallest working set for memory in bytes. A smaller set fits in the first cache levels, which
 * have their own measurements. */
#define MEMORY_SET_MIN (UINT64_C(1) << 20)

/* State shared by the threads of one measurement. */
struct sweep {
    struct bench_traffic traffic;
    bool prefetch;
    char *set;
    uint32_t *index;
    uint64_t rows;                  /* for GATHER: elements of `index` per thread */
    uint64_t part;                  /* for other accesses: bytes of the part of one thread */
    uint64_t rounds;                /* number of sweeps per sample */
    uint64_t sink[SLC_MAX_THREADS]; /* results, stored so that the compiler keeps the reads */
};

uint64_t bench_memory_set_bytes(uint64_t asked)
{
    const uint64_t least = UINT64_C(256) << 20;
    const uint64_t beyond_cache = 4 * slc_cache_bytes(SLC_CACHE_LEVELS);

    if (asked > 0) {
        return slc_max_u64(asked, MEMORY_SET_MIN);
    }
    return slc_min_u64(slc_max_u64(beyond_cache, least), slc_memory_total() / 4);
}

const char *bench_level_name(unsigned level)
{
    static const char *const names[SLC_CACHE_LEVELS + 1] = {"L1", "L2", "L3", "memory"};

    return names[level - 1];
}

uint64_t bench_level_bytes(unsigned level, unsigned threads, uint64_t memory_set_bytes)
{
    /* A triad needs three arrays per thread. */
    const uint64_t least = UINT64_C(3) * BENCH_SWEEP_BYTES * threads;
    uint64_t bytes = slc_cache_bytes(level) / 2;

    if (level > SLC_CACHE_LEVELS) {
        return slc_max_u64(bench_memory_set_bytes(memory_set_bytes), least);
    }
    if (level < SLC_CACHE_LEVELS) {
        bytes *= threads;
    }
    return bytes == 0 ? 0 : slc_max_u64(bytes, least);
}

/* Returns the bytes that all threads together move in one sweep. */
static uint64_t round_bytes(const struct sweep *sweep)
{
    const uint64_t threads = sweep->traffic.threads;
    const uint64_t part = sweep->part / BENCH_SWEEP_BYTES * BENCH_SWEEP_BYTES;

    switch (sweep->traffic.access) {
    case BENCH_READ:
        return threads * part;
    case BENCH_COPY:
        return threads * 2 * (sweep->part / 2 / BENCH_SWEEP_BYTES * BENCH_SWEEP_BYTES);
    case BENCH_TRIAD:
        return threads * 3 * (sweep->part / 3 / BENCH_SWEEP_BYTES * BENCH_SWEEP_BYTES);
    case BENCH_GATHER:
        break;
    }
    return threads * sweep->rows * sweep->traffic.row_bytes;
}

/* Makes the sweeps of one thread in a sample. */
static void run_rounds(void *context, unsigned worker, unsigned workers)
{
    struct sweep *sweep = context;
    const struct bench_bandwidth_set *loops = sweep->traffic.loops;
    char *part = sweep->set + worker * sweep->part;
    const uint64_t half = sweep->part / 2 / BENCH_SWEEP_BYTES * BENCH_SWEEP_BYTES;
    const uint64_t third = sweep->part / 3 / BENCH_SWEEP_BYTES * BENCH_SWEEP_BYTES;
    uint64_t mixed = 0;

    (void)workers;
    for (uint64_t i = 0; i < sweep->rounds; i++) {
        switch (sweep->traffic.access) {
        case BENCH_READ:
            mixed += loops->read(part, sweep->part);
            break;
        case BENCH_COPY:
            loops->copy(part, part + half, half);
            break;
        case BENCH_TRIAD:
            loops->triad(part, part + third, part + 2 * third, third);
            break;
        case BENCH_GATHER:
            mixed += loops->gather(sweep->set, sweep->traffic.row_bytes,
                                   sweep->index + worker * (sweep->rows + BENCH_PREFETCH_ROWS),
                                   sweep->rows, sweep->prefetch);
            break;
        }
        /* This makes the compiler read the data again in each sweep. */
        __asm__ volatile("" ::: "memory");
    }
    sweep->sink[worker] = mixed;
}

/* Writes the part of one thread, so that its pages are allocated near the thread's processor. */
static void touch(void *context, unsigned worker, unsigned workers)
{
    struct sweep *sweep = context;

    (void)workers;
    memset(sweep->set + worker * sweep->part, 0, sweep->part);
}

/* Shuffles the row numbers of one thread (Fisher and Yates). */
static void shuffle(void *context, unsigned worker, unsigned workers)
{
    struct sweep *sweep = context;
    uint32_t *index = sweep->index + worker * (sweep->rows + BENCH_PREFETCH_ROWS);

    (void)workers;
    for (uint64_t i = 0; i < sweep->rows; i++) {
        const uint64_t k = slc_random_below(1, worker, i, i + 1);

        index[i] = index[k];
        index[k] = (uint32_t)i;
    }
}

static enum slc_status prepare(struct sweep *sweep,
                               struct slc_buffer *set,
                               struct slc_buffer *index,
                               struct slc_error *err)
{
    const struct bench_traffic *traffic = &sweep->traffic;

    sweep->part = traffic->set_bytes / traffic->threads / BENCH_SWEEP_BYTES * BENCH_SWEEP_BYTES;
    SLC_TRY(slc_buffer_create(set, sweep->part * traffic->threads, SLC_PAGES_HUGE, err));
    if (traffic->access == BENCH_GATHER) {
        sweep->rows = slc_min_u64(sweep->part * traffic->threads / traffic->row_bytes, UINT32_MAX);
        SLC_TRY(slc_buffer_create(
            index, traffic->threads * (sweep->rows + BENCH_PREFETCH_ROWS) * sizeof(uint32_t),
            SLC_PAGES_HUGE, err));
    }
    sweep->set = set->data;
    sweep->index = index->data;
    SLC_TRY(slc_team_run(traffic->threads, touch, sweep, err));
    if (traffic->access == BENCH_GATHER) {
        SLC_TRY(slc_team_run(traffic->threads, shuffle, sweep, err));
    }
    return SLC_OK;
}

static enum slc_status time_sample(struct sweep *sweep, uint64_t *elapsed_ns, struct slc_error *err)
{
    const uint64_t start_ns = slc_clock_ns();

    SLC_TRY(slc_team_run(sweep->traffic.threads, run_rounds, sweep, err));
    *elapsed_ns = slc_clock_ns() - start_ns;
    return SLC_OK;
}

/* Finds the number of sweeps per sample, which also warms up, and then measures the samples. */
static enum slc_status measure(struct sweep *sweep,
                               unsigned warm_up,
                               unsigned repeats,
                               struct bench_rate *rate,
                               struct slc_error *err)
{
    struct bench_samples samples = {.count = 0};
    uint64_t elapsed_ns;

    sweep->rounds = 1;
    SLC_TRY(time_sample(sweep, &elapsed_ns, err));
    while (elapsed_ns < BENCH_SAMPLE_NS) {
        sweep->rounds *= bench_sample_growth(elapsed_ns);
        SLC_TRY(time_sample(sweep, &elapsed_ns, err));
    }
    for (unsigned i = 0; i < warm_up + repeats; i++) {
        SLC_TRY(time_sample(sweep, &elapsed_ns, err));
        if (i >= warm_up) {
            bench_samples_add(&samples, (double)elapsed_ns * 1e-9);
        }
    }
    struct bench_times times = bench_samples_summary(&samples);
    double bytes = (double)round_bytes(sweep) * (double)sweep->rounds;
    rate->median = bytes / times.median;
    rate->best = bytes / times.min;
    return SLC_OK;
}

enum slc_status bench_traffic_measure(const struct bench_traffic *traffic,
                                      unsigned warm_up,
                                      unsigned repeats,
                                      struct bench_rate *rate,
                                      struct slc_error *err)
{
    struct slc_buffer set = SLC_BUFFER_INIT;
    struct slc_buffer index = SLC_BUFFER_INIT;
    struct sweep sweep = {.traffic = *traffic};

    if (traffic->loops == NULL) {
        const struct bench_bandwidth_set *sets[BENCH_BANDWIDTH_SETS];

        (void)bench_bandwidth_sets(sets);
        sweep.traffic.loops = sets[0];
    }
    enum slc_status status = prepare(&sweep, &set, &index, err);
    SLC_THEN(status, measure(&sweep, warm_up, repeats, rate, err));
    if (status == SLC_OK && traffic->access == BENCH_GATHER) {
        struct bench_rate ahead = {0};

        sweep.prefetch = true;
        status = measure(&sweep, warm_up, repeats, &ahead, err);
        if (ahead.best > rate->best) {
            *rate = ahead;
        }
    }
    slc_buffer_destroy(&set);
    slc_buffer_destroy(&index);
    return status;
}

static bool same_traffic(const struct bench_traffic *a, const struct bench_traffic *b)
{
    return a->access == b->access && a->set_bytes == b->set_bytes && a->row_bytes == b->row_bytes &&
           a->threads == b->threads;
}

enum slc_status bench_ceiling(struct bench_ceilings *ceilings,
                              enum bench_access access,
                              uint64_t set_bytes,
                              uint64_t row_bytes,
                              unsigned threads,
                              double *bytes_per_second,
                              struct slc_error *err)
{
    /* A thread needs at least 16 KiB, for the three arrays of a triad. */
    uint64_t rounded = slc_max_u64(UINT64_C(16384) * threads, row_bytes);
    const uint64_t memory_set = bench_memory_set_bytes(ceilings->memory_set_bytes);
    struct bench_traffic traffic = {.access = access, .row_bytes = row_bytes, .threads = threads};
    struct bench_rate rate = {0};
    unsigned samples = CEILING_SAMPLES_MAX;

    if (ceilings->repeats > 0 && ceilings->repeats < CEILING_SAMPLES_MAX / CEILING_SAMPLES) {
        samples = CEILING_SAMPLES * ceilings->repeats;
    }
    while (rounded < set_bytes && rounded < memory_set) {
        rounded *= 2;
    }
    traffic.set_bytes = slc_min_u64(rounded, memory_set);
    for (unsigned i = 0; i < ceilings->count; i++) {
        if (same_traffic(&ceilings->known[i].traffic, &traffic)) {
            *bytes_per_second = ceilings->known[i].bytes_per_second;
            return SLC_OK;
        }
    }
    SLC_TRY(bench_traffic_measure(&traffic, 0, samples, &rate, err));
    *bytes_per_second = rate.best;
    if (ceilings->count < BENCH_CEILINGS_MAX) {
        ceilings->known[ceilings->count].traffic = traffic;
        ceilings->known[ceilings->count++].bytes_per_second = rate.best;
    }
    return SLC_OK;
}
