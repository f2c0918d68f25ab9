/* Collects the held-out nonzeros of a tensor (engine/stream/holdout.h) and measures the error of a
 * model on them. The factorization treats a held-out nonzero as a zero. */
#ifndef SLC_ENGINE_SOLVE_HELD_H
#define SLC_ENGINE_SOLVE_HELD_H

#include "base/block.h"
#include "base/error/error.h"
#include "base/loss.h"
#include "base/memory/memory.h"
#include "base/squares.h"
#include "engine/stream/holdout.h"

#include <stdint.h>

struct slc_stream;

/* The held-out nonzeros of a store. */
struct slc_held {
    unsigned order;
    uint64_t count;
    uint64_t capacity;
    /* records (hash, bits of the value, coordinates), then sums of slc_held_error */
    struct slc_buffer memory;
    struct slc_squares squares; /* sum of squares of the held-out values */
};

/* Returns the bytes that slc_held_gather maps; UINT64_MAX on overflow. */
uint64_t slc_held_memory_bytes(unsigned order, uint64_t nnz, double fraction);

/* Collects the held-out nonzeros in one pass over number `layout` of the stream's layouts. The
 * stream must not hold nonzeros out yet (slc_stream_hold_out), so that it delivers their values.
 * Order: the same records in the same order for any layout and number of threads. Ownership:
 * release with slc_held_destroy, which accepts an all-zero struct. Errors: those of the pass;
 * SLC_ERR_USAGE if no nonzero is held out; SLC_ERR_NUMERIC if far more nonzeros are held out than
 * the fraction states, which happens only if the coordinates were chosen to defeat the hash. */
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

/* Returns the value of held-out nonzero `at`, a number below `count`. */
double slc_held_value(const struct slc_held *held, uint64_t at);

/* Errors of a model on the held-out nonzeros. A value of the model is first converted to the scale
 * of the values (slc_loss_mean). */
struct slc_held_errors {
    double rmse, mae;
    double deviance; /* mean of slc_loss_deviance */
};

/* Computes the errors of a model. `factors` are f32 or f64, with rows in the order of the store;
 * `delta` is the parameter of Huber's loss. Order: bitwise reproducible for any number of workers.
 * Cost: O(count * N * R) operations for N modes and rank R. */
enum slc_status slc_held_error(struct slc_held *held,
                               const struct slc_matrix *factors,
                               const double *weights,
                               enum slc_loss loss,
                               double delta,
                               unsigned workers,
                               struct slc_held_errors *errors,
                               struct slc_error *err) SLC_NODISCARD;

#endif
