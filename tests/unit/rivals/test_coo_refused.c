/* Lists of coordinates that are rejected: shapes beyond 32 bits, tiles of another tensor, jobs that
 * do not fit, and a fault at every allocation and thread. */
#include "base/error/fault.h"
#include "coo_fixture.h"
#include "slc_test.h"

#include <string.h>

static void test_shapes(void)
{
    static const struct {
        struct slc_tensor_shape shape;
        enum slc_status status;
        const char *part;
    } cases[] = {
        {{.order = 0, .tile_nnz = 1}, SLC_ERR_USAGE, "1 to 16 modes"},
        {{.order = 17, .tile_nnz = 1}, SLC_ERR_USAGE, "1 to 16 modes"},
        {{.order = 1, .nnz = 1, .dims = {1}}, SLC_ERR_USAGE, "tiles of 0"},
        {{.order = 2, .tile_nnz = 1, .dims = {5, (UINT64_C(1) << 32) + 1}},
         SLC_ERR_UNSUPPORTED,
         "mode 2 has size 4294967297, but a list of coordinates is limited to mode size 2^32"},
        {{.order = 1, .tile_nnz = 1, .nnz = UINT64_C(1) << 32, .dims = {5}},
         SLC_ERR_UNSUPPORTED,
         "4294967296 nonzeros, but a list of coordinates is limited to 2^32 - 1 nonzeros"},
    };

    for (size_t c = 0; c < SLC_COUNT(cases); c++) {
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_coo coo = {.loaded = 0};

        SLC_ASSERT_FAILS(slc_coo_create(&coo, &cases[c].shape, SLC_F64, &err), cases[c].status,
                         &err, cases[c].part);
        slc_coo_destroy(&coo);
    }
}

/* Tiles that are duplicate, missing, damaged, or of another tensor. */
static void test_tiles(void)
{
    static const uint64_t dims[] = {50, 20, 30};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_coo coo = {.loaded = 0};
    struct slc_tensor_shape shape;
    struct fake_tensor tensor;
    struct fake_tile tile;

    SLC_ASSERT_FAILS(slc_coo_check_complete(&coo, &err), SLC_ERR_USAGE, &err, "0 were added");
    fake_tensor_random(&tensor, 3, dims, 5000, true, 1);
    tensor.tile_nnz = 4096;
    tensor.fail_tile = 1;
    tensor.chunk_nnz = 256;
    coo_shape(&tensor, &shape);
    slc_error_clear(&err);
    SLC_ASSERT_OK(slc_coo_create(&coo, &shape, SLC_F64, &err), &err);
    fake_tile_create(&tile, &tensor, SLC_F64);
    fake_tile_open(&tile, 1);
    SLC_ASSERT_FAILS(slc_coo_add_tile(&coo, &tile.view, &err), SLC_ERR_DAMAGED, &err, "damaged");
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_coo_permute(&coo, 0, 1, &err), SLC_ERR_USAGE, &err, "but 0 were added");
    slc_error_clear(&err);
    fake_tile_open(&tile, 0);
    tile.view.extent[1] = 20;
    SLC_ASSERT_FAILS(slc_coo_add_tile(&coo, &tile.view, &err), SLC_ERR_USAGE, &err,
                     "is of another tensor than the list, which has 5000");
    slc_error_clear(&err);
    fake_tile_open(&tile, 0);
    tile.view.ordinal = 7;
    SLC_ASSERT_FAILS(slc_coo_add_tile(&coo, &tile.view, &err), SLC_ERR_USAGE, &err, "tile 7");
    for (unsigned twice = 0; twice < 2; twice++) {
        slc_error_clear(&err);
        fake_tile_open(&tile, 0);
        SLC_ASSERT_OK(slc_coo_add_tile(&coo, &tile.view, &err), &err);
    }
    SLC_ASSERT_FAILS(slc_coo_check_complete(&coo, &err), SLC_ERR_USAGE, &err,
                     "but 8192 were added");
    fake_tile_destroy(&tile);
    slc_coo_destroy(&coo);
    fake_tensor_free(&tensor);
}

/* Jobs of another tensor, and a permutation that does not exist. */
static void test_jobs(void)
{
    static const uint64_t dims[] = {50, 20, 30};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_coo coo = {.loaded = 0};
    struct slc_mttkrp_job job;
    struct problem problem;

    problem_create(&problem, 3, dims, 500, 1, 8, SLC_F64, true);
    SLC_ASSERT_OK(coo_load(&coo, &problem.tensor, SLC_F64, &err), &err);
    SLC_ASSERT_FAILS(coo_multiply(&coo, SLC_COO_PERMUTED, &problem, 2, &err), SLC_ERR_USAGE, &err,
                     "mode 2 of the list has no permutation");
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_coo_permute(&coo, 3, 1, &err), SLC_ERR_USAGE, &err, "mode 4 of 3");
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_coo_permute(&coo, 1, 0, &err), SLC_ERR_USAGE, &err, "with 0 threads");
    slc_error_clear(&err);
    problem_job(&problem, 2, &job);
    job.mode = 3;
    SLC_ASSERT_FAILS(slc_coo_mttkrp(&coo, SLC_COO_EACH, &job, &err), SLC_ERR_USAGE, &err,
                     "mode 4 of 3");
    slc_error_clear(&err);
    problem_job(&problem, 0, &job);
    SLC_ASSERT_FAILS(slc_coo_mttkrp(&coo, SLC_COO_EACH, &job, &err), SLC_ERR_USAGE, &err,
                     "0 threads");
    slc_error_clear(&err);
    problem_job(&problem, 2, &job);
    job.rank = 9;
    SLC_ASSERT_FAILS(slc_coo_mttkrp(&coo, SLC_COO_EACH, &job, &err), SLC_ERR_USAGE, &err,
                     "9 columns");
    slc_error_clear(&err);
    problem_job(&problem, 2, &job);
    job.order = 2;
    SLC_ASSERT_FAILS(slc_coo_mttkrp(&coo, SLC_COO_EACH, &job, &err), SLC_ERR_USAGE, &err,
                     "has 2 modes in f64, but the list has 3 modes in f64");
    slc_error_clear(&err);
    coo.type = SLC_F32;
    problem_job(&problem, 2, &job);
    SLC_ASSERT_FAILS(slc_coo_mttkrp(&coo, SLC_COO_EACH, &job, &err), SLC_ERR_USAGE, &err,
                     "the list has 3 modes in f32");
    coo.type = SLC_F64;
    slc_error_clear(&err);
    coo.shape.dims[2] = 29;
    SLC_ASSERT_FAILS(slc_coo_mttkrp(&coo, SLC_COO_EACH, &job, &err), SLC_ERR_USAGE, &err,
                     "the matrix of mode 3 has 30 rows, but the list has mode size 29");
    slc_coo_destroy(&coo);
    problem_destroy(&problem);
}

/* Fills an empty list and multiplies it with every kernel. */
static enum slc_status compute_all(struct problem *problem, struct slc_error *err)
{
    struct slc_coo coo = {.loaded = 0};
    enum slc_status status = coo_load_permuted(&coo, &problem->tensor, problem->type, 2, err);

    for (enum slc_coo_kernel kernel = SLC_COO_EACH; kernel < SLC_COO_KERNELS && status == SLC_OK;
         kernel++) {
        status = coo_multiply(&coo, kernel, problem, 2, err);
    }
    slc_coo_destroy(&coo);
    return status;
}

/* The k-th allocation, or thread, fails, for every k. */
static void check_faults(enum slc_fault_kind kind, enum slc_status refused, unsigned order)
{
    static const uint64_t dims[] = {5000, 20, 30};
    struct problem problem;
    bool done = false;

    problem_create(&problem, order, dims, 9000, 0, 8, SLC_F64, true);
    for (uint64_t k = 1; !done && k < 200; k++) {
        struct slc_error err = SLC_ERROR_INIT;
        enum slc_status status;

        slc_fault_arm(kind, k);
        status = compute_all(&problem, &err);
        done = slc_fault_seen(kind) < k;
        slc_fault_arm(kind, 0);
        CU_ASSERT_EQUAL(status, done ? SLC_OK : refused);
        if (done) {
            CU_ASSERT_EQUAL(count_wrong(&problem, 0), 0);
        }
    }
    CU_ASSERT(done);
    problem_destroy(&problem);
}

static void test_faults(void)
{
    check_faults(SLC_FAULT_ALLOCATION, SLC_ERR_MEMORY, 3);
    check_faults(SLC_FAULT_ALLOCATION, SLC_ERR_MEMORY, 1); /* order 1 allocates a row of ones */
    check_faults(SLC_FAULT_THREAD, SLC_ERR_SYSTEM, 3);
}

/* If a permutation cannot be made again, the old one is gone. */
static void test_lost_permutation(void)
{
    static const uint64_t dims[] = {5000, 20};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_coo coo = {.loaded = 0};
    struct problem problem;

    problem_create(&problem, 2, dims, 500, 0, 8, SLC_F64, true);
    SLC_ASSERT_OK(coo_load_permuted(&coo, &problem.tensor, SLC_F64, 1, &err), &err);
    slc_fault_arm(SLC_FAULT_ALLOCATION, 2);
    CU_ASSERT_EQUAL(slc_coo_permute(&coo, 0, 1, NULL), SLC_ERR_MEMORY);
    slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
    CU_ASSERT_PTR_NULL(coo.orders[0].data);
    SLC_ASSERT_OK(slc_coo_permute(&coo, 0, 1, &err), &err);
    SLC_ASSERT_OK(coo_multiply(&coo, SLC_COO_PERMUTED, &problem, 1, &err), &err);
    CU_ASSERT_EQUAL(count_wrong(&problem, 0), 0);
    slc_coo_destroy(&coo);
    problem_destroy(&problem);
}

SLC_SUITE(coo_refused)
{
    static const struct slc_test tests[] = {
        {"shapes beyond a list", test_shapes},
        {"tiles that do not fit", test_tiles},
        {"jobs that do not fit", test_jobs},
        {"every allocation and thread refused", test_faults},
        {"a permutation lost to a fault", test_lost_permutation},
    };

    return slc_test_main("cpu coo refused", tests, SLC_COUNT(tests), argc, argv);
}
