/*
 * Chunks: the packed form in which nonzeros wait, in memory or in the spill file, until their
 * bucket is sorted. A chunk describes itself: per mode a smallest coordinate and the bytes that
 * differences from it take, values as a constant, small integers, f32 or f64, whatever loses
 * nothing.
 *
 * The input order of its entries is kept as runs: entry j of a run has the ordinal (sequence,
 * first + j). Ordinals are unique and ascend with the input, so chunks may be written, read and
 * split again in any order by any thread, and duplicates still meet in input order.
 *
 * Layout (native endianness does not matter: the file never outlives the process):
 *     0  u64 hash of the rest        8  link to the previous chunk of the chain (3 x u32)
 *    20  u32 bytes of the chunk     24  u32 entries, u32 runs, u32 bytes of runs
 *    36  u8 value form, u8 value bytes, 2 zero    40  u8 bytes per coordinate x 16
 *    56  f64 constant or smallest integer         64  u64 smallest coordinate x N
 *    then runs (varints), columns, values, 8 bytes of slack for whole-word loads.
 */
#ifndef SLC_CONVERT_CHUNK_H
#define SLC_CONVERT_CHUNK_H

#include "base/error.h"
#include "base/limits.h"

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
 * Most bytes of a chunk of this shape. `entries` and `runs` are bounded by the caller so that it
 * fits 32 bits (asserted).
 */
uint64_t slc_chunk_bytes_max(unsigned order, uint32_t entries, uint32_t runs);

/*
 * Packs `count` >= 1 rows (N coordinates as u64, then the value's f64 bits) and their runs into
 * `chunk` (slc_chunk_bytes_max bytes). Link and hash are left open: slc_chunk_seal. Also widens
 * smallest[]/largest[] by the coordinates seen. Returns the bytes.
 */
uint32_t slc_chunk_pack(uint8_t *chunk,
                        unsigned order,
                        const uint64_t *rows,
                        uint32_t count,
                        const struct slc_run *runs,
                        uint32_t run_count,
                        uint64_t *smallest,
                        uint64_t *largest);

/* Sets the link to the previous chunk and the hash over everything. */
void slc_chunk_seal(uint8_t *chunk, struct slc_chunk_link previous);

/* A chunk in memory, found sound. Borrows the bytes. */
struct slc_chunk {
    unsigned order;
    uint32_t count;
    uint32_t run_count;
    struct slc_chunk_link previous;
    unsigned value_form;
    unsigned value_bytes;
    unsigned coord_bytes[SLC_MAX_ORDER];
    uint64_t base[SLC_MAX_ORDER];
    double low;
    const uint8_t *runs;
    const uint8_t *columns[SLC_MAX_ORDER];
    const uint8_t *values;
};

/* Errors: SLC_ERR_DAMAGED when the bytes are not what was written. */
enum slc_status slc_chunk_open(struct slc_chunk *chunk,
                               unsigned order,
                               const uint8_t *bytes,
                               uint32_t byte_count,
                               struct slc_error *err) SLC_NODISCARD;

/* Decodes the next run from *cursor (start with chunk->runs). */
struct slc_run slc_chunk_next_run(const uint8_t **cursor, uint64_t *sequence);

/* Coordinates begin .. begin + count - 1 of a mode, less `index_base`. */
void slc_chunk_coords(const struct slc_chunk *chunk,
                      unsigned mode,
                      uint32_t begin,
                      uint32_t count,
                      uint64_t index_base,
                      uint64_t *coords);
void slc_chunk_values(const struct slc_chunk *chunk,
                      uint32_t begin,
                      uint32_t count,
                      double *values);

#endif
