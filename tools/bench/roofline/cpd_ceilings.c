/* Measures the ceilings of the phases of a CP-ALS iteration. */
#include "tools/bench/roofline/cpd_ceilings.h"

#include "base/error/clock.h"
#include "base/memory/checked.h"
#include "engine/executor/gpu_group.h"
#include "gpu/measure.h"
#include "tools/bench/device/device.h"
#include "tools/bench/device/device_summary.h"
#include "tools/bench/measure/raw_read.h"
#include "tools/bench/measure/resident.h"
#include "tools/bench/mttkrp/mttkrp_model.h"
#include "tools/bench/roofline/ceiling.h"

#include <math.h>

/* Number of samples of a ceiling. The ceiling is the rate of the fastest sample. */
enum { REPEATS = 3 };

/* Computes the seconds of plain direct reads of `bytes` bytes at the rate of reading the file. */
static enum slc_status
read_floor(const struct slc_session *session, double bytes, double *seconds, struct slc_error *err)
{
    const struct slc_plan *plan = &session->plan;
    struct bench_raw *raw = NULL;
    double fastest = INFINITY;
    enum slc_status status = bench_raw_open(slc_reader_path(session->store.reader),
                                            plan->slot_bytes, plan->slot_count, &raw, err);

    for (unsigned i = 0; i < REPEATS && status == SLC_OK; i++) {
        const uint64_t start_ns = slc_clock_ns();

        status = bench_raw_sweep(raw, true, err);
        fastest = fmin(fastest, slc_seconds_since(start_ns));
    }
    if (status == SLC_OK) {
        *seconds = fastest * bytes / (double)bench_raw_file_bytes(raw);
    }
    bench_raw_close(raw);
    return status;
}

/* Measures the seconds that the decoder needs for one pass, without waiting for reads. */
static enum slc_status
decode_floor(const struct slc_session *session, double *seconds, struct slc_error *err)
{
    *seconds = INFINITY;
    for (unsigned i = 0; i < REPEATS; i++) {
        struct slc_stream_stats before, after;

        slc_stream_stats(session->stream, &before);
        SLC_TRY(bench_decode_pass(session->stream, err));
        slc_stream_stats(session->stream, &after);
        *seconds =
            fmin(*seconds, (after.decode_seconds - before.decode_seconds) / session->plan.threads);
    }
    return SLC_OK;
}

/* Sets the seconds that the MTTKRPs of all modes take at the rate of a gather of factor rows. */
static enum slc_status gather_floor(const struct slc_session *session,
                                    struct bench_ceilings *known,
                                    double *seconds,
                                    struct slc_error *err)
{
    const struct slc_manifest *manifest = &session->store.manifest;
    const struct slc_plan_request *request = &session->plan.request;
    const double bytes =
        (double)manifest->nnz *
        bench_model_bytes_per_nnz(manifest->order, request->precision, request->rank);
    const uint64_t row_bytes = bench_model_row_bytes(request->precision, request->rank);
    double rate = 1;
    const enum slc_status status =
        bench_ceiling(known, BENCH_GATHER, bench_model_set_bytes(manifest, row_bytes), row_bytes,
                      session->plan.threads, &rate, err);

    *seconds = manifest->order * bytes / rate;
    return status;
}

/* Sets the seconds that a copy of the output of every mode to its factor takes. */
static enum slc_status copy_floor(const struct slc_session *session,
                                  struct bench_ceilings *known,
                                  double *seconds,
                                  struct slc_error *err)
{
    const struct slc_manifest *manifest = &session->store.manifest;
    const struct slc_plan *plan = &session->plan;

    *seconds = 0;
    for (unsigned n = 0; n < manifest->order; n++) {
        const uint64_t bytes = 2 * slc_matrix_footprint(plan->request.precision, manifest->dims[n],
                                                        plan->request.rank);
        double rate = 1;

        SLC_TRY(bench_ceiling(known, BENCH_COPY, bytes, 0, plan->threads, &rate, err));
        *seconds += (double)bytes / rate;
    }
    return SLC_OK;
}

/* ---- ceilings of a GPU */

enum { PAGE_BYTES = 4096, LEAST_ROW_BYTES = 16, LARGEST_ROW_BYTES = 512 };

/* Maximum number of bytes that a run moves, so that it lasts only a few milliseconds. */
#define MOST_BYTES (UINT64_C(8) << 30)

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

/* Sets the seconds to move `bytes`, or NAN if too little device memory is free. */
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

/* Measures the ceilings of iterations on one open GPU. `multiply` is the seconds to move the bytes
 * of MTTKRPs of all modes (device_summary.h) at the rate of reads of rows at random places.
 * `update` is the seconds to copy all outputs to the factors. Both are NAN with several devices,
 * and if too little device memory is free. Errors: SLC_ERR_SYSTEM. */
static enum slc_status measure_device(const struct slc_session *session,
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

    *ceilings = (struct bench_cpd_ceilings){NAN, NAN, NAN, NAN, NAN};
    if (session->group != NULL) {
        return SLC_OK;
    }
    while (row_bytes < LARGEST_ROW_BYTES && row_bytes < row) {
        row_bytes *= 2;
    }
    /* The measurement moves the bytes of the MTTKRPs of all modes. */
    SLC_TRY(measure_seconds(
        session, SLC_GPU_CEILING_ROWS, (double)bench_model_set_bytes(manifest, (uint64_t)row),
        row_bytes, manifest->order * (double)manifest->nnz * model, &ceilings->multiply, err));
    for (unsigned n = 0; n < manifest->order; n++) {
        update += 2 * row * (double)manifest->dims[n];
    }
    return measure_seconds(session, SLC_GPU_CEILING_COPY, update, 0, update, &ceilings->update,
                           err);
}

enum slc_status bench_cpd_ceilings_measure(const struct slc_session *session,
                                           double passes,
                                           double read_bytes,
                                           struct bench_cpd_ceilings *ceilings,
                                           struct slc_error *err)
{
    struct bench_ceilings known = {.count = 0};

    if (session->gpu != NULL) {
        return measure_device(session, ceilings, err);
    }
    ceilings->decode = ceilings->read = NAN;
    SLC_TRY(decode_floor(session, &ceilings->pass, err));
    if (passes > 0) {
        ceilings->decode = passes * ceilings->pass;
    }
    if (read_bytes > 0) {
        SLC_TRY(read_floor(session, read_bytes, &ceilings->read, err));
    }
    SLC_TRY(gather_floor(session, &known, &ceilings->multiply, err));
    return copy_floor(session, &known, &ceilings->update, err);
}
