/* Products of fibers in device memory and a vector or matrix. */
#ifndef SLC_GPU_PRODUCTS_H
#define SLC_GPU_PRODUCTS_H

#include "gpu/mttkrp/mttkrp.h"
#include "tools/bench/rivals/gpu/fibers.h"

/* Groups of equal work, into which fibers are cut. With them, kernels store the sum of each fiber
 * once and without atomics, regardless of the length of the fibers.
 *
 * Work is a list of items: nonzeros and ends of fibers, where the end of a fiber follows its last
 * nonzero (Merrill and Garland, "Merge-based parallel sparse matrix-vector multiplication", SC
 * 2016). A group is a section of this list with about a fixed number of items, so empty fibers
 * count as work. A fiber of up to SLC_FIBER_WHOLE nonzeros is never divided: a cut within it moves
 * to its start. Therefore a group has up to SLC_FIBER_WHOLE - 1 items more than requested. A longer
 * fiber is divided among groups: each of these groups except the last stores its partial sum as a
 * carry, and slc_fiber_carries adds the carries to the sum of the fiber. The cuts depend only on
 * the starts of the fibers and, unless the number of items per group is set, on the number of
 * multiprocessors. Therefore sums have the same bits in every run. */
enum { SLC_FIBER_WHOLE = 32 };

/* The start of a group: the numbers of fiber ends and of nonzeros before the group. */
struct alignas(8) slc_fiber_cut {
    uint32_t fiber, nonzero;
};

struct slc_fiber_groups {
    uint32_t count, room;
    /* number of groups if there is enough work; ignored if `items` is set */
    uint64_t wanted;
    uint32_t items;             /* items per group; 0 means that `wanted` determines it */
    struct slc_fiber_cut *cuts; /* count + 1 elements */
    uint32_t *found;            /* in device memory: 1 if a fiber is divided, otherwise 0 */
    bool divides;               /* true if a fiber is divided, that is, if there are carries */
};

/* Allocates memory for the groups of any fibers that fit in the capacity of `fibers`. A group has
 * `items` items; 0 chooses a number that keeps all multiprocessors busy. Needs: *groups is
 * all-zero. The caller must call slc_fiber_groups_destroy, also after an error. */
cudaError_t slc_fiber_groups_reserve(struct slc_fiber_groups *groups,
                                     const struct slc_gpu_fibers *fibers,
                                     uint32_t items,
                                     const struct slc_gpu_machine *machine);
/* Cuts fibers into groups. Call it again after each slc_gpu_fibers_find. Waits for the stream. */
cudaError_t slc_fiber_groups_cut(struct slc_fiber_groups *groups,
                                 const struct slc_gpu_fibers *fibers,
                                 cudaStream_t stream);
/* Releases the memory. *groups may be all-zero. */
void slc_fiber_groups_destroy(struct slc_fiber_groups *groups);

/* Adds the carry of each group g, which starts at carries[g * carry_pitch], to the row of the fiber
 * in which the group ends. Does nothing if no fiber is divided. Carries and rows are in f64. */
cudaError_t slc_fiber_carries(const struct slc_gpu_fibers *fibers,
                              const struct slc_fiber_groups *groups,
                              const double *carries,
                              uint32_t carry_pitch,
                              const struct slc_gpu_matrix *rows,
                              cudaStream_t stream);

/* Sparse tensor times vector on the device, from fibers in device memory.
 *
 *     y(f) = sum of x * v(i_n) over the nonzeros x of the mode-n fiber f
 *
 * Here i_n is the mode-n index of x.
 *
 * This is the product of cpu/fiber/sptv.h, as in [SPTV]. A warp processes a group
 * (above) in two steps. First it writes all products of the group, and the ends of its fibers, to
 * shared memory; all loads of this step are consecutive and independent of each other. Then each
 * warp lane adds up the products of one fiber, and the whole warp those of a fiber with more than
 * 32 nonzeros. Neighbouring warp lanes store neighbouring sums. Fibers and sums are accessed once
 * and bypass the caches as far as possible, which keeps the vector there.
 *
 * There are switches for the optimizations that [SPTV] section 6.2 measures one by one: empty
 * fibers can be kept (slc_gpu_fibers_create_all), and unused indices can be dropped, with the
 * vector shortened to match (section 3.2).
 *
 * Order: the groups (above) determine the order of sums, so sums have the same bits in every run.
 * All arithmetic is in f64. */
struct slc_gpu_sptv_options {
    bool drop_unused;     /* true: drop indices that never occur */
    uint32_t group_items; /* items per group, at most the maximum of the kernel; 0: automatic */
};

/* A prepared TTV. The fibers are borrowed. */
struct slc_gpu_sptv {
    const struct slc_gpu_fibers *fibers;
    struct slc_fiber_groups groups;
    double *carries; /* one carry per group */
    bool drop_unused;
    /* arrays for drop_unused */
    uint32_t *index; /* index in the short vector of each nonzero */
    uint32_t *used;  /* original index of each element of the short vector */
    uint32_t used_count;
    double *short_vector;
};

/* Allocates memory for products of `fibers`. Needs: *sptv is all-zero. The caller must call
 * slc_gpu_sptv_destroy, also after an error. */
cudaError_t slc_gpu_sptv_create(struct slc_gpu_sptv *sptv,
                                const struct slc_gpu_fibers *fibers,
                                const struct slc_gpu_sptv_options *options,
                                const struct slc_gpu_machine *machine);
/* Prepares products of the current fibers and vectors of `length` numbers. Call it again after each
 * slc_gpu_fibers_find. Waits for the stream. The host drops unused indices. Errors: with
 * drop_unused, cudaErrorInvalidValue for an index that is not below `length`;
 * cudaErrorMemoryAllocation, also if there is not enough host memory. */
cudaError_t slc_gpu_sptv_prepare(struct slc_gpu_sptv *sptv, uint64_t length, cudaStream_t stream);
/* Releases the memory. *sptv may be all-zero. */
void slc_gpu_sptv_destroy(struct slc_gpu_sptv *sptv);

/* Computes sums[f] for every fiber f. `vector` and `sums` are in device memory. */
cudaError_t slc_gpu_sptv_multiply(const struct slc_gpu_sptv *sptv,
                                  const double *vector,
                                  double *sums,
                                  cudaStream_t stream);

/* Returns the bytes that a product must move: fibers, vector and sums, each counted once. */
uint64_t slc_gpu_sptv_bytes(const struct slc_gpu_sptv *sptv, uint64_t length);

/* Tensor times matrix on the device, from fibers in device memory.
 *
 *     y(f, r) = sum of x * U(i_n, r) over the nonzeros x of the mode-n fiber f
 *
 * This is the product of cpu/fiber/ttm.h. There are two kernels:
 *
 *   fibers    Threads, each with its own columns, process a group (above), four nonzeros
 *             at a time. They sum the rows of each fiber in registers and store the sum
 *             once, without atomics. Sums have the same bits in every run.
 *   nonzeros  Every nonzero is added atomically to the row of its fiber.
 *
 * Neither kernel is from a paper; xplat.h has those of [XPLAT]. */
enum slc_gpu_ttm_form { SLC_GPU_TTM_FIBERS, SLC_GPU_TTM_NONZEROS, SLC_GPU_TTM_FORMS };

const char *slc_gpu_ttm_form_name(enum slc_gpu_ttm_form form); /* "fibers" or "nonzeros" */

/* A prepared TTM. The fibers are borrowed. */
struct slc_gpu_ttm {
    const struct slc_gpu_fibers *fibers;
    enum slc_value_type precision; /* type of the matrix; products and sums are f64 */
    struct slc_fiber_groups groups;
    double *carries; /* a row per group */
    uint32_t carry_pitch;
};

/* Allocates memory for products of `fibers` and matrices of up to `cols` columns. `group_items` is
 * the argument `items` of slc_fiber_groups_reserve. Borrows the fibers. Needs: *ttm is all-zero.
 * The caller must call slc_gpu_ttm_destroy, also after an error. */
cudaError_t slc_gpu_ttm_create(struct slc_gpu_ttm *ttm,
                               const struct slc_gpu_fibers *fibers,
                               uint32_t cols,
                               enum slc_value_type precision,
                               uint32_t group_items,
                               const struct slc_gpu_machine *machine);
/* Prepares products of the current fibers. Call it again after each slc_gpu_fibers_find. Waits for
 * the stream. */
cudaError_t slc_gpu_ttm_prepare(struct slc_gpu_ttm *ttm, cudaStream_t stream);
/* Releases the memory. *ttm may be all-zero. */
void slc_gpu_ttm_destroy(struct slc_gpu_ttm *ttm);

/* Computes a product. `rows` has at least one row per fiber, in f64. Overwrites all elements of
 * `rows` except padding. Errors: cudaErrorInvalidValue if there are too few rows or columns; those
 * of launches. */
cudaError_t slc_gpu_ttm_multiply(const struct slc_gpu_ttm *ttm,
                                 enum slc_gpu_ttm_form form,
                                 const struct slc_gpu_matrix *matrix,
                                 const struct slc_gpu_matrix *rows,
                                 cudaStream_t stream);

#endif
