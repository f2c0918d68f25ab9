/*
 * A piece of memory of which parts are cut off one after the other: walked once to measure it, and
 * again where it lies. Private to gpu/.
 */
#ifndef SLC_GPU_PIECE_H
#define SLC_GPU_PIECE_H

#include "gpu/cuda.h"

extern "C" {
#include "base/checked.h"
}

enum {
    /* Parts begin at such places: whole lines of every cache, and what gpu/dense.h asks for. */
    SLC_GPU_PART_ALIGN = 256,
    /* At least so many bytes behind a part of the device's memory belong to nobody: tests find who
     * writes there. */
    SLC_GPU_GAP_BYTES = 32
};

struct slc_gpu_piece {
    uintptr_t begin; /* 0: it is measured */
    uint64_t used;
    uint64_t gap_bytes;
    bool overflow;
};

template <typename T> static T *slc_gpu_part(struct slc_gpu_piece *piece, uint64_t count)
{
    const uint64_t at = piece->used;
    uint64_t bytes, end;

    if (count == 0) {
        return nullptr;
    }
    if (!slc_mul_u64(count, sizeof(T), &bytes) || !slc_add_u64(at, bytes, &end) ||
        !slc_add_u64(end, piece->gap_bytes, &end) ||
        !slc_round_up_u64(end, SLC_GPU_PART_ALIGN, &piece->used)) {
        piece->overflow = true;
        return nullptr;
    }
    if (piece->begin != 0 && piece->gap_bytes > 0) {
        slc_memory_gap(reinterpret_cast<void *>(piece->begin + at + bytes),
                       piece->used - at - bytes);
    }
    return reinterpret_cast<T *>(piece->begin + at);
}

#endif
