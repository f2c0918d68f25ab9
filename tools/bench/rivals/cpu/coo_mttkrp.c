/* Computes MTTKRPs with the baselines: those of coo.h over a list of coordinates, and those of
 * fiber_forms.h over tiles of whole fibers.
 *
 * A thread processes neighbouring tiles. It first gathers the indices of a tile in the order of
 * processing, one mode at a time, so that a permutation is applied once and not once per panel of
 * columns. The kernels (coo_kernels.h) read only the gathered indices, not the list.
 *
 * Cost: genten-a and genten-b perform R atomic additions per nonzero. An atomic addition is a read
 * and a dependent compare-and-exchange. It takes 8 ns with one thread, and up to 15 ns if two
 * threads use the same cache lines (flights-4d, R = 16). genten-c performs 2 R atomic additions per
 * tile, and R plain additions for each other row of the tile.
 *
 * atomic-nonzero performs R atomic additions per nonzero. atomic-fiber performs R atomic additions
 * per nonzero if the output mode is the mode of the fibers, otherwise R per fiber. */
#include "tools/bench/rivals/cpu/coo.h"
#include "tools/bench/rivals/cpu/coo_kernels.h"
#include "tools/bench/rivals/cpu/fiber_forms.h"

#include "base/thread/team.h"
#include "cpu/mttkrp/mttkrp.h"

#include <inttypes.h>
#include <string.h>

enum { ZERO_BYTES = 2 << 20 /* bytes of the output that a thread clears at a time */ };

/* Offsets into the row of ones that replaces the factors of a tensor of one mode: always 0. */
static const uint32_t zero_offsets[SLC_CHUNK_NNZ];

static void zero_bytes(void *context, uint64_t begin, uint64_t end, unsigned worker)
{
    (void)worker;
    memset((unsigned char *)context + begin, 0, end - begin);
}

static enum slc_status
create_ones(const struct slc_mttkrp_job *job, struct slc_matrix *ones, struct slc_error *err)
{
    SLC_TRY(slc_matrix_create(ones, job->output->type, 1, job->rank, err));
    for (uint32_t r = 0; r < job->rank; r++) {
        slc_matrix_set(ones, 0, r, 1.0);
    }
    return SLC_OK;
}

/* Clears the output of a checked job with job->workers threads. For order 1, which has no factors,
 * sets *ones to a row of ones, with zeros in the padding. For other orders, *ones stays all-zero.
 * Needs: *ones is all-zero. The caller must call slc_matrix_destroy with `ones`, also after
 * an error. Errors: SLC_ERR_MEMORY, SLC_ERR_SYSTEM. */
static enum slc_status
begin_job(const struct slc_mttkrp_job *job, struct slc_matrix *ones, struct slc_error *err)
{
    const uint64_t bytes =
        job->output->rows * job->output->pitch * (uint64_t)slc_value_bytes(job->output->type);

    if (job->order == 1) {
        SLC_TRY(create_ones(job, ones, err));
    }
    return bytes > 0 ? slc_team_for(job->workers, bytes, ZERO_BYTES, zero_bytes,
                                    job->output->buffer.data, err)
                     : SLC_OK;
}

/* Returns the kernels of the baselines for the instruction set of `set`, which is a kernel set of
 * sluice. */
static const struct slc_coo_kernels *kernels_of(const struct slc_kernel_set *set)
{
#ifdef SLC_HAVE_AVX512
    if (set == &slc_kernels_avx512) {
        return &slc_coo_kernels_avx512;
    }
#endif
#ifdef SLC_HAVE_AVX2
    if (set == &slc_kernels_avx2) {
        return &slc_coo_kernels_avx2;
    }
#endif
#ifdef SLC_HAVE_NEON
    if (set == &slc_kernels_neon) {
        return &slc_coo_kernels_neon;
    }
#endif
    (void)set;
    return &slc_coo_kernels_portable;
}

/* Adds the products of a span to the output, one panel of columns after the other. */
static void add_panels(const struct slc_kernel_set *set,
                       enum slc_value_type type,
                       slc_coo_fn *const *widths,
                       const struct slc_coo_span *span)
{
    for (uint64_t column = 0; column < span->stride;) {
        const unsigned width = slc_panel_log2(set, type, span->stride - column);

        widths[width](span, column);
        column += UINT64_C(1) << width;
    }
}

/* ---- lists */

enum {
    /* Number of nonzeros that a thread processes at a time. They are at least 50 us of work, but
       few enough that small tensors have tens of pieces. */
    PIECE_NNZ = 32 * SLC_COO_TILE_NNZ
};

/* A running MTTKRP. */
struct run {
    const struct slc_coo *coo;
    const struct slc_mttkrp_job *job;
    const struct slc_kernel_set *set;
    enum slc_coo_kernel kernel;
    const uint32_t *order; /* permutation; NULL means the order of the list */
    const unsigned char *ones;
};

/* The gathered indices and values of the nonzeros of a tile. */
struct staged {
    uint32_t coords[SLC_MAX_ORDER][SLC_COO_TILE_NNZ];
    _Alignas(64) unsigned char values[SLC_COO_TILE_NNZ * sizeof(double)];
};

static void stage(const struct run *run, uint64_t begin, uint32_t nnz, struct staged *staged)
{
    const unsigned order = run->coo->shape.order;
    const uint32_t *coords = run->coo->coords.data;
    const uint64_t value_bytes = slc_value_bytes(run->coo->type);
    const unsigned char *values = run->coo->values.data;

    for (uint32_t i = 0; i < nnz; i++) {
        const uint64_t at = run->order != NULL ? run->order[begin + i] : begin + i;

        for (unsigned m = 0; m < order; m++) {
            staged->coords[m][i] = coords[at * order + m];
        }
        memcpy(staged->values + i * value_bytes, values + at * value_bytes, value_bytes);
    }
}

/* Sets the members that are the same for all tiles. */
static void init_span(const struct run *run, const struct staged *staged, struct slc_coo_span *span)
{
    const struct slc_mttkrp_job *job = run->job;
    unsigned count = 0;

    memset(span, 0, sizeof *span);
    for (unsigned m = 0; m < job->order; m++) {
        if (m != job->mode) {
            span->factor[count] = job->factors[m]->buffer.data;
            span->offset[count++] = staged->coords[m];
        }
    }
    if (count == 0) {
        span->factor[0] = run->ones;
        span->offset[0] = zero_offsets;
        count = 1;
    }
    span->factor_count = count;
    span->columns = job->rank;
    span->stride = (uint64_t)job->output->pitch * slc_value_bytes(job->output->type);
    span->values = staged->values;
    span->rows = staged->coords[job->mode];
    span->output = job->output->buffer.data;
}

static void add_tile(const struct run *run, const struct slc_coo_span *span)
{
    const struct slc_coo_kernels *kernels = kernels_of(run->set);
    const bool f32 = run->coo->type == SLC_F32;
    slc_coo_fn *const *widths = f32 ? kernels->tile_f32 : kernels->tile_f64;

    if (run->kernel == SLC_COO_EACH) {
        (f32 ? kernels->each_f32 : kernels->each_f64)(span, 0);
        return;
    }
    if (run->kernel == SLC_COO_PERMUTED) {
        widths = f32 ? kernels->permuted_f32 : kernels->permuted_f64;
    }
    add_panels(run->set, run->coo->type, widths, span);
}

static void add_piece(void *context, uint64_t begin, uint64_t end, unsigned worker)
{
    const struct run *run = context;
    struct slc_coo_span span;
    struct staged staged;

    (void)worker;
    init_span(run, &staged, &span);
    for (uint64_t at = begin; at < end; at += SLC_COO_TILE_NNZ) {
        span.nnz = (uint32_t)(end - at < SLC_COO_TILE_NNZ ? end - at : SLC_COO_TILE_NNZ);
        stage(run, at, span.nnz, &staged);
        add_tile(run, &span);
    }
}

/* Checks that the job matches this tensor. */
static enum slc_status
check_job(const struct slc_coo *coo, const struct slc_mttkrp_job *job, struct slc_error *err)
{
    SLC_TRY(slc_coo_check_complete(coo, err));
    SLC_TRY(slc_mttkrp_check_job(job, err));
    if (job->order != coo->shape.order || job->output->type != coo->type) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "the MTTKRP has %u modes in %s, but the list has %u modes in %s",
                        job->order, job->output->type == SLC_F32 ? "f32" : "f64", coo->shape.order,
                        coo->type == SLC_F32 ? "f32" : "f64");
    }
    for (unsigned m = 0; m < job->order; m++) {
        const struct slc_matrix *matrix = m == job->mode ? job->output : job->factors[m];

        if (matrix->rows != coo->shape.dims[m]) {
            return slc_fail(err, SLC_ERR_USAGE,
                            "the matrix of mode %u has %" PRIu64
                            " rows, but the list has mode size %" PRIu64,
                            m + 1, matrix->rows, coo->shape.dims[m]);
        }
    }
    return SLC_OK;
}

enum slc_status slc_coo_mttkrp(const struct slc_coo *coo,
                               enum slc_coo_kernel kernel,
                               const struct slc_mttkrp_job *job,
                               struct slc_error *err)
{
    struct run run = {.coo = coo, .job = job, .set = slc_kernels(), .kernel = kernel};
    struct slc_matrix ones = {.rows = 0};

    SLC_TRY(check_job(coo, job, err));
    if (kernel == SLC_COO_PERMUTED) {
        run.order = coo->orders[job->mode].data;
        if (run.order == NULL && coo->shape.nnz > 0) {
            return slc_fail(err, SLC_ERR_USAGE, "mode %u of the list has no permutation yet",
                            job->mode + 1);
        }
    }
    enum slc_status status = begin_job(job, &ones, err);
    run.ones = ones.buffer.data;
    if (status == SLC_OK && coo->shape.nnz > 0) {
        status = slc_team_for(job->workers, coo->shape.nnz, PIECE_NNZ, add_piece, &run, err);
    }
    slc_matrix_destroy(&ones);
    return status;
}

/* ---- fibers */

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
    SLC_TRY(slc_mttkrp_check_job(job, err));
    run->form = form;
    run->job = *job;
    run->set = slc_kernels();
    return begin_job(job, &run->ones, err);
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

/* Returns the row at the corner of a tile, in the matrix of a mode. */
static unsigned char *
corner_row(const struct slc_fiber_mttkrp *run, const struct slc_tile_view *tile, unsigned mode)
{
    const struct slc_mttkrp_job *job = &run->job;
    const struct slc_matrix *matrix = mode == job->mode ? job->output : job->factors[mode];

    return (unsigned char *)matrix->buffer.data + tile->corner[mode] * stride_of(run);
}

/* Adds the nonzeros of a chunk one by one. */
static void add_nonzeros(const struct slc_fiber_mttkrp *run,
                         const struct slc_tile_view *tile,
                         const struct slc_chunk_view *chunk)
{
    const struct slc_mttkrp_job *job = &run->job;
    const enum slc_value_type type = job->output->type;
    slc_coo_fn *const *widths =
        type == SLC_F32 ? kernels_of(run->set)->tile_f32 : kernels_of(run->set)->tile_f64;
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
        span.offset[0] = zero_offsets;
        span.factor_count = 1;
    }
    add_panels(run->set, type, widths, &span);
}

/* Adds the fiber runs of a chunk, each run with one kernel step. */
static void add_runs(const struct slc_fiber_mttkrp *run,
                     const struct slc_tile_view *tile,
                     const struct slc_fiber_view *view)
{
    const struct slc_mttkrp_job *job = &run->job;
    const enum slc_value_type type = job->output->type;
    slc_coo_fiber_fn *const *widths =
        type == SLC_F32 ? kernels_of(run->set)->fibers_f32 : kernels_of(run->set)->fibers_f64;
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
        fibers->offset[0] = zero_offsets;
        fibers->factor_count = 1;
    }
    for (uint64_t column = 0; column < fibers->stride;) {
        const unsigned width = slc_panel_log2(run->set, type, fibers->stride - column);

        widths[width](&span, column);
        column += UINT64_C(1) << width;
    }
}

/* Checks that a tile matches the job: the matrices must have all rows that the tile refers to. */
static enum slc_status check_tile(const struct slc_fiber_mttkrp *run,
                                  const struct slc_tile_view *tile,
                                  struct slc_error *err)
{
    const struct slc_mttkrp_job *job = &run->job;

    if (tile->order != job->order || tile->value_type != job->output->type) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "tile %" PRIu64
                        " of %u modes in %s does not match an MTTKRP of %u modes in %s",
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
    struct slc_fiber_view fibers;
    struct slc_chunk_view chunk;
    uint32_t nnz = 1;

    SLC_TRY(check_tile(run, tile, err));
    while (nnz > 0) {
        if (in_runs) {
            SLC_TRY(tile->next_fibers(tile, SLC_CHUNK_NNZ, &fibers, err));
        } else {
            SLC_TRY(tile->next(tile, SLC_CHUNK_NNZ, &chunk, err));
        }
        nnz = in_runs ? fibers.nnz : chunk.nnz;
        if (nnz > 0 && in_runs) {
            add_runs(run, tile, &fibers);
        } else if (nnz > 0) {
            add_nonzeros(run, tile, &chunk);
        }
    }
    return SLC_OK;
}
