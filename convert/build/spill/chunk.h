/*
 * Chunks: the packed form in which nonzeros wait, in memory or in the spill file, until their
 * bucket is sorted. A chunk describes itself: keys as differences from the first of their range, in
 * as many bytes as those take; values as a constant, small integers, f32 or f64, whatever loses
 * nothing.
 *
 * The input order of its entries is kept as runs: entry j of a run has the ordinal (sequence,
 * first + j). Ordinals are unique and ascend with the input, so chunks may be written, read and
 * split again in any order by any thread, and duplicates still meet in input order.
 *
 * Layout (little-endian: a later run may go on with the file):
 *     0  u64 hash of the rest        8  link to the previous chunk of the chain (3 x u32)
 *    20  u32 bytes of the chunk     24  u32 entries, u32 runs, u32 bytes of runs, u32 frame
 *    40  u8 value form, u8 value bytes, u8 bytes of a key's low and of its high half, 4 zero
 *    48  f64 constant or smallest integer         56  u64 first of the range x 2
 *    72  runs (varints), low halves, high halves, values, 8 bytes of slack for whole-word loads.
 */
#ifndef SLC_CONVERT_CHUNK_H
#define SLC_CONVERT_CHUNK_H

#include "base/error/error.h"
#include "base/hash.h"
#include "base/memory/bytes.h"
#include "convert/build/sort/key_frame.h"

#include <stdint.h>

enum { SLC_CHUNK_SLACK_BYTES = 8 };

/* Where a chunk lies: `offset` within a segment of the spill stream. bytes 0: nowhere. */
struct slc_chunk_link {
    uint32_t segment;
    uint32_t offset;
    uint32_t bytes;
};

/* Consecutive entries of a chunk that came from one pushed piece of input, in its order. */
struct slc_run {
    uint64_t sequence;
    uint32_t first;
    uint32_t count;
};

/*
 * Rows of one frame and range: words of a key (less the first of the range where that is narrow:
 * then one, else low and high), then the value's f64 bits.
 */
struct slc_chunk_rows {
    const uint64_t *rows;
    uint32_t count; /* at least 1 */
    uint32_t frame;
    struct slc_key_range range;
    uint64_t any; /* first words of all rows, ORed, where the range is narrow */
};

/* Words of a row whose keys are of this range. */
static inline uint32_t slc_chunk_row_words(const struct slc_key_range *range)
{
    return range->narrow ? 2 : 3;
}

/*
 * Most bytes of a chunk of rows of so many bytes. They are bounded by the caller so that it fits 32
 * bits (asserted).
 */
uint64_t slc_chunk_bytes_max(uint64_t row_bytes, uint32_t runs);

/*
 * Packs rows and their runs into `chunk` (slc_chunk_bytes_max bytes). Link and hash are left open:
 * slc_chunk_seal. Returns the bytes.
 */
uint32_t slc_chunk_pack(uint8_t *chunk,
                        const struct slc_chunk_rows *rows,
                        const struct slc_run *runs,
                        uint32_t run_count);

enum { SLC_CHUNK_AT_LINK = 8, SLC_CHUNK_AT_BYTES = 20 };

/* Sets the link to the previous chunk and the hash over everything. */
static inline void slc_chunk_seal(uint8_t *chunk, struct slc_chunk_link previous)
{
    slc_store_u32(chunk + SLC_CHUNK_AT_LINK, previous.segment);
    slc_store_u32(chunk + SLC_CHUNK_AT_LINK + 4, previous.offset);
    slc_store_u32(chunk + SLC_CHUNK_AT_LINK + 8, previous.bytes);
    slc_store_u64(chunk, slc_hash64(chunk + 8, slc_load_u32(chunk + SLC_CHUNK_AT_BYTES) - 8));
}

/* A chunk in memory, found sound. Borrows the bytes. */
struct slc_chunk {
    uint32_t count;
    uint32_t run_count;
    uint32_t frame;
    struct slc_chunk_link previous;
    unsigned value_form;
    unsigned value_bytes;
    unsigned lo_bytes, hi_bytes;
    uint64_t first_lo, first_hi;
    double low;
    const uint8_t *runs;
    const uint8_t *lo, *hi;
    const uint8_t *values;
};

/*
 * What is opened can be decoded to its last entry; which keys it has, and in which frame, only the
 * caller can tell from right ones. Errors: SLC_ERR_DAMAGED when the bytes are not what was written.
 */
enum slc_status slc_chunk_open(struct slc_chunk *chunk,
                               const uint8_t *bytes,
                               uint32_t byte_count,
                               struct slc_error *err) SLC_NODISCARD;

/* Decodes the next run from *cursor (start with chunk->runs). */
struct slc_run slc_chunk_next_run(const uint8_t **cursor, uint64_t *sequence);

/* Entries begin .. begin + count - 1: keys of the chunk's frame (hi: not if NULL) and values (not
 * if NULL). */
void slc_chunk_entries(const struct slc_chunk *chunk,
                       uint32_t begin,
                       uint32_t count,
                       uint64_t *lo,
                       uint64_t *hi,
                       double *values);

#endif
