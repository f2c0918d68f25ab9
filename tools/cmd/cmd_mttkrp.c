/* sluice mttkrp: computes one MTTKRP of a streamed store with factors from a folder. */
#include "base/error/clock.h"
#include "base/memory/memory.h"
#include "engine/executor/gpu_group.h"
#include "engine/stream/relabel.h"
#include "storage/file/files.h"
#include "storage/manifest/path_guard.h"
#include "storage/model/model.h"
#include "storage/model/npy.h"
#include "tools/forecast/probe.h"
#include "tools/progress/console.h"
#include "tools/progress/format.h"
#include "tools/progress/log_json.h"
#include "tools/progress/progress.h"
#include "tools/progress/signals.h"
#include "tools/report/devices_report.h"
#include "tools/report/report.h"
#include "tools/session/commands.h"
#include "tools/session/common_options.h"
#include "tools/session/part_option.h"
#include "tools/session/session.h"

#include <stdio.h>
#include <string.h>

struct arguments {
    struct session_options session;
    uint64_t mode;
    const char *factors;
    const char *output;
    const char *part;
    bool weights;
    bool dry_run;
    double probe_seconds;
    bool no_probe;
    const char *progress;
    const char *log_json;
    bool quiet;
};

static const struct option options[] = {
    {"mode", OPTION_U64, offsetof(struct arguments, mode), .required = true, .value = "K",
     .minimum = 1, .maximum = SLC_MAX_ORDER, .help = "mode to compute, counted from 1"},
    {"factors", OPTION_STRING, offsetof(struct arguments, factors), .required = true,
     .value = "DIR",
     .help = "folder with mode-1.npy, mode-2.npy, ..; the factor of mode K is not read"},
    {"output", OPTION_STRING, offsetof(struct arguments, output), .letter = 'o', .required = true,
     .not_stdout = true, .value = "M.npy", .help = "output file"},
    OPTION_ROW_PART(arguments, part),
    {"weights", OPTION_FLAG, offsetof(struct arguments, weights),
     .help = "multiply column r of the result by weight r in lambda.npy of --factors"},
    SESSION_OPTION_ROWS(arguments),
    SESSION_OPTION_ROW_IO_LIMIT(arguments),
    SESSION_OPTION_ROW_LAYOUTS(arguments),
    SESSION_OPTION_ROWS_DEVICE(arguments),
    SESSION_OPTION_ROW_DEVICE_NAME(arguments),
    SESSION_OPTION_ROWS_DEVICES(arguments),
    PROBE_OPTION_ROW_DRY_RUN(arguments, dry_run),
    PROBE_OPTION_ROWS(arguments, probe_seconds, no_probe),
    OPTION_ROW_PROGRESS(arguments, progress),
    OPTION_ROW_LOG_JSON(arguments, log_json),
    OPTION_ROW_QUIET(arguments, quiet),
    {.name = NULL}};

/* Finds the rank of the factors from the file of the smallest mode. The rank is read from the file
 * before planning, because a plan made after loading the factors would count their memory twice. */
static enum slc_status find_rank(const struct slc_manifest *manifest,
                                 const char *folder,
                                 unsigned mode,
                                 uint32_t *rank,
                                 struct slc_error *err)
{
    unsigned shortest = mode == 0 ? 1 : 0;
    char name[32];
    uint64_t rows;

    if (manifest->order == 1) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "the tensor has one mode, so its MTTKRP uses no factor and has no rank");
    }
    for (unsigned n = 0; n < manifest->order; n++) {
        if (n != mode && manifest->dims[n] < manifest->dims[shortest]) {
            shortest = n;
        }
    }
    (void)snprintf(name, sizeof name, "mode-%u.npy", shortest + 1);
    char *path = slc_path_join(folder, name);
    SLC_TRY(slc_check_memory(path != NULL, err, "for a path"));
    enum slc_status status =
        slc_npy_shape(slc_files_system(), path, manifest->dims[shortest], &rows, rank, err);
    slc_free(path);
    return status;
}

static void show_progress(void *mode, uint64_t done, uint64_t blocks, uint64_t bytes_read)
{
    (void)bytes_read;
    progress_blocks(0, *(const unsigned *)mode, done, blocks);
}

/* Writes the result, or its rows of a part and the record of the part. */
static enum slc_status write_output(const struct slc_matrix *output,
                                    const struct slc_part *part,
                                    const struct slc_part_record *record,
                                    const char *path,
                                    struct slc_error *err)
{
    struct slc_matrix rows = *output;

    if (part == NULL) {
        return slc_npy_write(slc_files_system(), path, output, err);
    }
    const struct slc_row_span span = slc_session_part_rows(part, output->rows);
    rows.rows = span.end - span.first;
    rows.buffer.data = output->type == SLC_F32 ? (void *)slc_matrix_row_f32(output, span.first)
                                               : (void *)slc_matrix_row_f64(output, span.first);
    SLC_TRY(slc_npy_write(slc_files_system(), path, &rows, err));
    return slc_part_record_write(record, slc_files_system(), path, SLC_PART_RECORD_SUFFIX, err);
}

/* Reads the weights of the folder. Ownership: the caller releases *weights with slc_free. */
static enum slc_status
read_weights(const char *folder, uint32_t rank, double **weights, struct slc_error *err)
{
    bool found = false;

    *weights = slc_calloc(rank, sizeof **weights);
    SLC_TRY(slc_check_memory(*weights != NULL, err, "for %u weights", rank));
    SLC_TRY(slc_model_read_lambda(slc_files_system(), folder, rank, *weights, &found, err));
    return found ? SLC_OK
                 : slc_fail(err, SLC_ERR_USAGE,
                            "--weights: %s has no lambda.npy: remove --weights, or add the file",
                            folder);
}

/* Opens the stream, reads the factors, streams the pass and writes the result. */
static enum slc_status compute(struct slc_session *session,
                               const struct arguments *args,
                               struct slc_session_pass *pass,
                               struct slc_error *err)
{
    struct slc_part_record record = {.text = ""};
    const struct slc_manifest *manifest = &session->store.manifest;
    const struct slc_plan *plan = &session->plan;
    const unsigned mode = pass->mode;
    struct slc_matrix factors[SLC_MAX_ORDER] = {{0}};
    struct slc_matrix output = {0};
    double *weights = NULL;
    uint32_t rank = plan->request.rank;
    enum slc_status status = slc_check_open_files(err);

    SLC_THEN(status, slc_model_read(slc_files_system(), args->factors, plan->request.precision,
                                    manifest->order, manifest->dims, mode, &rank, factors, err));
    if (status == SLC_OK && args->weights) {
        status = read_weights(args->factors, rank, &weights, err);
    }
    if (status == SLC_OK && pass->part != NULL) {
        slc_session_record_part(session, mode, factors, weights, pass->part, &record);
    }
    for (unsigned n = 0; n < manifest->order; n++) {
        if (status == SLC_OK && n != mode) {
            status = slc_relabel_rows(&session->store, n, SLC_ROWS_OF_STORE, &factors[n], err);
        }
    }
    if (status == SLC_OK) {
        status =
            slc_matrix_create(&output, plan->request.precision, manifest->dims[mode], rank, err);
    }
    if (status == SLC_OK) {
        struct slc_session_pass now = {.mode = mode,
                                       .factors = factors,
                                       .output = &output,
                                       .part = pass->part,
                                       .weights = weights,
                                       .stop = signals_stop(),
                                       .progress = show_progress,
                                       .progress_context = &pass->mode};

        status = slc_session_mttkrp(session, &now, err);
        now.factors = NULL;
        now.output = NULL;
        now.weights = NULL;
        *pass = now;
    }
    console_clear_live();
    SLC_THEN(status, slc_relabel_rows(&session->store, mode, SLC_ROWS_OF_INPUT, &output, err));
    SLC_THEN(status, write_output(&output, pass->part, &record, args->output, err));
    for (unsigned n = 0; n < manifest->order; n++) {
        slc_matrix_destroy(&factors[n]);
    }
    slc_matrix_destroy(&output);
    slc_free(weights);
    return status;
}

/* Prints and logs the estimate of the plan and the actual values. */
static void report_estimate(const struct slc_session *session, double seconds, bool quiet)
{
    struct estimator estimator = {.plan = NULL};
    struct estimate estimate;
    struct slc_stream_stats stats;
    struct estimate_actual actual = {.memory_bytes = slc_memory_peak(), .seconds = seconds};

    slc_stream_stats(session->stream, &stats);
    actual.read_bytes = stats.bytes_read;
    estimator_start(&estimator);
    estimator.plan = &session->plan;
    estimator_estimate(&estimator, 1, &estimate);
    if (!quiet) {
        estimate_compare(&estimate, &actual);
    }
    run_log_estimate(estimate_compare_json(&estimate, &actual));
}

static void print_report(const struct slc_session *session,
                         const char *output,
                         const struct slc_session_pass *outcome,
                         double seconds)
{
    struct slc_stream_stats stats;
    struct report_reads reads = {0};

    slc_stream_stats(session->stream, &stats);
    report_reads_add(&reads, &session->plan, stats.bytes_read);
    printf("\nWrote %s\n\n", output);
    report_conflict(session->plan.request.mode, false, &outcome->choice);
    report_times(NULL, seconds, 0, -1, &stats, session->plan.threads);
    devices_report_stats(&session->plan, outcome->devices, true);
    if (session->gpu != NULL) {
        struct slc_device_stats device;

        if (session->group != NULL) {
            slc_gpu_group_sum(session->group, &device);
        } else {
            session->gpu->ops->stats(session->gpu, &device);
        }
        gpu_report_stats(&session->plan, &device);
        gpu_report_shares(outcome->hybrid, session->store.manifest.order);
    }
    report_resources(&session->plan, &stats, &reads);
}

static void print_plan(const struct slc_session *session, const struct slc_part *part)
{
    char text[PART_TEXT_BYTES];

    const struct slc_plan *plan = &session->plan;

    report_tensor(&session->store);
    printf("MTTKRP of mode %u, rank %u\n", plan->request.mode + 1, plan->request.rank);
    report_device(plan, &session->no_gpu);
    report_plan(plan, session->store.manifest.order);
    if (part != NULL) {
        const struct slc_reader *reader =
            session->layouts.reader[plan->mode_layout[plan->request.mode]];

        printf("  %-12s %s to read\n", "part",
               part_text(text, part->choice, part->block_count,
                         slc_reader_info(reader)->block_count, part->bytes));
    }
    (void)fflush(stdout);
}

/* Prints the plan and an estimate. */
static enum slc_status dry_run(struct slc_session *session,
                               const struct arguments *args,
                               const struct slc_part *part,
                               struct slc_error *err)
{
    struct estimate estimate;
    bool estimated;

    print_plan(session, part);
    if (args->no_probe || part != NULL) {
        return SLC_OK;
    }
    enum slc_status status =
        probe_run(session, NULL, 1, args->probe_seconds, &estimated, &estimate, err);
    if (estimated) {
        estimate_print(&estimate);
    }
    return status;
}

/* Plans the product, or a part of it. A part is deterministic, so that the bits of its rows do not
 * depend on the division. */
static enum slc_status plan_rows(struct slc_session *session,
                                 struct arguments *args,
                                 unsigned mode,
                                 uint32_t rank,
                                 struct slc_part *part,
                                 struct slc_error *err)
{
    struct slc_part_choice choice;

    SLC_TRY(part_option_parse(args->part, &choice, err));
    if (choice.count > 0) {
        args->session.deterministic = true;
        args->session.schedule = "file";
        args->session.no_cache = true; /* the forecast would count cached blocks of other parts */
    }
    SLC_TRY(session_plan(session, &args->session, SLC_OP_MTTKRP, mode, rank, err));
    return choice.count > 0 ? slc_session_open_part(session, mode, choice, part, err) : SLC_OK;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct arguments args = {.mode = 0};
    struct slc_session session = {.stream = NULL};
    struct slc_error err = SLC_ERROR_INIT;
    struct operands operands;
    uint64_t start_ns = slc_clock_ns();
    struct slc_session_pass outcome = {.mode = 0};
    struct slc_part part = {.blocks = NULL};
    uint32_t rank = 0;
    int code = 0;

    if (!command_begin(command, argc, argv, &args, &operands, &code)) {
        return code;
    }
    console_start(args.quiet ? CONSOLE_QUIET : CONSOLE_NORMAL);
    progress_start(args.progress, args.quiet);
    args.session.plan_only = args.dry_run;
    unsigned mode = (unsigned)args.mode - 1;
    enum slc_status status = signals_start(NULL, NULL, &err);
    SLC_THEN(status, slc_check_outside_stores(slc_files_system(), args.output, &err));
    SLC_THEN(status, slc_check_own_form(NULL, args.output, "\x93NUMPY", "a .npy file", &err));
    SLC_THEN(status, session_open(&session, operands.text[0], args.session.memory, &err));
    if (status == SLC_OK && mode >= session.store.manifest.order) {
        status = slc_fail(&err, SLC_ERR_USAGE, "--mode %u: the tensor has %u modes", mode + 1,
                          session.store.manifest.order);
    }
    SLC_THEN(status, find_rank(&session.store.manifest, args.factors, mode, &rank, &err));
    SLC_THEN(status, plan_rows(&session, &args, mode, rank, &part, &err));
    outcome.part = part.choice.count > 0 ? &part : NULL;
    if (status == SLC_OK && args.dry_run) {
        status = dry_run(&session, &args, outcome.part, &err);
        args.quiet = true;
    } else if (status == SLC_OK) {
        status = slc_session_start(&session, &err);
    }
    if (status == SLC_OK && !args.dry_run) {
        struct progress_shape shape = {.order = session.store.manifest.order,
                                       .passes = 1,
                                       .nnz = session.store.manifest.nnz,
                                       .bytes = session.plan.iteration_bytes,
                                       .operation = "MTTKRP"};

        if (!args.quiet) {
            print_plan(&session, outcome.part);
        }
        progress_shape(&shape);
        outcome.mode = mode;
        status = compute(&session, &args, &outcome, &err);
    }
    if (status != SLC_OK) {
        code = console_error(&err);
        code = status == SLC_ERR_INTERRUPTED ? signals_exit_code() : code;
    } else if (!args.dry_run) {
        const double seconds = slc_seconds_since(start_ns);

        if (!args.quiet) {
            print_report(&session, args.output, &outcome, seconds);
        }
        report_estimate(&session, seconds, args.quiet);
    }
    slc_part_close(&part);
    session_close(&session);
    return code;
}

const struct command command_mttkrp = {
    .name = "mttkrp",
    .summary = "multiply a store with the factor matrices of all other modes (MTTKRP)",
    .example = "sluice mttkrp flights-4d.slc --mode 1 --factors flights-4d.r16 -o M.npy",
    .operands = "X.slc",
    .operands_min = 1,
    .operands_max = 1,
    .options = options,
    .notes = "The result has one row per index of mode K.",
    .run = run,
};
