/* Estimates an iterative run from its first iterations. The first iteration measures strategies and
 * fills the cache; all later iterations are assumed to take the same time as each other. Within the
 * first iteration all passes are assumed to be equally long, except that if the drive is the
 * bottleneck, later passes are assumed not to read the cached bytes.
 *
 * Replicas are used after SLC_CP_COPIES_AFTER iterations. Measured with 2 threads on seven tensors
 * of 0.3 to 2.6 M nonzeros, rank 16: replicas took 0.47 to 0.63 of the planned memory, building
 * replicas took as long as 2 to 28 iterations, and iterations with replicas were 1.2 to 2.1 times
 * as fast as without. The constants below are typical values. */
#include "tools/forecast/estimate.h"

#include "base/error/clock.h"
#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "report/json_parts.h"
#include "tools/progress/format.h"

#include <stdio.h>

#define COPIES_OF_PLANNED 0.56
#define COPIES_ITERATIONS 10.0
#define COPIES_GAIN       1.5
/* Typical growth of a process beyond the plan, from library pages and stacks that are first touched
 * later (measured: 0.2 to 0.9 MiB). The margin of the plan covers this growth. */
#define GROWN_BYTES (UINT64_C(1) << 19)
/* Times before this many seconds are not representative, because memory is first touched and
 * strategies are measured. */
#define EARLY_SECONDS 0.4
/* The drive is the bottleneck if workers wait for more than this fraction of the passes' time. */
#define READING_SHARE 0.3

void estimator_start(struct estimator *estimator)
{
    *estimator = (struct estimator){.start_ns = slc_clock_ns(), .first_seconds = -1};
}

double estimator_seconds(const struct estimator *estimator)
{
    return slc_seconds_since(estimator->start_ns);
}

void estimator_blocks(struct estimator *estimator, unsigned mode, uint64_t done, uint64_t blocks)
{
    if (estimator->first_seconds < 0) {
        estimator->first_seconds = estimator_seconds(estimator);
        estimator->mode = mode;
    }
    if (mode != estimator->mode) {
        estimator->passes += 1;
        estimator->mode = mode;
    }
    estimator->share = slc_ratio((double)done, (double)blocks);
    if (estimator->early_after == 0 &&
        estimator_seconds(estimator) - estimator->first_seconds >= EARLY_SECONDS) {
        estimator->early_after = estimator_seconds(estimator);
        estimator->early_passes = estimator->passes + estimator->share;
    }
}

void estimator_iteration(struct estimator *estimator, const struct slc_cp_iteration *iteration)
{
    const double now = estimator_seconds(estimator);

    if (estimator->completed == 0) {
        estimator->first_iteration = iteration->seconds;
        estimator->first_seconds = now - iteration->seconds;
    } else if (iteration->first_of_copies) {
        estimator->copied = true;
        estimator->recent_seconds = 0;
        estimator->recent = 0;
    }
    if (estimator->completed > 0) {
        estimator->recent_seconds += iteration->seconds;
        estimator->recent++;
    }
    estimator->completed++;
    estimator->completed_after = now;
    estimator->all_seconds += iteration->seconds;
    estimator->passes = 0;
    estimator->share = 0;
}

/* Returns whether a run of `iterations` iterations has yet to build replicas. */
static bool will_use_replicas(const struct estimator *estimator, unsigned iterations)
{
    const struct slc_plan *plan = estimator->plan;

    return plan->copies_bytes > 0 && plan->request.copies == SLC_COPIES_AUTO &&
           !estimator->copied && slc_cp_copies_pay(iterations) &&
           estimator->completed <= SLC_CP_COPIES_AFTER;
}

void estimator_mark(struct estimator *estimator, const struct slc_stream_stats *stats)
{
    estimator->marked_after = estimator_seconds(estimator);
    estimator->peak_bytes = slc_memory_peak();
    estimator->stats = *stats;
    /* If no block is complete yet, the nonzeros of the completed tiles measure the progress. */
    if (estimator->completed == 0 && estimator->passes + estimator->share <= 0 &&
        estimator->nnz > 0) {
        estimator->share = (double)stats->nnz / (double)estimator->nnz;
    }
    if (estimator->first_seconds < 0) {
        estimator->first_seconds = 0;
    }
}

/* Returns the measured seconds per iteration. Within the first iteration, extrapolates from the
 * passes so far. The result is below 0 if the time is unknown. */
static double seconds_each(const struct estimator *estimator, bool reading)
{
    const struct slc_stream_stats *stats = &estimator->stats;
    const double passes = estimator->passes + estimator->share;
    const double planned = estimator->plan->passes > 0 ? estimator->plan->passes : 1;
    const bool early = estimator->early_after > 0 && passes > estimator->early_passes &&
                       estimator->marked_after > estimator->early_after + EARLY_SECONDS;
    const double elapsed =
        estimator->marked_after - (early ? estimator->early_after : estimator->first_seconds);
    const double made = early ? passes - estimator->early_passes : passes;
    const double read = (double)estimator->plan->iteration_read_bytes;

    if (estimator->recent > 0) {
        return estimator->recent_seconds / estimator->recent;
    }
    if (estimator->completed > 0) {
        return estimator->first_iteration;
    }
    if (passes <= 0) {
        return -1;
    }
    if (reading && stats->pass_seconds > 0 && stats->bytes_read > 0) {
        const double workers = estimator->plan->threads;
        const double compute =
            (stats->decode_seconds + stats->compute_seconds) / workers / passes * planned;
        const double drive = read * stats->pass_seconds / (double)stats->bytes_read;

        return drive > compute ? drive : compute;
    }
    return elapsed / made * planned;
}

static void estimate_seconds(const struct estimator *estimator, struct estimate *estimate)
{
    const double each = seconds_each(estimator, estimate->reading);
    const unsigned left = estimate->iterations > estimator->completed
                              ? estimate->iterations - estimator->completed
                              : 0;
    double gone = estimator->completed_after;

    estimate->start_seconds = estimator->first_seconds > 0 ? estimator->first_seconds : 0;
    if (estimate->iterations == 0 || each < 0) {
        estimate->seconds = estimate->iterations == 0 ? estimator->marked_after : -1;
        return;
    }
    if (estimator->completed == 0) {
        gone = estimate->start_seconds;
    }
    if (estimate->iterations < estimator->completed) {
        gone = estimate->start_seconds + each * estimate->iterations;
    } else if (will_use_replicas(estimator, estimate->iterations)) {
        const unsigned before = SLC_CP_COPIES_AFTER - estimator->completed;

        gone += each * (before + COPIES_ITERATIONS + (left - before) / COPIES_GAIN);
    } else {
        gone += each * left;
    }
    estimate->seconds = gone;
    estimate->iteration_seconds = (gone - estimate->start_seconds) / estimate->iterations;
}

static uint64_t estimate_reads(const struct estimator *estimator, unsigned iterations)
{
    const struct slc_plan *plan = estimator->plan;
    double passes = iterations;

    if (iterations == 0) {
        return 0;
    }
    if (slc_plan_starts_with_copies(plan)) {
        return plan->passes > 0 ? (uint64_t)((double)plan->iteration_bytes / plan->passes) : 0;
    }
    if (plan->copies_bytes > 0 && slc_cp_copies_pay(iterations)) {
        passes = SLC_CP_COPIES_AFTER + 1 / (plan->passes > 0 ? plan->passes : 1);
    }
    /* Cached bytes are read from the drive only once. */
    return plan->cache_bytes + (uint64_t)(passes * (double)plan->iteration_read_bytes);
}

/* Returns the size in bytes of slots that remain unused because a pass reads fewer bytes than the
 * slots hold. */
static uint64_t empty_slots_bytes(const struct slc_plan *plan)
{
    const uint64_t slots = plan->slot_count * plan->slot_bytes;
    uint64_t most = 0;

    for (unsigned l = 0; l < plan->layout_count; l++) {
        const struct slc_plan_layout *layout = &plan->layouts[l];

        most = slc_max_u64(most, layout->passes > 0 ? layout->store_bytes : 0);
    }
    return slots > most ? slots - most : 0;
}

uint64_t estimate_memory(const struct slc_plan *plan)
{
    const uint64_t process = slc_min_u64(plan->process_bytes, plan->present_bytes + GROWN_BYTES);
    uint64_t bytes = plan->total_bytes - plan->copies_bytes - (plan->process_bytes - process) -
                     empty_slots_bytes(plan);

    /* If replicas are made at the start, all MTTKRPs use them, so the scratch of other kernels is
     * never used. */
    if (slc_plan_starts_with_copies(plan)) {
        bytes += (uint64_t)(COPIES_OF_PLANNED * (double)plan->copies_bytes) - plan->scratch_bytes;
    }
    return bytes;
}

static uint64_t estimate_peak(const struct estimator *estimator, unsigned iterations)
{
    const struct slc_plan *plan = estimator->plan;
    uint64_t bytes = estimator->peak_bytes;

    /* Outputs, scratch and cache of later modes are first touched during the first iteration. For a
     * single MTTKRP, the trial run does not include the buffers for its input and output files. */
    if (estimator->completed == 0 || plan->request.operation == SLC_OP_MTTKRP) {
        bytes = slc_max_u64(bytes, estimate_memory(plan));
    }
    if (will_use_replicas(estimator, iterations)) {
        bytes += (uint64_t)(COPIES_OF_PLANNED * (double)plan->copies_bytes);
    }
    return slc_min_u64(bytes, plan->total_bytes);
}

void estimator_estimate(const struct estimator *estimator,
                        unsigned iterations,
                        struct estimate *estimate)
{
    const struct slc_stream_stats *stats = &estimator->stats;
    const double workers = estimator->plan->threads;
    const double pass_seconds = stats->pass_seconds;

    *estimate = (struct estimate){.iterations = iterations,
                                  .most_bytes = estimator->plan->total_bytes,
                                  .trial_seconds = estimator->marked_after};
    estimate->wait_share = slc_ratio(stats->wait_seconds / workers, pass_seconds);
    estimate->reading = stats->bytes_read > 0 && estimate->wait_share > READING_SHARE;
    estimate->read_rate = slc_ratio((double)stats->bytes_read, pass_seconds);
    if (estimator->nnz > 0 && pass_seconds > 0) {
        const double passes =
            estimator->completed * estimator->plan->passes + estimator->passes + estimator->share;

        estimate->nnz_rate = passes * (double)estimator->nnz / pass_seconds;
    }
    estimate->memory_bytes = estimate_peak(estimator, iterations);
    estimate->read_bytes = estimate_reads(estimator, iterations);
    estimate_seconds(estimator, estimate);
}

static const char *bottleneck(const struct estimate *estimate)
{
    return estimate->reading ? "reading" : "computing";
}

void estimate_print(const struct estimate *estimate)
{
    struct format_text a, b, c, d;

    if (estimate->trial_seconds > 0) {
        printf("Estimate from the first %s\n", format_seconds(&a, estimate->trial_seconds));
    } else {
        printf("Estimate without a trial run\n");
    }
    printf("  %-12s %s expected, %s at most\n", "memory", format_memory(&a, estimate->memory_bytes),
           format_memory(&b, estimate->most_bytes));
    printf("  %-12s %s from the drive\n", "read", format_data(&a, (double)estimate->read_bytes));
    if (estimate->seconds < 0) {
        if (estimate->trial_seconds > 0) {
            printf("  %-12s unknown: nothing was computed in that time\n", "time");
        } else {
            printf("  %-12s unknown: the first block needs about %s; use --probe-seconds %.0f\n",
                   "time", format_seconds(&a, estimate->start_seconds), estimate->enough_seconds);
        }
        if (estimate->least_seconds > 0) {
            printf("  %-12s %s, limited by the drive\n", "at least",
                   format_seconds(&a, estimate->least_seconds));
        }
        return;
    }
    printf("  %-12s %s for %u iteration%s, %s each; %s before the first\n", "time",
           format_seconds(&a, estimate->seconds), estimate->iterations,
           plural(estimate->iterations), format_seconds(&b, estimate->iteration_seconds),
           format_seconds(&c, estimate->start_seconds));
    printf("  %-12s %s: threads wait for data for %.0f %% of a pass; %snnz/s, %s/s read\n",
           "bottleneck", bottleneck(estimate), 100 * estimate->wait_share,
           format_scaled(&c, estimate->nnz_rate), format_data(&d, estimate->read_rate));
}

json_t *estimate_json(const struct estimate *estimate)
{
    json_t *object = json_pack(
        "{s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:s, s:f, s:f}", "iterations",
        (json_int_t)estimate->iterations, "memory_bytes", (json_int_t)estimate->memory_bytes,
        "memory_most_bytes", (json_int_t)estimate->most_bytes, "read_bytes",
        (json_int_t)estimate->read_bytes, "start_seconds", estimate->start_seconds,
        "iteration_seconds", estimate->iteration_seconds, "bytes_per_second", estimate->read_rate,
        "nnz_per_second", estimate->nnz_rate, "wait_share", estimate->wait_share, "bottleneck",
        bottleneck(estimate), "judged_after_seconds", estimate->trial_seconds, "least_seconds",
        estimate->least_seconds);

    slc_json_set_known_real(object, "seconds", estimate->seconds);
    return object;
}

/* Formats the ratio of actual to expected value, which is never negative. */
static const char *times(double expected, double actual, struct format_text *out)
{
    if (expected == actual) {
        (void)snprintf(out->text, sizeof out->text, "as expected");
    } else if (expected > 0) {
        (void)snprintf(out->text, sizeof out->text, "%.2f times", actual / expected);
    } else {
        (void)snprintf(out->text, sizeof out->text, "none expected");
    }
    return out->text;
}

void estimate_compare(const struct estimate *estimate, const struct estimate_actual *actual)
{
    struct format_text a, b, c;

    if (estimate->trial_seconds > 0) {
        printf("Estimate (from the first %s) and actual values\n",
               format_seconds(&a, estimate->trial_seconds));
    } else {
        printf("Estimate (from the plan) and actual values\n");
    }
    printf("  %-12s expected %s, peak %s (%s)\n", "memory",
           format_memory(&a, estimate->memory_bytes), format_memory(&b, actual->memory_bytes),
           times((double)estimate->memory_bytes, (double)actual->memory_bytes, &c));
    printf("  %-12s expected %s, read %s (%s)\n", "read",
           format_data(&a, (double)estimate->read_bytes),
           format_data(&b, (double)actual->read_bytes),
           times((double)estimate->read_bytes, (double)actual->read_bytes, &c));
    if (estimate->seconds >= 0) {
        printf("  %-12s expected %s, actual %s (%s)\n", "time",
               format_seconds(&a, estimate->seconds), format_seconds(&b, actual->seconds),
               times(estimate->seconds, actual->seconds, &c));
    }
    printf("\n");
}

json_t *estimate_compare_json(const struct estimate *estimate, const struct estimate_actual *actual)
{
    json_t *object = estimate_json(estimate);

    slc_json_set(object, "actual",
                 json_pack("{s:I, s:I, s:f}", "memory_bytes", (json_int_t)actual->memory_bytes,
                           "read_bytes", (json_int_t)actual->read_bytes, "seconds",
                           actual->seconds));
    return object;
}
