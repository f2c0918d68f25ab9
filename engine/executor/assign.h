/* Assigns the partitions of a sorted layout to devices before a pass begins. */
#ifndef SLC_ENGINE_ASSIGN_H
#define SLC_ENGINE_ASSIGN_H

#include "base/error/error.h"
#include "engine/plan/plan.h"

#include <stdint.h>

/* Assigns each of `count` partitions, largest first, to the device with the least load so far.
 * Source: [Wijeratne2025] section 4.9. [Graham1969] proves that the largest load is at most 4/3 -
 * 1/(3 D) times the largest load of the best assignment to D devices. Shapes: weights[count],
 * nonzeros of each partition or another measure of its work; device[count], set to the device of
 * each partition; loads[devices], set to the sum of weights per device. Order: the result depends
 * only on the weights. Partitions of equal weight are assigned in ascending order; among devices
 * with equal loads, the lowest number wins. Cost: O(count * (log count + devices)) time, and 16
 * bytes per partition during the call. Needs: the sum of the weights is below 2^64. Errors:
 * SLC_ERR_USAGE if `devices` is 0 or exceeds SLC_MAX_DEVICES; SLC_ERR_MEMORY. After an error device
 * and loads are unchanged. */
enum slc_status slc_assign_largest_first(const uint64_t *weights,
                                         uint64_t count,
                                         unsigned devices,
                                         uint32_t *device,
                                         uint64_t *loads,
                                         struct slc_error *err) SLC_NODISCARD;

/* Divides `count` blocks or partitions into one contiguous run per device, with weights as equal as
 * possible. This is the baseline of [Wijeratne2025] section 5.4. The load of each device differs
 * from an equal share by less than the largest weight. Shapes, errors and needs are those of
 * slc_assign_largest_first, except that the sum of the weights times 2 * devices must be below
 * 2^64. */
enum slc_status slc_assign_equal_shares(const uint64_t *weights,
                                        uint64_t count,
                                        unsigned devices,
                                        uint32_t *device,
                                        uint64_t *loads,
                                        struct slc_error *err) SLC_NODISCARD;

/* Returns the largest load divided by the mean load, or 1 if all loads are 0. */
double slc_assign_imbalance(const double *loads, unsigned devices);

/* Returns a lower bound for the largest load of any assignment: the larger of the largest weight
 * and an equal share rounded up; 0 if there are no weights. */
uint64_t slc_assign_lower_bound(const uint64_t *weights, uint64_t count, unsigned devices);

#endif
