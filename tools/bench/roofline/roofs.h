/*
 * The roofs of this machine, after the cache-aware roofline model ([Ilic2014]): the
 * peak rate of operations and the bandwidth of each level of memory, by all threads together. A
 * kernel that performs f operations for every byte that it loads or stores attains at most
 * min(peak, f * bandwidth) from a level. Bytes are those between registers and the first-level
 * cache, whichever level serves them, so a kernel has one intensity and several roofs.
 */
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
    uint64_t capacity_bytes; /* of one processor's cache; memory: UINT64_MAX */
    uint64_t set_bytes;      /* of the measured set, all threads together */
    double bytes_per_second;
};

/* The first GPU, whose roofs are measured. */
struct bench_roofs_device {
    uint64_t free_bytes; /* of its memory; at most half of it is used */
    uint32_t row_bytes;  /* of rows at random places: rounded up to a power of two, 16 .. 512 */
};

struct bench_roofs {
    const char *instruction_set;             /* "cuda" for a GPU */
    unsigned threads;                        /* 0 for a GPU */
    const struct bench_roofs_device *device; /* NULL: the CPU */
    uint64_t memory_set_bytes;               /* argument of bench_memory_set_bytes */
    unsigned repeats, samples;               /* as requested, and of each roof */
    unsigned level_count;                    /* the fastest first; the last one is memory */
    struct bench_level levels[BENCH_LEVELS_MAX];
    double peak_f32, peak_f64; /* operations per second */
};

/*
 * Measures all roofs with the loops of one instruction set: the fastest of two samples for each of
 * `repeats`, at most ten. `instruction_set` is borrowed. Errors: SLC_ERR_USAGE (not supported by
 * this machine), SLC_ERR_MEMORY, SLC_ERR_SYSTEM.
 */
enum slc_status bench_roofs_measure(struct bench_roofs *roofs,
                                    const char *instruction_set,
                                    unsigned threads,
                                    uint64_t memory_set_bytes,
                                    unsigned repeats,
                                    struct slc_error *err) SLC_NODISCARD;

/* Opens the first GPU; memory_bytes of its memory may be used (0: most). Errors: those of
   slc_gpu_create. */
enum slc_status bench_device_find(uint64_t memory_bytes,
                                  struct slc_device_info *info,
                                  struct slc_error *err) SLC_NODISCARD;

/*
 * The peak of a GPU: operations per second in registers. A run takes about as long as a run that
 * moves `moved_bytes`. Errors: those of gpu/measure.h.
 */
enum slc_status bench_device_peak(unsigned ordinal,
                                  enum slc_value_type type,
                                  uint64_t moved_bytes,
                                  unsigned repeats,
                                  double *per_second,
                                  struct slc_error *err) SLC_NODISCARD;

/*
 * Measures the roofs of a GPU: levels "L2" and "memory" by reads, "random rows" by rows at random
 * places of memory; memory_set_bytes of 0: 4 GiB. `device` is borrowed. Errors: those of
 * gpu/measure.h.
 */
enum slc_status bench_roofs_measure_device(struct bench_roofs *roofs,
                                           const struct bench_roofs_device *device,
                                           uint64_t memory_set_bytes,
                                           unsigned repeats,
                                           struct slc_error *err) SLC_NODISCARD;

/* Measures all roofs again and keeps the higher value of each, because a disturbance lowers a
   measurement. Errors: the same; *roofs is unchanged then. */
enum slc_status bench_roofs_raise(struct bench_roofs *roofs, struct slc_error *err) SLC_NODISCARD;

/* Operations per second under the roof of a level. */
double bench_roof(const struct bench_roofs *roofs,
                  const struct bench_level *level,
                  enum slc_value_type precision,
                  double flop_per_byte);

/* The first level at which one processor's cache holds `bytes`. */
const struct bench_level *bench_roofs_level(const struct bench_roofs *roofs, uint64_t bytes);

/* Sets "levels" and "peaks" of `record`, arrays of objects. */
void bench_roofs_to_json(const struct bench_roofs *roofs, json_t *record);

#endif
