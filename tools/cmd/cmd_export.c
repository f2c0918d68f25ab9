/* sluice export: writes a store as FROSTT text or in a binary format, and the factors of a run in
 * another format. All formats are lossless. */
#include "base/error/clock.h"
#include "base/error/error.h"
#include "base/memory/memory.h"
#include "base/thread/team.h"
#include "convert/export/export.h"
#include "convert/export/export_form.h"
#include "report/export_run.h"
#include "storage/file/output.h"
#include "storage/model/model.h"
#include "storage/model/model_forms.h"
#include "storage/model/run_folder.h"
#include "tools/forecast/forecast.h"
#include "tools/forecast/forecast_ahead.h"
#include "tools/progress/cleanup.h"
#include "tools/progress/console.h"
#include "tools/progress/format.h"
#include "tools/progress/progress.h"
#include "tools/session/commands.h"
#include "tools/session/common_options.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Duration of a trial of decoding and formatting, in seconds. */
#define TRIAL_SECONDS 0.3
#define BRIEF_SECONDS 0.02 /* duration of the trial at the start of a run */
/* Time to write rows in order, divided by the time to format them. */
#define IN_ORDER 1.6

struct arguments {
    const char *format;
    const char *index_base;
    bool header;
    uint64_t memory;
    uint64_t threads;
    const char *progress;
    const char *log_json;
    bool raw_names;
    bool force;
    bool quiet;
    struct forecast_options forecast;
};

static const char *const format_choices[] = {"auto",   "tns",     "splatt-bin", "npz", "scipy",
                                             "matlab", "ktensor", "splatt",     "csv", NULL};
static const char *const base_choices[] = {"0", "1", NULL};

static const struct option options[] = {
    {"format", OPTION_CHOICE, offsetof(struct arguments, format), .value = "FORM",
     .fallback = "auto", .choices = format_choices,
     .help = "format of a store: tns, splatt-bin, npz, scipy or matlab; of a run: matlab, "
             "ktensor, splatt or csv; auto chooses by the suffix of OUT"},
    {"index-base", OPTION_CHOICE, offsetof(struct arguments, index_base), .value = "B",
     .fallback = "1", .choices = base_choices, .help = "first index in the text: 0 or 1"},
    {"header", OPTION_FLAG, offsetof(struct arguments, header),
     .help = "start the text with a header that states the index base and the mode sizes (of "
             "extended FROSTT, or of GenTen with --index-base 0)"},
    {"no-escape", OPTION_FLAG, offsetof(struct arguments, raw_names),
     .help = "with csv: write names as they are, without an apostrophe before names that a "
             "spreadsheet could run as a formula"},
    OPTION_ROW_MEMORY(arguments, memory),
    OPTION_ROW_THREADS(arguments, threads),
    OPTION_ROW_OVERWRITE(arguments, force),
    OPTION_ROW_PROGRESS(arguments, progress),
    OPTION_ROW_LOG_JSON(arguments, log_json),
    OPTION_ROW_QUIET(arguments, quiet),
    FORECAST_OPTION_ROWS(arguments, forecast),
    {.name = NULL}};

/* Chooses the format from --format or the name of the output. */
static enum slc_status choose_form(const struct arguments *args,
                                   const char *output,
                                   bool run,
                                   const struct slc_export_form **form,
                                   struct slc_error *err)
{
    const bool by_name = strcmp(args->format, "auto") == 0;

    return slc_export_form_choose(run ? SLC_EXPORT_MODEL : SLC_EXPORT_TENSOR,
                                  by_name ? NULL : args->format, output, form, err);
}

/* Mean length of a number as text, such as "-1.2345678901234567e-01", with a separator. Half of the
 * numbers are assumed to be negative. */
#define NUMBER_BYTES 23.5
enum {
    TOUCHED_BYTES = 2 << 20, /* pages of program and libraries that are touched later */
    TRIAL_NUMBERS = 4096     /* numbers that a trial formats, in 1 to 2 ms */
};

/* Returns the time in seconds to format a number. */
static double measure_formatting(void)
{
    const uint64_t start_ns = slc_clock_thread_ns();
    char text[40];
    int bytes = 0;

    for (int i = 0; i < TRIAL_NUMBERS; i++) {
        bytes += snprintf(text, sizeof text, "%.16e ", 1.0 / (i + 3));
    }
    return bytes > 0 ? 1e-9 * (double)(slc_clock_thread_ns() - start_ns) / TRIAL_NUMBERS : 0;
}

/* Export of the factors of a run. */
struct model_job {
    const struct arguments *args;
    struct slc_export_run_options request;
};

/* Forecasts the export of factors. */
static enum slc_status forecast_model(const struct model_job *job,
                                      bool brief,
                                      struct slc_export_run_report *found,
                                      struct forecast *forecast,
                                      struct slc_error *err)
{
    const bool text = job->request.form != SLC_MODEL_MATLAB;

    SLC_TRY(slc_export_run_prepare(&job->request, found, err));
    char *first = slc_run_folder_factor(job->request.run, 0);
    SLC_TRY(slc_check_memory(first != NULL, err, "for a path"));
    *forecast = (struct forecast){.command = "export",
                                  .brief = brief,
                                  .budget_bytes = job->args->memory,
                                  .output = job->request.output,
                                  .passes = "one over the factors, one over the output",
                                  .free_bytes = UINT64_MAX,
                                  .read_bytes = found->factor_bytes};
    forecast->written_bytes =
        text ? (uint64_t)(NUMBER_BYTES * (double)found->numbers) : forecast->read_bytes;
    forecast->final_bytes = forecast->written_bytes;
    forecast_add_buffer(forecast, "process", slc_memory_resident() + TOUCHED_BYTES,
                        "program, libraries, readers");
    forecast_add_buffer(forecast, "writing",
                        SLC_MODEL_PIECE_NUMBERS * sizeof(double) + SLC_OUTPUT_BUFFER_BYTES,
                        "rows of a factor and their output");
    forecast->memory_bytes = forecast->buffer[0].bytes + forecast->buffer[1].bytes;
    if (!job->args->forecast.no_probe) {
        forecast_try_drives(forecast, first);
        forecast_add_phase(forecast, "begin");
        forecast_add_part(forecast, "opening", FORECAST_START_SECONDS);
        forecast_add_phase(forecast, "export");
        forecast_add_part(forecast, "reading",
                          slc_ratio((double)forecast->read_bytes, forecast->read_rate));
        forecast_add_part(forecast, "formatting",
                          text ? measure_formatting() * (double)found->numbers : 0);
        forecast_add_part(forecast, "writing",
                          slc_ratio((double)forecast->written_bytes, forecast->write_rate));
    }
    slc_free(first);
    return SLC_OK;
}

static enum slc_status
estimate_model_ahead(const void *context, struct forecast *forecast, struct slc_error *err)
{
    struct slc_export_run_report found;

    return forecast_model(context, true, &found, forecast, err);
}

/* Formats what is written: a file, a folder, or a file and the number of others. */
static const char *describe_target(const struct model_job *job,
                                   const struct slc_export_run_report *report,
                                   char text[4200])
{
    if (job->request.form == SLC_MODEL_CSV) {
        (void)snprintf(text, 4200, "the folder %s", job->request.output);
    } else if (job->request.form == SLC_MODEL_SPLATT) {
        (void)snprintf(text, 4200, "%s and %u more file%s", report->first, report->order,
                       plural(report->order));
    } else {
        (void)snprintf(text, 4200, "%s", report->first);
    }
    return text;
}

/* Starts the signal thread, which removes unfinished outputs after a signal. */
static enum slc_status
watch_outputs(void *context, unsigned count, const char *const *paths, struct slc_error *err)
{
    struct cleanup_outputs outputs = {.count = count};

    (void)context;
    for (unsigned f = 0; f < count; f++) {
        outputs.paths[f] = paths[f];
    }
    return cleanup_watch_all(&outputs, err);
}

static enum slc_status export_model(const struct arguments *args,
                                    const struct operands *operands,
                                    const struct slc_export_form *form,
                                    struct slc_error *err)
{
    const struct model_job job = {.args = args,
                                  .request = {.run = operands->text[0],
                                              .output = operands->text[1],
                                              .form = form->model,
                                              .memory_bytes = args->memory,
                                              .overwrite = args->force,
                                              .raw_names = args->raw_names,
                                              .writing = watch_outputs,
                                              .written = cleanup_publishing}};
    struct slc_export_run_report report;
    struct forecast_ahead ahead;
    char target[4200];

    if (args->header) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "--header applies to a store, not to the factors of a run");
    }
    if (args->forecast.dry_run) {
        struct forecast forecast;

        SLC_TRY(forecast_model(&job, false, &report, &forecast, err));
        return forecast_dry_run(&forecast, args->forecast.json, err,
                                "Would export the factors of %s to %s\n", job.request.run,
                                describe_target(&job, &report, target));
    }
    forecast_ahead(&ahead, args->quiet, job.request.run, estimate_model_ahead, &job);
    SLC_TRY(slc_export_run(&job.request, &report, err));
    if (!args->quiet) {
        printf("Exported %u factors of rank %" PRIu32 " to %s\n", report.order, report.rank,
               describe_target(&job, &report, target));
    }
    /* SPLATT factors are several files, whose sizes are not compared with the forecast. */
    forecast_compare(&ahead, args->quiet,
                     form->model == SLC_MODEL_SPLATT ? NULL : job.request.output);
    return SLC_OK;
}

/* Export of a tensor. */
struct tensor_job {
    const struct arguments *args;
    const struct slc_export_options *request;
    const struct slc_export_form *form;
};

static void estimate_times(const struct tensor_job *job,
                           const struct slc_export_forecast *found,
                           struct forecast *forecast)
{
    char blocks[4096 + 16];

    (void)snprintf(blocks, sizeof blocks, "%.4000s/%s", job->request->store, SLC_BLCO_NAME);
    forecast_try_drives(forecast, blocks);
    forecast_add_phase(forecast, "begin");
    forecast_add_part(forecast, "opening", FORECAST_START_SECONDS);
    forecast_add_phase(forecast, "export");
    forecast_add_part(forecast, "reading",
                      slc_ratio((double)found->read_bytes, forecast->read_rate));
    forecast_add_part(forecast, "formatting",
                      (job->form->text ? IN_ORDER : 1) *
                          (found->decode_seconds + found->format_seconds));
    if (found->in_parts) {
        forecast_add_phase(forecast, "write");
    }
    forecast_add_part(forecast, "writing", slc_ratio(found->output_bytes, forecast->write_rate));
}

static enum slc_status forecast_export(const struct tensor_job *job,
                                       bool brief,
                                       struct slc_export_forecast *found,
                                       struct forecast *forecast,
                                       struct slc_error *err)
{
    const struct slc_export_options *request = job->request;
    const double trial = job->args->forecast.no_probe ? 0 : brief ? BRIEF_SECONDS : TRIAL_SECONDS;

    SLC_TRY(job->form->text
                ? slc_export_forecast(request, trial, found, err)
                : slc_export_lists_forecast(request, job->form->lists, trial, found, err));
    *forecast =
        (struct forecast){.command = "export",
                          .brief = brief,
                          .budget_bytes = job->args->memory,
                          .memory_bytes = found->memory_bytes,
                          .output = strcmp(request->output, "-") != 0 ? request->output : NULL,
                          .free_bytes = UINT64_MAX,
                          .final_bytes = (uint64_t)found->output_bytes,
                          .read_bytes = found->read_bytes,
                          .written_bytes = (uint64_t)found->output_bytes};
    forecast_add_buffer(forecast, "process", found->fixed_bytes,
                        "program, libraries, index, a block");
    forecast_add_buffer(forecast, "workers", found->memory_bytes - found->fixed_bytes,
                        job->form->text ? "a decoder and text per thread"
                                        : "a block, a decoder and lists per thread");
    if (found->decode_seconds > 0) {
        estimate_times(job, found, forecast);
    }
    return SLC_OK;
}

static enum slc_status
estimate_ahead(const void *context, struct forecast *forecast, struct slc_error *err)
{
    struct slc_export_forecast found;

    return forecast_export(context, true, &found, forecast, err);
}

static enum slc_status dry_run(const struct tensor_job *job, struct slc_error *err)
{
    struct slc_export_forecast found;
    struct forecast forecast;
    char passes[64];

    SLC_TRY(forecast_export(job, false, &found, &forecast, err));
    (void)snprintf(passes, sizeof passes, "%" PRIu64 " over the store, 1 over the output",
                   found.scans);
    forecast.passes = passes;
    return forecast_dry_run(&forecast, job->args->forecast.json, err, "Would export %s to %s\n",
                            job->request->store, job->request->output);
}

static enum slc_status export_tensor(const struct arguments *args,
                                     const struct operands *operands,
                                     const struct slc_export_form *form,
                                     struct slc_error *err)
{
    const struct slc_export_options export_options = {
        .store = operands->text[0],
        .output = operands->text[1],
        .index_base = (unsigned)(args->index_base[0] - '0'),
        .header = args->header,
        .memory_bytes = args->memory,
        .threads = args->threads != 0 ? (unsigned)args->threads : slc_team_default_workers(),
        .overwrite = args->force,
        .progress = progress_phase};
    const struct tensor_job job = {args, &export_options, form};
    const bool to_stdout = strcmp(export_options.output, "-") == 0;
    struct forecast_ahead ahead;
    struct format_text count;
    struct slc_export_report report = {.nnz = 0};

    SLC_TRY(cleanup_watch(args->forecast.dry_run ? "-" : export_options.output, err));
    if (to_stdout && !form->text) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "--format %s cannot be written to standard output: use a file name "
                        "instead of -",
                        form->name);
    }
    if (args->header && !form->text) {
        return slc_fail(err, SLC_ERR_USAGE, "--header applies to text, not to --format %s",
                        form->name);
    }
    if (args->forecast.dry_run) {
        return dry_run(&job, err);
    }
    forecast_ahead(&ahead, args->quiet, export_options.store, estimate_ahead, &job);
    SLC_TRY(form->text ? slc_export_tns(&export_options, &report, err)
                       : slc_export_lists(&export_options, form->lists, &report.nnz, err));
    console_clear_live();
    if (!args->quiet && form->text && !to_stdout) {
        printf("Exported %s rows to %s, indices from %u\n", format_count(&count, report.nnz),
               export_options.output, export_options.index_base);
    } else if (!args->quiet && !to_stdout) {
        printf("Exported %s nonzeros to %s as %s\n", format_count(&count, report.nnz),
               export_options.output, form->name);
    }
    console_note_lost(report.base_lost, report.dims_lost, report.order, report.dims,
                      ", or export with --header");
    forecast_compare(&ahead, args->quiet || to_stdout, to_stdout ? NULL : export_options.output);
    return SLC_OK;
}

/* Sets *found to whether `folder` belongs to a sweep. Reading such a folder as a run fails with a
 * message that names the runs of the sweep. */
static enum slc_status is_sweep(const char *folder, bool *found, struct slc_error *err)
{
    const struct slc_files *files = slc_files_system();
    char *path = slc_path_join(folder, "sweep.json");
    struct slc_file_stat stat;

    SLC_TRY(slc_check_memory(path != NULL, err, "for a path"));
    *found = files->stat_path(files->self, path, &stat) >= 0;
    slc_free(path);
    return SLC_OK;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct arguments args = {.index_base = NULL};
    struct slc_error err = SLC_ERROR_INIT;
    const struct slc_export_form *form;
    struct operands operands;
    bool is_run;
    int code;

    if (!command_begin(command, argc, argv, &args, &operands, &code)) {
        return code;
    }
    console_start(args.quiet ? CONSOLE_QUIET : CONSOLE_NORMAL);
    progress_start(args.progress, args.quiet);
    enum slc_status status = slc_run_folder_find(operands.text[0], &is_run, &err);
    if (status == SLC_OK && !is_run) {
        status = is_sweep(operands.text[0], &is_run, &err);
    }
    SLC_THEN(status, choose_form(&args, operands.text[1], is_run, &form, &err));
    SLC_THEN(status, is_run ? export_model(&args, &operands, form, &err)
                            : export_tensor(&args, &operands, form, &err));
    return status == SLC_OK ? 0 : console_error(&err);
}

const struct command command_export = {
    .name = "export",
    .summary = "write a store, or the factors of a run, in another format",
    .example = "sluice export flights-4d.slc flights-4d.tns",
    .operands = "X.slc|RUN OUT",
    .operands_min = 2,
    .operands_max = 2,
    .options = options,
    .notes = "A store is written as text by default, with the fewest digits from which the same "
             "value is read\nback; OUT may be - for standard output. A run is a folder written by "
             "sluice cpd. Its factors and\nweights are written to one file (matlab, ktensor), a "
             "folder OUT (csv), or files whose names start\nwith OUT (splatt).",
    .run = run,
};
