/* The spill stream holds chunks until their bucket is sorted. It is a sequence of segments of equal
 * size. The newest segments are in memory. Once memory is full, the oldest segments are written to
 * a spill file, each with one large sequential write. A small input never touches the disk.
 *
 * A bucket's chunks form a chain: every chunk names its predecessor, so the state of a bucket has a
 * fixed size regardless of its number of chunks. A few marks per chain (links to evenly spaced
 * chunks) allow sampling a bucket without reading it completely.
 *
 * A separate thread, started when memory first runs short, writes segments while other threads
 * append. The file is unlinked as soon as it is open, so it disappears however the process ends. A
 * file that is kept for resuming is not unlinked, and a later run can read its committed part. */
#ifndef SLC_CONVERT_SPILL_H
#define SLC_CONVERT_SPILL_H

#include "base/error/error.h"
#include "convert/build/spill/chunk.h"
#include "storage/file/files.h"

#include <stdbool.h>
#include <stdint.h>

enum { SLC_CHAIN_MARKS = 32 };

struct slc_chain {
    struct slc_chunk_link last; /* newest chunk; last.bytes is 0 if the chain is empty */
    unsigned mark_count;
    uint64_t chunks;
    uint64_t entries;
    uint64_t runs;
    uint64_t mark_stride; /* every mark_stride-th chunk is marked */
    struct slc_chunk_link marks[SLC_CHAIN_MARKS];
};

/* Contents of a spill file at its last commit. If `segments` is 0, there was no commit. */
struct slc_spill_extent {
    uint32_t segments;
    uint32_t segment_bytes;
    uint32_t chunk_bytes; /* size of the largest chunk */
    uint64_t file_bytes;  /* bytes written, without holes */
    uint64_t end_bytes;   /* end of the file */
};

struct slc_spill_options {
    const struct slc_files *files;  /* not NULL */
    const char *path;               /* the spill file, copied; must not exist without `keep` */
    uint64_t max_bytes;             /* maximum bytes written to the file; 0: no limit */
    uint32_t segment_bytes;         /* whole pages, at least the size of the largest chunk */
    uint32_t segment_count;         /* segments in memory; at least SLC_SPILL_SEGMENTS_MIN */
    bool keep;                      /* the file stays; the caller removes it */
    struct slc_spill_extent extent; /* extent of a kept file, with the same segment_bytes */
};

/* One segment is being filled, one is being written, and one is waiting. */
enum { SLC_SPILL_SEGMENTS_MIN = 3 };

struct slc_spill;

/* Creates a stream. Memory: segment_count * segment_bytes, which this call maps. Ownership:
 * release with slc_spill_destroy. If the file is kept, `extent` must come from a commit of this
 * file, or have no segments. Errors: SLC_ERR_DAMAGED if a kept file is missing or shorter than its
 * extent. */
enum slc_status slc_spill_create(const struct slc_spill_options *options,
                                 struct slc_spill **spill,
                                 struct slc_error *err) SLC_NODISCARD;

/* Closes the file, which removes it unless it is kept. Accepts NULL. */
void slc_spill_destroy(struct slc_spill *spill);

/* Appends a packed chunk (slc_chunk_pack) to `chain`: sets the chunk's link and hash, and copies
 * the chunk. `entries`, `runs`: number of entries and runs in the chunk. Threads: any. After an
 * error every later call fails with the same status. Errors: SLC_ERR_BUDGET (max_bytes),
 * SLC_ERR_NOSPACE, SLC_ERR_IO, SLC_ERR_SYSTEM (cannot create the writer thread). */
enum slc_status slc_spill_append(struct slc_spill *spill,
                                 struct slc_chain *chain,
                                 uint8_t *chunk,
                                 uint32_t bytes,
                                 uint32_t entries,
                                 uint32_t runs,
                                 struct slc_error *err) SLC_NODISCARD;

/* A fetch buffer also holds the rest of the first and of the last page of the chunk. */
enum { SLC_SPILL_FETCH_EXTRA_BYTES = 2 * SLC_PAGE_BYTES };

/* Freezes or unfreezes the stream. A frozen stream accepts no appends, so slc_spill_fetch need not
 * copy chunks that are in memory. No other call may run concurrently. */
void slc_spill_freeze(struct slc_spill *spill, bool frozen);

/* Opens the chunk at `link`, after copying it to `data` (page-aligned, link.bytes +
 * SLC_SPILL_FETCH_EXTRA_BYTES bytes) unless it is in memory and the stream is frozen. `once`: the
 * chunk will not be read again, so its pages may leave the page cache. Threads: any. */
enum slc_status slc_spill_fetch(struct slc_spill *spill,
                                struct slc_chunk_link link,
                                bool once,
                                uint8_t *data,
                                struct slc_chunk *chunk,
                                struct slc_error *err) SLC_NODISCARD;

/* Writes the whole stream to the file, and unmaps its memory except for SLC_SPILL_SEGMENTS_MIN
 * segments, which later chunks use. No other call may run concurrently. */
enum slc_status slc_spill_shrink(struct slc_spill *spill, struct slc_error *err) SLC_NODISCARD;

/* Writes and syncs all chunks appended so far and sets *extent, with which the file can be opened
 * again. Later chunks are appended after the extent. Needs: a kept file. No other call may run
 * concurrently. */
enum slc_status slc_spill_commit(struct slc_spill *spill,
                                 struct slc_spill_extent *extent,
                                 struct slc_error *err) SLC_NODISCARD;

/* Returns the bytes that a commit would write now. */
uint64_t slc_spill_unwritten_bytes(struct slc_spill *spill);

/* Returns the size of the largest chunk so far. No other call may run concurrently. */
uint32_t slc_spill_chunk_bytes(const struct slc_spill *spill);

/* Return the bytes in memory, the bytes written to the file, and the seconds that appends
 * waited. */
uint64_t slc_spill_resident_bytes(const struct slc_spill *spill);
uint64_t slc_spill_written_bytes(struct slc_spill *spill);
double slc_spill_seconds(const struct slc_spill *spill);

#endif
