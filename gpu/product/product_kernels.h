/*
 * A tile multiplied fiber by fiber on the device: what its kernels are given, and what they leave.
 * Private to gpu/.
 *
 *     y(f, r) = sum over the nonzeros x of fiber f of x * product of U_n(i_n, r) over modes n
 *
 * A fiber is a run of neighbours that agree in the modes that stay. Two kernels, and a third for
 * fibers that are long:
 *
 * decode     A warp decodes a run of the tile to offsets and values, and marks where fibers begin.
 * multiply   Takes groups of SLC_GROUP_NNZ nonzeros. How many fibers begin before a group each warp
 *            counts by itself, from 512 numbers that lie in the cache: less than a launch takes,
 *            and nobody on the host has to know their number in between. With several columns a
 *            vector of threads goes through a group's nonzeros and adds up rows of the matrices;
 *            with one, lanes take nonzeros side by side and add up within fibers by a scan. A fiber
 *            that begins in the group is stored once; what the group has of one that began before
 *            it is left as a carry.
 * carry      Adds the carries of each fiber to its row.
 *
 * Order: that of groups, which are cut by ordinal: a sum's bits depend on the tile alone.
 */
#ifndef SLC_GPU_PRODUCT_KERNELS_H
#define SLC_GPU_PRODUCT_KERNELS_H

#include "gpu/cuda/batch.h"

extern "C" {
#include "gpu/product/product_parts.h"
}

/* Multiplying one tile. All pointers are the device's. */
struct slc_product_job {
    const struct slc_gpu_tile *tile;
    const struct slc_encoded_layout *layout;
    struct slc_gpu_fault *fault;
    struct slc_product_list list;

    uint32_t nnz, cols;
    uint32_t first, room; /* fibers first .. first + room - 1 are wanted, as far as there are any */
    enum slc_value_type precision;      /* of the matrices and of list.values */
    uint32_t kept, summed;              /* modes */
    uint8_t kept_mode[SLC_MAX_ORDER];   /* each that stays */
    uint8_t summed_mode[SLC_MAX_ORDER]; /* each with a matrix .. */
    const void *rows[SLC_MAX_ORDER];    /* .. and its row of the tile's corner */
    uint32_t pitch;                     /* elements, of all matrices; 1 of one column */

    uint32_t *carry_fiber; /* per group: whose carry it has; UINT32_MAX: none. SLC_PRODUCT_GROUPS */
    double *carries;       /* per group a row */
    uint8_t *result;
};

/* All of the result may be written but its header's fault, which slc_product_multiply copies. */
cudaError_t slc_product_decode(const struct slc_product_job *job, cudaStream_t stream);
cudaError_t slc_product_multiply(const struct slc_product_job *job, cudaStream_t stream);

#endif
