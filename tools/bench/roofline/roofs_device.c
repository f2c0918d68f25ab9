/* Measures the roofs of a GPU (roofs.h): reads of a working set that fits in the last cache, reads
 * of a working set that exceeds every cache, reads of rows at random places of the larger set, and
 * peaks. A measurement decides which sets fit in the cache: a set fits if the ratio of its read
 * rate to the rate of the cache is closer to 1 than the ratio to the rate of memory. */
#include "tools/bench/roofline/roofs.h"

#include "base/memory/checked.h"
#include "gpu/gpu.h"
#include "gpu/measure.h"

#include <math.h>

enum { LEVEL_CACHE, LEVEL_MEMORY, LEVEL_ROWS, LEVELS };
_Static_assert((int)LEVELS <= (int)BENCH_LEVELS_MAX, "BENCH_LEVELS_MAX is too small for a GPU");

#define PAGE_BYTES   UINT64_C(4096)
#define LEAST_BYTES  (UINT64_C(1) << 20)
#define MEMORY_BYTES (UINT64_C(4) << 30) /* default size of the working set for memory */
#define SWEEPS       UINT64_C(2)         /* sweeps over the set for memory, per run */
/* If a run that measures a bandwidth moves B bytes, a run that measures the peak computes this
 * number times B operations, so that both take about the same time. */
#define FLOP_PER_BYTE UINT64_C(16)
/* Number of the measured GPU. */
#define ORDINAL 0U

/* Sizes of working sets that fit in the last cache of some GPUs. */
static const uint64_t cache_sets[] = {UINT64_C(256) << 10, UINT64_C(1) << 20,  UINT64_C(4) << 20,
                                      UINT64_C(16) << 20,  UINT64_C(32) << 20, UINT64_C(64) << 20};

static uint32_t measured_row_bytes(const struct bench_roofs_device *device)
{
    uint32_t row_bytes = 16;

    while (row_bytes < 512 && row_bytes < device->row_bytes) {
        row_bytes *= 2;
    }
    return row_bytes;
}

static enum slc_status measure_ceiling(const struct bench_roofs *roofs,
                                       enum slc_gpu_ceiling ceiling,
                                       uint64_t set_bytes,
                                       double *rate,
                                       struct slc_error *err)
{
    const struct slc_gpu_measurement measurement = {.ceiling = ceiling,
                                                    .working_bytes = set_bytes,
                                                    .moved_bytes = SWEEPS * roofs->memory_set_bytes,
                                                    .row_bytes = measured_row_bytes(roofs->device),
                                                    .repeats = roofs->samples};

    return slc_gpu_measure(ORDINAL, &measurement, rate, err);
}

/* Measures the roof of the last cache. Needs: the rate of memory has been measured. The rate
 * decides which sets fit in the cache. */
static enum slc_status measure_cache(struct bench_roofs *roofs, struct slc_error *err)
{
    struct bench_level *cache = &roofs->levels[LEVEL_CACHE];
    const double memory = roofs->levels[LEVEL_MEMORY].bytes_per_second;
    double rates[sizeof cache_sets / sizeof cache_sets[0]] = {0};
    unsigned count = 0;

    for (; count < sizeof rates / sizeof rates[0] && cache_sets[count] < roofs->memory_set_bytes;
         count++) {
        const enum slc_status status =
            measure_ceiling(roofs, SLC_GPU_CEILING_READ, cache_sets[count], &rates[count], err);

        if (status != SLC_OK) {
            return status;
        }
        if (rates[count] > cache->bytes_per_second) {
            cache->bytes_per_second = rates[count];
            cache->set_bytes = cache_sets[count];
        }
    }
    for (unsigned i = 0; i < count; i++) {
        if (rates[i] >= sqrt(cache->bytes_per_second * memory)) {
            cache->capacity_bytes = cache_sets[i];
        }
    }
    return SLC_OK;
}

enum slc_status bench_device_peak(unsigned ordinal,
                                  enum slc_value_type type,
                                  uint64_t moved_bytes,
                                  unsigned repeats,
                                  double *per_second,
                                  struct slc_error *err)
{
    const struct slc_gpu_peak peak = {
        .type = type,
        .operations = slc_min_u64(moved_bytes, SLC_GPU_PEAK_MOST / FLOP_PER_BYTE) * FLOP_PER_BYTE,
        .repeats = repeats};

    return slc_gpu_measure_peak(ordinal, &peak, per_second, err);
}

static enum slc_status measure_peak(const struct bench_roofs *roofs,
                                    enum slc_value_type type,
                                    double *per_second,
                                    struct slc_error *err)
{
    return bench_device_peak(ORDINAL, type, roofs->memory_set_bytes, roofs->samples, per_second,
                             err);
}

enum slc_status
bench_device_find(uint64_t memory_bytes, struct slc_device_info *info, struct slc_error *err)
{
    const struct slc_gpu_options options = {.ordinal = ORDINAL, .memory_bytes = memory_bytes};
    struct slc_error refused = SLC_ERROR_INIT;
    struct slc_device *device;
    const enum slc_status status = slc_gpu_create(&options, &device, &refused);

    if (status != SLC_OK) {
        return slc_fail(err, status, "--device gpu: %s", refused.message);
    }
    device->ops->info(device, info);
    device->ops->destroy(device);
    return SLC_OK;
}

enum slc_status bench_roofs_measure_device(struct bench_roofs *roofs,
                                           const struct bench_roofs_device *device,
                                           uint64_t memory_set_bytes,
                                           unsigned repeats,
                                           struct slc_error *err)
{
    const uint64_t wanted = memory_set_bytes != 0 ? memory_set_bytes : MEMORY_BYTES;
    const uint64_t set_bytes =
        slc_min_u64(wanted, device->free_bytes / 2) / PAGE_BYTES * PAGE_BYTES;

    *roofs = (struct bench_roofs){
        .instruction_set = "cuda",
        .device = device,
        .memory_set_bytes = slc_max_u64(set_bytes, LEAST_BYTES),
        .repeats = repeats,
        .samples = repeats,
        .level_count = LEVELS,
        .levels = {[LEVEL_CACHE] = {.name = "L2"},
                   [LEVEL_MEMORY] = {.name = "memory", .capacity_bytes = UINT64_MAX},
                   [LEVEL_ROWS] = {.name = "random rows", .capacity_bytes = UINT64_MAX}}};
    roofs->levels[LEVEL_MEMORY].set_bytes = roofs->memory_set_bytes;
    roofs->levels[LEVEL_ROWS].set_bytes = roofs->memory_set_bytes;
    SLC_TRY(measure_ceiling(roofs, SLC_GPU_CEILING_READ, roofs->memory_set_bytes,
                            &roofs->levels[LEVEL_MEMORY].bytes_per_second, err));
    SLC_TRY(measure_ceiling(roofs, SLC_GPU_CEILING_ROWS, roofs->memory_set_bytes,
                            &roofs->levels[LEVEL_ROWS].bytes_per_second, err));
    SLC_TRY(measure_cache(roofs, err));
    SLC_TRY(measure_peak(roofs, SLC_F64, &roofs->peak_f64, err));
    return measure_peak(roofs, SLC_F32, &roofs->peak_f32, err);
}
