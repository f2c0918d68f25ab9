/*
 * The memory plan: one budget, everything counted.
 *
 * What an operation cannot do without is summed first (process, index, matrices, scratch, decoders,
 * two slots): the minimum. What the budget leaves goes to more slots, up to the depth that keeps a
 * drive busy, and then to the cache, because a cached byte saves one byte per pass while a slot
 * beyond that depth saves nothing. Where the whole layout fits, the cache comes first: slots then
 * serve the first pass only.
 *
 * Cost: a few looks at every index entry. Invariant: total_bytes is the sum of the parts, and
 * minimum_bytes <= total_bytes <= budget_bytes on success.
 */
#include "engine/plan.h"

#include "base/checked.h"
#include "base/memory.h"
#include "base/team.h"
#include "cpu/cpu.h"
#include "engine/owned.h"
#include "engine/relabel.h"
#include "engine/solve/cp_als.h"

#include <inttypes.h>
#include <string.h>

/*
 * What the process grows by beyond the listed parts. A thread touches up to 128 KiB of its stack
 * and its malloc arena (measured: 40 to 110 KiB); the reader thread and up to 8 pread threads count
 * as workers here.
 */
#define THREAD_BYTES (UINT64_C(128) << 10)
#define IO_THREADS   9U
/*
 * Program, BLAS and LAPACK pages first touched after planning, BLAS's packing buffers, the ring's
 * records (below 3 KiB a slot), and the rounding of mappings to huge pages.
 */
#define LIBRARY_BYTES (UINT64_C(8) << 20)
/*
 * process_bytes is rounded up to this, so that the minimum named in one run is not refused in the
 * next because a few more pages of a library were resident.
 */
#define PROCESS_UNIT (UINT64_C(4) << 20)

/* Reads in flight that keep one NVMe drive at its full rate (32 to 64 MiB measured). */
#define FLIGHT_BYTES (UINT64_C(48) << 20)
/* Slots beyond one per reading depth: small blocks gain nothing from a deeper queue. */
enum { SLOTS_MIN = 2, SLOTS_MAX = 256 };

/* The stream's tables: order, cache place and state of every block. */
#define STREAM_BYTES_PER_BLOCK UINT64_C(64)

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

/* Sums and products of a plan saturate: a plan that reaches UINT64_MAX fits no budget. */
static uint64_t plus(uint64_t a, uint64_t b)
{
    uint64_t sum;

    return slc_add_u64(a, b, &sum) ? sum : UINT64_MAX;
}

static uint64_t times(uint64_t a, uint64_t b)
{
    uint64_t product;

    return slc_mul_u64(a, b, &product) ? product : UINT64_MAX;
}

static enum slc_status check_request(const struct slc_layout_info *info,
                                     const struct slc_plan_request *request,
                                     struct slc_error *err)
{
    if (request->rank < 1 || request->rank > SLC_MAX_RANK) {
        return slc_fail(err, SLC_ERR_USAGE, "the rank is %" PRIu32 "; it has to be 1 to %d",
                        request->rank, (int)SLC_MAX_RANK);
    }
    if (request->operation == SLC_OP_MTTKRP && request->mode >= info->order) {
        return slc_fail(err, SLC_ERR_USAGE, "mode %u does not exist; the tensor has modes 1 to %u",
                        request->mode + 1, info->order);
    }
    if (request->threads > SLC_MAX_THREADS) {
        return slc_fail(err, SLC_ERR_USAGE, "%u threads are asked for; at most %d can be used",
                        request->threads, (int)SLC_MAX_THREADS);
    }
    if (request->slots != 0 && (request->slots < SLOTS_MIN || request->slots > SLOTS_MAX)) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "%u slots are asked for (--slots); the ring has %d to %d", request->slots,
                        (int)SLOTS_MIN, (int)SLOTS_MAX);
    }
    if (request->precision != SLC_F32 && request->precision != SLC_F64) {
        return slc_fail(err, SLC_ERR_USAGE, "the precision has to be f32 or f64");
    }
    if (request->copies != SLC_COPIES_AUTO && request->copies != SLC_COPIES_NEVER &&
        request->copies != SLC_COPIES_ALWAYS) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "copies per mode can be asked for as auto, never or always");
    }
    for (unsigned n = 0; n < info->order; n++) {
        if (request->conflict[n] != SLC_CONFLICT_AUTO &&
            request->conflict[n] != SLC_CONFLICT_PRIVATE &&
            request->conflict[n] != SLC_CONFLICT_LOCKED) {
            return slc_fail(err, SLC_ERR_USAGE,
                            "the strategy of mode %u can be given as private or locked, not %s",
                            n + 1, slc_conflict_name(request->conflict[n]));
        }
    }
    if (request->copies == SLC_COPIES_ALWAYS && (request->deterministic || !request->cache)) {
        return slc_fail(
            err, SLC_ERR_USAGE,
            request->deterministic
                ? "deterministic passes sum in the order of the stream, copies per mode "
                  "in another one: ask for copies auto or never, or not for deterministic"
                : "copies per mode are for tensors that stay in memory, but blocks are "
                  "not to be kept: ask for copies auto or never, or let blocks be kept");
    }
    if (request->deterministic && request->schedule == SLC_SCHEDULE_LARGEST) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "deterministic passes take blocks in file order; use the schedule file or "
                        "auto");
    }
    return SLC_OK;
}

/* What the scan of the index finds. */
struct block_scan {
    uint64_t store_bytes;
    bool near_equal; /* the largest block has at most 1.25 times the median's nonzeros */
};

static struct block_scan scan_blocks(const struct slc_reader *reader)
{
    const struct slc_layout_info *info = slc_reader_info(reader);
    struct block_scan scan = {0, true};
    uint64_t small = 0;

    for (uint64_t b = 0; b < info->block_count; b++) {
        struct slc_block_entry entry;

        slc_reader_entry(reader, b, &entry);
        scan.store_bytes = plus(scan.store_bytes, entry.padded_bytes);
        /* nnz < max / 1.25, in integers; block sizes are far below 2^61. */
        if (entry.nnz * 5 < info->max_block_nnz * 4) {
            small++;
        }
    }
    /* The median is small exactly when more than half of the blocks are. */
    scan.near_equal = small <= info->block_count / 2;
    return scan;
}

/* A matrix without memory: enough for a backend to judge a job. */
static struct slc_matrix matrix_shape(enum slc_value_type type, uint64_t rows, uint32_t cols)
{
    struct slc_matrix shape = {
        .type = type, .rows = rows, .cols = cols, .pitch = slc_matrix_pitch(type, cols)};

    return shape;
}

/* First and end of the modes that will be computed. */
static void computed_modes(const struct slc_layout_info *info,
                           const struct slc_plan_request *request,
                           unsigned *first,
                           unsigned *end)
{
    const bool all = request->operation == SLC_OP_CPD;

    *first = all ? 0 : request->mode;
    *end = all ? info->order : request->mode + 1;
}

/* The strategy with the least scratch of those that any job may use. */
static enum slc_conflict least_scratch(struct slc_mttkrp_job *job, uint64_t output_rows)
{
    static const enum slc_conflict others[] = {SLC_CONFLICT_PRIVATE, SLC_CONFLICT_LOCKED};
    const struct slc_backend_ops *ops = slc_cpu_backend_ops();
    enum slc_conflict least = job->conflict;
    uint64_t least_bytes = ops->mttkrp_scratch_bytes(job, output_rows);

    for (unsigned i = 0; i < 2; i++) {
        uint64_t bytes;

        job->conflict = others[i];
        bytes = ops->mttkrp_scratch_bytes(job, output_rows);
        if (bytes < least_bytes) {
            least_bytes = bytes;
            least = others[i];
        }
    }
    return least;
}

/* What to do in place of the choice where there is no memory for its scratch. */
static enum slc_conflict
spare_memory(struct slc_mttkrp_job *job, uint64_t output_rows, struct slc_conflict_choice *choice)
{
    if (choice->spare.conflict == SLC_CONFLICT_AUTO) {
        return least_scratch(job, output_rows);
    }
    choice->costs[choice->cost_count++] = choice->spare;
    return choice->spare.conflict;
}

/*
 * Chooses the strategy of the job's mode, within `room` bytes of scratch where there is a choice. A
 * trial takes the scratch of both candidates, and gives way first.
 */
static void plan_strategy(struct slc_mttkrp_job *job, uint64_t room, struct slc_plan *plan)
{
    const struct slc_backend_ops *ops = slc_cpu_backend_ops();
    struct slc_conflict_choice *choice = &plan->choices[job->mode];
    const uint64_t rows = job->output->rows;
    const bool free_choice = !job->deterministic && job->workers > 1;

    job->conflict = free_choice ? plan->request.conflict[job->mode] : SLC_CONFLICT_AUTO;
    job->rival = SLC_CONFLICT_AUTO;
    ops->mttkrp_choose(job, rows, choice);
    job->conflict = choice->chosen;
    job->rival = choice->rival;
    plan->untried[job->mode] = SLC_CONFLICT_AUTO;
    if (job->rival != SLC_CONFLICT_AUTO && ops->mttkrp_scratch_bytes(job, rows) > room) {
        plan->untried[job->mode] = job->rival;
        choice->rival = SLC_CONFLICT_AUTO;
        job->rival = SLC_CONFLICT_AUTO;
    }
    if (free_choice && ops->mttkrp_scratch_bytes(job, rows) > room) {
        plan->untried[job->mode] = choice->chosen;
        choice->chosen = spare_memory(job, rows, choice);
        job->conflict = choice->chosen;
    }
    plan->scratch_bytes = slc_max_u64(plan->scratch_bytes, ops->mttkrp_scratch_bytes(job, rows));
}

/*
 * Chooses the strategy of every mode and counts the largest kernel scratch. With `frugal`, the one
 * with the least scratch in place of the fastest, where the backend has a choice.
 */
static void plan_kernels(const struct slc_layout_info *info, struct slc_plan *plan, bool frugal)
{
    const struct slc_plan_request *request = &plan->request;
    struct slc_matrix shapes[SLC_MAX_ORDER];
    struct slc_mttkrp_job job = {.order = info->order,
                                 .rank = request->rank,
                                 .nnz = info->nnz,
                                 .workers = plan->threads,
                                 .deterministic = request->deterministic};
    /* More would rather keep blocks than copies of an output. */
    const uint64_t room = frugal ? 0 : plan->budget_bytes / 8;
    unsigned first, end;

    for (unsigned n = 0; n < info->order; n++) {
        shapes[n] = matrix_shape(request->precision, info->dims[n], request->rank);
        job.factors[n] = &shapes[n];
    }
    plan->scratch_bytes = 0;
    computed_modes(info, request, &first, &end);
    for (unsigned n = first; n < end; n++) {
        job.mode = n;
        job.output = &shapes[n];
        plan_strategy(&job, room, plan);
    }
}

static void plan_matrices(const struct slc_layout_info *info, struct slc_plan *plan)
{
    const struct slc_plan_request *request = &plan->request;
    uint64_t rows_max = 0;
    unsigned first, end;

    computed_modes(info, request, &first, &end);
    for (unsigned n = 0; n < info->order; n++) {
        const bool computed = n >= first && n < end;
        const uint64_t bytes =
            slc_matrix_footprint(request->precision, info->dims[n], request->rank);

        /* An MTTKRP does not look at its own mode's factor; CP-ALS writes it from the output. */
        if (request->operation == SLC_OP_CPD || !computed) {
            plan->factor_bytes = plus(plan->factor_bytes, bytes);
        }
        if (computed) {
            plan->output_bytes = slc_max_u64(plan->output_bytes, bytes);
            rows_max = slc_max_u64(rows_max, info->dims[n]);
        }
    }
    if (request->operation == SLC_OP_CPD) {
        plan->dense_bytes =
            slc_cp_als_memory_bytes(info->order, request->rank, plan->threads, rows_max);
    }
}

static uint64_t fixed_bytes(const struct slc_plan *plan)
{
    uint64_t sum = plus(plan->process_bytes, plan->index_bytes);

    sum = plus(sum, plan->factor_bytes);
    sum = plus(sum, plan->output_bytes);
    sum = plus(sum, plan->dense_bytes);
    sum = plus(sum, plan->scratch_bytes);
    sum = plus(sum, plan->decoder_bytes);
    return plus(sum, plan->label_bytes);
}

/* Slots worth having: FLIGHT_BYTES in flight and a block in the hands of every worker. */
static unsigned slots_wanted(const struct slc_layout_info *info, const struct slc_plan *plan)
{
    const uint64_t flight = slc_div_up_u64(FLIGHT_BYTES, plan->slot_bytes);
    const uint64_t depth = slc_min_u64(slc_max_u64(flight, SLOTS_MIN), SLOTS_MAX);
    const uint64_t busy = slc_min_u64(plan->threads, depth);

    return (unsigned)slc_max_u64(
        slc_min_u64(slc_min_u64(depth + busy, SLOTS_MAX), info->block_count), SLOTS_MIN);
}

/* Bytes of the cached set of `kept` blocks. */
static uint64_t kept_bytes(const struct slc_reader *reader, uint64_t kept)
{
    const uint64_t count = slc_reader_info(reader)->block_count;
    uint64_t bytes = 0;

    for (uint64_t b = 0; b < count; b++) {
        struct slc_block_entry entry;

        if (slc_plan_keeps(kept, count, b)) {
            slc_reader_entry(reader, b, &entry);
            bytes = plus(bytes, entry.padded_bytes);
        }
    }
    return bytes;
}

/*
 * Caches as many blocks as fit `room`, by bisection. A larger set may by chance fall on smaller
 * blocks, so the number found may be a little below the largest; the set found fits.
 */
static void plan_cache(const struct slc_reader *reader, struct slc_plan *plan, uint64_t room)
{
    uint64_t most = slc_reader_info(reader)->block_count;

    while (plan->cached_blocks < most) {
        const uint64_t kept = plan->cached_blocks + (most - plan->cached_blocks + 1) / 2;
        const uint64_t bytes = kept_bytes(reader, kept);

        if (bytes <= room) {
            plan->cached_blocks = kept;
            plan->cache_bytes = bytes;
        } else {
            most = kept - 1;
        }
    }
}

/* Fills slots and cache from the `room` that the fixed parts leave (enough for the least slots). */
static void spend_room(const struct slc_reader *reader, struct slc_plan *plan, uint64_t room)
{
    const struct slc_layout_info *info = slc_reader_info(reader);
    const unsigned least = plan->request.slots != 0 ? plan->request.slots : SLOTS_MIN;
    const unsigned most = plan->request.slots != 0 ? plan->request.slots : slots_wanted(info, plan);
    const bool all_fits =
        plan->request.cache && plus(plan->store_bytes, times(least, plan->slot_bytes)) <= room;
    const uint64_t for_slots = all_fits ? room - plan->store_bytes : room;

    plan->slot_count =
        (unsigned)slc_max_u64(slc_min_u64(for_slots / plan->slot_bytes, most), least);
    room -= plan->slot_count * plan->slot_bytes;
    if (plan->request.cache) {
        plan_cache(reader, plan, room);
    }
    plan->pass_read_bytes = plan->store_bytes - plan->cache_bytes;
}

/* What copies per mode take; UINT64_MAX where there can be none. */
static uint64_t copies_bytes(const struct slc_layout_info *info, const struct slc_plan *plan)
{
    const struct slc_plan_request *request = &plan->request;
    struct slc_tensor_shape shape;

    if (request->operation != SLC_OP_CPD || request->copies == SLC_COPIES_NEVER ||
        request->deterministic || !request->cache) {
        return UINT64_MAX;
    }
    /* A tile's place in the copies follows from its number: all but the last have to be full. */
    if (info->tile_count != slc_div_up_u64(info->nnz, SLC_TILE_NNZ)) {
        return UINT64_MAX;
    }
    slc_owned_shape(info, &shape);
    return slc_cpu_backend_ops()->owned_bytes(&shape, request->rank, request->precision,
                                              plan->threads);
}

/* Everything else that a run with copies holds: the whole store, and slots that it is read by. */
static uint64_t beside_copies(const struct slc_layout_info *info, const struct slc_plan *plan)
{
    const uint64_t slots = times(slots_wanted(info, plan), plan->slot_bytes);

    return plus(plus(fixed_bytes(plan), plan->store_bytes), slots);
}

/* Whether there is no run without copies. */
static bool wants_copies(const struct slc_plan *plan)
{
    return plan->request.copies == SLC_COPIES_ALWAYS && plan->request.operation == SLC_OP_CPD;
}

/* What a run takes at least with the kernels that are planned. */
static uint64_t needed_bytes(const struct slc_layout_info *info, const struct slc_plan *plan)
{
    if (wants_copies(plan)) {
        return plus(beside_copies(info, plan), copies_bytes(info, plan));
    }
    return plus(fixed_bytes(plan), times(plan->slot_count, plan->slot_bytes));
}

/* Makes room for copies per mode, where all else and the whole store fit beside them. */
static void plan_copies(const struct slc_layout_info *info, struct slc_plan *plan)
{
    const uint64_t copies = copies_bytes(info, plan);
    const uint64_t others = beside_copies(info, plan);

    if (copies == UINT64_MAX) {
        return;
    }
    if (plus(others, copies) <= plan->budget_bytes) {
        plan->copies_bytes = copies;
    } else {
        plan->copies_wanted_bytes = copies;
        plan->copies_room_bytes = plan->budget_bytes > others ? plan->budget_bytes - others : 0;
    }
}

static enum slc_status
fail_budget(const struct slc_layout_info *info, const struct slc_plan *plan, struct slc_error *err)
{
    const uint64_t copies = copies_bytes(info, plan);
    const uint64_t mib = UINT64_C(1) << 20;

    if (wants_copies(plan) && copies == UINT64_MAX) {
        return slc_fail(
            err, SLC_ERR_UNSUPPORTED,
            "copies per mode (--copies always) are for tensors of 2 modes and more, none "
            "longer than 2^32 - 1, in stores whose tiles are full: use --copies auto");
    }
    if (plan->minimum_bytes == UINT64_MAX) {
        return slc_fail(err, SLC_ERR_BUDGET,
                        "the factors of this rank need more memory than can be addressed; use a "
                        "smaller rank");
    }
    if (wants_copies(plan)) {
        return slc_fail_budget(err, plan->budget_bytes, plan->minimum_bytes,
                               "copies of %" PRIu64 " MiB, one per mode, beside the store",
                               slc_div_up_u64(copies, mib));
    }
    return slc_fail_budget(
        err, plan->budget_bytes, plan->minimum_bytes,
        "rank %" PRIu32 " with %u threads (factors %" PRIu64 " MiB, output %" PRIu64
        " MiB, scratch %" PRIu64 " MiB, %u slots of %" PRIu64 " KiB, process %" PRIu64 " MiB)",
        plan->request.rank, plan->threads, slc_div_up_u64(plan->factor_bytes, mib),
        slc_div_up_u64(plan->output_bytes, mib),
        slc_div_up_u64(plus(plan->scratch_bytes, plan->dense_bytes), mib), plan->slot_count,
        slc_div_up_u64(plan->slot_bytes, 1024), slc_div_up_u64(plan->process_bytes, mib));
}

/* Everything of the plan that does not depend on the budget. */
static void plan_fixed(const struct slc_reader *reader,
                       const struct slc_plan_request *request,
                       struct slc_plan *plan)
{
    const struct slc_layout_info *info = slc_reader_info(reader);
    const struct block_scan scan = scan_blocks(reader);

    memset(plan, 0, sizeof *plan);
    plan->request = *request;
    plan->threads = request->threads != 0 ? request->threads : slc_team_default_workers();
    plan->request.threads = plan->threads;
    slc_placement_choose(&plan->placement, request->pin, plan->threads);
    plan->schedule = request->schedule;
    if (plan->schedule == SLC_SCHEDULE_AUTO) {
        plan->schedule =
            request->deterministic || scan.near_equal ? SLC_SCHEDULE_FILE : SLC_SCHEDULE_LARGEST;
    }
    plan->request.schedule = plan->schedule;
    if (request->memory_bytes == 0) {
        plan->request.memory_bytes = slc_memory_total() / 5 * 4;
    }
    plan->budget_bytes = plan->request.memory_bytes;
    plan->store_bytes = scan.store_bytes;
    plan->slot_bytes = slc_max_u64(info->max_block_bytes, SLC_PAGE_BYTES);
    plan->passes = request->operation == SLC_OP_CPD ? info->order : 1;
    plan->index_bytes =
        plus(slc_reader_memory_bytes(reader), times(info->block_count, STREAM_BYTES_PER_BLOCK));
    plan->decoder_bytes = times(plan->threads, slc_decoder_memory_bytes(info, request->precision));
    plan->label_bytes = slc_relabel_memory_bytes(info);
    plan_matrices(info, plan);
    /* Cannot overflow: resident memory, at most 2^10 threads. */
    plan->process_bytes = slc_memory_resident() + LIBRARY_BYTES +
                          (plan->threads + IO_THREADS) * THREAD_BYTES + PROCESS_UNIT - 1;
    plan->process_bytes -= plan->process_bytes % PROCESS_UNIT;
}

enum slc_status slc_plan_make(const struct slc_reader *reader,
                              const struct slc_plan_request *request,
                              struct slc_plan *plan,
                              struct slc_error *err)
{
    const struct slc_layout_info *info = slc_reader_info(reader);
    enum slc_status status;
    uint64_t fixed;

    status = check_request(info, request, err);
    if (status != SLC_OK) {
        return status;
    }
    plan_fixed(reader, request, plan);
    plan->slot_count = request->slots != 0 ? request->slots : SLOTS_MIN;

    /* The frugal plan sets the minimum; the usual one is taken when it fits. */
    plan_kernels(info, plan, true);
    plan->minimum_bytes = needed_bytes(info, plan);
    plan->total_bytes = plan->minimum_bytes;
    if (plan->minimum_bytes > plan->budget_bytes || plan->minimum_bytes == UINT64_MAX) {
        return fail_budget(info, plan, err);
    }
    plan_kernels(info, plan, false);
    if (needed_bytes(info, plan) > plan->budget_bytes) {
        plan_kernels(info, plan, true);
    }
    plan_copies(info, plan);
    fixed = fixed_bytes(plan) + plan->copies_bytes;
    spend_room(reader, plan, plan->budget_bytes - fixed);
    plan->total_bytes = fixed + plan->slot_count * plan->slot_bytes + plan->cache_bytes;
    return SLC_OK;
}
