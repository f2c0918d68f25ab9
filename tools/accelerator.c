/* See accelerator.h. */
#include "accelerator.h"

#include "base/checked.h"
#include "format.h"
#include "gpu/gpu.h"
#include "share.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* What is asked for that the CPU alone can do; NULL: nothing. */
static const char *wish_for_cpu(const struct session_options *options)
{
    if (options->devices.count > 0 && options->devices.number[0] > 0) {
        return "--devices divides the work between devices of the CPU";
    }
    if (options->copies != NULL && strcmp(options->copies, "always") == 0) {
        return "--copies always is for the CPU";
    }
    if (options->passes != NULL && strcmp(options->passes, "fused") == 0) {
        return "--passes fused is for the CPU";
    }
    if (options->deterministic) {
        return "--deterministic gives the bits of the one or the other, so that it has to be named";
    }
    return NULL;
}

/* What each of several devices may use that are one: an equal part. */
static enum slc_status
part_of_memory(unsigned ordinal, unsigned parts, uint64_t *bytes, struct slc_error *err)
{
    const struct slc_gpu_options whole = {.ordinal = ordinal, .memory_bytes = *bytes};
    struct slc_device_info info;
    struct slc_device *device;
    enum slc_status status;

    if (parts == 1) {
        return SLC_OK;
    }
    status = slc_gpu_create(&whole, &device, err);
    if (status != SLC_OK) {
        return status;
    }
    device->ops->info(device, &info);
    device->ops->destroy(device);
    *bytes = slc_max_u64(info.free_bytes / parts, 1);
    return SLC_OK;
}

void accelerator_drop(const struct session_options *options,
                      struct slc_device *const *devices,
                      unsigned count)
{
    for (unsigned d = count; d > 0; d--) {
        devices[d - 1]->ops->destroy(devices[d - 1]);
    }
    for (unsigned d = 0; d < count; d++) {
        bool again = false;

        for (unsigned e = 0; e < d; e++) {
            again = again || options->devices.number[e] == options->devices.number[d];
        }
        if (!again) {
            slc_gpu_release((unsigned)options->devices.number[d]);
        }
    }
}

/* Creates the devices that are named, or the first. */
static enum slc_status create_devices(const struct session_options *options,
                                      struct slc_device **devices,
                                      unsigned *count,
                                      struct slc_error *err)
{
    const struct option_counts *named = &options->devices;
    const unsigned wanted = named->count > 0 ? named->count : 1;
    enum slc_status status = SLC_OK;

    for (unsigned d = 0; d < wanted && status == SLC_OK; d++) {
        struct slc_gpu_options gpu = {.ordinal = (unsigned)named->number[d],
                                      .memory_bytes = options->device_memory};
        unsigned parts = 0;

        for (unsigned e = 0; e < wanted; e++) {
            parts += named->number[e] == named->number[d];
        }
        status = part_of_memory(gpu.ordinal, parts, &gpu.memory_bytes, err);
        if (status == SLC_OK) {
            status = slc_gpu_create(&gpu, &devices[d], err);
        }
        *count += status == SLC_OK;
    }
    if (status != SLC_OK) {
        accelerator_drop(options, devices, *count);
        *count = 0;
    }
    return status;
}

enum slc_status accelerator_choose(const struct session_options *options,
                                   struct slc_device *devices[OPTION_COUNTS_MAX],
                                   unsigned *count,
                                   struct slc_error *why,
                                   struct slc_error *err)
{
    const bool insists = options->device != NULL && strcmp(options->device, "gpu") == 0;
    const char *wish = insists ? NULL : wish_for_cpu(options);
    struct slc_error refused = SLC_ERROR_INIT;
    enum slc_status status;

    *count = 0;
    slc_error_clear(why);
    if (options->device == NULL || strcmp(options->device, "cpu") == 0) {
        return options->streams == 0 && options->device_memory == 0
                   ? SLC_OK
                   : slc_fail(err, SLC_ERR_USAGE,
                              "--%s is of GPUs, but none is asked for: add --device gpu or auto, "
                              "or leave it out",
                              options->streams != 0 ? "streams" : "device-memory");
    }
    if (wish != NULL) {
        (void)slc_fail(why, SLC_ERR_USAGE, "%s", wish);
        return SLC_OK;
    }
    status = create_devices(options, devices, count, &refused);
    if (status == SLC_OK) {
        return SLC_OK;
    }
    if (insists) {
        return slc_fail(err, status, "--device gpu: %s", refused.message);
    }
    *why = refused;
    return SLC_OK;
}

static void part_line(const char *name, uint64_t bytes, const char *what)
{
    struct format_text text;

    if (bytes > 0) {
        printf("    %-10s %10s  %s\n", name, format_memory(&text, bytes), what);
    }
}

void accelerator_report_plan(const struct slc_plan *plan)
{
    const struct slc_plan_accelerator *accelerator = &plan->accelerator;
    struct format_text a, b;
    char slots[96];
    char residents[96];

    if (plan->request.accelerator == NULL) {
        return;
    }
    (void)snprintf(slots, sizeof slots, "beyond the smallest: %u stream%s with slots of %s",
                   accelerator->streams, accelerator->streams == 1 ? "" : "s",
                   format_memory(&a, accelerator->slot_bytes));
    (void)snprintf(residents, sizeof residents, "%" PRIu64 " block%s that stay%s, copied once",
                   accelerator->kept_blocks, accelerator->kept_blocks == 1 ? "" : "s",
                   accelerator->kept_blocks == 1 ? "s" : "");
    printf("  %-12s %s of %s on the device (smallest that works: %.0f MiB)\n", "",
           format_memory(&a, accelerator->total_bytes),
           format_memory(&b, accelerator->budget_bytes),
           (double)(accelerator->minimum_bytes + ((1U << 20) - 1)) / (1U << 20));
    part_line("factors", accelerator->factor_bytes, "output, solver and the smallest slots");
    part_line("slots", accelerator->slots_bytes, slots);
    part_line("residents", accelerator->resident_bytes, residents);
    share_report_plan(&plan->request.share);
}

void accelerator_report_stats(const struct slc_plan *plan, const struct slc_device_stats *stats)
{
    struct format_text a, b, c;

    if (plan->request.accelerator == NULL) {
        return;
    }
    printf("Device (%s)\n", plan->accelerator.name);
    printf("  %-12s %s of blocks in %.3f s, %s of all else to it, %s from it\n", "copied",
           format_data(&a, (double)stats->block_bytes), stats->copy_seconds,
           format_data(&b, (double)stats->bytes_to_device),
           format_data(&c, (double)stats->bytes_to_host));
    printf("  %-12s %" PRIu64 " blocks in %" PRIu64 " launches, %.3f s; %s without a copy\n\n",
           "computed", stats->blocks, stats->launches, stats->compute_seconds,
           format_data(&a, (double)stats->resident_bytes));
}

json_t *accelerator_plan_json(const struct slc_plan *plan)
{
    const struct slc_plan_accelerator *accelerator = &plan->accelerator;

    if (plan->request.accelerator == NULL) {
        return json_null();
    }
    return json_pack(
        "{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "name", accelerator->name,
        "budget_bytes", (json_int_t)accelerator->budget_bytes, "minimum_bytes",
        (json_int_t)accelerator->minimum_bytes, "total_bytes", (json_int_t)accelerator->total_bytes,
        "factor_bytes", (json_int_t)accelerator->factor_bytes, "slots_bytes",
        (json_int_t)accelerator->slots_bytes, "resident_bytes",
        (json_int_t)accelerator->resident_bytes, "streams", (json_int_t)accelerator->streams,
        "slot_bytes", (json_int_t)accelerator->slot_bytes, "resident_blocks",
        (json_int_t)accelerator->kept_blocks, "resident_block_bytes",
        (json_int_t)accelerator->kept_bytes);
}

json_t *accelerator_stats_json(const struct slc_plan *plan, const struct slc_device_stats *stats)
{
    if (plan->request.accelerator == NULL) {
        return json_null();
    }
    return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f}", "name",
                     plan->accelerator.name, "launches", (json_int_t)stats->launches, "blocks",
                     (json_int_t)stats->blocks, "nnz", (json_int_t)stats->nnz, "block_bytes",
                     (json_int_t)stats->block_bytes, "resident_bytes",
                     (json_int_t)stats->resident_bytes, "bytes_to_device",
                     (json_int_t)stats->bytes_to_device, "bytes_to_host",
                     (json_int_t)stats->bytes_to_host, "factor_bytes_to_host",
                     (json_int_t)stats->factor_bytes_to_host, "bytes_from_devices",
                     (json_int_t)stats->bytes_from_devices, "copy_seconds", stats->copy_seconds,
                     "compute_seconds", stats->compute_seconds);
}
