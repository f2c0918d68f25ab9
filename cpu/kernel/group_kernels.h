/*
 * Inner loops of MTTKRP from copies (replica.h), one table per instruction set. They fuse
 * multiplications and additions if the set can, which halves the arithmetic of long runs (R = 32:
 * 50 instead of 58 ms on 16 million nonzeros of three modes). The last bits of their results
 * therefore depend on the set, unlike those of kernels.h. Only SLC_CONFLICT_REPLICA, which does not
 * promise the same bits, uses them.
 */
#ifndef SLC_CPU_GROUP_KERNELS_H
#define SLC_CPU_GROUP_KERNELS_H

#include "cpu/kernel/kernels.h"

/*
 * A group is a run of nonzeros that agree in the output's mode and possibly in others, while at
 * least one mode varies. The products of a nonzero's rows are summed over the group, and the sum is
 * multiplied once by the rows that the group shares. The factors of the varying modes come first.
 */
struct slc_group_span {
    uint32_t groups;
    unsigned varying;      /* number of factors with a row per nonzero, >= 1 */
    unsigned factor_count; /* all factors; those from `varying` on have a row per group */
    bool long_groups;      /* long enough for several partial sums */
    /* Bytes between rows of every factor; the distance of rows of f64 sums follows from it. */
    uint64_t stride;
    const uint32_t *begin; /* groups + 1 */
    const void *values;    /* per nonzero */
    const uint32_t *rows;  /* per group: its output row */
    const uint32_t *offset[SLC_MAX_ORDER];
    const unsigned char *factor[SLC_MAX_ORDER];
    unsigned char *output;
};

/* Adds the groups to the output, for the panel of columns at byte `column_bytes` of a row. */
typedef void slc_group_fn(const struct slc_group_span *span, uint64_t column_bytes);

enum { SLC_VARYING_CLASSES = 5 /* 1, 2, 3, 4 varying modes, and any number */ };

struct slc_group_kernels {
    slc_group_fn *f32[SLC_VARYING_CLASSES][SLC_PANEL_WIDTHS];
    slc_group_fn *f64[SLC_VARYING_CLASSES][SLC_PANEL_WIDTHS];
};

extern const struct slc_group_kernels slc_group_kernels_portable;
extern const struct slc_group_kernels slc_group_kernels_avx2;
extern const struct slc_group_kernels slc_group_kernels_avx512;
extern const struct slc_group_kernels slc_group_kernels_neon;

#endif
