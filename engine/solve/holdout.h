/*
 * Held-out nonzeros: some of a tensor's, chosen by their coordinates alone, that passes deliver
 * with the value 0 once a stream has been told of the choice, and that a model is judged by.
 *
 * The choice is a hash of the coordinates as the store numbers them, and a seed: it depends on
 * neither layout, blocks, threads nor budget, and costs no memory. To the factorization a held-out
 * nonzero is one of the zeros that a sparse tensor has everywhere else.
 */
#ifndef SLC_ENGINE_HOLDOUT_H
#define SLC_ENGINE_HOLDOUT_H

#include "base/block.h"
#include "base/error/error.h"
#include "base/memory/memory.h"

#include <stdbool.h>
#include <stdint.h>

enum { SLC_HOLDOUT_CHUNK_NNZ = 1024 };

/* The choice. */
struct slc_holdout {
    uint64_t threshold; /* of hashes */
    uint64_t start;     /* from the seed */
};

/* `fraction` above 0, at most 0.5. */
struct slc_holdout slc_holdout_choose(double fraction, uint64_t seed);

/*
 * Sets values of held-out nonzeros to 0: in `room` (SLC_HOLDOUT_CHUNK_NNZ numbers of the tile's
 * type and 64 bytes), to which chunk->values then points, for the decoder's may serve again.
 */
void slc_holdout_mask(const struct slc_holdout *holdout,
                      const struct slc_tile_view *tile,
                      struct slc_chunk_view *chunk,
                      void *room);

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
