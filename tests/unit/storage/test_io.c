/* Block readers: every kind, through the page cache and past it, delivers the same bytes, and the
 * same errors for files that are too short. */
#include "io_fixture.h"

#include "slc_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void test_names(void)
{
    static const enum slc_io_kind kinds[] = {SLC_IO_AUTO, SLC_IO_URING, SLC_IO_PREAD, SLC_IO_MMAP};
    enum slc_io_kind kind;

    for (size_t i = 0; i < SLC_COUNT(kinds); i++) {
        CU_ASSERT(slc_io_parse(slc_io_name(kinds[i]), &kind));
        CU_ASSERT(kind == kinds[i]);
    }
    CU_ASSERT(!slc_io_parse("aio", &kind));
}

static void check_depths(const char *folder)
{
    static const unsigned depths[] = {1, 2, 3, 8, 33, 64};
    const char *path = make_file(folder, "depths.blk", FILE_PAGES * PAGE);

    for (size_t v = 0; v < SLC_COUNT(variants); v++) {
        for (size_t d = 0; d < SLC_COUNT(depths); d++) {
            uint64_t slot_pages = 1 + next_draw() % 24;
            struct slc_io *io = open_variant(&variants[v], NULL, path, depths[d], slot_pages);
            struct slc_io_stats stats;
            struct outcome outcome;

            if (io == NULL) {
                continue;
            }
            outcome = read_file(io, FILE_PAGES, depths[d], slot_pages);
            check_all_read(&outcome);
            slc_io_stats(io, &stats);
            CU_ASSERT_EQUAL(stats.reads, outcome.reads);
            CU_ASSERT_EQUAL(stats.bytes, (uint64_t)FILE_PAGES * PAGE);
            CU_ASSERT(!stats.direct || variants[v].direct);
            slc_io_close(io);
        }
    }
    CU_ASSERT(unlink(path) == 0);
}

static void test_depths(void)
{
    check_depths(slc_test_folder());
}

static void test_memory_file_system(void)
{
    const char *path = NULL;
    struct slc_io_options options = {NULL, &path, 1, 4, PAGE, 0, true};
    char folder[] = "/dev/shm/slc-test-XXXXXX";
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_io_stats stats;
    struct slc_io *io;

    if (mkdtemp(folder) == NULL) {
        slc_test_skip("no /dev/shm here");
        return;
    }
    check_depths(folder);
    path = make_file(folder, "auto.blk", PAGE);
    SLC_ASSERT_OK(slc_io_open(SLC_IO_AUTO, &options, &io, &err), &err);
    slc_io_stats(io, &stats);
    CU_ASSERT(!stats.direct);
    CU_ASSERT(strstr(stats.note, "direct") != NULL);
    CU_ASSERT(slc_io_kind(io) == SLC_IO_PREAD);
    slc_io_close(io);
    CU_ASSERT(unlink(path) == 0);
    CU_ASSERT(rmdir(folder) == 0);
}

static void test_truncated_file(void)
{
    /* The file is truncated between pages and within a page. */
    static const uint64_t ends[] = {20 * PAGE, 20 * PAGE + 100, 23 * PAGE + 4095, 0};

    for (size_t v = 0; v < SLC_COUNT(variants); v++) {
        for (size_t e = 0; e < SLC_COUNT(ends); e++) {
            const char *path = make_file(slc_test_folder(), "cut.blk", FEW_PAGES * PAGE);
            struct slc_io *io = open_variant(&variants[v], NULL, path, 5, 6);
            struct outcome outcome;

            if (io == NULL) {
                continue;
            }
            CU_ASSERT(truncate(path, (off_t)ends[e]) == 0);
            outcome = read_file(io, FEW_PAGES, 5, 6);
            CU_ASSERT_EQUAL(outcome.wrong, 0);
            CU_ASSERT(outcome.failed > 0);
            CU_ASSERT(outcome.first.status == SLC_ERR_DAMAGED);
            CU_ASSERT_STRING_EQUAL(outcome.first.file, path);
            CU_ASSERT(outcome.first.offset >= ends[e] && outcome.first.offset < FEW_PAGES * PAGE);
            slc_io_close(io);
        }
    }
}

/* A file that shrinks between submitting and waiting: an error, never a signal. */
static void test_truncated_in_flight(void)
{
    for (size_t v = 0; v < SLC_COUNT(variants); v++) {
        const char *path = make_file(slc_test_folder(), "shrink.blk", 8 * PAGE);
        struct slc_io_request request = {.offset = 4 * PAGE, .bytes = 4 * PAGE, .slot = 1};
        struct slc_io *io = open_variant(&variants[v], NULL, path, 2, 4);
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_io_request *done;

        if (io == NULL) {
            continue;
        }
        SLC_ASSERT_OK(slc_io_submit(io, &request, &err), &err);
        CU_ASSERT(truncate(path, 5 * PAGE + 17) == 0);
        SLC_ASSERT_OK(slc_io_wait(io, &done, &err), &err);
        /* The read may have completed before the truncation. */
        CU_ASSERT(done->status == SLC_OK || done->status == SLC_ERR_DAMAGED);
        if (variants[v].kind == SLC_IO_MMAP) {
            CU_ASSERT(done->status == SLC_ERR_DAMAGED);
        }
        if (done->status == SLC_ERR_DAMAGED) {
            /* With a map, only the position of the missing page is known. */
            CU_ASSERT(done->error.offset == 5 * PAGE + 17 || done->error.offset == 6 * PAGE);
        }
        slc_io_release(io, done);
        slc_io_close(io);
    }
}

static void test_unaligned_end(void)
{
    for (size_t v = 0; v < SLC_COUNT(variants); v++) {
        const char *path = make_file(slc_test_folder(), "end.blk", 10 * PAGE + 100);
        struct slc_io *io = open_variant(&variants[v], NULL, path, 2, 4);
        struct outcome outcome;

        if (io == NULL) {
            continue;
        }
        outcome = read_file(io, 10, 2, 4);
        check_all_read(&outcome);
        outcome = read_file(io, 11, 2, 4);
        CU_ASSERT_EQUAL(outcome.failed, 1);
        CU_ASSERT(outcome.first.status == SLC_ERR_DAMAGED);
        CU_ASSERT_EQUAL(outcome.first.offset, 10 * PAGE + 100);
        slc_io_close(io);
    }
}

/* Kilobytes of file pages in this process's memory. */
static long resident_file_kib(void)
{
    FILE *status = fopen("/proc/self/status", "r");
    char line[256];
    long kib = -1;

    while (status != NULL && fgets(line, sizeof line, status) != NULL) {
        if (sscanf(line, "RssFile: %ld kB", &kib) == 1) {
            break;
        }
    }
    if (status != NULL) {
        (void)fclose(status);
    }
    return kib;
}

/* The windows of a map never keep more resident than their slots. */
static void test_map_residency(void)
{
    enum { SLOTS = 4, SLOT_PAGES = 64, BLOCKS = 64 };
    const struct variant variant = {SLC_IO_MMAP, false};
    const char *path = make_file(slc_test_folder(), "window.blk", BLOCKS * SLOT_PAGES * PAGE);
    struct slc_io_request requests[SLOTS] = {{0}};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_io *io = open_variant(&variant, NULL, path, SLOTS, SLOT_PAGES);
    long before = resident_file_kib();
    long most = 0;

    for (unsigned block = 0; block < BLOCKS; block++) {
        struct slc_io_request *done = &requests[block % SLOTS];

        if (block >= SLOTS) {
            slc_io_release(io, done);
        }
        done->slot = block % SLOTS;
        done->offset = (uint64_t)block * SLOT_PAGES * PAGE;
        done->bytes = SLOT_PAGES * PAGE;
        SLC_ASSERT_OK(slc_io_submit(io, done, &err), &err);
        SLC_ASSERT_OK(slc_io_wait(io, &done, &err), &err);
        CU_ASSERT(done->status == SLC_OK && has_pattern(done->data, done->bytes, done->offset));
        most = resident_file_kib() > most ? resident_file_kib() : most;
    }
    /* Allow a little more for code that is first used in between. */
    CU_ASSERT(before > 0 && most - before <= SLOTS * SLOT_PAGES * PAGE / 1024 + 512);
    slc_io_close(io);
}

/* Three files through the same slots: each request gets its own file's bytes, and faults name it.
 */
static void test_files(void)
{
    enum { FILES = 3, READS = 12 };
    char names[FILES][512];
    const char *paths[FILES];

    for (unsigned f = 0; f < FILES; f++) {
        char name[16];

        /* Each is a page shorter than the previous one, so that its last page identifies it. */
        (void)snprintf(name, sizeof name, "file-%u.blk", f);
        (void)snprintf(names[f], sizeof names[f], "%s",
                       make_file(slc_test_folder(), name, (READS - f) * PAGE));
        paths[f] = names[f];
    }
    for (size_t v = 0; v < SLC_COUNT(variants); v++) {
        struct slc_io_options options = {NULL, paths, FILES, FILES, PAGE, 0, variants[v].direct};
        struct slc_error err = SLC_ERROR_INIT;
        enum slc_status status;
        struct slc_io *io;

        status = slc_io_open(variants[v].kind, &options, &io, &err);
        if (status == SLC_ERR_UNSUPPORTED && variants[v].kind == SLC_IO_URING) {
            continue;
        }
        SLC_ASSERT_OK(status, &err);
        for (unsigned page = 0; page < READS; page++) {
            struct slc_io_request requests[FILES];

            for (unsigned f = 0; f < FILES; f++) {
                requests[f] = (struct slc_io_request){
                    .offset = page * PAGE, .bytes = PAGE, .file = f, .slot = f};
                SLC_ASSERT_OK(slc_io_submit(io, &requests[f], &err), &err);
            }
            for (unsigned f = 0; f < FILES; f++) {
                struct slc_io_request *done;

                SLC_ASSERT_OK(slc_io_wait(io, &done, &err), &err);
            }
            for (unsigned f = 0; f < FILES; f++) {
                if (page < READS - f) {
                    CU_ASSERT_EQUAL(requests[f].status, SLC_OK);
                    CU_ASSERT(has_pattern(requests[f].data, PAGE, page * PAGE));
                } else {
                    CU_ASSERT_EQUAL(requests[f].status, SLC_ERR_DAMAGED);
                    CU_ASSERT_STRING_EQUAL(requests[f].error.file, names[f]);
                }
                slc_io_release(io, &requests[f]);
            }
        }
        slc_io_close(io);
    }
}

static void test_misuse(void)
{
    const char *path = make_file(slc_test_folder(), "misuse.blk", 8 * PAGE);
    struct slc_io_options options = {NULL, &path, 1, 0, PAGE, 0, true};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_io *io;

    options.file_count = 0;
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_io_open(SLC_IO_PREAD, &options, &io, &err), SLC_ERR_USAGE, &err, "file");
    options.file_count = 1;
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_io_open(SLC_IO_PREAD, &options, &io, &err), SLC_ERR_USAGE, &err, "slots");
    options.slot_count = 100000;
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_io_open(SLC_IO_PREAD, &options, &io, &err), SLC_ERR_USAGE, &err, "slots");
    options.slot_count = 2;
    options.slot_bytes = PAGE + 1;
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_io_open(SLC_IO_PREAD, &options, &io, &err), SLC_ERR_USAGE, &err, "bytes");
    options.slot_bytes = 2 * SLC_MAX_BLOCK_BYTES;
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_io_open(SLC_IO_PREAD, &options, &io, &err), SLC_ERR_USAGE, &err, "bytes");

    for (size_t v = 0; v < SLC_COUNT(variants); v++) {
        static const struct slc_io_request wrong[] = {
            {.offset = 0, .bytes = PAGE, .slot = 2},
            {.offset = 0, .bytes = PAGE, .file = 1, .slot = 0},
            {.offset = 1, .bytes = PAGE, .slot = 0},
            {.offset = 0, .bytes = 100, .slot = 0},
            {.offset = 0, .bytes = 0, .slot = 0},
            {.offset = 0, .bytes = 3 * PAGE, .slot = 0},
            {.offset = UINT64_MAX - PAGE + 1, .bytes = PAGE, .slot = 0},
        };
        struct slc_io_request *done;

        io = open_variant(&variants[v], NULL, path, 2, 2);
        if (io == NULL) {
            continue;
        }
        for (size_t w = 0; w < SLC_COUNT(wrong); w++) {
            struct slc_io_request request = wrong[w];

            slc_error_clear(&err);
            SLC_ASSERT_FAILS(slc_io_submit(io, &request, &err), SLC_ERR_USAGE, &err, "slot");
        }
        slc_error_clear(&err);
        SLC_ASSERT_FAILS(slc_io_wait(io, &done, &err), SLC_ERR_USAGE, &err, "in flight");
        slc_io_close(io);
    }
}

static void test_open_errors(void)
{
    const char *path;
    struct slc_io_options options = {NULL, &path, 1, 2, PAGE, 0, true};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_io *io;

    for (size_t v = 0; v < SLC_COUNT(variants); v++) {
        path = "/nonexistent/x.blk";
        slc_error_clear(&err);
        SLC_ASSERT_FAILS(slc_io_open(variants[v].kind, &options, &io, &err), SLC_ERR_IO, &err,
                         "opening");
        path = slc_test_folder();
        slc_error_clear(&err);
        SLC_ASSERT_FAILS(slc_io_open(variants[v].kind, &options, &io, &err), SLC_ERR_FORMAT, &err,
                         "plain file");
    }
    slc_io_close(NULL);
}

static void test_close_in_flight(void)
{
    const char *path = make_file(slc_test_folder(), "flight.blk", FILE_PAGES * PAGE);

    for (size_t v = 0; v < SLC_COUNT(variants); v++) {
        for (unsigned waits = 0; waits < 3; waits++) {
            static struct slc_io_request requests[8];
            struct slc_io *io = open_variant(&variants[v], NULL, path, 8, 30);
            struct slc_error err = SLC_ERROR_INIT;
            struct slc_io_request *done;

            if (io == NULL) {
                continue;
            }
            for (unsigned r = 0; r < 8; r++) {
                requests[r].slot = r;
                requests[r].offset = (uint64_t)r * 30 * PAGE;
                requests[r].bytes = 30 * PAGE;
                SLC_ASSERT_OK(slc_io_submit(io, &requests[r], &err), &err);
            }
            for (unsigned w = 0; w < waits; w++) {
                SLC_ASSERT_OK(slc_io_wait(io, &done, &err), &err);
            }
            slc_io_close(io);
        }
    }
}

static const struct slc_test tests[] = {
    {"names", test_names},
    {"every kind reads every byte, 1 to 64 at a time, in random order", test_depths},
    {"the same on a file system in memory", test_memory_file_system},
    {"a truncated file is damaged", test_truncated_file},
    {"a file that shrinks under a read is damaged", test_truncated_in_flight},
    {"a file that ends inside a page", test_unaligned_end},
    {"a map keeps no more resident than its slots", test_map_residency},
    {"several files through the same slots", test_files},
    {"misuse is refused", test_misuse},
    {"files that cannot be opened", test_open_errors},
    {"closing with reads in flight", test_close_in_flight},
};

SLC_SUITE(io)
{
    return slc_test_main("io", tests, SLC_COUNT(tests), argc, argv);
}
