/* Naive CP-ALS for small tensors: Gaussian elimination, explicit residuals. */
#include "naive_cp.h"

#include "base/random.h"
#include "slc_test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void naive_start(struct naive_cp *model,
                 const struct fixture_tensor *tensor,
                 uint32_t rank,
                 uint64_t seed)
{
    memset(model, 0, sizeof *model);
    model->order = tensor->order;
    model->rank = rank;
    memcpy(model->dims, tensor->dims, sizeof model->dims);
    model->lambda = calloc(rank, sizeof(double));
    for (unsigned n = 0; n < model->order; n++) {
        struct slc_error err = SLC_ERROR_INIT;

        SLC_ASSERT_OK(slc_matrix_create(&model->factors[n], SLC_F64, model->dims[n], rank, &err),
                      &err);
        for (uint64_t i = 0; i < model->dims[n]; i++) {
            for (uint32_t r = 0; r < rank; r++) {
                slc_matrix_set(&model->factors[n], i, r, slc_random_f64(seed, n, i * rank + r));
            }
        }
    }
}

void naive_destroy(struct naive_cp *model)
{
    for (unsigned n = 0; n < model->order; n++) {
        slc_matrix_destroy(&model->factors[n]);
    }
    free(model->lambda);
}

/* Solves V x = b for symmetric V by Gaussian elimination with pivoting; overwrites both. */
static void solve(uint32_t size, double *v, double *b)
{
    for (uint32_t k = 0; k < size; k++) {
        uint32_t pivot = k;

        for (uint32_t i = k + 1; i < size; i++) {
            pivot = fabs(v[i * size + k]) > fabs(v[pivot * size + k]) ? i : pivot;
        }
        for (uint32_t j = 0; j < size; j++) {
            const double keep = v[k * size + j];

            v[k * size + j] = v[pivot * size + j];
            v[pivot * size + j] = keep;
        }
        {
            const double keep = b[k];

            b[k] = b[pivot];
            b[pivot] = keep;
        }
        for (uint32_t i = k + 1; i < size; i++) {
            const double factor = v[i * size + k] / v[k * size + k];

            for (uint32_t j = k; j < size; j++) {
                v[i * size + j] -= factor * v[k * size + j];
            }
            b[i] -= factor * b[k];
        }
    }
    for (uint32_t k = size; k-- > 0;) {
        for (uint32_t j = k + 1; j < size; j++) {
            b[k] -= v[k * size + j] * b[j];
        }
        b[k] /= v[k * size + k];
    }
}

/* The Hadamard product of the Gram matrices of all modes except `skip`. */
static void gram_product(const struct naive_cp *model, unsigned skip, double *v)
{
    const uint32_t rank = model->rank;

    for (uint32_t r = 0; r < rank; r++) {
        for (uint32_t s = 0; s < rank; s++) {
            double product = 1.0;

            for (unsigned n = 0; n < model->order; n++) {
                double sum = 0.0;

                for (uint64_t i = 0; i < model->dims[n]; i++) {
                    sum += slc_matrix_get(&model->factors[n], i, r) *
                           slc_matrix_get(&model->factors[n], i, s);
                }
                product *= n == skip ? 1.0 : sum;
            }
            v[r * rank + s] = product;
        }
    }
}

static void normalize(struct naive_cp *model, unsigned mode, unsigned iteration)
{
    struct slc_matrix *factor = &model->factors[mode];

    for (uint32_t r = 0; r < model->rank; r++) {
        double norm = iteration == 1 ? 0.0 : 1.0;

        for (uint64_t i = 0; i < factor->rows; i++) {
            const double a = slc_matrix_get(factor, i, r);

            norm = iteration == 1 ? norm + a * a : fmax(norm, fabs(a));
        }
        norm = iteration == 1 ? sqrt(norm) : norm;
        for (uint64_t i = 0; i < factor->rows; i++) {
            slc_matrix_set(factor, i, r, slc_matrix_get(factor, i, r) / norm);
        }
        model->lambda[r] = norm;
    }
}

void naive_iterate(struct naive_cp *model,
                   const struct fixture_tensor *tensor,
                   const unsigned *mode_order,
                   unsigned iteration,
                   double regularization)
{
    const struct slc_coo_view view = fixture_view(tensor);
    const struct slc_matrix *factors[SLC_MAX_ORDER];
    const uint32_t rank = model->rank;
    double *v = calloc((size_t)rank * rank, sizeof *v);
    double *work = calloc((size_t)rank * rank, sizeof *work);

    for (unsigned n = 0; n < model->order; n++) {
        factors[n] = &model->factors[n];
    }
    for (unsigned k = 0; k < model->order; k++) {
        const unsigned mode = mode_order[k];
        double *m = calloc(model->dims[mode] * rank, sizeof *m);

        slc_reference_mttkrp(&view, factors, mode, model->dims[mode], rank, m);
        gram_product(model, mode, v);
        for (uint32_t r = 0; r < rank; r++) {
            v[r * rank + r] += regularization;
        }
        for (uint64_t i = 0; i < model->dims[mode]; i++) {
            memcpy(work, v, (size_t)rank * rank * sizeof *v);
            solve(rank, work, m + i * rank);
            for (uint32_t r = 0; r < rank; r++) {
                slc_matrix_set(&model->factors[mode], i, r, m[i * rank + r]);
            }
        }
        normalize(model, mode, iteration);
        free(m);
    }
    free(v);
    free(work);
}

static uint64_t cells(const uint64_t *dims, unsigned order)
{
    uint64_t count = 1;

    for (unsigned n = 0; n < order; n++) {
        count *= dims[n];
    }
    return count;
}

/* The model's value in cell `cell`, the last mode fastest. */
static double cell_value(unsigned order,
                         uint32_t rank,
                         const uint64_t *dims,
                         const struct slc_matrix *factors,
                         const double *lambda,
                         uint64_t cell)
{
    uint64_t coords[SLC_MAX_ORDER];
    double sum = 0.0;

    for (unsigned n = order; n-- > 0; cell /= dims[n]) {
        coords[n] = cell % dims[n];
    }
    for (uint32_t r = 0; r < rank; r++) {
        double product = lambda[r];

        for (unsigned n = 0; n < order; n++) {
            product *= slc_matrix_get(&factors[n], coords[n], r);
        }
        sum += product;
    }
    return sum;
}

double naive_fit(const struct naive_cp *model, const struct fixture_tensor *tensor)
{
    const uint64_t count = cells(model->dims, model->order);
    double *x = calloc(count, sizeof *x);
    double residual = 0.0, norm = 0.0;

    for (uint64_t i = 0; i < tensor->nnz; i++) {
        uint64_t cell = 0;

        for (unsigned n = 0; n < model->order; n++) {
            cell = cell * model->dims[n] + tensor->coords[n][i];
        }
        x[cell] = tensor->values[i];
    }
    for (uint64_t c = 0; c < count; c++) {
        const double m =
            cell_value(model->order, model->rank, model->dims, model->factors, model->lambda, c);

        residual += (x[c] - m) * (x[c] - m);
        norm += x[c] * x[c];
    }
    free(x);
    return 1.0 - sqrt(residual) / sqrt(norm);
}

double naive_distance(const struct naive_cp *model, const struct slc_cp_result *result)
{
    const uint64_t count = cells(model->dims, model->order);
    double largest = 0.0;

    for (uint64_t c = 0; c < count; c++) {
        const double a =
            cell_value(model->order, model->rank, model->dims, model->factors, model->lambda, c);
        const double b = cell_value(result->order, result->rank, model->dims, result->factors,
                                    result->lambda, c);

        largest = fmax(largest, fabs(a - b));
    }
    return largest;
}
