/* Measures ceilings: the bandwidth of this machine for a working set of a given size. Ceilings are
 * measured on demand and cached, so that every figure is reported with a ceiling of the same
 * run. */
#ifndef SLC_TOOLS_BENCH_CEILING_H
#define SLC_TOOLS_BENCH_CEILING_H

#include "base/error/error.h"
#include "tools/bench/measure/bandwidth.h"
#include "tools/bench/measure/timing.h"

#include <stdint.h>

enum bench_access {
    BENCH_READ,  /* each thread reads its own part of the set */
    BENCH_COPY,  /* each thread copies one half of its part to the other; counts reads and writes */
    BENCH_TRIAD, /* each thread computes a third of its part from the others; counts as for COPY */
    BENCH_GATHER /* each thread reads rows of the whole set in random order */
};
enum { BENCH_ACCESSES = 4 };

struct bench_traffic {
    enum bench_access access;
    uint64_t set_bytes; /* size of the working set, the sum over all threads */
    uint64_t row_bytes; /* for GATHER: size of a row: 8, 16, 32 or a multiple of 64 */
    unsigned threads;
    const struct bench_bandwidth_set *loops; /* NULL means the best of this machine */
};

/* Measures the rate of one access. First, runs determine the number of sweeps per sample, and
 * `warm_up` runs follow. Then `repeats` samples of at least BENCH_SAMPLE_NS each are measured.
 * `median` and `best` are the rates of the median and of the fastest sample. A gather is measured
 * with and without prefetching; its rate is the higher of the two. Memory: the working set, plus 4
 * bytes per row for a gather. Errors: SLC_ERR_MEMORY, SLC_ERR_SYSTEM. */
struct bench_rate {
    double median, best; /* bytes per second */
};
enum slc_status bench_traffic_measure(const struct bench_traffic *traffic,
                                      unsigned warm_up,
                                      unsigned repeats,
                                      struct bench_rate *rate,
                                      struct slc_error *err) SLC_NODISCARD;

/* The ceilings measured so far. The struct is initially all-zero and needs no release. */
enum { BENCH_CEILINGS_MAX = 64 };
struct bench_ceilings {
    /* --repeat of the benchmark; a ceiling has two samples per repeat, up to four; 0 means four */
    unsigned repeats;
    uint64_t memory_set_bytes; /* argument of bench_memory_set_bytes */
    unsigned count;
    struct {
        struct bench_traffic traffic;
        double bytes_per_second;
    } known[BENCH_CEILINGS_MAX];
};

/* Sets *ceiling to the bytes per second at which `threads` threads access a working set of
 * `set_bytes` bytes: the rate of the fastest of up to four samples with the best instruction set.
 * The size is rounded up to a power of two, and limited to bench_memory_set_bytes, because larger
 * sets have the same rate. */
enum slc_status bench_ceiling(struct bench_ceilings *ceilings,
                              enum bench_access access,
                              uint64_t set_bytes,
                              uint64_t row_bytes,
                              unsigned threads,
                              double *bytes_per_second,
                              struct slc_error *err) SLC_NODISCARD;

/* Returns the size of the working set for memory: `asked`, or if `asked` is 0, four times the
 * last-level cache, at least 256 MiB and at most a quarter of the memory. */
uint64_t bench_memory_set_bytes(uint64_t asked);

/* The levels are cache levels 1 to SLC_CACHE_LEVELS, followed by memory. bench_level_name returns
 * the name of a level. bench_level_bytes returns the size of its working set, over all threads, or
 * 0 if there is no such level. The working set fills half of a cache, so that other data does not
 * evict it; all threads share the last-level cache. The working set for memory has
 * bench_memory_set_bytes(memory_set_bytes) bytes. */
const char *bench_level_name(unsigned level);
uint64_t bench_level_bytes(unsigned level, unsigned threads, uint64_t memory_set_bytes);

#endif
