/* Passes that feed whole blocks to a device, and its MTTKRPs: every block once, in any order and
 * from any location, slots unchanged until their copies are made, and faults of drive, blocks and
 * device. */
#include "device_run.h"
#include "faulty_files.h"
#include "forge_file.h"
#include "slc_test.h"

#include "base/error/fault.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANK = 3, DRAWS = 40000, LATE_US = 300 };

static struct fixture_tensor tensor;
static char path[512];
static struct slc_matrix factors[SLC_MAX_ORDER];
static double *want[SLC_MAX_ORDER];

static void make_problem(void)
{
    const struct slc_matrix *views[SLC_MAX_ORDER];
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_coo_view view;

    if (path[0] != '\0') {
        return;
    }
    device_run_tensor(&tensor, DRAWS);
    fixture_store(&tensor, slc_test_folder(), "feed", SLC_CODEC_PACKED, 4096, path);
    view = fixture_view(&tensor);
    for (unsigned n = 0; n < tensor.order; n++) {
        SLC_ASSERT_OK(slc_matrix_create(&factors[n], SLC_F64, tensor.dims[n], RANK, &err), &err);
        for (uint64_t i = 0; i < tensor.dims[n]; i++) {
            for (uint32_t r = 0; r < RANK; r++) {
                slc_matrix_set(&factors[n], i, r, (double)(1 + (i + 2 * r + n) % 5));
            }
        }
        views[n] = &factors[n];
        want[n] = malloc(tensor.dims[n] * RANK * sizeof(double));
    }
    for (unsigned n = 0; n < tensor.order; n++) {
        slc_reference_mttkrp(&view, views, n, tensor.dims[n], RANK, want[n]);
    }
}

static void free_problem(void)
{
    for (unsigned n = 0; n < tensor.order; n++) {
        slc_matrix_destroy(&factors[n]);
        free(want[n]);
    }
    fixture_destroy(&tensor);
}

static void write_factors(struct device_run *run)
{
    struct slc_error err = SLC_ERROR_INIT;

    for (unsigned n = 0; n < tensor.order; n++) {
        SLC_ASSERT_OK(run->device->ops->memory.factor_write(run->device, n, &factors[n], &err),
                      &err);
    }
}

/* An MTTKRP that must succeed; sums of integers are exact in any order. */
static void check_mttkrp(struct device_run *run, unsigned mode)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_matrix output = {0};
    uint64_t wrong = 0;

    SLC_ASSERT_OK(
        slc_gpu_executor_mttkrp(run->device, run->stream, &run->plan, mode, NULL, NULL, NULL, &err),
        &err);
    SLC_ASSERT_OK(slc_matrix_create(&output, SLC_F64, tensor.dims[mode], RANK, &err), &err);
    SLC_ASSERT_OK(run->device->ops->memory.output_read(run->device, &output, &err), &err);
    for (uint64_t i = 0; i < tensor.dims[mode]; i++) {
        for (uint32_t r = 0; r < RANK; r++) {
            wrong += slc_matrix_get(&output, i, r) != want[mode][i * RANK + r];
        }
    }
    CU_ASSERT_EQUAL(wrong, 0);
    slc_matrix_destroy(&output);
}

static struct slc_plan_request
request_of(enum slc_io_kind io, enum slc_schedule schedule, unsigned threads, bool cache)
{
    struct slc_plan_request request = fixture_request(RANK);

    request.io = io;
    request.schedule = schedule;
    request.threads = threads;
    request.cache = cache;
    request.slots = 3;
    request.streams = 2;
    return request;
}

/* How often each block was copied and computed in `passes` passes. */
static void check_counts(const struct device_run *run, unsigned passes)
{
    const struct slc_layout_info *info = slc_reader_info(run->store.reader);
    const struct slc_plan_layout *layout = &run->plan.layouts[0];
    const struct fake_counts *counts = fake_counts(run->device);
    uint64_t once = 0, wrong = 0;
    struct slc_stream_stats stats;

    CU_ASSERT_FATAL(info->block_count <= FAKE_BLOCKS);
    for (uint64_t b = 0; b < info->block_count; b++) {
        const bool stays = slc_plan_keeps(layout->resident_blocks, info->block_count, b);
        const bool cached = slc_plan_caches(layout, info->block_count, b);
        struct slc_block_entry entry;

        slc_reader_entry(run->store.reader, b, &entry);
        wrong += counts->copied[b] != (stays ? 1 : passes);
        wrong += counts->resident[b] != (stays ? passes - 1 : 0);
        once += stays || cached ? entry.padded_bytes : passes * entry.padded_bytes;
        wrong += stays && cached;
    }
    CU_ASSERT_EQUAL(wrong, 0);
    slc_stream_stats(run->stream, &stats);
    CU_ASSERT_EQUAL(stats.bytes_read, once);
    CU_ASSERT_EQUAL(stats.blocks, passes * info->block_count);
    CU_ASSERT_EQUAL(stats.bytes_resident, layout->resident_bytes * (passes - 1));
    CU_ASSERT_EQUAL(stats.bytes_cached, layout->cache_bytes * (passes - 1));
}

/* Host budget that caches about half of the blocks that are not resident on the device. */
static void run_variant(const struct slc_plan_request *request, uint64_t device_bytes)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct device_run run;
    enum slc_status status;

    device_run_store(&run, path, NULL, device_bytes, LATE_US);
    status = device_run_start(&run, request, &err);
    if (status == SLC_ERR_UNSUPPORTED && request->io == SLC_IO_URING) {
        device_run_close(&run);
        return;
    }
    SLC_ASSERT_OK(status, &err);
    write_factors(&run);
    for (unsigned pass = 0; pass < 3; pass++) {
        /* A pass over resident blocks starts no thread. */
        slc_fault_arm(SLC_FAULT_THREAD, !slc_stream_copies(run.stream, 0));
        check_mttkrp(&run, pass);
    }
    slc_fault_arm(SLC_FAULT_THREAD, 0);
    check_counts(&run, 3);
    device_run_close(&run);
}

static void test_passes(void)
{
    static const enum slc_io_kind kinds[] = {SLC_IO_URING, SLC_IO_PREAD, SLC_IO_MMAP};
    static const enum slc_schedule schedules[] = {SLC_SCHEDULE_FILE, SLC_SCHEDULE_LARGEST};
    uint64_t least, all;

    make_problem();
    for (size_t k = 0; k < SLC_COUNT(kinds); k++) {
        for (unsigned variant = 0; variant < 6; variant++) {
            const struct slc_plan_request request =
                request_of(kinds[k], schedules[variant % 2], 1 + variant % 3, variant < 4);

            device_run_limits(path, &request, &least, &all);
            run_variant(&request, variant % 3 == 0   ? least
                                  : variant % 3 == 1 ? (least + all) / 2
                                                     : all);
        }
    }
}

/* The host's budget has space for some blocks that are not resident on the device. */
static void test_both_sets(void)
{
    struct slc_plan_request request = request_of(SLC_IO_PREAD, SLC_SCHEDULE_AUTO, 2, true);
    struct slc_error err = SLC_ERROR_INIT;
    struct device_run run;
    uint64_t least, all;

    make_problem();
    device_run_limits(path, &request, &least, &all);
    device_run_store(&run, path, NULL, least + (UINT64_C(64) << 10), LATE_US);
    /* Use one value for both plans, because the process may grow between them. */
    request.resident_bytes = slc_memory_resident();
    request.memory_bytes = 1;
    SLC_ASSERT_FAILS(device_run_start(&run, &request, &err), SLC_ERR_BUDGET, &err,
                     "MiB of memory or more");
    slc_error_clear(&err);
    request.memory_bytes = run.plan.minimum_bytes + run.plan.slot_bytes + (UINT64_C(24) << 10);
    SLC_ASSERT_OK(device_run_start(&run, &request, &err), &err);
    CU_ASSERT(run.plan.cached_blocks > 0 && run.plan.gpu.kept_blocks > 0);
    CU_ASSERT(run.plan.iteration_read_bytes > 0);
    write_factors(&run);
    check_mttkrp(&run, 0);
    check_mttkrp(&run, 2);
    check_counts(&run, 2);
    device_run_close(&run);
}

/* Three passes over a store whose values expand, on a device with this much memory: the number of
 * blocks copied once, and of those copied in each pass. */
static void count_copies(const char *store,
                         uint64_t device_bytes,
                         unsigned *stayed,
                         unsigned *again,
                         struct slc_plan_gpu *planned)
{
    struct slc_plan_request request = request_of(SLC_IO_PREAD, SLC_SCHEDULE_FILE, 2, true);
    struct slc_error err = SLC_ERROR_INIT;
    struct device_run run;

    *stayed = 0;
    *again = 0;
    device_run_store(&run, store, NULL, device_bytes, LATE_US);
    request.memory_bytes = UINT64_C(8) << 30;
    SLC_ASSERT_OK(device_run_start(&run, &request, &err), &err);
    for (unsigned pass = 0; pass < 3; pass++) {
        SLC_ASSERT_OK(slc_gpu_executor_mttkrp(run.device, run.stream, &run.plan, pass, NULL, NULL,
                                              NULL, &err),
                      &err);
    }
    for (uint64_t b = 0; b < slc_reader_info(run.store.reader)->block_count; b++) {
        const unsigned copied = fake_counts(run.device)->copied[b];

        CU_ASSERT_EQUAL(copied + fake_counts(run.device)->resident[b], 3);
        *stayed += copied == 1;
        *again += copied == 3;
    }
    *planned = run.plan.gpu;
    device_run_close(&run);
}

/* The index does not show which values expand. With enough memory every planned block is resident;
 * otherwise the device keeps fewer, and the result is right. */
static void test_values_that_expand(void)
{
    const struct slc_plan_request request = request_of(SLC_IO_PREAD, SLC_SCHEDULE_FILE, 2, true);
    struct slc_plan_gpu planned;
    struct fixture_tensor other;
    unsigned again, stayed;
    char other_path[512];
    uint64_t least, all;

    device_run_tensor(&other, DRAWS);
    for (uint64_t i = 0; i < other.nnz; i++) {
        other.values[i] = 1.0 + (double)(i % 1000) * 0x1p-40;
    }
    fixture_store(&other, slc_test_folder(), "expands", SLC_CODEC_PACKED, 4096, other_path);
    fixture_destroy(&other);
    device_run_limits(other_path, &request, &least, &all);

    count_copies(other_path, least + (UINT64_C(64) << 10), &stayed, &again, &planned);
    CU_ASSERT(stayed > 0 && stayed < planned.kept_blocks && again > 0);
    CU_ASSERT(planned.total_bytes <= planned.budget_bytes);

    count_copies(other_path, UINT64_C(1) << 40, &stayed, &again, &planned);
    CU_ASSERT_EQUAL(again, 0);
    CU_ASSERT_EQUAL(stayed, planned.kept_blocks);

    /* Half of the memory they may need helps, too. Slots use up to a quarter of it. */
    count_copies(other_path, least + (planned.kept_bytes + planned.kept_expanded_bytes / 2) / 3 * 4,
                 &stayed, &again, &planned);
    CU_ASSERT(stayed > planned.kept_blocks / 2 && again > 0);
    CU_ASSERT(planned.total_bytes <= planned.budget_bytes);
}

/* The k-th call of the device fails and ends the pass and the job. */
static void check_refusal(struct device_run *run, uint64_t k)
{
    const unsigned begun = fake_counts(run->device)->begun;
    struct slc_error err = SLC_ERROR_INIT;

    (void)fake_refuse(run->device, k);
    SLC_ASSERT_FAILS(
        slc_gpu_executor_mttkrp(run->device, run->stream, &run->plan, 1, NULL, NULL, NULL, &err),
        SLC_ERR_SYSTEM, &err, "was refused");
    CU_ASSERT_EQUAL(fake_counts(run->device)->begun, begun + (k > 1));
    CU_ASSERT_EQUAL(fake_counts(run->device)->ended, begun + (k > 1));
    (void)fake_refuse(run->device, 0);
}

/* After any failing call, the next pass succeeds. */
static void test_refusals(void)
{
    uint64_t least, all;

    make_problem();
    for (unsigned cache = 0; cache < 2; cache++) {
        const struct slc_plan_request request =
            request_of(SLC_IO_PREAD, SLC_SCHEDULE_FILE, 2, cache != 0);
        struct slc_error err = SLC_ERROR_INIT;
        struct device_run run;
        uint64_t calls;

        device_run_limits(path, &request, &least, &all);
        device_run_store(&run, path, NULL, (least + all) / 2, 0);
        SLC_ASSERT_OK(device_run_start(&run, &request, &err), &err);
        write_factors(&run);
        check_mttkrp(&run, 0);
        /* One call begins the job, one passes each block; for read blocks, one queries the copy. */
        calls = 1 + slc_reader_info(run.store.reader)->block_count * (cache != 0 ? 1 : 2);
        for (uint64_t k = 1; k <= calls; k += slc_test_quick() ? 5 : 1) {
            check_refusal(&run, k);
        }
        check_mttkrp(&run, 2);
        device_run_close(&run);
    }
}

/* When opening fails, nothing stays registered or open. */
static void test_refused_opening(void)
{
    struct slc_plan_request request = request_of(SLC_IO_MMAP, SLC_SCHEDULE_FILE, 2, true);
    uint64_t least, all, refusals = 0;

    make_problem();
    device_run_limits(path, &request, &least, &all);
    for (uint64_t k = 1;; k++) {
        struct slc_error err = SLC_ERROR_INIT;
        struct device_run run;
        enum slc_status status;

        device_run_store(&run, path, NULL, least, 0);
        (void)fake_refuse(run.device, k);
        status = device_run_start(&run, &request, &err);
        if (status == SLC_OK) {
            SLC_ASSERT_FAILS(slc_stream_attach(run.stream, &run.device, 1, &err), SLC_ERR_USAGE,
                             &err, "already");
            device_run_close(&run);
            break;
        }
        refusals++;
        SLC_ASSERT_FAILS(status, SLC_ERR_SYSTEM, &err, "was refused");
        device_run_close(&run);
    }
    CU_ASSERT_EQUAL(refusals, 3); /* open, and registering the cache and the buffers of a map */
}

static void test_failing_reads(void)
{
    static const enum slc_io_kind kinds[] = {SLC_IO_PREAD, SLC_IO_MMAP};
    uint64_t least, all;

    make_problem();
    for (size_t k = 0; k < SLC_COUNT(kinds); k++) {
        const struct slc_plan_request request = request_of(kinds[k], SLC_SCHEDULE_FILE, 2, false);
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_faulty faulty;
        struct device_run run;
        uint64_t blocks;

        device_run_limits(path, &request, &least, &all);
        slc_faulty_init(&faulty);
        device_run_store(&run, path, &faulty.table, least, LATE_US);
        SLC_ASSERT_OK(device_run_start(&run, &request, &err), &err);
        write_factors(&run);
        blocks = slc_reader_info(run.store.reader)->block_count;
        for (uint64_t read = 1; read <= blocks; read += 3) {
            slc_error_clear(&err);
            slc_faulty_fail(&faulty,
                            kinds[k] == SLC_IO_PREAD ? SLC_FAULTY_READ : SLC_FAULTY_COMPLETED, read,
                            EIO);
            SLC_ASSERT_FAILS(slc_gpu_executor_mttkrp(run.device, run.stream, &run.plan, 0, NULL,
                                                     NULL, NULL, &err),
                             SLC_ERR_IO, &err, "reading");
            CU_ASSERT(err.block < blocks && err.offset != SLC_NOWHERE);
        }
        slc_faulty_fail(&faulty, SLC_FAULTY_ANY, 0, 0);
        check_mttkrp(&run, 0);
        device_run_close(&run);
        CU_ASSERT_EQUAL(slc_faulty_open_count(&faulty), 0);
    }
}

/* Damage found by the checksum, and damage found by the device. */
static void test_damage(void)
{
    struct slc_plan_request request = request_of(SLC_IO_PREAD, SLC_SCHEDULE_FILE, 2, false);
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_block_entry entry;
    struct slc_forged forged;
    struct device_run run;
    uint64_t least, all;
    uint8_t byte;

    make_problem();
    device_run_limits(path, &request, &least, &all);
    device_run_store(&run, path, NULL, least, LATE_US);
    SLC_ASSERT_OK(device_run_start(&run, &request, &err), &err);
    write_factors(&run);
    slc_reader_entry(run.store.reader, 5, &entry);
    slc_forged_load(&forged, slc_reader_path(run.store.reader));
    byte = forged.bytes[entry.offset + 100];
    slc_forged_release(&forged);
    slc_forged_poke(slc_reader_path(run.store.reader), entry.offset + 100, byte ^ 4U);
    SLC_ASSERT_FAILS(
        slc_gpu_executor_mttkrp(run.device, run.stream, &run.plan, 0, NULL, NULL, NULL, &err),
        SLC_ERR_DAMAGED, &err, NULL);
    CU_ASSERT_EQUAL(err.block, 5);
    CU_ASSERT_EQUAL(err.offset, entry.offset);
    CU_ASSERT_EQUAL(fake_counts(run.device)->copied[5], 0);
    slc_forged_poke(slc_reader_path(run.store.reader), entry.offset + 100, byte);
    check_mttkrp(&run, 0);

    slc_error_clear(&err);
    fake_damage(run.device, 7);
    SLC_ASSERT_FAILS(
        slc_gpu_executor_mttkrp(run.device, run.stream, &run.plan, 0, NULL, NULL, NULL, &err),
        SLC_ERR_DAMAGED, &err, "contradict");
    CU_ASSERT_EQUAL(err.block, 7);
    CU_ASSERT_STRING_EQUAL(err.file, slc_reader_path(run.store.reader));
    check_mttkrp(&run, 1);
    device_run_close(&run);
}

/* A device that changes the file during a pass: a byte of the next block, once it has arrived and a
 * worker waits for a copy, which it must do before it can copy the block. */
static struct {
    const struct slc_device_ops *inner;
    const struct slc_reader *reader;
    uint64_t next; /* next block to be passed to the device */
    bool resting;  /* true if possibly no block has arrived */
    uint64_t at;
    uint8_t byte;
    bool changed;
} meddler;

static enum slc_status meddling_block(struct slc_device *device,
                                      const struct slc_encoded_block *block,
                                      uint32_t *keep,
                                      uint64_t *ticket,
                                      struct slc_error *err)
{
    meddler.next = block->block + 1;
    meddler.resting = false;
    return meddler.inner->job.block(device, block, keep, ticket, err);
}

static enum slc_status meddling_flush(struct slc_device *device, struct slc_error *err)
{
    meddler.resting = true;
    return meddler.inner->job.flush(device, err);
}

static enum slc_status meddling_copied(
    struct slc_device *device, uint64_t ticket, bool wait, bool *done, struct slc_error *err)
{
    if (wait && !meddler.resting && !meddler.changed) {
        struct slc_block_entry entry;
        struct slc_forged forged;

        slc_reader_entry(meddler.reader, meddler.next, &entry);
        meddler.at = entry.offset + 100;
        slc_forged_load(&forged, slc_reader_path(meddler.reader));
        meddler.byte = forged.bytes[meddler.at];
        slc_forged_release(&forged);
        slc_forged_poke_unseen(slc_reader_path(meddler.reader), meddler.at, meddler.byte ^ 4U);
        meddler.changed = true;
    }
    return meddler.inner->job.copied(device, ticket, wait, done, err);
}

/* The device receives the verified bytes of a mapped file, whenever the file changes. */
static void test_change_under_a_map(void)
{
    const struct slc_plan_request request = request_of(SLC_IO_MMAP, SLC_SCHEDULE_FILE, 1, false);
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_device_ops ops;
    struct device_run run;
    uint64_t least, all;

    make_problem();
    device_run_limits(path, &request, &least, &all);
    device_run_store(&run, path, NULL, least, 20000);
    SLC_ASSERT_OK(device_run_start(&run, &request, &err), &err);
    write_factors(&run);
    memset(&meddler, 0, sizeof meddler);
    meddler.inner = run.device->ops;
    meddler.reader = run.store.reader;
    ops = *run.device->ops;
    ops.job.block = meddling_block;
    ops.job.flush = meddling_flush;
    ops.job.copied = meddling_copied;
    run.device->ops = &ops;
    SLC_ASSERT_FAILS(
        slc_gpu_executor_mttkrp(run.device, run.stream, &run.plan, 0, NULL, NULL, NULL, &err),
        SLC_ERR_DAMAGED, &err, NULL);
    CU_ASSERT_EQUAL(err.block, meddler.next);
    CU_ASSERT_EQUAL(fake_counts(run.device)->copied[err.block], 0);
    slc_forged_poke(slc_reader_path(run.store.reader), meddler.at, meddler.byte);
    check_mttkrp(&run, 0);
    check_mttkrp(&run, 1);
    device_run_close(&run);
}

static void test_stop(void)
{
    struct slc_plan_request request = request_of(SLC_IO_PREAD, SLC_SCHEDULE_FILE, 1, false);
    struct slc_error err = SLC_ERROR_INIT;
    struct device_run run;
    uint64_t least, all;
    int stop = 1;

    make_problem();
    device_run_limits(path, &request, &least, &all);
    device_run_store(&run, path, NULL, least, 20000);
    SLC_ASSERT_OK(device_run_start(&run, &request, &err), &err);
    write_factors(&run);
    SLC_ASSERT_FAILS(
        slc_gpu_executor_mttkrp(run.device, run.stream, &run.plan, 0, &stop, NULL, NULL, &err),
        SLC_ERR_INTERRUPTED, &err, NULL);
    stop = 0;
    slc_error_clear(&err);
    /* Progress is reported ten times a second; the device is late enough for that. */
    SLC_ASSERT_FAILS(slc_gpu_executor_mttkrp(run.device, run.stream, &run.plan, 0, &stop,
                                             device_run_raise_stop, &stop, &err),
                     SLC_ERR_INTERRUPTED, &err, NULL);
    check_mttkrp(&run, 0);
    /* The copies were so late that the feed flushed. */
    CU_ASSERT(fake_counts(run.device)->flushes > 0);
    device_run_close(&run);
}

static void test_misuse(void)
{
    struct slc_plan_request request = request_of(SLC_IO_PREAD, SLC_SCHEDULE_FILE, 1, false);
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_pass pass = {.kind = SLC_PASS_GPU};
    struct device_run run;
    uint64_t least, all;

    make_problem();
    device_run_limits(path, &request, &least, &all);
    device_run_store(&run, path, NULL, least, 0);
    SLC_ASSERT_OK(device_run_start(&run, &request, &err), &err);
    pass.layout = 1;
    SLC_ASSERT_FAILS(slc_stream_pass(run.stream, &pass, &err), SLC_ERR_USAGE, &err, "layout 1");
    slc_stream_detach(run.stream);
    pass.layout = 0;
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_stream_pass(run.stream, &pass, &err), SLC_ERR_USAGE, &err,
                     "number of devices than the stream has, 0");
    slc_stream_detach(run.stream);
    device_run_close(&run);
}

/* Every allocation of attaching fails once. */
static void test_no_memory(void)
{
    struct slc_plan_request request = request_of(SLC_IO_MMAP, SLC_SCHEDULE_FILE, 2, true);
    struct slc_error err = SLC_ERROR_INIT;
    struct device_run run;
    uint64_t least, all;

    make_problem();
    device_run_limits(path, &request, &least, &all);
    device_run_store(&run, path, NULL, least, 0);
    SLC_ASSERT_OK(device_run_start(&run, &request, &err), &err);
    slc_stream_detach(run.stream);
    for (uint64_t fault = 1;; fault++) {
        enum slc_status status;
        bool hit;

        slc_error_clear(&err);
        slc_fault_arm(SLC_FAULT_ALLOCATION, fault);
        status = slc_stream_attach(run.stream, &run.device, 1, &err);
        hit = slc_fault_seen(SLC_FAULT_ALLOCATION) >= fault;
        slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
        if (!hit) {
            SLC_ASSERT_OK(status, &err);
            CU_ASSERT_EQUAL(fault, 6); /* the feed, its copies, descriptions and buffers */
            break;
        }
        SLC_ASSERT_FAILS(status, SLC_ERR_MEMORY, &err, NULL);
        CU_ASSERT(slc_stream_device(run.stream) == NULL);
    }
    write_factors(&run);
    check_mttkrp(&run, 0);
    device_run_close(&run);
    free_problem();
}

static const struct slc_test tests[] = {
    {"every block once, from drive, cache and device", test_passes},
    {"some blocks stay on the device, others in the cache", test_both_sets},
    {"values that expand", test_values_that_expand},
    {"any call is refused", test_refusals},
    {"opening is refused", test_refused_opening},
    {"reads fail", test_failing_reads},
    {"blocks are damaged", test_damage},
    {"a file that changes under a map", test_change_under_a_map},
    {"a signal stops a pass", test_stop},
    {"passes that cannot be", test_misuse},
    {"no memory", test_no_memory},
};

SLC_SUITE(feed)
{
    return slc_test_main("feed", tests, SLC_COUNT(tests), argc, argv);
}
