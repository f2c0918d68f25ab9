/* Public functions that compute residuals of a model. */
#include "engine/product/residuals.h"
#include "api/call.h"
#include "sluice/experimental.h"

#include <inttypes.h>
#include <string.h>

static enum slc_status read_options(struct slc_residuals_options *request,
                                    struct api_run *run,
                                    const struct sluice_residuals_options *options,
                                    struct slc_error *err)
{
    struct sluice_residuals_options known = {0};

    SLC_TRY(API_READ_OPTIONS(sluice_residuals_options, &known, options, err));
    SLC_TRY(API_CHECK_CHOICES(err, {"score", (int)known.score, SLUICE_RESIDUAL_DEVIANCE},
                              {"io", (int)known.io, SLUICE_IO_MMAP}));
    if (known.quantile_count > SLUICE_MAX_QUANTILES ||
        (known.quantile_count > 0 && known.quantiles == NULL)) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "quantile_count is %" PRIu64 ", and quantiles %s NULL: up to %d quantiles "
                        "are possible",
                        known.quantile_count, known.quantiles == NULL ? "is" : "is not",
                        SLUICE_MAX_QUANTILES);
    }
    api_run_init(run, &known.run);
    request->score = (enum slc_residual_score)known.score;
    request->io = (enum slc_io_kind)known.io;
    request->top = known.top;
    request->read_limit = known.io_limit;
    request->quantile_count = (unsigned)known.quantile_count;
    if (known.quantile_count > 0) {
        memcpy(request->quantiles, known.quantiles,
               known.quantile_count * sizeof request->quantiles[0]);
    }
    request->memory_bytes = api_run_memory(run);
    request->threads = api_run_threads(run);
    request->stop = run->stop.flag;
    request->progress = api_run_progress(run);
    request->context = run;
    return SLC_OK;
}

/* Passes the listed nonzeros to the caller's callback until it returns a value other than 0. */
static void pass_nonzeros(const struct slc_residuals *found,
                          int (*nonzero)(void *context, const struct sluice_residual *residual),
                          void *context)
{
    for (uint64_t k = 0; k < found->count && nonzero != NULL; k++) {
        struct sluice_residual residual = {.place = k,
                                           .value = found->top[k].value,
                                           .model = found->top[k].model,
                                           .deviance = found->top[k].deviance};

        memcpy(residual.index, found->top[k].index, found->order * sizeof residual.index[0]);
        if (nonzero(context, &residual) != 0) {
            return;
        }
    }
}

static struct sluice_residuals_report public_report(const struct slc_residuals *found)
{
    struct sluice_residuals_report report = {.nnz = found->nnz,
                                             .norm = found->norm,
                                             .values_norm = found->values_norm,
                                             .rmse = found->rmse,
                                             .mae = found->mae,
                                             .mean = found->mean,
                                             .deviance = found->deviance,
                                             .largest = found->largest,
                                             .bytes_read = found->bytes_read,
                                             .passes = found->passes,
                                             .listed = (uint32_t)found->count};

    memcpy(report.quantiles, found->quantile, sizeof report.quantiles);
    return report;
}

enum sluice_status sluice_residuals(const struct sluice_store *store,
                                    const struct sluice_model *model,
                                    const struct sluice_residuals_options *options,
                                    int (*nonzero)(void *context,
                                                   const struct sluice_residual *residual),
                                    struct sluice_residuals_report *report,
                                    struct sluice_error *ret_err)
{
    struct slc_error fault = SLC_ERROR_INIT, *const err = &fault;

    API_NEED(err, ret_err, {"store", store}, {"model", model});
    struct slc_residuals_options request = {.top = 0};
    struct slc_residuals found = {.count = 0};
    struct slc_model_view view;
    struct api_run run = {.phase = NULL};
    enum slc_status status = read_options(&request, &run, options, err);

    SLC_THEN(status, api_check_report(report, "sluice_residuals_report", err));
    if (status == SLC_OK) {
        view = api_model_view(model);
        request.store = &store->store;
        request.model = &view;
        status = slc_residuals_find(&request, &found, err);
    }
    if (status == SLC_OK) {
        struct sluice_residuals_report filled = public_report(&found);

        pass_nonzeros(&found, nonzero, run.options.context);
        status = API_FILL_REPORT(sluice_residuals_report, report, &filled, err);
    }
    slc_residuals_destroy(&found);
    return api_return(status, err, ret_err);
}
