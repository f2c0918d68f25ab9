/* TTM and MTTKRP on a GPU with the algorithms of [XPLAT] section 3, listings 1 to 4.
 *
 *   xplat-element  listings 1 and 3: a thread computes an element of the output
 *   xplat-fiber    listing 2: a thread computes the row of a fiber
 *   xplat-row      listing 4: a thread computes the row of a slice
 *
 * tools/bench/rivals/cpu/xplat.h describes the algorithms. A thread sums in registers and stores
 * each of its elements once, without atomic additions, so sums have the same bits in every run.
 * There are these differences from the listings. Products, sums and outputs are f64, as with all
 * baselines. A work-group of an element-centric kernel has the columns of one row in the paper; a
 * thread block here has 256 threads, up to 32 columns of several rows. A row-centric thread keeps
 * up to 32 columns in registers, and traverses its fiber or slice once per 32 columns. */
#ifndef SLC_RIVALS_GPU_XPLAT_H
#define SLC_RIVALS_GPU_XPLAT_H

#include "gpu/mttkrp/mttkrp.h"
#include "tools/bench/rivals/cpu/csf.h"
#include "tools/bench/rivals/gpu/fibers.h"

/* Compressed sparse fibers in device memory. */
struct slc_gpu_csf {
    struct slc_csf arrays; /* the arrays are in `memory`; arrays.memory is empty */
    void *memory;
    uint64_t bytes;
};

/* Builds the slices and fibers of a list on the host and copies them to the device
 * (slc_csf_create_slices). Waits for the stream. Needs: *csf is all-zero. The caller must call
 * slc_gpu_csf_destroy, also after an error. Errors: cudaErrorInvalidValue for fewer than 3 modes
 * and for a list that is too large; cudaErrorMemoryAllocation, also if there is not enough host
 * memory. */
cudaError_t slc_gpu_csf_create(struct slc_gpu_csf *csf,
                               const struct slc_gpu_host_list *list,
                               const uint64_t *dims,
                               unsigned slice_mode,
                               cudaStream_t stream);
void slc_gpu_csf_destroy(struct slc_gpu_csf *csf);

/* Computes the row of every fiber by listing 1 (`elements`) or listing 2. `rows` has at least one
 * row per fiber, in f64; `matrix` has type `precision`. Overwrites all elements of `rows` except
 * padding. Errors: cudaErrorInvalidValue if there are too few rows or columns; those of
 * launches. */
cudaError_t slc_gpu_xplat_ttm(const struct slc_gpu_fibers *fibers,
                              bool elements,
                              enum slc_value_type precision,
                              const struct slc_gpu_matrix *matrix,
                              const struct slc_gpu_matrix *rows,
                              cudaStream_t stream);

/* Computes the MTTKRP of a job whose mode is the slice mode, by listing 3 (`elements`) or listing
 * 4. Overwrites all elements of the output except padding. Needs: output.split is 0. Errors: those
 * of launches. */
cudaError_t slc_gpu_xplat_mttkrp(const struct slc_gpu_csf *csf,
                                 bool elements,
                                 const struct slc_gpu_mttkrp *job,
                                 cudaStream_t stream);

#endif
