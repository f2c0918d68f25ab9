/*
 * The core consistency diagnostic (CORCONDIA): Bro and Kiers, "A new efficient method for
 * determining the number of components in PARAFAC models", J. Chemometrics 17 (2003); for sparse
 * tensors Papalexakis and Faloutsos (ICASSP 2015). In one pass over a store.
 */
#ifndef SLC_ENGINE_CORE_CONSISTENCY_H
#define SLC_ENGINE_CORE_CONSISTENCY_H

#include "base/error/error.h"
#include "base/matrix.h"
#include "engine/stream/tile_stream.h"
#include "storage/manifest/store.h"

#include <stdint.h>

struct slc_core_options {
    struct slc_tile_stream *stream; /* of the tiles */
    unsigned workers;
    uint64_t stream_bytes; /* that delivering them may take */
};

struct slc_core_report {
    double percent;                      /* 100: the model is trilinear; may be far below 0 */
    double largest_off;                  /* magnitude of the largest number off the superdiagonal */
    uint32_t independent[SLC_MAX_ORDER]; /* columns of each factor; the rank where all are */
};

/*
 * What slc_core_consistency takes with so many workers beside the factors and what the stream
 * does; UINT64_MAX on overflow.
 */
uint64_t
slc_core_consistency_bytes(const struct slc_layout_info *info, uint32_t rank, unsigned workers);

/*
 * Math: G = X x_1 A1^+ .. x_N AN^+, the least-squares core for the factors An with the N-th root of
 * lambda in each of their columns; percent = 100 (1 - ||G - I||^2 / R), I being 1 on the
 * superdiagonal and 0 elsewhere. A component without weight has zeros in the core.
 * Shapes: factors[n] dims[n] x R, f64, in the numbers of the input; they become (An^+)^T in those
 * of the store, also after an error. lambda[R] >= 0. Order: the same bits for any workers, budget
 * and I/O method. Cost: 2 nnz * R^N flops, one pass. Errors: SLC_ERR_UNSUPPORTED where R^N
 * overflows, SLC_ERR_MEMORY, SLC_ERR_NUMERIC where the core is not finite; those of the stream.
 */
enum slc_status slc_core_consistency(const struct slc_store *store,
                                     const struct slc_core_options *options,
                                     uint32_t rank,
                                     struct slc_matrix *factors,
                                     const double *lambda,
                                     struct slc_core_report *report,
                                     struct slc_error *err) SLC_NODISCARD;

#endif
