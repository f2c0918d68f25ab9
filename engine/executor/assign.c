/* Assigns partitions to devices. */
#include "engine/executor/assign.h"

#include "base/memory/checked.h"
#include "base/memory/memory.h"

#include <inttypes.h>
#include <stdlib.h>

struct weighted {
    uint64_t weight;
    uint64_t partition;
};

static int heavier_first(const void *a, const void *b)
{
    const struct weighted *x = a;
    const struct weighted *y = b;

    if (x->weight != y->weight) {
        return x->weight > y->weight ? -1 : 1;
    }
    return x->partition < y->partition ? -1 : x->partition > y->partition;
}

static unsigned least_loaded(const uint64_t *loads, unsigned devices)
{
    unsigned least = 0;

    for (unsigned d = 1; d < devices; d++) {
        least = loads[d] < loads[least] ? d : least;
    }
    return least;
}

static enum slc_status check_devices(unsigned devices, struct slc_error *err)
{
    if (devices == 0 || devices > SLC_MAX_DEVICES) {
        return slc_fail(err, SLC_ERR_USAGE, "%u devices requested; 1 to %d are possible", devices,
                        (int)SLC_MAX_DEVICES);
    }
    return SLC_OK;
}

enum slc_status slc_assign_largest_first(const uint64_t *weights,
                                         uint64_t count,
                                         unsigned devices,
                                         uint32_t *device,
                                         uint64_t *loads,
                                         struct slc_error *err)
{
    SLC_TRY(check_devices(devices, err));
    struct weighted *sorted = slc_calloc(count, sizeof *sorted);
    SLC_TRY(slc_check_memory(sorted != NULL, err, "to assign %" PRIu64 " partitions", count));
    for (uint64_t p = 0; p < count; p++) {
        sorted[p] = (struct weighted){weights[p], p};
    }
    if (count > 0) {
        qsort(sorted, count, sizeof *sorted, heavier_first);
    }
    for (unsigned d = 0; d < devices; d++) {
        loads[d] = 0;
    }
    for (uint64_t i = 0; i < count; i++) {
        const unsigned least = least_loaded(loads, devices);

        device[sorted[i].partition] = least;
        loads[least] += sorted[i].weight;
    }
    slc_free(sorted);
    return SLC_OK;
}

enum slc_status slc_assign_equal_shares(const uint64_t *weights,
                                        uint64_t count,
                                        unsigned devices,
                                        uint32_t *device,
                                        uint64_t *loads,
                                        struct slc_error *err)
{
    uint64_t sum = 0, done = 0;

    SLC_TRY(check_devices(devices, err));
    for (uint64_t p = 0; p < count; p++) {
        sum += weights[p];
    }
    for (unsigned d = 0; d < devices; d++) {
        loads[d] = 0;
    }
    for (uint64_t p = 0; p < count; p++) {
        /* The weights, laid end to end, are cut into equal shares. The owner of `p` is the
         * device in whose share the middle of weight `p` is, or the last device if all weights
         * are 0. */
        const uint64_t twice = 2 * done + weights[p];
        uint64_t owner = sum == 0 ? devices - 1 : twice * devices / (2 * sum);

        owner = slc_min_u64(owner, devices - 1);
        device[p] = (uint32_t)owner;
        loads[owner] += weights[p];
        done += weights[p];
    }
    return SLC_OK;
}

double slc_assign_imbalance(const double *loads, unsigned devices)
{
    double sum = 0.0, largest = 0.0;

    for (unsigned d = 0; d < devices; d++) {
        sum += loads[d];
        largest = loads[d] > largest ? loads[d] : largest;
    }
    return sum > 0.0 ? largest * devices / sum : 1.0;
}

uint64_t slc_assign_lower_bound(const uint64_t *weights, uint64_t count, unsigned devices)
{
    uint64_t sum = 0;
    uint64_t largest = 0;

    for (uint64_t p = 0; p < count; p++) {
        sum += weights[p];
        largest = slc_max_u64(largest, weights[p]);
    }
    return slc_max_u64(largest, slc_div_up_u64(sum, devices));
}
