/*
 * The inner loops of cpu/, one table per instruction set. Every set is compiled from the same
 * template (mttkrp_tmpl.c), works column by column in the same order and uses no fused
 * multiply-add, so all sets return the same bits. (Loads, not arithmetic, bound these loops: a
 * fused multiply-add made no measurable difference.)
 */
#ifndef SLC_CPU_KERNELS_H
#define SLC_CPU_KERNELS_H

#include "base/matrix.h"
#include "base/memory/limits.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Nonzeros that a tile is decoded by: N + 2 arrays of it stay within the first-level cache. Kernels
 * take spans of any length.
 */
enum { SLC_CHUNK_NNZ = 1024 };

/* What a kernel call adds up: a chunk of nonzeros, factor rows, rows to add to. */
struct slc_mttkrp_span {
    uint32_t nnz;
    unsigned factor_count; /* >= 1 */
    bool prefetch;         /* factor rows are expected to miss the cache */
    bool merge_runs;       /* neighbours often share their output row: keep it in registers */
    uint64_t stride;       /* bytes from row to row of every factor and of the output */
    uint64_t row_bytes;    /* of every factor row that are computed */
    const void *values;
    const uint32_t *rows;                  /* output row of each nonzero, from `output` */
    const uint32_t *offset[SLC_MAX_ORDER]; /* row of each nonzero, from `factor` */
    const unsigned char *factor[SLC_MAX_ORDER];
    unsigned char *output;
};

/*
 * Adds the products to the output, in the order of the nonzeros, for one panel of columns that
 * begins `column_bytes` into each row. The panel's width belongs to the function.
 */
typedef void slc_mttkrp_fn(const struct slc_mttkrp_span *span, uint64_t column_bytes);

/*
 * The same for nonzeros in runs that share all coordinates but one. Where that one is not the
 * output's, the rows of its factor are added up over a run first, and the sum is multiplied once by
 * the rows that the run shares; where it is, the product of these rows is formed once per run.
 */
struct slc_fiber_span {
    uint32_t runs;
    unsigned factor_count; /* factors whose row a run shares */
    bool prefetch;
    bool long_runs;                  /* worth several sums side by side */
    uint64_t stride;                 /* as above */
    uint64_t row_bytes;              /* as above */
    const uint32_t *begin;           /* runs + 1 */
    const void *values;              /* per nonzero */
    const uint32_t *run_offset;      /* per nonzero: the row of run_factor, or of the output */
    const unsigned char *run_factor; /* NULL where the output is of the fibers' own mode */
    const uint32_t *rows;            /* per run: output row; where run_factor is not NULL */
    const uint32_t *offset[SLC_MAX_ORDER]; /* per run */
    const unsigned char *factor[SLC_MAX_ORDER];
    unsigned char *output;
};

typedef void slc_fiber_fn(const struct slc_fiber_span *span, uint64_t column_bytes);

enum {
    SLC_LONG_RUN_SUMS = 2,  /* side by side in a long run */
    SLC_SHARED_CLASSES = 5, /* 0, 1, 2, 3 shared factors, and any number */
    SLC_FACTOR_CLASSES = 5, /* 1, 2, 3, 4 factors, and any number */
    SLC_PANEL_WIDTHS = 10   /* 2^0 .. 2^9 bytes; widths a type has no panels of are empty */
};

struct slc_kernel_set {
    const char *name;
    unsigned widest_log2; /* widest panel of f64, in bytes: what the registers hold */
    slc_mttkrp_fn *mttkrp_f32[SLC_FACTOR_CLASSES][SLC_PANEL_WIDTHS];
    slc_mttkrp_fn *mttkrp_f64[SLC_FACTOR_CLASSES][SLC_PANEL_WIDTHS];
    slc_fiber_fn *fiber_f32[SLC_SHARED_CLASSES][SLC_PANEL_WIDTHS];
    slc_fiber_fn *fiber_f64[SLC_SHARED_CLASSES][SLC_PANEL_WIDTHS];
    /* sum[i] += part[i]; both 64-byte aligned or shorter than that. */
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
 * Width of the next panel of columns where so many bytes of a row are left. Sums are f64: those of
 * an f32 panel take twice its registers.
 */
static inline unsigned
slc_panel_log2(const struct slc_kernel_set *set, enum slc_value_type type, uint64_t left_bytes)
{
    const unsigned widest_log2 = set->widest_log2 - (type == SLC_F32);
    const unsigned left_log2 = 63U - (unsigned)__builtin_clzll(left_bytes);

    return left_log2 < widest_log2 ? left_log2 : widest_log2;
}

/* The set in use: the best this machine has, or the one that was forced. */
const struct slc_kernel_set *slc_kernels(void);

/*
 * Run the kernels of `kernels` for elements of `type` over all panels of the span's columns, widest
 * first.
 */
void slc_panels_add(const struct slc_kernel_set *kernels,
                    enum slc_value_type type,
                    const struct slc_mttkrp_span *span);
void slc_panels_add_fibers(const struct slc_kernel_set *kernels,
                           enum slc_value_type type,
                           const struct slc_fiber_span *span);

/* Bytes of the last-level cache; 32 MiB where the system does not say. */
uint64_t slc_cpu_cache_bytes(void);

#endif
