/* Ceilings of the phases of an iteration; see cpd_ceilings.h. */
#include "tools/bench/roofline/cpd_ceilings.h"

#include "base/error/clock.h"
#include "tools/bench/measure/raw_read.h"
#include "tools/bench/measure/scan.h"
#include "tools/bench/mttkrp/mttkrp_model.h"
#include "tools/bench/roofline/ceiling.h"

#include <math.h>

/* A ceiling is the fastest of so many. */
enum { REPEATS = 3 };

/* Plain direct reads of `bytes`, from sweeps of the whole file. */
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

/* One pass by the decoder alone, without waiting for reads. */
static enum slc_status
decode_floor(const struct slc_session *session, double *seconds, struct slc_error *err)
{
    enum slc_status status = SLC_OK;

    *seconds = INFINITY;
    for (unsigned i = 0; i < REPEATS && status == SLC_OK; i++) {
        struct slc_stream_stats before, after;

        slc_stream_stats(session->stream, &before);
        status = bench_decode_pass(session->stream, err);
        slc_stream_stats(session->stream, &after);
        *seconds =
            fmin(*seconds, (after.decode_seconds - before.decode_seconds) / session->plan.threads);
    }
    return status;
}

/* The MTTKRPs of all modes at the rate of a gather of the factors' rows. */
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

/* A copy of every mode's output to its factor. */
static enum slc_status copy_floor(const struct slc_session *session,
                                  struct bench_ceilings *known,
                                  double *seconds,
                                  struct slc_error *err)
{
    const struct slc_manifest *manifest = &session->store.manifest;
    const struct slc_plan *plan = &session->plan;
    enum slc_status status = SLC_OK;

    *seconds = 0;
    for (unsigned n = 0; n < manifest->order && status == SLC_OK; n++) {
        const uint64_t bytes = 2 * slc_matrix_footprint(plan->request.precision, manifest->dims[n],
                                                        plan->request.rank);
        double rate = 1;

        status = bench_ceiling(known, BENCH_COPY, bytes, 0, plan->threads, &rate, err);
        *seconds += (double)bytes / rate;
    }
    return status;
}

enum slc_status bench_cpd_ceilings_measure(const struct slc_session *session,
                                           double passes,
                                           double read_bytes,
                                           struct bench_cpd_ceilings *ceilings,
                                           struct slc_error *err)
{
    struct bench_ceilings known = {.count = 0};
    enum slc_status status = decode_floor(session, &ceilings->pass, err);

    ceilings->decode = passes > 0 ? passes * ceilings->pass : NAN;
    ceilings->read = NAN;
    SLC_TRY(status);
    if (read_bytes > 0) {
        SLC_TRY(read_floor(session, read_bytes, &ceilings->read, err));
    }
    SLC_TRY(gather_floor(session, &known, &ceilings->multiply, err));
    return copy_floor(session, &known, &ceilings->update, err);
}
