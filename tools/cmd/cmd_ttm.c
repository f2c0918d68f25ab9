/* sluice ttm: multiplies a tensor with a matrix. The result has two files: the coordinates of the
 * fibers, and a dense row per fiber. */
#include "base/error/clock.h"
#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "engine/session/product_session.h"
#include "report/json_parts.h"
#include "storage/manifest/path_guard.h"
#include "storage/model/npy.h"
#include "tools/forecast/estimate.h"
#include "tools/forecast/forecast.h"
#include "tools/forecast/forecast_ahead.h"
#include "tools/options/fields.h"
#include "tools/progress/console.h"
#include "tools/progress/format.h"
#include "tools/progress/json_out.h"
#include "tools/progress/progress.h"
#include "tools/progress/signals.h"
#include "tools/report/fiber_order.h"
#include "tools/report/product_gpu.h"
#include "tools/session/commands.h"
#include "tools/session/common_options.h"
#include "tools/session/part_option.h"
#include "tools/session/session.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

struct ttm_arguments {
    struct session_options session; /* only the fields with an option row below are used */
    uint64_t mode;
    const char *matrix;
    const char *kernel;
    const char *temp_dir;
    const char *part;
    const char *progress;
    const char *log_json;
    bool dry_run;
    bool json;
    bool quiet;
};

/* State of a product. */
struct ttm_product {
    const struct ttm_arguments *args;
    const char *folder;
    unsigned mode;
    uint32_t cols;
    struct slc_store store;
    struct slc_ttm_session run;
    struct forecast_ahead ahead;
    double sort_seconds, multiply_seconds, total_seconds;
};

/* Returns the number of multiplications and additions. */
static double operations(const struct ttm_product *product)
{
    return 2.0 * (double)product->store.manifest.nnz * product->cols;
}

/* Returns the number of fibers of the result: exact if the layout records it, otherwise an upper
 * bound (the minimum of the number of nonzeros and the number of cells of the other modes). */
static uint64_t ttm_fibers_most(const struct ttm_product *product)
{
    const struct slc_manifest *manifest = &product->store.manifest;
    uint64_t cells = 1;

    if (product->run.order.reader != NULL &&
        slc_reader_info(product->run.order.reader)->layout == SLC_LAYOUT_FIBER) {
        return slc_reader_info(product->run.order.reader)->fiber_count;
    }
    for (unsigned n = 0; n < manifest->order; n++) {
        if (n != product->mode && !slc_mul_u64(cells, manifest->dims[n], &cells)) {
            return manifest->nnz;
        }
    }
    return slc_min_u64(cells, manifest->nnz);
}

/* Returns the size in bytes of the two result files if they have `fibers` fibers. */
static double ttm_result_bytes(const struct ttm_product *product, uint64_t fibers)
{
    const double coords = (product->store.manifest.order - 1.0) * sizeof(int64_t);
    const double row = (double)product->cols * slc_value_bytes(product->run.plan.request.precision);

    return (double)fibers * (coords + row);
}

static const char *layout_text(const struct ttm_product *product)
{
    if (product->run.order.path != NULL || product->run.order.reader == NULL) {
        return "temporary";
    }
    return slc_layout_name(slc_reader_info(product->run.order.reader)->layout);
}

/* Describes the device for the report. If `done`, includes the work that the device did. */
static struct product_gpu describe_gpu(const struct ttm_product *product, bool done)
{
    return (struct product_gpu){.choice = &product->run.choice,
                                .refused = &product->run.refused,
                                .plan = &product->run.plan.gpu,
                                .threads = product->run.options.division.outputs,
                                .report = done ? &product->run.report.products : NULL};
}

static void set_device_json(const struct ttm_product *product, bool done, json_t *record)
{
    const struct product_gpu gpu = describe_gpu(product, done);
    struct fault_text why;

    slc_json_set(record, "device", product_gpu_json(&gpu));
    if (product->run.refused.status != SLC_OK) {
        slc_json_set_text(record, "no_device", fault_text(&why, &product->run.refused));
    }
}

/* Returns the name of the CPU kernel, or "device" if the device multiplied all tiles. */
static const char *kernel_name(const struct ttm_product *product)
{
    return product->run.options.division.outputs > 0
               ? slc_ttm_form_name(product->run.options.job.form)
               : "device";
}

static enum slc_status ttm_print_json(const struct ttm_product *product, struct slc_error *err)
{
    const struct slc_ttm_report *report = &product->run.report;
    json_t *record = json_pack(
        "{s:s, s:i, s:I, s:I, s:I, s:s, s:s, s:s, s:s, s:i, s:I, s:I, s:I, s:I}", "schema",
        "sluice-ttm-1", "mode", (int)product->mode + 1, "nnz",
        (json_int_t)product->store.manifest.nnz, "fibers", (json_int_t)report->fibers, "columns",
        (json_int_t)product->cols, "layout", layout_text(product), "kernel", kernel_name(product),
        "precision", product->args->session.precision, "sums", "f64", "threads",
        (int)product->run.plan.threads, "bytes_read", (json_int_t)product->run.stats.bytes_read,
        "bytes_written", (json_int_t)report->output.bytes, "memory_peak_bytes",
        (json_int_t)slc_memory_peak(), "memory_budget_bytes",
        (json_int_t)product->run.plan.budget_bytes);
    json_t *seconds =
        json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "total", product->total_seconds,
                  "sort", product->sort_seconds, "multiply", product->multiply_seconds, "pass",
                  product->run.stats.pass_seconds, "write", report->output.write_seconds,
                  "wait_read", product->run.stats.wait_seconds / product->run.plan.threads,
                  "wait_turn", report->turn_seconds / product->run.plan.threads, "wait_write",
                  report->output.wait_seconds / product->run.plan.threads);

    slc_json_set(record, "seconds", seconds);
    set_device_json(product, true, record);
    slc_json_set_real(record, "gflops", operations(product) / product->multiply_seconds * 1e-9);
    return json_out_print(record, err);
}

/* Prints the part, with the bytes that are read, if a part is computed. */
static void print_part(const struct ttm_product *product, bool done)
{
    const struct slc_part *part = product->run.options.part;
    char text[PART_TEXT_BYTES];
    struct format_text a;

    if (part != NULL) {
        printf("  %-12s %s to read", "part",
               part_text(text, part->choice, part->block_count,
                         slc_reader_info(product->run.order.reader)->block_count, part->bytes));
        if (done) {
            printf(", %s read", format_data(&a, (double)product->run.stats.bytes_read));
        }
        printf("\n");
    }
}

/* Prints the report as text. */
static void ttm_print(const struct ttm_product *product)
{
    const struct product_gpu gpu = describe_gpu(product, true);
    const struct slc_ttm_report *report = &product->run.report;
    const double threads = product->run.plan.threads;
    struct format_text a, b;

    printf("Wrote %s/%s and %s\n", product->folder, SLC_PAIR_COORDS, SLC_PAIR_ROWS);
    printf("  %-12s %s of mode %u, %" PRIu32 " columns: %s\n", "fibers",
           format_count(&a, report->fibers), product->mode + 1, product->cols,
           format_data(&b, (double)report->output.bytes));
    printf("  %-12s %s, read at %s/s\n", "layout", layout_text(product),
           format_data(&a, slc_ratio((double)product->run.stats.bytes_read,
                                     product->run.stats.pass_seconds)));
    if (product->run.order.path != NULL) {
        printf("  %-12s %.2fs\n", "sort", product->sort_seconds);
    }
    print_part(product, true);
    product_gpu_print(&gpu, stdout);
    printf("  %-12s %.2fs, %.2f GFLOP/s (%s)\n", "multiply", product->multiply_seconds,
           operations(product) / product->multiply_seconds * 1e-9, kernel_name(product));
    printf("  %-12s %s/s while writing%s\n", "write",
           format_data(&a, slc_ratio((double)report->output.bytes, report->output.write_seconds)),
           report->output.direct ? ", direct (bypassing the page cache)" : "");
    printf("  %-12s per thread: for blocks %.2fs, for earlier tiles %.2fs, for writes %.2fs\n",
           "waits", product->run.stats.wait_seconds / threads, report->turn_seconds / threads,
           report->output.wait_seconds / threads);
    printf("  %-12s peak %s, budget %s\n", "memory", format_memory(&a, slc_memory_peak()),
           format_memory(&b, product->run.plan.budget_bytes));
}

static enum slc_status ttm_print_dry_run_json(const struct ttm_product *product,
                                              struct slc_error *err)
{
    const uint64_t fibers = ttm_fibers_most(product);
    json_t *record = json_pack(
        "{s:s, s:b, s:i, s:I, s:I, s:I, s:s, s:i, s:f, s:I, s:I, s:I, s:I}", "schema",
        "sluice-ttm-1", "dry_run", 1, "mode", (int)product->mode + 1, "nnz",
        (json_int_t)product->store.manifest.nnz, "fibers_most", (json_int_t)fibers, "columns",
        (json_int_t)product->cols, "layout", layout_text(product), "threads",
        (int)product->run.plan.threads, "result_bytes_most", ttm_result_bytes(product, fibers),
        "bytes_to_read", (json_int_t)product->run.plan.iteration_bytes, "memory_least_bytes",
        (json_int_t)product->run.plan.minimum_bytes, "memory_bytes",
        (json_int_t)product->run.plan.total_bytes, "memory_budget_bytes",
        (json_int_t)product->run.plan.budget_bytes);

    set_device_json(product, false, record);
    return json_out_print(record, err);
}

/* Prints the report of a dry run as text. */
static void ttm_print_dry_run(const struct ttm_product *product)
{
    const struct slc_store_layout *blco = &product->store.manifest.layouts[0];
    const struct product_gpu gpu = describe_gpu(product, false);
    const uint64_t fibers = ttm_fibers_most(product);
    struct format_text a, b, c;

    printf("Would write %s/%s and %s\n", product->folder, SLC_PAIR_COORDS, SLC_PAIR_ROWS);
    printf("  %-12s up to %s of mode %u, %" PRIu32 " columns: %s\n", "fibers",
           format_count(&a, fibers), product->mode + 1, product->cols,
           format_data(&b, ttm_result_bytes(product, fibers)));
    if (product->run.order.reader != NULL) {
        printf("  %-12s %s, %s to read\n", "layout", layout_text(product),
               format_data(&a, (double)product->run.plan.iteration_bytes));
    } else {
        printf("  %-12s temporary: the nonzeros (%s as stored) would be sorted first, next to the "
               "result\n",
               "layout", format_data(&a, (double)blco->file_bytes));
    }
    print_part(product, false);
    product_gpu_print(&gpu, stdout);
    printf("  %-12s %s with %u threads, minimum %s, budget %s\n", "memory",
           format_memory(&a, product->run.plan.total_bytes), product->run.plan.threads,
           format_memory(&b, product->run.plan.minimum_bytes),
           format_memory(&c, product->run.plan.budget_bytes));
}

static const char *const kernel_choices[] = {"auto", "fiber", "nonzero", NULL};

static const struct option options[] = {
    {"mode", OPTION_U64, offsetof(struct ttm_arguments, mode), .required = true, .value = "K",
     .minimum = 1, .maximum = SLC_MAX_ORDER, .help = "mode to multiply, counted from 1"},
    {"matrix", OPTION_STRING, offsetof(struct ttm_arguments, matrix), .required = true,
     .value = "U.npy", .help = "matrix with one row per index of the mode"},
    OPTION_ROW_PART(ttm_arguments, part),
    {"kernel", OPTION_CHOICE, offsetof(struct ttm_arguments, kernel), .value = "FORM",
     .fallback = "auto", .choices = kernel_choices,
     .help = "kernel: fiber (sums a fiber's row in registers), nonzero (adds each nonzero to its "
             "row in memory) or auto (fiber)"},
    {"precision", OPTION_CHOICE, offsetof(struct ttm_arguments, session.precision), .value = "TYPE",
     .fallback = "f64", .choices = session_precision_choices,
     .help =
         "type of the matrix, the products and the rows of the result: f64 or f32; sums are f64"},
    OPTION_ROW_MEMORY(ttm_arguments, session.memory),
    OPTION_ROW_THREADS(ttm_arguments, session.threads),
    SESSION_OPTION_ROW_PIN(ttm_arguments, session.pin),
    SESSION_OPTION_ROW_IO(ttm_arguments, session.io),
    SESSION_OPTION_ROWS_DEVICE(ttm_arguments),
    SESSION_OPTION_ROW_SHARE(ttm_arguments),
    {"temp-dir", OPTION_STRING, offsetof(struct ttm_arguments, temp_dir), .value = "DIR",
     .help =
         "folder of the temporary file of the sort, for nonzeros that exceed the budget; if not "
         "given, next to the output"},
    {"dry-run", OPTION_FLAG, offsetof(struct ttm_arguments, dry_run),
     .help = "print the bytes to read, sort and write, the memory and the time, and write nothing"},
    {"json", OPTION_FLAG, offsetof(struct ttm_arguments, json),
     .help = "print the report as one JSON object"},
    OPTION_ROW_PROGRESS(ttm_arguments, progress),
    OPTION_ROW_LOG_JSON(ttm_arguments, log_json),
    OPTION_ROW_QUIET(ttm_arguments, quiet),
    {.name = NULL}};

/* Reads the number of columns of the matrix, before anything is planned or sorted. */
static enum slc_status find_columns(struct ttm_product *product, struct slc_error *err)
{
    const struct slc_manifest *manifest = &product->store.manifest;
    uint64_t rows;

    if (product->mode >= manifest->order) {
        return slc_fail(err, SLC_ERR_USAGE, "--mode %u: the tensor has %u modes", product->mode + 1,
                        manifest->order);
    }
    SLC_TRY(slc_npy_shape(slc_files_system(), product->args->matrix, manifest->dims[product->mode],
                          &rows, &product->cols, err));
    if (product->cols > SLC_MAX_RANK) {
        return slc_fail_file(err, SLC_ERR_INPUT, product->args->matrix,
                             "%" PRIu32 " columns; the limit is %d", product->cols, SLC_MAX_RANK);
    }
    return SLC_OK;
}

static enum slc_status open_order(struct ttm_product *product, struct slc_error *err)
{
    const uint64_t start_ns = slc_clock_ns();
    const struct ttm_arguments *args = product->args;
    const struct fiber_order_options request = {.mode = product->mode,
                                                .memory_bytes = args->session.memory,
                                                .threads = (unsigned)args->session.threads,
                                                .output = product->folder,
                                                .temp_dir = args->temp_dir};
    const enum slc_status status =
        fiber_order_open(&product->run.order, &product->store, &request, err);

    product->sort_seconds = slc_seconds_since(start_ns);
    return status;
}

static void show_progress(void *mode, uint64_t done, uint64_t blocks, uint64_t bytes_read)
{
    (void)bytes_read;
    progress_blocks(0, *(const unsigned *)mode, done, blocks);
}

static enum slc_status set_request(struct ttm_product *product, struct slc_error *err)
{
    const struct session_options *session = &product->args->session;
    struct slc_ttm_options *ttm = &product->run.options;
    struct slc_plan_request *request = &product->run.request;

    *request =
        (struct slc_plan_request){.mode = product->mode,
                                  .rank = product->cols,
                                  .precision = session->precision[1] == '3' ? SLC_F32 : SLC_F64,
                                  .threads = (unsigned)session->threads,
                                  .memory_bytes = session->memory,
                                  .streams = (unsigned)session->streams};
    if (!slc_io_parse(session->io, &request->io) || !slc_pin_parse(session->pin, &request->pin)) {
        return slc_fail(err, SLC_ERR_USAGE, "--io %s or --pin %s is not supported by this library",
                        session->io, session->pin);
    }
    product->run.store = &product->store;
    ttm->job.form = product->args->kernel == kernel_choices[2] ? SLC_TTM_NONZEROS : SLC_TTM_FIBERS;
    ttm->folder = product->folder;
    ttm->stop = signals_stop();
    ttm->progress = show_progress;
    ttm->progress_context = &product->mode;
    return SLC_OK;
}

/* Reads the matrix, streams the layout and publishes the result. */
static enum slc_status multiply(struct ttm_product *product, struct slc_error *err)
{
    const struct slc_store *store = slc_ttm_session_numbering(&product->run);
    const struct progress_shape shape = {.order = product->store.manifest.order,
                                         .passes = 1,
                                         .nnz = product->store.manifest.nnz,
                                         .bytes = product->run.plan.iteration_bytes,
                                         .operation = "TTM"};

    SLC_TRY(slc_npy_read(slc_files_system(), product->args->matrix,
                         product->run.plan.request.precision, store->manifest.dims[product->mode],
                         product->cols, &product->run.matrix, err));
    SLC_TRY(slc_ttm_session_relabel(&product->run, err));
    uint64_t start_ns = slc_clock_ns();
    progress_shape(&shape);
    enum slc_status status = slc_ttm_session_multiply(&product->run, err);
    product->multiply_seconds = slc_seconds_since(start_ns);
    console_clear_live();
    return status;
}

/* Describes the product for its time forecast. The costs of sorting a nonzero and of multiplying it
 * by a column are relative to the cost of decoding it. */
static struct forecast_product describe_product(const struct ttm_product *product)
{
    return (struct forecast_product){
        .reader = product->store.reader,
        .output = product->folder,
        .threads = product->run.plan.threads,
        .written_bytes = (uint64_t)ttm_result_bytes(product, ttm_fibers_most(product)),
        .decodings = (product->run.order.reader != NULL ? 5 : 200) + 0.5 * product->cols};
}

static enum slc_status print_time_forecast(const struct ttm_product *product, struct slc_error *err)
{
    const struct forecast_product expected = describe_product(product);

    return product->run.choice.device != NULL || product->run.options.part != NULL
               ? SLC_OK
               : forecast_product(&expected, err);
}

/* Returns the memory for rows of the result: buffers for rows that are not written yet, and the
 * rows of one tile per thread. */
static uint64_t rows_bytes(const struct ttm_product *product, uint64_t result_bytes)
{
    const double tile = SLC_TILE_NNZ / (double)slc_max_u64(product->store.manifest.nnz, 1);

    return (uint64_t)((double)result_bytes * (1 + product->run.plan.threads * fmin(tile, 1)));
}

/* Makes the forecast of a run, after the plan was made and the layout to multiply was opened. */
static enum slc_status
estimate_ahead(const void *context, struct forecast *forecast, struct slc_error *err)
{
    const struct ttm_product *product = context;
    const struct slc_plan *plan = &product->run.plan;
    struct forecast_product expected = describe_product(product);

    expected.reader = product->run.order.reader;
    expected.brief = true;
    enum slc_status status = forecast_product_estimate(&expected, forecast, err);
    forecast->memory_bytes =
        estimate_memory(plan) - plan->output_bytes +
        slc_min_u64(plan->output_bytes, rows_bytes(product, expected.written_bytes));
    forecast->read_bytes = plan->iteration_bytes;
    return status;
}

/* Forecasts the run, unless a device multiplies, a part is computed, or the number of fibers is
 * unknown. */
static void forecast_run(struct ttm_product *product)
{
    if (product->run.order.path == NULL && product->run.choice.device == NULL &&
        product->run.options.part == NULL &&
        slc_reader_info(product->run.order.reader)->layout == SLC_LAYOUT_FIBER) {
        forecast_ahead(&product->ahead, product->args->quiet || product->args->json,
                       product->store.path, estimate_ahead, product);
    }
}

static enum slc_status print_result(const struct ttm_product *product, struct slc_error *err)
{
    const struct ttm_arguments *args = product->args;

    if (args->json && args->dry_run) {
        return ttm_print_dry_run_json(product, err);
    }
    if (args->dry_run) {
        ttm_print_dry_run(product);
        return print_time_forecast(product, err);
    }
    if (!args->quiet && !args->json) {
        ttm_print(product);
    }
    forecast_compare_bytes(&product->ahead, args->quiet || args->json,
                           product->run.stats.bytes_read, product->run.report.output.bytes);
    return args->json ? ttm_print_json(product, err) : SLC_OK;
}

/* Plans over the layout with whole fibers, if the store has such a layout. */
static enum slc_status plan_only(struct ttm_product *product, struct slc_error *err)
{
    const uint64_t budget =
        product->args->session.memory != 0 ? product->args->session.memory : UINT64_MAX;

    product->run.order.store = &product->store;
    if (product->run.order.reader == NULL) {
        SLC_TRY(slc_store_open_fibers(&product->store, product->mode, budget,
                                      &product->run.order.reader, err));
    }
    return product->run.order.reader != NULL
               ? slc_ttm_session_plan(&product->run, product->run.order.reader, err)
               : slc_fiber_order_check(&product->store, product->mode, err);
}

static enum slc_status
compute(struct ttm_product *product, const char *store, struct slc_error *err)
{
    struct slc_part_choice part;

    SLC_TRY(signals_start(NULL, NULL, err));
    SLC_TRY(slc_check_outside_stores(slc_files_system(), product->folder, err));
    SLC_TRY(slc_store_open_within(slc_files_system(), store,
                                  product->args->session.memory != 0 ? product->args->session.memory
                                                                     : UINT64_MAX,
                                  &product->store, err));
    SLC_TRY(find_columns(product, err));
    SLC_TRY(set_request(product, err));
    enum slc_status status = product_gpu_choose(&product->args->session, &product->run.choice, err);
    product->run.refused = product->run.choice.refused;
    SLC_TRY(status);
    /* First plan over the existing layout, so that nothing is sorted if the product does not fit
     * into the budget. */
    SLC_TRY(slc_ttm_session_plan(&product->run, product->store.reader, err));
    SLC_TRY(part_option_parse(product->args->part, &part, err));
    if (part.count > 0) {
        SLC_TRY(slc_ttm_session_open_part(&product->run, part, err));
    }
    if (product->args->dry_run) {
        return plan_only(product, err);
    }
    SLC_TRY(part.count > 0 ? SLC_OK : open_order(product, err));
    SLC_TRY(slc_ttm_session_plan(&product->run, product->run.order.reader, err));
    forecast_run(product);
    slc_placement_enter(&product->run.plan.placement);
    status = multiply(product, err);
    slc_placement_leave();
    return status;
}

static void release(struct ttm_product *product)
{
    slc_ttm_session_close(&product->run);
    fiber_order_close(&product->run.order);
    slc_store_close(&product->store);
}

static int run(const struct command *command, int argc, char **argv)
{
    struct ttm_arguments args = {.mode = 0};
    struct ttm_product product = {.args = &args};
    struct slc_error err = SLC_ERROR_INIT;
    const uint64_t start_ns = slc_clock_ns();
    struct operands operands;
    int code = 0;

    if (!command_begin(command, argc, argv, &args, &operands, &code)) {
        return code;
    }
    console_start(args.quiet ? CONSOLE_QUIET : CONSOLE_NORMAL);
    progress_start(args.progress, args.quiet);
    product.mode = (unsigned)args.mode - 1;
    product.folder = operands.text[1];
    enum slc_status status = compute(&product, operands.text[0], &err);
    product.total_seconds = slc_seconds_since(start_ns);
    SLC_THEN(status, print_result(&product, &err));
    if (status != SLC_OK) {
        console_clear_live();
        code = console_error(&err);
        code = status == SLC_ERR_INTERRUPTED ? signals_exit_code() : code;
    }
    release(&product);
    return code;
}

const struct command command_ttm = {
    .name = "ttm",
    .summary = "multiply a store with a matrix (tensor times matrix)",
    .example = "sluice ttm flights-4d.slc --mode 3 --matrix U.npy flights-u3",
    .operands = "X.slc OUT",
    .operands_min = 2,
    .operands_max = 2,
    .options = options,
    .notes = "The folder OUT contains coords.npy, the indices (from 0) of every nonempty fiber, "
             "and rows.npy, a\ndense row per fiber, which may be larger than memory. Files of an "
             "earlier result are replaced\nwhen the new ones are complete.",
    .run = run,
};
