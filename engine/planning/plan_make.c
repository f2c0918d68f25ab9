/* Makes one plan: counts all memory and divides the budget.
 *
 * The minimum is the sum of the required memory: process, index, matrices, scratch, decoders, two
 * slots. The rest of the budget goes first to slots, up to the number that keeps a drive busy, and
 * then to the cache. A cached byte saves one read byte per pass; more slots than keep a drive busy
 * save nothing. If the whole layout fits in memory, the cache comes first, because slots are then
 * needed only in the first pass.
 *
 * Cost: a few scans of all index entries. Invariant: total_bytes is the sum of the other byte
 * counts; on success, minimum_bytes <= total_bytes <= budget_bytes. */
#include "engine/planning/planning_impl.h"

#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "base/thread/team.h"
#include "cpu/cpu.h"
#include "engine/executor/cpu_groups.h"
#include "engine/executor/replica.h"
#include "engine/product/ttm.h"
#include "engine/solve/cp.h"
#include "engine/stream/relabel.h"
#include "engine/stream/tile_rows.h"

#include <inttypes.h>
#include <string.h>

/* Margin for memory that the process touches after planning: pages of the program, BLAS and LAPACK,
 * packing buffers of BLAS, records of the ring (below 3 KiB per slot), and the rounding of mappings
 * to huge pages. */
#define LIBRARY_BYTES (UINT64_C(8) << 20)
/* process_bytes is rounded up to a multiple of this. Otherwise the next run could reject a budget
 * equal to the minimum that this run reports, because a few more library pages are resident. */
#define PROCESS_UNIT (UINT64_C(4) << 20)

/* Returns the number of groups of CPU workers, each of which holds factors and an output; at least
 * 1. */
static unsigned device_count(const struct slc_plan *plan)
{
    return plan->cpu_groups > 0 ? plan->cpu_groups : 1;
}

void slc_plan_modes(const struct slc_layout_info *info,
                    const struct slc_plan_request *request,
                    unsigned *first,
                    unsigned *end)
{
    const bool all = request->operation == SLC_OP_CPD;

    *first = all ? 0 : request->mode;
    *end = all ? info->order : request->mode + 1;
}

/* Counts the bytes of the matrix and of the smallest buffers of a TTM. */
static void plan_ttm(const struct slc_layout_info *info, struct slc_plan *plan)
{
    const struct slc_plan_request *request = &plan->request;
    const uint64_t rows = info->dims[request->mode];
    const struct slc_matrix shape = slc_plan_matrix(request->precision, rows, request->rank);
    const struct slc_ttm_job job = {.order = info->order, .mode = request->mode, .matrix = &shape};

    plan->factor_bytes = slc_matrix_footprint(request->precision, rows, request->rank);
    plan->output_bytes =
        slc_ttm_memory_min(&job, plan->threads, plan->threads - request->product_lanes);
    plan->device_bytes = request->product_bytes;
}

static void plan_matrices(const struct slc_layouts *layouts, struct slc_plan *plan)
{
    const struct slc_layout_info *info = slc_reader_info(layouts->reader[0]);
    const struct slc_plan_request *request = &plan->request;
    uint64_t rows_max = 0;
    unsigned first, end;

    if (request->operation == SLC_OP_TTM) {
        plan_ttm(info, plan);
        return;
    }
    slc_plan_modes(info, request, &first, &end);
    for (unsigned n = 0; n < info->order; n++) {
        const bool computed = n >= first && n < end;
        const uint64_t bytes =
            slc_matrix_footprint(request->precision, info->dims[n], request->rank);

        /* The MTTKRP of a mode does not read the factor of this mode, but CP-ALS updates this
         * factor. */
        if (request->operation == SLC_OP_CPD || !computed) {
            plan->factor_bytes = slc_plan_plus(plan->factor_bytes, bytes);
        }
        if ((plan->fusion.seconds >> n & 1U) != 0) {
            plan->fusion.output_bytes = slc_max_u64(plan->fusion.output_bytes, bytes);
        }
        if (computed) {
            plan->output_bytes = slc_max_u64(plan->output_bytes, bytes);
            rows_max = slc_max_u64(rows_max, info->dims[n]);
        }
    }
    if (request->gpu != NULL && request->operation == SLC_OP_CPD &&
        request->hybrid.kind == SLC_HYBRID_NONE && !request->host_rows) {
        plan->output_bytes = 0; /* the output never leaves the device */
    }
    if (request->rows.nonzeros) {
        plan->output_bytes = 0; /* no MTTKRP is computed */
    }
    if (request->operation == SLC_OP_CPD) {
        plan->dense_bytes =
            slc_plan_plus(slc_cp_memory_bytes(info->order, request->rank, plan->threads, rows_max),
                          request->beside_bytes);
        if (request->host_rows) {
            plan->dense_bytes = slc_plan_plus(
                plan->dense_bytes, slc_cp_rows_memory_bytes(request->rank, plan->threads));
        }
    }
    plan->factor_bytes = slc_plan_times(plan->factor_bytes, device_count(plan));
    plan->output_bytes = slc_plan_times(plan->output_bytes, device_count(plan));
    if (plan->cpu_groups > 0) {
        plan->device_bytes = slc_cpu_groups_memory_bytes(layouts, plan);
    }
}

static uint64_t fixed_bytes(const struct slc_plan *plan)
{
    uint64_t sum = slc_plan_plus(plan->process_bytes, plan->index_bytes);

    sum = slc_plan_plus(sum, plan->factor_bytes);
    sum = slc_plan_plus(sum, plan->output_bytes);
    sum = slc_plan_plus(sum, plan->dense_bytes);
    sum = slc_plan_plus(sum, plan->device_bytes);
    sum = slc_plan_plus(sum, plan->scratch_bytes);
    sum = slc_plan_plus(sum, plan->decoder_bytes);
    /* slc_plan_fused_bytes overflows only if `sum` is already UINT64_MAX, because the output and
     * scratch of plain passes are at least as large. */
    sum = slc_plan_plus(sum, slc_plan_fused_bytes(&plan->fusion));
    sum = slc_plan_plus(sum, slc_plan_rows_bytes(&plan->rows));
    return slc_plan_plus(sum, plan->label_bytes);
}

/* Returns the largest useful number of slots over all layouts. */
static unsigned useful_slots(const struct slc_layouts *layouts, const struct slc_plan *plan)
{
    uint64_t blocks = 0;

    for (unsigned l = 0; l < layouts->count; l++) {
        blocks = slc_max_u64(blocks, slc_reader_info(layouts->reader[l])->block_count);
    }
    return slc_plan_slots_useful(plan, blocks);
}

/* Returns the padded bytes of all layouts that are read, without resident blocks. */
static uint64_t read_layouts_bytes(const struct slc_plan *plan)
{
    uint64_t bytes = 0;

    for (unsigned l = 0; l < plan->layout_count; l++) {
        const struct slc_plan_layout *layout = &plan->layouts[l];

        bytes = slc_plan_plus(
            bytes, layout->passes > 0 ? layout->store_bytes - layout->resident_bytes : 0);
    }
    return bytes;
}

/* Returns the bytes that all passes of an iteration over a layout read, if one pass reads
 * `bytes`. */
static uint64_t passes_bytes(const struct slc_plan_layout *layout, uint64_t bytes)
{
    return slc_plan_times((uint64_t)(2 * layout->passes), bytes) / 2;
}

/* Divides `available` between slots and cache. `available` is the memory that is left for slots and
 * cache, and suffices for the smallest number of slots. */
static void
divide_budget(const struct slc_layouts *layouts, struct slc_plan *plan, uint64_t available)
{
    const uint64_t whole = read_layouts_bytes(plan);
    const unsigned least = slc_plan_slots_min(plan);
    const bool all_fits =
        plan->request.cache &&
        slc_plan_plus(whole, slc_plan_times(least, plan->slot_bytes)) <= available;
    const uint64_t for_slots = all_fits ? available - whole : available;
    const unsigned most =
        plan->request.slots != 0
            ? plan->request.slots
            : slc_plan_rows_slots(layouts, plan, for_slots, useful_slots(layouts, plan));

    plan->slot_count =
        (unsigned)slc_max_u64(slc_min_u64(for_slots / plan->slot_bytes, most), least);
    available -= plan->slot_count * plan->slot_bytes;
    if (plan->request.cache) {
        slc_plan_cache(layouts, plan, available);
    }
    plan->iteration_bytes = 0;
    plan->iteration_read_bytes = 0;
    for (unsigned l = 0; l < plan->layout_count; l++) {
        const struct slc_plan_layout *layout = &plan->layouts[l];

        plan->iteration_bytes =
            slc_plan_plus(plan->iteration_bytes, passes_bytes(layout, layout->store_bytes));
        plan->iteration_read_bytes =
            slc_plan_plus(plan->iteration_read_bytes,
                          passes_bytes(layout, layout->store_bytes - layout->cache_bytes -
                                                   layout->resident_bytes));
    }
}

/* Returns the size in bytes of copies per mode; UINT64_MAX if copies are impossible. */
static uint64_t copies_bytes(const struct slc_layouts *layouts, const struct slc_plan *plan)
{
    const struct slc_layout_info *info = slc_reader_info(layouts->reader[0]);
    const struct slc_plan_request *request = &plan->request;
    struct slc_tensor_shape shape;

    if (request->operation != SLC_OP_CPD || request->rows.nonzeros ||
        request->copies == SLC_COPIES_NEVER || request->deterministic || !request->cache ||
        request->cpu_groups > 0 || request->gpu != NULL) {
        return UINT64_MAX;
    }
    /* The position of a tile in the copies follows from its number, so all tiles except the last
     * must be full. */
    if (info->tile_count != slc_div_up_u64(info->nnz, SLC_TILE_NNZ)) {
        return UINT64_MAX;
    }
    slc_replica_shape(info, &shape);
    return slc_cpu_backend_ops()->replica_bytes(&shape, request->rank, request->precision,
                                                plan->threads);
}

/* Returns the bytes that a run with copies needs in addition to the copies: the fixed memory, the
 * whole store, and slots to read it. */
static uint64_t bytes_without_copies(const struct slc_layouts *layouts, const struct slc_plan *plan)
{
    const uint64_t slots = slc_plan_times(useful_slots(layouts, plan), plan->slot_bytes);

    return slc_plan_plus(slc_plan_plus(fixed_bytes(plan), read_layouts_bytes(plan)), slots);
}

/* Returns true if the request requires copies. */
static bool requires_copies(const struct slc_plan *plan)
{
    return plan->request.copies == SLC_COPIES_ALWAYS && plan->request.operation == SLC_OP_CPD;
}

/* Returns the smallest memory with which a run with the planned kernels is possible. */
static uint64_t needed_bytes(const struct slc_layouts *layouts, const struct slc_plan *plan)
{
    if (requires_copies(plan)) {
        return slc_plan_plus(bytes_without_copies(layouts, plan), copies_bytes(layouts, plan));
    }
    return slc_plan_plus(fixed_bytes(plan), slc_plan_times(plan->slot_count, plan->slot_bytes));
}

/* Reserves memory for copies per mode if the budget holds the copies, the whole store and all other
 * memory. */
static void plan_copies(const struct slc_layouts *layouts, struct slc_plan *plan)
{
    const uint64_t copies = copies_bytes(layouts, plan);
    const uint64_t others = bytes_without_copies(layouts, plan);

    if (copies == UINT64_MAX) {
        return;
    }
    if (slc_plan_plus(others, copies) <= plan->budget_bytes) {
        plan->copies_bytes = copies;
    } else {
        plan->copies_wanted_bytes = copies;
        plan->copies_room_bytes = plan->budget_bytes > others ? plan->budget_bytes - others : 0;
    }
}

static enum slc_status
fail_budget(const struct slc_layouts *layouts, const struct slc_plan *plan, struct slc_error *err)
{
    const uint64_t copies = copies_bytes(layouts, plan);
    const uint64_t mib = UINT64_C(1) << 20;

    if (requires_copies(plan) && copies == UINT64_MAX) {
        return slc_fail_field(
            err, SLC_ERR_UNSUPPORTED, SLC_FIELD_COPIES,
            "replicas need a tensor of at least 2 modes with mode sizes up to 2^32 - 1, in a store "
            "whose tiles are full: request copies 'auto'");
    }
    if (plan->minimum_bytes == UINT64_MAX) {
        return slc_fail(
            err, SLC_ERR_BUDGET,
            "the factors of this rank need more memory than can be addressed; use a smaller rank");
    }
    if (requires_copies(plan)) {
        return slc_fail_budget(err, plan->budget_bytes, plan->minimum_bytes,
                               "a run with %" PRIu64 " MiB of replicas, one per mode,",
                               slc_div_up_u64(copies, mib));
    }
    return slc_fail_budget(
        err, plan->budget_bytes, plan->minimum_bytes,
        "rank %" PRIu32 " with %u threads (factors %" PRIu64 " MiB, %s %" PRIu64
        " MiB, scratch %" PRIu64 " MiB, %u slots of %" PRIu64 " KiB, process %" PRIu64 " MiB)",
        plan->request.rank, plan->threads, slc_div_up_u64(plan->factor_bytes, mib),
        plan->request.rows.nonzeros ? "rows" : "output",
        slc_div_up_u64(slc_plan_plus(plan->output_bytes, slc_plan_rows_bytes(&plan->rows)), mib),
        slc_div_up_u64(slc_plan_plus(plan->scratch_bytes,
                                     slc_plan_plus(plan->dense_bytes, plan->device_bytes)),
                       mib),
        plan->slot_count, slc_div_up_u64(plan->slot_bytes, 1024),
        slc_div_up_u64(plan->process_bytes, mib));
}

/* Assigns a layout to each computed mode, and counts the memory of all layouts. */
static void plan_layouts(const struct slc_layouts *layouts, struct slc_plan *plan)
{
    const struct slc_layout_info *info = slc_reader_info(layouts->reader[0]);
    unsigned first, end;

    plan->layout_count = layouts->count;
    slc_plan_modes(info, &plan->request, &first, &end);
    for (unsigned n = first; n < end; n++) {
        plan->mode_layout[n] = slc_layouts_sorted_by(layouts, n);
        /* A device accepts blocks in any order, so it uses no partitions. */
        plan->partitions[n] =
            plan->request.gpu != NULL
                ? 0
                : slc_layout_partitions(slc_reader_info(layouts->reader[plan->mode_layout[n]]), n);
    }
    if (plan->request.operation == SLC_OP_CPD) {
        slc_plan_count_passes(info->order, plan);
    } else {
        plan->layouts[plan->mode_layout[first]].passes = 1;
        plan->passes = 1;
    }
    for (unsigned l = 0; l < layouts->count; l++) {
        const struct slc_reader *reader = layouts->reader[l];
        const uint64_t count = slc_reader_info(reader)->block_count;

        plan->layouts[l].store_bytes = slc_plan_store_bytes(reader);
        plan->slot_bytes =
            slc_max_u64(plan->slot_bytes,
                        slc_max_u64(slc_reader_info(reader)->max_block_bytes, SLC_PAGE_BYTES));
        plan->index_bytes =
            slc_plan_plus(plan->index_bytes,
                          slc_plan_plus(slc_reader_memory_bytes(reader),
                                        slc_plan_times(count, SLC_PLAN_STREAM_BYTES_PER_BLOCK)));
    }
}

/* Sets all members of the plan that do not depend on the budget. */
static void plan_fixed(const struct slc_layouts *layouts,
                       const struct slc_plan_request *request,
                       const struct slc_plan_fusion *fusion,
                       const unsigned *mode_order,
                       struct slc_plan *plan)
{
    const struct slc_layout_info *info = slc_reader_info(layouts->reader[0]);

    memset(plan, 0, sizeof *plan);
    plan->other_read_bytes = UINT64_MAX;
    plan->fusion.reason = SLC_FUSION_NOT_ASKED;
    if (fusion != NULL) {
        plan->fusion = *fusion;
    }
    plan->fusion.other_read_bytes = UINT64_MAX;
    for (unsigned k = 0; k < info->order; k++) {
        plan->mode_order[k] = request->mode_order_set ? request->mode_order[k] : k;
        plan->mode_order[k] = mode_order != NULL ? mode_order[k] : plan->mode_order[k];
    }
    plan->request = *request;
    plan->cpu_groups = request->cpu_groups;
    plan->group_threads = request->threads;
    if (request->threads == 0) {
        plan->group_threads =
            (unsigned)slc_max_u64(slc_team_default_workers() / device_count(plan), 1);
    }
    plan->request.threads = plan->group_threads;
    plan->threads = plan->group_threads * device_count(plan);
    slc_placement_choose(&plan->placement, request->pin, plan->threads);
    plan->schedule = request->schedule;
    if (plan->schedule == SLC_SCHEDULE_AUTO) {
        /* On a GPU, deterministic sums do not depend on the order of blocks. */
        const bool fixed = request->deterministic && request->gpu == NULL;

        plan->schedule = fixed || slc_plan_blocks_near_equal(layouts->reader[0])
                             ? SLC_SCHEDULE_FILE
                             : SLC_SCHEDULE_LARGEST;
    }
    plan->request.schedule = plan->schedule;
    if (request->memory_bytes == 0) {
        plan->request.memory_bytes = slc_memory_total() / 5 * 4;
    }
    plan->budget_bytes = plan->request.memory_bytes;
    plan_layouts(layouts, plan);
    plan->decoder_bytes =
        slc_plan_times(plan->threads, slc_decoder_memory_bytes(info, request->precision) +
                                          slc_tile_rows_memory_bytes(info->order));
    plan->label_bytes = request->operation == SLC_OP_TTM ? slc_relabel_all_bytes(info)
                                                         : slc_relabel_memory_bytes(info);
    plan_matrices(layouts, plan);
    /* process_bytes cannot overflow: it is resident memory, a margin, and stacks of at most 2^10
     * threads. */
    plan->present_bytes =
        request->resident_bytes > 0 ? request->resident_bytes : slc_memory_resident();
    plan->process_bytes = plan->present_bytes + LIBRARY_BYTES +
                          (plan->threads + SLC_PLAN_IO_THREADS) * SLC_PLAN_THREAD_BYTES +
                          PROCESS_UNIT - 1;
    plan->process_bytes -= plan->process_bytes % PROCESS_UNIT;
}

enum slc_status slc_plan_make(const struct slc_layouts *layouts,
                              const struct slc_plan_request *request,
                              struct slc_plan *plan,
                              struct slc_error *err)
{
    return slc_plan_make_fused(layouts, request, NULL, NULL, plan, err);
}

enum slc_status slc_plan_make_fused(const struct slc_layouts *layouts,
                                    const struct slc_plan_request *request,
                                    const struct slc_plan_fusion *fusion,
                                    const unsigned *mode_order,
                                    struct slc_plan *plan,
                                    struct slc_error *err)
{
    enum slc_status status =
        slc_plan_check_request(slc_reader_info(layouts->reader[0]), request, err);

    SLC_TRY(status);
    plan_fixed(layouts, request, fusion, mode_order, plan);
    SLC_TRY(slc_plan_rows_prepare(layouts, plan, err));
    plan->slot_count = slc_plan_slots_min(plan);
    if (request->gpu != NULL) {
        status = slc_plan_gpu_make(layouts, plan, err);
    }

    /* The strategies with the least scratch determine the minimum. The fastest strategies are used
     * if their scratch fits in the budget. */
    slc_plan_kernels(layouts, plan, true);
    plan->minimum_bytes = needed_bytes(layouts, plan);
    plan->total_bytes = plan->minimum_bytes;
    SLC_TRY(status);
    if (plan->minimum_bytes > plan->budget_bytes || plan->minimum_bytes == UINT64_MAX) {
        return fail_budget(layouts, plan, err);
    }
    slc_plan_kernels(layouts, plan, false);
    if (needed_bytes(layouts, plan) > plan->budget_bytes) {
        slc_plan_kernels(layouts, plan, true);
    }
    plan_copies(layouts, plan);
    slc_plan_rows_buffers(layouts, plan, plan->budget_bytes - needed_bytes(layouts, plan));
    uint64_t fixed = fixed_bytes(plan) + plan->copies_bytes;
    divide_budget(layouts, plan, plan->budget_bytes - fixed);
    plan->total_bytes = fixed + plan->slot_count * plan->slot_bytes + plan->cache_bytes;
    return slc_plan_rows_finish(layouts, plan, plan->budget_bytes - fixed, err);
}
