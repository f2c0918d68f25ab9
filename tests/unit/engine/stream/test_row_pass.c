/* Row passes: the rows of a factor are updated as by plain loops, with the same bits for any number
 * of threads, I/O method, schedule, cache and buffer size, in memory, decoded again, streamed or
 * gathered; in parts; with nonzeros that are dropped; and after faults and stops. */
#include "rows_fixture.h"

#include "base/error/fault.h"
#include "engine/planning/planning.h"
#include "faulty_files.h"
#include "slc_test.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* How an update is made. */
struct variant {
    unsigned threads;
    enum slc_io_kind io;
    enum slc_schedule schedule;
    bool cache;
    bool some;           /* caches every second block */
    unsigned slots;      /* 0: as planned; otherwise the least number that is possible, and more */
    uint32_t buffer_nnz; /* 0: as planned */
    uint32_t product_nnz;
    uint64_t gather_nnz;
};

/* Nonzeros of a segment; small, so that small tensors have rows of several. */
static uint32_t segment_nnz = 512;

/* An open run over a store. */
struct rows_run {
    struct sorted_run run;
    struct slc_row_passes *passes;
    struct slc_matrix factors[SLC_MAX_ORDER];
    char *scratch;
};

/* Returns false if io_uring is unavailable. */
static bool open_run(struct rows_run *rows,
                     const struct rows_store *made,
                     const struct variant *variant,
                     enum slc_value_type type,
                     const struct slc_files *files)
{
    struct slc_plan_request request = rows_request(3);
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_plan *plan = &rows->run.plan;

    memset(rows, 0, sizeof *rows);
    request.precision = type;
    request.threads = variant->threads;
    request.io = variant->io;
    request.schedule = variant->schedule;
    request.cache = variant->cache;
    request.slots = variant->slots;
    request.layouts = made->all_sorted ? SLC_LAYOUTS_SORTED : SLC_LAYOUTS_AUTO;
    request.deterministic = variant->schedule == SLC_SCHEDULE_FILE;
    SLC_ASSERT_OK(plan_run(&rows->run, made->path, &request, &err), &err);
    plan->slot_count = variant->slots != 0 ? (unsigned)(plan->rows.range_blocks > variant->slots
                                                            ? plan->rows.range_blocks
                                                            : variant->slots)
                                           : plan->slot_count;
    plan->rows.segment_nnz = segment_nnz;
    if (variant->buffer_nnz != 0 && variant->buffer_nnz < plan->rows.buffer_nnz) {
        plan->rows.buffer_nnz = variant->buffer_nnz;
    }
    if (variant->product_nnz != 0 && variant->product_nnz < plan->rows.product_nnz) {
        plan->rows.product_nnz = variant->product_nnz;
    }
    if (variant->gather_nnz != 0 && variant->gather_nnz < plan->rows.gather_nnz) {
        plan->rows.gather_nnz = variant->gather_nnz;
    }
    for (unsigned l = 0; variant->some && l < rows->run.layouts.count; l++) {
        keep_some(&rows->run, l);
    }
    make_rows_factors(made, type, rows->factors);
    return start_run(&rows->run, files);
}

static void close_rows(struct rows_run *rows, const struct rows_store *made)
{
    slc_row_passes_close(rows->passes);
    close_run(&rows->run);
    destroy_rows_factors(made, rows->factors);
    free(rows->scratch);
}

static void open_passes(struct rows_run *rows)
{
    struct slc_error err = SLC_ERROR_INIT;

    SLC_ASSERT_OK(slc_row_passes_open(rows->run.stream, &rows->run.plan, NULL, &rows->passes, &err),
                  &err);
}

static struct slc_row_pass
make_pass(struct rows_run *rows, struct rows_solver *solver, bool measures)
{
    return (struct slc_row_pass){.solver = &solver->solver,
                                 .about = &solver->about,
                                 .factors = rows->factors,
                                 .measure = measures,
                                 .stop = &solver->stop};
}

/* Largest difference relative to the magnitude. */
static double distance(const struct slc_matrix *a, const struct slc_matrix *b)
{
    double largest = 0;

    for (uint64_t i = 0; i < a->rows; i++) {
        for (uint32_t r = 0; r < a->cols; r++) {
            const double x = slc_matrix_get(a, i, r), y = slc_matrix_get(b, i, r);

            largest = fmax(largest, fabs(x - y) / fmax(1, fabs(y)));
        }
    }
    return largest;
}

static bool same_bits(const struct slc_matrix *a, const struct slc_matrix *b)
{
    return memcmp(a->buffer.data, b->buffer.data, a->rows * slc_matrix_row_bytes(a)) == 0;
}

/* Updates a mode and compares with the reference, and with *first if it has been set. */
static void check_update(const struct rows_store *made,
                         unsigned mode,
                         enum slc_value_type type,
                         const struct variant *variant,
                         struct slc_matrix *first,
                         double first_measures[SLC_ROW_MEASURES])
{
    const double tolerance = type == SLC_F64 ? 1e-12 : 1e-6;
    struct slc_matrix wanted[SLC_MAX_ORDER];
    struct slc_error err = SLC_ERROR_INIT;
    double measures[SLC_ROW_MEASURES];
    struct rows_solver solver;
    struct rows_run rows;

    if (!open_run(&rows, made, variant, type, NULL)) {
        close_rows(&rows, made);
        return;
    }
    open_passes(&rows);
    rows_solver_init(&solver, made, mode, rows.run.plan.threads, 3);
    struct slc_row_pass pass = make_pass(&rows, &solver, true);
    SLC_ASSERT_OK(slc_row_pass_run(rows.passes, &pass, &err), &err);
    CU_ASSERT_EQUAL(solver.wrong, 0);
    CU_ASSERT_EQUAL(pass.rows, made->tensor.dims[mode]);
    CU_ASSERT_EQUAL(pass.most, 3);
    if (first->buffer.data == NULL) {
        make_rows_factors(made, type, wanted);
        rows_reference(made, &solver, NULL, wanted, measures);
        CU_ASSERT_TRUE(distance(&rows.factors[mode], &wanted[mode]) < tolerance);
        for (unsigned k = 0; k < SLC_ROW_MEASURES; k++) {
            CU_ASSERT_TRUE(fabs(pass.measures[k] / measures[k] - 1) < 10 * tolerance);
        }
        destroy_rows_factors(made, wanted);
        *first = rows.factors[mode];
        memset(&rows.factors[mode], 0, sizeof *first);
        memcpy(first_measures, pass.measures, sizeof pass.measures);
    } else {
        CU_ASSERT_TRUE(same_bits(&rows.factors[mode], first));
        if (variant->schedule == SLC_SCHEDULE_FILE) {
            CU_ASSERT_EQUAL(memcmp(first_measures, pass.measures, sizeof pass.measures), 0);
        }
    }
    close_rows(&rows, made);
}

/* All modes of a store, with all variants of a list. */
static void check_variants(const struct rows_shape *shape,
                           enum slc_value_type type,
                           const struct variant *variants,
                           size_t count)
{
    struct rows_store made;

    make_rows_store(&made, shape);
    for (unsigned mode = 0; mode < shape->order; mode++) {
        double measures[SLC_ROW_MEASURES];
        struct slc_matrix first = {0};

        for (size_t v = 0; v < count; v++) {
            check_update(&made, mode, type, &variants[v], &first, measures);
        }
        slc_matrix_destroy(&first);
    }
    destroy_rows_store(&made);
}

static const struct variant sorted_variants[] = {
    {.threads = 1, .io = SLC_IO_PREAD, .schedule = SLC_SCHEDULE_FILE, .cache = true},
    {.threads = 2, .io = SLC_IO_URING, .schedule = SLC_SCHEDULE_FILE, .slots = 2},
    {.threads = 7, .io = SLC_IO_MMAP, .schedule = SLC_SCHEDULE_FILE, .slots = 3, .some = true},
    {.threads = 2, .io = SLC_IO_PREAD, .schedule = SLC_SCHEDULE_LARGEST, .cache = true},
    {.threads = 7, .io = SLC_IO_PREAD, .schedule = SLC_SCHEDULE_FILE, .buffer_nnz = 1400},
    {.threads = 3,
     .io = SLC_IO_URING,
     .schedule = SLC_SCHEDULE_LARGEST,
     .slots = 2,
     .buffer_nnz = 2500,
     .product_nnz = 1024,
     .some = true},
    {.threads = 1,
     .io = SLC_IO_MMAP,
     .schedule = SLC_SCHEDULE_FILE,
     .slots = 200,
     .buffer_nnz = 1400,
     .product_nnz = 1024},
};

static const struct rows_shape sorted_shapes[] = {
    /* a heavy row in the middle, rows without nonzeros, small tiles */
    {"heavy", 3, {300, 40, 500}, 20000, 0, 120, 300, 700, 4096, 7},
    /* the first and the last row are heavy */
    {"first", 3, {60, 50, 70}, 12000, 1, 0, 250, 500, 4096, 7},
    {"last", 4, {9, 12, 30, 40}, 12000, 3, 39, 250, 500, 4096, 15},
    /* modes of size 1, one row with all nonzeros */
    {"one", 5, {1, 700, 1, 2, 90}, 9000, 0, SLC_NOWHERE, 200, 400, 4096, 31},
    {"line", 1, {5000, 0}, 2500, 0, SLC_NOWHERE, 100, 300, 4096, 1},
    {"table", 2, {3000, 11}, 9000, 1, 4, 333, 600, 4096, 3},
    {"tiny", 3, {4, 5, 6}, 3, 0, SLC_NOWHERE, 0, 8, 4096, 7},
};

static void sorted_rows(void)
{
    for (size_t s = 0; s < SLC_COUNT(sorted_shapes); s++) {
        check_variants(&sorted_shapes[s], SLC_F64, sorted_variants, SLC_COUNT(sorted_variants));
    }
    check_variants(&sorted_shapes[0], SLC_F32, sorted_variants, SLC_COUNT(sorted_variants));
}

static void gathered_rows(void)
{
    static const struct variant variants[] = {
        {.threads = 1, .io = SLC_IO_PREAD, .schedule = SLC_SCHEDULE_FILE, .cache = true},
        {.threads = 2, .io = SLC_IO_URING, .schedule = SLC_SCHEDULE_FILE, .gather_nnz = 4096},
        {.threads = 7,
         .io = SLC_IO_MMAP,
         .schedule = SLC_SCHEDULE_LARGEST,
         .some = true,
         .gather_nnz = 5120,
         .product_nnz = 1024},
        {.threads = 3,
         .io = SLC_IO_PREAD,
         .schedule = SLC_SCHEDULE_FILE,
         .slots = 2,
         .cache = true,
         .gather_nnz = 2560},
    };

    for (size_t s = 0; s < SLC_COUNT(sorted_shapes); s++) {
        struct rows_shape shape = sorted_shapes[s];

        shape.sorted = 0;
        check_variants(&shape, s % 2 == 0 ? SLC_F64 : SLC_F32, variants, SLC_COUNT(variants));
        /* the first mode is sorted, the others are gathered */
        shape.sorted = 1;
        if (s < 3) {
            check_variants(&shape, SLC_F64, variants, 2);
        }
    }
}

static void large_rows(void)
{
    /* Rows of several segments. Gathered in memory, and in batches. */
    static const struct variant variants[] = {
        {.threads = 1, .io = SLC_IO_PREAD, .schedule = SLC_SCHEDULE_FILE, .cache = true},
        {.threads = 2,
         .io = SLC_IO_URING,
         .schedule = SLC_SCHEDULE_FILE,
         .gather_nnz = SLC_ROW_SEGMENT_NNZ},
        {.threads = 7,
         .io = SLC_IO_MMAP,
         .schedule = SLC_SCHEDULE_FILE,
         .some = true,
         .gather_nnz = 2 * SLC_ROW_SEGMENT_NNZ},
    };
    struct rows_shape shape = {"large", 3, {3, 1500, 200}, 330000, 0, 1, 3000, 8192, 16384, 0};

    segment_nnz = SLC_ROW_SEGMENT_NNZ;
    check_variants(&shape, SLC_F64, variants, slc_test_quick() ? 2 : SLC_COUNT(variants));
    /* Sorted: the buffer of a worker is smaller than the row; all cached: all workers together. */
    shape.name = "large_sorted";
    shape.sorted = 1;
    check_variants(&shape, SLC_F64, variants, 2);
    segment_nnz = 512;
}

/* Ends parts after `step` positions, and stops after some. */
struct cutter {
    uint64_t step, stop_at;
    struct slc_row_pass *pass;
    double saved[SLC_ROW_MEASURES];
    unsigned resumes;
};

static uint64_t cut_end(void *context, uint64_t first, uint64_t count)
{
    const struct cutter *cutter = context;

    return first + cutter->step < count ? first + cutter->step : count;
}

static enum slc_status cut_between(void *context, uint64_t position, struct slc_error *err)
{
    struct cutter *cutter = context;

    memcpy(cutter->saved, cutter->pass->measures, sizeof cutter->saved);
    return position >= cutter->stop_at ? slc_fail(err, SLC_ERR_INTERRUPTED, "enough") : SLC_OK;
}

static enum slc_status cut_resume(void *context, struct slc_error *err)
{
    (void)err;
    ((struct cutter *)context)->resumes++;
    return SLC_OK;
}

/* Stops the update of a mode at a position, resumes it, and compares with the undivided update. */
static void
check_parts(const struct rows_store *made, unsigned mode, uint64_t step, uint64_t stop_at)
{
    static const struct variant plain = {
        .threads = 2, .io = SLC_IO_PREAD, .schedule = SLC_SCHEDULE_FILE, .slots = 2};
    struct slc_error err = SLC_ERROR_INIT;
    struct rows_solver solver;
    struct rows_run whole, parts;

    CU_ASSERT_TRUE_FATAL(open_run(&whole, made, &plain, SLC_F64, NULL) &&
                         open_run(&parts, made, &plain, SLC_F64, NULL));
    open_passes(&whole);
    open_passes(&parts);
    rows_solver_init(&solver, made, mode, 2, 2);
    struct slc_row_pass pass = make_pass(&whole, &solver, true);
    SLC_ASSERT_OK(slc_row_pass_run(whole.passes, &pass, &err), &err);
    struct slc_row_pass part = make_pass(&parts, &solver, true);
    struct cutter cutter = {.step = step, .stop_at = stop_at, .pass = &part};
    struct slc_pass_cuts cuts = {
        .end = cut_end, .between = cut_between, .resume = cut_resume, .context = &cutter};
    part.cuts = &cuts;
    SLC_ASSERT_FAILS(slc_row_pass_run(parts.passes, &part, &err), SLC_ERR_INTERRUPTED, &err,
                     "enough");
    slc_error_clear(&err);
    const uint64_t rows = part.rows;
    cuts.first = (stop_at + step - 1) / step * step;
    cutter.stop_at = UINT64_MAX;
    memcpy(part.measures, cutter.saved, sizeof cutter.saved);
    SLC_ASSERT_OK(slc_row_pass_run(parts.passes, &part, &err), &err);
    CU_ASSERT_EQUAL(cutter.resumes, 1);
    CU_ASSERT_EQUAL(part.rows + rows, pass.rows);
    CU_ASSERT_TRUE(same_bits(&parts.factors[mode], &whole.factors[mode]));
    CU_ASSERT_EQUAL(memcmp(part.measures, pass.measures, sizeof pass.measures), 0);
    CU_ASSERT_EQUAL(solver.begins, 3);
    CU_ASSERT_EQUAL(solver.ends, 3);
    cuts.first = slc_row_passes_count(parts.passes, mode);
    SLC_ASSERT_FAILS(slc_row_pass_run(parts.passes, &part, &err), SLC_ERR_USAGE, &err,
                     "cannot resume");
    slc_error_clear(&err);
    close_rows(&whole, made);
    close_rows(&parts, made);
}

static void parts_of_updates(void)
{
    struct rows_shape shape = sorted_shapes[0];
    struct rows_store made;

    make_rows_store(&made, &shape);
    for (uint64_t step = 1; step < 8; step += 3) {
        check_parts(&made, 0, step, 3);
        check_parts(&made, 0, step, 11);
        check_parts(&made, 2, step, 5);
    }
    destroy_rows_store(&made);
    shape.name = "parts_gathered";
    shape.sorted = 0;
    make_rows_store(&made, &shape);
    check_parts(&made, 0, 7, 21);
    check_parts(&made, 0, 119, 119);
    check_parts(&made, 1, 39, 39);
    destroy_rows_store(&made);
}

static void positions(void)
{
    static const struct variant plain = {
        .threads = 2, .io = SLC_IO_PREAD, .schedule = SLC_SCHEDULE_FILE, .gather_nnz = 4096};
    struct rows_shape shape = sorted_shapes[0];
    struct rows_store made;
    struct rows_run rows;

    shape.name = "positions";
    shape.sorted = 1;
    make_rows_store(&made, &shape);
    CU_ASSERT_TRUE_FATAL(open_run(&rows, &made, &plain, SLC_F64, NULL));
    open_passes(&rows);
    for (unsigned mode = 0; mode < 2; mode++) {
        const uint64_t count = slc_row_passes_count(rows.passes, mode);
        const uint64_t bytes = slc_row_passes_bytes(rows.passes, mode, 0, count);
        uint64_t first = 0, sum = 0, parts = 0;

        CU_ASSERT_TRUE(count > 1);
        while (first < count) {
            const uint64_t end = slc_row_passes_end(rows.passes, mode, first, 20000);

            CU_ASSERT_TRUE_FATAL(end > first && end <= count);
            sum += slc_row_passes_bytes(rows.passes, mode, first, end);
            first = end;
            parts++;
        }
        CU_ASSERT_EQUAL(sum, bytes);
        CU_ASSERT_TRUE(parts > 1);
        CU_ASSERT_EQUAL(slc_row_passes_end(rows.passes, mode, 0, UINT64_MAX), count);
        CU_ASSERT_NOT_EQUAL(slc_row_passes_hash(rows.passes, mode, 1),
                            slc_row_passes_hash(rows.passes, mode, 2));
    }
    CU_ASSERT_EQUAL(slc_row_passes_bytes(rows.passes, 0, 0, slc_row_passes_count(rows.passes, 0)),
                    rows.run.plan.layouts[rows.run.plan.mode_layout[0]].store_bytes);
    close_rows(&rows, &made);
    destroy_rows_store(&made);
}

static void dropped_nonzeros(void)
{
    static const struct variant variants[] = {
        {.threads = 2, .io = SLC_IO_PREAD, .schedule = SLC_SCHEDULE_FILE, .slots = 2},
        {.threads = 3, .io = SLC_IO_PREAD, .schedule = SLC_SCHEDULE_FILE, .buffer_nnz = 1400},
    };
    struct slc_holdout holdout = slc_holdout_choose(0.4, 5);

    holdout.drop = true;
    for (unsigned sorted = 0; sorted < 2; sorted++) {
        struct rows_shape shape = sorted_shapes[0];
        struct rows_store made;

        shape.name = sorted ? "drop_sorted" : "drop";
        shape.sorted = sorted ? 7 : 0;
        make_rows_store(&made, &shape);
        for (unsigned k = 0; k < 2 * SLC_COUNT(variants); k++) {
            const unsigned mode = k % 2 * 2;
            struct slc_error err = SLC_ERROR_INIT;
            struct slc_matrix wanted[SLC_MAX_ORDER];
            double measures[SLC_ROW_MEASURES];
            struct rows_solver solver;
            struct rows_run rows;

            CU_ASSERT_TRUE_FATAL(open_run(&rows, &made, &variants[k / 2], SLC_F64, NULL));
            slc_stream_hold_out(rows.run.stream, &holdout, NULL);
            open_passes(&rows);
            rows_solver_init(&solver, &made, mode, rows.run.plan.threads, 2);
            struct slc_row_pass pass = make_pass(&rows, &solver, true);
            SLC_ASSERT_OK(slc_row_pass_run(rows.passes, &pass, &err), &err);
            make_rows_factors(&made, SLC_F64, wanted);
            rows_reference(&made, &solver, &holdout, wanted, measures);
            CU_ASSERT_TRUE(distance(&rows.factors[mode], &wanted[mode]) < 1e-12);
            CU_ASSERT_TRUE(fabs(pass.measures[1] / measures[1] - 1) < 1e-12);
            destroy_rows_factors(&made, wanted);
            if (!sorted) {
                slc_stream_hold_out(rows.run.stream, NULL, NULL);
                SLC_ASSERT_FAILS(slc_row_pass_run(rows.passes, &pass, &err), SLC_ERR_USAGE, &err,
                                 "as many nonzeros");
                slc_error_clear(&err);
            }
            close_rows(&rows, &made);
        }
        destroy_rows_store(&made);
    }
}

/* Measures without an update are those of the factors as they are. */
static void fixed_rows(void)
{
    struct rows_store made;

    make_rows_store(&made, &sorted_shapes[0]);
    for (unsigned mode = 0; mode < 3; mode++) {
        struct slc_matrix untouched[SLC_MAX_ORDER];
        struct slc_error err = SLC_ERROR_INIT;
        double measures[SLC_ROW_MEASURES];
        struct rows_solver solver;
        struct rows_run rows;

        CU_ASSERT_TRUE_FATAL(open_run(&rows, &made, &sorted_variants[4], SLC_F64, NULL));
        open_passes(&rows);
        make_rows_factors(&made, SLC_F64, untouched);
        rows_solver_init(&solver, &made, mode, rows.run.plan.threads, 0);
        struct slc_row_pass pass = make_pass(&rows, &solver, true);
        pass.fixed = true;
        SLC_ASSERT_OK(slc_row_pass_run(rows.passes, &pass, &err), &err);
        CU_ASSERT_TRUE(same_bits(&rows.factors[mode], &untouched[mode]));
        CU_ASSERT_EQUAL(pass.rows, 0);
        rows_reference(&made, &solver, NULL, untouched, measures);
        for (unsigned k = 0; k < SLC_ROW_MEASURES; k++) {
            CU_ASSERT_TRUE(fabs(pass.measures[k] / measures[k] - 1) < 1e-12);
        }
        destroy_rows_factors(&made, untouched);
        close_rows(&rows, &made);
    }
    destroy_rows_store(&made);
}

/* Makes an update that must fail, then one that must succeed with the same objects. */
static void check_failure(struct rows_run *rows,
                          struct rows_solver *solver,
                          enum slc_status wanted,
                          const char *message)
{
    struct slc_row_pass pass = make_pass(rows, solver, true);
    struct slc_error err = SLC_ERROR_INIT;

    SLC_ASSERT_FAILS(slc_row_pass_run(rows->passes, &pass, &err), wanted, &err, message);
    slc_error_clear(&err);
    CU_ASSERT_EQUAL(solver->begins, solver->ends);
    solver->stop = 0;
    solver->stop_after = SLC_NOWHERE;
    solver->fail_row = SLC_NOWHERE;
    SLC_ASSERT_OK(slc_row_pass_run(rows->passes, &pass, &err), &err);
}

static void failing_rows(void)
{
    static const uint64_t rows_to_fail[] = {0, 119, 120, 299}; /* 120 is heavy */

    for (unsigned sorted = 0; sorted < 2; sorted++) {
        struct rows_shape shape = sorted_shapes[0];
        struct rows_store made;

        shape.name = sorted ? "fail_sorted" : "fail";
        shape.sorted = sorted ? 7 : 0;
        make_rows_store(&made, &shape);
        for (size_t v = 1; v < SLC_COUNT(sorted_variants); v += 2) {
            struct rows_solver solver;
            struct rows_run rows;

            if (!open_run(&rows, &made, &sorted_variants[v], SLC_F64, NULL)) {
                close_rows(&rows, &made);
                continue;
            }
            open_passes(&rows);
            for (size_t k = 0; k < SLC_COUNT(rows_to_fail); k++) {
                rows_solver_init(&solver, &made, 0, rows.run.plan.threads, 3);
                solver.fail_row = rows_to_fail[k];
                check_failure(&rows, &solver, SLC_ERR_NUMERIC, "not finite");
            }
            for (uint64_t adds = 1; adds < 400; adds = 2 * adds + 1) {
                rows_solver_init(&solver, &made, 0, rows.run.plan.threads, 3);
                solver.stop_after = adds;
                check_failure(&rows, &solver, SLC_ERR_INTERRUPTED, "stopped");
            }
            close_rows(&rows, &made);
        }
        destroy_rows_store(&made);
    }
}

static void failing_reads(void)
{
    for (unsigned sorted = 0; sorted < 2; sorted++) {
        struct rows_shape shape = sorted_shapes[0];
        struct rows_store made;
        struct slc_faulty faulty;
        struct rows_run rows;

        shape.name = sorted ? "reads_sorted" : "reads";
        shape.sorted = sorted ? 7 : 0;
        make_rows_store(&made, &shape);
        slc_faulty_init(&faulty);
        CU_ASSERT_TRUE_FATAL(
            open_run(&rows, &made, &(struct variant){.threads = 2, .io = SLC_IO_PREAD, .slots = 2},
                     SLC_F64, &faulty.table));
        open_passes(&rows);
        for (uint64_t k = 1; k < 300; k += 23) {
            struct slc_error err = SLC_ERROR_INIT;
            struct rows_solver solver;

            rows_solver_init(&solver, &made, 0, 2, 3);
            struct slc_row_pass pass = make_pass(&rows, &solver, false);
            slc_faulty_fail(&faulty, SLC_FAULTY_READ, k, EIO);
            const enum slc_status status = slc_row_pass_run(rows.passes, &pass, &err);
            CU_ASSERT_EQUAL(status, slc_faulty_fired(&faulty) ? SLC_ERR_IO : SLC_OK);
            slc_error_clear(&err);
        }
        slc_faulty_fail(&faulty, SLC_FAULTY_READ, UINT64_MAX, EIO);
        close_rows(&rows, &made);
        destroy_rows_store(&made);
    }
}

static void failing_memory(void)
{
    struct rows_shape shape = sorted_shapes[0];
    struct rows_store made;
    struct rows_run rows;

    shape.name = "memory";
    shape.sorted = 1;
    make_rows_store(&made, &shape);
    CU_ASSERT_TRUE_FATAL(open_run(&rows, &made, &sorted_variants[0], SLC_F64, NULL));
    for (uint64_t k = 1;; k++) {
        struct slc_error err = SLC_ERROR_INIT;

        slc_fault_arm(SLC_FAULT_ALLOCATION, k);
        const enum slc_status status =
            slc_row_passes_open(rows.run.stream, &rows.run.plan, NULL, &rows.passes, &err);
        const bool fired = slc_fault_seen(SLC_FAULT_ALLOCATION) >= k;
        slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
        if (status == SLC_OK) {
            CU_ASSERT_TRUE(k > 8);
            CU_ASSERT_FALSE(fired);
            break;
        }
        CU_ASSERT_EQUAL(status, SLC_ERR_MEMORY);
        rows.passes = NULL;
        slc_error_clear(&err);
    }
    close_rows(&rows, &made);
    destroy_rows_store(&made);
}

SLC_SUITE(row_pass)
{
    static const struct slc_test tests[] = {
        {"rows of sorted layouts: in memory, decoded again, streamed", sorted_rows},
        {"gathered rows", gathered_rows},
        {"rows of several segments", large_rows},
        {"parts of updates", parts_of_updates},
        {"positions", positions},
        {"dropped nonzeros", dropped_nonzeros},
        {"measures without an update", fixed_rows},
        {"numbers that are not finite, and stops", failing_rows},
        {"failing reads", failing_reads},
        {"failing memory", failing_memory},
    };

    return slc_test_main("engine row_pass", tests, SLC_COUNT(tests), argc, argv);
}
