/* MTTKRP on the emulated device against the oracle: orders, ranks, codecs, precisions, and memory
 * of the sums. Sums of integers must agree bit for bit. */
#include "mttkrp_problem.h"

extern "C" {
#include "slc_test.h"
}

#include <cmath>

static const enum slc_value_type precisions[] = {SLC_F64, SLC_F32};

#ifdef SLC_EMULATED
static const bool on_device = false;
#else
static const bool on_device = true;
#endif

/* Relative, for sums of products of non-integers. */
static const double tolerance = 1e-12;

static void check(struct mttkrp_problem *problem,
                  const struct mttkrp_way *way,
                  double allowed,
                  struct slc_gpu_mttkrp_plan *plan)
{
    const struct mttkrp_result result = mttkrp_problem_run(problem, way);
    const uint64_t wrong = mttkrp_wrong(problem, &result, allowed);

    if (wrong != 0 || !result.padding_lives) {
        printf(
            "# order %u mode %u rank %u precision %d exact %d transcoded %d runs %u: %llu wrong\n",
            problem->batch.layout.order, problem->mode, problem->rank, problem->precision,
            way->exact, way->transcoded, result.plan.chunk_runs, (unsigned long long)wrong);
    }
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT(result.padding_lives);
    CU_ASSERT_EQUAL(result.fault, SLC_GPU_SOUND);
    if (plan != nullptr) {
        *plan = result.plan;
    }
}

/* Orders 2 to 8 and 16: keys of up to 80 bits, a mode of size 1. */
static void encode_order(struct batch_fixture *batch, unsigned order, uint64_t nnz, uint32_t tile)
{
    const struct batch_shape shape = {
        static_cast<enum slc_codec>(SLC_CODEC_PACKED + order % 3), {}, tile, SLC_MIN_BLOCK_BYTES};
    uint64_t dims[SLC_MAX_ORDER];

    for (unsigned n = 0; n < order; n++) {
        dims[n] = order == 16 ? 20 : order >= 7 ? 290 + 7 * n : 40 + 60 * (n % 3);
    }
    if (order > 2 && order < 7) {
        dims[order - 2] = 1;
    }
    batch_encode(batch, order, dims, nnz, order % 2 == 0 ? SLC_MADE_COUNTS : SLC_MADE_ONES,
                 slc_test_seed(), &shape);
}

/* Every order with every rank. A real device computes each in both precisions, with exact and
 * ordinary sums; the slow emulation alternates them. */
static void every_rank(void)
{
    static const uint32_t ranks[] = {1,  3,  7,  8,   16,  24,  32,  33,
                                     48, 64, 65, 100, 128, 130, 200, 257};
    const bool all = on_device && !slc_test_quick();
    unsigned turn = 0;

    for (unsigned order = 2; order <= 8; order++) {
        struct mttkrp_problem problem;

        encode_order(&problem.batch, order, 1700, 1100);
        CU_ASSERT(order < 8 || problem.batch.layout.key_bits > 64);
        for (uint32_t rank : ranks) {
            struct mttkrp_way way = mttkrp_plain_way();

            for (unsigned again = 0; again < (all ? 4 : 1); again++) {
                way.exact = all ? again % 2 != 0 : turn % 5 == 4;
                way.seed = ++turn;
                /* A step of seven covers every rank and precision, both with exact and ordinary
                 * sums. */
                if (slc_test_quick() && turn % (slc_test_threads_only() ? 7 : 4) != 0) {
                    continue;
                }
                mttkrp_problem_make(&problem, (all ? turn / 4 + again : turn) % order, rank,
                                    precisions[all ? again / 2 : (turn / 4 + order) % 2], true);
                check(&problem, &way, 0, nullptr);
            }
        }
    }
}

static void reals(void)
{
    for (unsigned order = 2; order <= 6; order++) {
        for (enum slc_value_type precision : precisions) {
            struct mttkrp_problem problem;
            struct mttkrp_way way = mttkrp_plain_way();

            if (slc_test_threads_only() && precision != precisions[order % 2]) {
                continue;
            }
            encode_order(&problem.batch, order, 3000, 0);
            mttkrp_problem_make(&problem, order - 1, 20, precision, false);
            check(&problem, &way, tolerance, nullptr);
            way.exact = true;
            check(&problem, &way, tolerance, nullptr);
        }
    }
}

static void many_modes(void)
{
    struct mttkrp_problem problem;
    struct mttkrp_way way = mttkrp_plain_way();

    encode_order(&problem.batch, 16, 1500, 0);
    for (bool exact : {false, true}) {
        way.exact = exact;
        mttkrp_problem_make(&problem, 7, 9, SLC_F64, true);
        check(&problem, &way, 0, nullptr);
    }
}

/* Every codec and form of values, one nonzero, a single row, and no tiles. */
static void shapes(void)
{
    const uint64_t dims[3] = {300, 50, 200}, one_row[3] = {1, 3000, 1};
    struct mttkrp_problem problem;
    struct mttkrp_way way = mttkrp_plain_way();

    for (int codec = SLC_CODEC_PACKED; codec <= SLC_CODEC_BLCO; codec++) {
        for (int values = 0; values < SLC_MADE_VALUES; values++) {
            const struct batch_shape shape = {
                static_cast<enum slc_codec>(codec), {1, values % 2 == 0 ? 3U : 0U}, 0, 0};

            batch_encode(&problem.batch, 3, dims, 1300, static_cast<enum slc_made_values>(values),
                         slc_test_seed(), &shape);
            mttkrp_problem_make(&problem, 0, 5, SLC_F64, true);
            check(&problem, &way, 1e-12, nullptr);
        }
    }
    const struct batch_shape plain = {SLC_CODEC_PACKED, {}, 0, 0};
    for (enum slc_value_type precision : precisions) {
        batch_encode(&problem.batch, 3, dims, 1, SLC_MADE_COUNTS, slc_test_seed(), &plain);
        mttkrp_problem_make(&problem, 2, 33, precision, true);
        check(&problem, &way, 0, nullptr);
        batch_encode(&problem.batch, 3, one_row, 2500, SLC_MADE_COUNTS, slc_test_seed(), &plain);
        mttkrp_problem_make(&problem, 0, 4, precision, true);
        check(&problem, &way, 0, nullptr);
        mttkrp_problem_make(&problem, 1, 4, precision, true);
        check(&problem, &way, 0, nullptr);
    }
    problem.batch.blocks.clear();
    problem.want.assign(problem.want.size(), 0);
    check(&problem, &way, 0, nullptr);
}

/* Chunks of fewer runs, and one thread block per multiprocessor, if shared memory is small. */
static void little_shared_memory(void)
{
    const uint64_t dims[3] = {64, 60, 50};
    const struct batch_shape shape = {SLC_CODEC_PACKED, {}, 2100, 0};
    static const struct {
        unsigned kib;
        uint32_t runs, blocks_each;
    } cases[] = {{227, 4, 2}, {99, 3, 2}, {60, 2, 2}, {30, 1, 2}, {17, 1, 1}};
    struct mttkrp_problem problem;
    struct slc_gpu_mttkrp_plan plan;

    batch_encode(&problem.batch, 3, dims, slc_test_threads_only() ? 5000 : 8000, SLC_MADE_COUNTS,
                 slc_test_seed(), &shape);
    mttkrp_problem_make(&problem, 0, 50, SLC_F64, true);
    for (size_t i = 0; i < SLC_COUNT(cases); i++) {
        struct mttkrp_way way = mttkrp_plain_way();

        /* Few blocks, so that each has several chunks. */
        way.machine.multiprocessors = 1;
        way.machine.shared_bytes = cases[i].kib << 10;
        for (enum slc_value_type precision : precisions) {
            problem.precision = precision;
            check(&problem, &way, 0, &plan);
            CU_ASSERT_EQUAL(plan.chunk_runs, cases[i].runs);
            CU_ASSERT_EQUAL(plan.blocks_each, cases[i].blocks_each);
        }
    }
    /* The cuts of exact sums are the same on every machine. */
    for (unsigned kib : {227U, 99U}) {
        for (enum slc_value_type precision : precisions) {
            struct mttkrp_way way = mttkrp_plain_way();

            way.exact = true;
            way.machine.multiprocessors = 1;
            way.machine.shared_bytes = kib << 10;
            problem.precision = precision;
            check(&problem, &way, 0, &plan);
            CU_ASSERT_EQUAL(plan.chunk_runs, 4);
            CU_ASSERT_EQUAL(plan.blocks_each, precision == SLC_F64 && kib == 227 ? 2 : 1);
        }
    }
}

/* Encoded and transcoded tiles, with the columns of the output reordered or not, for orders, codecs
 * and ranks with different lanes per row. */
static void every_form(void)
{
    static const uint32_t ranks[] = {1, 2, 7, 16, 32, 33, 64, 72, 128, 200};
    unsigned turn = 0;

    for (unsigned order = 2; order <= 6; order++) {
        struct mttkrp_problem problem;

        encode_order(&problem.batch, order, 2700, 1100);
        for (unsigned form = 0; form < 8; form++) {
            struct mttkrp_way way = mttkrp_plain_way();

            way.transcoded = form % 2 == 1;
            way.natural = form / 2 % 2 == 1;
            way.machine.multiprocessors = 1;
            way.launch_tiles = turn % 2;
            mttkrp_problem_make(&problem, turn % order, ranks[turn % SLC_COUNT(ranks)],
                                form / 4 == 0 ? SLC_F64 : SLC_F32, true);
            turn++;
            if (!slc_test_threads_only() || turn % 5 == 0) {
                check(&problem, &way, 0, nullptr);
            }
        }
    }
}

/* Wide offsets, a single nonzero, all in one row, and no tiles, transcoded. */
static void transcoded(void)
{
    const uint64_t dims[3] = {UINT64_C(1) << 21, 3, 1 << 20}, one_row[3] = {1, 3000, 1};
    const uint64_t flat[3] = {200, 50, 1};
    const struct batch_shape plain = {SLC_CODEC_PACKED, {}, 0, 0};
    struct mttkrp_problem problem;
    struct mttkrp_way way = mttkrp_plain_way();

    way.transcoded = true;
    for (uint64_t nnz : {UINT64_C(1), UINT64_C(511), UINT64_C(1025)}) {
        batch_encode(&problem.batch, 3, dims, nnz, SLC_MADE_DOUBLES, slc_test_seed(), &plain);
        mttkrp_problem_make(&problem, 1, 3, SLC_F64, false);
        check(&problem, &way, 1e-12, nullptr);
    }
    batch_encode(&problem.batch, 3, one_row, 2500, SLC_MADE_COUNTS, slc_test_seed(), &plain);
    for (unsigned mode = 0; mode < 3; mode++) {
        mttkrp_problem_make(&problem, mode, 4, SLC_F64, true);
        check(&problem, &way, 0, nullptr);
    }
    /* The last words are those of a mode without bits. */
    for (uint64_t nnz = 700; nnz < 716; nnz += slc_test_threads_only() ? 15 : 1) {
        batch_encode(&problem.batch, 3, flat, nnz, SLC_MADE_COUNTS, slc_test_seed(), &plain);
        mttkrp_problem_make(&problem, nnz % 3, 3, SLC_F64, true);
        check(&problem, &way, 0, nullptr);
    }
    problem.batch.blocks.clear();
    problem.want.assign(problem.want.size(), 0);
    check(&problem, &way, 0, nullptr);
}

/* KiB of a multiprocessor's 256 that sm_90 leaves as cache, given its possible sizes of shared
 * memory. */
static uint32_t cache_kib(const struct slc_gpu_mttkrp_plan *plan)
{
    static const uint32_t sizes[] = {0, 8, 16, 32, 64, 100, 132, 164, 196, 228};
    uint32_t kib = 0;

    for (uint32_t size : sizes) {
        if (kib * 1024 < plan->blocks_each * (plan->shared_bytes + 1024)) {
            kib = size;
        }
    }
    return 256 - kib;
}

/* The cache that f64 factors of three modes and rank 32 have on a multiprocessor: printed for
 * docs/PERFORMANCE.md, and checked. */
static void cache_is_left(void)
{
    const struct slc_gpu_machine machine = {132, 227 << 10, 90};
    struct slc_gpu_mttkrp job = {};
    struct slc_gpu_mttkrp_plan plan;

    job.order = 3;
    job.rank = 32;
    job.precision = SLC_F64;
    job.output.rows = 100000;
    CU_ASSERT_FATAL(slc_gpu_mttkrp_plan(&job, &machine, &plan));
    printf("# %u bytes of shared memory, %u warps, %u KiB of cache\n", plan.shared_bytes,
           plan.blocks_each * SLC_MTTKRP_WARPS, cache_kib(&plan));
    CU_ASSERT(cache_kib(&plan) >= 90);
    /* The device uses the smallest size not below the percentage. */
    CU_ASSERT(slc_gpu_mttkrp_carveout(&plan, &machine) * 228 <= (256 - cache_kib(&plan)) * 100);
    CU_ASSERT(slc_gpu_mttkrp_carveout(&plan, &machine) * 228 > 100 * 100);
}

/* Rows that share buckets: a window wider than the number of buckets, all in one chunk. */
static void collisions(void)
{
    const uint64_t dims[3] = {20000, 2, 3};
    const struct batch_shape shape = {SLC_CODEC_PACKED, {}, 0, 0};
    struct mttkrp_problem problem;
    struct mttkrp_way way = mttkrp_plain_way();

    batch_encode(&problem.batch, 3, dims, 9000, SLC_MADE_COUNTS, slc_test_seed(), &shape);
    for (bool exact : {false, true}) {
        for (uint32_t rank : {2U, slc_test_threads_only() ? 16U : 32U}) {
            if (slc_test_threads_only() && exact == (rank == 2)) {
                continue;
            }
            way.exact = exact;
            mttkrp_problem_make(&problem, 0, rank, SLC_F64, true);
            check(&problem, &way, 0, nullptr);
        }
    }
}

/* Properties of a real device; for the emulated one, those set by mttkrp_problem_run. */
static struct slc_gpu_machine machine_at_hand(void)
{
    struct slc_gpu_machine machine = {4, 227 << 10, 90};
#ifndef SLC_EMULATED
    struct cudaDeviceProp properties;

    CU_ASSERT_EQUAL_FATAL(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
    machine = {(unsigned)properties.multiProcessorCount,
               (unsigned)properties.sharedMemPerBlockOptin,
               (unsigned)(properties.major * 10 + properties.minor)};
#endif
    return machine;
}

static uint64_t chunks_of(const struct mttkrp_problem *problem,
                          const struct slc_gpu_mttkrp_plan *plan)
{
    const uint64_t chunk_nnz = (uint64_t)plan->chunk_runs * SLC_RUN_NNZ;
    uint64_t chunks = 0;

    for (const struct batch_block &block : problem->batch.blocks) {
        for (const struct slc_encoded_tile &tile : block.tiles) {
            chunks += (tile.nnz + chunk_nnz - 1) / chunk_nnz;
        }
    }
    return chunks;
}

/* One launch that fills the machine: every thread block of every multiprocessor has several chunks.
 * A small mode and two larger ones, in both precisions. The slow emulation, and a device that a
 * sanitizer slows down, alternate the precisions. */
static void every_multiprocessor(void)
{
    enum { CHUNKS_EACH = 4, BLOCKS_EACH = 2 };
    const uint64_t dims[3] = {24, 30000, 2000};
    const struct batch_shape shape = {SLC_CODEC_PACKED, {}, 0, 0};
    const bool all = on_device && !slc_test_threads_only();
    struct slc_gpu_mttkrp_plan plan;
    struct mttkrp_problem problem;
    struct mttkrp_way way = mttkrp_plain_way();

    way.machine = machine_at_hand();
    if (slc_test_threads_only()) {
        way.machine.multiprocessors = 2;
    }
    batch_encode(&problem.batch, 3, dims,
                 (uint64_t)way.machine.multiprocessors * BLOCKS_EACH * CHUNKS_EACH *
                     SLC_MTTKRP_MOST_RUNS * SLC_RUN_NNZ,
                 SLC_MADE_COUNTS, slc_test_seed(), &shape);
    for (unsigned mode = 0; mode < 3; mode++) {
        mttkrp_problem_make(&problem, mode, all ? 32 : 8, SLC_F64, true);
        for (unsigned p = 0; p < (all ? 2 : 1); p++) {
            problem.precision = precisions[all ? p : mode % 2];
            for (bool exact : {false, true}) {
                way.exact = exact;
                check(&problem, &way, 0, &plan);
                CU_ASSERT(chunks_of(&problem, &plan) >= (uint64_t)(CHUNKS_EACH - 1) *
                                                            way.machine.multiprocessors *
                                                            plan.blocks_each);
            }
            way.exact = false;
            way.transcoded = true;
            check(&problem, &way, 0, nullptr);
            way.transcoded = false;
        }
    }
}

/* Impossible launches are rejected; memory is requested only if it exists. */
static void refused(void)
{
    struct slc_gpu_mttkrp job = {};
    struct slc_gpu_batch batch = {};
    const struct slc_gpu_machine small = {1, 12 << 10, 90}, large = {1, 227 << 10, 90};

    job.order = 3;
    job.rank = 8;
    job.precision = SLC_F64;
    job.output.rows = 10;
    CU_ASSERT_EQUAL(slc_gpu_mttkrp_chunk_runs(&job, &small), 0);
    CU_ASSERT_EQUAL(slc_gpu_mttkrp_chunk_runs(&job, &large), SLC_MTTKRP_MOST_RUNS);
    CU_ASSERT_EQUAL(slc_gpu_mttkrp_batch(&job, &batch, &small, nullptr), cudaSuccess);
    batch.chunk_count = 1;
    batch.chunk_runs = 8;
    CU_ASSERT_EQUAL(slc_gpu_mttkrp_batch(&job, &batch, &small, nullptr), cudaErrorInvalidValue);
    batch.chunk_runs = SLC_MTTKRP_MOST_RUNS + 1;
    CU_ASSERT_EQUAL(slc_gpu_mttkrp_batch(&job, &batch, &large, nullptr), cudaErrorInvalidValue);
}

SLC_SUITE(mttkrp)
{
    static const struct slc_test tests[] = {
        {"every order and rank", every_rank},
        {"products that are no integers", reals},
        {"sixteen modes", many_modes},
        {"every codec, one nonzero, none", shapes},
        {"little shared memory", little_shared_memory},
        {"rows that share buckets", collisions},
        {"every multiprocessor has several chunks", every_multiprocessor},
        {"refused launches", refused},
        {"encoded and transcoded tiles", every_form},
        {"transcoded tiles", transcoded},
        {"cache is left for factors", cache_is_left},
    };

    return slc_test_main("gpu mttkrp", tests, SLC_COUNT(tests), argc, argv);
}
