/* Runs and times baselines (tools/bench/rivals/gpu/baselines.h) with the factors of an open device,
 * for benchmarks that compare them with the MTTKRP of sluice. */
#ifndef SLC_GPU_LISTS_H
#define SLC_GPU_LISTS_H

#include "base/device.h"
#include "base/error/error.h"
#include "base/matrix.h"
#include "base/memory/limits.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

unsigned slc_gpu_lists_kernels(void);
const char *slc_gpu_lists_kernel(
    unsigned kernel); /* such as "blco-registers"; kernel < slc_gpu_lists_kernels() */

/* A list of coordinates in host memory. */
struct slc_gpu_lists_source {
    uint64_t nnz;
    const uint32_t *coords; /* nonzero i, mode m: element i * order + m */
    enum slc_value_type type;
    const void *values;
};

/* Options of the kernels (tools/bench/rivals/gpu/baselines.h). 0 selects the default, which the
 * comment of each option states. */
struct slc_gpu_lists_options {
    uint32_t coarsening; /* BLCO: nonzeros per thread; default 1 without a stash, 2 with a stash */
    /* BLCO: threads per work-group, a multiple of 32 up to 512; default 256; blco-code has 32 */
    uint32_t work_group;
    /* BLCO: rows of the stash, limited by shared memory; default all rows of the mode, 4 in
     * blco-code */
    uint32_t stash_rows;
    /* BLCO: copies of the output with a stash; default one per graphics processing cluster */
    uint32_t copies;
    uint32_t index_bits; /* BLCO: bits of an index, up to 64; default 64 */
    uint32_t queues;     /* blco-queues: number of queues, 2 to 8; default 8 */
    /* BLCO: largest number of nonzeros per block; default 2^27, or, for blco-queues, as many as
     * fit in memory */
    uint64_t block_nnz;
    /* AMPED: rows per partition, equal to the number of devices; default 1 */
    uint64_t partition_rows;
    unsigned fiber_mode; /* atomic-fiber, atomic-nonzero: mode of the fibers; starts at 0 */
};

struct slc_gpu_lists;

/* Prepares baselines over a list on an open device of gpu/. The list stays borrowed until
 * slc_gpu_lists_destroy. The device will have a copy of the list in each form that a called kernel
 * needs, in addition to its other memory. The caller must call slc_gpu_lists_destroy, which accepts
 * NULL, before the device is closed. Errors: SLC_ERR_USAGE for invalid options, for a device that
 * is not open, and for a deterministic device, because no baseline is deterministic;
 * SLC_ERR_MEMORY, SLC_ERR_SYSTEM. */
enum slc_status slc_gpu_lists_create(struct slc_device *device,
                                     const struct slc_gpu_lists_source *source,
                                     const struct slc_gpu_lists_options *options,
                                     struct slc_gpu_lists **lists,
                                     struct slc_error *err) SLC_NODISCARD;
void slc_gpu_lists_destroy(struct slc_gpu_lists *lists);

/* Measurements of a call. */
struct slc_gpu_lists_run {
    double seconds;        /* time of the whole run by the clock of the device, including copies */
    const char *chosen;    /* kernel that was run, such as "blco-stash" for "blco" */
    bool streamed;         /* true if nonzeros were copied to the device during the call */
    double copy_seconds;   /* time in which at least one copy ran; 0 unless streamed */
    double kernel_seconds; /* time in which at least one kernel ran */
    /* time in which one thread builds the form from the list; for genten-c only the time for the
     * permutation of the mode */
    double form_seconds;
    double form_bytes_per_nonzero; /* size of the form, including the list and the permutation if
                                      the kernel reads them */
};

/* Computes the MTTKRP of `mode` with a kernel. The result is in the output of the device, as after
 * mttkrp_begin .. mttkrp_end. The first call for a kernel and mode also builds the form that the
 * kernel needs; this time is not part of the run. Errors: SLC_ERR_UNSUPPORTED if the kernel cannot
 * compute the tensor; SLC_ERR_MEMORY; SLC_ERR_SYSTEM. After the first two errors, the device
 * remains usable. */
enum slc_status slc_gpu_lists_mttkrp(struct slc_gpu_lists *lists,
                                     unsigned kernel,
                                     unsigned mode,
                                     struct slc_gpu_lists_run *run,
                                     struct slc_error *err) SLC_NODISCARD;

/* Timed products of a tensor and a vector or matrix from fibers in device memory: by sluice's
 * kernels, and by cuSPARSE, which multiplies the unfolded tensor as a CSR matrix. */
enum slc_gpu_fiber_product {
    SLC_GPU_PRODUCT_SPTV,
    SLC_GPU_PRODUCT_SPTV_SHORT, /* TTV with unused indices dropped and a shortened vector ([SPTV]
                                   section 3.2) */
    SLC_GPU_PRODUCT_CUSPARSE_1, /* the two algorithms of cuSPARSE for CSR */
    SLC_GPU_PRODUCT_CUSPARSE_2,
    SLC_GPU_PRODUCT_TTM_FIBERS, /* the two TTM kernels of products.h */
    SLC_GPU_PRODUCT_TTM_NONZEROS,
    SLC_GPU_PRODUCT_TTM_XPLAT_ELEMENT, /* listings 1 and 2 of [XPLAT] (xplat.h) */
    SLC_GPU_PRODUCT_TTM_XPLAT_FIBER,
    SLC_GPU_PRODUCTS
};
const char *
slc_gpu_product_name(enum slc_gpu_fiber_product product); /* such as "sptv" or "ttm-fibers" */
/* Returns true if the product multiplies by a vector, which is a matrix of one column in f64. */
bool slc_gpu_product_of_vector(enum slc_gpu_fiber_product product);

/* A list of coordinates in the order of the fibers of `mode`. The arrays are borrowed until
 * slc_gpu_fiber_list_create returns. */
struct slc_gpu_fiber_source {
    unsigned ordinal; /* number of the GPU */
    unsigned order, mode;
    uint64_t dims[SLC_MAX_ORDER];
    uint64_t nnz;
    const uint32_t *coords; /* nonzero i, mode m: element i * order + m */
    enum slc_value_type type;
    const void *values;
    /* true: also store fibers without nonzeros; the list must then be in the order of the
     * coordinates of its fibers, mode 0 first */
    bool keep_empty;
};

struct slc_gpu_fiber_list;

/* Copies the list to a GPU and finds its fibers. The caller must call slc_gpu_fiber_list_destroy,
 * which accepts NULL. Errors: SLC_ERR_UNSUPPORTED for 2^32 - 1 nonzeros or fibers or more;
 * SLC_ERR_MEMORY; SLC_ERR_SYSTEM, also if there is no device. */
enum slc_status slc_gpu_fiber_list_create(const struct slc_gpu_fiber_source *source,
                                          struct slc_gpu_fiber_list **list,
                                          struct slc_error *err) SLC_NODISCARD;
void slc_gpu_fiber_list_destroy(struct slc_gpu_fiber_list *list);

/* Returns the number of rows of a product: a row per fiber, in the order of the list. */
uint64_t slc_gpu_fiber_list_count(const struct slc_gpu_fiber_list *list);

struct slc_gpu_product_run {
    enum slc_gpu_fiber_product product;
    const struct slc_matrix *matrix; /* matrix or vector with a row for each index of the mode */
    struct slc_matrix *rows;         /* result with a row for each fiber, in f64; overwritten */
    unsigned repeats;                /* number of samples, after two untimed products */
};

/* Computes and times a product. Sets seconds[i] to the time of one product in sample i by the clock
 * of the device; a sample of a short product is the mean of up to 16 products in a row, so that the
 * time of launches does not count. Sets *bytes to the bytes that a product must move: the arrays of
 * fibers, the matrix and the rows, each counted once. Errors: SLC_ERR_USAGE for matrices with a
 * wrong shape or type; SLC_ERR_UNSUPPORTED if cuSPARSE cannot be opened; SLC_ERR_MEMORY;
 * SLC_ERR_SYSTEM. */
enum slc_status slc_gpu_fiber_list_multiply(struct slc_gpu_fiber_list *list,
                                            const struct slc_gpu_product_run *run,
                                            double *seconds,
                                            uint64_t *bytes,
                                            struct slc_error *err) SLC_NODISCARD;

#ifdef __cplusplus
}
#endif

#endif
