/* The table of file operations and the helpers on top: whole transfers, atomic replacement,
 * loading, removal; every operation fails once, and nothing is left open or on disk. */
#include "slc_test.h"

#include "base/error/fault.h"
#include "base/memory/limits.h"
#include "base/memory/memory.h"
#include "faulty_files.h"
#include "storage/file/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A path that is valid for the next 15 calls. */
static const char *path_in(const char *folder, const char *name)
{
    static char paths[16][512];
    static unsigned next;
    char *path = paths[next++ % 16];
    char joined[sizeof paths[0]];

    /* The path is not joined directly into `path`, because `folder` may be in the same array. */
    (void)snprintf(joined, sizeof joined, "%s/%s", folder, name);
    memcpy(path, joined, sizeof joined);
    return path;
}

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

static void put_file(const char *path, const void *data, uint64_t bytes)
{
    struct slc_error err = SLC_ERROR_INIT;

    SLC_ASSERT_OK(slc_file_replace(slc_files_system(), path, data, bytes, &err), &err);
}

static bool file_holds(const char *path, const void *data, uint64_t bytes)
{
    struct slc_error err = SLC_ERROR_INIT;
    void *loaded = NULL;
    uint64_t loaded_bytes = 0;
    bool same;

    SLC_ASSERT_OK(slc_file_load(slc_files_system(), path, 1 << 20, &loaded, &loaded_bytes, &err),
                  &err);
    same = loaded != NULL && loaded_bytes == bytes && memcmp(loaded, data, bytes) == 0 &&
           ((char *)loaded)[bytes] == '\0';
    slc_free(loaded);
    return same;
}

static void test_system_table(void)
{
    const struct slc_files *files = slc_files_system();
    const char *folder = slc_test_folder();
    const char *path = path_in(folder, "a");
    struct slc_file_stat by_fd, by_path;
    void *address = NULL;
    char text[8] = {0};
    int fd;

    CU_ASSERT_PTR_EQUAL(slc_files_or_system(NULL), files);
    CU_ASSERT_EQUAL(files->open(files->self, path, O_RDONLY, 0), -ENOENT);
    fd = files->open(files->self, path, O_RDWR | O_CREAT | O_EXCL, 0600);
    CU_ASSERT_FATAL(fd >= 0);
    CU_ASSERT((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
    CU_ASSERT_EQUAL(files->write_at(files->self, fd, "hello", 5, 4096), 5);
    CU_ASSERT_EQUAL(files->write(files->self, fd, "start", 5), 5);
    CU_ASSERT_EQUAL(files->read_at(files->self, fd, text, 8, 4096), 5);
    CU_ASSERT(memcmp(text, "hello", 5) == 0);
    CU_ASSERT_EQUAL(files->read_at(files->self, fd, text, 8, 9000), 0);
    CU_ASSERT_EQUAL(files->read_at(files->self, fd, text, 8, UINT64_MAX), -EINVAL);
    CU_ASSERT_EQUAL(files->write_at(files->self, fd, text, 8, UINT64_MAX), -EFBIG);
    CU_ASSERT_EQUAL(files->truncate(files->self, fd, UINT64_MAX), -EFBIG);
    CU_ASSERT_EQUAL(files->stat_fd(files->self, fd, &by_fd), 0);
    CU_ASSERT_EQUAL(files->stat_path(files->self, path, &by_path), 0);
    CU_ASSERT(by_fd.bytes == 4101 && by_fd.kind == 'f' && by_fd.modified_ns > 0);
    CU_ASSERT(by_fd.inode == by_path.inode && by_fd.device == by_path.device);
    CU_ASSERT_EQUAL(by_fd.direct_memory_align, by_path.direct_memory_align);
    CU_ASSERT_EQUAL(by_fd.direct_known, by_path.direct_known);
    CU_ASSERT_EQUAL(files->stat_path(files->self, folder, &by_path), 0);
    CU_ASSERT(by_path.kind == 'd');
    CU_ASSERT_EQUAL(files->truncate(files->self, fd, 4098), 0);
    CU_ASSERT_EQUAL(files->sync(files->self, fd), 0);
    CU_ASSERT_EQUAL(files->sync_folder(files->self, folder), 0);
    CU_ASSERT_EQUAL(files->advise_file(files->self, fd, 0, 4096, POSIX_FADV_DONTNEED), 0);
    CU_ASSERT_EQUAL(files->map(files->self, fd, 4098, 0, &address), 0);
    CU_ASSERT(memcmp(address, "start", 5) == 0);
    CU_ASSERT_EQUAL(files->unmap(files->self, address, 4098), 0);
    CU_ASSERT_EQUAL(files->map(files->self, fd, 4096, 7, &address), -EINVAL);
    CU_ASSERT_PTR_NULL(files->completed);
    CU_ASSERT_EQUAL(files->close(files->self, fd), 0);
    CU_ASSERT_EQUAL(files->close(files->self, fd), -EBADF);
}

static void test_rename_keeps_folders(void)
{
    const struct slc_files *files = slc_files_system();
    const char *folder = slc_test_folder();
    const char *a = path_in(folder, "a");
    const char *b = path_in(folder, "b");
    const char *c = path_in(folder, "c");

    CU_ASSERT_EQUAL(files->make_folder(files->self, a), 0);
    CU_ASSERT_EQUAL(files->make_folder(files->self, a), -EEXIST);
    CU_ASSERT_EQUAL(files->make_folder(files->self, b), 0);
    /* An empty folder would be replaced by plain rename. */
    CU_ASSERT_EQUAL(files->rename(files->self, a, b), -EEXIST);
    CU_ASSERT_EQUAL(files->remove_folder(files->self, b), 0);
    CU_ASSERT_EQUAL(files->rename(files->self, a, b), 0);
    put_file(c, "x", 1);
    CU_ASSERT_EQUAL(files->rename(files->self, c, b), -EISDIR);
    CU_ASSERT_EQUAL(files->rename(files->self, path_in(folder, "none"), b), -ENOENT);
    CU_ASSERT_EQUAL(files->unlink(files->self, c), 0);
    CU_ASSERT_EQUAL(files->remove_folder(files->self, b), 0);
}

static void test_exchange(void)
{
    const struct slc_files *files = slc_files_system();
    const char *folder = slc_test_folder();
    const char *a = path_in(folder, "a");
    const char *b = path_in(folder, "b");
    struct slc_file_stat before[2], after[2];
    int code;

    CU_ASSERT_EQUAL(files->make_folder(files->self, a), 0);
    CU_ASSERT_EQUAL(files->exchange(files->self, a, b), -ENOENT);
    CU_ASSERT_EQUAL(files->make_folder(files->self, b), 0);
    CU_ASSERT_EQUAL(files->stat_path(files->self, a, &before[0]), 0);
    CU_ASSERT_EQUAL(files->stat_path(files->self, b, &before[1]), 0);
    code = files->exchange(files->self, a, b);
    CU_ASSERT(code == 0 || code == -EOPNOTSUPP);
    CU_ASSERT_EQUAL(files->stat_path(files->self, a, &after[0]), 0);
    CU_ASSERT_EQUAL(files->stat_path(files->self, b, &after[1]), 0);
    CU_ASSERT_EQUAL(after[0].inode, before[code == 0].inode);
    CU_ASSERT_EQUAL(after[1].inode, before[code != 0].inode);
    CU_ASSERT_EQUAL(files->remove_folder(files->self, a), 0);
    CU_ASSERT_EQUAL(files->remove_folder(files->self, b), 0);
}

static void test_whole_transfers(void)
{
    const char *path = path_in(slc_test_folder(), "whole");
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_faulty faulty;
    char data[1000];
    char back[1000];
    int fd;

    for (unsigned i = 0; i < sizeof data; i++) {
        data[i] = (char)(i * 7);
    }
    slc_faulty_init(&faulty);
    fd = faulty.table.open(faulty.table.self, path, O_RDWR | O_CREAT, 0600);
    /* The file is written in pieces of 7 bytes. */
    slc_faulty_shorten(&faulty, SLC_FAULTY_WRITE, 1, 7);
    SLC_ASSERT_OK(slc_file_write_at(&faulty.table, fd, path, data, sizeof data, 100, &err), &err);
    slc_faulty_shorten(&faulty, SLC_FAULTY_READ, 1, 7);
    SLC_ASSERT_OK(slc_file_read_at(&faulty.table, fd, path, back, sizeof back, 100, &err), &err);
    CU_ASSERT(memcmp(data, back, sizeof data) == 0);

    slc_faulty_fail(&faulty, SLC_FAULTY_READ, 1, EINTR);
    SLC_ASSERT_OK(slc_file_read_at(&faulty.table, fd, path, back, 10, 100, &err), &err);
    slc_faulty_fail(&faulty, SLC_FAULTY_WRITE, 1, EAGAIN);
    SLC_ASSERT_OK(slc_file_write_at(&faulty.table, fd, path, data, 10, 100, &err), &err);

    slc_faulty_fail_from(&faulty, SLC_FAULTY_READ, 1, EINTR);
    SLC_ASSERT_FAILS(slc_file_read_at(&faulty.table, fd, path, back, 10, 100, &err), SLC_ERR_IO,
                     &err, "Interrupted");
    slc_error_clear(&err);
    slc_faulty_fail(&faulty, SLC_FAULTY_READ, 1, EIO);
    SLC_ASSERT_FAILS(slc_file_read_at(&faulty.table, fd, path, back, 10, 100, &err), SLC_ERR_IO,
                     &err, "reading 10 bytes");
    CU_ASSERT_EQUAL(err.offset, 100);
    CU_ASSERT_STRING_EQUAL(err.file, path);
    slc_error_clear(&err);
    slc_faulty_fail(&faulty, SLC_FAULTY_ANY, 0, 0);
    SLC_ASSERT_FAILS(slc_file_read_at(&faulty.table, fd, path, back, 1000, 600, &err),
                     SLC_ERR_DAMAGED, &err, "ends at byte 1100");
    CU_ASSERT_EQUAL(err.offset, 1100);
    slc_error_clear(&err);
    slc_faulty_limit_room(&faulty, 300);
    SLC_ASSERT_FAILS(slc_file_write_at(&faulty.table, fd, path, data, 1000, 0, &err),
                     SLC_ERR_NOSPACE, &err, "writing");
    CU_ASSERT_EQUAL(err.offset, 300);
    CU_ASSERT_EQUAL(faulty.table.close(faulty.table.self, fd), 0);
}

/* Every operation of a replacement fails once: the complete old or new bytes, and no temporary
 * file. */
/* Whole pages with direct I/O, and through the cache if a direct transfer stops or is refused. */
static void test_page_transfers(void)
{
    enum { BYTES = 4 * SLC_PAGE_BYTES };
    const char *path = path_in(slc_test_folder(), "pages");
    uint8_t *data = aligned_alloc(SLC_PAGE_BYTES, BYTES);
    uint8_t *back = aligned_alloc(SLC_PAGE_BYTES, BYTES);
    static const int refusals[] = {EINVAL, EINTR, EAGAIN};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_faulty faulty;
    int fd, direct_fd;

    for (unsigned i = 0; i < BYTES; i++) {
        data[i] = (uint8_t)(i * 7 + i / 256);
    }
    slc_faulty_init(&faulty);
    fd = faulty.table.open(faulty.table.self, path, O_RDWR | O_CREAT, 0600);
    CU_ASSERT_FATAL(fd >= 0);
    SLC_ASSERT_OK(slc_file_open_direct(&faulty.table, fd, path, O_RDWR, &direct_fd, &err), &err);
    for (unsigned i = 0; i <= SLC_COUNT(refusals) + 1; i++) {
        uint64_t offset = (uint64_t)i * BYTES;

        memset(back, 0, BYTES);
        if (i < SLC_COUNT(refusals)) {
            slc_faulty_fail(&faulty, SLC_FAULTY_WRITE, direct_fd >= 0 ? 1 : 0, refusals[i]);
        } else if (i == SLC_COUNT(refusals)) {
            slc_faulty_shorten(&faulty, SLC_FAULTY_WRITE, 1, SLC_PAGE_BYTES + 7);
        }
        SLC_ASSERT_OK(
            slc_file_write_pages(&faulty.table, direct_fd, fd, path, data, BYTES, offset, &err),
            &err);
        if (i == SLC_COUNT(refusals)) {
            slc_faulty_shorten(&faulty, SLC_FAULTY_READ, 1, SLC_PAGE_BYTES + 7);
        }
        SLC_ASSERT_OK(slc_file_read_pages(&faulty.table, direct_fd, fd, path, back, BYTES - 100,
                                          offset, &err),
                      &err);
        CU_ASSERT(memcmp(data, back, BYTES - 100) == 0);
    }
    slc_faulty_fail(&faulty, SLC_FAULTY_WRITE, 1, EIO);
    SLC_ASSERT_FAILS(slc_file_write_pages(&faulty.table, direct_fd, fd, path, data, BYTES, 0, &err),
                     SLC_ERR_IO, &err, "writing");
    slc_error_clear(&err);
    slc_faulty_fail(&faulty, SLC_FAULTY_READ, 1, EIO);
    SLC_ASSERT_FAILS(slc_file_read_pages(&faulty.table, direct_fd, fd, path, back, BYTES, 0, &err),
                     SLC_ERR_IO, &err, "reading");
    slc_error_clear(&err);
    slc_faulty_fail(&faulty, SLC_FAULTY_STAT, 1, EIO);
    SLC_ASSERT_FAILS(slc_file_open_direct(&faulty.table, fd, path, O_RDWR, &(int){0}, &err),
                     SLC_ERR_IO, &err, "direct I/O");
    if (direct_fd >= 0) {
        CU_ASSERT_EQUAL(faulty.table.close(faulty.table.self, direct_fd), 0);
    }
    CU_ASSERT_EQUAL(faulty.table.close(faulty.table.self, fd), 0);
    CU_ASSERT_EQUAL(slc_faulty_open_count(&faulty), 0);
    free(data);
    free(back);
}

static void test_replace(void)
{
    const char *folder = slc_test_folder();
    const char *path = path_in(folder, "manifest");
    const char *temporary = path_in(folder, "manifest.tmp");
    struct slc_faulty faulty;
    unsigned unharmed = 0;

    slc_faulty_init(&faulty);
    for (uint64_t k = 1;; k++) {
        struct slc_error err = SLC_ERROR_INIT;
        enum slc_status status;

        put_file(path, "old", 3);
        slc_faulty_fail(&faulty, SLC_FAULTY_ANY, k, EIO);
        status = slc_file_replace(&faulty.table, path, "newer", 5, &err);
        CU_ASSERT_EQUAL(slc_faulty_open_count(&faulty), 0);
        CU_ASSERT(!exists(temporary));
        if (!slc_faulty_fired(&faulty)) {
            SLC_ASSERT_OK(status, &err);
            CU_ASSERT(file_holds(path, "newer", 5));
            break;
        }
        /* Failing to close the descriptor used only for the lock does not affect the file. */
        CU_ASSERT(
            (status == SLC_ERR_IO && err.status == SLC_ERR_IO && file_holds(path, "old", 3)) ||
            file_holds(path, "newer", 5));
        unharmed += status == SLC_OK;
    }
    CU_ASSERT_EQUAL(unharmed, 1);
    for (uint64_t k = 1; k <= 2; k++) {
        struct slc_error err = SLC_ERROR_INIT;

        slc_fault_arm(SLC_FAULT_ALLOCATION, k);
        SLC_ASSERT_FAILS(slc_file_replace(slc_files_system(), path, "x", 1, &err), SLC_ERR_MEMORY,
                         &err, NULL);
        slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
        CU_ASSERT(file_holds(path, "newer", 5));
    }
    /* On a full disk, writing fails. */
    {
        struct slc_error err = SLC_ERROR_INIT;

        slc_faulty_limit_room(&faulty, 2);
        SLC_ASSERT_FAILS(slc_file_replace(&faulty.table, path, "newest", 6, &err), SLC_ERR_NOSPACE,
                         &err, "writing");
        CU_ASSERT(file_holds(path, "newer", 5) && !exists(temporary));
    }
}

/* The second of two writers of one file is rejected, and does no harm. */
static void test_two_writers(void)
{
    const char *folder = slc_test_folder();
    const char *path = path_in(folder, "two");
    const char *temporary = path_in(folder, "two.tmp");
    struct slc_output first, second;
    struct slc_error err = SLC_ERROR_INIT;
    uint8_t *room;

    /* A temporary file as a killed run leaves it. */
    put_file(temporary, "longer than what will be written", 32);
    SLC_ASSERT_OK(slc_output_open(&first, slc_quick_files(), path, &err), &err);
    SLC_ASSERT_FAILS(slc_output_open(&second, slc_quick_files(), path, &err), SLC_ERR_IO, &err,
                     "another run is writing this output");
    CU_ASSERT_STRING_EQUAL(err.file, temporary);
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_file_replace(slc_quick_files(), path, "other", 5, &err), SLC_ERR_IO, &err,
                     "another run");
    slc_error_clear(&err);
    CU_ASSERT(exists(temporary));
    SLC_ASSERT_OK(slc_output_reserve(&first, 5, &room, &err), &err);
    memcpy(room, "first", 5);
    first.used += 5;
    SLC_ASSERT_OK(slc_output_commit(&first, &err), &err);
    CU_ASSERT(file_holds(path, "first", 5) && !exists(temporary));
    /* Two writers one after the other both succeed. */
    SLC_ASSERT_OK(slc_file_replace(slc_quick_files(), path, "other", 5, &err), &err);
    CU_ASSERT(file_holds(path, "other", 5) && !exists(temporary));
}

static void test_load(void)
{
    const char *folder = slc_test_folder();
    const char *path = path_in(folder, "loaded");
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_faulty faulty;
    void *data;
    uint64_t bytes;

    put_file(path, "", 0);
    CU_ASSERT(file_holds(path, "", 0));
    put_file(path, "four", 4);
    SLC_ASSERT_FAILS(slc_file_load(slc_files_system(), path, 3, &data, &bytes, &err),
                     SLC_ERR_UNSUPPORTED, &err, "4 bytes; at most 3");
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_file_load(slc_files_system(), folder, 3, &data, &bytes, &err),
                     SLC_ERR_FORMAT, &err, "plain file");
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(
        slc_file_load(slc_files_system(), path_in(folder, "none"), 3, &data, &bytes, &err),
        SLC_ERR_IO, &err, "opening");
    CU_ASSERT_EQUAL(err.system_errno, ENOENT);

    slc_faulty_init(&faulty);
    for (uint64_t k = 1;; k++) {
        enum slc_status status;

        slc_error_clear(&err);
        slc_faulty_fail(&faulty, SLC_FAULTY_ANY, k, EIO);
        status = slc_file_load(&faulty.table, path, 100, &data, &bytes, &err);
        CU_ASSERT_EQUAL(slc_faulty_open_count(&faulty), 0);
        if (status == SLC_OK) {
            /* A close that fails after reading harms nothing. */
            CU_ASSERT(bytes == 4 && memcmp(data, "four", 5) == 0);
            slc_free(data);
        }
        if (!slc_faulty_fired(&faulty)) {
            SLC_ASSERT_OK(status, &err);
            break;
        }
    }
    slc_error_clear(&err);
    slc_fault_arm(SLC_FAULT_ALLOCATION, 1);
    SLC_ASSERT_FAILS(slc_file_load(slc_files_system(), path, 100, &data, &bytes, &err),
                     SLC_ERR_MEMORY, &err, NULL);
    slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
}

static void test_remove(void)
{
    const struct slc_files *files = slc_files_system();
    char root[256];
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_faulty faulty;
    char name[64];

    (void)snprintf(root, sizeof root, "%s/root", slc_test_folder());
    SLC_ASSERT_OK(slc_folder_remove(files, root, &err), &err);
    slc_faulty_init(&faulty);
    for (uint64_t k = 1;; k++) {
        enum slc_status status;

        (void)files->make_folder(files->self, root);
        (void)files->make_folder(files->self, path_in(root, "labels"));
        for (unsigned i = 0; i < 5; i++) {
            (void)snprintf(name, sizeof name, "file-%u", i);
            put_file(path_in(root, name), "x", 1);
            put_file(path_in(path_in(root, "labels"), name), "x", 1);
        }
        CU_ASSERT(symlink("/etc/passwd", path_in(root, "link")) == 0);
        slc_error_clear(&err);
        slc_faulty_fail(&faulty, SLC_FAULTY_ANY, k, EIO);
        status = slc_folder_remove(&faulty.table, root, &err);
        if (!slc_faulty_fired(&faulty)) {
            SLC_ASSERT_OK(status, &err);
            CU_ASSERT(!exists(root));
            break;
        }
        CU_ASSERT(status == SLC_ERR_IO);
        slc_error_clear(&err);
        SLC_ASSERT_OK(slc_folder_remove(files, root, &err), &err);
        CU_ASSERT(!exists(root));
    }
    /* Two levels of subfolders are not a store: rejected, not followed. */
    (void)files->make_folder(files->self, root);
    (void)files->make_folder(files->self, path_in(root, "a"));
    (void)files->make_folder(files->self, path_in(path_in(root, "a"), "b"));
    put_file(path_in(path_in(path_in(root, "a"), "b"), "x"), "x", 1);
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_folder_remove(files, root, &err), SLC_ERR_IO, &err, "removing");
    CU_ASSERT(exists(path_in(path_in(path_in(root, "a"), "b"), "x")));
}

/* Pipes without another end, and links to foreign files, in the place of files. */
static void test_places(void)
{
    const struct slc_files *files = slc_files_system();
    const char *folder = slc_test_folder();
    const char *path = path_in(folder, "place");
    const char *temporary = path_in(folder, "place.tmp");
    const char *other = path_in(folder, "other");
    struct slc_error err = SLC_ERROR_INIT;
    void *data = NULL;
    uint64_t bytes;
    int fd;

    /* End the test if an operation waits for the other end. */
    (void)alarm(60);
    CU_ASSERT_EQUAL_FATAL(mkfifo(path, 0600), 0);
    SLC_ASSERT_FAILS(slc_file_load(files, path, 100, &data, &bytes, &err), SLC_ERR_FORMAT, &err,
                     "not a plain file");
    slc_error_clear(&err);
    CU_ASSERT_EQUAL_FATAL(mkfifo(temporary, 0600), 0);
    SLC_ASSERT_FAILS(slc_file_replace(files, path, "x", 1, &err), SLC_ERR_IO, &err, "creating");
    (void)alarm(0);

    put_file(other, "precious", 8);
    CU_ASSERT_EQUAL(files->unlink(files->self, temporary), 0);
    CU_ASSERT_EQUAL_FATAL(symlink(other, temporary), 0);
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_file_replace(files, path, "x", 1, &err), SLC_ERR_IO, &err, "creating");
    CU_ASSERT(file_holds(other, "precious", 8));
    CU_ASSERT_EQUAL(files->unlink(files->self, temporary), 0);

    /* Readers that have it open wait as usual. */
    fd = files->open(files->self, other, O_RDONLY | SLC_OPEN_PLAIN, 0);
    CU_ASSERT_FATAL(fd >= 0);
    CU_ASSERT_EQUAL(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
    CU_ASSERT_EQUAL(files->close(files->self, fd), 0);
}

static void test_join(void)
{
    static const char *const cases[][3] = {
        {"a", "b", "a/b"}, {"a/", "b", "a/b"}, {"", "b", "b"}, {"/", "b", "/b"}, {".", "b", "./b"},
    };

    for (size_t i = 0; i < SLC_COUNT(cases); i++) {
        char *joined = slc_path_join(cases[i][0], cases[i][1]);

        CU_ASSERT_STRING_EQUAL(joined, cases[i][2]);
        slc_free(joined);
    }
    slc_fault_arm(SLC_FAULT_ALLOCATION, 1);
    CU_ASSERT_PTR_NULL(slc_path_join("a", "b"));
    slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
}

static const struct slc_test tests[] = {
    {"the operating system's table", test_system_table},
    {"renaming never replaces a folder", test_rename_keeps_folders},
    {"names are exchanged", test_exchange},
    {"whole transfers", test_whole_transfers},
    {"transfers of whole pages", test_page_transfers},
    {"replacing a file", test_replace},
    {"two runs that write one file", test_two_writers},
    {"loading a file", test_load},
    {"removing a folder", test_remove},
    {"pipes and links in the place of files", test_places},
    {"joining paths", test_join},
};

SLC_SUITE(files)
{
    return slc_test_main("files", tests, SLC_COUNT(tests), argc, argv);
}
