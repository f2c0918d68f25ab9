/* sluice cpd: factorizes a streamed store. Opens the store, plans, runs the solver with
 * callbacks that report and log, writes the model and run.json, and maps the stop reason to an exit
 * code. */
#include "base/error/clock.h"
#include "report/json_plan.h"
#include "report/run_notes.h"
#include "tools/cmd/cpd/cpd_run.h"
#include "tools/forecast/probe.h"
#include "tools/progress/console.h"
#include "tools/progress/log_json.h"
#include "tools/progress/progress.h"
#include "tools/progress/signals.h"
#include "tools/report/devices_report.h"
#include "tools/report/report.h"
#include "tools/session/commands.h"
#include "tools/session/common_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const keep_choices[] = {"best", "all", NULL};
static const char *const consistency_choices[] = {"auto", "always", "never", NULL};

static const char *const layout_choices[] = {"auto", "blco", "sorted", "build", NULL};

static const struct option options[] = {
    {"rank", OPTION_COUNTS, offsetof(struct arguments, ranks), .letter = 'r', .required = true,
     .value = "R[,R..]", .minimum = 1, .maximum = SLC_MAX_RANK,
     .help = "number of components; several ranks run a sweep, which suggests a rank"},
    {"runs", OPTION_U64, offsetof(struct arguments, runs), .value = "N", .fallback = "1",
     .minimum = 1, .maximum = 1000,
     .help = "runs per rank, with seeds SEED, SEED+1, ...; several runs are a sweep"},
    {"keep", OPTION_CHOICE, offsetof(struct arguments, keep), .value = "WHICH", .fallback = "best",
     .choices = keep_choices,
     .help = "in a sweep: keep the factors of the best run of each rank, or of all runs"},
    {"consistency", OPTION_CHOICE, offsetof(struct arguments, consistency), .value = "WHEN",
     .fallback = "auto", .choices = consistency_choices,
     .help = "in a sweep: compute the core consistency of the best run of each rank: always, never "
             "or auto (if that takes at most a few minutes)"},
    {"iters", OPTION_U64, offsetof(struct arguments, iterations), .alias = "maxiters",
     .letter = 'i', .value = "N", .fallback = "50", .maximum = 1000000000,
     .help = "maximum number of iterations; with 0, the initial factors are written"},
    {"tol", OPTION_DOUBLE, offsetof(struct arguments, tolerance), .value = "T", .fallback = "auto",
     .automatic = true,
     .help = "stop after three consecutive iterations that change the fit by less than T times the "
             "smaller of the fit and 1 - fit; 0 means never; with --loss poisson, stop when the "
             "KKT violation is at most T; auto means 1e-5, or 1e-4 for poisson"},
    {"maxsecs", OPTION_DOUBLE, offsetof(struct arguments, max_seconds), .value = "S",
     .fallback = "0", .help = "stop after S seconds, with exit code 75; 0 means no limit"},
    SOLVER_OPTION_ROWS(arguments, solver),
    {"seed", OPTION_U64, offsetof(struct arguments, seed), .value = "N", .fallback = "0",
     .maximum = INT64_MAX,
     /* maximum of a JSON integer */ .help = "seed of the random start"},
    {"init", OPTION_STRING, offsetof(struct arguments, init), .value = "random|DIR",
     .fallback = "random",
     .help = "initial factors: random (uniform), or mode-1.npy, mode-2.npy, .. in the folder DIR"},
    {"holdout", OPTION_STRING, offsetof(struct arguments, holdout), .value = "PART",
     .help = "hold out this fraction of the nonzeros (at most one half, such as 1% or 0.01), and "
             "report the error on the held-out nonzeros"},
    {"holdout-seed", OPTION_U64, offsetof(struct arguments, holdout_seed), .value = "N",
     .fallback = "0", .maximum = INT64_MAX, .help = "seed that selects the held-out nonzeros"},
    SESSION_OPTION_ROW_MODE_ORDER(arguments),
    SESSION_OPTION_ROWS(arguments),
    SESSION_OPTION_ROW_IO_LIMIT(arguments),
    {"layouts", OPTION_CHOICE, offsetof(struct arguments, session.layouts), .value = "WHICH",
     .fallback = "auto", .choices = layout_choices,
     .help = "layouts to read: blco, sorted (each mode from its sorted layout), auto (blco "
             "if that reads fewer bytes, otherwise sorted) or build (add missing sorted layouts to "
             "the store, then as auto)"},
    {"max-disk", OPTION_SIZE, offsetof(struct arguments, max_disk), .value = "SIZE",
     .help = "with --layouts build: omit layouts that would make the added layouts exceed SIZE"},
    SESSION_OPTION_ROWS_DEVICE(arguments),
    SESSION_OPTION_ROW_DEVICE_NAME(arguments),
    SESSION_OPTION_ROWS_DEVICES(arguments),
    SESSION_OPTION_ROW_COPIES(arguments),
    SESSION_OPTION_ROW_PASSES(arguments),
    {"output", OPTION_STRING, offsetof(struct arguments, folder), .letter = 'o', .value = "DIR",
     .not_stdout = true,
     .help =
         "folder for mode-K.npy, lambda.npy and run.json; NAME.rR if no output option is given"},
    {"stem", OPTION_STRING, offsetof(struct arguments, stem), .letter = 's', .value = "STEM",
     .help = "write the text files of SPLATT: STEMmodeK.mat, STEMlambda.mat"},
    {"ktensor", OPTION_STRING, offsetof(struct arguments, ktensor), .value = "FILE",
     .not_stdout = true, .help = "write a ktensor in the text format of the Tensor Toolbox"},
    {"nowrite", OPTION_FLAG, offsetof(struct arguments, nowrite),
     .help = "write no results, and no checkpoint unless --checkpoint names a folder"},
    {"checkpoint", OPTION_STRING, offsetof(struct arguments, checkpoint), .value = "auto|none|DIR",
     .not_stdout = true, .fallback = "auto",
     .help = "folder of the checkpoint, from which the same command resumes: auto (next to "
             "the results), none (no checkpoint), or the folder DIR"},
    {"checkpoint-interval", OPTION_STRING, offsetof(struct arguments, interval), .value = "auto|S",
     .fallback = "auto",
     .help = "minimum number of seconds between checkpoints; 0 means "
             "after every update and every part of a pass; auto means 10, "
             "or more if checkpoints would take over 1 % of the time"},
    {"restart", OPTION_FLAG, offsetof(struct arguments, restart),
     .help = "start over and discard an existing checkpoint"},
    PROBE_OPTION_ROW_DRY_RUN(arguments, dry_run),
    PROBE_OPTION_ROWS(arguments, probe_seconds, no_probe),
    OPTION_ROW_PROGRESS(arguments, progress),
    OPTION_ROW_LOG_JSON(arguments, log_json),
    {"verbose", OPTION_FLAG, offsetof(struct arguments, verbose), .letter = 'v',
     .help =
         "also print the time of every mode, the choice of its conflict strategy, and I/O details"},
    OPTION_ROW_QUIET(arguments, quiet),
    {.name = NULL}};

/* Parses --holdout. */
static enum slc_status parse_holdout(const char *text, double *part, struct slc_error *err)
{
    char *end;

    if (text == NULL) {
        return SLC_OK;
    }
    double number = strtod(text, &end);
    if (end != text && *end == '%') {
        number /= 100.0;
        end++;
    }
    if (end == text || *end != '\0' || !(number > 0.0) || !(number <= 0.5)) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "--holdout: '%s' is not a fraction of the nonzeros above 0 and at most "
                        "one half, such as 1%% or 0.01",
                        text);
    }
    *part = number;
    return SLC_OK;
}

static void on_iteration(void *context, const struct slc_cp_iteration *iteration)
{
    struct cpd *cpd = context;
    unsigned order = cpd->session.store.manifest.order;

    report_reads_add(&cpd->reads, &cpd->session.plan, iteration->bytes_read);
    cpd_estimate_iteration(&cpd->estimate, cpd->session.stream, iteration);
    console_clear_live();
    if (!cpd->args.quiet) {
        report_iteration(iteration, order, cpd->args.verbose);
    }
    progress_iteration(iteration->iteration, iteration->fit, iteration->delta, iteration->seconds);
    log_json_iteration(cpd->log, iteration, order);
    (void)json_array_append_new(cpd->iterations, slc_json_iteration(iteration, order));
}

static void
on_blocks(void *context, unsigned iteration, unsigned mode, uint64_t done, uint64_t blocks)
{
    struct cpd *cpd = context;

    cpd_estimate_blocks(&cpd->estimate, mode, done, blocks);
    progress_blocks(iteration, mode, done, blocks);
}

static void on_resume(void *context, const struct slc_cp_resume *resume)
{
    struct cpd *cpd = context;

    console_clear_live();
    cpd_checkpoint_resumed(&cpd->checkpoint, resume, cpd->session.store.manifest.order,
                           cpd->iterations, cpd->log, cpd->args.quiet);
}

static void on_checkpoint(void *context, const struct slc_cp_checkpointed *written)
{
    struct cpd *cpd = context;

    cpd_checkpoint_written(&cpd->checkpoint, written, cpd->log);
}

/* Sets the options of the solver; the plan determines the order of modes. */
static void fill_options(struct cpd *cpd)
{
    const struct arguments *args = &cpd->args;
    struct slc_cp_options *als = &cpd->als;

    als->rank = (uint32_t)args->rank;
    als->iterations = (unsigned)args->iterations;
    als->tolerance = args->tolerance;
    als->max_seconds = args->max_seconds;
    als->seed = args->seed;
    als->holdout = args->session.holdout;
    als->holdout_seed = args->holdout_seed;
    als->init_folder = strcmp(args->init, "random") == 0 ? NULL : args->init;
    als->deterministic = args->session.deterministic;
    als->stop = signals_stop();
    als->iteration = on_iteration;
    als->progress = on_blocks;
    als->resumed = on_resume;
    als->checkpointed = on_checkpoint;
    als->context = cpd;
}

/* Writes the first event of the log, once it is known whether this run resumes an earlier run. */
static void start_log(struct cpd *cpd)
{
    if (!cpd->started) {
        cpd->started = true;
        run_log_set(cpd->log);
        log_json_start(cpd->log, cpd->command, cpd->argc, cpd->argv);
    }
}

static void print_plan(const struct cpd *cpd)
{
    const unsigned order = cpd->session.store.manifest.order;

    report_tensor(&cpd->session.store);
    report_factoring(&cpd->session.plan, order, &cpd->als);
    report_device(&cpd->session.plan, &cpd->session.no_gpu);
    report_plan(&cpd->session.plan, order);
    if (cpd->args.verbose) {
        report_not_fused(&cpd->session.plan);
    }
    if (cpd->args.verbose && slc_cp_copies_pay(cpd->als.iterations)) {
        report_copies_missed(&cpd->session.plan);
    }
    printf("\n");
    (void)fflush(stdout);
}

static void show_start(struct cpd *cpd)
{
    const struct slc_manifest *manifest = &cpd->session.store.manifest;
    struct progress_shape shape = {.order = manifest->order,
                                   .iterations = cpd->als.iterations,
                                   .passes = cpd->session.plan.passes,
                                   .nnz = manifest->nnz,
                                   .bytes = cpd->session.plan.iteration_bytes,
                                   .operation = slc_cp_title(&cpd->als, cpd->als.algorithm)};

    if (!cpd->args.quiet) {
        print_plan(cpd);
    }
    log_json_plan(cpd->log, &cpd->session.store, &cpd->session.plan);
    progress_shape(&shape);
}

/* Without --mode-order the plan chooses the order of modes, depending on memory, threads and
 * layouts. A resumed run keeps the order that was chosen when the run started. */
static enum slc_status keep_mode_order(struct cpd *cpd, struct slc_error *err)
{
    const struct session_options *given = &cpd->args.session;
    const unsigned order = cpd->session.store.manifest.order;
    unsigned modes[SLC_MAX_ORDER];

    if (given->deterministic || given->mode_order.count != 0 ||
        !cpd_checkpoint_order(&cpd->checkpoint, order, modes) ||
        memcmp(modes, cpd->session.plan.mode_order, order * sizeof modes[0]) == 0) {
        return SLC_OK;
    }
    return slc_session_start_in_order(&cpd->session, modes, err);
}

/* Makes all steps before the first pass. */
static enum slc_status
prepare(struct cpd *cpd, const struct operands *operands, struct slc_error *err)
{
    const struct arguments *args = &cpd->args;
    const struct cpd_output_names names = {args->folder, args->stem, args->ktensor, args->nowrite,
                                           args->checkpoint};

    SLC_TRY(cpd_checkpoint_interval(args->interval, &cpd->als.checkpoint_seconds, err));
    SLC_TRY(slc_store_open_within(cpd->files, operands->text[0], args->session.memory,
                                  &cpd->session.store, err));
    fill_options(cpd);
    SLC_TRY(solver_options_set(&cpd->args.solver, &cpd->session.store.manifest, &cpd->args.session,
                               &cpd->args.tolerance, &cpd->als, err));
    SLC_TRY(cpd_output_choose(&cpd->output, operands->text[0], (unsigned)args->rank, &names, err));
    SLC_TRY(cpd_layouts_build(args, cpd->files, &cpd->session.store, err));
    SLC_TRY(session_plan(&cpd->session, &args->session, SLC_OP_CPD, 0, (uint32_t)args->rank, err));
    if (args->dry_run) {
        return SLC_OK;
    }
    SLC_TRY(slc_session_start(&cpd->session, err));
    if (args->iterations > 0) {
        SLC_TRY(cpd_checkpoint_open(&cpd->checkpoint, cpd->output.checkpoint,
                                    cpd->output.own_checkpoint, args->restart, err));
        cpd->als.checkpoint = cpd->checkpoint.file;
    }
    SLC_TRY(cpd_output_lock(&cpd->output, cpd->checkpoint.folder, err));
    SLC_TRY(keep_mode_order(cpd, err));
    if (cpd->sweep == NULL &&
        (cpd->checkpoint.file == NULL || slc_checkpoint_found(cpd->checkpoint.file) == NULL)) {
        log_json_truncate(cpd->log);
        cpd_output_note_replaced(&cpd->output);
    }
    start_log(cpd);
    show_start(cpd);
    cpd->als.parts = cpd->session.parts;
    return SLC_OK;
}

/* Returns the exit code of a run that ended without an error. */
static int stop_code(enum slc_stop_reason reason)
{
    switch (reason) {
    case SLC_STOP_TIME:
        return slc_status_exit_code(SLC_ERR_TIME_LIMIT);
    case SLC_STOP_SIGNAL:
        return signals_exit_code();
    case SLC_STOP_TOLERANCE:
    case SLC_STOP_ITERATIONS:
    case SLC_STOP_HOLDOUT:
        break;
    }
    return 0;
}

/* Records the result of one run of a sweep. */
static enum slc_status record_sweep_run(struct cpd *cpd, struct slc_error *err)
{
    struct slc_sweep_run *record = &cpd->sweep->record;

    record->fit = cpd->result.fit;
    record->iterations = cpd->result.iterations;
    if (cpd->result.heldout > 0) {
        record->heldout_rmse = cpd->result.heldout_rmse;
        record->heldout_deviance = cpd->result.heldout_deviance;
    }
    record->condition = slc_run_condition(&cpd->result);
    record->seconds = cpd->checkpoint.seconds_before + slc_seconds_since(cpd->start_ns);
    (void)snprintf(record->reason, sizeof record->reason, "%s",
                   slc_stop_reason_name(cpd->result.reason));
    return cpd->sweep->written(cpd->sweep, err);
}

/* Returns the estimate and the actual values, or NULL if the run has no estimate. */
static json_t *compared_estimate(const struct cpd *cpd)
{
    return cpd->estimate.estimated
               ? estimate_compare_json(&cpd->estimate.estimate, &cpd->estimate.actual)
               : NULL;
}

static enum slc_status write_results(struct cpd *cpd, struct slc_error *err)
{
    struct slc_stream_stats stats;
    uint64_t start_ns = slc_clock_ns();

    slc_stream_stats(cpd->session.stream, &stats);
    struct run_record record = {
        .facts = {.store = &cpd->session.store,
                  .plan = &cpd->session.plan,
                  .result = &cpd->result,
                  .stats = &stats,
                  .exit_code = stop_code(cpd->result.reason),
                  .iterations = cpd->iterations,
                  .total_seconds =
                      cpd->checkpoint.seconds_before + slc_seconds_since(cpd->start_ns),
                  .seconds_before = cpd->checkpoint.seconds_before,
                  .checkpoint_folder =
                      cpd->checkpoint.file != NULL ? cpd->checkpoint.folder : NULL},
        .command = cpd->command,
        .argc = cpd->argc,
        .argv = cpd->argv,
        .values = &cpd->args,
        .estimate = compared_estimate(cpd)};
    enum slc_status status = cpd_output_write(&cpd->output, &record, cpd->log, err);
    json_decref(record.estimate);
    if (!cpd->args.nowrite) {
        cpd->write_seconds = slc_seconds_since(start_ns);
    }
    SLC_TRY(status);
    if (stop_code(cpd->result.reason) == 0 && cpd->sweep != NULL) {
        SLC_TRY(record_sweep_run(cpd, err));
    }
    /* A complete run does not need its checkpoint. */
    if (stop_code(cpd->result.reason) == 0) {
        SLC_TRY(cpd_checkpoint_remove(&cpd->checkpoint, err));
    }
    return SLC_OK;
}

static void print_end(const struct cpd *cpd)
{
    struct slc_stream_stats stats;

    slc_stream_stats(cpd->session.stream, &stats);
    report_fit(&cpd->result);
    report_ratings(&cpd->session.store.manifest, false);
    cpd_output_report(&cpd->output);
    report_times(&cpd->result, cpd->checkpoint.seconds_before + slc_seconds_since(cpd->start_ns),
                 cpd->checkpoint.seconds_before, cpd->write_seconds, &stats,
                 cpd->session.plan.threads);
    devices_report_stats(&cpd->session.plan, cpd->result.devices, cpd->args.verbose);
    gpu_report_stats(&cpd->session.plan, &cpd->result.gpu);
    gpu_report_shares(cpd->result.hybrid, cpd->result.order);
    if (cpd->args.verbose && cpd->estimate.estimated) {
        estimate_compare(&cpd->estimate.estimate, &cpd->estimate.actual);
    }
    report_resources(&cpd->session.plan, &stats, &cpd->reads);
}

/* Writes the last event of the log. */
static void log_end_event(struct cpd *cpd, const char *reason, int exit_code)
{
    const struct log_end end = {.reason = reason,
                                .exit_code = exit_code,
                                .seconds = slc_seconds_since(cpd->start_ns),
                                .result = &cpd->result,
                                .estimate = compared_estimate(cpd)};

    start_log(cpd);
    run_log_set(NULL);
    log_json_end(cpd->log, &end);
}

static int fail(struct cpd *cpd, enum slc_status status, const struct slc_error *err)
{
    int code = console_error(err);

    if (cpd->checkpoint.iteration > 0) {
        cpd_checkpoint_report(&cpd->checkpoint);
    }
    code = status == SLC_ERR_INTERRUPTED ? signals_exit_code() : code;
    log_end_event(cpd, slc_status_name(status), code);
    return code;
}

/* Prints the plan, and an estimate unless --no-probe is given. */
static enum slc_status dry_run(struct cpd *cpd, struct slc_error *err)
{
    print_plan(cpd);
    return cpd->args.no_probe ? SLC_OK
                              : cpd_estimate_dry_run(&cpd->estimate, &cpd->session, &cpd->als,
                                                     cpd->args.probe_seconds, err);
}

int cpd_run_one(struct cpd *cpd, const struct operands *operands)
{
    struct slc_error err = SLC_ERROR_INIT;
    int code;

    cpd->iterations = json_array();
    cpd_estimate_start(&cpd->estimate);
    enum slc_status status = prepare(cpd, operands, &err);
    if (status == SLC_OK && !cpd->args.dry_run) {
        status = slc_cp_run(&cpd->session.store, cpd->session.stream, cpd->session.backend,
                            &cpd->session.plan, &cpd->als, &cpd->result, &err);
    }
    console_clear_live();
    if (status == SLC_OK && cpd->args.dry_run) {
        status = dry_run(cpd, &err);
    } else if (status == SLC_OK) {
        if (cpd->sweep == NULL && cpd->checkpoint.seconds_before == 0) {
            cpd_estimate_end(&cpd->estimate, &cpd->session, cpd->result.iterations);
        }
        status = write_results(cpd, &err);
    }
    if (status != SLC_OK) {
        code = fail(cpd, status, &err);
    } else if (cpd->args.dry_run) {
        code = 0;
    } else {
        code = stop_code(cpd->result.reason);
        log_end_event(cpd, slc_stop_reason_name(cpd->result.reason), code);
        if (!cpd->args.quiet) {
            print_end(cpd);
        }
        if (code != 0) {
            cpd_checkpoint_report(&cpd->checkpoint);
        }
    }
    slc_cp_result_destroy(&cpd->result);
    cpd_checkpoint_close(&cpd->checkpoint);
    cpd_output_unlock(&cpd->output);
    session_close(&cpd->session);
    json_decref(cpd->iterations);
    return code;
}

/* Makes a dry run. A sweep plans each rank once, because all runs of a rank have the same plan. */
static int dry_run_all(struct cpd *cpd, const struct operands *operands)
{
    int code = 0;

    for (unsigned i = 0; i < cpd->args.ranks.count && code == 0; i++) {
        struct cpd one = *cpd;

        one.args.rank = cpd->args.ranks.number[i];
        code = cpd_run_one(&one, operands);
        cpd->started = one.started;
    }
    if (code == 0) {
        log_end_event(cpd, "dry-run", 0);
    }
    return code;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct cpd cpd = {.command = command,
                      .argc = argc,
                      .argv = argv,
                      .session = {.stream = NULL},
                      .write_seconds = -1};
    struct slc_error err = SLC_ERROR_INIT;
    struct operands operands;
    int code;

    if (!command_begin(command, argc, argv, &cpd.args, &operands, &code)) {
        return code;
    }
    console_start(cpd.args.quiet     ? CONSOLE_QUIET
                  : cpd.args.verbose ? CONSOLE_VERBOSE
                                     : CONSOLE_NORMAL);
    progress_start(cpd.args.progress, cpd.args.quiet);
    cpd.start_ns = slc_clock_ns();
    cpd.args.session.plan_only = cpd.args.dry_run;
    cpd.args.rank = cpd.args.ranks.number[0];
    enum slc_status status = parse_holdout(cpd.args.holdout, &cpd.args.session.holdout, &err);
    SLC_THEN(status, signals_start(NULL, NULL, &err));
    SLC_THEN(status, log_json_open(cpd.args.log_json, &cpd.log, &err));
    if (status != SLC_OK) {
        code = fail(&cpd, status, &err);
    } else if (cpd.args.dry_run) {
        code = dry_run_all(&cpd, &operands);
    } else if (cpd.args.ranks.count > 1 || cpd.args.runs > 1) {
        code = cpd_run_sweep(&cpd, &operands);
    } else {
        code = cpd_run_one(&cpd, &operands);
    }
    log_json_close(cpd.log);
    return code;
}

const struct command command_cpd = {
    .name = "cpd",
    .summary = "factorize a store: least squares, constraints, counts or completion",
    .example = "sluice cpd flights-4d.slc --rank 16 --memory 512MiB",
    .operands = "X.slc",
    .operands_min = 1,
    .operands_max = 1,
    .options = options,
    .notes = "Modes count from 1. The first Ctrl-C writes the current factors and a checkpoint, "
             "from which the\nsame command resumes; the second Ctrl-C stops at once. A sweep, "
             "such as `--rank 4,8,16 --runs 5`,\nwrites a folder NAME.sweep with a folder per run.",
    .resumes = true,
    .run = run,
};
