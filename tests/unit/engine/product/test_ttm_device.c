/* TTM on a device, and on CPU and device together: the oracle's rows for any division of the tiles,
 * and the same bytes where guaranteed. */
#include "product_device.h"
#include "slc_test.h"
#include "ttm_fixture.h"

#include "base/random.h"
#include "engine/planning/planning.h"

#include <string.h>

enum { PLENTY_BYTES = 1 << 30 };

static const struct slc_hybrid_wish wishes[] = {
    {SLC_HYBRID_NONE, 0},   {SLC_HYBRID_STATIC, 0},   {SLC_HYBRID_STATIC, 0.4},
    {SLC_HYBRID_STATIC, 1}, {SLC_HYBRID_ADAPTIVE, 0}, {SLC_HYBRID_QUEUE, 0},
};

static void run_shape(const struct ttm_problem *problem,
                      const struct ttm_shape *shape,
                      struct slc_ttm_report *report,
                      struct ttm_result *result)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct ttm_run run;

    SLC_ASSERT_OK(ttm_run_open(&run, problem, shape, &err), &err);
    CU_ASSERT(run.plan.total_bytes <= run.plan.budget_bytes);
    CU_ASSERT(run.plan.gpu.total_bytes <= run.plan.gpu.budget_bytes);
    SLC_ASSERT_OK(ttm_run_multiply(&run, report, &err), &err);
    ttm_run_close(&run);
    CU_ASSERT_FATAL(ttm_result_read(problem->folder, result));
    CU_ASSERT_EQUAL(report->fibers, result->fibers);
    CU_ASSERT_EQUAL(ttm_folder_names(problem->folder), 2);
}

/* Checks that the work of both sides adds up, and that each side has a part. */
static void check_report(const struct ttm_problem *problem,
                         const struct slc_hybrid_wish *wish,
                         const struct slc_ttm_report *report)
{
    const struct slc_hybrid_tiles_report *sides = &report->products.hybrid;
    const uint64_t tiles = sides->tiles[SLC_HYBRID_CPU] + sides->tiles[SLC_HYBRID_GPU];

    CU_ASSERT_EQUAL(sides->nnz[SLC_HYBRID_CPU] + sides->nnz[SLC_HYBRID_GPU], problem->tensor.nnz);
    CU_ASSERT_EQUAL(report->products.device.nnz, sides->nnz[SLC_HYBRID_GPU]);
    if (wish->kind == SLC_HYBRID_NONE) {
        CU_ASSERT_EQUAL(sides->tiles[SLC_HYBRID_CPU], 0);
    }
    if (wish->kind == SLC_HYBRID_STATIC) {
        CU_ASSERT_EQUAL(sides->tiles[SLC_HYBRID_GPU], (uint64_t)((double)tiles * wish->fraction));
        CU_ASSERT(sides->fraction == wish->fraction);
    }
    if (wish->kind == SLC_HYBRID_QUEUE) {
        CU_ASSERT(sides->fraction < 0);
    }
}

/* With integers, every way to share the tiles, with several threads and lanes, yields the same
 * bytes as the CPU alone. */
static void
check_exact(const struct ttm_problem *problem, uint64_t device_bytes, bool pieces, unsigned step)
{
    static const unsigned threads[] = {2, 1, 4};
    static const unsigned streams[] = {0, 1, 3};
    struct slc_device *device = product_device_create(device_bytes, 20);
    struct slc_ttm_report report;
    struct ttm_result result;
    uint64_t hash;

    run_shape(problem, &(struct ttm_shape){.threads = 2}, &report, &result);
    hash = result.hash;
    ttm_result_destroy(&result);
    for (unsigned w = 0; w < SLC_COUNT(wishes); w += step) {
        const struct ttm_shape shape = {.threads = threads[w % 3],
                                        .least = w % 2 == 1,
                                        .device = device,
                                        .hybrid = wishes[w],
                                        .streams =
                                            device_bytes == PLENTY_BYTES ? streams[w % 3] : 0};

        run_shape(problem, &shape, &report, &result);
        CU_ASSERT_EQUAL(ttm_count_wrong(problem, &result, 0), 0);
        CU_ASSERT_EQUAL(result.hash, hash);
        check_report(problem, &wishes[w], &report);
        ttm_result_destroy(&result);
    }
    CU_ASSERT_EQUAL(product_device_counts(device)->wrongs, 0);
    CU_ASSERT_EQUAL(product_device_counts(device)->more > 0, pieces);
    CU_ASSERT_EQUAL(product_device_counts(device)->opened, product_device_counts(device)->closed);
    device->ops->destroy(device);
}

static void every_way_to_share(void)
{
    for (unsigned order = 1; order <= 5; order++) {
        const unsigned mode = order / 2;
        uint64_t dims[SLC_MAX_ORDER];
        struct ttm_problem problem;

        for (unsigned m = 0; m < order; m++) {
            dims[m] = order == 1 ? 3000 : 40 / order + m;
        }
        ttm_problem_create(&problem, order, dims, mode, 2500, 100, order == 3 ? 16 : order,
                           order == 4 ? SLC_F32 : SLC_F64, true);
        check_exact(&problem, PLENTY_BYTES, false, order == 3 || !slc_test_quick() ? 1 : 2);
        ttm_problem_destroy(&problem);
    }
}

static void nothing_at_all(void)
{
    static const uint64_t dims[3] = {9, 7, 8};
    struct ttm_problem problem;

    ttm_problem_create(&problem, 3, dims, 0, 0, 0, 16, SLC_F64, false);
    check_exact(&problem, PLENTY_BYTES, false, 1);
    ttm_problem_destroy(&problem);
}

/* Full tiles of many fibers on a device that holds only a few of them. */
static void in_pieces(void)
{
    static const uint64_t dims[3] = {300, 9, 200};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_device *device = product_device_create(1, 0);
    const struct ttm_shape shape = {.threads = 2, .device = device};
    struct ttm_problem problem;
    struct ttm_run run;
    uint64_t least;

    ttm_problem_create(&problem, 3, dims, 1, 30000, 0, 5, SLC_F64, true);
    SLC_ASSERT_FAILS(ttm_run_open(&run, &problem, &shape, &err), SLC_ERR_BUDGET, &err,
                     "MiB of device memory");
    least = run.plan.gpu.minimum_bytes;
    slc_store_close(&run.store);
    device->ops->destroy(device);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.message, "5 columns"));
    check_exact(&problem, least, true, 1);
    check_exact(&problem, least * 3, true, 2);
    ttm_problem_destroy(&problem);
}

/* The bits of a device depend only on the layout, those of a static split on the layout and the
 * fraction. */
static void the_same_bits(void)
{
    static const uint64_t dims[3] = {200, 30, 150};
    static const struct slc_hybrid_wish same[] = {{SLC_HYBRID_NONE, 0}, {SLC_HYBRID_STATIC, 0.3}};
    struct slc_device *device = product_device_create(PLENTY_BYTES, 30);
    struct ttm_problem problem;

    ttm_problem_create(&problem, 3, dims, 1, 20000, 700, 7, SLC_F64, false);
    for (size_t w = 0; w < SLC_COUNT(same); w++) {
        uint64_t hash = 0;

        for (unsigned v = 0; v < 3; v++) {
            const struct ttm_shape shape = {.threads = 1 + 2 * v,
                                            .device = device,
                                            .hybrid = same[w],
                                            .streams = v == 0 ? 8 : v};
            struct slc_ttm_report report;
            struct ttm_result result;

            run_shape(&problem, &shape, &report, &result);
            CU_ASSERT_EQUAL(ttm_count_wrong(&problem, &result, 1e-12), 0);
            CU_ASSERT(v == 0 || result.hash == hash);
            hash = result.hash;
            ttm_result_destroy(&result);
        }
    }
    CU_ASSERT_EQUAL(product_device_counts(device)->wrongs, 0);
    device->ops->destroy(device);
    ttm_problem_destroy(&problem);
}

/* A slow device gets less than half of an adaptive pass. */
static void measures(void)
{
    static const uint64_t dims[3] = {200, 30, 150};
    struct slc_device *device = product_device_create(PLENTY_BYTES, 20000);
    const struct ttm_shape shape = {
        .threads = 1, .device = device, .hybrid = {SLC_HYBRID_ADAPTIVE, 0}, .streams = 1};
    struct slc_ttm_report report;
    struct ttm_problem problem;
    struct ttm_result result;

    ttm_problem_create(&problem, 3, dims, 1, 20000, 700, 2, SLC_F64, true);
    run_shape(&problem, &shape, &report, &result);
    CU_ASSERT_EQUAL(ttm_count_wrong(&problem, &result, 0), 0);
    CU_ASSERT(report.products.hybrid.fraction > 0 && report.products.hybrid.fraction < 0.5);
    CU_ASSERT(report.products.hybrid.tiles[SLC_HYBRID_GPU] <
              report.products.hybrid.tiles[SLC_HYBRID_CPU]);
    ttm_result_destroy(&result);
    ttm_problem_destroy(&problem);
    device->ops->destroy(device);
}

/* Less memory: fewer lanes, down to the smallest budget; the budget named by an error suffices. */
static void smallest_budget(void)
{
    static const uint64_t dims[3] = {60, 5000, 70};
    struct slc_device *device = product_device_create(PLENTY_BYTES, 0);
    struct slc_plan_request request = fixture_request(100);
    struct slc_error err = SLC_ERROR_INIT;
    struct ttm_problem problem;
    struct slc_ttm_division division;
    struct slc_layouts layouts;
    struct slc_store store;
    struct slc_plan plan;
    unsigned lanes = 0;

    ttm_problem_create(&problem, 3, dims, 1, 4000, 0, 100, SLC_F64, false);
    SLC_ASSERT_OK(slc_store_open(NULL, problem.store, &store, &err), &err);
    layouts = slc_layouts_one(store.reader);
    request.mode = 1;
    request.gpu = device;
    request.threads = 2;
    for (unsigned w = 0; w < SLC_COUNT(wishes); w++) {
        request.hybrid = wishes[w];
        request.memory_bytes = 1;
        SLC_ASSERT_FAILS(slc_ttm_plan(&layouts, &request, &plan, &division, &err), SLC_ERR_BUDGET,
                         &err, "rank 100");
        lanes = 0;
        for (uint64_t more = 0; more < 200 << 20; more = more * 3 + 4567) {
            request.memory_bytes = plan.minimum_bytes + (4 << 20) + more;
            slc_error_clear(&err);
            SLC_ASSERT_OK(slc_ttm_plan(&layouts, &request, &plan, &division, &err), &err);
            CU_ASSERT(plan.total_bytes <= plan.budget_bytes);
            CU_ASSERT(plan.gpu.streams >= lanes);
            lanes = plan.gpu.streams;
            CU_ASSERT_EQUAL(plan.threads, lanes + (w > 0 ? 2 : 0));
            CU_ASSERT_EQUAL(division.outputs, w > 0 ? 2 : 0);
        }
        /* Two lanes for each of two threads, and more lanes for the tiles after these. */
        CU_ASSERT_EQUAL(lanes, w > 0 ? SLC_DEVICE_STREAMS + 4 : 4);
    }
    /* The largest number of threads, some of which belong to lanes. */
    request.threads = SLC_MAX_THREADS;
    request.memory_bytes = UINT64_C(1) << 40;
    SLC_ASSERT_OK(slc_ttm_plan(&layouts, &request, &plan, &division, &err), &err);
    CU_ASSERT_EQUAL(plan.threads, SLC_MAX_THREADS);
    request.mode = 3;
    SLC_ASSERT_FAILS(slc_ttm_plan(&layouts, &request, &plan, &division, &err), SLC_ERR_USAGE, &err,
                     "mode 4 does not exist");
    slc_store_close(&store);
    ttm_problem_destroy(&problem);
    device->ops->destroy(device);
}

static const struct slc_test tests[] = {
    {"every way to share", every_way_to_share},
    {"a tensor without nonzeros", nothing_at_all},
    {"tiles in pieces", in_pieces},
    {"the same bits", the_same_bits},
    {"a slow device is measured", measures},
    {"the smallest budget", smallest_budget},
};

SLC_SUITE(ttm_device)
{
    return slc_test_main("ttm_device", tests, SLC_COUNT(tests), argc, argv);
}
