#include "convert/build/tile_cut.h"

#include "base/memory/checked.h"

/* Largest extent of a tile in a mode, docs/FORMAT.md section 5. */
#define EXTENT_MAX (UINT64_C(0xffffffff) - 1)

void slc_tile_cutter_init(struct slc_tile_cutter *cutter,
                          const struct slc_key_layout *layout,
                          const uint64_t *dims)
{
    *cutter = (struct slc_tile_cutter){.layout = layout};
    for (unsigned mode = 0; mode < layout->order; mode++) {
        if (dims[mode] - 1 > EXTENT_MAX) {
            cutter->wide_mode[cutter->wide_modes++] = mode;
        }
    }
}

static uint64_t
coordinate(const struct slc_key_layout *layout, unsigned mode, uint64_t lo, uint64_t hi)
{
    unsigned below = (unsigned)__builtin_popcountll(layout->mask_lo[mode]);
    uint64_t coord = slc_bits_gather(lo, layout->mask_lo[mode]);

    return below < 64 ? coord | slc_bits_gather(hi, layout->mask_hi[mode]) << below : coord;
}

uint32_t slc_tile_cutter_fit(struct slc_tile_cutter *cutter,
                             const uint64_t *lo,
                             const uint64_t *hi,
                             uint64_t upper,
                             uint32_t count,
                             bool started)
{
    for (uint32_t i = 0; i < count && cutter->wide_modes > 0; i++) {
        uint64_t min[SLC_MAX_ORDER], max[SLC_MAX_ORDER];

        for (unsigned w = 0; w < cutter->wide_modes; w++) {
            uint64_t coord =
                coordinate(cutter->layout, cutter->wide_mode[w], lo[i], hi == NULL ? upper : hi[i]);

            min[w] = started ? slc_min_u64(cutter->min[w], coord) : coord;
            max[w] = started ? slc_max_u64(cutter->max[w], coord) : coord;
            if (max[w] - min[w] > EXTENT_MAX) {
                return i;
            }
        }
        for (unsigned w = 0; w < cutter->wide_modes; w++) {
            cutter->min[w] = min[w];
            cutter->max[w] = max[w];
        }
        started = true;
    }
    return count;
}
