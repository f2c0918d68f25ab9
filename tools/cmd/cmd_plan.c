/* sluice plan: shows the memory, I/O and time of an operation without running it. */
#include "base/thread/team.h"
#include "engine/planning/planning.h"
#include "engine/product/contract.h"
#include "engine/product/fiber_order.h"
#include "engine/product/operand.h"
#include "engine/product/ttm.h"
#include "engine/solve/cp_checkpoint.h"
#include "engine/stream/tile_stream.h"
#include "report/json_parts.h"
#include "report/json_plan.h"
#include "tools/forecast/probe.h"
#include "tools/progress/console.h"
#include "tools/progress/format.h"
#include "tools/progress/json_out.h"
#include "tools/report/devices_report.h"
#include "tools/report/report.h"
#include "tools/session/commands.h"
#include "tools/session/session.h"
#include "tools/session/solver_options.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

/* Plan of the products in one mode. */
struct plan_product {
    enum slc_layout_kind layout; /* layout to read */
    uint64_t layout_bytes;
    uint64_t fibers; /* number of nonempty fibers; 0 if the layout does not record it */
    bool ttv_sorts;  /* true if sums are not computed in the order of the result */
    bool ttm_sorts;  /* true if no layout has whole fibers, so a temporary store is built */
    /* true if no layout has whole fibers, and the mode is too large for a temporary store */
    bool ttm_needs_layout;
    uint64_t ttv_minimum_bytes; /* smallest sufficient budgets */
    uint64_t ttm_minimum_bytes;
    /* Minimum device memory if a device multiplies; 0 without a device. */
    uint64_t ttv_device_bytes, ttm_device_bytes;
};

/* Plans a product with a vector in one mode. If the budget is too small, this is not an error: the
 * plan records the minimum budget. */
static enum slc_status plan_ttv(const struct slc_store *store,
                                const struct session_options *options,
                                unsigned mode,
                                struct plan_product *product,
                                struct slc_error *err)
{
    struct slc_tile_stream tiles = {.io = SLC_IO_AUTO};
    const struct slc_contract_options contract = {
        .files = store->files,
        .store = store->path,
        .output = store->manifest.order > 1 ? store->path : NULL,
        .vector_count = 1,
        .vectors = {{.mode = mode}},
        .stream = &tiles,
        .codec = SLC_CODEC_PACKED,
        .block_bytes = SLC_DEFAULT_BLOCK_BYTES,
        .memory_bytes = options->memory,
        .threads = options->threads != 0 ? (unsigned)options->threads : slc_team_default_workers(),
        .dry_run = true};
    struct slc_error refused = SLC_ERROR_INIT;
    struct slc_contract_report report;
    const enum slc_status status = slc_contract(&contract, &report, &refused);

    if (status != SLC_OK && status != SLC_ERR_BUDGET) {
        *err = refused;
        return status;
    }
    product->layout = report.layout;
    product->layout_bytes = report.layout_bytes;
    product->fibers = report.layout_fibers;
    product->ttv_sorts = !report.ordered && report.order > 0;
    product->ttv_minimum_bytes = report.least_bytes;
    return SLC_OK;
}

/* Returns the minimum device memory of a product with a matrix that has rows for the indices
 * used[mode]. */
static uint64_t device_minimum(const struct slc_device *device,
                               const struct slc_reader *reader,
                               unsigned mode,
                               uint32_t columns,
                               const struct slc_used used[SLC_MAX_ORDER])
{
    const struct slc_products_shape shape = {
        .modes = UINT32_C(1) << mode, .used = used, .columns = columns, .precision = SLC_F64};
    struct slc_plan_gpu plan;
    uint64_t host_bytes;
    const enum slc_status status =
        slc_products_plan(device, reader, &shape, 0, &plan, &host_bytes, NULL);

    /* A device memory that is too small is not an error. */
    return status == SLC_OK || status == SLC_ERR_BUDGET ? plan.minimum_bytes : 0;
}

static enum slc_status plan_ttm(const struct slc_store *store,
                                const struct session_options *options,
                                unsigned mode,
                                uint32_t columns,
                                const struct slc_device *device,
                                struct plan_product *product,
                                struct slc_error *err)
{
    const struct slc_plan_request request = {.mode = mode,
                                             .rank = columns,
                                             .precision = SLC_F64,
                                             .threads = (unsigned)options->threads,
                                             .memory_bytes = options->memory};
    struct slc_error refused = SLC_ERROR_INIT;
    struct slc_reader *reader = NULL;
    struct slc_ttm_division share;
    struct slc_plan plan;

    SLC_TRY(slc_store_open_fibers(store, mode, options->memory, &reader, err));
    product->ttm_needs_layout =
        reader == NULL && slc_fiber_order_check(store, mode, NULL) != SLC_OK;
    product->ttm_sorts = reader == NULL && !product->ttm_needs_layout;
    struct slc_layouts layouts = slc_layouts_one(reader != NULL ? reader : store->reader);
    enum slc_status status = slc_ttm_plan(&layouts, &request, &plan, &share, &refused);
    if (device != NULL) {
        struct slc_used used[SLC_MAX_ORDER] = {{.end = 0}};
        struct slc_operand vector;

        slc_operand_init(&vector, layouts.reader[0], mode);
        used[mode] = vector.used;
        product->ttv_device_bytes = device_minimum(device, layouts.reader[0], mode, 1, used);
        product->ttm_device_bytes = device_minimum(device, layouts.reader[0], mode, columns, NULL);
    }
    slc_store_close_layout(store, reader != NULL ? reader : store->reader);
    if (status != SLC_OK && status != SLC_ERR_BUDGET) {
        *err = refused;
        return status;
    }
    product->ttm_minimum_bytes = plan.minimum_bytes;
    return SLC_OK;
}

/* Plans the products in every mode, for matrices with `columns` columns: products[n] is for mode n
 * of the store. `device` may be NULL. Errors: those of opening layouts; a budget that is too small
 * is not an error. */
static enum slc_status plan_products(const struct slc_store *store,
                                     const struct session_options *options,
                                     uint32_t columns,
                                     const struct slc_device *device,
                                     struct plan_product products[SLC_MAX_ORDER],
                                     struct slc_error *err)
{
    enum slc_status status = SLC_OK;

    for (unsigned n = 0; n < store->manifest.order && status == SLC_OK; n++) {
        products[n] = (struct plan_product){.fibers = 0};
        status = plan_ttv(store, options, n, &products[n], err);
        SLC_THEN(status, plan_ttm(store, options, n, columns, device, &products[n], err));
    }
    return status;
}

/* Prints which products of a mode must sort, and how to avoid sorting. */
static void
print_sorting(const struct slc_store *store, const struct plan_product *product, unsigned mode)
{
    if (product->ttv_sorts || product->ttm_sorts) {
        printf("  %-12s %s sorted first%s", "",
               product->ttv_sorts && product->ttm_sorts ? "sums (ttv) and nonzeros (ttm) are"
               : product->ttv_sorts                     ? "sums (ttv) are"
                                                        : "nonzeros (ttm) are",
               product->ttm_sorts ? "; sluice layout " : "");
        if (product->ttm_sorts) {
            printf("%s --fiber %u avoids the sort", store->path, mode + 1);
        }
        printf("\n");
    }
    if (product->ttm_needs_layout) {
        printf("  %-12s ttm needs sluice layout %s --fiber %u\n", "", store->path, mode + 1);
    }
}

static void plan_products_print(const struct slc_store *store,
                                uint32_t columns,
                                const struct plan_product *products)
{
    printf("Products with a vector (ttv) or a matrix of %" PRIu32 " column%s (ttm)\n", columns,
           plural(columns));
    for (unsigned n = 0; n < store->manifest.order; n++) {
        const struct plan_product *product = &products[n];
        struct format_text name, bytes, ttv, ttm;
        char mode[16];

        (void)snprintf(mode, sizeof mode, "mode %u", n + 1);
        printf("  %-12s %s, %s: needs %s (ttv), %s (ttm)\n", mode,
               session_layout_name(&name, product->layout, n),
               format_data(&bytes, (double)product->layout_bytes),
               format_memory(&ttv, product->ttv_minimum_bytes),
               format_memory(&ttm, product->ttm_minimum_bytes));
        if (product->ttm_device_bytes > 0) {
            printf("  %-12s minimum device memory %s (ttv), %s (ttm)\n", "",
                   format_memory(&ttv, product->ttv_device_bytes),
                   format_memory(&ttm, product->ttm_device_bytes));
        }
        print_sorting(store, product, n);
    }
}

static json_t *plan_products_json(unsigned order, const struct plan_product *products)
{
    json_t *array = json_array();

    for (unsigned n = 0; n < order; n++) {
        const struct plan_product *product = &products[n];
        struct format_text name;
        json_t *object = json_pack("{s:i, s:s, s:I, s:b, s:b, s:b, s:I, s:I}", "mode", (int)n + 1,
                                   "layout", session_layout_name(&name, product->layout, n),
                                   "layout_bytes", (json_int_t)product->layout_bytes, "ttv_sorts",
                                   (int)product->ttv_sorts, "ttm_sorts", (int)product->ttm_sorts,
                                   "ttm_needs_layout", (int)product->ttm_needs_layout,
                                   "ttv_minimum_bytes", (json_int_t)product->ttv_minimum_bytes,
                                   "ttm_minimum_bytes", (json_int_t)product->ttm_minimum_bytes);

        if (product->ttm_device_bytes > 0) {
            slc_json_set_count(object, "ttv_device_bytes", product->ttv_device_bytes);
            slc_json_set_count(object, "ttm_device_bytes", product->ttm_device_bytes);
        }
        if (product->fibers > 0) {
            slc_json_set_count(object, "fibers", product->fibers);
        }
        (void)json_array_append_new(array, object);
    }
    return array;
}

struct arguments {
    struct session_options session;
    struct solver_options solver;
    uint64_t rank;
    uint64_t mode;
    uint64_t iterations;
    double probe_seconds;
    bool no_probe;
    bool json;
};

static const struct option options[] = {
    {"rank", OPTION_U64, offsetof(struct arguments, rank), .letter = 'r', .required = true,
     .value = "R", .minimum = 1, .maximum = SLC_MAX_RANK, .help = "number of components"},
    {"mode", OPTION_U64, offsetof(struct arguments, mode), .value = "K", .fallback = "0",
     .maximum = SLC_MAX_ORDER, .help = "plan the MTTKRP of mode K; 0 plans a decomposition"},
    {"iters", OPTION_U64, offsetof(struct arguments, iterations), .alias = "maxiters",
     .letter = 'i', .value = "N", .fallback = "50", .maximum = 1000000000,
     .help = "number of iterations of the decomposition"},
    SOLVER_OPTION_ROWS(arguments, solver),
    PROBE_OPTION_ROWS(arguments, probe_seconds, no_probe),
    SESSION_OPTION_ROWS(arguments),
    SESSION_OPTION_ROW_LAYOUTS(arguments),
    SESSION_OPTION_ROW_COPIES(arguments),
    SESSION_OPTION_ROWS_DEVICE(arguments),
    SESSION_OPTION_ROW_DEVICE_NAME(arguments),
    SESSION_OPTION_ROWS_DEVICES(arguments),
    SESSION_OPTION_ROW_PASSES(arguments),
    SESSION_OPTION_ROW_MODE_ORDER(arguments),
    {"json", OPTION_FLAG, offsetof(struct arguments, json), .help = "print one JSON object"},
    {.name = NULL}};

/* Returns the size of the result files. */
static double result_bytes(const struct slc_manifest *manifest, const struct slc_plan *plan)
{
    double rows = 0;

    for (unsigned n = 0; n < manifest->order; n++) {
        if (plan->request.operation == SLC_OP_CPD || n == plan->request.mode) {
            rows += (double)manifest->dims[n];
        }
    }
    return rows * plan->request.rank * slc_value_bytes(plan->request.precision);
}

/* Returns the size of the checkpoints that exist during a run. */
static uint64_t checkpoint_bytes(const struct slc_manifest *manifest,
                                 const struct slc_plan *plan,
                                 uint64_t iterations)
{
    const uint64_t each =
        slc_cp_checkpoint_bytes(plan, manifest->order, manifest->dims, (unsigned)iterations);

    return plan->request.operation == SLC_OP_CPD && each <= INT64_MAX / 2 ? 2 * each : 0;
}

/* Plans a decomposition, or the MTTKRP of a mode. */
static enum slc_status make_plan(struct slc_session *session,
                                 struct arguments *args,
                                 struct slc_cp_options *solver,
                                 struct slc_error *err)
{
    const unsigned order = session->store.manifest.order;
    double tolerance = -1.0; /* a plan does not depend on it */

    if (args->mode > order) {
        return slc_fail(err, SLC_ERR_USAGE, "--mode %u: the tensor has %u modes",
                        (unsigned)args->mode, order);
    }
    solver->rank = (uint32_t)args->rank;
    if (args->mode == 0) {
        SLC_TRY(solver_options_set(&args->solver, &session->store.manifest, &args->session,
                                   &tolerance, solver, err));
    }
    return session_plan(session, &args->session, args->mode == 0 ? SLC_OP_CPD : SLC_OP_MTTKRP,
                        args->mode == 0 ? 0 : (unsigned)args->mode - 1, (uint32_t)args->rank, err);
}

static void print_text(const struct slc_session *session,
                       const struct slc_cp_options *solver,
                       uint64_t iterations)
{
    const struct slc_plan *plan = &session->plan;
    const uint64_t checkpoints = checkpoint_bytes(&session->store.manifest, plan, iterations);
    struct format_text bytes, kept;

    report_tensor(&session->store);
    if (plan->request.operation == SLC_OP_CPD) {
        printf("Plan of %s of rank %u, %u thread%s\n", slc_cp_title(solver, solver->algorithm),
               solver->rank, plan->threads, plural(plan->threads));
    } else {
        printf("Plan of an MTTKRP of mode %u, rank %u, %u thread%s\n", plan->request.mode + 1,
               plan->request.rank, plan->threads, plural(plan->threads));
    }
    report_device(plan, &session->no_gpu);
    report_plan(plan, session->store.manifest.order);
    report_not_fused(plan);
    report_copies_missed(plan);
    printf("  %-12s %s of results, ", "disk",
           format_data(&bytes, result_bytes(&session->store.manifest, plan)));
    if (checkpoints > 0) {
        printf("%s of checkpoints until the results are written, ",
               format_data(&kept, (double)checkpoints));
    }
    printf("no temporary files\n");
}

static int print_json(const struct slc_session *session,
                      bool feasible,
                      const struct plan_product *products,
                      uint64_t iterations,
                      json_t *estimate,
                      json_t *devices)
{
    const struct slc_manifest *manifest = &session->store.manifest;
    json_t *object = slc_json_plan(&session->plan, manifest->order);
    struct slc_error err = SLC_ERROR_INIT;

    slc_json_set_text(object, "schema", "sluice-plan-1");
    slc_json_set(object, "feasible", json_boolean(feasible));
    slc_json_set_count(object, "result_bytes", (uint64_t)result_bytes(manifest, &session->plan));
    slc_json_set_count(object, "checkpoint_bytes",
                       checkpoint_bytes(manifest, &session->plan, iterations));
    slc_json_set(object, "estimate", estimate);
    slc_json_set(object, "products", plan_products_json(manifest->order, products));
    if (devices != NULL) {
        slc_json_set(object, "devices", devices);
    }
    return json_out_print(object, &err) == SLC_OK ? 0 : console_error(&err);
}

static int run(const struct command *command, int argc, char **argv)
{
    struct arguments args = {.rank = 0};
    struct slc_session session = {.stream = NULL};
    struct slc_cp_options solver = {.rank = 0};
    struct slc_error err = SLC_ERROR_INIT;
    struct device_shares shares[SLC_MAX_ORDER];
    struct plan_product products[SLC_MAX_ORDER] = {{.fibers = 0}};
    struct operands operands;
    unsigned devices, layouts = 0;
    struct estimate estimate;
    bool estimated = false;
    int code = 0;

    if (!command_begin(command, argc, argv, &args, &operands, &code)) {
        return code;
    }
    console_start(CONSOLE_NORMAL);
    args.session.plan_only = true;
    enum slc_status status = session_open(&session, operands.text[0], args.session.memory, &err);
    SLC_THEN(status, make_plan(&session, &args, &solver, &err));
    if (status == SLC_OK || status == SLC_ERR_BUDGET) {
        struct slc_error fault = SLC_ERROR_INIT;

        if (plan_products(&session.store, &args.session, (uint32_t)args.rank, session.gpu, products,
                          &fault) != SLC_OK) {
            status = fault.status;
            err = fault;
        }
    }
    devices = slc_plan_group_size(&session.plan);
    if (status == SLC_OK && devices > 0 && session.plan.request.split == SLC_SPLIT_PARTITIONS) {
        status = devices_divide(&session.store, devices, shares, &layouts, &err);
    }
    if (status == SLC_OK && !args.json) {
        print_text(&session, &solver, args.iterations);
        devices_report_division(shares, layouts, devices);
        plan_products_print(&session.store, (uint32_t)args.rank, products);
        (void)fflush(stdout);
    }
    if (status == SLC_OK && !args.no_probe) {
        status = probe_run(&session, &solver, args.mode == 0 ? (unsigned)args.iterations : 1,
                           args.probe_seconds, &estimated, &estimate, &err);
    }
    if (args.json && (status == SLC_OK || status == SLC_ERR_BUDGET)) {
        code = print_json(&session, status == SLC_OK, products, args.iterations,
                          estimated ? estimate_json(&estimate) : json_null(),
                          layouts > 0 ? devices_division_json(shares, layouts, devices) : NULL);
    } else if (estimated) {
        estimate_print(&estimate);
    }
    if (status != SLC_OK) {
        code = console_error(&err);
    }
    session_close(&session);
    return code;
}

const struct command command_plan = {
    .name = "plan",
    .summary = "show the memory, I/O and time of an operation",
    .example = "sluice plan flights-4d.slc --rank 16 --memory 512MiB",
    .operands = "X.slc",
    .operands_min = 1,
    .operands_max = 1,
    .options = options,
    .notes = "If the budget is too small, the exit code is 4 and the message states the smallest "
             "sufficient\nbudget.",
    .run = run,
};
