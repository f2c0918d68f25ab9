/* Measures sluice's MTTKRP on several devices. Each device has its own copy of the factors and its
 * own slots. Logical devices of one GPU divide the memory of that GPU. */
#include "tools/bench/device/device.h"

#include "base/error/clock.h"
#include "engine/executor/gpu_group.h"
#include "tools/bench/measure/factors.h"
#include "tools/bench/measure/run.h"
#include "tools/bench/measure/timing.h"

#include <math.h>

/* A group of devices and its division of the work. */
struct group {
    const struct device_mttkrp *request;
    unsigned count;
    const char *split;
    struct slc_session session;
    struct bench_factors factors;
    struct bench_samples *each; /* compute seconds; one element per device */
    json_t *rows;
};

static bool has_sorted_layouts(const struct slc_manifest *manifest)
{
    for (unsigned n = 0; n < manifest->order; n++) {
        if (slc_manifest_find(manifest, SLC_LAYOUT_SORTED, n) == NULL) {
            return false;
        }
    }
    return true;
}

static enum slc_status start_group(struct group *group, unsigned ordinal, struct slc_error *err)
{
    const struct device_mttkrp *request = group->request;
    struct session_options options = request->session;

    options.split = group->split;
    options.devices.count = group->count;
    for (unsigned d = 0; d < group->count; d++) {
        options.devices.number[d] = ordinal;
    }
    SLC_TRY(session_plan(&group->session, &options, SLC_OP_CPD, 0, request->rank, err));
    SLC_TRY(slc_session_start(&group->session, err));
    SLC_TRY(bench_factors_create(&group->factors, &group->session.store.manifest,
                                 request->precision, request->rank, 0, err));
    return slc_gpu_group_load(group->session.group, group->factors.factors, err);
}

static json_t *add_row(const struct group *group, unsigned mode)
{
    json_t *row = device_mttkrp_add_row(group->request, &group->session.store.manifest, mode,
                                        "sluice", group->rows);

    slc_json_set_text(row, "split", group->split);
    slc_json_set_count(row, "devices", group->count);
    return row;
}

static double compute_seconds(const struct group *group, unsigned device)
{
    struct slc_member_stats stats;

    slc_gpu_group_stats(group->session.group, device, &stats);
    return stats.compute_seconds;
}

/* Computes one MTTKRP. Sets the time of each device, and the longest of these times. */
static enum slc_status run_once(struct group *group,
                                unsigned mode,
                                double seconds[SLC_MAX_DEVICES],
                                double *longest,
                                struct slc_error *err)
{
    for (unsigned d = 0; d < group->count; d++) {
        seconds[d] = -compute_seconds(group, d);
    }
    enum slc_status status =
        slc_gpu_group_mttkrp(group->session.group, mode, NULL, NULL, NULL, err);
    *longest = 0;
    for (unsigned d = 0; d < group->count; d++) {
        seconds[d] += compute_seconds(group, d);
        *longest = fmax(*longest, seconds[d]);
    }
    return status;
}

static enum slc_status measure_mode(struct group *group, unsigned mode, struct slc_error *err)
{
    const struct device_mttkrp *request = group->request;
    struct bench_samples longest = {.count = 0}, whole = {.count = 0};
    struct slc_device_stats before = {0}, after = {0};
    json_t *row = add_row(group, mode), *each = json_array();
    double seconds[SLC_MAX_DEVICES], most;

    slc_json_set(row, "device_ms", each);
    for (unsigned d = 0; d < group->count; d++) {
        group->each[d].count = 0;
    }
    for (unsigned i = 0; i < request->warm_up + request->repeats; i++) {
        const uint64_t start_ns = slc_clock_ns();

        slc_gpu_group_sum(group->session.group, &before);
        SLC_TRY(run_once(group, mode, seconds, &most, err));
        slc_gpu_group_sum(group->session.group, &after);
        for (unsigned d = 0; d < group->count && i >= request->warm_up; d++) {
            bench_samples_add(&group->each[d], seconds[d]);
        }
        if (i >= request->warm_up) {
            bench_samples_add(&longest, most);
            bench_samples_add(&whole, slc_seconds_since(start_ns));
        }
    }
    device_mttkrp_set_times(row, group->session.store.manifest.nnz, &longest, &whole);
    slc_json_set_count(row, "copied_bytes", after.block_bytes - before.block_bytes);
    bench_set_real(row, "form_bytes_per_nnz",
                   device_block_bytes_per_nnz(
                       group->session.layouts.reader[group->session.plan.mode_layout[mode]]));
    for (unsigned d = 0; d < group->count; d++) {
        (void)json_array_append_new(each,
                                    json_real(bench_samples_summary(&group->each[d]).median * 1e3));
    }
    return SLC_OK;
}

static enum slc_status measure_split(struct group *group, unsigned ordinal, struct slc_error *err)
{
    const struct device_mttkrp *request = group->request;
    enum slc_status status = start_group(group, ordinal, err);

    if (status != SLC_OK) {
        bench_factors_destroy(&group->factors);
        return device_mttkrp_note_refusal(add_row(group, request->mode > 0 ? request->mode - 1 : 0),
                                          status, err);
    }
    for (unsigned n = 0; status == SLC_OK && n < group->session.store.manifest.order; n++) {
        if (request->mode == 0 || request->mode == n + 1) {
            status = measure_mode(group, n, err);
        }
    }
    bench_factors_destroy(&group->factors);
    return status;
}

enum slc_status device_group_measure(const struct device_mttkrp *measured,
                                     unsigned ordinal,
                                     unsigned count,
                                     json_t *rows,
                                     struct slc_error *err)
{
    static const char *const splits[] = {"partitions", "nnz"};
    enum slc_status status = SLC_OK;

    for (unsigned s = 0; s < 2 && status == SLC_OK; s++) {
        struct group group = {
            .request = measured, .count = count, .split = splits[s], .rows = rows};

        group.each = slc_calloc(count, sizeof *group.each);
        status = group.each == NULL
                     ? slc_fail(err, SLC_ERR_MEMORY, "no memory for samples")
                     : session_open(&group.session, measured->path, measured->session.memory, err);
        if (status == SLC_OK && (s == 1 || has_sorted_layouts(&group.session.store.manifest))) {
            status = measure_split(&group, ordinal, err);
        }
        session_close(&group.session);
        slc_free(group.each);
    }
    return status;
}
