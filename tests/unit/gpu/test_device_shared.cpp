/* A device that shares an MTTKRP with the host: it reports its progress without waiting, and adds
 * the host's sums to its output. */
#include "device_fixture.h"

#include <cstring>

static void assert_ok(device_run *run, enum slc_status status)
{
    SLC_ASSERT_OK(status, &run->err);
}

/* A matrix with these numbers. */
struct host_sums {
    struct slc_matrix matrix = {};

    host_sums(enum slc_value_type type, const std::vector<double> &rows, uint32_t cols)
    {
        struct slc_error err = SLC_ERROR_INIT;

        SLC_ASSERT_OK(slc_matrix_create(&matrix, type, rows.size() / cols, cols, &err), &err);
        for (uint64_t i = 0; i < matrix.rows; i++) {
            for (uint32_t r = 0; r < cols; r++) {
                slc_matrix_set(&matrix, i, r, rows[i * cols + r]);
            }
        }
    }
    ~host_sums()
    {
        slc_matrix_destroy(&matrix);
    }
    host_sums(const host_sums &) = delete;
};

/* Returns the expected output minus the output of a job with every second block. */
static std::vector<double> other_half(device_run *run, unsigned mode)
{
    std::vector<double> rows, rest = run->expected(mode);

    assert_ok(run, run->mttkrp(mode, 0, 2));
    assert_ok(run, run->output(mode, &rows));
    for (size_t i = 0; i < rest.size(); i++) {
        rest[i] -= rows[i];
    }
    return rest;
}

/* Integers: bit for bit the oracle's. `sums`: the type of the host's. */
static void check_sums(const device_tensor &tensor,
                       unsigned mode,
                       uint32_t rank,
                       enum slc_value_type precision,
                       enum slc_value_type sums)
{
    const device_emulation emulation(mode);
    /* An even seed: outputs are read as f64. */
    device_run run(tensor, {2, 2, 1, rank, precision, false, 2 * mode, 0, true});
    std::vector<double> rows;

    assert_ok(&run, run.open());
    const host_sums rest(sums, other_half(&run, mode), rank);

    assert_ok(&run, run.mttkrp(mode, 0, 2));
    assert_ok(&run, run.device->ops->job.add_host(run.device, &rest.matrix, &run.err));
    assert_ok(&run, run.output(mode, &rows));
    CU_ASSERT(rows == run.expected(mode));
}

/* Rows that are padded on the device, and rows that are not. */
static void adds_host(void)
{
    const device_tensor tensor(SLC_CODEC_PACKED, SLC_MADE_COUNTS, 600, 60);

    check_sums(tensor, 0, 5, SLC_F64, SLC_F64);
    if (slc_test_threads_only()) {
        return;
    }
    check_sums(tensor, 1, 1, SLC_F64, SLC_F64);
    check_sums(tensor, 2, 16, SLC_F64, SLC_F64);
    check_sums(tensor, 0, 7, SLC_F32, SLC_F64);
    check_sums(tensor, 1, 7, SLC_F32, SLC_F32);
}

/* 3000 rows of 180 numbers are copied in several parts. */
static void adds_in_parts(void)
{
    const device_tensor tensor(SLC_CODEC_PACKED, SLC_MADE_COUNTS, 100, 30);

    if (!slc_test_threads_only()) {
        check_sums(tensor, 1, 180, SLC_F64, SLC_F64);
        check_sums(tensor, 1, 180, SLC_F32, SLC_F32);
    }
}

/* Registers a matrix while it lives. */
struct registered_sums {
    device_run *run;
    void *memory;

    registered_sums(device_run *by, const struct slc_matrix *matrix)
        : run(by), memory(matrix->buffer.data)
    {
        assert_ok(run, run->device->ops->memory.host_register(run->device, memory,
                                                              matrix->buffer.bytes, &run->err));
    }
    ~registered_sums()
    {
        run->device->ops->memory.host_unregister(run->device, memory);
    }
    registered_sums(const registered_sums &) = delete;
};

/* Matrices in registered memory are copied directly if their rows have the same bytes on both
 * sides. They may change as soon as the call returns. */
static void check_direct(const device_tensor &tensor, uint32_t rank, bool direct)
{
    const device_emulation emulation(rank);
    device_run run(tensor, {2, 2, 1, rank, SLC_F64, false, 2, 0, true});
    std::vector<double> rows;
    uint64_t bytes;

    assert_ok(&run, run.open());
    const struct slc_device_ops *ops = run.device->ops;
    host_sums sums(SLC_F64, other_half(&run, 0), rank);
    const std::vector<double> factor(run.factors[1]->matrix.rows * rank, 2.0);
    host_sums written(SLC_F64, factor, rank), read(SLC_F64, factor, rank);
    const registered_sums a(&run, &sums.matrix), b(&run, &written.matrix), c(&run, &read.matrix);

    assert_ok(&run, run.mttkrp(0, 0, 2));
    bytes = run.stats().direct_bytes;
    CU_ASSERT_EQUAL(bytes, 0);
    assert_ok(&run, ops->job.add_host(run.device, &sums.matrix, &run.err));
    bytes += sums.matrix.rows * sums.matrix.pitch * sizeof(double);
    CU_ASSERT_EQUAL(run.stats().direct_bytes, bytes);
    memset(sums.matrix.buffer.data, 0x11, sums.matrix.buffer.bytes);
    assert_ok(&run, run.output(0, &rows));
    CU_ASSERT(rows == run.expected(0));

    assert_ok(&run, ops->memory.factor_write(run.device, 1, &written.matrix, &run.err));
    for (uint64_t i = 0; i < written.matrix.rows; i++) {
        slc_matrix_set(&written.matrix, i, 0, 7.0);
        slc_matrix_set(&read.matrix, i, 0, 5.0);
    }
    assert_ok(&run, ops->memory.factor_read(run.device, 1, &read.matrix, &run.err));
    bytes += direct ? 2 * written.matrix.rows * rank * sizeof(double) : 0;
    CU_ASSERT_EQUAL(run.stats().direct_bytes, bytes);
    for (uint64_t i = 0; i < read.matrix.rows; i++) {
        CU_ASSERT_EQUAL(slc_matrix_get(&read.matrix, i, 0), 2.0);
    }
}

static void copies_directly(void)
{
    const device_tensor tensor(SLC_CODEC_PACKED, SLC_MADE_COUNTS, 600, 60);

    check_direct(tensor, 8, true);
    check_direct(tensor, 64, true);
    check_direct(tensor, 5, false);
}

/* Processes each block as soon as the device takes it without waiting, and polls until all blocks
 * have been computed. */
static void take_polled(device_run *run)
{
    const struct slc_device_ops *ops = run->device->ops;
    const struct slc_device_job job = {0, 1, run->tensor.magnitude, true};
    struct slc_device_progress progress = {};
    uint64_t given = 0, before = 0;

    assert_ok(run, ops->job.begin(run->device, &job, &run->err));
    for (size_t b = 0; b < run->tensor.count(); b++) {
        const struct slc_encoded_block *block = &run->tensor.block(b);

        do {
            assert_ok(run, ops->job.poll(run->device, block, &progress, &run->err));
            CU_ASSERT(progress.nnz >= before && progress.nnz <= given);
            CU_ASSERT(progress.free_slots <= run->how.streams);
            /* Otherwise the loop would never make progress. */
            CU_ASSERT(progress.fits || progress.free_slots > 0 || progress.busy);
            before = progress.nnz;
        } while (!progress.fits && progress.free_slots == 0);
        assert_ok(run, run->take(b));
        given += block->nnz;
    }
    assert_ok(run, ops->job.flush(run->device, &run->err));
    do {
        assert_ok(run, ops->job.poll(run->device, nullptr, &progress, &run->err));
        CU_ASSERT(!progress.fits);
        CU_ASSERT(progress.busy || progress.free_slots == run->how.streams);
    } while (progress.busy);
    CU_ASSERT_EQUAL(progress.nnz, given);
    assert_ok(run, ops->job.end(run->device, &run->err));
}

static void reports_progress(void)
{
    const device_tensor tensor(SLC_CODEC_BLCO, SLC_MADE_COUNTS, 900, 90);

    for (unsigned streams = 1; streams <= 3; streams++) {
        for (unsigned slot_blocks = 1; slot_blocks <= 3; slot_blocks += 2) {
            const device_emulation emulation(streams + slot_blocks);
            device_run run(tensor, {streams, slot_blocks, 1, 4, SLC_F64, false, streams});
            std::vector<double> rows;

            assert_ok(&run, run.open());
            for (unsigned pass = 0; pass < 2; pass++) {
                take_polled(&run);
                assert_ok(&run, run.output(1, &rows));
                CU_ASSERT(rows == run.expected(1));
            }
        }
    }
}

static void misuse(void)
{
    const device_tensor tensor(SLC_CODEC_PACKED, SLC_MADE_COUNTS, 100, 50);
    const device_emulation emulation(3);
    device_run plain(tensor, {1, 1, 0, 3, SLC_F64, false, 1});
    device_run exact(tensor, {1, 1, 0, 3, SLC_F64, true, 1, 0, true});
    device_run run(tensor, {1, 1, 0, 3, SLC_F64, false, 1, 0, true});
    const struct slc_device_job job = {0, 1, tensor.magnitude, true};
    struct slc_device_progress progress;

    for (device_run *refusing : {&plain, &exact}) {
        assert_ok(refusing, refusing->open());
        assert_ok(refusing, refusing->mttkrp(0));
        const host_sums sums(SLC_F64, refusing->expected(0), 3);

        SLC_ASSERT_FAILS(
            refusing->device->ops->job.add_host(refusing->device, &sums.matrix, &refusing->err),
            SLC_ERR_USAGE, &refusing->err, "was not opened with");
    }
    assert_ok(&run, run.open());
    SLC_ASSERT_FAILS(run.device->ops->job.poll(run.device, nullptr, &progress, &run.err),
                     SLC_ERR_USAGE, &run.err, "no MTTKRP has begun");
    slc_error_clear(&run.err);
    assert_ok(&run, run.mttkrp(0));
    const host_sums other(SLC_F64, run.expected(1), 3), sums(SLC_F64, run.expected(0), 3);

    SLC_ASSERT_FAILS(run.device->ops->job.add_host(run.device, &other.matrix, &run.err),
                     SLC_ERR_USAGE, &run.err, "does not match the output");
    slc_error_clear(&run.err);
    assert_ok(&run, run.device->ops->job.begin(run.device, &job, &run.err));
    SLC_ASSERT_FAILS(run.device->ops->job.add_host(run.device, &sums.matrix, &run.err),
                     SLC_ERR_USAGE, &run.err, "does not match the output");
    slc_error_clear(&run.err);
    assert_ok(&run, run.device->ops->job.end(run.device, &run.err));
}

#ifdef SLC_EMULATED
/* Any call of the runtime fails: it is reported, and the next job is right. */
static void failures(void)
{
    const device_tensor tensor(SLC_CODEC_PACKED, SLC_MADE_COUNTS, 1500, 100);
    const device_emulation emulation(5);
    device_run run(tensor, {1, 1, 0, 3, SLC_F64, false, 2, 0, true});
    const struct slc_device_job job = {0, 1, tensor.magnitude, true};
    struct slc_device_progress progress;
    std::vector<double> rows;

    CU_ASSERT_FATAL(tensor.count() > 1);
    assert_ok(&run, run.open());
    const host_sums rest(SLC_F64, other_half(&run, 1), 3);

    for (unsigned step = 0; step < 2; step++) {
        enum slc_status status = SLC_ERR_SYSTEM;
        unsigned k;

        for (k = 1; status != SLC_OK; k++) {
            if (step == 0) {
                assert_ok(&run, run.mttkrp(1, 0, 2));
                slc_emulation_refuse(k);
                status = run.device->ops->job.add_host(run.device, &rest.matrix, &run.err);
            } else {
                assert_ok(&run, run.device->ops->job.begin(run.device, &job, &run.err));
                assert_ok(&run, run.take(0));
                slc_emulation_refuse(k);
                status =
                    run.device->ops->job.poll(run.device, &tensor.block(1), &progress, &run.err);
            }
            slc_emulation_refuse(0);
            CU_ASSERT(status == SLC_OK || run.err.status == status);
            slc_error_clear(&run.err);
            if (step == 1) {
                CU_ASSERT_EQUAL(run.device->ops->job.end(run.device, &run.err) == SLC_OK,
                                status == SLC_OK);
                slc_error_clear(&run.err);
            }
        }
        CU_ASSERT(k > 2);
    }
    assert_ok(&run, run.mttkrp(1));
    assert_ok(&run, run.output(1, &rows));
    CU_ASSERT(rows == run.expected(1));
}
#endif

SLC_SUITE(device_shared)
{
    static const struct slc_test tests[] = {
        {"the host's sums are added", adds_host},
        {"more than arrives at a time", adds_in_parts},
        {"registered matrices are copied directly", copies_directly},
        {"how far a job is, without waiting", reports_progress},
        {"misuse", misuse},
#ifdef SLC_EMULATED
        {"any call of the runtime fails", failures},
#endif
    };

    return slc_test_main("gpu: device shared", tests, SLC_COUNT(tests), argc, argv);
}
