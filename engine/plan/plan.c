/* Names the enum values of a plan, and computes slots and copied bytes from a plan. */
#include "engine/plan/plan.h"

#include "engine/plan/plan_sizes.h"

#include <string.h>

/* An NVMe drive reaches its full rate with this many bytes of reads in flight (measured: 32 to 64
 * MiB). */
#define FLIGHT_BYTES (UINT64_C(48) << 20)

#define NAMED(type) (sizeof type##_names / sizeof type##_names[0])

/* Defines TYPE_name and TYPE_parse for an enumeration whose values start at 0. TYPE_name returns
 * "?" for an unknown value. */
#define NAME_CHOICES(type, ...)                                                                    \
    static const char *const type##_names[] = {__VA_ARGS__};                                       \
                                                                                                   \
    const char *type##_name(enum type choice)                                                      \
    {                                                                                              \
        return (size_t)choice < NAMED(type) ? type##_names[choice] : "?";                          \
    }                                                                                              \
                                                                                                   \
    bool type##_parse(const char *name, enum type *choice)                                         \
    {                                                                                              \
        for (size_t i = 0; i < NAMED(type); i++) {                                                 \
            if (strcmp(name, type##_names[i]) == 0) {                                              \
                *choice = (enum type)i;                                                            \
                return true;                                                                       \
            }                                                                                      \
        }                                                                                          \
        return false;                                                                              \
    }

NAME_CHOICES(slc_schedule, "auto", "largest", "file")
NAME_CHOICES(slc_copies, "auto", "never", "always")
NAME_CHOICES(slc_passes, "auto", "plain", "fused")
NAME_CHOICES(slc_split, "partitions", "nnz")
NAME_CHOICES(slc_layout_choice, "auto", "blco", "sorted")

enum slc_status
slc_plan_check_order(unsigned order, const unsigned *mode_order, struct slc_error *err)
{
    unsigned seen = 0;

    for (unsigned k = 0; k < order; k++) {
        if (mode_order[k] >= order || (seen & (1U << mode_order[k])) != 0) {
            return slc_fail(
                err, SLC_ERR_USAGE,
                "the mode order must name each of the modes 1 to %u once; element %u is %u", order,
                k + 1, mode_order[k] + 1);
        }
        seen |= 1U << mode_order[k];
    }
    return SLC_OK;
}

/* Returns the bytes of a layout that one pass copies to GPUs. */
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
        /* A device computes one mode per pass, so `passes` is an integer. */
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
        /* Tests nnz < max / 1.25 in integers. The products cannot overflow, because blocks have far
         * fewer than 2^61 nonzeros. */
        if (entry.nnz * 5 < info->max_block_nnz * 4) {
            small++;
        }
    }
    /* The median block is small if and only if more than half of the blocks are small. */
    return small <= info->block_count / 2;
}

unsigned slc_plan_slots_useful(const struct slc_plan *plan, uint64_t blocks)
{
    const uint64_t flight = slc_div_up_u64(FLIGHT_BYTES, plan->slot_bytes);
    const uint64_t depth = slc_min_u64(slc_max_u64(flight, SLC_PLAN_SLOTS_MIN), SLC_PLAN_SLOTS_MAX);
    const uint64_t copied = (uint64_t)plan->gpu.streams * slc_max_u64(plan->request.gpu_count, 1);
    const uint64_t busy = plan->fusion.modes != 0 || plan->rows.range_blocks > 0
                              ? (uint64_t)plan->threads * slc_plan_slots_min(plan)
                              : slc_min_u64(plan->threads + copied, depth);

    return (unsigned)slc_max_u64(slc_min_u64(slc_min_u64(depth + busy, SLC_PLAN_SLOTS_MAX), blocks),
                                 slc_plan_slots_min(plan));
}

unsigned slc_plan_slots_min(const struct slc_plan *plan)
{
    uint64_t least = plan->request.slots != 0 ? plan->request.slots : SLC_PLAN_SLOTS_MIN;

    least = slc_max_u64(least, plan->rows.range_blocks);
    for (unsigned n = 0; n < SLC_MAX_ORDER; n++) {
        if ((plan->fusion.modes >> n & 1U) != 0) {
            least = slc_max_u64(least, plan->fusion.range_blocks[n]);
        }
    }
    return (unsigned)least;
}
