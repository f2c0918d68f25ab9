/* sluice bench fpga: the resources and the speed of the FPGA designs of [XPLAT] on a tensor, by the
 * model of fpga/model. The command runs no design and measures no time. It reads the store only to
 * count fibers and slices, which the model needs.
 *
 * As in the paper, an MTTKRP reads the fibers of the last mode other than its own. */
#include "fpga/model/model.h"
#include "tools/bench/bench.h"
#include "tools/bench/measure/run.h"
#include "tools/bench/product/fiber_count.h"
#include "tools/session/common_options.h"
#include "tools/session/session.h"

#include "base/memory/memory.h"

#include <string.h>

struct arguments {
    struct option_counts ranks;
    struct option_counts counts;
    uint64_t mode;
    uint64_t unroll;
    uint64_t load_words;
    double clock_mhz;
    uint64_t multiply_latency, add_latency, memory_latency;
    uint64_t dsps, ram_blocks;
    uint64_t threads;
    const char *temp_dir;
    uint64_t memory;
    struct bench_options bench;
};

/* Limit of --counts: no product of the model exceeds 64 bits. */
#define COUNT_MAX (UINT64_C(1) << 48)

/* The defaults are equal to the constants of fpga/model/model.h. */
static const struct option options[] = {
    BENCH_OPTION_ROW_RANKS(
        arguments, ranks, "columns of the matrices; each number makes another design"),
    {"counts", OPTION_COUNTS, offsetof(struct arguments, counts), .value = "S,F,N,K", .minimum = 1,
     .maximum = COUNT_MAX,
     .help = "instead of a store: the numbers of slices, fibers and nonzeros of a tensor, and the "
             "number of rows of the matrix"},
    BENCH_OPTION_ROW_MODE(arguments, mode),
    {"unroll", OPTION_U64, offsetof(struct arguments, unroll), .value = "N", .fallback = "0",
     .maximum = SLC_MAX_RANK,
     .help = "columns that a design multiplies per cycle; 0 means all columns"},
    {"load-words", OPTION_U64, offsetof(struct arguments, load_words), .value = "N",
     .fallback = "32", .minimum = 8, .maximum = 128,
     .help = "words of 32 bits that the memory delivers or accepts per cycle"},
    {"clock", OPTION_DOUBLE, offsetof(struct arguments, clock_mhz), .value = "MHZ",
     .fallback = "450", .help = "clock of the designs in MHz"},
    {"multiply-latency", OPTION_U64, offsetof(struct arguments, multiply_latency), .value = "N",
     .fallback = "3", .minimum = 1, .maximum = 12, .help = "cycles of a multiplication"},
    {"add-latency", OPTION_U64, offsetof(struct arguments, add_latency), .value = "N",
     .fallback = "1", .minimum = 1, .maximum = 12,
     .help = "cycles of an addition; the next addition to the same sum may have to wait for it"},
    {"memory-latency", OPTION_U64, offsetof(struct arguments, memory_latency), .value = "N",
     .fallback = "100", .minimum = 1, .maximum = 384, .help = "cycles from a request to its data"},
    {"dsps", OPTION_U64, offsetof(struct arguments, dsps), .value = "N", .fallback = "1518",
     .minimum = 1, .maximum = UINT32_MAX, .help = "DSPs of the device"},
    {"ram-blocks", OPTION_U64, offsetof(struct arguments, ram_blocks), .value = "N",
     .fallback = "2713", .minimum = 1, .maximum = UINT32_MAX,
     .help = "RAM blocks of the device, of 512 words of 32 bits"},
    OPTION_ROW_THREADS(arguments, threads),
    {"temp-dir", OPTION_STRING, offsetof(struct arguments, temp_dir), .value = "DIR",
     .help = "folder for the stores sorted for a mode, which are removed at the end; $TMPDIR or "
             "/tmp if not given"},
    OPTION_ROW_MEMORY(arguments, memory),
    {"json", OPTION_FLAG, offsetof(struct arguments, bench.json),
     .help = "print one JSON object instead of tables"},
    {.name = NULL}};

static const struct bench_column device_columns[] = {{"dsps", "device DSPs", 0, 0},
                                                     {"ram_blocks", "RAM blocks", 0, 0},
                                                     {"clock_mhz", "MHz", 1, 0},
                                                     {"peak_gflop_per_s", "peak GFLOP/s", 1, 1},
                                                     {NULL, NULL, 0, 0}};

static const struct bench_column columns[] = {{"design", "design", 0, 0},
                                              {"mode", "mode", 0, 0},
                                              {"rank", "rank", 0, 0},
                                              {"dsps", "DSPs", 0, 0},
                                              {"ram_blocks", "RAM blocks", 0, 0},
                                              {"fit", "fit", 0, 0},
                                              {"cycles", "cycles", 0, 0},
                                              {"ms", "ms", 1, 2},
                                              {"gflop_per_s", "GFLOP/s", 1, 2},
                                              {"peak_gflop_per_s", "DSP peak", 1, 1},
                                              {"peak_share", "% of it", 100, 1},
                                              {"limit", "limited by", 0, 0},
                                              {NULL, NULL, 0, 0}};

static const struct bench_table tables[] = {
    {"device", device_columns, false}, {"rows", columns, false}, {NULL, NULL, false}};

static const char *const design_names[SLC_FPGA_DESIGNS] = {"ttm", "ttm-on-chip", "mttkrp"};

struct fpga_bench {
    const struct arguments *args;
    struct slc_session session;
    struct slc_fpga_device device;
    struct fiber_count counts[SLC_MAX_ORDER]; /* per mode of the fibers */
    bool counted[SLC_MAX_ORDER];
    json_t *rows;
};

static struct slc_fpga_parameters parameters_of(const struct arguments *args, uint64_t rank)
{
    return (struct slc_fpga_parameters){
        .cols = (uint32_t)rank,
        .lanes = (uint32_t)(args->unroll == 0 ? rank : slc_min_u64(args->unroll, rank)),
        .beat_words = (uint32_t)args->load_words,
        .memory_latency = (uint32_t)args->memory_latency,
        .multiply_latency = (uint32_t)args->multiply_latency,
        .add_latency = (uint32_t)args->add_latency};
}

static void add_estimate(const struct fpga_bench *bench,
                         const struct slc_fpga_estimate *estimate,
                         uint64_t dsps,
                         json_t *row)
{
    static const char *const limits[] = {
        [SLC_FPGA_LIMIT_PORT] = "memory port",
        [SLC_FPGA_LIMIT_FIRST_STAGE] = "MAC lanes",
        [SLC_FPGA_LIMIT_LAST_STAGE] = "MAC lanes of fibers",
    };
    const double seconds = (double)estimate->cycles / bench->device.clock_hz;
    const double peak = 2e-9 * (double)dsps * bench->device.clock_hz;
    const double gflop_per_s = 1e-9 * (double)estimate->flops / seconds;

    slc_json_set_count(row, "cycles", estimate->cycles);
    slc_json_set_count(row, "beats", estimate->beats);
    bench_set_real(row, "ms", 1e3 * seconds);
    bench_set_real(row, "gflop_per_s", gflop_per_s);
    bench_set_real(row, "peak_gflop_per_s", peak);
    bench_set_real(row, "peak_share", gflop_per_s / peak);
    slc_json_set_text(row, "limit", limits[estimate->limit]);
}

/* Adds the row of a design for one mode (counted from 1; 0: unknown) and rank. A design that does
 * not fit has no cycles. */
static void add_row(const struct fpga_bench *bench,
                    enum slc_fpga_design design,
                    unsigned mode,
                    uint64_t rank,
                    const struct slc_fpga_work *work)
{
    const struct slc_fpga_parameters parameters = parameters_of(bench->args, rank);
    const struct slc_fpga_resources resources =
        slc_fpga_model_resources(design, &parameters, &bench->device, work->matrix_rows);
    const char *missing = slc_fpga_model_missing(&resources, &bench->device);
    json_t *row = bench_add_row(bench->rows);

    slc_json_set_text(row, "design", design_names[design]);
    if (mode > 0) {
        slc_json_set_count(row, "mode", mode);
    }
    slc_json_set_count(row, "rank", rank);
    slc_json_set_count(row, "lanes", parameters.lanes);
    if (design == SLC_FPGA_MTTKRP) {
        slc_json_set_count(row, "slices", work->slices);
    }
    slc_json_set_count(row, "fibers", work->fibers);
    slc_json_set_count(row, "dsps", resources.dsps);
    slc_json_set_count(row, "ram_blocks", resources.ram_blocks);
    slc_json_set(row, "fit",
                 missing == NULL ? json_string("fits") : json_sprintf("does not fit: %s", missing));
    if (missing == NULL) {
        const struct slc_fpga_estimate estimate =
            slc_fpga_model_estimate(design, &parameters, work);

        add_estimate(bench, &estimate, resources.dsps, row);
    }
}

/* Counts the fibers of a mode, unless they have been counted. */
static enum slc_status count_fibers(struct fpga_bench *bench, unsigned mode, struct slc_error *err)
{
    const struct arguments *args = bench->args;

    if (bench->counted[mode]) {
        return SLC_OK;
    }
    const struct fiber_order_options wanted = {.mode = mode,
                                               .memory_bytes = args->memory,
                                               .threads = (unsigned)args->threads,
                                               .quiet = true};
    const struct slc_store *store = &bench->session.store;
    enum slc_status status = fiber_count_scan(
        store, &wanted, args->temp_dir, store->manifest.order == 3, &bench->counts[mode], err);

    slc_buffer_destroy(&bench->counts[mode].memory);
    bench->counted[mode] = status == SLC_OK;
    return status;
}

static void add_rows(const struct fpga_bench *bench,
                     enum slc_fpga_design design,
                     unsigned mode,
                     const struct slc_fpga_work *work)
{
    const struct option_counts *ranks = &bench->args->ranks;

    for (unsigned r = 0; r < ranks->count; r++) {
        add_row(bench, design, mode, ranks->number[r], work);
    }
}

static enum slc_status add_mode(struct fpga_bench *bench,
                                enum slc_fpga_design design,
                                unsigned mode,
                                struct slc_error *err)
{
    const struct slc_manifest *manifest = &bench->session.store.manifest;
    const unsigned fiber_mode =
        design == SLC_FPGA_MTTKRP ? fiber_count_mode(manifest->order, mode) : mode;

    SLC_TRY(count_fibers(bench, fiber_mode, err));
    add_rows(bench, design, mode + 1,
             &(struct slc_fpga_work){.slices = bench->counts[fiber_mode].slices[mode],
                                     .fibers = bench->counts[fiber_mode].fibers,
                                     .nnz = manifest->nnz,
                                     .matrix_rows = manifest->dims[fiber_mode]});
    return SLC_OK;
}

/* Adds the rows of all designs for --counts. */
static void add_counts(const struct fpga_bench *bench)
{
    const uint64_t *count = bench->args->counts.number;

    for (enum slc_fpga_design design = 0; design < SLC_FPGA_DESIGNS; design++) {
        add_rows(
            bench, design, 0,
            &(struct slc_fpga_work){
                .slices = count[0], .fibers = count[1], .nnz = count[2], .matrix_rows = count[3]});
    }
}

/* Adds the rows of a store. */
static enum slc_status
add_store(struct fpga_bench *bench, const char *path, json_t *record, struct slc_error *err)
{
    const struct arguments *args = bench->args;
    const struct slc_manifest *manifest = &bench->session.store.manifest;

    SLC_TRY(bench_open_store(&bench->session, path, args->memory, args->mode, err));
    bench_set_tensor(record, &bench->session.store);
    for (enum slc_fpga_design design = 0; design < SLC_FPGA_DESIGNS; design++) {
        for (unsigned n = 0; n < manifest->order; n++) {
            const bool wanted = args->mode == 0 || n + 1 == args->mode;

            if (wanted && (design != SLC_FPGA_MTTKRP || manifest->order == 3)) {
                SLC_TRY(add_mode(bench, design, n, err));
            }
        }
    }
    return SLC_OK;
}

static void add_device(const struct fpga_bench *bench, json_t *record)
{
    json_t *devices = json_array();
    json_t *row = bench_add_row(devices);

    slc_json_set_count(row, "dsps", bench->device.dsps);
    slc_json_set_count(row, "ram_blocks", bench->device.ram_blocks);
    slc_json_set_count(row, "shell_ram_blocks", bench->device.shell_blocks);
    bench_set_real(row, "usable_ram_share", bench->device.usable_ram);
    bench_set_real(row, "clock_mhz", 1e-6 * bench->device.clock_hz);
    bench_set_real(row, "peak_gflop_per_s", 2e-9 * bench->device.dsps * bench->device.clock_hz);
    slc_json_set(record, "device", devices);
}

static enum slc_status
check_arguments(const struct arguments *args, const char *path, struct slc_error *err)
{
    const uint64_t *count = args->counts.number;

    if (args->clock_mhz <= 0) {
        return slc_fail(err, SLC_ERR_USAGE, "--clock %g: the clock must be above 0 MHz",
                        args->clock_mhz);
    }
    if ((args->counts.count == 0) == (path == NULL)) {
        return slc_fail(err, SLC_ERR_USAGE, "bench fpga needs either a store or --counts");
    }
    if (path == NULL && (args->counts.count != 4 || count[0] > count[1] || count[1] > count[2])) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "--counts needs 4 numbers: slices, at least as many fibers, at least as "
                        "many nonzeros, and rows of the matrix");
    }
    return SLC_OK;
}

static enum slc_status measure(void *state, const char *path, json_t *record, struct slc_error *err)
{
    struct fpga_bench *bench = state;
    const struct arguments *args = bench->args;

    SLC_TRY(check_arguments(args, path, err));
    bench->device = slc_fpga_arria10;
    bench->device.dsps = (uint32_t)args->dsps;
    bench->device.ram_blocks = (uint32_t)args->ram_blocks;
    bench->device.clock_hz = 1e6 * args->clock_mhz;
    bench->rows = json_array();
    slc_json_set(record, "rows", bench->rows);
    add_device(bench, record);
    if (path != NULL) {
        return add_store(bench, path, record, err);
    }
    add_counts(bench);
    return SLC_OK;
}

static void close_all(void *state)
{
    struct fpga_bench *bench = state;

    session_close(&bench->session);
}

static int run(const struct command *command, int argc, char **argv)
{
    static struct fpga_bench bench = {.rows = NULL};
    struct arguments args = {.mode = 0};

    bench.args = &args;
    return bench_run(
        command, argc, argv,
        &(struct bench_steps){&args, &args.bench, &bench, NULL, measure, tables, NULL, close_all});
}

const struct command bench_fpga = {
    .name = "bench fpga",
    .summary = "FPGA designs of TTM and MTTKRP: cycles and resources by a model",
    .example = "sluice bench fpga nell-2.slc --rank 1,2,4,8,16,32,64",
    .operands = "[X.slc]",
    .operands_min = 0,
    .operands_max = 1,
    .options = options,
    .notes =
        "The figures come from a model, not from a device: nothing was placed, routed or run.\n"
        "The defaults describe an Arria 10 GX 1150 at the highest clock of its DSPs. MTTKRP\n"
        "needs a tensor of three modes.",
    .run = run,
};
