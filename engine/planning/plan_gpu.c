/* Divides the memory of a device that processes whole blocks.
 *
 * Required memory comes first: factors, output, and slots for the largest block. There is one slot
 * per requested stream, or one slot if no number of streams is requested. Next come larger slots,
 * which gather several blocks, because a copy or kernel launch costs less per byte if it covers a
 * few megabytes. More slots let copying and computing overlap. Slots get only a part of the
 * remaining memory, because a resident block saves its bytes in every pass, while a larger slot
 * saves a few microseconds. All other memory is for resident blocks. */
#include "engine/planning/planning_impl.h"

#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "engine/executor/gpu_executor.h"
#include "engine/executor/gpu_group.h"
#include "engine/executor/group_division.h"
#include "storage/codec/describe.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Copies of at least 16 MiB reach the full rate of the bus between host and GPU. Published
 * measurements show 96 % of that rate for copies of 4 MiB. */
#define SLOT_BYTES (UINT64_C(16) << 20)

/* With slots of at least 6 MiB, three streams are faster than four streams with smaller slots: each
 * batch of about a million nonzeros has an overhead of 20 us (H200). */
#define GOOD_SLOT_BYTES (UINT64_C(6) << 20)

/* Largest fraction of the layouts that is kept resident before the rates of CPU and device are
 * known. A CPU can rarely do more than an eighth of the work. */
#define MEASURED_FRACTION 0.875

enum {
    STREAMS = 4,       /* one copies, one computes, and two more are ready */
    STREAMS_LEAST = 3, /* one copies, one computes, and one more is ready */
    SLOTS_SHARE = 3,   /* at most 1/3 of the remaining bytes is used for slots */
    /* A slot of several blocks has space for the expanded values of one in four blocks, because
     * most blocks do not expand. If more blocks expand, a batch has fewer blocks. */
    EXPANDED_SHARE = 4,
    /* Maximum number of corrections of the estimated bytes of resident blocks. */
    CORRECTIONS = 8
};

/* Largest sizes over all blocks of the layouts. */
struct largest {
    uint64_t bytes, expanded_bytes;
    uint64_t tiles;
    bool all_expand; /* true if a block has codec lz4, whose values always expand */
};

static struct largest find_largest(const struct slc_layouts *layouts)
{
    struct largest largest = {.all_expand = false};

    for (unsigned l = 0; l < layouts->count; l++) {
        const struct slc_layout_info *info = slc_reader_info(layouts->reader[l]);

        for (uint64_t b = 0; b < info->block_count; b++) {
            struct slc_block_entry entry;

            slc_reader_entry(layouts->reader[l], b, &entry);
            largest.bytes = slc_max_u64(largest.bytes, entry.padded_bytes);
            largest.expanded_bytes =
                slc_max_u64(largest.expanded_bytes, slc_describe_expanded_bound(info, &entry));
            largest.tiles = slc_max_u64(largest.tiles, entry.tile_count);
            largest.all_expand = largest.all_expand || entry.codec == SLC_CODEC_LZ4;
        }
    }
    /* A tensor without nonzeros has no blocks, but a device needs slots. */
    largest.bytes = slc_max_u64(largest.bytes, SLC_PAGE_BYTES);
    largest.tiles = slc_max_u64(largest.tiles, 1);
    return largest;
}

/* Sets the number of streams, and the sizes of slots that hold `blocks` blocks of the largest
 * size. */
static void
set_slots(struct slc_plan *plan, const struct largest *largest, unsigned streams, uint64_t blocks)
{
    struct slc_plan_gpu *gpu = &plan->gpu;
    const uint64_t expanded = largest->all_expand ? blocks : slc_div_up_u64(blocks, EXPANDED_SHARE);

    /* Blocks, and the expanded values of each block, start at multiples of SLC_DEVICE_ALIGN
     * bytes. */
    gpu->streams = streams;
    gpu->slot_bytes = blocks * slc_div_up_u64(largest->bytes, SLC_DEVICE_ALIGN) * SLC_DEVICE_ALIGN;
    gpu->expanded_bytes = slc_plan_times(expanded * SLC_DEVICE_ALIGN,
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

/* Chooses the most streams (streams[0] to streams[1]), and for these the largest slots
 * (blocks_of[0] to blocks_of[1] blocks). The slots may need at most `allowed` bytes more than the
 * smallest slots. Returns false if no choice fits. */
static bool try_slots(const struct slc_layouts *layouts,
                      struct slc_plan *plan,
                      const struct largest *largest,
                      const unsigned streams[2],
                      const uint64_t blocks_of[2],
                      uint64_t allowed)
{
    for (unsigned s = streams[1]; s >= streams[0]; s--) {
        for (uint64_t blocks = blocks_of[1]; blocks >= blocks_of[0]; blocks /= 2) {
            set_slots(plan, largest, s, blocks);
            if (device_bytes(layouts, plan) - plan->gpu.minimum_bytes <= allowed) {
                return true;
            }
        }
    }
    return false;
}

/* Increases the size and number of slots. Uses at most 1/SLOTS_SHARE of the memory that remains
 * with the smallest slots. */
static void
widen_slots(const struct slc_layouts *layouts, struct slc_plan *plan, const struct largest *largest)
{
    const unsigned requested = plan->request.streams;
    const uint64_t allowed = (plan->gpu.budget_bytes - plan->gpu.minimum_bytes) / SLOTS_SHARE;
    const uint64_t most =
        slc_max_u64(slc_min_u64(SLOT_BYTES, plan->layouts[0].store_bytes) / largest->bytes, 1);
    const uint64_t good = slc_div_up_u64(GOOD_SLOT_BYTES, largest->bytes);
    const unsigned good_streams[2] = {requested != 0 ? requested : STREAMS_LEAST,
                                      requested != 0 ? requested : STREAMS};
    const unsigned any_streams[2] = {requested != 0 ? requested : 1, good_streams[1]};

    if (!try_slots(layouts, plan, largest, good_streams, (uint64_t[]){good, most}, allowed) &&
        !try_slots(layouts, plan, largest, any_streams, (uint64_t[]){1, most}, allowed)) {
        set_slots(plan, largest, any_streams[0], 1);
    }
}

/* Reserves memory for the expanded values of resident blocks, as far as `limit` allows. Cost: a few
 * size queries, because each iteration subtracts the excess that the previous query found. */
static void
reserve_expansion(const struct slc_layouts *layouts, struct slc_plan *plan, uint64_t limit)
{
    struct slc_plan_gpu *gpu = &plan->gpu;
    uint64_t used = device_bytes(layouts, plan);

    gpu->kept_expanded_bytes = slc_min_u64(limit, gpu->budget_bytes - used);
    for (used = device_bytes(layouts, plan); used > gpu->budget_bytes;
         used = device_bytes(layouts, plan)) {
        /* Round up to SLC_DEVICE_ALIGN, because a device may round sizes up. */
        const uint64_t lines = slc_div_up_u64(used - gpu->budget_bytes, SLC_DEVICE_ALIGN);

        gpu->kept_expanded_bytes -= slc_min_u64(lines * SLC_DEVICE_ALIGN, gpu->kept_expanded_bytes);
    }
}

/* Returns an upper bound for the resident bytes if the CPU shares the work. The CPU cannot compute
 * resident blocks, so at most the device's fraction of the blocks is resident. If the fraction is
 * unknown, enough blocks are left to measure the rate of the CPU. */
static uint64_t hybrid_bytes(const struct slc_layouts *layouts, const struct slc_plan *plan)
{
    const struct slc_hybrid_wish *hybrid = &plan->request.hybrid;
    const double fraction =
        hybrid->kind == SLC_HYBRID_STATIC ? hybrid->fraction : MEASURED_FRACTION;
    uint64_t bytes = 0;

    for (unsigned l = 0; l < plan->layout_count; l++) {
        if (plan->layouts[l].passes > 0) {
            /* A layout with one block cannot be divided. */
            const bool whole = hybrid->kind != SLC_HYBRID_STATIC &&
                               slc_reader_info(layouts->reader[l])->block_count < 2;
            const double part = (whole ? 1 : fraction) * (double)plan->layouts[l].store_bytes;

            bytes = slc_plan_plus(bytes, (uint64_t)part);
        }
    }
    return hybrid->kind == SLC_HYBRID_NONE || fraction == 1 ? UINT64_MAX : bytes;
}

/* If CPU and GPU share the work and device memory suffices, adds memory for the blocks that either
 * may compute. Without this memory, a pass in which the GPU computes these blocks, such as a pass
 * without the CPU, would copy them. */
static void keep_cached(const struct slc_layouts *layouts, struct slc_plan *plan)
{
    const struct slc_plan_gpu before = plan->gpu;

    if (plan->request.hybrid.kind != SLC_HYBRID_NONE) {
        slc_plan_keep_all(layouts, plan);
        if (device_bytes(layouts, plan) > plan->gpu.budget_bytes) {
            plan->gpu = before;
        }
    }
}

/* Reduces `available`, the mean bytes per GPU for resident blocks, after a GPU exceeded its budget
 * by `excess`. This GPU may own more than the mean, so the reduction is scaled. */
static uint64_t less_available(const struct slc_plan *plan, uint64_t available, uint64_t excess)
{
    const double kept = (double)slc_max_u64(plan->gpu.kept_bytes, available);

    return available -
           slc_min_u64((uint64_t)ceil((double)excess * ((double)available / kept)), available);
}

/* Keeps blocks resident in all remaining memory. */
static void
keep_residents(const struct slc_layouts *layouts, struct slc_plan *plan, uint32_t *const *owners)
{
    struct slc_plan_gpu *gpu = &plan->gpu;
    const uint64_t count = slc_max_u64(plan->request.gpu_count, 1);
    uint64_t available =
        slc_min_u64(gpu->budget_bytes - device_bytes(layouts, plan), hybrid_bytes(layouts, plan));

    for (unsigned i = 0; i < CORRECTIONS; i++) {
        slc_plan_residents(layouts, plan, owners, slc_plan_times(available, count));
        uint64_t unknown = gpu->kept_expanded_bytes;
        gpu->kept_expanded_bytes = 0;
        uint64_t used = device_bytes(layouts, plan);
        if (used <= gpu->budget_bytes) {
            reserve_expansion(layouts, plan, unknown);
            keep_cached(layouts, plan);
            return;
        }
        available = less_available(plan, available, used - gpu->budget_bytes);
    }
    slc_plan_residents(layouts, plan, owners, 0);
}

/* Finds the owners of all blocks, and calls keep_residents. */
static enum slc_status
divide_residents(const struct slc_layouts *layouts, struct slc_plan *plan, struct slc_error *err)
{
    const struct slc_plan_request *request = &plan->request;
    uint32_t *owners[SLC_MAX_LAYOUTS] = {NULL};
    enum slc_status status = SLC_OK;

    for (unsigned l = 0; l < plan->layout_count && request->gpu_count > 1 && status == SLC_OK;
         l++) {
        if (plan->layouts[l].passes > 0) {
            owners[l] =
                slc_calloc(slc_reader_info(layouts->reader[l])->block_count, sizeof *owners[l]);
            status = slc_check_memory(owners[l] != NULL, err, "to divide the blocks of a layout");
            SLC_THEN(status, slc_group_owners(layouts->reader[l], request->split,
                                              request->gpu_count, owners[l], err));
        }
    }
    if (status == SLC_OK) {
        keep_residents(layouts, plan, owners);
    }
    for (unsigned l = 0; l < SLC_MAX_LAYOUTS; l++) {
        slc_free(owners[l]);
    }
    return status;
}

static enum slc_status fail_gpu(const struct slc_plan *plan, struct slc_error *err)
{
    const struct slc_plan_gpu *gpu = &plan->gpu;
    const uint64_t mib = UINT64_C(1) << 20;

    if (gpu->minimum_bytes == UINT64_MAX) {
        return slc_fail(
            err, SLC_ERR_BUDGET,
            "the factors of this rank need more memory than a device can have; use a smaller rank");
    }
    return slc_fail_field(err, SLC_ERR_BUDGET, SLC_FIELD_DEVICE_MEMORY,
                          "rank %" PRIu32 " with slots of %" PRIu64 " KiB on %s needs %" PRIu64
                          " MiB of device memory or more; the limit is %" PRIu64 " MiB",
                          plan->request.rank, slc_div_up_u64(gpu->slot_bytes, 1024), gpu->name,
                          slc_div_up_u64(gpu->minimum_bytes, mib), gpu->budget_bytes / mib);
}

/* Queries the budgets of the devices. If there are several devices, all get the smallest of their
 * budgets. */
static void query_devices(const struct slc_layouts *layouts, struct slc_plan *plan)
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

/* Counts the host memory that the planned devices need. */
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

    query_devices(layouts, plan);
    set_slots(plan, &largest, plan->request.streams != 0 ? plan->request.streams : 1, 1);
    gpu->minimum_bytes = device_bytes(layouts, plan);
    gpu->total_bytes = gpu->minimum_bytes;
    gpu->factor_bytes = gpu->minimum_bytes;
    /* Host memory is counted even if the device budget is too small, so that the plan also has the
     * smallest sufficient host budget. */
    count_host_bytes(layouts, plan);
    if (gpu->minimum_bytes > gpu->budget_bytes || gpu->minimum_bytes == UINT64_MAX) {
        return fail_gpu(plan, err);
    }
    widen_slots(layouts, plan, &largest);
    uint64_t slots = device_bytes(layouts, plan);
    gpu->slots_bytes = slots - gpu->minimum_bytes;
    if (plan->request.cache) {
        SLC_TRY(divide_residents(layouts, plan, err));
    }
    gpu->total_bytes = device_bytes(layouts, plan);
    gpu->resident_bytes = gpu->total_bytes - slots;
    gpu->transcoded_bytes = plan->request.encoded ? 0 : gpu->budget_bytes - gpu->total_bytes;
    count_host_bytes(layouts, plan);
    return SLC_OK;
}
