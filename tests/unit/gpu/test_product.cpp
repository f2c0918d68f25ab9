/* Tiles multiplied fiber by fiber, from their encoded bytes on: integers against the oracle bit for
 * bit, and any numbers compared between lanes and amounts of memory. */
#include "product_fixture.h"

#include <algorithm>
#include <cmath>
#include <thread>

/* Every tile of the tensor, in lane after lane, against the oracle, on the device under test and
 * on the device of the tests. */
static void check_tiles(const product_run &run)
{
    product_run fake(run.tensor, run.how);
    size_t t = 0;

    if (!run.words.empty()) {
        fake.shorten();
    }
    fake.create_fake();
    SLC_ASSERT_OK(fake.open(), &fake.err);
    for (const struct batch_block &block : run.tensor.blocks) {
        for (const struct slc_encoded_block &lone : block.lone) {
            const product_sums expected = run.expected(lone.tiles[0], run.tensor.tile_begin[t]);
            struct slc_error err = SLC_ERROR_INIT;
            product_sums made, faked;

            SLC_ASSERT_OK(run.tile((unsigned)t % run.how.lanes, lone, &made, &err), &err);
            CU_ASSERT(made == expected);
            SLC_ASSERT_OK(fake.tile(0, lone, &faked, &err), &err);
            CU_ASSERT(faked == expected);
            t++;
        }
    }
}

static void check(const struct batch_fixture &tensor,
                  const product_case &how,
                  unsigned seed,
                  bool shortens = false)
{
    const device_emulation emulation(seed);
    product_run run(tensor, how);

    if (shortens) {
        run.shorten();
    }
    SLC_ASSERT_OK(run.create_emulated(), &run.err);
    SLC_ASSERT_OK(run.open(), &run.err);
    check_tiles(run);
}

static const enum slc_value_type precisions[] = {SLC_F64, SLC_F32};
static const uint32_t columns[] = {1, 2, 3, 8, 16, 33, 100};

/* The lowest `bits` bits of a mode are the lowest of the keys, so that its fibers are runs. */
static struct batch_shape in_fibers(enum slc_codec codec, unsigned mode, unsigned bits)
{
    return {codec, {(uint8_t)mode, (uint8_t)bits}, 700, 0};
}

static void every_order(void)
{
    static const uint64_t lengths[SLC_MAX_ORDER] = {6, 9, 1, 12, 5, 3, 1, 7};
    unsigned turn = 0;

    for (unsigned order = 1; order <= 8; order++) {
        std::vector<uint64_t> dims(lengths, lengths + order);
        struct batch_fixture tensor;

        dims[0] = order < 3 ? 900 : 6;
        product_encode(&tensor, dims, 1500, SLC_MADE_COUNTS,
                       in_fibers(SLC_CODEC_PACKED, 0, order < 3 ? 10 : 3));
        for (uint32_t cols : columns) {
            turn++;
            if (slc_test_quick() && turn % 3 != 0) {
                continue;
            }
            const unsigned mode = cols == 16 ? order - 1 : 0;

            check(tensor, {1U << mode, cols, precisions[turn % 2], 2, SLC_TILE_NNZ}, turn);
        }
    }
}

/* Any set of modes, also all of them: then there is one fiber. */
static void sets_of_modes(void)
{
    struct batch_fixture tensor;

    product_encode(&tensor, {5, 40, 3, 8}, 1800, SLC_MADE_COUNTS,
                   in_fibers(SLC_CODEC_PACKED, 1, 6));
    for (unsigned modes = 1; modes < 16; modes += slc_test_quick() ? 3 : 1) {
        check(
            tensor,
            {modes, modes % 4 == 3 ? 3U : 1U, precisions[(modes / 4 + modes) % 2], 1, SLC_TILE_NNZ},
            modes);
    }
    check(tensor, {15, 1, SLC_F64, 1, 1}, 3);
}

static void codecs(void)
{
    static const enum slc_codec all[] = {SLC_CODEC_PACKED, SLC_CODEC_LZ4, SLC_CODEC_BLCO};
    static const enum slc_made_values exact[] = {SLC_MADE_ONES, SLC_MADE_COUNTS, SLC_MADE_FEW,
                                                 SLC_MADE_EVEN_FLOATS, SLC_MADE_EVEN_DOUBLES};

    for (enum slc_codec codec : all) {
        for (enum slc_made_values values : exact) {
            struct batch_fixture tensor;

            product_encode(&tensor, {30, 70, 11}, 2200, values, in_fibers(codec, 1, 7));
            check(tensor, {2, 1, SLC_F64, 1, SLC_TILE_NNZ}, 1);
            check(tensor, {2, 6, SLC_F64, 2, 50}, 2);
        }
    }
}

/* Ends of groups, runs and tiles; fibers of one nonzero, of all, and of exactly one group. */
static void sizes(void)
{
    static const uint64_t counts[] = {1, 2, 31, 32, 33, 127, 128, 129, 511, 512, 513, 640, 1025};

    for (uint64_t nnz : counts) {
        struct batch_fixture dense;

        if (slc_test_threads_only() && nnz % 128 != 0) {
            continue;
        }

        /* Every cell of a tensor whose fibers have 32 nonzeros: 4 fibers are a group. */
        product_encode(&dense, {32, (nnz + 31) / 32}, 40 * nnz, SLC_MADE_COUNTS,
                       {SLC_CODEC_PACKED, {0, 5}, (uint32_t)nnz, 0});
        for (uint32_t cols : {1U, 5U}) {
            check(dense, {1, cols, SLC_F64, 1, SLC_TILE_NNZ}, 1);
            check(dense, {2, cols, SLC_F32, 1, 7}, 2);
            check(dense, {3, cols, SLC_F32, 1, 1}, 3);
        }
    }
}

static void full_tile(void)
{
    struct batch_fixture tensor;

    if (slc_test_quick()) {
        slc_test_skip("left to the run without sanitizers");
        return;
    }
    product_encode(&tensor, {3, 40000, 5}, 70000, SLC_MADE_COUNTS,
                   {SLC_CODEC_PACKED, {1, 16}, 0, 0});
    CU_ASSERT_EQUAL(tensor.blocks[0].lone_tiles[0].nnz, SLC_TILE_NNZ);
    check(tensor, {2, 1, SLC_F64, 1, SLC_TILE_NNZ}, 1);
    check(tensor, {2, 4, SLC_F32, 1, SLC_TILE_NNZ}, 2);
    check(tensor, {4, 1, SLC_F64, 1, 5000}, 3);
}

static void long_keys(void)
{
    struct batch_fixture tensor;

    for (enum slc_codec codec : {SLC_CODEC_PACKED, SLC_CODEC_LZ4, SLC_CODEC_BLCO}) {
        /* Some 100 bits, in modes of which one has matrices. */
        product_encode(&tensor, {UINT64_C(1) << 40, 50, UINT64_C(1) << 31, UINT64_C(1) << 24}, 900,
                       SLC_MADE_COUNTS, {codec, {0, 0}, 400, 0});
        CU_ASSERT(tensor.layout.key_bits > 64);
        if (slc_test_threads_only() && codec != SLC_CODEC_PACKED) {
            continue;
        }
        check(tensor, {2, 1, SLC_F64, 1, SLC_TILE_NNZ}, 1);
        check(tensor, {2, 3, SLC_F32, 1, SLC_TILE_NNZ}, 2);
    }
}

/* Matrices with rows only for used indices, in some or all modes; one index in seven is used. */
static void used_rows(void)
{
    struct batch_fixture tensor;

    product_encode(&tensor, {5000, 7, 3000}, 700, SLC_MADE_COUNTS,
                   in_fibers(SLC_CODEC_PACKED, 0, 13));
    for (uint32_t cols : {1U, 5U}) {
        for (unsigned modes : {1U, 4U, 5U, 7U}) {
            check(tensor, {modes, cols, precisions[cols % 2], 2, 300}, modes, true);
        }
    }
}

/* ---- the same bits */

/* All tiles in one lane, one after the other. */
static std::vector<product_sums> in_lane(const product_run &run, unsigned lane)
{
    std::vector<product_sums> all;

    for (const struct batch_block &block : run.tensor.blocks) {
        for (const struct slc_encoded_block &lone : block.lone) {
            struct slc_error err = SLC_ERROR_INIT;

            all.emplace_back();
            if (run.tile(lane, lone, &all.back(), &err) != SLC_OK) {
                printf("# %s\n", err.message);
                all.pop_back();
            }
        }
    }
    return all;
}

static void near(const product_sums &made, const product_sums &expected)
{
    CU_ASSERT_EQUAL_FATAL(made.sums.size(), expected.sums.size());
    for (size_t i = 0; i < made.sums.size(); i++) {
        CU_ASSERT(std::fabs(made.sums[i] - expected.sums[i]) < 1e-11);
    }
}

/* For any memory, seed of the emulation's order, and earlier tiles of the lane. */
static void same_bits(void)
{
    for (uint32_t cols : {1U, 5U}) {
        struct batch_fixture tensor;
        std::vector<product_sums> first;

        product_encode(&tensor, {4, 300, 6}, 3000, SLC_MADE_DOUBLES,
                       {SLC_CODEC_PACKED, {1, 9}, 1300, 0});
        for (uint32_t room : {(uint32_t)SLC_TILE_NNZ, 9U, 3U}) {
            const device_emulation emulation(room);
            product_run run(tensor, {2, cols, SLC_F64, 2, room}, true);

            SLC_ASSERT_OK(run.create_emulated(), &run.err);
            SLC_ASSERT_OK(run.open(), &run.err);
            for (unsigned lane = 0; lane < 2; lane++) {
                const std::vector<product_sums> again = in_lane(run, lane);

                if (first.empty()) {
                    first = again;
                    near(again[0], run.expected(tensor.blocks[0].lone_tiles[0], 0));
                }
                CU_ASSERT(again == first);
            }
        }
    }
}

/* Lanes of several threads at the same time. */
static void lanes_at_once(void)
{
    enum { THREADS = 3 };
    struct batch_fixture tensor;

    product_encode(&tensor, {4, 300, 6}, 3000, SLC_MADE_EVEN_DOUBLES,
                   in_fibers(SLC_CODEC_LZ4, 1, 9));
    for (uint32_t cols : {1U, 5U}) {
        const device_emulation emulation(cols);
        product_run run(tensor, {2, cols, SLC_F64, THREADS, 40});
        std::vector<product_sums> made[THREADS];
        std::vector<std::thread> threads;

        SLC_ASSERT_OK(run.create_emulated(), &run.err);
        SLC_ASSERT_OK(run.open(), &run.err);
        for (unsigned lane = 0; lane < THREADS; lane++) {
            threads.emplace_back([&, lane] { made[lane] = in_lane(run, lane); });
        }
        for (std::thread &thread : threads) {
            thread.join();
        }
        CU_ASSERT_EQUAL_FATAL(made[0].size(), tensor.tile_begin.size());
        for (unsigned lane = 0; lane < THREADS; lane++) {
            CU_ASSERT(made[lane] == made[0]);
        }
        CU_ASSERT(made[0][1] == run.expected(tensor.blocks[0].lone_tiles[1], tensor.tile_begin[1]));

        struct slc_device_stats stats;
        run.device->ops->stats(run.device, &stats);
        CU_ASSERT_EQUAL(stats.blocks, THREADS * tensor.tile_begin.size());
        CU_ASSERT_EQUAL(stats.launches, stats.blocks);
        CU_ASSERT_EQUAL(stats.nnz, THREADS * tensor.coo.nnz);
        CU_ASSERT(stats.block_bytes > 0 && stats.bytes_to_host > 0 && stats.bytes_to_device > 0);
        run.device->ops->memory.close(run.device);
        run.device->ops->stats(run.device, &stats);
        CU_ASSERT_EQUAL(stats.nnz, THREADS * tensor.coo.nnz);
    }
}

static const struct slc_test tests[] = {
    {"every order, columns and precision", every_order},
    {"any set of modes", sets_of_modes},
    {"every codec and form of values", codecs},
    {"ends of groups, runs and tiles", sizes},
    {"full tiles", full_tile},
    {"keys of more than 64 bits", long_keys},
    {"matrices with rows for used indices", used_rows},
    {"the same bits in any lane, with any memory", same_bits},
    {"lanes of several threads at once", lanes_at_once},
};

SLC_SUITE(product)
{
    return slc_test_main("gpu product", tests, SLC_COUNT(tests), argc, argv);
}
