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
#include "tools/bench/product/ttm_mode.h"
#include "tools/bench/product/ttm_xplat.h"
#include "tools/progress/console.h"
#include "tools/session/common_options.h"
#include "tools/session/session.h"

#include <string.h>

/* ---- the baseline: a loop over a list of coordinates in the order of fibers, which keeps the
 * whole result in memory. Each tile starts a new row of the result, so threads share no row. */

struct ttm_loop {
    unsigned threads;
    uint64_t nnz, tiles, fibers;
    uint32_t cols;
    const struct slc_matrix *matrix;
    struct slc_buffer list; /* per nonzero: value, index, row number within the tile */
    struct slc_buffer base; /* first row of each tile; tiles + 1 elements */
    struct slc_buffer rows; /* fibers x cols */
};

static double *values_of(const struct ttm_loop *loop)
{
    return loop->list.data;
}

static uint32_t *indices_of(const struct ttm_loop *loop)
{
    return (uint32_t *)(void *)(values_of(loop) + loop->nnz);
}

static uint32_t *rows_of(const struct ttm_loop *loop)
{
    return indices_of(loop) + loop->nnz;
}

struct listing {
    const struct ttm_loop *loop;
    unsigned mode;
};

/* Returns true if nonzeros i - 1 and i of a chunk belong to different fibers. */
static bool differs(const struct slc_chunk_view *chunk, unsigned order, unsigned mode, uint32_t i)
{
    uint32_t difference = 0;

    for (unsigned m = 0; m < order; m++) {
        difference |= m != mode ? chunk->offset[m][i] ^ chunk->offset[m][i - 1] : 0;
    }
    return difference != 0;
}

static enum slc_status
list_tile(void *context, unsigned worker, struct slc_tile_view *tile, struct slc_error *err)
{
    const struct listing *listing = context;
    const struct ttm_loop *loop = listing->loop;
    uint64_t at = tile->ordinal * SLC_TILE_NNZ;
    uint32_t last[SLC_MAX_ORDER] = {0};
    struct slc_chunk_view chunk = {.nnz = 1};
    uint32_t row = 0;

    (void)worker;
    while (chunk.nnz > 0) {
        SLC_TRY(tile->next(tile, BENCH_CHUNK_NNZ, &chunk, err));
        for (uint32_t i = 0; i < chunk.nnz; i++, at++) {
            bool fresh = at == tile->ordinal * SLC_TILE_NNZ;

            for (unsigned m = 0; i == 0 && !fresh && m < tile->order; m++) {
                fresh = m != listing->mode && chunk.offset[m][0] != last[m];
            }
            fresh = i > 0 ? differs(&chunk, tile->order, listing->mode, i) : fresh;
            row += fresh;
            values_of(loop)[at] = ((const double *)chunk.values)[i];
            indices_of(loop)[at] =
                (uint32_t)(tile->corner[listing->mode] + chunk.offset[listing->mode][i]);
            rows_of(loop)[at] = row - 1;
        }
        for (unsigned m = 0; chunk.nnz > 0 && m < tile->order; m++) {
            last[m] = chunk.offset[m][chunk.nnz - 1];
        }
    }
    ((uint64_t *)loop->base.data)[tile->ordinal + 1] = row;
    return SLC_OK;
}

/* Makes the list of the nonzeros of a mode, in f64. Needs: ttm_mode_start was called. Sets *fits to
 * false if list and rows would exceed `memory_bytes`, or if the loop does not support the type, the
 * mode size or the tile sizes. The caller must call ttm_loop_destroy, which accepts an all-zero
 * struct. */
static enum slc_status ttm_loop_create(struct ttm_loop *loop,
                                       struct ttm_mode *mode,
                                       uint64_t memory_bytes,
                                       bool *fits,
                                       struct slc_error *err)
{
    const struct slc_layout_info *info = slc_reader_info(mode->order.reader);
    const uint64_t list_bytes = info->nnz * (sizeof(double) + 2 * sizeof(uint32_t));
    struct listing listing = {loop, mode->options.mode};
    const struct slc_pass pass = {.tiles = {.consumer = {.tile = list_tile, .context = &listing}}};

    *loop = (struct ttm_loop){.threads = mode->options.threads,
                              .nnz = info->nnz,
                              .tiles = info->tile_count,
                              .cols = mode->matrix.cols,
                              .matrix = &mode->matrix};
    *fits = mode->matrix.type == SLC_F64 && mode->matrix.rows <= UINT32_MAX &&
            info->tile_count == slc_div_up_u64(info->nnz, SLC_TILE_NNZ) &&
            list_bytes <= memory_bytes;
    if (!*fits) {
        return SLC_OK;
    }
    enum slc_status status = slc_buffer_create(&loop->list, list_bytes, SLC_PAGES_HUGE, err);
    SLC_THEN(status, slc_buffer_create(&loop->base, (loop->tiles + 1) * sizeof(uint64_t),
                                       SLC_PAGES_SMALL, err));
    SLC_THEN(status, slc_stream_pass(mode->stream, &pass, err));
    uint64_t *base = loop->base.data;
    for (uint64_t t = 0; t < loop->tiles && status == SLC_OK; t++) {
        base[t + 1] += base[t];
        loop->fibers = base[t + 1];
    }
    *fits = status != SLC_OK ||
            loop->fibers <= (memory_bytes - list_bytes) / sizeof(double) / loop->cols;
    SLC_TRY(status);
    if (*fits) {
        SLC_TRY(slc_buffer_create(&loop->rows, loop->fibers * loop->cols * sizeof(double),
                                  SLC_PAGES_HUGE, err));
    }
    return SLC_OK;
}

static uint64_t ttm_loop_bytes(const struct ttm_loop *loop)
{
    return loop->list.bytes + loop->base.bytes + loop->rows.bytes;
}

static void ttm_loop_destroy(struct ttm_loop *loop)
{
    slc_buffer_destroy(&loop->list);
    slc_buffer_destroy(&loop->base);
    slc_buffer_destroy(&loop->rows);
    memset(loop, 0, sizeof *loop);
}

/* Multiplies the tiles of one worker. */
static void multiply(void *context, unsigned worker, unsigned workers)
{
    const struct ttm_loop *loop = context;
    const uint64_t *base = loop->base.data;
    const uint64_t begin = loop->tiles * worker / workers;
    const uint64_t end = loop->tiles * (worker + 1) / workers;
    const double *values = values_of(loop);
    const uint32_t *indices = indices_of(loop), *rows = rows_of(loop);
    const uint32_t cols = loop->cols;
    double *result = loop->rows.data;

    memset(result + base[begin] * cols, 0, (base[end] - base[begin]) * cols * sizeof *result);
    for (uint64_t t = begin; t < end; t++) {
        const uint64_t last = slc_min_u64((t + 1) * SLC_TILE_NNZ, loop->nnz);

        for (uint64_t i = t * SLC_TILE_NNZ; i < last; i++) {
            const double *restrict from = slc_matrix_row_f64(loop->matrix, indices[i]);
            double *restrict to = result + (base[t] + rows[i]) * cols;
            const double value = values[i];

            for (uint32_t r = 0; r < cols; r++) {
                to[r] += value * from[r];
            }
        }
    }
}

/* ---- the benchmark */

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
     .help = "compare the rows of xplat-element and xplat-fiber with simple loops"},
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
    struct ttm_loop loop;
    struct ttm_xplat xplat;
    bool skipped[KERNELS]; /* true if memory or precision do not suffice for a kernel */
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
        return slc_team_run(bench->loop.threads, multiply, &bench->loop, err);
    case KERNEL_XPLAT_ELEMENT:
        return ttm_xplat_run(&bench->xplat, SLC_XPLAT_TTM_ELEMENT, err);
    case KERNEL_XPLAT_FIBER:
        return ttm_xplat_run(&bench->xplat, SLC_XPLAT_TTM_FIBER, err);
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
            if (bench->args->check && k >= KERNEL_XPLAT_ELEMENT) {
                bench->errors[k] = ttm_xplat_error(&bench->xplat);
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
        if (bench->args->check && k >= KERNEL_XPLAT_ELEMENT) {
            bench_set_real(row, "error", bench->errors[k]);
        }
    }
}

/* Builds the baselines whose lists and rows fit in the budget. */
static enum slc_status make_baselines(struct ttm_bench *bench, struct slc_error *err)
{
    const struct slc_plan *plan = &bench->mode.plan;
    const uint64_t held = slc_memory_resident();
    uint64_t memory_bytes = plan->budget_bytes > held ? plan->budget_bytes - held : 0;
    bool fits;

    SLC_TRY(ttm_loop_create(&bench->loop, &bench->mode, memory_bytes, &fits, err));
    bench->skipped[KERNEL_LOOP] = !fits;
    if (!fits) {
        console_note("mode %u, %u columns: no loop, because it needs --precision f64, and "
                     "memory for all nonzeros and the result",
                     bench->mode.options.mode + 1, bench->mode.matrix.cols);
    }
    memory_bytes -= slc_min_u64(memory_bytes, ttm_loop_bytes(&bench->loop));
    SLC_TRY(ttm_xplat_create(&bench->xplat, &bench->mode, memory_bytes, &fits, err));
    bench->skipped[KERNEL_XPLAT_ELEMENT] = bench->skipped[KERNEL_XPLAT_FIBER] = !fits;
    if (!fits) {
        console_note("mode %u, %u columns: no xplat-element and xplat-fiber, because they need "
                     "memory for all nonzeros and the result",
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
        SLC_THEN(status, make_baselines(bench, err));
        SLC_THEN(status, measure_rank(bench, err));
        if (status == SLC_OK) {
            add_rows(bench);
        }
        ttm_loop_destroy(&bench->loop);
        ttm_xplat_destroy(&bench->xplat);
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
