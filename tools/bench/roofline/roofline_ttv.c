/*
 * SpTV from fibers in memory (tools/bench/rivals/cpu/sptv.h) under the roofs, at rank 1 and in f64
 * alone. With v bytes of a value as it is held, i of an index:
 *
 *   operations       2 a nonzero
 *   bytes a nonzero  v + i + 8, the number of the vector
 *   bytes a fiber    2 + 8, its place and its sum
 *
 * Of a list of few nonzeros (tools/bench/rivals/cpu/sptv_block.h) there are no places, but 4 bytes
 * for the fiber of each nonzero that is not the first of its own. Padding is not counted, nor is
 * the copying of a vector that is shortened.
 */
#include "base/error/clock.h"
#include "base/memory/memory.h"
#include "tools/bench/product/ttv_kernels.h"
#include "tools/bench/roofline/roofline_kernels.h"
#include "tools/progress/console.h"

#include <inttypes.h>
#include <stdio.h>

static enum slc_status measure_mode(const struct roofline_job *job,
                                    struct ttv_job *ttv,
                                    struct roofline_point *point,
                                    struct slc_error *err)
{
    const struct slc_sptv *form = ttv_job_form(ttv, TTV_SLUICE);
    const double nnz = (double)form->nnz;
    const double fibers = (double)form->fibers;
    struct bench_samples samples = {.count = 0};
    enum slc_status status = SLC_OK;

    for (unsigned i = 0; i < job->warm_up + job->repeats && status == SLC_OK; i++) {
        const uint64_t start_ns = slc_clock_ns();
        double ignored;

        status = ttv_job_run(ttv, TTV_SLUICE, job->threads, &ignored, err);
        if (i >= job->warm_up) {
            bench_samples_add(&samples, slc_seconds_since(start_ns));
        }
    }
    point->measured = status == SLC_OK;
    point->times = bench_samples_summary(&samples);
    point->flop = 2 * nnz;
    point->bytes = nnz * (slc_value_bytes(form->value_type) + form->index_bytes + 8.0);
    point->bytes += form->few.fibers > 0 ? (nnz - fibers) * 4 + fibers * 8 : fibers * (2 + 8);
    point->rows_bytes = form->used * sizeof(double);
    point->strategy = "fibers";
    point->nnz_per_run = nnz / fibers;
    (void)snprintf(point->form, sizeof point->form, "%u", ttv->fibers.mode + 1);
    return status;
}

enum slc_status
roofline_sptv(const struct roofline_job *job, struct roofline_point *points, struct slc_error *err)
{
    static const bool wanted[TTV_KERNELS] = {[TTV_SLUICE] = true};
    const struct slc_manifest *manifest = &job->session->store.manifest;
    const struct ttv_switches switches = {.keep_empty = false};
    struct ttv_tensor tensor = {.order = 0};
    enum slc_status status;

    if (job->rank != 1 || job->precision != SLC_F64 || manifest->nnz == 0) {
        return SLC_OK;
    }
    if (ttv_tensor_bytes(manifest) > job->memory_bytes) {
        return slc_fail(err, SLC_ERR_BUDGET,
                        "nonzeros in memory would take %" PRIu64 " MiB; give more by --memory",
                        ttv_tensor_bytes(manifest) >> 20);
    }
    status = ttv_tensor_load(&tensor, &job->session->store, err);
    for (unsigned n = 0; n < manifest->order && status == SLC_OK; n++) {
        struct ttv_job ttv = {.session = NULL};

        status = ttv_job_create(&ttv, &tensor, n, wanted, &switches, 0, err);
        if (status == SLC_OK) {
            status = measure_mode(job, &ttv, &points[n], err);
        }
        ttv_job_destroy(&ttv);
    }
    ttv_tensor_destroy(&tensor);
    return status;
}
