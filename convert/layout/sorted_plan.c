#include "convert/layout/sorted_build.h"

#include "base/error/clock.h"
#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "convert/layout/key_cuts.h"
#include "convert/layout/sorted_run.h"
#include "storage/codec/codec.h"

#include <inttypes.h>

enum {
    MIB = 1 << 20,
    /* Allowance for readers, queues of tiles and overhead of the allocator. */
    SMALL_OBJECTS_BYTES = 512 << 10,
    /* A fiber-n layout is planned as one range, which is then cut into ranges of about this size,
     * so that threads share the sort and each range is close to the cache size. */
    FIBER_RANGE_NNZ = 4 << 20,
    /* Smallest area: an incomplete tile, and as many nonzeros of the next range. */
    AREA_NNZ_MIN = 2 * SLC_TILE_NNZ,
    /* Areas of at least this size use huge pages and are multiples of 2 MiB. */
    HUGE_AREA_BYTES = 16 * MIB
};

/* Returns the bytes of a gathered nonzero, including the scratch of the sort. */
static uint64_t nonzero_bytes(const struct slc_layout_info *info, bool sorts)
{
    return (info->keys.bits > 64 ? 24U : 16U) * (sorts ? 2U : 1U);
}

/* Returns an upper bound of the number of partitions, which sorted_cuts.c derives. */
static uint64_t parts_max(const struct slc_layout_info *info)
{
    return slc_sorted_cuts_memory_bytes(info->nnz) / sizeof(struct slc_sorted_part);
}

/* Returns the most bytes that the writer needs: a block exceeds its target by at most one tile, and
 * the index and the journal grow by doubling. */
static uint64_t writer_bytes(const struct slc_layout_info *info)
{
    uint64_t tile = slc_encoder_bound(&info->keys, info->codec, SLC_TILE_NNZ);
    uint64_t blocks = parts_max(info) + info->file_bytes / SLC_DEFAULT_BLOCK_BYTES * 2;

    return slc_max_u64(SLC_DEFAULT_BLOCK_BYTES, tile) + tile + 3 * blocks * (88 + 16 * info->order);
}

/* Returns the most ranges: each range may be cut into pieces of a quarter of the smallest area. */
static uint64_t ranges_max(const struct slc_layout_info *info)
{
    return parts_max(info) + info->nnz / (AREA_NNZ_MIN / 4);
}

/* Returns the bytes in use, without the area, while nonzeros are gathered and written. */
static uint64_t fixed_bytes(const struct slc_layout_info *info, unsigned workers)
{
    return SMALL_OBJECTS_BYTES + slc_tile_scan_memory_bytes(info, workers) +
           slc_gather_memory_bytes(info, workers, parts_max(info)) +
           workers * slc_encoder_memory_bytes(&info->keys, info->codec) + writer_bytes(info) +
           slc_sorted_cuts_memory_bytes(info->nnz) +
           ranges_max(info) * sizeof(struct slc_gather_range);
}

static uint64_t need_bytes(const struct slc_layout_info *info, unsigned workers)
{
    uint64_t count =
        slc_max_u64(slc_row_count_memory_bytes(info, slc_sorted_part_nnz(info->nnz), workers),
                    slc_sorted_run_memory_bytes(info, workers)) +
        slc_sorted_cuts_memory_bytes(info->nnz) + SMALL_OBJECTS_BYTES;
    uint64_t area = slc_min_u64(info->nnz + 1, AREA_NNZ_MIN) * nonzero_bytes(info, true);

    return slc_max_u64(count,
                       fixed_bytes(info, workers) + slc_buffer_footprint(area, SLC_PAGES_SMALL));
}

uint64_t slc_sorted_memory_min(const struct slc_layout_info *info)
{
    return need_bytes(info, 1);
}

/* Chooses the largest number of workers that fits in memory. */
static enum slc_status choose_workers(const struct slc_sorted_options *options,
                                      struct slc_sorted_plan *plan,
                                      struct slc_error *err)
{
    const struct slc_layout_info *info = slc_reader_info(options->reader);

    for (plan->workers = options->workers; plan->workers >= 1; plan->workers--) {
        plan->need_bytes = need_bytes(info, plan->workers);
        if (plan->need_bytes <= options->memory_bytes) {
            return SLC_OK;
        }
    }
    /* Add 1 MiB, because the process may be a few pages larger in the next run. */
    return slc_fail_budget(
        err, options->budget_bytes, plan->need_bytes + options->caller_bytes + MIB,
        "sorting the nonzeros by %smode %u",
        options->layout == SLC_LAYOUT_FIBER ? "fibers of " : "", options->mode + 1);
}

/* Uses the remaining memory for the area, but at most the memory that all nonzeros need. */
static void divide_memory(const struct slc_sorted_options *options, struct slc_sorted_plan *plan)
{
    const struct slc_layout_info *info = slc_reader_info(options->reader);
    const uint64_t each = nonzero_bytes(info, plan->sorts);
    const uint64_t needed = (info->nnz + 1) * each;

    plan->area_bytes = options->memory_bytes - fixed_bytes(info, plan->workers);
    uint64_t unit = plan->area_bytes >= HUGE_AREA_BYTES && needed >= HUGE_AREA_BYTES
                        ? 2 * MIB
                        : slc_memory_page_bytes();
    plan->area_bytes = slc_min_u64(plan->area_bytes - plan->area_bytes % unit,
                                   slc_div_up_u64(needed, unit) * unit);
    plan->area_nnz = plan->area_bytes / each;
    plan->ranges_max = parts_max(info);
    plan->need_bytes =
        slc_max_u64(plan->need_bytes, fixed_bytes(info, plan->workers) + plan->area_bytes);
}

/* Makes one range per partition, but one range for a row that is cut into partitions. */
static enum slc_status make_ranges(struct slc_sorted_plan *plan, struct slc_error *err)
{
    plan->ranges = slc_calloc(plan->cuts.count + 1, sizeof *plan->ranges);
    SLC_TRY(slc_check_memory(plan->ranges != NULL, err, "for the partitions of a layout"));
    for (uint64_t p = 0; p < plan->cuts.count; p++) {
        const struct slc_sorted_part *part = &plan->cuts.parts[p];

        if (part->continued) {
            plan->ranges[plan->range_count - 1].nnz += part->nnz;
        } else {
            plan->ranges[plan->range_count++] =
                (struct slc_gather_range){.first_row = part->first_row,
                                          .last_row = part->last_row,
                                          .last_key = ~(slc_u128)0,
                                          .nnz = part->nnz};
        }
    }
    return SLC_OK;
}

static struct slc_tile_scan_options scan_of(const struct slc_sorted_options *options,
                                            const struct slc_sorted_plan *plan)
{
    return (struct slc_tile_scan_options){.files = options->files,
                                          .reader = options->reader,
                                          .workers = plan->workers,
                                          .mode = options->mode,
                                          .stop = options->stop,
                                          .progress = options->progress,
                                          .context = options->context};
}

enum slc_status slc_sorted_plan_gather(const struct slc_sorted_plan *plan,
                                       const struct slc_sorted_options *options,
                                       struct slc_gather **gather,
                                       struct slc_error *err)
{
    const struct slc_tile_scan_options scan = scan_of(options, plan);

    return slc_gather_create(&scan, &plan->keys, plan->ranges_max, gather, err);
}

/* Cuts ranges that do not fit the area next to an incomplete tile, and large ranges of fiber-n. */
static enum slc_status cut_by_keys(const struct slc_sorted_options *options,
                                   struct slc_sorted_plan *plan,
                                   struct slc_error *err)
{
    const uint64_t most =
        slc_min_u64(plan->area_nnz - SLC_TILE_NNZ,
                    options->layout == SLC_LAYOUT_FIBER ? FIBER_RANGE_NNZ : UINT32_MAX);
    struct slc_gather *gather = NULL;
    uint64_t largest = 0;

    for (uint64_t r = 0; r < plan->range_count; r++) {
        largest = slc_max_u64(largest, plan->ranges[r].nnz);
    }
    /* A single range is not preceded by an incomplete tile. */
    if (largest <= most || (plan->range_count == 1 && largest <= plan->area_nnz &&
                            options->layout == SLC_LAYOUT_SORTED)) {
        return SLC_OK;
    }
    enum slc_status status = slc_sorted_plan_gather(plan, options, &gather, err);
    if (status == SLC_OK) {
        status = slc_key_cuts_make(&(struct slc_key_cuts_options){.gather = gather,
                                                                  .ranges_max = plan->ranges_max,
                                                                  .key_bits = plan->keys.bits,
                                                                  .most_nnz = most},
                                   &plan->ranges, &plan->range_count, &plan->count_scans, err);
    }
    slc_gather_destroy(gather);
    return status;
}

uint64_t slc_sorted_plan_batch(const struct slc_sorted_plan *plan, uint64_t first, uint64_t rest)
{
    uint64_t nnz = rest, count = 0;

    while (first + count < plan->range_count && count < plan->ranges_max &&
           nnz + plan->ranges[first + count].nnz <= plan->area_nnz) {
        nnz += plan->ranges[first + count].nnz;
        count++;
    }
    return count;
}

/* Counts the scans that gather. Assumes that each scan leaves almost a tile of nonzeros to the next
 * scan, because the actual number is not known in advance. */
static void count_batches(struct slc_sorted_plan *plan)
{
    for (uint64_t first = 0; first < plan->range_count;) {
        first += slc_max_u64(slc_sorted_plan_batch(plan, first, 0), 1);
        plan->batches++;
    }
}

/* Plans a fiber-n layout: one partition, and keys in which all bits of mode n are lowest. */
static enum slc_status whole_fibers(const struct slc_sorted_options *options,
                                    struct slc_sorted_plan *plan,
                                    struct slc_fiber_run *run,
                                    struct slc_error *err)
{
    const struct slc_layout_info *info = slc_reader_info(options->reader);

    *run = (struct slc_fiber_run){options->mode, info->keys.mode_bits[options->mode]};
    plan->cuts.parts = slc_calloc(1, sizeof *plan->cuts.parts);
    SLC_TRY(slc_check_memory(plan->cuts.parts != NULL, err, "for the plan of a layout"));
    plan->cuts.parts[0] =
        (struct slc_sorted_part){.last_row = info->dims[options->mode] - 1, .nnz = info->nnz};
    plan->cuts.count = info->nnz > 0;
    return SLC_OK;
}

/* Plans a sorted-n layout: counts nonzeros per row, cuts rows into partitions, chooses keys. Each
 * of these steps may use all memory. */
static enum slc_status cut_rows(const struct slc_sorted_options *options,
                                struct slc_sorted_plan *plan,
                                struct slc_fiber_run *run,
                                struct slc_error *err)
{
    const struct slc_layout_info *info = slc_reader_info(options->reader);
    const uint64_t part_nnz = slc_sorted_part_nnz(info->nnz);
    const struct slc_tile_scan_options scan = scan_of(options, plan);
    struct slc_row_counts counts = {.runs = NULL};
    enum slc_status status = slc_row_count(&scan, part_nnz, &counts, err);

    if (status == SLC_OK) {
        plan->count_scans = counts.scans;
        status = slc_sorted_cut(&counts, part_nnz, &plan->cuts, err);
    }
    slc_row_counts_destroy(&counts);
    SLC_TRY(status);
    return slc_sorted_run_choose(&scan, &plan->cuts, run, &plan->count_scans, err);
}

/* Chooses the order of the nonzeros and their keys. */
static enum slc_status choose_order(const struct slc_sorted_options *options,
                                    struct slc_sorted_plan *plan,
                                    struct slc_error *err)
{
    const struct slc_layout_info *info = slc_reader_info(options->reader);
    struct slc_fiber_run run;
    enum slc_status status = options->layout == SLC_LAYOUT_FIBER
                                 ? whole_fibers(options, plan, &run, err)
                                 : cut_rows(options, plan, &run, err);

    SLC_THEN(status, slc_key_layout_init_run(&plan->keys, info->order, info->dims, run, err));
    plan->sorts = status == SLC_OK && !slc_key_layout_same(&plan->keys, &info->keys);
    return status;
}

enum slc_status slc_sorted_plan_make(const struct slc_sorted_options *options,
                                     struct slc_sorted_plan *plan,
                                     struct slc_error *err)
{
    uint64_t start_ns = slc_clock_ns();
    struct slc_sorted_plan made = {.workers = 0};
    enum slc_status status = choose_workers(options, &made, err);

    SLC_THEN(status, choose_order(options, &made, err));
    if (status == SLC_OK) {
        divide_memory(options, &made);
        status = make_ranges(&made, err);
    }
    SLC_THEN(status, cut_by_keys(options, &made, err));
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
