/* Pseudo-inverses, checked by the four Penrose conditions, which only one matrix satisfies: tall,
 * wide, with dependent columns, ill-conditioned; and the core of a tile against its definition. */
#include "cpu/dense/pseudo_inverse.h"

#include "base/error/fault.h"
#include "base/random.h"
#include "cpu/fiber/core_tile.h"
#include "fake_tiles.h"
#include "slc_test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void
fill(struct slc_matrix *matrix, uint64_t rows, uint32_t cols, uint32_t independent, uint64_t stream)
{
    struct slc_error err = SLC_ERROR_INIT;

    SLC_ASSERT_OK(slc_matrix_create(matrix, SLC_F64, rows, cols, &err), &err);
    for (uint64_t i = 0; i < rows; i++) {
        double *row = slc_matrix_row_f64(matrix, i);

        for (uint32_t r = 0; r < cols; r++) {
            row[r] = r < independent ? slc_random_f64(slc_test_seed(), stream, i * cols + r) - 0.4
                                     : row[r - independent] * 2.0;
        }
    }
}

static double largest_difference(const double *a, const double *b, uint64_t count)
{
    double largest = 0.0;

    for (uint64_t k = 0; k < count; k++) {
        largest = fmax(largest, fabs(a[k] - b[k]));
    }
    return largest;
}

/* c = a^T b, cols x cols. */
static void cross(const struct slc_matrix *a, const struct slc_matrix *b, double *c)
{
    for (uint32_t r = 0; r < a->cols; r++) {
        for (uint32_t s = 0; s < a->cols; s++) {
            double sum = 0.0;
            for (uint64_t i = 0; i < a->rows; i++) {
                sum += slc_matrix_row_f64(a, i)[r] * slc_matrix_row_f64(b, i)[s];
            }
            c[(uint64_t)r * a->cols + s] = sum;
        }
    }
}

/* The largest element of |a c - b|, relative to the largest of b; c is cols x cols, optionally
 * transposed. */
static double product_difference(const struct slc_matrix *a,
                                 const double *c,
                                 bool transposed,
                                 const struct slc_matrix *b)
{
    const uint32_t cols = a->cols;
    double largest = 0.0, scale = 0.0;

    for (uint64_t i = 0; i < a->rows; i++) {
        for (uint32_t s = 0; s < cols; s++) {
            double sum = 0.0;
            for (uint32_t r = 0; r < cols; r++) {
                sum += slc_matrix_row_f64(a, i)[r] *
                       c[transposed ? (uint64_t)s * cols + r : (uint64_t)r * cols + s];
            }
            largest = fmax(largest, fabs(sum - slc_matrix_row_f64(b, i)[s]));
            scale = fmax(scale, fabs(slc_matrix_row_f64(b, i)[s]));
        }
    }
    return largest / scale;
}

/* With W = (A^+)^T: A W^T A = A, W A^T W = W, and A^T W and A W^T symmetric. */
static void check_penrose(uint64_t rows, uint32_t cols, uint32_t independent, double bound)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_matrix a, w;
    double *c = malloc((size_t)cols * cols * sizeof *c);
    double *t = malloc((size_t)cols * cols * sizeof *t);
    uint32_t found = 0;

    fill(&a, rows, cols, independent, rows + cols);
    fill(&w, rows, cols, independent, rows + cols);
    SLC_ASSERT_OK(slc_pseudo_inverse(&w, &found, &err), &err);
    CU_ASSERT_EQUAL(found, rows < independent ? rows : independent);
    cross(&w, &a, c);
    cross(&a, &w, t);
    CU_ASSERT(largest_difference(c, t, (uint64_t)cols * cols) < bound);
    CU_ASSERT(product_difference(&a, c, false, &a) < bound);
    CU_ASSERT(product_difference(&w, t, false, &w) < bound);
    /* A W^T, rows x rows, element by element. */
    for (uint64_t i = 0; i < rows && i < 20; i++) {
        for (uint64_t j = 0; j < i; j++) {
            double one = 0.0, other = 0.0;
            for (uint32_t r = 0; r < cols; r++) {
                one += slc_matrix_row_f64(&a, i)[r] * slc_matrix_row_f64(&w, j)[r];
                other += slc_matrix_row_f64(&a, j)[r] * slc_matrix_row_f64(&w, i)[r];
            }
            CU_ASSERT_DOUBLE_EQUAL(one, other, bound);
        }
    }
    slc_matrix_destroy(&a);
    slc_matrix_destroy(&w);
    free(c);
    free(t);
}

static void meets_the_conditions_of_penrose(void)
{
    check_penrose(1, 1, 1, 1e-12);
    check_penrose(50, 1, 1, 1e-12);
    check_penrose(255, 7, 7, 1e-12);
    check_penrose(256 + 7, 7, 7, 1e-12);
    check_penrose(3000, 16, 16, 1e-12);
    check_penrose(400, 300, 300, 1e-8);
    check_penrose(5, 9, 9, 1e-11);
    check_penrose(600, 6, 4, 1e-12);
    check_penrose(3, 6, 4, 1e-11);
}

static void of_zeros_is_zeros(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_matrix a;
    uint32_t found = 9;

    SLC_ASSERT_OK(slc_matrix_create(&a, SLC_F64, 30, 3, &err), &err);
    SLC_ASSERT_OK(slc_pseudo_inverse(&a, &found, &err), &err);
    CU_ASSERT_EQUAL(found, 0);
    for (uint64_t i = 0; i < 30; i++) {
        for (uint32_t r = 0; r < 3; r++) {
            CU_ASSERT_EQUAL(slc_matrix_get(&a, i, r), 0.0);
        }
    }
    slc_matrix_destroy(&a);
}

/* Nearly equal columns: their small difference is known to the remaining digits. */
static void keeps_possible_accuracy(void)
{
    const double small = 1e-7;
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_matrix a;
    uint32_t found = 0;

    /* A = [1 1; 0 small], so that A^+^T = [1 0; -1/small 1/small]. */
    SLC_ASSERT_OK(slc_matrix_create(&a, SLC_F64, 2, 2, &err), &err);
    slc_matrix_set(&a, 0, 0, 1.0);
    slc_matrix_set(&a, 0, 1, 1.0);
    slc_matrix_set(&a, 1, 1, small);
    SLC_ASSERT_OK(slc_pseudo_inverse(&a, &found, &err), &err);
    CU_ASSERT_EQUAL(found, 2);
    CU_ASSERT_DOUBLE_EQUAL(slc_matrix_get(&a, 1, 0) * small, -1.0, 1e-8);
    CU_ASSERT_DOUBLE_EQUAL(slc_matrix_get(&a, 1, 1) * small, 1.0, 1e-8);
    CU_ASSERT_DOUBLE_EQUAL(slc_matrix_get(&a, 0, 0) * small, small, 1e-8);
    slc_matrix_destroy(&a);
}

static void needs_memory(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_matrix a;
    uint32_t found = 0;

    fill(&a, 20, 3, 3, 1);
    slc_fault_arm(SLC_FAULT_ALLOCATION, 1);
    SLC_ASSERT_FAILS(slc_pseudo_inverse(&a, &found, &err), SLC_ERR_MEMORY, &err, "memory");
    slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
    slc_matrix_destroy(&a);
}

/* G by its definition. */
static void naive_core(const struct fake_tensor *tensor,
                       const struct slc_matrix *matrices,
                       uint32_t rank,
                       double *core)
{
    const uint64_t elements = slc_core_elements(tensor->order, rank);

    for (uint64_t i = 0; i < tensor->nnz; i++) {
        for (uint64_t k = 0; k < elements; k++) {
            double product = tensor->values[i];
            uint64_t rest = k;

            for (unsigned n = tensor->order; n-- > 0; rest /= rank) {
                product *= slc_matrix_row_f64(&matrices[n], tensor->coords[n][i])[rest % rank];
            }
            core[k] += product;
        }
    }
}

static void check_core(unsigned order, uint32_t rank)
{
    static const uint64_t dims[6] = {40, 9, 30, 5, 12, 3};
    struct slc_error err = SLC_ERROR_INIT;
    const uint64_t elements = slc_core_elements(order, rank);
    double *core = calloc(elements, sizeof *core), *expected = calloc(elements, sizeof *expected);
    double *scratch = malloc(slc_core_scratch_elements(order, rank) * sizeof *scratch);
    struct slc_matrix matrices[6];
    struct fake_tensor tensor;
    struct fake_tile tile;

    fake_tensor_random(&tensor, order, dims, 1500, false, order);
    for (unsigned n = 0; n < order; n++) {
        fill(&matrices[n], dims[n], rank, rank, n);
    }
    tensor.tile_nnz = 700;
    tensor.chunk_nnz = 128;
    fake_tile_create(&tile, &tensor, SLC_F64);
    for (uint64_t t = 0; t < fake_tensor_tiles(&tensor); t++) {
        fake_tile_open(&tile, t);
        SLC_ASSERT_OK(slc_core_tile(&tile.view, rank, matrices, scratch, core, &err), &err);
    }
    fake_tile_destroy(&tile);
    naive_core(&tensor, matrices, rank, expected);
    CU_ASSERT(largest_difference(core, expected, elements) < 1e-10);
    for (unsigned n = 0; n < order; n++) {
        slc_matrix_destroy(&matrices[n]);
    }
    fake_tensor_free(&tensor);
    free(core);
    free(expected);
    free(scratch);
}

static void cores_match_their_definition(void)
{
    check_core(1, 3);
    check_core(2, 5);
    check_core(3, 1);
    check_core(3, 4);
    check_core(3, 17);
    check_core(4, 3);
    check_core(5, 4);
    check_core(6, 2);
    CU_ASSERT_EQUAL(slc_core_elements(16, 4096), UINT64_MAX);
    CU_ASSERT_EQUAL(slc_core_scratch_elements(16, 4096), UINT64_MAX);
}

static const struct slc_test tests[] = {
    {"meets the conditions of Penrose", meets_the_conditions_of_penrose},
    {"of zeros is zeros", of_zeros_is_zeros},
    {"keeps the accuracy that conditioning allows", keeps_possible_accuracy},
    {"needs memory", needs_memory},
    {"cores match their definition", cores_match_their_definition},
};

SLC_SUITE(pseudo_inverse)
{
    return slc_test_main("cpu/pseudo_inverse", tests, SLC_COUNT(tests), argc, argv);
}
