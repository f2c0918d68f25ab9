/* See json_stats.h. */
#include "report/json_stats.h"

#include "engine/executor/assign.h"
#include "engine/session/session.h"
#include "report/json_parts.h"

json_t *slc_json_device_plan(const struct slc_plan *plan, unsigned order)
{
    const struct slc_plan_gpu *gpu = &plan->gpu;
    json_t *copied, *object;

    if (plan->request.gpu == NULL) {
        return json_null();
    }
    copied = json_array();
    for (unsigned n = 0; n < order; n++) {
        if (plan->request.operation == SLC_OP_CPD || n == plan->request.mode) {
            (void)json_array_append_new(copied,
                                        json_integer((json_int_t)slc_plan_pass_copied(plan, n)));
        }
    }
    object = json_pack(
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
        "{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f}", "name", plan->gpu.name,
        "launches", (json_int_t)stats->launches, "blocks", (json_int_t)stats->blocks, "nnz",
        (json_int_t)stats->nnz, "block_bytes", (json_int_t)stats->block_bytes, "resident_bytes",
        (json_int_t)stats->resident_bytes, "bytes_to_device", (json_int_t)stats->bytes_to_device,
        "bytes_to_host", (json_int_t)stats->bytes_to_host, "factor_bytes_to_host",
        (json_int_t)stats->factor_bytes_to_host, "bytes_from_devices",
        (json_int_t)stats->bytes_from_devices, "copy_seconds", stats->copy_seconds,
        "compute_seconds", stats->compute_seconds, "busy_seconds", stats->busy_seconds);
}

/* A fraction that there may be none of. */
static json_t *fraction_json(double fraction)
{
    return fraction >= 0 ? json_real(fraction) : json_null();
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
    json_t *object;

    if (wish->kind == SLC_HYBRID_NONE) {
        return json_null();
    }
    object = json_object();
    slc_json_set_text(object, "kind", slc_hybrid_kind_name(wish->kind));
    slc_json_set(object, "fraction",
                 fraction_json(wish->kind == SLC_HYBRID_STATIC ? wish->fraction : -1));
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
        json_t *mode;

        if (share->passes == 0) {
            continue;
        }
        mode = json_object();
        slc_json_set(mode, "mode", json_integer(n + 1));
        slc_json_set_count(mode, "passes", share->passes);
        slc_json_set_count(mode, "passes_without_cpu", share->passes_alone);
        slc_json_set_real(mode, "cpu_cost_seconds", share->cost_seconds);
        slc_json_set(mode, "measured", fraction_json(slc_hybrid_rates_fraction(&share->rates)));
        slc_json_set(mode, "used", fraction_json(slc_hybrid_fraction(share->parts)));
        slc_json_set(mode, "used_last", fraction_json(slc_hybrid_fraction(share->last)));
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
