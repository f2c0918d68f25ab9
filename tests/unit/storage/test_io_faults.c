/* Block readers under faults: short, failing and interrupted reads, refused maps and advice, and
 * every fault while opening. One request fails, no other is affected, nothing leaks. */
#include "io_fixture.h"

#include "slc_test.h"

#include "base/error/fault.h"
#include "base/memory/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void test_short_reads(void)
{
    static const uint64_t lengths[] = {1, 511, 512, 4095, 4096, 5000, 12288, 40000};
    const char *path = make_file(slc_test_folder(), "short.blk", FEW_PAGES * PAGE);
    struct slc_faulty faulty;

    for (size_t v = 0; v < SLC_COUNT(variants); v++) {
        for (size_t l = 0; l < SLC_COUNT(lengths); l++) {
            struct slc_io *io;
            struct outcome outcome;

            /* The table shortens kernel requests, which then must be whole pages. */
            if (variants[v].kind == SLC_IO_PREAD && variants[v].direct && lengths[l] % PAGE != 0) {
                continue;
            }
            /* Reads of one byte at a time are tested on a few pages only. */
            slc_faulty_init(&faulty);
            io = open_variant(&variants[v], &faulty.table, path, 4, 16);
            if (io == NULL) {
                continue;
            }
            slc_faulty_shorten(&faulty, read_operation(variants[v].kind), 1, lengths[l]);
            outcome = read_file(io, lengths[l] == 1 ? 2 : FEW_PAGES, 4, 16);
            check_all_read(&outcome);
            CU_ASSERT(slc_faulty_fired(&faulty));
            slc_io_close(io);
            CU_ASSERT_EQUAL(slc_faulty_open_count(&faulty), 0);
        }
    }
}

static void test_failing_reads(void)
{
    const char *path = make_file(slc_test_folder(), "eio.blk", FEW_PAGES * PAGE);
    struct slc_faulty faulty;

    for (size_t v = 0; v < SLC_COUNT(variants); v++) {
        for (uint64_t k = 1;; k++) {
            struct slc_io *io;
            struct outcome outcome;

            slc_faulty_init(&faulty);
            io = open_variant(&variants[v], &faulty.table, path, 3, 8);
            if (io == NULL) {
                break;
            }
            slc_faulty_fail(&faulty, read_operation(variants[v].kind), k, EIO);
            outcome = read_file(io, FEW_PAGES, 3, 8);
            CU_ASSERT_EQUAL(outcome.wrong, 0);
            if (slc_faulty_fired(&faulty)) {
                CU_ASSERT_EQUAL(outcome.failed, 1);
                CU_ASSERT(outcome.first.status == SLC_ERR_IO);
                CU_ASSERT_EQUAL(outcome.first.system_errno, EIO);
                CU_ASSERT_STRING_EQUAL(outcome.first.file, path);
                CU_ASSERT(outcome.first.offset < FEW_PAGES * PAGE);
                /* The reader still works. */
                slc_faulty_fail(&faulty, SLC_FAULTY_ANY, 0, 0);
                outcome = read_file(io, FEW_PAGES, 3, 8);
            }
            check_all_read(&outcome);
            slc_io_close(io);
            CU_ASSERT_EQUAL(slc_faulty_open_count(&faulty), 0);
            if (k > outcome.reads + 1) {
                break;
            }
        }
    }
}

static void test_interrupted_reads(void)
{
    static const int errors[] = {EINTR, EAGAIN};
    const char *path = make_file(slc_test_folder(), "eintr.blk", FEW_PAGES * PAGE);
    struct slc_faulty faulty;

    for (size_t v = 0; v < SLC_COUNT(variants); v++) {
        for (size_t e = 0; e < SLC_COUNT(errors); e++) {
            struct slc_io *io;
            struct outcome outcome;

            slc_faulty_init(&faulty);
            io = open_variant(&variants[v], &faulty.table, path, 3, 8);
            if (io == NULL) {
                continue;
            }
            slc_faulty_fail(&faulty, read_operation(variants[v].kind), 2, errors[e]);
            outcome = read_file(io, FEW_PAGES, 3, 8);
            CU_ASSERT(slc_faulty_fired(&faulty));
            check_all_read(&outcome);
            /* If every read fails from now on, the reader reports an error and does not loop. */
            slc_faulty_fail_from(&faulty, read_operation(variants[v].kind), 1, errors[e]);
            outcome = read_file(io, 8, 3, 8);
            CU_ASSERT_EQUAL(outcome.failed, outcome.reads);
            CU_ASSERT(outcome.first.status == SLC_ERR_IO);
            slc_io_close(io);
        }
    }
}

/* Readers with mmap work even if the kernel cannot populate maps, or refuses advice. */
static void test_map_without_advice(void)
{
    const struct variant variant = {SLC_IO_MMAP, false};
    const char *path = make_file(slc_test_folder(), "advice.blk", FEW_PAGES * PAGE);
    struct slc_faulty faulty;
    struct outcome outcome;
    struct slc_io *io;

    slc_faulty_init(&faulty);
    io = open_variant(&variant, &faulty.table, path, 4, 8);
    slc_faulty_fail_from(&faulty, SLC_FAULTY_ADVISE, 1, EINVAL);
    outcome = read_file(io, FEW_PAGES, 4, 8);
    check_all_read(&outcome);
    CU_ASSERT(slc_faulty_seen(&faulty, SLC_FAULTY_READ) >= FEW_PAGES);

    slc_faulty_fail(&faulty, SLC_FAULTY_MAP, 1, EPERM);
    outcome = read_file(io, FEW_PAGES, 4, 8);
    CU_ASSERT_EQUAL(outcome.failed, 1);
    CU_ASSERT(outcome.first.status == SLC_ERR_IO);

    slc_faulty_fail(&faulty, SLC_FAULTY_STAT, 2, EIO);
    outcome = read_file(io, FEW_PAGES, 4, 8);
    CU_ASSERT_EQUAL(outcome.failed, 1);
    CU_ASSERT(outcome.first.status == SLC_ERR_IO);
    slc_io_close(io);
    CU_ASSERT_EQUAL(slc_faulty_open_count(&faulty), 0);
}

/* If the system cannot identify the file of a second descriptor, that is the error. */
static void test_open_again_unknown(void)
{
    const char *path = make_file(slc_test_folder(), "again.blk", FEW_PAGES * PAGE);
    struct slc_faulty faulty;
    struct slc_io_options options = {&faulty.table, &path, 1, 3, PAGE, 0, true};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_io *io = NULL;
    enum slc_status status;

    slc_faulty_init(&faulty);
    slc_faulty_fail(&faulty, SLC_FAULTY_STAT, 2, EIO);
    status = slc_io_open(SLC_IO_PREAD, &options, &io, &err);
    if (!slc_faulty_fired(&faulty)) {
        slc_io_close(io);
        slc_test_skip("no direct I/O here");
        return;
    }
    SLC_ASSERT_FAILS(status, SLC_ERR_IO, &err, strerror(EIO));
    CU_ASSERT_EQUAL(err.system_errno, EIO);
    CU_ASSERT_EQUAL(slc_faulty_open_count(&faulty), 0);
}

/* Every allocation, thread and file operation of opening fails once: no crash, no leak. */
static void test_open_faults(void)
{
    static const enum slc_fault_kind points[] = {SLC_FAULT_ALLOCATION, SLC_FAULT_THREAD};
    const char *path = make_file(slc_test_folder(), "faults.blk", 8 * PAGE);
    struct slc_faulty faulty;

    for (size_t v = 0; v < SLC_COUNT(variants); v++) {
        struct slc_io_options options = {&faulty.table, &path, 1, 3, PAGE, 0, variants[v].direct};
        struct slc_io *io = open_variant(&variants[v], NULL, path, 3, 1);

        if (io == NULL) {
            continue;
        }
        slc_io_close(io);
        slc_faulty_init(&faulty);
        for (size_t p = 0; p < SLC_COUNT(points); p++) {
            for (uint64_t k = 1;; k++) {
                struct slc_error err = SLC_ERROR_INIT;
                enum slc_status status;

                slc_fault_arm(points[p], k);
                status = slc_io_open(variants[v].kind, &options, &io, &err);
                if (slc_fault_seen(points[p]) < k) {
                    slc_fault_arm(points[p], 0);
                    SLC_ASSERT_OK(status, &err);
                    slc_io_close(io);
                    break;
                }
                slc_fault_arm(points[p], 0);
                CU_ASSERT(status == SLC_ERR_MEMORY || status == SLC_ERR_SYSTEM);
                CU_ASSERT(err.status == status);
                CU_ASSERT_EQUAL(slc_faulty_open_count(&faulty), 0);
            }
        }
        for (uint64_t k = 1;; k++) {
            struct slc_error err = SLC_ERROR_INIT;
            enum slc_status status;

            slc_faulty_fail(&faulty, SLC_FAULTY_ANY, k, EMFILE);
            status = slc_io_open(variants[v].kind, &options, &io, &err);
            if (status == SLC_OK) {
                struct outcome outcome;
                bool fired = slc_faulty_fired(&faulty);

                slc_faulty_fail(&faulty, SLC_FAULTY_ANY, 0, 0);
                outcome = read_file(io, 8, 3, 1);
                check_all_read(&outcome);
                slc_io_close(io);
                if (!fired) {
                    break;
                }
            } else {
                CU_ASSERT(status == SLC_ERR_IO);
            }
            CU_ASSERT_EQUAL(slc_faulty_open_count(&faulty), 0);
        }
    }
}

/* A file truncated inside the last page of its map: the page stays, with zeros after the end. */
static void test_cut_in_a_page(void)
{
    const struct variant map = {SLC_IO_MMAP, false};
    const char *path = make_file(slc_test_folder(), "inside", FEW_PAGES * PAGE);
    struct slc_io *io = open_variant(&map, NULL, path, 1, 4);
    struct slc_io_request request = {.offset = 36 * PAGE, .bytes = 4 * PAGE, .slot = 0};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_io_request *done;

    SLC_ASSERT_OK(slc_io_submit(io, &request, &err), &err);
    SLC_ASSERT_OK(slc_io_wait(io, &done, &err), &err);
    SLC_ASSERT_OK(slc_io_check(io, &request, &err), &err);
    CU_ASSERT_EQUAL(truncate(path, FEW_PAGES * PAGE - 100), 0);
    CU_ASSERT_EQUAL(((const char *)request.data)[4 * PAGE - 1], 0);
    SLC_ASSERT_FAILS(slc_io_check(io, &request, &err), SLC_ERR_DAMAGED, &err,
                     "truncated while in use");
    slc_io_release(io, &request);
    slc_io_close(io);
}

/* A file changed in place while mapped, without a change in size. */
static void test_changed_while_mapped(void)
{
    const struct variant map = {SLC_IO_MMAP, false};
    const char *path = make_file(slc_test_folder(), "changed", FEW_PAGES * PAGE);
    struct slc_io *io = open_variant(&map, NULL, path, 1, 4);
    struct slc_io_request request = {.offset = 4 * PAGE, .bytes = 4 * PAGE, .slot = 0};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_io_request *done;
    const int fd = open(path, O_WRONLY | O_CLOEXEC);

    SLC_ASSERT_OK(slc_io_submit(io, &request, &err), &err);
    SLC_ASSERT_OK(slc_io_wait(io, &done, &err), &err);
    SLC_ASSERT_OK(slc_io_check(io, &request, &err), &err);
    CU_ASSERT_EQUAL(pwrite(fd, "changed", 7, 5 * PAGE), 7);
    CU_ASSERT_EQUAL(memcmp((const char *)request.data + PAGE, "changed", 7), 0);
    SLC_ASSERT_FAILS(slc_io_check(io, &request, &err), SLC_ERR_IO, &err, "was changed while");
    CU_ASSERT_STRING_EQUAL(err.file, path);
    CU_ASSERT_EQUAL(err.offset, 4 * PAGE);
    slc_io_release(io, &request);
    slc_error_clear(&err);
    /* A new map shows the current contents, and hashes verify them. */
    SLC_ASSERT_OK(slc_io_submit(io, &request, &err), &err);
    SLC_ASSERT_OK(slc_io_wait(io, &done, &err), &err);
    SLC_ASSERT_OK(slc_io_check(io, &request, &err), &err);
    slc_io_release(io, &request);
    slc_io_close(io);
    CU_ASSERT_EQUAL(close(fd), 0);
}

/* A file truncated while mapped yields zeros, and the check reports it. */
static void test_cut_while_mapped(void)
{
    static const uint8_t zeros[PAGE];
    const struct variant map = {SLC_IO_MMAP, false};
    const char *path = make_file(slc_test_folder(), "cut", FEW_PAGES * PAGE);
    struct slc_io *io = open_variant(&map, NULL, path, 2, 4);
    struct slc_io_request first = {.offset = 0, .bytes = 4 * PAGE, .slot = 0};
    struct slc_io_request second = {.offset = 4 * PAGE, .bytes = 4 * PAGE, .slot = 1};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_io_request *done;

    SLC_ASSERT_OK(slc_io_submit(io, &first, &err), &err);
    SLC_ASSERT_OK(slc_io_submit(io, &second, &err), &err);
    SLC_ASSERT_OK(slc_io_wait(io, &done, &err), &err);
    SLC_ASSERT_OK(slc_io_wait(io, &done, &err), &err);
    CU_ASSERT_FATAL(first.data != NULL && second.data != NULL);
    CU_ASSERT_EQUAL(truncate(path, 6 * PAGE), 0);
    CU_ASSERT(has_pattern(first.data, 4 * PAGE, 0));
    CU_ASSERT(has_pattern(second.data, 2 * PAGE, 4 * PAGE));
    CU_ASSERT_EQUAL(memcmp((const char *)second.data + 3 * PAGE, zeros, PAGE), 0);
    SLC_ASSERT_FAILS(slc_io_check(io, &first, &err), SLC_ERR_IO, &err, "was changed while");
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_io_check(io, &second, &err), SLC_ERR_DAMAGED, &err,
                     "truncated while in use");
    CU_ASSERT_STRING_EQUAL(err.file, path);
    CU_ASSERT_EQUAL(err.offset, 4 * PAGE);
    slc_io_release(io, &first);
    slc_io_release(io, &second);
    /* The slot can be used again. */
    slc_error_clear(&err);
    second.offset = 2 * PAGE;
    SLC_ASSERT_OK(slc_io_submit(io, &second, &err), &err);
    SLC_ASSERT_OK(slc_io_wait(io, &done, &err), &err);
    CU_ASSERT(done->status == SLC_OK && has_pattern(second.data, 4 * PAGE, 2 * PAGE));
    SLC_ASSERT_OK(slc_io_check(io, &second, &err), &err);
    slc_io_release(io, &second);
    slc_io_close(io);
}

static sigjmp_buf back;

static void jump_back(int number)
{
    siglongjmp(back, number);
}

/* Touches a page after the end of a file; returns true if this test's handler was called. */
static bool fault_is_ours(const char *path)
{
    int fd = open(path, O_RDONLY);
    const off_t system_page = (off_t)slc_memory_page_bytes();
    const off_t behind = (FEW_PAGES * PAGE + system_page - 1) / system_page * system_page;
    volatile char *page = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, behind);
    volatile bool jumped = true;

    CU_ASSERT_FATAL(fd >= 0 && page != MAP_FAILED);
    if (sigsetjmp(back, 1) == 0) {
        (void)*page;
        jumped = false;
    }
    CU_ASSERT_EQUAL(munmap((void *)(uintptr_t)page, PAGE), 0);
    CU_ASSERT_EQUAL(close(fd), 0);
    return jumped;
}

/* Faults outside the maps of readers reach the previous handler, while a reader is open and
 * after. */
static void test_other_faults(void)
{
    const struct variant map = {SLC_IO_MMAP, false};
    const char *path = make_file(slc_test_folder(), "other", FEW_PAGES * PAGE);
    struct sigaction mine;
    struct sigaction before;
    struct sigaction after;
    struct slc_io *io;

    memset(&mine, 0, sizeof mine);
    mine.sa_handler = jump_back;
    CU_ASSERT_EQUAL(sigaction(SIGBUS, &mine, &before), 0);
    io = open_variant(&map, NULL, path, 2, 4);
    CU_ASSERT(fault_is_ours(path));
    slc_io_close(io);
    CU_ASSERT(fault_is_ours(path));
    CU_ASSERT_EQUAL(sigaction(SIGBUS, &before, &after), 0);
    CU_ASSERT(after.sa_handler == jump_back);
}

static const struct slc_test tests[] = {
    {"short reads are continued", test_short_reads},
    {"a failing read names file and offset and harms no other", test_failing_reads},
    {"interrupted reads are repeated, within reason", test_interrupted_reads},
    {"maps without advice, without maps", test_map_without_advice},
    {"a second descriptor that nothing is known of", test_open_again_unknown},
    {"every fault while opening", test_open_faults},
    {"a file cut inside the last page of a map", test_cut_in_a_page},
    {"a file changed while its map is in use", test_changed_while_mapped},
    {"a file cut while its map is in use", test_cut_while_mapped},
    {"faults outside of maps keep their handler", test_other_faults},
};

SLC_SUITE(io_faults)
{
    return slc_test_main("io_faults", tests, SLC_COUNT(tests), argc, argv);
}
