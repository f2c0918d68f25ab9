/* Largest-first assignment against an exact solver: within 4/3 - 1/(3 D) of the optimum on random
 * small instances, and exactly at that bound on an instance known to reach it. */
#include "engine/executor/assign.h"

#include "base/error/fault.h"
#include "base/random.h"
#include "slc_test.h"

#include <string.h>

enum { PARTITIONS_MAX = 11, DEVICES_MAX = 4 };

/* The minimal largest load, by trying every assignment that can still be better. */
struct exact {
    const uint64_t *weights;
    unsigned count, devices;
    uint64_t loads[DEVICES_MAX];
    uint64_t best;
};

static void try_from(struct exact *exact, unsigned partition, uint64_t largest)
{
    if (largest >= exact->best) {
        return;
    }
    if (partition == exact->count) {
        exact->best = largest;
        return;
    }
    for (unsigned d = 0; d < exact->devices; d++) {
        exact->loads[d] += exact->weights[partition];
        try_from(exact, partition + 1, exact->loads[d] > largest ? exact->loads[d] : largest);
        exact->loads[d] -= exact->weights[partition];
        if (exact->loads[d] == 0) {
            return; /* all further devices are also empty and equivalent */
        }
    }
}

static uint64_t best_load(const uint64_t *weights, unsigned count, unsigned devices)
{
    struct exact exact = {
        .weights = weights, .count = count, .devices = devices, .best = UINT64_MAX};

    try_from(&exact, 0, 0);
    return exact.best;
}

static uint64_t largest_of(const uint64_t *loads, unsigned devices)
{
    uint64_t largest = 0;

    for (unsigned d = 0; d < devices; d++) {
        largest = loads[d] > largest ? loads[d] : largest;
    }
    return largest;
}

/* Assigns, checks the loads, and returns the largest. */
static uint64_t assigned_load(const uint64_t *weights, unsigned count, unsigned devices)
{
    uint32_t device[PARTITIONS_MAX];
    uint64_t loads[DEVICES_MAX], sums[DEVICES_MAX] = {0};
    struct slc_error err = SLC_ERROR_INIT;

    memset(device, 0xff, sizeof device);
    SLC_ASSERT_OK(slc_assign_largest_first(weights, count, devices, device, loads, &err), &err);
    for (unsigned p = 0; p < count; p++) {
        CU_ASSERT_TRUE_FATAL(device[p] < devices);
        sums[device[p]] += weights[p];
    }
    CU_ASSERT_EQUAL(memcmp(sums, loads, devices * sizeof *loads), 0);
    return largest_of(loads, devices);
}

static void stays_within_the_bound(void)
{
    uint64_t draw = 0;

    for (unsigned round = 0; round < (slc_test_quick() ? 100U : 1000U); round++) {
        const unsigned count =
            (unsigned)slc_random_below(slc_test_seed(), 1, draw++, PARTITIONS_MAX + 1);
        const unsigned devices =
            1 + (unsigned)slc_random_below(slc_test_seed(), 2, draw++, DEVICES_MAX);
        /* Weights that are nearly equal, or very different. */
        const uint64_t range = round % 2 == 0 ? 6 : 1000000;
        uint64_t weights[PARTITIONS_MAX];
        uint64_t load, best;

        for (unsigned p = 0; p < count; p++) {
            weights[p] = slc_random_below(slc_test_seed(), 3, draw++, range);
        }
        load = assigned_load(weights, count, devices);
        best = best_load(weights, count, devices);
        CU_ASSERT_TRUE(load >= best);
        CU_ASSERT_TRUE(3 * devices * load <= (4 * devices - 1) * best);
        CU_ASSERT_TRUE(slc_assign_lower_bound(weights, count, devices) <= best);
    }
}

/* Graham's instance: 2 D + 1 partitions for which the bound is reached. */
static void reaches_the_bound(void)
{
    static const uint64_t two[] = {3, 3, 2, 2, 2};
    static const uint64_t three[] = {5, 5, 4, 4, 3, 3, 3};

    CU_ASSERT_EQUAL(assigned_load(two, 5, 2), 7);
    CU_ASSERT_EQUAL(best_load(two, 5, 2), 6);
    CU_ASSERT_EQUAL(slc_assign_lower_bound(two, 5, 2), 6);
    CU_ASSERT_EQUAL(assigned_load(three, 7, 3), 11);
    CU_ASSERT_EQUAL(best_load(three, 7, 3), 9);
}

static void accepts_small_inputs(void)
{
    static const uint64_t one[] = {7};
    static const uint64_t even[] = {4, 4, 4, 4};

    CU_ASSERT_EQUAL(assigned_load(one, 0, 3), 0);
    CU_ASSERT_EQUAL(slc_assign_lower_bound(one, 0, 3), 0);
    CU_ASSERT_EQUAL(assigned_load(one, 1, 4), 7);
    CU_ASSERT_EQUAL(slc_assign_lower_bound(one, 1, 4), 7);
    CU_ASSERT_EQUAL(assigned_load(even, 4, 1), 16);
    CU_ASSERT_EQUAL(assigned_load(even, 4, 2), 8);
}

/* Devices get contiguous runs that differ from an even share by at most the largest weight. */
static void equal_shares_are_nearly_equal(void)
{
    uint64_t draw = 0;

    for (unsigned round = 0; round < 500; round++) {
        const unsigned count = (unsigned)slc_random_below(slc_test_seed(), 5, draw++, 60);
        const unsigned devices = 1 + (unsigned)slc_random_below(slc_test_seed(), 6, draw++, 8);
        uint64_t weights[60], loads[8], sums[8] = {0};
        uint64_t sum = 0, largest = 0;
        struct slc_error err = SLC_ERROR_INIT;
        uint32_t device[60];

        for (unsigned p = 0; p < count; p++) {
            weights[p] = slc_random_below(slc_test_seed(), 7, draw++, round % 3 == 0 ? 2 : 1000);
            sum += weights[p];
            largest = weights[p] > largest ? weights[p] : largest;
        }
        SLC_ASSERT_OK(slc_assign_equal_shares(weights, count, devices, device, loads, &err), &err);
        for (unsigned p = 0; p < count; p++) {
            CU_ASSERT_TRUE_FATAL(device[p] < devices);
            CU_ASSERT_TRUE(p == 0 || device[p] >= device[p - 1]);
            sums[device[p]] += weights[p];
        }
        CU_ASSERT_EQUAL(memcmp(sums, loads, devices * sizeof *loads), 0);
        for (unsigned d = 0; d < devices; d++) {
            CU_ASSERT_TRUE(loads[d] * devices <= sum + largest * devices);
            CU_ASSERT_TRUE((loads[d] + largest) * devices >= sum);
        }
    }
}

static void imbalance_is_largest_over_mean(void)
{
    static const double loads[] = {1.0, 3.0, 2.0, 2.0}, none[] = {0.0, 0.0};

    CU_ASSERT_EQUAL(slc_assign_imbalance(loads, 4), 1.5);
    CU_ASSERT_EQUAL(slc_assign_imbalance(loads, 1), 1.0);
    CU_ASSERT_EQUAL(slc_assign_imbalance(none, 2), 1.0);
}

static void refuses_and_fails(void)
{
    static const uint64_t weights[] = {1, 2};
    struct slc_error err = SLC_ERROR_INIT;
    uint32_t device[2] = {9, 9};
    uint64_t loads[2] = {8, 8};

    SLC_ASSERT_FAILS(slc_assign_largest_first(weights, 2, 0, device, loads, &err), SLC_ERR_USAGE,
                     &err, "0 devices");
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_assign_largest_first(weights, 2, SLC_MAX_DEVICES + 1, device, loads, &err),
                     SLC_ERR_USAGE, &err, "1 to 64");
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_assign_equal_shares(weights, 2, 0, device, loads, &err), SLC_ERR_USAGE,
                     &err, "0 devices");
    slc_error_clear(&err);
    slc_fault_arm(SLC_FAULT_ALLOCATION, 1);
    SLC_ASSERT_FAILS(slc_assign_largest_first(weights, 2, 2, device, loads, &err), SLC_ERR_MEMORY,
                     &err, "2 partitions");
    slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
    CU_ASSERT(device[0] == 9 && device[1] == 9 && loads[0] == 8 && loads[1] == 8);
}

static const struct slc_test tests[] = {
    {"within 4/3 - 1/(3 D) of the best", stays_within_the_bound},
    {"the bound is reached", reaches_the_bound},
    {"nothing, one, even ones", accepts_small_inputs},
    {"equal shares", equal_shares_are_nearly_equal},
    {"imbalance", imbalance_is_largest_over_mean},
    {"refusals and no memory", refuses_and_fails},
};

SLC_SUITE(assign)
{
    return slc_test_main("engine assign", tests, SLC_COUNT(tests), argc, argv);
}
