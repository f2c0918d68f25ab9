/*
 * Dividing the memory of a device that takes whole blocks.
 *
 * What it cannot do without is asked for first: factors, output and slots of the largest block, one
 * for each stream that was asked for, or one alone. Then come slots that gather several blocks, for
 * copies and launches of some megabytes cost less each, and more of them, so that copying and
 * computing overlap; but no more than a share, because a block that stays in the device's memory
 * saves its bytes in every pass, while a larger slot saves a few microseconds. All else is for
 * blocks that stay.
 */
#include "engine/planning/planning_impl.h"

#include "base/memory/checked.h"
#include "engine/executor/gpu_executor.h"
#include "engine/executor/gpu_group.h"
#include "storage/codec/describe.h"

#include <inttypes.h>
#include <string.h>

/*
 * Copies of 16 MiB and more reach the full rate of a bus; published measurements have 4 MiB at 96 %
 * of it.
 */
#define SLOT_BYTES (UINT64_C(16) << 20)

/* Of the bytes of the layouts. A CPU that could do more than an eighth of the work is seldom found
 * beside a device. */
#define MEASURED_FRACTION 0.875

enum {
    STREAMS = 4,     /* worth having: one copied to, one computed, and one of each to be ready */
    SLOTS_SHARE = 4, /* a slot in so many of the bytes left may be spent on slots */
    /* Times that a guess of what residents take is corrected. */
    CORRECTIONS = 8
};

/* What the largest block of the layouts takes. */
struct largest {
    uint64_t bytes, expanded_bytes;
    uint64_t tiles;
};

static struct largest find_largest(const struct slc_layouts *layouts)
{
    struct largest largest = {0, 0, 0};

    for (unsigned l = 0; l < layouts->count; l++) {
        const struct slc_layout_info *info = slc_reader_info(layouts->reader[l]);

        for (uint64_t b = 0; b < info->block_count; b++) {
            struct slc_block_entry entry;

            slc_reader_entry(layouts->reader[l], b, &entry);
            largest.bytes = slc_max_u64(largest.bytes, entry.padded_bytes);
            largest.expanded_bytes =
                slc_max_u64(largest.expanded_bytes, slc_describe_expanded_bound(info, &entry));
            largest.tiles = slc_max_u64(largest.tiles, entry.tile_count);
        }
    }
    /* A tensor without nonzeros has no blocks, and a device slots all the same. */
    largest.bytes = slc_max_u64(largest.bytes, SLC_PAGE_BYTES);
    largest.tiles = slc_max_u64(largest.tiles, 1);
    return largest;
}

/* Slots that take so many of the largest blocks. */
static void
take_slots(struct slc_plan *plan, const struct largest *largest, unsigned streams, uint64_t blocks)
{
    struct slc_plan_gpu *gpu = &plan->gpu;

    /* Places begin at whole lines; what expands is a little of a block, or one of few tiles. */
    gpu->streams = streams;
    gpu->slot_bytes = blocks * slc_div_up_u64(largest->bytes, SLC_DEVICE_ALIGN) * SLC_DEVICE_ALIGN;
    gpu->expanded_bytes = slc_plan_times(blocks * SLC_DEVICE_ALIGN,
                                         slc_div_up_u64(largest->expanded_bytes, SLC_DEVICE_ALIGN));
    gpu->slot_tiles = (uint32_t)slc_min_u64(blocks * largest->tiles, UINT32_MAX);
}

static uint64_t device_bytes(const struct slc_layouts *layouts, const struct slc_plan *plan)
{
    const struct slc_device *device = plan->request.gpu;
    struct slc_device_problem problem;

    slc_gpu_executor_problem(layouts, plan, &problem);
    return device->ops->memory.memory_bytes(device, &problem);
}

/* Larger slots, and more of them, in a share of the room that the smallest leave. */
static void
widen_slots(const struct slc_layouts *layouts, struct slc_plan *plan, const struct largest *largest)
{
    struct slc_plan_gpu *gpu = &plan->gpu;
    const unsigned asked = plan->request.streams;
    const uint64_t minimum = gpu->minimum_bytes;
    const uint64_t allowed = (gpu->budget_bytes - minimum) / SLOTS_SHARE;
    const uint64_t blocks_most =
        slc_max_u64(slc_min_u64(SLOT_BYTES, plan->layouts[0].store_bytes) / largest->bytes, 1);

    for (unsigned streams = asked != 0 ? asked : STREAMS; streams > 0; streams--) {
        for (uint64_t blocks = blocks_most; blocks > 0; blocks /= 2) {
            take_slots(plan, largest, streams, blocks);
            if (device_bytes(layouts, plan) - minimum <= allowed) {
                return;
            }
        }
        if (asked != 0) {
            break;
        }
    }
    take_slots(plan, largest, asked != 0 ? asked : 1, 1);
}

/*
 * Takes as much as there is room for of what values may expand to, of the blocks that stay.
 * Cost: a few measurements, as each goes down by what the one before was too much.
 */
static void
leave_room_to_expand(const struct slc_layouts *layouts, struct slc_plan *plan, uint64_t wanted)
{
    struct slc_plan_gpu *gpu = &plan->gpu;
    uint64_t taken = device_bytes(layouts, plan);

    gpu->kept_expanded_bytes = slc_min_u64(wanted, gpu->budget_bytes - taken);
    for (taken = device_bytes(layouts, plan); taken > gpu->budget_bytes;
         taken = device_bytes(layouts, plan)) {
        /* In whole lines: a device may round what it takes. */
        const uint64_t lines = slc_div_up_u64(taken - gpu->budget_bytes, SLC_DEVICE_ALIGN);

        gpu->kept_expanded_bytes -= slc_min_u64(lines * SLC_DEVICE_ALIGN, gpu->kept_expanded_bytes);
    }
}

/*
 * What may be kept of the layouts at most where the work is shared, for the CPU gets no block that
 * stays: the device's fraction, or, where that is to be found out, so much that the CPU can show
 * what it does. What it leaves the device gets by a copy.
 */
static uint64_t hybrid_bytes(const struct slc_layouts *layouts, const struct slc_plan *plan)
{
    const struct slc_hybrid_wish *hybrid = &plan->request.hybrid;
    const double fraction =
        hybrid->kind == SLC_HYBRID_STATIC ? hybrid->fraction : MEASURED_FRACTION;
    uint64_t bytes = 0;

    for (unsigned l = 0; l < plan->layout_count; l++) {
        if (plan->layouts[l].passes > 0) {
            /* A layout of one block is not shared. */
            const bool whole = hybrid->kind != SLC_HYBRID_STATIC &&
                               slc_reader_info(layouts->reader[l])->block_count < 2;
            const double part = (whole ? 1 : fraction) * (double)plan->layouts[l].store_bytes;

            bytes = slc_plan_plus(bytes, (uint64_t)part);
        }
    }
    return hybrid->kind == SLC_HYBRID_NONE || fraction == 1 ? UINT64_MAX : bytes;
}

/* Blocks that stay, in all that is left. */
static void keep_residents(const struct slc_layouts *layouts, struct slc_plan *plan)
{
    struct slc_plan_gpu *gpu = &plan->gpu;
    const uint64_t count = slc_max_u64(plan->request.gpu_count, 1);
    uint64_t room =
        slc_min_u64(gpu->budget_bytes - device_bytes(layouts, plan), hybrid_bytes(layouts, plan));

    for (unsigned i = 0; i < CORRECTIONS; i++) {
        slc_plan_residents(layouts, plan, slc_plan_times(room, count));
        uint64_t unknown = gpu->kept_expanded_bytes;
        gpu->kept_expanded_bytes = 0;
        uint64_t taken = device_bytes(layouts, plan);
        if (taken <= gpu->budget_bytes) {
            leave_room_to_expand(layouts, plan, unknown);
            return;
        }
        room -= slc_min_u64(taken - gpu->budget_bytes, room);
    }
    slc_plan_residents(layouts, plan, 0);
}

static enum slc_status fail_gpu(const struct slc_plan *plan, struct slc_error *err)
{
    const struct slc_plan_gpu *gpu = &plan->gpu;
    const uint64_t mib = UINT64_C(1) << 20;

    if (gpu->minimum_bytes == UINT64_MAX) {
        return slc_fail(err, SLC_ERR_BUDGET,
                        "the factors of this rank need more memory than a device can have; use a "
                        "smaller rank");
    }
    return slc_fail_field(err, SLC_ERR_BUDGET, SLC_FIELD_DEVICE_MEMORY,
                          "rank %" PRIu32 " with slots of %" PRIu64 " KiB on %s needs %" PRIu64
                          " MiB of device memory or more; %" PRIu64 " MiB may be used",
                          plan->request.rank, slc_div_up_u64(gpu->slot_bytes, 1024), gpu->name,
                          slc_div_up_u64(gpu->minimum_bytes, mib), gpu->budget_bytes / mib);
}

/* What there is; where there are several devices each gets what the smallest has room for. */
static void look_at_devices(const struct slc_layouts *layouts, struct slc_plan *plan)
{
    const struct slc_plan_request *request = &plan->request;
    struct slc_plan_gpu *gpu = &plan->gpu;
    struct slc_device_info info;

    request->gpu->ops->info(request->gpu, &info);
    memcpy(gpu->name, info.name, sizeof gpu->name);
    gpu->described = info.described;
    gpu->multiprocessors = info.multiprocessors;
    gpu->shared_bytes = info.shared_bytes;
    gpu->device_total_bytes = info.total_bytes;
    gpu->budget_bytes = info.free_bytes;
    for (unsigned d = 0; d < request->gpu_count; d++) {
        request->gpus[d]->ops->info(request->gpus[d], &info);
        gpu->budget_bytes = slc_min_u64(gpu->budget_bytes, info.free_bytes);
    }
    if (request->gpu_count > 0) {
        gpu->unit_most = (uint32_t)slc_min_u64(slc_gpu_group_units_most(layouts, plan), UINT32_MAX);
    }
}

/* What the host has to hold for the devices as they are planned. */
static void count_host_bytes(const struct slc_layouts *layouts, struct slc_plan *plan)
{
    const struct slc_device *device = plan->request.gpu;
    const uint64_t count = slc_max_u64(plan->request.gpu_count, 1);
    struct slc_device_problem problem;

    slc_gpu_executor_problem(layouts, plan, &problem);
    plan->device_bytes =
        slc_plan_plus(slc_stream_device_bytes(layouts, plan),
                      slc_plan_times(device->ops->memory.host_bytes(device, &problem), count));
    if (plan->request.gpu_count > 0) {
        plan->device_bytes =
            slc_plan_plus(plan->device_bytes, slc_gpu_group_memory_bytes(layouts, plan));
    }
}

enum slc_status
slc_plan_gpu_make(const struct slc_layouts *layouts, struct slc_plan *plan, struct slc_error *err)
{
    struct slc_plan_gpu *gpu = &plan->gpu;
    const struct largest largest = find_largest(layouts);

    look_at_devices(layouts, plan);
    take_slots(plan, &largest, plan->request.streams != 0 ? plan->request.streams : 1, 1);
    gpu->minimum_bytes = device_bytes(layouts, plan);
    gpu->total_bytes = gpu->minimum_bytes;
    gpu->factor_bytes = gpu->minimum_bytes;
    /* Also where the device's budget fails: the smallest of the host's is named then, too. */
    count_host_bytes(layouts, plan);
    if (gpu->minimum_bytes > gpu->budget_bytes || gpu->minimum_bytes == UINT64_MAX) {
        return fail_gpu(plan, err);
    }
    widen_slots(layouts, plan, &largest);
    uint64_t slots = device_bytes(layouts, plan);
    gpu->slots_bytes = slots - gpu->minimum_bytes;
    if (plan->request.cache) {
        keep_residents(layouts, plan);
    }
    gpu->total_bytes = device_bytes(layouts, plan);
    gpu->resident_bytes = gpu->total_bytes - slots;
    count_host_bytes(layouts, plan);
    return SLC_OK;
}
