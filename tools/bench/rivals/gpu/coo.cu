/* Allocates, fills and sorts lists of coordinates in device memory. The host sorts. */
#include "tools/bench/rivals/gpu/coo.h"

#include "gpu/cuda/staged_copy.h"

#include <string.h>

static uint64_t list_bytes(const struct slc_gpu_coo *coo)
{
    return coo->nnz * coo->order * sizeof(uint32_t);
}

/* Allocates at least one byte, so that arrays of an empty list are not NULL. */
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
    if (order < 1 || order > SLC_MAX_ORDER) {
        return cudaErrorInvalidValue;
    }
    if (nnz > UINT64_MAX / (SLC_MAX_ORDER * sizeof(uint32_t))) {
        return cudaErrorMemoryAllocation;
    }
    coo->order = order;
    coo->type = type;
    coo->nnz = nnz;
    SLC_CUDA_TRY(allocate(&coo->coords, list_bytes(coo)));
    return allocate(&coo->values, nnz * slc_value_bytes(type));
}

cudaError_t slc_gpu_coo_write(const struct slc_gpu_coo *coo,
                              const uint32_t *coords,
                              const void *values,
                              cudaStream_t stream)
{
    SLC_CUDA_TRY(slc_staged_to_device(coo->coords, coords, list_bytes(coo), stream));
    return slc_staged_to_device(coo->values, values, coo->nnz * slc_value_bytes(coo->type), stream);
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

/* ---- sorting by a mode */

/* A counting sort of a list by row / each, where a row is a coordinate in `mode`. Nonzeros with the
 * same quotient are a run; `runs` is the number of possible quotients. */
struct sorting {
    unsigned order, mode;
    uint64_t nnz, length, each, runs;
    const uint32_t *coords;
    struct slc_buffer begin;  /* 32 bits per run: its first position */
    struct slc_buffer sorted; /* 32 bits per position: number of the nonzero at this position */
};

/* Sets the first position of each run. Returns false if a row is not below the mode size. */
static bool count_runs(const struct sorting *sorting)
{
    uint32_t *begin = static_cast<uint32_t *>(sorting->begin.data);
    uint32_t sum = 0;

    for (uint64_t i = 0; i < sorting->nnz; i++) {
        const uint32_t row = sorting->coords[i * sorting->order + sorting->mode];

        if (row >= sorting->length) {
            return false;
        }
        begin[row / sorting->each]++;
    }
    for (uint64_t run = 0; run < sorting->runs; run++) {
        const uint32_t here = begin[run];

        begin[run] = sum;
        sum += here;
    }
    return true;
}

static void sorting_destroy(struct sorting *sorting)
{
    slc_buffer_destroy(&sorting->begin);
    slc_buffer_destroy(&sorting->sorted);
}

/* Fills sorting->sorted from the other members. The caller must call sorting_destroy, also after an
 * error. */
static cudaError_t sort_rows(struct sorting *sorting)
{
    uint32_t *begin, *sorted;

    if (sorting->mode >= sorting->order || sorting->nnz > UINT32_MAX ||
        sorting->length > UINT64_C(1) << 32 || sorting->each == 0) {
        return cudaErrorInvalidValue;
    }
    sorting->runs = (sorting->length + sorting->each - 1) / sorting->each;
    if (slc_buffer_create(&sorting->begin, sorting->runs * sizeof(uint32_t), SLC_PAGES_HUGE,
                          nullptr) != SLC_OK ||
        slc_buffer_create(&sorting->sorted, sorting->nnz * sizeof(uint32_t), SLC_PAGES_HUGE,
                          nullptr) != SLC_OK) {
        return cudaErrorMemoryAllocation;
    }
    if (!count_runs(sorting)) {
        return cudaErrorInvalidValue;
    }
    begin = static_cast<uint32_t *>(sorting->begin.data);
    sorted = static_cast<uint32_t *>(sorting->sorted.data);
    for (uint64_t i = 0; i < sorting->nnz; i++) {
        const uint32_t row = sorting->coords[i * sorting->order + sorting->mode];

        sorted[begin[row / sorting->each]++] = static_cast<uint32_t>(i);
    }
    return cudaSuccess;
}

cudaError_t slc_gpu_coo_permute(struct slc_gpu_coo *coo,
                                const uint32_t *coords,
                                unsigned mode,
                                uint64_t length,
                                cudaStream_t stream)
{
    struct sorting sorting = {coo->order, mode,   coo->nnz,        length,         1,
                              0,          coords, SLC_BUFFER_INIT, SLC_BUFFER_INIT};
    void *permutation = nullptr;
    cudaError_t error;

    error = sort_rows(&sorting);
    if (error == cudaSuccess) {
        error = slc_staged_create(&permutation, sorting.sorted.data, coo->nnz * sizeof(uint32_t),
                                  stream);
    }
    sorting_destroy(&sorting);
    if (error == cudaSuccess) {
        (void)cudaFree(coo->permutation[mode]);
        coo->permutation[mode] = static_cast<uint32_t *>(permutation);
    }
    return error;
}

/* Copies the nonzeros of the list, in the order `sorted`, to `coords` and `values`. */
static cudaError_t gather(const struct slc_gpu_host_list *list,
                          const uint32_t *sorted,
                          struct slc_buffer *coords,
                          struct slc_buffer *values)
{
    const size_t row_bytes = list->order * sizeof(uint32_t);
    const size_t value_bytes = slc_value_bytes(list->type);

    if (slc_buffer_create(coords, list->nnz * row_bytes, SLC_PAGES_HUGE, nullptr) != SLC_OK ||
        slc_buffer_create(values, list->nnz * value_bytes, SLC_PAGES_HUGE, nullptr) != SLC_OK) {
        return cudaErrorMemoryAllocation;
    }
    for (uint64_t k = 0; k < list->nnz; k++) {
        const uint64_t i = sorted[k];

        memcpy(static_cast<unsigned char *>(coords->data) + k * row_bytes,
               list->coords + i * list->order, row_bytes);
        memcpy(static_cast<unsigned char *>(values->data) + k * value_bytes,
               static_cast<const unsigned char *>(list->values) + i * value_bytes, value_bytes);
    }
    return cudaSuccess;
}

cudaError_t slc_gpu_coo_create_sorted(struct slc_gpu_coo *coo,
                                      const struct slc_gpu_host_list *list,
                                      unsigned mode,
                                      uint64_t length,
                                      uint64_t rows_each,
                                      cudaStream_t stream)
{
    struct slc_buffer coords = SLC_BUFFER_INIT, values = SLC_BUFFER_INIT;
    struct sorting sorting = {list->order, mode,         list->nnz,       length,         rows_each,
                              0,           list->coords, SLC_BUFFER_INIT, SLC_BUFFER_INIT};
    cudaError_t error;

    error = sort_rows(&sorting);
    if (error == cudaSuccess) {
        error = gather(list, static_cast<const uint32_t *>(sorting.sorted.data), &coords, &values);
    }
    if (error == cudaSuccess) {
        error = slc_gpu_coo_create(coo, list->order, list->nnz, list->type);
    }
    if (error == cudaSuccess) {
        error =
            slc_gpu_coo_write(coo, static_cast<const uint32_t *>(coords.data), values.data, stream);
    }
    sorting_destroy(&sorting);
    slc_buffer_destroy(&coords);
    slc_buffer_destroy(&values);
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
