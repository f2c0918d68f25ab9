/* Computes the core consistency diagnostic (CORCONDIA) in one pass over a store ([Bro2003]; for
 * sparse tensors [Papalexakis2015]). */
#ifndef SLC_ENGINE_CORE_CONSISTENCY_H
#define SLC_ENGINE_CORE_CONSISTENCY_H

#include "base/error/error.h"
#include "base/matrix.h"
#include "engine/stream/tile_stream.h"
#include "storage/manifest/store.h"

#include <stdint.h>

struct slc_core_options {
    struct slc_tile_stream *stream; /* tiles of the tensor */
    unsigned workers;
    uint64_t stream_bytes; /* memory that the stream may use */
};

struct slc_core_report {
    /* 100 if the core equals the superdiagonal core of a CP model; may be far below 0 */
    double percent;
    double largest_off; /* largest magnitude outside the superdiagonal */
    /* Number of independent columns of each factor; equal to the rank if all are independent. */
    uint32_t independent[SLC_MAX_ORDER];
};

/* Returns the bytes that slc_core_consistency allocates with `workers` workers, without the factors
 * and the stream; UINT64_MAX on overflow. */
uint64_t
slc_core_consistency_bytes(const struct slc_layout_info *info, uint32_t rank, unsigned workers);

/* Computes the core consistency of a model. Math: G = X x_1 A1^+ .. x_N AN^+ is the least-squares
 * core for the factors An, whose columns are multiplied by the N-th root of lambda. percent = 100
 * (1 - ||G - I||^2 / R), where I is 1 on the superdiagonal and 0 elsewhere. The core is zero for a
 * component of weight 0. Shapes: factors[n] is dims[n] x R, f64, with rows in the order of the
 * input. It is overwritten with (An^+)^T, with rows in the order of the store, even if an error
 * occurs. lambda[R] >= 0. Order: bitwise reproducible for any number of workers, budget and I/O
 * method. Cost: one pass, and 2 runs * R^N flops for the runs of cpu/fiber/core_tile.h. Errors:
 * SLC_ERR_UNSUPPORTED if R^N overflows, SLC_ERR_MEMORY, SLC_ERR_NUMERIC if the core is not finite;
 * those of the stream. */
enum slc_status slc_core_consistency(const struct slc_store *store,
                                     const struct slc_core_options *options,
                                     uint32_t rank,
                                     struct slc_matrix *factors,
                                     const double *lambda,
                                     struct slc_core_report *report,
                                     struct slc_error *err) SLC_NODISCARD;

#endif
