/* What a plan says: names of its choices, and figures that follow from it. */
#include "engine/plan/plan.h"

#include "engine/plan/plan_sizes.h"

#include <string.h>

/* Reads in flight that keep one NVMe drive at its full rate (32 to 64 MiB measured). */
#define FLIGHT_BYTES (UINT64_C(48) << 20)

const char *slc_schedule_name(enum slc_schedule schedule)
{
    switch (schedule) {
    case SLC_SCHEDULE_AUTO:
        return "auto";
    case SLC_SCHEDULE_LARGEST:
        return "largest";
    case SLC_SCHEDULE_FILE:
        return "file";
    }
    return "?";
}

bool slc_schedule_parse(const char *name, enum slc_schedule *schedule)
{
    for (enum slc_schedule s = SLC_SCHEDULE_AUTO; s <= SLC_SCHEDULE_FILE; s++) {
        if (strcmp(name, slc_schedule_name(s)) == 0) {
            *schedule = s;
            return true;
        }
    }
    return false;
}

const char *slc_copies_name(enum slc_copies copies)
{
    switch (copies) {
    case SLC_COPIES_AUTO:
        return "auto";
    case SLC_COPIES_NEVER:
        return "never";
    case SLC_COPIES_ALWAYS:
        return "always";
    }
    return "?";
}

bool slc_copies_parse(const char *name, enum slc_copies *copies)
{
    for (enum slc_copies c = SLC_COPIES_AUTO; c <= SLC_COPIES_ALWAYS; c++) {
        if (strcmp(name, slc_copies_name(c)) == 0) {
            *copies = c;
            return true;
        }
    }
    return false;
}

const char *slc_passes_name(enum slc_passes passes)
{
    switch (passes) {
    case SLC_PASSES_AUTO:
        return "auto";
    case SLC_PASSES_PLAIN:
        return "plain";
    case SLC_PASSES_FUSED:
        return "fused";
    }
    return "?";
}

bool slc_passes_parse(const char *name, enum slc_passes *passes)
{
    for (enum slc_passes p = SLC_PASSES_AUTO; p <= SLC_PASSES_FUSED; p++) {
        if (strcmp(name, slc_passes_name(p)) == 0) {
            *passes = p;
            return true;
        }
    }
    return false;
}

const char *slc_split_name(enum slc_split split)
{
    switch (split) {
    case SLC_SPLIT_PARTITIONS:
        return "partitions";
    case SLC_SPLIT_NNZ:
        return "nnz";
    }
    return "?";
}

bool slc_split_parse(const char *name, enum slc_split *split)
{
    for (enum slc_split s = SLC_SPLIT_PARTITIONS; s <= SLC_SPLIT_NNZ; s++) {
        if (strcmp(name, slc_split_name(s)) == 0) {
            *split = s;
            return true;
        }
    }
    return false;
}

enum slc_status
slc_plan_check_order(unsigned order, const unsigned *mode_order, struct slc_error *err)
{
    unsigned seen = 0;

    for (unsigned k = 0; k < order; k++) {
        if (mode_order[k] >= order || (seen & (1U << mode_order[k])) != 0) {
            return slc_fail(err, SLC_ERR_USAGE,
                            "the mode order has to name each of the modes 1 to %u once; entry %u "
                            "is %u",
                            order, k + 1, mode_order[k] + 1);
        }
        seen |= 1U << mode_order[k];
    }
    return SLC_OK;
}

/* Of a layout, in a pass. */
static uint64_t copied_bytes(const struct slc_plan *plan, const struct slc_plan_layout *layout)
{
    const struct slc_hybrid_wish *hybrid = &plan->request.hybrid;
    const double part = hybrid->kind == SLC_HYBRID_STATIC ? hybrid->fraction : 1;
    const uint64_t computed =
        part < 1 ? (uint64_t)(part * (double)layout->store_bytes) : layout->store_bytes;

    return computed - slc_min_u64(layout->resident_bytes, computed);
}

uint64_t slc_plan_pass_copied(const struct slc_plan *plan, unsigned mode)
{
    return plan->request.gpu != NULL ? copied_bytes(plan, &plan->layouts[plan->mode_layout[mode]])
                                     : 0;
}

uint64_t slc_plan_iteration_copied(const struct slc_plan *plan)
{
    uint64_t bytes = 0;

    for (unsigned l = 0; l < plan->layout_count && plan->request.gpu != NULL; l++) {
        /* On a device each pass is for one mode: there are no halves. */
        bytes = slc_plan_plus(bytes, slc_plan_times((uint64_t)plan->layouts[l].passes,
                                                    copied_bytes(plan, &plan->layouts[l])));
    }
    return bytes;
}

bool slc_plan_blocks_near_equal(const struct slc_reader *reader)
{
    const struct slc_layout_info *info = slc_reader_info(reader);
    uint64_t small = 0;

    for (uint64_t b = 0; b < info->block_count; b++) {
        struct slc_block_entry entry;

        slc_reader_entry(reader, b, &entry);
        /* nnz < max / 1.25, in integers; block sizes are far below 2^61. */
        if (entry.nnz * 5 < info->max_block_nnz * 4) {
            small++;
        }
    }
    /* The median is small exactly when more than half of the blocks are. */
    return small <= info->block_count / 2;
}

unsigned slc_plan_slots_wanted(const struct slc_plan *plan, uint64_t blocks)
{
    const uint64_t flight = slc_div_up_u64(FLIGHT_BYTES, plan->slot_bytes);
    const uint64_t depth = slc_min_u64(slc_max_u64(flight, SLC_PLAN_SLOTS_MIN), SLC_PLAN_SLOTS_MAX);
    const uint64_t copied = (uint64_t)plan->gpu.streams * slc_max_u64(plan->request.gpu_count, 1);
    const uint64_t busy = plan->fusion.modes != 0
                              ? (uint64_t)plan->threads * slc_plan_slots_least(plan)
                              : slc_min_u64(plan->threads + copied, depth);

    return (unsigned)slc_max_u64(slc_min_u64(slc_min_u64(depth + busy, SLC_PLAN_SLOTS_MAX), blocks),
                                 slc_plan_slots_least(plan));
}

unsigned slc_plan_slots_least(const struct slc_plan *plan)
{
    uint64_t least = plan->request.slots != 0 ? plan->request.slots : SLC_PLAN_SLOTS_MIN;

    for (unsigned n = 0; n < SLC_MAX_ORDER; n++) {
        if ((plan->fusion.modes >> n & 1U) != 0) {
            least = slc_max_u64(least, plan->fusion.range_blocks[n]);
        }
    }
    return (unsigned)least;
}
