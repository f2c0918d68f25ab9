/* Plans and sessions for the public functions that compute. */
#include "api/session.h"

#include "base/error/log.h"
#include "gpu/gpu.h"

#include <inttypes.h>
#include <string.h>

enum slc_status api_check_compute(const struct sluice_compute_options *compute,
                                  struct slc_error *err)
{
    return API_CHECK_CHOICES(err, {"precision", (int)compute->precision, SLUICE_F64},
                             {"io", (int)compute->io, SLUICE_IO_MMAP},
                             {"schedule", (int)compute->schedule, SLUICE_SCHEDULE_FILE},
                             {"pin", (int)compute->pin, SLUICE_PIN_ALWAYS},
                             {"layouts", (int)compute->layouts, SLUICE_LAYOUTS_SORTED},
                             {"passes", (int)compute->passes, SLUICE_PASSES_FUSED},
                             {"copies", (int)compute->copies, SLUICE_COPIES_ALWAYS});
}

struct slc_plan_request api_plan_request(const struct sluice_compute_options *compute,
                                         const struct sluice_run_options *run,
                                         enum slc_operation operation,
                                         unsigned mode,
                                         uint32_t rank)
{
    const struct slc_plan_request request = {
        .operation = operation,
        .mode = mode,
        .rank = rank,
        .precision = compute->precision != 0 ? (enum slc_value_type)compute->precision : SLC_F64,
        .threads = run->threads,
        .deterministic = compute->deterministic != 0,
        .io = (enum slc_io_kind)compute->io,
        .schedule = (enum slc_schedule)compute->schedule,
        .memory_bytes = run->memory_bytes,
        .slots = compute->slots,
        .read_limit = compute->io_limit,
        .cache = compute->no_cache == 0,
        .copies = (enum slc_copies)compute->copies,
        .layouts = (enum slc_layout_choice)compute->layouts,
        .passes = (enum slc_passes)compute->passes,
        .pin = (enum slc_pin)compute->pin};

    return request;
}

static enum slc_status read_split(const struct sluice_device_options *known,
                                  struct slc_split_wish *split,
                                  struct slc_error *err)
{
    static const struct slc_split_wish splits[] = {
        [SLUICE_SPLIT_DEFAULT] = {.given = false},
        [SLUICE_SPLIT_PARTITIONS] = {.given = true, .between = SLC_SPLIT_PARTITIONS},
        [SLUICE_SPLIT_NNZ] = {.given = true, .between = SLC_SPLIT_NNZ},
        [SLUICE_SPLIT_STATIC] = {.given = true, .hybrid = {.kind = SLC_HYBRID_STATIC}},
        [SLUICE_SPLIT_ADAPTIVE] = {.given = true, .hybrid = {.kind = SLC_HYBRID_ADAPTIVE}},
        [SLUICE_SPLIT_QUEUE] = {.given = true, .hybrid = {.kind = SLC_HYBRID_QUEUE}},
    };

    *split = splits[known->split];
    if (known->split == SLUICE_SPLIT_STATIC) {
        split->hybrid.fraction = known->split_fraction;
        if (!(known->split_fraction >= 0 && known->split_fraction <= 1)) {
            return slc_fail_field(
                err, SLC_ERR_USAGE, SLC_FIELD_SPLIT,
                "the fraction of the nonzeros for the GPU must be from 0 to 1, not %g",
                known->split_fraction);
        }
    }
    return SLC_OK;
}

enum slc_status api_read_devices(const struct sluice_compute_options *compute,
                                 struct api_devices *devices,
                                 struct slc_error *err)
{
    const struct sluice_device_options *known = &devices->known;
    struct slc_device_wish *wish = &devices->wish;

    memset(devices, 0, sizeof *devices);
    enum slc_status status =
        API_READ_OPTIONS(sluice_device_options, &devices->known, compute->device, err);
    SLC_THEN(status, API_CHECK_CHOICES(err, {"kind", (int)known->kind, SLUICE_DEVICE_GPU},
                                       {"split", (int)known->split, SLUICE_SPLIT_QUEUE}));
    SLC_TRY(status);
    if (known->count > SLUICE_MAX_DEVICES || known->streams > SLC_DEVICE_STREAMS) {
        return slc_fail(
            err, SLC_ERR_USAGE,
            "more than %d devices (count is %u) or more than %d streams (streams is %u)",
            SLUICE_MAX_DEVICES, known->count, SLC_DEVICE_STREAMS, known->streams);
    }
    SLC_TRY(read_split(known, &wish->split, err));
    wish->kind = (enum slc_device_kind)known->kind;
    wish->memory_bytes = known->memory_bytes;
    wish->streams = known->streams;
    wish->chip = known->chip;
    if (wish->kind == SLC_DEVICE_GPU) {
        wish->count = known->count;
        for (unsigned d = 0; d < wish->count; d++) {
            wish->number[d] = known->numbers[d];
        }
    } else {
        wish->count = known->count > 0;
        wish->number[0] = known->count;
    }
    return SLC_OK;
}

void api_log_refused(const struct slc_error *refused)
{
    char why[sizeof *refused];

    if (refused->status != SLC_OK) {
        (void)slc_error_format(refused, api_field_name, why, sizeof why);
        slc_log(SLC_LOG_NOTE, "GPU not used: %s", why);
    }
}

enum slc_status api_session_open(struct slc_session *session,
                                 const struct sluice_store *store,
                                 const struct slc_plan_request *request,
                                 const struct sluice_compute_options *compute,
                                 struct slc_error *err)
{
    struct api_devices devices;
    enum slc_status status = api_read_devices(compute, &devices, err);

    session->store = store->store;
    session->maker = slc_gpu_maker();
    SLC_THEN(status, slc_session_plan(session, request, &devices.wish, err));
    SLC_THEN(status, slc_session_start(session, err));
    SLC_TRY(status);
    api_log_refused(&session->no_gpu);
    return SLC_OK;
}

static struct sluice_plan public_plan(const struct slc_plan *made)
{
    const struct sluice_plan known = {.budget_bytes = made->budget_bytes,
                                      .minimum_bytes = made->minimum_bytes,
                                      .total_bytes = made->total_bytes,
                                      .process_bytes = made->process_bytes,
                                      .index_bytes = made->index_bytes,
                                      .factor_bytes = made->factor_bytes,
                                      .output_bytes = made->output_bytes,
                                      .dense_bytes = made->dense_bytes,
                                      .scratch_bytes = made->scratch_bytes,
                                      .decoder_bytes = made->decoder_bytes,
                                      .label_bytes = made->label_bytes,
                                      .copies_bytes = made->copies_bytes,
                                      .cache_bytes = made->cache_bytes,
                                      .slot_bytes = made->slot_bytes,
                                      .slot_count = made->slot_count,
                                      .threads = made->threads,
                                      .passes = made->passes,
                                      .iteration_bytes = made->iteration_bytes,
                                      .iteration_read_bytes = made->iteration_read_bytes};

    return known;
}

static struct sluice_device_plan public_device_plan(const struct slc_plan *made)
{
    struct sluice_device_plan known = {.budget_bytes = made->gpu.budget_bytes,
                                       .minimum_bytes = made->gpu.minimum_bytes,
                                       .total_bytes = made->gpu.total_bytes,
                                       .slot_bytes = made->gpu.slot_bytes,
                                       .resident_blocks = made->gpu.kept_blocks,
                                       .resident_bytes = made->gpu.resident_bytes,
                                       .copied_bytes = slc_plan_iteration_copied(made),
                                       .host_bytes =
                                           made->request.gpu != NULL ? made->device_bytes : 0,
                                       .streams = made->gpu.streams,
                                       .count = slc_plan_group_size(made),
                                       .described = made->gpu.described,
                                       .multiprocessors = made->gpu.multiprocessors};

    memcpy(known.name, made->gpu.name, sizeof known.name);
    return known;
}

enum slc_status api_plan(const struct sluice_store *store,
                         const struct slc_plan_request *request,
                         const struct sluice_compute_options *compute,
                         struct sluice_plan *plan,
                         struct slc_error *err)
{
    struct api_devices devices;
    /* These zeros remain if no plan is made, because block indices alone exceed the budget. */
    struct slc_session session = {.stream = NULL};
    enum slc_status status = api_check_report(plan, "sluice_plan", err);
    enum slc_status filled;

    SLC_THEN(status, api_read_devices(compute, &devices, err));
    SLC_THEN(status, api_check_report(devices.known.plan, "sluice_device_plan", err));
    SLC_TRY(status);
    session.store = store->store;
    session.maker = slc_gpu_maker();
    devices.wish.plan_only = true;
    status = slc_session_plan(&session, request, &devices.wish, err);
    if (status == SLC_OK || status == SLC_ERR_BUDGET) {
        const struct sluice_plan known = public_plan(&session.plan);
        const struct sluice_device_plan of_devices = public_device_plan(&session.plan);

        filled = API_FILL_REPORT(sluice_plan, plan, &known, err);
        if (filled == SLC_OK) {
            filled = API_FILL_REPORT(sluice_device_plan, devices.known.plan, &of_devices, err);
        }
        status = status == SLC_OK ? filled : status;
    }
    slc_session_close(&session);
    return status;
}

enum slc_status
api_copy_matrix(const struct slc_matrix *matrix, double *to, uint64_t count, struct slc_error *err)
{
    if (matrix->cols > 0 && count / matrix->cols < matrix->rows) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "an array of %" PRIu64 " numbers is too small for a matrix of %" PRIu64
                        " x %" PRIu64,
                        count, (uint64_t)matrix->rows, (uint64_t)matrix->cols);
    }
    slc_matrix_get_rows(matrix, 0, matrix->rows, to);
    return SLC_OK;
}
