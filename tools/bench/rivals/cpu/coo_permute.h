/* What coo.c has to know of the making of permutations (coo_permute.c). */
#ifndef SLC_CPU_COO_PERMUTE_H
#define SLC_CPU_COO_PERMUTE_H

#include "base/backend.h"

/* Scratch of the sort of the mode that takes most; UINT64_MAX where that cannot be counted. */
uint64_t slc_coo_sort_bytes(const struct slc_tensor_shape *shape, unsigned workers);

#endif
