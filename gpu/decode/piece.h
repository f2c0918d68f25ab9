/* A piece of memory that is divided into consecutive parts. The code that divides a piece runs
 * twice: first to measure it, then to place the parts at its address. Private to gpu/. */
#ifndef SLC_GPU_PIECE_H
#define SLC_GPU_PIECE_H

#include "base/memory/checked.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    /* Parts begin at multiples of this number of bytes, which is a multiple of every cache's line
     * size, as gpu/dense/dense.h needs. */
    SLC_GPU_PART_ALIGN = 256,
    /* At least this number of unused bytes follows each part of device memory; tests check that no
     * kernel writes to the unused bytes. */
    SLC_GPU_GAP_BYTES = 32
};

/* Called with the unused memory between two parts of a piece (gpu/cuda/cuda.h: slc_memory_gap). */
typedef void (*slc_gpu_gap)(const void *memory, size_t bytes);

struct slc_gpu_piece {
    uintptr_t begin; /* address of the piece; 0 if the piece is only measured */
    uint64_t used;
    uint64_t gap_bytes;
    slc_gpu_gap gap; /* NULL means no callback */
    bool overflow;
};

/* Returns the next part, which has `count` elements of `element_bytes` bytes, or NULL if `count` is
 * 0 or the size overflows. */
static inline void *
slc_gpu_part(struct slc_gpu_piece *piece, uint64_t count, uint64_t element_bytes)
{
    const uint64_t at = piece->used;
    uint64_t bytes, end;

    if (count == 0) {
        return NULL;
    }
    if (!slc_mul_u64(count, element_bytes, &bytes) || !slc_add_u64(at, bytes, &end) ||
        !slc_add_u64(end, piece->gap_bytes, &end) ||
        !slc_round_up_u64(end, SLC_GPU_PART_ALIGN, &piece->used)) {
        piece->overflow = true;
        return NULL;
    }
    if (piece->begin != 0 && piece->gap_bytes > 0 && piece->gap != NULL) {
        piece->gap((const void *)(piece->begin + at + bytes), piece->used - at - bytes);
    }
    return (void *)(piece->begin + at);
}

#endif
