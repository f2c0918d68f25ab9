/*
 * Multiplies a tile fiber by fiber on the device: arguments and results of its kernels. Private to
 * gpu/.
 *
 *     y(f, r) = sum over the nonzeros x of fiber f of x * product of U_n(i_n, r) over modes n
 *
 * A fiber is a run of neighbours that agree in the kept modes. There are two kernels, and a third
 * for long fibers:
 *
 * decode: a warp decodes a run of the tile to offsets and values, and marks where fibers begin.
 * multiply: processes groups of SLC_GROUP_NNZ nonzeros. Each warp counts the fibers that begin
 * before its group, from 512 cached numbers: this is faster than a kernel launch, and the host need
 * not know their number in between. With several columns a vector of threads iterates over a
 * group's nonzeros and adds rows of the matrices; with one, lanes process nonzeros in parallel and
 * add within fibers by a scan. A fiber that begins in the group is stored once; the group's part of
 * a fiber that began earlier is stored as a carry.
 * carry: adds the carries of each fiber to its row.
 *
 * Order: that of groups, which are cut by ordinal: a sum's bits depend on the tile alone.
 */
#ifndef SLC_GPU_PRODUCT_KERNELS_H
#define SLC_GPU_PRODUCT_KERNELS_H

#include "gpu/cuda/batch.h"

extern "C" {
#include "gpu/product/product_parts.h"
}

/* Arguments for one tile. All pointers are the device's. */
struct slc_product_job {
    const struct slc_gpu_tile *tile;
    const struct slc_encoded_layout *layout;
    struct slc_gpu_fault *fault;
    struct slc_product_list list;

    uint32_t nnz, cols;
    uint32_t first, room; /* requested fibers: first .. first + room - 1, as far as they exist */
    enum slc_value_type precision;      /* of the matrices and of list.values */
    uint32_t kept, summed;              /* modes */
    uint8_t kept_mode[SLC_MAX_ORDER];   /* each kept mode */
    uint8_t summed_mode[SLC_MAX_ORDER]; /* each mode with a matrix */
    const void *rows[SLC_MAX_ORDER];    /* matrix row of the tile's corner, per summed mode */
    uint32_t pitch;                     /* elements, of all matrices; 1 for one column */

    uint32_t *carry_fiber; /* per group, SLC_PRODUCT_GROUPS: fiber of its carry; UINT32_MAX: none */
    double *carries;       /* a row per group */
    uint8_t *result;
};

/* May write all of the result except the header's fault, which slc_product_multiply copies. */
cudaError_t slc_product_decode(const struct slc_product_job *job, cudaStream_t stream);
cudaError_t slc_product_multiply(const struct slc_product_job *job, cudaStream_t stream);

#endif
