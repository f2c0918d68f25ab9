/*
 * Building copies; private to cpu/owned_*.c. A piece is sorted by owned_order.c into a
 * slc_owned_order, from which owned_chunk.c writes its chunks.
 */
#ifndef SLC_CPU_OWNED_BUILD_H
#define SLC_CPU_OWNED_BUILD_H

#include "cpu/owned.h"

#include <string.h>

/* Part of a run, or all of it, within a chunk. */
struct slc_owned_run {
    uint32_t first; /* in the order of the piece */
    uint32_t nnz;
};

/* One worker's. */
struct slc_owned_scratch {
    uint64_t *keys[2];             /* SLC_OWNED_PIECE_NNZ each */
    uint32_t *run_begin;           /* SLC_OWNED_PIECE_NNZ + 1 */
    struct slc_owned_run *runs[2]; /* SLC_OWNED_CHUNK_NNZ each */
};
struct slc_owned_scratch slc_owned_scratch_of(const struct slc_owned *owned, unsigned worker);

/* A piece in its order; arrays belong to the scratch. */
struct slc_owned_order {
    const unsigned char *records; /* of the piece, unsorted */
    const uint64_t *keys;         /* in order; the low 16 bits say which record */
    uint32_t nnz;
    uint32_t run_count; /* 0: none */
    const uint32_t *run_begin;
};

static inline uint32_t slc_owned_coordinate(const unsigned char *record, unsigned mode)
{
    uint32_t value;

    memcpy(&value, record + mode * sizeof value, sizeof value);
    return value;
}

/*
 * Brings the records of one mode together by range, in owned->sorted, and makes ranges, items and
 * pieces (without chunks). Errors: SLC_ERR_MEMORY, those of starting threads.
 */
enum slc_status
slc_owned_split(struct slc_owned *owned, unsigned mode, struct slc_error *err) SLC_NODISCARD;

/* Decides the form of a mode's copy. Errors: those of starting threads. */
enum slc_status
slc_owned_choose_form(struct slc_owned *owned, unsigned mode, struct slc_error *err) SLC_NODISCARD;

/* Sorts a piece of a mode's copy for runs in which `varying` vary. */
void slc_owned_sort(const struct slc_owned *owned,
                    unsigned mode,
                    uint32_t varying,
                    const struct slc_owned_piece *piece,
                    const struct slc_owned_scratch *scratch,
                    struct slc_owned_order *order);

/* Sorts the pieces of a mode and writes their chunks. Errors: those of starting threads. */
enum slc_status
slc_owned_write_chunks(struct slc_owned *owned, unsigned mode, struct slc_error *err) SLC_NODISCARD;

#endif
