/* A GPU in CP-ALS; see cpd_device.h. */
#include "tools/bench/roofline/cpd_device.h"

#include "base/memory/checked.h"
#include "gpu/measure.h"
#include "tools/bench/device/device_mttkrp.h"
#include "tools/bench/device/device_summary.h"
#include "tools/bench/mttkrp/mttkrp_model.h"

#include <math.h>

enum { REPEATS = 3, PAGE_BYTES = 4096, LEAST_ROW_BYTES = 16, LARGEST_ROW_BYTES = 512 };

/* A run moves no more, so that it takes some milliseconds at most. */
#define MOST_BYTES (UINT64_C(8) << 30)

bool cpd_device_used(const struct slc_session *session)
{
    return session->gpu != NULL;
}

void cpd_device_stats(const struct slc_session *session, struct slc_device_stats *stats)
{
    if (session->group == NULL) {
        session->gpu->ops->stats(session->gpu, stats);
        return;
    }
    slc_gpu_group_sum(session->group, stats);
    stats->copy_seconds /= session->set.count;
    stats->compute_seconds /= session->set.count;
    stats->busy_seconds /= session->set.count;
}

/* Seconds in which `bytes` are moved; NAN without the memory. */
static enum slc_status measure_seconds(const struct slc_session *session,
                                       enum slc_gpu_ceiling ceiling,
                                       double set_bytes,
                                       uint32_t row_bytes,
                                       double bytes,
                                       double *seconds,
                                       struct slc_error *err)
{
    const struct slc_gpu_measurement measurement = {
        .ceiling = ceiling,
        .working_bytes =
            slc_div_up_u64(slc_max_u64((uint64_t)set_bytes, 1), PAGE_BYTES) * PAGE_BYTES,
        .moved_bytes = slc_min_u64(slc_max_u64((uint64_t)bytes, 1), MOST_BYTES),
        .row_bytes = row_bytes,
        .repeats = REPEATS};
    struct slc_error refused = SLC_ERROR_INIT;
    double rate = NAN;
    const enum slc_status status =
        slc_gpu_measure(session->set.ordinals[0], &measurement, &rate, &refused);

    *seconds = status == SLC_OK ? bytes / rate : NAN;
    if (status != SLC_OK && status != SLC_ERR_MEMORY && err != NULL) {
        *err = refused;
    }
    return status == SLC_ERR_MEMORY ? SLC_OK : status;
}

enum slc_status cpd_device_ceilings_measure(const struct slc_session *session,
                                            struct bench_cpd_ceilings *ceilings,
                                            struct slc_error *err)
{
    const struct slc_manifest *manifest = &session->store.manifest;
    const struct slc_plan_request *request = &session->plan.request;
    const double row = (double)bench_model_row_bytes(request->precision, request->rank);
    const double model = device_model_bytes(manifest->order, request->rank,
                                            (double)slc_value_bytes(request->precision),
                                            device_block_bytes_per_nnz(session->store.reader));
    uint32_t row_bytes = LEAST_ROW_BYTES;
    double update = 0;
    enum slc_status status = SLC_OK;

    *ceilings = (struct bench_cpd_ceilings){NAN, NAN, NAN, NAN, NAN};
    if (session->group != NULL) {
        return SLC_OK;
    }
    while (row_bytes < LARGEST_ROW_BYTES && row_bytes < row) {
        row_bytes *= 2;
    }
    /* An MTTKRP of each mode. */
    status = measure_seconds(
        session, SLC_GPU_CEILING_ROWS, (double)bench_model_set_bytes(manifest, (uint64_t)row),
        row_bytes, manifest->order * (double)manifest->nnz * model, &ceilings->multiply, err);
    for (unsigned n = 0; n < manifest->order; n++) {
        update += 2 * row * (double)manifest->dims[n];
    }
    return status == SLC_OK ? measure_seconds(session, SLC_GPU_CEILING_COPY, update, 0, update,
                                              &ceilings->update, err)
                            : status;
}
