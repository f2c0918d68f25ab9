#include "tools/forecast/probe.h"

#include "tools/forecast/forecast.h"

#include "base/error/clock.h"
#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "engine/stream/mttkrp.h"
#include "storage/block/reader.h"
#include "storage/file/block_file.h"
#include "storage/file/files.h"
#include "tools/options/fields.h"
#include "tools/progress/console.h"
#include "tools/progress/signals.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

/* A trial run that has completed whole passes ends after this fraction of its time, which is enough
 * to measure rates to within a few percent. */
#define ENOUGH_SHARE 0.75
/* The steps before the first block may take at most this fraction of the time. */
#define START_SHARE 0.6
/* If the steps before the first block fill or read fewer bytes than this, they are fast enough, and
 * try_memory is not called. */
#define START_BYTES_SURE (UINT64_C(64) << 20)
/* Bytes of new memory that try_memory touches. */
#define TRIAL_BYTES (UINT64_C(32) << 20)
enum { LOOK_NS = 10000000 };

struct probe {
    struct estimator estimator;
    const struct slc_cp_options *solver; /* options of a decomposition */
    double seconds;
    volatile int stop;
    atomic_bool over;
    unsigned mode; /* mode of an MTTKRP */
};

static void stop_probe(struct probe *probe)
{
    __atomic_store_n(&probe->stop, 1, __ATOMIC_RELAXED);
}

/* Stops the trial run as soon as it is long enough. */
static void check_duration(struct probe *probe)
{
    const struct estimator *estimator = &probe->estimator;
    const double seconds = estimator_seconds(estimator) - estimator->first_seconds;

    if ((estimator->completed > 0 || estimator->passes >= 1) &&
        seconds >= ENOUGH_SHARE * probe->seconds) {
        stop_probe(probe);
    }
}

/* The thread that stops the trial run when the time is over or after a signal, even while a block
 * is in progress. */
static void *watch_clock(void *context)
{
    struct probe *probe = context;
    const struct timespec nap = {.tv_nsec = LOOK_NS};

    while (!atomic_load(&probe->over)) {
        if (estimator_seconds(&probe->estimator) >= probe->seconds || signals_stop_requested()) {
            stop_probe(probe);
        }
        (void)nanosleep(&nap, NULL);
    }
    return NULL;
}

static void
on_blocks(void *context, unsigned iteration, unsigned mode, uint64_t done, uint64_t blocks)
{
    struct probe *probe = context;

    (void)iteration;
    estimator_blocks(&probe->estimator, mode, done, blocks);
    check_duration(probe);
}

static void on_iteration(void *context, const struct slc_cp_iteration *iteration)
{
    struct probe *probe = context;

    estimator_iteration(&probe->estimator, iteration);
    check_duration(probe);
}

static void on_pass(void *context, uint64_t done, uint64_t blocks, uint64_t bytes_read)
{
    struct probe *probe = context;

    (void)bytes_read;
    estimator_blocks(&probe->estimator, probe->mode, done, blocks);
    check_duration(probe);
}

static enum slc_status start_cpd(struct slc_session *session,
                                 unsigned iterations,
                                 struct probe *probe,
                                 struct slc_error *err)
{
    struct slc_cp_options options = *probe->solver;
    struct slc_cp_result result = {.order = 0};

    options.iterations = iterations;
    options.tolerance = 0.0;
    options.holdout = 0.0;
    options.deterministic = session->plan.request.deterministic;
    options.parts = session->parts;
    options.max_seconds = probe->seconds;
    options.checkpoint = NULL;
    options.init_folder = NULL;
    options.resumed = NULL;
    options.checkpointed = NULL;
    options.stop = &probe->stop;
    options.iteration = on_iteration;
    options.progress = on_blocks;
    options.context = probe;
    const enum slc_status status = slc_cp_run(&session->store, session->stream, session->backend,
                                              &session->plan, &options, &result, err);

    slc_cp_result_destroy(&result);
    return status;
}

/* Allocates a factor and fills its pages with small numbers. */
static enum slc_status make_matrix(const struct slc_session *session,
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
start_mttkrp(struct slc_session *session, struct probe *probe, struct slc_error *err)
{
    const struct slc_manifest *manifest = &session->store.manifest;
    const struct slc_plan *plan = &session->plan;
    const unsigned mode = plan->request.mode;
    /* the element of the computed mode is the output */
    struct slc_matrix matrices[SLC_MAX_ORDER] = {{0}};
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
    /* Stopping the trial run is not an error. */
    return status == SLC_ERR_INTERRUPTED ? SLC_OK : status;
}

static enum slc_status check_session(const struct slc_session *session, struct slc_error *err)
{
    const struct slc_plan *plan = &session->plan;

    if (plan->total_bytes > slc_memory_total()) {
        return slc_fail(err, SLC_ERR_BUDGET, "this machine has less memory than the plan needs");
    }
    if (plan->request.operation == SLC_OP_MTTKRP &&
        (plan->cpu_groups > 0 || plan->request.gpu != NULL)) {
        return slc_fail(err, SLC_ERR_UNSUPPORTED,
                        "MTTKRP on devices is not supported by trial runs");
    }
    return SLC_OK;
}

/* Measures the bytes per second of touching new memory. */
static double try_memory(void)
{
    const uint64_t start_ns = slc_clock_ns();
    struct slc_buffer buffer = SLC_BUFFER_INIT;
    double rate = 0;

    if (slc_buffer_create(&buffer, TRIAL_BYTES, SLC_PAGES_SMALL, NULL) == SLC_OK) {
        memset(buffer.data, 0x3c, TRIAL_BYTES);
        rate = (double)TRIAL_BYTES / (slc_seconds_since(start_ns) + 1e-9);
    }
    slc_buffer_destroy(&buffer);
    return rate;
}

/* Estimates whether the first block would be computed in time. The steps before the first block
 * cannot be interrupted: slots and factors are filled, and one block per worker is read. */
static enum slc_status check_start_time(const struct slc_session *session,
                                        double seconds,
                                        struct estimate *estimate,
                                        bool *in_time,
                                        struct slc_error *err)
{
    const struct slc_plan *plan = &session->plan;
    const double workers = (double)slc_min_u64(plan->threads, plan->slot_count);
    const double touched = (double)plan->slot_count * (double)plan->slot_bytes +
                           2 * (double)plan->factor_bytes + (double)plan->output_bytes;
    const double first = workers * (double)plan->slot_bytes;
    const double memory = touched > (double)START_BYTES_SURE ? try_memory() : 0;
    double rate = 0, before = slc_ratio(touched, memory);
    enum slc_status status = SLC_OK;

    if (first > (double)START_BYTES_SURE) {
        struct slc_block_entry entry;

        slc_reader_entry(session->layouts.reader[0], 0, &entry);
        status =
            forecast_try_reading(session->store.files, slc_reader_path(session->layouts.reader[0]),
                                 entry.padded_bytes, &rate, err);
        before += slc_ratio(first, rate);
        estimate->read_rate = rate;
        estimate->reading = true;
        estimate->least_seconds = slc_ratio((double)estimate->read_bytes, rate);
    }
    estimate->start_seconds = before;
    estimate->enough_seconds = ceil(before / START_SHARE) + 1;
    *in_time = before < START_SHARE * seconds;
    return status;
}

/* Starts the operation, and a thread that stops it. */
static enum slc_status start_operation(struct slc_session *session,
                                       unsigned iterations,
                                       struct probe *probe,
                                       struct slc_error *err)
{
    struct slc_error fault = SLC_ERROR_INIT;
    pthread_t watcher;

    estimator_start(&probe->estimator);
    int code = pthread_create(&watcher, NULL, watch_clock, probe);
    if (code != 0) {
        return slc_fail(err, SLC_ERR_SYSTEM,
                        "cannot start the thread that stops the trial run: %s; raise the limit on "
                        "processes (ulimit -u)",
                        strerror(code));
    }
    enum slc_status status = slc_session_start(session, err);
    if (status == SLC_OK) {
        probe->estimator.plan = &session->plan;
        probe->estimator.nnz = session->store.manifest.nnz;
        status = session->plan.request.operation == SLC_OP_CPD
                     ? start_cpd(session, iterations, probe, &fault)
                     : start_mttkrp(session, probe, &fault);
        if (status != SLC_OK) {
            *err = fault;
        }
    }
    atomic_store(&probe->over, true);
    (void)pthread_join(watcher, NULL);
    return status;
}

static enum slc_status run(struct slc_session *session,
                           const struct slc_cp_options *solver,
                           unsigned iterations,
                           double seconds,
                           struct estimate *estimate,
                           struct slc_error *err)
{
    struct probe probe = {.solver = solver, .seconds = seconds};
    struct slc_stream_stats stats;
    bool in_time;

    SLC_TRY(check_session(session, err));
    estimator_start(&probe.estimator);
    probe.estimator.plan = &session->plan;
    estimator_estimate(&probe.estimator, iterations, estimate);
    enum slc_status status = check_start_time(session, seconds, estimate, &in_time, err);
    if (status != SLC_OK || !in_time) {
        return status;
    }
    status = start_operation(session, iterations, &probe, err);
    if (status == SLC_OK) {
        slc_stream_stats(session->stream, &stats);
        estimator_mark(&probe.estimator, &stats);
        estimator_estimate(&probe.estimator, iterations, estimate);
    }
    slc_session_stop(session);
    return status == SLC_OK && signals_stop_requested()
               ? slc_fail(err, SLC_ERR_INTERRUPTED, "stopped by a signal")
               : status;
}

enum slc_status probe_run(struct slc_session *session,
                          const struct slc_cp_options *solver,
                          unsigned iterations,
                          double seconds,
                          bool *estimated,
                          struct estimate *estimate,
                          struct slc_error *err)
{
    struct slc_error refused = SLC_ERROR_INIT;
    struct fault_text why;

    *estimated = false;
    if (session->plan.gpu.described) {
        console_note("no device: copy and kernel times not estimated");
        return SLC_OK;
    }
    enum slc_status status = run(session, solver, iterations, seconds, estimate, &refused);
    *estimated = status == SLC_OK;
    switch (status) {
    case SLC_OK:
        return SLC_OK;
    case SLC_ERR_BUDGET:
    case SLC_ERR_UNSUPPORTED:
    case SLC_ERR_INPUT:
    case SLC_ERR_NUMERIC:
        console_note("time not estimated: %s", fault_text(&why, &refused));
        return SLC_OK;
    default:
        *err = refused;
        return status;
    }
}
