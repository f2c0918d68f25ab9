/*
 * Held-out nonzeros of a tensor (engine/stream/holdout.h), used to measure the error of a model.
 * The factorization treats a held-out nonzero as a zero.
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
    uint64_t capacity;
    struct slc_buffer memory; /* records: hash, bits of the value, coordinates; sums follow */
    double sum_of_squares;    /* sum of squares of the held-out values */
};

/* Bytes that slc_held_gather maps; UINT64_MAX on overflow. For plans. */
uint64_t slc_held_memory_bytes(unsigned order, uint64_t nnz, double fraction);

/*
 * Collects the held-out nonzeros in one pass over one of the stream's layouts; does not yet make
 * the stream skip them.
 * Order: the same records in the same order for any layout and number of threads. Owns: release
 * with slc_held_destroy, which accepts an all-zero struct. Errors: those of the pass; SLC_ERR_USAGE
 * if no nonzero is held out; SLC_ERR_NUMERIC if the held-out part is far larger than the fraction,
 * which happens only with coordinates chosen to defeat the hash.
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
 * Computes the root mean square error and the mean absolute error, on the held-out nonzeros, of the
 * model with these factors (rows in the order of the store, f32 or f64) and weights. Order: bitwise
 * reproducible for any number of workers. Cost: count * N * R.
 */
enum slc_status slc_held_error(struct slc_held *held,
                               const struct slc_matrix *factors,
                               const double *weights,
                               unsigned workers,
                               double *rmse,
                               double *mae,
                               struct slc_error *err) SLC_NODISCARD;

#endif
