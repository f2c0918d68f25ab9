/* Inner loops of MTTKRP from replicas (replica.h), one table per instruction set. The loops fuse
 * multiplications and additions if the instruction set can, which halves the number of arithmetic
 * instructions of long runs (an MTTKRP of 16 million nonzeros with three modes and R = 32 took 50
 * ms instead of 58 ms). Unlike the loops of kernels.h, the last bits of the results therefore
 * depend on the instruction set. Only SLC_CONFLICT_REPLICA, which does not promise the same bits,
 * uses these loops. */
#ifndef SLC_CPU_GROUP_KERNELS_H
#define SLC_CPU_GROUP_KERNELS_H

#include "cpu/kernel/kernels.h"

/* A group is a run of nonzeros that agree in the output's mode and possibly in others, while at
 * least one mode varies. The products of a nonzero's rows are summed over the group, and the sum is
 * multiplied once by the rows that the group shares. The factors of the varying modes come
 * first. */
struct slc_group_span {
    uint32_t groups;
    unsigned varying; /* number of factors with a row per nonzero, at least 1 */
    /* number of all factors; factors `varying` and later have a row per group */
    unsigned factor_count;
    bool long_groups; /* true if groups are so long that several partial sums each are faster */
    /* Bytes from one row to the next of every factor; the bytes between rows of f64 sums follow
     * from this number. */
    uint64_t stride;
    const uint32_t *begin; /* first nonzero of each group; groups + 1 elements */
    const void *values;    /* one value per nonzero */
    const uint32_t *rows;  /* output row of each group */
    const uint32_t *offset[SLC_MAX_ORDER];
    const unsigned char *factor[SLC_MAX_ORDER];
    unsigned char *output;
};

/* Adds the sums of the groups to the output, for the panel of columns at byte `column_bytes` of a
 * row. */
typedef void slc_group_fn(const struct slc_group_span *span, uint64_t column_bytes);

enum { SLC_VARYING_CLASSES = 5 /* classes for 1, 2, 3, 4 and any number of varying modes */ };

struct slc_group_kernels {
    slc_group_fn *f32[SLC_VARYING_CLASSES][SLC_PANEL_WIDTHS];
    slc_group_fn *f64[SLC_VARYING_CLASSES][SLC_PANEL_WIDTHS];
};

extern const struct slc_group_kernels slc_group_kernels_portable;
extern const struct slc_group_kernels slc_group_kernels_avx2;
extern const struct slc_group_kernels slc_group_kernels_avx512;
extern const struct slc_group_kernels slc_group_kernels_neon;

#endif
