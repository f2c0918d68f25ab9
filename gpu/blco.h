/*
 * A tensor in BLCO's form in the device's memory. Private to gpu/.
 *
 * BLCO is Nguyen et al., ICS 2022 (arXiv 2201.12523), section 3: the coordinates of a nonzero as
 * one index of at most 64 bits, re-encoded from ALTO order so that each mode has one field, found
 * by a shift and a mask; bits beyond 64 are those of blocks of neighbours that agree in them, held
 * once per block. 16 bytes a nonzero with f64 values.
 */
#ifndef SLC_GPU_BLCO_H
#define SLC_GPU_BLCO_H

#include "gpu/coo.h"

/* Nonzeros from `first` on, up to the next block's. */
struct slc_gpu_blco_block {
    uint64_t first;
    uint32_t upper[SLC_MAX_ORDER]; /* what the index does not say of a coordinate, in its place */
};

/* Borrows the values of the list it was made from. */
struct slc_gpu_blco {
    unsigned order;
    enum slc_value_type type;
    uint64_t nnz, block_count;
    uint8_t shift[SLC_MAX_ORDER]; /* of a mode's field */
    uint8_t bits[SLC_MAX_ORDER];  /* in it: up to 32 */
    uint64_t *indices;
    const void *values;
    struct slc_gpu_blco_block *blocks; /* block_count */
};

/*
 * Brings a list into this form, on the host; `dims` are the modes' lengths. `index_bits` are what
 * an index may have, up to 64 (fewer make more blocks, for tests). A list in ALTO order
 * (base/key.h) has the fewest blocks; any other order will do. Needs: *blco all-zero. Owns:
 * slc_gpu_blco_destroy, also after an error. Errors: cudaErrorInvalidValue for lengths of 2^32
 * or more index bits than 64; cudaErrorMemoryAllocation, also for the host's memory.
 */
cudaError_t slc_gpu_blco_create(struct slc_gpu_blco *blco,
                                const struct slc_gpu_coo *coo,
                                const uint64_t *dims,
                                unsigned index_bits,
                                cudaStream_t stream);

/* Takes an all-zero struct. */
void slc_gpu_blco_destroy(struct slc_gpu_blco *blco);

#endif
