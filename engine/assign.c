/* Assigning partitions to devices; see engine/assign.h. */
#include "engine/assign.h"

#include "base/checked.h"
#include "base/memory.h"

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

enum slc_status slc_assign_largest_first(const uint64_t *weights,
                                         uint64_t count,
                                         unsigned devices,
                                         uint32_t *device,
                                         uint64_t *loads,
                                         struct slc_error *err)
{
    struct weighted *sorted;

    if (devices == 0 || devices > SLC_MAX_DEVICES) {
        return slc_fail(err, SLC_ERR_USAGE, "%u devices; 1 to %d are possible", devices,
                        (int)SLC_MAX_DEVICES);
    }
    sorted = slc_calloc(count, sizeof *sorted);
    if (sorted == NULL) {
        return slc_fail(err, SLC_ERR_MEMORY, "no memory to assign %" PRIu64 " partitions", count);
    }
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
