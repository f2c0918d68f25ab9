/* Inner loops of dense algebra for ranks up to SLC_BLOCK_RANK, one table per instruction set
 * (dense_kernel_set.c). The loops process blocks of SLC_BLOCK_ROWS rows in f64, row-major, with
 * `width` columns: the rank rounded up to whole vectors (slc_block_width). Columns after the rank
 * are zero. Blocks are aligned to 64 bytes. Unlike the kernels of MTTKRP, these loops use fused
 * multiply-adds if the instruction set has them, which doubles the speed. The results of different
 * instruction sets therefore differ in the last bits, but each instruction set is deterministic. */
#ifndef SLC_CPU_DENSE_KERNELS_H
#define SLC_CPU_DENSE_KERNELS_H

#include <stdint.h>

enum {
    /* Number of rows of a block: four vectors of eight f64 hide the latency of an addition. */
    SLC_BLOCK_ROWS = 32,
    /* Up to this rank a block (16 KiB) and its transpose stay in the L1 cache. */
    SLC_BLOCK_RANK = 64,
    /* Number of columns that are solved together. A known column is loaded once for all of these
     * columns. */
    SLC_SOLVE_COLUMNS = 4
};

/* Returns the number of columns of a block for rank `rank`. */
static inline uint32_t slc_block_width(uint32_t rank)
{
    return (rank + 7) / 8 * 8;
}

/* The lower triangles A and B of X B A^T = M, `size` x `size`, row-major, with the inverses of
 * their diagonals. `size` is the rank rounded up to a multiple of SLC_SOLVE_COLUMNS; the triangles
 * are padded with the identity. */
struct slc_triangles {
    uint32_t size;
    const double *forward, *forward_inverse;   /* A, to solve Y A^T = M */
    const double *backward, *backward_inverse; /* B, to solve X B = Y */
};

/* Minimizes 1/2 x V x^T - m x^T + l1 sum |x_r| with low <= x_r <= high for each row m of a block,
 * by coordinate descent: in each sweep, every number of a row is set to its minimizer. A row is
 * complete when a sweep lowers its objective by at most `tolerance` times the largest decrease of
 * its sweeps. The result for a row does not depend on the other rows of the block. */
struct slc_descent {
    uint32_t rank;
    uint32_t width;        /* slc_block_width(rank) */
    unsigned sweeps;       /* maximum number of sweeps */
    double l1, low, high;  /* low and high may be infinite */
    double tolerance;      /* 0 or more */
    const double *gram;    /* width x width: V, padded with zeros */
    const double *inverse; /* 1 / V_rr, or 0 for numbers that do not affect the squares and are only
                              clamped to the bounds */
};

struct slc_dense_kernels {
    /* Performs up to three steps on a block. A step is skipped if its argument is NULL. With
     * `triangles`, solves X B A^T = M for X; `x` may be `m`. With `gram`, adds the upper triangle
     * of X^T X, and some numbers below it, to width x width numbers. With `columns`, which has 2 x
     * width numbers, updates the largest magnitude of each column of X, ignoring NaN, and then adds
     * the inner product of each column of M and X. */
    void (*update)(const struct slc_triangles *triangles,
                   const double *m,
                   uint32_t width,
                   double *x,
                   double *gram,
                   double *columns);
    /* Solves the rows of a block; `x` is the start and the solution. `scratch` has 2 x width x
     * SLC_BLOCK_ROWS numbers. Blocks of any rank are possible. */
    void (*descend)(const struct slc_descent *descent, const double *m, double *x, double *scratch);
    /* Convert the rows of a block to f64, and back to f32. Rows have `cols` numbers, and begin
     * every `pitch` numbers in f32 and every `width` numbers in f64. */
    void (*widen)(const float *from, uint64_t pitch, uint32_t cols, uint32_t width, double *to);
    void (*narrow)(const double *from, uint32_t width, uint32_t cols, uint64_t pitch, float *to);
};

extern const struct slc_dense_kernels slc_dense_kernels_portable;
extern const struct slc_dense_kernels slc_dense_kernels_avx2;
extern const struct slc_dense_kernels slc_dense_kernels_avx512;
extern const struct slc_dense_kernels slc_dense_kernels_neon;

#endif
