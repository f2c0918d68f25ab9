/* What devices are to do, and what they have done; see devices_report.h. */
#include "tools/report/devices_report.h"
#include "report/json_parts.h"
#include "report/json_stats.h"
#include "tools/progress/format.h"
#include "tools/session/session.h"

#include "base/memory/memory.h"
#include "engine/plan/layouts.h"

#include <inttypes.h>
#include <stdio.h>

/* Largest load over an even share; 1 without nonzeros. */
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
    enum slc_status status;

    if (weights == NULL || device == NULL) {
        slc_free(weights);
        slc_free(device);
        return slc_fail(err, SLC_ERR_MEMORY, "no memory to divide partitions");
    }
    shares->mode = info->layout_mode;
    shares->partitions = info->partition_count;
    for (uint64_t p = 0; p < info->partition_count; p++) {
        struct slc_partition partition;

        slc_reader_partition(reader, p, &partition);
        weights[p] = partition.nnz;
    }
    status = slc_assign_largest_first(weights, info->partition_count, devices, device,
                                      shares->loads, err);
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
                          "--devices divides the partitions of sorted layouts, and the store has "
                          "none: make them (sluice layout %s --sorted all)",
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
               " nonzeros each: %.3f of an even share (no division has less than %" PRIu64 ")\n",
               i == 0 ? "devices" : "", shares[i].mode + 1, shares[i].partitions,
               shares[i].partitions == 1 ? "" : "s", devices, devices == 1 ? "" : "s",
               shares[i].least, shares[i].most, imbalance(&shares[i], devices), shares[i].bound);
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

/* One device; or, where `count` is more, the mean of several. */
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
                       plan->group_threads == 1 ? "" : "s");
    }
    printf("Devices (%u with %s, %s)\n", count, threads,
           reduced ? "equal shares of nonzeros" : "partitions divided largest first");
    printf("  %-8s %12s %10s %10s %9s %9s %9s %9s %9s %10s%s\n", "", "nonzeros", "blocks",
           "compute", "wait", "solve", "copy", "exchange", "ring wait", "sent",
           reduced ? "    reduce" : "");
    for (unsigned d = 0; verbose && d < count; d++) {
        char name[16];

        (void)snprintf(name, sizeof name, "%u", d + 1);
        print_stats(name, &stats[d], 1, reduced);
    }
    print_stats("mean", stats, count, reduced);
    printf("  imbalance: %.3f of an even share of nonzeros, %.3f of the mean time to compute\n\n",
           of_nnz, of_time);
}
