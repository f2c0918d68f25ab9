/*
 * What the three block readers share: the open files, the slots, and the one place that decides
 * what the result of a transfer means. Private to storage/io*.c.
 */
#ifndef SLC_STORAGE_IO_IMPL_H
#define SLC_STORAGE_IO_IMPL_H

#include "base/memory/limits.h"
#include "base/memory/memory.h"
#include "storage/file/stripes.h"
#include "storage/io/io.h"

struct slc_io_ops {
    enum slc_status (*submit)(struct slc_io *io,
                              struct slc_io_request *request,
                              struct slc_error *err);
    enum slc_status (*wait)(struct slc_io *io,
                            struct slc_io_request **request,
                            struct slc_error *err);
    /* As slc_io_release; NULL where nothing is to be done. */
    void (*release)(struct slc_io *io, struct slc_io_request *request);
    /* As slc_io_check; NULL where data once read cannot change. */
    enum slc_status (*check)(const struct slc_io *io,
                             const struct slc_io_request *request,
                             struct slc_error *err);
    /* Ends what is in flight and frees `backend`; the file and the slots are closed after it. */
    void (*close)(struct slc_io *io);
};

/* One open file on a drive: a block file, or a stripe of one. */
struct slc_io_file {
    char *path;
    int fd;          /* of transfers at page-aligned offsets; O_DIRECT where `direct` */
    int buffered_fd; /* of all others: the rest of a short read; equal to fd unless `direct` */
    bool direct;
};

/* A block file: one of the open files, or stripes of it, one after another. */
struct slc_io_source {
    unsigned first; /* of the open files */
    unsigned count;
    struct slc_stripe_shape shape; /* count 0: not in stripes */
};

struct slc_io {
    const struct slc_io_ops *ops;
    enum slc_io_kind kind;
    void *backend; /* the implementation's own state */
    const struct slc_files *files;
    struct slc_io_source *sources; /* as requests number them */
    unsigned source_count;
    struct slc_io_file *opened;
    unsigned file_count;
    unsigned slot_count;
    uint64_t slot_bytes;
    unsigned threads;
    struct slc_buffer slots; /* empty for mmap */
    unsigned in_flight;
    struct slc_io_stats stats;
};

/* How far one request has come. */
struct slc_io_progress {
    uint64_t done;
    unsigned interruptions; /* in a row, without progress */
};

static inline void *slc_io_slot(const struct slc_io *io, unsigned slot)
{
    return (char *)io->slots.data + (uint64_t)slot * io->slot_bytes;
}

/* Where a part of a request lies. */
struct slc_io_place {
    const struct slc_io_file *file;
    unsigned number; /* of the open file */
    uint64_t offset; /* in it */
    uint64_t bytes;  /* of the request from there on, as far as they lie in this file */
};

/* Where the rest of a request lies, of which `done` bytes are there. */
static inline struct slc_io_place
slc_io_place(const struct slc_io *io, const struct slc_io_request *request, uint64_t done)
{
    const struct slc_io_source *source = &io->sources[request->file];
    struct slc_io_place place = {
        .number = source->first, .offset = request->offset + done, .bytes = request->bytes - done};

    if (source->shape.count > 0) {
        unsigned stripe;
        const uint64_t most =
            slc_stripe_place(&source->shape, request->offset + done, &stripe, &place.offset);

        place.number += stripe;
        place.bytes = place.bytes < most ? place.bytes : most;
    }
    place.file = &io->opened[place.number];
    return place;
}

/* Whether the next transfer at `offset` is a direct one: direct I/O takes whole pages only. */
static inline bool slc_io_whole_pages(uint64_t offset)
{
    return offset % SLC_PAGE_BYTES == 0;
}

static inline int slc_io_fd_at(const struct slc_io_file *file, uint64_t offset)
{
    return slc_io_whole_pages(offset) ? file->fd : file->buffered_fd;
}

/*
 * Takes the result (bytes or negated errno) of the transfer at progress->done. True when the
 * request is complete, with status, error and (for SLC_OK) `data` set; false when the rest, from
 * progress->done on, has to be asked for. What was read into a slot is dropped behind at once.
 * Threads: any, each on its own request.
 */
bool slc_io_advance(const struct slc_io *io,
                    struct slc_io_request *request,
                    struct slc_io_progress *progress,
                    const void *data,
                    int64_t result);

/* Ends a request with a failed system call behind `done` bytes of it. */
void slc_io_fail_request(const struct slc_io *io,
                         struct slc_io_request *request,
                         int system_errno,
                         uint64_t done);

/* Where reads go through the page cache: drops what this request left there. */
void slc_io_drop_behind(const struct slc_io *io, const struct slc_io_request *request);

/* The result to use of a transfer at `place` that went to the kernel past the table of files. */
static inline int64_t
slc_io_completed(const struct slc_io *io, const struct slc_io_place *place, int64_t result)
{
    return io->files->completed == NULL ? result
                                        : io->files->completed(io->files->self, place->file->fd,
                                                               place->offset, place->bytes, result);
}

/* Adds a sentence to the note of the statistics. */
void slc_io_note(struct slc_io *io, const char *format, ...) SLC_PRINTF(2, 3);

/* The implementations: each fills in io->ops and io->backend. */
enum slc_status slc_io_uring_open(struct slc_io *io, struct slc_error *err) SLC_NODISCARD;
enum slc_status slc_io_pread_open(struct slc_io *io, struct slc_error *err) SLC_NODISCARD;
enum slc_status slc_io_mmap_open(struct slc_io *io, struct slc_error *err) SLC_NODISCARD;

#endif
