/*
 * Inner loops of MTTKRP from copies (replica.h), one table per instruction set. They fuse multiply
 * and add where the set can: with runs that are long, half of their arithmetic (R = 32, 58 against
 * 50 ms on 16 million nonzeros of three modes). So their last bits depend on the set, unlike those
 * of kernels.h; only SLC_CONFLICT_REPLICA runs them, which promises no bits.
 */
#ifndef SLC_CPU_GROUP_KERNELS_H
#define SLC_CPU_GROUP_KERNELS_H

#include "cpu/kernel/kernels.h"

/*
 * A group is a run of nonzeros that agree in the output's mode and perhaps in others, while one
 * mode or more vary. The products of a nonzero's rows are added up over the group, and the sum is
 * multiplied once by the rows that the group shares. The factors of the modes that vary come first.
 */
struct slc_group_span {
    uint32_t groups;
    unsigned varying;      /* factors with a row per nonzero, >= 1 */
    unsigned factor_count; /* all; those behind `varying` have a row per group */
    bool long_groups;      /* worth several sums side by side */
    uint64_t stride;       /* bytes from row to row of every factor; that of sums in f64 is alike */
    const uint32_t *begin; /* groups + 1 */
    const void *values;    /* per nonzero */
    const uint32_t *rows;  /* per group: output row */
    const uint32_t *offset[SLC_MAX_ORDER];
    const unsigned char *factor[SLC_MAX_ORDER];
    unsigned char *output;
};

/* Adds the groups to the output, for the panel of columns that begins `column_bytes` into a row. */
typedef void slc_group_fn(const struct slc_group_span *span, uint64_t column_bytes);

enum { SLC_VARYING_CLASSES = 5 /* 1, 2, 3, 4 modes that vary, and any number */ };

struct slc_group_kernels {
    slc_group_fn *f32[SLC_VARYING_CLASSES][SLC_PANEL_WIDTHS];
    slc_group_fn *f64[SLC_VARYING_CLASSES][SLC_PANEL_WIDTHS];
};

extern const struct slc_group_kernels slc_group_kernels_portable;
extern const struct slc_group_kernels slc_group_kernels_avx2;
extern const struct slc_group_kernels slc_group_kernels_avx512;
extern const struct slc_group_kernels slc_group_kernels_neon;

#endif
