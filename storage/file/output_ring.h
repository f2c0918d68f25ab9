/*
 * A file that many threads fill and one writes behind them, through a bounded ring of buffers: for
 * results that may be larger than memory (DESIGN section 4).
 *
 * The file is cut into buffers of equal length. A window of as many as the ring has moves over it
 * from front to back: whoever fills bytes of a buffer inside the window copies them and goes on,
 * whoever is ahead of it waits. A thread of the ring's own writes the first buffer as soon as all
 * of it is filled, past the page cache where that is real, and moves the window on. So the bytes
 * and their order on disk depend on offsets alone, not on who filled them when.
 *
 * The file is PATH.tmp until it is complete, synced and published.
 *
 *     create -> fill, by any threads -> finish -> publish -> destroy
 */
#ifndef SLC_STORAGE_OUTPUT_RING_H
#define SLC_STORAGE_OUTPUT_RING_H

#include "base/error/error.h"
#include "storage/file/files.h"

#include <stdbool.h>
#include <stdint.h>

/* One is filled while another is written. */
enum { SLC_OUTPUT_RING_BUFFERS_MIN = 2 };

struct slc_output_ring_options {
    const struct slc_files *files; /* NULL: the operating system */
    const char *path;
    uint32_t buffer_bytes; /* a multiple of SLC_PAGE_BYTES */
    uint32_t buffer_count; /* SLC_OUTPUT_RING_BUFFERS_MIN and more */
};

struct slc_output_ring;

/* Rows of equal length in memory, to be filled in one behind the other. */
struct slc_output_rows {
    const void *first;
    uint64_t count;
    uint64_t row_bytes;
    uint64_t stride_bytes; /* from row to row in memory */
};

struct slc_output_ring_stats {
    uint64_t bytes;       /* written */
    double write_seconds; /* of the thread that writes, inside system calls */
    double wait_seconds;  /* of those who fill, for room; summed */
    bool direct;          /* past the page cache */
};

/* Bytes that slc_output_ring_create maps for its buffers. */
uint64_t slc_output_ring_memory_bytes(uint32_t buffer_bytes, uint32_t buffer_count);

/*
 * Creates PATH.tmp, empty, and starts the thread. Owns: slc_output_ring_destroy.
 * Errors: SLC_ERR_IO, SLC_ERR_MEMORY, SLC_ERR_SYSTEM; PATH.tmp is then gone.
 */
enum slc_status slc_output_ring_create(const struct slc_output_ring_options *options,
                                       struct slc_output_ring **ring,
                                       struct slc_error *err) SLC_NODISCARD;

/*
 * Copies the rows to bytes `offset` and following of the file, waiting for the window where it has
 * not come so far. Needs: every byte is filled once; who is to fill a byte before these waits for
 * nothing that comes after this call returns, or the window stands still for ever.
 * Threads: any number at the same time.
 * Errors: the first one of the thread that writes; SLC_ERR_INTERRUPTED after an abort.
 */
enum slc_status slc_output_ring_fill_rows(struct slc_output_ring *ring,
                                          uint64_t offset,
                                          const struct slc_output_rows *rows,
                                          struct slc_error *err) SLC_NODISCARD;

/* The same for `bytes` bytes that lie together. */
enum slc_status slc_output_ring_fill(struct slc_output_ring *ring,
                                     uint64_t offset,
                                     const void *data,
                                     uint64_t bytes,
                                     struct slc_error *err) SLC_NODISCARD;

/* Wakes everybody who waits in a fill: that one and all later ones fail. Any thread. */
void slc_output_ring_abort(struct slc_output_ring *ring);

/*
 * Waits until the `bytes` bytes of the whole file, all of them filled, are written, puts `head` in
 * the place of the first `head_bytes`, syncs and closes. Called once, after all fills have
 * returned. Errors: those of the thread that writes; SLC_ERR_IO, SLC_ERR_NOSPACE.
 */
enum slc_status slc_output_ring_finish(struct slc_output_ring *ring,
                                       uint64_t bytes,
                                       const void *head,
                                       uint64_t head_bytes,
                                       struct slc_error *err) SLC_NODISCARD;

/* Renames the finished file to PATH. Its folder is the caller's to sync. Errors: SLC_ERR_IO. */
enum slc_status slc_output_ring_publish(struct slc_output_ring *ring,
                                        struct slc_error *err) SLC_NODISCARD;

/* So far; exact when no fill is under way. */
void slc_output_ring_stats(struct slc_output_ring *ring, struct slc_output_ring_stats *stats);

/* Ends the thread, and removes PATH.tmp unless it was published. Takes NULL. */
void slc_output_ring_destroy(struct slc_output_ring *ring);

#endif
