/* sluice bench ttm: measures tensor times matrix in memory, for each rank and mode. Two kernels
 * over encoded blocks (fiber, nonzero) are compared with a plain loop over coordinates in the same
 * order (loop), and with the kernels of [XPLAT] over fibers (xplat-element, xplat-fiber). Runs of
 * the kernels alternate.
 *
 * Figures per mode, rank and kernel:
 *   nnz_per_s, gflop_per_s   rates at the median time; 2 R operations per nonzero
 *   ratio                    time divided by the time of the loop
 *   rows_gb_per_s            rate at which the result is produced */
#include "base/error/clock.h"
#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "base/thread/team.h"
#include "tools/bench/bench.h"
#include "tools/bench/measure/resident.h"
#include "tools/bench/measure/run.h"
#include "tools/bench/product/ttm_fibers.h"
#include "tools/bench/product/ttm_mode.h"
#include "tools/progress/console.h"
#include "tools/session/common_options.h"
#include "tools/session/session.h"

#include <string.h>

struct arguments {
    struct option_counts ranks;
    uint64_t threads;
    uint64_t mode;
    const char *precision;
    const char *temp_dir;
    bool check;
    uint64_t memory;
    struct bench_options bench;
};

static const struct option options[] = {
    BENCH_OPTION_ROW_RANKS(
        arguments, ranks, "columns of the matrix; several values are measured one after the other"),
    OPTION_ROW_THREADS(arguments, threads),
    BENCH_OPTION_ROW_MODE(arguments, mode),
    {"precision", OPTION_CHOICE, offsetof(struct arguments, precision), .value = "TYPE",
     .fallback = "f64", .choices = session_precision_choices,
     .help = "type of the matrix and of products: f64 or f32 (f32 without the loop)"},
    {"temp-dir", OPTION_STRING, offsetof(struct arguments, temp_dir), .value = "DIR",
     .help = "folder for the stores sorted for a mode, which are removed at the end; $TMPDIR or "
             "/tmp if not given"},
    {"check", OPTION_FLAG, offsetof(struct arguments, check),
     .help = "compare the results of loop, xplat-element and xplat-fiber with simple loops"},
    OPTION_ROW_MEMORY(arguments, memory),
    BENCH_OPTION_ROWS(arguments, "5"),
    {.name = NULL}};

static const struct bench_column columns[] = {{"mode", "mode", 0, 0},
                                              {"rank", "rank", 0, 0},
                                              {"kernel", "kernel", 0, 0},
                                              {"layout", "layout", 0, 0},
                                              {"nnz_per_fiber", "nnz/fiber", 1, 2},
                                              {"median_ms", "ms", 1, 2},
                                              {"ratio", "over loop", 1, 2},
                                              {"nnz_per_s", "Mnnz/s", 1e-6, 1},
                                              {"gflop_per_s", "GFLOP/s", 1, 2},
                                              {"rows_gb_per_s", "rows GB/s", 1, 2},
                                              {"error", "error e-15", 1e15, 2},
                                              {NULL, NULL, 0, 0}};

static const struct bench_table tables[] = {{"rows", columns, false}, {NULL, NULL, false}};

enum kernel {
    KERNEL_FIBER = SLC_TTM_FIBERS,
    KERNEL_NONZERO = SLC_TTM_NONZEROS,
    KERNEL_LOOP,
    KERNEL_XPLAT_ELEMENT,
    KERNEL_XPLAT_FIBER,
    KERNELS
};

static const char *const kernel_names[KERNELS] = {"fiber", "nonzero", "loop", "xplat-element",
                                                  "xplat-fiber"};

struct ttm_bench {
    const struct arguments *args;
    struct slc_session session;
    struct ttm_mode mode;
    struct ttm_fibers fibers;
    bool skipped[KERNELS]; /* true if a kernel lacks memory, or does not support the precision */
    struct bench_samples samples[KERNELS];
    double errors[KERNELS]; /* with `check`, of the kernels that keep their rows */
    json_t *rows;
};

/* Computes one product. */
static enum slc_status
run_kernel(struct ttm_bench *bench, enum kernel kernel, struct slc_error *err)
{
    switch (kernel) {
    case KERNEL_LOOP:
        return ttm_fibers_loop(&bench->fibers, err);
    case KERNEL_XPLAT_ELEMENT:
        return ttm_fibers_run(&bench->fibers, SLC_XPLAT_TTM_ELEMENT, err);
    case KERNEL_XPLAT_FIBER:
        return ttm_fibers_run(&bench->fibers, SLC_XPLAT_TTM_FIBER, err);
    default:
        return ttm_mode_run(&bench->mode, (enum slc_ttm_form)kernel, err);
    }
}

/* Measures the kernels at one rank, in alternation. */
static enum slc_status measure_rank(struct ttm_bench *bench, struct slc_error *err)
{
    const struct bench_options *common = &bench->args->bench;

    memset(bench->samples, 0, sizeof bench->samples);
    for (uint64_t i = 0; i < common->warm_up + common->repeats; i++) {
        for (enum kernel k = KERNEL_FIBER; k < KERNELS; k++) {
            const uint64_t start_ns = slc_clock_ns();

            if (bench->skipped[k]) {
                continue;
            }
            SLC_TRY(run_kernel(bench, k, err));
            if (i >= common->warm_up) {
                bench_samples_add(&bench->samples[k], slc_seconds_since(start_ns));
            }
            if (bench->args->check && k >= KERNEL_LOOP) {
                bench->errors[k] = ttm_fibers_error(&bench->fibers);
            }
        }
    }
    return SLC_OK;
}

static void add_rows(struct ttm_bench *bench)
{
    const struct slc_layout_info *info = slc_reader_info(bench->mode.order.reader);
    const double nnz = (double)info->nnz;
    const double fibers = (double)bench->mode.fibers;
    const uint32_t cols = bench->mode.matrix.cols;
    const double loop = bench_samples_summary(&bench->samples[KERNEL_LOOP]).median;

    for (enum kernel k = KERNEL_FIBER; k < KERNELS; k++) {
        const struct bench_times times = bench_samples_summary(&bench->samples[k]);

        if (times.samples == 0) {
            continue;
        }
        json_t *row = bench_add_row(bench->rows);
        slc_json_set_count(row, "mode", bench->mode.options.mode + 1);
        slc_json_set_count(row, "rank", cols);
        slc_json_set_text(row, "kernel", kernel_names[k]);
        slc_json_set_text(row, "layout",
                          bench->mode.order.path != NULL ? "temporary"
                                                         : slc_layout_name(info->layout));
        bench_set_real(row, "fibers", fibers);
        bench_set_real(row, "nnz_per_fiber", nnz / fibers);
        bench_times_to_json(row, &times);
        if (loop > 0) {
            bench_set_real(row, "ratio", times.median / loop);
        }
        bench_set_real(row, "nnz_per_s", nnz / times.median);
        bench_set_real(row, "gflop_per_s", 2e-9 * nnz * cols / times.median);
        bench_set_real(row, "rows_gb_per_s",
                       1e-9 * fibers * cols * slc_value_bytes(bench->mode.matrix.type) /
                           times.median);
        if (bench->args->check && k >= KERNEL_LOOP) {
            bench_set_real(row, "error", bench->errors[k]);
        }
    }
}

/* Builds the fibers for the kernels that keep the result, if fibers and result fit in the budget.
 */
static enum slc_status make_fibers(struct ttm_bench *bench, struct slc_error *err)
{
    const struct slc_plan *plan = &bench->mode.plan;
    const uint64_t held = slc_memory_resident();
    const uint64_t memory_bytes = plan->budget_bytes > held ? plan->budget_bytes - held : 0;
    bool fits;

    SLC_TRY(ttm_fibers_create(&bench->fibers, &bench->mode, memory_bytes, &fits, err));
    bench->skipped[KERNEL_XPLAT_ELEMENT] = bench->skipped[KERNEL_XPLAT_FIBER] = !fits;
    bench->skipped[KERNEL_LOOP] = !fits || bench->mode.matrix.type != SLC_F64;
    if (!fits) {
        console_note("mode %u, %u columns: no loop, xplat-element and xplat-fiber, because they "
                     "need memory for all nonzeros and the result",
                     bench->mode.options.mode + 1, bench->mode.matrix.cols);
    } else if (bench->skipped[KERNEL_LOOP]) {
        console_note("mode %u, %u columns: no loop, because it needs --precision f64",
                     bench->mode.options.mode + 1, bench->mode.matrix.cols);
    }
    return SLC_OK;
}

static enum slc_status measure_mode(struct ttm_bench *bench, unsigned n, struct slc_error *err)
{
    const struct arguments *args = bench->args;
    const struct ttm_mode_options wanted = {
        .mode = n,
        .threads = args->threads > 0 ? (unsigned)args->threads : slc_team_default_workers(),
        .precision = args->precision[1] == '3' ? SLC_F32 : SLC_F64,
        .memory_bytes = args->memory,
        .temp_dir = args->temp_dir};
    enum slc_status status = ttm_mode_open(&bench->mode, &bench->session.store, &wanted, err);

    for (unsigned r = 0; r < args->ranks.count && status == SLC_OK; r++) {
        status = ttm_mode_start(&bench->mode, (uint32_t)args->ranks.number[r], err);
        SLC_THEN(status, make_fibers(bench, err));
        SLC_THEN(status, measure_rank(bench, err));
        if (status == SLC_OK) {
            add_rows(bench);
        }
        ttm_fibers_destroy(&bench->fibers);
        ttm_mode_stop(&bench->mode);
    }
    ttm_mode_close(&bench->mode);
    return status;
}

static enum slc_status measure(void *state, const char *path, json_t *record, struct slc_error *err)
{
    struct ttm_bench *bench = state;
    const struct slc_manifest *manifest = &bench->session.store.manifest;
    const uint64_t only = bench->args->mode;

    SLC_TRY(bench_open_store(&bench->session, path, bench->args->memory, only, err));
    if (manifest->nnz == 0) {
        return slc_fail(err, SLC_ERR_USAGE, "%s has no nonzeros to multiply", path);
    }
    bench_set_tensor(record, &bench->session.store);
    slc_json_set(record, "rows", bench->rows = json_array());
    for (unsigned n = 0; n < manifest->order; n++) {
        if (only == 0 || n + 1 == only) {
            SLC_TRY(measure_mode(bench, n, err));
        }
    }
    return SLC_OK;
}

static void close_all(void *state)
{
    struct ttm_bench *bench = state;

    session_close(&bench->session);
}

static int run(const struct command *command, int argc, char **argv)
{
    static struct ttm_bench bench = {.session = {.stream = NULL}};
    struct arguments args = {.mode = 0};

    bench.args = &args;
    return bench_run(
        command, argc, argv,
        &(struct bench_steps){&args, &args.bench, &bench, NULL, measure, tables, NULL, close_all});
}

const struct command bench_ttm = {
    .name = "bench ttm",
    .summary = "tensor times matrix in memory: every mode, compared with a plain loop",
    .example = "sluice bench ttm flights-4d.slc --rank 1,16,100",
    .operands = "X.slc",
    .operands_min = 1,
    .operands_max = 1,
    .options = options,
    .notes =
        "Rows of the result are computed and discarded, as if writing took no time. If no layout\n"
        "of the store keeps the fibers of a mode whole, the mode is measured from a temporary\n"
        "store that does.",
    .run = run,
};
