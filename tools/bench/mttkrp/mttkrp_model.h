/*
 * What an MTTKRP moves by a model, to set against a gather of the factors' rows (ceiling.h).
 *
 * With N modes, rank R and elements of v bytes, a nonzero counts (N R + 3) v + 8 N bytes: N - 1
 * factor rows, an output row, the value and N indices of 8 bytes, which a kernel over coordinates
 * moves where no cache helps (GENTEN equation (3), with the terms its authors' code counts).
 */
#ifndef SLC_TOOLS_BENCH_MTTKRP_MODEL_H
#define SLC_TOOLS_BENCH_MTTKRP_MODEL_H

#include "base/matrix.h"
#include "storage/manifest/store.h"

#include <stdint.h>

double bench_model_bytes_per_nnz(unsigned order, enum slc_value_type precision, uint32_t rank);

/* Bytes of a factor's row, as a gather takes them: one f32 column is gathered as fast as two. */
uint64_t bench_model_row_bytes(enum slc_value_type precision, uint32_t rank);

/* Bytes that the rows of all factors take, as far as nonzeros can reach. */
uint64_t bench_model_set_bytes(const struct slc_manifest *manifest, uint64_t row_bytes);

#endif
