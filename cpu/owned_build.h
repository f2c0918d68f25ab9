/*
 * Building copies; private to cpu/owned_*.c. A piece is sorted by owned_order.c into a
 * slc_owned_order, from which owned_chunk.c writes its chunks.
 */
#ifndef SLC_CPU_OWNED_BUILD_H
#define SLC_CPU_OWNED_BUILD_H

#include "cpu/owned.h"

#include <string.h>

/* A nonzero while its piece is sorted. */
struct slc_owned_key {
    uint64_t key;
    uint32_t at; /* in the piece */
    uint32_t unused;
};

/* Part of a run, or all of it, within a chunk. */
struct slc_owned_run {
    uint32_t first; /* in the order of the piece */
    uint32_t nnz;
};

/* One worker's. */
struct slc_owned_scratch {
    struct slc_owned_key *keys[2]; /* SLC_OWNED_PIECE_NNZ each */
    struct slc_owned_run *runs[2]; /* SLC_OWNED_CHUNK_NNZ each */
};
struct slc_owned_scratch slc_owned_scratch_of(const struct slc_owned *owned, unsigned worker);

/* A piece in its order. */
struct slc_owned_order {
    const unsigned char *records; /* of the piece, unsorted */
    const struct slc_owned_key *keys;
    uint32_t nnz;
    bool runs;         /* the order gives runs */
    unsigned run_bits; /* keys that agree above these bits are of one run */
};

static inline uint32_t slc_owned_coordinate(const unsigned char *record, unsigned mode)
{
    uint32_t value;

    memcpy(&value, record + mode * sizeof value, sizeof value);
    return value;
}

static inline bool slc_owned_same_run(const struct slc_owned_order *order, uint32_t i, uint32_t j)
{
    /* A coordinate has 32 bits at most: the shift is defined. */
    return order->keys[i].key >> order->run_bits == order->keys[j].key >> order->run_bits;
}

/*
 * Brings the records of one mode together by range, in owned->sorted, and makes ranges, items and
 * pieces (without chunks). Errors: SLC_ERR_MEMORY, those of starting threads.
 */
enum slc_status
slc_owned_split(struct slc_owned *owned, unsigned mode, struct slc_error *err) SLC_NODISCARD;

/* Decides which mode of the copy varies within runs. Errors: those of starting threads. */
enum slc_status slc_owned_choose_run_mode(struct slc_owned *owned,
                                          unsigned mode,
                                          struct slc_error *err) SLC_NODISCARD;

/* Sorts a piece of a mode's copy so that `run_mode` varies fastest. */
void slc_owned_sort(const struct slc_owned *owned,
                    unsigned mode,
                    unsigned run_mode,
                    const struct slc_owned_piece *piece,
                    const struct slc_owned_scratch *scratch,
                    struct slc_owned_order *order);

/* Sorts the pieces of a mode and writes their chunks. Errors: those of starting threads. */
enum slc_status
slc_owned_write_chunks(struct slc_owned *owned, unsigned mode, struct slc_error *err) SLC_NODISCARD;

#endif
