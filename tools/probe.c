/* See probe.h. */
#include "probe.h"

#include "base/clock.h"
#include "base/memory.h"
#include "engine/mttkrp.h"
#include "signals.h"

#include <string.h>

/* Long enough for rates within a few percent; a plan is asked for by somebody who waits. */
#define PROBE_SECONDS 1.5
/* At most, where passes take longer. */
#define PROBE_SECONDS_MOST 3.0
/* The start of a large one, or making copies per mode, is not looked into. */
#define PROBE_SECONDS_ALL 20.0

struct probe {
    struct estimator estimator;
    volatile int stop;
    unsigned mode; /* of an MTTKRP */
};

/* Ends what goes on when there has been enough of it, or a signal wants that. */
static void look_at_clock(struct probe *probe)
{
    const struct estimator *estimator = &probe->estimator;
    const double seconds = estimator_seconds(estimator) - estimator->first_seconds;
    const bool whole = estimator->completed > 0 || estimator->passes >= 1;

    if (seconds >= (whole ? PROBE_SECONDS : PROBE_SECONDS_MOST) || *signals_stop() != 0) {
        probe->stop = 1;
    }
}

static void
on_blocks(void *context, unsigned iteration, unsigned mode, uint64_t done, uint64_t blocks)
{
    struct probe *probe = context;

    (void)iteration;
    estimator_blocks(&probe->estimator, mode, done, blocks);
    look_at_clock(probe);
}

static void on_iteration(void *context, const struct slc_cp_iteration *iteration)
{
    struct probe *probe = context;

    estimator_iteration(&probe->estimator, iteration);
    look_at_clock(probe);
}

static void on_pass(void *context, uint64_t done, uint64_t blocks, uint64_t bytes_read)
{
    struct probe *probe = context;

    (void)bytes_read;
    estimator_blocks(&probe->estimator, probe->mode, done, blocks);
    look_at_clock(probe);
}

static enum slc_status
begin_cpd(struct session *session, unsigned iterations, struct probe *probe, struct slc_error *err)
{
    const struct slc_cp_als_options als = {.rank = session->plan.request.rank,
                                           .iterations = iterations,
                                           .deterministic = session->plan.request.deterministic,
                                           .devices = session->devices,
                                           .layouts = &session->layouts,
                                           .accelerators = session->group,
                                           .accelerator =
                                               session->group == NULL ? session->accelerator : NULL,
                                           .max_seconds = PROBE_SECONDS_ALL,
                                           .stop = &probe->stop,
                                           .iteration = on_iteration,
                                           .progress = on_blocks,
                                           .context = probe};
    struct slc_cp_result result = {.order = 0};
    const enum slc_status status = slc_cp_als(&session->store, session->stream, session->backend,
                                              &session->plan, &als, &result, err);

    slc_cp_result_destroy(&result);
    return status;
}

/* Small numbers, which fill the pages as those of a factor would. */
static enum slc_status make_matrix(const struct session *session,
                                   unsigned mode,
                                   struct slc_matrix *matrix,
                                   struct slc_error *err)
{
    const struct slc_plan_request *request = &session->plan.request;
    const enum slc_status status = slc_matrix_create(
        matrix, request->precision, session->store.manifest.dims[mode], request->rank, err);

    if (status == SLC_OK) {
        const size_t bytes = slc_value_bytes(matrix->type);
        char *rows = matrix->buffer.data;

        for (uint64_t i = 0; i < matrix->rows; i++) {
            memset(rows + i * matrix->pitch * bytes, 0x3c, matrix->cols * bytes);
        }
    }
    return status;
}

static enum slc_status
begin_mttkrp(struct session *session, struct probe *probe, struct slc_error *err)
{
    const struct slc_manifest *manifest = &session->store.manifest;
    const struct slc_plan *plan = &session->plan;
    const unsigned mode = plan->request.mode;
    struct slc_matrix matrices[SLC_MAX_ORDER] = {{0}}; /* in the mode's place the output */
    struct slc_mttkrp_job job = {.order = manifest->order,
                                 .mode = mode,
                                 .rank = plan->request.rank,
                                 .nnz = manifest->nnz,
                                 .workers = plan->threads,
                                 .deterministic = plan->request.deterministic,
                                 .partitions = plan->partitions[mode],
                                 .conflict = plan->choices[mode].chosen,
                                 .rival = plan->choices[mode].rival,
                                 .output = &matrices[mode]};
    enum slc_status status = SLC_OK;

    probe->mode = mode;
    for (unsigned n = 0; n < manifest->order && status == SLC_OK; n++) {
        status = make_matrix(session, n, &matrices[n], err);
        job.factors[n] = &matrices[n];
    }
    if (status == SLC_OK) {
        estimator_blocks(&probe->estimator, mode, 0, 1);
        status = slc_mttkrp_stream(session->stream, plan->mode_layout[mode], session->backend, &job,
                                   &probe->stop, on_pass, probe, err);
    }
    if (status == SLC_OK) {
        const struct slc_cp_iteration whole = {.iteration = 1,
                                               .seconds = estimator_seconds(&probe->estimator) -
                                                          probe->estimator.first_seconds};

        estimator_iteration(&probe->estimator, &whole);
    }
    for (unsigned n = 0; n < manifest->order; n++) {
        slc_matrix_destroy(&matrices[n]);
    }
    /* That it was stopped is what was wanted. */
    return status == SLC_ERR_INTERRUPTED ? SLC_OK : status;
}

static enum slc_status check(const struct session *session, struct slc_error *err)
{
    const struct slc_plan *plan = &session->plan;

    if (plan->total_bytes > slc_memory_total()) {
        return slc_fail(err, SLC_ERR_BUDGET,
                        "nothing is tried: this machine has less memory than would be held");
    }
    if (plan->request.operation == SLC_OP_MTTKRP &&
        (plan->devices > 0 || plan->request.accelerator != NULL)) {
        return slc_fail(err, SLC_ERR_UNSUPPORTED,
                        "nothing is tried: an MTTKRP on devices is not begun for an estimate");
    }
    return SLC_OK;
}

enum slc_status probe_run(struct session *session,
                          unsigned iterations,
                          struct estimate *estimate,
                          struct slc_error *err)
{
    struct probe probe = {.stop = 0};
    struct slc_stream_stats stats;
    struct slc_error fault = SLC_ERROR_INIT;
    enum slc_status status = check(session, err);

    if (status != SLC_OK) {
        return status;
    }
    estimator_start(&probe.estimator);
    status = session_start(session, err);
    if (status == SLC_OK) {
        probe.estimator.plan = &session->plan;
        probe.estimator.nnz = session->store.manifest.nnz;
        status = session->plan.request.operation == SLC_OP_CPD
                     ? begin_cpd(session, iterations, &probe, &fault)
                     : begin_mttkrp(session, &probe, &fault);
        if (status != SLC_OK) {
            *err = fault;
        }
    }
    if (status == SLC_OK) {
        slc_stream_stats(session->stream, &stats);
        estimator_mark(&probe.estimator, &stats);
        estimator_judge(&probe.estimator, iterations, estimate);
    }
    session_stop(session);
    return status == SLC_OK && *signals_stop() != 0
               ? slc_fail(err, SLC_ERR_INTERRUPTED, "stopped by a signal")
               : status;
}
