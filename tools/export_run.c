/* See export_run.h. */
#include "export_run.h"

#include "base/clock.h"
#include "base/memory.h"
#include "storage/model_forms.h"
#include "storage/npy.h"
#include "storage/output.h"
#include "storage/run_folder.h"
#include "storage/run_names.h"
#include "storage/store.h"
#include "unfinished.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Small objects, buffers of readers, and pages of libraries that are touched later. */
enum { UNTOUCHED_BYTES = 4 << 20, READER_BYTES = 320 << 10 };

static enum slc_status no_memory(struct slc_error *err)
{
    return slc_fail(err, SLC_ERR_MEMORY, "no memory for the paths of a model");
}

struct exported {
    const struct export_run_options *options;
    struct slc_run_folder run;
    struct slc_model_view model;
    struct slc_run_names names; /* for CSV */
    struct unfinished_outputs outputs;
    char *paths[SLC_MAX_ORDER + 1]; /* those of `outputs` */
};

static enum slc_status open_factors(struct exported *exported, struct slc_error *err)
{
    const struct slc_run_folder *run = &exported->run;
    struct slc_model_view *model = &exported->model;
    enum slc_status status = SLC_OK;

    model->order = run->order;
    model->rank = run->rank;
    model->lambda = run->lambda;
    for (unsigned n = 0; n < run->order && status == SLC_OK; n++) {
        char *path = slc_run_folder_factor(exported->options->run, n);

        status = path == NULL ? no_memory(err)
                              : slc_npy_rows_open(NULL, path, run->dims[n], run->rank,
                                                  &model->files[n], err);
        slc_free(path);
        model->names[n] = exported->names.names[n];
    }
    return status;
}

/* What indices are called, where the form tells it and the run's store is still there. */
static enum slc_status open_names(struct exported *exported, struct slc_error *err)
{
    return exported->options->form == SLC_MODEL_CSV
               ? slc_run_names_open(NULL, &exported->run, NULL, &exported->names, err)
               : SLC_OK;
}

static enum slc_status check_budget(const struct exported *exported, struct slc_error *err)
{
    const uint64_t budget = exported->options->memory_bytes;
    const uint64_t need = slc_memory_resident() + UNTOUCHED_BYTES + SLC_MODEL_WORK_BYTES +
                          SLC_OUTPUT_BUFFER_BYTES + (uint64_t)exported->run.order * READER_BYTES +
                          slc_run_names_bytes(&exported->names);

    return need > budget ? slc_fail_budget(err, budget, need, "exporting a run of %u modes",
                                           exported->run.order)
                         : SLC_OK;
}

/* Names what is written, and sees that none of it is there, or may be replaced. */
static enum slc_status name_outputs(struct exported *exported, struct slc_error *err)
{
    const struct export_run_options *options = exported->options;
    const struct slc_files *files = slc_files_system();
    const unsigned count = slc_model_files(options->form, exported->run.order);
    enum slc_status status = SLC_OK;

    for (unsigned f = 0; f < count && status == SLC_OK; f++) {
        struct slc_file_stat stat;
        char *path = slc_model_path(options->form, options->output, exported->run.order, f);

        if (path == NULL) {
            return no_memory(err);
        }
        exported->paths[f] = path;
        exported->outputs.paths[f] = path;
        exported->outputs.count = f + 1;
        if (files->stat_path(files->self, path, &stat) >= 0 &&
            (!options->overwrite || stat.kind != 'f')) {
            status = slc_fail(err, SLC_ERR_IO,
                              stat.kind == 'f' ? "the output exists: remove it, or replace it with "
                                                 "--overwrite"
                                               : "there is a folder or a device by the name of the "
                                                 "output: name a file");
            slc_error_locate_file(err, path);
        }
    }
    return status;
}

/* With the weights of an earlier model gone, those that are there say that all files are of one. */
static enum slc_status remove_weights(const struct exported *exported, struct slc_error *err)
{
    const struct slc_files *files = slc_files_system();
    const char *path = exported->paths[exported->outputs.count - 1];
    int rc;

    if (exported->outputs.count == 1) {
        return SLC_OK;
    }
    rc = files->unlink(files->self, path);
    if (rc == -ENOENT || rc == -ENOTDIR) {
        return SLC_OK;
    }
    return rc < 0 ? slc_fail_errno(err, -rc, path, "removing the weights of an earlier model")
                  : slc_name_sync(files, path, err);
}

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

/* Bytes of the factors as they lie in their files, and how many numbers they have. */
static void count_numbers(const struct exported *exported, uint64_t *bytes, uint64_t *numbers)
{
    *bytes = *numbers = 0;
    for (unsigned n = 0; n < exported->run.order; n++) {
        enum slc_value_type type;
        uint64_t rows;
        uint32_t cols;

        slc_npy_rows_shape(exported->model.files[n], &rows, &cols, &type);
        *numbers += rows * cols;
        *bytes += rows * cols * slc_value_bytes(type);
    }
}

/* What it would take, and whether the disk has room. */
static enum slc_status tell_forecast(const struct exported *exported, struct slc_error *err)
{
    const struct export_run_options *options = exported->options;
    const bool text = options->form != SLC_MODEL_MATLAB;
    struct forecast forecast = {.command = "export",
                                .budget_bytes = options->memory_bytes,
                                .output = options->output,
                                .passes = "one over the factors, one over the output",
                                .free_bytes = UINT64_MAX};
    uint64_t numbers;
    char *first = slc_run_folder_factor(options->run, 0);
    enum slc_status status = first == NULL ? no_memory(err) : SLC_OK;

    count_numbers(exported, &forecast.read_bytes, &numbers);
    forecast.written_bytes =
        text ? (uint64_t)(NUMBER_BYTES * (double)numbers) : forecast.read_bytes;
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
        forecast_part(&forecast, "formatting", text ? try_formatting() * (double)numbers : 0);
        forecast_part(&forecast, "writing",
                      forecast.write_rate > 0 ? (double)forecast.written_bytes / forecast.write_rate
                                              : 0);
    }
    slc_free(first);
    if (status == SLC_OK) {
        status = forecast_check_room(&forecast, err);
    }
    if (status == SLC_OK && !options->forecast.json) {
        printf("Would export the factors of %s to %s\n", options->run, exported->paths[0]);
    }
    return status == SLC_OK ? forecast_tell(&forecast, options->forecast.json, err) : status;
}

static enum slc_status write_model(struct exported *exported, struct slc_error *err)
{
    const struct export_run_options *options = exported->options;
    enum slc_status status = unfinished_watch_all(&exported->outputs, err);

    if (status == SLC_OK) {
        status = remove_weights(exported, err);
    }
    if (status == SLC_OK) {
        status = slc_model_write(NULL, options->form, options->output, &exported->model, err);
    }
    if (status == SLC_OK && !options->quiet) {
        printf("Exported %u factors of rank %" PRIu32 " to %s\n", exported->run.order,
               exported->run.rank, exported->paths[0]);
    }
    return status;
}

enum slc_status export_run(const struct export_run_options *options, struct slc_error *err)
{
    struct exported *exported = slc_calloc(1, sizeof *exported);
    enum slc_status status;

    if (exported == NULL) {
        return no_memory(err);
    }
    exported->options = options;
    status = slc_run_folder_read(NULL, options->run, &exported->run, err);
    if (status == SLC_OK) {
        status = open_names(exported, err);
    }
    if (status == SLC_OK) {
        status = check_budget(exported, err);
    }
    if (status == SLC_OK) {
        status = open_factors(exported, err);
    }
    if (status == SLC_OK) {
        status = name_outputs(exported, err);
    }
    if (status == SLC_OK) {
        status =
            options->forecast.dry_run ? tell_forecast(exported, err) : write_model(exported, err);
    }
    slc_run_names_close(&exported->names);
    unfinished_publishing(); /* a signal no longer asks for the paths */
    for (unsigned f = 0; f < exported->outputs.count; f++) {
        slc_free(exported->paths[f]);
    }
    for (unsigned n = 0; n < SLC_MAX_ORDER; n++) {
        slc_npy_rows_close(exported->model.files[n]);
    }
    slc_free(exported);
    return status;
}
