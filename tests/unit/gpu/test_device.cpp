/* The device of gpu/ through base/device.h on the emulation: MTTKRP of blocks in any order against
 * the oracle, resident blocks, and resident factors. */
#include "device_fixture.h"
#include "naive_products.h"

extern "C" {
#include "base/error/clock.h"
#include "cpu/dense/dense.h"
}

#include <cmath>
#include <cstring>
#include <memory>
#include <thread>

static void assert_ok(device_run *run, enum slc_status status)
{
    SLC_ASSERT_OK(status, &run->err);
}

/* Computes one MTTKRP of integers, whose result has the same bits as the result of the oracle. */
static void check_mode(device_run *run, unsigned mode)
{
    std::vector<double> rows;

    assert_ok(run, run->mttkrp(mode));
    assert_ok(run, run->output(mode, &rows));
    CU_ASSERT(rows == run->expected(mode));
}

static void check_case(const device_tensor &tensor, const device_case &how, unsigned passes)
{
    const device_emulation emulation(how.seed);
    device_run run(tensor, how);

    assert_ok(&run, run.open());
    for (unsigned pass = 0; pass < passes; pass++) {
        check_mode(&run, (how.seed + pass) % 3);
    }
}

/* ---- batches */

static void any_streams(void)
{
    const device_tensor tensor(SLC_CODEC_BLCO, SLC_MADE_COUNTS, 2000, 90);

    CU_ASSERT(tensor.count() >= 8);
    for (unsigned streams = 1; streams <= SLC_DEVICE_STREAMS; streams += streams < 3 ? 1 : 5) {
        check_case(tensor, {streams, 1, 0, 5, SLC_F64, false, streams}, 2);
        check_case(tensor, {streams, 3, 0, 16, SLC_F64, false, streams + 10}, 1);
    }
    /* More copies in a slot than events, all of them in one batch. */
    check_case(tensor, {1, 40, 0, 1, SLC_F64, false, 30}, 1);
}

static void every_codec(void)
{
    static const enum slc_made_values values[] = {SLC_MADE_COUNTS, SLC_MADE_FEW,
                                                  SLC_MADE_EVEN_DOUBLES};

    for (int codec = SLC_CODEC_PACKED; codec <= SLC_CODEC_BLCO; codec++) {
        for (unsigned v = 0; v < SLC_COUNT(values); v++) {
            const device_tensor tensor(static_cast<enum slc_codec>(codec), values[v], 2000, 700);

            check_case(tensor, {2, 2, v, 8, SLC_F64, false, 40 + v},
                       slc_test_threads_only() ? 1 : 2);
        }
    }
}

static void precisions(void)
{
    const device_tensor tensor(SLC_CODEC_PACKED, SLC_MADE_COUNTS, 1500, 400);

    for (unsigned seed = 0; seed < (slc_test_threads_only() ? 1U : 2U); seed++) {
        check_case(tensor, {2, 1, 1, 7, SLC_F32, false, 60 + seed}, 3);
        check_case(tensor, {2, 1, 1, 7, SLC_F64, true, 70 + seed}, 3);
        check_case(tensor, {2, 1, 1, 7, SLC_F32, true, 80 + seed}, 3);
    }
}

/* Sums of any numbers have the same bits for any order of blocks. */
static void deterministic(void)
{
    const device_tensor tensor(SLC_CODEC_BLCO, SLC_MADE_DOUBLES, 1200, 100);
    std::vector<double> first;

    for (unsigned seed = 1; seed <= (slc_test_threads_only() ? 2U : 4U); seed++) {
        const device_emulation emulation(seed);
        device_run run(tensor, {seed, seed, seed - 1, 9, SLC_F64, true, 2 * seed}, true);
        std::vector<double> rows;

        assert_ok(&run, run.open());
        assert_ok(&run, run.mttkrp(2));
        assert_ok(&run, run.mttkrp(1));
        assert_ok(&run, run.output(1, &rows));
        /* squares belongs to the last job; the magnitude is sqrt(squares) times sqrt(number of
         * values). */
        CU_ASSERT(fabs(run.stats().squares * (double)tensor.encoded.values.size() /
                           (tensor.magnitude * tensor.magnitude) -
                       1) < 1e-11);
        first = seed == 1 ? rows : first;
        CU_ASSERT(memcmp(rows.data(), first.data(), rows.size() * sizeof rows[0]) == 0);
    }
}

/* ---- resident blocks */

static void resident(void)
{
    const device_tensor tensor(SLC_CODEC_LZ4, SLC_MADE_EVEN_DOUBLES, 3000, 300);

    CU_ASSERT(tensor.count() >= 3);
    for (unsigned thirds = 0; thirds <= 3; thirds++) {
        const device_emulation emulation(thirds + 1);
        device_run run(tensor, {2, 2, thirds, 6, SLC_F64, false, 90 + thirds});
        uint64_t kept = 0;

        assert_ok(&run, run.open());
        check_mode(&run, 0);
        CU_ASSERT_EQUAL(run.stats().block_bytes, tensor.bytes());
        CU_ASSERT_EQUAL(run.stats().resident_bytes, 0);
        for (size_t b = 0; b < tensor.count(); b++) {
            kept += run.keep[b] != SLC_NOT_RESIDENT ? tensor.block(b).bytes : 0;
        }
        CU_ASSERT(thirds == 0 ? kept == 0 : kept > 0);
        CU_ASSERT(thirds < 3 ? kept < tensor.bytes() : kept == tensor.bytes());
        run.keeping = false;
        check_mode(&run, 1);
        check_mode(&run, 2);
        CU_ASSERT_EQUAL(run.stats().block_bytes, 3 * tensor.bytes() - 2 * kept);
        CU_ASSERT_EQUAL(run.stats().resident_bytes, 2 * kept);
        CU_ASSERT_EQUAL(run.stats().blocks, 3 * tensor.count());
        CU_ASSERT_EQUAL(run.stats().nnz, 3 * tensor.encoded.values.size());
    }
}

/* In order of arrival, in batches of several: their tables are resident, too. */
static void resident_in_order(void)
{
    const device_tensor tensor(SLC_CODEC_BLCO, SLC_MADE_COUNTS, 1500, 90);
    const device_emulation emulation(4);
    device_run run(tensor, {2, 3, 3, 4, SLC_F64, false, 4});
    std::vector<double> rows;
    uint64_t to_device = 0;

    assert_ok(&run, run.open());
    for (unsigned mode = 0; mode < 3; mode++) {
        const struct slc_device_job job = {0, mode, tensor.magnitude, true};

        to_device = run.stats().bytes_to_device;
        assert_ok(&run, run.device->ops->job.begin(run.device, &job, &run.err));
        for (size_t b = 0; b < tensor.count(); b++) {
            assert_ok(&run, run.take(b));
        }
        assert_ok(&run, run.device->ops->job.end(run.device, &run.err));
        assert_ok(&run, run.output(mode, &rows));
        CU_ASSERT(rows == run.expected(mode));
    }
    /* Only the starts of chunks are still copied to the device. */
    CU_ASSERT(run.stats().bytes_to_device - to_device < 100 * tensor.count());
}

/* Kernels of copied and of resident blocks add to a cleared output, after factors that are still
 * being copied. */
static void cleared_first(void)
{
    const device_tensor tensor(SLC_CODEC_PACKED, SLC_MADE_COUNTS, 300, 90);

    for (unsigned thirds = 0; thirds <= 3; thirds += 3) {
        for (unsigned seed = 1; seed <= 40; seed++) {
            const device_emulation emulation(seed);
            device_run run(tensor, {1, 1, thirds, 2, SLC_F64, false, 2 * seed});

            assert_ok(&run, run.open());
            for (unsigned mode = 0; mode < 3; mode++) {
                for (unsigned n = 0; n < 3; n++) {
                    assert_ok(&run, run.device->ops->memory.factor_write(
                                        run.device, n, &run.factors[n]->matrix, &run.err));
                }
                check_mode(&run, mode);
            }
        }
    }
}

/* In any order, all resident blocks of a job are one launch. */
static void resident_launches(void)
{
    const device_tensor tensor(SLC_CODEC_BLCO, SLC_MADE_COUNTS, 2000, 90);

    CU_ASSERT(tensor.count() >= 8);
    for (unsigned seed = 1; seed <= 3; seed++) {
        const device_emulation emulation(seed);
        /* Slots for only one block do not split the launch. */
        device_run run(tensor, {seed, 1, 3, 4, SLC_F64, false, seed});
        uint64_t before;

        assert_ok(&run, run.open());
        check_mode(&run, 0);
        run.flushing = false;
        for (unsigned mode = 0; mode < 3; mode++) {
            before = run.stats().launches;
            check_mode(&run, mode);
            CU_ASSERT_EQUAL(run.stats().launches, before + 1);
        }
        /* Together with copied blocks: every second one is not resident, so that none has a
         * neighbour. */
        before = run.stats().launches;
        assert_ok(&run, run.mttkrp(0, 0, 2));
        CU_ASSERT(run.stats().launches <= before + (tensor.count() + 1) / 2);
    }
}

/* Kernels overlap with each other and with copies, because streams run in any order: no time
 * exceeds the pass, and the times of copies and of kernels do not exceed their union. */
static void times(void)
{
    const device_tensor tensor(SLC_CODEC_BLCO, SLC_MADE_COUNTS, 2000, 90);

    for (unsigned thirds = 0; thirds < 3; thirds++) {
        const device_emulation emulation(thirds + 1);
        device_run run(tensor, {4, 1, thirds, 5, SLC_F64, false, thirds});

        assert_ok(&run, run.open());
        for (unsigned pass = 0; pass < 3; pass++) {
            const struct slc_device_stats before = run.stats();
            const uint64_t start_ns = slc_clock_ns();

            check_mode(&run, pass);

            const double wall = slc_seconds_since(start_ns);
            const struct slc_device_stats after = run.stats();
            const double copy = after.copy_seconds - before.copy_seconds;
            const double compute = after.compute_seconds - before.compute_seconds;
            const double busy = after.busy_seconds - before.busy_seconds;
            /* Events report milliseconds with 24 bits. */
            const double slack = 1e-6 * wall + 1e-6;

            CU_ASSERT(copy > 0 && compute > 0);
            CU_ASSERT(copy <= wall + slack);
            CU_ASSERT(compute <= wall + slack);
            CU_ASSERT(busy <= wall + slack);
            CU_ASSERT(busy <= copy + compute + slack);
            CU_ASSERT(busy + slack >= std::fmax(copy, compute));
        }
    }
}

/* The resident blocks are transcoded once the set of resident blocks no longer changes, if memory
 * and the kind of sums permit. */
static void transcoded(void)
{
    const device_tensor tensor(SLC_CODEC_BLCO, SLC_MADE_COUNTS, 2000, 90);
    static const struct {
        unsigned thirds;
        enum slc_value_type precision;
        bool deterministic;
        uint64_t bytes;
        bool wanted;
    } cases[] = {{2, SLC_F64, false, 1 << 20, true},  {3, SLC_F64, false, 1 << 20, true},
                 {3, SLC_F32, false, 1 << 20, true},  {3, SLC_F64, true, 1 << 20, false},
                 {0, SLC_F64, false, 1 << 20, false}, {3, SLC_F64, false, 2000, false},
                 {3, SLC_F64, false, 0, false}};

    for (const auto &c : cases) {
        const device_emulation emulation(3);
        device_run run(tensor,
                       {2, 1, c.thirds, 16, c.precision, c.deterministic, 3, 0, false, c.bytes});
        struct slc_device_stats stats;

        assert_ok(&run, run.open());
        for (unsigned job = 0; job < 5; job++) {
            check_mode(&run, job % 3);
            run.device->ops->stats(run.device, &stats);
            CU_ASSERT_EQUAL(stats.transcoded_bytes > 0, c.wanted && job >= 1);
            CU_ASSERT(stats.transcoded_bytes <= c.bytes);
        }
    }
}

/* A resident block may be computed again in the job of its copy, while the copy is still in
 * progress. */
static void resident_at_once(void)
{
    const device_tensor tensor(SLC_CODEC_LZ4, SLC_MADE_EVEN_DOUBLES, 3000, 300);

    for (unsigned slot_blocks = 1; slot_blocks <= 3; slot_blocks++) {
        for (unsigned seed = 1; seed <= (slc_test_threads_only() ? 2U : 4U); seed++) {
            const device_emulation emulation(seed);
            device_run run(tensor, {3, slot_blocks, 3, 4, SLC_F64, false, seed});
            const struct slc_device_job job = {0, 1, tensor.magnitude, true};
            std::vector<double> rows, twice;

            assert_ok(&run, run.open());
            assert_ok(&run, run.device->ops->job.begin(run.device, &job, &run.err));
            for (size_t b = 0; b < 2 * tensor.count(); b++) {
                assert_ok(&run, run.take(b / 2));
            }
            assert_ok(&run, run.device->ops->job.end(run.device, &run.err));
            assert_ok(&run, run.output(1, &rows));
            twice = run.expected(1);
            for (double &sum : twice) {
                sum *= 2;
            }
            CU_ASSERT(rows == twice);
        }
    }
}

/* ---- resident factors */

static bool near(const double *a, const double *b, size_t count, double share = 1e-11)
{
    double largest = 0, apart = 0;

    for (size_t i = 0; i < count; i++) {
        largest = std::fmax(largest, std::fabs(b[i]));
        apart = std::fmax(apart, std::fabs(a[i] - b[i]));
    }
    return apart <= share * largest;
}

/* A host matrix with the expected contents of the device. */
struct host_rows {
    struct slc_matrix matrix;

    host_rows(uint64_t rows, uint32_t cols, const double *from)
    {
        CU_ASSERT_EQUAL_FATAL(slc_matrix_create_from(&matrix, SLC_F64, rows, cols, from, nullptr),
                              SLC_OK);
    }
    ~host_rows()
    {
        slc_matrix_destroy(&matrix);
    }
    host_rows(const host_rows &) = delete;
    std::vector<double> list(void) const
    {
        std::vector<double> all;

        for (uint64_t i = 0; i < matrix.rows * matrix.cols; i++) {
            all.push_back(slc_matrix_get(&matrix, i / matrix.cols, (uint32_t)(i % matrix.cols)));
        }
        return all;
    }
};

struct sums {
    std::vector<double> gram, largest, inner;
    struct slc_update_sums view;

    explicit sums(uint32_t rank) : gram((size_t)rank * rank), largest(rank), inner(rank)
    {
        view = {gram.data(), largest.data(), inner.data()};
    }
};

/* An update of mode 1 and its queries, compared with the CPU's. */
static void check_update(device_run *run, struct slc_dense *dense, const struct slc_solver *solver)
{
    const uint32_t rank = run->how.rank;
    const uint64_t rows = run->tensor.dims[1];
    const std::vector<double> output = run->expected(1);
    const host_rows mttkrp(rows, rank, output.data());
    host_rows want(rows, rank, output.data()), got(rows, rank, output.data());
    std::vector<double> scale(rank), gram((size_t)rank * rank);
    sums ours(rank), theirs(rank);
    const struct slc_device_ops *ops = run->device->ops;

    SLC_ASSERT_OK(
        slc_dense_update(dense, solver, &mttkrp.matrix, &want.matrix, &theirs.view, &run->err),
        &run->err);
    assert_ok(run, run->mttkrp(1));
    assert_ok(run, ops->algebra.update(run->device, 1, solver, &ours.view, &run->err));
    CU_ASSERT(near(ours.gram.data(), theirs.gram.data(), gram.size()));
    CU_ASSERT(near(ours.largest.data(), theirs.largest.data(), rank));
    CU_ASSERT(near(ours.inner.data(), theirs.inner.data(), rank));
    for (uint32_t r = 0; r < rank; r++) {
        scale[r] = 1 / (1 + (double)r);
    }
    assert_ok(run, ops->algebra.scale(run->device, 1, scale.data(), &run->err));
    slc_dense_scale_rows(&want.matrix, 0, rows, scale.data());
    assert_ok(run, ops->algebra.gram(run->device, 1, gram.data(), &run->err));
    slc_reference_gram(&want.matrix, theirs.gram.data());
    CU_ASSERT(near(gram.data(), theirs.gram.data(), gram.size()));
    CU_ASSERT_EQUAL(run->stats().factor_bytes_to_host, 0);
    assert_ok(run, ops->memory.factor_read(run->device, 1, &got.matrix, &run->err));
    CU_ASSERT(near(got.list().data(), want.list().data(), rows * rank));
    CU_ASSERT(run->stats().factor_bytes_to_host >= rows * rank * sizeof(double));
    CU_ASSERT(run->stats().bytes_to_host < run->stats().factor_bytes_to_host + 100 * rank * rank);
}

static void update(void)
{
    const device_tensor tensor(SLC_CODEC_PACKED, SLC_MADE_COUNTS, 1500, 400);
    const device_emulation emulation(3);
    device_run run(tensor, {2, 1, 1, 6, SLC_F64, false, 3});
    struct slc_dense *dense = nullptr;
    struct slc_solver solver = {};
    std::vector<double> gram(36), ones(6, 1);

    SLC_ASSERT_OK(slc_dense_create(1, 6, 3000, &dense, &run.err), &run.err);
    SLC_ASSERT_OK(slc_solver_create(&solver, 6, &run.err), &run.err);
    slc_reference_gram(&run.factors[0]->matrix, gram.data());
    SLC_ASSERT_OK(
        slc_dense_factorize(dense, gram.data(), ones.data(), ones.data(), &solver, &run.err),
        &run.err);
    assert_ok(&run, run.open());
    check_update(&run, dense, &solver);
    /* The next mode computes with the factor updated and scaled there. */
    assert_ok(&run, run.device->ops->memory.factor_read(run.device, 1, &run.factors[1]->matrix,
                                                        &run.err));
    assert_ok(&run, run.mttkrp(0));
    std::vector<double> rows;
    assert_ok(&run, run.output(0, &rows));
    CU_ASSERT(near(rows.data(), run.expected(0).data(), rows.size()));
    slc_solver_destroy(&solver);
    slc_dense_destroy(dense);
}

/* A factor of several pieces, with rows of another stride than the device's, copied in and out. */
static void factors(void)
{
    const device_tensor tensor(SLC_CODEC_PACKED, SLC_MADE_ONES, 50, 0);
    const device_emulation emulation(5);
    device_run run(tensor, {1, 1, 0, 131, SLC_F32, false, 5}, true);

    assert_ok(&run, run.open());
    for (unsigned n = 0; n < 3; n++) {
        device_factor back(SLC_F32, tensor.dims[n], 131, 99, true);

        assert_ok(&run, run.device->ops->memory.factor_read(run.device, n, &back.matrix, &run.err));
        for (uint64_t i = 0; i < tensor.dims[n] * 131; i += 17) {
            CU_ASSERT_EQUAL(slc_matrix_get(&back.matrix, i / 131, (uint32_t)(i % 131)),
                            slc_matrix_get(&run.factors[n]->matrix, i / 131, (uint32_t)(i % 131)));
        }
    }
    std::vector<double> rows;
    assert_ok(&run, run.mttkrp(2));
    assert_ok(&run, run.output(2, &rows));
    /* The output is read as f32. */
    CU_ASSERT(near(rows.data(), run.expected(2).data(), rows.size(), 1e-6));
}

/* ---- several devices */

static void two_devices(void)
{
    const device_tensor tensor(SLC_CODEC_BLCO, SLC_MADE_COUNTS, 1000, 90);
    const device_emulation emulation(6, 2);
    std::vector<std::unique_ptr<device_run>> runs;

    /* The first two are one device of the machine; on a machine with one device, all are. */
    for (unsigned d = 0; d < 3; d++) {
        runs.emplace_back(new device_run(tensor, {2, 1, d, 4, SLC_F64, false, d}));
        assert_ok(runs[d].get(), runs[d]->open(d / 2 % emulation.devices));
    }
    for (unsigned mode = 0; mode < 3; mode++) {
        const struct slc_device_job job = {0, mode, tensor.magnitude, true};

        for (const auto &run : runs) {
            assert_ok(run.get(), run->device->ops->job.begin(run->device, &job, &run->err));
        }
        for (size_t b = 0; b < tensor.count(); b++) {
            for (const auto &run : runs) {
                assert_ok(run.get(), run->take(b));
            }
        }
        for (const auto &run : runs) {
            std::vector<double> rows;

            assert_ok(run.get(), run->device->ops->job.end(run->device, &run->err));
            assert_ok(run.get(), run->output(mode, &rows));
            CU_ASSERT(rows == run->expected(mode));
        }
    }
}

/* Each on its own thread. */
static void two_threads(void)
{
    const device_tensor tensor(SLC_CODEC_BLCO, SLC_MADE_COUNTS, 1000, 90);
    const device_emulation emulation(7, 2);
    std::unique_ptr<device_run> runs[2];
    std::vector<double> rows[2];
    std::thread threads[2];
    enum slc_status statuses[2];

    for (unsigned d = 0; d < 2; d++) {
        runs[d].reset(new device_run(tensor, {2, 1, d, 4, SLC_F64, false, d}));
        assert_ok(runs[d].get(), runs[d]->open(d % emulation.devices));
    }
    for (unsigned d = 0; d < 2; d++) {
        threads[d] = std::thread([&, d] {
            statuses[d] = runs[d]->mttkrp(d);
            if (statuses[d] == SLC_OK) {
                statuses[d] = runs[d]->output(d, &rows[d]);
            }
        });
    }
    for (unsigned d = 0; d < 2; d++) {
        threads[d].join();
        assert_ok(runs[d].get(), statuses[d]);
        CU_ASSERT(rows[d] == runs[d]->expected(d));
    }
}

SLC_SUITE(device)
{
    static const struct slc_test tests[] = {
        {"MTTKRP on any number of streams, by small batches and large ones", any_streams},
        {"blocks of every codec", every_codec},
        {"every precision", precisions},
        {"deterministic sums have the same bits in any order", deterministic},
        {"blocks that stay are copied once", resident},
        {"blocks that stay are computed in order", resident_in_order},
        {"blocks that stay are one launch", resident_launches},
        {"the output is cleared before kernels add to it", cleared_first},
        {"overlapping work is counted once", times},
        {"transcoded resident blocks", transcoded},
        {"blocks that stay are computed again while they come", resident_at_once},
        {"updates, Gram matrices and scaling of factors that stay", update},
        {"factors of any rank go and come back", factors},
        {"several devices in turn", two_devices},
        {"several devices at a time", two_threads},
    };

    return slc_test_main("gpu device", tests, SLC_COUNT(tests), argc, argv);
}
