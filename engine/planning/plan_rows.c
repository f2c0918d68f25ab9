/* Plans updates of rows from their nonzeros (engine/stream/rows/row_pass.h).
 *
 * A mode with a sorted layout needs as many slots as its largest range of several rows has blocks.
 * A row with more blocks than the ring has slots is read again in every traversal, so the ring gets
 * more slots if it can then hold further rows.
 *
 * A mode without a sorted layout is gathered: with memory for 1/P of the nonzeros, an update makes
 * about P passes. Memory for gathered nonzeros and memory for cached blocks compete. P is chosen so
 * that reading and decoding take the least time. If `blco` is cached and memory is left, modes keep
 * their gathered nonzeros, and only their first update makes a pass. */
#include "engine/planning/planning_impl.h"

#include "engine/stream/rows/row_pass.h"

#include <inttypes.h>
#include <math.h>

/* Assumed time to decode a byte of a block, as a fraction of the time to read it from a drive. */
#define DECODE_COST 0.25
/* If rows are gathered in several intervals, memory is reserved for 17/16 of the mean nonzeros of
 * an interval, because an interval has whole rows, which rarely fill the memory. */
#define GATHER_SIXTEENTHS 17U
/* Larger buffers of workers get at most this part of the memory that is left. */
#define BUFFER_PART 4U

/* Sets the members that depend on the ranges of rows of a sorted layout, for one mode. If `slots`
 * is 0, finds the largest range of several rows; otherwise, the rows whose blocks exceed `slots`
 * slots. *most gets the largest number of blocks, at most `limit`, of a single row. */
static enum slc_status scan_ranges(const struct slc_layouts *layouts,
                                   struct slc_plan *plan,
                                   unsigned mode,
                                   uint64_t limit,
                                   uint64_t *most,
                                   struct slc_error *err)
{
    const unsigned layout = plan->mode_layout[mode];
    const struct slc_reader *reader = layouts->reader[layout];
    const uint64_t blocks = slc_reader_info(reader)->block_count;
    struct slc_row_ranges ranges;
    struct slc_block_entry entry;

    SLC_TRY(slc_row_ranges_make(reader, mode, true, &ranges, err));
    plan->rows.streamed_rows[mode] = 0;
    plan->rows.streamed_bytes[mode] = 0;
    for (uint64_t r = 0; r < ranges.count; r++) {
        const struct slc_row_range *range = &ranges.ranges[r];

        if (!slc_row_range_single(reader, mode, range)) {
            plan->rows.range_blocks = slc_max_u64(plan->rows.range_blocks, range->block_count);
            plan->rows.range_nnz = slc_max_u64(plan->rows.range_nnz, range->nnz);
        } else if (range->block_count <= limit) {
            *most = slc_max_u64(*most, range->block_count);
        } else {
            plan->rows.streamed_rows[mode]++;
            for (uint64_t b = 0; b < range->block_count; b++) {
                slc_reader_entry(reader, range->first_block + b, &entry);
                plan->rows.streamed_bytes[mode] +=
                    slc_plan_caches(&plan->layouts[layout], blocks, range->first_block + b)
                        ? 0
                        : entry.padded_bytes;
            }
        }
    }
    slc_row_ranges_destroy(&ranges);
    return SLC_OK;
}

/* Scans the ranges of all modes that have a sorted layout (see scan_ranges). */
static enum slc_status scan_modes(const struct slc_layouts *layouts,
                                  struct slc_plan *plan,
                                  uint64_t limit,
                                  uint64_t *most,
                                  struct slc_error *err)
{
    const unsigned order = slc_reader_info(layouts->reader[0])->order;

    *most = 0;
    for (unsigned n = 0; n < order; n++) {
        if ((plan->rows.gathered >> n & 1U) == 0) {
            SLC_TRY(scan_ranges(layouts, plan, n, limit, most, err));
        }
    }
    return SLC_OK;
}

enum slc_status slc_plan_rows_prepare(const struct slc_layouts *layouts,
                                      struct slc_plan *plan,
                                      struct slc_error *err)
{
    const struct slc_layout_info *info = slc_reader_info(layouts->reader[0]);
    struct slc_plan_rows *rows = &plan->rows;
    uint64_t most;

    if (!plan->request.rows.nonzeros) {
        return SLC_OK;
    }
    slc_row_plan_workers(info, plan, 0);
    for (unsigned n = 0; n < info->order; n++) {
        const struct slc_layout_info *read = slc_reader_info(layouts->reader[plan->mode_layout[n]]);

        rows->table_bytes = slc_plan_plus(rows->table_bytes, slc_row_table_bytes(read, n));
        rows->gathered |= (uint32_t)(slc_layout_partitions(read, n) == 0) << n;
        rows->gather_passes[n] = 1;
    }
    if (rows->gathered != 0) {
        rows->gather_nnz = slc_min_u64(slc_max_u64(info->nnz, 1), SLC_ROW_SEGMENT_NNZ);
        rows->gather_bytes = slc_row_gather_bytes(info->order, rows->gather_nnz);
    }
    SLC_TRY(scan_modes(layouts, plan, UINT64_MAX, &most, err));
    if (rows->range_blocks > SLC_PLAN_SLOTS_MAX) {
        return slc_fail(err, SLC_ERR_UNSUPPORTED,
                        "a partition of a sorted layout has %" PRIu64
                        " blocks, but rows are updated from at most %d blocks: build the sorted "
                        "layouts again with larger blocks",
                        rows->range_blocks, (int)SLC_PLAN_SLOTS_MAX);
    }
    return SLC_OK;
}

/* Returns the nonzeros to gather at once for `passes` passes. */
static uint64_t gather_nnz(uint64_t nnz, uint64_t passes)
{
    if (passes == 1) {
        return slc_max_u64(nnz, 1);
    }
    const uint64_t part = slc_div_up_u64(nnz, passes);

    return slc_div_up_u64(part + slc_div_up_u64(part * (GATHER_SIXTEENTHS - 16), 16),
                          SLC_ROW_SEGMENT_NNZ) *
           SLC_ROW_SEGMENT_NNZ;
}

/* Returns the cost of an update of one mode with `passes` passes, in bytes read from a drive;
 * infinity if the memory does not suffice. */
static double gather_cost(const struct slc_plan *plan,
                          const struct slc_layout_info *info,
                          uint64_t passes,
                          uint64_t available)
{
    const double store = (double)plan->layouts[0].store_bytes;
    const uint64_t bytes = slc_row_gather_bytes(info->order, gather_nnz(info->nnz, passes));
    const double cached = plan->request.cache ? (double)available - (double)bytes : 0;

    if (bytes > available) {
        return HUGE_VAL;
    }
    return (double)passes * ((cached < store ? store - cached : 0) + DECODE_COST * store);
}

/* Gives the workers larger buffers, so that a whole range fits if possible, and returns the
 * additional bytes. */
static uint64_t
plan_buffers(const struct slc_layout_info *info, struct slc_plan *plan, uint64_t available)
{
    const uint64_t least = plan->rows.worker_bytes;

    for (uint64_t nnz = plan->rows.range_nnz; nnz > 0; nnz /= 2) {
        slc_row_plan_workers(info, plan, nnz);
        if (plan->rows.worker_bytes - least <= available / BUFFER_PART) {
            break;
        }
    }
    return plan->rows.worker_bytes - least;
}

/* Chooses the modes that keep their nonzeros, if all nonzeros can be gathered at once. `available`
 * includes the memory for gathered nonzeros. */
static void plan_kept(const struct slc_layout_info *info, struct slc_plan *plan, uint64_t available)
{
    struct slc_plan_rows *rows = &plan->rows;
    const uint64_t each = rows->gather_bytes, store = plan->layouts[0].store_bytes;

    if (rows->gather_nnz < info->nnz || !plan->request.cache || available < each + store) {
        return;
    }
    available -= store;
    for (unsigned i = 0; i < info->order; i++) {
        const uint32_t bit = UINT32_C(1) << plan->mode_order[i];
        const bool last = (rows->gathered & ~rows->gather_kept) == bit;

        if ((rows->gathered & bit) != 0 && (last || available - rows->gather_bytes >= each)) {
            rows->gather_kept |= bit;
            rows->gather_bytes += last ? 0 : each;
        }
    }
}

void slc_plan_rows_buffers(const struct slc_layouts *layouts,
                           struct slc_plan *plan,
                           uint64_t available)
{
    const struct slc_layout_info *info = slc_reader_info(layouts->reader[0]);
    struct slc_plan_rows *rows = &plan->rows;
    const uint64_t most = slc_div_up_u64(info->nnz, SLC_ROW_SEGMENT_NNZ);
    uint64_t best = slc_max_u64(most, 1);
    double cost = HUGE_VAL;

    if (!plan->request.rows.nonzeros) {
        return;
    }
    available -= plan_buffers(info, plan, available);
    if (rows->gathered == 0) {
        return;
    }
    available += rows->gather_bytes;
    for (uint64_t passes = 1; passes <= most; passes += 1 + passes / 64) {
        const double this_cost = gather_cost(plan, info, passes, available);

        if (this_cost < cost) {
            cost = this_cost;
            best = passes;
        }
    }
    if (cost < HUGE_VAL) {
        rows->gather_nnz = gather_nnz(info->nnz, best);
        rows->gather_bytes = slc_row_gather_bytes(info->order, rows->gather_nnz);
        plan_kept(info, plan, available);
    }
    for (unsigned n = 0; n < info->order; n++) {
        if ((rows->gathered >> n & 1U) != 0) {
            rows->gather_passes[n] = best;
            plan->layouts[0].passes += (double)best - 1;
            plan->passes += (double)best - 1;
        }
    }
}

double slc_plan_rows_cost(const struct slc_plan *plan)
{
    return (double)plan->iteration_read_bytes + DECODE_COST * (double)plan->iteration_bytes;
}

unsigned slc_plan_rows_slots(const struct slc_layouts *layouts,
                             struct slc_plan *plan,
                             uint64_t available,
                             unsigned useful)
{
    uint64_t most = 0;

    if (!plan->request.rows.nonzeros ||
        plan->request.rows.traversals + plan->request.rows.measures < 2 ||
        scan_modes(layouts, plan, slc_min_u64(available / plan->slot_bytes, SLC_PLAN_SLOTS_MAX),
                   &most, NULL) != SLC_OK) {
        return useful;
    }
    return (unsigned)slc_max_u64(useful, most);
}

enum slc_status slc_plan_rows_finish(const struct slc_layouts *layouts,
                                     struct slc_plan *plan,
                                     uint64_t available,
                                     struct slc_error *err)
{
    const unsigned order = slc_reader_info(layouts->reader[0])->order;
    struct slc_plan_rows *rows = &plan->rows;
    uint64_t most, store = 0;

    if (!plan->request.rows.nonzeros) {
        return SLC_OK;
    }
    SLC_TRY(scan_modes(layouts, plan, plan->slot_count, &most, err));
    for (unsigned n = 0; n < order; n++) {
        const bool measured = plan->request.rows.measures && n == plan->mode_order[order - 1];
        const uint64_t again = slc_max_u64(plan->request.rows.traversals, 1) - 1 + measured;

        rows->repeated_bytes =
            slc_plan_plus(rows->repeated_bytes, slc_plan_times(rows->streamed_bytes[n], again));
        store = slc_plan_plus(store, plan->layouts[plan->mode_layout[n]].store_bytes);
        rows->missing_bytes += (rows->gathered >> n & 1U) != 0 ? plan->layouts[0].store_bytes : 0;
    }
    plan->iteration_read_bytes = slc_plan_plus(plan->iteration_read_bytes, rows->repeated_bytes);
    if (rows->gathered != 0) {
        const uint64_t cached =
            plan->request.cache ? slc_plan_plus(available, rows->gather_bytes) : 0;

        rows->sorted_read_bytes = store > cached ? store - cached : 0;
    }
    return SLC_OK;
}
