/* Ends tiles early so that no tile exceeds the extent limit of docs/FORMAT.md, section 5, in any
 * mode. */
#ifndef SLC_CONVERT_TILE_CUT_H
#define SLC_CONVERT_TILE_CUT_H

#include "base/key.h"

#include <stdbool.h>
#include <stdint.h>

struct slc_tile_cutter {
    const struct slc_key_layout *layout; /* borrowed */
    /* number of modes that are large enough to exceed the limit */
    unsigned wide_modes;
    unsigned wide_mode[SLC_MAX_ORDER];
    /* Range of the indices of the current tile in these modes. */
    uint64_t min[SLC_MAX_ORDER], max[SLC_MAX_ORDER];
};

void slc_tile_cutter_init(struct slc_tile_cutter *cutter,
                          const struct slc_key_layout *layout,
                          const uint64_t *dims);

/* Returns how many of the next `count` nonzeros fit the current tile, and extends the tile's range
 * to include them. `started`: the tile already holds nonzeros. `hi`, `upper`: as in struct
 * slc_tile_source. Only modes larger than 2^32 - 1 are checked; without such a mode the call costs
 * nothing. */
uint32_t slc_tile_cutter_fit(struct slc_tile_cutter *cutter,
                             const uint64_t *lo,
                             const uint64_t *hi,
                             uint64_t upper,
                             uint32_t count,
                             bool started);

#endif
