/* Errors of the device of gpu/, and its state after a failure of any call of the runtime or any
 * allocation: nothing is left. */
#include "device_fixture.h"

extern "C" {
#include "base/error/fault.h"
}

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <string>

static const device_case plain = {2, 1, 1, 4, SLC_F64, false, 2};

static void no_device(void)
{
    const device_emulation emulation(1, 0);
    const struct slc_gpu_options options = {0, 0};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_device *device = nullptr;
    unsigned count = 7;

    SLC_ASSERT_FAILS(slc_gpu_count(&count, &err), SLC_ERR_SYSTEM, &err, "no CUDA device");
    CU_ASSERT_EQUAL(count, 0);
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_gpu_create(&options, &device, &err), SLC_ERR_SYSTEM, &err,
                     "no CUDA device");
    CU_ASSERT_PTR_NULL(device);
}

static void which_device(void)
{
    const device_emulation emulation(1, 2);
    struct slc_gpu_options options = {2, 0};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_device *device = nullptr;
    struct slc_device_info info;
    unsigned count = 0;

    SLC_ASSERT_OK(slc_gpu_count(&count, &err), &err);
    CU_ASSERT_EQUAL(count, 2);
    SLC_ASSERT_FAILS(slc_gpu_create(&options, &device, &err), SLC_ERR_USAGE, &err,
                     "device 2 does not exist");
    slc_error_clear(&err);
    options = {1, 12345};
    SLC_ASSERT_OK(slc_gpu_create(&options, &device, &err), &err);
    device->ops->info(device, &info);
    CU_ASSERT_STRING_EQUAL(info.name, "emulated device 1");
    CU_ASSERT_EQUAL(info.total_bytes, (uint64_t)1 << 27);
    CU_ASSERT_EQUAL(info.free_bytes, 12345);
    CU_ASSERT_EQUAL(info.multiprocessors, 2);
    device->ops->destroy(device);
    options = {1, 0};
    SLC_ASSERT_OK(slc_gpu_create(&options, &device, &err), &err);
    device->ops->info(device, &info);
    CU_ASSERT(info.free_bytes <= info.total_bytes / 10 * 9 && info.free_bytes > 0);
    const struct slc_device_ops *ops = device->ops;
    ops->destroy(device);
    ops->destroy(nullptr);
}

/* The device uses the memory that it states, and its error message names a sufficient size. */
static void budget(void)
{
    const device_tensor tensor(SLC_CODEC_LZ4, SLC_MADE_EVEN_DOUBLES, 800, 300);
    const device_emulation emulation(1);
    const struct slc_device_problem problem = device_problem_of(tensor, plain);
    uint64_t need;

    {
        device_run run(tensor, plain);
        SLC_ASSERT_OK(run.open(), &run.err);
        struct slc_emulation_counts counts;

        need = run.device->ops->memory.memory_bytes(run.device, &problem);
        slc_emulation_counted(&counts);
        CU_ASSERT_EQUAL(counts.memory_peak, need);
        CU_ASSERT(run.device->ops->memory.host_bytes(run.device, &problem) >=
                  2 * problem.slot_tiles * sizeof(struct slc_encoded_tile));
    }
    {
        device_run run(tensor, plain);
        const std::string enough =
            "need " + std::to_string((need >> 20) + 1) + " MiB of device memory";

        SLC_ASSERT_FAILS(run.open(0, need - 1), SLC_ERR_BUDGET, &run.err, enough.c_str());
    }
    device_run run(tensor, plain);
    std::vector<double> rows;

    SLC_ASSERT_OK(run.open(0, need), &run.err);
    SLC_ASSERT_OK(run.mttkrp(1), &run.err);
    SLC_ASSERT_OK(run.output(1, &rows), &run.err);
    CU_ASSERT(rows == run.expected(1));
    struct slc_device_info info;
    run.device->ops->info(run.device, &info);
    CU_ASSERT_EQUAL(info.free_bytes, 0);
}

/* A limit above the free memory is rejected, and free memory may be gone when a device is
 * opened. */
static void no_memory(void)
{
    const device_tensor tensor(SLC_CODEC_PACKED, SLC_MADE_ONES, 100, 0);
    const device_emulation emulation(1);
    const struct slc_gpu_options options = {0, (uint64_t)100 << 20};
    const struct slc_gpu_options more = {0, UINT64_MAX};
    struct slc_device_problem problem = device_problem_of(tensor, plain);
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_device *first = nullptr, *second = nullptr;

    SLC_ASSERT_FAILS(slc_gpu_create(&more, &first, &err), SLC_ERR_USAGE, &err,
                     "but 128 of the 128 MiB of device 0");
    CU_ASSERT_PTR_NULL(first);
    slc_error_clear(&err);
    problem.streams = 1;
    problem.slot_bytes = (uint64_t)75 << 20;
    SLC_ASSERT_OK(slc_gpu_create(&options, &first, &err), &err);
    SLC_ASSERT_OK(slc_gpu_create(&options, &second, &err), &err);
    SLC_ASSERT_OK(first->ops->memory.open(first, &problem, &err), &err);
    SLC_ASSERT_FAILS(second->ops->memory.open(second, &problem, &err), SLC_ERR_MEMORY, &err,
                     "free in one piece");
    first->ops->destroy(first);
    second->ops->destroy(second);
}

static void refused_problems(void)
{
    const device_tensor tensor(SLC_CODEC_PACKED, SLC_MADE_ONES, 100, 0);
    const device_emulation emulation(1);
    const struct slc_gpu_options options = {0, 0};
    const std::function<void(struct slc_device_problem *)> spoil[] = {
        [](struct slc_device_problem *p) { p->order = 0; },
        [](struct slc_device_problem *p) { p->order = SLC_MAX_ORDER + 1; },
        [](struct slc_device_problem *p) { p->dims[1] = 0; },
        [](struct slc_device_problem *p) { p->dims[1] = UINT64_MAX; },
        [](struct slc_device_problem *p) { p->rank = 0; },
        [](struct slc_device_problem *p) { p->precision = static_cast<enum slc_value_type>(0); },
        [](struct slc_device_problem *p) { p->rank = SLC_MAX_RANK + 1; },
        [](struct slc_device_problem *p) { p->layout_count = 0; },
        [](struct slc_device_problem *p) { p->streams = 0; },
        [](struct slc_device_problem *p) { p->streams = SLC_DEVICE_STREAMS + 1; },
        [](struct slc_device_problem *p) { p->slot_bytes = 0; },
        [](struct slc_device_problem *p) { p->slot_tiles = 0; },
        [](struct slc_device_problem *p) { p->slot_tiles = UINT32_MAX; },
    };
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_device *device = nullptr;

    SLC_ASSERT_OK(slc_gpu_create(&options, &device, &err), &err);
    for (const auto &change : spoil) {
        struct slc_device_problem problem = device_problem_of(tensor, plain);

        change(&problem);
        slc_error_clear(&err);
        SLC_ASSERT_FAILS(device->ops->memory.open(device, &problem, &err), SLC_ERR_USAGE, &err,
                         "cannot be opened");
        CU_ASSERT_EQUAL(device->ops->memory.memory_bytes(device, &problem), UINT64_MAX);
        CU_ASSERT_EQUAL(device->ops->memory.host_bytes(device, &problem), UINT64_MAX);
    }
    struct slc_device_problem huge = device_problem_of(tensor, plain);
    huge.slot_bytes = UINT64_MAX - 5;
    slc_error_clear(&err);
    CU_ASSERT_EQUAL(device->ops->memory.memory_bytes(device, &huge), UINT64_MAX);
    SLC_ASSERT_FAILS(device->ops->memory.open(device, &huge, &err), SLC_ERR_BUDGET, &err, "need");
    device->ops->destroy(device);
}

/* ---- calls */

#define REFUSED(run, call, part)                                                                   \
    do {                                                                                           \
        slc_error_clear(&(run).err);                                                               \
        SLC_ASSERT_FAILS(call, SLC_ERR_USAGE, &(run).err, part);                                   \
        slc_error_clear(&(run).err);                                                               \
    } while (0)

static void before_open(void)
{
    const device_emulation emulation(1);
    const struct slc_gpu_options options = {0, 0};
    const struct slc_device_job job = {0, 0, 1, true};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_device *device = nullptr;
    bool done;

    SLC_ASSERT_OK(slc_gpu_create(&options, &device, &err), &err);
    SLC_ASSERT_FAILS(device->ops->job.begin(device, &job, &err), SLC_ERR_USAGE, &err,
                     "has not been opened");
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(device->ops->job.copied(device, 0, true, &done, &err), SLC_ERR_USAGE, &err,
                     "has not been opened");
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(device->ops->job.end(device, &err), SLC_ERR_USAGE, &err, "has begun");
    device->ops->memory.close(device);
    device->ops->destroy(device);
}

static void wrong_calls(void)
{
    const device_tensor tensor(SLC_CODEC_PACKED, SLC_MADE_COUNTS, 500, 200);
    const device_emulation emulation(1);
    device_run run(tensor, {1, 1, 0, 4, SLC_F64, true, 2});
    const struct slc_device_problem problem = device_problem_of(tensor, run.how);
    const device_factor other(SLC_F64, 41, 4, 1, false), narrow(SLC_F32, 40, 4, 1, false);
    device_factor to(SLC_F64, 40, 4, 1, false);
    struct slc_solver solver = {};
    const struct slc_update_sums sums = {};
    double numbers[16] = {};

    SLC_ASSERT_OK(run.open(), &run.err);
    const struct slc_device_ops *ops = run.device->ops;
    const struct slc_device_job jobs[] = {{1, 0, 1, true},
                                          {0, 3, 1, true},
                                          {0, 0, -1, true},
                                          {0, 0, std::strtod("nan", nullptr), true}};

    REFUSED(run, ops->memory.open(run.device, &problem, &run.err), "already open");
    REFUSED(run, ops->memory.factor_write(run.device, 0, &other.matrix, &run.err), "41 x 4");
    REFUSED(run, ops->memory.factor_write(run.device, 0, &narrow.matrix, &run.err),
            "does not match the factor");
    REFUSED(run, ops->memory.factor_read(run.device, 3, &to.matrix, &run.err), "mode 3");
    REFUSED(run, ops->memory.output_read(run.device, &to.matrix, &run.err), "completed MTTKRP");
    solver.rank = 4;
    REFUSED(run, ops->algebra.update(run.device, 0, &solver, &sums, &run.err), "no output");
    REFUSED(run, ops->algebra.update(run.device, 3, &solver, &sums, &run.err), "no factor");
    REFUSED(run, ops->algebra.gram(run.device, 3, numbers, &run.err), "no factor");
    REFUSED(run, ops->algebra.scale(run.device, 3, numbers, &run.err), "no factor");
    REFUSED(run, ops->job.flush(run.device, &run.err), "no MTTKRP");
    REFUSED(run, ops->job.resident(run.device, 0, &run.err), "no MTTKRP");
    REFUSED(run, ops->job.end(run.device, &run.err), "no MTTKRP");
    for (const struct slc_device_job &job : jobs) {
        REFUSED(run, ops->job.begin(run.device, &job, &run.err), "cannot begin");
    }
    SLC_ASSERT_OK(run.mttkrp(0), &run.err);
    solver.rank = 5;
    REFUSED(run, ops->algebra.update(run.device, 0, &solver, &sums, &run.err), "rank 5");
    REFUSED(run, ops->algebra.update(run.device, 1, &solver, &sums, &run.err), "mode 1");
    SLC_ASSERT_OK(ops->memory.output_read(run.device, &to.matrix, &run.err), &run.err);
    const struct slc_device_job job = {0, 0, tensor.magnitude, true};
    SLC_ASSERT_OK(ops->job.begin(run.device, &job, &run.err), &run.err);
    REFUSED(run, ops->job.begin(run.device, &job, &run.err), "in progress");
    REFUSED(run, ops->memory.factor_write(run.device, 0, &to.matrix, &run.err), "in progress");
    REFUSED(run, ops->algebra.scale(run.device, 0, numbers, &run.err), "in progress");
    SLC_ASSERT_OK(ops->job.end(run.device, &run.err), &run.err);
}

/* After a rejected block the job is incomplete; the next job succeeds. */
static void refused_blocks(void)
{
    const device_tensor tensor(SLC_CODEC_LZ4, SLC_MADE_EVEN_DOUBLES, 800, 300);
    const device_emulation emulation(1);
    device_run run(tensor, plain);
    const struct slc_device_job job = {0, 1, tensor.magnitude, true};
    const struct slc_device_problem problem = device_problem_of(tensor, plain);
    const std::function<void(struct slc_encoded_block *)> spoil[] = {
        [&](struct slc_encoded_block *b) { b->bytes = problem.slot_bytes + 1; },
        [&](struct slc_encoded_block *b) { b->expanded_bytes = problem.expanded_bytes + 1; },
        [&](struct slc_encoded_block *b) { b->tile_count = problem.slot_tiles + 1; },
        [&](struct slc_encoded_block *) {}, /* a block in memory that is not registered */
    };
    std::vector<double> rows;

    SLC_ASSERT_OK(run.open(), &run.err);
    const struct slc_device_ops *ops = run.device->ops;

    for (const auto &change : spoil) {
        struct slc_encoded_block block = tensor.block(0);
        uint64_t ticket;
        uint32_t keep;

        change(&block);
        SLC_ASSERT_OK(ops->job.begin(run.device, &job, &run.err), &run.err);
        REFUSED(run, ops->job.block(run.device, &block, &keep, &ticket, &run.err), "the block");
        CU_ASSERT_EQUAL(keep, SLC_NOT_RESIDENT);
        REFUSED(run, ops->job.resident(run.device, 77, &run.err), "none with number 77");
        SLC_ASSERT_FAILS(ops->job.end(run.device, &run.err), SLC_ERR_SYSTEM, &run.err,
                         "incomplete");
        REFUSED(run, ops->memory.output_read(run.device, &run.factors[1]->matrix, &run.err),
                "completed MTTKRP");
    }
    SLC_ASSERT_OK(run.mttkrp(1), &run.err);
    SLC_ASSERT_OK(run.output(1, &rows), &run.err);
    CU_ASSERT(rows == run.expected(1));
}

/* A tensor without nonzeros: no block is copied or resident, and the output is zero. */
static void empty_block(void)
{
    const device_tensor tensor(SLC_CODEC_PACKED, SLC_MADE_ONES, 100, 0);
    const device_emulation emulation(1);
    device_run run(tensor, plain);
    const struct slc_device_job job = {0, 1, tensor.magnitude, true};
    struct slc_encoded_block block = tensor.block(0);
    uint64_t ticket = 7;
    uint32_t keep = 7;
    bool done = false;
    std::vector<double> rows;

    block.tile_count = 0;
    block.nnz = 0;
    SLC_ASSERT_OK(run.open(), &run.err);
    const struct slc_device_ops *ops = run.device->ops;
    SLC_ASSERT_OK(ops->job.begin(run.device, &job, &run.err), &run.err);
    SLC_ASSERT_OK(ops->job.block(run.device, &block, &keep, &ticket, &run.err), &run.err);
    CU_ASSERT_EQUAL(keep, SLC_NOT_RESIDENT);
    SLC_ASSERT_OK(ops->job.copied(run.device, ticket, false, &done, &run.err), &run.err);
    CU_ASSERT(done);
    SLC_ASSERT_OK(ops->job.flush(run.device, &run.err), &run.err);
    SLC_ASSERT_OK(ops->job.end(run.device, &run.err), &run.err);
    SLC_ASSERT_OK(run.output(1, &rows), &run.err);
    CU_ASSERT(std::all_of(rows.begin(), rows.end(), [](double sum) { return sum == 0; }));
}

/* ---- damage */

/* Each changed byte is detected with its block; the device then computes valid blocks. */
static void damaged(enum slc_codec codec,
                    enum slc_made_values values,
                    const std::function<size_t(const struct slc_encoded_tile &)> &where,
                    const char *what)
{
    device_tensor tensor(codec, values, 2500, 300);
    const device_emulation emulation(1);
    device_run run(tensor, {2, 2, 0, 3, SLC_F64, false, 2});
    struct batch_block *block = &tensor.encoded.blocks.back();
    const size_t at = where(block->tiles[0]);
    std::vector<double> rows;

    CU_ASSERT_FATAL(tensor.count() > 1 && at + 4 <= block->bytes.size());
    SLC_ASSERT_OK(run.open(), &run.err);
    for (size_t i = at; i < at + 4; i++) {
        block->bytes[i] ^= 0xff;
    }
    SLC_ASSERT_FAILS(run.mttkrp(1), SLC_ERR_DAMAGED, &run.err, what);
    CU_ASSERT_EQUAL(run.err.block, block->described.block);
    CU_ASSERT_EQUAL(run.err.offset, block->described.offset);
    slc_error_clear(&run.err);
    for (size_t i = at; i < at + 4; i++) {
        block->bytes[i] ^= 0xff;
    }
    SLC_ASSERT_OK(run.mttkrp(1), &run.err);
    SLC_ASSERT_OK(run.output(1, &rows), &run.err);
    CU_ASSERT(rows == run.expected(1));
}

static void damage(void)
{
    damaged(
        SLC_CODEC_PACKED, SLC_MADE_COUNTS,
        [](const struct slc_encoded_tile &tile) { return (size_t)tile.gaps.data_at; }, "tile");
    damaged(
        SLC_CODEC_LZ4, SLC_MADE_EVEN_DOUBLES,
        [](const struct slc_encoded_tile &tile) { return (size_t)tile.lz4.at; }, "compressed");
}

/* ---- failures */

/* Makes the output of mode 1's MTTKRP its factor: a solver with the identity. */
static enum slc_status copy_update(device_run *run)
{
    std::vector<double> identity(16), sums(16 + 8), scale(4, 1);
    struct slc_solver solver = {};

    for (unsigned r = 0; r < 4; r++) {
        identity[5 * r] = 1;
    }
    solver.rank = solver.size = 4;
    solver.singular = true;
    solver.forward = solver.backward = identity.data();
    solver.forward_inverse = solver.backward_inverse = identity.data();
    const struct slc_update_sums view = {sums.data(), sums.data() + 16, sums.data() + 20};
    const struct slc_device_ops *ops = run->device->ops;
    enum slc_status status = ops->algebra.update(run->device, 1, &solver, &view, &run->err);

    if (status == SLC_OK) {
        status = ops->algebra.scale(run->device, 1, scale.data(), &run->err);
    }
    if (status == SLC_OK) {
        status = ops->algebra.gram(run->device, 1, sums.data(), &run->err);
    }
    return status;
}

/* All operations of a device, in short. */
static enum slc_status everything(device_run *run, std::vector<double> *rows)
{
    enum slc_status status = run->open();

    for (unsigned again = 0; again < 2 && status == SLC_OK; again++) {
        status = run->mttkrp(1);
    }
    if (status == SLC_OK) {
        status = run->output(1, rows);
    }
    if (status == SLC_OK) {
        status = copy_update(run);
    }
    if (status == SLC_OK) {
        status = run->device->ops->memory.factor_read(run->device, 1, &run->factors[1]->matrix,
                                                      &run->err);
    }
    return status;
}

/* Returns whether sums are equal up to rounding. */
static bool near(const std::vector<double> &a, const std::vector<double> &b)
{
    double largest = 0, apart = 0;

    for (size_t i = 0; i < a.size(); i++) {
        largest = std::max(largest, std::fabs(b[i]));
        apart = std::max(apart, std::fabs(a[i] - b[i]));
    }
    return apart <= 1e-12 * largest;
}

/* After a failure, the next job of a device is right, or rejected until it is reopened. */
static void check_after(device_run *run)
{
    std::vector<double> rows;

    slc_error_clear(&run->err);
    const enum slc_status status = run->mttkrp(0);
    if (status == SLC_ERR_USAGE) {
        CU_ASSERT(strstr(run->err.message, "opened") != nullptr);
        return;
    }
    SLC_ASSERT_OK(status, &run->err);
    SLC_ASSERT_OK(run->output(0, &rows), &run->err);
    /* The failed call may or may not have updated the factor of mode 1. */
    const std::vector<double> before = run->expected(0), output = run->expected(1);
    for (size_t i = 0; i < output.size(); i++) {
        slc_matrix_set(&run->factors[1]->matrix, i / 4, i % 4, output[i]);
    }
    CU_ASSERT(rows == before || near(rows, run->expected(0)));
}

static void refused_runtime(bool deterministic)
{
    const device_tensor tensor(SLC_CODEC_LZ4, SLC_MADE_EVEN_DOUBLES, 900, 300);
    const unsigned step = slc_test_threads_only() ? 23 : slc_test_quick() ? 5 : 1;
    unsigned long long calls = 1;

    CU_ASSERT(tensor.count() > 1);
    for (unsigned long long k = 0; k <= calls; k += k == 0 ? 1 : step) {
        const device_emulation emulation((unsigned)k % 7);
        device_run run(tensor, {2, 1, 1, 4, SLC_F64, deterministic, (unsigned)k});
        const std::vector<double> expected = run.expected(1);
        std::vector<double> rows;

        slc_emulation_refuse(k);
        const enum slc_status status = everything(&run, &rows);
        if (k == 0) {
            calls = slc_emulation_refusable();
        }
        slc_emulation_refuse(0);
        if (status == SLC_OK) {
            CU_ASSERT(rows == expected);
        } else {
            CU_ASSERT(k > 0 && run.err.message[0] != '\0');
            if (run.ready) {
                check_after(&run);
            }
        }
    }
    CU_ASSERT(calls > 100);
}

static void runtime_fails(void)
{
    refused_runtime(false);
    refused_runtime(true);
}

static void allocation_fails(void)
{
    const device_tensor tensor(SLC_CODEC_PACKED, SLC_MADE_COUNTS, 100, 0);
    uint64_t allocations = 1;

    for (uint64_t k = 0; k <= allocations; k++) {
        const device_emulation emulation(1);
        device_run run(tensor, plain);
        std::vector<double> rows;

        slc_fault_arm(SLC_FAULT_ALLOCATION, k);
        const enum slc_status status = everything(&run, &rows);
        allocations = k == 0 ? slc_fault_seen(SLC_FAULT_ALLOCATION) : allocations;
        slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
        CU_ASSERT_EQUAL(status, k == 0 ? SLC_OK : SLC_ERR_MEMORY);
    }
    CU_ASSERT(allocations >= 4);
}

SLC_SUITE(device_refused)
{
    static const struct slc_test tests[] = {
        {"without a device there is a line that says why", no_device},
        {"devices by their number", which_device},
        {"memory is what was said, and a cap names what is enough", budget},
        {"more memory than the device has", no_memory},
        {"problems that no device is opened for", refused_problems},
        {"nothing goes before open", before_open},
        {"calls out of their order", wrong_calls},
        {"blocks that do not fit, or are not registered", refused_blocks},
        {"a block without nonzeros", empty_block},
        {"damaged bytes name their block", damage},
        {"every call of the runtime fails once", runtime_fails},
        {"every allocation fails once", allocation_fails},
    };

    return slc_test_main("gpu device, refused", tests, SLC_COUNT(tests), argc, argv);
}
