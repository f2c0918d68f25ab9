/* sluice bench roofline: compares the performance of each kernel, rank and mode on stores with the
 * roofs of this machine (roofs.h). Prints tables and draws a picture. With --bounds it also
 * measures the best cases and a worst case of each tensor (roofline_bound.h). Also prints the
 * arithmetic intensity of each tensor by the tables of a paper (intensity.h).
 *
 * A kernel is compared with the roof of the memory level that can hold the matrix rows of the
 * kernel, because a kernel reads each nonzero once, but reuses matrix rows. For each tensor, all
 * kernels and ranks are measured on the store, then on the best cases, then on the worst case. */
#include "base/thread/team.h"
#include "cpu/cpu.h"
#include "tools/bench/bench.h"
#include "tools/bench/measure/run.h"
#include "tools/bench/roofline/intensity.h"
#include "tools/bench/roofline/roofline.h"
#include "tools/bench/roofline/roofline_bound.h"
#include "tools/bench/roofline/roofs.h"
#include "tools/progress/console.h"
#include "tools/session/common_options.h"

#include <stdio.h>
#include <string.h>

struct arguments {
    struct option_counts ranks;
    uint64_t threads;
    const char *kernel;
    const char *precision;
    const char *isa;
    const char *device;
    uint64_t device_memory;
    bool bounds;
    const char *svg;
    const char *temp_dir;
    uint64_t memory;
    uint64_t memory_set;
    struct bench_options bench;
};

static const char *const device_choices[] = {"cpu", "gpu", NULL};
static const char *const isa_choices[] = {"best", "portable", "avx2", "avx512", "neon", NULL};

static const struct option options[] = {
    BENCH_OPTION_ROW_RANKS(
        arguments,
        ranks,
        "columns of the factors; several numbers are measured one after the other"),
    OPTION_ROW_THREADS(arguments, threads),
    {"kernel", OPTION_STRING, offsetof(struct arguments, kernel), .value = "NAME",
     .fallback = "all",
     .help = "kernel: mttkrp-copies (from replicas), mttkrp-stream (from the blocks as stored), "
             "sptv (tensor times vector from fibers, at rank 1), ttm-fiber or ttm-nonzero (tensor "
             "times matrix from blocks in the order of fibers), or all; with --device gpu: mttkrp, "
             "sptv, ttm-fibers, ttm-nonzeros or all"},
    SESSION_OPTION_ROW_PRECISION(arguments, precision),
    {"isa", OPTION_CHOICE, offsetof(struct arguments, isa), .value = "SET", .fallback = "best",
     .choices = isa_choices,
     .help = "instruction set of kernels and roofs: best, portable, avx2, avx512 or neon"},
    {"device", OPTION_CHOICE, offsetof(struct arguments, device), .value = "WHICH",
     .fallback = "cpu", .choices = device_choices,
     .help = "device whose roofs and kernels are measured: cpu or gpu"},
    {"device-memory", OPTION_SIZE, offsetof(struct arguments, device_memory), .value = "SIZE",
     .help = "GPU memory that may be used, such as 512MiB or 4G; nine tenths of the free memory if "
             "not given"},
    {"bounds", OPTION_FLAG, offsetof(struct arguments, bounds),
     .help = "also measure tensors with the order and the nonzeros of "
             "each store: ones whose rows are reused as often as possible, "
             "and one without reuse"},
    {"svg", OPTION_STRING, offsetof(struct arguments, svg), .value = "FILE", .not_stdout = true,
     .help = "write a picture of roofs and kernels to FILE, which is replaced"},
    {"temp-dir", OPTION_STRING, offsetof(struct arguments, temp_dir), .value = "DIR",
     .help = "folder for the tensors of --bounds and the stores sorted for TTM, which are removed "
             "at the end; $TMPDIR or /tmp if not given"},
    OPTION_ROW_MEMORY(arguments, memory),
    BENCH_OPTION_ROW_MEMORY_SET(arguments, memory_set),
    BENCH_OPTION_ROWS(arguments, "5"),
    {.name = NULL}};

static const struct bench_column level_columns[] = {{"level", "level", 0, 0},
                                                    {"set_bytes", "KiB", 1.0 / 1024, 0},
                                                    {"gb_per_s", "read GB/s", 1, 1},
                                                    {"f64_ridge_flop_per_byte", "f64 ridge", 1, 3},
                                                    {"f32_ridge_flop_per_byte", "f32 ridge", 1, 3},
                                                    {NULL, NULL, 0, 0}};

static const struct bench_column peak_columns[] = {{"precision", "type", 0, 0},
                                                   {"instruction_set", "set", 0, 0},
                                                   {"threads", "threads", 0, 0},
                                                   {"gflop_per_s", "peak GFLOP/s", 1, 1},
                                                   {NULL, NULL, 0, 0}};

static const struct bench_column columns[] = {{"tensor", "tensor", 0, 0},
                                              {"case", "case", 0, 0},
                                              {"kernel", "kernel", 0, 0},
                                              {"rank", "rank", 0, 0},
                                              {"mode", "mode", 0, 0},
                                              {"form", "runs vary in", 0, 0},
                                              {"nnz_per_run", "nnz/run", 1, 2},
                                              {"min_ms", "ms", 1, 2},
                                              {"flop_per_byte", "flop/B", 1, 3},
                                              {"gflop_per_s", "GFLOP/s", 1, 2},
                                              {"roof", "roof", 0, 0},
                                              {"roof_gflop_per_s", "its GFLOP/s", 1, 1},
                                              {"roof_share", "% of it", 100, 0},
                                              {"worst_gflop_per_s", "worst", 1, 2},
                                              {"best_gflop_per_s", "best", 1, 2},
                                              {"position", "attained is", 0, 0},
                                              {NULL, NULL, 0, 0}};

static const struct bench_column intensity_columns[] = {{"tensor", "tensor", 0, 0},
                                                        {"operation", "operation", 0, 0},
                                                        {"form", "form", 0, 0},
                                                        {"rank", "rank", 0, 0},
                                                        {"mode", "mode", 0, 0},
                                                        {"fiber_mode", "fibers of", 0, 0},
                                                        {"slices", "slices", 0, 0},
                                                        {"fibers", "fibers", 0, 0},
                                                        {"ai_min", "AI min", 1, 4},
                                                        {"least_flop_per_byte", "least", 1, 4},
                                                        {"flop_per_byte", "flop/B", 1, 4},
                                                        {"most_flop_per_byte", "most", 1, 4},
                                                        {"ai_max", "AI max", 1, 4},
                                                        {NULL, NULL, 0, 0}};

static const struct bench_table tables[] = {{"peaks", peak_columns, false},
                                            {"levels", level_columns, false},
                                            {"intensity", intensity_columns, true},
                                            {"rows", columns, false},
                                            {"bounds", columns, true},
                                            {NULL, NULL, false}};

enum roofline_case { ROOFLINE_GIVEN, ROOFLINE_BEST, ROOFLINE_WORST };
enum { ROOFLINE_CASES = 3 };

/* The measurements (points of the picture) of one tensor at one rank, by kernel and mode. */
typedef struct roofline_point roofline_points[ROOFLINE_KERNELS_MAX][SLC_MAX_ORDER];

/* State of a run. */
struct roofline_bench {
    const struct arguments *args;
    struct operands operands;
    struct slc_session session;
    struct bench_roofs roofs;
    struct bench_roofs_device device; /* the GPU of --device gpu */
    const struct roofline_kernel *kernels;
    unsigned kernel_count;
    unsigned threads;
    enum slc_value_type precision;
    char *folder;                            /* folder of the best and worst cases, or NULL */
    roofline_points *points[ROOFLINE_CASES]; /* one element per rank */
    json_t *tensors, *intensity, *rows, *bounds, *left_out;
    char name[256]; /* name of the tensor being measured */
};

static const char *const case_names[ROOFLINE_CASES] = {"given", "best", "worst"};

static bool kernel_wanted(const struct roofline_bench *bench, unsigned kernel)
{
    return strcmp(bench->args->kernel, "all") == 0 ||
           strcmp(bench->args->kernel, bench->kernels[kernel].name) == 0;
}

static enum slc_status check_kernel(const struct roofline_bench *bench, struct slc_error *err)
{
    for (unsigned k = 0; k < bench->kernel_count; k++) {
        if (kernel_wanted(bench, k)) {
            return SLC_OK;
        }
    }
    return slc_fail(err, SLC_ERR_USAGE,
                    "--kernel %s: unknown kernel; see sluice bench roofline --help",
                    bench->args->kernel);
}

static uint32_t largest_rank(const struct arguments *args)
{
    uint64_t largest = 0;

    for (unsigned r = 0; r < args->ranks.count; r++) {
        largest = args->ranks.number[r] > largest ? args->ranks.number[r] : largest;
    }
    return (uint32_t)largest;
}

static struct roofline_job new_job(struct roofline_bench *bench, enum roofline_case which)
{
    const struct arguments *args = bench->args;

    return (struct roofline_job){.session = &bench->session,
                                 .mode_end = bench->session.store.manifest.order,
                                 .threads = bench->threads,
                                 .precision = bench->precision,
                                 .instruction_set = bench->roofs.instruction_set,
                                 .memory_bytes = args->memory,
                                 .warm_up = (unsigned)args->bench.warm_up,
                                 .repeats = (unsigned)args->bench.repeats,
                                 .left_out = bench->left_out,
                                 .tensor = bench->name,
                                 .case_name = case_names[which],
                                 .device_memory = args->device_memory,
                                 .temp_dir = args->temp_dir};
}

/* Measures the kernels of a case on the open store, at every rank. `best`: NULL for all kernels and
 * modes, otherwise the only kernels and the only mode to measure. */
static enum slc_status measure_case(struct roofline_bench *bench,
                                    enum roofline_case which,
                                    const struct roofline_best *best,
                                    struct slc_error *err)
{
    const struct arguments *args = bench->args;
    struct roofline_job job = new_job(bench, which);
    enum slc_status status = SLC_OK;

    if (best != NULL) {
        job.mode_begin = best->mode;
        job.mode_end = best->mode + 1;
    }
    for (unsigned r = 0; r < args->ranks.count && status == SLC_OK; r++) {
        job.rank = (uint32_t)args->ranks.number[r];
        for (unsigned k = 0; k < bench->kernel_count && status == SLC_OK; k++) {
            if (kernel_wanted(bench, k) &&
                (best == NULL || bench->kernels[k].best == best->distribution)) {
                job.kernel = bench->kernels[k].name;
                status = roofline_leave_out(
                    &job, job.mode_begin, job.mode_end - job.mode_begin,
                    bench->kernels[k].measure(&job, bench->points[which][r][k], err), err);
            }
        }
    }
    return status;
}

/* Adds the arithmetic intensity of the open store. */
static enum slc_status measure_intensity(struct roofline_bench *bench, struct slc_error *err)
{
    struct roofline_job job = new_job(bench, ROOFLINE_GIVEN);

    job.kernel = "intensity";
    job.rank = largest_rank(bench->args);
    return roofline_leave_out(&job, 0, job.mode_end,
                              intensity_add_rows(&job, &bench->args->ranks, bench->intensity, err),
                              err);
}

/* Makes a best case, or the worst case if `best` is NULL, measures it and removes it. Adds its
 * description to `tensor`. */
static enum slc_status measure_bound(struct roofline_bench *bench,
                                     const struct roofline_bound *bound,
                                     const struct roofline_best *best,
                                     json_t *tensor,
                                     struct slc_error *err)
{
    char *path = slc_path_join(bench->folder, "bound.slc");

    SLC_TRY(slc_check_memory(path != NULL, err, "for a path"));
    enum slc_status status = roofline_bound_make(bound, best, path, err);
    SLC_THEN(status, session_open(&bench->session, path, bench->args->memory, err));
    if (status == SLC_OK) {
        json_t *made = bench_tensor_to_json(&bench->session.store);

        if (best == NULL) {
            slc_json_set(tensor, "worst", made);
        } else {
            slc_json_set_text(made, "distribution", best->name);
            slc_json_set_count(made, "mode", best->mode + 1);
            (void)json_array_append_new(json_object_get(tensor, "best"), made);
        }
        status = measure_case(bench, best != NULL ? ROOFLINE_BEST : ROOFLINE_WORST, best, err);
    }
    session_close(&bench->session);
    SLC_THEN(status, slc_folder_remove(slc_files_system(), path, err));
    slc_free(path);
    return status;
}

/* Measures the worst case of a tensor, and the best cases of every mode for the wanted kernels. */
static enum slc_status measure_bounds(struct roofline_bench *bench,
                                      const struct roofline_bound *bound,
                                      json_t *tensor,
                                      struct slc_error *err)
{
    struct roofline_best best[] = {{.distribution = SLC_DIST_DENSE_SLICES, .name = "dense-slices"},
                                   {.distribution = SLC_DIST_DENSE_FIBERS, .name = "dense-fibers"}};

    slc_json_set(tensor, "best", json_array());
    for (unsigned b = 0; b < sizeof best / sizeof best[0]; b++) {
        bool wanted = false;

        for (unsigned k = 0; k < bench->kernel_count; k++) {
            wanted |= kernel_wanted(bench, k) && bench->kernels[k].best == best[b].distribution;
        }
        for (best[b].mode = 0; wanted && best[b].mode < bound->order; best[b].mode++) {
            SLC_TRY(measure_bound(bench, bound, &best[b], tensor, err));
        }
    }
    return measure_bound(bench, bound, NULL, tensor, err);
}

/* Returns the rate of the fastest run, because a roof is also the rate of the fastest sample. */
static double attained(const struct roofline_point *point)
{
    return point->flop / point->times.min;
}

/* Adds one measurement to `rows`, which is the member "rows" or "bounds" of the record. */
static json_t *add_row(json_t *rows,
                       const struct roofline_job *job,
                       unsigned mode,
                       const struct roofline_point *point)
{
    json_t *row = roofline_add_row(rows, job, mode);

    slc_json_set_text(row, "strategy", point->strategy);
    slc_json_set_text(row, "form", point->form);
    bench_set_real(row, "nnz_per_run", point->nnz_per_run);
    bench_times_to_json(row, &point->times);
    bench_set_real(row, "flop", point->flop);
    bench_set_real(row, "bytes", point->bytes);
    bench_set_real(row, "flop_per_byte", point->flop / point->bytes);
    bench_set_real(row, "gflop_per_s", attained(point) * 1e-9);
    slc_json_set_count(row, "rows_bytes", point->rows_bytes);
    return row;
}

/* Adds to a row of the store its comparison with the rows of the best and the worst case. */
static void set_position(json_t *row,
                         const struct roofline_point *given,
                         const struct roofline_point *best,
                         const struct roofline_point *worst)
{
    const double rate = attained(given);

    bench_set_real(row, "worst_gflop_per_s", attained(worst) * 1e-9);
    bench_set_real(row, "best_gflop_per_s", attained(best) * 1e-9);
    slc_json_set_text(row, "position",
                      rate > attained(best)    ? "above best"
                      : rate < attained(worst) ? "below worst"
                                               : "between");
}

/* Adds the rows of all measurements of one tensor. */
static void add_tensor_rows(struct roofline_bench *bench, unsigned order, bool bounded)
{
    const struct arguments *args = bench->args;

    for (unsigned k = 0; k < bench->kernel_count; k++) {
        for (unsigned r = 0; r < args->ranks.count; r++) {
            for (unsigned n = 0; n < order; n++) {
                const struct roofline_point *points[ROOFLINE_CASES];
                json_t *row[ROOFLINE_CASES] = {NULL};

                for (unsigned c = 0; c < ROOFLINE_CASES; c++) {
                    const struct roofline_job job = {.tensor = bench->name,
                                                     .case_name = case_names[c],
                                                     .kernel = bench->kernels[k].name,
                                                     .rank = (uint32_t)args->ranks.number[r]};

                    points[c] = &bench->points[c][r][k][n];
                    if (points[c]->measured) {
                        row[c] = add_row(c == ROOFLINE_GIVEN ? bench->rows : bench->bounds, &job, n,
                                         points[c]);
                    }
                }
                if (bounded && row[ROOFLINE_GIVEN] != NULL && row[ROOFLINE_BEST] != NULL &&
                    row[ROOFLINE_WORST] != NULL) {
                    set_position(row[ROOFLINE_GIVEN], points[ROOFLINE_GIVEN], points[ROOFLINE_BEST],
                                 points[ROOFLINE_WORST]);
                }
            }
        }
    }
}

/* Measures one store, then its best and worst cases. */
static enum slc_status
measure_tensor(struct roofline_bench *bench, unsigned which, struct slc_error *err)
{
    const struct arguments *args = bench->args;
    const struct slc_manifest *manifest = &bench->session.store.manifest;
    struct roofline_bound bound = {.nnz = 0};

    SLC_TRY(session_open(&bench->session, bench->operands.text[which], args->memory, err));
    roofline_name_tensor(&bench->operands, which, bench->name, sizeof bench->name);
    unsigned order = manifest->order;
    json_t *tensor = bench_tensor_to_json(&bench->session.store);
    (void)json_array_append_new(bench->tensors, tensor);
    slc_json_set_text(tensor, "name", bench->name);
    for (unsigned c = 0; c < ROOFLINE_CASES; c++) {
        memset(bench->points[c], 0, args->ranks.count * sizeof *bench->points[c]);
    }
    enum slc_status status = measure_intensity(bench, err);
    SLC_THEN(status, measure_case(bench, ROOFLINE_GIVEN, NULL, err));
    if (bench->folder != NULL) {
        roofline_bound_init(&bound, manifest, bench->precision, largest_rank(args), bench->threads,
                            args->memory);
        if (bound.nnz < manifest->nnz) {
            console_note("%s: the best and worst cases have %llu instead of %llu nonzeros, "
                         "because a larger worst case would not fit",
                         bench->name, (unsigned long long)bound.nnz,
                         (unsigned long long)manifest->nnz);
        }
    }
    session_close(&bench->session);
    SLC_TRY(status);
    if (bound.nnz > 0) {
        SLC_TRY(measure_bounds(bench, &bound, tensor, err));
    }
    add_tensor_rows(bench, order, bound.nnz > 0);
    return SLC_OK;
}

/* Adds the roof of each row, after all rows have been measured. */
static void set_roofs(const struct roofline_bench *bench, json_t *rows)
{
    size_t i;
    json_t *row;

    json_array_foreach(rows, i, row)
    {
        const json_int_t bytes = json_integer_value(json_object_get(row, "rows_bytes"));
        const struct bench_level *level = bench_roofs_level(&bench->roofs, (uint64_t)bytes);
        /* GPU kernels multiply and add in f64. */
        const double roof = bench_roof(&bench->roofs, level,
                                       bench->roofs.device != NULL ? SLC_F64 : bench->precision,
                                       json_number_value(json_object_get(row, "flop_per_byte")));
        const double rate = json_number_value(json_object_get(row, "gflop_per_s"));

        slc_json_set_text(row, "roof", level->name);
        bench_set_real(row, "roof_gflop_per_s", roof * 1e-9);
        bench_set_real(row, "roof_share", rate * 1e9 / roof);
    }
}

/* Makes all checks that are possible before measuring. */
static enum slc_status check_all(struct roofline_bench *bench, struct slc_error *err)
{
    const struct arguments *args = bench->args;
    enum slc_status status = check_kernel(bench, err);

    for (unsigned i = 0; i < bench->operands.count && status == SLC_OK; i++) {
        status = session_open(&bench->session, bench->operands.text[i], args->memory, err);
        session_close(&bench->session);
    }
    SLC_TRY(status);
    if (args->svg != NULL) {
        SLC_TRY(roofline_svg_try(args->svg, err));
    }
    if (args->bounds) {
        SLC_TRY(bench_temp_folder(args->temp_dir, &bench->folder, err));
    }
    return SLC_OK;
}

/* Opens the requested device and chooses the kernels. */
static enum slc_status
choose_device(struct roofline_bench *bench, json_t *record, struct slc_error *err)
{
    const struct arguments *args = bench->args;
    struct slc_device_info info;

    bench->kernels = roofline_kernels;
    bench->kernel_count = roofline_kernel_count;
    bench->threads = args->threads > 0 ? (unsigned)args->threads : slc_team_default_workers();
    bench->precision = strcmp(args->precision, "f32") == 0 ? SLC_F32 : SLC_F64;
    slc_json_set_count(record, "threads", bench->threads);
    if (strcmp(args->device, "gpu") != 0) {
        return args->device_memory == 0
                   ? SLC_OK
                   : slc_fail(err, SLC_ERR_USAGE,
                              "--device-memory applies to GPUs only: add --device gpu, or remove "
                              "it");
    }
    if (strcmp(args->isa, "best") != 0) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "--isa applies to the CPU only: remove it or --device gpu");
    }
    bench->kernels = roofline_device_kernels;
    bench->kernel_count = roofline_device_kernel_count;
    SLC_TRY(bench_device_find(args->device_memory, &info, err));
    bench->device = (struct bench_roofs_device){
        .free_bytes = info.free_bytes,
        .row_bytes = largest_rank(args) * (uint32_t)slc_value_bytes(bench->precision)};
    bench_set_device(record, &info);
    return SLC_OK;
}

static enum slc_status measure_roofs(struct roofline_bench *bench, struct slc_error *err)
{
    const struct arguments *args = bench->args;
    const unsigned repeats = (unsigned)args->bench.repeats;

    if (bench->device.row_bytes != 0) {
        return bench_roofs_measure_device(&bench->roofs, &bench->device, args->memory_set, repeats,
                                          err);
    }
    return bench_roofs_measure(
        &bench->roofs, strcmp(args->isa, "best") == 0 ? slc_cpu_instruction_set() : args->isa,
        bench->threads, args->memory_set, repeats, err);
}

static enum slc_status
measure(void *state, const char *operand, json_t *record, struct slc_error *err)
{
    struct roofline_bench *bench = state;
    const struct arguments *args = bench->args;
    enum slc_status status = choose_device(bench, record, err);

    (void)operand;
    SLC_THEN(status, check_all(bench, err));
    SLC_TRY(status);
    for (unsigned c = 0; c < ROOFLINE_CASES; c++) {
        bench->points[c] = slc_calloc(args->ranks.count, sizeof *bench->points[c]);
        SLC_TRY(slc_check_memory(bench->points[c] != NULL, err, "for the measurements"));
    }
    SLC_TRY(measure_roofs(bench, err));
    slc_json_set_text(record, "instruction_set", bench->roofs.instruction_set);
    slc_json_set_text(record, "precision", args->precision);
    slc_json_set(record, "tensors", bench->tensors = json_array());
    slc_json_set(record, "intensity", bench->intensity = json_array());
    slc_json_set(record, "rows", bench->rows = json_array());
    slc_json_set(record, "bounds", bench->bounds = json_array());
    slc_json_set(record, "left_out", bench->left_out = json_array());
    for (unsigned i = 0; i < bench->operands.count; i++) {
        SLC_TRY(measure_tensor(bench, i, err));
    }
    SLC_TRY(bench_roofs_raise(&bench->roofs, err));
    bench_roofs_to_json(&bench->roofs, record);
    set_roofs(bench, bench->rows);
    set_roofs(bench, bench->bounds);
    if (json_array_size(bench->rows) == 0 && json_array_size(bench->left_out) > 0) {
        return slc_fail(
            err, SLC_ERR_BUDGET, "%s",
            json_string_value(json_object_get(json_array_get(bench->left_out, 0), "why")));
    }
    if (args->svg != NULL) {
        SLC_TRY(roofline_svg_write(record, args->svg, err));
    }
    return SLC_OK;
}

static void close_all(void *state)
{
    struct roofline_bench *bench = state;

    for (unsigned c = 0; c < ROOFLINE_CASES; c++) {
        slc_free(bench->points[c]);
    }
    session_close(&bench->session);
    bench_temp_folder_remove(bench->folder);
}

static int run(const struct command *command, int argc, char **argv)
{
    struct arguments args = {.threads = 0};
    struct roofline_bench bench = {.args = &args, .session = {.stream = NULL}};

    return bench_run(command, argc, argv,
                     &(struct bench_steps){&args, &args.bench, &bench, &bench.operands, measure,
                                           tables, NULL, close_all});
}

const struct command bench_roofline = {
    .name = "bench roofline",
    .summary = "kernels compared with the roofs of this machine, with best and worst cases",
    .example = "sluice bench roofline flights-4d.slc --rank 16 --bounds --svg roofs.svg",
    .operands = "X.slc ..",
    .operands_min = 1,
    .operands_max = OPTIONS_MAX_OPERANDS,
    .options = options,
    .notes =
        "A roof is the highest rate that a kernel can reach, given its number of operations per\n"
        "byte that it loads or stores, and the level of memory that serves its rows. A GPU has\n"
        "one more roof, for rows at random places of its memory.",
    .run = run,
};
