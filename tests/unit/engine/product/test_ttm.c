/* TTM over a stream against the oracle: every fiber once with the right row, for any shape, kernel,
 * number of threads and memory, and the same bytes for all of these. */
#include "slc_test.h"
#include "ttm_fixture.h"

#include "base/random.h"
#include "engine/planning/planning.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Runs a problem in one shape and reads the result. */
static void
run_once(const struct ttm_problem *problem, struct ttm_shape shape, struct ttm_result *result)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_ttm_report report;
    struct ttm_run run;

    SLC_ASSERT_OK(ttm_run_open(&run, problem, &shape, &err), &err);
    CU_ASSERT(run.plan.total_bytes <= run.plan.budget_bytes);
    SLC_ASSERT_OK(ttm_run_multiply(&run, &report, &err), &err);
    ttm_run_close(&run);
    CU_ASSERT_FATAL(ttm_result_read(problem->folder, result));
    CU_ASSERT_EQUAL(report.fibers, result->fibers);
    CU_ASSERT_EQUAL(report.output.bytes, result->bytes);
    CU_ASSERT_EQUAL(ttm_folder_names(problem->folder), 2);
}

/* Both kernels, several threads, little and much memory: the oracle's numbers, and the same bytes.
 * `step`: runs every N-th of the six variants. */
static void check_problem(const struct ttm_problem *problem, double tolerance, unsigned step)
{
    static const unsigned threads[] = {1, 2, 5};

    for (enum slc_ttm_form form = 0; form < SLC_TTM_FORMS; form++) {
        uint64_t hash = 0;

        for (unsigned variant = 0; variant < 6; variant += slc_test_quick() ? 2 * step : step) {
            const struct ttm_shape shape = {
                .form = form, .threads = threads[variant % 3], .least = variant >= 3};
            struct ttm_result result;

            run_once(problem, shape, &result);
            CU_ASSERT_EQUAL(ttm_count_wrong(problem, &result, tolerance), 0);
            CU_ASSERT(variant == 0 || result.hash == hash);
            hash = result.hash;
            ttm_result_destroy(&result);
        }
    }
}

static void random_shapes(void)
{
    static const uint32_t cols[] = {1, 16, 100, 3, 1, 2, 16, 7};

    for (unsigned order = 1; order <= 8; order++) {
        for (unsigned mode = 0; mode < order; mode++) {
            uint64_t dims[SLC_MAX_ORDER];
            struct ttm_problem problem;

            if (slc_test_quick() && (order + mode) % 3 != 0) {
                continue;
            }
            for (unsigned m = 0; m < order; m++) {
                dims[m] = 1 + slc_random_below(slc_test_seed(), order, 10 * mode + m,
                                               order < 3 ? 400 : 24 / order);
            }
            dims[order - 1] = mode % 2 != 0 ? 1 : dims[order - 1];
            ttm_problem_create(&problem, order, dims, mode, 2500, 100, cols[(order + mode) % 8],
                               SLC_F64, false);
            check_problem(&problem, 1e-12, 4);
            ttm_problem_destroy(&problem);
        }
    }
}

/* Fibers over many tiles, or within one; rows of any length. */
static void long_and_short_fibers(void)
{
    static const uint64_t shapes[][3] = {{3, 4000, 2}, {700, 5, 900}, {1, 6000, 1}};
    static const uint32_t cols[] = {1, 16, 100, 1000};

    for (size_t s = 0; s < SLC_COUNT(shapes); s++) {
        for (size_t c = 0; c < SLC_COUNT(cols); c++) {
            struct ttm_problem problem;

            if (slc_test_quick() && (s + c) % 2 != 0) {
                continue;
            }
            ttm_problem_create(&problem, 3, shapes[s], 1, cols[c] > 100 ? 1500 : 6000,
                               c % 2 == 0 ? 300 : 0, cols[c], SLC_F64, true);
            check_problem(&problem, 0, cols[c] > 16 ? 4 : 1);
            ttm_problem_destroy(&problem);
        }
    }
}

static void single_precision(void)
{
    static const uint64_t dims[3] = {90, 70, 80};

    for (uint32_t cols = 1; cols <= 33; cols += 16) {
        struct ttm_problem problem;

        ttm_problem_create(&problem, 3, dims, 2, 5000, 700, cols, SLC_F32, true);
        check_problem(&problem, 0, 1);
        ttm_problem_destroy(&problem);
    }
}

static void nothing_at_all(void)
{
    static const uint64_t dims[3] = {9, 7, 8};
    struct ttm_problem problem;

    ttm_problem_create(&problem, 3, dims, 0, 0, 0, 16, SLC_F64, false);
    CU_ASSERT_EQUAL(problem.fibers, 0);
    check_problem(&problem, 0, 1);
    ttm_problem_destroy(&problem);
}

/* Full tiles, more fibers than any worker's memory holds, and a ring that fills up. */
static void larger_than_its_memory(void)
{
    static const uint64_t dims[3] = {3000, 40, 2000};
    struct ttm_problem problem;

    ttm_problem_create(&problem, 3, dims, 1, slc_test_quick() ? 70000 : 150000, 0, 33, SLC_F64,
                       true);
    check_problem(&problem, 0, 4);
    ttm_problem_destroy(&problem);
}

/* Coordinates are translated by the caller's table. */
static void names_indices(void)
{
    static const uint64_t dims[3] = {60, 50, 70};
    const struct ttm_shape shape = {.form = SLC_TTM_FIBERS, .threads = 2};
    struct slc_error err = SLC_ERROR_INIT;
    uint32_t index[70];
    struct slc_ttm_report report;
    struct ttm_problem problem;
    struct ttm_result result;
    struct ttm_run run;

    ttm_problem_create(&problem, 3, dims, 1, 4000, 500, 5, SLC_F64, true);
    for (uint32_t i = 0; i < 70; i++) {
        index[i] = 69 - i;
    }
    SLC_ASSERT_OK(ttm_run_open(&run, &problem, &shape, &err), &err);
    run.options.index[2] = index;
    SLC_ASSERT_OK(ttm_run_multiply(&run, &report, &err), &err);
    ttm_run_close(&run);
    CU_ASSERT_FATAL(ttm_result_read(problem.folder, &result));
    for (uint64_t f = 0; f < result.fibers; f++) {
        result.coords[2 * f + 1] = 69 - result.coords[2 * f + 1];
    }
    CU_ASSERT_EQUAL(ttm_count_wrong(&problem, &result, 0), 0);
    ttm_result_destroy(&result);
    ttm_problem_destroy(&problem);
}

/* The budget named by an error suffices, and slightly less does not. */
static void smallest_budget(void)
{
    static const uint64_t dims[3] = {60, 5000, 70};
    struct ttm_problem problem;

    ttm_problem_create(&problem, 3, dims, 1, 4000, 0, 100, SLC_F64, false);
    for (unsigned threads = 1; threads <= 8; threads *= 2) {
        struct slc_plan_request request = fixture_request(100);
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_ttm_division division;
        struct slc_layouts layouts;
        struct slc_store store;
        struct slc_plan plan;

        SLC_ASSERT_OK(slc_store_open(NULL, problem.store, &store, &err), &err);
        layouts = slc_layouts_one(store.reader);
        request.mode = 1;
        request.threads = threads;
        request.memory_bytes = 1;
        SLC_ASSERT_FAILS(slc_ttm_plan(&layouts, &request, &plan, &division, &err), SLC_ERR_BUDGET,
                         &err, "rank 100");
        for (uint64_t more = 0; more < 40 << 20; more = more * 3 + 4567) {
            /* The resident process is counted in steps of 4 MiB, and may grow by a step. */
            request.memory_bytes = plan.minimum_bytes + (4 << 20) + more;
            slc_error_clear(&err);
            SLC_ASSERT_OK(slc_ttm_plan(&layouts, &request, &plan, &division, &err), &err);
            CU_ASSERT(plan.total_bytes <= plan.budget_bytes);
            CU_ASSERT(division.row_buffers >= 2 && division.coord_buffers >= 2);
        }
        request.mode = 3;
        SLC_ASSERT_FAILS(slc_ttm_plan(&layouts, &request, &plan, &division, &err), SLC_ERR_USAGE,
                         &err, "mode 4 does not exist");
        slc_store_close(&store);
    }
    ttm_problem_destroy(&problem);
}

static const struct slc_test tests[] = {
    {"random shapes of one to eight modes", random_shapes},
    {"long and short fibers, long and short rows", long_and_short_fibers},
    {"single precision", single_precision},
    {"a tensor without nonzeros", nothing_at_all},
    {"a result larger than its memory", larger_than_its_memory},
    {"indices by the names of the input", names_indices},
    {"the smallest budget", smallest_budget},
};

SLC_SUITE(ttm)
{
    return slc_test_main("ttm", tests, SLC_COUNT(tests), argc, argv);
}
