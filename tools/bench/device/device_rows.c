/* See device_rows.h. */
#include "tools/bench/device/device_rows.h"

#include "base/memory/checked.h"
#include "report/json_parts.h"
#include "report/json_stats.h"
#include "tools/bench/measure/run.h"

#include <math.h>
#include <string.h>

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

json_t *device_mttkrp_add_row(const struct device_mttkrp *of,
                              const struct slc_manifest *manifest,
                              unsigned mode,
                              const char *kernel,
                              json_t *rows)
{
    json_t *row = bench_add_row(rows);

    slc_json_set_text(row, "tensor", of->path);
    slc_json_set_count(row, "rank", of->rank);
    slc_json_set_text(row, "precision", of->precision == SLC_F32 ? "f32" : "f64");
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
    /* By the beginning of a kernel's name; the first that fits. */
    static const struct {
        const char *kernels, *form;
        bool each_mode; /* the form is of one mode */
    } forms[] = {{"blco-queues", "blco-queues", false},
                 {"blco", "blco", false},
                 {"amped", "partitions", true},
                 {"genten-c", "permutation", true},
                 {"fiber", "fibers", false},
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
