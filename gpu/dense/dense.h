/*
 * Dense row algebra of the decompositions in the device's memory: the math of cpu/dense/dense.h.
 * Private to gpu/.
 *
 * Arithmetic is in f64 for all element types, with products fused with additions. Matrices, and
 * runs of rows of one, are struct slc_gpu_matrix. Order: bitwise reproducible on every device: rows
 * are cut by their number and the rank, and partial results are added in the order of the cuts.
 * Memory: nothing is allocated. Pointers are to the device's memory unless noted. Consecutive
 * operations on one stream may share scratch. Errors: only those of enqueueing work on the stream.
 */
#ifndef SLC_GPU_DENSE_H
#define SLC_GPU_DENSE_H

#include "gpu/cuda/batch.h"

extern "C" {
#include "gpu/dense/dense_cuts.h"
}

/* A solver in the form that kernels use. */
struct slc_gpu_solver {
    const double *packed; /* slc_gpu_solver_bytes of the rank, aligned to 16 bytes */
    uint32_t rank;
    bool singular;
};

/* Packs a solver in host memory; all slc_gpu_solver_bytes are then copied to the device. */
void slc_gpu_solver_pack(const struct slc_solver *solver, double *packed);

/*
 * factor = MTTKRP D V^-1 E. For each column r, columns[r] becomes the largest magnitude in the new
 * factor, ignoring NaN, and columns[rank + r] the sum over i of mttkrp(i, r) factor(i, r). The
 * MTTKRP is f64, the factor of `precision`; they have one shape and separate memory. Accuracy: by
 * substitution, as slc_dense_update. Cost: rows * rank^2 multiply-adds; the MTTKRP is read twice,
 * the second time from caches if they hold 64 rows per warp; one write of the factor. Above rank 64
 * rows are processed in scratch instead of shared memory.
 */
cudaError_t slc_gpu_dense_update(const struct slc_gpu_solver *solver,
                                 enum slc_value_type precision,
                                 const struct slc_gpu_matrix *mttkrp,
                                 const struct slc_gpu_matrix *factor,
                                 double *columns,
                                 void *scratch,
                                 cudaStream_t stream);

/* Runs of rows whose columns are computed separately. */
struct slc_gpu_units {
    const struct slc_row_span *rows; /* of each unit; in the device's memory */
    uint32_t count;
    uint64_t rows_most; /* of a unit */
};

/* The same for the rows of units only: unit u has its 2 * rank columns at columns + u * 2 * rank.
 * Order: the columns of a unit depend only on its rows and rows_most, not on other units. */
cudaError_t slc_gpu_dense_update_units(const struct slc_gpu_solver *solver,
                                       enum slc_value_type precision,
                                       const struct slc_gpu_matrix *mttkrp,
                                       const struct slc_gpu_matrix *factor,
                                       const struct slc_gpu_units *units,
                                       double *columns,
                                       void *scratch,
                                       cudaStream_t stream);

/* gram = A^T A, rank x rank. Cost: rows * rank^2 / 2 multiply-adds, one read of A up to rank 64. */
cudaError_t slc_gpu_dense_gram(const struct slc_gpu_matrix *matrix,
                               enum slc_value_type type,
                               double *gram,
                               void *scratch,
                               cudaStream_t stream);

/* Multiplies column r by scale[r], in place. */
cudaError_t slc_gpu_dense_scale(const struct slc_gpu_matrix *matrix,
                                enum slc_value_type type,
                                const double *scale,
                                cudaStream_t stream);

#endif
