/* Public functions that write pages about models and runs. */
#include "report/report.h"
#include "api/call.h"

/* Writes the page about the folder or model that `report` names. */
static enum slc_status write_page(struct slc_report_options *report,
                                  const struct sluice_report_options *options,
                                  struct slc_error *err)
{
    struct sluice_report_options known = {0};
    struct api_run run = {.phase = NULL};
    uint64_t bytes;

    SLC_TRY(API_READ_OPTIONS(sluice_report_options, &known, options, err));
    api_run_init(&run, &known.run);
    report->components = known.components != 0 ? known.components : 64;
    report->rows = known.rows != 0 ? known.rows : 10;
    report->store = known.store;
    report->record = known.record != NULL ? known.record : report->record;
    report->memory_bytes = api_run_memory(&run);
    report->overwrite = known.overwrite != 0;
    return slc_report(report, &bytes, err);
}

enum sluice_status sluice_run_report(const char *folder,
                                     const char *output,
                                     const struct sluice_report_options *options,
                                     struct sluice_error *ret_err)
{
    struct slc_error fault = SLC_ERROR_INIT, *const err = &fault;

    API_NEED(err, ret_err, {"folder", folder}, {"output", output});
    struct slc_report_options report = {.folder = folder, .output = output};

    return api_return(write_page(&report, options, err), err, ret_err);
}

enum sluice_status sluice_model_report(const struct sluice_model *model,
                                       const char *output,
                                       const struct sluice_report_options *options,
                                       struct sluice_error *ret_err)
{
    struct slc_error fault = SLC_ERROR_INIT, *const err = &fault;

    API_NEED(err, ret_err, {"model", model}, {"output", output});
    const struct slc_model_view view = api_model_view(model);
    struct slc_report_options report = {.model = &view, .record = model->record, .output = output};

    return api_return(write_page(&report, options, err), err, ret_err);
}
