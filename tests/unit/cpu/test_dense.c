/*
 * Dense algebra against plain loops, and its promises: residuals of solves, the same bits for any
 * number of workers, nothing but SLC_ERR_MEMORY when allocations fail.
 */
#include "base/fault.h"
#include "base/limits.h"
#include "base/random.h"
#include "cpu/dense.h"
#include "cpu/reference.h"
#include "slc_test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const unsigned worker_counts[] = {1, 2, 3, 8};

static void *must(void *memory)
{
    if (memory == NULL) {
        abort();
    }
    return memory;
}

static struct slc_dense *dense_for(unsigned workers, uint32_t rank, uint64_t rows)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_dense *dense = NULL;

    SLC_ASSERT_OK(slc_dense_create(workers, rank, rows, &dense, &err), &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(dense);
    return dense;
}

static void
random_matrix(struct slc_matrix *matrix, enum slc_value_type type, uint64_t rows, uint32_t cols)
{
    struct slc_error err = SLC_ERROR_INIT;

    SLC_ASSERT_OK(slc_matrix_create(matrix, type, rows, cols, &err), &err);
    for (uint64_t i = 0; i < rows; i++) {
        for (uint32_t r = 0; r < cols; r++) {
            slc_matrix_set(matrix, i, r,
                           slc_random_f64(slc_test_seed(), rows + cols, i * cols + r) - 0.3);
        }
    }
}

static void empty_matrix(struct slc_matrix *matrix, const struct slc_matrix *like)
{
    struct slc_error err = SLC_ERROR_INIT;

    SLC_ASSERT_OK(slc_matrix_create(matrix, like->type, like->rows, like->cols, &err), &err);
}

static double tolerance(enum slc_value_type type)
{
    return type == SLC_F32 ? 1e-5 : 1e-12;
}

static bool same_bits(const struct slc_matrix *a, const struct slc_matrix *b)
{
    return a->buffer.bytes == b->buffer.bytes &&
           (a->buffer.bytes == 0 || memcmp(a->buffer.data, b->buffer.data, a->buffer.bytes) == 0);
}

/* Largest |got - want| over the scale of the largest |want|. */
static double relative_error(const double *got, const double *want, uint64_t count)
{
    double worst = 0.0;
    double scale = 0.0;

    for (uint64_t i = 0; i < count; i++) {
        worst = fabs(got[i] - want[i]) <= worst ? worst : fabs(got[i] - want[i]);
        scale = fabs(want[i]) > scale ? fabs(want[i]) : scale;
    }
    return scale > 0.0 ? worst / scale : worst;
}

static void test_gram(void)
{
    static const uint64_t rows[] = {0, 1, 5, 511, 512, 513, 2500};
    static const uint32_t ranks[] = {1, 3, 16, 33, 128, 130, 300};

    for (size_t i = 0; i < SLC_COUNT(rows); i++) {
        for (size_t j = 0; j < SLC_COUNT(ranks); j++) {
            const enum slc_value_type type = (i + j) % 2 == 0 ? SLC_F64 : SLC_F32;
            const uint64_t square = (uint64_t)ranks[j] * ranks[j];
            struct slc_dense *dense = dense_for(2, ranks[j], rows[i]);
            double *got = must(malloc(square * sizeof *got));
            double *want = must(malloc(square * sizeof *want));
            struct slc_error err = SLC_ERROR_INIT;
            struct slc_matrix a;

            if (rows[i] > 1000 && ranks[j] == 300) {
                random_matrix(&a, type, 600, ranks[j]);
            } else {
                random_matrix(&a, type, rows[i], ranks[j]);
            }
            SLC_ASSERT_OK(slc_dense_gram(dense, &a, got, &err), &err);
            slc_reference_gram(&a, want);
            CU_ASSERT(relative_error(got, want, square) <= 1e-12);
            for (uint32_t r = 0; r < ranks[j]; r++) {
                for (uint32_t c = 0; c < r; c++) {
                    CU_ASSERT_EQUAL(got[r * ranks[j] + c], got[c * ranks[j] + r]);
                }
            }
            slc_matrix_destroy(&a);
            free(got);
            free(want);
            slc_dense_destroy(dense);
        }
    }
}

/* V = B^T B + I / 2 for random B. */
static void regular_gram(uint32_t rank, double *gram)
{
    struct slc_matrix b;

    random_matrix(&b, SLC_F64, rank + 3UL, rank);
    slc_reference_gram(&b, gram);
    for (uint32_t r = 0; r < rank; r++) {
        gram[r * rank + r] += 0.5;
    }
    slc_matrix_destroy(&b);
}

/* out = a V, plain. */
static void times(const struct slc_matrix *a, const double *v, double *out)
{
    const uint32_t rank = a->cols;

    for (uint64_t i = 0; i < a->rows; i++) {
        for (uint32_t c = 0; c < rank; c++) {
            double sum = 0.0;
            for (uint32_t r = 0; r < rank; r++) {
                sum += slc_matrix_get(a, i, r) * v[r * rank + c];
            }
            out[i * rank + c] = sum;
        }
    }
}

static void copy_out(const struct slc_matrix *a, double *out)
{
    for (uint64_t i = 0; i < a->rows; i++) {
        for (uint32_t r = 0; r < a->cols; r++) {
            out[i * a->cols + r] = slc_matrix_get(a, i, r);
        }
    }
}

/* X V = M holds after the solve, whatever the height, rank and type. */
static void test_solve(void)
{
    static const uint64_t rows[] = {0, 1, 1000, 1025, 2100};
    static const uint32_t ranks[] = {1, 2, 16, 33, 140};

    for (size_t i = 0; i < SLC_COUNT(rows); i++) {
        for (size_t j = 0; j < SLC_COUNT(ranks); j++) {
            const enum slc_value_type type = (i + j) % 2 == 0 ? SLC_F64 : SLC_F32;
            const uint32_t rank = ranks[j];
            const uint64_t count = rows[i] * rank;
            struct slc_dense *dense = dense_for(2, rank, rows[i]);
            double *v = must(malloc((uint64_t)rank * rank * sizeof *v));
            double *product = must(malloc((count + 1) * sizeof *product));
            double *want = must(malloc((count + 1) * sizeof *want));
            struct slc_error err = SLC_ERROR_INIT;
            struct slc_solver solver = {0};
            struct slc_matrix m, x;

            random_matrix(&m, type, rows[i], rank);
            empty_matrix(&x, &m);
            regular_gram(rank, v);
            SLC_ASSERT_OK(slc_solver_create(&solver, rank, &err), &err);
            SLC_ASSERT_OK(slc_dense_factorize(dense, v, &solver, &err), &err);
            CU_ASSERT_FALSE(solver.singular);
            CU_ASSERT_EQUAL(solver.kept, rank);
            SLC_ASSERT_OK(slc_dense_update(dense, &solver, &m, &x, SLC_NORM_NONE, NULL, NULL, &err),
                          &err);
            times(&x, v, product);
            copy_out(&m, want);
            CU_ASSERT(relative_error(product, want, count) <= tolerance(type) * 100);
            slc_solver_destroy(&solver);
            slc_matrix_destroy(&m);
            slc_matrix_destroy(&x);
            free(v);
            free(product);
            free(want);
            slc_dense_destroy(dense);
        }
    }
}

static void check_norms(enum slc_value_type type, enum slc_norm norm, uint64_t rows, uint32_t rank)
{
    struct slc_dense *dense = dense_for(3, rank, rows);
    double *v = must(calloc((uint64_t)rank * rank, sizeof *v));
    double *gram = must(malloc((uint64_t)rank * rank * sizeof *gram));
    double *want = must(malloc((uint64_t)rank * rank * sizeof *want));
    double *norms = must(malloc(rank * sizeof *norms));
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_solver solver = {0};
    struct slc_matrix m, x;

    random_matrix(&m, type, rows, rank);
    empty_matrix(&x, &m);
    for (uint64_t i = 0; i < rows; i++) {
        slc_matrix_set(&m, i, 0, 0.0); /* a zero column divides by 1 */
        slc_matrix_set(&m, i, rank - 1, 5.0 * slc_matrix_get(&m, i, rank - 1));
    }
    for (uint32_t r = 0; r < rank; r++) {
        v[r * rank + r] = 1.0; /* so that X = M */
    }
    SLC_ASSERT_OK(slc_solver_create(&solver, rank, &err), &err);
    SLC_ASSERT_OK(slc_dense_factorize(dense, v, &solver, &err), &err);
    SLC_ASSERT_OK(slc_dense_update(dense, &solver, &m, &x, norm, norms, gram, &err), &err);
    for (uint32_t r = 0; r < rank; r++) {
        double sum = 0.0, most = 1.0, divisor;

        for (uint64_t i = 0; i < rows; i++) {
            const double value = slc_matrix_get(&m, i, r);
            sum += value * value;
            most = fabs(value) > most ? fabs(value) : most;
        }
        divisor = norm == SLC_NORM_2 ? sqrt(sum) : most;
        CU_ASSERT_DOUBLE_EQUAL(norms[r], divisor, 1e-12 * divisor);
        divisor = divisor == 0.0 ? 1.0 : divisor;
        for (uint64_t i = 0; i < rows; i++) {
            CU_ASSERT_DOUBLE_EQUAL(slc_matrix_get(&x, i, r), slc_matrix_get(&m, i, r) / divisor,
                                   tolerance(type));
        }
    }
    slc_reference_gram(&x, want);
    CU_ASSERT(relative_error(gram, want, (uint64_t)rank * rank) <= 1e-12);
    slc_solver_destroy(&solver);
    slc_matrix_destroy(&m);
    slc_matrix_destroy(&x);
    free(v);
    free(gram);
    free(want);
    free(norms);
    slc_dense_destroy(dense);
}

static void test_norms(void)
{
    check_norms(SLC_F64, SLC_NORM_2, 2100, 9);
    check_norms(SLC_F32, SLC_NORM_2, 700, 17);
    check_norms(SLC_F64, SLC_NORM_MAX1, 1500, 140);
    check_norms(SLC_F32, SLC_NORM_MAX1, 3, 4);
}

/* V of rank 2 in 6 dimensions: V V^+ V = V, and X V = M for M in its range. */
static void test_singular(void)
{
    enum { RANK = 6, ROWS = 1300 };
    for (int type = SLC_F32; type <= SLC_F64; type++) {
        struct slc_dense *dense = dense_for(2, RANK, ROWS);
        double v[RANK * RANK], back[RANK * RANK];
        double *product = must(malloc(sizeof(double) * ROWS * RANK));
        double *want = must(malloc(sizeof(double) * ROWS * RANK));
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_solver solver = {0};
        struct slc_matrix b, y, m, x;

        random_matrix(&b, SLC_F64, 2, RANK);
        slc_reference_gram(&b, v);
        random_matrix(&y, (enum slc_value_type)type, ROWS, RANK);
        empty_matrix(&m, &y);
        empty_matrix(&x, &y);
        times(&y, v, want);
        for (uint64_t i = 0; i < ROWS; i++) {
            for (uint32_t r = 0; r < RANK; r++) {
                slc_matrix_set(&m, i, r, want[i * RANK + r]);
            }
        }
        SLC_ASSERT_OK(slc_solver_create(&solver, RANK, &err), &err);
        SLC_ASSERT_OK(slc_dense_factorize(dense, v, &solver, &err), &err);
        CU_ASSERT(solver.singular);
        CU_ASSERT_EQUAL(solver.kept, 2);
        for (int i = 0; i < RANK * RANK; i++) {
            back[i] = 0.0;
            for (int j = 0; j < RANK; j++) {
                for (int k = 0; k < RANK; k++) {
                    back[i] += v[i / RANK * RANK + j] * solver.factor[j * RANK + k] *
                               v[k * RANK + i % RANK];
                }
            }
        }
        CU_ASSERT(relative_error(back, v, (uint64_t)RANK * RANK) <= 1e-12);
        SLC_ASSERT_OK(slc_dense_update(dense, &solver, &m, &x, SLC_NORM_NONE, NULL, NULL, &err),
                      &err);
        times(&x, v, product);
        CU_ASSERT(relative_error(product, want, (uint64_t)ROWS * RANK) <=
                  100 * tolerance((enum slc_value_type)type));
        slc_solver_destroy(&solver);
        slc_matrix_destroy(&b);
        slc_matrix_destroy(&y);
        slc_matrix_destroy(&m);
        slc_matrix_destroy(&x);
        free(product);
        free(want);
        slc_dense_destroy(dense);
    }
}

static void test_zero_and_nan(void)
{
    struct slc_dense *dense = dense_for(1, 3, 10);
    double v[9] = {0};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_solver solver = {0};

    SLC_ASSERT_OK(slc_solver_create(&solver, 3, &err), &err);
    SLC_ASSERT_OK(slc_dense_factorize(dense, v, &solver, &err), &err);
    CU_ASSERT(solver.singular);
    CU_ASSERT_EQUAL(solver.kept, 0);
    for (int i = 0; i < 9; i++) {
        CU_ASSERT_EQUAL(solver.factor[i], 0.0);
    }
    v[0] = v[4] = v[8] = 1.0;
    for (int i = 0; i < 9; i++) {
        const double kept = v[i];

        v[i] = i % 2 == 0 ? (double)NAN : -(double)INFINITY;
        slc_error_clear(&err);
        SLC_ASSERT_FAILS(slc_dense_factorize(dense, v, &solver, &err), SLC_ERR_NUMERIC, &err,
                         "NaN");
        v[i] = kept;
    }
    slc_error_clear(&err);
    SLC_ASSERT_OK(slc_dense_factorize(dense, v, &solver, &err), &err);
    CU_ASSERT_FALSE(solver.singular);
    slc_solver_destroy(&solver);
    slc_solver_destroy(&solver);
    slc_dense_destroy(dense);
    slc_dense_destroy(NULL);
}

static void check_columns(enum slc_value_type type, uint64_t rows, uint32_t cols)
{
    struct slc_dense *dense = dense_for(2, cols, rows);
    double *weights = must(malloc(cols * sizeof *weights));
    double *norms = must(malloc(cols * sizeof *norms));
    double *signs = must(malloc(cols * sizeof *signs));
    uint32_t *order = must(malloc(cols * sizeof *order));
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_matrix a, b, c;
    double inner = -1.0;
    double want = 0.0;

    random_matrix(&a, type, rows, cols);
    random_matrix(&b, type, rows, cols);
    random_matrix(&c, type, rows, cols);
    for (uint32_t r = 0; r < cols; r++) {
        weights[r] = 1.0 + r;
        order[r] = (r + 1) % cols;
        for (uint64_t i = 0; i < rows; i++) {
            want += weights[r] * slc_matrix_get(&a, i, r) * slc_matrix_get(&b, i, r);
        }
    }
    SLC_ASSERT_OK(slc_dense_inner(dense, &a, &b, weights, &inner, &err), &err);
    CU_ASSERT_DOUBLE_EQUAL(inner, want, 1e-12 * fabs(want));

    SLC_ASSERT_OK(slc_dense_scale(dense, &a, weights, &err), &err);
    SLC_ASSERT_OK(slc_dense_permute(dense, &a, order, &err), &err);
    SLC_ASSERT_OK(slc_dense_column_norms(dense, &a, norms, signs, &err), &err);
    for (uint32_t r = 0; r < cols; r++) {
        double sum = 0.0, largest = 0.0;

        for (uint64_t i = 0; i < rows; i++) {
            const double value = slc_matrix_get(&a, i, r);

            CU_ASSERT_DOUBLE_EQUAL(value, slc_matrix_get(&c, i, order[r]) * weights[order[r]],
                                   tolerance(type) * cols);
            sum += value * value;
            largest = fabs(value) > fabs(largest) ? value : largest;
        }
        CU_ASSERT_DOUBLE_EQUAL(norms[r], sqrt(sum), 1e-12 * sqrt(sum));
        CU_ASSERT_EQUAL(signs[r], largest < 0.0 ? -1.0 : 1.0);
    }
    slc_matrix_destroy(&a);
    slc_matrix_destroy(&b);
    slc_matrix_destroy(&c);
    free(weights);
    free(norms);
    free(signs);
    free(order);
    slc_dense_destroy(dense);
}

static void test_columns(void)
{
    check_columns(SLC_F64, 2300, 7);
    check_columns(SLC_F32, 1025, 20);
    check_columns(SLC_F64, 70, 150);
    check_columns(SLC_F64, 0, 4);
    check_columns(SLC_F32, 1, 1);
}

static void test_sign_of_ties(void)
{
    struct slc_dense *dense = dense_for(2, 2, 3000);
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_matrix a;
    double norms[2], signs[2];

    SLC_ASSERT_OK(slc_matrix_create(&a, SLC_F64, 3000, 2, &err), &err);
    slc_matrix_set(&a, 10, 0, -4.0); /* the first of equal magnitudes decides */
    slc_matrix_set(&a, 2900, 0, 4.0);
    SLC_ASSERT_OK(slc_dense_column_norms(dense, &a, norms, signs, &err), &err);
    CU_ASSERT_EQUAL(signs[0], -1.0);
    CU_ASSERT_EQUAL(signs[1], 1.0);
    CU_ASSERT_EQUAL(norms[1], 0.0);
    slc_matrix_destroy(&a);
    slc_dense_destroy(dense);
}

/* Squares that underflow or overflow do not spoil the norms. */
static void test_extreme_norms(void)
{
    static const double scales[] = {1e-320, 1e-300, 1e-170, 1e-140, 1.0, 1e140, 1e170, 1e300};
    struct slc_dense *dense = dense_for(2, SLC_COUNT(scales), 3000);
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_matrix a;
    double norms[SLC_COUNT(scales)], signs[SLC_COUNT(scales)];

    SLC_ASSERT_OK(slc_matrix_create(&a, SLC_F64, 3000, SLC_COUNT(scales), &err), &err);
    for (uint32_t r = 0; r < SLC_COUNT(scales); r++) {
        slc_matrix_set(&a, 7, r, 3.0 * scales[r]);
        slc_matrix_set(&a, 2900, r, -4.0 * scales[r]);
    }
    SLC_ASSERT_OK(slc_dense_column_norms(dense, &a, norms, signs, &err), &err);
    for (uint32_t r = 0; r < SLC_COUNT(scales); r++) {
        /* 1e-320 itself has three digits. */
        CU_ASSERT_DOUBLE_EQUAL(norms[r] / scales[r], 5.0, r == 0 ? 1e-2 : 1e-14);
        CU_ASSERT_EQUAL(signs[r], -1.0);
    }
    slc_matrix_destroy(&a);
    slc_dense_destroy(dense);
}

static void test_fill(void)
{
    for (int type = SLC_F32; type <= SLC_F64; type++) {
        struct slc_dense *dense = dense_for(2, 5, 3000);
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_matrix a;
        uint64_t wrong = 0;

        SLC_ASSERT_OK(slc_matrix_create(&a, (enum slc_value_type)type, 3000, 5, &err), &err);
        SLC_ASSERT_OK(slc_dense_fill_uniform(dense, &a, 42, 7, &err), &err);
        for (uint64_t i = 0; i < 3000; i++) {
            for (uint32_t r = 0; r < 5; r++) {
                const double want = slc_random_f64(42, 7, i * 5 + r);
                wrong += slc_matrix_get(&a, i, r) != (type == SLC_F32 ? (double)(float)want : want);
            }
            for (uint32_t r = 5; r < a.pitch; r++) {
                struct slc_matrix wide = a;
                wide.cols = a.pitch;
                wrong += slc_matrix_get(&wide, i, r) != 0.0;
            }
        }
        CU_ASSERT_EQUAL(wrong, 0);
        slc_matrix_destroy(&a);
        slc_dense_destroy(dense);
    }
}

/* Results of one number of workers, to be compared bit by bit. */
struct results {
    struct slc_matrix x;
    double *gram, *update_gram, *norms, *column_norms;
    double inner;
};

static void
compute(unsigned workers, const struct slc_matrix *m, const double *v, struct results *results)
{
    const uint32_t rank = m->cols;
    const uint64_t square = (uint64_t)rank * rank;
    struct slc_dense *dense = dense_for(workers, rank, m->rows);
    double *signs = must(malloc(rank * sizeof *signs));
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_solver solver = {0};

    results->gram = must(malloc(square * sizeof(double)));
    results->update_gram = must(malloc(square * sizeof(double)));
    results->norms = must(malloc(rank * sizeof(double)));
    results->column_norms = must(malloc(rank * sizeof(double)));
    empty_matrix(&results->x, m);
    SLC_ASSERT_OK(slc_solver_create(&solver, rank, &err), &err);
    SLC_ASSERT_OK(slc_dense_factorize(dense, v, &solver, &err), &err);
    SLC_ASSERT_OK(slc_dense_gram(dense, m, results->gram, &err), &err);
    SLC_ASSERT_OK(slc_dense_update(dense, &solver, m, &results->x, SLC_NORM_2, results->norms,
                                   results->update_gram, &err),
                  &err);
    SLC_ASSERT_OK(slc_dense_column_norms(dense, &results->x, results->column_norms, signs, &err),
                  &err);
    SLC_ASSERT_OK(slc_dense_inner(dense, m, &results->x, results->norms, &results->inner, &err),
                  &err);
    slc_solver_destroy(&solver);
    free(signs);
    slc_dense_destroy(dense);
}

static void results_free(struct results *results)
{
    slc_matrix_destroy(&results->x);
    free(results->gram);
    free(results->update_gram);
    free(results->norms);
    free(results->column_norms);
}

static void test_same_bits(void)
{
    static const uint32_t ranks[] = {5, 16, 140};

    for (size_t c = 0; c < SLC_COUNT(ranks) * 2; c++) {
        const uint32_t rank = ranks[c / 2];
        const uint64_t square = (uint64_t)rank * rank;
        double *v = must(malloc(square * sizeof *v));
        struct results first;
        struct slc_matrix m;

        random_matrix(&m, c % 2 == 0 ? SLC_F64 : SLC_F32, 9000, rank);
        regular_gram(rank, v);
        compute(1, &m, v, &first);
        for (size_t w = 1; w < SLC_COUNT(worker_counts); w++) {
            struct results other;

            compute(worker_counts[w], &m, v, &other);
            CU_ASSERT(same_bits(&first.x, &other.x));
            CU_ASSERT_EQUAL(memcmp(first.gram, other.gram, square * sizeof *v), 0);
            CU_ASSERT_EQUAL(memcmp(first.update_gram, other.update_gram, square * sizeof *v), 0);
            CU_ASSERT_EQUAL(memcmp(first.norms, other.norms, rank * sizeof *v), 0);
            CU_ASSERT_EQUAL(memcmp(first.column_norms, other.column_norms, rank * sizeof *v), 0);
            CU_ASSERT_EQUAL(memcmp(&first.inner, &other.inner, sizeof first.inner), 0);
            results_free(&other);
        }
        results_free(&first);
        slc_matrix_destroy(&m);
        free(v);
    }
}

static void test_faults(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_solver solver = {0};
    struct slc_dense *dense = NULL;

    for (uint64_t k = 1; k <= 2; k++) {
        slc_fault_arm(SLC_FAULT_ALLOCATION, k);
        slc_error_clear(&err);
        CU_ASSERT_EQUAL(slc_dense_create(2, 4, 100, &dense, &err), SLC_ERR_MEMORY);
        CU_ASSERT_PTR_NULL(dense);
    }
    slc_fault_arm(SLC_FAULT_ALLOCATION, 1);
    slc_error_clear(&err);
    CU_ASSERT_EQUAL(slc_solver_create(&solver, 4, &err), SLC_ERR_MEMORY);
    CU_ASSERT_PTR_NULL(solver.factor);
    slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
}

static void test_refusals(void)
{
    struct slc_dense *dense = dense_for(2, 4, 100);
    struct slc_dense *none = NULL;
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_matrix tall, wide, fits;
    double gram[25], weights[5] = {0}, inner;

    random_matrix(&tall, SLC_F64, 101, 4);
    random_matrix(&wide, SLC_F64, 100, 5);
    random_matrix(&fits, SLC_F64, 99, 4);
    SLC_ASSERT_FAILS(slc_dense_gram(dense, &tall, gram, &err), SLC_ERR_USAGE, &err, "101");
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_dense_gram(dense, &wide, gram, &err), SLC_ERR_USAGE, &err, "5");
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_dense_inner(dense, &fits, &tall, weights, &inner, &err), SLC_ERR_USAGE,
                     &err, "inner product");
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_dense_create(0, 4, 4, &none, &err), SLC_ERR_USAGE, &err, "threads");
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_dense_create(1, SLC_MAX_RANK + 1, 4, &none, &err), SLC_ERR_USAGE, &err,
                     "rank");
    CU_ASSERT(slc_dense_memory_bytes(2, 16, 1000) >= 2048);
    CU_ASSERT(slc_dense_memory_bytes(2, 16, UINT64_C(1) << 60) <= UINT64_C(4) << 20);
    CU_ASSERT_EQUAL(slc_dense_memory_bytes(2, 0, 1000), UINT64_MAX);
    slc_matrix_destroy(&tall);
    slc_matrix_destroy(&wide);
    slc_matrix_destroy(&fits);
    slc_dense_destroy(dense);
}

static const struct slc_test tests[] = {
    {"Gram matrices", test_gram},
    {"X V = M", test_solve},
    {"norms, division, Gram matrix of the update", test_norms},
    {"singular V: pseudo-inverse", test_singular},
    {"V = 0, NaN and infinity", test_zero_and_nan},
    {"inner product, scaling, order, column norms", test_columns},
    {"sign of the first of equal magnitudes", test_sign_of_ties},
    {"norms of very small and very large columns", test_extreme_norms},
    {"uniform filling", test_fill},
    {"same bits for any number of workers", test_same_bits},
    {"every allocation may fail", test_faults},
    {"what does not fit is refused", test_refusals},
};

int main(int argc, char **argv)
{
    return slc_test_main("dense", tests, SLC_COUNT(tests), argc, argv);
}
