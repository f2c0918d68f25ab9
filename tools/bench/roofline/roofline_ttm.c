/*
 * TTM under the roofs, from blocks as they are stored, fiber by fiber, and decoded each time;
 * two forms. With rank R, N modes, and elements of v bytes:
 *
 *   operations       2 R a nonzero
 *   row(U)           R v bytes, read; of the output 2 R 8, read and written
 *   by fiber         v + 4 + row(U) a nonzero, 4 (N - 1) + 2 R 8 a fiber
 *   by nonzero       v + 8 + row(U) + 2 R 8 a nonzero, which has the number of its row as well
 *
 * The rows that come back are those of U; those of the output pass by.
 */
#include "base/error/clock.h"
#include "base/memory/memory.h"
#include "cpu/cpu.h"
#include "tools/bench/mttkrp/mttkrp_model.h"
#include "tools/bench/product/ttm_mode.h"
#include "tools/bench/roofline/roofline_kernels.h"

#include <stdio.h>

enum { INDEX_BYTES = 4, SUM_BYTES = 8 };

static void set_point(const struct roofline_job *job,
                      const struct ttm_mode *mode,
                      enum slc_ttm_form form,
                      struct roofline_point *point)
{
    const struct slc_layout_info *info = slc_reader_info(mode->order.reader);
    const double value = slc_value_bytes(job->precision);
    const double sums = 2.0 * job->rank * SUM_BYTES;
    const double each = value + INDEX_BYTES + job->rank * value;
    const double nnz = (double)info->nnz;

    point->measured = true;
    point->flop = 2.0 * nnz * job->rank;
    point->rows_bytes =
        info->dims[mode->options.mode] * bench_model_row_bytes(job->precision, job->rank);
    point->strategy = slc_ttm_form_name(form);
    if (form == SLC_TTM_FIBERS) {
        point->bytes =
            nnz * each + (double)mode->fibers * (INDEX_BYTES * (info->order - 1.0) + sums);
        point->nnz_per_run = nnz / (double)mode->fibers;
        (void)snprintf(point->form, sizeof point->form, "%u", mode->options.mode + 1);
    } else {
        point->bytes = nnz * (each + INDEX_BYTES + sums);
        point->nnz_per_run = 1;
        (void)snprintf(point->form, sizeof point->form, "plain");
    }
}

static enum slc_status measure_mode(const struct roofline_job *job,
                                    struct ttm_mode *mode,
                                    enum slc_ttm_form form,
                                    struct roofline_point *point,
                                    struct slc_error *err)
{
    struct bench_samples samples = {.count = 0};
    enum slc_status status;

    if (!slc_cpu_force_instruction_set(job->instruction_set)) {
        return slc_fail(err, SLC_ERR_UNSUPPORTED, "instruction set %s is not available here",
                        job->instruction_set);
    }
    (void)(slc_decoder_force(job->instruction_set) || slc_decoder_force("portable"));
    status = ttm_mode_start(mode, job->rank, err);
    for (unsigned i = 0; i < job->warm_up + job->repeats && status == SLC_OK; i++) {
        const uint64_t start_ns = slc_clock_ns();

        status = ttm_mode_run(mode, form, err);
        if (i >= job->warm_up) {
            bench_samples_add(&samples, slc_seconds_since(start_ns));
        }
    }
    if (status == SLC_OK) {
        set_point(job, mode, form, point);
        point->times = bench_samples_summary(&samples);
    }
    (void)slc_cpu_force_instruction_set(NULL);
    (void)slc_decoder_force(NULL);
    return status;
}

static enum slc_status measure_form(const struct roofline_job *job,
                                    enum slc_ttm_form form,
                                    struct roofline_point *points,
                                    struct slc_error *err)
{
    const struct slc_store *store = &job->session->store;
    struct ttm_mode *mode = slc_calloc(1, sizeof *mode);
    enum slc_status status =
        mode != NULL ? SLC_OK : slc_fail(err, SLC_ERR_MEMORY, "no memory for a benchmark");

    for (unsigned n = 0; n < store->manifest.order && store->manifest.nnz > 0 && status == SLC_OK;
         n++) {
        const struct ttm_mode_options options = {.mode = n,
                                                 .threads = job->threads,
                                                 .precision = job->precision,
                                                 .memory_bytes = job->memory_bytes,
                                                 .temp_dir = job->temp_dir};

        status = ttm_mode_open(mode, store, &options, err);
        if (status == SLC_OK) {
            status = measure_mode(job, mode, form, &points[n], err);
        }
        ttm_mode_close(mode);
        status = roofline_leave_out(job, n, 1, status, err);
    }
    slc_free(mode);
    return status;
}

enum slc_status roofline_ttm_fiber(const struct roofline_job *job,
                                   struct roofline_point *points,
                                   struct slc_error *err)
{
    return measure_form(job, SLC_TTM_FIBERS, points, err);
}

enum slc_status roofline_ttm_nonzero(const struct roofline_job *job,
                                     struct roofline_point *points,
                                     struct slc_error *err)
{
    return measure_form(job, SLC_TTM_ELEMENTS, points, err);
}
