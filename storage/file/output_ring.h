/* Writes a file that may be larger than memory: many threads fill a bounded ring of buffers while
 * one thread writes full buffers. The file is divided into buffers of equal size; the ring has
 * memory for the buffers in a window, which moves over the file from start to end. Threads copy
 * bytes into buffers inside the window, and wait if their bytes are after the window. The ring's
 * own thread writes the first buffer of the window once it is completely filled, with direct I/O if
 * supported, and advances the window. The bytes on disk therefore depend on offsets alone, not on
 * which thread filled them or when. The file is PATH.tmp until it is complete, synced and
 * published. Order of calls: create, fill (by any threads), finish, publish, destroy. */
#ifndef SLC_STORAGE_OUTPUT_RING_H
#define SLC_STORAGE_OUTPUT_RING_H

#include "base/error/error.h"
#include "storage/file/files.h"

#include <stdbool.h>
#include <stdint.h>

/* One buffer is filled while another buffer is written. */
enum { SLC_OUTPUT_RING_BUFFERS_MIN = 2 };

struct slc_output_ring_options {
    const struct slc_files *files; /* NULL means the operating system */
    const char *path;
    uint32_t buffer_bytes; /* a multiple of SLC_PAGE_BYTES */
    uint32_t buffer_count; /* at least SLC_OUTPUT_RING_BUFFERS_MIN */
};

struct slc_output_ring;

/* Rows of equal size in memory, which become contiguous in the file. */
struct slc_output_rows {
    const void *first;
    uint64_t count;
    uint64_t row_bytes;
    uint64_t stride_bytes; /* distance from the start of a row to the start of the next row */
};

struct slc_output_ring_stats {
    uint64_t bytes;       /* bytes written */
    double write_seconds; /* time of the writing thread in system calls */
    double wait_seconds;  /* total time that filling threads waited for the window */
    bool direct;          /* direct I/O was used */
};

/* Returns the bytes that slc_output_ring_create maps for its buffers. */
uint64_t slc_output_ring_memory_bytes(uint32_t buffer_bytes, uint32_t buffer_count);

/* Creates an empty PATH.tmp and starts the writing thread. Ownership: release with
 * slc_output_ring_destroy. Errors: SLC_ERR_IO, SLC_ERR_MEMORY, SLC_ERR_SYSTEM; PATH.tmp is then
 * removed. */
enum slc_status slc_output_ring_create(const struct slc_output_ring_options *options,
                                       struct slc_output_ring **ring,
                                       struct slc_error *err) SLC_NODISCARD;

/* Copies the rows to the file, starting at byte `offset`; waits until the window reaches these
 * bytes. Needs: every byte is filled exactly once. A thread that still has to fill earlier bytes
 * must not wait for the end of this call, or the window never moves. Threads: any
 * number at the same time. Errors: the first error of the writing thread; SLC_ERR_INTERRUPTED after
 * an abort. */
enum slc_status slc_output_ring_fill_rows(struct slc_output_ring *ring,
                                          uint64_t offset,
                                          const struct slc_output_rows *rows,
                                          struct slc_error *err) SLC_NODISCARD;

/* Like slc_output_ring_fill_rows, but copies `bytes` contiguous bytes. */
enum slc_status slc_output_ring_fill(struct slc_output_ring *ring,
                                     uint64_t offset,
                                     const void *data,
                                     uint64_t bytes,
                                     struct slc_error *err) SLC_NODISCARD;

/* Wakes all threads that wait in a fill; their fills and all later fills fail. Threads: any. */
void slc_output_ring_abort(struct slc_output_ring *ring);

/* Waits until all `bytes` bytes of the file are written, replaces its first `head_bytes` bytes with
 * `head`, and syncs and closes the file. Call once, after all fills have returned and every byte
 * was filled. Errors: those of the writing thread; SLC_ERR_IO, SLC_ERR_NOSPACE. */
enum slc_status slc_output_ring_finish(struct slc_output_ring *ring,
                                       uint64_t bytes,
                                       const void *head,
                                       uint64_t head_bytes,
                                       struct slc_error *err) SLC_NODISCARD;

/* Renames the finished file to PATH. The caller then syncs the folder of PATH. Errors:
 * SLC_ERR_IO. */
enum slc_status slc_output_ring_publish(struct slc_output_ring *ring,
                                        struct slc_error *err) SLC_NODISCARD;

/* Returns the statistics up to now, which are exact while no fill is in progress. */
void slc_output_ring_stats(struct slc_output_ring *ring, struct slc_output_ring_stats *stats);

/* Stops the thread and removes PATH.tmp unless it was published. Accepts NULL. */
void slc_output_ring_destroy(struct slc_output_ring *ring);

#endif
