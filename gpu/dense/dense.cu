/* Dense algebra on the device: packs solvers for kernels, and scales columns. */
#include "gpu/dense/dense.h"

#include "gpu/dense/dense_groups.h"

/* ---- solvers */

void slc_gpu_solver_pack(const struct slc_solver *solver, double *packed)
{
    const uint64_t width = slc_gpu_solver_width(solver->rank);
    double *forward = packed, *backward = forward + width * width;
    double *forward_inverse = backward + width * width, *backward_inverse = forward_inverse + width;

    memset(packed, 0, slc_gpu_solver_bytes(solver->rank));
    for (uint64_t i = 0; i < solver->rank; i++) {
        const double *from = solver->forward + i * solver->size;

        if (solver->singular) {
            memcpy(forward + i * width, from, solver->rank * sizeof *from);
            continue;
        }
        for (uint64_t j = 0; j < i; j++) {
            forward[j * width + i] = from[j];
        }
        memcpy(backward + i * width, solver->backward + i * solver->size, i * sizeof *from);
        forward_inverse[i] = solver->forward_inverse[i];
        backward_inverse[i] = solver->backward_inverse[i];
    }
}

/* ---- scaling */

enum {
    SCALE_THREADS = 256,
    /* Maximum number of thread blocks, several times the number that the largest devices run at
     * once. With more rows, each thread block processes rows at a stride. */
    SCALE_BLOCKS_MAX = 8192
};

template <typename T>
__global__ static void
scale_rows(T *data, uint64_t rows, uint32_t cols, uint32_t pitch, const double *scale)
{
    const unsigned lanes = slc_lanes_of_row(cols);
    const uint64_t step = (uint64_t)gridDim.x * (SCALE_THREADS / lanes);
    uint64_t row = ((uint64_t)blockIdx.x * SCALE_THREADS + threadIdx.x) / lanes;

    for (; row < rows; row += step) {
        for (uint32_t c = threadIdx.x % lanes; c < cols; c += lanes) {
            T *element = data + row * pitch + c;

            *element = (T)((double)*element * scale[c]);
        }
    }
}

cudaError_t slc_gpu_dense_scale(const struct slc_gpu_matrix *matrix,
                                enum slc_value_type type,
                                const double *scale,
                                cudaStream_t stream)
{
    const uint64_t blocks =
        slc_div_up_u64(matrix->rows, SCALE_THREADS / slc_lanes_of_row(matrix->cols));
    const unsigned grid = (unsigned)slc_min_u64(blocks, SCALE_BLOCKS_MAX);

    if (matrix->rows == 0) {
        return cudaSuccess;
    }
    if (type == SLC_F64) {
        return slc_launch(scale_rows<double>, grid, SCALE_THREADS, 0, stream,
                          static_cast<double *>(matrix->data), matrix->rows, matrix->cols,
                          matrix->pitch, scale);
    }
    return slc_launch(scale_rows<float>, grid, SCALE_THREADS, 0, stream,
                      static_cast<float *>(matrix->data), matrix->rows, matrix->cols, matrix->pitch,
                      scale);
}
