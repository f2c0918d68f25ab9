/*
 * Scattering entries to buckets: one small buffer of rows per worker and bucket, packed into a
 * chunk when it is full. Used for the pushed input and again when a bucket that overflowed is
 * split.
 */
#ifndef SLC_CONVERT_SCATTER_H
#define SLC_CONVERT_SCATTER_H

#include "base/error/error.h"
#include "convert/build/sort/key_frame.h"
#include "convert/build/spill/spill.h"

#include <stdint.h>

struct slc_scatter_shape {
    unsigned workers;
    uint32_t buckets;
    uint32_t entries; /* per buffer, of narrow keys (convert/build/sort/key_frame.h); two thirds if
                         wide */
    uint32_t runs;    /* per buffer */
};

/* A worker's buffer for one bucket: how full it is. */
struct slc_scatter_fill {
    uint64_t *next;      /* where the next row goes */
    const uint64_t *end; /* the buffer is full when `next` gets here */
    uint64_t stamp;      /* of the piece of input its last run came from; 0: it is empty */
    uint64_t any;        /* narrow keys of all rows, ORed */
    uint32_t row_words;
    uint32_t runs;
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

/* Packs and appends what all buffers of all workers hold, by the calling thread. */
enum slc_status slc_scatter_flush_all(struct slc_scatter *scatter,
                                      struct slc_error *err) SLC_NODISCARD;

/* A new piece of input (a pushed chunk, a run of a chunk that is split) starts for this worker. */
static inline void
slc_scatter_piece(struct slc_scatter *scatter, unsigned worker, uint64_t sequence)
{
    scatter->workers[worker].stamp++;
    scatter->workers[worker].sequence = sequence;
}

/* Consecutive entries of a piece: arrays of `count`. */
struct slc_scatter_batch {
    uint32_t count;
    uint32_t ordinal; /* of the first; they ascend within the piece */
    const uint32_t *buckets;
    const uint64_t *key_lo;
    const uint64_t *key_hi; /* not looked at where the bucket's range is narrow */
    const double *values;
};

/* Adds the next entries of the current piece. Errors: those of slc_spill_append. */
enum slc_status slc_scatter_add(struct slc_scatter *scatter,
                                unsigned worker,
                                const struct slc_scatter_batch *batch,
                                struct slc_error *err) SLC_NODISCARD;

#endif
