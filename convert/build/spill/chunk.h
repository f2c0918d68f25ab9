/* Chunks hold entries in packed form, in memory or in the spill file, until their bucket is sorted.
 * A chunk is self-describing. Keys are stored as differences from the first key of their range, in
 * as few bytes as possible. Values are stored in the smallest lossless form: a constant, small
 * integers, f32 or f64.
 *
 * The input order of the entries is stored as runs: entry j of a run has the ordinal (sequence,
 * first + j). Ordinals are unique and ascend with the input, so any thread may write, read and
 * split chunks in any order, and duplicates are still combined in input order.
 *
 * Layout (little-endian, because a later run may resume with the file):
 *     0  u64 hash of bytes 8 to end  8  link to the previous chunk of the chain (3 x u32)
 *    20  u32 bytes of the chunk     24  u32 entries, u32 runs, u32 bytes of runs, u32 frame
 *    40  u8 value form, u8 bytes of a value, u8 bytes of a low and of a high key word, 4 zero
 *    48  f64 constant or smallest integer         56  first key of the range (2 x u64)
 *    72  runs (varints), low key words, high key words, values, 8 bytes of slack for word loads. */
#ifndef SLC_CONVERT_CHUNK_H
#define SLC_CONVERT_CHUNK_H

#include "base/error/error.h"
#include "base/hash.h"
#include "base/memory/bytes.h"
#include "convert/build/sort/key_frame.h"

#include <stdint.h>

enum { SLC_CHUNK_SLACK_BYTES = 8 };

/* Position of a chunk: `offset` within a segment of the spill stream. If `bytes` is 0, there is no
 * chunk. */
struct slc_chunk_link {
    uint32_t segment;
    uint32_t offset;
    uint32_t bytes;
};

/* A run: consecutive entries of a chunk from one pushed piece of input, in input order. */
struct slc_run {
    uint64_t sequence;
    uint32_t first;
    uint32_t count;
};

/* Unpacked entries of one key frame and key range. A row has the words of the key, then the bits of
 * the f64 value. In a narrow range the key is one word, the difference from the first key;
 * otherwise it is the low and the high word. */
struct slc_chunk_rows {
    const uint64_t *rows;
    uint32_t count; /* number of rows, at least 1 */
    uint32_t frame;
    struct slc_key_range range;
    uint64_t any; /* OR of the first words of all rows, if the range is narrow */
};

/* Returns the number of words per row for keys of this range. */
static inline uint32_t slc_chunk_row_words(const struct slc_key_range *range)
{
    return range->narrow ? 2 : 3;
}

/* Returns the largest size of a chunk with `row_bytes` bytes of rows and `runs` runs. The caller
 * must limit rows and runs so that the size fits 32 bits (asserted). */
uint64_t slc_chunk_bytes_max(uint64_t row_bytes, uint32_t runs);

/* Packs rows and their runs into `chunk` (slc_chunk_bytes_max bytes), except for link and hash,
 * which slc_chunk_seal sets. Returns the size of the chunk. */
uint32_t slc_chunk_pack(uint8_t *chunk,
                        const struct slc_chunk_rows *rows,
                        const struct slc_run *runs,
                        uint32_t run_count);

enum { SLC_CHUNK_AT_LINK = 8, SLC_CHUNK_AT_BYTES = 20 };

/* Sets the link to the previous chunk, and the hash of all bytes after the hash. */
static inline void slc_chunk_seal(uint8_t *chunk, struct slc_chunk_link previous)
{
    slc_store_u32(chunk + SLC_CHUNK_AT_LINK, previous.segment);
    slc_store_u32(chunk + SLC_CHUNK_AT_LINK + 4, previous.offset);
    slc_store_u32(chunk + SLC_CHUNK_AT_LINK + 8, previous.bytes);
    slc_store_u64(chunk, slc_hash64(chunk + 8, slc_load_u32(chunk + SLC_CHUNK_AT_BYTES) - 8));
}

/* An opened chunk, whose structure was checked. Borrows the bytes. */
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

/* Opens a chunk and checks that all its entries can be decoded. The caller must check keys and
 * frame. Errors: SLC_ERR_DAMAGED if the hash or the structure is wrong. */
enum slc_status slc_chunk_open(struct slc_chunk *chunk,
                               const uint8_t *bytes,
                               uint32_t byte_count,
                               struct slc_error *err) SLC_NODISCARD;

/* Decodes the next run from *cursor (initially chunk->runs). */
struct slc_run slc_chunk_next_run(const uint8_t **cursor, uint64_t *sequence);

/* Decodes entries begin .. begin + count - 1: the keys under the chunk's frame, and the values.
 * `hi` and `values` may be NULL. */
void slc_chunk_entries(const struct slc_chunk *chunk,
                       uint32_t begin,
                       uint32_t count,
                       uint64_t *lo,
                       uint64_t *hi,
                       double *values);

#endif
