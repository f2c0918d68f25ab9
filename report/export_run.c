/* Exports a model: checks inputs and outputs, writes the files, and removes incomplete files after
 * an error. */
#include "report/export_run.h"

#include "base/memory/memory.h"
#include "storage/file/output.h"
#include "storage/manifest/store.h"
#include "storage/model/model_forms.h"
#include "storage/model/npy.h"
#include "storage/model/run_folder.h"
#include "storage/model/run_names.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Memory for small objects and for pages of libraries that are not resident yet, and for the
 * buffers of a reader. */
enum { UNTOUCHED_BYTES = 4 << 20, READER_BYTES = 320 << 10 };

struct exported {
    const struct slc_export_run_options *options;
    const struct slc_files *files;
    struct slc_run_folder run; /* for a model in memory, only the shape is set */
    struct slc_model_view model;
    struct slc_model_work work;
    struct slc_run_names names; /* names of indices, used for CSV */
    unsigned path_count;
    char *paths[SLC_MAX_ORDER + 1];
};

static enum slc_status no_memory(struct slc_error *err)
{
    return slc_fail(err, SLC_ERR_MEMORY, "no memory for the paths of a model");
}

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
                              : slc_npy_rows_open(run->files, path, run->dims[n], run->rank,
                                                  &model->files[n], err);
        slc_free(path);
    }
    return status;
}

/* Opens the names of indices if the form has names. */
static enum slc_status open_names(struct exported *exported, struct slc_error *err)
{
    const struct slc_export_run_options *options = exported->options;
    enum slc_status status = SLC_OK;

    if (options->form == SLC_MODEL_CSV) {
        status = slc_run_names_open(exported->files, &exported->run, options->store,
                                    &exported->names, err);
    }
    for (unsigned n = 0; n < exported->run.order; n++) {
        exported->model.names[n] = exported->names.names[n];
    }
    exported->model.raw_names = options->raw_names;
    return status;
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

enum slc_status slc_check_replaceable(const struct slc_files *files,
                                      const char *path,
                                      bool overwrite,
                                      struct slc_error *err)
{
    struct slc_file_stat stat;
    enum slc_status status = SLC_OK;

    if (files->stat_path(files->self, path, &stat) >= 0 && (!overwrite || stat.kind != 'f')) {
        status =
            slc_fail_field(err, SLC_ERR_IO, stat.kind == 'f' ? SLC_FIELD_OVERWRITE : SLC_FIELD_NONE,
                           stat.kind == 'f' ? "the output exists: remove or replace the file"
                                            : "the output is a folder or a device: name a file");
        slc_error_locate_file(err, path);
    }
    return status;
}

/* Determines the paths of the output files, and checks that no file exists or that all files may be
 * replaced. */
static enum slc_status name_outputs(struct exported *exported, struct slc_error *err)
{
    const struct slc_export_run_options *options = exported->options;
    const struct slc_files *files = exported->files;
    const unsigned count = slc_model_files(options->form, exported->run.order);

    for (unsigned f = 0; f < count; f++) {
        char *path = slc_model_path(options->form, options->output, exported->run.order, f);

        if (path == NULL) {
            return no_memory(err);
        }
        exported->paths[f] = path;
        exported->path_count = f + 1;
        SLC_TRY(slc_check_replaceable(files, path, options->overwrite, err));
    }
    return SLC_OK;
}

/* Removes the weights of an earlier model, because existing weights mean that all files belong to
 * the same model. */
static enum slc_status remove_weights(const struct exported *exported, struct slc_error *err)
{
    const struct slc_files *files = exported->files;
    const char *path = exported->paths[exported->path_count - 1];

    if (exported->path_count == 1) {
        return SLC_OK;
    }
    int rc = files->unlink(files->self, path);
    if (rc == -ENOENT || rc == -ENOTDIR) {
        return SLC_OK;
    }
    return rc < 0 ? slc_fail_errno(err, -rc, path, "removing the weights of an earlier model")
                  : slc_name_sync(files, path, err);
}

/* Removes the files of an incomplete model. None of these files existed before the export. */
static void remove_part(const struct exported *exported)
{
    const struct slc_files *files = exported->files;
    const bool in_folder =
        exported->options->form == SLC_MODEL_CSV || exported->options->form == SLC_MODEL_NPY;

    for (unsigned f = 0; f < exported->path_count; f++) {
        (void)files->unlink(files->self, exported->paths[f]);
    }
    if (in_folder) {
        /* The folder is not removed if it has other files. */
        (void)files->remove_folder(files->self, exported->options->output);
    }
}

static enum slc_status write_model(struct exported *exported, struct slc_error *err)
{
    const struct slc_export_run_options *options = exported->options;
    enum slc_status status = SLC_OK;

    if (options->writing != NULL) {
        SLC_TRY(options->writing(options->context, exported->path_count,
                                 (const char *const *)exported->paths, err));
    }
    status = remove_weights(exported, err);
    SLC_THEN(status, slc_stop_check(options->stop, err));
    if (status == SLC_OK) {
        status =
            slc_model_write(exported->files, options->form, options->output, &exported->model, err);
    }
    if (status != SLC_OK && !options->overwrite) {
        remove_part(exported);
    }
    if (options->written != NULL) {
        options->written();
    }
    return status;
}

static void fill_report(struct exported *exported, struct slc_export_run_report *report)
{
    report->order = exported->run.order;
    report->rank = exported->run.rank;
    for (unsigned n = 0; n < exported->run.order; n++) {
        const uint64_t numbers = slc_model_length(&exported->model, n) * exported->run.rank;

        report->numbers += numbers;
        report->factor_bytes += numbers * slc_value_bytes(slc_model_type(&exported->model, n));
    }
    (void)snprintf(report->first, sizeof report->first, "%s", exported->paths[0]);
    exported->work = (struct slc_model_work){.stop = exported->options->stop,
                                             .progress = exported->options->progress,
                                             .context = exported->options->context,
                                             .total = report->numbers};
    exported->model.work = &exported->work;
}

/* Opens and checks all inputs, and determines the outputs. Ownership: the caller calls close_all,
 * also after an error. */
static enum slc_status open_all(struct exported *exported, struct slc_error *err)
{
    const struct slc_export_run_options *options = exported->options;
    enum slc_status status = SLC_OK;

    if (options->model != NULL) {
        exported->model = *options->model;
        slc_run_folder_of_model(options->model, &exported->run);
    } else if (options->form == SLC_MODEL_NPY) {
        return slc_fail(err, SLC_ERR_USAGE, "the files of a run already are .npy files");
    } else {
        status = slc_run_folder_read(exported->files, options->run, &exported->run, err);
    }
    if (status == SLC_OK && options->model == NULL) {
        status = open_factors(exported, err);
    }
    SLC_THEN(status, open_names(exported, err));
    SLC_THEN(status, check_budget(exported, err));
    SLC_TRY(status);
    return name_outputs(exported, err);
}

static void close_all(struct exported *exported)
{
    slc_run_names_close(&exported->names);
    for (unsigned f = 0; f < exported->path_count; f++) {
        slc_free(exported->paths[f]);
    }
    for (unsigned n = 0; n < SLC_MAX_ORDER && exported->options->model == NULL; n++) {
        slc_npy_rows_close(exported->model.files[n]);
    }
    slc_run_folder_close(&exported->run);
    slc_free(exported);
}

static enum slc_status perform(const struct slc_export_run_options *options,
                               bool write,
                               struct slc_export_run_report *report,
                               struct slc_error *err)
{
    struct exported *exported = slc_calloc(1, sizeof *exported);

    *report = (struct slc_export_run_report){.order = 0};
    if (exported == NULL) {
        return no_memory(err);
    }
    exported->options = options;
    exported->files = slc_files_or_system(options->files);
    enum slc_status status = open_all(exported, err);
    if (status == SLC_OK) {
        fill_report(exported, report);
        status = write ? write_model(exported, err) : SLC_OK;
    }
    close_all(exported);
    return status;
}

enum slc_status slc_export_run(const struct slc_export_run_options *options,
                               struct slc_export_run_report *report,
                               struct slc_error *err)
{
    return perform(options, true, report, err);
}

enum slc_status slc_export_run_prepare(const struct slc_export_run_options *options,
                                       struct slc_export_run_report *report,
                                       struct slc_error *err)
{
    return perform(options, false, report, err);
}
