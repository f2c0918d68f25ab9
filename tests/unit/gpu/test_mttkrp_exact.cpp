/* MTTKRP with exact sums on the emulated device: the same bits for any split, order and sharing of
 * the work; columns without a value; and forged bytes, which must not lead kernels outside their
 * memory. */
#include "mttkrp_problem.h"

extern "C" {
#include "base/random.h"
#include "slc_test.h"
}

#include <cmath>
#include <cstring>

/* A tensor of several blocks of several tiles, some of which have several chunks. */
static void make(struct mttkrp_problem *problem, uint32_t rank, enum slc_value_type precision)
{
    const uint64_t dims[3] = {70, 900, 60};
    const struct batch_shape shape = {SLC_CODEC_PACKED, {}, 2900, SLC_MIN_BLOCK_BYTES};

    batch_encode(&problem->batch, 3, dims, 14000, SLC_MADE_DOUBLES, slc_test_seed(), &shape);
    CU_ASSERT(problem->batch.blocks.size() > 1);
    mttkrp_problem_make(problem, 0, rank, precision, false);
}

static bool same_bits(const struct mttkrp_result *a, const struct mttkrp_result *b)
{
    return a->words == b->words && a->values.size() == b->values.size() &&
           memcmp(a->values.data(), b->values.data(), a->values.size() * sizeof(double)) == 0;
}

static void same_however(void)
{
    /* Machines with different shared memory, for which launches are planned differently. */
    static const struct slc_gpu_machine machines[] = {
        {1, 227 << 10, 90}, {3, 163 << 10, 80}, {2, 99 << 10, 80}};

    for (uint32_t rank : {6U, 33U}) {
        for (enum slc_value_type precision : {SLC_F64, SLC_F32}) {
            struct mttkrp_problem problem;
            struct mttkrp_way way = mttkrp_plain_way();

            if (slc_test_threads_only() && (rank == 33) != (precision == SLC_F32)) {
                continue;
            }
            make(&problem, rank, precision);
            way.exact = true;
            const struct mttkrp_result once = mttkrp_problem_run(&problem, &way);
            CU_ASSERT_EQUAL(mttkrp_wrong(&problem, &once, 1e-12), 0);
            for (unsigned k = 1; k <= 3; k++) {
                way.seed = 10 + k;
                way.machine = machines[k - 1];
                way.launch_tiles = 3 - k;
                way.backwards = k % 2 == 0;
                way.streams = 1 + k % 2;
                way.devices = k == 1 ? 1 : k;
                const struct mttkrp_result again = mttkrp_problem_run(&problem, &way);
                CU_ASSERT(same_bits(&once, &again));
                CU_ASSERT(again.padding_lives);
            }
        }
    }
}

/* Ordinary sums have other bits in another order, so the bits compared above could differ. */
static void ordinary_differ(void)
{
    struct mttkrp_problem problem;
    struct mttkrp_way way = mttkrp_plain_way();

    make(&problem, 6, SLC_F64);
    const struct mttkrp_result once = mttkrp_problem_run(&problem, &way);
    way.launch_tiles = 1;
    way.backwards = true;
    const struct mttkrp_result again = mttkrp_problem_run(&problem, &way);
    CU_ASSERT(!same_bits(&once, &again));
}

static void not_finite(void)
{
    struct mttkrp_problem problem;
    struct mttkrp_way way = mttkrp_plain_way();

    make(&problem, 7, SLC_F64);
    way.exact = true;
    /* Column 1 has an infinite factor, 2 a NaN, 3 only zeros, 4 products beyond f64; the others
     * are not affected. */
    problem.factor[1][7 * 3 + 1] = -INFINITY;
    problem.factor[2][7 * 5 + 2] = NAN;
    for (size_t i = 0; i < 60; i++) {
        problem.factor[2][7 * i + 3] = 0;
        problem.factor[2][7 * i + 4] = 1e200;
    }
    for (size_t i = 0; i < 900; i++) {
        problem.factor[1][7 * i + 4] = 1e200;
    }
    const struct mttkrp_result result = mttkrp_problem_run(&problem, &way);
    for (size_t i = 0; i < result.values.size(); i++) {
        const unsigned column = i % 7;

        CU_ASSERT(column == 1 || column == 2 || column == 4 ? std::isnan(result.values[i])
                  : column == 3                             ? result.values[i] == 0
                                                            : std::isfinite(result.values[i]));
    }
}

/* Forged coordinates, values and keys: faults are reported, and nothing else happens. */
static void forged_bytes(void)
{
    unsigned told = 0;

    for (unsigned k = 0; k < (slc_test_quick() ? 4U : 12U); k++) {
        const uint64_t dims[3] = {60, 900, 60};
        const struct batch_shape shape = {
            static_cast<enum slc_codec>(SLC_CODEC_PACKED + k % 3), {}, 0, 0};
        struct mttkrp_problem problem;
        struct mttkrp_way way = mttkrp_plain_way();

        batch_encode(&problem.batch, 3, dims, 2500, k % 2 == 0 ? SLC_MADE_COUNTS : SLC_MADE_DOUBLES,
                     slc_test_seed(), &shape);
        std::vector<uint8_t> &bytes = problem.batch.blocks[0].bytes;
        for (unsigned change = 0; change < 40; change++) {
            bytes[slc_random_below(slc_test_seed(), k, 2 * change, bytes.size())] ^=
                (uint8_t)(1 + slc_random_below(slc_test_seed(), k, 2 * change + 1, 255));
        }
        mttkrp_problem_make(&problem, k % 3, 10, SLC_F64, true);
        way.exact = k % 4 == 3;
        way.expand_there = true;
        const struct mttkrp_result result = mttkrp_problem_run(&problem, &way);
        told += result.fault != SLC_GPU_SOUND;
        CU_ASSERT(result.padding_lives);
    }
    CU_ASSERT(told > 0);
}

SLC_SUITE(mttkrp_exact)
{
    static const struct slc_test tests[] = {
        {"the same bits however the work is cut and shared", same_however},
        {"ordinary sums depend on the order", ordinary_differ},
        {"columns that have no value", not_finite},
        {"forged bytes", forged_bytes},
    };

    return slc_test_main("gpu mttkrp exact", tests, SLC_COUNT(tests), argc, argv);
}
