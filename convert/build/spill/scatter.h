/* Scatters entries to buckets through one small buffer of rows per worker and bucket. A full buffer
 * is packed into a chunk. Pushed entries are scattered, and so are the entries of a bucket that is
 * split. */
#ifndef SLC_CONVERT_SCATTER_H
#define SLC_CONVERT_SCATTER_H

#include "base/error/error.h"
#include "convert/build/sort/key_frame.h"
#include "convert/build/spill/spill.h"

#include <stdint.h>

struct slc_scatter_shape {
    unsigned workers;
    uint32_t buckets;
    /* Entries in a buffer of narrow keys (convert/build/sort/key_frame.h). A buffer of other keys
     * holds two thirds of this number. */
    uint32_t entries;
    uint32_t runs; /* maximum number of runs in a buffer */
};

/* Fill state of a worker's buffer for one bucket. */
struct slc_scatter_fill {
    uint64_t *next;      /* position of the next row */
    const uint64_t *end; /* `next` of a full buffer */
    uint64_t stamp;      /* stamp of the input piece of the buffer's last run; 0: empty buffer */
    uint64_t any;        /* OR of the narrow keys of all rows */
    uint32_t row_words;
    uint32_t runs;
    struct slc_key_range range;
};

/* State of one worker, padded so that workers do not share cache lines. */
struct slc_scatter_worker {
    struct slc_scatter_fill *fills; /* one per bucket */
    uint8_t *rows;                  /* the buffers, one per bucket: rows, then runs */
    uint8_t *chunk;                 /* buffer in which chunks are packed */
    uint32_t frame;                 /* frame of the keys in the buffers */
    uint64_t stamp;                 /* number of the current piece of input, unique per worker */
    uint64_t sequence;              /* sequence of the current piece */
    char padding[64];
};

struct slc_scatter {
    struct slc_scatter_shape shape;
    struct slc_spill *spill;
    struct slc_chain *chains; /* one per bucket; owned by the caller */
    size_t buffer_bytes;
    size_t rows_bytes;
    struct slc_scatter_worker *workers;
};

/* Returns the largest shape for this number of workers and buckets whose memory (slc_scatter_bytes)
 * fits `budget_bytes`; `entries` is 0 if no shape fits. A buffer is at most 256 KiB, because larger
 * chunks save nothing. */
struct slc_scatter_shape slc_scatter_fit(unsigned workers, uint32_t buckets, uint64_t budget_bytes);
uint64_t slc_scatter_bytes(const struct slc_scatter_shape *shape);
/* `memory`: slc_scatter_bytes(shape) bytes, any content, 64-byte aligned, borrowed until the last
 * flush. There is no destroy function. */
void slc_scatter_init(struct slc_scatter *scatter,
                      const struct slc_scatter_shape *shape,
                      struct slc_spill *spill,
                      struct slc_chain *chains,
                      void *memory);

/* Switches this worker to keys of `frame`, with these key ranges of the buckets, and flushes rows
 * of another frame. Must be called before the worker's first row. */
enum slc_status slc_scatter_frame(struct slc_scatter *scatter,
                                  unsigned worker,
                                  uint32_t frame,
                                  const struct slc_key_range *ranges,
                                  struct slc_error *err) SLC_NODISCARD;

/* Packs and appends the buffers of all workers, on the calling thread. */
enum slc_status slc_scatter_flush_all(struct slc_scatter *scatter,
                                      struct slc_error *err) SLC_NODISCARD;

/* Starts a new piece of input (a pushed chunk, or a run of a chunk being split) for this worker. */
static inline void
slc_scatter_piece(struct slc_scatter *scatter, unsigned worker, uint64_t sequence)
{
    scatter->workers[worker].stamp++;
    scatter->workers[worker].sequence = sequence;
}

/* Consecutive entries of a piece of input, as arrays of `count` elements. */
struct slc_scatter_batch {
    uint32_t count;
    uint32_t ordinal; /* ordinal of the first entry; ordinals ascend within the piece */
    const uint32_t *buckets;
    const uint64_t *key_lo;
    const uint64_t *key_hi; /* unused if the bucket's range is narrow */
    const double *values;
};

/* Adds the next entries of the current piece. Errors: those of slc_spill_append. */
enum slc_status slc_scatter_add(struct slc_scatter *scatter,
                                unsigned worker,
                                const struct slc_scatter_batch *batch,
                                struct slc_error *err) SLC_NODISCARD;

#endif
