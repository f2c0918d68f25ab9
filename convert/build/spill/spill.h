/*
 * The spill stream: where chunks wait for their bucket's turn. The stream is a row of equal
 * segments; the newest lie in memory, and once memory is full the oldest are written, one large
 * sequential write each, to a spill file. A small input never touches the disk.
 *
 * A bucket's chunks form a chain: every chunk names the one before it, so a bucket costs a fixed
 * number of bytes however many chunks it has. A few marks per chain (links to chunks evenly spread
 * over it) allow sampling a bucket without reading all of it.
 *
 * A thread of its own writes, from the first time that memory gets short, so that whoever appends
 * goes on meanwhile. The file is unlinked as soon as it is open, so that nothing stays behind,
 * whatever happens; but for one that is kept, of which what was committed can be read by another
 * process, if this one ends early.
 */
#ifndef SLC_CONVERT_SPILL_H
#define SLC_CONVERT_SPILL_H

#include "base/error/error.h"
#include "convert/build/spill/chunk.h"
#include "storage/file/files.h"

#include <stdbool.h>
#include <stdint.h>

enum { SLC_CHAIN_MARKS = 32 };

struct slc_chain {
    struct slc_chunk_link last; /* newest chunk; bytes 0 when empty */
    unsigned mark_count;
    uint64_t chunks;
    uint64_t entries;
    uint64_t runs;
    uint64_t mark_stride; /* every so many chunks one is marked */
    struct slc_chunk_link marks[SLC_CHAIN_MARKS];
};

/* What a file holds as of its last commit. segments 0: nothing. */
struct slc_spill_extent {
    uint32_t segments;
    uint32_t segment_bytes;
    uint32_t chunk_bytes; /* of the largest chunk */
    uint64_t file_bytes;  /* written, holes not counted */
    uint64_t end_bytes;   /* where it ends */
};

struct slc_spill_options {
    const struct slc_files *files;  /* not NULL */
    const char *path;               /* the spill file; must not exist, unless it is kept. Copied. */
    uint64_t max_bytes;             /* written to the file at most; 0: no limit */
    uint32_t segment_bytes;         /* at least the largest chunk; multiple of SLC_PAGE_BYTES */
    uint32_t segment_count;         /* in memory; at least SLC_SPILL_SEGMENTS_MIN */
    bool keep;                      /* the file stays, and is the caller's to remove */
    struct slc_spill_extent extent; /* of a file that was kept; segment_bytes has to agree */
};

/* One being filled, one being written, one waiting. */
enum { SLC_SPILL_SEGMENTS_MIN = 3 };

struct slc_spill;

/*
 * Memory: segment_count * segment_bytes, mapped here. Owns: slc_spill_destroy. Errors:
 * SLC_ERR_DAMAGED for a file that was kept and is not there any more, or is shorter than its
 * extent, which has to be one that a commit gave.
 */
enum slc_status slc_spill_create(const struct slc_spill_options *options,
                                 struct slc_spill **spill,
                                 struct slc_error *err) SLC_NODISCARD;

/* Closes the file, which is gone then unless it is kept. Takes NULL. */
void slc_spill_destroy(struct slc_spill *spill);

/*
 * Appends a packed chunk (slc_chunk_pack) to `chain`: sets its link, seals it, copies it. Any
 * thread. `entries`, `runs`: what it holds. After an error every later call fails with the same
 * status. Errors: SLC_ERR_BUDGET (max_bytes), SLC_ERR_NOSPACE, SLC_ERR_IO, SLC_ERR_SYSTEM (no
 * thread for writing).
 */
enum slc_status slc_spill_append(struct slc_spill *spill,
                                 struct slc_chain *chain,
                                 uint8_t *chunk,
                                 uint32_t bytes,
                                 uint32_t entries,
                                 uint32_t runs,
                                 struct slc_error *err) SLC_NODISCARD;

/* What fetching a chunk takes beyond its bytes: the rest of its first and of its last page. */
enum { SLC_SPILL_FETCH_EXTRA_BYTES = 2 * SLC_PAGE_BYTES };

/*
 * While the stream is frozen nothing is appended, so fetching need not copy what lies in memory.
 * No other call may run meanwhile.
 */
void slc_spill_freeze(struct slc_spill *spill, bool frozen);

/*
 * Copies the chunk at `link` to somewhere in `data`, which begins with a page and has
 * link.bytes + SLC_SPILL_FETCH_EXTRA_BYTES, and opens it. `once`: it will not be
 * read again, so its pages may leave the page cache. Any thread.
 */
enum slc_status slc_spill_fetch(struct slc_spill *spill,
                                struct slc_chunk_link link,
                                bool once,
                                uint8_t *data,
                                struct slc_chunk *chunk,
                                struct slc_error *err) SLC_NODISCARD;

/*
 * Writes all that lies in memory to the file and keeps only SLC_SPILL_SEGMENTS_MIN segments mapped,
 * for chunks still to come. No other call may run meanwhile.
 */
enum slc_status slc_spill_shrink(struct slc_spill *spill, struct slc_error *err) SLC_NODISCARD;

/*
 * Writes and syncs all that was appended: *extent, with which the file can be opened again. What
 * comes later goes behind it. Only for a file that is kept. No other call may run meanwhile.
 */
enum slc_status slc_spill_commit(struct slc_spill *spill,
                                 struct slc_spill_extent *extent,
                                 struct slc_error *err) SLC_NODISCARD;

/* Bytes that a commit would have to write now. */
uint64_t slc_spill_unwritten_bytes(struct slc_spill *spill);

/* Bytes of the largest chunk appended so far. No other call may run meanwhile. */
uint32_t slc_spill_chunk_bytes(const struct slc_spill *spill);

/* Bytes of memory in use now; bytes written to the file so far; time that appending waited for it.
 */
uint64_t slc_spill_resident_bytes(const struct slc_spill *spill);
uint64_t slc_spill_written_bytes(struct slc_spill *spill);
double slc_spill_seconds(const struct slc_spill *spill);

#endif
