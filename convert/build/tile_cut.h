/* Where tiles end early: no tile may extend further in a mode than docs/FORMAT.md, section 5. */
#ifndef SLC_CONVERT_TILE_CUT_H
#define SLC_CONVERT_TILE_CUT_H

#include "base/key.h"

#include <stdbool.h>
#include <stdint.h>

struct slc_tile_cutter {
    const struct slc_key_layout *layout; /* borrowed */
    unsigned wide_modes;                 /* those that are long enough to exceed the limit */
    unsigned wide_mode[SLC_MAX_ORDER];
    /* What the tile at hand spans in them. */
    uint64_t min[SLC_MAX_ORDER], max[SLC_MAX_ORDER];
};

void slc_tile_cutter_init(struct slc_tile_cutter *cutter,
                          const struct slc_key_layout *layout,
                          const uint64_t *dims);

/*
 * How many of `count` nonzeros still fit the tile at hand, which they then belong to; `started`: it
 * has some already. `hi`, `upper`: as in struct slc_tile_source. Only modes longer than 2^32 - 1
 * are looked at; without such a mode this costs nothing.
 */
uint32_t slc_tile_cutter_fit(struct slc_tile_cutter *cutter,
                             const uint64_t *lo,
                             const uint64_t *hi,
                             uint64_t upper,
                             uint32_t count,
                             bool started);

#endif
