/* Measures the kernels of `bench roofline` on a GPU. Their operations and bytes, with N modes, rank
 * R and elements of v bytes:
 *
 *   mttkrp        N R operations per nonzero; bytes as in the model of device_summary.h
 *   sptv          2 operations and v + 4 + 8 bytes per nonzero: value, index, element of vector;
 *                 8 + 4 bytes per fiber: sum and end of the fiber
 *   ttm-fibers    2 R operations and v + 4 + R v bytes per nonzero: value, index, matrix row;
 *                 8 R + 4 bytes per fiber: row of the result in f64, end of the fiber
 *   ttm-nonzeros  as ttm-fibers per nonzero, and 8 R + 4 more bytes per nonzero: row of the
 *                 result and its number
 *
 * The clock of the device measures the times. The bytes do not include copies to the device, but
 * the time of an MTTKRP includes copying blocks that do not stay there. */
#include "tools/bench/roofline/roofline.h"

#include "tools/bench/device/device.h"
#include "tools/bench/device/device_summary.h"
#include "tools/bench/mttkrp/mttkrp_model.h"

#include <stdio.h>
#include <string.h>

enum { INDEX_BYTES = 4, SUM_BYTES = 8 };

static struct session_options device_options(const struct roofline_job *job)
{
    return (struct session_options){.memory = job->memory_bytes,
                                    .threads = job->threads,
                                    .io = "auto",
                                    .schedule = "auto",
                                    .pin = "auto",
                                    .precision = job->precision == SLC_F32 ? "f32" : "f64",
                                    .device = "gpu",
                                    .device_memory = job->device_memory};
}

static double number_of(const json_t *row, const char *name)
{
    return json_number_value(json_object_get(row, name));
}

/* Returns the mode of the job, starting at 1; 0: all modes, the only other range of modes. */
static unsigned only_mode(const struct roofline_job *job)
{
    return job->mode_end - job->mode_begin == 1 ? job->mode_end : 0;
}

/* Copies the times of a row of the record to the point of its mode. Returns the point. */
static struct roofline_point *set_times(const json_t *row, struct roofline_point *points)
{
    const unsigned mode = (unsigned)number_of(row, "mode") - 1;
    struct roofline_point *point = &points[mode];

    point->measured = true;
    point->times = (struct bench_times){.samples = (unsigned)number_of(row, "samples"),
                                        .min = number_of(row, "min_ms") * 1e-3,
                                        .median = number_of(row, "median_ms") * 1e-3,
                                        .max = number_of(row, "max_ms") * 1e-3};
    return point;
}

enum slc_status roofline_device_mttkrp(const struct roofline_job *job,
                                       struct roofline_point *points,
                                       struct slc_error *err)
{
    const struct slc_manifest *manifest = &job->session->store.manifest;
    const struct device_mttkrp measured = {.path = job->session->store.path,
                                           .rank = job->rank,
                                           .mode = only_mode(job),
                                           .precision = job->precision,
                                           .kernel = "sluice",
                                           .session = device_options(job),
                                           .warm_up = job->warm_up,
                                           .repeats = job->repeats};
    const double value_bytes = (double)slc_value_bytes(job->precision);
    const double nnz = (double)manifest->nnz;
    json_t *rows = json_array();
    const enum slc_status status = device_mttkrp_measure(&measured, rows, err);
    size_t i;
    const json_t *row;

    json_array_foreach(rows, i, row)
    {
        struct roofline_point *point = status == SLC_OK ? set_times(row, points) : NULL;

        if (point != NULL) {
            point->flop = nnz * device_model_flop(manifest->order, job->rank);
            point->bytes = nnz * device_model_bytes(manifest->order, job->rank, value_bytes,
                                                    number_of(row, "form_bytes_per_nnz"));
            point->rows_bytes =
                bench_model_set_bytes(manifest, bench_model_row_bytes(job->precision, job->rank));
            point->strategy = "blocks";
            point->nnz_per_run = 1;
            (void)snprintf(point->form, sizeof point->form, "plain");
        }
    }
    json_decref(rows);
    return status;
}

/* Returns the bytes that one product moves, as counted above. */
static double product_bytes(const struct roofline_job *job, double fibers)
{
    const double nnz = (double)job->session->store.manifest.nnz;
    const double value = (double)slc_value_bytes(job->precision);
    const double row = job->rank * value, sums = job->rank * (double)SUM_BYTES;

    if (strcmp(job->kernel, "sptv") == 0) {
        return nnz * (value + INDEX_BYTES + SUM_BYTES) + fibers * (SUM_BYTES + INDEX_BYTES);
    }
    return nnz * (value + INDEX_BYTES + row) +
           (strcmp(job->kernel, "ttm-fibers") == 0 ? fibers : nnz) * (sums + INDEX_BYTES);
}

enum slc_status roofline_device_product(const struct roofline_job *job,
                                        struct roofline_point *points,
                                        struct slc_error *err)
{
    const struct slc_manifest *manifest = &job->session->store.manifest;
    const bool vector = strcmp(job->kernel, "sptv") == 0;
    const struct option_counts ranks = {.count = 1, .number = {job->rank}};
    const struct device_fibers measured = {.path = job->session->store.path,
                                           .vector = vector,
                                           .matrix = !vector,
                                           .only = job->kernel,
                                           .ranks = &ranks,
                                           .mode = only_mode(job),
                                           .precision = job->precision,
                                           .session = device_options(job),
                                           .repeats = job->repeats};
    const double nnz = (double)manifest->nnz;
    json_t *rows = json_array();
    enum slc_status status = SLC_OK;
    size_t i;
    const json_t *row;

    if (manifest->nnz > 0 && (!vector || (job->rank == 1 && job->precision == SLC_F64))) {
        status = device_fibers_measure(&measured, rows, err);
    }
    json_array_foreach(rows, i, row)
    {
        struct roofline_point *point = status == SLC_OK ? set_times(row, points) : NULL;

        if (point != NULL) {
            const unsigned mode = (unsigned)(point - points);
            const double fibers = number_of(row, "fibers");

            point->flop = 2 * nnz * job->rank;
            point->bytes = product_bytes(job, fibers);
            point->rows_bytes =
                manifest->dims[mode] * bench_model_row_bytes(job->precision, job->rank);
            point->strategy = "fibers";
            point->nnz_per_run = nnz / fibers;
            (void)snprintf(point->form, sizeof point->form, "%u", mode + 1);
        }
    }
    json_decref(rows);
    return status;
}
