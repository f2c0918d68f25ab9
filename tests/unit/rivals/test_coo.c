/* The baselines over a list of coordinates (tools/bench/rivals/cpu/coo.h) against the oracle: every
 * kernel on random shapes, in every instruction set, and rows shared by many threads. */
#include "coo_fixture.h"
#include "slc_test.h"

#include <string.h>

static const uint32_t ranks[] = {1, 3, 7, 8, 16, 24, 32, 33, 48, 64, 100};
static const char *const sets[] = {"portable", "avx2", "avx512", "neon"};

/* All kernels on one problem; reals are compared within `tolerance`, integers bit for bit. */
static void check_kernels(struct problem *problem, unsigned workers, double tolerance)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_coo coo = {.loaded = 0};

    SLC_ASSERT_OK(coo_load_permuted(&coo, &problem->tensor, problem->type, workers, &err), &err);
    for (enum slc_coo_kernel kernel = SLC_COO_EACH; kernel < SLC_COO_KERNELS; kernel++) {
        SLC_ASSERT_OK(coo_multiply(&coo, kernel, problem, workers, &err), &err);
        CU_ASSERT_EQUAL(count_wrong(problem, tolerance), 0);
        CU_ASSERT(canaries_live(&problem->out));
    }
    slc_coo_destroy(&coo);
}

static void
check_shape(unsigned order, const uint64_t *dims, uint64_t nnz, enum slc_value_type type)
{
    for (size_t r = 0; r < SLC_COUNT(ranks); r++) {
        const unsigned mode = (unsigned)(r % order);
        struct problem problem;

        problem_create(&problem, order, dims, nnz, mode, ranks[r], type, true);
        check_kernels(&problem, 1 + (unsigned)r % 3, 0);
        problem_destroy(&problem);
        /* Rows are sums of up to some hundred products, each rounded in f32. */
        problem_create(&problem, order, dims, nnz, mode, ranks[r], type, false);
        check_kernels(&problem, 3, type == SLC_F32 ? 1e-4 : 1e-12);
        problem_destroy(&problem);
    }
}

static void test_shapes(void)
{
    static const uint64_t dims[] = {40, 7, 300, 23, 5, 11};
    const uint64_t nnz = slc_test_quick() ? 700 : 3000;

    for (unsigned order = 1; order <= SLC_COUNT(dims); order++) {
        check_shape(order, dims, nnz, SLC_F64);
        check_shape(order, dims, nnz, SLC_F32);
    }
}

/* Sixteen modes, and more factors than the kernels have loops for. */
static void test_most_modes(void)
{
    uint64_t dims[SLC_MAX_ORDER];

    for (unsigned m = 0; m < SLC_MAX_ORDER; m++) {
        dims[m] = m + 2;
    }
    for (unsigned mode = 0; mode < SLC_MAX_ORDER; mode += 5) {
        struct problem problem;

        /* Products of fifteen factors of up to 2 are below 2^17, their sums far below 2^53. */
        problem_create(&problem, SLC_MAX_ORDER, dims, 500, mode, 9, SLC_F64, true);
        check_kernels(&problem, 2, 0);
        problem_destroy(&problem);
    }
}

/* No nonzeros, one, and counts around a tile of the kernels and a piece of a thread. */
static void test_few_nonzeros(void)
{
    static const uint64_t dims[] = {9, 30, 4};
    static const uint64_t counts[] = {0, 1, 2, 127, 128, 129, 4095, 4096, 4097};

    for (size_t c = 0; c < SLC_COUNT(counts); c++) {
        for (unsigned mode = 0; mode < 3; mode++) {
            struct problem problem;

            problem_create(&problem, 3, dims, counts[c], mode, 5, SLC_F64, true);
            check_kernels(&problem, 4, 0);
            problem_destroy(&problem);
        }
    }
}

/* Every nonzero adds to one row, from many threads at once: no addition may be lost. */
static void test_one_row(void)
{
    static const uint64_t dims[] = {50, 1, 60};
    const uint64_t nnz = slc_test_quick() ? 20000 : 150000;

    for (unsigned f32 = 0; f32 < 2; f32++) {
        struct problem problem;

        problem_create(&problem, 3, dims, nnz, 1, 17, f32 != 0 ? SLC_F32 : SLC_F64, true);
        check_kernels(&problem, 8, 0);
        problem_destroy(&problem);
    }
}

/* A handful of rows, so that most tiles of a permuted list begin or end within a row. */
static void test_few_rows(void)
{
    static const uint64_t dims[] = {5, 200, 60};
    struct problem problem;

    problem_create(&problem, 3, dims, 30000, 0, 33, SLC_F64, true);
    check_kernels(&problem, 8, 0);
    problem_destroy(&problem);
}

static void test_instruction_sets(void)
{
    static const uint64_t dims[] = {30, 20, 25, 6};
    unsigned here = 0;

    for (size_t s = 0; s < SLC_COUNT(sets); s++) {
        if (slc_cpu_force_instruction_set(sets[s])) {
            here++;
            check_shape(4, dims, 400, SLC_F64);
            check_shape(3, dims, 400, SLC_F32);
        }
    }
    (void)slc_cpu_force_instruction_set(NULL);
    CU_ASSERT(here > 0);
}

/* A NaN reaches its row and no other. */
static void test_not_a_number(void)
{
    static const uint64_t dims[] = {6, 20, 30};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_coo coo = {.loaded = 0};
    struct problem problem;
    uint64_t row;

    problem_create(&problem, 3, dims, 1000, 0, 4, SLC_F64, true);
    SLC_ASSERT_OK(coo_load_permuted(&coo, &problem.tensor, SLC_F64, 2, &err), &err);
    row = problem.tensor.coords[0][500];
    ((double *)coo.values.data)[500] = (double)__builtin_nanf("");
    for (enum slc_coo_kernel kernel = SLC_COO_EACH; kernel < SLC_COO_KERNELS; kernel++) {
        SLC_ASSERT_OK(coo_multiply(&coo, kernel, &problem, 4, &err), &err);
        CU_ASSERT_EQUAL(count_wrong(&problem, 0), problem.rank);
        CU_ASSERT(__builtin_isnan(slc_matrix_get(&problem.out.output, row, 3)));
    }
    slc_coo_destroy(&coo);
    problem_destroy(&problem);
}

/* The mode's permutation has every nonzero once, sorted by coordinate and then by position. */
static void check_order(const struct slc_coo *coo, const struct fake_tensor *tensor, unsigned mode)
{
    const uint32_t *order = coo->orders[mode].data;
    const uint64_t *coords = tensor->coords[mode];
    uint64_t wrong = 0, sum = 0;

    for (uint64_t i = 0; i < tensor->nnz; i++) {
        CU_ASSERT_FATAL(order[i] < tensor->nnz);
        sum += order[i];
        if (i > 0) {
            const uint64_t before = coords[order[i - 1]], here = coords[order[i]];

            wrong += before > here || (before == here && order[i - 1] >= order[i]);
        }
    }
    /* Strictly ascending pairs of coordinate and position are all different. */
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT_EQUAL(sum, tensor->nnz * (tensor->nnz - (tensor->nnz > 0)) / 2);
}

/* Tests sorts of one to three sweeps, with mode sizes at the limits of each number of sweeps, and
 * with different numbers of threads. */
static void test_permutations(void)
{
    static const uint64_t dims[] = {1, 2, 2048, 2049, 1 << 22, (1 << 22) + 1, UINT64_C(1) << 32};
    static const uint64_t counts[] = {0, 1, 5, 70000};
    static const unsigned workers[] = {1, 2, 7};

    for (size_t c = 0; c < SLC_COUNT(counts); c++) {
        struct fake_tensor tensor;

        fake_tensor_random(&tensor, SLC_COUNT(dims), dims, counts[c], true, c);
        for (size_t m = 0; m < SLC_COUNT(dims) && counts[c] > 1; m++) {
            tensor.coords[m][1] = dims[m] - 1; /* uses the highest bit of the largest mode */
        }
        for (size_t w = 0; w < SLC_COUNT(workers); w++) {
            struct slc_error err = SLC_ERROR_INIT;
            struct slc_coo coo = {.loaded = 0};

            SLC_ASSERT_OK(coo_load_permuted(&coo, &tensor, SLC_F64, workers[w], &err), &err);
            for (unsigned m = 0; m < SLC_COUNT(dims); m++) {
                check_order(&coo, &tensor, m);
            }
            slc_coo_destroy(&coo);
        }
        fake_tensor_free(&tensor);
    }
}

/* The mapped bytes equal those reported to a budget. */
static void test_bytes(void)
{
    static const uint64_t dims[] = {3000, 20, 30};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_coo coo = {.loaded = 0};
    struct slc_tensor_shape shape;
    struct fake_tensor tensor;
    uint64_t bytes;

    fake_tensor_random(&tensor, 3, dims, 600000, true, 1);
    coo_shape(&tensor, &shape);
    SLC_ASSERT_OK(coo_load_permuted(&coo, &tensor, SLC_F32, 2, &err), &err);
    bytes = coo.coords.bytes + coo.values.bytes;
    CU_ASSERT_EQUAL(slc_coo_bytes(&shape, SLC_F32, false, 2), bytes);
    for (unsigned m = 0; m < 3; m++) {
        bytes += coo.orders[m].bytes;
    }
    /* With permutations, the bytes include the pairs of a sort in two sweeps. */
    CU_ASSERT(slc_coo_bytes(&shape, SLC_F32, true, 2) >= bytes + shape.nnz * 8);
    shape.nnz = UINT64_MAX / 8;
    CU_ASSERT_EQUAL(slc_coo_bytes(&shape, SLC_F32, false, 2), UINT64_MAX);
    CU_ASSERT_EQUAL(slc_coo_bytes(&shape, SLC_F32, true, 2), UINT64_MAX);
    slc_coo_destroy(&coo);
    fake_tensor_free(&tensor);
}

static void test_names(void)
{
    CU_ASSERT_STRING_EQUAL(slc_coo_kernel_name(SLC_COO_EACH), "genten-a");
    CU_ASSERT_STRING_EQUAL(slc_coo_kernel_name(SLC_COO_TILES), "genten-b");
    CU_ASSERT_STRING_EQUAL(slc_coo_kernel_name(SLC_COO_PERMUTED), "genten-c");
    CU_ASSERT_STRING_EQUAL(slc_coo_kernel_name(SLC_COO_KERNELS), "?");
}

SLC_SUITE(coo)
{
    static const struct slc_test tests[] = {
        {"every kernel agrees with the oracle", test_shapes},
        {"sixteen modes", test_most_modes},
        {"none, one and few nonzeros", test_few_nonzeros},
        {"one row for all threads", test_one_row},
        {"few rows for all threads", test_few_rows},
        {"every instruction set", test_instruction_sets},
        {"a value that is no number", test_not_a_number},
        {"permutations sort and keep the order", test_permutations},
        {"bytes for a budget", test_bytes},
        {"names", test_names},
    };

    return slc_test_main("cpu coo", tests, SLC_COUNT(tests), argc, argv);
}
