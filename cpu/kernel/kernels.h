/*
 * Inner loops of cpu/, one table per instruction set. All sets are compiled from the same template
 * (mttkrp_tmpl.c), process columns in the same order and use no fused multiply-add, so all sets
 * return the same bits. (Loads, not arithmetic, bound these loops: a fused multiply-add made no
 * measurable difference.)
 */
#ifndef SLC_CPU_KERNELS_H
#define SLC_CPU_KERNELS_H

#include "base/matrix.h"
#include "base/memory/limits.h"

#include <stdbool.h>
#include <stdint.h>

/* Nonzeros per decoded chunk: its N + 2 arrays fit the L1 cache. Kernels accept any length. */
enum { SLC_CHUNK_NNZ = 1024 };

/* Arguments of a kernel call: a chunk of nonzeros, factor rows, rows to add to. */
struct slc_mttkrp_span {
    uint32_t nnz;
    unsigned factor_count; /* >= 1 */
    bool prefetch;         /* factor rows are expected to miss the cache */
    bool merge_runs;       /* neighbours often have the same output row: keep it in registers */
    uint64_t stride;       /* bytes between rows of every factor and of the output */
    uint64_t row_bytes;    /* bytes of every factor row to compute */
    const void *values;
    const uint32_t *rows;                  /* output row of each nonzero, relative to `output` */
    const uint32_t *offset[SLC_MAX_ORDER]; /* row of each nonzero, relative to `factor` */
    const unsigned char *factor[SLC_MAX_ORDER];
    unsigned char *output;
};

/*
 * Adds the products to the output in the order of the nonzeros, for the panel of columns at byte
 * `column_bytes` of each row. Each function has a fixed panel width.
 */
typedef void slc_mttkrp_fn(const struct slc_mttkrp_span *span, uint64_t column_bytes);

/*
 * Like slc_mttkrp_span, for nonzeros in runs that share all coordinates except one. If that mode is
 * not the output's, the rows of its factor are summed over a run, and the sum is multiplied once by
 * the rows that the run shares; if it is the output's, the product of the shared rows is formed
 * once per run.
 */
struct slc_fiber_span {
    uint32_t runs;
    unsigned factor_count; /* number of factors whose row a run shares */
    bool prefetch;
    bool long_runs;                        /* long enough for several partial sums */
    uint64_t stride;                       /* as in slc_mttkrp_span */
    uint64_t row_bytes;                    /* as in slc_mttkrp_span */
    const uint32_t *begin;                 /* runs + 1 */
    const void *values;                    /* per nonzero */
    const uint32_t *run_offset;            /* per nonzero: row of run_factor, or of the output */
    const unsigned char *run_factor;       /* NULL if the output's mode is that of the fibers */
    const uint32_t *rows;                  /* per run: output row; unused if run_factor is NULL */
    const uint32_t *offset[SLC_MAX_ORDER]; /* per run */
    const unsigned char *factor[SLC_MAX_ORDER];
    unsigned char *output;
};

typedef void slc_fiber_fn(const struct slc_fiber_span *span, uint64_t column_bytes);

enum {
    SLC_LONG_RUN_SUMS = 2,  /* partial sums of a long run */
    SLC_SHARED_CLASSES = 5, /* 0, 1, 2, 3 shared factors, and any number */
    SLC_FACTOR_CLASSES = 5, /* 1, 2, 3, 4 factors, and any number */
    SLC_PANEL_WIDTHS = 10   /* 2^0 .. 2^9 bytes; NULL for widths that a type does not have */
};

struct slc_kernel_set {
    const char *name;
    unsigned widest_log2; /* widest panel of f64 in bytes, limited by the registers */
    slc_mttkrp_fn *mttkrp_f32[SLC_FACTOR_CLASSES][SLC_PANEL_WIDTHS];
    slc_mttkrp_fn *mttkrp_f64[SLC_FACTOR_CLASSES][SLC_PANEL_WIDTHS];
    slc_fiber_fn *fiber_f32[SLC_SHARED_CLASSES][SLC_PANEL_WIDTHS];
    slc_fiber_fn *fiber_f64[SLC_SHARED_CLASSES][SLC_PANEL_WIDTHS];
    /* sum[i] += part[i]; both are 64-byte aligned, or shorter than 64 bytes. */
    void (*add_f32)(void *sum, const void *part, uint64_t count);
    void (*add_f64)(void *sum, const void *part, uint64_t count);
    const struct slc_group_kernels *groups; /* group_kernels.h */
    const struct slc_dense_kernels *dense;  /* dense_kernels.h */
};

extern const struct slc_kernel_set slc_kernels_portable;
extern const struct slc_kernel_set slc_kernels_avx2;
extern const struct slc_kernel_set slc_kernels_avx512;
extern const struct slc_kernel_set slc_kernels_neon;

/*
 * Width of the next panel of columns if `left_bytes` bytes of a row are left. Sums are f64, so the
 * sums of an f32 panel need twice as many registers as the panel itself.
 */
static inline unsigned
slc_panel_log2(const struct slc_kernel_set *set, enum slc_value_type type, uint64_t left_bytes)
{
    const unsigned widest_log2 = set->widest_log2 - (type == SLC_F32);
    const unsigned left_log2 = 63U - (unsigned)__builtin_clzll(left_bytes);

    return left_log2 < widest_log2 ? left_log2 : widest_log2;
}

/* The set in use: the best of this machine, or the forced one. */
const struct slc_kernel_set *slc_kernels(void);

/* Run the kernels for elements of `type` over all panels of the span's columns, widest first. */
void slc_panels_add(const struct slc_kernel_set *kernels,
                    enum slc_value_type type,
                    const struct slc_mttkrp_span *span);
void slc_panels_add_fibers(const struct slc_kernel_set *kernels,
                           enum slc_value_type type,
                           const struct slc_fiber_span *span);

/* Bytes of the last-level cache; 32 MiB if the system does not report it. */
uint64_t slc_cpu_cache_bytes(void);

#endif
