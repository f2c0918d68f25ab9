/* Describes plans, strategies and statistics of devices as JSON. */
#include "report/json_plan.h"

#include "engine/executor/assign.h"
#include "engine/session/session.h"
#include "report/json_parts.h"

#include <math.h>

/* Returns the processors of the threads, or null if the system chooses the processors. */
static json_t *pinned_to(const struct slc_placement *placement)
{
    json_t *processors = placement->workers > 0 ? json_array() : json_null();

    for (unsigned w = 0; w < placement->workers; w++) {
        (void)json_array_append_new(processors, json_integer(placement->processor[w]));
    }
    return processors;
}

/* Appends the name of the layout from which a mode is read. */
static void append_layout(json_t *list, unsigned layout, unsigned mode)
{
    (void)json_array_append_new(list, layout > 0 ? json_sprintf("sorted-%u", mode + 1)
                                                 : json_string("blco"));
}

/* Returns the name of a strategy, or NULL if there is no strategy. */
static const char *name_of(enum slc_conflict conflict)
{
    return conflict != SLC_CONFLICT_AUTO ? slc_conflict_name(conflict) : NULL;
}

static void append_conflict(json_t *list, enum slc_conflict conflict)
{
    (void)json_array_append_new(list, json_pack("s?", name_of(conflict)));
}

/* Returns the fused passes of the plan, and why the plan has them or not. */
static json_t *json_fusion(const struct slc_plan *plan, unsigned order)
{
    static const char *const reasons[] = {
        [SLC_FUSION_TAKEN] = "taken",
        [SLC_FUSION_NOT_ASKED] = "not asked",
        [SLC_FUSION_FIXED_BITS] = "deterministic",
        [SLC_FUSION_COPIES] = "copies",
        [SLC_FUSION_CPU_GROUPS] = "devices",
        [SLC_FUSION_GPU] = "device",
        [SLC_FUSION_NO_RANGES] = "no ranges",
        [SLC_FUSION_FEW_RANGES] = "few ranges",
        [SLC_FUSION_NO_MEMORY] = "no memory",
        [SLC_FUSION_NO_GAIN] = "no gain",
    };
    const struct slc_plan_fusion *fusion = &plan->fusion;
    json_t *mode_order = json_array();
    json_t *ranges = json_array();
    json_t *object = json_object();

    for (unsigned k = 0; k < order; k++) {
        (void)json_array_append_new(mode_order, json_integer((json_int_t)plan->mode_order[k] + 1));
        (void)json_array_append_new(ranges, (fusion->modes >> k & 1U) != 0
                                                ? json_integer((json_int_t)fusion->ranges[k])
                                                : json_null());
    }
    slc_json_set_text(object, "reason", reasons[fusion->reason]);
    slc_json_set(object, "modes", slc_json_modes(fusion->modes));
    slc_json_set(object, "mode_order", mode_order);
    slc_json_set(object, "ranges", ranges);
    slc_json_set_count(object, "second_bytes", slc_plan_fused_bytes(fusion));
    slc_json_set_known_count(object, "other_read_bytes", fusion->other_read_bytes);
    return object;
}

/* Returns how rows are updated from their nonzeros. */
static json_t *json_rows(const struct slc_plan *plan, unsigned order)
{
    const struct slc_plan_rows *rows = &plan->rows;
    json_t *passes = json_array();
    json_t *streamed = json_array();
    json_t *object = json_object();

    for (unsigned n = 0; n < order; n++) {
        (void)json_array_append_new(passes, json_integer((json_int_t)rows->gather_passes[n]));
        (void)json_array_append_new(streamed, json_integer((json_int_t)rows->streamed_rows[n]));
    }
    slc_json_set(object, "gathered", slc_json_modes(rows->gathered));
    slc_json_set(object, "passes", passes);
    slc_json_set(object, "streamed", streamed);
    slc_json_set_count(object, "repeated_bytes", rows->repeated_bytes);
    slc_json_set_count(object, "missing_bytes", rows->missing_bytes);
    slc_json_set_count(object, "sorted_read_bytes", rows->sorted_read_bytes);
    return object;
}

json_t *slc_json_plan(const struct slc_plan *plan, unsigned order)
{
    const bool copies = slc_plan_starts_with_copies(plan);
    json_t *layouts = json_array();
    json_t *conflicts = json_array();
    json_t *trials = json_array();
    json_t *untried = json_array();
    json_t *object = json_object();
    const struct {
        const char *name;
        uint64_t number;
    } counts[] = {
        {"budget_bytes", plan->budget_bytes},
        {"minimum_bytes", plan->minimum_bytes},
        {"total_bytes", plan->total_bytes},
        {"process_bytes", plan->process_bytes},
        {"index_bytes", plan->index_bytes},
        {"factor_bytes", plan->factor_bytes},
        {"output_bytes", plan->output_bytes},
        {"dense_bytes", plan->dense_bytes},
        {"device_bytes", plan->device_bytes},
        {"scratch_bytes", plan->scratch_bytes},
        {"decoder_bytes", plan->decoder_bytes},
        {"label_bytes", plan->label_bytes},
        {"row_bytes", slc_plan_rows_bytes(&plan->rows)},
        {"slot_count", plan->slot_count},
        {"slot_bytes", plan->slot_bytes},
        {"cache_bytes", plan->cache_bytes},
        {"cached_blocks", plan->cached_blocks},
        {"copies_bytes", plan->copies_bytes},
        {"copies_wanted_bytes", plan->copies_wanted_bytes},
        {"copies_room_bytes", plan->copies_room_bytes},
        {"iteration_bytes", plan->iteration_bytes},
        {"iteration_read_bytes", plan->iteration_read_bytes},
        {"threads", plan->threads},
        {"device_count", plan->cpu_groups},
    };

    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        slc_json_set_count(object, counts[i].name, counts[i].number);
    }
    for (unsigned n = 0; n < order; n++) {
        if (plan->request.operation == SLC_OP_CPD || n == plan->request.mode) {
            append_layout(layouts, plan->mode_layout[n], n);
            append_conflict(conflicts, copies ? SLC_CONFLICT_REPLICA : plan->choices[n].chosen);
            append_conflict(trials, copies ? SLC_CONFLICT_AUTO : plan->choices[n].rival);
            append_conflict(untried, copies ? SLC_CONFLICT_AUTO : plan->untried[n]);
        }
    }
    slc_json_set(object, "passes",
                 plan->passes == floor(plan->passes) ? json_integer((json_int_t)plan->passes)
                                                     : json_real(plan->passes));
    slc_json_set(object, "fused", json_fusion(plan, order));
    if (plan->request.rows.nonzeros) {
        slc_json_set(object, "rows", json_rows(plan, order));
    }
    slc_json_set(object, "device", slc_json_device_plan(plan, order));
    slc_json_set(object, "share", slc_json_hybrid_wish(&plan->request.hybrid));
    slc_json_set(object, "layouts", layouts);
    slc_json_set_known_count(object, "other_read_bytes", plan->other_read_bytes);
    slc_json_set(object, "conflicts", conflicts);
    slc_json_set(object, "trials", trials);
    slc_json_set(object, "untried", untried);
    slc_json_set_text(object, "schedule", slc_schedule_name(plan->schedule));
    slc_json_set_text(object, "io", slc_io_name(plan->request.io));
    slc_json_set_count(object, "io_limit", plan->request.read_limit);
    slc_json_set_text(object, "precision", plan->request.precision == SLC_F32 ? "f32" : "f64");
    slc_json_set_text(object, "sums", "f64");
    slc_json_set(object, "deterministic", json_boolean(plan->request.deterministic));
    slc_json_set_text(object, "pin", slc_pin_name(plan->request.pin));
    slc_json_set(object, "pinned_to", pinned_to(&plan->placement));
    return object;
}

json_t *slc_json_choice(unsigned mode, const struct slc_conflict_choice *choice)
{
    json_t *candidates = json_array();
    json_t *object = json_object();

    for (unsigned i = 0; i < choice->cost_count; i++) {
        const struct slc_conflict_cost *cost = &choice->costs[i];
        json_t *candidate = json_object();

        slc_json_set_text(candidate, "conflict", slc_conflict_name(cost->conflict));
        slc_json_set_real(candidate, "predicted_ns", cost->predicted_ns);
        slc_json_set(candidate, "measured_ns",
                     cost->measured_ns > 0 ? json_real(cost->measured_ns) : json_null());
        (void)json_array_append_new(candidates, candidate);
    }
    slc_json_set_count(object, "mode", mode + 1);
    /* Devices avoid conflicts between additions themselves; then no strategy is chosen, and the
     * member is null. */
    slc_json_set_text(object, "chosen", name_of(choice->chosen));
    slc_json_set(object, "candidates", candidates);
    return object;
}

json_t *slc_json_iteration(const struct slc_cp_iteration *iteration, unsigned order)
{
    json_t *modes = json_array();
    json_t *singular = json_array();

    for (unsigned n = 0; n < order; n++) {
        (void)json_array_append_new(modes, json_real(iteration->mode_seconds[n]));
        if (iteration->singular[n]) {
            (void)json_array_append_new(singular, json_integer((json_int_t)n + 1));
        }
    }
    json_t *object = json_pack(
        "{s:I, s:f, s:f, s:f, s:I, s:I}", "iteration", (json_int_t)iteration->iteration, "fit",
        iteration->fit, "delta", iteration->delta, "seconds", iteration->seconds, "bytes_read",
        (json_int_t)iteration->bytes_read, "passes", (json_int_t)iteration->passes);
    if (iteration->objective_name != NULL) {
        slc_json_set_real(object, "objective", iteration->objective);
    }
    if (iteration->inner > 0) {
        slc_json_set_real(object, "violation", iteration->violation);
        slc_json_set_real(object, "inner", iteration->inner);
    }
    if (iteration->heldout > 0) {
        slc_json_set_real(object, "heldout_rmse", iteration->heldout_rmse);
    }
    if (iteration->heldout > 0 && iteration->inner > 0) {
        slc_json_set_real(object, "heldout_mae", iteration->heldout_mae);
        slc_json_set_real(object, "heldout_deviance", iteration->heldout_deviance);
    }
    slc_json_set(object, "mode_seconds", modes);
    slc_json_set(object, "singular_modes", singular);
    return object;
}

json_t *slc_json_device_plan(const struct slc_plan *plan, unsigned order)
{
    const struct slc_plan_gpu *gpu = &plan->gpu;

    if (plan->request.gpu == NULL) {
        return json_null();
    }
    json_t *copied = json_array();
    for (unsigned n = 0; n < order; n++) {
        if (plan->request.operation == SLC_OP_CPD || n == plan->request.mode) {
            (void)json_array_append_new(copied,
                                        json_integer((json_int_t)slc_plan_pass_copied(plan, n)));
        }
    }
    json_t *object = json_pack(
        "{s:s, s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "name",
        gpu->name, "described", (int)gpu->described, "multiprocessors",
        (json_int_t)gpu->multiprocessors, "shared_bytes", (json_int_t)gpu->shared_bytes,
        "memory_bytes", (json_int_t)gpu->device_total_bytes, "budget_bytes",
        (json_int_t)gpu->budget_bytes, "minimum_bytes", (json_int_t)gpu->minimum_bytes,
        "total_bytes", (json_int_t)gpu->total_bytes, "factor_bytes", (json_int_t)gpu->factor_bytes,
        "slots_bytes", (json_int_t)gpu->slots_bytes, "resident_bytes",
        (json_int_t)gpu->resident_bytes, "streams", (json_int_t)gpu->streams, "slot_bytes",
        (json_int_t)gpu->slot_bytes, "resident_blocks", (json_int_t)gpu->kept_blocks,
        "resident_block_bytes", (json_int_t)gpu->kept_bytes);
    slc_json_set(object, "pass_copied_bytes", copied);
    slc_json_set_count(object, "iteration_copied_bytes", slc_plan_iteration_copied(plan));
    return object;
}

json_t *slc_json_device_stats(const struct slc_plan *plan, const struct slc_device_stats *stats)
{
    if (plan->request.gpu == NULL) {
        return json_null();
    }
    return json_pack(
        "{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f}", "name",
        plan->gpu.name, "launches", (json_int_t)stats->launches, "blocks",
        (json_int_t)stats->blocks, "nnz", (json_int_t)stats->nnz, "block_bytes",
        (json_int_t)stats->block_bytes, "resident_bytes", (json_int_t)stats->resident_bytes,
        "transcoded_bytes", (json_int_t)stats->transcoded_bytes, "bytes_to_device",
        (json_int_t)stats->bytes_to_device, "bytes_to_host", (json_int_t)stats->bytes_to_host,
        "factor_bytes_to_host", (json_int_t)stats->factor_bytes_to_host, "bytes_from_devices",
        (json_int_t)stats->bytes_from_devices, "copy_seconds", stats->copy_seconds,
        "compute_seconds", stats->compute_seconds, "busy_seconds", stats->busy_seconds);
}

static json_t *sides_json(json_t *cpu, json_t *device)
{
    json_t *object = json_object();

    slc_json_set(object, "cpu", cpu);
    slc_json_set(object, "device", device);
    return object;
}

json_t *slc_json_hybrid_wish(const struct slc_hybrid_wish *wish)
{
    if (wish->kind == SLC_HYBRID_NONE) {
        return json_null();
    }
    json_t *object = json_object();
    slc_json_set_text(object, "kind", slc_hybrid_kind_name(wish->kind));
    slc_json_set_known_real(object, "fraction",
                            wish->kind == SLC_HYBRID_STATIC ? wish->fraction : -1);
    return object;
}

json_t *slc_json_hybrid(const struct slc_hybrid *shares, unsigned order)
{
    json_t *object = slc_json_hybrid_wish(&shares[0].wish);
    json_t *modes = json_array();

    for (unsigned n = 0; n < order; n++) {
        const struct slc_hybrid *share = &shares[n];
        const struct slc_hybrid_part *cpu = &share->parts[SLC_HYBRID_CPU];
        const struct slc_hybrid_part *device = &share->parts[SLC_HYBRID_GPU];

        if (share->passes == 0) {
            continue;
        }
        json_t *mode = json_object();
        slc_json_set(mode, "mode", json_integer(n + 1));
        slc_json_set_count(mode, "passes", share->passes);
        slc_json_set_count(mode, "passes_without_cpu", share->passes_alone);
        slc_json_set_real(mode, "cpu_cost_seconds", share->cost_seconds);
        slc_json_set_known_real(mode, "measured", slc_hybrid_rates_fraction(&share->rates));
        slc_json_set_known_real(mode, "used", slc_hybrid_fraction(share->parts));
        slc_json_set_known_real(mode, "used_last", slc_hybrid_fraction(share->last));
        slc_json_set(
            mode, "nnz",
            sides_json(json_integer((json_int_t)cpu->nnz), json_integer((json_int_t)device->nnz)));
        slc_json_set(mode, "seconds",
                     sides_json(json_real(cpu->seconds), json_real(device->seconds)));
        (void)json_array_append_new(modes, mode);
    }
    if (json_is_null(object)) {
        json_decref(modes);
        return object;
    }
    slc_json_set(object, "modes", modes);
    return object;
}

void slc_devices_imbalance(const struct slc_plan *plan,
                           const struct slc_member_stats *stats,
                           double *of_nnz,
                           double *of_time)
{
    const unsigned count = slc_plan_group_size(plan);
    double nnz[SLC_MAX_DEVICES], seconds[SLC_MAX_DEVICES];

    for (unsigned d = 0; d < count; d++) {
        nnz[d] = (double)stats[d].nnz;
        seconds[d] = stats[d].compute_seconds;
    }
    *of_nnz = slc_assign_imbalance(nnz, count);
    *of_time = slc_assign_imbalance(seconds, count);
}

json_t *slc_json_devices_stats(const struct slc_plan *plan, const struct slc_member_stats *stats)
{
    json_t *list = json_array();
    json_t *object = json_object();
    const unsigned count = slc_plan_group_size(plan);
    double of_nnz, of_time;

    if (count == 0) {
        json_decref(list);
        json_decref(object);
        return json_null();
    }
    for (unsigned d = 0; d < count; d++) {
        (void)json_array_append_new(
            list,
            json_pack("{s:I, s:I, s:f, s:f, s:f, s:f, s:I, s:f, s:f, s:f, s:I}", "nnz",
                      (json_int_t)stats[d].nnz, "block_bytes", (json_int_t)stats[d].bytes,
                      "compute", stats[d].compute_seconds, "wait", stats[d].wait_seconds, "reduce",
                      stats[d].reduce_seconds, "solve", stats[d].solve_seconds, "copied_bytes",
                      (json_int_t)stats[d].copied_bytes, "copy", stats[d].copy_seconds, "exchange",
                      stats[d].exchange_seconds, "exchange_wait", stats[d].exchange_wait_seconds,
                      "sent_bytes", (json_int_t)stats[d].sent_bytes));
    }
    slc_devices_imbalance(plan, stats, &of_nnz, &of_time);
    slc_json_set(object, "threads_each", json_integer(plan->group_threads));
    slc_json_set_text(object, "split", slc_split_name(plan->request.split));
    slc_json_set_real(object, "imbalance_nnz", of_nnz);
    slc_json_set_real(object, "imbalance_seconds", of_time);
    slc_json_set(object, "each", list);
    return object;
}
