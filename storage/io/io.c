/* Opens files for block reads and passes requests to the selected implementation.
 *
 * Decides once whether to use direct I/O. statx reports support; if it reports nothing (Linux
 * before 6.1), one aligned direct read has to succeed, because an open with O_DIRECT may succeed
 * without support. Without direct I/O, reads use the page cache and drop their pages at once, so a
 * stream stays within its budget with and without direct I/O.
 *
 * A short read is continued where it stopped. Direct I/O needs whole pages, so the rest of a read
 * that stopped inside a page uses a second, buffered descriptor. */
#include "storage/io/io.h"

#include "base/memory/checked.h"
#include "base/topology/placement.h"
#include "storage/file/block_file.h"
#include "storage/io/io_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    /* Maximum number of slots: far more reads in flight than any drive benefits from, and below the
     * kernel's limit on the entries of one io_uring. */
    MAX_SLOTS = 4096,
    /* Number of consecutive interruptions without progress after which a read fails. */
    MAX_INTERRUPTIONS = 1000
};

static const char *const kind_names[] = {
    [SLC_IO_AUTO] = "auto",
    [SLC_IO_URING] = "uring",
    [SLC_IO_PREAD] = "pread",
    [SLC_IO_MMAP] = "mmap",
};

const char *slc_io_name(enum slc_io_kind kind)
{
    return (unsigned)kind < sizeof kind_names / sizeof kind_names[0] ? kind_names[kind] : "?";
}

bool slc_io_parse(const char *name, enum slc_io_kind *kind)
{
    for (unsigned k = 0; k < sizeof kind_names / sizeof kind_names[0]; k++) {
        if (strcmp(name, kind_names[k]) == 0) {
            *kind = (enum slc_io_kind)k;
            return true;
        }
    }
    return false;
}

void slc_io_note(struct slc_io *io, const char *format, ...)
{
    size_t used = strlen(io->stats.note);
    va_list args;

    if (used > 0 && used + 2 < sizeof io->stats.note) {
        memcpy(io->stats.note + used, "; ", 3);
        used += 2;
    }
    va_start(args, format);
    (void)vsnprintf(io->stats.note + used, sizeof io->stats.note - used, format, args);
    va_end(args);
}

void slc_io_fail_request(const struct slc_io *io,
                         struct slc_io_request *request,
                         int system_errno,
                         uint64_t done)
{
    const struct slc_io_place place = slc_io_place(io, request, done);

    request->status = slc_fail_errno(&request->error, system_errno, place.file->path,
                                     "reading %" PRIu64 " bytes", request->bytes);
    slc_error_locate_block(&request->error, place.file->path, SLC_NOWHERE, place.offset);
    request->data = NULL;
}

void slc_io_drop_behind(const struct slc_io *io, const struct slc_io_request *request)
{
    for (uint64_t done = 0; done < request->bytes;) {
        const struct slc_io_place place = slc_io_place(io, request, done);

        if (!place.file->direct) {
            /* This call is only advice: a failure leaves pages in the page cache. */
            (void)io->files->advise_file(io->files->self, place.file->fd, place.offset, place.bytes,
                                         POSIX_FADV_DONTNEED);
        }
        done += place.bytes;
    }
}

bool slc_io_advance(const struct slc_io *io,
                    struct slc_io_request *request,
                    struct slc_io_progress *progress,
                    const void *data,
                    int64_t result)
{
    const struct slc_io_place place = slc_io_place(io, request, progress->done);

    if ((result == -EINTR || result == -EAGAIN) && ++progress->interruptions < MAX_INTERRUPTIONS) {
        return false;
    }
    if (result < 0) {
        slc_io_fail_request(io, request, (int)-result, progress->done);
        return true;
    }
    if (result == 0) {
        request->status = slc_fail(
            &request->error, SLC_ERR_DAMAGED,
            "the file ends at byte %" PRIu64 ", but %" PRIu64
            " more bytes should follow: it was truncated; restore the file or convert it again",
            place.offset, place.bytes);
        slc_error_locate_block(&request->error, place.file->path, SLC_NOWHERE, place.offset);
        request->data = NULL;
        return true;
    }
    progress->interruptions = 0;
    progress->done += slc_min_u64((uint64_t)result, place.bytes);
    if (progress->done < request->bytes) {
        return false;
    }
    request->status = SLC_OK;
    request->data = data;
    if (io->kind != SLC_IO_MMAP) {
        slc_io_drop_behind(io, request);
    }
    return true;
}

static enum slc_status check_options(const struct slc_io_options *options, struct slc_error *err)
{
    if (options->file_count == 0) {
        return slc_fail(err, SLC_ERR_USAGE, "no file to read blocks from");
    }
    if (options->slot_count == 0 || options->slot_count > MAX_SLOTS) {
        return slc_fail(err, SLC_ERR_USAGE, "%u slots for reading; expected 1 to %d",
                        options->slot_count, (int)MAX_SLOTS);
    }
    if (options->slot_bytes == 0 || options->slot_bytes % SLC_PAGE_BYTES != 0 ||
        options->slot_bytes > SLC_MAX_BLOCK_BYTES) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "slots of %" PRIu64 " bytes; expected a multiple of %d up to %" PRIu64,
                        options->slot_bytes, (int)SLC_PAGE_BYTES, SLC_MAX_BLOCK_BYTES);
    }
    return SLC_OK;
}

/* True if `stat` does not rule out direct I/O; otherwise notes the reason. */
static bool direct_is_offered(struct slc_io *io, const struct slc_file_stat *stat)
{
    if (!stat->direct_known) {
        return true;
    }
    if (stat->direct_memory_align == 0 || stat->direct_offset_align == 0) {
        slc_io_note(io, "no direct I/O on this file system");
        return false;
    }
    if (stat->direct_memory_align > SLC_PAGE_BYTES || stat->direct_offset_align > SLC_PAGE_BYTES) {
        slc_io_note(io, "no direct I/O: it needs memory alignment %u and offset alignment %u",
                    stat->direct_memory_align, stat->direct_offset_align);
        return false;
    }
    return true;
}

/* Opens a second descriptor with O_DIRECT if direct I/O is supported. If the system refuses, reads
 * stay buffered. */
static enum slc_status
open_direct(struct slc_io *io, struct slc_io_file *file, struct slc_error *err)
{
    struct slc_file_stat stat;
    int fd, rc = io->files->stat_fd(io->files->self, file->buffered_fd, &stat);

    SLC_TRY(slc_check_call(rc, err, file->path, "getting the size of the file"));
    if (!direct_is_offered(io, &stat)) {
        return SLC_OK;
    }
    fd = io->files->open_again(io->files->self, file->buffered_fd,
                               O_RDONLY | O_DIRECT | SLC_OPEN_PLAIN);
    if (fd < 0) {
        slc_io_note(io, "no direct I/O: %s", strerror(-fd));
        return SLC_OK;
    }
    if (!stat.direct_known && stat.bytes > 0) {
        int64_t got = io->files->read_at(io->files->self, fd, io->slots.data, SLC_PAGE_BYTES, 0);
        if (got < 0) {
            (void)io->files->close(io->files->self, fd);
            slc_io_note(io, "no direct I/O: %s", strerror((int)-got));
            return SLC_OK;
        }
    }
    file->fd = fd;
    file->direct = true;
    return SLC_OK;
}

/* Opens a block file for buffered reads. The file or its stripes become open files of `io`. */
static enum slc_status open_source(struct slc_io *io, const char *path, struct slc_error *err)
{
    struct slc_io_source *source = &io->sources[io->source_count];
    struct slc_block_file file = SLC_BLOCK_FILE_INIT;
    enum slc_status status = slc_block_file_open(io->files, path, "opening the file", &file, err);

    SLC_TRY(status);
    if (io->kind == SLC_IO_MMAP && file.part_count > 1) {
        slc_block_file_close(&file);
        status = slc_fail_field(err, SLC_ERR_UNSUPPORTED, SLC_FIELD_IO,
                                "a layout in several stripes cannot be mapped: use uring or pread");
        slc_error_locate_file(err, path);
        return status;
    }
    struct slc_io_file *opened = slc_calloc(io->file_count + file.part_count, sizeof *opened);
    if (opened == NULL) {
        slc_block_file_close(&file);
        return slc_fail(err, SLC_ERR_MEMORY, "no memory for a block reader");
    }
    if (io->file_count > 0) {
        memcpy(opened, io->opened, io->file_count * sizeof *opened);
    }
    slc_free(io->opened);
    io->opened = opened;
    *source = (struct slc_io_source){io->file_count, file.part_count, file.shape};
    io->source_count++;
    for (unsigned k = 0; k < file.part_count; k++) {
        /* `io` now owns the path and the descriptor. */
        io->opened[io->file_count++] = (struct slc_io_file){
            .path = file.parts[k].path, .fd = file.parts[k].fd, .buffered_fd = file.parts[k].fd};
    }
    return SLC_OK;
}

/* Opens all files, with O_DIRECT if `direct` is set. */
static enum slc_status
open_files(struct slc_io *io, const struct slc_io_options *options, struct slc_error *err)
{
    const bool direct = options->direct && io->kind != SLC_IO_MMAP;
    enum slc_status status = SLC_OK;

    io->stats.direct = direct;
    for (unsigned f = 0; f < options->file_count && status == SLC_OK; f++) {
        const unsigned first = io->file_count;

        status = open_source(io, options->paths[f], err);
        for (unsigned k = first; k < io->file_count && status == SLC_OK && direct; k++) {
            status = open_direct(io, &io->opened[k], err);
            io->stats.direct = io->stats.direct && io->opened[k].direct;
        }
    }
    return status;
}

/* Starts the implementation. AUTO selects io_uring for direct reads if the kernel allows it. */
static enum slc_status start_backend(struct slc_io *io, struct slc_error *err)
{
    struct slc_error refused = SLC_ERROR_INIT;
    enum slc_status status;

    switch (io->kind) {
    case SLC_IO_URING:
        return slc_io_uring_open(io, err);
    case SLC_IO_MMAP:
        return slc_io_mmap_open(io, err);
    case SLC_IO_AUTO:
        /* Use io_uring only for direct I/O: io_uring performs buffered reads in kernel threads that
         * block, which are no faster than pread threads. */
        if (io->stats.direct) {
            io->kind = SLC_IO_URING;
            io->may_use_pread = true;
            status = slc_io_uring_open(io, &refused);
            if (status == SLC_OK) {
                return SLC_OK;
            }
            if (status != SLC_ERR_UNSUPPORTED) {
                return slc_fail(err, status, "%s", refused.message);
            }
            /* Omit the text after the semicolon: it is advice for users who requested io_uring. */
            slc_io_note(io, "reading by pread threads: %.*s", (int)strcspn(refused.message, ";"),
                        refused.message);
        }
        break;
    case SLC_IO_PREAD:
        break;
    }
    io->kind = SLC_IO_PREAD;
    return slc_io_pread_open(io, err);
}

static void close_files(struct slc_io *io)
{
    for (unsigned f = 0; f < io->file_count; f++) {
        struct slc_io_file *file = &io->opened[f];

        if (file->fd >= 0 && file->fd != file->buffered_fd) {
            (void)io->files->close(io->files->self, file->fd);
        }
        if (file->buffered_fd >= 0) {
            (void)io->files->close(io->files->self, file->buffered_fd);
        }
        slc_free(file->path);
    }
    slc_free(io->opened);
    slc_free(io->sources);
}

enum slc_status slc_io_open(enum slc_io_kind kind,
                            const struct slc_io_options *options,
                            struct slc_io **result,
                            struct slc_error *err)
{
    struct slc_io *io = NULL;
    enum slc_status status = check_options(options, err);

    SLC_TRY(status);
    io = slc_calloc(1, sizeof *io);
    if (io == NULL ||
        (io->sources = slc_calloc(options->file_count, sizeof *io->sources)) == NULL) {
        slc_free(io);
        return slc_fail(err, SLC_ERR_MEMORY, "no memory for a block reader");
    }
    io->kind = kind;
    io->files = slc_files_or_system(options->files);
    io->slot_count = options->slot_count;
    io->slot_bytes = options->slot_bytes;
    io->threads = options->threads;
    if (kind != SLC_IO_MMAP) {
        status = slc_buffer_create(&io->slots, (size_t)(io->slot_count * io->slot_bytes),
                                   SLC_PAGES_MIXED, err);
    }
    if (status == SLC_OK) {
        /* Any worker may use any slot: spread slots over memory nodes before pages are touched. */
        slc_buffer_spread(&io->slots);
        status = open_files(io, options, err);
    }
    SLC_THEN(status, start_backend(io, err));
    if (status != SLC_OK) {
        slc_io_close(io);
        return status;
    }
    *result = io;
    return SLC_OK;
}

enum slc_status
slc_io_submit(struct slc_io *io, struct slc_io_request *request, struct slc_error *err)
{
    if (request->file >= io->source_count || request->slot >= io->slot_count ||
        request->bytes == 0 || request->bytes > io->slot_bytes ||
        request->bytes % SLC_PAGE_BYTES != 0 || request->offset % SLC_PAGE_BYTES != 0 ||
        request->offset > INT64_MAX - request->bytes) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "invalid read of %" PRIu64 " bytes at offset %" PRIu64
                        " of file %u of %u into slot %u of %u slots of %" PRIu64 " bytes",
                        request->bytes, request->offset, request->file, io->source_count,
                        request->slot, io->slot_count, io->slot_bytes);
    }
    request->data = NULL;
    request->status = SLC_OK;
    slc_error_clear(&request->error);
    SLC_TRY(io->ops->submit(io, request, err));
    io->in_flight++;
    return SLC_OK;
}

enum slc_status
slc_io_wait(struct slc_io *io, struct slc_io_request **request, struct slc_error *err)
{
    if (io->in_flight == 0) {
        return slc_fail(err, SLC_ERR_USAGE, "waiting for a read while none is in flight");
    }
    SLC_TRY(io->ops->wait(io, request, err));
    io->in_flight--;
    if ((*request)->status == SLC_OK) {
        io->stats.reads++;
        io->stats.bytes += (*request)->bytes;
    }
    return SLC_OK;
}

void slc_io_release(struct slc_io *io, struct slc_io_request *request)
{
    const struct slc_io_ops *ops = io->ops;

    if (ops->release != NULL) {
        ops->release(io, request);
    }
    request->data = NULL;
}

enum slc_status
slc_io_check(const struct slc_io *io, const struct slc_io_request *request, struct slc_error *err)
{
    const struct slc_io_ops *ops = io->ops;

    return ops->check == NULL ? SLC_OK : ops->check(io, request, err);
}

void *slc_io_slots(const struct slc_io *io, uint64_t *bytes)
{
    *bytes = io->slots.bytes;
    return io->slots.data;
}

enum slc_io_kind slc_io_kind(const struct slc_io *io)
{
    return io->kind;
}

void slc_io_stats(const struct slc_io *io, struct slc_io_stats *stats)
{
    *stats = io->stats;
}

void slc_io_close(struct slc_io *io)
{
    if (io == NULL) {
        return;
    }
    if (io->ops != NULL) {
        io->ops->close(io);
    }
    close_files(io);
    slc_buffer_destroy(&io->slots);
    slc_free(io);
}
