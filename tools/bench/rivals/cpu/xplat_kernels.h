/* The kernels of xplat.h, in one table per instruction set. The compiler may fuse multiplications
 * and additions, as it may in the listings of the paper. */
#ifndef SLC_RIVALS_XPLAT_KERNELS_H
#define SLC_RIVALS_XPLAT_KERNELS_H

#include "tools/bench/rivals/cpu/xplat.h"

enum {
    SLC_XPLAT_VECTORS = 8, /* most vectors of a row that a unit of work keeps in registers */
    SLC_XPLAT_WIDTHS = 7 /* vectors of 2^2 to 2^6 bytes; NULL for widths that a set does not have */
};

/* The operands of a product. The rows of all matrices are `row_bytes` apart. */
struct slc_xplat_span {
    const struct slc_csf *csf;
    uint64_t row_bytes;
    const unsigned char *matrix; /* matrix of the fiber mode */
    /* matrices by which the sum of a fiber is multiplied, and the row of each fiber in them */
    unsigned shared_count;
    const unsigned char *shared[SLC_MAX_ORDER];
    const uint32_t *shared_index[SLC_MAX_ORDER];
    unsigned char *output;
};

/* Computes the units of work `begin` to `end` - 1. Element-centric units are vectors of elements,
 * row by row. Threads: several threads may compute different units at the same time. */
typedef void slc_xplat_fn(const struct slc_xplat_span *span, uint64_t begin, uint64_t end);

struct slc_xplat_table {
    const char *set; /* name of the instruction set */
    unsigned vector_log2;
    /* log2 of the bytes of a vector: the index */
    slc_xplat_fn *f32[SLC_XPLAT_KERNELS][SLC_XPLAT_WIDTHS];
    slc_xplat_fn *f64[SLC_XPLAT_KERNELS][SLC_XPLAT_WIDTHS];
};

extern const struct slc_xplat_table slc_xplat_portable;
extern const struct slc_xplat_table slc_xplat_avx2;
extern const struct slc_xplat_table slc_xplat_avx512;
extern const struct slc_xplat_table slc_xplat_neon;

#endif
