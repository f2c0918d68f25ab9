/*
 * Timed kernels of other programs (tools/bench/rivals/gpu/baselines.h) on the factors of an open
 * device, for benchmarks that compare them with sluice's computation from blocks.
 */
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
const char *slc_gpu_lists_kernel(unsigned kernel); /* "blco-registers"; kernel < the number above */

/* A list in host memory. */
struct slc_gpu_lists_source {
    uint64_t nnz;
    const uint32_t *coords; /* nonzero i, mode m: at i * order + m */
    enum slc_value_type type;
    const void *values;
};

/* Options of the kernels (tools/bench/rivals/gpu/baselines.h). 0 selects the default, which each
 * comment states. */
struct slc_gpu_lists_options {
    uint32_t coarsening; /* nonzeros per thread of BLCO; default 1, with a stash 2 */
    /* threads, a multiple of 32 up to 512; default 256; for blco-code always 32 */
    uint32_t work_group;
    /* default: all rows of the mode, for blco-code 4; fewer if shared memory is too small */
    uint32_t stash_rows;
    /* copies of the output, with a stash; default: one per graphics processing cluster */
    uint32_t copies;
    uint32_t index_bits; /* bits of an index in BLCO's form, up to 64; default 64 */
    uint32_t queues;     /* queues of blco-queues, 2 to 8; default 8 */
    /* largest number of nonzeros per block of BLCO; default 2^27, for blco-queues the number
     * that fits */
    uint64_t block_nnz;
    /* rows per partition of AMPED, which is the number of devices; default 1 */
    uint64_t partition_rows;
    unsigned fiber_mode; /* mode of the fibers of atomic-fiber and atomic-nonzero, from 0 */
};

struct slc_gpu_lists;

/*
 * Prepares kernels over a list for an open device of gpu/. The list stays borrowed until
 * slc_gpu_lists_destroy. In addition to its other memory, the device has a copy of the list in each
 * form that a called kernel needs. Owns: release with slc_gpu_lists_destroy, which accepts NULL,
 * before the device is closed. Errors: SLC_ERR_USAGE for invalid options, for a device that is not
 * open, and for a deterministic device, because no kernel over lists is deterministic;
 * SLC_ERR_MEMORY, SLC_ERR_SYSTEM.
 */
enum slc_status slc_gpu_lists_create(struct slc_device *device,
                                     const struct slc_gpu_lists_source *source,
                                     const struct slc_gpu_lists_options *options,
                                     struct slc_gpu_lists **lists,
                                     struct slc_error *err) SLC_NODISCARD;
void slc_gpu_lists_destroy(struct slc_gpu_lists *lists);

/* Measurements of a call. */
struct slc_gpu_lists_run {
    double seconds;        /* time of the whole run by the device's clock, including copies */
    const char *chosen;    /* the kernel that was run, e.g. "blco-stash" for "blco" */
    bool streamed;         /* nonzeros were copied to the device during the call */
    double copy_seconds;   /* time in which at least one copy ran; 0 unless streamed */
    double kernel_seconds; /* time in which at least one kernel ran */
    /* Time to build the form from the list, once, with one thread; for genten-c only the
     * permutation of the mode, without the list. */
    double form_seconds;
    double form_bytes_per_nonzero; /* size of the form, including list and permutation */
};

/*
 * Computes the MTTKRP of `mode` with a kernel. The result is in the device's output, as after
 * mttkrp_begin .. mttkrp_end. The first call for a kernel and mode first builds the form that the
 * kernel needs; that time is not part of the run. Errors: SLC_ERR_UNSUPPORTED if the kernel cannot
 * compute the tensor; SLC_ERR_MEMORY; SLC_ERR_SYSTEM. After the first two the device remains
 * usable.
 */
enum slc_status slc_gpu_lists_mttkrp(struct slc_gpu_lists *lists,
                                     unsigned kernel,
                                     unsigned mode,
                                     struct slc_gpu_lists_run *run,
                                     struct slc_error *err) SLC_NODISCARD;

/*
 * Timed products of a tensor and a vector or a matrix, from fibers in device memory, by sluice's
 * kernels and by cuSPARSE, which multiplies the unfolded tensor as a CSR matrix.
 */
enum slc_gpu_fiber_product {
    SLC_GPU_PRODUCT_SPTV,
    SLC_GPU_PRODUCT_SPTV_SHORT, /* unused indices dropped and the vector shortened ([SPTV]
                                   section 3.2) */
    SLC_GPU_PRODUCT_CUSPARSE_1, /* cuSPARSE's two algorithms for CSR */
    SLC_GPU_PRODUCT_CUSPARSE_2,
    SLC_GPU_PRODUCT_TTM_FIBERS, /* the two forms of products.h */
    SLC_GPU_PRODUCT_TTM_NONZEROS,
    SLC_GPU_PRODUCTS
};
const char *slc_gpu_product_name(enum slc_gpu_fiber_product product); /* "sptv", "ttm-fibers" */
/* True if the product multiplies by a vector, which is a matrix of one column, in f64. */
bool slc_gpu_product_of_vector(enum slc_gpu_fiber_product product);

/* A list of coordinates, fiber by fiber of `mode`. Borrowed until create returns. */
struct slc_gpu_fiber_source {
    unsigned ordinal; /* ordinal of the device */
    unsigned order, mode;
    uint64_t dims[SLC_MAX_ORDER];
    uint64_t nnz;
    const uint32_t *coords; /* nonzero i, mode m: at i * order + m */
    enum slc_value_type type;
    const void *values;
    /* Also hold fibers without nonzeros. The list must then be in the order of the coordinates of
     * its fibers, mode 0 first. */
    bool keep_empty;
};

struct slc_gpu_fiber_list;

/*
 * Copies the list to a device. Owns: release with slc_gpu_fiber_list_destroy, which accepts NULL.
 * Errors: SLC_ERR_UNSUPPORTED for 2^32 - 1 nonzeros or fibers or more; SLC_ERR_MEMORY;
 * SLC_ERR_SYSTEM, also if there is no device.
 */
enum slc_status slc_gpu_fiber_list_create(const struct slc_gpu_fiber_source *source,
                                          struct slc_gpu_fiber_list **list,
                                          struct slc_error *err) SLC_NODISCARD;
void slc_gpu_fiber_list_destroy(struct slc_gpu_fiber_list *list);

/* Returns the number of rows of a product: one per fiber, in the order of the list. */
uint64_t slc_gpu_fiber_list_count(const struct slc_gpu_fiber_list *list);

struct slc_gpu_product_run {
    enum slc_gpu_fiber_product product;
    const struct slc_matrix *matrix; /* a row for each index of the mode */
    struct slc_matrix *rows;         /* overwritten; a row for each fiber, f64 */
    unsigned repeats;                /* number of timed products, after one untimed product */
};

/*
 * Computes and measures a product. Sets seconds[i] to the time of repeat i by the device's clock,
 * and *bytes to the least bytes that a product moves: the arrays of fibers, the matrix and the
 * rows, each once. Errors: SLC_ERR_USAGE for matrices of other shapes or types; SLC_ERR_UNSUPPORTED
 * if cuSPARSE cannot be opened; SLC_ERR_MEMORY; SLC_ERR_SYSTEM.
 */
enum slc_status slc_gpu_fiber_list_multiply(struct slc_gpu_fiber_list *list,
                                            const struct slc_gpu_product_run *run,
                                            double *seconds,
                                            uint64_t *bytes,
                                            struct slc_error *err) SLC_NODISCARD;

#ifdef __cplusplus
}
#endif

#endif
