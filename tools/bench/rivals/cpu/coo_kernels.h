/* Inner loops of the baselines of coo.h and fiber_forms.h, in one table per instruction set. They
 * are compiled like the loops of group_kernels.h: the compiler fuses multiplications and additions
 * if the instruction set supports it, as it would in the loops of GenTen. */
#ifndef SLC_CPU_COO_KERNELS_H
#define SLC_CPU_COO_KERNELS_H

#include "cpu/kernel/kernels.h"

enum {
    SLC_COO_TILE_NNZ = 128,    /* nonzeros of a tile of GenTen, which one thread processes */
    SLC_COO_BLOCK_COLUMNS = 32 /* maximum columns that genten-a processes at a time */
};

/* Nonzeros that a kernel processes, in this order. For GenTen's kernels they are a tile. */
struct slc_coo_span {
    uint32_t nnz;          /* 1 or more */
    unsigned factor_count; /* 1 or more */
    uint32_t columns;      /* number of columns of the output; the rest of a row is padding */
    uint64_t stride;       /* bytes between rows of every factor and of the output */
    const void *values;
    const uint32_t *rows;                  /* output row of each nonzero */
    const uint32_t *offset[SLC_MAX_ORDER]; /* row of each nonzero, per factor */
    const unsigned char *factor[SLC_MAX_ORDER];
    unsigned char *output; /* has the type of the factors */
};

/* Adds the products of a span to the output, for the panel of columns that starts at `column_bytes`
 * in each row. The kernel `each` computes all columns and ignores `column_bytes`. Threads: several
 * threads may add to the same output at the same time. */
typedef void slc_coo_fn(const struct slc_coo_span *span, uint64_t column_bytes);

/* Fiber runs that a kernel processes. fibers.factor_count is not 0 if fibers.run_factor is NULL. */
struct slc_coo_fiber_span {
    struct slc_fiber_span fibers; /* output has the factors' type and `stride` bytes per row */
    uint32_t columns;             /* number of columns of the output, as in slc_coo_span */
};

/* Adds the products of fiber runs to the output, as slc_coo_fn does. */
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
