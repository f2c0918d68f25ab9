/* Public functions that keep a mode of a tensor in memory and multiply it by vectors. */
#include "api/call.h"
#include "api/session.h"
#include "base/memory/memory.h"
#include "engine/product/fiber_operator.h"
#include "sluice/compute.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

struct sluice_ttv_operator {
    struct slc_fiber_operator fibers;
    unsigned threads;
};

enum sluice_status sluice_ttv_create(const struct sluice_store *store,
                                     uint32_t mode,
                                     const struct sluice_ttv_operator_options *options,
                                     struct sluice_ttv_operator **ret_ttv,
                                     struct sluice_error *ret_err)
{
    struct slc_error fault = SLC_ERROR_INIT, *const err = &fault;

    API_NEED(err, ret_err, {"store", store}, {"ret_ttv", ret_ttv});
    struct sluice_ttv_operator_options known = {0};
    struct api_run run = {.phase = NULL};
    struct slc_fiber_operator_options create = {.store = &store->store, .mode = mode};
    struct sluice_ttv_operator *made = slc_calloc(1, sizeof *made);
    enum slc_status status = slc_check_memory(made != NULL, err, "for an operator");

    SLC_THEN(status, API_READ_OPTIONS(sluice_ttv_operator_options, &known, options, err));
    if (status == SLC_OK) {
        api_run_init(&run, &known.run);
        API_SET_RUN(&create, &run);
        create.threads = api_run_threads(&run);
        made->threads = create.threads;
        status = slc_fiber_operator_create(&made->fibers, &create, err);
    }
    if (status == SLC_OK) {
        *ret_ttv = made;
    } else {
        slc_free(made);
    }
    return api_return(status, err, ret_err);
}

void sluice_ttv_destroy(struct sluice_ttv_operator *ttv)
{
    if (ttv != NULL) {
        slc_fiber_operator_destroy(&ttv->fibers);
        slc_free(ttv);
    }
}

enum sluice_status sluice_ttv_get_info(const struct sluice_ttv_operator *ttv,
                                       struct sluice_ttv_operator_info *info,
                                       struct sluice_error *ret_err)
{
    struct slc_error fault = SLC_ERROR_INIT, *const err = &fault;

    API_NEED(err, ret_err, {"ttv", ttv}, {"info", info});
    const struct slc_fiber_operator *fibers = &ttv->fibers;
    struct sluice_ttv_operator_info known = {.order = fibers->order,
                                             .mode = fibers->mode,
                                             .fibers = fibers->sptv.fibers,
                                             .nnz = fibers->sptv.nnz,
                                             .used = fibers->sptv.used,
                                             .memory_bytes = slc_fiber_operator_bytes(fibers)};

    memcpy(known.dims, fibers->dims, fibers->order * sizeof known.dims[0]);
    return api_return(API_FILL_REPORT(sluice_ttv_operator_info, info, &known, err), err, ret_err);
}

static enum slc_status check_count(
    const char *name, uint64_t count, uint64_t expected, const char *what, struct slc_error *err)
{
    return count == expected
               ? SLC_OK
               : slc_fail(err, SLC_ERR_USAGE, "%s is %" PRIu64 ", but there are %" PRIu64 " %s",
                          name, count, expected, what);
}

enum sluice_status sluice_ttv_get_indices(const struct sluice_ttv_operator *ttv,
                                          uint32_t mode,
                                          uint64_t *indices,
                                          uint64_t count,
                                          struct sluice_error *ret_err)
{
    struct slc_error fault = SLC_ERROR_INIT, *const err = &fault;

    API_NEED(err, ret_err, {"ttv", ttv}, {"indices", API_ARRAY(indices, count)});
    const struct slc_fiber_operator *fibers = &ttv->fibers;
    enum slc_status status = check_count("count", count, fibers->sptv.fibers, "fibers", err);

    if (status == SLC_OK && (mode >= fibers->order || mode == fibers->mode)) {
        status = slc_fail(err, SLC_ERR_USAGE,
                          "mode %" PRIu32 " is not a remaining mode: the tensor has modes 0 to %u, "
                          "of which mode %u is multiplied",
                          mode, fibers->order - 1, fibers->mode);
    }
    if (status == SLC_OK) {
        slc_fiber_operator_indices(fibers, mode, indices);
    }
    return api_return(status, err, ret_err);
}

/* Returns the error of a product with a sum that is not finite: names the number of the vector that
 * is not finite, if there is one. */
static enum slc_status fail_not_finite(const double *vector, uint64_t count, struct slc_error *err)
{
    const struct slc_matrix shape = {.cols = 1};

    for (uint64_t i = 0; i < count; i++) {
        if (!isfinite(vector[i])) {
            return slc_matrix_refuse(&shape, i, 0, vector[i], err);
        }
    }
    return slc_fail(err, SLC_ERR_INPUT,
                    "a sum is beyond the range of f64: scale the vector or the tensor");
}

enum sluice_status sluice_ttv_multiply(struct sluice_ttv_operator *ttv,
                                       const double *vector,
                                       uint64_t vector_count,
                                       double *sums,
                                       uint64_t sum_count,
                                       struct sluice_error *ret_err)
{
    struct slc_error fault = SLC_ERROR_INIT, *const err = &fault;

    API_NEED(err, ret_err, {"ttv", ttv}, {"vector", vector}, {"sums", API_ARRAY(sums, sum_count)});
    struct slc_sptv *sptv = &ttv->fibers.sptv;
    bool is_finite = true;
    enum slc_status status =
        check_count("vector_count", vector_count, sptv->length, "indices", err);

    SLC_THEN(status, check_count("sum_count", sum_count, sptv->fibers, "fibers", err));
    SLC_THEN(status, slc_sptv_multiply(sptv, vector, sums, ttv->threads, &is_finite, err));
    if (status == SLC_OK && !is_finite) {
        status = fail_not_finite(vector, vector_count, err);
    }
    return api_return(status, err, ret_err);
}
