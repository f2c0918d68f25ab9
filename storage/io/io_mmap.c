/* Reads blocks through a memory map, with one window of the file per slot.
 *
 * Submit maps the range of the block and requests it with MADV_WILLNEED, so that up to slot_count
 * ranges are read ahead. Wait makes the pages of the oldest range resident. Release drops and
 * unmaps the pages. The windows slide over files of any size and keep at most slot_count *
 * slot_bytes resident.
 *
 * A page that cannot be read (a bad sector, a truncated file) would raise SIGBUS at first touch.
 * MADV_POPULATE_READ (Linux 5.14) returns an error instead; if the call fails or is missing, one
 * byte of every page is read through the table of file operations. This finds the position and the
 * cause of the failure, and leaves the pages in the cache. If a file is truncated later, while its
 * pages are in use, storage/io/map_guard.h turns the pages into zeros and mmap_check reports it.
 * mmap_check also reports a file that was changed since the range was mapped, because the data that
 * was used may differ from the data that was verified.
 *
 * The system's pages may be larger (16 or 64 KiB on Arm) than the pages of the file. A map then
 * starts at the system page that contains the first byte, and a truncation inside the last page is
 * detected only by the file size, because the rest of the page reads as zeros.
 *
 * Opening refuses files in several stripes, so a range is contiguous. */
#include "storage/io/io_impl.h"

#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "storage/io/map_guard.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/mman.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22 /* Linux 5.14; missing from older C libraries */
#endif

/* The kernel limits each MADV_WILLNEED to the drive's read-ahead, 128 KiB by default, so a range
 * needs several calls. */
#define READ_AHEAD_BYTES (UINT64_C(128) << 10)

struct window {
    struct slc_io_request *request;
    void *address; /* NULL if not mapped */
    uint64_t bytes;
    uint64_t lead;       /* bytes of the map before the first byte of the request */
    int64_t modified_ns; /* modification time of the file when it was mapped */
};

struct mmap_backend {
    struct window *windows;           /* one per slot */
    struct slc_guarded_range *ranges; /* the maps of the windows, for the guard */
    unsigned *order; /* slots in order of submission, a queue of in_flight entries */
    unsigned head;
};

static struct slc_guarded_range *range_of(const struct slc_io *io, const struct window *window)
{
    const struct mmap_backend *mmap = io->backend;

    return &mmap->ranges[window - mmap->windows];
}

static void window_drop(const struct slc_io *io, struct window *window)
{
    if (window->address != NULL) {
        atomic_store(&range_of(io, window)->begin, 0);
        (void)io->files->advise(io->files->self, window->address, window->bytes, MADV_DONTNEED);
        (void)io->files->unmap(io->files->self, window->address, window->bytes);
        window->address = NULL;
    }
}

/* Returns how many bytes of the request, not counting its first `done` bytes, the file still has,
 * or a negated errno. Also sets *modified_ns to the modification time of the file. */
static int64_t bytes_left(const struct slc_io *io,
                          const struct slc_io_request *request,
                          uint64_t done,
                          int64_t *modified_ns)
{
    const struct slc_io_place place = slc_io_place(io, request, done);
    const uint64_t from = place.offset;
    struct slc_file_stat stat;
    int rc = io->files->stat_fd(io->files->self, place.file->fd, &stat);

    if (rc < 0) {
        return rc;
    }
    *modified_ns = stat.modified_ns;
    return stat.bytes > from ? (int64_t)slc_min_u64(stat.bytes - from, request->bytes - done) : 0;
}

/* Maps the range of the window's request. If this fails, the completed request has the error. */
static void window_map(const struct slc_io *io, struct window *window)
{
    struct slc_io_request *request = window->request;
    struct slc_guarded_range *range = range_of(io, window);
    const struct slc_io_place place = slc_io_place(io, request, 0);
    const int64_t left = bytes_left(io, request, 0, &window->modified_ns);

    if (left < 0) {
        slc_io_fail_request(io, request, (int)-left, 0);
        return;
    }
    if ((uint64_t)left < request->bytes) {
        struct slc_io_progress progress = {(uint64_t)left, 0};

        (void)slc_io_advance(io, request, &progress, NULL, 0);
        return;
    }
    window->lead = place.offset % slc_memory_page_bytes();
    window->bytes = window->lead + request->bytes;
    int rc = io->files->map(io->files->self, place.file->fd, window->bytes,
                            place.offset - window->lead, &window->address);
    if (rc < 0) {
        window->address = NULL;
        slc_io_fail_request(io, request, -rc, 0);
        return;
    }
    atomic_store(&range->faulted, false);
    atomic_store(&range->bytes, window->bytes);
    atomic_store(&range->begin, (uintptr_t)window->address);
    for (uint64_t at = 0; at < window->bytes; at += READ_AHEAD_BYTES) {
        (void)io->files->advise(io->files->self, (char *)window->address + at,
                                slc_min_u64(READ_AHEAD_BYTES, window->bytes - at), MADV_WILLNEED);
    }
}

/* Reads a byte of every page of the request after its first `done` bytes. Returns the size of this
 * rest of the request, or less if the file ends, or a negated errno. */
static int64_t
touch_pages(const struct slc_io *io, const struct slc_io_request *request, uint64_t done)
{
    const struct slc_io_place place = slc_io_place(io, request, 0);
    uint64_t at = done - done % SLC_PAGE_BYTES;

    for (; at < request->bytes; at += SLC_PAGE_BYTES) {
        char byte;
        int64_t got =
            io->files->read_at(io->files->self, place.file->fd, &byte, 1, place.offset + at);

        if (got <= 0) {
            /* Return the readable bytes first; the next call returns the error. */
            return at > done ? (int64_t)(at - done) : got;
        }
    }
    return (int64_t)(request->bytes - done);
}

static int64_t make_resident(const struct slc_io *io, const struct window *window, uint64_t done)
{
    const struct slc_io_request *request = window->request;
    const struct slc_io_place place = slc_io_place(io, request, done);
    const uint64_t at = window->lead + done, from = at - at % slc_memory_page_bytes();
    int64_t result, modified_ns;

    if (io->files->advise(io->files->self, (char *)window->address + from, window->bytes - from,
                          MADV_POPULATE_READ) < 0) {
        result = touch_pages(io, request, done);
    } else {
        /* MADV_POPULATE_READ also succeeds if the file ends inside a page, or if an emulator
         * ignores the call. */
        result = bytes_left(io, request, done, &modified_ns);
    }
    return slc_io_completed(io, &place, result);
}

static enum slc_status
mmap_submit(struct slc_io *io, struct slc_io_request *request, struct slc_error *err)
{
    struct mmap_backend *mmap = io->backend;
    struct window *window = &mmap->windows[request->slot];

    (void)err;
    window_drop(io, window);
    window->request = request;
    mmap->order[(mmap->head + io->in_flight) % io->slot_count] = request->slot;
    window_map(io, window);
    return SLC_OK;
}

static enum slc_status
mmap_wait(struct slc_io *io, struct slc_io_request **result, struct slc_error *err)
{
    struct mmap_backend *mmap = io->backend;
    struct window *window = &mmap->windows[mmap->order[mmap->head]];
    struct slc_io_request *request = window->request;
    struct slc_io_progress progress = {0, 0};

    (void)err;
    mmap->head = (mmap->head + 1) % io->slot_count;
    if (request->status == SLC_OK) {
        const char *data = (const char *)window->address + window->lead;

        while (!slc_io_advance(io, request, &progress, data,
                               make_resident(io, window, progress.done))) {
        }
    }
    if (request->status != SLC_OK) {
        window_drop(io, window);
    }
    *result = request;
    return SLC_OK;
}

static void mmap_release(struct slc_io *io, struct slc_io_request *request)
{
    struct mmap_backend *mmap = io->backend;

    window_drop(io, &mmap->windows[request->slot]);
    slc_io_drop_behind(io, request);
}

static enum slc_status
mmap_check(const struct slc_io *io, const struct slc_io_request *request, struct slc_error *err)
{
    const struct mmap_backend *mmap = io->backend;
    const struct slc_io_place place = slc_io_place(io, request, 0);
    int64_t modified_ns = mmap->windows[request->slot].modified_ns;
    const int64_t left = bytes_left(io, request, 0, &modified_ns);
    enum slc_status status;

    if (left >= 0 && (uint64_t)left < request->bytes) {
        status = slc_fail(
            err, SLC_ERR_DAMAGED,
            "the part mapped at bytes %" PRIu64 " to %" PRIu64 " now has only %" PRId64
            " bytes: the file was truncated while in use; restore the file or convert it again",
            place.offset, place.offset + request->bytes, left);
    } else if (modified_ns != mmap->windows[request->slot].modified_ns) {
        status =
            slc_fail_field(err, SLC_ERR_IO, SLC_FIELD_IO,
                           "the file was changed while its bytes %" PRIu64 " to %" PRIu64
                           " were mapped and in use, so the data read may mix old and new: run the "
                           "command again when the file no longer changes, or read it with pread",
                           place.offset, place.offset + request->bytes);
    } else if (!atomic_load(&mmap->ranges[request->slot].faulted)) {
        return SLC_OK;
    } else {
        status = slc_fail_errno(err, EIO, place.file->path, "reading a mapped part of the file");
    }
    slc_error_locate_block(err, place.file->path, SLC_NOWHERE, place.offset);
    return status;
}

static void mmap_close(struct slc_io *io)
{
    struct mmap_backend *mmap = io->backend;

    if (mmap->windows != NULL && mmap->ranges != NULL) {
        for (unsigned slot = 0; slot < io->slot_count; slot++) {
            window_drop(io, &mmap->windows[slot]);
        }
    }
    slc_map_guard_remove(mmap->ranges);
    slc_free(mmap->windows);
    slc_free(mmap->ranges);
    slc_free(mmap->order);
    slc_free(mmap);
    io->backend = NULL;
}

enum slc_status slc_io_mmap_open(struct slc_io *io, struct slc_error *err)
{
    static const struct slc_io_ops ops = {mmap_submit, mmap_wait, mmap_release, mmap_check,
                                          mmap_close};
    struct mmap_backend *mmap = slc_calloc(1, sizeof *mmap);

    SLC_TRY(slc_check_memory(mmap != NULL, err, "for the windows of a memory map"));
    io->backend = mmap;
    io->ops = &ops;
    mmap->windows = slc_calloc(io->slot_count, sizeof *mmap->windows);
    mmap->ranges = slc_calloc(io->slot_count, sizeof *mmap->ranges);
    mmap->order = slc_calloc(io->slot_count, sizeof *mmap->order);
    SLC_TRY(slc_check_memory(mmap->windows != NULL && mmap->ranges != NULL && mmap->order != NULL,
                             err, "for the windows of a memory map"));
    return slc_map_guard_add(mmap->ranges, io->slot_count, err);
}
