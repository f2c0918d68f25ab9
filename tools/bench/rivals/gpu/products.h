/* Products of fibers in device memory and a vector or a matrix. */
#ifndef SLC_GPU_PRODUCTS_H
#define SLC_GPU_PRODUCTS_H

#include "gpu/mttkrp/mttkrp.h"
#include "tools/bench/rivals/gpu/fibers.h"

/*
 * Fibers cut into groups of equal work, for kernels that store each fiber's sum once and without
 * atomics, regardless of the length of the fibers.
 *
 * Work is a list of nonzeros and ends of fibers, each end after its fiber's last nonzero (Merrill
 * and Garland, "Merge-based parallel sparse matrix-vector multiplication", SC 2016); a group is a
 * section of that list of fixed length. Empty fibers therefore count as work, and a long fiber is
 * divided among groups: each of these groups but the last stores its partial sum as a carry, and
 * slc_fiber_carries adds the carries to the fiber's sum. The cuts depend only on the starts of the
 * fibers and, unless the length of groups is set, on the number of multiprocessors, so sums have
 * the same bits in every run.
 */
/* Start of a group: the number of fiber ends, and the number of nonzeros, before it. */
struct slc_fiber_cut {
    uint32_t fiber, nonzero;
};

struct slc_fiber_groups {
    uint32_t count, room;
    /* number of groups if there is enough work; not used if `items` is set */
    uint64_t wanted;
    uint32_t items;             /* items per group; 0: as `wanted` requires */
    struct slc_fiber_cut *cuts; /* count + 1 elements */
};

/*
 * Allocates memory for the groups of any fibers that fit in the capacity of `fibers`. A group has
 * `items` nonzeros and ends; 0: a number that keeps all multiprocessors busy. Needs: *groups is
 * all-zero. Owns: release with slc_fiber_groups_destroy, also after an error.
 */
cudaError_t slc_fiber_groups_reserve(struct slc_fiber_groups *groups,
                                     const struct slc_gpu_fibers *fibers,
                                     uint32_t items,
                                     const struct slc_gpu_machine *machine);
/* Cuts fibers into groups. Repeat the call after slc_gpu_fibers_find. */
cudaError_t slc_fiber_groups_cut(struct slc_fiber_groups *groups,
                                 const struct slc_gpu_fibers *fibers,
                                 cudaStream_t stream);
/* Accepts an all-zero struct. */
void slc_fiber_groups_destroy(struct slc_fiber_groups *groups);

/*
 * Adds the carry of each group g, at g * carry_pitch, to the row of the fiber in which the group
 * ends. Carries and rows are f64.
 */
cudaError_t slc_fiber_carries(const struct slc_gpu_fibers *fibers,
                              const struct slc_fiber_groups *groups,
                              const double *carries,
                              uint32_t carry_pitch,
                              const struct slc_gpu_matrix *rows,
                              cudaStream_t stream);

/*
 * Sparse tensor times vector on the device, from fibers in device memory.
 *
 *     y(f) = sum over the nonzeros x of mode-n fiber f of x * v(i_n)
 *
 * like tools/bench/rivals/cpu/sptv.h, after [SPTV]. A warp processes a group of fibers (above), 32
 * fibers at a time, one per warp lane. It multiplies the nonzeros of these fibers 32 at a time, one
 * per warp lane, and adds up the products within fibers by a scan across the warp lanes. Each warp
 * lane then stores the sum of its fiber; neighbouring warp lanes store neighbouring sums. Values
 * and indices are read once, in consecutive order.
 *
 * The optimizations that [SPTV] section 6.2 measures one by one are switches: empty fibers can be
 * kept (slc_gpu_fibers_create_all), and unused indices can be kept, or dropped with the vector
 * shortened to match (section 3.2).
 *
 * Order: as the groups (above) determine it, so sums have the same bits in every run. All
 * arithmetic is in f64.
 */
struct slc_gpu_sptv_options {
    bool drop_unused;     /* drop indices that never occur */
    uint32_t group_items; /* nonzeros and fiber ends per group; 0: chosen by the machine */
};

/* Borrows the fibers. */
struct slc_gpu_sptv {
    const struct slc_gpu_fibers *fibers;
    struct slc_fiber_groups groups;
    double *carries; /* one per group */
    bool drop_unused;
    /* With drop_unused: */
    uint32_t *index; /* per nonzero: its index in the short vector */
    uint32_t *used;  /* original index of each index of the short vector */
    uint32_t used_count;
    double *short_vector;
};

/*
 * Allocates memory for products of `fibers`. Needs: *sptv is all-zero. Owns: release with
 * slc_gpu_sptv_destroy, also after an error.
 */
cudaError_t slc_gpu_sptv_create(struct slc_gpu_sptv *sptv,
                                const struct slc_gpu_fibers *fibers,
                                const struct slc_gpu_sptv_options *options,
                                const struct slc_gpu_machine *machine);
/*
 * Prepares products of the current fibers and vectors of `length` numbers. Repeat the call after
 * slc_gpu_fibers_find. The host drops unused indices. Errors: with drop_unused,
 * cudaErrorInvalidValue for an index that is not below `length`; cudaErrorMemoryAllocation, also if
 * host memory is short.
 */
cudaError_t slc_gpu_sptv_prepare(struct slc_gpu_sptv *sptv, uint64_t length, cudaStream_t stream);
/* Accepts an all-zero struct. */
void slc_gpu_sptv_destroy(struct slc_gpu_sptv *sptv);

/* Computes sums[f] for every fiber f. `vector` and `sums` are in device memory. */
cudaError_t slc_gpu_sptv_multiply(const struct slc_gpu_sptv *sptv,
                                  const double *vector,
                                  double *sums,
                                  cudaStream_t stream);

/* Returns the least bytes that a product moves: fibers, vector and sums, each once. */
uint64_t slc_gpu_sptv_bytes(const struct slc_gpu_sptv *sptv, uint64_t length);

/*
 * Tensor times matrix on the device, from fibers in device memory.
 *
 *     y(f, r) = sum over the nonzeros x of mode-n fiber f of x * U(i_n, r)
 *
 * like cpu/fiber/ttm.h. Two forms:
 *
 *   fibers    Threads, each with its own columns, process a group of fibers (above). They sum each
 *             fiber in registers and store its row once, without atomics. Sums have the same bits
 *             in every run.
 *   nonzeros  Every nonzero is added to its fiber's row, atomically.
 *
 * They divide the work by fibers and by nonzeros, as [XPLAT] does, but are not the kernels of that
 * paper.
 */
enum slc_gpu_ttm_form { SLC_GPU_TTM_FIBERS, SLC_GPU_TTM_NONZEROS, SLC_GPU_TTM_FORMS };

const char *slc_gpu_ttm_form_name(enum slc_gpu_ttm_form form); /* "fibers", "nonzeros" */

struct slc_gpu_ttm {
    const struct slc_gpu_fibers *fibers;
    enum slc_value_type precision; /* type of the matrix; products and sums are f64 */
    struct slc_fiber_groups groups;
    double *carries; /* a row for each group */
    uint32_t carry_pitch;
};

/*
 * Allocates memory for products of `fibers` and matrices of up to `cols` columns. `group_items`:
 * `items` of slc_fiber_groups_reserve. Borrows the fibers. Needs: *ttm is all-zero. Owns: release
 * with slc_gpu_ttm_destroy, also after an error.
 */
cudaError_t slc_gpu_ttm_create(struct slc_gpu_ttm *ttm,
                               const struct slc_gpu_fibers *fibers,
                               uint32_t cols,
                               enum slc_value_type precision,
                               uint32_t group_items,
                               const struct slc_gpu_machine *machine);
/* Prepares products of the current fibers. Repeat the call after slc_gpu_fibers_find. */
cudaError_t slc_gpu_ttm_prepare(struct slc_gpu_ttm *ttm, cudaStream_t stream);
/* Accepts an all-zero struct. */
void slc_gpu_ttm_destroy(struct slc_gpu_ttm *ttm);

/*
 * Computes a product. Overwrites `rows` (f64, at least one row per fiber) except its padding.
 * Errors: cudaErrorInvalidValue if there are too few rows or columns; those of launches.
 */
cudaError_t slc_gpu_ttm_multiply(const struct slc_gpu_ttm *ttm,
                                 enum slc_gpu_ttm_form form,
                                 const struct slc_gpu_matrix *matrix,
                                 const struct slc_gpu_matrix *rows,
                                 cudaStream_t stream);

#endif
