/*
 * Inner loops of the baselines of coo.h and fiber_forms.h, with one table per instruction set. They
 * are compiled like the loops of group_kernels.h: multiplications and additions are fused if the
 * instruction set supports it, as a compiler would do with GenTen's loops.
 */
#ifndef SLC_CPU_COO_KERNELS_H
#define SLC_CPU_COO_KERNELS_H

#include "cpu/kernel/kernels.h"

enum {
    SLC_COO_TILE_NNZ = 128,    /* GenTen's tile, processed by one thread at a time */
    SLC_COO_BLOCK_COLUMNS = 32 /* largest block of columns in GenTen's first kernel */
};

/* Nonzeros gathered in the order in which they are traversed; for GenTen's kernels, a tile. */
struct slc_coo_span {
    uint32_t nnz;          /* 1 or more */
    unsigned factor_count; /* >= 1 */
    uint32_t columns;      /* columns of the output; the rest of a row is padding */
    uint64_t stride;       /* bytes between rows of every factor and of the output */
    const void *values;
    const uint32_t *rows;                  /* output row of each nonzero */
    const uint32_t *offset[SLC_MAX_ORDER]; /* row of each nonzero, per factor */
    const unsigned char *factor[SLC_MAX_ORDER];
    unsigned char *output; /* has the type of the factors */
};

/*
 * Adds the products to the output, for the panel of columns that starts at `column_bytes` in each
 * row. The kernel `each` computes all columns and ignores `column_bytes`. Threads: any number may
 * add to one output at once.
 */
typedef void slc_coo_fn(const struct slc_coo_span *span, uint64_t column_bytes);

/* Runs of nonzeros of fibers. If run_factor is NULL, there is at least one shared factor. */
struct slc_coo_fiber_span {
    struct slc_fiber_span fibers; /* its output has the factors' type and `stride` bytes per row */
    uint32_t columns;             /* columns of the output, as in slc_coo_span */
};

/* The same for runs of fibers. */
typedef void slc_coo_fiber_fn(const struct slc_coo_fiber_span *span, uint64_t column_bytes);

struct slc_coo_kernels {
    slc_coo_fn *each_f32, *each_f64;
    slc_coo_fn *tile_f32[SLC_PANEL_WIDTHS];
    slc_coo_fn *tile_f64[SLC_PANEL_WIDTHS];
    slc_coo_fn *permuted_f32[SLC_PANEL_WIDTHS];
    slc_coo_fn *permuted_f64[SLC_PANEL_WIDTHS];
    slc_coo_fiber_fn *fibers_f32[SLC_PANEL_WIDTHS];
    slc_coo_fiber_fn *fibers_f64[SLC_PANEL_WIDTHS];
};

extern const struct slc_coo_kernels slc_coo_kernels_portable;
extern const struct slc_coo_kernels slc_coo_kernels_avx2;
extern const struct slc_coo_kernels slc_coo_kernels_avx512;
extern const struct slc_coo_kernels slc_coo_kernels_neon;

#endif
