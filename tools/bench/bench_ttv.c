/* sluice bench ttv: measures sparse tensor times vector in memory, in every mode. Compares the
 * kernel of sluice with baselines, and with variants in which one switch is changed, as in [SPTV]
 * section 6.2.
 *
 * Figures per kernel, mode and number of threads:
 *   nnz_per_s  nonzeros per second
 *   moved      bytes of the stored fibers, the sums and the used part of the vector, counted once
 *   ceiling    moved bytes per second, divided by the rate of reads from a working set of this
 *              size (ceiling.h)
 *   ratio      time divided by the time of kernel sluice in the same mode
 *   error      largest difference of an element of the result from the element that a plain loop
 *              computes, relative to the sum of magnitudes of the terms of this element */
#include "base/error/clock.h"
#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "base/thread/team.h"
#include "cpu/cpu.h"
#include "tools/bench/bench.h"
#include "tools/bench/measure/resident.h"
#include "tools/bench/measure/run.h"
#include "tools/bench/product/ttv_kernels.h"
#include "tools/bench/roofline/ceiling.h"
#include "tools/progress/console.h"
#include "tools/session/common_options.h"
#include "tools/session/session.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

struct arguments {
    struct option_counts threads;
    uint64_t mode;
    const char *kernel;
    bool keep_empty;
    bool keep_unused;
    const char *schedule;
    uint64_t memory;
    struct bench_options bench;
};

static const char *const kernel_choices[] = {"sluice", "switches", "baselines", "all", NULL};
static const char *const schedule_choices[] = {"auto", "largest", "file", NULL};

static const struct option options[] = {
    BENCH_OPTION_ROW_THREADS(arguments, threads),
    BENCH_OPTION_ROW_MODE(arguments, mode),
    {"kernel", OPTION_CHOICE, offsetof(struct arguments, kernel), .value = "NAME",
     .fallback = "all", .choices = kernel_choices,
     .help = "sluice (its kernel for TTV), switches (also variants of this kernel, each with one "
             "choice changed), baselines (also loops over coordinates, CSR rebuilt each time, and "
             "runs from encoded tiles) or all"},
    {"keep-empty-fibers", OPTION_FLAG, offsetof(struct arguments, keep_empty),
     .help = "store fibers without nonzeros too"},
    {"keep-unused", OPTION_FLAG, offsetof(struct arguments, keep_unused),
     .help = "keep the whole vector, even if few of its indices occur"},
    {"schedule", OPTION_CHOICE, offsetof(struct arguments, schedule), .value = "ORDER",
     .fallback = "auto", .choices = schedule_choices,
     .help = "order in which threads process blocks: auto (blocks of more than twice the mean size "
             "first), largest (all blocks by decreasing size) or file"},
    OPTION_ROW_MEMORY(arguments, memory),
    BENCH_OPTION_ROWS(arguments, "9"),
    {.name = NULL}};

static const struct bench_column mode_columns[] = {{"threads", "threads", 0, 0},
                                                   {"mode", "mode", 0, 0},
                                                   {"kernel", "kernel", 0, 0},
                                                   {"fibers", "fibers", 0, 0},
                                                   {"nnz_per_fiber", "nnz/fiber", 1, 2},
                                                   {"used_share", "% used", 100, 1},
                                                   {"bytes_per_nnz", "bytes/nnz", 1, 1},
                                                   {"median_ms", "ms", 1, 3},
                                                   {"convert_ms", "converting", 1, 3},
                                                   {"ratio", "over sluice", 1, 2},
                                                   {"nnz_per_s", "Mnnz/s", 1e-6, 1},
                                                   {"moved_gb_per_s", "GB/s", 1, 1},
                                                   {"ceiling_gb_per_s", "read GB/s", 1, 1},
                                                   {"ceiling_share", "% of it", 100, 0},
                                                   {NULL, NULL, 0, 0}};

static const struct bench_column total_columns[] = {{"threads", "threads", 0, 0},
                                                    {"kernel", "kernel", 0, 0},
                                                    {"modes", "modes", 0, 0},
                                                    {"all_modes_ms", "all modes ms", 1, 3},
                                                    {"ratio", "over sluice (mean)", 1, 2},
                                                    {"smallest_ratio", "least", 1, 2},
                                                    {NULL, NULL, 0, 0}};

static const struct bench_table tables[] = {
    {"rows", mode_columns, false}, {"totals", total_columns, false}, {NULL, NULL, false}};

/* Measurements of a kernel in one mode. */
struct cell {
    struct bench_samples samples, convert;
    unsigned calls; /* number of calls per sample */
    double error;
};

/* Sums over the modes of the figures of a kernel. */
struct total {
    unsigned modes;
    double seconds;
    double log_ratio;
    double smallest_ratio;
};

struct ttv_bench {
    const struct arguments *args;
    struct slc_session session;
    struct bench_ceilings ceilings;
    struct ttv_tensor tensor;
    struct ttv_job job;
    struct ttv_switches switches;
    bool wanted[TTV_KERNELS];
    struct cell *cells; /* TTV_KERNELS elements */
    struct total totals[OPTION_COUNTS_MAX][TTV_KERNELS];
    json_t *rows;
};

static unsigned thread_count(const struct arguments *args, unsigned i)
{
    const uint64_t threads = args->threads.number[i];

    return threads > 0 ? (unsigned)threads : slc_team_default_workers();
}

static enum slc_sptv_schedule schedule_of(const char *name)
{
    if (strcmp(name, "auto") == 0) {
        return SLC_SPTV_AUTO;
    }
    return strcmp(name, "file") == 0 ? SLC_SPTV_FILE : SLC_SPTV_LARGEST;
}

static void choose_kernels(struct ttv_bench *bench)
{
    const char *kernel = bench->args->kernel;
    const bool all = strcmp(kernel, "all") == 0;
    const bool switches = all || strcmp(kernel, "switches") == 0;
    const bool baselines = all || strcmp(kernel, "baselines") == 0;

    for (enum ttv_kernel k = 0; k < TTV_KERNELS; k++) {
        bench->wanted[k] = k == TTV_SLUICE || (k <= TTV_FILE_ORDER ? switches : baselines);
    }
    bench->switches = (struct ttv_switches){
        .keep_empty = bench->args->keep_empty,
        .options = {bench->args->keep_unused ? SLC_SPTV_UNUSED_KEEP : SLC_SPTV_UNUSED_AUTO,
                    schedule_of(bench->args->schedule)}};
}

/* Loads all blocks into memory if their tiles have fiber runs of this mode. */
static enum slc_status start_tiles(struct ttv_bench *bench, unsigned threads, struct slc_error *err)
{
    const struct slc_fiber_run *run = &slc_reader_info(bench->session.store.reader)->keys.run;
    const struct slc_plan_request request = {.operation = SLC_OP_CPD,
                                             .rank = 1,
                                             .precision = SLC_F64,
                                             .threads = threads,
                                             .memory_bytes = bench->args->memory,
                                             .cache = true};

    if (!bench->wanted[TTV_TILES] || run->bits == 0 || run->mode != bench->job.fibers.mode) {
        return SLC_OK;
    }
    bench->job.has[TTV_TILES] = true;
    bench->job.session = &bench->session;
    return bench_resident_start(&bench->session, &request, err);
}

/* Least duration of a sample; short products are repeated to reach it. Reading the clock takes 20
 * to 30 ns, as long as a product of a few nonzeros, and is negligible in a sample of this
 * duration. */
#define SAMPLE_SECONDS 20e-6

/* Runs a product `calls` times. Sets *seconds to the time per call. */
static enum slc_status run_calls(struct ttv_bench *bench,
                                 enum ttv_kernel kernel,
                                 unsigned threads,
                                 unsigned calls,
                                 double *seconds,
                                 double *convert_seconds,
                                 struct slc_error *err)
{
    const uint64_t start_ns = slc_clock_ns();

    for (unsigned i = 0; i < calls; i++) {
        SLC_TRY(ttv_job_run(&bench->job, kernel, threads, convert_seconds, err));
    }
    *seconds = slc_seconds_since(start_ns) / calls;
    return SLC_OK;
}

/* Measures a kernel directly after an untimed run of the same kernel, so that the caches have the
 * data of the kernel. The first measurement determines the number of calls per sample. */
static enum slc_status measure_once(struct ttv_bench *bench,
                                    enum ttv_kernel kernel,
                                    unsigned threads,
                                    bool counts,
                                    struct slc_error *err)
{
    struct cell *cell = &bench->cells[kernel];
    double seconds, convert_seconds;

    SLC_TRY(run_calls(bench, kernel, threads, 1, &seconds, &convert_seconds, err));
    if (cell->calls == 0) {
        SLC_TRY(run_calls(bench, kernel, threads, 1, &seconds, &convert_seconds, err));
        cell->calls = 1 + (unsigned)(SAMPLE_SECONDS / (seconds + 1e-9));
    }
    if (counts) {
        SLC_TRY(run_calls(bench, kernel, threads, cell->calls, &seconds, &convert_seconds, err));
        bench_samples_add(&cell->samples, seconds);
        bench_samples_add(&cell->convert, convert_seconds);
    }
    return SLC_OK;
}

/* Measures all kernels in rounds. Each round has another order of kernels, because a kernel is
 * slower after a kernel with much data. */
static enum slc_status
measure_rounds(struct ttv_bench *bench, unsigned threads, struct slc_error *err)
{
    enum { STRIDES = 4 };
    static const unsigned strides[STRIDES] = {1, 3, 7, 9}; /* coprime to the number of kernels */
    const uint64_t warm_up = bench->args->bench.warm_up;
    const uint64_t rounds = warm_up + bench->args->bench.repeats;

    memset(bench->cells, 0, TTV_KERNELS * sizeof *bench->cells);
    for (uint64_t i = 0; i < rounds; i++) {
        for (unsigned turn = 0; turn < TTV_KERNELS; turn++) {
            const enum ttv_kernel k =
                (enum ttv_kernel)((turn * strides[i % STRIDES] + i) % TTV_KERNELS);

            if (bench->job.has[k]) {
                SLC_TRY(measure_once(bench, k, threads, i >= warm_up, err));
                bench->cells[k].error =
                    i == 0 ? ttv_job_error(&bench->job, k) : bench->cells[k].error;
            }
        }
    }
    return SLC_OK;
}

/* Records the size of the stored fibers, the bytes that a product moves and their ceiling. */
static enum slc_status set_form(struct ttv_bench *bench,
                                enum ttv_kernel kernel,
                                unsigned threads,
                                double seconds,
                                json_t *row,
                                struct slc_error *err)
{
    const struct slc_sptv *form = ttv_job_form(&bench->job, kernel);
    const uint64_t moved = ttv_job_moved_bytes(&bench->job, kernel);
    const double rate = (double)moved / seconds;
    double ceiling = 0;

    if (form == NULL) {
        return SLC_OK;
    }
    enum slc_status status =
        bench_ceiling(&bench->ceilings, BENCH_READ, moved, 0, threads, &ceiling, err);
    slc_json_set_count(row, "blocks", form->block_count);
    slc_json_set_count(row, "index_bytes", form->index_bytes);
    slc_json_set_count(row, "value_bytes", slc_value_bytes(form->value_type));
    bench_set_real(row, "padding_share",
                   form->steps > 0 ? 1 - (double)form->nnz / (double)(form->steps * 8) : 0);
    slc_json_set(row, "shortened", json_boolean(form->shortened));
    slc_json_set_count(row, "used", form->used);
    bench_set_real(row, "used_share", (double)form->used / (double)form->length);
    bench_set_real(row, "build_ms", 1e3 * bench->job.build_seconds[kernel]);
    slc_json_set_count(row, "moved_bytes", moved);
    bench_set_real(row, "bytes_per_nnz", (double)moved / (double)form->nnz);
    bench_set_real(row, "moved_gb_per_s", 1e-9 * rate);
    bench_set_real(row, "ceiling_gb_per_s", 1e-9 * ceiling);
    bench_set_real(row, "ceiling_share", rate / ceiling);
    return status;
}

static enum slc_status set_row(struct ttv_bench *bench,
                               enum ttv_kernel kernel,
                               unsigned threads,
                               struct total *total,
                               struct slc_error *err)
{
    const struct cell *cell = &bench->cells[kernel];
    const struct slc_sptv *form = ttv_job_form(&bench->job, kernel);
    const struct bench_times times = bench_samples_summary(&cell->samples);
    const double own = bench_samples_summary(&bench->cells[TTV_SLUICE].samples).median;
    const double ratio = times.median / own;
    const uint64_t fibers = form != NULL ? form->fibers : bench->job.fibers.count;
    json_t *row = bench_add_row(bench->rows);

    slc_json_set_count(row, "threads", threads);
    slc_json_set_count(row, "mode", bench->job.fibers.mode + 1);
    slc_json_set_text(row, "kernel", ttv_kernel_name(kernel));
    slc_json_set_text(row, "instruction_set", slc_cpu_instruction_set());
    slc_json_set_count(row, "fibers", fibers);
    bench_set_real(row, "nnz_per_fiber",
                   (double)bench->job.fibers.nnz / (double)bench->job.fibers.count);
    bench_set_real(row, "dense_fibers", bench->job.fibers.dense_count);
    slc_json_set_count(row, "length", bench->job.fibers.length);
    bench_times_to_json(row, &times);
    if (kernel == TTV_CSR) {
        bench_set_real(row, "convert_ms", 1e3 * bench_samples_summary(&cell->convert).median);
    }
    bench_set_real(row, "nnz_per_s", (double)bench->job.fibers.nnz / times.median);
    bench_set_real(row, "ratio", ratio);
    bench_set_real(row, "error", cell->error);
    total->modes++;
    total->seconds += times.median;
    total->log_ratio += log(ratio);
    total->smallest_ratio = total->modes == 1 ? ratio : fmin(total->smallest_ratio, ratio);
    return set_form(bench, kernel, threads, times.median, row, err);
}

/* Measures one mode with each number of threads. */
static enum slc_status measure_mode(struct ttv_bench *bench, struct slc_error *err)
{
    enum slc_status status = SLC_OK;

    for (unsigned t = 0; t < bench->args->threads.count && status == SLC_OK; t++) {
        const unsigned threads = thread_count(bench->args, t);

        status = start_tiles(bench, threads, err);
        SLC_THEN(status, measure_rounds(bench, threads, err));
        slc_session_stop(&bench->session);
        for (enum ttv_kernel k = 0; k < TTV_KERNELS && status == SLC_OK; k++) {
            if (bench->job.has[k]) {
                status = set_row(bench, k, threads, &bench->totals[t][k], err);
            }
        }
    }
    return status;
}

static void set_totals(const struct ttv_bench *bench, json_t *totals)
{
    for (unsigned t = 0; t < bench->args->threads.count; t++) {
        for (enum ttv_kernel k = 0; k < TTV_KERNELS; k++) {
            const struct total *total = &bench->totals[t][k];

            if (total->modes == 0) {
                continue;
            }
            json_t *row = bench_add_row(totals);
            slc_json_set_count(row, "threads", thread_count(bench->args, t));
            slc_json_set_text(row, "kernel", ttv_kernel_name(k));
            slc_json_set_count(row, "modes", total->modes);
            bench_set_real(row, "all_modes_ms", 1e3 * total->seconds);
            bench_set_real(row, "ratio", exp(total->log_ratio / total->modes));
            bench_set_real(row, "smallest_ratio", total->smallest_ratio);
        }
    }
}

/* Memory that the run needs beyond the resident memory after opening the store: for the program,
 * its libraries, and the decoders and stacks of the scan. A measurement found 10 MiB. */
#define EXTRA_BYTES (UINT64_C(16) << 20)

/* Opens the store and loads its nonzeros. Sets *left_bytes to the rest of the budget in bytes. */
static enum slc_status
load(struct ttv_bench *bench, const char *path, uint64_t *left_bytes, struct slc_error *err)
{
    const struct arguments *args = bench->args;
    const struct slc_manifest *manifest = &bench->session.store.manifest;
    uint64_t need;

    SLC_TRY(bench_open_store(&bench->session, path, args->memory, args->mode, err));
    if (!slc_add_u64(ttv_tensor_bytes(manifest), slc_memory_resident() + EXTRA_BYTES, &need)) {
        need = UINT64_MAX;
    }
    if (need > args->memory) {
        return slc_fail_budget(err, args->memory, need,
                               "%" PRIu64 " nonzeros in memory, once for each kernel,",
                               manifest->nnz);
    }
    *left_bytes = args->memory - need;
    if (manifest->nnz == 0) {
        return slc_fail(err, SLC_ERR_USAGE, "%s has no nonzeros to multiply", path);
    }
    return ttv_tensor_load(&bench->tensor, &bench->session.store, err);
}

static enum slc_status measure(void *state, const char *path, json_t *record, struct slc_error *err)
{
    struct ttv_bench *bench = state;
    const uint64_t only = bench->args->mode;
    uint64_t left_bytes = 0;
    json_t *totals = json_array();
    enum slc_status status = load(bench, path, &left_bytes, err);

    slc_json_set(record, "totals", totals);
    slc_json_set(record, "rows", bench->rows = json_array());
    bench->cells = slc_calloc(TTV_KERNELS, sizeof *bench->cells);
    if (status == SLC_OK && bench->cells == NULL) {
        status = slc_fail(err, SLC_ERR_MEMORY, "no memory for samples");
    }
    SLC_TRY(status);
    bench_set_tensor(record, &bench->session.store);
    choose_kernels(bench);
    for (unsigned n = 0; n < bench->tensor.order && status == SLC_OK; n++) {
        if (only != 0 && n + 1 != only) {
            continue;
        }
        status = ttv_job_create(&bench->job, &bench->tensor, n, bench->wanted, &bench->switches,
                                left_bytes, err);
        if (bench->job.dense_left_out) {
            console_note(
                "mode %u: no kernel keep-empty-fibers, because %.3g fibers, including empty "
                "fibers, exceed the budget",
                n + 1, bench->job.fibers.dense_count);
        }
        SLC_THEN(status, measure_mode(bench, err));
        ttv_job_destroy(&bench->job);
    }
    set_totals(bench, totals);
    return status;
}

static void close_all(void *state)
{
    struct ttv_bench *bench = state;

    ttv_job_destroy(&bench->job);
    ttv_tensor_destroy(&bench->tensor);
    slc_free(bench->cells);
    session_close(&bench->session);
}

static int run(const struct command *command, int argc, char **argv)
{
    struct arguments args = {.mode = 0};
    struct ttv_bench bench = {.args = &args, .session = {.stream = NULL}};

    return bench_run(
        command, argc, argv,
        &(struct bench_steps){&args, &args.bench, &bench, NULL, measure, tables, NULL, close_all});
}

const struct command bench_ttv = {
    .name = "bench ttv",
    .summary = "tensor times vector in memory: every mode, compared with COO and CSR",
    .example = "sluice bench ttv flights-4d.slc --threads 1,2",
    .operands = "X.slc",
    .operands_min = 1,
    .operands_max = 1,
    .options = options,
    .notes =
        "A ratio is the time of a kernel divided by the time of kernel sluice in the same mode;\n"
        "the kernels alternate. Means over modes are geometric.",
    .run = run,
};
