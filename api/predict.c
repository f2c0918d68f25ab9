/* Public functions that compute values of a model. */
#include "engine/product/predict/predict.h"
#include "api/call.h"
#include "base/memory/memory.h"
#include "engine/product/predict/predict_source.h"
#include "sluice/experimental.h"

#include <string.h>

enum sluice_status sluice_predict(const struct sluice_model *model,
                                  uint64_t count,
                                  const uint64_t *const *coords,
                                  double *values,
                                  const struct sluice_predict_options *options,
                                  struct sluice_error *ret_err)
{
    struct slc_error fault = SLC_ERROR_INIT, *const err = &fault;

    API_NEED(err, ret_err, {"model", model}, {"coords", API_ARRAY(coords, count)},
             {"values", API_ARRAY(values, count)});
    for (unsigned n = 0; n < model->result.order && count > 0; n++) {
        if (coords[n] == NULL) {
            return api_return(slc_fail(err, SLC_ERR_USAGE, "coords[%u] is NULL", n), err, ret_err);
        }
    }
    const struct slc_model_view view = api_model_view(model);
    struct sluice_predict_options known = {0};
    struct api_run run = {.phase = NULL};
    enum slc_status status = API_READ_OPTIONS(sluice_predict_options, &known, options, err);

    if (status == SLC_OK) {
        api_run_init(&run, &known.run);
        status = slc_predict_values(&view, count, coords, api_run_threads(&run), run.stop.flag,
                                    values, err);
    }
    return api_return(status, err, ret_err);
}

static enum slc_status read_text(struct sluice_predict_text_options *known,
                                 const struct sluice_predict_text_options *options,
                                 const char *output,
                                 struct slc_error *err)
{
    SLC_TRY(API_READ_OPTIONS(sluice_predict_text_options, known, options, err));
    SLC_TRY(API_CHECK_CHOICES(err, {"form", (int)known->form, SLUICE_PREDICT_NPY},
                              {"dialect", (int)known->dialect, SLUICE_DIALECT_NPZ},
                              {"index_base", (int)known->index_base, SLUICE_BASE_ONE}));
    if (known->form == SLUICE_PREDICT_NPY && output != NULL && strcmp(output, "-") == 0) {
        return slc_fail(
            err, SLC_ERR_USAGE,
            "a .npy file begins with its size and so cannot go to standard output: name a file");
    }
    return SLC_OK;
}

/* Describes a model in memory like a run folder, with the record if the model has one. */
static enum slc_status describe_model(const struct sluice_model *model,
                                      const struct slc_model_view *view,
                                      struct slc_run_folder *run,
                                      struct slc_error *err)
{
    slc_run_folder_of_model(view, run);
    run->recorded = model->record != NULL;
    return model->record == NULL
               ? SLC_OK
               : slc_run_record_parse(model->record, strlen(model->record), &run->record, err);
}

/* Opens the input if it is a store or a table, and computes the values. */
static enum slc_status predict_rows(const struct sluice_model *model,
                                    const struct sluice_predict_text_options *known,
                                    const struct api_run *run,
                                    struct slc_predict_options *predict,
                                    struct slc_predict_report *made,
                                    struct slc_error *err)
{
    const struct slc_predict_coords_options options = {.store = known->store,
                                                       .columns = known->columns,
                                                       .value = known->value_column,
                                                       .null = known->null,
                                                       .memory_bytes = api_run_memory(run)};
    struct slc_predict_coords *coords = slc_calloc(1, sizeof *coords);
    struct slc_run_folder *folder = slc_calloc(1, sizeof *folder);
    enum slc_status status =
        slc_check_memory(coords != NULL && folder != NULL, err, "for the coordinates");

    SLC_THEN(status, describe_model(model, predict->model, folder, err));
    SLC_THEN(status, slc_predict_coords_open(coords, &options, folder, predict, err));
    if (status == SLC_OK) {
        const uint64_t need = slc_predict_coords_bytes(coords);

        coords->table.memory_bytes = SLC_PREDICT_TABLE_BYTES + options.memory_bytes - need;
        status = need > options.memory_bytes ? slc_fail_budget(err, options.memory_bytes, need,
                                                               "reading %s", predict->input)
                                             : slc_predict(predict, made, err);
    }
    if (coords != NULL) {
        slc_predict_coords_close(coords);
    }
    slc_free(folder);
    slc_free(coords);
    return status;
}

enum sluice_status sluice_predict_text(const struct sluice_model *model,
                                       const char *input,
                                       const char *output,
                                       const struct sluice_predict_text_options *options,
                                       struct sluice_predict_report *report,
                                       struct sluice_error *ret_err)
{
    struct slc_error fault = SLC_ERROR_INIT, *const err = &fault;

    API_NEED(err, ret_err, {"model", model}, {"input", input});
    const struct slc_model_view view = api_model_view(model);
    struct sluice_predict_text_options known = {0};
    struct sluice_predict_report filled = {.rows = 0};
    struct slc_predict_options predict = {.input = input, .output = output, .model = &view};
    struct slc_predict_report made = {.rows = 0};
    struct api_run run = {.phase = NULL};
    enum slc_status status = read_text(&known, options, output, err);

    SLC_THEN(status, api_check_report(report, "sluice_predict_report", err));
    if (status != SLC_OK) {
        return api_return(status, err, ret_err);
    }
    api_run_init(&run, &known.run);
    predict.dialect = (enum slc_dialect)known.dialect;
    predict.index_base = (int)known.index_base - 1;
    predict.store_dialect = *model->dialect != '\0' ? model->dialect : NULL;
    predict.store_base = model->index_base;
    predict.form = output == NULL ? SLC_PREDICT_NONE : (enum slc_predict_form)(known.form + 1);
    predict.overwrite = known.overwrite != 0;
    predict.threads = api_run_threads(&run);
    predict.stop = run.stop.flag;
    predict.progress = api_run_progress(&run);
    predict.context = &run;
    status = predict_rows(model, &known, &run, &predict, &made, err);
    if (status == SLC_OK) {
        filled.dialect = (enum sluice_dialect)made.dialect;
        filled.index_base = made.index_base;
        filled.rows = made.rows;
        filled.has_values = made.has_values;
        filled.rmse = made.rmse;
        filled.mae = made.mae;
        filled.deviance = made.deviance;
        filled.largest = made.largest;
        filled.values_norm = made.values_norm;
        filled.unknown = made.unknown;
        status = API_FILL_REPORT(sluice_predict_report, report, &filled, err);
    }
    return api_return(status, err, ret_err);
}
