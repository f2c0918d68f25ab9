/* Row passes in parts, which can be stopped and resumed, and row passes that fail: numbers that are
 * not finite, stops, reads and memory. The same objects can then be used again. */
#include "rows_fixture.h"

#include "base/error/fault.h"
#include "faulty_files.h"
#include "slc_test.h"

#include <errno.h>
#include <string.h>

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
    static const uint64_t rows_to_fail[] = {0, 119, 120, 299}; /* row 120 is heavy */

    for (unsigned sorted = 0; sorted < 2; sorted++) {
        struct rows_shape shape = sorted_shapes[0];
        struct rows_store made;

        shape.name = sorted ? "fail_sorted" : "fail";
        shape.sorted = sorted ? 7 : 0;
        make_rows_store(&made, &shape);
        for (size_t v = 1; v < (size_t)SORTED_VARIANTS; v += 2) {
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

/* Threads of passes and of the work between passes fail to start. */
static void failing_threads(void)
{
    struct rows_shape shape = sorted_shapes[0];
    struct rows_store made;
    struct rows_run rows;

    shape.name = "threads";
    shape.sorted = 1;
    make_rows_store(&made, &shape);
    CU_ASSERT_TRUE_FATAL(open_run(&rows, &made, &sorted_variants[4], SLC_F64, NULL));
    open_passes(&rows);
    for (unsigned mode = 0; mode < 2; mode++) {
        for (uint64_t k = 1;; k++) {
            struct slc_error err = SLC_ERROR_INIT;
            struct rows_solver solver;

            rows_solver_init(&solver, &made, mode, rows.run.plan.threads, 2);
            struct slc_row_pass pass = make_pass(&rows, &solver, true);
            slc_fault_arm(SLC_FAULT_THREAD, k);
            const enum slc_status status = slc_row_pass_run(rows.passes, &pass, &err);
            const bool fired = slc_fault_seen(SLC_FAULT_THREAD) >= k;
            slc_fault_arm(SLC_FAULT_THREAD, 0);
            slc_error_clear(&err);
            CU_ASSERT_EQUAL(solver.begins, solver.ends);
            CU_ASSERT_EQUAL(status, fired ? SLC_ERR_SYSTEM : SLC_OK);
            if (!fired) {
                CU_ASSERT_TRUE(k > 1);
                break;
            }
        }
    }
    close_rows(&rows, &made);
    destroy_rows_store(&made);
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

SLC_SUITE(row_parts)
{
    static const struct slc_test tests[] = {
        {"parts of updates", parts_of_updates},
        {"positions", positions},
        {"numbers that are not finite, and stops", failing_rows},
        {"failing reads", failing_reads},
        {"failing threads", failing_threads},
        {"failing memory", failing_memory},
    };

    return slc_test_main("engine row_parts", tests, SLC_COUNT(tests), argc, argv);
}
