/*
 * Public API: plans, and one MTTKRP on arrays of the caller.
 *
 * The caller's matrices are copied into padded ones, so that kernels may run whole vectors over a
 * row. The copies are part of the plan.
 */
#include "api/internal.h"
#include "base/error/log.h"
#include "engine/solve/relabel.h"
#include "gpu/gpu.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum slc_status api_take_compute(struct sluice_compute_options *known,
                                 const struct sluice_compute_options *given,
                                 struct slc_error *err)
{
    enum slc_status status;

    sluice_compute_options_init(known, sizeof *known);
    status = api_take_options(known, sizeof *known, given, "sluice_compute_options", err);
    if (status != SLC_OK) {
        return status;
    }
    if ((unsigned)known->io > SLUICE_IO_MMAP || (unsigned)known->schedule > SLUICE_SCHEDULE_FILE ||
        (unsigned)known->pin > SLUICE_PIN_ALWAYS ||
        (unsigned)known->layouts > SLUICE_LAYOUTS_SORTED ||
        (unsigned)known->passes > SLUICE_PASSES_FUSED) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "io %d, schedule %d, pin %d, layouts %d or passes %d is not one of the "
                        "enumerations",
                        (int)known->io, (int)known->schedule, (int)known->pin, (int)known->layouts,
                        (int)known->passes);
    }
    return SLC_OK;
}

struct slc_plan_request api_plan_request(const struct sluice_compute_options *options,
                                         enum slc_operation operation,
                                         unsigned mode,
                                         uint32_t rank)
{
    const struct slc_plan_request request = {.operation = operation,
                                             .mode = mode,
                                             .rank = rank,
                                             .precision = (enum slc_value_type)options->precision,
                                             .threads = options->threads,
                                             .deterministic = options->deterministic != 0,
                                             .io = (enum slc_io_kind)options->io,
                                             .schedule = (enum slc_schedule)options->schedule,
                                             .memory_bytes = options->memory_bytes,
                                             .slots = options->slots,
                                             .read_limit = options->io_limit,
                                             .cache = options->no_cache == 0,
                                             .copies = (enum slc_copies)options->copies,
                                             .layouts = (enum slc_layout_choice)options->layouts,
                                             .passes = (enum slc_passes)options->passes,
                                             .pin = (enum slc_pin)options->pin};

    return request;
}

enum slc_status api_device_wish(const struct sluice_compute_options *options,
                                struct slc_device_wish *wish,
                                struct slc_error *err)
{
    if ((unsigned)options->device > SLUICE_DEVICE_GPU ||
        options->device_count > SLUICE_MAX_DEVICES || options->streams > SLC_DEVICE_STREAMS) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "device %d is not one of the enumeration, or there are more than %d "
                        "devices (%u) or %d streams (%u)",
                        (int)options->device, SLUICE_MAX_DEVICES, options->device_count,
                        SLC_DEVICE_STREAMS, options->streams);
    }
    *wish = (struct slc_device_wish){.kind = (enum slc_device_kind)options->device,
                                     .memory_bytes = options->device_memory_bytes,
                                     .streams = options->streams,
                                     .split = options->split,
                                     .chip = options->device_name};
    if (wish->kind == SLC_DEVICE_GPU) {
        wish->count = options->device_count;
        for (unsigned d = 0; d < wish->count; d++) {
            wish->number[d] = options->devices[d];
        }
    } else {
        wish->count = options->device_count > 0;
        wish->number[0] = options->device_count;
    }
    return SLC_OK;
}

void api_log_refused(const struct slc_error *refused)
{
    char why[sizeof *refused];

    if (refused->status != SLC_OK) {
        (void)slc_error_format(refused, sluice_field_name, why, sizeof why);
        slc_log(SLC_LOG_NOTE, "GPU not used: %s", why);
    }
}

/* Plans a request for the store and for the devices that the options ask for; `plan_only`: nothing
 * will be computed. */
static enum slc_status plan_session(struct slc_session *session,
                                    const struct sluice_store *store,
                                    const struct slc_plan_request *request,
                                    const struct sluice_compute_options *options,
                                    bool plan_only,
                                    struct slc_error *err)
{
    struct slc_device_wish wish;
    const enum slc_status status = api_device_wish(options, &wish, err);

    wish.plan_only = plan_only;
    session->store = store->store;
    session->maker = slc_gpu_maker();
    return status == SLC_OK ? slc_session_plan(session, request, &wish, err) : status;
}

enum slc_status api_session_open(struct slc_session *session,
                                 const struct sluice_store *store,
                                 const struct slc_plan_request *request,
                                 const struct sluice_compute_options *options,
                                 struct slc_error *err)
{
    enum slc_status status = plan_session(session, store, request, options, false, err);

    if (status == SLC_OK) {
        status = slc_session_start(session, err);
    }
    if (status == SLC_OK) {
        api_log_refused(&session->no_gpu);
    }
    return status;
}

static enum slc_status give_plan(const struct sluice_store *store,
                                 enum slc_operation operation,
                                 uint32_t mode,
                                 uint32_t rank,
                                 const struct sluice_compute_options *options,
                                 struct sluice_plan *plan,
                                 struct slc_error *err)
{
    struct sluice_compute_options known;
    struct slc_plan_request request;
    /* All zero, as the plan stays where not even the indices fit: none is made then. */
    struct slc_session session = {.stream = NULL};
    const struct slc_plan *made = &session.plan;
    struct sluice_plan report = {.struct_bytes = sizeof report};
    enum slc_status status, given;

    status = api_check_report(plan, "sluice_plan", err);
    if (status == SLC_OK) {
        status = api_take_compute(&known, options, err);
    }
    if (status != SLC_OK) {
        return status;
    }
    request = api_plan_request(&known, operation, mode, rank);
    status = plan_session(&session, store, &request, &known, true, err);
    if (status != SLC_OK && status != SLC_ERR_BUDGET) {
        slc_session_close(&session);
        return status;
    }
    report.budget_bytes = made->budget_bytes;
    report.minimum_bytes = made->minimum_bytes;
    report.total_bytes = made->total_bytes;
    report.process_bytes = made->process_bytes;
    report.index_bytes = made->index_bytes;
    report.factor_bytes = made->factor_bytes;
    report.output_bytes = made->output_bytes;
    report.dense_bytes = made->dense_bytes;
    report.scratch_bytes = made->scratch_bytes;
    report.decoder_bytes = made->decoder_bytes;
    report.label_bytes = made->label_bytes;
    report.slot_bytes = made->slot_bytes;
    report.cache_bytes = made->cache_bytes;
    report.copies_bytes = made->copies_bytes;
    report.iteration_bytes = made->iteration_bytes;
    report.iteration_read_bytes = made->iteration_read_bytes;
    report.slot_count = made->slot_count;
    report.threads = made->threads;
    report.passes = (uint32_t)ceil(made->passes);
    report.mean_passes = made->passes;
    report.device_budget_bytes = made->gpu.budget_bytes;
    report.device_minimum_bytes = made->gpu.minimum_bytes;
    report.device_total_bytes = made->gpu.total_bytes;
    report.device_streams = made->gpu.streams;
    report.device_count = slc_plan_group_size(made);
    memcpy(report.device_name, made->gpu.name, sizeof report.device_name);
    report.device_slot_bytes = made->gpu.slot_bytes;
    report.device_resident_blocks = made->gpu.kept_blocks;
    report.device_resident_bytes = made->gpu.resident_bytes;
    report.device_copied_bytes = slc_plan_iteration_copied(made);
    report.device_host_bytes = made->request.gpu != NULL ? made->device_bytes : 0;
    report.device_described = made->gpu.described;
    report.device_multiprocessors = made->gpu.multiprocessors;
    slc_session_close(&session);
    given = api_give_report(plan, &report, sizeof report, "sluice_plan", err);
    return status != SLC_OK ? status : given;
}

enum slc_status sluice_cpd_plan(const struct sluice_store *store,
                                uint32_t rank,
                                const struct sluice_compute_options *options,
                                struct sluice_plan *plan,
                                struct slc_error *err)
{
    return give_plan(store, SLC_OP_CPD, 0, rank, options, plan, err);
}

enum slc_status sluice_mttkrp_plan(const struct sluice_store *store,
                                   uint32_t mode,
                                   uint32_t rank,
                                   const struct sluice_compute_options *options,
                                   struct sluice_plan *plan,
                                   struct slc_error *err)
{
    if (mode >= store->store.manifest.order) {
        return slc_fail(err, SLC_ERR_USAGE, "mode %u of a tensor of %u modes, from 0 on", mode,
                        store->store.manifest.order);
    }
    return give_plan(store, SLC_OP_MTTKRP, mode, rank, options, plan, err);
}

void api_copy_out(const struct slc_matrix *matrix, double *to)
{
    slc_matrix_get_rows(matrix, 0, matrix->rows, to);
}

static enum slc_status check_factors(const struct slc_manifest *manifest,
                                     uint32_t mode,
                                     const double *const *factors,
                                     struct slc_error *err)
{
    for (unsigned n = 0; n < manifest->order; n++) {
        if (n != mode && factors[n] == NULL) {
            return slc_fail(err, SLC_ERR_USAGE, "the factor of mode %u is NULL", n);
        }
    }
    return SLC_OK;
}

enum slc_status sluice_mttkrp(const struct sluice_store *store,
                              uint32_t mode,
                              uint32_t rank,
                              const double *const *factors,
                              double *output,
                              const struct sluice_compute_options *options,
                              struct slc_error *err)
{
    const struct slc_manifest *manifest = &store->store.manifest;
    struct sluice_compute_options known;
    struct slc_plan_request request;
    struct slc_session session = {.stream = NULL};
    struct slc_matrix copies[SLC_MAX_ORDER] = {0};
    struct slc_matrix result = {0};
    struct slc_session_pass pass = {.mode = mode, .factors = copies, .output = &result};
    struct api_blocks blocks;
    enum slc_status status;

    status = api_take_compute(&known, options, err);
    if (status != SLC_OK) {
        return status;
    }
    status = check_factors(manifest, mode, factors, err);
    if (status != SLC_OK) {
        return status;
    }
    request = api_plan_request(&known, SLC_OP_MTTKRP, mode, rank);
    status = api_session_open(&session, store, &request, &known, err);
    for (unsigned n = 0; status == SLC_OK && n < manifest->order; n++) {
        if (n != mode) {
            status = slc_matrix_create_from(&copies[n], request.precision, manifest->dims[n], rank,
                                            factors[n], err);
        }
        if (n != mode && status == SLC_OK) {
            status = slc_relabel_rows(&store->store, n, SLC_ROWS_OF_STORE, &copies[n], err);
        }
    }
    if (status == SLC_OK) {
        status = slc_matrix_create(&result, request.precision, manifest->dims[mode], rank, err);
    }
    if (status == SLC_OK) {
        pass.stop = known.stop;
        blocks = (struct api_blocks){known.progress, known.context, "mttkrp"};
        pass.progress = blocks.progress != NULL ? api_tell_blocks : NULL;
        pass.progress_context = &blocks;
        status = slc_session_mttkrp(&session, &pass, err);
    }
    if (status == SLC_OK) {
        status = slc_relabel_rows(&store->store, mode, SLC_ROWS_OF_INPUT, &result, err);
    }
    if (status == SLC_OK) {
        api_copy_out(&result, output);
    }
    for (unsigned n = 0; n < manifest->order; n++) {
        slc_matrix_destroy(&copies[n]);
    }
    slc_matrix_destroy(&result);
    slc_session_close(&session);
    return status;
}
