#include "dense_fixture.h"

#include "base/random.h"
#include "cpu/reference/reference.h"
#include "naive_products.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void *must(void *memory)
{
    if (memory == NULL) {
        abort();
    }
    return memory;
}

struct slc_dense *dense_for(unsigned workers, uint32_t rank, uint64_t rows)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_dense *dense = NULL;

    SLC_ASSERT_OK(slc_dense_create(workers, rank, rows, &dense, &err), &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(dense);
    return dense;
}

void random_matrix(struct slc_matrix *matrix,
                   enum slc_value_type type,
                   uint64_t rows,
                   uint32_t cols)
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

void empty_matrix(struct slc_matrix *matrix, const struct slc_matrix *like)
{
    struct slc_error err = SLC_ERROR_INIT;

    SLC_ASSERT_OK(slc_matrix_create(matrix, like->type, like->rows, like->cols, &err), &err);
}

double tolerance(enum slc_value_type type)
{
    return type == SLC_F32 ? 1e-5 : 1e-12;
}

double relative_error(const double *got, const double *want, uint64_t count)
{
    double worst = 0.0;
    double scale = 0.0;

    for (uint64_t i = 0; i < count; i++) {
        worst = fabs(got[i] - want[i]) <= worst ? worst : fabs(got[i] - want[i]);
        scale = fabs(want[i]) > scale ? fabs(want[i]) : scale;
    }
    return scale > 0.0 ? worst / scale : worst;
}

void regular_gram(uint32_t rank, double *gram)
{
    struct slc_matrix b;

    random_matrix(&b, SLC_F64, rank + 3UL, rank);
    slc_reference_gram(&b, gram);
    for (uint32_t r = 0; r < rank; r++) {
        gram[r * rank + r] += 0.5;
    }
    slc_matrix_destroy(&b);
}

void conditioned_gram(uint32_t rank, double digits, double *v)
{
    memset(v, 0, (size_t)rank * rank * sizeof *v);
    for (uint32_t r = 0; r < rank; r++) {
        v[r * rank + r] = pow(10.0, -digits * r / (rank - 1.0));
    }
    for (uint32_t turn = 0; turn < 4 * rank; turn++) {
        const uint32_t a = (uint32_t)slc_random_below(slc_test_seed(), 21, turn, rank);
        const uint32_t b = (a + 1 + turn % (rank - 1)) % rank;
        const double angle = 6.0 * slc_random_f64(slc_test_seed(), 22, turn);
        const double c = cos(angle), s = sin(angle);

        for (uint32_t i = 0; i < rank; i++) {
            const double left = v[i * rank + a], right = v[i * rank + b];

            v[i * rank + a] = c * left - s * right;
            v[i * rank + b] = s * left + c * right;
        }
        for (uint32_t i = 0; i < rank; i++) {
            const double upper = v[a * rank + i], lower = v[b * rank + i];

            v[a * rank + i] = c * upper - s * lower;
            v[b * rank + i] = s * upper + c * lower;
        }
    }
    for (uint32_t i = 0; i < rank; i++) {
        for (uint32_t j = 0; j < i; j++) {
            v[i * rank + j] = v[j * rank + i];
        }
    }
}

double backward_error(const double *v,
                      const double *left,
                      const double *right,
                      const struct slc_matrix *m,
                      const struct slc_matrix *x)
{
    const uint32_t rank = m->cols;
    long double norm = 0.0L, worst = 0.0L;

    for (uint32_t r = 0; r < rank; r++) {
        long double sum = 0.0L;

        for (uint32_t s = 0; s < rank; s++) {
            sum += fabsl((long double)v[r * rank + s]);
        }
        norm = sum > norm ? sum : norm;
    }
    for (uint64_t i = 0; i < m->rows; i++) {
        long double residual = 0.0L, size = 0.0L;

        for (uint32_t c = 0; c < rank; c++) {
            long double sum = (long double)-slc_matrix_get(m, i, c) * (long double)left[c];

            for (uint32_t r = 0; r < rank; r++) {
                sum += (long double)slc_matrix_get(x, i, r) / (long double)right[r] *
                       (long double)v[r * rank + c];
            }
            residual += fabsl(sum);
            size += fabsl((long double)slc_matrix_get(x, i, c) / (long double)right[c]);
        }
        if (size > 0.0L && !(residual / (size * norm) <= worst)) {
            worst = residual / (size * norm);
        }
    }
    return (double)worst;
}

double *ones(uint32_t count)
{
    double *numbers = must(malloc(count * sizeof *numbers));

    for (uint32_t r = 0; r < count; r++) {
        numbers[r] = 1.0;
    }
    return numbers;
}

struct slc_update_sums update_sums(uint32_t rank)
{
    const struct slc_update_sums sums = {must(malloc((size_t)rank * rank * sizeof(double))),
                                         must(malloc(rank * sizeof(double))),
                                         must(malloc(rank * sizeof(double)))};

    return sums;
}

void update_sums_free(struct slc_update_sums *sums)
{
    free(sums->gram);
    free(sums->largest);
    free(sums->inner);
}
