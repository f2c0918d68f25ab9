/* Finds the fibers of a list, on the host. See fibers.h. */
#include "gpu/fibers.h"

#include "gpu/staged_copy.h"

#include <string.h>

/* Arrays on the host, behind one another. */
struct found {
    uint32_t *begin, *coords, *index, *fiber_of;
};

static bool same_fiber(const uint32_t *a, const uint32_t *b, unsigned order, unsigned mode)
{
    for (unsigned m = 0; m < order; m++) {
        if (m != mode && a[m] != b[m]) {
            return false;
        }
    }
    return true;
}

/* The number of a fiber among all there could be. */
static uint64_t
number_of(const uint32_t *coords, unsigned order, unsigned mode, const uint64_t *dims)
{
    uint64_t number = 0;

    for (unsigned m = 0; m < order; m++) {
        number = m == mode ? number : number * dims[m] + coords[m];
    }
    return number;
}

/* How many fibers there are; UINT64_MAX where they are too many or do not ascend. */
static uint64_t
count_fibers(const struct slc_gpu_fibers *fibers, const uint32_t *coords, const uint64_t *dims)
{
    uint64_t count = 0, before = 0;

    if (dims != nullptr) {
        count = 1;
        for (unsigned m = 0; m < fibers->order; m++) {
            if (m != fibers->mode && (dims[m] > UINT32_MAX || count * dims[m] >= UINT32_MAX)) {
                return UINT64_MAX;
            }
            count *= m == fibers->mode ? 1 : dims[m];
        }
    }
    for (uint64_t i = 0; i < fibers->nnz; i++) {
        const uint32_t *here = coords + i * fibers->order;

        if (dims != nullptr) {
            const uint64_t number = number_of(here, fibers->order, fibers->mode, dims);

            if (number < before || number >= count) {
                return UINT64_MAX;
            }
            before = number;
        } else if (i == 0 || !same_fiber(here, here - fibers->order, fibers->order, fibers->mode)) {
            count++;
        }
    }
    return count;
}

/* Fibers as far as they have nonzeros. */
static void find(const struct slc_gpu_fibers *fibers,
                 const uint32_t *coords,
                 const uint64_t *dims,
                 const struct found *found)
{
    const unsigned order = fibers->order, mode = fibers->mode;
    uint64_t count = 0; /* of fibers that have begun */

    for (uint64_t i = 0; i < fibers->nnz; i++) {
        const uint32_t *here = coords + i * order;
        const bool begins = i == 0 || !same_fiber(here, here - order, order, mode);
        const uint64_t fiber = dims != nullptr ? number_of(here, order, mode, dims)
                               : begins        ? count
                                               : count - 1;

        while (count <= fiber) {
            found->begin[count++] = static_cast<uint32_t>(i);
        }
        found->index[i] = here[mode];
        found->fiber_of[i] = static_cast<uint32_t>(fiber);
        for (unsigned m = 0; m < order; m++) {
            found->coords[fiber * order + m] = m == mode ? 0 : here[m];
        }
    }
    while (count <= fibers->count) {
        found->begin[count++] = static_cast<uint32_t>(fibers->nnz);
    }
}

static cudaError_t
copy(struct slc_gpu_fibers *fibers, const struct found *found, cudaStream_t stream)
{
    const struct {
        uint32_t **to;
        const uint32_t *from;
        uint64_t count;
    } arrays[] = {{&fibers->begin, found->begin, fibers->count + 1},
                  {&fibers->coords, found->coords, fibers->count * fibers->order},
                  {&fibers->index, found->index, fibers->nnz},
                  {&fibers->fiber_of, found->fiber_of, fibers->nnz}};
    cudaError_t error = cudaSuccess;

    for (const auto &array : arrays) {
        if (error == cudaSuccess) {
            error = slc_staged_create(reinterpret_cast<void **>(array.to), array.from,
                                      array.count * sizeof(uint32_t), stream);
        }
    }
    return error;
}

static cudaError_t make_from(struct slc_gpu_fibers *fibers,
                             const uint32_t *coords,
                             const uint64_t *dims,
                             cudaStream_t stream)
{
    struct slc_buffer arrays = SLC_BUFFER_INIT;
    struct found found;
    cudaError_t error;

    fibers->count = count_fibers(fibers, coords, dims);
    if (fibers->count >= UINT32_MAX) {
        fibers->count = 0;
        return cudaErrorInvalidValue;
    }
    if (slc_buffer_create(
            &arrays, (fibers->count * (fibers->order + 1) + 1 + fibers->nnz * 2) * sizeof(uint32_t),
            SLC_PAGES_HUGE, nullptr) != SLC_OK) {
        return cudaErrorMemoryAllocation;
    }
    found.begin = static_cast<uint32_t *>(arrays.data);
    found.coords = found.begin + fibers->count + 1;
    found.index = found.coords + fibers->count * fibers->order;
    found.fiber_of = found.index + fibers->nnz;
    find(fibers, coords, dims, &found);
    error = copy(fibers, &found, stream);
    slc_buffer_destroy(&arrays);
    return error;
}

cudaError_t slc_gpu_fibers_create(struct slc_gpu_fibers *fibers,
                                  const struct slc_gpu_coo *coo,
                                  unsigned mode,
                                  const uint64_t *dims,
                                  cudaStream_t stream)
{
    struct slc_buffer coords;
    cudaError_t error;

    if (mode >= coo->order || coo->nnz >= UINT32_MAX) {
        return cudaErrorInvalidValue;
    }
    fibers->order = coo->order;
    fibers->mode = mode;
    fibers->type = coo->type;
    fibers->nnz = coo->nnz;
    fibers->values = coo->values;
    error = slc_gpu_coo_read_coords(coo, &coords, stream);
    if (error == cudaSuccess) {
        error = make_from(fibers, static_cast<const uint32_t *>(coords.data), dims, stream);
        slc_buffer_destroy(&coords);
    }
    return error;
}

void slc_gpu_fibers_destroy(struct slc_gpu_fibers *fibers)
{
    (void)cudaFree(fibers->begin);
    (void)cudaFree(fibers->index);
    (void)cudaFree(fibers->coords);
    (void)cudaFree(fibers->fiber_of);
    memset(fibers, 0, sizeof *fibers);
}
