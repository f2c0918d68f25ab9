/*
 * The inner loops of dense algebra for ranks up to SLC_BLOCK_RANK, one table per instruction set
 * (dense_kernel_set.c). They work in f64 on blocks of SLC_BLOCK_ROWS rows, row-major, with `width`
 * columns: the rank rounded up to whole vectors (slc_block_width), of which those beyond the rank
 * are zero. Blocks begin on 64-byte boundaries.
 *
 * Unlike the kernels of MTTKRP these use fused multiply-adds where the set has them, twice as fast:
 * sets differ in the last bits, one set always gives the same.
 */
#ifndef SLC_CPU_DENSE_KERNELS_H
#define SLC_CPU_DENSE_KERNELS_H

#include <stdint.h>

enum {
    /* Rows of a block: four vectors of eight f64, enough to hide an addition's latency. */
    SLC_BLOCK_ROWS = 32,
    /* Up to this rank a block (16 KiB) and its transpose stay in the first-level cache. */
    SLC_BLOCK_RANK = 64,
    /* Columns solved together: each known column is loaded once for all of them. */
    SLC_SOLVE_COLUMNS = 4
};

/* Columns of a block of rows of rank `rank`. */
static inline uint32_t slc_block_width(uint32_t rank)
{
    return (rank + 7) / 8 * 8;
}

/*
 * The lower triangles of X B A^T = M, `size` x `size`, row-major: `size` is the rank rounded up to
 * a multiple of SLC_SOLVE_COLUMNS, filled up with the identity. Their diagonals are given inverted.
 */
struct slc_triangles {
    uint32_t size;
    const double *forward, *forward_inverse;   /* A: Y A^T = M */
    const double *backward, *backward_inverse; /* B: X B = Y */
};

struct slc_dense_kernels {
    /*
     * Up to three steps on a block, each left out where its argument is NULL:
     * triangles: X is solved for from X B A^T = M; `x` may be `m`;
     * gram: += X^T X, the upper triangle of width x width numbers, and some below it;
     * columns, 2 x width numbers: largest = max(largest, |X|), a NaN being ignored, and after these
     * inner += M * X, both per column.
     */
    void (*update)(const struct slc_triangles *triangles,
                   const double *m,
                   uint32_t width,
                   double *x,
                   double *gram,
                   double *columns);
    /* Rows of `cols` numbers, `pitch` apart in f32 and `width` in f64. */
    void (*widen)(const float *from, uint64_t pitch, uint32_t cols, uint32_t width, double *to);
    void (*narrow)(const double *from, uint32_t width, uint32_t cols, uint64_t pitch, float *to);
};

extern const struct slc_dense_kernels slc_dense_kernels_portable;
extern const struct slc_dense_kernels slc_dense_kernels_avx2;
extern const struct slc_dense_kernels slc_dense_kernels_avx512;
extern const struct slc_dense_kernels slc_dense_kernels_neon;

#endif
