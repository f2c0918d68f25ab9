/* Products by naive loops; see mttkrp_oracle.h. */
#include "tools/bench/mttkrp/mttkrp_oracle.h"

#include "base/memory/checked.h"
#include "cpu/reference/reference.h"

#include <math.h>
#include <string.h>

/* Doubles that the products and magnitudes of the group's modes take; false beyond 64 bits. */
static bool count_elements(const struct slc_manifest *manifest,
                           const struct bench_mttkrp_group *group,
                           uint64_t *elements)
{
    uint64_t rows = 0;

    for (unsigned n = group->mode_begin; n < group->mode_end; n++) {
        if (!slc_add_u64(rows, manifest->dims[n], &rows)) {
            return false;
        }
    }
    return slc_mul_u64(rows, 2 * (uint64_t)group->rank, elements) &&
           *elements <= SIZE_MAX / 2 / sizeof(double);
}

static enum slc_status hold(const struct slc_session *session,
                            struct bench_mttkrp_group *group,
                            uint64_t *elements,
                            struct slc_error *err)
{
    const struct slc_manifest *manifest = &session->store.manifest;
    uint64_t list, bytes = UINT64_MAX;

    if (count_elements(manifest, group, elements) &&
        slc_mul_u64(manifest->nnz, (manifest->order + 1) * sizeof(uint64_t), &list) &&
        !slc_add_u64(list, *elements * sizeof(double), &bytes)) {
        bytes = UINT64_MAX;
    }
    return bench_mttkrp_hold(group, &session->plan, bytes, "what --check compares with", err);
}

enum slc_status bench_mttkrp_oracle_create(struct bench_mttkrp_oracle *oracle,
                                           const struct slc_session *session,
                                           struct bench_mttkrp_group *group,
                                           const struct bench_factors *factors,
                                           struct slc_error *err)
{
    const struct slc_matrix *matrices[SLC_MAX_ORDER];
    struct slc_coo_view view = {.order = session->store.manifest.order};
    uint64_t elements = 0;
    enum slc_status status = hold(session, group, &elements, err);
    double *at;

    if (status == SLC_OK) {
        status = ttv_tensor_load(&oracle->tensor, &session->store, err);
    }
    if (status == SLC_OK) {
        status =
            slc_buffer_create(&oracle->memory, elements * sizeof(double), SLC_PAGES_SMALL, err);
    }
    if (status != SLC_OK) {
        return status;
    }
    view.nnz = oracle->tensor.nnz;
    view.values = oracle->tensor.values;
    oracle->rank = group->rank;
    for (unsigned m = 0; m < view.order; m++) {
        view.coords[m] = oracle->tensor.coords[m];
        matrices[m] = &factors->factors[m];
    }
    at = oracle->memory.data;
    for (unsigned n = group->mode_begin; n < group->mode_end; n++) {
        const uint64_t rows = oracle->tensor.dims[n];

        oracle->want[n] = at;
        oracle->magnitude[n] = at + rows * group->rank;
        at += 2 * rows * group->rank;
        slc_reference_mttkrp(&view, matrices, n, rows, group->rank, oracle->want[n]);
        slc_reference_mttkrp_magnitude(&view, matrices, n, rows, group->rank, oracle->magnitude[n]);
    }
    return SLC_OK;
}

void bench_mttkrp_oracle_destroy(struct bench_mttkrp_oracle *oracle)
{
    ttv_tensor_destroy(&oracle->tensor);
    slc_buffer_destroy(&oracle->memory);
    memset(oracle, 0, sizeof *oracle);
}

double bench_mttkrp_oracle_error(const struct bench_mttkrp_oracle *oracle,
                                 unsigned mode,
                                 const struct slc_matrix *output)
{
    const double *want = oracle->want[mode];
    const double *magnitude = oracle->magnitude[mode];
    double error = 0;

    for (uint64_t i = 0; i < output->rows; i++) {
        for (uint32_t r = 0; r < oracle->rank; r++, want++, magnitude++) {
            const double difference = fabs(slc_matrix_get(output, i, r) - *want);

            if (difference != 0) {
                error = fmax(error, isnan(difference) ? INFINITY : difference / *magnitude);
            }
        }
    }
    return error;
}
