/* Computes a row: products of the other factors' rows, traversals, steps and measures. */
#include "engine/stream/rows/row_pass_impl.h"

#include "base/memory/checked.h"
#include "base/subnormal.h"
#include "cpu/kernel/kernels.h"
#include "cpu/kernel/row_kernels.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum slc_status slc_row_check_stop(const struct slc_row_passes *passes, struct slc_error *err)
{
    const volatile int *stop = passes->pass->stop;

    /* Read atomically, because a signal handler or another thread may set the flag. */
    return stop != NULL && __atomic_load_n(stop, __ATOMIC_RELAXED) != 0
               ? slc_fail(err, SLC_ERR_INTERRUPTED, "stopped before its end")
               : SLC_OK;
}

/* Copies the nonzeros begin .. end - 1 in their order to the window. */
static void fill_window(const struct slc_row_passes *passes,
                        const struct row_products *products,
                        const struct row_arrays *arrays,
                        uint64_t begin,
                        uint64_t end)
{
    const uint32_t *order = arrays->order + begin;
    unsigned next = 0;

    for (unsigned m = 0; m < passes->order; m++) {
        if (m != passes->mode) {
            uint32_t *to = products->window[next++];

            for (uint64_t i = 0; i < end - begin; i++) {
                to[i] = arrays->coords[m][order[i]];
            }
        }
    }
    for (uint64_t i = 0; i < end - begin; i++) {
        products->window_values[i] = arrays->values[order[i]];
    }
}

/* Computes the products of the nonzeros begin .. end - 1. */
static void compute_products(const struct slc_row_passes *passes,
                             struct row_products *products,
                             const struct row_arrays *arrays,
                             uint64_t begin,
                             uint64_t end)
{
    struct slc_row_product_span span = {
        .rank = passes->rank, .width = passes->width, .type = passes->pass->factors[0].type};
    const bool ordered = arrays->order != NULL;
    const uint32_t *rows[SLC_MAX_ORDER] = {NULL};

    if (ordered) {
        fill_window(passes, products, arrays, begin, end);
    }
    for (unsigned m = 0; m < passes->order; m++) {
        if (m != passes->mode) {
            const struct slc_matrix *factor = &passes->pass->factors[m];
            const unsigned n = span.factor_count++;

            rows[n] = ordered ? products->window[n] : arrays->coords[m] + begin;
            span.factor[n] = factor->buffer.data;
            span.pitch[n] = factor->pitch;
        }
    }
    for (uint64_t i = 0; i < end - begin; i += span.nnz) {
        span.nnz = (uint32_t)slc_min_u64(end - begin - i, passes->added_nnz);
        span.products = products->products + i * passes->width;
        for (unsigned n = 0; n < span.factor_count; n++) {
            span.rows[n] = rows[n] + i;
        }
        slc_kernels()->rows->products(&span);
    }
    products->arrays = arrays;
    products->begin = begin;
    products->end = end;
    products->values = ordered ? products->window_values : arrays->values + begin;
}

static bool has_products(const struct row_products *products,
                         const struct row_arrays *arrays,
                         uint64_t begin,
                         uint64_t end)
{
    return products->arrays == arrays && begin >= products->begin && end <= products->end;
}

/* Returns the products of the nonzeros begin .. end - 1, at most a piece. The products of a row are
 * kept for its next traversals, as far as they fit in the second-level cache. The others are
 * computed anew in each traversal, a piece at a time, because a piece in the first-level cache is
 * faster than products in memory. Short rows are computed together. */
static const struct row_products *find_products(const struct slc_row_passes *passes,
                                                struct row_worker *worker,
                                                const struct row_job *job,
                                                const struct row_arrays *arrays,
                                                uint64_t begin,
                                                uint64_t end)
{
    const bool in_memory = job->arrays == arrays;
    uint64_t wanted = slc_max_u64(end, slc_min_u64(begin + passes->added_nnz, worker->ahead_end));

    if (has_products(&worker->ahead, arrays, begin, end)) {
        return &worker->ahead;
    }
    if (has_products(&worker->piece, arrays, begin, end)) {
        return &worker->piece;
    }
    if (in_memory && begin > job->begin && job->row.nnz > passes->product_nnz) {
        compute_products(passes, &worker->piece, arrays, begin, end);
        return &worker->piece;
    }
    if (in_memory && begin == job->begin) {
        wanted = slc_max_u64(wanted, begin + slc_min_u64(job->row.nnz, passes->product_nnz));
    }
    compute_products(passes, &worker->ahead, arrays, begin, wanted);
    return &worker->ahead;
}

/* Returns the nonzeros begin .. end - 1, at most a piece, with their products. */
static struct slc_row_piece find_piece(const struct slc_row_passes *passes,
                                       struct row_worker *worker,
                                       const struct row_job *job,
                                       const struct row_arrays *arrays,
                                       uint64_t begin,
                                       uint64_t end)
{
    const struct row_products *found = find_products(passes, worker, job, arrays, begin, end);
    const uint64_t at = begin - found->begin;

    return (struct slc_row_piece){.nnz = (uint32_t)(end - begin),
                                  .pitch = passes->width,
                                  .values = found->values + at,
                                  .products = found->products + at * passes->width};
}

static void compute_segment(struct slc_row_passes *passes,
                            unsigned number,
                            const struct row_job *job,
                            const struct row_arrays *arrays,
                            uint64_t begin,
                            uint64_t end,
                            double *sums,
                            double measures[SLC_ROW_MEASURES])
{
    const struct slc_row_solver *solver = passes->pass->solver;
    struct row_worker *worker = &passes->worker[number];

    if (job->measuring) {
        memset(measures, 0, SLC_ROW_MEASURES * sizeof *measures);
    } else {
        memset(sums, 0, passes->sum_count * sizeof *sums);
    }
    for (uint64_t at = begin; at < end; at += passes->added_nnz) {
        const uint64_t piece_end = slc_min_u64(at + passes->added_nnz, end);
        const struct slc_row_piece piece = find_piece(passes, worker, job, arrays, at, piece_end);

        if (job->measuring) {
            solver->measure(solver->context, number, &job->row, &piece, measures);
        } else {
            solver->add(solver->context, number, &job->row, &piece, sums);
        }
    }
}

static void add_segment(const struct slc_row_passes *passes,
                        struct row_job *job,
                        const double *sums,
                        const double *measures)
{
    if (job->measuring) {
        for (unsigned k = 0; k < SLC_ROW_MEASURES; k++) {
            job->measures[k] += measures[k];
        }
    } else if (job->segments > 0) {
        for (uint64_t k = 0; k < passes->sum_count; k++) {
            job->sums[k] += sums[k];
        }
    } else if (sums != job->sums) {
        memcpy(job->sums, sums, passes->sum_count * sizeof *sums);
    }
    job->segments++;
}

void slc_row_segment(struct slc_row_passes *passes,
                     unsigned worker,
                     struct row_job *job,
                     const struct row_arrays *arrays,
                     uint64_t begin,
                     uint64_t end)
{
    double *sums = job->segments == 0 ? job->sums : passes->worker[worker].sums;
    double measures[SLC_ROW_MEASURES];

    compute_segment(passes, worker, job, arrays, begin, end, sums, measures);
    add_segment(passes, job, sums, measures);
}

bool slc_row_shared_segment(struct slc_row_passes *passes,
                            unsigned worker,
                            const struct row_arrays *arrays,
                            uint64_t begin,
                            uint64_t end,
                            uint64_t number)
{
    double *sums = passes->worker[worker].sums;
    double measures[SLC_ROW_MEASURES];

    if (begin < end) {
        const uint64_t settings = slc_subnormals_flush();

        compute_segment(passes, worker, passes->shared, arrays, begin, end, sums, measures);
        slc_subnormals_restore(settings);
    }
    if (!slc_turns_wait(&passes->turns, number)) {
        return false;
    }
    if (begin < end) {
        add_segment(passes, passes->shared, sums, measures);
    }
    slc_turns_done(&passes->turns);
    return true;
}

static enum slc_status traverse_once(struct slc_row_passes *passes,
                                     unsigned worker,
                                     struct row_job *job,
                                     bool measuring,
                                     row_traverse_fn *traverse,
                                     void *how,
                                     struct slc_error *err)
{
    SLC_TRY(slc_row_check_stop(passes, err));
    job->measuring = measuring;
    job->segments = 0;
    memset(job->measures, 0, sizeof job->measures);
    if (job->row.nnz > 0) {
        if (job->row.streamed) {
            passes->repeating = job->visits > 0;
        }
        SLC_TRY(traverse(passes, worker, job, how, err));
    }
    job->visits++;
    if (!measuring && job->segments == 0) {
        memset(job->sums, 0, passes->sum_count * sizeof *job->sums);
    }
    return SLC_OK;
}

/* Returns true if the row is a single piece: its nonzeros are in memory, are one segment, and fit
 * in a piece. */
static bool is_piece(const struct slc_row_passes *passes, const struct row_job *job)
{
    return job->arrays != NULL && job->single && job->row.nnz > 0 &&
           job->row.nnz <= passes->piece_nnz;
}

static void solve_whole(struct slc_row_passes *passes, unsigned number, struct row_job *job)
{
    const struct slc_row_solver *solver = passes->pass->solver;
    struct row_worker *worker = &passes->worker[number];
    const struct slc_row_piece piece =
        find_piece(passes, worker, job, job->arrays, job->begin, job->begin + job->row.nnz);

    solver->whole(solver->context, number, &job->row, &piece);
    job->row.traversals += job->row.traversals == 0;
}

/* Updates row->x. */
static enum slc_status update_row(struct slc_row_passes *passes,
                                  unsigned worker,
                                  struct row_job *job,
                                  row_traverse_fn *traverse,
                                  void *how,
                                  struct slc_error *err)
{
    const struct slc_row_solver *solver = passes->pass->solver;
    enum slc_row_next next;

    if (solver->start != NULL) {
        solver->start(solver->context, worker, &job->row);
    }
    if (solver->whole != NULL && is_piece(passes, job)) {
        solve_whole(passes, worker, job);
        return slc_row_check_stop(passes, err);
    }
    do {
        SLC_TRY(traverse_once(passes, worker, job, false, traverse, how, err));
        job->row.traversals++;
        next = solver->step(solver->context, worker, &job->row, job->sums);
    } while (next == SLC_ROW_AGAIN);
    return SLC_OK;
}

/* Rounds x to the type of the factor, and replaces the row of the factor. */
static enum slc_status
store_row(const struct slc_row_passes *passes, struct slc_row *row, struct slc_error *err)
{
    struct slc_matrix *factor = &passes->pass->factors[passes->mode];
    const bool wide = factor->type == SLC_F64;

    for (uint32_t r = 0; r < passes->rank; r++) {
        row->x[r] = wide ? row->x[r] : (double)(float)row->x[r];
        if (!isfinite(row->x[r])) {
            return slc_fail(err, SLC_ERR_NUMERIC,
                            "the solver %s computed a number that is not finite in %s, for column "
                            "%" PRIu32 " of row %" PRIu64 " of mode %u",
                            passes->pass->solver->name, wide ? "f64" : "f32", r + 1, row->index + 1,
                            passes->mode + 1);
        }
    }
    for (uint32_t r = 0; r < passes->rank; r++) {
        if (wide) {
            slc_matrix_row_f64(factor, row->index)[r] = row->x[r];
        } else {
            slc_matrix_row_f32(factor, row->index)[r] = (float)row->x[r];
        }
    }
    return SLC_OK;
}

static enum slc_status measure_row(struct slc_row_passes *passes,
                                   unsigned worker,
                                   struct row_job *job,
                                   row_traverse_fn *traverse,
                                   void *how,
                                   double measures[SLC_ROW_MEASURES],
                                   struct slc_error *err)
{
    const struct slc_row_solver *solver = passes->pass->solver;

    SLC_TRY(traverse_once(passes, worker, job, true, traverse, how, err));
    solver->measure(solver->context, worker, &job->row, NULL, job->measures);
    for (unsigned k = 0; k < SLC_ROW_MEASURES; k++) {
        measures[k] += job->measures[k];
    }
    return SLC_OK;
}

enum slc_status slc_row_solve(struct slc_row_passes *passes,
                              unsigned number,
                              struct row_job *job,
                              row_traverse_fn *traverse,
                              void *how,
                              double measures[SLC_ROW_MEASURES],
                              struct slc_error *err)
{
    const struct slc_row_pass *pass = passes->pass;
    const struct slc_matrix *factor = &pass->factors[passes->mode];
    const double *weights = pass->about->weights;
    struct row_worker *worker = &passes->worker[number];
    const uint64_t settings = slc_subnormals_flush();
    enum slc_status status = SLC_OK;

    job->sums = worker->total;
    job->row.x = worker->x;
    job->row.memory = worker->memory;
    job->row.traversals = 0;
    for (uint32_t r = 0; r < passes->rank; r++) {
        const double element = factor->type == SLC_F64
                                   ? slc_matrix_row_f64(factor, job->row.index)[r]
                                   : (double)slc_matrix_row_f32(factor, job->row.index)[r];

        worker->x[r] = element * (weights != NULL && !pass->weighted ? weights[r] : 1);
    }
    memset(worker->memory, 0, passes->memory_count * sizeof *worker->memory);
    if (!pass->fixed) {
        status = update_row(passes, number, job, traverse, how, err);
        SLC_THEN(status, store_row(passes, &job->row, err));
        worker->rows++;
        worker->traversals += job->row.nnz > 0 ? job->row.traversals : 0;
        worker->most = slc_max_u64(worker->most, job->row.nnz > 0 ? job->row.traversals : 0);
    }
    if (pass->measure) {
        SLC_THEN(status, measure_row(passes, number, job, traverse, how, measures, err));
    }
    slc_subnormals_restore(settings);
    return status;
}
