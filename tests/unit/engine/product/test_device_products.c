/* The table of a device's products, used like by an operation that knows no device: every tile is
 * multiplied once on the right side, and without a usable device everything is done on the CPU, if
 * allowed. */
#include "engine/product/device_products.h"
#include "engine/stream/tile_stream.h"
#include "product_device.h"
#include "slc_test.h"
#include "ttm_fixture.h"

#include <string.h>

enum { WORKERS_MAX = 32 };

/* The sums of a pass, separate for each worker. */
struct pass {
    const struct ttm_problem *problem;
    const struct slc_tile_products *products;
    double sum[WORKERS_MAX]; /* per worker, the sum of the elements of all rows */
    uint64_t nnz[WORKERS_MAX];
};

static enum slc_status
multiply(struct pass *pass, unsigned worker, struct slc_tile_view *tile, struct slc_error *err)
{
    const struct slc_matrix *matrix = &pass->problem->matrix;
    const unsigned mode = pass->problem->mode;
    enum slc_status status = SLC_OK;
    struct slc_chunk_view chunk = {.nnz = 1};

    while (status == SLC_OK && chunk.nnz > 0) {
        status = tile->next(tile, SLC_GROUP_NNZ, &chunk, err);
        for (uint32_t i = 0; status == SLC_OK && i < chunk.nnz; i++) {
            const double value = ((const double *)chunk.values)[i];

            for (uint32_t r = 0; r < matrix->cols; r++) {
                pass->sum[worker] +=
                    value * slc_matrix_get(matrix, tile->corner[mode] + chunk.offset[mode][i], r);
            }
        }
    }
    return status;
}

static enum slc_status
decode(void *context, unsigned worker, struct slc_tile_view *tile, struct slc_error *err)
{
    struct pass *pass = context;
    const struct slc_tile_products *products = pass->products;
    struct slc_device_fibers fibers;
    enum slc_status status = products->take(products->self, worker, tile, &fibers, err);

    if (status != SLC_OK) {
        return status;
    }
    pass->nnz[worker] += tile->nnz;
    if (fibers.count == 0) {
        status = multiply(pass, worker, tile, err);
    }
    while (status == SLC_OK && fibers.count > 0) {
        const double *sums = fibers.sums;

        for (uint64_t i = 0; i < (uint64_t)fibers.count * pass->problem->matrix.cols; i++) {
            pass->sum[worker] += sums[i];
        }
        if (!fibers.more) {
            break;
        }
        status = products->more(products->self, worker, &fibers, err);
    }
    products->leave(products->self, worker);
    return status;
}

static enum slc_status run_pass(const struct ttm_problem *problem,
                                struct slc_device_products *products,
                                unsigned threads,
                                struct slc_error *err)
{
    const struct slc_tile_products table = slc_device_products_table(products);
    struct pass pass = {.problem = problem, .products = &table};
    const struct slc_tile_steps steps = {.context = &pass, .decode = decode};
    const struct slc_matrix *matrices[SLC_MAX_ORDER] = {NULL};
    struct slc_tile_stream tiles = {.io = SLC_IO_PREAD};
    struct slc_products_plan plan;
    struct slc_store store;
    double sum = 0, want = 0;
    uint64_t nnz = 0;
    enum slc_status status = slc_store_open(NULL, problem->store, &store, err);

    SLC_ASSERT_OK(status, err);
    matrices[problem->mode] = &problem->matrix;
    status = table.plan(table.self, store.reader, 1U << problem->mode, NULL, problem->matrix.cols,
                        threads, &plan, err);
    if (status == SLC_OK) {
        CU_ASSERT_FATAL(plan.workers >= threads && plan.workers <= WORKERS_MAX);
        CU_ASSERT_EQUAL(plan.host_bytes > 0, products->used);
        status = table.open(table.self, matrices, NULL, err);
    }
    if (status == SLC_OK) {
        status = slc_tile_stream_run(
            &tiles, store.reader, plan.workers,
            slc_tile_stream_memory_bytes(&tiles, store.reader, plan.workers, false), &steps, err);
        table.close(table.self);
    }
    slc_store_close(&store);
    for (unsigned w = 0; w < WORKERS_MAX; w++) {
        sum += pass.sum[w];
        nnz += pass.nnz[w];
    }
    for (uint64_t i = 0; i < problem->fibers * problem->matrix.cols; i++) {
        want += problem->want[i];
    }
    CU_ASSERT(status != SLC_OK || (sum == want && nnz == problem->tensor.nnz));
    return status;
}

static void make_problem(struct ttm_problem *problem)
{
    static const uint64_t dims[3] = {200, 30, 150};

    ttm_problem_create(problem, 3, dims, 1, 20000, 700, 3, SLC_F64, true);
}

static void all_is_multiplied(void)
{
    static const struct slc_hybrid_wish wishes[] = {{SLC_HYBRID_NONE, 0},
                                                    {SLC_HYBRID_STATIC, 0.4},
                                                    {SLC_HYBRID_ADAPTIVE, 0},
                                                    {SLC_HYBRID_QUEUE, 0}};
    struct ttm_problem problem;

    make_problem(&problem);
    for (size_t w = 0; w < SLC_COUNT(wishes); w++) {
        struct slc_device *device = product_device_create(1 << 30, 20);
        struct slc_device_products products = {.device = device, .hybrid = wishes[w]};
        const struct slc_hybrid_tiles_report *sides = &products.report.hybrid;
        struct slc_error err = SLC_ERROR_INIT;

        SLC_ASSERT_OK(run_pass(&problem, &products, 3, &err), &err);
        CU_ASSERT(products.used && products.plan.streams == 6);
        CU_ASSERT_EQUAL(sides->nnz[SLC_HYBRID_CPU] + sides->nnz[SLC_HYBRID_GPU],
                        problem.tensor.nnz);
        CU_ASSERT(w > 0 || sides->nnz[SLC_HYBRID_CPU] == 0);
        CU_ASSERT(w != 1 ||
                  sides->tiles[SLC_HYBRID_GPU] ==
                      2 * (sides->tiles[SLC_HYBRID_GPU] + sides->tiles[SLC_HYBRID_CPU]) / 5);
        products.streams = 2;
        SLC_ASSERT_OK(run_pass(&problem, &products, 1, &err), &err);
        CU_ASSERT_EQUAL(products.plan.streams, 2);
        /* A pass with the smallest sufficient memory. */
        SLC_ASSERT_OK(run_pass(&problem, &products, 0, &err), &err);
        CU_ASSERT_EQUAL(products.plan.streams, 2);
        CU_ASSERT_EQUAL(products.plan.total_bytes, products.plan.minimum_bytes);
        CU_ASSERT(product_device_counts(device)->wrongs == 0);
        CU_ASSERT_EQUAL(product_device_counts(device)->closed, 3);
        device->ops->destroy(device);
    }
    ttm_problem_destroy(&problem);
}

/* No device, a device with too little memory, or one that fails to open. */
static void done_without(void)
{
    struct slc_device_products none = {.device = NULL};
    struct slc_device *small = product_device_create(1000, 0);
    struct slc_device *large = product_device_create(1 << 30, 0);
    struct slc_error err = SLC_ERROR_INIT;
    struct ttm_problem problem;

    make_problem(&problem);
    SLC_ASSERT_OK(run_pass(&problem, &none, 2, &err), &err);
    CU_ASSERT(!none.used && none.why.status == SLC_OK);
    for (unsigned i = 0; i < 2; i++) {
        struct slc_device_products products = {.device = i == 0 ? small : large};
        const enum slc_status want = i == 0 ? SLC_ERR_BUDGET : SLC_ERR_SYSTEM;
        const char *part = i == 0 ? "MiB of device memory" : "refused";

        product_device_refuse(large, 1);
        SLC_ASSERT_FAILS(run_pass(&problem, &products, 2, &err), want, &err, part);
        slc_error_clear(&err);
        products.optional = true;
        product_device_refuse(large, 1);
        SLC_ASSERT_OK(run_pass(&problem, &products, 2, &err), &err);
        CU_ASSERT(!products.used && strstr(products.why.message, part) != NULL);
        product_device_refuse(large, 2);
        CU_ASSERT(i == 0 || run_pass(&problem, &products, 2, &err) == SLC_ERR_SYSTEM);
        slc_error_clear(&err);
    }
    small->ops->destroy(small);
    large->ops->destroy(large);
    ttm_problem_destroy(&problem);
}

static const struct slc_test tests[] = {
    {"all is multiplied, once", all_is_multiplied},
    {"a device that is done without", done_without},
};

SLC_SUITE(device_products)
{
    return slc_test_main("device_products", tests, SLC_COUNT(tests), argc, argv);
}
