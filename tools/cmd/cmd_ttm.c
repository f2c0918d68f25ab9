/* sluice ttm: a tensor times a matrix, as coordinates of fibers and a dense row for each. */
#include "base/error/clock.h"
#include "base/memory/checked.h"
#include "engine/planning/planning.h"
#include "storage/manifest/path_guard.h"
#include "storage/model/npy.h"
#include "tools/forecast/estimate.h"
#include "tools/forecast/forecast_ahead.h"
#include "tools/forecast/forecast_product.h"
#include "tools/progress/console.h"
#include "tools/progress/progress.h"
#include "tools/progress/signals.h"
#include "tools/report/ttm_report.h"
#include "tools/session/commands.h"
#include "tools/session/common_options.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

static const char *const kernel_choices[] = {"auto", "fiber", "nonzero", NULL};

static const struct option options[] = {
    {"mode", OPTION_U64, offsetof(struct ttm_arguments, mode), .required = true, .value = "K",
     .minimum = 1, .maximum = SLC_MAX_ORDER, .help = "mode to multiply, counted from 1"},
    {"matrix", OPTION_STRING, offsetof(struct ttm_arguments, matrix), .required = true,
     .value = "U.npy", .help = "matrix with one row per index of the mode"},
    {"kernel", OPTION_CHOICE, offsetof(struct ttm_arguments, kernel), .value = "FORM",
     .fallback = "auto", .choices = kernel_choices,
     .help = "what is added up in registers: a fiber's row (fiber, which auto takes), or nothing, "
             "each nonzero being added to its row in memory (nonzero)"},
    {"precision", OPTION_CHOICE, offsetof(struct ttm_arguments, session.precision), .value = "TYPE",
     .fallback = "f64", .choices = session_precision_choices,
     .help = "of the matrix, of products and of the result's rows: f64 or f32; sums are f64"},
    OPTION_ROW_MEMORY(ttm_arguments, session.memory),
    OPTION_ROW_THREADS(ttm_arguments, session.threads),
    SESSION_OPTION_ROW_PIN(ttm_arguments, session.pin),
    SESSION_OPTION_ROW_IO(ttm_arguments, session.io),
    SESSION_OPTION_ROWS_DEVICE(ttm_arguments),
    SESSION_OPTION_ROW_SHARE(ttm_arguments),
    {"temp-dir", OPTION_STRING, offsetof(struct ttm_arguments, temp_dir), .value = "DIR",
     .help = "folder for what does not fit in memory while a store is sorted for the mode; beside "
             "the output if not given"},
    {"dry-run", OPTION_FLAG, offsetof(struct ttm_arguments, dry_run),
     .help = "tell what would be read, sorted and written, and the memory; write nothing"},
    {"json", OPTION_FLAG, offsetof(struct ttm_arguments, json),
     .help = "the report as one JSON object"},
    OPTION_ROW_PROGRESS(ttm_arguments, progress),
    OPTION_ROW_LOG_JSON(ttm_arguments, log_json),
    OPTION_ROW_QUIET(ttm_arguments, quiet),
    {.name = NULL}};

/* The store whose indices the layout has. */
static const struct slc_store *numbering(const struct ttm_product *product)
{
    return product->order.path != NULL ? &product->order.made : &product->store;
}

/* The matrix's columns, before anything is planned or sorted. */
static enum slc_status find_columns(struct ttm_product *product, struct slc_error *err)
{
    const struct slc_manifest *manifest = &product->store.manifest;
    uint64_t rows;
    enum slc_status status;

    if (product->mode >= manifest->order) {
        return slc_fail(err, SLC_ERR_USAGE, "--mode %u: the tensor has %u modes", product->mode + 1,
                        manifest->order);
    }
    status = slc_npy_shape(slc_files_system(), product->args->matrix, manifest->dims[product->mode],
                           &rows, &product->cols, err);
    if (status == SLC_OK && product->cols > SLC_MAX_RANK) {
        status = slc_fail(err, SLC_ERR_INPUT, "%" PRIu32 " columns; at most %d are possible",
                          product->cols, SLC_MAX_RANK);
        slc_error_locate_file(err, product->args->matrix);
    }
    return status;
}

static enum slc_status open_order(struct ttm_product *product, struct slc_error *err)
{
    const uint64_t start_ns = slc_clock_ns();
    const struct ttm_arguments *args = product->args;
    const struct fiber_order_options wanted = {.mode = product->mode,
                                               .memory_bytes = args->session.memory,
                                               .threads = (unsigned)args->session.threads,
                                               .output = product->folder,
                                               .temp_dir = args->temp_dir};
    const enum slc_status status = fiber_order_open(&product->order, &product->store, &wanted, err);

    product->sort_seconds = slc_seconds_since(start_ns);
    return status;
}

/* Goes on without the device, because of `refused`. */
static void do_without(struct ttm_product *product, const struct slc_error *refused)
{
    slc_products_drop(&product->choice);
    product->refused = *refused;
}

static enum slc_status
make_plan(struct ttm_product *product, struct slc_reader *reader, struct slc_error *err)
{
    const struct session_options *session = &product->args->session;
    const struct slc_layouts layouts = slc_layouts_one(reader);
    struct slc_plan_request request = {.mode = product->mode,
                                       .rank = product->cols,
                                       .precision =
                                           session->precision[1] == '3' ? SLC_F32 : SLC_F64,
                                       .threads = (unsigned)session->threads,
                                       .memory_bytes = session->memory,
                                       .gpu = product->choice.device,
                                       .hybrid = product->choice.hybrid,
                                       .streams = (unsigned)session->streams};
    struct slc_error refused = SLC_ERROR_INIT;
    enum slc_status status;

    if (!slc_io_parse(session->io, &request.io) || !slc_pin_parse(session->pin, &request.pin)) {
        return slc_fail(err, SLC_ERR_USAGE, "--io %s or --pin %s is not known to this library",
                        session->io, session->pin);
    }
    if (product->choice.device == NULL || !product->choice.optional) {
        return slc_ttm_plan(&layouts, &request, &product->plan, &product->options.division, err);
    }
    status = slc_ttm_plan(&layouts, &request, &product->plan, &product->options.division, &refused);
    if (status != SLC_OK) {
        do_without(product, &refused);
        request.gpu = NULL;
        status = slc_ttm_plan(&layouts, &request, &product->plan, &product->options.division, err);
    }
    return status;
}

/* The matrix in the order of the layout's indices, and names for those of the other modes. */
static enum slc_status read_operands(struct ttm_product *product, struct slc_error *err)
{
    const struct slc_store *store = numbering(product);
    const struct slc_manifest *manifest = &store->manifest;

    SLC_TRY(slc_npy_read(slc_files_system(), product->args->matrix, product->plan.request.precision,
                         manifest->dims[product->mode], product->cols, &product->matrix, err));
    SLC_TRY(slc_relabel_rows(store, product->mode, SLC_ROWS_OF_STORE, &product->matrix, err));
    return slc_relabel_names(store, product->mode, product->labels, product->options.index, err);
}

static void show_progress(void *mode, uint64_t done, uint64_t blocks, uint64_t bytes_read)
{
    (void)bytes_read;
    progress_blocks(0, *(const unsigned *)mode, done, blocks);
}

static void set_options(struct ttm_product *product)
{
    const struct slc_layout_info *info = slc_reader_info(product->order.reader);
    struct slc_ttm_options *ttm = &product->options;

    ttm->job = (struct slc_ttm_job){
        .order = info->order,
        .mode = product->mode,
        .form = product->args->kernel == kernel_choices[2] ? SLC_TTM_ELEMENTS : SLC_TTM_FIBERS,
        .fiber_tiles = info->keys.run.bits > 0 && info->keys.run.mode == product->mode,
        .matrix = &product->matrix};
    ttm->workers = product->plan.threads;
    ttm->device = product->choice.device;
    ttm->plan = &product->plan;
    ttm->folder = product->folder;
    ttm->stop = signals_stop();
    ttm->progress = show_progress;
    ttm->progress_context = &product->mode;
}

/* Streams the layout as planned; the result waits beside its place. */
static enum slc_status
stream(struct ttm_product *product, struct slc_npy_pair **pair, struct slc_error *err)
{
    const struct slc_layouts layouts = slc_layouts_one(product->order.reader);
    enum slc_status status;

    slc_stream_close(product->stream);
    product->stream = NULL;
    status = slc_stream_open(slc_files_system(), &layouts, &product->plan, &product->stream, err);
    if (status == SLC_OK) {
        status = slc_ttm_stream(product->stream, &product->options, pair, &product->report, err);
        slc_stream_stats(product->stream, &product->stats);
    }
    return status;
}

/* Streams the layout, without the device where that may be and has to, and publishes the result. */
static enum slc_status multiply(struct ttm_product *product, struct slc_error *err)
{
    const struct progress_shape shape = {.order = product->store.manifest.order,
                                         .passes = 1,
                                         .nnz = product->store.manifest.nnz,
                                         .bytes = product->plan.iteration_bytes,
                                         .operation = "TTM"};
    const uint64_t start_ns = slc_clock_ns();
    struct slc_npy_pair *pair = NULL;
    struct slc_error fault = SLC_ERROR_INIT;
    enum slc_status status;

    progress_shape(&shape);
    set_options(product);
    status = stream(product, &pair, &fault);
    if (status != SLC_OK && product->report.device_refused && product->choice.optional) {
        do_without(product, &fault);
        slc_error_clear(&fault);
        status = make_plan(product, product->order.reader, &fault);
        set_options(product);
        status = status == SLC_OK ? stream(product, &pair, &fault) : status;
    }
    if (status != SLC_OK) {
        *err = fault;
    } else {
        status = slc_npy_pair_publish(pair, err);
    }
    slc_npy_pair_destroy(pair);
    product->multiply_seconds = slc_seconds_since(start_ns);
    console_settle();
    return status;
}

/* In times of decoding a nonzero: sorting it; and multiplying it by so many columns. */
static struct forecast_product expected_of(const struct ttm_product *product)
{
    return (struct forecast_product){
        .reader = product->store.reader,
        .output = product->folder,
        .threads = product->plan.threads,
        .written_bytes = (uint64_t)ttm_result_bytes(product, ttm_fibers_most(product)),
        .decodings = (product->order.reader != NULL ? 5 : 200) + 0.5 * product->cols};
}

static enum slc_status expect_time(const struct ttm_product *product, struct slc_error *err)
{
    const struct forecast_product expected = expected_of(product);

    return product->choice.device != NULL ? SLC_OK : forecast_product(&expected, err);
}

/* What rows fill of memory: buffers until all are written, and with each thread those of a tile. */
static uint64_t rows_bytes(const struct ttm_product *product, uint64_t result_bytes)
{
    const double tile = SLC_TILE_NNZ / (double)slc_max_u64(product->store.manifest.nnz, 1);

    return (uint64_t)((double)result_bytes * (1 + product->plan.threads * fmin(tile, 1)));
}

/* Of a run that begins, and has its plan over the layout that it multiplies. */
static enum slc_status
judge_ahead(const void *context, struct forecast *forecast, struct slc_error *err)
{
    const struct ttm_product *product = context;
    const struct slc_plan *plan = &product->plan;
    struct forecast_product expected = expected_of(product);
    enum slc_status status;

    expected.reader = product->order.reader;
    expected.brief = true;
    status = forecast_product_judge(&expected, forecast, err);
    forecast->memory_bytes =
        estimate_memory(plan) - plan->output_bytes +
        slc_min_u64(plan->output_bytes, rows_bytes(product, expected.written_bytes));
    forecast->read_bytes = plan->iteration_bytes;
    return status;
}

/* Where a device multiplies, or it is not known how many fibers there are, nothing is. */
static void expect_run(struct ttm_product *product)
{
    if (product->order.path == NULL && product->choice.device == NULL &&
        slc_reader_info(product->order.reader)->layout == SLC_LAYOUT_FIBER) {
        forecast_ahead(&product->ahead, product->args->quiet || product->args->json,
                       product->store.path, judge_ahead, product);
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
        return expect_time(product, err);
    }
    if (!args->quiet && !args->json) {
        ttm_print(product);
    }
    forecast_compare_bytes(&product->ahead, args->quiet || args->json, product->stats.bytes_read,
                           product->report.output.bytes);
    return args->json ? ttm_print_json(product, err) : SLC_OK;
}

/* The plan over the layout with whole fibers, if the store has it. */
static enum slc_status plan_only(struct ttm_product *product, struct slc_error *err)
{
    const uint64_t room =
        product->args->session.memory != 0 ? product->args->session.memory : UINT64_MAX;

    product->order.store = &product->store;
    SLC_TRY(
        slc_store_open_fibers(&product->store, product->mode, room, &product->order.reader, err));
    return product->order.reader != NULL
               ? make_plan(product, product->order.reader, err)
               : slc_fiber_order_check(&product->store, product->mode, err);
}

static enum slc_status
compute(struct ttm_product *product, const char *store, struct slc_error *err)
{
    enum slc_status status = signals_start(NULL, NULL, err);

    if (status == SLC_OK) {
        status = slc_check_outside_stores(slc_files_system(), product->folder, err);
    }
    if (status == SLC_OK) {
        status = slc_store_open_within(
            slc_files_system(), store,
            product->args->session.memory != 0 ? product->args->session.memory : UINT64_MAX,
            &product->store, err);
    }
    if (status == SLC_OK) {
        status = find_columns(product, err);
    }
    if (status == SLC_OK) {
        status = product_gpu_choose(&product->args->session, &product->choice, err);
        product->refused = product->choice.refused;
    }
    if (status == SLC_OK) {
        /* Over the store's own layout, so that nothing is sorted for a product that does not fit.
         */
        status = make_plan(product, product->store.reader, err);
    }
    if (status == SLC_OK && product->args->dry_run) {
        return plan_only(product, err);
    }
    if (status == SLC_OK) {
        status = open_order(product, err);
    }
    if (status == SLC_OK) {
        status = make_plan(product, product->order.reader, err);
    }
    if (status != SLC_OK) {
        return status;
    }
    expect_run(product);
    slc_placement_enter(&product->plan.placement);
    status = read_operands(product, err);
    if (status == SLC_OK) {
        status = multiply(product, err);
    }
    slc_placement_leave();
    return status;
}

static void release(struct ttm_product *product)
{
    slc_stream_close(product->stream);
    slc_products_drop(&product->choice);
    slc_matrix_destroy(&product->matrix);
    for (unsigned n = 0; n < SLC_MAX_ORDER; n++) {
        slc_labels_destroy(&product->labels[n]);
    }
    fiber_order_close(&product->order);
    slc_store_close(&product->store);
}

static int run(const struct command *command, int argc, char **argv)
{
    struct ttm_arguments args = {.mode = 0};
    struct ttm_product product = {.args = &args};
    struct slc_error err = SLC_ERROR_INIT;
    const uint64_t start_ns = slc_clock_ns();
    struct operands operands;
    enum slc_status status;
    int code = 0;

    if (!command_begin(command, argc, argv, &args, &operands, &code)) {
        return code;
    }
    console_start(args.quiet ? CONSOLE_QUIET : CONSOLE_NORMAL);
    progress_start(args.progress, args.quiet);
    product.mode = (unsigned)args.mode - 1;
    product.folder = operands.text[1];
    status = compute(&product, operands.text[0], &err);
    product.total_seconds = slc_seconds_since(start_ns);
    if (status == SLC_OK) {
        status = print_result(&product, &err);
    }
    if (status != SLC_OK) {
        console_settle();
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
    .notes =
        "The folder OUT gets coords.npy, the indices (from 0) of every fiber that has nonzeros, "
        "and\n"
        "rows.npy, a dense row for each, which may be larger than memory. Files of an earlier "
        "result are\n"
        "replaced when the new ones are complete.",
    .run = run,
};
