/* Copies whose rows have one owner: built from tiles, multiplied, refused. */
#include "base/fault.h"
#include "mttkrp_fixture.h"
#include "slc_test.h"

#include <stdlib.h>
#include <string.h>

static void shape_of(const struct fake_tensor *tensor, struct slc_tensor_shape *shape)
{
    *shape = (struct slc_tensor_shape){
        .order = tensor->order, .nnz = tensor->nnz, .tile_nnz = tensor->tile_nnz};
    memcpy(shape->dims, tensor->dims, sizeof shape->dims);
}

/* Loads all tiles of the problem, in descending order: their order must not matter. */
static enum slc_status load(struct slc_backend *backend,
                            const struct problem *problem,
                            unsigned workers,
                            struct slc_error *err)
{
    struct slc_tensor_shape shape;
    struct fake_tile tile;
    enum slc_status status;

    shape_of(&problem->tensor, &shape);
    status = backend->ops->owned_begin(backend, &shape, problem->type, workers, err);
    if (status != SLC_OK) {
        return status;
    }
    fake_tile_create(&tile, &problem->tensor, problem->type);
    for (uint64_t t = fake_tensor_tiles(&problem->tensor); t-- > 0 && status == SLC_OK;) {
        fake_tile_open(&tile, t);
        status = backend->ops->owned_tile(backend, 0, &tile.view, err);
    }
    fake_tile_destroy(&tile);
    if (status == SLC_OK) {
        return backend->ops->owned_end(backend, err);
    }
    backend->ops->owned_drop(backend);
    return status;
}

static enum slc_status multiply(struct slc_backend *backend,
                                struct problem *problem,
                                unsigned workers,
                                struct slc_error *err)
{
    struct slc_mttkrp_job job;

    problem_job(problem, workers, &job);
    job.conflict = SLC_CONFLICT_OWNED;
    return backend->ops->mttkrp_owned(backend, &job, err);
}

static void check_problem(struct problem *problem, double tolerance)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_backend *backend;

    SLC_ASSERT_OK(slc_cpu_backend_create(&backend, &err), &err);
    for (unsigned workers = 1; workers <= 5; workers += 2) {
        SLC_ASSERT_OK(load(backend, problem, workers, &err), &err);
        for (int again = 0; again < 2; again++) {
            memset(problem->out.output.buffer.data, 0x55,
                   problem->out.output.rows * problem->out.output.pitch *
                       slc_value_bytes(problem->type));
            SLC_ASSERT_OK(multiply(backend, problem, workers, &err), &err);
            CU_ASSERT_EQUAL(count_wrong(problem, tolerance), 0);
            CU_ASSERT(canaries_live(&problem->out));
        }
    }
    backend->ops->destroy(backend);
}

/* Shapes with short, long, single-row and heavy modes; integers make sums exact. */
static void test_shapes(void)
{
    static const struct {
        unsigned order;
        uint64_t dims[5];
        uint64_t nnz;
        struct runs runs;
    } shapes[] = {
        {2, {50, 70}, 900, {0, 0}},
        {3, {40, 30, 20}, 5000, {0, 0}},
        {3, {2000, 1, 300}, 9000, {0, 6}},
        {3, {100000, 7, 5}, 6000, {2, 3}},
        {4, {300, 24, 900, 12}, 9000, {3, 4}},
        {5, {9, 400, 3, 700, 2}, 7000, {1, 9}},
        {3, {1, 1, 1}, 1, {0, 0}},
        {3, {1, 1, 1}, 40, {0, 0}},
        {3, {600, 500, 400}, 0, {0, 0}},
        {3, {300, 2, 2}, 20000, {0, 200}},
    };
    static const uint32_t ranks[] = {1, 7, 16, 33};

    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        for (unsigned mode = 0; mode < shapes[s].order; mode++) {
            for (unsigned r = 0; r < 4; r++) {
                const enum slc_value_type type = (mode + r) % 2 == 0 ? SLC_F64 : SLC_F32;
                struct problem problem;

                problem_create_runs(&problem, shapes[s].order, shapes[s].dims, shapes[s].nnz, mode,
                                    ranks[r], type, true, shapes[s].runs);
                check_problem(&problem, 0);
                problem_destroy(&problem);
            }
        }
    }
}

/* Several pieces a range, runs over the ends of chunks, and reals. */
static void test_large(void)
{
    static const uint64_t dims[] = {12, 30000, 700};
    struct problem problem;

    for (unsigned mode = 0; mode < 3; mode++) {
        problem_create_runs(&problem, 3, dims, 200000, mode, 16, SLC_F64, true,
                            (struct runs){1, 40});
        check_problem(&problem, 0);
        problem_destroy(&problem);
    }
    problem_create(&problem, 3, dims, 150000, 1, 9, SLC_F64, false);
    check_problem(&problem, 1e-13);
    problem_destroy(&problem);
}

/* Sixteen modes of 32 rows take 80 bits: too many to sort by. */
static void test_wide_keys(void)
{
    struct problem problem;
    uint64_t dims[SLC_MAX_ORDER];

    for (unsigned m = 0; m < SLC_MAX_ORDER; m++) {
        dims[m] = 32;
    }
    problem_create(&problem, SLC_MAX_ORDER, dims, 3000, 5, 4, SLC_F64, true);
    check_problem(&problem, 0);
    problem_destroy(&problem);
}

/* The same sums however threads take turns: reals, whose sums depend on their order. */
static void test_repeatable(void)
{
    static const uint64_t dims[] = {20, 5000, 600};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_backend *backend;
    struct problem problem;

    SLC_ASSERT_OK(slc_cpu_backend_create(&backend, &err), &err);
    for (unsigned mode = 0; mode < 2; mode++) {
        const struct slc_matrix *output = &problem.out.output;
        unsigned char *first;
        uint64_t bytes;

        problem_create(&problem, 3, dims, 60000, mode, 8, SLC_F64, false);
        bytes = output->rows * output->pitch * sizeof(double);
        first = malloc(bytes);
        CU_ASSERT_PTR_NOT_NULL_FATAL(first);
        SLC_ASSERT_OK(load(backend, &problem, 4, &err), &err);
        SLC_ASSERT_OK(multiply(backend, &problem, 4, &err), &err);
        memcpy(first, output->buffer.data, bytes);
        for (int again = 0; again < 20; again++) {
            SLC_ASSERT_OK(multiply(backend, &problem, 4, &err), &err);
            CU_ASSERT_EQUAL(memcmp(first, output->buffer.data, bytes), 0);
        }
        SLC_ASSERT_OK(load(backend, &problem, 4, &err), &err);
        SLC_ASSERT_OK(multiply(backend, &problem, 4, &err), &err);
        CU_ASSERT_EQUAL(memcmp(first, output->buffer.data, bytes), 0);
        free(first);
        problem_destroy(&problem);
    }
    backend->ops->destroy(backend);
}

/* What the operations refuse, and that nothing is held afterwards. */
static void test_refused(void)
{
    static const uint64_t dims[] = {50, 20, 30};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_backend *backend;
    struct slc_tensor_shape shape;
    struct slc_mttkrp_job job;
    struct problem problem;
    struct fake_tile tile;

    SLC_ASSERT_OK(slc_cpu_backend_create(&backend, &err), &err);
    problem_create(&problem, 3, dims, 1000, 0, 8, SLC_F64, true);
    problem.tensor.tile_nnz = 100;
    SLC_ASSERT_FAILS(multiply(backend, &problem, 2, &err), SLC_ERR_USAGE, &err, "not held");

    shape_of(&problem.tensor, &shape);
    slc_error_clear(&err);
    shape.dims[1] = (UINT64_C(1) << 32) + 1;
    CU_ASSERT_EQUAL(backend->ops->owned_bytes(&shape, 8, SLC_F64, 2), UINT64_MAX);
    SLC_ASSERT_FAILS(backend->ops->owned_begin(backend, &shape, SLC_F64, 2, &err), SLC_ERR_MEMORY,
                     &err, "copies");
    shape_of(&problem.tensor, &shape);
    shape.order = 1;
    CU_ASSERT_EQUAL(backend->ops->owned_bytes(&shape, 8, SLC_F64, 2), UINT64_MAX);

    shape_of(&problem.tensor, &shape);
    slc_error_clear(&err);
    SLC_ASSERT_OK(backend->ops->owned_begin(backend, &shape, SLC_F64, 2, &err), &err);
    fake_tile_create(&tile, &problem.tensor, SLC_F64);
    fake_tile_open(&tile, 3);
    SLC_ASSERT_OK(backend->ops->owned_tile(backend, 1, &tile.view, &err), &err);
    fake_tile_open(&tile, 4);
    tile.view.ordinal = 10;
    SLC_ASSERT_FAILS(backend->ops->owned_tile(backend, 1, &tile.view, &err), SLC_ERR_USAGE, &err,
                     "tile 10");
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(backend->ops->owned_end(backend, &err), SLC_ERR_USAGE, &err, "100 came");
    fake_tile_destroy(&tile);

    slc_error_clear(&err);
    problem.tensor.chunk_nnz = 10;
    problem.tensor.fail_tile = 7;
    SLC_ASSERT_FAILS(load(backend, &problem, 2, &err), SLC_ERR_DAMAGED, &err, "damaged");
    problem.tensor.fail_tile = UINT64_MAX;
    slc_error_clear(&err);
    SLC_ASSERT_OK(load(backend, &problem, 2, &err), &err);
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(multiply(backend, &problem, 3, &err), SLC_ERR_USAGE, &err, "3 threads");
    problem_job(&problem, 2, &job);
    job.conflict = SLC_CONFLICT_OWNED;
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(backend->ops->mttkrp_begin(backend, &job, &err), SLC_ERR_USAGE, &err, "tiles");
    slc_error_clear(&err);
    SLC_ASSERT_OK(multiply(backend, &problem, 2, &err), &err);
    CU_ASSERT_EQUAL(count_wrong(&problem, 0), 0);
    backend->ops->owned_drop(backend);
    SLC_ASSERT_FAILS(multiply(backend, &problem, 2, &err), SLC_ERR_USAGE, &err, "not held");
    problem_destroy(&problem);
    backend->ops->destroy(backend);
}

/* The k-th allocation, or thread, is refused, for every k. */
static void check_faults(enum slc_fault_kind kind, enum slc_status refused)
{
    static const uint64_t dims[] = {50, 2000, 30};
    struct problem problem;
    bool done = false;

    problem_create(&problem, 3, dims, 3000, 0, 8, SLC_F64, true);
    for (uint64_t k = 1; !done && k < 200; k++) {
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_backend *backend;
        enum slc_status status;

        SLC_ASSERT_OK(slc_cpu_backend_create(&backend, &err), &err);
        slc_fault_arm(kind, k);
        status = load(backend, &problem, 2, &err);
        if (status == SLC_OK) {
            status = multiply(backend, &problem, 2, &err);
        }
        done = slc_fault_seen(kind) < k;
        slc_fault_arm(kind, 0);
        CU_ASSERT_EQUAL(status, done ? SLC_OK : refused);
        if (done) {
            CU_ASSERT_EQUAL(count_wrong(&problem, 0), 0);
        }
        backend->ops->destroy(backend);
    }
    CU_ASSERT(done);
    problem_destroy(&problem);
}

static void test_faults(void)
{
    check_faults(SLC_FAULT_ALLOCATION, SLC_ERR_MEMORY);
    check_faults(SLC_FAULT_THREAD, SLC_ERR_SYSTEM);
}

static const struct slc_test tests[] = {
    {"every shape, rank, type and number of workers", test_shapes},
    {"several pieces a range", test_large},
    {"coordinates too wide to sort by", test_wide_keys},
    {"the same bits every time", test_repeatable},
    {"refused: tiles and jobs that do not fit", test_refused},
    {"every failing allocation and thread", test_faults},
};

int main(int argc, char **argv)
{
    return slc_test_main("owned", tests, SLC_COUNT(tests), argc, argv);
}
