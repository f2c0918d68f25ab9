/* Inner loops of cpu/, one table per instruction set. All tables are compiled from the same
 * template (mttkrp_tmpl.c), process columns in the same order and use no fused multiply-add, so all
 * instruction sets return the same bits. (These loops are limited by loads, not arithmetic: a fused
 * multiply-add made no measurable difference.) */
#ifndef SLC_CPU_KERNELS_H
#define SLC_CPU_KERNELS_H

#include "base/matrix.h"
#include "base/memory/limits.h"

#include <stdbool.h>
#include <stdint.h>

/* Number of nonzeros per decoded chunk, so that its arrays (one per mode, output rows, values) fit
 * in the L1 cache. Kernels accept chunks of any length. */
enum { SLC_CHUNK_NNZ = 1024 };

/* Arguments of a kernel call: a chunk of nonzeros, the factors, and the output. */
struct slc_mttkrp_span {
    uint32_t nnz;
    unsigned factor_count; /* number of factors, at least 1 */
    bool prefetch;         /* true if factor rows are expected to miss the cache */
    /* true if neighbours often have the same output row, which then stays in registers */
    bool merge_runs;
    uint64_t stride;    /* bytes from one row to the next of every factor */
    uint64_t row_bytes; /* bytes of each factor row that are computed */
    const void *values;
    const uint32_t *rows;                  /* output row of each nonzero, relative to `output` */
    const uint32_t *offset[SLC_MAX_ORDER]; /* row of each nonzero, relative to `factor` */
    const unsigned char *factor[SLC_MAX_ORDER];
    unsigned char *output;
};

/* Adds the products to the output in the order of the nonzeros, for the panel of columns at byte
 * `column_bytes` of each row. Each function has a fixed panel width. */
typedef void slc_mttkrp_fn(const struct slc_mttkrp_span *span, uint64_t column_bytes);

/* Arguments of a kernel call for nonzeros in runs of fibers, which share all coordinates except
 * one. If the fibers' mode is not the output's mode, the rows of its factor are summed over a run,
 * and the sum is multiplied once by the rows that the run shares. If the fibers' mode is the
 * output's mode, the product of the shared rows is computed once per run. */
struct slc_fiber_span {
    uint32_t runs;
    unsigned factor_count; /* number of factors whose row a run shares */
    bool prefetch;
    bool long_runs;        /* true if runs are so long that several partial sums each are faster */
    uint64_t stride;       /* see slc_mttkrp_span */
    uint64_t row_bytes;    /* see slc_mttkrp_span */
    const uint32_t *begin; /* first nonzero of each run; runs + 1 elements */
    const void *values;    /* one value per nonzero */
    /* row of each nonzero: in run_factor or, if run_factor is NULL, in the output */
    const uint32_t *run_offset;
    /* factor of the fibers' mode; NULL if the output has this mode */
    const unsigned char *run_factor;
    /* output row of each run; unused if run_factor is NULL */
    const uint32_t *rows;
    const uint32_t *offset[SLC_MAX_ORDER]; /* row of each run, relative to `factor` */
    const unsigned char *factor[SLC_MAX_ORDER];
    unsigned char *output;
};

typedef void slc_fiber_fn(const struct slc_fiber_span *span, uint64_t column_bytes);

enum {
    SLC_LONG_RUN_SUMS = 2,  /* number of partial sums of a long run */
    SLC_SHARED_CLASSES = 5, /* classes for 0, 1, 2, 3 and any number of shared factors */
    SLC_FACTOR_CLASSES = 5, /* classes for 1, 2, 3, 4 and any number of factors */
    SLC_PANEL_WIDTHS =
        10 /* widths of 2^0 .. 2^9 bytes; functions are NULL for widths that a type does not have */
};

struct slc_kernel_set {
    const char *name;
    unsigned widest_log2; /* log2 of the bytes of the widest f64 panel, limited by the registers */
    slc_mttkrp_fn *mttkrp_f32[SLC_FACTOR_CLASSES][SLC_PANEL_WIDTHS];
    slc_mttkrp_fn *mttkrp_f64[SLC_FACTOR_CLASSES][SLC_PANEL_WIDTHS];
    slc_fiber_fn *fiber_f32[SLC_SHARED_CLASSES][SLC_PANEL_WIDTHS];
    slc_fiber_fn *fiber_f64[SLC_SHARED_CLASSES][SLC_PANEL_WIDTHS];
    /* Add part[i] to sum[i]; `sum` and `part` are 64-byte aligned, or shorter than 64 bytes. */
    void (*add_f32)(void *sum, const void *part, uint64_t count);
    void (*add_f64)(void *sum, const void *part, uint64_t count);
    const struct slc_group_kernels *groups; /* group_kernels.h */
    const struct slc_dense_kernels *dense;  /* dense_kernels.h */
    const struct slc_row_kernels *rows;     /* row_kernels.h */
};

extern const struct slc_kernel_set slc_kernels_portable;
extern const struct slc_kernel_set slc_kernels_avx2;
extern const struct slc_kernel_set slc_kernels_avx512;
extern const struct slc_kernel_set slc_kernels_neon;

/* Returns log2 of the bytes of the next panel of columns if `left_bytes` bytes of a row are left.
 * Sums are f64, so the sums of an f32 panel need twice as many registers as the panel itself. */
static inline unsigned
slc_panel_log2(const struct slc_kernel_set *set, enum slc_value_type type, uint64_t left_bytes)
{
    const unsigned widest_log2 = set->widest_log2 - (type == SLC_F32);
    const unsigned left_log2 = 63U - (unsigned)__builtin_clzll(left_bytes);

    return left_log2 < widest_log2 ? left_log2 : widest_log2;
}

/* Returns the kernels in use: for the best instruction set of this machine, or for the forced
 * instruction set. */
const struct slc_kernel_set *slc_kernels(void);

/* Run the kernels for elements of `type` over all panels of the span's columns, widest first. */
void slc_panels_add(const struct slc_kernel_set *kernels,
                    enum slc_value_type type,
                    const struct slc_mttkrp_span *span);
void slc_panels_add_fibers(const struct slc_kernel_set *kernels,
                           enum slc_value_type type,
                           const struct slc_fiber_span *span);

/* Returns the bytes of the last-level cache, or 32 MiB if the system does not report the size. */
uint64_t slc_cpu_cache_bytes(void);

#endif
