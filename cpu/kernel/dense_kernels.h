/*
 * Inner loops of dense algebra for ranks up to SLC_BLOCK_RANK, one table per instruction set
 * (dense_kernel_set.c). They process blocks of SLC_BLOCK_ROWS rows in f64, row-major, with `width`
 * columns: the rank rounded up to whole vectors (slc_block_width), zero beyond the rank. Blocks are
 * aligned to 64 bytes.
 * Unlike the kernels of MTTKRP, they use fused multiply-adds if the instruction set has them, which
 * doubles their speed. The results of different sets therefore differ in the last bits, but each
 * set is deterministic.
 */
#ifndef SLC_CPU_DENSE_KERNELS_H
#define SLC_CPU_DENSE_KERNELS_H

#include <stdint.h>

enum {
    /* Rows of a block: four vectors of eight f64, enough to hide the latency of an addition. */
    SLC_BLOCK_ROWS = 32,
    /* Up to this rank a block (16 KiB) and its transpose stay in the L1 cache. */
    SLC_BLOCK_RANK = 64,
    /* Columns solved together: each known column is loaded once for all of them. */
    SLC_SOLVE_COLUMNS = 4
};

/* Number of columns of a block for rank `rank`. */
static inline uint32_t slc_block_width(uint32_t rank)
{
    return (rank + 7) / 8 * 8;
}

/*
 * The lower triangles A and B of X B A^T = M, `size` x `size`, row-major. `size` is the rank
 * rounded up to a multiple of SLC_SOLVE_COLUMNS, padded with the identity. Their diagonals are
 * stored inverted.
 */
struct slc_triangles {
    uint32_t size;
    const double *forward, *forward_inverse;   /* A: Y A^T = M */
    const double *backward, *backward_inverse; /* B: X B = Y */
};

struct slc_dense_kernels {
    /*
     * Performs up to three steps on a block; a step is skipped if its argument is NULL:
     * triangles: solves X B A^T = M for X; `x` may be `m`;
     * gram: += X^T X, the upper triangle of width x width numbers, and some below it;
     * columns, 2 x width numbers: largest = max(largest, |X|), ignoring NaN, then inner += M * X,
     * both per column.
     */
    void (*update)(const struct slc_triangles *triangles,
                   const double *m,
                   uint32_t width,
                   double *x,
                   double *gram,
                   double *columns);
    /* Convert rows of `cols` numbers, `pitch` apart in f32 and `width` apart in f64. */
    void (*widen)(const float *from, uint64_t pitch, uint32_t cols, uint32_t width, double *to);
    void (*narrow)(const double *from, uint32_t width, uint32_t cols, uint64_t pitch, float *to);
};

extern const struct slc_dense_kernels slc_dense_kernels_portable;
extern const struct slc_dense_kernels slc_dense_kernels_avx2;
extern const struct slc_dense_kernels slc_dense_kernels_avx512;
extern const struct slc_dense_kernels slc_dense_kernels_neon;

#endif
