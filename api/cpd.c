/*
 * Public API: CP decomposition and what can be asked of its result.
 */
#include "api/internal.h"
#include "base/memory.h"
#include "engine/solve/cp_als.h"
#include "storage/model.h"

#include <string.h>

struct sluice_cpd {
    struct slc_cp_result result;
};

static void report_iteration(void *context, const struct slc_cp_iteration *iteration)
{
    const struct sluice_cpd_options *options = context;
    struct sluice_cpd_iteration report = {.iteration = iteration->iteration,
                                          .fit = iteration->fit,
                                          .delta = iteration->delta,
                                          .seconds = iteration->seconds,
                                          .bytes_read = iteration->bytes_read};

    for (unsigned n = 0; n < SLC_MAX_ORDER; n++) {
        report.singular |= (uint32_t)iteration->singular[n] << n;
    }
    options->iteration(options->context, &report);
}

static struct slc_cp_als_options solver_options(struct sluice_cpd_options *known,
                                                const struct sluice_compute_options *compute,
                                                uint32_t rank)
{
    struct slc_cp_als_options options = {.rank = rank,
                                         .iterations = known->iterations,
                                         .tolerance = known->tolerance,
                                         .max_seconds = known->max_seconds,
                                         .regularization = known->regularization,
                                         .seed = known->seed,
                                         .init_folder = known->init_folder,
                                         .deterministic = compute->deterministic != 0,
                                         .stop = compute->stop,
                                         .context = known};

    if (known->iteration != NULL) {
        options.iteration = report_iteration;
    }
    return options;
}

enum slc_status sluice_cpd(const struct sluice_store *store,
                           uint32_t rank,
                           const struct sluice_cpd_options *options,
                           struct sluice_cpd **ret_model,
                           struct slc_error *err)
{
    struct sluice_cpd_options known;
    struct sluice_compute_options compute;
    struct slc_plan_request request;
    struct slc_cp_als_options solver;
    struct api_session session = {0};
    struct sluice_cpd *model = NULL;
    enum slc_status status;

    sluice_cpd_options_init(&known, sizeof known);
    status = api_take_options(&known, sizeof known, options, "sluice_cpd_options", err);
    if (status != SLC_OK) {
        return status;
    }
    status = api_take_compute(&compute, known.compute, err);
    if (status != SLC_OK) {
        return status;
    }
    model = slc_calloc(1, sizeof *model);
    if (model == NULL) {
        return slc_fail(err, SLC_ERR_MEMORY, "no memory for a model");
    }
    request = api_plan_request(&compute, SLC_OP_CPD, 0, rank);
    request.mode_order_set = known.mode_order_set != 0;
    for (unsigned n = 0; n < SLC_MAX_ORDER; n++) {
        request.mode_order[n] = known.mode_order[n];
    }
    status = api_session_open(&session, store, &request, err);
    if (status == SLC_OK) {
        solver = solver_options(&known, &compute, rank);
        status = slc_cp_als(&store->store, session.stream, session.backend, &session.plan, &solver,
                            &model->result, err);
    }
    api_session_close(&session);
    if (status != SLC_OK) {
        sluice_cpd_destroy(model);
        return status;
    }
    *ret_model = model;
    return SLC_OK;
}

void sluice_cpd_destroy(struct sluice_cpd *model)
{
    if (model != NULL) {
        slc_cp_result_destroy(&model->result);
        slc_free(model);
    }
}

uint32_t sluice_cpd_order(const struct sluice_cpd *model)
{
    return model->result.order;
}

uint32_t sluice_cpd_rank(const struct sluice_cpd *model)
{
    return model->result.rank;
}

double sluice_cpd_fit(const struct sluice_cpd *model)
{
    return model->result.fit;
}

uint32_t sluice_cpd_iterations(const struct sluice_cpd *model)
{
    return model->result.iterations;
}

enum sluice_stop sluice_cpd_stop(const struct sluice_cpd *model)
{
    return (enum sluice_stop)model->result.reason;
}

void sluice_cpd_lambda(const struct sluice_cpd *model, double *lambda)
{
    memcpy(lambda, model->result.lambda, model->result.rank * sizeof *lambda);
}

uint64_t sluice_cpd_rows(const struct sluice_cpd *model, uint32_t mode)
{
    return model->result.factors[mode].rows;
}

void sluice_cpd_factor(const struct sluice_cpd *model, uint32_t mode, double *factor)
{
    api_copy_out(&model->result.factors[mode], factor);
}

enum slc_status sluice_cpd_save(const struct sluice_cpd *model,
                                enum sluice_model_form form,
                                const char *path,
                                struct slc_error *err)
{
    struct slc_model_view view = {
        .order = model->result.order, .rank = model->result.rank, .lambda = model->result.lambda};

    for (unsigned n = 0; n < view.order; n++) {
        view.factors[n] = &model->result.factors[n];
    }
    return slc_model_write(NULL, (enum slc_model_form)form, path, &view, err);
}
