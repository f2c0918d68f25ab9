/*
 * Public API: tensors and models in the forms that others read.
 */
#include "convert/export/export.h"
#include "api/internal.h"
#include "convert/export/export_form.h"
#include "convert/export/export_lists.h"
#include "report/export_run.h"

#include <string.h>

/* By what the command calls them. */
static const char *const tensor_forms[] = {NULL, "tns", "splatt-bin", "npz", "scipy", "matlab"};

static enum slc_status choose_tensor_form(enum sluice_export_form wanted,
                                          const char *output,
                                          const struct slc_export_form **form,
                                          struct slc_error *err)
{
    enum slc_status status;

    if ((unsigned)wanted > SLUICE_EXPORT_MATLAB) {
        return slc_fail(err, SLC_ERR_USAGE, "form %d is not one of the enumeration", (int)wanted);
    }
    status = slc_export_form_choose(SLC_EXPORT_TENSOR, tensor_forms[wanted], output, form, err);
    if (status == SLC_OK && !(*form)->text && strcmp(output, "-") == 0) {
        status =
            slc_fail(err, SLC_ERR_USAGE,
                     "the form %s is written in many places at once: name a file", (*form)->name);
    }
    return status;
}

enum slc_status sluice_export(const char *path,
                              const char *output,
                              const struct sluice_export_options *options,
                              uint64_t *ret_lines,
                              struct slc_error *err)
{
    struct sluice_export_options known;
    struct slc_export_options export = {.store = path, .output = output};
    const struct slc_export_form *form = NULL;
    struct slc_stop stop = {.flag = NULL};
    uint64_t lines = 0;
    enum slc_status status;

    sluice_export_options_init(&known, sizeof known);
    status = api_take_options(&known, sizeof known, options, "sluice_export_options", err);
    if (status == SLC_OK) {
        status = api_need_path(path, "path", err);
    }
    if (status == SLC_OK) {
        status = api_need_path(output, "output", err);
    }
    if (status == SLC_OK) {
        status = choose_tensor_form(known.form, output, &form, err);
    }
    if (status != SLC_OK) {
        return status;
    }
    export.index_base = known.index_base;
    export.memory_bytes = api_memory_bytes(known.memory_bytes);
    export.threads = api_threads(known.threads);
    export.overwrite = known.overwrite != 0;
    export.progress = known.progress;
    export.context = known.context;
    stop.flag = known.stop;
    export.stop = &stop;
    status = form->text ? slc_export_tns(&export, &lines, err)
                        : slc_export_lists(&export, form->lists, &lines, err);
    if (status == SLC_OK && ret_lines != NULL) {
        *ret_lines = lines;
    }
    return status;
}

void sluice_model_export_options_init(struct sluice_model_export_options *options, uint64_t bytes)
{
    static const struct sluice_model_export_options defaults = {.struct_bytes = sizeof defaults,
                                                                .form = SLUICE_MODEL_AUTO};

    api_init_options(options, bytes, &defaults, sizeof defaults);
}

static enum slc_status choose_model_form(enum sluice_model_form wanted,
                                         const char *output,
                                         enum slc_model_form *form,
                                         struct slc_error *err)
{
    const struct slc_export_form *chosen = NULL;
    enum slc_status status;

    if ((unsigned)wanted > SLUICE_MODEL_AUTO) {
        return slc_fail(err, SLC_ERR_USAGE, "form %d is not one of the enumeration", (int)wanted);
    }
    *form = (enum slc_model_form)wanted;
    if (wanted != SLUICE_MODEL_AUTO) {
        return SLC_OK;
    }
    status = slc_export_form_choose(SLC_EXPORT_MODEL, NULL, output, &chosen, err);
    if (status == SLC_OK) {
        *form = chosen->model;
    }
    return status;
}

/* The folder or the model that `of` names. */
static enum slc_status export_model(const struct slc_export_run_options *of,
                                    const struct sluice_model_export_options *options,
                                    struct slc_error *err)
{
    struct slc_export_run_options export = *of;
    struct sluice_model_export_options known;
    struct slc_export_run_report report;
    struct slc_stop stop = {.flag = NULL};
    enum slc_status status;

    sluice_model_export_options_init(&known, sizeof known);
    status = api_take_options(&known, sizeof known, options, "sluice_model_export_options", err);
    if (status == SLC_OK) {
        status = api_need_path(export.output, "output", err);
    }
    if (status == SLC_OK) {
        status = choose_model_form(known.form, export.output, &export.form, err);
    }
    if (status != SLC_OK) {
        return status;
    }
    export.store = known.store;
    export.memory_bytes = api_memory_bytes(known.memory_bytes);
    export.overwrite = known.overwrite != 0;
    export.progress = known.progress;
    export.context = known.context;
    stop.flag = known.stop;
    export.stop = &stop;
    return slc_export_run(&export, &report, err);
}

enum slc_status sluice_model_export(const char *folder,
                                    const char *output,
                                    const struct sluice_model_export_options *options,
                                    struct slc_error *err)
{
    const struct slc_export_run_options export = {.run = folder, .output = output};
    const enum slc_status status = api_need_path(folder, "folder", err);

    return status == SLC_OK ? export_model(&export, options, err) : status;
}

enum slc_status sluice_cpd_export(const struct sluice_cpd *model,
                                  const char *output,
                                  const struct sluice_model_export_options *options,
                                  struct slc_error *err)
{
    const struct slc_model_view view = api_model_view(model);
    const struct slc_export_run_options export = {.model = &view, .output = output};

    return export_model(&export, options, err);
}
