/* See export_run.h. */
#include "tools/report/export_run.h"

#include "base/error/clock.h"
#include "base/memory/memory.h"
#include "report/export_run.h"
#include "storage/file/output.h"
#include "storage/model/model_forms.h"
#include "storage/model/run_folder.h"
#include "tools/forecast/forecast_ahead.h"
#include "tools/progress/cleanup.h"

#include <inttypes.h>
#include <stdio.h>

/* What a number is as text, "-1.2345678901234567e-01" and a separator: half of them are negative.
 */
#define NUMBER_BYTES 23.5
/* Of UNTOUCHED_BYTES, what comes to be touched. */
enum { TOUCHED_BYTES = 2 << 20 };
/* Of a trial of formatting: a millisecond or two. */
enum { TRIAL_NUMBERS = 4096 };

/* Seconds of a number. */
static double try_formatting(void)
{
    const uint64_t start_ns = slc_clock_thread_ns();
    char text[40];
    int bytes = 0;

    for (int i = 0; i < TRIAL_NUMBERS; i++) {
        bytes += snprintf(text, sizeof text, "%.16e ", 1.0 / (i + 3));
    }
    return bytes > 0 ? 1e-9 * (double)(slc_clock_thread_ns() - start_ns) / TRIAL_NUMBERS : 0;
}

/* What is exported, and how. */
struct job {
    const struct export_run_options *options;
    const struct slc_export_run_options *asked;
};

/* What it would take. */
static enum slc_status forecast_model(const struct job *job,
                                      bool brief,
                                      struct slc_export_run_report *found,
                                      struct forecast *forecast,
                                      struct slc_error *err)
{
    const struct export_run_options *options = job->options;
    const bool text = options->form != SLC_MODEL_MATLAB;
    char *first = slc_run_folder_factor(options->run, 0);
    const enum slc_status status = first == NULL
                                       ? slc_fail(err, SLC_ERR_MEMORY, "no memory for a path")
                                       : slc_export_run_judge(job->asked, found, err);

    if (status != SLC_OK) {
        slc_free(first);
        return status;
    }
    *forecast = (struct forecast){.command = "export",
                                  .brief = brief,
                                  .budget_bytes = options->memory_bytes,
                                  .output = options->output,
                                  .passes = "one over the factors, one over the output",
                                  .free_bytes = UINT64_MAX,
                                  .read_bytes = found->factor_bytes};
    forecast->written_bytes =
        text ? (uint64_t)(NUMBER_BYTES * (double)found->numbers) : forecast->read_bytes;
    forecast->final_bytes = forecast->written_bytes;
    forecast_buffer(forecast, "process", slc_memory_resident() + TOUCHED_BYTES,
                    "program, libraries, readers");
    forecast_buffer(forecast, "writing",
                    SLC_MODEL_PIECE_NUMBERS * sizeof(double) + SLC_OUTPUT_BUFFER_BYTES,
                    "rows of a factor, and what they become");
    forecast->memory_bytes = forecast->buffer[0].bytes + forecast->buffer[1].bytes;
    if (!options->forecast.no_probe) {
        forecast_try_drives(forecast, first);
        forecast_phase(forecast, "begin");
        forecast_part(forecast, "opening", FORECAST_START_SECONDS);
        forecast_phase(forecast, "export");
        forecast_part(forecast, "reading",
                      forecast->read_rate > 0 ? (double)forecast->read_bytes / forecast->read_rate
                                              : 0);
        forecast_part(forecast, "formatting", text ? try_formatting() * (double)found->numbers : 0);
        forecast_part(
            forecast, "writing",
            forecast->write_rate > 0 ? (double)forecast->written_bytes / forecast->write_rate : 0);
    }
    slc_free(first);
    return SLC_OK;
}

static enum slc_status
judge_ahead(const void *context, struct forecast *forecast, struct slc_error *err)
{
    struct slc_export_run_report found;

    return forecast_model(context, true, &found, forecast, err);
}

/* The same with whether the disk has room. */
static enum slc_status tell_forecast(const struct job *job, struct slc_error *err)
{
    const struct export_run_options *options = job->options;
    struct slc_export_run_report found;
    struct forecast forecast;
    enum slc_status status = forecast_model(job, false, &found, &forecast, err);

    if (status == SLC_OK) {
        status = forecast_check_room(&forecast, err);
    }
    if (status == SLC_OK && !options->forecast.json) {
        printf("Would export the factors of %s to %s\n", options->run, found.first);
    }
    return status == SLC_OK ? forecast_report(&forecast, options->forecast.json, err) : status;
}

/* What was made: a file, a folder of files, or files side by side, which nothing is told of. */
static const char *output_of(const struct export_run_options *options)
{
    return options->form == SLC_MODEL_SPLATT ? NULL : options->output;
}

/* A signal removes what is unfinished. */
static enum slc_status
watch(void *context, unsigned count, const char *const *paths, struct slc_error *err)
{
    struct cleanup_outputs outputs = {.count = count};

    (void)context;
    for (unsigned f = 0; f < count; f++) {
        outputs.paths[f] = paths[f];
    }
    return cleanup_watch_all(&outputs, err);
}

enum slc_status export_run(const struct export_run_options *options, struct slc_error *err)
{
    const struct slc_export_run_options export_options = {.run = options->run,
                                                          .output = options->output,
                                                          .form = options->form,
                                                          .memory_bytes = options->memory_bytes,
                                                          .overwrite = options->overwrite,
                                                          .writing = watch,
                                                          .written = cleanup_publishing};
    const struct job job = {options, &export_options};
    struct slc_export_run_report report;
    struct forecast_ahead ahead;

    if (options->forecast.dry_run) {
        return tell_forecast(&job, err);
    }
    forecast_ahead(&ahead, options->quiet, options->run, judge_ahead, &job);
    SLC_TRY(slc_export_run(&export_options, &report, err));
    if (!options->quiet) {
        printf("Exported %u factors of rank %" PRIu32 " to %s\n", report.order, report.rank,
               report.first);
    }
    forecast_compare(&ahead, options->quiet, output_of(options));
    return SLC_OK;
}
