/* A tensor as a list of coordinates in device memory: the input of baselines (baselines.h). Only
 * files of this folder and tests include this header.
 *
 * As in tools/bench/rivals/cpu/coo.h, the coordinates of a nonzero are adjacent. So a nonzero that
 * is read through a permutation costs one memory sector for its coordinates and one for its value.
 * Neighbouring threads that read nonzeros in the order of the list still read whole cache lines.
 *
 * Call slc_gpu_coo_create; fill the list with slc_gpu_coo_write, or with a kernel that decodes to
 * it; call slc_gpu_coo_permute for each mode whose permutation is needed; and slc_gpu_coo_destroy
 * at the end. */
#ifndef SLC_GPU_COO_H
#define SLC_GPU_COO_H

#include "gpu/cuda/cuda.h"

/* Makes a CUDA call. If it fails, returns its error from the calling function. */
#define SLC_CUDA_TRY(...)                                                                          \
    do {                                                                                           \
        const cudaError_t slc_try_error = (__VA_ARGS__);                                           \
                                                                                                   \
        if (slc_try_error != cudaSuccess) {                                                        \
            return slc_try_error;                                                                  \
        }                                                                                          \
    } while (0)

/* Destroys an event, which may be NULL. */
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

/* A list of coordinates in host memory. The arrays are borrowed. */
struct slc_gpu_host_list {
    unsigned order;
    enum slc_value_type type;
    uint64_t nnz;
    const uint32_t *coords; /* nonzero i, mode m: element i * order + m */
    const void *values;     /* values, of type `type` */
};

struct slc_gpu_coo {
    unsigned order;
    enum slc_value_type type;
    uint64_t nnz;
    /* element i * order + m is the coordinate of nonzero i in mode m; mode sizes are below 2^32 */
    uint32_t *coords;
    void *values; /* values, of type `type` */
    /* per mode: numbers of the nonzeros, stably sorted by their coordinate in the mode; NULL if not
     * built */
    uint32_t *permutation[SLC_MAX_ORDER];
};

/* Allocates a list of `nnz` nonzeros with undefined contents. Needs: *coo is all-zero. The caller
 * must call slc_gpu_coo_destroy, also after an error. Errors: cudaErrorInvalidValue for an order of
 * 0 or above SLC_MAX_ORDER; cudaErrorMemoryAllocation. */
cudaError_t
slc_gpu_coo_create(struct slc_gpu_coo *coo, unsigned order, uint64_t nnz, enum slc_value_type type);

/* Copies coordinates and values from host memory, registered or not, to a list. The coordinates of
 * a nonzero are adjacent, and values have the type of the list. Waits for the stream. */
cudaError_t slc_gpu_coo_write(const struct slc_gpu_coo *coo,
                              const uint32_t *coords,
                              const void *values,
                              cudaStream_t stream);

/* Copies the coordinates to a new host buffer, which the caller owns. Waits for the stream. Errors:
 * cudaErrorMemoryAllocation; the buffer is then empty. */
cudaError_t slc_gpu_coo_read_coords(const struct slc_gpu_coo *coo,
                                    struct slc_buffer *coords,
                                    cudaStream_t stream);

/* Builds the permutation of a mode of `length` rows. `coords` are the coordinates of the list in
 * host memory, which the host sorts. Waits for the stream. Errors: cudaErrorInvalidValue for a
 * missing mode, for a coordinate of `length` or more, and for 2^32 nonzeros or more;
 * cudaErrorMemoryAllocation, also if there is not enough host memory. */
cudaError_t slc_gpu_coo_permute(struct slc_gpu_coo *coo,
                                const uint32_t *coords,
                                unsigned mode,
                                uint64_t length,
                                cudaStream_t stream);

/* Creates a sorted copy of a list. The `length` rows of a mode are divided into groups of
 * `rows_each` consecutive rows; in the copy, the nonzeros of a group are adjacent, in the order of
 * the list. The host sorts. Needs: *coo is all-zero. The caller must call slc_gpu_coo_destroy, also
 * after an error. Errors: as for slc_gpu_coo_permute. */
cudaError_t slc_gpu_coo_create_sorted(struct slc_gpu_coo *coo,
                                      const struct slc_gpu_host_list *list,
                                      unsigned mode,
                                      uint64_t length,
                                      uint64_t rows_each,
                                      cudaStream_t stream);

/* Releases the memory of a list. *coo may be all-zero. */
void slc_gpu_coo_destroy(struct slc_gpu_coo *coo);

#endif
