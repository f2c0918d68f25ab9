/* Faults on either side of MTTKRPs shared by the CPU and a device: drive, blocks, device, memory
 * and signals. Each ends the pass and both jobs, and the next pass succeeds. */
#include "faulty_files.h"
#include "forge_file.h"
#include "shared_run.h"
#include "slc_test.h"

#include "base/error/fault.h"

#include <errno.h>
#include <string.h>

static struct shared_problem many;

static void test_failing_reads(void)
{
    static const enum slc_io_kind kinds[] = {SLC_IO_PREAD, SLC_IO_MMAP};

    shared_problem(&many, "many", SHARED_DRAWS, 4096);
    for (size_t k = 0; k < SLC_COUNT(kinds); k++) {
        const struct slc_plan_request request =
            shared_request(kinds[k], 2, false, &shared_wishes[3 + k]);
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_faulty faulty;
        struct shared_run shared;
        uint64_t least, all, blocks;

        shared_limits(&many, &request, &least, &all);
        slc_faulty_init(&faulty);
        SLC_ASSERT_OK(
            shared_open(&shared, &many, &faulty.table, &request, least, SHARED_LATE_US, &err),
            &err);
        blocks = slc_reader_info(shared.run.store.reader)->block_count;
        for (uint64_t read = 1; read <= blocks; read += 5) {
            slc_error_clear(&err);
            slc_faulty_fail(&faulty,
                            kinds[k] == SLC_IO_PREAD ? SLC_FAULTY_READ : SLC_FAULTY_COMPLETED, read,
                            EIO);
            SLC_ASSERT_FAILS(shared_compute(&shared, 0, NULL, NULL, NULL, &err), SLC_ERR_IO, &err,
                             "reading");
            CU_ASSERT(err.block < blocks && err.offset != SLC_NOWHERE);
        }
        slc_faulty_fail(&faulty, SLC_FAULTY_ANY, 0, 0);
        CU_ASSERT_EQUAL(shared.hybrid[0].passes, 0);
        shared_check(&shared, 0);
        shared_close(&shared);
        CU_ASSERT_EQUAL(slc_faulty_open_count(&faulty), 0);
    }
}

/* A pass reports a damaged block, whether the CPU or the device computes the block. */
static void test_damage(void)
{
    shared_problem(&many, "many", SHARED_DRAWS, 4096);
    for (size_t w = 0; w < SHARED_WISHES; w++) {
        const struct slc_plan_request request =
            shared_request(SLC_IO_PREAD, 2, false, &shared_wishes[w]);
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_block_entry entry;
        struct slc_forged forged;
        struct shared_run shared;
        const char *file;
        uint64_t least, all;
        uint8_t byte;

        shared_limits(&many, &request, &least, &all);
        SLC_ASSERT_OK(shared_open(&shared, &many, NULL, &request, least, SHARED_LATE_US, &err),
                      &err);
        file = slc_reader_path(shared.run.store.reader);
        slc_reader_entry(shared.run.store.reader, 5, &entry);
        slc_forged_load(&forged, file);
        byte = forged.bytes[entry.offset + 100];
        slc_forged_release(&forged);
        slc_forged_poke(file, entry.offset + 100, byte ^ 4U);
        SLC_ASSERT_FAILS(shared_compute(&shared, 0, NULL, NULL, NULL, &err), SLC_ERR_DAMAGED, &err,
                         NULL);
        CU_ASSERT_EQUAL(err.block, 5);
        CU_ASSERT_EQUAL(err.offset, entry.offset);
        slc_forged_poke(file, entry.offset + 100, byte);
        shared_check(&shared, 0);
        if (shared_wishes[w].fraction == 1) {
            /* Damage that only the device detects, at the end. */
            slc_error_clear(&err);
            fake_damage(shared.run.device, 7);
            SLC_ASSERT_FAILS(shared_compute(&shared, 0, NULL, NULL, NULL, &err), SLC_ERR_DAMAGED,
                             &err, "contradict");
            CU_ASSERT_EQUAL(err.block, 7);
            CU_ASSERT_STRING_EQUAL(err.file, file);
            CU_ASSERT_EQUAL(shared.hybrid[0].passes, 1);
            shared_check(&shared, 0);
        }
        shared_close(&shared);
    }
}

/* Every allocation of the CPU's part fails once. */
static void test_no_memory(void)
{
    const struct slc_plan_request request =
        shared_request(SLC_IO_PREAD, 2, true, &shared_wishes[0]);
    struct slc_error err = SLC_ERROR_INIT;
    struct shared_run shared;
    uint64_t least, all, faults = 0;

    shared_problem(&many, "many", SHARED_DRAWS, 4096);
    shared_limits(&many, &request, &least, &all);
    SLC_ASSERT_OK(shared_open(&shared, &many, NULL, &request, least, 0, &err), &err);
    for (uint64_t fault = 1;; fault++) {
        enum slc_status status;
        bool hit;

        slc_error_clear(&err);
        slc_fault_arm(SLC_FAULT_ALLOCATION, fault + 1); /* 1 is the test's own */
        status = shared_compute(&shared, 1, NULL, NULL, NULL, &err);
        hit = slc_fault_seen(SLC_FAULT_ALLOCATION) > fault;
        slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
        if (!hit) {
            SLC_ASSERT_OK(status, &err);
            break;
        }
        faults++;
        SLC_ASSERT_FAILS(status, SLC_ERR_MEMORY, &err, NULL);
    }
    CU_ASSERT(faults > 0);
    CU_ASSERT_EQUAL(fake_counts(shared.run.device)->begun, fake_counts(shared.run.device)->ended);
    shared_check(&shared, 1);
    shared_close(&shared);
}

/* The k-th call of the device fails and ends the pass and both jobs. */
static void test_refusals(void)
{
    shared_problem(&many, "many", SHARED_DRAWS, 4096);
    for (unsigned cache = 0; cache < 2; cache++) {
        const struct slc_plan_request request =
            shared_request(SLC_IO_PREAD, 2, cache != 0, &shared_wishes[3 + cache]);
        struct slc_error err = SLC_ERROR_INIT;
        struct shared_run shared;
        uint64_t least, all, calls;

        shared_limits(&many, &request, &least, &all);
        /* With this memory, all resident blocks arrive in the first pass. */
        SLC_ASSERT_OK(
            shared_open(&shared, &many, NULL, &request, least + (UINT64_C(64) << 10), 0, &err),
            &err);
        CU_ASSERT(!shared.run.plan.gpu.keeps_cached);
        (void)fake_refuse(shared.run.device, 0);
        shared_check(&shared, 1);
        calls = fake_refuse(shared.run.device, 0);
        /* The number of calls varies; at least two thirds of them are made again. */
        for (uint64_t k = 1; k < calls * 2 / 3; k += 1 + calls / 20) {
            const unsigned begun = fake_counts(shared.run.device)->begun;

            slc_error_clear(&err);
            (void)fake_refuse(shared.run.device, k);
            if (shared_compute(&shared, 1, NULL, NULL, NULL, &err) != SLC_OK) {
                CU_ASSERT_EQUAL(err.status, SLC_ERR_SYSTEM);
                CU_ASSERT(strstr(err.message, "was refused") != NULL);
            }
            (void)fake_refuse(shared.run.device, 0);
            CU_ASSERT_EQUAL(fake_counts(shared.run.device)->begun, begun + (k > 1));
            CU_ASSERT_EQUAL(fake_counts(shared.run.device)->ended, begun + (k > 1));
        }
        shared_check(&shared, 1);
        shared_close(&shared);
    }
}

static void test_stop(void)
{
    shared_problem(&many, "many", SHARED_DRAWS, 4096);
    for (size_t w = 2; w < SHARED_WISHES; w++) {
        const struct slc_plan_request request =
            shared_request(SLC_IO_PREAD, 1, false, &shared_wishes[w]);
        struct slc_error err = SLC_ERROR_INIT;
        struct shared_run shared;
        uint64_t least, all;
        int stop = 1;

        shared_limits(&many, &request, &least, &all);
        /* Progress is reported ten times a second; the device is late enough for that. */
        SLC_ASSERT_OK(shared_open(&shared, &many, NULL, &request, least, 20000, &err), &err);
        SLC_ASSERT_FAILS(shared_compute(&shared, 0, &stop, NULL, NULL, &err), SLC_ERR_INTERRUPTED,
                         &err, NULL);
        if (w == 2) {
            stop = 0;
            slc_error_clear(&err);
            SLC_ASSERT_FAILS(shared_compute(&shared, 0, &stop, device_run_raise_stop, &stop, &err),
                             SLC_ERR_INTERRUPTED, &err, NULL);
        }
        CU_ASSERT_EQUAL(shared.hybrid[0].passes, 0);
        shared_close(&shared);
    }
}

static const struct slc_test tests[] = {
    {"reads fail", test_failing_reads},   {"blocks are damaged", test_damage},
    {"calls are refused", test_refusals}, {"no memory", test_no_memory},
    {"a signal stops a pass", test_stop},
};

SLC_SUITE(shared_faults)
{
    const int code = slc_test_main("shared faults", tests, SLC_COUNT(tests), argc, argv);

    shared_problem_free(&many);
    return code;
}
