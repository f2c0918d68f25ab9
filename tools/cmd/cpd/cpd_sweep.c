/* A sweep of `sluice cpd`: makes its runs from the options of the command and prints the
 * results. */
#include "base/error/clock.h"
#include "base/memory/memory.h"
#include "sweep/sweep.h"
#include "sweep/sweep_compare.h"
#include "tools/cmd/cpd/cpd_run.h"
#include "tools/progress/console.h"
#include "tools/progress/format.h"
#include "tools/progress/signals.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { BAR = 40 };

/* Formats a number in a column, or a dash if the number is unknown. */
static const char *format_cell(char *text, size_t bytes, const char *format, double value)
{
    if (isnan(value)) {
        (void)snprintf(text, bytes, "-");
    } else {
        (void)snprintf(text, bytes, format, value);
    }
    return text;
}

/* Formats a core consistency. All values below 0 mean the same: too many components. */
static const char *format_consistency(char *text, size_t bytes, double percent)
{
    if (percent < 0.0) {
        (void)snprintf(text, bytes, "< 0 %%");
        return text;
    }
    return format_cell(text, bytes, "%.1f %%", percent);
}

/* Fills a text with the first measure of a rank: its core consistency or held-out deviance. */
static const char *format_measure(char *text,
                                  size_t bytes,
                                  bool by_heldout,
                                  const struct slc_sweep_rank *rank,
                                  const struct slc_sweep_run *best)
{
    return by_heldout ? format_cell(text, bytes, "%.6g", best->heldout_deviance)
                      : format_consistency(text, bytes, rank->consistency);
}

static void print_rank(const struct slc_sweep_record *record, const struct slc_sweep_rank *rank)
{
    const struct slc_sweep_run *best = slc_sweep_record_best(record, rank->rank);
    char measure[32], condition[32], agreement[32], reached[32] = "-";
    double lowest = INFINITY;
    unsigned runs = 0;

    if (best == NULL) {
        return;
    }
    for (unsigned k = 0; k < record->run_count; k++) {
        if (record->runs[k].rank == rank->rank) {
            lowest = fmin(lowest, record->runs[k].fit);
            runs++;
        }
    }
    if (rank->reached > 0) {
        (void)snprintf(reached, sizeof reached, "%u of %u", rank->reached, rank->runs);
    }
    printf("  %6" PRIu32 " %5u %10.6f %10.1e %12" PRIu64 " %18s %10s %10s %10s\n", rank->rank, runs,
           best->fit, best->fit - lowest, best->seed,
           format_measure(measure, sizeof measure, slc_sweep_record_by_heldout(record), rank, best),
           format_cell(condition, sizeof condition, "%.3g", best->condition),
           format_cell(agreement, sizeof agreement, "%.3f", rank->agreement), reached);
}

static void print_table(const struct slc_sweep_record *record)
{
    printf("  %6s %5s %10s %10s %12s %18s %10s %10s %10s\n", "rank", "runs", "best fit", "spread",
           "best seed",
           slc_sweep_record_by_heldout(record) ? "held-out deviance" : "core consistency",
           "condition", "agreement", "reached");
    for (unsigned i = 0; i < record->rank_count; i++) {
        print_rank(record, &record->ranks[i]);
    }
    for (unsigned i = 0; i < record->rank_count; i++) {
        if (record->ranks[i].note[0] != '\0') {
            printf("  rank %" PRIu32 ": %s\n", record->ranks[i].rank, record->ranks[i].note);
        }
    }
}

/* Prints a bar whose length is the fraction `part` (0 to 1) of BAR characters. Prints dots instead
 * if `part` is NAN. */
static void print_bar(double part, char mark)
{
    char bar[BAR + 1];
    const double length = isnan(part) ? 0.0 : fmax(0.0, fmin(1.0, part)) * BAR + 0.5;

    memset(bar, isnan(part) ? '.' : ' ', BAR);
    memset(bar, mark, (size_t)length);
    bar[BAR] = '\0';
    printf(" |%s|", bar);
}

static void print_plot(const struct slc_sweep_record *record)
{
    const bool by_heldout = slc_sweep_record_by_heldout(record);
    double highest = 0.0;

    for (unsigned i = 0; i < record->run_count; i++) {
        highest = fmax(highest, record->runs[i].heldout_deviance);
    }
    printf("\n  %6s  %-*s  %s\n", "rank", BAR + 1, "0        best fit (=)",
           by_heldout ? "held-out deviance (#), 0 to the highest"
                      : "core consistency (#), 0 to 100 %");
    for (unsigned i = 0; i < record->rank_count; i++) {
        const struct slc_sweep_rank *rank = &record->ranks[i];
        const struct slc_sweep_run *best = slc_sweep_record_best(record, rank->rank);

        printf("  %6" PRIu32 " ", rank->rank);
        print_bar(best != NULL ? best->fit : NAN, '=');
        print_bar(!by_heldout    ? rank->consistency / 100.0
                  : best != NULL ? best->heldout_deviance / highest
                                 : NAN,
                  '#');
        printf("\n");
    }
}

/* Prints table, plot and suggestion on standard output. */
static void sweep_report(const struct slc_sweep_record *record,
                         const struct slc_sweep_suggestion *suggestion,
                         const char *folder)
{
    printf("\nRank sweep\n");
    print_table(record);
    print_plot(record);
    printf("\n");
    if (suggestion->rank > 0) {
        printf("Suggested rank: %" PRIu32 ", %s\n", suggestion->rank, suggestion->why);
    } else {
        printf("Suggested rank: none; %s\n", suggestion->why);
    }
    printf("Results\n  %-12s %s/%s/mode-K.npy, lambda.npy, run.json\n  %-12s %s/sweep.json\n\n",
           "best run", folder, suggestion->folder, "record", folder);
    (void)fflush(stdout);
}

/* Common data of the runs of a sweep. */
struct sweep {
    const struct cpd *cpd;
    const struct operands *operands;
    struct slc_held_folder *held; /* folder of the store, so that all runs read the same store */
    char folder[1024];
};

static int run_sweep_job(void *context, struct slc_sweep_job *job)
{
    const struct sweep *sweep = context;
    struct cpd cpd = {.args = sweep->cpd->args,
                      .command = sweep->cpd->command,
                      .argc = sweep->cpd->argc,
                      .argv = sweep->cpd->argv,
                      .files = slc_held_folder_files(sweep->held),
                      .session = {.stream = NULL},
                      .log = sweep->cpd->log,
                      .start_ns = slc_clock_ns(),
                      .write_seconds = -1,
                      .sweep = job};

    cpd.args.ranks = (struct option_counts){1, {job->record.rank}};
    cpd.args.rank = job->record.rank;
    cpd.args.runs = 1;
    cpd.args.seed = job->record.seed;
    cpd.args.folder = job->folder;
    cpd.args.max_seconds = job->max_seconds;
    cpd.args.quiet = !sweep->cpd->args.verbose;
    return cpd_run_one(&cpd, sweep->operands);
}

static json_t *sweep_identity(const struct cpd *cpd)
{
    const struct arguments *args = &cpd->args;
    const struct slc_sweep_method method = {
        .iterations = args->iterations,
        .tolerance = args->tolerance,
        .solver = &cpd->als,
        .precision = args->session.precision[1] == '3' ? SLC_F32 : SLC_F64,
        .deterministic = args->session.deterministic,
        .holdout = args->session.holdout,
        .holdout_seed = args->holdout_seed};

    return slc_sweep_identity(&cpd->session.store.manifest, &method);
}

/* Plans for the largest rank, so that an insufficient budget fails before the first run. */
static enum slc_status
prepare_sweep(void *context, uint32_t rank, json_t **identity, struct slc_error *err)
{
    const struct sweep *sweep = context;
    struct cpd cpd = {.args = sweep->cpd->args,
                      .files = slc_held_folder_files(sweep->held),
                      .session = {.stream = NULL}};
    enum slc_status status = slc_store_open_within(
        cpd.files, sweep->operands->text[0], cpd.args.session.memory, &cpd.session.store, err);

    cpd.args.rank = rank;
    cpd.als.rank = rank;
    SLC_THEN(status, solver_options_set(&cpd.args.solver, &cpd.session.store.manifest,
                                        &cpd.args.session, &cpd.args.tolerance, &cpd.als, err));
    SLC_THEN(status, session_plan(&cpd.session, &cpd.args.session, SLC_OP_CPD, 0, rank, err));
    if (status == SLC_OK && !cpd.args.quiet) {
        report_tensor(&cpd.session.store);
        report_plan(&cpd.session.plan, cpd.session.store.manifest.order);
    }
    *identity = status == SLC_OK ? sweep_identity(&cpd) : NULL;
    session_close(&cpd.session);
    return status;
}

static void start_sweep(void *context, bool fresh)
{
    const struct sweep *sweep = context;
    const struct arguments *options = &sweep->cpd->args;

    if (fresh) {
        log_json_truncate(sweep->cpd->log);
    }
    if (options->quiet) {
        return;
    }
    printf("Rank sweep of %s: rank%s ", sweep->operands->text[0],
           options->ranks.count > 1 ? "s" : "");
    for (unsigned r = 0; r < options->ranks.count; r++) {
        printf("%s%" PRIu64, r > 0 ? "," : "", options->ranks.number[r]);
    }
    printf("; seed%s %" PRIu64, options->runs > 1 ? "s" : "", options->seed);
    if (options->runs > 1) {
        printf(" to %" PRIu64, options->seed + options->runs - 1);
    }
    printf("; in %s\n", sweep->folder);
    (void)fflush(stdout);
}

static void print_run(void *context, const struct slc_sweep_run *run, bool before)
{
    const struct sweep *sweep = context;
    struct format_text a;

    if (sweep->cpd->args.quiet) {
        return;
    }
    printf("  rank %4" PRIu32 ", seed %" PRIu64 ": fit %.6f, %s after %u iterations (%s)%s\n",
           run->rank, run->seed, run->fit, run->reason, run->iterations,
           format_seconds(&a, run->seconds), before ? ", from an earlier part of the sweep" : "");
    (void)fflush(stdout);
}

/* Rejects options that a sweep does not support. */
static enum slc_status check_sweep(const struct arguments *args, struct slc_error *err)
{
    const char *without = args->stem != NULL      ? "--stem"
                          : args->ktensor != NULL ? "--ktensor"
                          : args->nowrite         ? "--nowrite"
                                                  : NULL;

    if (without != NULL) {
        return slc_fail(
            err, SLC_ERR_USAGE,
            "%s cannot be combined with several ranks or runs, whose results are folders", without);
    }
    if (strcmp(args->checkpoint, "auto") != 0 && strcmp(args->checkpoint, "none") != 0) {
        return slc_fail(
            err, SLC_ERR_USAGE,
            "--checkpoint %s: each run of a sweep has its own checkpoint folder; use auto or none",
            args->checkpoint);
    }
    if (strcmp(args->init, "random") != 0) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "--init %s: the runs of a sweep need random starts; omit --init",
                        args->init);
    }
    return SLC_OK;
}

/* Sets the folder of the sweep to the folder in the options, or to NAME.sweep. */
static enum slc_status choose_folder(struct sweep *sweep, struct slc_error *err)
{
    const char *output = sweep->cpd->args.folder;
    int length;

    if (output != NULL && strlen(output) >= sizeof sweep->folder) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "the name of the folder has %zu bytes; the limit is %zu", strlen(output),
                        sizeof sweep->folder - 1);
    }
    if (output != NULL) {
        (void)snprintf(sweep->folder, sizeof sweep->folder, "%s", output);
    } else {
        const char *name = cpd_output_store_name(sweep->operands->text[0], &length);

        (void)snprintf(sweep->folder, sizeof sweep->folder, "%.*s.sweep", length, name);
    }
    return cpd_output_check_folder(sweep->folder, err);
}

/* Returns the exit code of a sweep that ended without an error outside of its runs. */
static int end_code(enum slc_sweep_end end, int code)
{
    switch (end) {
    case SLC_SWEEP_COMPLETE:
        return 0;
    case SLC_SWEEP_STOPPED:
        return signals_exit_code();
    case SLC_SWEEP_TIME:
        return slc_status_exit_code(SLC_ERR_TIME_LIMIT);
    case SLC_SWEEP_RUN:
        break;
    }
    return code;
}

static enum slc_consistency consistency(const char *text)
{
    return text[1] == 'l'   ? SLC_CONSISTENCY_ALWAYS
           : text[0] == 'n' ? SLC_CONSISTENCY_NEVER
                            : SLC_CONSISTENCY_AUTO;
}

/* Makes all runs and prints the results. Returns the exit code. */
static int run_all_jobs(struct sweep *sweep, struct slc_sweep_record *record, struct slc_error *err)
{
    const struct arguments *args = &sweep->cpd->args;
    uint32_t ranks[OPTION_COUNTS_MAX];
    const struct slc_sweep_options options = {.files = slc_held_folder_files(sweep->held),
                                              .store = sweep->operands->text[0],
                                              .folder = sweep->folder,
                                              .ranks = ranks,
                                              .rank_count = args->ranks.count,
                                              .runs = args->runs,
                                              .seed = args->seed,
                                              .keep_all = strcmp(args->keep, "all") == 0,
                                              .consistency = consistency(args->consistency),
                                              .restart = args->restart,
                                              .max_seconds = args->max_seconds,
                                              .memory_bytes = args->session.memory,
                                              .threads = (unsigned)args->session.threads,
                                              .stop = signals_stop(),
                                              .prepare = prepare_sweep,
                                              .starting = start_sweep,
                                              .run = run_sweep_job,
                                              .completed = print_run,
                                              .context = sweep};
    struct slc_sweep_suggestion suggestion;
    enum slc_sweep_end end;
    int code;

    for (unsigned i = 0; i < args->ranks.count; i++) {
        ranks[i] = (uint32_t)args->ranks.number[i];
    }
    enum slc_status status = slc_sweep(&options, record, &suggestion, &end, &code, err);
    if (status == SLC_OK) {
        code = end_code(end, code);
    } else {
        code = console_error(err);
        code = status == SLC_ERR_INTERRUPTED ? signals_exit_code() : code;
    }
    if (code == slc_status_exit_code(SLC_ERR_TIME_LIMIT) || code > 128) {
        console_note("repeat the command to resume the sweep recorded in %s/sweep.json",
                     sweep->folder);
    } else if (code == 0 && !args->quiet) {
        sweep_report(record, &suggestion, sweep->folder);
    }
    return code;
}

static enum slc_status hold_store(struct sweep *sweep, struct slc_error *err)
{
    struct slc_manifest *manifest = slc_malloc(sizeof *manifest);

    SLC_TRY(slc_check_memory(manifest != NULL, err, "for a manifest"));
    enum slc_status status =
        slc_store_hold(slc_files_system(), sweep->operands->text[0], &sweep->held, manifest, err);
    slc_free(manifest);
    return status;
}

int cpd_run_sweep(const struct cpd *cpd, const struct operands *operands)
{
    struct sweep sweep = {.cpd = cpd, .operands = operands};
    struct slc_sweep_record record = SLC_SWEEP_RECORD_INIT;
    struct slc_error err = SLC_ERROR_INIT;

    if (check_sweep(&cpd->args, &err) != SLC_OK || choose_folder(&sweep, &err) != SLC_OK) {
        return console_error(&err);
    }
    if (hold_store(&sweep, &err) != SLC_OK) {
        slc_held_folder_close(sweep.held);
        return console_error(&err);
    }
    int code = run_all_jobs(&sweep, &record, &err);
    slc_sweep_record_destroy(&record);
    slc_held_folder_close(sweep.held);
    return code;
}
