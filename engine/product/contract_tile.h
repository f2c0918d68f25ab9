/*
 * Contraction of tiles with vectors: multiplies every nonzero by the elements of the vectors at its
 * coordinates, adds neighbours that agree in all kept modes, and delivers the sums with the kept
 * coordinates. If tiles keep fibers of a contracted mode together, a run of a fiber is one dot
 * product.
 */
#ifndef SLC_ENGINE_CONTRACT_TILE_H
#define SLC_ENGINE_CONTRACT_TILE_H

#include "base/block.h"
#include "base/device.h"
#include "base/error/error.h"
#include "base/memory/limits.h"
#include "convert/build/builder.h"
#include "engine/product/tile_products.h"

#include <stdint.h>

/* The operands. Borrowed, and only read by workers. */
struct slc_contraction {
    unsigned order;
    unsigned vector_count;
    unsigned vector_mode[SLC_MAX_ORDER];
    const double *vector[SLC_MAX_ORDER]; /* vectors, indexed by the store's indices */
    unsigned kept_count;
    unsigned kept_mode[SLC_MAX_ORDER];
    /* Index of each label, per kept relabelled mode; otherwise NULL. */
    const uint32_t *index[SLC_MAX_ORDER];
    bool fiber_tiles;      /* use fiber runs (next_fibers) of tiles that have them */
    unsigned fiber_vector; /* number of the vector whose mode the runs follow */
};

/*
 * Receives sums of a tile, whose order is kept_count and whose sequence number is the ordinal of
 * the tile.
 */
typedef enum slc_status slc_contract_sink_fn(void *context,
                                             unsigned worker,
                                             const struct slc_entries *entries,
                                             struct slc_error *err);

/*
 * Sums of a tile computed by a device: the first of the tile's fibers, and the source of the
 * remaining ones.
 */
struct slc_contract_given {
    const struct slc_tile_products *products;
    struct slc_device_fibers fibers; /* f64 sums */
};

/* Returns the size in bytes of working memory of slc_contract_tile, a multiple of 8. */
uint64_t slc_contract_tile_bytes(const struct slc_contraction *contraction);

/*
 * Delivers the sums of a whole tile to `sink`, a few thousand at a time; no two neighbours have the
 * same coordinates. Zero sums are omitted and counted in *zeros. The sums depend on the tile alone.
 * `memory` is aligned for u64. If `given` is not NULL, the tile is not decoded and the given sums
 * are used. Errors: those of decoding, of `given` and of `sink`; SLC_ERR_INPUT, naming the fiber,
 * if a sum is beyond the range of f64.
 */
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
