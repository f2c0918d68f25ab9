/*
 * The table of block readers: asynchronous reads of whole blocks, by io_uring, by pread threads or
 * through a sliding memory map. All three deliver the same bytes, the same errors, and completions
 * in any order. The engine's ring is their only caller; one thread uses one reader.
 */
#ifndef SLC_STORAGE_IO_H
#define SLC_STORAGE_IO_H

#include "base/error/error.h"
#include "storage/file/files.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum slc_io_kind { SLC_IO_AUTO, SLC_IO_URING, SLC_IO_PREAD, SLC_IO_MMAP };

/* "auto", "uring", "pread", "mmap"; and back (false when unknown). */
const char *slc_io_name(enum slc_io_kind kind);
bool slc_io_parse(const char *name, enum slc_io_kind *kind);

/* One read. The caller keeps it, and the buffer, alive and untouched from submit to completion. */
struct slc_io_request {
    uint64_t offset; /* multiple of SLC_PAGE_BYTES */
    uint64_t bytes;  /* multiple of SLC_PAGE_BYTES, at most the slot size */
    unsigned file;   /* which of the open files, 0 .. file_count - 1 */
    unsigned slot;   /* which buffer, 0 .. slot_count - 1; may be in use by one request at a time */
    void *user;

    /* Set on completion. */
    const void *data;       /* the slot, or a view into the map; valid until release */
    enum slc_status status; /* with `error` where not SLC_OK; data is then NULL */
    struct slc_error error; /* names file and offset; the engine adds the block */
};

struct slc_io_options {
    const struct slc_files *files; /* NULL: the operating system */
    const char *const *paths;      /* the files; borrowed until open returns */
    unsigned file_count;           /* at least 1; all are read into the same buffers */
    unsigned slot_count;           /* buffers, and so reads in flight at most */
    uint64_t slot_bytes;           /* multiple of SLC_PAGE_BYTES */
    unsigned threads;              /* pread workers; 0: chosen */
    bool direct;                   /* use O_DIRECT where it is real (default of the engine: true) */
};

struct slc_io_ops;

/* Counters of one reader. */
struct slc_io_stats {
    uint64_t reads;
    uint64_t bytes;
    bool direct;     /* reads of all files bypass the page cache */
    bool registered; /* io_uring: all slots registered */
    char note[160];  /* what was degraded and why, or "" */
};

struct slc_io;

/*
 * Opens the files for block reads by `kind`. AUTO takes io_uring where the kernel allows it, else
 * pread (where a file lies in tmpfs, or on a file system that only has the page cache, too); asking
 * for URING where it is refused is an error that says what to use instead. Memory: slot_count *
 * slot_bytes (mapped and registered here; mmap keeps as much resident). Owns: slc_io_close releases
 * all; every submitted request must have been waited for, or is cancelled and waited for by close.
 * MMAP handles SIGBUS while it is open (storage/io/map_guard.h). Errors: SLC_ERR_IO,
 * SLC_ERR_MEMORY, SLC_ERR_UNSUPPORTED, SLC_ERR_SYSTEM.
 */
enum slc_status slc_io_open(enum slc_io_kind kind,
                            const struct slc_io_options *options,
                            struct slc_io **io,
                            struct slc_error *err) SLC_NODISCARD;

/* Starts a read. Errors of the read itself come with its completion. */
enum slc_status slc_io_submit(struct slc_io *io,
                              struct slc_io_request *request,
                              struct slc_error *err) SLC_NODISCARD;

/* Waits for a completed request and hands it back; at least one must be in flight. */
enum slc_status slc_io_wait(struct slc_io *io,
                            struct slc_io_request **request,
                            struct slc_error *err) SLC_NODISCARD;

/*
 * Whether the data of a completed request, not yet released, was there all the time, and the same:
 * a map shows zeros where its file was cut, or could not be read again, since, and other bytes
 * where it was changed. To be asked after the data was used and before what came of it is. Cost: at
 * most one question to the system. Threads: any. Errors: SLC_ERR_DAMAGED, SLC_ERR_IO, with file and
 * offset.
 */
enum slc_status slc_io_check(const struct slc_io *io,
                             const struct slc_io_request *request,
                             struct slc_error *err) SLC_NODISCARD;

/*
 * The data of a completed request is no longer needed (mmap drops its pages). May be called from
 * any thread, once per completed request, before its slot is submitted again.
 */
void slc_io_release(struct slc_io *io, struct slc_io_request *request);

/*
 * All buffers that data is read into, one after the other, and how many bytes they are: for devices
 * that want to be told of memory they copy from. NULL and 0 where data is a view into a map.
 */
void *slc_io_slots(const struct slc_io *io, uint64_t *bytes);

/* The kind in use, never AUTO. */
enum slc_io_kind slc_io_kind(const struct slc_io *io);
void slc_io_stats(const struct slc_io *io, struct slc_io_stats *stats);

/* Takes NULL. */
void slc_io_close(struct slc_io *io);

#endif
