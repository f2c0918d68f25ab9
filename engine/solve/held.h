/*
 * The held-out nonzeros of a tensor (engine/stream/holdout.h), by which a model is judged. To the
 * factorization a held-out nonzero is one of the zeros that a sparse tensor has everywhere else.
 */
#ifndef SLC_ENGINE_SOLVE_HELD_H
#define SLC_ENGINE_SOLVE_HELD_H

#include "base/block.h"
#include "base/error/error.h"
#include "base/memory/memory.h"
#include "engine/stream/holdout.h"

#include <stdint.h>

struct slc_stream;

/* The held-out nonzeros of a store. */
struct slc_held {
    unsigned order;
    uint64_t count;
    uint64_t room;
    struct slc_buffer memory; /* records: hash, value's bits, coordinates; then sums */
    double sum_of_squares;    /* of their values */
};

/* What slc_held_gather maps; UINT64_MAX on overflow. For plans. */
uint64_t slc_held_memory_bytes(unsigned order, uint64_t nnz, double fraction);

/*
 * Collects them in one pass over one of the stream's layouts; nothing is masked yet.
 * Order: the same records in the same order for any layout and threads. Owns: slc_held_destroy,
 * which takes an all-zero struct. Errors: those of the pass; SLC_ERR_USAGE where there are none;
 * SLC_ERR_NUMERIC where there are far more than the fraction, as of coordinates made to be.
 */
enum slc_status slc_held_gather(struct slc_stream *stream,
                                unsigned layout,
                                const struct slc_holdout *holdout,
                                double fraction,
                                unsigned order,
                                uint64_t nnz,
                                const volatile int *stop,
                                struct slc_held *held,
                                struct slc_error *err) SLC_NODISCARD;
void slc_held_destroy(struct slc_held *held);

/*
 * Root mean square and mean absolute error of the model with these factors (in the store's numbers,
 * f32 or f64) and weights on them. Order: the same bits for any workers. Cost: count * N * R.
 */
enum slc_status slc_held_error(struct slc_held *held,
                               const struct slc_matrix *factors,
                               const double *weights,
                               unsigned workers,
                               double *rmse,
                               double *mae,
                               struct slc_error *err) SLC_NODISCARD;

#endif
