/* Partitions of a sorted layout divided between devices before any of them is computed. */
#ifndef SLC_ENGINE_ASSIGN_H
#define SLC_ENGINE_ASSIGN_H

#include "base/error/error.h"
#include "engine/plan/plan.h"

#include <stdint.h>

/*
 * Gives each of `count` partitions, largest first, to the device that has least so far.
 * Source: AMPED section 4.9; the rule and its bound are Graham's (Bounds on Multiprocessing Timing
 * Anomalies, SIAM J. Applied Mathematics 17, 1969): the largest load is at most 4/3 - 1/(3 D) times
 * that of the best assignment to D devices.
 * Shapes: weights[count], nonzeros of each partition, or any other measure of its work;
 * device[count], set to 0 .. devices - 1; loads[devices], set to the sum of weights of each.
 * Order: follows from the weights alone; equal ones in ascending order, equal loads to the lower
 * device. Cost: count (log count + devices). Memory: 16 bytes a partition while it runs.
 * Errors: SLC_ERR_USAGE for no devices or more than SLC_MAX_DEVICES, SLC_ERR_MEMORY; device and
 * loads are then unchanged. Needs: the sum of the weights is below 2^64.
 */
enum slc_status slc_assign_largest_first(const uint64_t *weights,
                                         uint64_t count,
                                         unsigned devices,
                                         uint32_t *device,
                                         uint64_t *loads,
                                         struct slc_error *err) SLC_NODISCARD;

/*
 * The baseline (AMPED section 5.4): runs of neighbouring `count` blocks or partitions, one for each
 * device, as nearly of the same weight as their ends allow. Shapes, errors and needs as above, but
 * for the bound: a load is less than the largest weight away from an even share, and the sum of the
 * weights times 2 * devices is below 2^64.
 */
enum slc_status slc_assign_equal_shares(const uint64_t *weights,
                                        uint64_t count,
                                        unsigned devices,
                                        uint32_t *device,
                                        uint64_t *loads,
                                        struct slc_error *err) SLC_NODISCARD;

/* The largest of some loads over their mean; 1 where all are 0. */
double slc_assign_imbalance(const double *loads, unsigned devices);

/*
 * What no assignment can be better than: the largest weight, or an even share of all, rounded up.
 * 0 without weights.
 */
uint64_t slc_assign_lower_bound(const uint64_t *weights, uint64_t count, unsigned devices);

#endif
