/*
 * MTTKRP over a list of coordinates by the baselines of coo.h.
 *
 * Threads take neighbouring tiles. A tile's nonzeros are first brought together, in the order of
 * their visit and mode by mode, so that a permutation is followed once and not once per panel of
 * columns; the kernels (coo_kernels.h) see nothing of the list.
 *
 * Cost: for genten-a and genten-b R atomic additions a nonzero, each a read and an exchange that
 * wait for one another: 8 ns with one thread, up to 15 where two threads take lines from each other
 * (flights-4d, R = 16). For genten-c 2 R of them for each tile, and one plain addition for each run
 * of a row.
 */
#include "base/thread/team.h"
#include "cpu/mttkrp/mttkrp.h"
#include "tools/bench/rivals/cpu/atomic_job.h"
#include "tools/bench/rivals/cpu/coo.h"
#include "tools/bench/rivals/cpu/coo_kernels.h"

#include <inttypes.h>
#include <string.h>

enum {
    /* What a thread takes at a time: 50 us of work and more, and tens of pieces in small tensors.
     */
    PIECE_NNZ = 32 * SLC_COO_TILE_NNZ
};

/* A running MTTKRP. */
struct run {
    const struct slc_coo *coo;
    const struct slc_mttkrp_job *job;
    const struct slc_kernel_set *set;
    enum slc_coo_kernel kernel;
    const uint32_t *order; /* NULL: that of the list */
    const unsigned char *ones;
};

/* A tile's nonzeros brought together. */
struct staged {
    uint32_t coords[SLC_MAX_ORDER][SLC_COO_TILE_NNZ];
    _Alignas(64) unsigned char values[SLC_COO_TILE_NNZ * sizeof(double)];
};

const struct slc_coo_kernels *slc_coo_kernels_of(const struct slc_kernel_set *set)
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

/* What is the same for all tiles. */
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
        span->offset[0] = slc_zero_offsets;
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
    const struct slc_coo_kernels *kernels = slc_coo_kernels_of(run->set);
    const bool f32 = run->coo->type == SLC_F32;
    slc_coo_fn *const *widths = f32 ? kernels->tile_f32 : kernels->tile_f64;

    if (run->kernel == SLC_COO_EACH) {
        (f32 ? kernels->each_f32 : kernels->each_f64)(span, 0);
        return;
    }
    if (run->kernel == SLC_COO_PERMUTED) {
        widths = f32 ? kernels->permuted_f32 : kernels->permuted_f64;
    }
    for (uint64_t column = 0; column < span->stride;) {
        const unsigned width = slc_panel_log2(run->set, run->coo->type, span->stride - column);

        widths[width](span, column);
        column += UINT64_C(1) << width;
    }
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

/* Whether the job is one of this tensor. */
static enum slc_status
check_job(const struct slc_coo *coo, const struct slc_mttkrp_job *job, struct slc_error *err)
{
    enum slc_status status = slc_coo_check_complete(coo, err);

    if (status == SLC_OK) {
        status = slc_mttkrp_check_job(job, err);
    }
    if (status != SLC_OK) {
        return status;
    }
    if (job->order != coo->shape.order || job->output->type != coo->type) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "the MTTKRP is of %u modes in %s, the list of %u modes in %s", job->order,
                        job->output->type == SLC_F32 ? "f32" : "f64", coo->shape.order,
                        coo->type == SLC_F32 ? "f32" : "f64");
    }
    for (unsigned m = 0; m < job->order; m++) {
        const struct slc_matrix *matrix = m == job->mode ? job->output : job->factors[m];

        if (matrix->rows != coo->shape.dims[m]) {
            return slc_fail(err, SLC_ERR_USAGE,
                            "the matrix of mode %u has %" PRIu64 " rows, the list's mode %" PRIu64,
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
    enum slc_status status = check_job(coo, job, err);

    if (status == SLC_OK && kernel == SLC_COO_PERMUTED) {
        run.order = coo->orders[job->mode].data;
        if (run.order == NULL && coo->shape.nnz > 0) {
            status = slc_fail(err, SLC_ERR_USAGE, "mode %u of the list has no permutation yet",
                              job->mode + 1);
        }
    }
    if (status != SLC_OK) {
        return status;
    }
    status = slc_atomic_job_begin(job, &ones, err);
    run.ones = ones.buffer.data;
    if (status == SLC_OK && coo->shape.nnz > 0) {
        status = slc_team_for(job->workers, coo->shape.nnz, PIECE_NNZ, add_piece, &run, err);
    }
    slc_matrix_destroy(&ones);
    return status;
}
