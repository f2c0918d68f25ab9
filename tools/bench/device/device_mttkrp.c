/* Measures MTTKRPs on a device.
 *
 * A row has the time that the device measures with its events, and the time of the whole call,
 * which also reads, verifies and copies blocks. Every output is compared with sluice's output for
 * the same mode. */
#include "tools/bench/device/device.h"

#include "base/error/clock.h"
#include "base/memory/checked.h"
#include "engine/executor/gpu_executor.h"
#include "report/json_parts.h"
#include "report/json_plan.h"
#include "tools/bench/measure/factors.h"
#include "tools/bench/measure/resident.h"
#include "tools/bench/measure/run.h"
#include "tools/bench/measure/timing.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum slc_status device_list_load(const char *path,
                                 const struct session_options *options,
                                 enum slc_value_type type,
                                 struct slc_coo *coo,
                                 struct slc_error *err)
{
    struct session_options on_cpu = *options;
    struct slc_session session = {.stream = NULL};

    on_cpu.device = "cpu";
    on_cpu.device_memory = 0;
    on_cpu.streams = 0;
    enum slc_status status = session_open(&session, path, on_cpu.memory, err);
    SLC_THEN(status, session_plan(&session, &on_cpu, SLC_OP_MTTKRP, 0, 1, err));
    SLC_THEN(status, slc_session_start(&session, err));
    SLC_THEN(status, bench_list_pass(&session, type, coo, err));
    session_close(&session);
    return status;
}

double device_block_bytes_per_nnz(const struct slc_reader *reader)
{
    const struct slc_layout_info *info = slc_reader_info(reader);
    uint64_t bytes = 0;

    for (uint64_t b = 0; b < info->block_count; b++) {
        struct slc_block_entry entry;

        slc_reader_entry(reader, b, &entry);
        bytes += entry.bytes;
    }
    return (double)bytes / (double)slc_max_u64(info->nnz, 1);
}

double device_mttkrp_difference(const struct slc_matrix *wanted, const struct slc_matrix *got)
{
    double apart = 0, norm = 0;

    for (uint64_t i = 0; i < wanted->rows; i++) {
        for (uint32_t r = 0; r < wanted->cols; r++) {
            const double a = slc_matrix_get(wanted, i, r), d = slc_matrix_get(got, i, r) - a;

            apart += d * d;
            norm += a * a;
        }
    }
    return norm > 0 ? sqrt(apart / norm) : sqrt(apart);
}

json_t *device_mttkrp_add_row(const struct device_mttkrp *request,
                              const struct slc_manifest *manifest,
                              unsigned mode,
                              const char *kernel,
                              json_t *rows)
{
    json_t *row = bench_add_row(rows);

    slc_json_set_text(row, "tensor", request->path);
    slc_json_set_count(row, "rank", request->rank);
    slc_json_set_text(row, "precision", request->precision == SLC_F32 ? "f32" : "f64");
    slc_json_set_count(row, "mode", mode + 1);
    slc_json_set_text(row, "kernel", kernel);
    slc_json_set(row, "dims", slc_json_dims(manifest->order, manifest->dims));
    slc_json_set_count(row, "nnz", manifest->nnz);
    return row;
}

void device_mttkrp_set_times(json_t *row,
                             uint64_t nnz,
                             const struct bench_samples *device,
                             const struct bench_samples *whole)
{
    const struct bench_times times = bench_samples_summary(device);

    bench_times_to_json(row, &times);
    bench_set_real(row, "whole_ms", bench_samples_summary(whole).median * 1e3);
    bench_set_real(row, "gnnz_per_s", (double)nnz / times.median * 1e-9);
}

void device_mttkrp_set_form(json_t *row,
                            const char *kernel,
                            unsigned mode,
                            double seconds,
                            const struct slc_gpu_lists_run *run)
{
    /* The entry of a kernel is the first whose `kernels` is a prefix of the name of the kernel. */
    static const struct {
        const char *kernels, *form;
        bool each_mode; /* true if each mode has its own form */
    } forms[] = {{"blco-queues", "blco-queues", false},
                 {"blco", "blco", false},
                 {"amped", "partitions", true},
                 {"genten-c", "permutation", true},
                 {"xplat-", "slices", true},
                 {"atomic-", "fibers", false},
                 {"", "list", false}};
    unsigned f = 0;
    char name[32];

    while (strncmp(kernel, forms[f].kernels, strlen(forms[f].kernels)) != 0) {
        f++;
    }
    (void)snprintf(name, sizeof name, forms[f].each_mode ? "%s-%u" : "%s", forms[f].form, mode + 1);
    slc_json_set_text(row, "chosen", run->chosen);
    slc_json_set_text(row, "form", name);
    bench_set_real(row, "build_ms", seconds * 1e3);
    bench_set_real(row, "form_bytes_per_nnz", run->form_bytes_per_nonzero);
}

enum slc_status
device_mttkrp_note_refusal(json_t *row, enum slc_status status, struct slc_error *err)
{
    if (status == SLC_ERR_MEMORY || status == SLC_ERR_BUDGET || status == SLC_ERR_UNSUPPORTED) {
        slc_json_set_text(row, "note", err->message);
        slc_error_clear(err);
        return SLC_OK;
    }
    return status;
}

/* ---- measuring */

/* State of measuring the kernels of sluice and the baselines at one rank. */
struct sides {
    const struct device_mttkrp *request;
    struct slc_session session;
    struct bench_factors factors;
    struct slc_coo coo; /* empty if no baseline is measured */
    struct slc_gpu_lists *lists;
    struct slc_matrix wanted[SLC_MAX_ORDER]; /* outputs of sluice */
    json_t *rows;
};

static bool baseline_wanted(const struct device_mttkrp *request, unsigned kernel)
{
    return strcmp(request->kernel, "all") == 0 ||
           strcmp(request->kernel, slc_gpu_lists_kernel(kernel)) == 0;
}

static bool any_baseline(const struct device_mttkrp *request)
{
    for (unsigned k = 0; k < slc_gpu_lists_kernels(); k++) {
        if (baseline_wanted(request, k)) {
            return true;
        }
    }
    return false;
}

static enum slc_status start_baselines(struct sides *sides, struct slc_error *err)
{
    const struct device_mttkrp *request = sides->request;

    SLC_TRY(
        device_list_load(request->path, &request->session, request->precision, &sides->coo, err));
    struct slc_gpu_lists_source source = {sides->coo.shape.nnz, sides->coo.coords.data,
                                          sides->coo.type, sides->coo.values.data};
    return slc_gpu_lists_create(sides->session.gpu, &source, &request->lists, &sides->lists, err);
}

static enum slc_status start_sides(struct sides *sides, struct slc_error *err)
{
    const struct device_mttkrp *request = sides->request;
    enum slc_status status =
        session_open(&sides->session, request->path, request->session.memory, err);

    SLC_THEN(status,
             session_plan(&sides->session, &request->session, SLC_OP_CPD, 0, request->rank, err));
    SLC_THEN(status, slc_session_start(&sides->session, err));
    SLC_THEN(status, bench_factors_create(&sides->factors, &sides->session.store.manifest,
                                          request->precision, request->rank, 0, err));
    struct slc_device *device = sides->session.gpu;
    for (unsigned n = 0; status == SLC_OK && n < sides->session.store.manifest.order; n++) {
        status = device->ops->memory.factor_write(device, n, &sides->factors.factors[n], err);
    }
    return status == SLC_OK && any_baseline(request) ? start_baselines(sides, err) : status;
}

static void stop_sides(struct sides *sides)
{
    slc_gpu_lists_destroy(sides->lists);
    slc_coo_destroy(&sides->coo);
    for (unsigned n = 0; n < SLC_MAX_ORDER; n++) {
        slc_matrix_destroy(&sides->wanted[n]);
    }
    bench_factors_destroy(&sides->factors);
    session_close(&sides->session);
}

static json_t *add_row(const struct sides *sides, unsigned mode, const char *kernel)
{
    return device_mttkrp_add_row(sides->request, &sides->session.store.manifest, mode, kernel,
                                 sides->rows);
}

/* Measures sluice's kernel in a mode. Its output stays on the device. */
static enum slc_status
measure_kernel(struct sides *sides, unsigned mode, json_t *row, struct slc_error *err)
{
    const struct device_mttkrp *request = sides->request;
    struct slc_device *device = sides->session.gpu;
    struct bench_samples samples = {.count = 0}, whole = {.count = 0};
    struct slc_device_stats before = {0}, after = {0};
    struct slc_stream_stats read_before = {0}, read_after = {0};

    for (unsigned i = 0; i < request->warm_up + request->repeats; i++) {
        const uint64_t start_ns = slc_clock_ns();

        device->ops->stats(device, &before);
        slc_stream_stats(sides->session.stream, &read_before);
        SLC_TRY(slc_gpu_executor_mttkrp(device, sides->session.stream, &sides->session.plan, mode,
                                        NULL, NULL, NULL, err));
        device->ops->stats(device, &after);
        slc_stream_stats(sides->session.stream, &read_after);
        if (i >= request->warm_up) {
            bench_samples_add(&samples, after.compute_seconds - before.compute_seconds);
            bench_samples_add(&whole, slc_seconds_since(start_ns));
        }
    }
    device_mttkrp_set_times(row, sides->session.store.manifest.nnz, &samples, &whole);
    /* These figures are of the last call, because the first calls fill the caches of host and
     * device. */
    slc_json_set_count(row, "read_bytes", read_after.bytes_read - read_before.bytes_read);
    slc_json_set(row, "direct", json_boolean(read_after.direct));
    slc_json_set_count(row, "copied_bytes", after.block_bytes - before.block_bytes);
    slc_json_set_count(row, "resident_bytes", after.resident_bytes - before.resident_bytes);
    slc_json_set_count(row, "transcoded_bytes", after.transcoded_bytes);
    bench_set_real(row, "copy_ms", (after.copy_seconds - before.copy_seconds) * 1e3);
    bench_set_real(row, "kernel_ms", (after.compute_seconds - before.compute_seconds) * 1e3);
    bench_set_real(row, "busy_ms", (after.busy_seconds - before.busy_seconds) * 1e3);
    bench_set_real(row, "form_bytes_per_nnz",
                   device_block_bytes_per_nnz(sides->session.store.reader));
    slc_json_set_count(row, "launches", after.launches - before.launches);
    slc_json_set(row, "device",
                 slc_json_device_plan(&sides->session.plan, sides->session.store.manifest.order));
    return SLC_OK;
}

/* Measures sluice in a mode and stores its output in sides->wanted. */
static enum slc_status measure_own(struct sides *sides, unsigned mode, struct slc_error *err)
{
    struct slc_device *device = sides->session.gpu;
    json_t *row = add_row(sides, mode, "sluice");

    SLC_TRY(measure_kernel(sides, mode, row, err));
    SLC_TRY(slc_matrix_create(&sides->wanted[mode], sides->request->precision,
                              sides->session.store.manifest.dims[mode], sides->request->rank, err));
    return device->ops->memory.output_read(device, &sides->wanted[mode], err);
}

/* Records the bytes and the time of the copies in a call of a baseline. */
static void set_copies(const struct sides *sides, json_t *row, const struct slc_gpu_lists_run *run)
{
    if (run->streamed) {
        slc_json_set_count(row, "copied_bytes",
                           sides->coo.shape.nnz *
                               (sizeof(uint64_t) + slc_value_bytes(sides->coo.type)));
        bench_set_real(row, "copy_ms", run->copy_seconds * 1e3);
        bench_set_real(row, "kernel_ms", run->kernel_seconds * 1e3);
        bench_set_real(row, "busy_ms", run->seconds * 1e3);
    }
}

static enum slc_status
measure_baseline(struct sides *sides, unsigned mode, unsigned kernel, struct slc_error *err)
{
    const struct device_mttkrp *request = sides->request;
    struct slc_device *device = sides->session.gpu;
    struct slc_matrix got = sides->factors.output;
    struct bench_samples samples = {.count = 0}, whole = {.count = 0};
    struct slc_gpu_lists_run run = {.seconds = 0};
    enum slc_status status = SLC_OK;
    json_t *row = add_row(sides, mode, slc_gpu_lists_kernel(kernel));

    for (unsigned i = 0; i < request->warm_up + request->repeats && status == SLC_OK; i++) {
        const uint64_t start_ns = slc_clock_ns();

        status = slc_gpu_lists_mttkrp(sides->lists, kernel, mode, &run, err);
        if (i >= request->warm_up) {
            bench_samples_add(&samples, run.kernel_seconds);
            bench_samples_add(&whole, slc_seconds_since(start_ns));
        }
    }
    if (status != SLC_OK) {
        return device_mttkrp_note_refusal(row, status, err);
    }
    device_mttkrp_set_times(row, sides->session.store.manifest.nnz, &samples, &whole);
    device_mttkrp_set_form(row, slc_gpu_lists_kernel(kernel), mode, run.form_seconds, &run);
    set_copies(sides, row, &run);
    got.rows = sides->wanted[mode].rows;
    status = device->ops->memory.output_read(device, &got, err);
    bench_set_real(row, "differs", device_mttkrp_difference(&sides->wanted[mode], &got));
    return status;
}

/* Measures AMPED on several devices. First closes the device of the session, because it may be one
 * of these devices. */
static enum slc_status measure_amped(struct sides *sides, struct slc_error *err)
{
    slc_gpu_lists_destroy(sides->lists);
    sides->lists = NULL;
    slc_session_close(&sides->session);
    return device_amped_measure(sides->request, &sides->session.store.manifest, &sides->coo,
                                &sides->factors, sides->wanted, sides->rows, err);
}

static enum slc_status check_names(const struct device_mttkrp *request, struct slc_error *err)
{
    if (strcmp(request->kernel, "sluice") == 0 || any_baseline(request)) {
        return SLC_OK;
    }
    return slc_fail(err, SLC_ERR_USAGE,
                    "--kernel %s: unknown kernel; see sluice bench "
                    "device --help",
                    request->kernel);
}

enum slc_status
device_mttkrp_measure(const struct device_mttkrp *measured, json_t *rows, struct slc_error *err)
{
    struct sides sides = {.request = measured, .session = {.stream = NULL}, .rows = rows};
    enum slc_status status = check_names(measured, err);

    SLC_THEN(status, start_sides(&sides, err));
    for (unsigned n = 0; status == SLC_OK && n < sides.session.store.manifest.order; n++) {
        if (measured->mode != 0 && measured->mode != n + 1) {
            continue;
        }
        status = measure_own(&sides, n, err);
        for (unsigned k = 0; k < slc_gpu_lists_kernels() && sides.lists != NULL; k++) {
            if (status == SLC_OK && baseline_wanted(measured, k)) {
                status = measure_baseline(&sides, n, k, err);
            }
        }
    }
    if (status == SLC_OK && measured->devices.count > 0 &&
        (strcmp(measured->kernel, "amped") == 0 || strcmp(measured->kernel, "all") == 0)) {
        status = measure_amped(&sides, err);
    }
    stop_sides(&sides);
    return status;
}
