/* Lists of coordinates: room for them, filling and sorting them from the host. See coo.h. */
#include "gpu/coo.h"

#include "gpu/staged_copy.h"

#include <string.h>

static uint64_t list_bytes(const struct slc_gpu_coo *coo)
{
    return coo->nnz * coo->order * sizeof(uint32_t);
}

/* cudaMalloc, of at least one byte: empty lists have addresses, too. */
template <typename T> static cudaError_t allocate(T **memory, uint64_t bytes)
{
    void *raw = nullptr;
    const cudaError_t error = cudaMalloc(&raw, bytes > 0 ? bytes : 1);

    *memory = static_cast<T *>(error == cudaSuccess ? raw : nullptr);
    return error;
}

cudaError_t
slc_gpu_coo_create(struct slc_gpu_coo *coo, unsigned order, uint64_t nnz, enum slc_value_type type)
{
    cudaError_t error;

    if (order < 1 || order > SLC_MAX_ORDER) {
        return cudaErrorInvalidValue;
    }
    if (nnz > UINT64_MAX / (SLC_MAX_ORDER * sizeof(uint32_t))) {
        return cudaErrorMemoryAllocation;
    }
    coo->order = order;
    coo->type = type;
    coo->nnz = nnz;
    error = allocate(&coo->coords, list_bytes(coo));
    if (error == cudaSuccess) {
        error = allocate(&coo->values, nnz * slc_value_bytes(type));
    }
    return error;
}

cudaError_t slc_gpu_coo_write(const struct slc_gpu_coo *coo,
                              const uint32_t *coords,
                              const void *values,
                              cudaStream_t stream)
{
    const cudaError_t error = slc_staged_to_device(coo->coords, coords, list_bytes(coo), stream);

    if (error != cudaSuccess) {
        return error;
    }
    return slc_staged_to_device(coo->values, values, coo->nnz * slc_value_bytes(coo->type), stream);
}

/* Where the nonzeros of each row begin, from how many there are; false for a row beyond. */
static bool
count_rows(const uint32_t *coords, unsigned order, uint64_t nnz, uint64_t length, uint32_t *begin)
{
    uint32_t sum = 0;

    for (uint64_t i = 0; i < nnz; i++) {
        if (coords[i * order] >= length) {
            return false;
        }
        begin[coords[i * order]]++;
    }
    for (uint64_t row = 0; row < length; row++) {
        const uint32_t here = begin[row];

        begin[row] = sum;
        sum += here;
    }
    return true;
}

cudaError_t slc_gpu_coo_read_coords(const struct slc_gpu_coo *coo,
                                    struct slc_buffer *coords,
                                    cudaStream_t stream)
{
    cudaError_t error;

    *coords = SLC_BUFFER_INIT;
    if (slc_buffer_create(coords, list_bytes(coo), SLC_PAGES_HUGE, nullptr) != SLC_OK) {
        return cudaErrorMemoryAllocation;
    }
    error = slc_staged_to_host(coords->data, coo->coords, list_bytes(coo), stream);
    if (error != cudaSuccess) {
        slc_buffer_destroy(coords);
    }
    return error;
}

/* A counting sort: `begin` has a number per row, zero at first. False for a row beyond `length`. */
static bool sort_list(const struct slc_gpu_coo *coo,
                      unsigned mode,
                      uint64_t length,
                      const uint32_t *coords,
                      uint32_t *begin,
                      uint32_t *sorted)
{
    if (!count_rows(coords + mode, coo->order, coo->nnz, length, begin)) {
        return false;
    }
    for (uint64_t i = 0; i < coo->nnz; i++) {
        sorted[begin[coords[i * coo->order + mode]]++] = static_cast<uint32_t>(i);
    }
    return true;
}

cudaError_t
slc_gpu_coo_permute(struct slc_gpu_coo *coo, unsigned mode, uint64_t length, cudaStream_t stream)
{
    const uint64_t index_bytes = coo->nnz * sizeof(uint32_t);
    struct slc_buffer coords, begin = SLC_BUFFER_INIT, sorted = SLC_BUFFER_INIT;
    void *permutation = nullptr;
    cudaError_t error;

    if (mode >= coo->order || coo->nnz > UINT32_MAX || length > UINT64_C(1) << 32) {
        return cudaErrorInvalidValue;
    }
    error = slc_gpu_coo_read_coords(coo, &coords, stream);
    if (error != cudaSuccess) {
        return error;
    }
    if (slc_buffer_create(&begin, length * sizeof(uint32_t), SLC_PAGES_HUGE, nullptr) != SLC_OK ||
        slc_buffer_create(&sorted, index_bytes, SLC_PAGES_HUGE, nullptr) != SLC_OK) {
        error = cudaErrorMemoryAllocation;
    } else if (!sort_list(coo, mode, length, static_cast<const uint32_t *>(coords.data),
                          static_cast<uint32_t *>(begin.data),
                          static_cast<uint32_t *>(sorted.data))) {
        error = cudaErrorInvalidValue;
    } else {
        error = slc_staged_create(&permutation, sorted.data, index_bytes, stream);
    }
    slc_buffer_destroy(&coords);
    slc_buffer_destroy(&begin);
    slc_buffer_destroy(&sorted);
    if (error == cudaSuccess) {
        (void)cudaFree(coo->permutation[mode]);
        coo->permutation[mode] = static_cast<uint32_t *>(permutation);
    }
    return error;
}

void slc_gpu_coo_destroy(struct slc_gpu_coo *coo)
{
    (void)cudaFree(coo->coords);
    (void)cudaFree(coo->values);
    for (unsigned m = 0; m < SLC_MAX_ORDER; m++) {
        (void)cudaFree(coo->permutation[m]);
    }
    memset(coo, 0, sizeof *coo);
}
