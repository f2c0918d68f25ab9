/* Determines the position of tiles and decodes them chunk by chunk. */
#include "cpu/mttkrp/tile_place.h"

#include "base/memory/checked.h"
#include "cpu/kernel/kernels.h"

#include <inttypes.h>

bool slc_tile_fits(const struct slc_tensor_shape *shape,
                   enum slc_value_type type,
                   const struct slc_tile_view *tile)
{
    bool fits = tile->order == shape->order && tile->value_type == type;

    for (unsigned m = 0; fits && m < shape->order; m++) {
        fits = tile->corner[m] < shape->dims[m] &&
               tile->extent[m] <= shape->dims[m] - 1 - tile->corner[m];
    }
    return fits;
}

bool slc_tile_place(const struct slc_tensor_shape *shape,
                    enum slc_value_type type,
                    const struct slc_tile_view *tile,
                    uint64_t *at)
{
    return slc_tile_fits(shape, type, tile) && slc_mul_u64(tile->ordinal, shape->tile_nnz, at) &&
           *at < shape->nnz && tile->nnz == slc_min_u64(shape->nnz - *at, shape->tile_nnz);
}

enum slc_status slc_tile_next(struct slc_tile_view *tile,
                              uint64_t *left,
                              struct slc_chunk_view *chunk,
                              struct slc_error *err)
{
    SLC_TRY(tile->next(tile, SLC_CHUNK_NNZ, chunk, err));
    if (chunk->nnz > *left || (chunk->nnz == 0 && *left > 0)) {
        return slc_fail(err, SLC_ERR_DAMAGED,
                        "tile %" PRIu64 " decodes to %s than the %u nonzeros that it declares",
                        tile->ordinal, chunk->nnz == 0 ? "fewer" : "more", tile->nnz);
    }
    *left -= chunk->nnz;
    return SLC_OK;
}
