/*
 * MTTKRP over tiles of whole fibers by the baselines of fiber_forms.h.
 *
 * Cost: R atomic additions (coo_mttkrp.c says what they take) a nonzero for atomic-nonzero, and for
 * atomic-fiber where the output is of the fibers' own mode; else R a fiber.
 */
#include "tools/bench/rivals/cpu/fiber_forms.h"

#include "cpu/mttkrp/mttkrp.h"
#include "tools/bench/rivals/cpu/atomic_job.h"
#include "tools/bench/rivals/cpu/coo_kernels.h"

#include <inttypes.h>
#include <string.h>

const char *slc_fiber_form_name(enum slc_fiber_form form)
{
    static const char *const names[] = {"atomic-fiber", "atomic-nonzero"};

    return (unsigned)form < SLC_FIBER_FORMS ? names[form] : "?";
}

enum slc_status slc_fiber_mttkrp_begin(struct slc_fiber_mttkrp *run,
                                       enum slc_fiber_form form,
                                       const struct slc_mttkrp_job *job,
                                       struct slc_error *err)
{
    const enum slc_status status = slc_mttkrp_check_job(job, err);

    if (status != SLC_OK) {
        return status;
    }
    run->form = form;
    run->job = *job;
    run->set = slc_kernels();
    return slc_atomic_job_begin(job, &run->ones, err);
}

void slc_fiber_mttkrp_end(struct slc_fiber_mttkrp *run)
{
    slc_matrix_destroy(&run->ones);
    memset(run, 0, sizeof *run);
}

static uint64_t stride_of(const struct slc_fiber_mttkrp *run)
{
    return slc_matrix_row_bytes(run->job.output);
}

/* The row of the tile's corner in the matrix of a mode. */
static unsigned char *
corner_row(const struct slc_fiber_mttkrp *run, const struct slc_tile_view *tile, unsigned mode)
{
    const struct slc_mttkrp_job *job = &run->job;
    const struct slc_matrix *matrix = mode == job->mode ? job->output : job->factors[mode];

    return (unsigned char *)matrix->buffer.data + tile->corner[mode] * stride_of(run);
}

/* The chunk's nonzeros on their own. */
static void add_elements(const struct slc_fiber_mttkrp *run,
                         const struct slc_tile_view *tile,
                         const struct slc_chunk_view *chunk)
{
    const struct slc_mttkrp_job *job = &run->job;
    const enum slc_value_type type = job->output->type;
    slc_coo_fn *const *widths = type == SLC_F32 ? slc_coo_kernels_of(run->set)->tile_f32
                                                : slc_coo_kernels_of(run->set)->tile_f64;
    struct slc_coo_span span = {.nnz = chunk->nnz,
                                .columns = job->rank,
                                .stride = stride_of(run),
                                .values = chunk->values,
                                .rows = chunk->offset[job->mode],
                                .output = corner_row(run, tile, job->mode)};

    for (unsigned m = 0; m < job->order; m++) {
        if (m != job->mode) {
            span.factor[span.factor_count] = corner_row(run, tile, m);
            span.offset[span.factor_count++] = chunk->offset[m];
        }
    }
    if (span.factor_count == 0) {
        span.factor[0] = run->ones.buffer.data;
        span.offset[0] = slc_zero_offsets;
        span.factor_count = 1;
    }
    for (uint64_t column = 0; column < span.stride;) {
        const unsigned width = slc_panel_log2(run->set, type, span.stride - column);

        widths[width](&span, column);
        column += UINT64_C(1) << width;
    }
}

/* A chunk's runs, each as a whole. */
static void add_runs(const struct slc_fiber_mttkrp *run,
                     const struct slc_tile_view *tile,
                     const struct slc_fiber_view *view)
{
    const struct slc_mttkrp_job *job = &run->job;
    const enum slc_value_type type = job->output->type;
    slc_coo_fiber_fn *const *widths = type == SLC_F32 ? slc_coo_kernels_of(run->set)->fibers_f32
                                                      : slc_coo_kernels_of(run->set)->fibers_f64;
    struct slc_coo_fiber_span span = {.columns = job->rank,
                                      .fibers = {.runs = view->runs,
                                                 .stride = stride_of(run),
                                                 .begin = view->begin,
                                                 .values = view->values,
                                                 .run_offset = view->offset[view->mode],
                                                 .rows = view->offset[job->mode],
                                                 .output = corner_row(run, tile, job->mode)}};
    struct slc_fiber_span *fibers = &span.fibers;

    for (unsigned m = 0; m < job->order; m++) {
        if (m == job->mode) {
            continue;
        }
        if (m == view->mode) {
            fibers->run_factor = corner_row(run, tile, m);
        } else {
            fibers->factor[fibers->factor_count] = corner_row(run, tile, m);
            fibers->offset[fibers->factor_count++] = view->offset[m];
        }
    }
    if (job->order == 1) {
        fibers->factor[0] = run->ones.buffer.data;
        fibers->offset[0] = slc_zero_offsets;
        fibers->factor_count = 1;
    }
    for (uint64_t column = 0; column < fibers->stride;) {
        const unsigned width = slc_panel_log2(run->set, type, fibers->stride - column);

        widths[width](&span, column);
        column += UINT64_C(1) << width;
    }
}

/* Whether a tile is of the job: every row that it reaches is there. */
static enum slc_status check_tile(const struct slc_fiber_mttkrp *run,
                                  const struct slc_tile_view *tile,
                                  struct slc_error *err)
{
    const struct slc_mttkrp_job *job = &run->job;

    if (tile->order != job->order || tile->value_type != job->output->type) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "tile %" PRIu64 " of %u modes in %s is not of an MTTKRP of %u modes in %s",
                        tile->ordinal, tile->order, tile->value_type == SLC_F32 ? "f32" : "f64",
                        job->order, job->output->type == SLC_F32 ? "f32" : "f64");
    }
    return slc_mttkrp_check_reach(job, tile, err);
}

enum slc_status slc_fiber_mttkrp_tile(const struct slc_fiber_mttkrp *run,
                                      struct slc_tile_view *tile,
                                      struct slc_error *err)
{
    const bool in_runs = run->form == SLC_ATOMIC_FIBER && tile->next_fibers != NULL;
    enum slc_status status = check_tile(run, tile, err);
    struct slc_fiber_view fibers;
    struct slc_chunk_view chunk;
    uint32_t nnz = 1;

    while (status == SLC_OK && nnz > 0) {
        if (in_runs) {
            status = tile->next_fibers(tile, SLC_CHUNK_NNZ, &fibers, err);
        } else {
            status = tile->next(tile, SLC_CHUNK_NNZ, &chunk, err);
        }
        if (status != SLC_OK) {
            return status;
        }
        nnz = in_runs ? fibers.nnz : chunk.nnz;
        if (nnz > 0 && in_runs) {
            add_runs(run, tile, &fibers);
        } else if (nnz > 0) {
            add_elements(run, tile, &chunk);
        }
    }
    return status;
}
