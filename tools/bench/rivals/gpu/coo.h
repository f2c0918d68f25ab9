/*
 * A tensor as a list of coordinates in the device's memory: the input of other programs' kernels
 * (baselines.h). Private to gpu/.
 *
 * As in tools/bench/rivals/cpu/coo.h the coordinates of a nonzero are adjacent, so a visit through
 * a permutation costs one sector of memory for them and one for the value, and neighbouring threads
 * that visit nonzeros in the list's order still read whole lines.
 *
 *     create -> (slc_gpu_coo_write, or a kernel that decodes into it) -> permute .. -> destroy
 */
#ifndef SLC_GPU_COO_H
#define SLC_GPU_COO_H

#include "gpu/cuda/cuda.h"

/* Returns the error of a failed call from the calling function. */
#define SLC_CUDA_TRY(...)                                                                          \
    do {                                                                                           \
        const cudaError_t slc_try_error = (__VA_ARGS__);                                           \
                                                                                                   \
        if (slc_try_error != cudaSuccess) {                                                        \
            return slc_try_error;                                                                  \
        }                                                                                          \
    } while (0)

/* Accepts NULL. */
static inline void slc_event_destroy(cudaEvent_t event)
{
    if (event != nullptr) {
        (void)cudaEventDestroy(event);
    }
}

static inline void slc_stream_destroy(cudaStream_t stream)
{
    if (stream != nullptr) {
        (void)cudaStreamDestroy(stream);
    }
}

/* A list in the host's memory. Borrowed. */
struct slc_gpu_host_list {
    unsigned order;
    enum slc_value_type type;
    uint64_t nnz;
    const uint32_t *coords; /* of nonzero i in mode m at i * order + m */
    const void *values;     /* of `type` */
};

struct slc_gpu_coo {
    unsigned order;
    enum slc_value_type type;
    uint64_t nnz;
    uint32_t *coords; /* absolute, of nonzero i in mode m at i * order + m: mode sizes below 2^32 */
    void *values;     /* of `type` */
    /* Nonzeros sorted by their coordinate in the mode, stable; NULL: not built. */
    uint32_t *permutation[SLC_MAX_ORDER];
};

/*
 * Allocates a list of `nnz` nonzeros with undefined contents. Needs: all-zero. Owns:
 * slc_gpu_coo_destroy, also after an error. Errors: cudaErrorInvalidValue for an order of 0 or
 * above SLC_MAX_ORDER, cudaErrorMemoryAllocation.
 */
cudaError_t
slc_gpu_coo_create(struct slc_gpu_coo *coo, unsigned order, uint64_t nnz, enum slc_value_type type);

/*
 * Fills a list from the host's memory, registered or not: adjacent coordinates, values of the
 * list's type. Waits for the stream.
 */
cudaError_t slc_gpu_coo_write(const struct slc_gpu_coo *coo,
                              const uint32_t *coords,
                              const void *values,
                              cudaStream_t stream);

/*
 * Reads the coordinates into a new host buffer, which the caller owns. Waits for the stream.
 * Errors: cudaErrorMemoryAllocation, with the buffer empty.
 */
cudaError_t slc_gpu_coo_read_coords(const struct slc_gpu_coo *coo,
                                    struct slc_buffer *coords,
                                    cudaStream_t stream);

/*
 * Builds the permutation of a mode of `length` rows on the host, from the list's coordinates there.
 * Waits for the stream. Errors: cudaErrorInvalidValue for a missing mode, a coordinate of `length`
 * or more, and 2^32 nonzeros or more; cudaErrorMemoryAllocation, also for the host's memory.
 */
cudaError_t slc_gpu_coo_permute(struct slc_gpu_coo *coo,
                                const uint32_t *coords,
                                unsigned mode,
                                uint64_t length,
                                cudaStream_t stream);

/*
 * A copy of a list in the order of row / rows_each of a mode of `length` rows: the nonzeros of each
 * run of `rows_each` rows are consecutive, in the list's order. Sorted on the host. Needs, Owns: as
 * slc_gpu_coo_create. Errors: as slc_gpu_coo_permute.
 */
cudaError_t slc_gpu_coo_create_sorted(struct slc_gpu_coo *coo,
                                      const struct slc_gpu_host_list *list,
                                      unsigned mode,
                                      uint64_t length,
                                      uint64_t rows_each,
                                      cudaStream_t stream);

/* Accepts an all-zero list. */
void slc_gpu_coo_destroy(struct slc_gpu_coo *coo);

#endif
