/*
 * Ceilings: the bandwidth of this machine for a working set of a given size, measured on demand and
 * cached, so that every figure is reported with a ceiling of the same run.
 */
#ifndef SLC_TOOLS_BENCH_CEILING_H
#define SLC_TOOLS_BENCH_CEILING_H

#include "base/error/error.h"
#include "tools/bench/measure/bandwidth.h"
#include "tools/bench/measure/timing.h"

#include <stdint.h>

enum bench_access {
    BENCH_READ,  /* each thread reads its own part */
    BENCH_COPY,  /* copies one half to the other; bytes read and bytes written count */
    BENCH_TRIAD, /* computes the last third from the other two; bytes count as for a copy */
    BENCH_GATHER /* each thread reads rows of the whole set in random order */
};
enum { BENCH_ACCESSES = 4 };

struct bench_traffic {
    enum bench_access access;
    uint64_t set_bytes; /* size of the set, which all threads share */
    uint64_t row_bytes; /* GATHER: 8, 16, 32, or a multiple of 64 */
    unsigned threads;
    const struct bench_bandwidth_set *loops; /* NULL: the best set of this machine */
};

/*
 * Measures one kind of traffic: `repeats` samples of at least BENCH_SAMPLE_NS each, after `warm_up`
 * runs and one run that determines the work of a sample. `median` is the rate of the median sample,
 * `best` that of the fastest sample. A gather is measured with and without prefetching, and the
 * faster variant counts. Memory: the set, plus 4 bytes per row for a gather. Errors:
 * SLC_ERR_MEMORY, SLC_ERR_SYSTEM.
 */
struct bench_rate {
    double median, best; /* bytes per second */
};
enum slc_status bench_traffic_measure(const struct bench_traffic *traffic,
                                      unsigned warm_up,
                                      unsigned repeats,
                                      struct bench_rate *rate,
                                      struct slc_error *err) SLC_NODISCARD;

/* A cache of ceilings. Initially all-zero; owns nothing. */
enum { BENCH_CEILINGS_MAX = 64 };
struct bench_ceilings {
    /* repeats of the benchmark, which limit the number of samples of a ceiling; 0: no limit */
    unsigned repeats;
    uint64_t memory_set_bytes; /* argument of bench_memory_set_bytes */
    unsigned count;
    struct {
        struct bench_traffic traffic;
        double bytes_per_second;
    } known[BENCH_CEILINGS_MAX];
};

/*
 * Returns the ceiling of a working set of `set_bytes` bytes for `threads` threads: the fastest of a
 * few samples with the best loops. The size is rounded up to a power of two, and limited to
 * bench_memory_set_bytes, because larger sets are all in memory.
 */
enum slc_status bench_ceiling(struct bench_ceilings *ceilings,
                              enum bench_access access,
                              uint64_t set_bytes,
                              uint64_t row_bytes,
                              unsigned threads,
                              double *bytes_per_second,
                              struct slc_error *err) SLC_NODISCARD;

/* Returns the size of the set for memory: `asked`, or if that is 0, four times the last-level cache
 * but at most a quarter of the memory. */
uint64_t bench_memory_set_bytes(uint64_t asked);

/*
 * The levels are cache levels 1 to SLC_CACHE_LEVELS, followed by memory. These functions return the
 * name of a level, and the bytes of a set that all threads read together; 0 if the level does not
 * exist. A set fills half of its cache, so that other data does not evict it; all threads share the
 * last-level cache. The set for memory is bench_memory_set_bytes(memory_set_bytes).
 */
const char *bench_level_name(unsigned level);
uint64_t bench_level_bytes(unsigned level, unsigned threads, uint64_t memory_set_bytes);

#endif
