/* Transfers whole pages with direct I/O, and falls back to the page cache: a short direct transfer
 * may end at an unaligned offset, and a file system may refuse direct I/O although it reported
 * support. */
#include "storage/file/files.h"

#include "base/memory/limits.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>

static bool in_whole_pages(const struct slc_file_stat *stat)
{
    return stat->direct_known && stat->direct_memory_align > 0 &&
           stat->direct_memory_align <= SLC_PAGE_BYTES && stat->direct_offset_align > 0 &&
           stat->direct_offset_align <= SLC_PAGE_BYTES;
}

enum slc_status slc_file_open_direct(const struct slc_files *files,
                                     int fd,
                                     const char *path,
                                     int flags,
                                     int *direct_fd,
                                     struct slc_error *err)
{
    struct slc_file_stat stat;
    int result = files->stat_fd(files->self, fd, &stat);

    *direct_fd = -1;
    SLC_TRY(slc_check_call(result, err, path, "querying direct I/O support"));
    if (!in_whole_pages(&stat)) {
        return SLC_OK;
    }
    result = files->open_again(files->self, fd, flags | O_DIRECT | SLC_OPEN_PLAIN);
    if (result >= 0) {
        *direct_fd = result;
    } else if (result != -EINVAL && result != -ENOENT) {
        return slc_fail_errno(err, -result, path, "opening for direct I/O");
    }
    return SLC_OK;
}

/* True if `result` of a direct transfer means that the rest of the transfer should be tried through
 * the page cache. */
static bool worth_repeating(int64_t result)
{
    return result >= 0 || result == -EINVAL || result == -EINTR || result == -EAGAIN;
}

static uint64_t whole_pages(int64_t result)
{
    return result > 0 ? (uint64_t)result & ~(uint64_t)(SLC_PAGE_BYTES - 1) : 0;
}

static bool in_pages(const void *data, uint64_t offset)
{
    return (uintptr_t)data % SLC_PAGE_BYTES == 0 && offset % SLC_PAGE_BYTES == 0;
}

enum slc_status slc_file_write_pages(const struct slc_files *files,
                                     int direct_fd,
                                     int fd,
                                     const char *path,
                                     const void *data,
                                     uint64_t bytes,
                                     uint64_t offset,
                                     struct slc_error *err)
{
    int64_t written = 0;

    assert(in_pages(data, offset) && bytes % SLC_PAGE_BYTES == 0);
    if (direct_fd >= 0) {
        written = files->write_at(files->self, direct_fd, data, bytes, offset);
        if (!worth_repeating(written)) {
            enum slc_status status =
                slc_fail_errno(err, (int)-written, path, "writing %ju bytes", (uintmax_t)bytes);

            slc_error_locate_block(err, path, SLC_NOWHERE, offset);
            return status;
        }
    }
    uint64_t done = whole_pages(written);
    return slc_file_write_at(files, fd, path, (const char *)data + done, bytes - done,
                             offset + done, err);
}

enum slc_status slc_file_read_pages(const struct slc_files *files,
                                    int direct_fd,
                                    int fd,
                                    const char *path,
                                    void *data,
                                    uint64_t bytes,
                                    uint64_t offset,
                                    struct slc_error *err)
{
    uint64_t pages = (bytes + SLC_PAGE_BYTES - 1) & ~(uint64_t)(SLC_PAGE_BYTES - 1);
    int64_t got = 0;

    assert(in_pages(data, offset));
    if (direct_fd >= 0) {
        got = files->read_at(files->self, direct_fd, data, pages, offset);
        if (!worth_repeating(got)) {
            enum slc_status status =
                slc_fail_errno(err, (int)-got, path, "reading %ju bytes", (uintmax_t)bytes);

            slc_error_locate_block(err, path, SLC_NOWHERE, offset);
            return status;
        }
        if (got > 0 && (uint64_t)got >= bytes) {
            return SLC_OK;
        }
    }
    uint64_t done = whole_pages(got);
    return slc_file_read_at(files, fd, path, (char *)data + done, bytes - done, offset + done, err);
}
