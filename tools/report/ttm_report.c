/* What a product with a matrix tells; see ttm_report.h. */
#include "tools/report/ttm_report.h"

#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "report/json_parts.h"
#include "tools/options/fields.h"
#include "tools/progress/format.h"
#include "tools/progress/json_out.h"

#include <inttypes.h>
#include <stdio.h>

/* Multiplications and additions. */
static double operations(const struct ttm_product *product)
{
    return 2.0 * (double)product->store.manifest.nnz * product->cols;
}

uint64_t ttm_fibers_most(const struct ttm_product *product)
{
    const struct slc_manifest *manifest = &product->store.manifest;
    uint64_t cells = 1;

    if (product->order.reader != NULL &&
        slc_reader_info(product->order.reader)->layout == SLC_LAYOUT_FIBER) {
        return slc_reader_info(product->order.reader)->fiber_count;
    }
    for (unsigned n = 0; n < manifest->order; n++) {
        if (n != product->mode && !slc_mul_u64(cells, manifest->dims[n], &cells)) {
            return manifest->nnz;
        }
    }
    return slc_min_u64(cells, manifest->nnz);
}

double ttm_result_bytes(const struct ttm_product *product, uint64_t fibers)
{
    const double coords = (product->store.manifest.order - 1.0) * sizeof(int64_t);
    const double row = (double)product->cols * slc_value_bytes(product->plan.request.precision);

    return (double)fibers * (coords + row);
}

static const char *layout_text(const struct ttm_product *product)
{
    if (product->order.path != NULL || product->order.reader == NULL) {
        return "temporary";
    }
    return slc_layout_name(slc_reader_info(product->order.reader)->layout);
}

/* What there is to tell of the device; `done`: and of what it did. */
static struct product_gpu told_of(const struct ttm_product *product, bool done)
{
    return (struct product_gpu){.choice = &product->choice,
                                .refused = &product->refused,
                                .plan = &product->plan.gpu,
                                .threads = product->options.division.outputs,
                                .report = done ? &product->report.products : NULL};
}

static void put_device(const struct ttm_product *product, bool done, json_t *record)
{
    const struct product_gpu told = told_of(product, done);
    struct fault_text why;

    slc_json_set(record, "device", product_gpu_json(&told));
    if (product->refused.status != SLC_OK) {
        slc_json_set_text(record, "no_device", fault_text(&why, &product->refused));
    }
}

/* What the CPU multiplied with; a device that had all tiles used none of its kernels. */
static const char *kernel_name(const struct ttm_product *product)
{
    return product->options.division.outputs > 0 ? slc_ttm_form_name(product->options.job.form)
                                                 : "device";
}

enum slc_status ttm_print_json(const struct ttm_product *product, struct slc_error *err)
{
    const struct slc_ttm_report *report = &product->report;
    json_t *record = json_pack(
        "{s:s, s:i, s:I, s:I, s:I, s:s, s:s, s:s, s:s, s:i, s:I, s:I, s:I, s:I}", "schema",
        "sluice-ttm-1", "mode", (int)product->mode + 1, "nnz",
        (json_int_t)product->store.manifest.nnz, "fibers", (json_int_t)report->fibers, "columns",
        (json_int_t)product->cols, "layout", layout_text(product), "kernel", kernel_name(product),
        "precision", product->args->session.precision, "sums", "f64", "threads",
        (int)product->plan.threads, "bytes_read", (json_int_t)product->stats.bytes_read,
        "bytes_written", (json_int_t)report->output.bytes, "memory_peak_bytes",
        (json_int_t)slc_memory_peak(), "memory_budget_bytes",
        (json_int_t)product->plan.budget_bytes);
    json_t *seconds =
        json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "total", product->total_seconds,
                  "sort", product->sort_seconds, "multiply", product->multiply_seconds, "pass",
                  product->stats.pass_seconds, "write", report->output.write_seconds, "wait_read",
                  product->stats.wait_seconds / product->plan.threads, "wait_turn",
                  report->turn_seconds / product->plan.threads, "wait_write",
                  report->output.wait_seconds / product->plan.threads);

    slc_json_set(record, "seconds", seconds);
    put_device(product, true, record);
    slc_json_set_real(record, "gflops", operations(product) / product->multiply_seconds * 1e-9);
    return json_out_print(record, err);
}

void ttm_print(const struct ttm_product *product)
{
    const struct product_gpu told = told_of(product, true);
    const struct slc_ttm_report *report = &product->report;
    const double threads = product->plan.threads;
    struct format_text a, b;

    printf("Wrote %s/%s and %s\n", product->folder, SLC_PAIR_COORDS, SLC_PAIR_ROWS);
    printf("  %-12s %s of mode %u, %" PRIu32 " columns: %s\n", "fibers",
           format_count(&a, report->fibers), product->mode + 1, product->cols,
           format_data(&b, (double)report->output.bytes));
    printf("  %-12s %s, read at %s/s\n", "layout", layout_text(product),
           format_data(&a, product->stats.pass_seconds > 0
                               ? (double)product->stats.bytes_read / product->stats.pass_seconds
                               : 0));
    if (product->order.path != NULL) {
        printf("  %-12s %.2fs\n", "sort", product->sort_seconds);
    }
    product_gpu_print(&told, stdout);
    printf("  %-12s %.2fs, %.2f GFLOP/s (%s)\n", "multiply", product->multiply_seconds,
           operations(product) / product->multiply_seconds * 1e-9, kernel_name(product));
    printf("  %-12s %s/s while writing%s\n", "write",
           format_data(&a, report->output.write_seconds > 0
                               ? (double)report->output.bytes / report->output.write_seconds
                               : 0),
           report->output.direct ? ", direct (past the page cache)" : "");
    printf("  %-12s per thread: for blocks %.2fs, for tiles before %.2fs, for the drive to write "
           "%.2fs\n",
           "waits", product->stats.wait_seconds / threads, report->turn_seconds / threads,
           report->output.wait_seconds / threads);
    printf("  %-12s %s at most, budget %s\n", "memory", format_memory(&a, slc_memory_peak()),
           format_memory(&b, product->plan.budget_bytes));
}

enum slc_status ttm_print_dry_run_json(const struct ttm_product *product, struct slc_error *err)
{
    const uint64_t fibers = ttm_fibers_most(product);
    json_t *record = json_pack(
        "{s:s, s:b, s:i, s:I, s:I, s:I, s:s, s:i, s:f, s:I, s:I, s:I, s:I}", "schema",
        "sluice-ttm-1", "dry_run", 1, "mode", (int)product->mode + 1, "nnz",
        (json_int_t)product->store.manifest.nnz, "fibers_most", (json_int_t)fibers, "columns",
        (json_int_t)product->cols, "layout", layout_text(product), "threads",
        (int)product->plan.threads, "result_bytes_most", ttm_result_bytes(product, fibers),
        "bytes_to_read", (json_int_t)product->plan.iteration_bytes, "memory_least_bytes",
        (json_int_t)product->plan.minimum_bytes, "memory_bytes",
        (json_int_t)product->plan.total_bytes, "memory_budget_bytes",
        (json_int_t)product->plan.budget_bytes);

    put_device(product, false, record);
    return json_out_print(record, err);
}

void ttm_print_dry_run(const struct ttm_product *product)
{
    const struct slc_store_layout *blco = &product->store.manifest.layouts[0];
    const struct product_gpu told = told_of(product, false);
    const uint64_t fibers = ttm_fibers_most(product);
    struct format_text a, b, c;

    printf("Would write %s/%s and %s\n", product->folder, SLC_PAIR_COORDS, SLC_PAIR_ROWS);
    printf("  %-12s up to %s of mode %u, %" PRIu32 " columns: %s\n", "fibers",
           format_count(&a, fibers), product->mode + 1, product->cols,
           format_data(&b, ttm_result_bytes(product, fibers)));
    if (product->order.reader != NULL) {
        printf("  %-12s %s, %s to read\n", "layout", layout_text(product),
               format_data(&a, (double)product->plan.iteration_bytes));
    } else {
        printf("  %-12s temporary: the nonzeros (%s as stored) would be sorted first, beside the "
               "result\n",
               "layout", format_data(&a, (double)blco->file_bytes));
    }
    product_gpu_print(&told, stdout);
    printf("  %-12s %s with %u threads, %s at least, budget %s\n", "memory",
           format_memory(&a, product->plan.total_bytes), product->plan.threads,
           format_memory(&b, product->plan.minimum_bytes),
           format_memory(&c, product->plan.budget_bytes));
}
