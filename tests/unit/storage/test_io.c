/*
 * Block readers: every kind, through the page cache and past it, delivers the same bytes and the
 * same errors. The file's contents are a function of the offset, so any block can be checked alone.
 */
#include "slc_test.h"

#include "base/bytes.h"
#include "base/fault.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/memory.h"
#include "base/random.h"
#include "faulty_files.h"
#include "storage/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE = SLC_PAGE_BYTES, MAX_REQUESTS = 64, FILE_PAGES = 301, FEW_PAGES = 40 };

/* A kind of reader and a way to open files. */
struct variant {
    enum slc_io_kind kind;
    bool direct;
};

static const struct variant variants[] = {
    {SLC_IO_URING, true},  {SLC_IO_URING, false}, {SLC_IO_PREAD, true},
    {SLC_IO_PREAD, false}, {SLC_IO_MMAP, false},
};

static uint64_t next_draw(void)
{
    static uint64_t drawn;

    return slc_random_u64(slc_test_seed(), 7, drawn++);
}

static void fill_pattern(void *data, uint64_t bytes, uint64_t offset)
{
    for (uint64_t i = 0; i < bytes; i += 8) {
        slc_store_u64((char *)data + i, slc_mix64(offset + i));
    }
}

static bool has_pattern(const void *data, uint64_t bytes, uint64_t offset)
{
    for (uint64_t i = 0; i < bytes; i += 8) {
        if (slc_load_u64((const char *)data + i) != slc_mix64(offset + i)) {
            return false;
        }
    }
    return true;
}

/* Writes `bytes` bytes of the pattern to FOLDER/NAME; the path is static. */
static const char *make_file(const char *folder, const char *name, uint64_t bytes)
{
    static char path[512];
    const struct slc_files *files = slc_files_system();
    struct slc_error err = SLC_ERROR_INIT;
    uint64_t padded = (bytes + 7) / 8 * 8;
    char *data = malloc(padded);
    int fd;

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    fill_pattern(data, padded, 0);
    fd = files->open(files->self, path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    CU_ASSERT_FATAL(fd >= 0);
    SLC_ASSERT_OK(slc_file_write_at(files, fd, path, data, bytes, 0, &err), &err);
    /* Direct reads see what is on the disk; a page that is still dirty would be flushed by them. */
    CU_ASSERT(files->sync(files->self, fd) == 0);
    CU_ASSERT(files->close(files->self, fd) == 0);
    free(data);
    return path;
}

/* Opens a reader, or skips the variant where io_uring is refused or not built in. */
static struct slc_io *open_variant(const struct variant *variant,
                                   const struct slc_files *files,
                                   const char *path,
                                   unsigned slots,
                                   uint64_t slot_pages)
{
    struct slc_io_options options = {files, path, slots, slot_pages * PAGE, 0, variant->direct};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_io *io = NULL;
    enum slc_status status = slc_io_open(variant->kind, &options, &io, &err);

    if (status == SLC_ERR_UNSUPPORTED && variant->kind == SLC_IO_URING) {
        return NULL;
    }
    SLC_ASSERT_OK(status, &err);
    CU_ASSERT_FATAL(io != NULL);
    CU_ASSERT(slc_io_kind(io) == variant->kind);
    return io;
}

/* What came of reading a whole file. */
struct outcome {
    unsigned reads;
    unsigned failed;
    unsigned wrong;
    struct slc_error first; /* the first failure */
};

/* Reads `pages` pages as blocks of random sizes in random order, `slots` at a time. */
static struct outcome
read_file(struct slc_io *io, uint64_t pages, unsigned slots, uint64_t slot_pages)
{
    static struct slc_io_request requests[MAX_REQUESTS];
    static uint64_t starts[FILE_PAGES + 1];
    struct outcome outcome = {0, 0, 0, SLC_ERROR_INIT};
    struct slc_error err = SLC_ERROR_INIT;
    unsigned free_slots[MAX_REQUESTS];
    unsigned free_count = slots;
    uint64_t order[FILE_PAGES];
    uint64_t blocks = 0;
    uint64_t next = 0;

    for (uint64_t page = 0; page < pages; blocks++) {
        order[blocks] = blocks;
        starts[blocks] = page;
        page += 1 + next_draw() % slot_pages;
        if (page > pages) {
            page = pages;
        }
        starts[blocks + 1] = page;
    }
    for (uint64_t i = blocks; i > 1; i--) {
        uint64_t j = next_draw() % i;
        uint64_t other = order[i - 1];

        order[i - 1] = order[j];
        order[j] = other;
    }
    for (unsigned s = 0; s < slots; s++) {
        free_slots[s] = s;
    }
    while (next < blocks || free_count < slots) {
        struct slc_io_request *done;

        while (next < blocks && free_count > 0) {
            unsigned slot = free_slots[--free_count];
            uint64_t block = order[next++];

            requests[slot].slot = slot;
            requests[slot].offset = starts[block] * PAGE;
            requests[slot].bytes = (starts[block + 1] - starts[block]) * PAGE;
            requests[slot].user = &requests[slot];
            SLC_ASSERT_OK(slc_io_submit(io, &requests[slot], &err), &err);
        }
        SLC_ASSERT_OK(slc_io_wait(io, &done, &err), &err);
        CU_ASSERT(done->user == done);
        outcome.reads++;
        if (done->status != SLC_OK) {
            CU_ASSERT(done->data == NULL);
            CU_ASSERT(done->error.status == done->status);
            if (outcome.failed++ == 0) {
                outcome.first = done->error;
            }
        } else {
            CU_ASSERT_FATAL(done->data != NULL);
            outcome.wrong += !has_pattern(done->data, done->bytes, done->offset);
        }
        slc_io_release(io, done);
        free_slots[free_count++] = done->slot;
    }
    return outcome;
}

static void check_all_read(const struct outcome *outcome)
{
    CU_ASSERT(outcome->reads > 0);
    CU_ASSERT_EQUAL(outcome->failed, 0);
    CU_ASSERT_EQUAL(outcome->wrong, 0);
    if (outcome->failed > 0) {
        printf("# %s\n", outcome->first.message);
    }
}

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
    struct slc_io_options options = {NULL, NULL, 4, PAGE, 0, true};
    char folder[] = "/dev/shm/slc-test-XXXXXX";
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_io_stats stats;
    struct slc_io *io;

    if (mkdtemp(folder) == NULL) {
        slc_test_skip("no /dev/shm here");
        return;
    }
    check_depths(folder);
    options.path = make_file(folder, "auto.blk", PAGE);
    SLC_ASSERT_OK(slc_io_open(SLC_IO_AUTO, &options, &io, &err), &err);
    slc_io_stats(io, &stats);
    CU_ASSERT(!stats.direct);
    CU_ASSERT(strstr(stats.note, "direct") != NULL);
    CU_ASSERT(slc_io_kind(io) == SLC_IO_PREAD);
    slc_io_close(io);
    CU_ASSERT(unlink(options.path) == 0);
    CU_ASSERT(rmdir(folder) == 0);
}

/* The operation of the table that carries the results of a kind's reads. */
static enum slc_faulty_kind read_operation(enum slc_io_kind kind)
{
    return kind == SLC_IO_PREAD ? SLC_FAULTY_READ : SLC_FAULTY_COMPLETED;
}

static void test_short_reads(void)
{
    static const uint64_t lengths[] = {1, 511, 512, 4095, 4096, 5000, 12288, 40000};
    const char *path = make_file(slc_test_folder(), "short.blk", FEW_PAGES * PAGE);
    struct slc_faulty faulty;

    for (size_t v = 0; v < SLC_COUNT(variants); v++) {
        for (size_t l = 0; l < SLC_COUNT(lengths); l++) {
            struct slc_io *io;
            struct outcome outcome;

            /* The table shortens what is asked of the kernel, which only takes whole pages then. */
            if (variants[v].kind == SLC_IO_PREAD && variants[v].direct && lengths[l] % PAGE != 0) {
                continue;
            }
            /* A byte at a time: enough on a few pages. */
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
                /* The reader is as good as before. */
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
            /* For ever: gives up instead of looping. */
            slc_faulty_fail_from(&faulty, read_operation(variants[v].kind), 1, errors[e]);
            outcome = read_file(io, 8, 3, 8);
            CU_ASSERT_EQUAL(outcome.failed, outcome.reads);
            CU_ASSERT(outcome.first.status == SLC_ERR_IO);
            slc_io_close(io);
        }
    }
}

static void test_truncated_file(void)
{
    /* Cut between pages and inside one. */
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
        /* The read may have been faster. */
        CU_ASSERT(done->status == SLC_OK || done->status == SLC_ERR_DAMAGED);
        if (variants[v].kind == SLC_IO_MMAP) {
            CU_ASSERT(done->status == SLC_ERR_DAMAGED);
        }
        if (done->status == SLC_ERR_DAMAGED) {
            /* A map only knows that the next page is gone. */
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

/* mmap where the kernel cannot populate, or refuses advice or maps. */
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

/* The windows of a map never keep more resident than the slots they stand for. */
static void test_map_residency(void)
{
    enum { SLOTS = 4, SLOT_PAGES = 64, BLOCKS = 64 };
    const struct variant variant = {SLC_IO_MMAP, false};
    const char *path = make_file(slc_test_folder(), "window.blk", BLOCKS * SLOT_PAGES * PAGE);
    struct slc_io_request requests[SLOTS];
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
    /* A little more for code that was first touched meanwhile. */
    CU_ASSERT(before > 0 && most - before <= SLOTS * SLOT_PAGES * PAGE / 1024 + 512);
    slc_io_close(io);
}

static void test_misuse(void)
{
    const char *path = make_file(slc_test_folder(), "misuse.blk", 8 * PAGE);
    struct slc_io_options options = {NULL, path, 0, PAGE, 0, true};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_io *io;

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
    struct slc_io_options options = {NULL, "/nonexistent/x.blk", 2, PAGE, 0, true};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_io *io;

    for (size_t v = 0; v < SLC_COUNT(variants); v++) {
        options.path = "/nonexistent/x.blk";
        slc_error_clear(&err);
        SLC_ASSERT_FAILS(slc_io_open(variants[v].kind, &options, &io, &err), SLC_ERR_IO, &err,
                         "opening");
        options.path = slc_test_folder();
        slc_error_clear(&err);
        SLC_ASSERT_FAILS(slc_io_open(variants[v].kind, &options, &io, &err), SLC_ERR_FORMAT, &err,
                         "plain file");
    }
    slc_io_close(NULL);
}

/* Every allocation, thread and file operation of opening fails once: no crash, no leak. */
static void test_open_faults(void)
{
    static const enum slc_fault_kind points[] = {SLC_FAULT_ALLOCATION, SLC_FAULT_THREAD};
    const char *path = make_file(slc_test_folder(), "faults.blk", 8 * PAGE);
    struct slc_faulty faulty;

    for (size_t v = 0; v < SLC_COUNT(variants); v++) {
        struct slc_io_options options = {&faulty.table, path, 3, PAGE, 0, variants[v].direct};
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
    {"short reads are continued", test_short_reads},
    {"a failing read names file and offset and harms no other", test_failing_reads},
    {"interrupted reads are repeated, within reason", test_interrupted_reads},
    {"a truncated file is damaged", test_truncated_file},
    {"a file that shrinks under a read is damaged", test_truncated_in_flight},
    {"a file that ends inside a page", test_unaligned_end},
    {"maps without advice, without maps", test_map_without_advice},
    {"a map keeps no more resident than its slots", test_map_residency},
    {"misuse is refused", test_misuse},
    {"files that cannot be opened", test_open_errors},
    {"every fault while opening", test_open_faults},
    {"closing with reads in flight", test_close_in_flight},
};

int main(int argc, char **argv)
{
    return slc_test_main("io", tests, SLC_COUNT(tests), argc, argv);
}
