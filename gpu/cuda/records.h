/* Structs in device memory, for C and CUDA C++. Every build, with or without CUDA, uses their sizes
 * to compute how much memory a device needs. Private to gpu/. */
#ifndef SLC_GPU_RECORDS_H
#define SLC_GPU_RECORDS_H

#include "base/encoded.h"

#include <stddef.h>
#include <stdint.h>

enum { SLC_WARP = 32 };

/* Placed before a function that both kernels and the host call. */
#ifdef __CUDACC__
#define SLC_HOST_DEVICE __host__ __device__
#else
#define SLC_HOST_DEVICE
#endif

/* A tile in device memory. */
struct slc_gpu_tile {
    const uint8_t *block;    /* the encoded bytes of its block */
    const uint8_t *expanded; /* the expanded bytes of its block */
    uint64_t block_number;   /* number of the block in the layout, for messages */
    uint64_t block_offset;   /* offset of the block in the file, for messages */
    struct slc_encoded_tile tile;
};

/* The first contradiction that kernels found, in device memory; all zero if there is none. */
struct slc_gpu_fault {
    unsigned kind; /* enum slc_gpu_fault_kind; set by atomicCAS before the other members */
    uint32_t tile; /* number of the tile in the layout */
    uint64_t block_number, block_offset;
    double squares; /* sum of the squares of the values that were added to exact sums */
};

/* A row-major matrix in device memory. The padding of each row after `cols` elements is zero. */
struct slc_gpu_matrix {
    void *data;
    uint64_t rows;
    uint32_t cols;
    uint32_t pitch; /* elements from one row to the next; rows begin at multiples of 16 bytes */
    uint32_t split; /* order of the elements of a row, see slc_gpu_place_of_column */
};

/* Returns the position of a column within a row. With a split of 0 or 1, it is the number of the
 * column. With a split S > 1, columns are reordered within panels of S * SLC_WARP columns: first
 * those whose number in the panel is 0 modulo S, then those that are 1 modulo S, and so on. Needs:
 * `cols` is a multiple of S. A warp lane that reads columns l * S .. l * S + S - 1 of factors then
 * adds to the output at a stride, and the warp lanes of a row cover neighbouring elements. */
SLC_HOST_DEVICE static inline uint32_t
slc_gpu_place_of_column(uint32_t cols, uint32_t split, uint32_t column)
{
    const uint32_t panel = split * SLC_WARP;

    if (split <= 1) {
        return column;
    }
    const uint32_t first = column / panel * panel, within = column - first;
    const uint32_t width = cols - first < panel ? cols - first : panel;

    return first + within % split * (width / split) + within / split;
}

/* Exact sums (gpu/mttkrp/exact_sum.h) of the elements of a rows x rank matrix. Both arrays are in
 * device memory. */
struct slc_exact_sum {
    /* slc_exact_sum_words(rows, rank) words. Element (i, r) has its high word at 2 * (i * rank + r)
     * and its low word after it. One word per column follows, which is not 0 if an addend of that
     * column could not be added. NULL means ordinary f64 sums. */
    unsigned long long *words;
    /* 2^(62 - E) per column (E: exact_sum.h), or NaN if the bound of the column is not finite */
    double *scale;
};

/* Returns the number of words for a rows x rank matrix, or UINT64_MAX on overflow. */
static inline uint64_t slc_exact_sum_words(uint64_t rows, uint32_t rank)
{
    uint64_t words;

    return __builtin_mul_overflow(rows, (uint64_t)rank * 2, &words) ||
                   __builtin_add_overflow(words, (uint64_t)rank, &words)
               ? UINT64_MAX
               : words;
}

#endif
