/* Block readers: asynchronous reads of whole blocks by io_uring, by pread threads or through a
 * sliding memory map. All three deliver the same bytes and the same errors, and complete in any
 * order. Only the engine's ring calls them. A reader is for one thread, but any thread may call
 * slc_io_check and slc_io_release. */
#ifndef SLC_STORAGE_IO_H
#define SLC_STORAGE_IO_H

#include "base/error/error.h"
#include "storage/file/files.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum slc_io_kind { SLC_IO_AUTO, SLC_IO_URING, SLC_IO_PREAD, SLC_IO_MMAP };

/* Convert between a kind and its name: "auto", "uring", "pread" or "mmap". slc_io_parse returns
 * false for an unknown name. */
const char *slc_io_name(enum slc_io_kind kind);
bool slc_io_parse(const char *name, enum slc_io_kind *kind);

/* One read. The caller keeps the request and its slot alive and unchanged until completion. */
struct slc_io_request {
    uint64_t offset; /* multiple of SLC_PAGE_BYTES */
    uint64_t bytes;  /* multiple of SLC_PAGE_BYTES, at most the slot size */
    unsigned file;   /* index in slc_io_options.paths */
    unsigned slot;   /* index of the buffer, 0 .. slot_count - 1; used by one request at a time */
    void *user;

    /* Set on completion. */
    const void *data;       /* the slot, or a view into the map; valid until release */
    enum slc_status status; /* if not SLC_OK, `error` is set and data is NULL */
    struct slc_error error; /* names file and offset; the engine adds the block */
};

struct slc_io_options {
    const struct slc_files *files; /* NULL means the operating system */
    const char *const *paths;      /* the files; borrowed until open returns */
    unsigned file_count;           /* number of files, at least 1; all files share the slots */
    /* number of buffers, and so the maximum number of reads in flight */
    unsigned slot_count;
    uint64_t slot_bytes; /* multiple of SLC_PAGE_BYTES */
    unsigned threads;    /* number of pread threads; 0 means that the reader chooses */
    bool direct;         /* use O_DIRECT if supported (the engine's default is true) */
};

struct slc_io_ops;

/* Counters of one reader. */
struct slc_io_stats {
    uint64_t reads;
    uint64_t bytes;
    bool direct;     /* all reads bypass the page cache */
    bool registered; /* io_uring: all slots are registered */
    char note[160];  /* features that cannot be used, and why; or "" */
};

struct slc_io;

/* Opens files for block reads by `kind`. AUTO selects io_uring if the kernel allows it and all
 * reads are direct, otherwise pread; files in tmpfs, for example, have no direct I/O. URING fails
 * if the system refuses io_uring; the message names the alternative. If the kernel refuses reads
 * later, because it is short of memory for example, they are repeated for half a second; then AUTO
 * continues with pread and logs a note, and URING fails. Memory: slot_count *
 * slot_bytes, which this call maps and registers; MMAP instead keeps up to this number of bytes of
 * the files resident. Ownership: slc_io_close frees everything; it cancels requests in flight and
 * waits for them. MMAP handles SIGBUS while it is open (storage/io/map_guard.h). Errors:
 * SLC_ERR_IO, SLC_ERR_MEMORY, SLC_ERR_UNSUPPORTED, SLC_ERR_SYSTEM. */
enum slc_status slc_io_open(enum slc_io_kind kind,
                            const struct slc_io_options *options,
                            struct slc_io **io,
                            struct slc_error *err) SLC_NODISCARD;

/* Starts a read. If the read itself fails, the error is in the completed request. */
enum slc_status slc_io_submit(struct slc_io *io,
                              struct slc_io_request *request,
                              struct slc_error *err) SLC_NODISCARD;

/* Waits for and returns a completed request; at least one must be in flight. */
enum slc_status slc_io_wait(struct slc_io *io,
                            struct slc_io_request **request,
                            struct slc_error *err) SLC_NODISCARD;

/* Checks that the data of a completed request has been valid since its completion. The request must
 * not have been released. A memory map yields zeros if its file was truncated or became unreadable,
 * and other bytes if the file was changed. Call it after using the data, and before relying on
 * results computed from the data. Cost: at most one system call. Threads: any. Errors:
 * SLC_ERR_DAMAGED, SLC_ERR_IO, with file and offset. */
enum slc_status slc_io_check(const struct slc_io *io,
                             const struct slc_io_request *request,
                             struct slc_error *err) SLC_NODISCARD;

/* Releases the data of a completed request (mmap drops its pages). Call it from any thread, once
 * per completed request, before its slot is submitted again. */
void slc_io_release(struct slc_io *io, struct slc_io_request *request);

/* Returns the memory of all slots, *bytes contiguous bytes, for devices that register the memory
 * from which they copy. With MMAP, returns NULL and sets *bytes to 0. */
void *slc_io_slots(const struct slc_io *io, uint64_t *bytes);

/* Returns the kind in use, which is never AUTO. */
enum slc_io_kind slc_io_kind(const struct slc_io *io);
void slc_io_stats(const struct slc_io *io, struct slc_io_stats *stats);

/* Closes the reader. Accepts NULL. */
void slc_io_close(struct slc_io *io);

#endif
