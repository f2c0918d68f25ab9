/* The kernels of row solvers compute what plain loops compute, for every instruction set, rank,
 * type and number of nonzeros. */
#include "cpu/kernel/row_kernels.h"

#include "base/random.h"
#include "cpu/kernel/kernels.h"
#include "row_fixture.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const uint32_t ranks[] = {1, 3, 7, 8, 16, 20, 33, 64};
static const uint32_t counts[] = {0, 1, 5, 8, 13, 131, 1000};
enum { GUARD = 8 };

/* Calls `check` for every rank and number of nonzeros. */
static void for_every_size(void (*check)(uint32_t rank, uint32_t nnz))
{
    for (size_t r = 0; r < SLC_COUNT(ranks); r++) {
        for (size_t n = 0; n < SLC_COUNT(counts); n++) {
            check(ranks[r], counts[n]);
        }
    }
}

static const struct slc_row_kernels *kernels(void)
{
    return slc_kernels()->rows;
}

/* Asserts that numbers agree relative to a scale, that numbers after them are unchanged, and that
 * no number is NaN. */
static void
check_close(const double *got, const double *want, uint64_t count, double scale, double tolerance)
{
    uint64_t wrong = 0;

    for (uint64_t i = 0; i < count; i++) {
        wrong += !(fabs(got[i] - want[i]) <= tolerance * (scale + fabs(want[i])));
    }
    CU_ASSERT_EQUAL(wrong, 0);
}

/* Products of `factors` factors with 50 rows each. */
static void check_products(enum slc_value_type type, unsigned factors, uint32_t rank, uint32_t nnz)
{
    enum { ROWS = 50 };
    const uint32_t width = slc_row_width(rank);
    struct slc_matrix factor[5];
    uint32_t *rows[5];
    double *want = row_numbers((uint64_t)nnz * width), *got = row_numbers((uint64_t)nnz * width);
    struct slc_row_product_span span = {.nnz = nnz,
                                        .rank = rank,
                                        .width = width,
                                        .factor_count = factors,
                                        .type = type,
                                        .products = got};

    for (unsigned m = 0; m < factors; m++) {
        struct slc_error err = SLC_ERROR_INIT;

        SLC_ASSERT_OK(slc_matrix_create(&factor[m], type, ROWS, rank, &err), &err);
        for (uint64_t i = 0; i < (uint64_t)ROWS * rank; i++) {
            slc_matrix_set(&factor[m], i / rank, (uint32_t)(i % rank),
                           slc_random_f64(slc_test_seed(), m, i) - 0.4);
        }
        rows[m] = malloc((nnz + 1) * sizeof *rows[m]);
        for (uint32_t i = 0; i < nnz; i++) {
            rows[m][i] = (uint32_t)slc_random_below(slc_test_seed(), 10 + m, i, ROWS);
        }
        span.rows[m] = rows[m];
        span.factor[m] = factor[m].buffer.data;
        span.pitch[m] = factor[m].pitch;
    }
    for (uint32_t i = 0; i < nnz; i++) {
        for (uint32_t r = 0; r < rank; r++) {
            double product = 1.0;

            for (unsigned m = 0; m < factors; m++) {
                product *= slc_matrix_get(&factor[m], rows[m][i], r);
            }
            want[(uint64_t)i * width + r] = product;
        }
    }
    memset(got, 0xFF, (uint64_t)nnz * width * sizeof *got); /* NaN */
    kernels()->products(&span);
    check_close(got, want, (uint64_t)nnz * width, 0.0, 4 * DBL_EPSILON);
    for (unsigned m = 0; m < factors; m++) {
        slc_matrix_destroy(&factor[m]);
        free(rows[m]);
    }
    free(want);
    free(got);
}

static void check_all_products(uint32_t rank, uint32_t nnz)
{
    for (unsigned factors = 0; factors <= 5; factors++) {
        check_products(SLC_F32, factors, rank, nnz);
        check_products(SLC_F64, factors, rank, nnz);
    }
}

static void products_of_one_set(void)
{
    for_every_size(check_all_products);
}

static void products_multiply_rows(void)
{
    with_every_set(products_of_one_set);
}

/* A row and a vector x with one zero. */
struct sums_case {
    struct row_problem row;
    double *x, *models;
};

static struct sums_case sums_case(uint32_t rank, uint32_t nnz)
{
    struct sums_case sums = {.row = row_problem(ROW_COUNTS, rank, nnz)};

    sums.x = row_numbers(sums.row.width);
    sums.models = row_numbers(nnz + GUARD);
    for (uint32_t r = 0; r < rank; r++) {
        sums.x[r] = r == 4 ? 0.0 : 0.1 + slc_random_f64(slc_test_seed(), 7, r);
    }
    for (uint32_t i = 0; i < nnz; i++) {
        for (uint32_t r = 0; r < rank; r++) {
            sums.models[i] += sums.row.products[i * sums.row.width + r] * sums.x[r];
        }
    }
    return sums;
}

static void sums_case_free(struct sums_case *sums)
{
    row_problem_free(&sums->row);
    free(sums->x);
    free(sums->models);
}

/* Returns an array whose numbers after the first `count` are 42. */
static double *guarded(uint64_t count)
{
    double *numbers = row_numbers(count + GUARD);

    for (unsigned i = 0; i < GUARD; i++) {
        numbers[count + i] = 42.0;
    }
    return numbers;
}

static void guarded_free(double *numbers, uint64_t count)
{
    for (unsigned i = 0; i < GUARD; i++) {
        CU_ASSERT_EQUAL(numbers[count + i], 42.0);
    }
    free(numbers);
}

static void check_poisson(uint32_t rank, uint32_t nnz)
{
    struct sums_case sums = sums_case(rank, nnz);
    const struct row_problem *row = &sums.row;
    const double floor = 0.3; /* exceeds some of the models */
    double *phi = guarded(row->width), *want = row_numbers(row->width);
    double *curvature = guarded(nnz), *models = guarded(nnz), *want_curvature = row_numbers(nnz);

    for (uint32_t i = 0; i < nnz; i++) {
        const double model = sums.models[i];

        want_curvature[i] = row->values[i] / fmax(model * model, floor);
        for (uint32_t r = 0; r < rank; r++) {
            want[r] += row->values[i] / fmax(model, floor) * row->products[i * row->width + r];
        }
    }
    struct slc_row_poisson_span span = {.nnz = nnz,
                                        .width = row->width,
                                        .floor = floor,
                                        .values = row->values,
                                        .products = row->products,
                                        .x = sums.x,
                                        .phi = phi};

    kernels()->poisson(&span);
    check_close(phi, want, row->width, 0.0, 1e-13 * (nnz + 8));
    span.curvature = curvature;
    span.models = models;
    kernels()->poisson(&span); /* a second call adds the same sums again */
    for (uint32_t r = 0; r < rank; r++) {
        want[r] *= 2.0;
    }
    check_close(phi, want, row->width, 0.0, 1e-13 * (nnz + 8));
    check_close(curvature, want_curvature, nnz, 0.0, 1e-13 * (rank + 8));
    check_close(models, sums.models, nnz, 0.0, 1e-13 * (rank + 8));
    guarded_free(phi, row->width);
    guarded_free(curvature, nnz);
    guarded_free(models, nnz);
    free(want);
    free(want_curvature);
    sums_case_free(&sums);
}

static void check_models(uint32_t rank, uint32_t nnz)
{
    struct sums_case sums = sums_case(rank, nnz);
    const struct row_problem *row = &sums.row;
    double *models = guarded(nnz), *combined = guarded(row->width), *want = row_numbers(row->width);

    kernels()->models(nnz, row->width, row->products, sums.x, models);
    check_close(models, sums.models, nnz, 0.0, 1e-13 * (rank + 8));
    for (uint32_t r = 0; r < rank; r++) {
        combined[r] = 3.0;
        want[r] = 3.0;
        for (uint32_t i = 0; i < nnz; i++) {
            want[r] += row->values[i] * row->products[i * row->width + r];
        }
    }
    kernels()->combine(nnz, row->width, row->products, row->values, combined);
    check_close(combined, want, row->width, 0.0, 1e-13 * (nnz + 8));
    guarded_free(models, nnz);
    guarded_free(combined, row->width);
    free(want);
    sums_case_free(&sums);
}

/* The steps of multiplicative updates, with a total of 0 and a sum that is not a number. */
static void check_update(uint32_t rank, uint32_t nnz)
{
    const uint32_t width = slc_row_width(rank);
    double *x = guarded(width), *totals = row_numbers(width), *phi = row_numbers(width);
    double *want = row_numbers(width), worst = 0.0;

    for (uint32_t r = 0; r < rank; r++) {
        x[r] = 2.0 * slc_random_f64(slc_test_seed(), 11, r + nnz);
        totals[r] = r == 5 ? 0.0 : 0.5 + slc_random_f64(slc_test_seed(), 12, r + nnz);
        phi[r] = r == 6 ? NAN : 2.0 * slc_random_f64(slc_test_seed(), 13, r + nnz);
        want[r] = totals[r] > 0.0 ? x[r] * (phi[r] / totals[r]) : x[r];
        worst = fmax(worst, fabs(fmin(x[r], totals[r] - phi[r])) * (r == 6 ? 0.0 : 1.0));
    }
    CU_ASSERT_EQUAL(kernels()->violation(width, x, totals, phi), worst);
    kernels()->rescale(width, totals, phi, x);
    for (uint32_t r = 0; r < width; r++) {
        CU_ASSERT(r == 6 && r < rank ? isnan(x[r]) != 0 : x[r] == want[r]);
    }
    guarded_free(x, width);
    free(totals);
    free(phi);
    free(want);
}

static void check_normal(uint32_t rank, uint32_t nnz)
{
    struct sums_case sums = sums_case(rank, nnz);
    const struct row_problem *row = &sums.row;
    const uint64_t width = row->width, square = width * width;

    for (unsigned weighted = 0; weighted < 2; weighted++) {
        double *normal = guarded(square);
        uint64_t wrong = 0;

        kernels()->normal(nnz, row->width, row->products, weighted == 1 ? row->values : NULL,
                          normal);
        for (uint32_t i = 0; i < width; i++) {
            for (uint32_t j = i; j < width; j++) {
                double want = 0.0;

                for (uint32_t k = 0; k < nnz; k++) {
                    want += (weighted == 1 ? row->values[k] : 1.0) * row->products[k * width + i] *
                            row->products[k * width + j];
                }
                wrong += !(fabs(normal[i * width + j] - want) <= 1e-13 * (nnz + 8) * want);
            }
        }
        CU_ASSERT_EQUAL(wrong, 0);
        guarded_free(normal, square);
    }
    sums_case_free(&sums);
}

static void sums_of_one_set(void)
{
    for_every_size(check_poisson);
    for_every_size(check_models);
    for_every_size(check_update);
    for_every_size(check_normal);
}

static void sums_are_those_of_plain_loops(void)
{
    with_every_set(sums_of_one_set);
}

static void logarithms_of_one_set(void)
{
    enum { COUNT = 20000 };
    const double one = 1.0;
    double *values = row_numbers(COUNT), *models = row_numbers(COUNT);
    double want = 0.0, worst = 0.0;

    for (uint32_t i = 0; i < COUNT; i++) {
        const double mantissa = 1.0 + slc_random_f64(slc_test_seed(), 1, i);
        const int exponent = i % 4 == 0 ? 0 : (int)slc_random_below(slc_test_seed(), 2, i, 1900);

        models[i] = ldexp(mantissa, i % 4 == 1 ? -1 : exponent == 0 ? 0 : exponent - 950);
        values[i] = i % 5 == 0 ? 0.0 : floor(100.0 * slc_random_f64(slc_test_seed(), 3, i));
        want += values[i] * log(models[i]);
        const double got = kernels()->log_sum(1, &one, &models[i]);
        const double exact = log(models[i]);

        worst = fmax(worst, fabs(got - exact) / (fabs(exact) + DBL_MIN));
    }
    CU_ASSERT(worst <= 2 * DBL_EPSILON);
    const double got = kernels()->log_sum(COUNT, values, models);

    CU_ASSERT(fabs(got - want) <= 1e-11 * fabs(want));
    const double zero = 0.0, below = -5.0;

    CU_ASSERT_EQUAL(kernels()->log_sum(1, &one, &zero), -INFINITY);
    CU_ASSERT_EQUAL(kernels()->log_sum(1, &one, &below), -INFINITY);
    CU_ASSERT_EQUAL(kernels()->log_sum(1, &zero, &zero), 0.0);
    models[COUNT - 1] = 0.0;
    values[COUNT - 1] = 1.0;
    CU_ASSERT_EQUAL(kernels()->log_sum(COUNT, values, models), -INFINITY);
    CU_ASSERT_EQUAL(kernels()->log_sum(1, &one, &one), 0.0);
    CU_ASSERT_EQUAL(kernels()->log_sum(0, values, models), 0.0);
    free(values);
    free(models);
}

static void logarithms_are_accurate(void)
{
    with_every_set(logarithms_of_one_set);
}

static void check_factorization(uint32_t rank)
{
    struct row_problem row = row_problem(ROW_REALS, rank, 3 * rank + 5);
    const uint64_t width = row.width, square = width * width;
    double *a = row_numbers(square), *u = row_numbers(square), *x = row_numbers(width);
    double *least = row_numbers(width), *right = row_numbers(width);
    double worst = 0.0;

    kernels()->normal(row.nnz, row.width, row.products, NULL, a);
    kernels()->combine(row.nnz, row.width, row.products, row.values, right);
    memcpy(u, a, square * sizeof *u);
    memcpy(x, right, width * sizeof *x);
    CU_ASSERT_EQUAL(kernels()->cholesky(rank, row.width, NULL, u), rank);
    kernels()->substitute(rank, row.width, u, x);
    for (uint32_t i = 0; i < rank; i++) {
        double residual = right[i];

        for (uint32_t j = 0; j < rank; j++) {
            residual -= a[(i < j ? i : j) * width + (i < j ? j : i)] * x[j];
        }
        worst = fmax(worst, fabs(residual));
    }
    CU_ASSERT(worst <= 1e-12 * row.nnz);
    for (uint64_t r = rank; r < width; r++) {
        CU_ASSERT_EQUAL(x[r], 0.0);
    }

    /* the last pivot is too small, or not a number */
    memcpy(u, a, square * sizeof *u);
    least[rank - 1] = 1e9;
    CU_ASSERT_EQUAL(kernels()->cholesky(rank, row.width, least, u), rank - 1);
    a[0] = NAN;
    CU_ASSERT_EQUAL(kernels()->cholesky(rank, row.width, NULL, a), 0);
    a[0] = INFINITY;
    CU_ASSERT_EQUAL(kernels()->cholesky(rank, row.width, NULL, a), 0);
    row_problem_free(&row);
    free(a);
    free(u);
    free(x);
    free(least);
    free(right);
}

static void factorizations_of_one_set(void)
{
    for (size_t r = 0; r < SLC_COUNT(ranks); r++) {
        check_factorization(ranks[r]);
    }
}

static void factorizations_solve(void)
{
    with_every_set(factorizations_of_one_set);
}

static void check_columns(uint32_t rank, uint32_t nnz)
{
    struct row_problem row = row_problem(ROW_REALS, rank, nnz);
    const uint32_t pitch = (nnz + 7) / 8 * 8 + 8;
    double *columns = row_numbers((uint64_t)row.width * pitch), *e = row_numbers(nnz + GUARD);
    uint64_t wrong = 0;

    kernels()->columns(nnz, row.width, row.products, pitch, columns);
    for (uint32_t i = 0; i < nnz; i++) {
        e[i] = row.values[i];
        for (uint32_t r = 0; r < row.width; r++) {
            wrong += columns[(uint64_t)r * pitch + i] != row.products[i * row.width + r];
        }
    }
    CU_ASSERT_EQUAL(wrong, 0);
    const double *column = columns + (uint64_t)(rank - 1) * pitch;
    double inner[2] = {7.0, 7.0}, mixed = 0.0, square = 0.0;

    kernels()->column_inner(nnz, e, column, inner);
    for (uint32_t i = 0; i < nnz; i++) {
        mixed += e[i] * column[i];
        square += column[i] * column[i];
    }
    CU_ASSERT_DOUBLE_EQUAL(inner[0], mixed, 1e-12 * (nnz + 1) * rank);
    CU_ASSERT_DOUBLE_EQUAL(inner[1], square, 1e-12 * (nnz + 1));
    e[nnz] = 42.0;
    kernels()->column_subtract(nnz, 0.25, column, e);
    for (uint32_t i = 0; i < nnz; i++) {
        wrong += !(fabs(e[i] - (row.values[i] - 0.25 * column[i])) <= 1e-15 * rank);
    }
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT_EQUAL(e[nnz], 42.0);
    row_problem_free(&row);
    free(columns);
    free(e);
}

static void columns_of_one_set(void)
{
    for_every_size(check_columns);
}

static void columns_are_copied_and_subtracted(void)
{
    with_every_set(columns_of_one_set);
}

SLC_SUITE(row_kernels)
{
    static const struct slc_test tests[] = {
        {"products multiply rows of factors", products_multiply_rows},
        {"sums are those of plain loops", sums_are_those_of_plain_loops},
        {"logarithms are accurate", logarithms_are_accurate},
        {"factorizations solve", factorizations_solve},
        {"columns are copied and subtracted", columns_are_copied_and_subtracted},
    };

    return slc_test_main("cpu: row kernels", tests, SLC_COUNT(tests), argc, argv);
}
