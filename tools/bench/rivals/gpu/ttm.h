/*
 * Tensor times matrix on the device, from fibers in its memory. Private to gpu/.
 *
 *     y(f, r) = sum over the nonzeros x of mode-n fiber f of x * U(i_n, r)
 *
 * as cpu/fiber/ttm.h computes it. Two forms:
 *
 *   fibers    Threads over the columns take a group of fibers (fiber_groups.h), sum each in
 *             registers and store its row once, without atomics. The same bits every time.
 *   nonzeros  Every nonzero is added to its fiber's row, atomically.
 *
 * They divide the work by fibers and by nonzeros, as XPLAT ("Exploring the Limits of Cross-Platform
 * Sparse Tensor Processing") does, but are not its kernels.
 */
#ifndef SLC_GPU_TTM_H
#define SLC_GPU_TTM_H

#include "tools/bench/rivals/gpu/fiber_groups.h"

enum slc_gpu_ttm_form { SLC_GPU_TTM_FIBERS, SLC_GPU_TTM_NONZEROS, SLC_GPU_TTM_FORMS };

const char *slc_gpu_ttm_form_name(enum slc_gpu_ttm_form form); /* "fibers", "nonzeros" */

struct slc_gpu_ttm {
    const struct slc_gpu_fibers *fibers;
    enum slc_value_type precision; /* of the matrix; products and sums are f64 */
    struct slc_fiber_groups groups;
    double *carries; /* a row for each group */
    uint32_t carry_pitch;
};

/*
 * Makes room for products of `fibers` with matrices of up to `cols` columns; `group_items` as in
 * slc_fiber_groups_reserve. Borrows the fibers. Needs: all-zero. Owns: slc_gpu_ttm_destroy, also
 * after an error.
 */
cudaError_t slc_gpu_ttm_create(struct slc_gpu_ttm *ttm,
                               const struct slc_gpu_fibers *fibers,
                               uint32_t cols,
                               enum slc_value_type precision,
                               uint32_t group_items,
                               const struct slc_gpu_machine *machine);
/* Prepares products of what the fibers are now: again whenever others have been found. */
cudaError_t slc_gpu_ttm_prepare(struct slc_gpu_ttm *ttm, cudaStream_t stream);
/* Takes an all-zero struct. */
void slc_gpu_ttm_destroy(struct slc_gpu_ttm *ttm);

/*
 * `rows` (a row for each fiber or more; f64) is overwritten, its padding is not. Errors:
 * cudaErrorInvalidValue where rows or columns are too few; those of launches.
 */
cudaError_t slc_gpu_ttm_multiply(const struct slc_gpu_ttm *ttm,
                                 enum slc_gpu_ttm_form form,
                                 const struct slc_gpu_matrix *matrix,
                                 const struct slc_gpu_matrix *rows,
                                 cudaStream_t stream);

#endif
