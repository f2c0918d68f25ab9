/*
 * Timed kernels of other programs (tools/bench/rivals/gpu/baselines.h) on the factors of an open
 * device: benchmarks compare them with the device's own computation from blocks.
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

/* A list in the host's memory. */
struct slc_gpu_lists_source {
    uint64_t nnz;
    const uint32_t *coords; /* of nonzero i in mode m at i * order + m */
    enum slc_value_type type;
    const void *values;
};

/* Options of the kernels (tools/bench/rivals/gpu/baselines.h) with their defaults for 0. */
struct slc_gpu_lists_options {
    uint32_t coarsening; /* nonzeros per thread of BLCO: 1, with a stash 2 */
    uint32_t work_group; /* threads, a multiple of 32 up to 512: 256; for blco-code always 32 */
    uint32_t stash_rows; /* all rows of the mode, for blco-code 4; fewer if memory is too small */
    uint32_t copies;     /* of the output, with a stash: one per graphics processing cluster */
    uint32_t index_bits; /* of BLCO's form, up to 64: 64 */
    uint32_t queues;     /* of blco-queues, 2 to 8: 8 */
    uint64_t
        block_nnz; /* nonzeros of a block of BLCO at most: 2^27; for blco-queues those that fit */
    uint64_t partition_rows; /* rows of AMPED's partitions, the number of devices: 1 */
    unsigned fiber_mode;     /* mode of the fibers of atomic-fiber and atomic-nonzero, from 0 */
};

struct slc_gpu_lists;

/*
 * Prepares kernels over a list for an open device of gpu/. The list stays borrowed until destroy;
 * the device has a copy in each form that a called kernel needs, in addition to its other memory.
 * Owns: slc_gpu_lists_destroy, which accepts NULL, before the device is closed. Errors:
 * SLC_ERR_USAGE for invalid options, for a device that is not open, and for a deterministic device,
 * because no kernel over lists is deterministic; SLC_ERR_MEMORY, SLC_ERR_SYSTEM.
 */
enum slc_status slc_gpu_lists_create(struct slc_device *device,
                                     const struct slc_gpu_lists_source *source,
                                     const struct slc_gpu_lists_options *options,
                                     struct slc_gpu_lists **lists,
                                     struct slc_error *err) SLC_NODISCARD;
void slc_gpu_lists_destroy(struct slc_gpu_lists *lists);

/* Measurements of a call. */
struct slc_gpu_lists_run {
    double seconds;        /* of the whole run by the device's clock, including copies */
    const char *chosen;    /* the kernel that was run: for "blco" e.g. "blco-stash" */
    bool streamed;         /* nonzeros were copied to the device during the call */
    double copy_seconds;   /* during which at least one copy ran; 0 unless streamed */
    double kernel_seconds; /* during which at least one kernel ran */
    /* To build the form from the list in its order, once, with one thread; for genten-c the
     * permutation of the mode, without the list. */
    double form_seconds;
    double form_bytes_per_nonzero; /* of the form, including list and permutation */
};

/*
 * The MTTKRP of `mode` with a kernel, into the device's output, as by mttkrp_begin .. mttkrp_end.
 * The first call of a kernel and mode builds the form that the kernel needs, before measuring.
 * Errors: SLC_ERR_UNSUPPORTED if the kernel cannot compute the tensor, SLC_ERR_MEMORY,
 * SLC_ERR_SYSTEM; the device remains usable after the first two.
 */
enum slc_status slc_gpu_lists_mttkrp(struct slc_gpu_lists *lists,
                                     unsigned kernel,
                                     unsigned mode,
                                     struct slc_gpu_lists_run *run,
                                     struct slc_error *err) SLC_NODISCARD;

/*
 * Timed products of a tensor with a vector or a matrix, from fibers in a device's memory, by
 * sluice's kernels and by cuSPARSE, which multiplies the unfolding as a CSR matrix.
 */
enum slc_gpu_fiber_product {
    SLC_GPU_PRODUCT_SPTV,
    SLC_GPU_PRODUCT_SPTV_SHORT, /* unused indices dropped and the vector shortened ([SPTV]
                                   section 3.2) */
    SLC_GPU_PRODUCT_CUSPARSE_1, /* its two algorithms for CSR */
    SLC_GPU_PRODUCT_CUSPARSE_2,
    SLC_GPU_PRODUCT_TTM_FIBERS, /* the two forms of products.h */
    SLC_GPU_PRODUCT_TTM_NONZEROS,
    SLC_GPU_PRODUCTS
};
const char *slc_gpu_product_name(enum slc_gpu_fiber_product product); /* "sptv", "ttm-fibers" */
/* Whether it multiplies by a vector: a matrix of one column, f64. */
bool slc_gpu_product_of_vector(enum slc_gpu_fiber_product product);

/* A list of coordinates, fiber by fiber of `mode`. Borrowed until create returns. */
struct slc_gpu_fiber_source {
    unsigned ordinal; /* of the device */
    unsigned order, mode;
    uint64_t dims[SLC_MAX_ORDER];
    uint64_t nnz;
    const uint32_t *coords; /* of nonzero i in mode m at i * order + m */
    enum slc_value_type type;
    const void *values;
    /* Also hold fibers without nonzeros; the list must then be in the order of the coordinates of
     * its fibers, mode 0 first. */
    bool keep_empty;
};

struct slc_gpu_fiber_list;

/*
 * Copies the list to a device. Owns: slc_gpu_fiber_list_destroy, which accepts NULL. Errors:
 * SLC_ERR_UNSUPPORTED for 2^32 - 1 nonzeros or fibers and more; SLC_ERR_MEMORY; SLC_ERR_SYSTEM,
 * also without a device.
 */
enum slc_status slc_gpu_fiber_list_create(const struct slc_gpu_fiber_source *source,
                                          struct slc_gpu_fiber_list **list,
                                          struct slc_error *err) SLC_NODISCARD;
void slc_gpu_fiber_list_destroy(struct slc_gpu_fiber_list *list);

/* Rows of a product: fibers, in the order of the list. */
uint64_t slc_gpu_fiber_list_count(const struct slc_gpu_fiber_list *list);

struct slc_gpu_product_run {
    enum slc_gpu_fiber_product product;
    const struct slc_matrix *matrix; /* a row for each index of the mode */
    struct slc_matrix *rows;         /* overwritten; a row for each fiber, f64 */
    unsigned repeats;                /* timed, after one untimed product */
};

/*
 * seconds[i] of each repeat, by the device's clock; *bytes is the minimum that a product moves: the
 * arrays of fibers, the matrix and the rows once. Errors: SLC_ERR_USAGE for matrices of other
 * shapes or types, SLC_ERR_UNSUPPORTED if cuSPARSE cannot be opened, SLC_ERR_MEMORY,
 * SLC_ERR_SYSTEM.
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
