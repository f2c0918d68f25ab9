/* Public functions that export stores and models in the formats of other programs. */
#include "convert/export/export.h"
#include "api/call.h"
#include "base/error/log.h"
#include "convert/export/export_form.h"
#include "report/export_run.h"
#include "sluice/convert.h"
#include "sluice/model.h"

#include <string.h>

/* Names that the command uses for the forms. */
static const char *const tensor_forms[] = {NULL, "tns", "splatt-bin", "npz", "scipy", "matlab"};

static enum slc_status choose_tensor_form(const struct sluice_export_options *known,
                                          const char *output,
                                          const struct slc_export_form **form,
                                          struct slc_error *err)
{
    SLC_TRY(API_CHECK_CHOICES(err, {"form", (int)known->form, SLUICE_EXPORT_MATLAB},
                              {"index_base", (int)known->index_base, SLUICE_BASE_ONE}));
    SLC_TRY(
        slc_export_form_choose(SLC_EXPORT_TENSOR, tensor_forms[known->form], output, form, err));
    if (!(*form)->text && known->header != 0) {
        return slc_fail(err, SLC_ERR_USAGE, "the form '%s' has no header that could be chosen",
                        (*form)->name);
    }
    if (!(*form)->text && strcmp(output, "-") == 0) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "the form '%s' cannot go to standard output: name a file", (*form)->name);
    }
    return SLC_OK;
}

enum sluice_status sluice_export(const char *path,
                                 const char *output,
                                 const struct sluice_export_options *options,
                                 uint64_t *ret_nnz,
                                 struct sluice_error *ret_err)
{
    struct slc_error fault = SLC_ERROR_INIT, *const err = &fault;

    API_NEED(err, ret_err, {"path", path}, {"output", output});
    struct sluice_export_options known = {0};
    struct slc_export_options export = {.store = path, .output = output};
    const struct slc_export_form *form = NULL;
    struct api_run run = {.phase = NULL};
    struct slc_export_report report = {.nnz = 0};
    enum slc_status status = API_READ_OPTIONS(sluice_export_options, &known, options, err);

    SLC_THEN(status, choose_tensor_form(&known, output, &form, err));
    if (status == SLC_OK) {
        api_run_init(&run, &known.run);
        API_SET_RUN(&export, &run);
        export.threads = api_run_threads(&run);
        export.index_base = known.index_base != SLUICE_BASE_ZERO;
        export.overwrite = known.overwrite != 0;
        export.header = known.header != 0;
        status = form->text ? slc_export_tns(&export, &report, err)
                            : slc_export_lists(&export, form->lists, &report.nnz, err);
    }
    if (status == SLC_OK && (report.base_lost || report.dims_lost)) {
        slc_log(SLC_LOG_NOTE,
                "%s does not state its %s: specify %s to read it back, or export with a header",
                output,
                !report.dims_lost  ? "index base"
                : report.base_lost ? "index base and mode sizes"
                                   : "mode sizes",
                report.base_lost && report.dims_lost ? "both" : "it");
    }
    if (status == SLC_OK && ret_nnz != NULL) {
        *ret_nnz = report.nnz;
    }
    return api_return(status, err, ret_err);
}

static enum slc_status choose_model_form(enum sluice_model_form requested,
                                         const char *output,
                                         enum slc_model_form *form,
                                         struct slc_error *err)
{
    const struct slc_export_form *chosen = NULL;

    SLC_TRY(API_CHECK_CHOICES(err, {"form", (int)requested, SLUICE_MODEL_MATLAB}));
    if (requested == SLUICE_MODEL_AUTO) {
        SLC_TRY(slc_export_form_choose(SLC_EXPORT_MODEL, NULL, output, &chosen, err));
    }
    *form = chosen != NULL ? chosen->model : (enum slc_model_form)(requested - 1);
    return SLC_OK;
}

/* Exports the folder or model that `of` names. */
static enum slc_status export_model(const struct slc_export_run_options *of,
                                    const struct sluice_model_export_options *options,
                                    struct slc_error *err)
{
    struct slc_export_run_options export = *of;
    struct sluice_model_export_options known = {0};
    struct slc_export_run_report report;
    struct api_run run = {.phase = NULL};

    SLC_TRY(API_READ_OPTIONS(sluice_model_export_options, &known, options, err));
    SLC_TRY(choose_model_form(known.form, export.output, &export.form, err));
    api_run_init(&run, &known.run);
    API_SET_RUN(&export, &run);
    export.store = known.store;
    export.overwrite = known.overwrite != 0;
    export.raw_names = known.raw_names != 0;
    return slc_export_run(&export, &report, err);
}

enum sluice_status sluice_run_export(const char *folder,
                                     const char *output,
                                     const struct sluice_model_export_options *options,
                                     struct sluice_error *ret_err)
{
    struct slc_error fault = SLC_ERROR_INIT, *const err = &fault;

    API_NEED(err, ret_err, {"folder", folder}, {"output", output});
    const struct slc_export_run_options export = {.run = folder, .output = output};

    return api_return(export_model(&export, options, err), err, ret_err);
}

enum sluice_status sluice_model_export(const struct sluice_model *model,
                                       const char *output,
                                       const struct sluice_model_export_options *options,
                                       struct sluice_error *ret_err)
{
    struct slc_error fault = SLC_ERROR_INIT, *const err = &fault;

    API_NEED(err, ret_err, {"model", model}, {"output", output});
    const struct slc_model_view view = api_model_view(model);
    const struct slc_export_run_options export = {.model = &view, .output = output};

    return api_return(export_model(&export, options, err), err, ret_err);
}
