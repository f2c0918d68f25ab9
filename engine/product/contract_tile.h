/* Contracts tiles with vectors: multiplies every nonzero by the elements of the vectors at its
 * coordinates, adds adjacent nonzeros that agree in all kept modes, and passes the sums with their
 * coordinates to a sink. If the tiles have fiber runs of a contracted mode, each run is one dot
 * product. */
#ifndef SLC_ENGINE_CONTRACT_TILE_H
#define SLC_ENGINE_CONTRACT_TILE_H

#include "base/block.h"
#include "base/device.h"
#include "base/error/error.h"
#include "base/memory/limits.h"
#include "base/used.h"
#include "convert/build/builder.h"
#include "engine/product/contract.h"
#include "engine/product/tile_products.h"
#include "engine/stream/part.h"

#include <stdint.h>

/* The operands of a contraction. Borrowed; workers only read them. */
struct slc_contraction {
    unsigned order;
    unsigned vector_count;
    unsigned vector_mode[SLC_MAX_ORDER];
    /* vectors, indexed by the store's indices or, if they are short, by positions */
    const double *vector[SLC_MAX_ORDER];
    const struct slc_used *used[SLC_MAX_ORDER]; /* per vector: NULL, or its used indices */
    /* Number of results. Result r > 0 has more_vector[r - 1] instead of vector[0]. */
    unsigned results;
    const double *more_vector[SLC_CONTRACT_RESULTS_MAX - 1];
    unsigned kept_count;
    unsigned kept_mode[SLC_MAX_ORDER];
    /* Per kept mode: label -> index, or NULL if the mode is not relabelled. */
    const uint32_t *index[SLC_MAX_ORDER];
    bool fiber_tiles;            /* true: use the fiber runs (next_fibers) of tiles */
    unsigned fiber_vector;       /* number of the vector whose mode has the fiber runs */
    const struct slc_part *part; /* sums outside of this part are omitted; NULL: none are */
};

/* Receives sums of a tile for one result. entries->order is kept_count, and entries->sequence is
 * the ordinal of the tile. */
typedef enum slc_status slc_contract_sink_fn(void *context,
                                             unsigned worker,
                                             unsigned result,
                                             const struct slc_entries *entries,
                                             struct slc_error *err);

/* Sums of a tile that a device computed: the first fibers of the tile, and the function that
 * returns the following fibers. */
struct slc_contract_given {
    const struct slc_tile_products *products;
    struct slc_device_fibers fibers; /* f64 sums; a column per result */
};

/* Returns the bytes of working memory that slc_contract_tile needs, a multiple of 8. */
uint64_t slc_contract_tile_bytes(const struct slc_contraction *contraction);

/* Passes the sums of a whole tile to `sink`, a few thousand at a time. No two adjacent sums have
 * equal coordinates. Zero sums of result r are omitted and added to zeros[r]. The sums depend on
 * the tile alone. `memory` must be aligned for u64. If `given` is not NULL, the sums of the device
 * are used and the tile is not decoded. Errors: those of decoding, of `given` and of `sink`;
 * SLC_ERR_INPUT, with the coordinates, if a sum is beyond the range of f64. */
enum slc_status slc_contract_tile(const struct slc_contraction *contraction,
                                  struct slc_tile_view *tile,
                                  struct slc_contract_given *given,
                                  void *memory,
                                  slc_contract_sink_fn *sink,
                                  void *context,
                                  unsigned worker,
                                  uint64_t *zeros,
                                  struct slc_error *err) SLC_NODISCARD;

#endif
