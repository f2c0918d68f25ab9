/* The oracle itself, against values computed by hand. */
#include "cpu/reference/reference.h"
#include "naive_products.h"
#include "slc_test.h"

static void set_rows(struct slc_matrix *matrix, const double *values)
{
    for (uint64_t i = 0; i < matrix->rows; i++) {
        for (uint32_t r = 0; r < matrix->cols; r++) {
            slc_matrix_set(matrix, i, r, values[i * matrix->cols + r]);
        }
    }
}

static void test_mttkrp_order_3(void)
{
    /* The nonzeros x(0,0,1) = 2, x(1,1,0) = -3, x(0,1,1) = 4; one output row stays zero. */
    static const uint64_t i[] = {0, 1, 0};
    static const uint64_t j[] = {0, 1, 1};
    static const uint64_t k[] = {1, 0, 1};
    static const double x[] = {2, -3, 4};
    static const double b_values[] = {1, 2, 3, 4};
    static const double c_values[] = {5, -6, 7, 8};
    const struct slc_coo_view tensor = {3, 3, {i, j, k}, x};
    const struct slc_matrix *factors[3] = {NULL, NULL, NULL};
    struct slc_matrix b = {0};
    struct slc_matrix c = {0};
    struct slc_error err = SLC_ERROR_INIT;
    double out[6];

    SLC_ASSERT_OK(slc_matrix_create(&b, SLC_F64, 2, 2, &err), &err);
    SLC_ASSERT_OK(slc_matrix_create(&c, SLC_F32, 2, 2, &err), &err);
    set_rows(&b, b_values);
    set_rows(&c, c_values);
    factors[1] = &b;
    factors[2] = &c;

    slc_reference_mttkrp(&tensor, factors, 0, 3, 2, out);
    CU_ASSERT_EQUAL(out[0], 2.0 * 1 * 7 + 4.0 * 3 * 7);
    CU_ASSERT_EQUAL(out[1], 2.0 * 2 * 8 + 4.0 * 4 * 8);
    CU_ASSERT_EQUAL(out[2], -3.0 * 3 * 5);
    CU_ASSERT_EQUAL(out[3], -3.0 * 4 * -6);
    CU_ASSERT_EQUAL(out[4], 0.0);
    CU_ASSERT_EQUAL(out[5], 0.0);

    slc_reference_mttkrp_magnitude(&tensor, factors, 0, 3, 2, out);
    CU_ASSERT_EQUAL(out[2], 3.0 * 3 * 5);
    CU_ASSERT_EQUAL(out[3], 3.0 * 4 * 6);
    slc_matrix_destroy(&b);
    slc_matrix_destroy(&c);
}

static void test_mttkrp_order_1(void)
{
    static const uint64_t i[] = {1, 2};
    static const double x[] = {5, -7};
    const struct slc_coo_view tensor = {1, 2, {i}, x};
    const struct slc_matrix *factors[1] = {NULL};
    double out[6];

    slc_reference_mttkrp(&tensor, factors, 0, 3, 2, out);
    CU_ASSERT_EQUAL(out[0], 0.0);
    CU_ASSERT_EQUAL(out[2], 5.0);
    CU_ASSERT_EQUAL(out[3], 5.0);
    CU_ASSERT_EQUAL(out[4], -7.0);
    slc_reference_mttkrp_magnitude(&tensor, factors, 0, 3, 2, out);
    CU_ASSERT_EQUAL(out[5], 7.0);
}

static void test_gram(void)
{
    static const double values[] = {1, 2, 3, 4, 5, 6};
    static const double want[] = {35, 44, 44, 56};
    struct slc_matrix a = {0};
    struct slc_error err = SLC_ERROR_INIT;
    double gram[4];

    SLC_ASSERT_OK(slc_matrix_create(&a, SLC_F64, 3, 2, &err), &err);
    set_rows(&a, values);
    slc_reference_gram(&a, gram);
    for (int i = 0; i < 4; i++) {
        CU_ASSERT_EQUAL(gram[i], want[i]);
    }
    slc_matrix_destroy(&a);
}

/* x(1,0,2) = 2, x(0,1,0) = 3, x(1,0,0) = -5, x(0,1,2) = 7, x(1,1,1) = 11: three fibers of mode 2,
 * (0,1), (1,0) and (1,1), out of order in the list. */
static void test_fibers_order_3(void)
{
    static const uint64_t i[] = {1, 0, 1, 0, 1};
    static const uint64_t j[] = {0, 1, 0, 1, 1};
    static const uint64_t k[] = {2, 0, 0, 2, 1};
    static const double x[] = {2, 3, -5, 7, 11};
    static const double v[] = {1, 10, 100};
    static const double u_values[] = {1, 2, 10, 20, 100, 200};
    static const uint64_t want_order[] = {1, 3, 0, 2, 4};
    static const uint64_t want_fiber[] = {0, 0, 1, 1, 2};
    static const double want_sums[] = {703, 195, 110};
    const struct slc_coo_view tensor = {3, 5, {i, j, k}, x};
    struct slc_matrix u = {0};
    struct slc_error err = SLC_ERROR_INIT;
    uint64_t order[5];
    uint64_t fiber[5];
    double sums[3] = {99, 99, 99};
    double rows[6] = {99, 99, 99, 99, 99, 99};

    CU_ASSERT_EQUAL(slc_reference_fibers(&tensor, 2, order, fiber), 3);
    for (int n = 0; n < 5; n++) {
        CU_ASSERT_EQUAL(order[n], want_order[n]);
        CU_ASSERT_EQUAL(fiber[n], want_fiber[n]);
    }
    slc_reference_ttv(&tensor, 2, v, order, fiber, sums);
    SLC_ASSERT_OK(slc_matrix_create(&u, SLC_F64, 3, 2, &err), &err);
    set_rows(&u, u_values);
    slc_reference_ttm(&tensor, 2, &u, order, fiber, rows);
    for (int f = 0; f < 3; f++) {
        CU_ASSERT_EQUAL(sums[f], want_sums[f]);
        CU_ASSERT_EQUAL(rows[2 * f], want_sums[f]);
        CU_ASSERT_EQUAL(rows[2 * f + 1], 2 * want_sums[f]);
    }
    slc_matrix_destroy(&u);
}

static void test_fibers_few(void)
{
    static const uint64_t i[] = {1, 2};
    static const double x[] = {5, -7};
    static const double v[] = {0, 7, 5};
    const struct slc_coo_view one_mode = {1, 2, {i}, x};
    const struct slc_coo_view empty = {1, 0, {i}, x};
    uint64_t order[2];
    uint64_t fiber[2];
    double sum = 99;

    CU_ASSERT_EQUAL(slc_reference_fibers(&empty, 0, order, fiber), 0);
    CU_ASSERT_EQUAL(slc_reference_fibers(&one_mode, 0, order, fiber), 1);
    slc_reference_ttv(&one_mode, 0, v, order, fiber, &sum);
    CU_ASSERT_EQUAL(sum, 0.0);
}

static const struct slc_test tests[] = {
    {"MTTKRP of three nonzeros by hand", test_mttkrp_order_3},
    {"order 1: the empty product is 1", test_mttkrp_order_1},
    {"fibers, SpTV and TTM of five nonzeros by hand", test_fibers_order_3},
    {"no fiber without nonzeros, one with one mode", test_fibers_few},
    {"Gram matrix by hand", test_gram},
};

SLC_SUITE(reference)
{
    return slc_test_main("reference", tests, SLC_COUNT(tests), argc, argv);
}
