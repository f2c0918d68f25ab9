/* The kernels that multiply a tile fiber by fiber on the device, and their arguments. Private to
 * gpu/.
 *
 *     y(f, r) = sum of (x * product of U_n(i_n, r) over summed modes n) over nonzeros x of fiber f
 *
 * Summed modes n have a matrix U_n, kept modes have none. A fiber is a run of neighbouring nonzeros
 * that agree in the kept modes. There are three kernels:
 *
 * 1. decode: a warp decodes a run of the tile to offsets and values, and marks where fibers begin.
 * 2. multiply: processes groups of SLC_GROUP_NNZ nonzeros. Each warp counts the fibers that begin
 *    before its group by adding at most 512 cached counts. This is faster than a separate kernel
 *    that counts, and the host does not need the number of fibers between the kernels. With several
 *    columns, a vector of threads iterates over a group's nonzeros and adds rows of the matrices.
 *    With one column, the warp lanes process nonzeros in parallel and add within fibers by a scan.
 *    The sum of a fiber that begins in the group is stored once. The group's partial sum of a fiber
 *    that began in an earlier group is stored as a carry.
 * 3. carry, for fibers longer than a group: adds the carries of each fiber to the fiber's row.
 *
 * Order: partial sums are added in the order of groups, and groups are cut at multiples of
 * SLC_GROUP_NNZ nonzeros, so the bits of a sum depend only on the tile. */
#ifndef SLC_GPU_PRODUCT_KERNELS_H
#define SLC_GPU_PRODUCT_KERNELS_H

#include "gpu/cuda/batch.h"

extern "C" {
#include "gpu/product/product_parts.h"
}

/* Arguments for one tile. All pointers refer to device memory. */
struct slc_product_job {
    const struct slc_gpu_tile *tile;
    const struct slc_encoded_layout *layout;
    struct slc_gpu_fault *fault;
    struct slc_product_list list;

    uint32_t nnz, cols;
    /* requested fibers: those of [first, first + room) that exist in the tile */
    uint32_t first, room;
    enum slc_value_type precision;    /* type of the matrices and of list.values */
    uint32_t kept, summed;            /* number of kept modes, and number of modes with a matrix */
    uint8_t kept_mode[SLC_MAX_ORDER]; /* each kept mode */
    uint8_t summed_mode[SLC_MAX_ORDER]; /* each mode with a matrix */
    /* per summed mode: the matrix row of the tile's corner, or, if the matrix has rows only for
     * used indices, the first row */
    const void *rows[SLC_MAX_ORDER];
    /* per summed mode: the map of used indices (base/used.h), or NULL, and the tile's corner in it
     */
    const struct slc_used_word *used[SLC_MAX_ORDER];
    uint64_t used_corner[SLC_MAX_ORDER];
    /* elements from one row to the next in all matrices; 1 if there is one column */
    uint32_t pitch;

    /* the fiber of the carry of each group (SLC_PRODUCT_GROUPS elements), or UINT32_MAX */
    uint32_t *carry_fiber;
    double *carries; /* the carries, `cols` elements per group */
    uint8_t *result;
};

/* Enqueue the decoding of the tile, and then the multiplication, which writes the result and copies
 * the fault to the header of the result. */
cudaError_t slc_product_decode(const struct slc_product_job *job, cudaStream_t stream);
cudaError_t slc_product_multiply(const struct slc_product_job *job, cudaStream_t stream);

#endif
