/* Dense algebra on rows of factors in device memory, for decompositions. cpu/dense/dense.h has the
 * same functions for the CPU. Private to gpu/.
 *
 * Arithmetic is in f64 for all element types, with fused multiply-adds. A struct slc_gpu_matrix
 * describes a matrix or a run of its rows. Order: results have the same bits on every device,
 * because the cuts depend only on the number of rows and the rank, and partial results are added in
 * the order of the cuts. Memory: nothing is allocated. Pointers refer to device memory unless a
 * comment states otherwise. Consecutive operations on one stream may share scratch. Errors: the
 * functions return only errors of enqueueing work on the stream. */
#ifndef SLC_GPU_DENSE_H
#define SLC_GPU_DENSE_H

#include "gpu/cuda/batch.h"

extern "C" {
#include "gpu/dense/dense_cuts.h"
}

/* A row solver in the form that kernels use. */
struct slc_gpu_solver {
    const double *packed; /* slc_gpu_solver_bytes(rank) bytes, aligned to 16 bytes */
    uint32_t rank;
    bool singular;
};

/* Packs a solver in host memory. The caller then copies all slc_gpu_solver_bytes(rank) bytes to the
 * device. */
void slc_gpu_solver_pack(const struct slc_solver *solver, double *packed);

/* Computes factor = MTTKRP D V^-1 E. For each column r, columns[r] becomes the largest magnitude in
 * the new factor, ignoring NaN, and columns[rank + r] becomes the sum over i of
 * mttkrp(i, r) * factor(i, r). The MTTKRP is f64 and the factor has type `precision`; they have the
 * same shape and separate memory. Accuracy: rows are solved by substitution, as in
 * slc_dense_update. Cost: rows * rank^2 multiply-adds, two reads of the MTTKRP and one write of the
 * factor. The second read is served by caches if 64 rows per warp fit in the caches. Above rank 64,
 * rows are processed in scratch instead of shared memory. */
cudaError_t slc_gpu_dense_update(const struct slc_gpu_solver *solver,
                                 enum slc_value_type precision,
                                 const struct slc_gpu_matrix *mttkrp,
                                 const struct slc_gpu_matrix *factor,
                                 double *columns,
                                 void *scratch,
                                 cudaStream_t stream);

/* Runs of rows (units) whose column results are computed separately. */
struct slc_gpu_units {
    const struct slc_row_span *rows; /* the rows of each unit, in device memory */
    uint32_t count;
    uint64_t rows_most; /* number of rows of the longest unit */
};

/* Updates only the rows of the units. The 2 * rank column results of unit u are at columns + u * 2
 * * rank. Order: the column results of a unit depend only on its rows and rows_most, not on other
 * units. */
cudaError_t slc_gpu_dense_update_units(const struct slc_gpu_solver *solver,
                                       enum slc_value_type precision,
                                       const struct slc_gpu_matrix *mttkrp,
                                       const struct slc_gpu_matrix *factor,
                                       const struct slc_gpu_units *units,
                                       double *columns,
                                       void *scratch,
                                       cudaStream_t stream);

/* Computes gram = A^T A, rank x rank. Cost: rows * rank^2 / 2 multiply-adds; up to rank 64, one
 * read of A. */
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
