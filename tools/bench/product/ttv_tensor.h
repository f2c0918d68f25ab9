/* Loads a tensor into memory for `bench ttv`, and finds the fibers of one mode. */
#ifndef SLC_TOOLS_BENCH_TTV_TENSOR_H
#define SLC_TOOLS_BENCH_TTV_TENSOR_H

#include "base/error/error.h"
#include "base/memory/memory.h"
#include "cpu/fiber/sptv.h"
#include "storage/manifest/store.h"

#include <stdint.h>

/* All nonzeros of a tensor, in the order of the store. */
struct ttv_tensor {
    unsigned order;
    uint64_t dims[SLC_MAX_ORDER];
    uint64_t nnz;
    uint64_t *coords[SLC_MAX_ORDER]; /* point into `memory` */
    double *values;
    struct slc_buffer memory;
};

/* Returns the bytes of memory that a tensor and the fibers of one mode need. The fibers are counted
 * in every form that a kernel stores. */
uint64_t ttv_tensor_bytes(const struct slc_manifest *manifest);

/* Loads the nonzeros of a store. The caller must call ttv_tensor_destroy, which accepts an all-zero
 * struct. Errors: those of reading. */
enum slc_status ttv_tensor_load(struct ttv_tensor *tensor,
                                const struct slc_store *store,
                                struct slc_error *err) SLC_NODISCARD;
void ttv_tensor_destroy(struct ttv_tensor *tensor);

/* The nonempty fibers of a mode, numbered in the order of their keys. */
struct ttv_fibers {
    unsigned mode;
    uint64_t length; /* size of the mode */
    uint64_t nnz, count;
    double dense_count; /* number of all fibers, including empty fibers */

    /* per nonzero, in the order of the store: the number of its fiber, and its index in the mode */
    uint32_t *row, *index;
    const double *values; /* values of the tensor, in the order of the store */

    /* starts of fibers; indices and values in the order of fibers */
    uint64_t *begin; /* count + 1 elements */
    uint32_t *sorted_row, *sorted_index;
    double *sorted_values;
    /* per fiber: its number among all fibers, including empty fibers, in lexicographic order */
    uint64_t *dense_at;

    struct slc_buffer memory;
};

/* Finds the fibers of a mode. The caller must call ttv_fibers_destroy, which accepts an all-zero
 * struct. Errors: SLC_ERR_MEMORY; SLC_ERR_UNSUPPORTED for 2^32 nonzeros or more, and for a mode
 * size above 2^31. */
enum slc_status ttv_fibers_create(struct ttv_fibers *fibers,
                                  const struct ttv_tensor *tensor,
                                  unsigned mode,
                                  struct slc_error *err) SLC_NODISCARD;
void ttv_fibers_destroy(struct ttv_fibers *fibers);

/* Makes *source, an input of cpu/fiber/sptv.h, from all fibers of the mode, including
 * empty fibers, in lexicographic order. The caller must call slc_buffer_destroy with `memory`.
 * Errors: SLC_ERR_BUDGET if more than memory_bytes are needed; SLC_ERR_MEMORY. */
enum slc_status ttv_fibers_dense(const struct ttv_fibers *fibers,
                                 uint64_t memory_bytes,
                                 struct slc_buffer *memory,
                                 struct slc_sptv_source *source,
                                 struct slc_error *err) SLC_NODISCARD;

#endif
