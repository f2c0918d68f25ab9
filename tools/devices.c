/* Partitions of sorted layouts divided between devices; see devices.h. */
#include "devices.h"

#include "base/memory.h"
#include "engine/layouts.h"

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

void devices_print(const struct device_shares *shares, unsigned count, unsigned devices)
{
    for (unsigned i = 0; i < count; i++) {
        printf("  %-12s mode %u: %" PRIu64 " partitions on %u, %" PRIu64 " to %" PRIu64
               " nonzeros each: %.3f of an even share (no division has less than %" PRIu64 ")\n",
               i == 0 ? "devices" : "", shares[i].mode + 1, shares[i].partitions, devices,
               shares[i].least, shares[i].most, imbalance(&shares[i], devices), shares[i].bound);
    }
}

json_t *devices_json(const struct device_shares *shares, unsigned count, unsigned devices)
{
    json_t *list = json_array();

    for (unsigned i = 0; i < count; i++) {
        json_t *loads = json_array();
        json_t *object = json_object();

        for (unsigned d = 0; d < devices; d++) {
            (void)json_array_append_new(loads, json_integer((json_int_t)shares[i].loads[d]));
        }
        (void)json_object_set_new(object, "mode", json_integer(shares[i].mode + 1));
        (void)json_object_set_new(object, "partitions",
                                  json_integer((json_int_t)shares[i].partitions));
        (void)json_object_set_new(object, "nnz", loads);
        (void)json_object_set_new(object, "imbalance", json_real(imbalance(&shares[i], devices)));
        (void)json_object_set_new(object, "bound_nnz", json_integer((json_int_t)shares[i].bound));
        (void)json_array_append_new(list, object);
    }
    return list;
}
