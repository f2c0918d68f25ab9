/* sluice bench device: measures a GPU. It first measures the ceilings of the GPU: the transfer
 * rates of its memory, its cache and the bus, and the rate of reads of rows at random places. Then
 * it measures MTTKRPs of stores from resident or streamed blocks, or TTV and TTM from fibers in
 * device memory. */
#include "base/memory/limits.h"
#include "gpu/gpu.h"
#include "gpu/measure.h"
#include "tools/bench/bench.h"
#include "tools/bench/device/device.h"
#include "tools/bench/device/device_summary.h"
#include "tools/bench/measure/run.h"
#include "tools/bench/roofline/roofs.h"
#include "tools/session/common_options.h"

#include <string.h>

/* Options of the baselines (tools/bench/rivals/gpu/lists.h). */
struct baseline_arguments {
    uint64_t coarsening, work_group, stash_rows, copies, index_bits, queues, block_nnz;
    struct option_counts devices;
};

struct arguments {
    struct option_counts ranks;
    struct option_counts logical;
    const char *operation;
    const char *precision;
    const char *kernel;
    struct baseline_arguments baselines;
    uint64_t mode;
    struct session_options session;
    uint64_t ordinal;
    uint64_t largest;
    uint64_t moved;
    struct bench_options bench;
};

static const char *const precision_choices[] = {"f64", "f32", "all", NULL};
static const char *const operation_choices[] = {"mttkrp", "ttv", "ttm", "products", NULL};

static const struct option options[] = {
    {"rank", OPTION_COUNTS, offsetof(struct arguments, ranks), .letter = 'r', .value = "R[,R..]",
     .fallback = "16,32,64", .minimum = 1, .maximum = SLC_MAX_RANK,
     .help = "columns of the factors, or of the matrix of TTM"},
    {"operation", OPTION_CHOICE, offsetof(struct arguments, operation), .value = "NAME",
     .fallback = "mttkrp", .choices = operation_choices,
     .help = "operation on stores: mttkrp, ttv (only f64), ttm, or products (ttv and ttm)"},
    BENCH_OPTION_ROW_MODE(arguments, mode),
    {"precision", OPTION_CHOICE, offsetof(struct arguments, precision), .value = "TYPE",
     .fallback = "f64", .choices = precision_choices,
     .help = "type of factors: f64, f32 or all; sums are f64"},
    {"kernel", OPTION_STRING, offsetof(struct arguments, kernel), .value = "NAME",
     .fallback = "sluice",
     .help = "kernel of MTTKRP: sluice, or a baseline to compare with sluice. Baselines over a "
             "list of coordinates in device memory: blco-registers, blco-stash, blco (chooses "
             "between these two), blco-queues (blco, streamed from the host), blco-code-registers, "
             "blco-code-stash, blco-code (as in the authors' program), amped, genten-a, genten-b, "
             "genten-c, xplat-element, xplat-row, atomic-fiber, atomic-nonzero, or all"},
    {"encoded", OPTION_FLAG, offsetof(struct arguments, session.encoded),
     .help = "do not transcode resident blocks of sluice: decode them in "
             "every MTTKRP"},
    {"logical", OPTION_COUNTS, offsetof(struct arguments, logical), .value = "D[,D..]",
     .minimum = 1, .maximum = SLC_DEVICE_NUMBERS_MAX,
     .help = "also divide the MTTKRP of sluice between D logical devices, all on the GPU of "
             "--ordinal: by partitions of sorted layouts (if the store has them), and by nonzeros"},
    {"coarsening", OPTION_U64, offsetof(struct arguments, baselines.coarsening), .value = "N",
     .fallback = "0", .maximum = 1024,
     .help = "BLCO: nonzeros per thread; 0 means 1 without a stash, 2 with a stash"},
    {"work-group", OPTION_U64, offsetof(struct arguments, baselines.work_group), .value = "N",
     .fallback = "0", .maximum = 512,
     .help = "BLCO: threads per thread block, a multiple of 32; 0 means 256"},
    {"stash-rows", OPTION_U64, offsetof(struct arguments, baselines.stash_rows), .value = "N",
     .fallback = "0", .maximum = 65536,
     .help = "BLCO: maximum number of rows in shared memory; 0 means all rows of the mode, 4 with "
             "blco-code"},
    {"copies", OPTION_U64, offsetof(struct arguments, baselines.copies), .value = "N",
     .fallback = "0", .maximum = 1024,
     .help =
         "BLCO: copies of the output with a stash; 0 means one per graphics processing cluster"},
    {"index-bits", OPTION_U64, offsetof(struct arguments, baselines.index_bits), .value = "N",
     .fallback = "0", .maximum = 64,
     .help = "BLCO: bits of the index of a nonzero; the other bits of the coordinates are stored "
             "per block; 0 means 64"},
    {"queues", OPTION_U64, offsetof(struct arguments, baselines.queues), .value = "N",
     .fallback = "0", .maximum = 8,
     .help = "blco-queues: streams with memory for one block each, 2 to 8; 0 means 8"},
    {"block-nnz", OPTION_U64, offsetof(struct arguments, baselines.block_nnz), .value = "N",
     .fallback = "0", .maximum = UINT64_C(1) << 32,
     .help = "BLCO: maximum number of nonzeros per block; 0 means 2^27, or with blco-queues what "
             "fits in device memory"},
    {"devices", OPTION_COUNTS, offsetof(struct arguments, baselines.devices), .value = "N[,N..]",
     .maximum = 63, .count_max = SLC_DEVICE_NUMBERS_MAX,
     .help = "amped: also divide the work between several GPUs, given by "
             "their numbers, such as 0,1,2; a number may be repeated"},
    {"device-memory", OPTION_SIZE, offsetof(struct arguments, session.device_memory),
     .value = "SIZE",
     .help = "GPU memory for blocks and factors; baselines and products from fibers need "
             "additional memory"},
    {"streams", OPTION_U64, offsetof(struct arguments, session.streams), .value = "S",
     .fallback = "0", .maximum = SLC_DEVICE_STREAMS,
     .help = "number of GPU slots: blocks are copied into some slots "
             "while the GPU computes from others; 0 means that the number "
             "is chosen automatically"},
    {"no-cache", OPTION_FLAG, offsetof(struct arguments, session.no_cache),
     .help = "read and copy every block in every pass"},
    OPTION_ROW_MEMORY(arguments, session.memory),
    OPTION_ROW_THREADS(arguments, session.threads),
    {"ordinal", OPTION_U64, offsetof(struct arguments, ordinal), .value = "N", .fallback = "0",
     .maximum = 63,
     .help = "number of the GPU for ceilings, products from fibers and logical devices; other "
             "MTTKRPs run on GPU 0"},
    {"largest", OPTION_SIZE, offsetof(struct arguments, largest), .value = "SIZE",
     .fallback = "4GiB",
     .help = "omit ceilings with a larger working set; if all ceilings "
             "are omitted, the peaks are omitted too"},
    {"moved", OPTION_SIZE, offsetof(struct arguments, moved), .value = "SIZE", .fallback = "8GiB",
     .help = "minimum number of bytes that each run of a ceiling moves"},
    BENCH_OPTION_ROWS(arguments, "5"),
    {.name = NULL}};

static const struct bench_column columns[] = {{"ceiling", "ceiling", 0, 0},
                                              {"working_bytes", "MiB", 1.0 / 1048576, 1},
                                              {"row_bytes", "B/row", 0, 0},
                                              {"gb_per_s", "GB/s", 1, 1},
                                              {NULL, NULL, 0, 0}};

static const struct bench_column peak_columns[] = {
    {"peak", "peak", 0, 0}, {"gflop_per_s", "GFLOP/s", 1, 1}, {NULL, NULL, 0, 0}};

static const struct bench_column product_columns[] = {
    {"tensor", "tensor", 0, 0},
    {"precision", "type", 0, 0},
    {"rank", "rank", 0, 0},
    {"mode", "mode", 0, 0},
    {"kernel", "kernel", 0, 0},
    {"split", "split", 0, 0},
    {"chosen", "chosen", 0, 0},
    {"devices", "devices", 0, 0},
    {"median_ms", "ms", 1, 3},
    {"gnnz_per_s", "Gnnz/s", 1, 3},
    {"whole_ms", "whole ms", 1, 3},
    {"read_bytes", "MiB read", 1.0 / 1048576, 1},
    {"copied_bytes", "MiB copied", 1.0 / 1048576, 1},
    {"fibers", "fibers", 0, 0},
    {"gb_per_s", "GB/s", 1, 1},
    {"differs", "differs by", 1e15, 1},
    {"note", "note", 0, 0},
    {NULL, NULL, 0, 0}};

static const struct bench_table tables[] = {{"ceilings", columns, false},
                                            {"peaks", peak_columns, true},
                                            {"rows", product_columns, true},
                                            {"summary", device_summary_columns, true},
                                            {"summary_means", device_mean_columns, true},
                                            {NULL, NULL, false}};

struct device_bench {
    const struct arguments *args;
    struct operands operands;
};

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)

/* The working sets of each ceiling. For reads, they range from the size of the cache of a
 * multiprocessor to sizes larger than every cache. For copies to the device, they have the sizes of
 * batches. Rows have the size of rows of f64 factors of rank 16, 32 and 64, in working sets that
 * fit a cache and working sets that do not. */
static const struct {
    enum slc_gpu_ceiling ceiling;
    uint32_t row_bytes;
    uint64_t working_bytes[8]; /* a 0 ends the list */
} cases[] = {
    {SLC_GPU_CEILING_READ,
     0,
     {256 * KIB, 4 * MIB, 16 * MIB, 32 * MIB, 64 * MIB, 256 * MIB, 4 * GIB}},
    {SLC_GPU_CEILING_COPY, 0, {16 * MIB, 4 * GIB}},
    {SLC_GPU_CEILING_TO_DEVICE, 0, {256 * KIB, 4 * MIB, 64 * MIB, 256 * MIB}},
    {SLC_GPU_CEILING_TO_HOST, 0, {256 * KIB, 64 * MIB}},
    {SLC_GPU_CEILING_ROWS, 128, {256 * KIB, 16 * MIB, 32 * MIB, 64 * MIB, 256 * MIB, 4 * GIB}},
    {SLC_GPU_CEILING_ROWS, 256, {256 * KIB, 16 * MIB, 32 * MIB, 64 * MIB, 256 * MIB, 4 * GIB}},
    {SLC_GPU_CEILING_ROWS, 512, {256 * KIB, 16 * MIB, 32 * MIB, 64 * MIB, 256 * MIB, 4 * GIB}},
    {SLC_GPU_CEILING_REDUCE_F64, 256, {256 * KIB, 16 * MIB, 32 * MIB, 64 * MIB, 256 * MIB}},
    {SLC_GPU_CEILING_REDUCE_F64_SECTORS, 256, {256 * KIB, 16 * MIB, 32 * MIB, 64 * MIB, 256 * MIB}},
};

static enum slc_status measure_one(
    const struct arguments *args, size_t which, uint64_t bytes, json_t *rows, struct slc_error *err)
{
    const struct slc_gpu_measurement measurement = {.ceiling = cases[which].ceiling,
                                                    .working_bytes = bytes,
                                                    .moved_bytes = args->moved,
                                                    .row_bytes = cases[which].row_bytes,
                                                    .repeats = (unsigned)args->bench.repeats};
    json_t *row = bench_add_row(rows);
    double rate = 0;

    SLC_TRY(slc_gpu_measure((unsigned)args->ordinal, &measurement, &rate, err));
    slc_json_set_text(row, "ceiling", slc_gpu_ceiling_name(measurement.ceiling));
    slc_json_set_count(row, "working_bytes", bytes);
    if (measurement.row_bytes != 0) {
        slc_json_set_count(row, "row_bytes", measurement.row_bytes);
    }
    bench_set_real(row, "gb_per_s", rate * 1e-9);
    return SLC_OK;
}

/* Measures the peak operations per second in f64 and in f32. */
static enum slc_status
measure_peaks(const struct arguments *args, json_t *rows, struct slc_error *err)
{
    static const enum slc_value_type types[] = {SLC_F64, SLC_F32};

    for (unsigned t = 0; t < 2; t++) {
        json_t *row = bench_add_row(rows);
        double rate = 0;

        SLC_TRY(bench_device_peak((unsigned)args->ordinal, types[t], args->moved,
                                  (unsigned)args->bench.repeats, &rate, err));
        slc_json_set_text(row, "peak", slc_gpu_peak_name(types[t]));
        slc_json_set_text(row, "precision", types[t] == SLC_F32 ? "f32" : "f64");
        bench_set_real(row, "gflop_per_s", rate * 1e-9);
    }
    return SLC_OK;
}

static struct slc_gpu_lists_options baseline_options(const struct baseline_arguments *args)
{
    return (struct slc_gpu_lists_options){.coarsening = (uint32_t)args->coarsening,
                                          .work_group = (uint32_t)args->work_group,
                                          .stash_rows = (uint32_t)args->stash_rows,
                                          .copies = (uint32_t)args->copies,
                                          .index_bits = (uint32_t)args->index_bits,
                                          .queues = (uint32_t)args->queues,
                                          .block_nnz = args->block_nnz};
}

static enum slc_status measure_mttkrp(const struct arguments *args,
                                      const char *path,
                                      enum slc_value_type precision,
                                      const struct session_options *session,
                                      json_t *rows,
                                      struct slc_error *err)
{
    struct device_mttkrp measured = {.path = path,
                                     .precision = precision,
                                     .mode = (unsigned)args->mode,
                                     .kernel = args->kernel,
                                     .lists = baseline_options(&args->baselines),
                                     .devices = args->baselines.devices,
                                     .session = *session,
                                     .warm_up = (unsigned)args->bench.warm_up,
                                     .repeats = (unsigned)args->bench.repeats};

    for (unsigned r = 0; r < args->ranks.count; r++) {
        measured.rank = (uint32_t)args->ranks.number[r];
        SLC_TRY(device_mttkrp_measure(&measured, rows, err));
        for (unsigned d = 0; d < args->logical.count; d++) {
            SLC_TRY(device_group_measure(&measured, (unsigned)args->ordinal,
                                         (unsigned)args->logical.number[d], rows, err));
        }
    }
    return SLC_OK;
}

/* Measures TTV and TTM from fibers. TTV exists only in f64. */
static enum slc_status measure_fibers(const struct arguments *args,
                                      const char *path,
                                      enum slc_value_type precision,
                                      const struct session_options *session,
                                      json_t *rows,
                                      struct slc_error *err)
{
    const struct device_fibers measured = {.path = path,
                                           .ordinal = (unsigned)args->ordinal,
                                           .mode = (unsigned)args->mode,
                                           .vector = strcmp(args->operation, "ttm") != 0 &&
                                                     precision == SLC_F64,
                                           .matrix = strcmp(args->operation, "ttv") != 0,
                                           .ranks = &args->ranks,
                                           .precision = precision,
                                           .session = *session,
                                           .repeats = (unsigned)args->bench.repeats};

    return device_fibers_measure(&measured, rows, err);
}

/* Measures a store in every requested precision. */
static enum slc_status
measure_store(const struct arguments *args, const char *path, json_t *rows, struct slc_error *err)
{
    static const struct {
        const char *name;
        enum slc_value_type type;
    } precisions[] = {{"f64", SLC_F64}, {"f32", SLC_F32}};
    struct session_options session = args->session;

    session.device = "gpu";
    session.io = "auto";
    session.schedule = "auto";
    session.pin = "auto";
    for (unsigned p = 0; p < 2; p++) {
        if (strcmp(args->precision, "all") == 0 ||
            strcmp(args->precision, precisions[p].name) == 0) {
            session.precision = precisions[p].name;
            SLC_TRY(strcmp(args->operation, "mttkrp") == 0
                        ? measure_mttkrp(args, path, precisions[p].type, &session, rows, err)
                        : measure_fibers(args, path, precisions[p].type, &session, rows, err));
        }
    }
    return SLC_OK;
}

static enum slc_status
measure(void *state, const char *operand, json_t *record, struct slc_error *err)
{
    const struct device_bench *bench = state;
    const struct arguments *args = bench->args;
    const struct slc_gpu_options gpu = {.ordinal = (unsigned)args->ordinal};
    struct slc_device *device = NULL;
    struct slc_device_info info;
    json_t *rows = json_array();
    json_t *peaks = json_array();
    json_t *products = json_array();
    unsigned count;
    enum slc_status status = slc_gpu_count(&count, err);

    (void)operand;
    slc_json_set(record, "ceilings", rows);
    slc_json_set(record, "peaks", peaks);
    slc_json_set(record, "rows", products);
    SLC_THEN(status, slc_gpu_create(&gpu, &device, err));
    SLC_TRY(status);
    device->ops->info(device, &info);
    device->ops->destroy(device);
    bench_set_device(record, &info);
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        for (unsigned w = 0; w < 8 && cases[c].working_bytes[w] != 0 && status == SLC_OK; w++) {
            if (cases[c].working_bytes[w] <= args->largest) {
                status = measure_one(args, c, cases[c].working_bytes[w], rows, err);
            }
        }
    }
    if (status == SLC_OK && json_array_size(rows) > 0) {
        status = measure_peaks(args, peaks, err);
    }
    for (unsigned i = 0; i < bench->operands.count && status == SLC_OK; i++) {
        status = measure_store(args, bench->operands.text[i], products, err);
    }
    device_summary_add(record);
    return status;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct arguments args = {.ordinal = 0};
    struct device_bench bench = {.args = &args};

    return bench_run(command, argc, argv,
                     &(struct bench_steps){&args, &args.bench, &bench, &bench.operands, measure,
                                           tables, NULL, NULL});
}

const struct command bench_device = {
    .name = "bench device",
    .summary = "transfer rates of a GPU; MTTKRP, TTV and TTM compared with other kernels",
    .example = "sluice bench device flights-4d.slc --rank 32 --kernel all",
    .operands = "[X.slc ...]",
    .operands_min = 0,
    .operands_max = OPTIONS_MAX_OPERANDS,
    .options = options,
    .notes =
        "Ceilings:\n"
        "  read                reads of a working set\n"
        "  copy                copies in device memory; bytes read and bytes written count\n"
        "  to-device, to-host  copies from and to registered memory\n"
        "  rows, reduce        reads of, or additions to, rows at random places\n"
        "  fma                 computation in registers\n"
        "MTTKRP:\n"
        "  ms                  device time of one MTTKRP\n"
        "  whole ms            time of the call\n"
        "  differs by          norm of the difference from the output of sluice, relative to the\n"
        "                      norm of that output, in units of 1e-15\n"
        "ttv and ttm compute from fibers in device memory. Their sums are compared with sums that\n"
        "the CPU computes. GB/s counts each array once. Kernels: sptv, sptv-short (without unused\n"
        "indices), sptv-all (with empty fibers), the kernels of cuSPARSE if it is installed,\n"
        "ttm-fibers, ttm-nonzeros, ttm-xplat-element, ttm-xplat-fiber.\n"
        "\n"
        "The summary adds up all modes of an MTTKRP:\n"
        "  ratio               time divided by the time of sluice\n"
        "  lowest ratio        the smallest ratio of a mode\n"
        "  slowest/fastest     slowest mode of a kernel relative to its fastest mode\n"
        "  model GB/s          rate of rows of factors and of nonzeros as the kernel stores them\n"
        "  % of ceiling        model GB/s relative to the rate of random rows in this run\n"
        "  overall Gnnz/s      rate including the copies, if blocks are copied\n"
        "  % of in-memory      overall Gnnz/s relative to the rate of the kernels alone\n"
        "  % overlap           time in which copies and kernels overlap, relative to the shorter\n"
        "                      of copies and kernels\n"
        "  build/MTTKRPs       time to build the data of the kernel, relative to its MTTKRP of\n"
        "                      all modes\n"
        "  scaling             speed relative to one device\n"
        "  spread              largest minus smallest time of a device, relative to the sum of all",
    .run = run,
};
