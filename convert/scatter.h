/*
 * Scattering entries to buckets: one small buffer of rows per worker and bucket, packed into a
 * chunk when it is full. Used for the pushed input and again when a bucket that overflowed is
 * split.
 */
#ifndef SLC_CONVERT_SCATTER_H
#define SLC_CONVERT_SCATTER_H

#include "base/error.h"
#include "convert/key_frame.h"
#include "convert/spill.h"

#include <stdint.h>
#include <string.h>

struct slc_scatter_shape {
    unsigned workers;
    uint32_t buckets;
    uint32_t entries; /* per buffer, of narrow keys (convert/key_frame.h); two thirds if wide */
    uint32_t runs;    /* per buffer */
};

/* A worker's buffer for one bucket: how full it is. */
struct slc_scatter_fill {
    uint32_t entries;
    uint32_t most; /* entries */
    uint32_t runs;
    uint32_t row_words;
    uint64_t stamp; /* of the piece of input its last run came from */
    struct slc_key_range range;
};

/* What one worker owns; padded so that workers do not share cache lines. */
struct slc_scatter_worker {
    struct slc_scatter_fill *fills; /* per bucket */
    uint8_t *rows;                  /* per bucket: rows, then runs */
    uint8_t *chunk;                 /* where chunks are packed */
    uint32_t frame;                 /* of the keys in the buffers */
    uint64_t stamp;    /* of the current piece: no two pieces of a worker have the same */
    uint64_t sequence; /* of the current piece */
    char padding[64];
};

struct slc_scatter {
    struct slc_scatter_shape shape;
    struct slc_spill *spill;
    struct slc_chain *chains; /* per bucket; the caller's */
    size_t buffer_bytes;
    size_t rows_bytes;
    struct slc_scatter_worker *workers;
};

/*
 * The largest shape with this many workers and buckets whose memory (slc_scatter_bytes) fits
 * `budget_bytes`; entries is 0 when none does. A buffer is at most 256 KiB: beyond that, larger
 * chunks save nothing.
 */
struct slc_scatter_shape slc_scatter_fit(unsigned workers, uint32_t buckets, uint64_t budget_bytes);
uint64_t slc_scatter_bytes(const struct slc_scatter_shape *shape);
uint64_t slc_scatter_chunk_bytes(const struct slc_scatter_shape *shape);

/*
 * `memory`: slc_scatter_bytes(shape) zeroed or not, 64-byte aligned, borrowed until the last flush.
 * Owns nothing: there is no destroy.
 */
void slc_scatter_init(struct slc_scatter *scatter,
                      const struct slc_scatter_shape *shape,
                      struct slc_spill *spill,
                      struct slc_chain *chains,
                      void *memory);

/*
 * From now on keys of this worker are of `frame`, whose buckets have these ranges; what it holds of
 * another is flushed. To be called before its first row.
 */
enum slc_status slc_scatter_frame(struct slc_scatter *scatter,
                                  unsigned worker,
                                  uint32_t frame,
                                  const struct slc_key_range *ranges,
                                  struct slc_error *err) SLC_NODISCARD;

/* Packs and appends what a worker's buffer holds. */
enum slc_status slc_scatter_flush(struct slc_scatter *scatter,
                                  unsigned worker,
                                  uint32_t bucket,
                                  struct slc_error *err) SLC_NODISCARD;
/* All buffers of all workers, by the calling thread. */
enum slc_status slc_scatter_flush_all(struct slc_scatter *scatter,
                                      struct slc_error *err) SLC_NODISCARD;

/* A new piece of input (a pushed chunk, a run of a chunk that is split) starts for this worker. */
static inline void
slc_scatter_piece(struct slc_scatter *scatter, unsigned worker, uint64_t sequence)
{
    scatter->workers[worker].stamp++;
    scatter->workers[worker].sequence = sequence;
}

/*
 * Adds the next entry of the current piece. `ordinal` ascends within the piece; key_hi is not
 * looked at where the bucket's range is narrow.
 */
static inline void slc_scatter_add(struct slc_scatter *scatter,
                                   unsigned worker,
                                   uint32_t bucket,
                                   uint32_t ordinal,
                                   uint64_t key_lo,
                                   uint64_t key_hi,
                                   double value)
{
    struct slc_scatter_worker *w = &scatter->workers[worker];
    struct slc_scatter_fill *fill = &w->fills[bucket];
    uint8_t *buffer = w->rows + bucket * scatter->buffer_bytes;
    void *row_bytes = buffer + (size_t)fill->entries * 8 * fill->row_words;
    uint64_t *row = row_bytes;

    if (fill->stamp != w->stamp || fill->runs == 0) {
        void *run_bytes = buffer + scatter->rows_bytes;
        struct slc_run *runs = run_bytes;

        /* Counts are set when the buffer is packed: until then where a run begins. */
        runs[fill->runs++] = (struct slc_run){w->sequence, ordinal, fill->entries};
        fill->stamp = w->stamp;
    }
    if (fill->row_words == 2) {
        row[0] = key_lo - fill->range.first_lo;
    } else {
        row[0] = key_lo;
        row[1] = key_hi;
    }
    memcpy(&row[fill->row_words - 1], &value, sizeof value);
    fill->entries++;
}

/* True when the buffer must be flushed before its next row. */
static inline int
slc_scatter_full(const struct slc_scatter *scatter, unsigned worker, uint32_t bucket)
{
    const struct slc_scatter_fill *fill = &scatter->workers[worker].fills[bucket];

    return fill->entries == fill->most || fill->runs == scatter->shape.runs;
}

#endif
