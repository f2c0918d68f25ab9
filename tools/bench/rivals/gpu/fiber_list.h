/*
 * Products of a tensor with a vector or a matrix, from fibers in a device's memory, timed: for
 * benchmarks. Beside ours stands cuSPARSE, which multiplies the unfolding as a matrix in CSR.
 */
#ifndef SLC_GPU_FIBER_LIST_H
#define SLC_GPU_FIBER_LIST_H

#include "base/error/error.h"
#include "base/matrix.h"
#include "base/memory/limits.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum slc_gpu_product {
    SLC_GPU_PRODUCT_SPTV,
    SLC_GPU_PRODUCT_SPTV_SHORT, /* indices that never occur dropped, and the vector shortened (SPTV
                                   3.2) */
    SLC_GPU_PRODUCT_CUSPARSE_1, /* its two algorithms for CSR */
    SLC_GPU_PRODUCT_CUSPARSE_2,
    SLC_GPU_PRODUCT_TTM_FIBERS, /* the two forms of ttm.h */
    SLC_GPU_PRODUCT_TTM_NONZEROS,
    SLC_GPU_PRODUCTS
};
const char *slc_gpu_product_name(enum slc_gpu_product product); /* "sptv", "ttm-fibers" */
/* Whether it takes a vector: a matrix of one column, f64. */
bool slc_gpu_product_of_vector(enum slc_gpu_product product);

/* A list of coordinates, fiber by fiber of `mode`. Borrowed until create returns. */
struct slc_gpu_fiber_source {
    unsigned ordinal; /* of the device */
    unsigned order, mode;
    uint64_t dims[SLC_MAX_ORDER];
    uint64_t nnz;
    const uint32_t *coords; /* of nonzero i in mode m at i * order + m */
    enum slc_value_type type;
    const void *values;
    /* Fibers without nonzeros are held, too; the list has to be in the order of the coordinates of
     * its fibers then, mode 0 first. */
    bool keep_empty;
};

struct slc_gpu_fiber_list;

/*
 * Takes the list to a device. Owns: slc_gpu_fiber_list_destroy, which takes NULL. Errors:
 * SLC_ERR_UNSUPPORTED where there are 2^32 - 1 nonzeros or fibers and more; SLC_ERR_MEMORY;
 * SLC_ERR_SYSTEM, also where there is no device.
 */
enum slc_status slc_gpu_fiber_list_create(const struct slc_gpu_fiber_source *source,
                                          struct slc_gpu_fiber_list **list,
                                          struct slc_error *err) SLC_NODISCARD;
void slc_gpu_fiber_list_destroy(struct slc_gpu_fiber_list *list);

/* Rows of a product: fibers, in the order of the list. */
uint64_t slc_gpu_fiber_list_count(const struct slc_gpu_fiber_list *list);

struct slc_gpu_product_run {
    enum slc_gpu_product product;
    const struct slc_matrix *matrix; /* a row for each index of the mode */
    struct slc_matrix *rows;         /* overwritten; a row for each fiber, f64 */
    unsigned repeats;                /* timed, after one that is not */
};

/*
 * seconds[i] of each repeat, by the device's clock; *bytes is what a product has to move at least:
 * the arrays of fibers, the matrix and the rows once. Errors: SLC_ERR_USAGE for matrices of other
 * shapes or types, SLC_ERR_UNSUPPORTED where cuSPARSE cannot be opened, SLC_ERR_MEMORY,
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
