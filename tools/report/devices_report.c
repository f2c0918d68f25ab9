/* Reports the division of partitions between devices, the work of devices, and the memory and work
 * of a GPU. */
#include "tools/report/devices_report.h"

#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "engine/plan/layouts.h"
#include "report/json_parts.h"
#include "report/json_plan.h"
#include "tools/progress/format.h"
#include "tools/report/report.h"
#include "tools/session/session.h"

#include <inttypes.h>
#include <stdio.h>

/* Returns the largest load divided by the mean load; 1 if there are no nonzeros. */
static double imbalance(const struct device_shares *shares, unsigned devices)
{
    double loads[SLC_MAX_DEVICES];

    for (unsigned d = 0; d < devices; d++) {
        loads[d] = (double)shares->loads[d];
    }
    return slc_assign_imbalance(loads, devices);
}

/* Divides the partitions of one layout. */
static enum slc_status divide_layout(const struct slc_reader *reader,
                                     unsigned devices,
                                     struct device_shares *shares,
                                     struct slc_error *err)
{
    const struct slc_layout_info *info = slc_reader_info(reader);
    uint64_t *weights = slc_calloc(info->partition_count, sizeof *weights);
    uint32_t *device = slc_calloc(info->partition_count, sizeof *device);

    if (weights == NULL || device == NULL) {
        slc_free(weights);
        slc_free(device);
        return slc_fail(err, SLC_ERR_MEMORY, "out of memory for dividing partitions");
    }
    shares->mode = info->layout_mode;
    shares->partitions = info->partition_count;
    for (uint64_t p = 0; p < info->partition_count; p++) {
        struct slc_partition partition;

        slc_reader_partition(reader, p, &partition);
        weights[p] = partition.nnz;
    }
    enum slc_status status = slc_assign_largest_first(weights, info->partition_count, devices,
                                                      device, shares->loads, err);
    shares->bound = slc_assign_lower_bound(weights, info->partition_count, devices);
    shares->least = UINT64_MAX;
    shares->most = 0;
    for (unsigned d = 0; d < devices && status == SLC_OK; d++) {
        shares->least = shares->loads[d] < shares->least ? shares->loads[d] : shares->least;
        shares->most = shares->loads[d] > shares->most ? shares->loads[d] : shares->most;
    }
    slc_free(weights);
    slc_free(device);
    return status;
}

enum slc_status devices_divide(const struct slc_store *store,
                               unsigned devices,
                               struct device_shares shares[SLC_MAX_ORDER],
                               unsigned *count,
                               struct slc_error *err)
{
    struct slc_layouts layouts;
    enum slc_status status =
        slc_layouts_open(store, SLC_LAYOUTS_AUTO, UINT32_MAX, UINT64_MAX, &layouts, err);

    *count = 0;
    if (status == SLC_OK && layouts.count == 1) {
        status = slc_fail(err, SLC_ERR_USAGE,
                          "--devices divides the partitions of sorted layouts, but the store has "
                          "none: build them with sluice layout %s --sorted all",
                          store->path);
    }
    for (unsigned l = 1; l < layouts.count && status == SLC_OK; l++) {
        status = divide_layout(layouts.reader[l], devices, &shares[(*count)++], err);
    }
    slc_layouts_close(&layouts);
    return status;
}

void devices_report_division(const struct device_shares *shares, unsigned count, unsigned devices)
{
    for (unsigned i = 0; i < count; i++) {
        printf("  %-12s mode %u: %" PRIu64 " partition%s on %u device%s, %" PRIu64 " to %" PRIu64
               " nonzeros each: largest over mean %.3f (lower bound of the largest: %" PRIu64 ")\n",
               i == 0 ? "devices" : "", shares[i].mode + 1, shares[i].partitions,
               plural(shares[i].partitions), devices, plural(devices), shares[i].least,
               shares[i].most, imbalance(&shares[i], devices), shares[i].bound);
    }
}

json_t *devices_division_json(const struct device_shares *shares, unsigned count, unsigned devices)
{
    json_t *list = json_array();

    for (unsigned i = 0; i < count; i++) {
        json_t *loads = json_array();
        json_t *object = json_object();

        for (unsigned d = 0; d < devices; d++) {
            (void)json_array_append_new(loads, json_integer((json_int_t)shares[i].loads[d]));
        }
        slc_json_set(object, "mode", json_integer(shares[i].mode + 1));
        slc_json_set_count(object, "partitions", shares[i].partitions);
        slc_json_set(object, "nnz", loads);
        slc_json_set_real(object, "imbalance", imbalance(&shares[i], devices));
        slc_json_set_count(object, "bound_nnz", shares[i].bound);
        (void)json_array_append_new(list, object);
    }
    return list;
}

/* Prints the statistics of one device, or the mean of `count` devices. */
static void
print_stats(const char *name, const struct slc_member_stats *stats, unsigned count, bool reduced)
{
    double exchange = 0, reduce = 0, copy = 0, solve = 0, wait = 0, compute = 0;
    double nnz = 0, bytes = 0, sent = 0, ring_wait = 0;
    struct format_text a, b;

    for (unsigned d = 0; d < count; d++) {
        nnz += (double)stats[d].nnz / count;
        bytes += (double)stats[d].bytes / count;
        sent += (double)stats[d].sent_bytes / count;
        compute += stats[d].compute_seconds / count;
        wait += stats[d].wait_seconds / count;
        solve += stats[d].solve_seconds / count;
        copy += stats[d].copy_seconds / count;
        reduce += stats[d].reduce_seconds / count;
        exchange += stats[d].exchange_seconds / count;
        ring_wait += stats[d].exchange_wait_seconds / count;
    }
    printf("  %-8s %12.0f %10s %9.3fs %8.3fs %8.3fs %8.3fs %8.3fs %8.3fs %10s", name, nnz,
           format_data(&a, bytes), compute, wait, solve, copy, exchange, ring_wait,
           format_data(&b, sent));
    if (reduced) {
        printf(" %8.3fs", reduce);
    }
    printf("\n");
}

void devices_report_stats(const struct slc_plan *plan,
                          const struct slc_member_stats *stats,
                          bool verbose)
{
    const bool reduced = plan->request.split == SLC_SPLIT_NNZ;
    const unsigned count = slc_plan_group_size(plan);
    char threads[32] = "whole blocks";
    double of_nnz, of_time;

    if (count == 0) {
        return;
    }
    slc_devices_imbalance(plan, stats, &of_nnz, &of_time);
    if (plan->cpu_groups > 0) {
        (void)snprintf(threads, sizeof threads, "%u thread%s each", plan->group_threads,
                       plural(plan->group_threads));
    }
    printf("Devices (%u with %s, %s)\n", count, threads,
           reduced ? "equal parts of the nonzeros" : "partitions assigned largest first");
    printf("  %-8s %12s %10s %10s %9s %9s %9s %9s %9s %10s%s\n", "", "nonzeros", "blocks",
           "compute", "wait", "solve", "copy", "exchange", "ring wait", "sent",
           reduced ? "    reduce" : "");
    for (unsigned d = 0; verbose && d < count; d++) {
        char name[16];

        (void)snprintf(name, sizeof name, "%u", d + 1);
        print_stats(name, &stats[d], 1, reduced);
    }
    print_stats("mean", stats, count, reduced);
    printf("  imbalance: largest over mean %.3f for nonzeros, %.3f for computing time\n\n", of_nnz,
           of_time);
}

/* Prints the bytes that a pass and an iteration copy once the device has the resident blocks. */
static void report_copied(const struct slc_plan *plan, unsigned order)
{
    const struct slc_plan_gpu *gpu = &plan->gpu;
    const uint64_t count = slc_max_u64(plan->request.gpu_count, 1);
    const bool all = plan->request.operation == SLC_OP_CPD;
    uint64_t least = UINT64_MAX, most = 0;
    struct format_text a, b, c, d;

    for (unsigned n = 0; n < order; n++) {
        if (all || n == plan->request.mode) {
            const uint64_t bytes = slc_plan_pass_copied(plan, n);

            least = slc_min_u64(least, bytes);
            most = slc_max_u64(most, bytes);
        }
    }
    printf("    %-10s %10s  ", "copied", format_data(&a, (double)most));
    if (least < most) {
        printf("in the largest pass, %s in the smallest", format_data(&b, (double)least));
    } else {
        printf("per pass%s", plan->request.hybrid.kind != SLC_HYBRID_NONE
                                 ? " at most; the CPU computes the rest"
                                 : "");
    }
    if (all) {
        printf(", %s per iteration", format_data(&c, (double)slc_plan_iteration_copied(plan)));
    }
    printf(", through %" PRIu64 " slot%s of %s\n", count * gpu->streams,
           plural(count * gpu->streams), format_memory(&d, gpu->slot_bytes));
}

static void report_split(const struct slc_hybrid_wish *wish)
{
    struct slc_hybrid_text text;

    if (wish->kind != SLC_HYBRID_NONE) {
        printf("  %-12s between CPU and device: %s\n", "shared", slc_hybrid_name(wish, &text));
    }
}

void gpu_report_described(const struct slc_plan *plan, const struct slc_error *no_device)
{
    const struct slc_plan_gpu *gpu = &plan->gpu;
    struct format_text a, b;

    if (!gpu->described) {
        return;
    }
    printf("  %-12s described, not opened: %u multiprocessors, %s of shared memory per block, %s\n",
           "", gpu->multiprocessors, format_memory(&a, gpu->shared_bytes),
           format_data(&b, (double)gpu->device_total_bytes));
    if (no_device->status != SLC_OK) {
        printf("  %-12s no GPU is usable here (%s); --device-name selects another chip\n", "",
               no_device->message);
    }
    printf("  %-12s host memory of the GPU driver is not counted\n", "");
}

void gpu_report_plan(const struct slc_plan *plan, unsigned order)
{
    const struct slc_plan_gpu *gpu = &plan->gpu;
    struct format_text a, b;
    uint64_t kept = 0;
    char slots[96];
    char residents[96];

    if (plan->request.gpu == NULL) {
        return;
    }
    (void)snprintf(slots, sizeof slots, "beyond the minimum: %u stream%s with slots of %s",
                   gpu->streams, plural(gpu->streams), format_memory(&a, gpu->slot_bytes));
    for (unsigned l = 0; l < plan->layout_count; l++) {
        kept += plan->layouts[l].resident_bytes;
    }
    (void)snprintf(residents, sizeof residents,
                   "%" PRIu64 " block%s that stay%s on the device, copied once: %s",
                   gpu->kept_blocks, plural(gpu->kept_blocks), gpu->kept_blocks == 1 ? "s" : "",
                   format_data(&a, (double)kept));
    printf("  %-12s %s of %s on the device (minimum: %.0f MiB)\n", "",
           format_memory(&a, gpu->total_bytes), format_memory(&b, gpu->budget_bytes),
           (double)(gpu->minimum_bytes + ((1U << 20) - 1)) / (1U << 20));
    report_part("factors", gpu->factor_bytes, "output, solver and the minimum of slots");
    report_part("slots", gpu->slots_bytes, slots);
    report_part("residents", gpu->resident_bytes, residents);
    report_copied(plan, order);
    report_split(&plan->request.hybrid);
}

void gpu_report_stats(const struct slc_plan *plan, const struct slc_device_stats *stats)
{
    struct format_text a, b, c;

    if (plan->request.gpu == NULL) {
        return;
    }
    printf("Device (%s)\n", plan->gpu.name);
    printf("  %-12s %s of blocks in %.3f s, %s of other data to the device, %s back\n", "copied",
           format_data(&a, (double)stats->block_bytes), stats->copy_seconds,
           format_data(&b, (double)stats->bytes_to_device),
           format_data(&c, (double)stats->bytes_to_host));
    printf("  %-12s %" PRIu64 " blocks in %" PRIu64 " launches, %.3f s; %s without a copy\n\n",
           "computed", stats->blocks, stats->launches, stats->compute_seconds,
           format_data(&a, (double)stats->resident_bytes));
}

void gpu_report_shares(const struct slc_hybrid *shares, unsigned order)
{
    struct slc_hybrid_text text;
    bool first = true;

    for (unsigned n = 0; n < order; n++) {
        const struct slc_hybrid *share = &shares[n];
        const struct slc_hybrid_part *cpu = &share->parts[SLC_HYBRID_CPU];
        const struct slc_hybrid_part *device = &share->parts[SLC_HYBRID_GPU];

        if (share->passes == 0 || cpu->nnz + device->nnz == 0) {
            continue;
        }
        if (first) {
            printf("Shared between CPU and device (%s)\n", slc_hybrid_name(&share->wish, &text));
        }
        printf("  mode %-7u %.1f %% of the nonzeros on the device (last pass: %.1f %%) in %.3f s, "
               "the rest on the CPU in %.3f s; %" PRIu64 " of %" PRIu64 " passes without the CPU\n",
               n + 1, 100 * slc_hybrid_fraction(share->parts),
               100 * slc_hybrid_fraction(share->last), device->seconds, cpu->seconds,
               share->passes_alone, share->passes);
        first = false;
    }
    if (!first) {
        printf("\n");
    }
}
