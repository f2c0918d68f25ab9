/* Decodes tiles to their positions among all nonzeros of a tensor in memory, for replicas
 * (replica.h) and coordinate lists (coo.h). */
#ifndef SLC_CPU_TILE_PLACE_H
#define SLC_CPU_TILE_PLACE_H

#include "base/backend.h"

/* Returns true if the order, value type and coordinates of a tile fit the tensor. */
bool slc_tile_fits(const struct slc_tensor_shape *shape,
                   enum slc_value_type type,
                   const struct slc_tile_view *tile);

/* Returns true if a tile belongs to the tensor, and then sets *at to the index of its first
 * nonzero. All tiles except the last must be full: the function also returns false for a tile that
 * ends early, as tiles do if a mode is very large. */
bool slc_tile_place(const struct slc_tensor_shape *shape,
                    enum slc_value_type type,
                    const struct slc_tile_view *tile,
                    uint64_t *at);

/* Decodes the next chunk of a tile of which *left nonzeros are not yet decoded, and subtracts the
 * size of the chunk from *left. A chunk without nonzeros ends the tile. Errors: the errors of
 * decoding; SLC_ERR_DAMAGED if the number of nonzeros differs from the number that the tile
 * declares. */
enum slc_status slc_tile_next(struct slc_tile_view *tile,
                              uint64_t *left,
                              struct slc_chunk_view *chunk,
                              struct slc_error *err) SLC_NODISCARD;

#endif
