/* See convert/sorted_plan.h. */
#include "convert/sorted_plan.h"

#include "base/checked.h"
#include "base/clock.h"
#include "base/memory.h"
#include "storage/codec.h"

#include <inttypes.h>

enum {
    MIB = 1 << 20,
    /* Readers, lists of tiles, the allocator's own. */
    SMALL_OBJECTS_BYTES = 512 << 10,
    /* What a range leaves behind that does not complete a tile, and as much again to go on with. */
    AREA_NNZ_MIN = 2 * SLC_TILE_NNZ,
    /* Areas from here on are in huge pages, and so multiples of 2 MiB. */
    HUGE_AREA_BYTES = 16 * MIB
};

static uint64_t nonzero_bytes(const struct slc_layout_info *info)
{
    return info->keys.bits > 64 ? 24 : 16;
}

/* There are no more partitions than this; convert/sorted_cuts.c says why. */
static uint64_t parts_max(const struct slc_layout_info *info)
{
    return slc_sorted_cuts_memory_bytes(info->nnz) / sizeof(struct slc_sorted_part);
}

/* The writer's block grows by a whole tile at most, its index and the journal by doubling. */
static uint64_t writer_bytes(const struct slc_layout_info *info)
{
    uint64_t tile = slc_encoder_bound(&info->keys, info->codec, SLC_TILE_NNZ);
    uint64_t blocks = parts_max(info) + info->file_bytes / SLC_DEFAULT_BLOCK_BYTES * 2;

    return slc_max_u64(SLC_DEFAULT_BLOCK_BYTES, tile) + tile + 3 * blocks * (88 + 16 * info->order);
}

/* Everything but the area, while nonzeros are gathered and written. */
static uint64_t fixed_bytes(const struct slc_layout_info *info, unsigned workers)
{
    return SMALL_OBJECTS_BYTES + slc_tile_scan_memory_bytes(info, workers) +
           slc_gather_memory_bytes(info, workers, parts_max(info)) +
           workers * slc_encoder_memory_bytes(&info->keys, info->codec) + writer_bytes(info) +
           slc_sorted_cuts_memory_bytes(info->nnz) + parts_max(info) * sizeof(struct slc_row_range);
}

static uint64_t need_bytes(const struct slc_layout_info *info, unsigned workers)
{
    uint64_t count = slc_row_count_memory_bytes(info, slc_sorted_part_nnz(info->nnz), workers) +
                     SMALL_OBJECTS_BYTES;
    uint64_t area = slc_min_u64(info->nnz + 1, AREA_NNZ_MIN) * nonzero_bytes(info);

    return slc_max_u64(count,
                       fixed_bytes(info, workers) + slc_buffer_footprint(area, SLC_PAGES_SMALL));
}

uint64_t slc_sorted_memory_min(const struct slc_layout_info *info)
{
    return need_bytes(info, 1);
}

/* As many workers as fit, and all the rest for the area, as far as there are nonzeros. */
static enum slc_status divide_memory(const struct slc_sorted_options *options,
                                     struct slc_sorted_plan *plan,
                                     struct slc_error *err)
{
    const struct slc_layout_info *info = slc_reader_info(options->reader);
    uint64_t wanted = (info->nnz + 1) * nonzero_bytes(info);
    uint64_t unit;

    for (plan->workers = options->workers; plan->workers >= 1; plan->workers--) {
        plan->need_bytes = need_bytes(info, plan->workers);
        if (plan->need_bytes <= options->memory_bytes) {
            break;
        }
    }
    if (plan->workers == 0) {
        /* A MiB more than now: the process may be larger by a few pages next time. */
        return slc_fail_budget(err, options->budget_bytes,
                               plan->need_bytes + options->beside_bytes + MIB,
                               "sorting the nonzeros by mode %u", options->mode + 1);
    }
    plan->area_bytes = options->memory_bytes - fixed_bytes(info, plan->workers);
    unit = plan->area_bytes >= HUGE_AREA_BYTES && wanted >= HUGE_AREA_BYTES
               ? 2 * MIB
               : slc_memory_page_bytes();
    plan->area_bytes = slc_min_u64(plan->area_bytes - plan->area_bytes % unit,
                                   slc_div_up_u64(wanted, unit) * unit);
    plan->area_nnz = plan->area_bytes / nonzero_bytes(info);
    plan->need_bytes =
        slc_max_u64(plan->need_bytes, fixed_bytes(info, plan->workers) + plan->area_bytes);
    return SLC_OK;
}

/* One range for each partition, but pieces of a row together. */
static enum slc_status make_ranges(struct slc_sorted_plan *plan, struct slc_error *err)
{
    plan->ranges = slc_calloc(plan->cuts.count + 1, sizeof *plan->ranges);
    if (plan->ranges == NULL) {
        return slc_fail(err, SLC_ERR_MEMORY, "no memory for the partitions of a layout");
    }
    for (uint64_t p = 0; p < plan->cuts.count; p++) {
        const struct slc_sorted_part *part = &plan->cuts.parts[p];

        if (part->continued) {
            plan->ranges[plan->range_count - 1].nnz += part->nnz;
        } else {
            plan->ranges[plan->range_count++] =
                (struct slc_row_range){part->first_row, part->last_row, part->nnz};
        }
    }
    return SLC_OK;
}

uint64_t slc_sorted_plan_batch(const struct slc_sorted_plan *plan, uint64_t first)
{
    uint64_t nnz = 0, count = 0;

    while (first + count < plan->range_count &&
           nnz + plan->ranges[first + count].nnz <= plan->area_nnz) {
        nnz += plan->ranges[first + count].nnz;
        count++;
    }
    return count;
}

static void count_batches(struct slc_sorted_plan *plan)
{
    for (uint64_t first = 0; first < plan->range_count;) {
        uint64_t batch = slc_sorted_plan_batch(plan, first);

        /* Of a range that does not fit, each scan leaves less than a tile to the next. */
        plan->batches += batch > 0 ? 1
                                   : slc_div_up_u64(plan->ranges[first].nnz,
                                                    plan->area_nnz - (SLC_TILE_NNZ - 1));
        first += slc_max_u64(batch, 1);
    }
}

enum slc_status slc_sorted_plan_make(const struct slc_sorted_options *options,
                                     struct slc_sorted_plan *plan,
                                     struct slc_error *err)
{
    uint64_t part_nnz = slc_sorted_part_nnz(slc_reader_info(options->reader)->nnz);
    uint64_t start_ns = slc_clock_ns();
    struct slc_row_counts counts = {.runs = NULL};
    struct slc_sorted_plan made = {.workers = 0};
    enum slc_status status = divide_memory(options, &made, err);

    if (status == SLC_OK) {
        status = slc_row_count(&(struct slc_row_count_options){.files = options->files,
                                                               .reader = options->reader,
                                                               .workers = made.workers,
                                                               .mode = options->mode,
                                                               .run_nnz = part_nnz,
                                                               .stop = options->stop,
                                                               .progress = options->progress},
                               &counts, err);
    }
    if (status == SLC_OK) {
        made.count_scans = counts.scans;
        status = slc_sorted_cut(&counts, part_nnz, &made.cuts, err);
    }
    slc_row_counts_destroy(&counts);
    if (status == SLC_OK) {
        status = make_ranges(&made, err);
    }
    if (status != SLC_OK) {
        slc_sorted_plan_destroy(&made);
        return status;
    }
    count_batches(&made);
    made.count_seconds = slc_seconds_since(start_ns);
    *plan = made;
    return SLC_OK;
}

void slc_sorted_plan_destroy(struct slc_sorted_plan *plan)
{
    slc_sorted_cuts_destroy(&plan->cuts);
    slc_free(plan->ranges);
    plan->ranges = NULL;
}
