/*
 * Records in the device's memory, for C and CUDA C++: every build, with or without CUDA, uses them
 * to measure memory. Private to gpu/.
 */
#ifndef SLC_GPU_RECORDS_H
#define SLC_GPU_RECORDS_H

#include "base/encoded.h"

#include <stddef.h>
#include <stdint.h>

enum { SLC_WARP = 32 };

/* Before a function that kernels and the host both call. */
#ifdef __CUDACC__
#define SLC_HOST_DEVICE __host__ __device__
#else
#define SLC_HOST_DEVICE
#endif

/* A tile in the device's memory. */
struct slc_gpu_tile {
    const uint8_t *block;    /* its block's bytes */
    const uint8_t *expanded; /* its block's expanded bytes */
    uint64_t block_number;   /* within the layout, for messages */
    uint64_t block_offset;   /* in the file, for messages */
    struct slc_encoded_tile tile;
};

/* The first contradiction that kernels have found; zero: none. In the device's memory. */
struct slc_gpu_fault {
    unsigned kind; /* enum slc_gpu_fault_kind; set by atomicCAS before the rest */
    uint32_t tile; /* of the layout */
    uint64_t block_number, block_offset;
    double squares; /* sum over the values in exact sums */
};

/* A matrix in the device's memory, row-major; padding after `cols` is zero. */
struct slc_gpu_matrix {
    void *data;
    uint64_t rows;
    uint32_t cols;
    uint32_t pitch; /* elements from row to row: rows begin at multiples of 16 bytes */
};

/* Exact sums (gpu/mttkrp/exact_sum.h) in place of a matrix rows x rank. Both arrays are in the
 * device's memory. */
struct slc_exact_sum {
    /*
     * slc_exact_sum_words of them: for element (i, r) the high word at 2 * (i * rank + r) and the
     * low word after it; then one word per column, not 0 if something could not be added. NULL:
     * ordinary sums.
     */
    unsigned long long *words;
    double *scale; /* per column: 2^(62 - E); NaN if the bound is not finite */
};

/* Words of a matrix; UINT64_MAX on overflow. */
static inline uint64_t slc_exact_sum_words(uint64_t rows, uint32_t rank)
{
    uint64_t words;

    return __builtin_mul_overflow(rows, (uint64_t)rank * 2, &words) ||
                   __builtin_add_overflow(words, (uint64_t)rank, &words)
               ? UINT64_MAX
               : words;
}

#endif
