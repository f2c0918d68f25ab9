/* Implements tensor times matrix from fibers (products.h). */
#include "tools/bench/rivals/gpu/products.h"

#include "gpu/decode/decode_bits.h"
#include "gpu/product/pack.h"
#include "tools/bench/rivals/gpu/baseline.h"

#include <string.h>

enum {
    THREADS = 256,
    /* The compiler must leave enough registers for this number of blocks per multiprocessor.
       Without this bound, nvcc 13 assumes more blocks and spills registers. */
    BLOCKS = 3,
    BATCH = 4 /* nonzeros whose rows a thread loads at the same time */
};

const char *slc_gpu_ttm_form_name(enum slc_gpu_ttm_form form)
{
    static const char *const names[] = {"fibers", "nonzeros"};

    return static_cast<unsigned>(form) < SLC_GPU_TTM_FORMS ? names[form] : "?";
}

/* The nonzeros of a batch. */
struct ttm_batch {
    uint32_t index[BATCH];
    double value[BATCH];
};

/* Loads a batch of nonzeros, starting at `at`. Positions after `last`, the last nonzero of the
 * group, repeat that nonzero.
 */
__device__ static inline void
load_batch(const struct slc_gpu_fibers *fibers, uint32_t at, uint32_t last, struct ttm_batch *batch)
{
    SLC_UNROLL
    for (int b = 0; b < BATCH; b++) {
        const uint32_t i = slc_least(at + b, last);

        batch->index[b] = fibers->index[i];
        batch->value[b] = slc_baseline_value(fibers->type, fibers->values, i);
    }
}

/* Stores columns of a row. `wide`: the row starts at a multiple of 16 bytes. */
template <int count>
__device__ static inline void
store(double *row, uint32_t column, uint32_t cols, bool wide, const double *sum)
{
    if (wide && column + count <= cols) {
        for (int k = 0; k < count; k += 2) {
            __stcs(reinterpret_cast<double2 *>(row + column + k), make_double2(sum[k], sum[k + 1]));
        }
        return;
    }
    for (int k = 0; k < count; k++) {
        if (column + static_cast<uint32_t>(k) < cols) {
            row[column + static_cast<uint32_t>(k)] = sum[k];
        }
    }
}

/* The fiber to which a thread adds. */
template <typename Element> struct ttm_fiber {
    uint32_t number, end; /* number of the fiber, and its end */
    uint32_t next_end;    /* end of the next fiber, loaded in advance */
    double sum[slc_pack<Element>::COUNT];
};

/* Stores the sum of a fiber, and begins the next fiber. */
template <typename Element>
__device__ static inline void end_fiber(const struct slc_gpu_fibers *fibers,
                                        const struct slc_gpu_matrix *rows,
                                        uint32_t column,
                                        struct ttm_fiber<Element> *fiber)
{
    enum { COUNT = slc_pack<Element>::COUNT };

    store<COUNT>(static_cast<double *>(rows->data) +
                     static_cast<uint64_t>(fiber->number) * rows->pitch,
                 column, rows->cols, rows->pitch % 2 == 0, fiber->sum);
    fiber->number++;
    fiber->end = fiber->next_end;
    fiber->next_end = fibers->begin[slc_least(fiber->number + 2, (uint32_t)fibers->count)];
    for (int k = 0; k < COUNT; k++) {
        fiber->sum[k] = 0;
    }
}

/* Computes the columns of a thread, which start at `column`, for a group. The nonzeros and rows of
 * a batch are loaded before the fiber ends are known, and the nonzeros of the next batch while the
 * rows of a batch are loaded. */
template <typename Element>
__device__ static inline void multiply_group(const struct slc_gpu_fibers *fibers,
                                             const struct slc_gpu_matrix *matrix,
                                             const struct slc_gpu_matrix *rows,
                                             const struct slc_fiber_cut *cuts,
                                             uint32_t column,
                                             double *carry)
{
    enum { COUNT = slc_pack<Element>::COUNT };
    const struct slc_fiber_cut first = cuts[0], last = cuts[1];
    const Element *columns = static_cast<const Element *>(matrix->data) + column;
    const uint32_t count = static_cast<uint32_t>(fibers->count);
    struct ttm_fiber<Element> fiber = {
        first.fiber, fibers->begin[slc_least(first.fiber + 1, count)],
            fibers->begin[slc_least(first.fiber + 2, count)],
        {
        }
    };
    struct ttm_batch batch, next;

    if (first.nonzero < last.nonzero) {
        load_batch(fibers, first.nonzero, last.nonzero - 1, &next);
    }
    SLC_ROLL
    for (uint32_t at = first.nonzero; at < last.nonzero; at += BATCH) {
        slc_pack<Element> row[BATCH];

        batch = next;
        SLC_UNROLL
        for (int b = 0; b < BATCH; b++) {
            row[b] = *reinterpret_cast<const slc_pack<Element> *>(
                columns + static_cast<uint64_t>(batch.index[b]) * matrix->pitch);
        }
        load_batch(fibers, at + BATCH, last.nonzero - 1, &next);
        SLC_UNROLL
        for (int b = 0; b < BATCH; b++) {
            SLC_ROLL
            while (fiber.number < last.fiber && fiber.end == at + b) {
                end_fiber(fibers, rows, column, &fiber);
            }
            for (int k = 0; k < COUNT && at + b < last.nonzero; k++) {
                fiber.sum[k] += batch.value[b] * static_cast<double>(row[b][k]);
            }
        }
    }
    SLC_ROLL
    while (fiber.number < last.fiber) {
        end_fiber(fibers, rows, column, &fiber);
    }
    if (carry != nullptr) {
        store<COUNT>(carry, column, rows->cols, false, fiber.sum);
    }
}

/* The kernel "fibers": each vector of threads (x) processes a group. A thread has 16 bytes of each
 * row. `carries` is NULL if no fiber is divided. */
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
    for (uint32_t c = threadIdx.x * COUNT; c < matrix.cols; c += blockDim.x * COUNT) {
        multiply_group<Element>(
            &fibers, &matrix, &rows, groups.cuts + group, c,
            carries == nullptr ? nullptr : carries + static_cast<uint64_t>(group) * carry_pitch);
    }
}

/* The kernel "nonzeros": each vector of threads processes a nonzero. */

template <typename Element>
__global__ static void __launch_bounds__(THREADS)
    slc_ttm_nonzeros(const struct slc_gpu_fibers fibers,
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

    double *const carries = ttm->groups.divides ? ttm->carries : nullptr;

    SLC_CUDA_TRY(slc_launch(slc_ttm_groups<Element>, grid, block, 0, stream, *ttm->fibers,
                            ttm->groups, *matrix, *rows, carries, ttm->carry_pitch));
    return slc_fiber_carries(ttm->fibers, &ttm->groups, ttm->carries, ttm->carry_pitch, rows,
                             stream);
}

template <typename Element>
static cudaError_t multiply_nonzeros(const struct slc_gpu_ttm *ttm,
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
    return slc_launch(slc_ttm_nonzeros<Element>, dim3(static_cast<unsigned>(blocks)), block, 0,
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
                                          : multiply_nonzeros<double>(ttm, matrix, rows, stream);
    }
    return form == SLC_GPU_TTM_FIBERS ? multiply_fibers<float>(ttm, matrix, rows, stream)
                                      : multiply_nonzeros<float>(ttm, matrix, rows, stream);
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
