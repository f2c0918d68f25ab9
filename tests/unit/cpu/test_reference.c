/* The oracle itself, against values worked out by hand. */
#include "cpu/reference.h"
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
    /* x(0,0,1) = 2, x(1,1,0) = -3, x(0,1,1) = 4; one zero row of output is left over. */
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

static const struct slc_test tests[] = {
    {"MTTKRP of three nonzeros by hand", test_mttkrp_order_3},
    {"order 1: the empty product is 1", test_mttkrp_order_1},
    {"Gram matrix by hand", test_gram},
};

int main(int argc, char **argv)
{
    return slc_test_main("reference", tests, SLC_COUNT(tests), argc, argv);
}
