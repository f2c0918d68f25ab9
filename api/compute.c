/* Public functions that compute an MTTKRP with arrays of the caller.
 *
 * The caller's matrices are copied to padded matrices, so that kernels can process rows in whole
 * vectors. The plan includes the copies. */
#include "sluice/compute.h"
#include "api/session.h"
#include "engine/stream/relabel.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static enum slc_status read_options(struct sluice_mttkrp_options *known,
                                    const struct sluice_mttkrp_options *options,
                                    const struct sluice_store *store,
                                    uint32_t mode,
                                    struct slc_error *err)
{
    const unsigned order = store->store.manifest.order;

    SLC_TRY(API_READ_OPTIONS(sluice_mttkrp_options, known, options, err));
    if (mode >= order) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "mode %u does not exist: the tensor has %u modes, and modes start at 0",
                        mode, order);
    }
    return api_check_compute(&known->compute, err);
}

enum sluice_status sluice_mttkrp_plan(const struct sluice_store *store,
                                      uint32_t mode,
                                      uint32_t rank,
                                      const struct sluice_mttkrp_options *options,
                                      struct sluice_plan *plan,
                                      struct sluice_error *ret_err)
{
    struct slc_error fault = SLC_ERROR_INIT, *const err = &fault;

    API_NEED(err, ret_err, {"store", store}, {"plan", plan});
    struct sluice_mttkrp_options known = {0};
    enum slc_status status = read_options(&known, options, store, mode, err);

    if (status == SLC_OK) {
        (void)api_limit_memory(known.run.memory_bytes);
        const struct slc_plan_request request =
            api_plan_request(&known.compute, &known.run, SLC_OP_MTTKRP, mode, rank);

        status = api_plan(store, &request, &known.compute, plan, err);
    }
    return api_return(status, err, ret_err);
}

static enum slc_status check_arrays(const struct slc_manifest *manifest,
                                    uint32_t mode,
                                    uint32_t rank,
                                    const double *const *factors,
                                    uint64_t output_count,
                                    const double *weights,
                                    struct slc_error *err)
{
    for (unsigned n = 0; n < manifest->order; n++) {
        if (n != mode && factors[n] == NULL) {
            return slc_fail(err, SLC_ERR_USAGE, "the factor of mode %u is NULL", n);
        }
    }
    if (rank > 0 && output_count / rank < manifest->dims[mode]) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "output_count is %" PRIu64 ", but the result has %" PRIu64 " rows of %u",
                        output_count, manifest->dims[mode], rank);
    }
    for (uint32_t r = 0; weights != NULL && r < rank; r++) {
        if (!isfinite(weights[r])) {
            return slc_fail(err, SLC_ERR_INPUT, "weight %u is %g: must be finite", r, weights[r]);
        }
    }
    return SLC_OK;
}

/* Clears the rows outside of the part, of which the pass computed only some nonzeros. */
static void clear_other_rows(const struct slc_part *part, struct slc_matrix *output)
{
    const struct slc_row_span span = slc_session_part_rows(part, output->rows);
    const uint64_t row_bytes = (uint64_t)output->pitch * slc_value_bytes(output->type);
    char *rows = output->buffer.data;

    memset(rows, 0, span.first * row_bytes);
    memset(rows + span.end * row_bytes, 0, (output->rows - span.end) * row_bytes);
}

/* Copies the factors and multiplies; the caller destroys all matrices. */
static enum slc_status multiply(struct slc_session *session,
                                const struct sluice_store *store,
                                const double *const *factors,
                                struct slc_session_pass *pass,
                                struct slc_error *err)
{
    const struct slc_manifest *manifest = &store->store.manifest;
    const struct slc_plan_request *request = &session->plan.request;
    enum slc_status status = SLC_OK;

    for (unsigned n = 0; status == SLC_OK && n < manifest->order; n++) {
        if (n != pass->mode) {
            status = slc_matrix_create_from(&pass->factors[n], request->precision,
                                            manifest->dims[n], request->rank, factors[n], err);
        }
        if (n != pass->mode && status == SLC_OK) {
            status = slc_relabel_rows(&store->store, n, SLC_ROWS_OF_STORE, &pass->factors[n], err);
        }
    }
    SLC_THEN(status, slc_matrix_create(pass->output, request->precision, manifest->dims[pass->mode],
                                       request->rank, err));
    SLC_THEN(status, slc_session_mttkrp(session, pass, err));
    SLC_TRY(status);
    if (pass->part != NULL) {
        clear_other_rows(pass->part, pass->output);
    }
    return slc_relabel_rows(&store->store, pass->mode, SLC_ROWS_OF_INPUT, pass->output, err);
}

enum sluice_status sluice_mttkrp(const struct sluice_store *store,
                                 uint32_t mode,
                                 uint32_t rank,
                                 const double *const *factors,
                                 double *output,
                                 uint64_t output_count,
                                 const struct sluice_mttkrp_options *options,
                                 struct sluice_error *ret_err)
{
    struct slc_error fault = SLC_ERROR_INIT, *const err = &fault;

    API_NEED(err, ret_err, {"store", store}, {"factors", factors}, {"output", output});
    struct sluice_mttkrp_options known = {0};
    struct api_run run = {.phase = "mttkrp"};
    struct slc_session session = {.stream = NULL};
    struct slc_matrix copies[SLC_MAX_ORDER] = {0};
    struct slc_matrix result = {0};
    struct slc_part part = {.blocks = NULL};
    struct slc_session_pass pass = {.mode = mode, .factors = copies, .output = &result};
    enum slc_status status = read_options(&known, options, store, mode, err);

    SLC_THEN(status, check_arrays(&store->store.manifest, mode, rank, factors, output_count,
                                  known.weights, err));
    if (status != SLC_OK) {
        return api_return(status, err, ret_err);
    }
    if (known.parts > 0) {
        known.compute.deterministic = 1;
        known.compute.schedule = SLUICE_SCHEDULE_FILE;
    }
    api_run_init(&run, &known.run);
    pass.weights = known.weights;
    pass.stop = run.stop.flag;
    pass.progress = api_run_blocks(&run);
    pass.progress_context = &run;
    {
        const struct slc_plan_request request =
            api_plan_request(&known.compute, &run.options, SLC_OP_MTTKRP, mode, rank);

        status = api_session_open(&session, store, &request, &known.compute, err);
    }
    if (status == SLC_OK && known.parts > 0) {
        const struct slc_part_choice choice = {known.part, known.parts};

        status = slc_session_open_part(&session, mode, choice, &part, err);
        pass.part = &part;
    }
    SLC_THEN(status, multiply(&session, store, factors, &pass, err));
    slc_part_close(&part);
    SLC_THEN(status, api_copy_matrix(&result, output, output_count, err));
    for (unsigned n = 0; n < store->store.manifest.order; n++) {
        slc_matrix_destroy(&copies[n]);
    }
    slc_matrix_destroy(&result);
    slc_session_close(&session);
    return api_return(status, err, ret_err);
}
