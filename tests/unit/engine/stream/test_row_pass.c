/* Row passes: the rows of a factor are updated as by plain loops, with the same bits for any number
 * of threads, I/O method, schedule, cache and buffer size, in memory, decoded again, streamed or
 * gathered; and with nonzeros that are dropped. */
#include "rows_fixture.h"

#include "slc_test.h"

#include <math.h>
#include <string.h>

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
        CU_ASSERT_TRUE(rows_distance(&rows.factors[mode], &wanted[mode]) < tolerance);
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

static void sorted_rows(void)
{
    for (size_t s = 0; s < (size_t)SORTED_SHAPES; s++) {
        check_variants(&sorted_shapes[s], SLC_F64, sorted_variants, (size_t)SORTED_VARIANTS);
    }
    check_variants(&sorted_shapes[0], SLC_F32, sorted_variants, (size_t)SORTED_VARIANTS);
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

    for (size_t s = 0; s < (size_t)SORTED_SHAPES; s++) {
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
    /* The rows have several segments. They are gathered in memory as a whole or, with a small
     * gather_nnz, in batches. */
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

    rows_segment_nnz = SLC_ROW_SEGMENT_NNZ;
    check_variants(&shape, SLC_F64, variants, slc_test_quick() ? 2 : SLC_COUNT(variants));
    /* Sorted: the buffer of a worker is smaller than the row; all cached: all workers together. */
    shape.name = "large_sorted";
    shape.sorted = 1;
    check_variants(&shape, SLC_F64, variants, 2);
    rows_segment_nnz = 512;
}

/* The division into blocks does not change bits. */
static void block_sizes(void)
{
    for (unsigned sorted = 0; sorted < 2; sorted++) {
        double measures[SLC_ROW_MEASURES];
        struct slc_matrix first = {0};

        for (uint64_t bytes = 4096; bytes <= 65536; bytes *= 4) {
            struct rows_shape shape = sorted_shapes[0];
            struct rows_store made;

            shape.name = "blocks";
            shape.block_bytes = bytes;
            shape.sorted = sorted == 1 ? 7 : 0;
            make_rows_store(&made, &shape);
            check_update(&made, 0, SLC_F64, &sorted_variants[1], &first, measures);
            check_update(&made, 0, SLC_F64, &sorted_variants[4], &first, measures);
            destroy_rows_store(&made);
        }
        slc_matrix_destroy(&first);
    }
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
            CU_ASSERT_TRUE(rows_distance(&rows.factors[mode], &wanted[mode]) < 1e-12);
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

SLC_SUITE(row_pass)
{
    static const struct slc_test tests[] = {
        {"rows of sorted layouts: in memory, decoded again, streamed", sorted_rows},
        {"gathered rows", gathered_rows},
        {"rows of several segments", large_rows},
        {"any size of blocks", block_sizes},
        {"dropped nonzeros", dropped_nonzeros},
        {"measures without an update", fixed_rows},
    };

    return slc_test_main("engine row_pass", tests, SLC_COUNT(tests), argc, argv);
}
