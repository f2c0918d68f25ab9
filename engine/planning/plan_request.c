/* Checks a plan request for impossible and conflicting values. */
#include "engine/planning/planning_impl.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Checks the limits of plans with groups of CPU workers. */
static enum slc_status check_devices(const struct slc_plan_request *request, struct slc_error *err)
{
    if (request->cpu_groups > SLC_MAX_DEVICES) {
        return slc_fail(err, SLC_ERR_USAGE, "%u devices requested; the maximum is %d",
                        request->cpu_groups, (int)SLC_MAX_DEVICES);
    }
    if ((uint64_t)request->cpu_groups * request->threads > SLC_MAX_THREADS) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "%u devices with %u threads each requested; the maximum is %d threads",
                        request->cpu_groups, request->threads, (int)SLC_MAX_THREADS);
    }
    if (request->cpu_groups > 0 && request->split == SLC_SPLIT_NNZ && request->deterministic) {
        return slc_fail_fields(
            err, SLC_ERR_USAGE, SLC_FIELD_SPLIT, SLC_FIELD_DETERMINISTIC,
            "the split 'nnz' adds sums by device, so the bits depend on the number of devices: "
            "use the split 'partitions', or do not request deterministic");
    }
    if (request->cpu_groups > 0 && request->copies == SLC_COPIES_ALWAYS) {
        return slc_fail(
            err, SLC_ERR_USAGE,
            "replicas need a single device: request copies 'auto' or 'never', or no devices");
    }
    return SLC_OK;
}

/* Checks that the CPU and a device can share an MTTKRP. A TTM with lanes of a device is checked
 * separately. */
static enum slc_status check_share(const struct slc_plan_request *request, struct slc_error *err)
{
    if (request->hybrid.kind == SLC_HYBRID_NONE || request->operation == SLC_OP_TTM) {
        return SLC_OK;
    }
    if (request->gpu == NULL || request->gpu_count > 0) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "the CPU can share work with one device that has memory of its own: "
                        "request one such device, or no sharing");
    }
    if (request->deterministic) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "sums computed by both CPU and device are not deterministic: request no "
                        "sharing, or do not request deterministic");
    }
    return SLC_OK;
}

/* Checks the limits of plans with a device that processes whole blocks. */
static enum slc_status check_gpu(const struct slc_plan_request *request, struct slc_error *err)
{
    if (request->streams > SLC_DEVICE_STREAMS) {
        return slc_fail(err, SLC_ERR_USAGE, "%u device streams requested; the maximum is %d",
                        request->streams, (int)SLC_DEVICE_STREAMS);
    }
    if (request->gpu == NULL) {
        return SLC_OK;
    }
    if (request->operation == SLC_OP_TTM) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "products with a matrix are computed by the CPU: request no other device");
    }
    if (request->gpu_count > SLC_MAX_DEVICES) {
        return slc_fail(err, SLC_ERR_USAGE, "%u devices requested; the maximum is %d",
                        request->gpu_count, (int)SLC_MAX_DEVICES);
    }
    if (request->gpu_count > 0 && request->split == SLC_SPLIT_PARTITIONS &&
        request->layouts != SLC_LAYOUTS_SORTED) {
        return slc_fail_fields(err, SLC_ERR_USAGE, SLC_FIELD_LAYOUTS, SLC_FIELD_SPLIT,
                               "devices divide the partitions of sorted layouts: request sorted "
                               "layouts, or the split 'nnz'");
    }
    if (request->cpu_groups > 0) {
        return slc_fail_fields(
            err, SLC_ERR_USAGE, SLC_FIELD_DEVICES, SLC_FIELD_DEVICE,
            "the work is divided between CPU devices: name no devices, or request the device cpu");
    }
    if (request->copies == SLC_COPIES_ALWAYS || request->passes == SLC_PASSES_FUSED) {
        return slc_fail_fields(
            err, SLC_ERR_USAGE,
            request->copies == SLC_COPIES_ALWAYS ? SLC_FIELD_COPIES : SLC_FIELD_PASSES,
            SLC_FIELD_DEVICE, "%s are available on the CPU only: request auto, or the device cpu",
            request->copies == SLC_COPIES_ALWAYS ? "replicas" : "passes that update two modes");
    }
    return SLC_OK;
}

/* Checks the requests for copies per mode and for passes that update two modes. */
static enum slc_status check_choices(const struct slc_plan_request *request, struct slc_error *err)
{
    if (request->copies != SLC_COPIES_AUTO && request->copies != SLC_COPIES_NEVER &&
        request->copies != SLC_COPIES_ALWAYS) {
        return slc_fail(err, SLC_ERR_USAGE, "copies must be auto, never or always");
    }
    if (request->copies == SLC_COPIES_ALWAYS && (request->deterministic || !request->cache)) {
        return slc_fail(
            err, SLC_ERR_USAGE,
            request->deterministic
                ? "deterministic passes add in the order of the stream, but replicas in another "
                  "order: request copies 'auto' or 'never', or do not request deterministic"
                : "replicas need a tensor that stays in memory, but caching is disabled: request "
                  "copies 'auto' or 'never', or enable caching");
    }
    if (request->passes != SLC_PASSES_AUTO && request->passes != SLC_PASSES_PLAIN &&
        request->passes != SLC_PASSES_FUSED) {
        return slc_fail(err, SLC_ERR_USAGE, "passes must be auto, plain or fused");
    }
    if (request->passes == SLC_PASSES_FUSED && request->cpu_groups > 0) {
        return slc_fail_fields(err, SLC_ERR_USAGE, SLC_FIELD_DEVICES, SLC_FIELD_PASSES,
                               "passes that update two modes need a single device: name no "
                               "devices, or request passes 'plain' or 'auto'");
    }
    if (request->passes == SLC_PASSES_FUSED && request->copies == SLC_COPIES_ALWAYS) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "MTTKRPs from replicas make no passes, so no pass can update two modes: "
                        "request copies 'auto' or 'never', or passes 'auto' or 'plain'");
    }
    return SLC_OK;
}

/* Rejects a tensor whose values, or products of values and factors, do not fit in f32: infinities,
 * or subnormal numbers, which have lost digits. The columns of the factors of a decomposition are
 * near unit norm, so an element is near the reciprocal of the square root of its mode size. */
static enum slc_status check_f32(const struct slc_layout_info *info,
                                 const struct slc_plan_request *request,
                                 struct slc_error *err)
{
    const double size = sqrt(info->sum_of_squares / (double)info->nnz);
    double least = (double)(FLT_MIN / FLT_EPSILON);

    for (unsigned n = 0; request->operation == SLC_OP_CPD && n < info->order; n++) {
        least *= sqrt((double)info->dims[n]);
    }
    if (request->precision != SLC_F32 || info->nnz == 0 ||
        (size >= least && size <= (double)FLT_MAX)) {
        return SLC_OK;
    }
    return slc_fail(err, SLC_ERR_NUMERIC,
                    "the root mean square of the values is %.3g; to compute in f32 it must be %.3g "
                    "to %.3g: compute in f64, or scale the values and convert the tensor again",
                    size, least, (double)FLT_MAX);
}

/* Checks that rows can be updated from their nonzeros. */
static enum slc_status check_rows(const struct slc_layout_info *info,
                                  const struct slc_plan_request *request,
                                  struct slc_error *err)
{
    if (!request->rows.nonzeros) {
        return SLC_OK;
    }
    if (request->operation != SLC_OP_CPD) {
        return slc_fail(err, SLC_ERR_USAGE, "only decompositions update rows");
    }
    if (request->gpu != NULL || request->cpu_groups > 0) {
        return slc_fail_field(
            err, SLC_ERR_UNSUPPORTED, request->gpu != NULL ? SLC_FIELD_DEVICE : SLC_FIELD_DEVICES,
            "rows are updated from their nonzeros by one team of CPU threads: request the device "
            "cpu, and no list of devices");
    }
    if (request->copies == SLC_COPIES_ALWAYS || request->passes == SLC_PASSES_FUSED) {
        return slc_fail_field(
            err, SLC_ERR_UNSUPPORTED,
            request->copies == SLC_COPIES_ALWAYS ? SLC_FIELD_COPIES : SLC_FIELD_PASSES,
            "rows cannot be updated from their nonzeros with %s: request auto",
            request->copies == SLC_COPIES_ALWAYS ? "replicas" : "passes that update two modes");
    }
    for (unsigned n = 0; n < info->order; n++) {
        if (info->dims[n] > UINT64_C(1) << 32) {
            return slc_fail(err, SLC_ERR_UNSUPPORTED,
                            "mode %u has %" PRIu64
                            " indices; rows are updated from their nonzeros only if every mode has "
                            "at most 2^32",
                            n + 1, info->dims[n]);
        }
    }
    return SLC_OK;
}

enum slc_status slc_plan_check_request(const struct slc_layout_info *info,
                                       const struct slc_plan_request *request,
                                       struct slc_error *err)
{
    if (request->rank < 1 || request->rank > SLC_MAX_RANK) {
        return slc_fail(err, SLC_ERR_USAGE, "the rank is %" PRIu32 "; it must be 1 to %d",
                        request->rank, (int)SLC_MAX_RANK);
    }
    if (request->operation != SLC_OP_CPD && request->mode >= info->order) {
        return slc_fail(err, SLC_ERR_USAGE, "mode %u does not exist; the tensor has modes 1 to %u",
                        request->mode + 1, info->order);
    }
    if (request->threads > SLC_MAX_THREADS) {
        return slc_fail(err, SLC_ERR_USAGE, "%u threads requested; the maximum is %d",
                        request->threads, (int)SLC_MAX_THREADS);
    }
    if (request->slots != 0 &&
        (request->slots < SLC_PLAN_SLOTS_MIN || request->slots > SLC_PLAN_SLOTS_MAX)) {
        return slc_fail_field(err, SLC_ERR_USAGE, SLC_FIELD_SLOTS,
                              "%u slots requested; the ring can have %d to %d slots",
                              request->slots, (int)SLC_PLAN_SLOTS_MIN, (int)SLC_PLAN_SLOTS_MAX);
    }
    if (request->precision != SLC_F32 && request->precision != SLC_F64) {
        return slc_fail(err, SLC_ERR_USAGE, "the precision must be f32 or f64");
    }
    SLC_TRY(check_f32(info, request, err));
    SLC_TRY(check_rows(info, request, err));
    for (unsigned n = 0; n < info->order; n++) {
        if (request->conflict[n] != SLC_CONFLICT_AUTO &&
            request->conflict[n] != SLC_CONFLICT_PRIVATE &&
            request->conflict[n] != SLC_CONFLICT_LOCKED) {
            return slc_fail(err, SLC_ERR_USAGE,
                            "the strategy of mode %u must be private or locked, not %s", n + 1,
                            slc_conflict_name(request->conflict[n]));
        }
    }
    enum slc_status status = check_choices(request, err);
    SLC_TRY(status);
    if (request->mode_order_set) {
        status = slc_plan_check_order(info->order, request->mode_order, err);

        SLC_TRY(status);
    }
    if (request->deterministic && request->schedule == SLC_SCHEDULE_LARGEST &&
        request->gpu == NULL) {
        return slc_fail(
            err, SLC_ERR_USAGE,
            "deterministic passes read blocks in file order; use the schedule file or auto");
    }
    status = check_share(request, err);
    SLC_THEN(status, check_gpu(request, err));
    SLC_TRY(status);
    return check_devices(request, err);
}
