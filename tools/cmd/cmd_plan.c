/* sluice plan: what an operation would hold in memory, read and write, without doing it. */
#include "engine/solve/cp_checkpoint.h"
#include "report/json_parts.h"
#include "report/json_plan.h"
#include "tools/forecast/probe.h"
#include "tools/progress/console.h"
#include "tools/progress/format.h"
#include "tools/progress/json_out.h"
#include "tools/report/devices_report.h"
#include "tools/report/plan_products.h"
#include "tools/report/report.h"
#include "tools/session/commands.h"
#include "tools/session/session.h"

#include <stdio.h>

struct arguments {
    struct session_options session;
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
     .maximum = SLC_MAX_ORDER, .help = "plan the MTTKRP of mode K; 0: a CP-ALS"},
    {"iters", OPTION_U64, offsetof(struct arguments, iterations), .alias = "maxiters",
     .letter = 'i', .value = "N", .fallback = "50", .maximum = 1000000000,
     .help = "iterations of the CP-ALS"},
    PROBE_OPTION_ROWS(arguments, probe_seconds, no_probe),
    SESSION_OPTION_ROWS(arguments),
    SESSION_OPTION_ROW_LAYOUTS(arguments),
    SESSION_OPTION_ROW_COPIES(arguments),
    SESSION_OPTION_ROWS_DEVICE(arguments),
    SESSION_OPTION_ROW_DEVICE_NAME(arguments),
    SESSION_OPTION_ROWS_DEVICES(arguments),
    SESSION_OPTION_ROW_PASSES(arguments),
    SESSION_OPTION_ROW_MODE_ORDER(arguments),
    {"json", OPTION_FLAG, offsetof(struct arguments, json), .help = "one JSON object"},
    {.name = NULL}};

/* Bytes of the result's files on disk. */
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

/* Bytes that checkpoints take while a run has them. */
static uint64_t checkpoint_bytes(const struct slc_manifest *manifest,
                                 const struct slc_plan *plan,
                                 uint64_t iterations)
{
    const uint64_t each =
        slc_cp_checkpoint_bytes(plan, manifest->order, manifest->dims, (unsigned)iterations);

    return plan->request.operation == SLC_OP_CPD && each <= INT64_MAX / 2 ? 2 * each : 0;
}

static void print_text(const struct slc_session *session, uint64_t iterations)
{
    const struct slc_plan *plan = &session->plan;
    const uint64_t checkpoints = checkpoint_bytes(&session->store.manifest, plan, iterations);
    struct format_text bytes, kept;

    report_tensor(&session->store);
    if (plan->request.operation == SLC_OP_CPD) {
        printf("Plan of a CP-ALS of rank %u, %u thread%s\n", plan->request.rank, plan->threads,
               plan->threads == 1 ? "" : "s");
    } else {
        printf("Plan of an MTTKRP of mode %u, rank %u, %u thread%s\n", plan->request.mode + 1,
               plan->request.rank, plan->threads, plan->threads == 1 ? "" : "s");
    }
    report_device(plan, &session->no_gpu);
    report_plan(plan, session->store.manifest.order);
    report_not_fused(plan);
    report_copies_missed(plan);
    printf("  %-12s %s of results, ", "disk",
           format_data(&bytes, result_bytes(&session->store.manifest, plan)));
    if (checkpoints > 0) {
        printf("%s of checkpoints until they are written, ",
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
    struct slc_error err = SLC_ERROR_INIT;
    enum slc_status status;
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
    status = session_open(&session, operands.text[0], args.session.memory, &err);
    if (status == SLC_OK && args.mode > session.store.manifest.order) {
        status = slc_fail(&err, SLC_ERR_USAGE, "--mode %u: the tensor has %u modes",
                          (unsigned)args.mode, session.store.manifest.order);
    }
    if (status == SLC_OK) {
        status =
            session_plan(&session, &args.session, args.mode == 0 ? SLC_OP_CPD : SLC_OP_MTTKRP,
                         args.mode == 0 ? 0 : (unsigned)args.mode - 1, (uint32_t)args.rank, &err);
    }
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
        print_text(&session, args.iterations);
        devices_report_division(shares, layouts, devices);
        plan_products_print(&session.store, (uint32_t)args.rank, products);
        (void)fflush(stdout);
    }
    if (status == SLC_OK && !args.no_probe) {
        status = probe_run(&session, args.mode == 0 ? (unsigned)args.iterations : 1,
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
    .summary = "show what an operation would hold in memory, read and write",
    .example = "sluice plan flights-4d.slc --rank 16 --memory 512MiB",
    .operands = "X.slc",
    .operands_min = 1,
    .operands_max = 1,
    .options = options,
    .notes = "A budget that is too small ends with exit code 4 and names the smallest that works.",
    .run = run,
};
