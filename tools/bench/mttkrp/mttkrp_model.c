/* Model bytes of MTTKRPs; see mttkrp_model.h. */
#include "tools/bench/mttkrp/mttkrp_model.h"

#include "base/memory/checked.h"

double bench_model_bytes_per_nnz(unsigned order, enum slc_value_type precision, uint32_t rank)
{
    const double terms = (double)order * rank + 3;

    return terms * slc_value_bytes(precision) + 8.0 * order;
}

uint64_t bench_model_row_bytes(enum slc_value_type precision, uint32_t rank)
{
    const uint64_t bytes = (uint64_t)slc_matrix_pitch(precision, rank) * slc_value_bytes(precision);

    return slc_max_u64(bytes, 8);
}

uint64_t bench_model_set_bytes(const struct slc_manifest *manifest, uint64_t row_bytes)
{
    uint64_t rows = 0;

    for (unsigned n = 0; n < manifest->order; n++) {
        rows += slc_min_u64(manifest->dims[n], manifest->nnz);
    }
    return rows * row_bytes;
}
