/* Implements tensor times matrix from fibers (products.h). */
#include "tools/bench/rivals/gpu/products.h"

#include "gpu/product/pack.h"
#include "tools/bench/rivals/gpu/baseline.h"

#include <string.h>

enum {
    THREADS = 256,
    /* The compiler must leave enough registers for this number of blocks per multiprocessor.
       Without this bound, nvcc 13 assumes more blocks and spills registers. */
    BLOCKS = 4
};

const char *slc_gpu_ttm_form_name(enum slc_gpu_ttm_form form)
{
    static const char *const names[] = {"fibers", "nonzeros"};

    return static_cast<unsigned>(form) < SLC_GPU_TTM_FORMS ? names[form] : "?";
}

/* Sets sum to the sum of value times matrix row over the nonzeros [begin, end), in the columns of
 * this thread, which start at `column`. */
template <typename Element>
__device__ static inline void sum_nonzeros(const struct slc_gpu_fibers *fibers,
                                           const struct slc_gpu_matrix *matrix,
                                           uint32_t begin,
                                           uint32_t end,
                                           uint32_t column,
                                           double *sum)
{
    const Element *columns = static_cast<const Element *>(matrix->data) + column;

    for (int k = 0; k < slc_pack<Element>::COUNT; k++) {
        sum[k] = 0;
    }
    for (uint32_t i = begin; i < end; i++) {
        const double value = slc_baseline_value(fibers->type, fibers->values, i);
        const slc_pack<Element> row = *reinterpret_cast<const slc_pack<Element> *>(
            columns + static_cast<uint64_t>(fibers->index[i]) * matrix->pitch);

        for (int k = 0; k < slc_pack<Element>::COUNT; k++) {
            sum[k] += value * static_cast<double>(row[k]);
        }
    }
}

template <int count>
__device__ static inline void store(double *row, uint32_t column, uint32_t cols, const double *sum)
{
    for (int k = 0; k < count; k++) {
        if (column + static_cast<uint32_t>(k) < cols) {
            row[column + static_cast<uint32_t>(k)] = sum[k];
        }
    }
}

/* The kernel "fibers": each vector of threads (x) processes a group. A thread has 16 bytes of each
 * row. */
template <typename Element>
__global__ static void __launch_bounds__(THREADS, BLOCKS)
    slc_ttm_groups(const struct slc_gpu_fibers fibers,
                   const struct slc_fiber_groups groups,
                   const struct slc_gpu_matrix matrix,
                   const struct slc_gpu_matrix rows,
                   double *carries,
                   uint32_t carry_pitch)
{
    enum { COUNT = slc_pack<Element>::COUNT };
    const uint32_t group = blockIdx.x * blockDim.y + threadIdx.y;

    if (group >= groups.count) {
        return;
    }
    const struct slc_fiber_cut first = groups.cuts[group], last = groups.cuts[group + 1];

    for (uint32_t c = threadIdx.x * COUNT; c < matrix.cols; c += blockDim.x * COUNT) {
        uint32_t at = first.nonzero;
        double sum[COUNT];

        for (uint32_t f = first.fiber; f < last.fiber; f++) {
            const uint32_t end = fibers.begin[f + 1];

            sum_nonzeros<Element>(&fibers, &matrix, at, end, c, sum);
            store<COUNT>(static_cast<double *>(rows.data) + static_cast<uint64_t>(f) * rows.pitch,
                         c, matrix.cols, sum);
            at = end;
        }
        sum_nonzeros<Element>(&fibers, &matrix, at, last.nonzero, c, sum);
        store<COUNT>(carries + static_cast<uint64_t>(group) * carry_pitch, c, matrix.cols, sum);
    }
}

/* The kernel "nonzeros": each vector of threads processes a nonzero. */

template <typename Element>
__global__ static void __launch_bounds__(THREADS)
    slc_ttm_elements(const struct slc_gpu_fibers fibers,
                     const struct slc_gpu_matrix matrix,
                     const struct slc_gpu_matrix rows)
{
    const uint64_t i = static_cast<uint64_t>(blockIdx.x) * blockDim.y + threadIdx.y;

    if (i >= fibers.nnz) {
        return;
    }
    const double value = slc_baseline_value(fibers.type, fibers.values, i);
    const Element *from = static_cast<const Element *>(matrix.data) +
                          static_cast<uint64_t>(fibers.index[i]) * matrix.pitch;
    double *to =
        static_cast<double *>(rows.data) + static_cast<uint64_t>(fibers.fiber_of[i]) * rows.pitch;

    for (uint32_t c = threadIdx.x; c < matrix.cols; c += blockDim.x) {
        atomicAdd(to + c, value * static_cast<double>(from[c]));
    }
}

template <typename Element>
static cudaError_t multiply_fibers(const struct slc_gpu_ttm *ttm,
                                   const struct slc_gpu_matrix *matrix,
                                   const struct slc_gpu_matrix *rows,
                                   cudaStream_t stream)
{
    const uint32_t packs = (matrix->cols + slc_pack<Element>::COUNT - 1) / slc_pack<Element>::COUNT;
    const dim3 block = slc_baseline_block(packs);
    const dim3 grid((ttm->groups.count + block.y - 1) / block.y);

    SLC_CUDA_TRY(slc_launch(slc_ttm_groups<Element>, grid, block, 0, stream, *ttm->fibers,
                            ttm->groups, *matrix, *rows, ttm->carries, ttm->carry_pitch));
    return slc_fiber_carries(ttm->fibers, &ttm->groups, ttm->carries, ttm->carry_pitch, rows,
                             stream);
}

template <typename Element>
static cudaError_t multiply_elements(const struct slc_gpu_ttm *ttm,
                                     const struct slc_gpu_matrix *matrix,
                                     const struct slc_gpu_matrix *rows,
                                     cudaStream_t stream)
{
    const dim3 block = slc_baseline_block(matrix->cols);
    const uint64_t blocks = (ttm->fibers->nnz + block.y - 1) / block.y;
    const cudaError_t error =
        cudaMemsetAsync(rows->data, 0, ttm->fibers->count * rows->pitch * sizeof(double), stream);

    if (error != cudaSuccess || blocks == 0) {
        return error;
    }
    return slc_launch(slc_ttm_elements<Element>, dim3(static_cast<unsigned>(blocks)), block, 0,
                      stream, *ttm->fibers, *matrix, *rows);
}

cudaError_t slc_gpu_ttm_multiply(const struct slc_gpu_ttm *ttm,
                                 enum slc_gpu_ttm_form form,
                                 const struct slc_gpu_matrix *matrix,
                                 const struct slc_gpu_matrix *rows,
                                 cudaStream_t stream)
{
    if (rows->rows < ttm->fibers->count || rows->cols != matrix->cols ||
        matrix->cols > ttm->carry_pitch) {
        return cudaErrorInvalidValue;
    }
    if (ttm->groups.count == 0) {
        return cudaSuccess;
    }
    if (ttm->precision == SLC_F64) {
        return form == SLC_GPU_TTM_FIBERS ? multiply_fibers<double>(ttm, matrix, rows, stream)
                                          : multiply_elements<double>(ttm, matrix, rows, stream);
    }
    return form == SLC_GPU_TTM_FIBERS ? multiply_fibers<float>(ttm, matrix, rows, stream)
                                      : multiply_elements<float>(ttm, matrix, rows, stream);
}

cudaError_t slc_gpu_ttm_create(struct slc_gpu_ttm *ttm,
                               const struct slc_gpu_fibers *fibers,
                               uint32_t cols,
                               enum slc_value_type precision,
                               uint32_t group_items,
                               const struct slc_gpu_machine *machine)
{
    ttm->fibers = fibers;
    ttm->precision = precision;
    ttm->carry_pitch = cols;
    SLC_CUDA_TRY(slc_fiber_groups_reserve(&ttm->groups, fibers, group_items, machine));
    return cudaMalloc(reinterpret_cast<void **>(&ttm->carries),
                      (ttm->groups.room + UINT64_C(1)) * cols * sizeof(double));
}

cudaError_t slc_gpu_ttm_prepare(struct slc_gpu_ttm *ttm, cudaStream_t stream)
{
    return slc_fiber_groups_cut(&ttm->groups, ttm->fibers, stream);
}

void slc_gpu_ttm_destroy(struct slc_gpu_ttm *ttm)
{
    slc_fiber_groups_destroy(&ttm->groups);
    (void)cudaFree(ttm->carries);
    memset(ttm, 0, sizeof *ttm);
}
