/* State that the three block readers share, and functions that process transfer results. */
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
    /* Implements slc_io_release; NULL if slots need no release. */
    void (*release)(struct slc_io *io, struct slc_io_request *request);
    /* Implements slc_io_check; NULL if data cannot change after it was read. */
    enum slc_status (*check)(const struct slc_io *io,
                             const struct slc_io_request *request,
                             struct slc_error *err);
    /* Ends reads in flight and frees `backend`, before the files and the slots are freed. */
    void (*close)(struct slc_io *io);
};

/* One open file on a drive: a block file or a stripe. */
struct slc_io_file {
    char *path;
    int fd;          /* used at page-aligned offsets; opened with O_DIRECT if `direct` */
    int buffered_fd; /* used at other offsets (rest of a short read); equals fd unless `direct` */
    bool direct;
};

/* A block file: one open file, or consecutive open files that are its stripes. */
struct slc_io_source {
    unsigned first; /* index of the first open file */
    unsigned count;
    struct slc_stripe_shape shape; /* count is 0 if there are no stripes */
};

struct slc_io {
    /* Changes if pread takes over, while other threads call slc_io_check and slc_io_release. */
    const struct slc_io_ops *_Atomic ops;
    enum slc_io_kind kind;
    bool may_use_pread; /* pread replaces io_uring if the kernel refuses reads later */
    void *backend;      /* private state of the implementation */
    const struct slc_files *files;
    struct slc_io_source *sources; /* indexed by slc_io_request.file */
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

/* Progress of a request. */
struct slc_io_progress {
    uint64_t done;
    unsigned interruptions; /* consecutive interruptions without progress */
};

static inline void *slc_io_slot(const struct slc_io *io, unsigned slot)
{
    return (char *)io->slots.data + (uint64_t)slot * io->slot_bytes;
}

/* Position of contiguous bytes of a request. */
struct slc_io_place {
    const struct slc_io_file *file;
    unsigned number; /* index of the open file */
    uint64_t offset; /* offset in this file */
    uint64_t bytes;  /* contiguous bytes of the request in this file */
};

/* Returns the position of the bytes of a request after its first `done` bytes. */
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

/* True if a transfer at `offset` can use direct I/O, which needs whole pages. */
static inline bool slc_io_whole_pages(uint64_t offset)
{
    return offset % SLC_PAGE_BYTES == 0;
}

static inline int slc_io_fd_at(const struct slc_io_file *file, uint64_t offset)
{
    return slc_io_whole_pages(offset) ? file->fd : file->buffered_fd;
}

/* Processes the result (bytes or negated errno) of the transfer at progress->done. Returns true if
 * the request is complete, with status, error and (for SLC_OK) `data` set; false if the caller has
 * to read the rest, starting at progress->done. Drops the pages that buffered reads leave in the
 * page cache. Threads: any, each with a different request. */
bool slc_io_advance(const struct slc_io *io,
                    struct slc_io_request *request,
                    struct slc_io_progress *progress,
                    const void *data,
                    int64_t result);

/* Completes a request in which a system call failed after the first `done` bytes. */
void slc_io_fail_request(const struct slc_io *io,
                         struct slc_io_request *request,
                         int system_errno,
                         uint64_t done);

/* Drops the pages that the request left in the page cache, if its reads are buffered. */
void slc_io_drop_behind(const struct slc_io *io, const struct slc_io_request *request);

/* Returns the result to use for a transfer at `place` that bypassed the file operations. */
static inline int64_t
slc_io_completed(const struct slc_io *io, const struct slc_io_place *place, int64_t result)
{
    return io->files->completed == NULL ? result
                                        : io->files->completed(io->files->self, place->file->fd,
                                                               place->offset, place->bytes, result);
}

/* Appends a sentence to the note of the statistics. */
void slc_io_note(struct slc_io *io, const char *format, ...) SLC_PRINTF(2, 3);

/* Each function starts one implementation of the block reader, and sets io->ops and io->backend. */
enum slc_status slc_io_uring_open(struct slc_io *io, struct slc_error *err) SLC_NODISCARD;
enum slc_status slc_io_pread_open(struct slc_io *io, struct slc_error *err) SLC_NODISCARD;
enum slc_status slc_io_mmap_open(struct slc_io *io, struct slc_error *err) SLC_NODISCARD;

#endif
