/* sluice bench mttkrp: measures the MTTKRP of every mode of a store held in memory, for every
 * requested combination of rank, threads, precision, instruction set, layout, conflict strategy and
 * baseline.
 *
 * Figures per combination and mode:
 *   operations   N R nnz: N - 1 multiplications and one addition per nonzero and column
 *   model bytes  nnz ((N R + 3) v + 8 N) with v bytes per element: N - 1 factor rows, one output
 *                row, the value and N indices of 8 bytes. A kernel over coordinates moves these
 *                bytes if there is no cache ([Phipps2019] equation (3), with the terms that the
 *                authors' code counts; mttkrp_model.h)
 *   ceiling      rates with which the model bytes per second are compared (ceiling.h): a gather of
 *                factor rows from a working set as large as factors and output together, and reads
 *                of memory
 *
 * The rate can exceed the ceiling of the gather: the indices of a store usually take less than a
 * quarter of the bytes that the model counts for them, and neighbouring nonzeros use the same
 * rows. */
#include "base/memory/limits.h"
#include "base/thread/team.h"
#include "cpu/cpu.h"
#include "report/json_parts.h"
#include "tools/bench/bench.h"
#include "tools/bench/measure/run.h"
#include "tools/bench/mttkrp/mttkrp_group.h"
#include "tools/bench/mttkrp/mttkrp_model.h"
#include "tools/bench/roofline/ceiling.h"
#include "tools/progress/format.h"
#include "tools/session/common_options.h"

#include <string.h>

struct arguments {
    struct option_counts ranks;
    struct option_counts threads;
    uint64_t mode;
    const char *precision;
    const char *isa;
    const char *conflict;
    const char *kernel;
    const char *layouts;
    bool check;
    uint64_t memory;
    uint64_t memory_set;
    struct bench_options bench;
};

static const char *const precision_choices[] = {"f64", "f32", "all", NULL};
static const char *const isa_choices[] = {"best", "portable", "avx2", "avx512",
                                          "neon", "all",      NULL};
static const char *const conflict_choices[] = {"auto",    "stream",  "direct", "private", "locked",
                                               "ordered", "columns", "owned",  "all",     NULL};

static const char *const kernel_choices[] = {
    "sluice",        "genten-a",  "genten-b", "genten-c",     "genten",
    "xplat-element", "xplat-row", "xplat",    "atomic-fiber", "atomic-nonzero",
    "atomic",        "all",       NULL};
static const char *const layout_choices[] = {"blco", "sorted", "all", NULL};

static const struct option options[] = {
    BENCH_OPTION_ROW_RANKS(
        arguments,
        ranks,
        "columns of the factors; several numbers are measured one after the other"),
    BENCH_OPTION_ROW_THREADS(arguments, threads),
    BENCH_OPTION_ROW_MODE(arguments, mode),
    {"precision", OPTION_CHOICE, offsetof(struct arguments, precision), .value = "TYPE",
     .fallback = "f64", .choices = precision_choices, .help = "type of factors: f64, f32 or all"},
    {"isa", OPTION_CHOICE, offsetof(struct arguments, isa), .value = "SET", .fallback = "best",
     .choices = isa_choices,
     .help = "instruction set: best, portable, avx2, avx512, neon, or all sets of this machine"},
    {"conflict", OPTION_CHOICE, offsetof(struct arguments, conflict), .value = "WAY",
     .fallback = "auto", .choices = conflict_choices,
     .help =
         "strategy by which threads add to the same output row: owned (replicas), stream (the plan "
         "chooses direct, private, locked, ordered or columns), direct (one thread), private, "
         "locked, ordered, columns, auto (owned if memory allows, otherwise stream), or all"},
    {"kernel", OPTION_CHOICE, offsetof(struct arguments, kernel), .value = "NAME",
     .fallback = "sluice", .choices = kernel_choices,
     .help = "sluice (its own kernels); baselines over a list of coordinates, after Phipps and "
             "Kolda, SISC 2019: genten-a (atomic additions per nonzero), genten-b (tiles, sums in "
             "registers), genten-c (a permutation per mode), genten (all three); baselines over "
             "slices of fibers, built from the layouts sorted by each mode (sluice layout --sorted "
             "all), after \"Exploring the Limits of Cross-Platform Sparse Tensor Processing\": "
             "xplat-element (each element of the output alone), xplat-row (each row alone), xplat "
             "(both); baselines over each layout with whole fibers (sluice layout --fiber): "
             "atomic-fiber (common work once per fiber), atomic-nonzero (all work per nonzero), "
             "atomic (both); or all"},
    {"layouts", OPTION_CHOICE, offsetof(struct arguments, layouts), .value = "WHICH",
     .fallback = "blco", .choices = layout_choices,
     .help = "layouts that the kernels of sluice read: blco, with the strategy of --conflict; "
             "sorted, where each mode reads the layout sorted by that mode; or all"},
    {"check", OPTION_FLAG, offsetof(struct arguments, check),
     .help = "compare every result with simple loops over a list of coordinates"},
    OPTION_ROW_MEMORY(arguments, memory),
    BENCH_OPTION_ROW_MEMORY_SET(arguments, memory_set),
    BENCH_OPTION_ROWS(arguments, "5"),
    {.name = NULL}};

static const struct bench_column mode_columns[] = {{"rank", "rank", 0, 0},
                                                   {"threads", "threads", 0, 0},
                                                   {"precision", "type", 0, 0},
                                                   {"instruction_set", "set", 0, 0},
                                                   {"kernel", "kernel", 0, 0},
                                                   {"layout", "layout", 0, 0},
                                                   {"fiber_mode", "fibers of", 0, 0},
                                                   {"conflict", "conflict", 0, 0},
                                                   {"mode", "mode", 0, 0},
                                                   {"strategy", "strategy", 0, 0},
                                                   {"form", "runs vary in", 0, 0},
                                                   {"nnz_per_run", "nnz/run", 1, 2},
                                                   {"median_ms", "ms", 1, 2},
                                                   {"nnz_per_s", "Mnnz/s", 1e-6, 1},
                                                   {"gflop_per_s", "GFLOP/s", 1, 2},
                                                   {"model_gb_per_s", "model GB/s", 1, 1},
                                                   {"ceiling_gb_per_s", "gather GB/s", 1, 1},
                                                   {"ceiling_share", "% of it", 100, 0},
                                                   {"memory_ceiling_share", "% of memory", 100, 0},
                                                   {"decode_share", "decode %", 100, 0},
                                                   {"error", "error e-15", 1e15, 2},
                                                   {NULL, NULL, 0, 0}};

static const struct bench_column total_columns[] = {{"rank", "rank", 0, 0},
                                                    {"threads", "threads", 0, 0},
                                                    {"precision", "type", 0, 0},
                                                    {"instruction_set", "set", 0, 0},
                                                    {"kernel", "kernel", 0, 0},
                                                    {"layout", "layout", 0, 0},
                                                    {"fiber_mode", "fibers of", 0, 0},
                                                    {"conflict", "conflict", 0, 0},
                                                    {"all_modes_ms", "all modes ms", 1, 2},
                                                    {"gflop_per_s", "GFLOP/s", 1, 2},
                                                    {"decode_share", "decode %", 100, 0},
                                                    {"copies_iterations", "copies in its", 1, 1},
                                                    {"permute_iterations", "sorting in its", 1, 1},
                                                    {"payback_iterations", "paid back in", 1, 1},
                                                    {NULL, NULL, 0, 0}};

static const struct bench_table tables[] = {
    {"rows", mode_columns, false}, {"totals", total_columns, false}, {NULL, NULL, false}};

/* State shared by the parts of a run. */
struct mttkrp_bench {
    const struct arguments *args;
    struct slc_session session;
    struct bench_ceilings ceilings;
    struct bench_mttkrp_group group;
    struct bench_mttkrp_cell (*cells)[SLC_MAX_ORDER];
    json_t *rows;   /* a row per combination and mode */
    json_t *totals; /* a row per combination */
};

/* Returns an object with the members that identify a combination. */
static json_t *combination(const struct mttkrp_bench *bench,
                           const struct bench_mttkrp_variant *variant)
{
    const struct bench_mttkrp_group *group = &bench->group;
    const struct slc_store *store = &bench->session.store;
    json_t *object = json_object();

    slc_json_set_count(object, "rank", group->rank);
    slc_json_set_count(object, "threads", group->threads);
    slc_json_set_text(object, "precision", group->precision == SLC_F32 ? "f32" : "f64");
    slc_json_set_text(object, "instruction_set", variant->instruction_set);
    slc_json_set_text(object, "kernel", bench_mttkrp_kernel_name(variant));
    slc_json_set_text(object, "layout", bench_mttkrp_layout_name(variant, store));
    if (variant->fibers) {
        slc_json_set_count(object, "fiber_mode", variant->fiber_mode + 1);
    }
    slc_json_set_text(object, "conflict", bench_mttkrp_conflict_name(variant));
    return object;
}

/* Adds the model bytes per second and their ceilings to a row. */
static enum slc_status
set_model(struct mttkrp_bench *bench, json_t *row, double seconds, struct slc_error *err)
{
    const struct bench_mttkrp_group *group = &bench->group;
    const struct slc_manifest *manifest = &bench->session.store.manifest;
    const double bytes_per_nnz =
        bench_model_bytes_per_nnz(manifest->order, group->precision, group->rank);
    const double rate = bytes_per_nnz * (double)manifest->nnz / seconds;
    const uint64_t row_bytes = bench_model_row_bytes(group->precision, group->rank);
    const uint64_t set_bytes = bench_model_set_bytes(manifest, row_bytes);
    double set_rate = 0;
    double memory_rate = 0;

    SLC_TRY(bench_ceiling(&bench->ceilings, BENCH_GATHER, set_bytes, row_bytes, group->threads,
                          &set_rate, err));
    SLC_TRY(bench_ceiling(&bench->ceilings, BENCH_READ,
                          bench_memory_set_bytes(bench->ceilings.memory_set_bytes), 0,
                          group->threads, &memory_rate, err));
    bench_set_real(row, "model_bytes_per_nnz", bytes_per_nnz);
    bench_set_real(row, "model_gb_per_s", rate * 1e-9);
    slc_json_set_count(row, "set_bytes", set_bytes);
    bench_set_real(row, "ceiling_gb_per_s", set_rate * 1e-9);
    bench_set_real(row, "ceiling_share", rate / set_rate);
    bench_set_real(row, "memory_ceiling_gb_per_s", memory_rate * 1e-9);
    bench_set_real(row, "memory_ceiling_share", rate / memory_rate);
    return SLC_OK;
}

/* Adds to a row how the replica of its mode is sorted. */
static void set_form(json_t *row, const struct slc_replica_form *form)
{
    char modes[FORMAT_MODES_BYTES];

    slc_json_set_text(row, "form",
                      form->varying != 0 ? format_modes(modes, form->varying) : "plain");
    slc_json_set(row, "varying", slc_json_modes(form->varying));
    bench_set_real(row, "nnz_per_run", form->nnz_per_run);
    slc_json_set_count(row, "tried", form->tried);
}

/* Adds a row for one combination and mode. */
static enum slc_status set_row(struct mttkrp_bench *bench,
                               const struct bench_mttkrp_variant *variant,
                               unsigned mode,
                               const struct bench_mttkrp_cell *cell,
                               struct slc_error *err)
{
    const struct bench_mttkrp_group *group = &bench->group;
    const struct slc_manifest *manifest = &bench->session.store.manifest;
    const struct bench_times times = bench_samples_summary(&cell->samples);
    json_t *row = combination(bench, variant);

    (void)json_array_append_new(bench->rows, row);
    slc_json_set_count(row, "mode", mode + 1);
    slc_json_set_text(row, "strategy",
                      bench_mttkrp_own(variant) ? slc_conflict_name(cell->choice.chosen)
                                                : bench_mttkrp_conflict_name(variant));
    if (variant->slices) {
        bench_set_real(row, "nnz_per_run", group->nnz_per_fiber[mode]);
    } else if (cell->choice.chosen == SLC_CONFLICT_REPLICA) {
        set_form(row, &group->copies[mode]);
    }
    bench_times_to_json(row, &times);
    bench_set_real(row, "nnz_per_s", (double)manifest->nnz / times.median);
    bench_set_real(row, "gflop_per_s",
                   (double)manifest->nnz * group->rank * manifest->order / times.median * 1e-9);
    bench_set_real(row, "decode_share",
                   cell->decode_seconds / (cell->wall_seconds * group->threads));
    if (group->check) {
        bench_set_real(row, "error", cell->error);
    }
    return set_model(bench, row, times.median, err);
}

/* Sums of the figures of a variant over the measured modes. */
struct variant_sum {
    unsigned modes;
    double seconds; /* sum of the medians */
    double wall_seconds, decode_seconds;
};

static struct variant_sum sum_modes(const struct mttkrp_bench *bench, unsigned variant)
{
    struct variant_sum sum = {.modes = 0};

    for (unsigned n = bench->group.mode_begin; n < bench->group.mode_end; n++) {
        const struct bench_mttkrp_cell *cell = &bench->cells[variant][n];

        if (cell->measured) {
            sum.modes++;
            sum.seconds += bench_samples_summary(&cell->samples).median;
            sum.wall_seconds += cell->wall_seconds;
            sum.decode_seconds += cell->decode_seconds;
        }
    }
    return sum;
}

/* Records the time to sort the permutations of genten-c as a multiple of its MTTKRP of all modes
 * ([Phipps2019] table 6c). Also records the number of MTTKRPs of all modes after which genten-c has
 * saved that time compared with genten-a, null if genten-c is not faster. */
static void set_permuting(const struct mttkrp_bench *bench,
                          const struct bench_mttkrp_variant *variant,
                          double seconds,
                          json_t *total)
{
    const struct bench_mttkrp_group *group = &bench->group;

    bench_set_real(total, "permute_ms", group->permute_seconds * 1e3);
    bench_set_real(total, "permute_iterations", group->permute_seconds / seconds);
    for (unsigned v = 0; v < group->variant_count; v++) {
        const struct bench_mttkrp_variant *other = &group->variants[v];

        if (other->listed && other->kernel == SLC_COO_EACH &&
            strcmp(other->instruction_set, variant->instruction_set) == 0) {
            const double gain = sum_modes(bench, v).seconds - seconds;

            slc_json_set(total, "payback_iterations",
                         gain > 0 ? json_real(group->permute_seconds / gain) : json_null());
        }
    }
}

/* Adds the figures of one variant to the record. */
static enum slc_status record_variant(struct mttkrp_bench *bench, unsigned v, struct slc_error *err)
{
    const struct bench_mttkrp_group *group = &bench->group;
    const struct bench_mttkrp_variant *variant = &group->variants[v];
    const struct slc_manifest *manifest = &bench->session.store.manifest;
    const struct variant_sum sum = sum_modes(bench, v);
    json_t *total = combination(bench, variant);
    enum slc_status status = SLC_OK;

    (void)json_array_append_new(bench->totals, total);
    for (unsigned n = group->mode_begin; n < group->mode_end && status == SLC_OK; n++) {
        if (bench->cells[v][n].measured) {
            status = set_row(bench, variant, n, &bench->cells[v][n], err);
        }
    }
    /* The sum and the ratios to the sum are meaningful only if all modes were measured, because the
     * time to build replicas or permutations is for all modes. */
    if (sum.modes < manifest->order) {
        slc_json_set(total, "all_modes_ms", json_null());
        return status;
    }
    bench_set_real(total, "all_modes_ms", sum.seconds * 1e3);
    if (variant->conflict == SLC_CONFLICT_REPLICA) {
        bench_set_real(total, "copies_ms", group->copies_seconds * 1e3);
        bench_set_real(total, "copies_iterations", group->copies_seconds / sum.seconds);
    }
    if (variant->listed && variant->kernel == SLC_COO_PERMUTED) {
        set_permuting(bench, variant, sum.seconds, total);
    }
    bench_set_real(total, "gflop_per_s",
                   (double)manifest->nnz * group->rank * manifest->order * sum.modes / sum.seconds *
                       1e-9);
    bench_set_real(total, "decode_share", sum.decode_seconds / (sum.wall_seconds * group->threads));
    return status;
}

/* Measures all variants for one rank, number of threads and precision. */
static enum slc_status measure_group(struct mttkrp_bench *bench,
                                     uint32_t rank,
                                     uint64_t threads,
                                     enum slc_value_type precision,
                                     struct slc_error *err)
{
    const struct arguments *args = bench->args;
    const struct bench_mttkrp_selection selection = {args->isa, args->conflict, args->kernel,
                                                     args->layouts};
    struct bench_mttkrp_group *group = &bench->group;

    group->rank = rank;
    group->threads = threads > 0 ? (unsigned)threads : slc_team_default_workers();
    group->precision = precision;
    SLC_TRY(bench_mttkrp_variants(&selection, &bench->session.store, group, err));
    bench->cells = slc_calloc(group->variant_count, sizeof *bench->cells);
    SLC_TRY(slc_check_memory(bench->cells != NULL, err, "for samples"));
    enum slc_status status = bench_mttkrp_measure(&bench->session, group, bench->cells, err);
    for (unsigned v = 0; v < group->variant_count && status == SLC_OK; v++) {
        status = record_variant(bench, v, err);
    }
    slc_free(bench->cells);
    bench->cells = NULL;
    return status;
}

static enum slc_status measure_all(struct mttkrp_bench *bench, struct slc_error *err)
{
    const struct arguments *args = bench->args;
    const bool f64 = strcmp(args->precision, "f32") != 0;
    const bool f32 = strcmp(args->precision, "f64") != 0;

    for (unsigned r = 0; r < args->ranks.count; r++) {
        for (unsigned t = 0; t < args->threads.count; t++) {
            const uint32_t rank = (uint32_t)args->ranks.number[r];
            const uint64_t threads = args->threads.number[t];

            if (f64) {
                SLC_TRY(measure_group(bench, rank, threads, SLC_F64, err));
            }
            if (f32) {
                SLC_TRY(measure_group(bench, rank, threads, SLC_F32, err));
            }
        }
    }
    return SLC_OK;
}

/* Opens the store, measures all combinations and fills the record. */
static enum slc_status measure(void *state, const char *path, json_t *record, struct slc_error *err)
{
    struct mttkrp_bench *bench = state;
    const struct arguments *args = bench->args;
    struct bench_mttkrp_group *group = &bench->group;
    const struct slc_manifest *manifest = &bench->session.store.manifest;

    SLC_TRY(bench_open_store(&bench->session, path, args->memory, args->mode, err));
    bench_set_tensor(record, &bench->session.store);
    slc_json_set(record, "rows", bench->rows = json_array());
    slc_json_set(record, "totals", bench->totals = json_array());
    group->memory_bytes = args->memory;
    group->warm_up = (unsigned)args->bench.warm_up;
    group->repeats = (unsigned)args->bench.repeats;
    group->check = args->check;
    bench->ceilings.repeats = group->repeats;
    bench->ceilings.memory_set_bytes = args->memory_set;
    group->mode_begin = args->mode > 0 ? (unsigned)args->mode - 1 : 0;
    group->mode_end = args->mode > 0 ? (unsigned)args->mode : manifest->order;
    SLC_TRY(measure_all(bench, err));
    if (json_array_size(bench->totals) == 1) {
        /* If there is only one combination, scripts find its sum at the top level of the record. */
        (void)json_object_set(record, "all_modes_ms",
                              json_object_get(json_array_get(bench->totals, 0), "all_modes_ms"));
    }
    return SLC_OK;
}

static void close_all(void *state)
{
    struct mttkrp_bench *bench = state;

    session_close(&bench->session);
}

static int run(const struct command *command, int argc, char **argv)
{
    struct arguments args = {.mode = 0};
    struct mttkrp_bench bench = {.args = &args, .session = {.stream = NULL}};

    return bench_run(
        command, argc, argv,
        &(struct bench_steps){&args, &args.bench, &bench, NULL, measure, tables, NULL, close_all});
}

const struct command bench_mttkrp = {
    .name = "bench mttkrp",
    .summary = "MTTKRP of a store in memory: every mode, rank, precision, kernel",
    .example = "sluice bench mttkrp flights-4d.slc --rank 16,32 --threads 1,2",
    .operands = "X.slc",
    .operands_min = 1,
    .operands_max = 1,
    .options = options,
    .notes =
        "Model bytes per nonzero (as in GenTen): N R + 3 elements, and N indices of 8 bytes each.\n"
        "The rate of these bytes is compared with a ceiling: the rate of gathering rows of the\n"
        "size of a factor row from memory of the size of all factors.",
    .run = run,
};
