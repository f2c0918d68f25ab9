/* sluice check: verifies a store and prints a line per error. */
#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "base/text/plain_text.h"
#include "base/thread/team.h"
#include "convert/forecast/store_trial.h"
#include "storage/verify/verify.h"
#include "tools/forecast/forecast_ahead.h"
#include "tools/options/fields.h"
#include "tools/progress/console.h"
#include "tools/progress/format.h"
#include "tools/progress/progress.h"
#include "tools/progress/signals.h"
#include "tools/session/commands.h"
#include "tools/session/common_options.h"
#include "tools/session/session.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* The same values as in storage/verify/verify.c: memory of pages that are not touched yet, and
 * memory per thread for its stack and arena. */
#define UNTOUCHED_BYTES (UINT64_C(2) << 20)
#define WORKER_BYTES    (UINT64_C(128) << 10)
#define TRIAL_SECONDS   0.3
#define BRIEF_SECONDS   0.02 /* seconds of the trial at the start of a run */
/* Times per nonzero, divided by the time to decode a nonzero. CHECKED_DECODING: to decode it and
 * compare keys, ranges and sums. CHECKSUM_SHARE: only to compute checksums. */
#define CHECKED_DECODING 9.5
#define CHECKSUM_SHARE   0.15

struct arguments {
    bool fast;
    uint64_t memory;
    uint64_t threads;
    const char *progress;
    const char *log_json;
    bool quiet;
    struct forecast_options forecast;
};

static const struct option options[] = {
    {"fast", OPTION_FLAG, offsetof(struct arguments, fast),
     .help = "verify structure and checksums only; decode no blocks"},
    OPTION_ROW_MEMORY(arguments, memory),
    OPTION_ROW_THREADS(arguments, threads),
    OPTION_ROW_PROGRESS(arguments, progress),
    OPTION_ROW_LOG_JSON(arguments, log_json),
    OPTION_ROW_QUIET(arguments, quiet),
    FORECAST_OPTION_ROWS(arguments, forecast),
    {.name = NULL}};

static void print_finding(void *context, const struct slc_error *fault)
{
    struct fault_text text;

    (void)context;
    console_clear_live();
    printf("%s\n", fault_text(&text, fault));
}

/* Prints a note with the command line that completes or removes a file left by an interrupted
 * run. */
static void print_leftover(void *context, const struct slc_leftover *leftover)
{
    const struct operands *operands = context;
    const char *store = operands->text[0];
    const char *layout = slc_layout_name(leftover->layout);
    char name[NAME_MAX + 1];

    (void)snprintf(name, sizeof name, "%s", leftover->name);
    slc_text_make_plain(name);
    printf("%s/%s: left by an interrupted run; not part of the store: ", store, name);
    if (strcmp(leftover->name, SLC_COMPLETE_STATE_NAME) == 0) {
        printf("repeat the conversion command to remove it, or delete it\n");
    } else if (strstr(leftover->name, "stripe") != NULL) {
        printf("the next command that changes layouts removes this file and the stripes that it "
               "lists, if the store owns them\n");
    } else if (leftover->layout == SLC_LAYOUT_BLCO) {
        printf("the next command that changes layouts replaces this file; you can delete it\n");
    } else {
        printf("'sluice layout %s --%s %u' completes the layout, '--drop %s-%u' removes it\n",
               store, layout, leftover->mode + 1, layout, leftover->mode + 1);
    }
}

/* Forecasts the check, with memory divided as in verify.c. All files are read once, except files of
 * names, which are read twice. */
static enum slc_status forecast_check(const struct arguments *args,
                                      const struct slc_store *store,
                                      struct forecast *forecast,
                                      struct slc_error *err)
{
    const struct slc_layout_info *info = slc_reader_info(store->reader);
    const unsigned threads =
        args->threads != 0 ? (unsigned)args->threads : slc_team_default_workers();
    const uint64_t each = slc_buffer_footprint(info->max_block_bytes, SLC_PAGES_SMALL) +
                          (args->fast ? 0 : slc_decoder_memory_bytes(info, SLC_F64)) + WORKER_BYTES;
    const uint64_t fixed = slc_memory_resident() + UNTOUCHED_BYTES;
    const uint64_t fitting = args->memory > fixed ? (args->memory - fixed) / each : 0;
    const uint64_t workers =
        slc_min_u64(slc_min_u64(threads, fitting), slc_max_u64(info->block_count, 1));
    const double nnz = (double)info->nnz * store->manifest.layout_count;
    struct slc_store_trial trial;

    if (workers == 0) {
        return slc_fail_budget(err, args->memory, fixed + each, "checking this store");
    }
    forecast->read_bytes = slc_manifest_file_bytes(&store->manifest);
    /* Each file of names is read as a whole, and then a second time in pieces. */
    for (unsigned i = 0; i < store->manifest.names_count; i++) {
        forecast->read_bytes += store->manifest.names[i].file_bytes;
    }
    /* Opening the store for the forecast has already touched the UNTOUCHED_BYTES. */
    forecast->memory_bytes = fixed - UNTOUCHED_BYTES + workers * each;
    forecast_add_buffer(forecast, "process", fixed - UNTOUCHED_BYTES,
                        "program, libraries, index of blocks");
    forecast_add_buffer(forecast, "workers", workers * each, "a block and a decoder per thread");
    if (!args->forecast.no_probe) {
        SLC_TRY(slc_store_trial(store->reader, forecast->brief ? BRIEF_SECONDS : TRIAL_SECONDS,
                                NULL, &trial, err));
    }
    if (!args->forecast.no_probe && (trial.nnz > 0 || info->nnz == 0)) {
        forecast_try_drives(forecast, slc_reader_path(store->reader));
        forecast_add_phase(forecast, "begin");
        forecast_add_part(forecast, "opening", FORECAST_START_SECONDS);
        forecast_add_phase(forecast, "check");
        forecast_add_part(forecast, "reading",
                          slc_ratio((double)forecast->read_bytes, forecast->read_rate));
        forecast_add_part(forecast, args->fast ? "checksums" : "decoding",
                          (args->fast ? CHECKSUM_SHARE : CHECKED_DECODING) * trial.decode_seconds *
                              nnz / (double)workers);
    }
    return SLC_OK;
}

/* The store to check and the options. */
struct job {
    const struct arguments *args;
    const char *path;
};

static enum slc_status
forecast_path(const struct job *job, struct forecast *forecast, struct slc_error *err)
{
    struct slc_store store;
    enum slc_status status =
        slc_store_open_within(slc_files_system(), job->path, job->args->memory, &store, err);

    if (status == SLC_OK) {
        status = forecast_check(job->args, &store, forecast, err);
        slc_store_close(&store);
    }
    return status;
}

static struct forecast new_forecast(const struct arguments *args)
{
    return (struct forecast){.command = "check",
                             .budget_bytes = args->memory,
                             .passes = "one over all files of the store",
                             .free_bytes = UINT64_MAX};
}

static enum slc_status
estimate_ahead(const void *context, struct forecast *forecast, struct slc_error *err)
{
    const struct job *job = context;

    *forecast = new_forecast(job->args);
    forecast->brief = true;
    return forecast_path(job, forecast, err);
}

static enum slc_status dry_run(const struct job *job, struct slc_error *err)
{
    struct forecast forecast = new_forecast(job->args);

    SLC_TRY(forecast_path(job, &forecast, err));
    return forecast_dry_run(&forecast, job->args->forecast.json, err, "Would check %s\n",
                            job->path);
}

/* A signal ends a check at once, because a check changes nothing. */
static void end_check(void *unused)
{
    (void)unused;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct arguments args = {.fast = false};
    struct slc_verify_options verify = {.files = NULL};
    struct slc_verify_report report = {.files = 0};
    struct job job = {.args = &args};
    struct forecast_ahead ahead;
    struct slc_error err = SLC_ERROR_INIT;
    struct operands operands;
    struct format_text bytes;
    struct format_text count;
    int code;

    if (!command_begin(command, argc, argv, &args, &operands, &code)) {
        return code;
    }
    console_start(args.quiet ? CONSOLE_QUIET : CONSOLE_NORMAL);
    progress_start(args.progress, args.quiet);
    if (signals_start(end_check, NULL, &err) != SLC_OK) {
        return console_error(&err);
    }
    job.path = operands.text[0];
    if (args.forecast.dry_run) {
        return dry_run(&job, &err) == SLC_OK ? 0 : console_error(&err);
    }
    forecast_ahead(&ahead, args.quiet, operands.text[0], estimate_ahead, &job);
    verify.decode = !args.fast;
    verify.threads = args.threads != 0 ? (unsigned)args.threads : slc_team_default_workers();
    verify.memory_bytes = args.memory;
    verify.found = args.quiet ? NULL : print_finding;
    verify.leftover = args.quiet ? NULL : print_leftover;
    verify.context = &operands;
    verify.progress = progress_phase;
    enum slc_status status = slc_verify_store(operands.text[0], &verify, &report, &err);
    console_clear_live();
    if (status != SLC_OK) {
        code = console_error(&err);
        if (report.findings > 1) {
            console_note("%" PRIu64 " errors in %s; the first error is printed above",
                         report.findings, operands.text[0]);
        }
        return code;
    }
    if (!args.quiet) {
        printf("%s is sound: %" PRIu64 " files, %" PRIu64 " block%s, %s nonzeros", operands.text[0],
               report.files, report.blocks, plural(report.blocks),
               format_count(&count, report.layouts > 0 ? report.nnz / report.layouts : 0));
        if (report.layouts > 1) {
            printf(" in each of %" PRIu64 " layouts", report.layouts);
        }
        printf(", %s %s\n", format_data(&bytes, (double)report.bytes),
               args.fast ? "checksummed" : "checksummed and decoded");
    }
    forecast_compare(&ahead, args.quiet, NULL);
    return 0;
}

const struct command command_check = {
    .name = "check",
    .summary = "verify the structure, every checksum and every nonzero of a store",
    .example = "sluice check flights-4d.slc",
    .operands = "X.slc",
    .operands_min = 1,
    .operands_max = 1,
    .options = options,
    .notes = "Errors are printed as FILE: block B, offset O: MESSAGE. The exit code is 5 if there "
             "are errors,\nand 3 if X.slc is not a store.",
    .run = run,
};
