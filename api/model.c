/*
 * Public API: models from files and from numbers of the caller, and their values.
 */
#include "storage/model/model.h"
#include "api/internal.h"
#include "api/record.h"
#include "base/memory/memory.h"
#include "engine/product/predict.h"
#include "report/run_record.h"
#include "storage/model/run_folder.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static enum slc_status no_memory(struct slc_error *err)
{
    return slc_fail(err, SLC_ERR_MEMORY, "no memory for a model");
}

/* What is not known of a model that was not computed here. */
static void set_unknown(struct slc_cp_result *result, double norm)
{
    for (unsigned n = 0; n < result->order; n++) {
        result->mode_order[n] = n;
    }
    result->fit = (double)NAN;
    result->norm_x = norm;
    result->reason = SLC_STOP_ITERATIONS;
}

/* Weights of a model whose order and rank are known: of 1. */
static enum slc_status create_weights(struct slc_cp_result *result, struct slc_error *err)
{
    result->lambda = slc_calloc(result->rank, sizeof *result->lambda);
    if (result->lambda == NULL) {
        return slc_fail(err, SLC_ERR_MEMORY, "no memory for %" PRIu32 " weights", result->rank);
    }
    for (uint32_t r = 0; r < result->rank; r++) {
        result->lambda[r] = 1;
    }
    return SLC_OK;
}

/* Factors of the shape `order` and `dims`, and weights, from a folder. */
static enum slc_status load_model(unsigned order,
                                  const uint64_t *dims,
                                  double norm,
                                  const char *folder,
                                  struct slc_cp_result *result,
                                  struct slc_error *err)
{
    bool found = false;
    enum slc_status status = slc_model_read(NULL, folder, SLC_F64, order, dims, SLC_MAX_ORDER,
                                            &result->rank, result->factors, err);

    if (status != SLC_OK) {
        return status;
    }
    result->order = order;
    set_unknown(result, norm);
    status = create_weights(result, err);
    return status == SLC_OK
               ? slc_model_read_lambda(NULL, folder, result->rank, result->lambda, &found, err)
               : status;
}

/* The same, of the shape that the files have. */
static enum slc_status
load_folder(const char *folder, struct sluice_cpd *model, struct slc_error *err)
{
    struct slc_run_folder *run = slc_calloc(1, sizeof *run);
    enum slc_status status =
        run == NULL ? no_memory(err) : slc_run_folder_read(NULL, folder, run, err);

    if (status == SLC_OK) {
        status = load_model(run->order, run->dims, (double)NAN, folder, &model->result, err);
    }
    if (status == SLC_OK) {
        memcpy(model->dialect, run->record.dialect, sizeof model->dialect);
        model->index_base = run->record.index_base;
    }
    slc_free(run);
    return status;
}

enum slc_status sluice_cpd_load(const struct sluice_store *store,
                                const char *folder,
                                struct sluice_cpd **ret_model,
                                struct slc_error *err)
{
    const struct slc_manifest *manifest = store != NULL ? &store->store.manifest : NULL;
    struct sluice_cpd *model;
    enum slc_status status = api_need_path(folder, "folder", err);

    if (status != SLC_OK) {
        return status;
    }
    model = slc_calloc(1, sizeof *model);
    if (model == NULL) {
        return no_memory(err);
    }
    status = manifest != NULL
                 ? load_model(manifest->order, manifest->dims, sqrt(manifest->sum_of_squares),
                              folder, &model->result, err)
                 : load_folder(folder, model, err);
    if (status == SLC_OK) {
        status = api_record_load(folder, &model->result, &model->record, err);
    }
    if (status != SLC_OK) {
        sluice_cpd_destroy(model);
        return status;
    }
    if (manifest != NULL) {
        memcpy(model->dialect, manifest->origin.dialect, sizeof model->dialect);
        model->index_base = manifest->origin.index_base;
    }
    *ret_model = model;
    return SLC_OK;
}

static enum slc_status check_shape(uint32_t order,
                                   const uint64_t *dims,
                                   uint32_t rank,
                                   const double *const *factors,
                                   struct slc_error *err)
{
    if (order < 1 || order > SLC_MAX_ORDER || rank < 1 || rank > SLC_MAX_RANK) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "a model of %" PRIu32 " modes and %" PRIu32 " components: 1 to %d modes "
                        "and 1 to %d components can be",
                        order, rank, SLC_MAX_ORDER, SLC_MAX_RANK);
    }
    for (unsigned n = 0; n < order; n++) {
        if (factors[n] == NULL || dims[n] < 1 || dims[n] > SLC_MAX_MODE_LENGTH) {
            return slc_fail(err, SLC_ERR_USAGE,
                            "the factor of mode %u is NULL, or has %" PRIu64 " rows, which is not "
                            "1 to 2^62",
                            n, dims[n]);
        }
    }
    return SLC_OK;
}

static enum slc_status copy_model(const uint64_t *dims,
                                  const double *lambda,
                                  const double *const *factors,
                                  struct slc_cp_result *result,
                                  struct slc_error *err)
{
    enum slc_status status = create_weights(result, err);

    for (unsigned n = 0; n < result->order && status == SLC_OK; n++) {
        status = slc_matrix_create_from(&result->factors[n], SLC_F64, dims[n], result->rank,
                                        factors[n], err);
    }
    for (uint32_t r = 0; r < result->rank && status == SLC_OK && lambda != NULL; r++) {
        if (!isfinite(lambda[r])) {
            return slc_fail(err, SLC_ERR_INPUT, "weight %" PRIu32 " is %g", r, lambda[r]);
        }
        result->lambda[r] = lambda[r];
    }
    return status;
}

enum slc_status sluice_cpd_from_factors(uint32_t order,
                                        const uint64_t *dims,
                                        uint32_t rank,
                                        const double *lambda,
                                        const double *const *factors,
                                        struct sluice_cpd **ret_model,
                                        struct slc_error *err)
{
    struct sluice_cpd *model;
    enum slc_status status = check_shape(order, dims, rank, factors, err);

    if (status != SLC_OK) {
        return status;
    }
    model = slc_calloc(1, sizeof *model);
    if (model == NULL) {
        return no_memory(err);
    }
    model->result.order = order;
    model->result.rank = rank;
    set_unknown(&model->result, (double)NAN);
    status = copy_model(dims, lambda, factors, &model->result, err);
    if (status != SLC_OK) {
        sluice_cpd_destroy(model);
        return status;
    }
    *ret_model = model;
    return SLC_OK;
}

struct slc_model_view api_model_view(const struct sluice_cpd *model)
{
    struct slc_model_view view = {
        .order = model->result.order, .rank = model->result.rank, .lambda = model->result.lambda};

    for (unsigned n = 0; n < view.order; n++) {
        view.factors[n] = &model->result.factors[n];
    }
    return view;
}

enum slc_status sluice_cpd_save(const struct sluice_cpd *model,
                                enum sluice_model_form form,
                                const char *path,
                                struct slc_error *err)
{
    const struct slc_model_view view = api_model_view(model);
    char *record;
    enum slc_status status = api_need_path(path, "path", err);

    if (status != SLC_OK) {
        return status;
    }
    if ((unsigned)form >= SLUICE_MODEL_AUTO) {
        return slc_fail(err, SLC_ERR_USAGE, "form %d is none that a model is saved in", (int)form);
    }
    record = api_record_path(form, path);
    status = record == NULL ? no_memory(err) : slc_run_record_remove(record, err);
    if (status == SLC_OK) {
        status = slc_model_write(NULL, (enum slc_model_form)form, path, &view, err);
    }
    if (status == SLC_OK && model->record != NULL) {
        status = slc_run_record_write(model->record, record, err);
    }
    slc_free(record);
    return status;
}

static enum slc_status take_predict(struct sluice_predict_options *known,
                                    const struct sluice_predict_options *options,
                                    struct slc_error *err)
{
    sluice_predict_options_init(known, sizeof *known);
    return api_take_options(known, sizeof *known, options, "sluice_predict_options", err);
}

enum slc_status sluice_predict(const struct sluice_cpd *model,
                               uint64_t count,
                               const uint64_t *const *coords,
                               double *values,
                               const struct sluice_predict_options *options,
                               struct slc_error *err)
{
    const struct slc_model_view view = api_model_view(model);
    struct sluice_predict_options known;
    enum slc_status status = take_predict(&known, options, err);

    return status == SLC_OK ? slc_predict_values(&view, count, coords, api_threads(known.threads),
                                                 known.stop, values, err)
                            : status;
}

/* What the command's table of options sees to. */
static enum slc_status
check_predict(const struct sluice_predict_options *known, const char *output, struct slc_error *err)
{
    if ((unsigned)known->form > SLUICE_PREDICT_NPY ||
        (unsigned)known->dialect > SLUICE_DIALECT_NPZ || known->index_base < -1 ||
        known->index_base > 1) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "form %d or dialect %d is not one of the enumerations, or index_base %d is "
                        "none of -1, 0 and 1",
                        (int)known->form, (int)known->dialect, (int)known->index_base);
    }
    if ((output == NULL) != (known->form == SLUICE_PREDICT_NONE)) {
        return slc_fail(err, SLC_ERR_USAGE, "%s",
                        output == NULL ? "there is no output for the values: name one, or ask for "
                                         "SLUICE_PREDICT_NONE"
                                       : "an output, but SLUICE_PREDICT_NONE writes no values");
    }
    if (known->form == SLUICE_PREDICT_NPY && strcmp(output, "-") == 0) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "a .npy file has its length at its beginning: name a file");
    }
    return SLC_OK;
}

enum slc_status sluice_predict_text(const struct sluice_cpd *model,
                                    const char *input,
                                    const char *output,
                                    const struct sluice_predict_options *options,
                                    struct sluice_predict_report *report,
                                    struct slc_error *err)
{
    const struct slc_model_view view = api_model_view(model);
    struct sluice_predict_options known;
    struct sluice_predict_report given = {.struct_bytes = sizeof given};
    struct slc_predict_options predict = {.input = input, .output = output, .model = &view};
    struct slc_predict_report made = {.rows = 0};
    enum slc_status status = take_predict(&known, options, err);

    if (status == SLC_OK) {
        status = api_check_report(report, "sluice_predict_report", err);
    }
    if (status == SLC_OK) {
        status = api_need_path(input, "input", err);
    }
    if (status == SLC_OK) {
        status = check_predict(&known, output, err);
    }
    if (status != SLC_OK) {
        return status;
    }
    predict.dialect = (enum slc_dialect)known.dialect;
    predict.index_base = known.index_base;
    predict.store_dialect = *model->dialect != '\0' ? model->dialect : NULL;
    predict.store_base = model->index_base;
    predict.form = (enum slc_predict_form)known.form;
    predict.overwrite = known.overwrite != 0;
    predict.threads = api_threads(known.threads);
    predict.stop = known.stop;
    predict.progress = known.progress;
    predict.context = known.context;
    status = slc_predict(&predict, &made, err);
    if (status != SLC_OK || report == NULL) {
        return status;
    }
    given.dialect = (enum sluice_dialect)made.dialect;
    given.index_base = made.index_base;
    given.has_values = made.has_values;
    given.rows = made.rows;
    given.rmse = made.rmse;
    given.mae = made.mae;
    given.largest = made.largest;
    given.values_norm = made.values_norm;
    return api_give_report(report, &given, sizeof given, "sluice_predict_report", err);
}
