/* Random tensors as lists of coordinates, on the host and on the emulated device, for tests that
 * compare kernels over lists with the oracle. */
#ifndef SLC_LIST_FIXTURE_H
#define SLC_LIST_FIXTURE_H

#include "gpu/cuda/batch.h"
#include "gpu/cuda/staged_copy.h"
#include "tools/bench/rivals/gpu/coo.h"

extern "C" {
#include "cpu/reference/reference.h"
#include "naive_products.h"
#include "slc_test.h"
}

#include <cstdint>
#include <vector>

/* Ends the running test if a call of the runtime fails. */
#define SLC_MUST(call) CU_ASSERT_EQUAL_FATAL((call), cudaSuccess)

/* A list on the host. */
struct host_list {
    std::vector<uint64_t> dims;
    std::vector<uint32_t> coords; /* coordinate of nonzero i in mode m at i * order + m */
    std::vector<double> values;

    unsigned order(void) const
    {
        return (unsigned)dims.size();
    }
    uint64_t nnz(void) const
    {
        return values.size();
    }
};

/* Nonzeros at random coordinates, possibly duplicate, in random order; values are integers, -4
 * to 4. */
host_list random_list(const std::vector<uint64_t> &dims, uint64_t nnz, uint64_t seed);

/* Sorts by the fibers of a mode, that is, by the coordinates of the other modes, mode 0 first. */
void sort_fibers(host_list *list, unsigned mode);

/* The same list as the oracle reads it. */
struct oracle_list {
    std::vector<uint64_t> coords[SLC_MAX_ORDER];
    slc_coo_view view;

    explicit oracle_list(const host_list &list);
};

/* A matrix of integers, -3 to 3. */
struct host_matrix {
    struct slc_matrix matrix;

    host_matrix(enum slc_value_type type, uint64_t rows, uint32_t cols, uint64_t seed);
    ~host_matrix();
    host_matrix(const host_matrix &) = delete;
};

/* A separate emulated device for a test, with a stream; nothing may be left on it. */
struct emulated_device {
    cudaStream_t stream = nullptr;

    explicit emulated_device(unsigned seed);
    ~emulated_device();
};

struct device_list {
    slc_gpu_coo coo = {};

    device_list(const host_list &list, enum slc_value_type type, cudaStream_t stream);
    ~device_list();
};

/* Rows are aligned to 16 bytes; those of the host may not be. */
struct device_matrix {
    slc_gpu_matrix matrix = {};

    device_matrix(const struct slc_matrix *from, cudaStream_t stream);
    device_matrix(enum slc_value_type type, uint64_t rows, uint32_t cols, cudaStream_t stream);
    ~device_matrix();
    device_matrix(const device_matrix &) = delete;
    /* Row-major, contiguous, as f64. */
    std::vector<double> read(enum slc_value_type type, cudaStream_t stream) const;
};

/* Elements of any type in device memory. */
template <typename T> struct device_array {
    T *data = nullptr;

    device_array(const std::vector<T> &from, cudaStream_t stream)
    {
        void *memory;

        SLC_MUST(cudaMalloc(&memory, from.size() * sizeof(T) + 1));
        data = static_cast<T *>(memory);
        SLC_MUST(slc_staged_to_device(data, from.data(), from.size() * sizeof(T), stream));
    }
    ~device_array()
    {
        SLC_MUST(cudaFree(data));
    }
    device_array(const device_array &) = delete;
    std::vector<T> read(uint64_t count, cudaStream_t stream) const
    {
        std::vector<T> to(count);

        SLC_MUST(slc_staged_to_host(to.data(), data, count * sizeof(T), stream));
        return to;
    }
};

#endif
