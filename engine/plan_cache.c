/*
 * Which blocks a plan keeps from pass to pass.
 *
 * Cost: a look at every index entry for each step of the bisection, of which there are as many as
 * the number of blocks has bits.
 */
#include "engine/plan_impl.h"

uint64_t slc_plan_kept_bytes(const struct slc_reader *reader, uint64_t kept)
{
    const uint64_t count = slc_reader_info(reader)->block_count;
    uint64_t bytes = 0;

    for (uint64_t b = 0; b < count; b++) {
        struct slc_block_entry entry;

        if (slc_plan_keeps(kept, count, b)) {
            slc_reader_entry(reader, b, &entry);
            bytes = slc_plan_plus(bytes, entry.padded_bytes);
        }
    }
    return bytes;
}

/*
 * Caches as many blocks of a layout as fit `room`, by bisection. A larger set may by chance fall on
 * smaller blocks, so the number found may be a little below the largest; the set found fits.
 */
static void
cache_layout(const struct slc_reader *reader, struct slc_plan_layout *layout, uint64_t room)
{
    uint64_t most = slc_reader_info(reader)->block_count;

    while (layout->cached_blocks < most) {
        const uint64_t kept = layout->cached_blocks + (most - layout->cached_blocks + 1) / 2;
        const uint64_t bytes = slc_plan_kept_bytes(reader, kept);

        if (bytes <= room) {
            layout->cached_blocks = kept;
            layout->cache_bytes = bytes;
        } else {
            most = kept - 1;
        }
    }
}

/*
 * Divides `room` between the layouts. A byte that is kept saves as many as its layout has passes;
 * where these are equal each layout gets its share, so that no pass waits for the drive while
 * another one leaves it idle.
 */
void slc_plan_cache(const struct slc_layouts *layouts, struct slc_plan *plan, uint64_t room)
{
    for (double passes = plan->passes; passes > 0; passes -= 0.5) {
        uint64_t bytes = 0;
        double share;

        for (unsigned l = 0; l < plan->layout_count; l++) {
            bytes = slc_plan_plus(
                bytes, plan->layouts[l].passes == passes ? plan->layouts[l].store_bytes : 0);
        }
        share = bytes > room ? (double)room / (double)bytes : 1.0;
        for (unsigned l = 0; l < plan->layout_count; l++) {
            struct slc_plan_layout *layout = &plan->layouts[l];

            if (layout->passes == passes) {
                const uint64_t part = (uint64_t)((double)layout->store_bytes * share);

                cache_layout(layouts->reader[l], layout, slc_min_u64(part, room));
                room -= layout->cache_bytes;
                plan->cache_bytes += layout->cache_bytes;
                plan->cached_blocks += layout->cached_blocks;
            }
        }
    }
}
