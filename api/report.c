/*
 * Public API: pages about models and runs.
 */
#include "report/report.h"
#include "api/call.h"

/* Writes the page of the folder or the model in `wanted`. */
static enum slc_status write_page(struct slc_report_options *wanted,
                                  const struct sluice_report_options *options,
                                  struct slc_error *err)
{
    struct sluice_report_options known = {0};
    struct api_run run = {.phase = NULL};
    uint64_t bytes;

    SLC_TRY(API_READ_OPTIONS(sluice_report_options, &known, options, err));
    SLC_TRY(api_need_path(wanted->output, "output", err));
    api_run_init(&run, &known.run);
    wanted->components = known.components != 0 ? known.components : 64;
    wanted->rows = known.rows != 0 ? known.rows : 10;
    wanted->store = known.store;
    wanted->record = known.record != NULL ? known.record : wanted->record;
    wanted->memory_bytes = api_run_memory(&run);
    wanted->overwrite = known.overwrite != 0;
    return slc_report(wanted, &bytes, err);
}

enum sluice_status sluice_run_report(const char *folder,
                                     const char *output,
                                     const struct sluice_report_options *options,
                                     struct sluice_error *ret_err)
{
    struct slc_error fault = SLC_ERROR_INIT, *const err = &fault;
    struct slc_report_options wanted = {.folder = folder, .output = output};
    const enum slc_status status = api_need_path(folder, "folder", err);

    return api_return(status == SLC_OK ? write_page(&wanted, options, err) : status, err, ret_err);
}

enum sluice_status sluice_model_report(const struct sluice_model *model,
                                       const char *output,
                                       const struct sluice_report_options *options,
                                       struct sluice_error *ret_err)
{
    struct slc_error fault = SLC_ERROR_INIT, *const err = &fault;
    const struct slc_model_view view = api_model_view(model);
    struct slc_report_options wanted = {.model = &view, .record = model->record, .output = output};

    return api_return(write_page(&wanted, options, err), err, ret_err);
}
