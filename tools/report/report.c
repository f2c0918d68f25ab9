/* Prints the report of a run. Every line is flushed, so that a pipe sees it immediately. */
#include "tools/report/report.h"

#include "base/memory/memory.h"
#include "cpu/cpu.h"
#include "report/ratings.h"
#include "report/run_notes.h"
#include "report/run_record.h"
#include "tools/options/fields.h"
#include "tools/progress/format.h"
#include "tools/report/devices_report.h"
#include "tools/session/session.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>

/* Key of a "  key  value" line. */
#define KEY "  %-12s "

static void heading(const char *text)
{
    printf("%s\n", text);
}

void report_tensor(const struct slc_store *store)
{
    const struct slc_manifest *manifest = &store->manifest;
    struct format_text bytes;
    struct format_text count;
    char dims[FORMAT_DIMS_BYTES];
    double cells = 1;

    for (unsigned n = 0; n < manifest->order; n++) {
        cells *= (double)manifest->dims[n];
    }
    heading("Tensor information");
    printf(KEY "%s\n", "file", store->path);
    printf(KEY "%s\n", "dims", format_dims(dims, manifest->order, manifest->dims));
    printf(KEY "%s (density %.3g), values %s\n", "nonzeros", format_count(&count, manifest->nnz),
           (double)manifest->nnz / cells, manifest->value_type == SLC_F32 ? "f32" : "f64");
    for (unsigned i = 0; i < manifest->layout_count; i++) {
        const struct slc_store_layout *layout = &manifest->layouts[i];

        printf(KEY "%s, codec %s, %s in %" PRIu64 " block%s\n", i == 0 ? "layouts" : "",
               layout->file, slc_codec_name(layout->codec),
               format_data(&bytes, (double)layout->file_bytes), layout->block_count,
               plural(layout->block_count));
    }
    printf(KEY "%.2f bytes per nonzero (coordinates %.2f bits)\n\n", "stored",
           session_bytes_per_nonzero(manifest),
           slc_ratio(8.0 * (double)manifest->layouts[0].index_bytes, (double)manifest->nnz));
    (void)fflush(stdout);
}

void report_part(const char *name, uint64_t bytes, const char *what)
{
    struct format_text text;

    if (bytes > 0) {
        printf("    %-10s %10s  %s\n", name, format_memory(&text, bytes), what);
    }
}

static void report_threads(const struct slc_plan *plan)
{
    struct slc_topology topology;

    slc_topology_allowed(&topology);
    printf(KEY "%u for %u processor%s on %u core%s and %u NUMA node%s", "threads", plan->threads,
           topology.processor_count, plural(topology.processor_count), topology.core_count,
           plural(topology.core_count), topology.node_count, plural(topology.node_count));
    if (plan->placement.workers == 0) {
        printf(", not pinned (--pin %s)\n", slc_pin_name(plan->request.pin));
        return;
    }
    printf(", pinned to");
    for (unsigned w = 0; w < plan->placement.workers; w++) {
        printf("%s%u", w == 0 ? " " : ",", plan->placement.processor[w]);
    }
    printf("\n");
}

/* Prints the strategy of a mode, and the strategy that is compared with it, or that would be
 * compared with it if there were more memory. */
static void plan_conflict(const struct slc_plan *plan, unsigned mode)
{
    const struct slc_conflict_choice *choice = &plan->choices[mode];

    if (slc_plan_starts_with_copies(plan)) {
        printf(" %u:%s", mode + 1, slc_conflict_name(SLC_CONFLICT_REPLICA));
        return;
    }
    printf(" %u:%s", mode + 1, slc_conflict_name(choice->chosen));
    if (choice->rival != SLC_CONFLICT_AUTO) {
        printf(" (or %s: measured first)", slc_conflict_name(choice->rival));
    } else if (plan->untried[mode] != SLC_CONFLICT_AUTO) {
        printf(" (no memory to measure %s)", slc_conflict_name(plan->untried[mode]));
    }
}

/* Prints the bytes that an iteration reads, and the layouts. */
static void report_passes(const struct slc_plan *plan, unsigned order)
{
    const double bytes = (double)plan->iteration_bytes;
    const double read = (double)plan->iteration_read_bytes;
    struct format_text a;
    struct format_text b;

    printf(KEY "%s in %g pass%s per iteration, %s of that read from the drive (%.1f %%)\n",
           "passes", format_data(&a, bytes), plan->passes, plan->passes > 1 ? "es" : "",
           format_data(&b, read), slc_ratio(100.0 * read, bytes));
    if (plan->layout_count == 1 && plan->other_read_bytes == UINT64_MAX) {
        return;
    }
    printf(KEY, "layouts");
    for (unsigned n = 0; n < order; n++) {
        if (plan->request.operation == SLC_OP_CPD || n == plan->request.mode) {
            printf(plan->mode_layout[n] > 0 ? "%u:sorted-%u " : "%u:blco ", n + 1, n + 1);
        }
    }
    if (plan->other_read_bytes == UINT64_MAX) {
        printf("\n");
    } else if (plan->copies_bytes > 0) {
        printf("(replicas, which fit into memory, are made from blco)\n");
    } else {
        printf("(%s would read %s per iteration)\n",
               plan->layout_count > 1 ? "only blco" : "sorted layouts",
               format_data(&a, (double)plan->other_read_bytes));
    }
}

/* Prints the passes that update two modes, and the bytes that plain passes would read. */
static void report_fused(const struct slc_plan *plan, unsigned order)
{
    const struct slc_plan_fusion *fusion = &plan->fusion;
    struct format_text bytes;

    if (fusion->modes == 0) {
        return;
    }
    printf(KEY, "fused");
    for (unsigned k = 0; k < order; k++) {
        const unsigned mode = plan->mode_order[k];

        if ((fusion->modes >> mode & 1U) != 0) {
            printf("%u+%u (%" PRIu64 " row ranges, at most %" PRIu64 " block%s each) ", mode + 1,
                   plan->mode_order[(k + 1) % order] + 1, fusion->ranges[mode],
                   fusion->range_blocks[mode], plural(fusion->range_blocks[mode]));
        }
    }
    if (fusion->other_read_bytes == UINT64_MAX) {
        printf("two modes per pass\n");
    } else {
        printf("two modes per pass; plain passes would read %s per iteration\n",
               format_data(&bytes, (double)fusion->other_read_bytes));
    }
}

/* Prints the rows that are read again in every inner iteration. */
static void report_streamed(const struct slc_plan *plan, unsigned order)
{
    struct format_text bytes;

    for (unsigned n = 0; n < order; n++) {
        const uint64_t rows = plan->rows.streamed_rows[n];

        if (rows > 0) {
            printf(KEY "%" PRIu64 " row%s of mode %u exceed%s the ring: each inner iteration after "
                       "the first reads %s\n",
                   "large rows", rows, plural(rows), n + 1, rows == 1 ? "s" : "",
                   format_data(&bytes, (double)plan->rows.streamed_bytes[n]));
        }
    }
}

/* Prints the modes whose rows are gathered, and what sorted layouts would save. */
static void report_gathered(const struct slc_plan *plan, unsigned order)
{
    struct format_text read;
    struct format_text disk;

    if (plan->rows.gathered == 0) {
        return;
    }
    printf(KEY, "gathered");
    for (unsigned n = 0; n < order; n++) {
        if ((plan->rows.gather_kept >> n & 1U) != 0) {
            printf("%u:once ", n + 1);
        } else if ((plan->rows.gathered >> n & 1U) != 0) {
            printf("%u:%" PRIu64 " pass%s ", n + 1, plan->rows.gather_passes[n],
                   plan->rows.gather_passes[n] == 1 ? "" : "es");
        }
    }
    printf("(with \"layout --sorted all\", about %s of disk, an iteration would read about %s)\n",
           format_data(&disk, (double)plan->rows.missing_bytes),
           format_data(&read, (double)plan->rows.sorted_read_bytes));
}

void report_plan(const struct slc_plan *plan, unsigned order)
{
    const bool conflicts = plan->request.gpu == NULL && !plan->request.rows.nonzeros;
    struct format_text a;
    struct format_text b;
    char slots[96];
    char cache[96];

    (void)snprintf(slots, sizeof slots, "%u slots of %s", plan->slot_count,
                   format_memory(&a, plan->slot_bytes));
    (void)snprintf(cache, sizeof cache, "%" PRIu64 " block%s kept between passes",
                   plan->cached_blocks, plural(plan->cached_blocks));
    printf(KEY "%s of a budget of %s (minimum: %.0f MiB)\n", "memory",
           format_memory(&a, plan->total_bytes), format_memory(&b, plan->budget_bytes),
           (double)(plan->minimum_bytes + ((1U << 20) - 1)) / (1U << 20));
    report_part("process", plan->process_bytes, "program, libraries, stacks");
    report_part("index", plan->index_bytes, "an entry per block");
    report_part("factors", plan->factor_bytes, plan->request.precision == SLC_F32 ? "f32" : "f64");
    report_part("output", plan->output_bytes, "MTTKRP, the largest mode");
    report_part("dense", plan->dense_bytes, "Gram matrices and solver");
    report_part("devices", plan->device_bytes,
                plan->request.gpu != NULL ? "block descriptors and device management"
                                          : "ring buffers for rows, and their owners");
    report_part("kernels", plan->scratch_bytes, "private copies or tile rows");
    report_part("second", slc_plan_fused_bytes(&plan->fusion),
                "MTTKRP and kernels of the second mode of a pass");
    report_part("rows", slc_plan_rows_bytes(&plan->rows), "decoded nonzeros, and tables of rows");
    report_part("decoders", plan->decoder_bytes, "one per thread");
    report_part("labels", plan->label_bytes, "the largest permutation, at start and end");
    report_part("ring", plan->slot_count * plan->slot_bytes, slots);
    report_part("cache", plan->cache_bytes, cache);
    report_part("copies", plan->copies_bytes,
                plan->request.copies == SLC_COPIES_ALWAYS ? "one per mode, from the start"
                                                          : "one per mode, in a long run");
    gpu_report_plan(plan, order);
    report_passes(plan, order);
    report_fused(plan, order);
    report_streamed(plan, order);
    report_gathered(plan, order);
    report_threads(plan);
    printf(KEY "%s blocks first%s", "schedule",
           plan->schedule == SLC_SCHEDULE_FILE ? "earliest" : "largest",
           conflicts ? ", conflicts" : "");
    for (unsigned n = 0; n < order && conflicts; n++) {
        if (plan->request.operation == SLC_OP_CPD || n == plan->request.mode) {
            plan_conflict(plan, n);
        }
    }
    printf("\n");
}

void report_copies_missed(const struct slc_plan *plan)
{
    struct format_text needed;
    struct format_text available;

    if (plan->copies_wanted_bytes > 0) {
        printf(KEY "none: replicas need %s, the budget has %s left\n", "copies",
               format_memory(&needed, plan->copies_wanted_bytes),
               format_memory(&available, plan->copies_room_bytes));
    }
}

static bool natural_order(const struct slc_plan *plan, unsigned order)
{
    for (unsigned k = 0; k < order; k++) {
        if (plan->mode_order[k] != k) {
            return false;
        }
    }
    return true;
}

void report_not_fused(const struct slc_plan *plan)
{
    static const char *const reasons[] = {
        [SLC_FUSION_FIXED_BITS] = "with --deterministic they need --passes fused",
        [SLC_FUSION_COPIES] = "replicas will be used",
        [SLC_FUSION_CPU_GROUPS] = "with --devices each pass updates one mode",
        [SLC_FUSION_GPU] = "on the device each pass updates one mode",
        /* The two literals are one text. NOLINTNEXTLINE(bugprone-suspicious-missing-comma) */
        [SLC_FUSION_NO_RANGES] =
            "no layout completes rows of a mode within the maximum number of slots",
        [SLC_FUSION_FEW_RANGES] = "there would be fewer row ranges than threads",
        [SLC_FUSION_NO_MEMORY] = "not enough memory for a row range and a second output",
    };
    struct format_text bytes;

    if (plan->fusion.reason == SLC_FUSION_NO_GAIN) {
        printf(KEY "no: two modes per pass would read %s per iteration\n", "fused",
               format_data(&bytes, (double)plan->fusion.other_read_bytes));
    } else if (plan->fusion.reason != SLC_FUSION_TAKEN &&
               plan->fusion.reason != SLC_FUSION_NOT_ASKED) {
        printf(KEY "no: %s\n", "fused", reasons[plan->fusion.reason]);
    }
}

/* Prints the regularization, one number if it is the same for all modes. */
static void report_regularization(const struct slc_row_terms *terms, unsigned order)
{
    bool some = false, same = true;

    for (unsigned n = 0; n < order; n++) {
        some = some || terms[n].ridge > 0;
        same = same && terms[n].ridge == terms[0].ridge;
    }
    for (unsigned n = 0; some && n < (same ? 1 : order); n++) {
        printf("%s%g", n == 0 ? ", reg " : ",", terms[n].ridge);
    }
}

void report_factoring(const struct slc_plan *plan,
                      unsigned order,
                      const struct slc_cp_options *options)
{
    char constraints[SLC_CP_TERMS_BYTES];

    heading("Factoring");
    printf(KEY "%s, rank %u, at most %u iteration%s, tol %g", "method",
           slc_cp_title(options, options->algorithm), options->rank, options->iterations,
           plural(options->iterations), options->tolerance);
    report_regularization(options->terms, order);
    if (options->max_seconds > 0) {
        printf(", at most %g s", options->max_seconds);
    }
    slc_cp_terms_text(options->terms, order, constraints);
    if (constraints[0] != '\0') {
        printf("\n" KEY "%s", "constraints", constraints);
    }
    if (options->init_folder != NULL) {
        printf("\n" KEY "from %s\n", "start", options->init_folder);
    } else {
        printf("\n" KEY "uniform random, seed %" PRIu64 "\n", "start", options->seed);
    }
    if (plan->request.mode_order_set || !natural_order(plan, order)) {
        printf(KEY, "mode order");
        for (unsigned n = 0; n < order; n++) {
            printf("%s%u", n == 0 ? "" : ",", plan->mode_order[n] + 1);
        }
        printf("%s\n",
               plan->request.mode_order_set ? "" : " (chosen by the plan: reads the least)");
    }
}

void report_device(const struct slc_plan *plan, const struct slc_error *no_gpu)
{
    const char *precision = plan->request.precision == SLC_F32 ? "f32, sums in f64" : "f64";
    const char *deterministic = plan->request.deterministic ? ", deterministic" : "";
    char several[16] = "";
    struct fault_text why;

    if (plan->request.gpu != NULL) {
        if (plan->request.gpu_count > 0) {
            (void)snprintf(several, sizeof several, "%u x ", plan->request.gpu_count);
        }
        printf(KEY "%s%s (%s), %u stream%s, %s%s; %u thread%s verifying blocks%s\n", "device",
               several, plan->gpu.name, plan->request.gpu->ops->name, plan->gpu.streams,
               plural(plan->gpu.streams), precision, deterministic, plan->threads,
               plural(plan->threads),
               plan->request.hybrid.kind != SLC_HYBRID_NONE ? " and computing" : "");
        gpu_report_described(plan, no_gpu);
        return;
    }
    printf(KEY "CPU (%s), %u thread%s, %s%s", "device", slc_cpu_instruction_set(), plan->threads,
           plural(plan->threads), precision, deterministic);
    if (plan->cpu_groups > 0) {
        printf("; %u device%s of %u thread%s", plan->cpu_groups, plural(plan->cpu_groups),
               plan->group_threads, plural(plan->group_threads));
    }
    printf("\n");
    if (no_gpu->status != SLC_OK && plan->cpu_groups == 0) {
        printf(KEY "not used: %s\n", "GPU", fault_text(&why, no_gpu));
    }
}

void report_conflict(unsigned mode, bool second, const struct slc_conflict_choice *choice)
{
    if (choice->cost_count < 2) {
        return;
    }
    printf("     mode = %u conflicts%s:", mode + 1, second ? " as second mode of a pass" : "");
    for (unsigned i = 0; i < choice->cost_count; i++) {
        const struct slc_conflict_cost *cost = &choice->costs[i];

        printf(" %s %.2f", slc_conflict_name(cost->conflict), cost->predicted_ns);
        if (cost->measured_ns > 0) {
            printf(" (measured %.2f)", cost->measured_ns);
        }
        printf("%s", i + 1 < choice->cost_count ? "," : " ns per nonzero");
    }
    printf("; %s\n", slc_conflict_name(choice->chosen));
}

static void report_copy(unsigned mode, const struct slc_replica_form *form)
{
    const bool one = (form->varying & (form->varying - 1)) == 0;
    char modes[FORMAT_MODES_BYTES];

    printf("     mode = %u copy: ", mode + 1);
    if (form->varying == 0) {
        printf("plain");
    } else {
        printf("runs of %.2f nonzeros, in which %s %s", form->nnz_per_run, one ? "mode" : "modes",
               format_modes(modes, form->varying));
        printf(one ? " varies" : " vary");
    }
    if (form->tried > 0) {
        printf("; fastest of %u measured\n", form->tried);
    } else {
        printf("; lowest predicted cost, not measured\n");
    }
}

void report_iteration(const struct slc_cp_iteration *iteration, unsigned order, bool verbose)
{
    struct format_text bytes;
    struct format_text rate;

    if (verbose && iteration->first_of_copies) {
        printf("     replicas are complete; MTTKRPs use them from now on\n");
        for (unsigned n = 0; n < order; n++) {
            report_copy(n, &iteration->copies[n]);
        }
    }
    if (verbose && iteration->copies_fault != NULL) {
        printf("     replicas (planned: %s) are not used: %s\n",
               format_memory(&bytes, iteration->copies_bytes), iteration->copies_fault->message);
    }
    printf("  its = %3u (%.3fs)  fit = %.5f  delta = %+.4e   read %s in %u pass%s at %s/s\n",
           iteration->iteration, iteration->seconds, iteration->fit, iteration->delta,
           format_data(&bytes, (double)iteration->bytes_read), iteration->passes,
           iteration->passes == 1 ? "" : "es",
           format_data(&rate, slc_ratio((double)iteration->bytes_read, iteration->seconds)));
    if (iteration->objective_name != NULL) {
        printf("     %s = %.10g", iteration->objective_name, iteration->objective);
        if (iteration->violation > 0) {
            printf("  KKT violation = %.3g", iteration->violation);
        }
        if (iteration->inner > 0) {
            printf("  inner iterations = %.2f", iteration->inner);
        }
        printf("\n");
    }
    if (iteration->heldout > 0 && iteration->objective_name != NULL) {
        printf("     held out: RMSE = %.6g  MAE = %.6g  deviance = %.6g\n", iteration->heldout_rmse,
               iteration->heldout_mae, iteration->heldout_deviance);
    } else if (iteration->heldout > 0) {
        printf("     held out: RMSE = %.6g\n", iteration->heldout_rmse);
    }
    for (unsigned n = 0; verbose && n < order; n++) {
        printf("     mode = %u (%.3fs)%s\n", n + 1, iteration->mode_seconds[n],
               iteration->singular[n] ? "  Gram matrix singular: solved by eigenvalue decomposition"
                                      : "");
    }
    for (unsigned n = 0; verbose && iteration->iteration == 1 && n < order; n++) {
        report_conflict(n, false, &iteration->choices[n]);
    }
    for (unsigned n = 0; verbose && n < order; n++) {
        if ((iteration->settled >> n & 1U) != 0) {
            report_conflict(n, true, &iteration->second_choices[n]);
        }
    }
    (void)fflush(stdout);
}

/* Prints the notes about the result, each with the options that it recommends. */
static void print_notes(const struct slc_cp_result *result)
{
    static const char *const options[] = {[SLC_NOTE_CANCELLING] =
                                              " (--reg, --rank; sluice convert --transform log1p)",
                                          [SLC_NOTE_COLLINEAR] = " (--rank, --reg)",
                                          [SLC_NOTE_RISING] = " (--iters, --tol)",
                                          [SLC_NOTE_HOLDOUT] = ""};
    struct slc_run_note notes[SLC_RUN_NOTES];
    const unsigned count = slc_run_notes(result, notes);

    for (unsigned i = 0; i < count; i++) {
        printf("Note: %s%s\n", notes[i].text, options[notes[i].kind]);
    }
    printf("%s", count > 0 ? "\n" : "");
}

/* Prints the objective of methods that update rows from their nonzeros, the biases, and, if the
 * result is the model of an earlier iteration, this iteration. */
static void report_objective(const struct slc_cp_result *result)
{
    if (result->loss == SLC_LOSS_LS && result->unlisted == SLC_UNLISTED_ZERO) {
        return;
    }
    printf("Objective: %s %.10g", slc_cp_objective_name(result->loss, result->unlisted),
           result->objective);
    if (result->violation > 0) {
        printf(", KKT violation %.3g", result->violation);
    }
    if (result->best_iteration > 0) {
        printf(", the model of iteration %u, the best for the held-out nonzeros",
               result->best_iteration);
    }
    printf("\n");
    if (result->biases > 0) {
        printf("Components %" PRIu32 " to %" PRIu32 " are %sthe mean\n",
               result->rank - result->biases + 1, result->rank,
               result->bias_modes != 0 ? "the biases of the modes and " : "");
    }
    printf("\n");
}

void report_fit(const struct slc_cp_result *result)
{
    struct format_text count;

    printf("\nFinal fit: %.8f, stopped by %s after %u iteration%s\n\n", result->fit,
           slc_stop_reason_name(result->reason), result->iterations, plural(result->iterations));
    report_objective(result);
    if (result->heldout > 0) {
        printf("Held out: %s nonzeros, RMSE %.6g, MAE %.6g; RMSE of a zero model %.6g\n\n",
               format_count(&count, result->heldout), result->heldout_rmse, result->heldout_mae,
               result->heldout_norm / sqrt((double)result->heldout));
    }
    print_notes(result);
}

void report_ratings(const struct slc_manifest *manifest, bool unknown)
{
    char text[SLC_RUN_NOTE_BYTES];

    if (slc_ratings_note(manifest, unknown, text, sizeof text)) {
        printf("Note: %s\n\n", text);
    }
}

void report_times(const struct slc_cp_result *result,
                  double total_seconds,
                  double seconds_before,
                  double write_seconds,
                  const struct slc_stream_stats *stats,
                  unsigned threads)
{
    struct format_text bytes;
    struct format_text rate;

    heading("Timing information");
    printf(KEY "%10.3fs", "total", total_seconds);
    if (seconds_before > 0) {
        printf("  including %.3fs of earlier runs, as do the lines init to checkpoint",
               seconds_before);
    }
    printf("\n");
    printf(KEY "%10.3fs  wall time of %" PRIu64 " pass%s: %s at %s/s\n", "read",
           stats->pass_seconds, stats->passes, stats->passes == 1 ? "" : "es",
           format_data(&bytes, (double)stats->bytes_read),
           format_data(&rate, slc_ratio((double)stats->bytes_read, stats->pass_seconds)));
    printf(KEY "%10.3fs  per thread, waiting for data\n", "wait", stats->wait_seconds / threads);
    printf(KEY "%10.3fs  per thread\n", "decode", stats->decode_seconds / threads);
    printf(KEY "%10.3fs  per thread\n", "multiply", stats->compute_seconds / threads);
    if (result != NULL) {
        const struct slc_cp_times *times = &result->times;

        printf(KEY "%10.3fs\n", "init", times->init);
        printf(KEY "%10.3fs\n", "MTTKRP", times->mttkrp);
        if (result->copies_after != UINT_MAX) {
            printf(KEY "%10.3fs  one per mode, after iteration %u\n", "copies", times->copies,
                   result->copies_after);
        }
        printf(KEY "%10.3fs\n", "solve", times->solve);
        printf(KEY "%10.3fs\n", "fit", times->fit);
        if (result->checkpoints.count > 0) {
            printf(KEY "%10.3fs  %" PRIu64 " written\n", "checkpoint", result->checkpoints.seconds,
                   result->checkpoints.count);
        }
    }
    if (write_seconds >= 0) {
        printf(KEY "%10.3fs\n", "write", write_seconds);
    }
    printf("\n");
}

void report_reads_add(struct report_reads *reads, const struct slc_plan *plan, uint64_t bytes_read)
{
    double whole = (double)plan->iteration_bytes;
    double share = slc_ratio((double)bytes_read, whole);

    if (reads->iterations == 0 || share < reads->lowest_share) {
        reads->lowest_share = share;
    }
    reads->iterations++;
}

void report_resources(const struct slc_plan *plan,
                      const struct slc_stream_stats *stats,
                      const struct report_reads *reads)
{
    struct format_text a;
    struct format_text b;
    uint64_t peak = slc_memory_peak();
    uint64_t kernel = slc_run_kernel_read_bytes();

    heading("Resources");
    printf(KEY "peak %s, budget %s (%.1f %%)\n", "memory", format_memory(&a, peak),
           format_memory(&b, plan->budget_bytes),
           100.0 * (double)peak / (double)plan->budget_bytes);
    printf(KEY "%s from the drive, %s from the cache of %" PRIu64 " block%s\n", "read",
           format_data(&a, (double)stats->bytes_read), format_data(&b, (double)stats->bytes_cached),
           stats->cache_blocks, plural(stats->cache_blocks));
    if (plan->request.gpu != NULL) {
        printf(KEY "%s of blocks that were resident on the device\n", "not read",
               format_data(&a, (double)stats->bytes_resident));
    }
    printf(KEY "at least %.1f %% of the bytes of each iteration were read from the drive\n",
           "share", reads->iterations > 0 ? 100.0 * reads->lowest_share : 0.0);
    if (kernel != UINT64_MAX) {
        printf(KEY "%s read from drives, counted by the kernel\n", "kernel",
               format_data(&a, (double)kernel));
    }
    printf(KEY "%s%s%s%s\n", "I/O", slc_io_name(stats->io),
           stats->direct ? ", direct (bypassing the page cache)" : ", through the page cache",
           stats->note[0] != '\0' ? "; " : "", stats->note);
    (void)fflush(stdout);
}
