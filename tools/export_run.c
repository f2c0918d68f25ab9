/* See export_run.h. */
#include "export_run.h"

#include "base/clock.h"
#include "base/memory.h"
#include "results/export_run.h"
#include "storage/model_forms.h"
#include "storage/output.h"
#include "storage/run_folder.h"
#include "unfinished.h"

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
    const uint64_t start_ns = slc_clock_ns();
    char text[40];
    int bytes = 0;

    for (int i = 0; i < TRIAL_NUMBERS; i++) {
        bytes += snprintf(text, sizeof text, "%.16e ", 1.0 / (i + 3));
    }
    return bytes > 0 ? slc_seconds_since(start_ns) / TRIAL_NUMBERS : 0;
}

/* What it would take, and whether the disk has room. */
static enum slc_status tell_forecast(const struct export_run_options *options,
                                     const struct slc_export_run_report *found,
                                     struct slc_error *err)
{
    const bool text = options->form != SLC_MODEL_MATLAB;
    struct forecast forecast = {.command = "export",
                                .budget_bytes = options->memory_bytes,
                                .output = options->output,
                                .passes = "one over the factors, one over the output",
                                .free_bytes = UINT64_MAX};
    char *first = slc_run_folder_factor(options->run, 0);
    enum slc_status status =
        first == NULL ? slc_fail(err, SLC_ERR_MEMORY, "no memory for a path") : SLC_OK;

    forecast.read_bytes = found->factor_bytes;
    forecast.written_bytes =
        text ? (uint64_t)(NUMBER_BYTES * (double)found->numbers) : forecast.read_bytes;
    forecast.final_bytes = forecast.written_bytes;
    forecast_buffer(&forecast, "process", slc_memory_resident() + TOUCHED_BYTES,
                    "program, libraries, readers");
    forecast_buffer(&forecast, "writing",
                    SLC_MODEL_PIECE_NUMBERS * sizeof(double) + SLC_OUTPUT_BUFFER_BYTES,
                    "rows of a factor, and what they become");
    forecast.memory_bytes = forecast.buffer[0].bytes + forecast.buffer[1].bytes;
    if (status == SLC_OK && !options->forecast.no_probe) {
        forecast_try_drives(&forecast, first);
        forecast_phase(&forecast, "begin");
        forecast_part(&forecast, "opening", FORECAST_START_SECONDS);
        forecast_phase(&forecast, "export");
        forecast_part(&forecast, "reading",
                      forecast.read_rate > 0 ? (double)forecast.read_bytes / forecast.read_rate
                                             : 0);
        forecast_part(&forecast, "formatting",
                      text ? try_formatting() * (double)found->numbers : 0);
        forecast_part(&forecast, "writing",
                      forecast.write_rate > 0 ? (double)forecast.written_bytes / forecast.write_rate
                                              : 0);
    }
    slc_free(first);
    if (status == SLC_OK) {
        status = forecast_check_room(&forecast, err);
    }
    if (status == SLC_OK && !options->forecast.json) {
        printf("Would export the factors of %s to %s\n", options->run, found->first);
    }
    return status == SLC_OK ? forecast_tell(&forecast, options->forecast.json, err) : status;
}

/* A signal removes what is unfinished. */
static enum slc_status
watch(void *context, unsigned count, const char *const *paths, struct slc_error *err)
{
    struct unfinished_outputs outputs = {.count = count};

    (void)context;
    for (unsigned f = 0; f < count; f++) {
        outputs.paths[f] = paths[f];
    }
    return unfinished_watch_all(&outputs, err);
}

enum slc_status export_run(const struct export_run_options *options, struct slc_error *err)
{
    const struct slc_export_run_options export_options = {.run = options->run,
                                                          .output = options->output,
                                                          .form = options->form,
                                                          .memory_bytes = options->memory_bytes,
                                                          .overwrite = options->overwrite,
                                                          .writing = watch,
                                                          .written = unfinished_publishing};
    struct slc_export_run_report report;
    enum slc_status status;

    if (options->forecast.dry_run) {
        status = slc_export_run_judge(&export_options, &report, err);
        return status == SLC_OK ? tell_forecast(options, &report, err) : status;
    }
    status = slc_export_run(&export_options, &report, err);
    if (status == SLC_OK && !options->quiet) {
        printf("Exported %u factors of rank %" PRIu32 " to %s\n", report.order, report.rank,
               report.first);
    }
    return status;
}
