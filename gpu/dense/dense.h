/*
 * Dense row algebra of the decompositions in the device's memory: the math of cpu/dense/dense.h.
 * Private to gpu/.
 *
 * Arithmetic is in f64 whatever the elements are, products fused with what they are added to.
 * Matrices are struct slc_gpu_matrix, a run of the rows of one as well.
 * Order: the same bits every time and on every device: rows are cut as their number and the rank
 * say, and partial results are added up in the order of the cuts.
 * Memory: nothing is allocated. What is pointed to is the device's memory unless told. Operations
 * that follow one another on one stream may share scratch.
 * Errors: what putting work on the stream gives; nothing else can go wrong.
 */
#ifndef SLC_GPU_DENSE_H
#define SLC_GPU_DENSE_H

#include "gpu/cuda/batch.h"

extern "C" {
#include "gpu/dense/dense_cuts.h"
}

/* A solver as kernels take it. */
struct slc_gpu_solver {
    const double *packed; /* slc_gpu_solver_bytes of the rank, from a multiple of 16 on */
    uint32_t rank;
    bool singular;
};

/* Packs a solver, within the host's memory: all slc_gpu_solver_bytes are to be copied from there.
 */
void slc_gpu_solver_pack(const struct slc_solver *solver, double *packed);

/*
 * factor = MTTKRP D V^-1 E. For each column r, columns[r] becomes the largest magnitude of what the
 * factor then holds, NaN ignored, and columns[rank + r] the sum over i of mttkrp(i, r) factor(i,
 * r). The MTTKRP is f64, the factor of `precision`; they have one shape and separate memory.
 * Accuracy: by substitution, as slc_dense_update. Cost: rows * rank^2 multiply-adds; the MTTKRP is
 * read twice, the second time from caches where they hold 64 rows for each multiprocessor's warps;
 * one write of the factor. Beyond rank 64 rows are worked on in scratch instead of shared memory.
 */
cudaError_t slc_gpu_dense_update(const struct slc_gpu_solver *solver,
                                 enum slc_value_type precision,
                                 const struct slc_gpu_matrix *mttkrp,
                                 const struct slc_gpu_matrix *factor,
                                 double *columns,
                                 void *scratch,
                                 cudaStream_t stream);

/* Runs of rows whose columns are wanted one by one. */
struct slc_gpu_units {
    const struct slc_row_span *rows; /* of each; in the device's memory */
    uint32_t count;
    uint64_t rows_most; /* of a unit */
};

/*
 * The same for the rows of units alone: unit u has its 2 * rank columns at columns + u * 2 * rank.
 * Order: those of a unit are what its rows and rows_most say, whatever the others are.
 */
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
