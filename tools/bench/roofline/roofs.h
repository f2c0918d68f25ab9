/* Measures the roofs of this machine, after the cache-aware roofline model ([Ilic2014]): the peak
 * rate of operations and the bandwidth of each memory level, with all threads together. A kernel
 * that performs f operations per byte that it loads or stores attains at most min(peak, f *
 * bandwidth), with the bandwidth of the level that holds its data. Bytes are counted between
 * registers and the first-level cache, whichever level serves them, so a kernel has one intensity
 * and several roofs. */
#ifndef SLC_TOOLS_BENCH_ROOFS_H
#define SLC_TOOLS_BENCH_ROOFS_H

#include "base/device.h"
#include "base/error/error.h"
#include "base/matrix.h"
#include "base/topology/topology.h"

#include <jansson.h>
#include <stdint.h>

enum { BENCH_LEVELS_MAX = SLC_CACHE_LEVELS + 1 };

struct bench_level {
    const char *name;        /* "L1", .. "memory" */
    uint64_t capacity_bytes; /* capacity of the cache of one processor; UINT64_MAX for memory */
    uint64_t set_bytes;      /* size of the measured working set, over all threads */
    double bytes_per_second;
};

/* The first GPU, whose roofs are measured. */
struct bench_roofs_device {
    uint64_t free_bytes; /* free device memory; at most half of it is used */
    /* size of rows at random places, which is rounded up to a power of two from 16 to 512 */
    uint32_t row_bytes;
};

struct bench_roofs {
    const char *instruction_set;             /* "cuda" for a GPU */
    unsigned threads;                        /* 0 for a GPU */
    const struct bench_roofs_device *device; /* NULL means the CPU */
    uint64_t memory_set_bytes;               /* argument of bench_memory_set_bytes */
    unsigned repeats, samples;               /* --repeat, and the number of samples of each roof */
    /* number of elements of `levels`, which start with the fastest level and end with memory */
    unsigned level_count;
    struct bench_level levels[BENCH_LEVELS_MAX];
    double peak_f32, peak_f64; /* operations per second */
};

/* Measures all roofs with the loops of one instruction set. A roof is the rate of the fastest
 * sample; there are two samples per repeat, but at most ten. `instruction_set` is borrowed. Errors:
 * SLC_ERR_USAGE if this machine does not support the instruction set; SLC_ERR_MEMORY;
 * SLC_ERR_SYSTEM. */
enum slc_status bench_roofs_measure(struct bench_roofs *roofs,
                                    const char *instruction_set,
                                    unsigned threads,
                                    uint64_t memory_set_bytes,
                                    unsigned repeats,
                                    struct slc_error *err) SLC_NODISCARD;

/* Describes the first GPU. `memory_bytes` is the device memory that may be used; 0 means most of
 * it. Errors: those of slc_gpu_create. */
enum slc_status bench_device_find(uint64_t memory_bytes,
                                  struct slc_device_info *info,
                                  struct slc_error *err) SLC_NODISCARD;

/* Measures the peak rate of a GPU, computing in registers, in operations per second. Each run lasts
 * about as long as it takes to move `moved_bytes` bytes. Errors: those of gpu/measure.h. */
enum slc_status bench_device_peak(unsigned ordinal,
                                  enum slc_value_type type,
                                  uint64_t moved_bytes,
                                  unsigned repeats,
                                  double *per_second,
                                  struct slc_error *err) SLC_NODISCARD;

/* Measures the roofs of a GPU: "L2" and "memory" with reads, and "random rows" with reads of rows
 * at random places in memory. `memory_set_bytes` is the size of the working set for memory; 0 means
 * 4 GiB. `device` is borrowed. Errors: those of gpu/measure.h. */
enum slc_status bench_roofs_measure_device(struct bench_roofs *roofs,
                                           const struct bench_roofs_device *device,
                                           uint64_t memory_set_bytes,
                                           unsigned repeats,
                                           struct slc_error *err) SLC_NODISCARD;

/* Measures all roofs again and keeps the higher value of each, because a disturbance only lowers a
 * measurement. Errors: those of the first measurement; *roofs is then unchanged. */
enum slc_status bench_roofs_raise(struct bench_roofs *roofs, struct slc_error *err) SLC_NODISCARD;

/* Returns the roof of a level at `flop_per_byte`, in operations per second. */
double bench_roof(const struct bench_roofs *roofs,
                  const struct bench_level *level,
                  enum slc_value_type precision,
                  double flop_per_byte);

/* Returns the first level at which the cache of one processor holds `bytes`. */
const struct bench_level *bench_roofs_level(const struct bench_roofs *roofs, uint64_t bytes);

/* Sets members "levels" and "peaks" of `record`, which are arrays of objects. */
void bench_roofs_to_json(const struct bench_roofs *roofs, json_t *record);

#endif
