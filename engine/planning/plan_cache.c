/*
 * Which blocks a plan keeps from pass to pass: in the host's memory, and before that in a
 * GPU's.
 *
 * Cost: a look at every index entry for each step of the bisection, of which there are as many as
 * the number of blocks has bits.
 */
#include "engine/planning/planning_impl.h"

#include "storage/codec/describe.h"

/* What a device adds to a tile's description, and rounds it up to; a guess that is seen to. */
#define DEVICE_TILE_BYTES (sizeof(struct slc_encoded_tile) + 64)

enum where { ON_HOST, ON_DEVICE };

static uint64_t in_lines(uint64_t bytes)
{
    return slc_plan_times(slc_div_up_u64(bytes, SLC_DEVICE_ALIGN), SLC_DEVICE_ALIGN);
}

/*
 * What a block takes in the device's memory, as base/device.h has it. Blocks of codec `packed` may
 * have values that expand there, and the index does not tell: most have not. So they count without,
 * and what they may take is added where there is room when all that fits stays
 * (kept_expanded_bytes). Where there is not, the device may have room for fewer blocks than
 * planned, and the others are read in every pass.
 */
static uint64_t device_bytes(const struct slc_layout_info *info,
                             const struct slc_block_entry *entry)
{
    const uint64_t expanded =
        entry->codec == SLC_CODEC_PACKED ? 0 : slc_describe_expanded_bound(info, entry);

    return slc_plan_plus(in_lines(entry->padded_bytes), in_lines(expanded));
}

/* The most that it may take beyond. */
static uint64_t unknown_bytes(const struct slc_layout_info *info,
                              const struct slc_block_entry *entry)
{
    return entry->codec == SLC_CODEC_PACKED ? in_lines(slc_describe_expanded_bound(info, entry))
                                            : 0;
}

/* What the blocks of one of the layout's sets take where they are kept; *padded: in the file. */
static uint64_t set_bytes(const struct slc_reader *reader,
                          const struct slc_plan_layout *layout,
                          enum where where,
                          uint64_t *padded)
{
    const struct slc_layout_info *info = slc_reader_info(reader);
    uint64_t bytes = 0;

    *padded = 0;
    for (uint64_t b = 0; b < info->block_count; b++) {
        struct slc_block_entry entry;

        if (where == ON_DEVICE ? slc_plan_keeps(layout->resident_blocks, info->block_count, b)
                               : slc_plan_caches(layout, info->block_count, b)) {
            slc_reader_entry(reader, b, &entry);
            *padded = slc_plan_plus(*padded, entry.padded_bytes);
            bytes =
                slc_plan_plus(bytes, where == ON_HOST ? entry.padded_bytes
                                                      : device_bytes(info, &entry) +
                                                            entry.tile_count * DEVICE_TILE_BYTES);
        }
    }
    return bytes;
}

uint64_t slc_plan_store_bytes(const struct slc_reader *reader)
{
    const struct slc_plan_layout all = {.cached_blocks = slc_reader_info(reader)->block_count};
    uint64_t padded;

    return set_bytes(reader, &all, ON_HOST, &padded);
}

/*
 * Keeps as many blocks of a layout as fit `room`, by bisection, and returns what they take. A
 * larger set may by chance fall on smaller blocks, so the number found may be a little below the
 * largest; the set found fits.
 */
static uint64_t keep_of_layout(const struct slc_reader *reader,
                               struct slc_plan_layout *layout,
                               enum where where,
                               uint64_t room)
{
    uint64_t *blocks = where == ON_DEVICE ? &layout->resident_blocks : &layout->cached_blocks;
    uint64_t *bytes = where == ON_DEVICE ? &layout->resident_bytes : &layout->cache_bytes;
    uint64_t most = slc_reader_info(reader)->block_count;
    uint64_t least = 0, taken = 0;

    most -= where == ON_HOST ? layout->resident_blocks : 0;
    *bytes = 0;
    while (least < most) {
        uint64_t needs, padded;

        *blocks = least + (most - least + 1) / 2;
        needs = set_bytes(reader, layout, where, &padded);
        if (needs <= room) {
            least = *blocks;
            taken = needs;
            *bytes = padded;
        } else {
            most = *blocks - 1;
        }
    }
    *blocks = least;
    return taken;
}

/*
 * Divides `room` between the layouts. A byte that is kept saves as many as its layout has passes;
 * where these are equal each layout gets its share, so that no pass waits for the drive while
 * another one leaves it idle.
 */
static void
divide(const struct slc_layouts *layouts, struct slc_plan *plan, enum where where, uint64_t room)
{
    for (double passes = plan->passes; passes > 0; passes -= 0.5) {
        uint64_t bytes = 0;

        for (unsigned l = 0; l < plan->layout_count; l++) {
            bytes = slc_plan_plus(
                bytes, plan->layouts[l].passes == passes ? plan->layouts[l].store_bytes : 0);
        }
        double share = bytes > room ? (double)room / (double)bytes : 1.0;
        for (unsigned l = 0; l < plan->layout_count; l++) {
            struct slc_plan_layout *layout = &plan->layouts[l];

            if (layout->passes == passes) {
                /* What a device adds to blocks may be more than they are. */
                const uint64_t part =
                    share < 1.0 ? (uint64_t)((double)layout->store_bytes * share) : room;

                room -= keep_of_layout(layouts->reader[l], layout, where, slc_min_u64(part, room));
            }
        }
    }
}

void slc_plan_cache(const struct slc_layouts *layouts, struct slc_plan *plan, uint64_t room)
{
    divide(layouts, plan, ON_HOST, room);
    for (unsigned l = 0; l < plan->layout_count; l++) {
        plan->cache_bytes += plan->layouts[l].cache_bytes;
        plan->cached_blocks += plan->layouts[l].cached_blocks;
    }
}

void slc_plan_residents(const struct slc_layouts *layouts, struct slc_plan *plan, uint64_t room)
{
    struct slc_plan_gpu *gpu = &plan->gpu;
    const uint64_t count = slc_max_u64(plan->request.gpu_count, 1);

    divide(layouts, plan, ON_DEVICE, room);
    gpu->kept_bytes = 0;
    gpu->kept_expanded_bytes = 0;
    gpu->kept_blocks = 0;
    gpu->kept_tiles = 0;
    for (unsigned l = 0; l < plan->layout_count; l++) {
        const struct slc_layout_info *info = slc_reader_info(layouts->reader[l]);

        for (uint64_t b = 0; b < info->block_count; b++) {
            struct slc_block_entry entry;

            if (slc_plan_keeps(plan->layouts[l].resident_blocks, info->block_count, b)) {
                slc_reader_entry(layouts->reader[l], b, &entry);
                gpu->kept_bytes += device_bytes(info, &entry);
                gpu->kept_expanded_bytes =
                    slc_plan_plus(gpu->kept_expanded_bytes, unknown_bytes(info, &entry));
                gpu->kept_tiles += entry.tile_count;
                gpu->kept_blocks++;
            }
        }
    }
    /* Even shares: where a device owns more of these blocks, it reads some in every pass. */
    gpu->kept_bytes = in_lines(slc_div_up_u64(gpu->kept_bytes, count));
    gpu->kept_expanded_bytes = in_lines(slc_div_up_u64(gpu->kept_expanded_bytes, count));
    gpu->kept_tiles = (uint32_t)slc_div_up_u64(gpu->kept_tiles, count);
}
