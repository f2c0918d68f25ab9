/* Measures the roofs of the machine. */
#include "tools/bench/roofline/roofs.h"

#include "base/error/clock.h"
#include "base/memory/checked.h"
#include "base/memory/limits.h"
#include "base/thread/team.h"
#include "base/topology/placement.h"
#include "tools/bench/measure/run.h"
#include "tools/bench/roofline/ceiling.h"

#include <math.h>

/* Number of samples of a roof per repeat of a kernel, and the maximum number of samples. The roof
 * is the rate of the fastest sample. There are many samples, because a roof that is too low after a
 * disturbance would not be noticed. */
enum { ROOF_SAMPLES = 2, ROOF_SAMPLES_MAX = 10 };

/* State of one sample, which its threads share. */
struct computing {
    bench_peak_fn *loop;
    uint64_t steps;
    double sink[SLC_MAX_THREADS]; /* results of the loops, stored so that the compiler keeps the
                                     loops */
};

/* Runs the peak loop of one thread. Its numbers converge to 2, so that they never overflow or
 * become denormal. */
static void compute(void *context, unsigned worker, unsigned workers)
{
    struct computing *computing = context;

    (void)workers;
    computing->sink[worker] = computing->loop(computing->steps, 0.5, 1.0);
}

static enum slc_status measure_peak(bench_peak_fn *loop,
                                    unsigned operations,
                                    const struct bench_roofs *roofs,
                                    double *per_second,
                                    struct slc_error *err)
{
    struct computing computing = {.loop = loop, .steps = 1 << 12};
    uint64_t best_ns = UINT64_MAX;
    unsigned samples = 0;

    while (samples < roofs->samples) {
        const uint64_t start_ns = slc_clock_ns();
        const enum slc_status status = slc_team_run(roofs->threads, compute, &computing, err);
        const uint64_t elapsed_ns = slc_clock_ns() - start_ns;

        SLC_TRY(status);
        if (elapsed_ns < BENCH_SAMPLE_NS) {
            computing.steps *= bench_sample_growth(elapsed_ns);
            samples = 0;
            best_ns = UINT64_MAX;
            continue;
        }
        samples++;
        best_ns = slc_min_u64(best_ns, elapsed_ns);
    }
    *per_second =
        (double)operations * (double)computing.steps * roofs->threads / ((double)best_ns * 1e-9);
    return SLC_OK;
}

static enum slc_status measure_levels(struct bench_roofs *roofs,
                                      const struct bench_bandwidth_set *loops,
                                      struct slc_error *err)
{
    for (unsigned level = 1; level <= BENCH_LEVELS_MAX; level++) {
        const struct bench_traffic traffic = {
            .access = BENCH_READ,
            .set_bytes = bench_level_bytes(level, roofs->threads, roofs->memory_set_bytes),
            .threads = roofs->threads,
            .loops = loops};
        struct bench_rate rate;

        if (traffic.set_bytes == 0) {
            continue;
        }
        SLC_TRY(bench_traffic_measure(&traffic, 0, roofs->samples, &rate, err));
        roofs->levels[roofs->level_count++] = (struct bench_level){
            .name = bench_level_name(level),
            .capacity_bytes = level <= SLC_CACHE_LEVELS ? slc_cache_bytes(level) : UINT64_MAX,
            .set_bytes = traffic.set_bytes,
            .bytes_per_second = rate.best};
    }
    return SLC_OK;
}

enum slc_status bench_roofs_measure(struct bench_roofs *roofs,
                                    const char *instruction_set,
                                    unsigned threads,
                                    uint64_t memory_set_bytes,
                                    unsigned repeats,
                                    struct slc_error *err)
{
    const struct bench_bandwidth_set *loops = bench_bandwidth_set(instruction_set);
    struct slc_placement placement;

    if (loops == NULL) {
        return slc_fail(err, SLC_ERR_USAGE, "this machine does not support the instruction set %s",
                        instruction_set);
    }
    *roofs = (struct bench_roofs){.instruction_set = instruction_set,
                                  .threads = threads,
                                  .memory_set_bytes = memory_set_bytes,
                                  .repeats = repeats,
                                  .samples = repeats < ROOF_SAMPLES_MAX / ROOF_SAMPLES
                                                 ? ROOF_SAMPLES * repeats
                                                 : ROOF_SAMPLES_MAX};
    slc_placement_choose(&placement, SLC_PIN_AUTO, threads);
    slc_placement_enter(&placement);
    enum slc_status status = measure_levels(roofs, loops, err);
    SLC_THEN(status,
             measure_peak(loops->peak_f64, loops->f64_per_step, roofs, &roofs->peak_f64, err));
    SLC_THEN(status,
             measure_peak(loops->peak_f32, loops->f32_per_step, roofs, &roofs->peak_f32, err));
    slc_placement_leave();
    return status;
}

enum slc_status bench_roofs_raise(struct bench_roofs *roofs, struct slc_error *err)
{
    struct bench_roofs again;

    SLC_TRY(roofs->device != NULL
                ? bench_roofs_measure_device(&again, roofs->device, roofs->memory_set_bytes,
                                             roofs->repeats, err)
                : bench_roofs_measure(&again, roofs->instruction_set, roofs->threads,
                                      roofs->memory_set_bytes, roofs->repeats, err));
    for (unsigned i = 0; i < roofs->level_count; i++) {
        roofs->levels[i].bytes_per_second =
            fmax(roofs->levels[i].bytes_per_second, again.levels[i].bytes_per_second);
    }
    roofs->peak_f32 = fmax(roofs->peak_f32, again.peak_f32);
    roofs->peak_f64 = fmax(roofs->peak_f64, again.peak_f64);
    return SLC_OK;
}

double bench_roof(const struct bench_roofs *roofs,
                  const struct bench_level *level,
                  enum slc_value_type precision,
                  double flop_per_byte)
{
    return fmin(precision == SLC_F32 ? roofs->peak_f32 : roofs->peak_f64,
                flop_per_byte * level->bytes_per_second);
}

const struct bench_level *bench_roofs_level(const struct bench_roofs *roofs, uint64_t bytes)
{
    unsigned at = 0;

    while (at + 1 < roofs->level_count && roofs->levels[at].capacity_bytes < bytes) {
        at++;
    }
    return &roofs->levels[at];
}

void bench_roofs_to_json(const struct bench_roofs *roofs, json_t *record)
{
    json_t *levels = json_array();
    json_t *peaks = json_array();

    slc_json_set(record, "levels", levels);
    slc_json_set(record, "peaks", peaks);
    for (unsigned i = 0; i < roofs->level_count; i++) {
        const struct bench_level *level = &roofs->levels[i];
        json_t *row = json_object();

        (void)json_array_append_new(levels, row);
        slc_json_set_text(row, "level", level->name);
        slc_json_set_count(row, "set_bytes", level->set_bytes);
        bench_set_real(row, "gb_per_s", level->bytes_per_second * 1e-9);
        bench_set_real(row, "f64_ridge_flop_per_byte", roofs->peak_f64 / level->bytes_per_second);
        bench_set_real(row, "f32_ridge_flop_per_byte", roofs->peak_f32 / level->bytes_per_second);
    }
    for (unsigned i = 0; i < 2; i++) {
        json_t *row = json_object();

        (void)json_array_append_new(peaks, row);
        slc_json_set_text(row, "precision", i == 0 ? "f64" : "f32");
        slc_json_set_text(row, "instruction_set", roofs->instruction_set);
        slc_json_set(row, "threads",
                     roofs->device != NULL ? json_null()
                                           : json_integer((json_int_t)roofs->threads));
        bench_set_real(row, "gflop_per_s", (i == 0 ? roofs->peak_f64 : roofs->peak_f32) * 1e-9);
    }
}
