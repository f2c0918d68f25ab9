/* Model of the bytes that an MTTKRP moves, to compare its rate with the rate of a gather of factor
 * rows (ceiling.h).
 *
 * With N modes, rank R and elements of v bytes, the model counts (N R + 3) v + 8 N bytes per
 * nonzero: N - 1 factor rows, an output row, the value and N indices of 8 bytes. A kernel over
 * coordinates moves these bytes if there is no cache ([Phipps2019] equation (3), with the terms
 * that the authors' code counts). */
#ifndef SLC_TOOLS_BENCH_MTTKRP_MODEL_H
#define SLC_TOOLS_BENCH_MTTKRP_MODEL_H

#include "base/matrix.h"
#include "base/memory/checked.h"
#include "storage/manifest/store.h"

#include <stdint.h>

static inline double
bench_model_bytes_per_nnz(unsigned order, enum slc_value_type precision, uint32_t rank)
{
    const double terms = (double)order * rank + 3;

    return terms * slc_value_bytes(precision) + 8.0 * order;
}

/* Returns the size in bytes of a factor row for a gather. A row of one f32 column (4 bytes) counts
 * as two columns, because a gather moves at least 8 bytes per row. */
static inline uint64_t bench_model_row_bytes(enum slc_value_type precision, uint32_t rank)
{
    const uint64_t bytes = (uint64_t)slc_matrix_pitch(precision, rank) * slc_value_bytes(precision);

    return slc_max_u64(bytes, 8);
}

/* Returns the size in bytes of all factor rows that nonzeros can use: per mode, at most one row per
 * nonzero. */
static inline uint64_t bench_model_set_bytes(const struct slc_manifest *manifest,
                                             uint64_t row_bytes)
{
    uint64_t rows = 0;

    for (unsigned n = 0; n < manifest->order; n++) {
        rows += slc_min_u64(manifest->dims[n], manifest->nnz);
    }
    return rows * row_bytes;
}

#endif
