/* Linear systems with their MTTKRPs, and factors on the emulated device between canaries, for tests
 * of dense algebra on the device. */
#ifndef SLC_DENSE_PROBLEM_H
#define SLC_DENSE_PROBLEM_H

#include "list_fixture.h"

#include "gpu/dense/dense.h"

extern "C" {
#include "../cpu/dense_fixture.h"
#include "base/random.h"
}

#include <cstring>

/* Contents of the memory around a factor. */
static const unsigned char canary = 0x6b;

/* One system and an MTTKRP. */
struct problem {
    enum slc_value_type precision;
    uint32_t rank;
    std::vector<double> v, left, right;
    struct slc_matrix m;
    struct slc_solver solver = {};

    problem(enum slc_value_type precision_, uint64_t rows, uint32_t rank_)
        : precision(precision_), rank(rank_), v((size_t)rank_ * rank_), left(rank_, 1.0),
          right(rank_, 1.0)
    {
        struct slc_error err = SLC_ERROR_INIT;

        regular_gram(rank, v.data());
        random_matrix(&m, SLC_F64, rows, rank);
        SLC_ASSERT_OK(slc_solver_create(&solver, rank, &err), &err);
    }
    ~problem()
    {
        slc_matrix_destroy(&m);
        slc_solver_destroy(&solver);
    }
    problem(const problem &) = delete;
    void factorize(void)
    {
        struct slc_dense *dense = dense_for(1, rank, 1);
        struct slc_error err = SLC_ERROR_INIT;

        SLC_ASSERT_OK(
            slc_dense_factorize(dense, v.data(), left.data(), right.data(), &solver, &err), &err);
        slc_dense_destroy(dense);
    }
};

/* A factor with the sums of its update. */
struct solved {
    struct slc_matrix x;
    std::vector<double> gram, columns;

    solved(enum slc_value_type type, const problem &of)
        : gram((size_t)of.rank * of.rank), columns(2 * (size_t)of.rank)
    {
        struct slc_error err = SLC_ERROR_INIT;

        SLC_ASSERT_OK(slc_matrix_create(&x, type, of.m.rows, of.rank, &err), &err);
    }
    ~solved()
    {
        slc_matrix_destroy(&x);
    }
    solved(const solved &) = delete;
};

/* Device memory with given contents. */
struct device_bytes {
    void *data = nullptr;

    explicit device_bytes(uint64_t bytes)
    {
        SLC_MUST(cudaMalloc(&data, bytes));
    }
    ~device_bytes()
    {
        SLC_MUST(cudaFree(data));
    }
    device_bytes(const device_bytes &) = delete;
};

static inline uint64_t padded_cols(enum slc_value_type type, uint32_t cols)
{
    const uint32_t multiple = 16 / slc_value_bytes(type);

    return (cols + multiple - 1) / multiple * multiple;
}

/* Rows on the device between two rows of canaries. */
struct framed_rows {
    enum slc_value_type type;
    uint64_t row_bytes, bytes;
    device_bytes memory;
    slc_gpu_matrix matrix;
    cudaStream_t stream;

    framed_rows(enum slc_value_type type_, uint64_t rows, uint32_t cols, cudaStream_t stream_)
        : type(type_), row_bytes(padded_cols(type_, cols) * slc_value_bytes(type_)),
          bytes((rows + 2) * row_bytes), memory(bytes), stream(stream_)
    {
        matrix = slc_gpu_matrix{static_cast<unsigned char *>(memory.data) + row_bytes, rows, cols,
                                (uint32_t)padded_cols(type, cols), 0};
        SLC_MUST(cudaMemsetAsync(memory.data, canary, bytes, stream));
    }
    void write(const struct slc_matrix *from) const
    {
        const uint64_t row = matrix.cols * (uint64_t)slc_value_bytes(type);

        for (uint64_t i = 0; i < matrix.rows; i++) {
            SLC_MUST(slc_staged_to_device(static_cast<unsigned char *>(matrix.data) + i * row_bytes,
                                          static_cast<const unsigned char *>(from->buffer.data) +
                                              i * from->pitch * slc_value_bytes(type),
                                          row, stream));
        }
    }
    /* Copies to the host; memory around the elements of the matrix must be unchanged. */
    void read(struct slc_matrix *to) const
    {
        const size_t element = slc_value_bytes(type);
        std::vector<unsigned char> raw(bytes);
        uint64_t changed = 0;

        SLC_MUST(slc_staged_to_host(raw.data(), memory.data, bytes, stream));
        for (uint64_t i = 0; i < matrix.rows + 2; i++) {
            const bool inside = i > 0 && i <= matrix.rows;
            const uint64_t from = inside ? matrix.cols * element : 0;
            unsigned char *row = raw.data() + i * row_bytes;

            for (uint64_t b = from; b < row_bytes; b++) {
                changed += row[b] != canary;
            }
            if (inside) {
                memcpy(static_cast<unsigned char *>(to->buffer.data) +
                           (i - 1) * to->pitch * element,
                       row, from);
            }
        }
        CU_ASSERT_EQUAL(changed, 0);
    }
};

static inline bool same_bits(const std::vector<double> &a, const std::vector<double> &b)
{
    return a.size() == b.size() &&
           (a.empty() || memcmp(a.data(), b.data(), a.size() * sizeof a[0]) == 0);
}

static inline bool same_matrix(const struct slc_matrix *a, const struct slc_matrix *b)
{
    return a->buffer.bytes == b->buffer.bytes &&
           (a->buffer.bytes == 0 || memcmp(a->buffer.data, b->buffer.data, a->buffer.bytes) == 0);
}

#endif
