/* Chooses the blocks that stay in memory from pass to pass: first in GPU memory, then in host
 * memory.
 *
 * Cost: the number of blocks is found by bisection, with one scan of all index entries per step. */
#include "engine/planning/planning_impl.h"

#include "storage/codec/describe.h"

/* Estimated bytes per tile description in device memory. The plan is corrected later, when the
 * device reports the exact size. */
#define DEVICE_TILE_BYTES (sizeof(struct slc_encoded_tile) + 64)

enum where { ON_HOST, ON_DEVICE };

static uint64_t in_lines(uint64_t bytes)
{
    return slc_plan_times(slc_div_up_u64(bytes, SLC_DEVICE_ALIGN), SLC_DEVICE_ALIGN);
}

/* Returns the bytes of a block in device memory, as defined by base/device.h, without the expansion
 * of values. Values of codec `packed` may expand in device memory, but most do not, and the index
 * does not record the expanded size. The expansion gets the memory that remains after all resident
 * blocks (kept_expanded_bytes). If that memory is not enough, fewer blocks than planned are
 * resident, and the other blocks are read in every pass. */
static uint64_t device_bytes(const struct slc_layout_info *info,
                             const struct slc_block_entry *entry)
{
    const uint64_t expanded =
        entry->codec == SLC_CODEC_PACKED ? 0 : slc_describe_expanded_bound(info, entry);

    return slc_plan_plus(in_lines(entry->padded_bytes), in_lines(expanded));
}

/* Returns an upper bound for the expansion of a block's values. device_bytes does not count this
 * expansion. */
static uint64_t unknown_bytes(const struct slc_layout_info *info,
                              const struct slc_block_entry *entry)
{
    return entry->codec == SLC_CODEC_PACKED ? in_lines(slc_describe_expanded_bound(info, entry))
                                            : 0;
}

/* Returns the bytes that the layout's resident blocks (ON_DEVICE) or cached blocks (ON_HOST) occupy
 * in memory, and sets *padded to the bytes of these blocks in the file. */
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

/* Finds by bisection how many blocks of a layout fit in `available`, keeps them, and returns their
 * bytes. The kept blocks always fit. Sometimes slightly more blocks would also fit, because a
 * different number selects different blocks, which may be smaller. */
static uint64_t keep_layout_blocks(const struct slc_reader *reader,
                                   struct slc_plan_layout *layout,
                                   enum where where,
                                   uint64_t available)
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
        if (needs <= available) {
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

/* Divides `available` between the layouts. A cached byte saves one read byte per pass, so layouts
 * with the most passes per iteration come first. If layouts have equal numbers of passes, the same
 * fraction of each is kept, so that no pass waits for the drive while another pass leaves it
 * idle. */
static void divide_memory(const struct slc_layouts *layouts,
                          struct slc_plan *plan,
                          enum where where,
                          uint64_t available)
{
    for (double passes = plan->passes; passes > 0; passes -= 0.5) {
        uint64_t bytes = 0;

        for (unsigned l = 0; l < plan->layout_count; l++) {
            bytes = slc_plan_plus(
                bytes, plan->layouts[l].passes == passes ? plan->layouts[l].store_bytes : 0);
        }
        double share = bytes > available ? (double)available / (double)bytes : 1.0;
        for (unsigned l = 0; l < plan->layout_count; l++) {
            struct slc_plan_layout *layout = &plan->layouts[l];

            if (layout->passes == passes) {
                /* If all layouts fit, `available` is the limit instead of store_bytes, because
                 * blocks may need more bytes in device memory than in the file. */
                const uint64_t part =
                    share < 1.0 ? (uint64_t)((double)layout->store_bytes * share) : available;

                available -= keep_layout_blocks(layouts->reader[l], layout, where,
                                                slc_min_u64(part, available));
            }
        }
    }
}

void slc_plan_cache(const struct slc_layouts *layouts, struct slc_plan *plan, uint64_t available)
{
    divide_memory(layouts, plan, ON_HOST, available);
    for (unsigned l = 0; l < plan->layout_count; l++) {
        plan->cache_bytes += plan->layouts[l].cache_bytes;
        plan->cached_blocks += plan->layouts[l].cached_blocks;
    }
}

void slc_plan_residents(const struct slc_layouts *layouts,
                        struct slc_plan *plan,
                        uint32_t *const *owners,
                        uint64_t available)
{
    struct slc_plan_gpu *gpu = &plan->gpu;
    uint64_t bytes[SLC_MAX_DEVICES] = {0}, expanded[SLC_MAX_DEVICES] = {0};
    uint64_t tiles[SLC_MAX_DEVICES] = {0};

    divide_memory(layouts, plan, ON_DEVICE, available);
    gpu->kept_bytes = 0;
    gpu->kept_expanded_bytes = 0;
    gpu->kept_blocks = 0;
    gpu->kept_tiles = 0;
    for (unsigned l = 0; l < plan->layout_count; l++) {
        const struct slc_layout_info *info = slc_reader_info(layouts->reader[l]);

        for (uint64_t b = 0; b < info->block_count; b++) {
            const uint32_t owner = owners[l] != NULL ? owners[l][b] : 0;
            struct slc_block_entry entry;

            if (slc_plan_keeps(plan->layouts[l].resident_blocks, info->block_count, b)) {
                slc_reader_entry(layouts->reader[l], b, &entry);
                bytes[owner] += device_bytes(info, &entry);
                expanded[owner] = slc_plan_plus(expanded[owner], unknown_bytes(info, &entry));
                tiles[owner] += entry.tile_count;
                gpu->kept_blocks++;
            }
        }
    }
    /* All GPUs reserve the same memory, so that each has space for all resident blocks that it
     * owns. */
    for (unsigned d = 0; d < SLC_MAX_DEVICES; d++) {
        gpu->kept_bytes = slc_max_u64(gpu->kept_bytes, bytes[d]);
        gpu->kept_expanded_bytes = slc_max_u64(gpu->kept_expanded_bytes, expanded[d]);
        gpu->kept_tiles = (uint32_t)slc_max_u64(gpu->kept_tiles, slc_min_u64(tiles[d], UINT32_MAX));
    }
}

void slc_plan_keep_all(const struct slc_layouts *layouts, struct slc_plan *plan)
{
    struct slc_plan_gpu *gpu = &plan->gpu;

    for (unsigned l = 0; l < plan->layout_count; l++) {
        const struct slc_plan_layout *layout = &plan->layouts[l];
        const struct slc_layout_info *info = slc_reader_info(layouts->reader[l]);

        for (uint64_t b = 0; layout->passes > 0 && b < info->block_count; b++) {
            struct slc_block_entry entry;

            if (!slc_plan_keeps(layout->resident_blocks, info->block_count, b)) {
                slc_reader_entry(layouts->reader[l], b, &entry);
                gpu->kept_bytes = slc_plan_plus(gpu->kept_bytes, device_bytes(info, &entry));
                gpu->kept_expanded_bytes =
                    slc_plan_plus(gpu->kept_expanded_bytes, unknown_bytes(info, &entry));
                gpu->kept_tiles =
                    (uint32_t)slc_min_u64((uint64_t)gpu->kept_tiles + entry.tile_count, UINT32_MAX);
            }
        }
    }
    gpu->keeps_cached = true;
}
