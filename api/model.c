/* Public functions that make, load, read and save models. */
#include "storage/model/model.h"
#include "api/call.h"
#include "api/cpd.h"
#include "api/session.h"
#include "base/memory/memory.h"
#include "report/run_record.h"
#include "storage/model/run_folder.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum slc_status no_memory(struct slc_error *err)
{
    return slc_fail(err, SLC_ERR_MEMORY, "no memory for a model");
}

/* Sets the members that describe a run to unknown, for a model that no run of this process
 * computed. */
static void set_unknown(struct slc_cp_result *result, double norm)
{
    for (unsigned n = 0; n < result->order; n++) {
        result->mode_order[n] = n;
    }
    result->fit = (double)NAN;
    result->norm_x = norm;
    result->reason = SLC_STOP_ITERATIONS;
}

/* Allocates weights of 1. */
static enum slc_status create_weights(struct slc_cp_result *result, struct slc_error *err)
{
    result->lambda = slc_calloc(result->rank, sizeof *result->lambda);
    SLC_TRY(slc_check_memory(result->lambda != NULL, err, "for %" PRIu32 " weights", result->rank));
    for (uint32_t r = 0; r < result->rank; r++) {
        result->lambda[r] = 1;
    }
    return SLC_OK;
}

/* Loads weights and factors from a folder. The factors must have `order` modes of sizes `dims`. */
static enum slc_status load_model(const struct slc_files *files,
                                  unsigned order,
                                  const uint64_t *dims,
                                  double norm,
                                  const char *folder,
                                  struct slc_cp_result *result,
                                  struct slc_error *err)
{
    bool found = false;

    SLC_TRY(slc_model_read(files, folder, SLC_F64, order, dims, SLC_MAX_ORDER, &result->rank,
                           result->factors, err));
    result->order = order;
    set_unknown(result, norm);
    SLC_TRY(create_weights(result, err));
    return slc_model_read_lambda(files, folder, result->rank, result->lambda, &found, err);
}

/* Loads weights and factors of any shape from a folder. */
static enum slc_status load_folder(const struct slc_files *files,
                                   const char *folder,
                                   struct sluice_model *model,
                                   struct slc_error *err)
{
    struct slc_run_folder *run = slc_calloc(1, sizeof *run);
    enum slc_status status =
        run == NULL ? no_memory(err) : slc_run_folder_read(files, folder, run, err);

    SLC_THEN(status, load_model(run->files, run->order, run->dims, (double)NAN, folder,
                                &model->result, err));
    if (status == SLC_OK) {
        memcpy(model->dialect, run->record.dialect, sizeof model->dialect);
        model->index_base = run->record.index_base;
    }
    if (run != NULL) {
        slc_run_folder_close(run);
    }
    slc_free(run);
    return status;
}

enum sluice_status sluice_model_load(const struct sluice_store *store,
                                     const char *folder,
                                     struct sluice_model **ret_model,
                                     struct sluice_error *ret_err)
{
    struct slc_error fault = SLC_ERROR_INIT, *const err = &fault;

    API_NEED(err, ret_err, {"folder", folder}, {"ret_model", ret_model});
    const struct slc_manifest *manifest = store != NULL ? &store->store.manifest : NULL;
    const struct slc_files *files = slc_files_system();
    struct slc_error unheld = SLC_ERROR_INIT;
    struct slc_held_folder *held = NULL;
    struct sluice_model *model = slc_calloc(1, sizeof *model);
    enum slc_status status = model != NULL ? SLC_OK : no_memory(err);

    if (status == SLC_OK && slc_model_hold(NULL, folder, &held, &unheld) == SLC_OK) {
        files = slc_held_folder_files(held);
    }
    /* If the folder could not be held open, the calls below report why. */
    SLC_THEN(status, manifest != NULL
                         ? load_model(files, manifest->order, manifest->dims,
                                      sqrt(manifest->sum_of_squares), folder, &model->result, err)
                         : load_folder(files, folder, model, err));
    SLC_THEN(status, api_record_load(files, folder, &model->result, &model->record, err));
    slc_held_folder_close(held);
    if (status != SLC_OK) {
        sluice_model_destroy(model);
        return api_return(status, err, ret_err);
    }
    if (manifest != NULL) {
        memcpy(model->dialect, manifest->origin.dialect, sizeof model->dialect);
        model->index_base = manifest->origin.index_base;
    }
    *ret_model = model;
    return SLUICE_OK;
}

static enum slc_status check_shape(uint32_t order,
                                   const uint64_t *dims,
                                   uint32_t rank,
                                   const double *const *factors,
                                   struct slc_error *err)
{
    if (order < 1 || order > SLC_MAX_ORDER || rank < 1 || rank > SLC_MAX_RANK) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "a model of %" PRIu32 " modes and %" PRIu32
                        " components: a model has 1 to %d modes and 1 to %d components",
                        order, rank, SLC_MAX_ORDER, SLC_MAX_RANK);
    }
    for (unsigned n = 0; n < order; n++) {
        if (factors[n] == NULL || dims[n] < 1 || dims[n] > SLC_MAX_MODE_LENGTH) {
            return slc_fail(err, SLC_ERR_USAGE,
                            "the factor of mode %u is NULL, or its number of rows, %" PRIu64
                            ", is not "
                            "1 to 2^62",
                            n, dims[n]);
        }
    }
    return SLC_OK;
}

static enum slc_status copy_model(const uint64_t *dims,
                                  const double *weights,
                                  const double *const *factors,
                                  struct slc_cp_result *result,
                                  struct slc_error *err)
{
    SLC_TRY(create_weights(result, err));
    for (unsigned n = 0; n < result->order; n++) {
        SLC_TRY(slc_matrix_create_from(&result->factors[n], SLC_F64, dims[n], result->rank,
                                       factors[n], err));
    }
    for (uint32_t r = 0; r < result->rank && weights != NULL; r++) {
        if (!isfinite(weights[r])) {
            return slc_fail(err, SLC_ERR_INPUT, "weight %" PRIu32 " is %g", r, weights[r]);
        }
        result->lambda[r] = weights[r];
    }
    return SLC_OK;
}

enum sluice_status sluice_model_create(uint32_t order,
                                       const uint64_t *dims,
                                       uint32_t rank,
                                       const double *weights,
                                       const double *const *factors,
                                       struct sluice_model **ret_model,
                                       struct sluice_error *ret_err)
{
    struct slc_error fault = SLC_ERROR_INIT, *const err = &fault;

    API_NEED(err, ret_err, {"dims", dims}, {"factors", factors}, {"ret_model", ret_model});
    struct sluice_model *model = NULL;
    enum slc_status status = check_shape(order, dims, rank, factors, err);

    if (status == SLC_OK) {
        model = slc_calloc(1, sizeof *model);
        status = model != NULL ? SLC_OK : no_memory(err);
    }
    if (status == SLC_OK) {
        model->result.order = order;
        model->result.rank = rank;
        set_unknown(&model->result, (double)NAN);
        status = copy_model(dims, weights, factors, &model->result, err);
    }
    if (status == SLC_OK) {
        *ret_model = model;
    } else {
        sluice_model_destroy(model);
    }
    return api_return(status, err, ret_err);
}

enum sluice_status sluice_model_set_loss(struct sluice_model *model,
                                         enum sluice_loss loss,
                                         double huber,
                                         struct sluice_error *ret_err)
{
    struct slc_error fault = SLC_ERROR_INIT, *const err = &fault;

    API_NEED(err, ret_err, {"model", model});
    enum slc_status status = API_CHECK_CHOICES(err, {"loss", (int)loss, SLUICE_LOSS_HUBER});
    if (status == SLC_OK && loss == SLUICE_LOSS_HUBER && !(huber > 0.0 && isfinite(huber))) {
        status =
            slc_fail(err, SLC_ERR_USAGE, "huber is %g: a finite number above 0 is required", huber);
    }
    if (status == SLC_OK) {
        model->result.loss = (enum slc_loss)loss;
        model->result.huber = huber;
    }
    return api_return(status, err, ret_err);
}

void sluice_model_destroy(struct sluice_model *model)
{
    if (model != NULL) {
        slc_cp_result_destroy(&model->result);
        free(model->record);
        slc_free(model);
    }
}

enum sluice_status sluice_model_get_info(const struct sluice_model *model,
                                         struct sluice_model_info *info,
                                         struct sluice_error *ret_err)
{
    struct slc_error fault = SLC_ERROR_INIT, *const err = &fault;

    API_NEED(err, ret_err, {"model", model}, {"info", info});
    const struct slc_cp_result *result = &model->result;
    struct sluice_model_info known = {.order = result->order,
                                      .rank = result->rank,
                                      .iterations = result->iterations,
                                      .stop_reason = (enum sluice_stop_reason)result->reason,
                                      .fit = result->fit,
                                      .norm = result->norm_x,
                                      .resumes = result->checkpoints.resumes,
                                      .checkpoints = result->checkpoints.count,
                                      .seconds = result->times.total,
                                      .mttkrp_seconds = result->times.mttkrp,
                                      .solve_seconds = result->times.solve,
                                      .fit_seconds = result->times.fit,
                                      .checkpoint_seconds = result->checkpoints.seconds,
                                      .bytes_read = model->bytes_read,
                                      .heldout = result->heldout,
                                      .heldout_rmse = result->heldout_rmse,
                                      .heldout_mae = result->heldout_mae,
                                      .heldout_deviance = result->heldout_deviance,
                                      .huber = result->huber,
                                      .loss = (uint64_t)result->loss,
                                      .heldout_norm = result->heldout_norm,
                                      .device_nnz = result->gpu.nnz,
                                      .biases = result->biases,
                                      .bias_modes = result->bias_modes,
                                      .objective = result->objective,
                                      .violation = result->violation};

    if (result->reason == SLC_STOP_TIME || result->reason == SLC_STOP_SIGNAL) {
        known.resume_iteration = result->resume_iteration;
        known.resume_mode = result->resume_mode;
    }
    for (unsigned n = 0; n < result->order; n++) {
        known.dims[n] = result->factors[n].rows;
        known.mode_order[n] = result->mode_order[n];
    }
    return api_return(API_FILL_REPORT(sluice_model_info, info, &known, err), err, ret_err);
}

enum sluice_status sluice_model_get_weights(const struct sluice_model *model,
                                            double *weights,
                                            uint64_t count,
                                            struct sluice_error *ret_err)
{
    struct slc_error fault = SLC_ERROR_INIT, *const err = &fault;

    API_NEED(err, ret_err, {"model", model}, {"weights", weights});
    const uint32_t rank = model->result.rank;
    enum slc_status status = SLC_OK;

    if (count < rank) {
        status = slc_fail(err, SLC_ERR_USAGE,
                          "an array of %" PRIu64 " numbers is too small for %" PRIu32 " weights",
                          count, rank);
    } else {
        memcpy(weights, model->result.lambda, rank * sizeof *weights);
    }
    return api_return(status, err, ret_err);
}

enum sluice_status sluice_model_get_factor(const struct sluice_model *model,
                                           uint32_t mode,
                                           double *factor,
                                           uint64_t count,
                                           struct sluice_error *ret_err)
{
    struct slc_error fault = SLC_ERROR_INIT, *const err = &fault;

    API_NEED(err, ret_err, {"model", model}, {"factor", factor});
    const enum slc_status status =
        mode < model->result.order
            ? api_copy_matrix(&model->result.factors[mode], factor, count, err)
            : slc_fail(err, SLC_ERR_USAGE,
                       "mode %u does not exist: the model has %u modes, and modes start at 0", mode,
                       model->result.order);

    return api_return(status, err, ret_err);
}

const char *sluice_model_record(const struct sluice_model *model)
{
    return model != NULL ? model->record : NULL;
}

/* Returns a recorded number; NaN for null and for a member that is missing. */
static double recorded_number(const json_t *value)
{
    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

static void read_diagnosis(const json_t *recorded, struct sluice_diagnosis *diagnosis)
{
    const json_t *pair = json_object_get(recorded, "cancelling");
    const json_t *notes = json_object_get(recorded, "notes");

    diagnosis->smallest_congruence =
        recorded_number(json_object_get(recorded, "smallest_congruence"));
    for (unsigned n = 0; n < SLUICE_MAX_ORDER; n++) {
        diagnosis->condition[n] =
            recorded_number(json_array_get(json_object_get(recorded, "condition"), n));
    }
    diagnosis->cancels = json_array_size(pair) == 2;
    for (unsigned k = 0; k < 2 && diagnosis->cancels; k++) {
        diagnosis->cancelling[k] = (uint32_t)(json_integer_value(json_array_get(pair, k)) - 1);
    }
    diagnosis->fit_rising = json_is_true(json_object_get(recorded, "fit_rising"));
    diagnosis->heldout_no_better_than_zeros =
        json_is_true(json_object_get(recorded, "heldout_no_better_than_zeros"));
    for (size_t i = 0; i < json_array_size(notes) && i < SLUICE_MAX_NOTES; i++) {
        const char *text = json_string_value(json_array_get(notes, i));

        (void)snprintf(diagnosis->notes[diagnosis->note_count++], sizeof diagnosis->notes[0], "%s",
                       text != NULL ? text : "");
    }
}

enum sluice_status sluice_model_get_diagnosis(const struct sluice_model *model,
                                              struct sluice_diagnosis *diagnosis,
                                              struct sluice_error *ret_err)
{
    struct slc_error fault = SLC_ERROR_INIT, *const err = &fault;

    API_NEED(err, ret_err, {"model", model}, {"diagnosis", diagnosis});
    struct sluice_diagnosis known = {.note_count = 0};
    enum slc_status status = api_check_report(diagnosis, "sluice_diagnosis", err);
    json_t *record = NULL;

    if (status == SLC_OK && model->record != NULL) {
        record = json_loads(model->record, 0, NULL);
        /* The text was parsed when the record was made or loaded. */
        status = slc_check_memory(record != NULL, err, "for the record of a run");
    }
    read_diagnosis(json_object_get(record, "diagnosis"), &known);
    SLC_THEN(status, API_FILL_REPORT(sluice_diagnosis, diagnosis, &known, err));
    json_decref(record);
    return api_return(status, err, ret_err);
}

struct slc_model_view api_model_view(const struct sluice_model *model)
{
    struct slc_model_view view = {.order = model->result.order,
                                  .rank = model->result.rank,
                                  .lambda = model->result.lambda,
                                  .loss = model->result.loss,
                                  .huber = model->result.huber};

    for (unsigned n = 0; n < view.order; n++) {
        view.factors[n] = &model->result.factors[n];
    }
    return view;
}

enum slc_status api_model_save(const struct sluice_model *model,
                               enum sluice_model_form form,
                               const char *path,
                               struct slc_error *err)
{
    const struct slc_model_view view = api_model_view(model);

    if ((unsigned)form < SLUICE_MODEL_NPY || (unsigned)form > SLUICE_MODEL_MATLAB) {
        return slc_fail(err, SLC_ERR_USAGE, "form %d: a model cannot be saved in this form",
                        (int)form);
    }
    char *record = api_record_path(form, path);
    enum slc_status status = record == NULL ? no_memory(err) : slc_run_record_remove(record, err);
    SLC_THEN(status, slc_model_write(NULL, (enum slc_model_form)(form - 1), path, &view, err));
    if (status == SLC_OK && model->record != NULL) {
        status = slc_run_record_write(model->record, record, err);
    }
    slc_free(record);
    return status;
}

enum sluice_status sluice_model_save(const struct sluice_model *model,
                                     enum sluice_model_form form,
                                     const char *path,
                                     struct sluice_error *ret_err)
{
    struct slc_error fault = SLC_ERROR_INIT, *const err = &fault;

    API_NEED(err, ret_err, {"model", model}, {"path", path});

    return api_return(api_model_save(model, form, path, err), err, ret_err);
}
