#include "cpu/dense/congruence.h"

#include "base/memory/checked.h"
#include "cpu/dense/dense.h"

#include <assert.h>
#include <cblas.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
    /* Number of rows per BLAS call, limited because BLAS counts are of type int. */
    PANEL_ROWS = 1 << 20,
    /* Sums of squares and products of columns of numbers up to 2^EXPONENT_MOST do not overflow. */
    EXPONENT_MOST = 400
};

uint64_t slc_congruence_memory_bytes(uint32_t rank)
{
    const uint64_t square = (uint64_t)rank * rank;

    return (2 * square + 4 * (uint64_t)rank) * sizeof(double) + 2 * (uint64_t)rank * sizeof(int) +
           (2 * (uint64_t)rank + 3) * (sizeof(double) + sizeof(uint32_t));
}

enum slc_status
slc_congruence_create(struct slc_congruence *congruence, uint32_t rank, struct slc_error *err)
{
    const size_t square = (size_t)rank * rank;

    memset(congruence, 0, sizeof *congruence);
    SLC_TRY(slc_dense_check_blas(1, err));
    congruence->products =
        slc_calloc(1, (2 * square + 4 * (size_t)rank) * sizeof(double) + 2 * rank * sizeof(int));
    SLC_TRY(slc_check_memory(congruence->products != NULL, err,
                             "for comparing two models of rank %u", rank));
    congruence->rank = rank;
    congruence->norms[0] = congruence->products + square;
    congruence->norms[1] = congruence->norms[0] + rank;
    congruence->scratch = congruence->norms[1] + rank;
    congruence->exponents[0] = (int *)(void *)(congruence->scratch + square + 2 * (size_t)rank);
    congruence->exponents[1] = congruence->exponents[0] + rank;
    for (size_t i = 0; i < square + 2 * (size_t)rank; i++) {
        congruence->products[i] = 1.0;
    }
    return SLC_OK;
}

void slc_congruence_destroy(struct slc_congruence *congruence)
{
    slc_free(congruence->products);
    memset(congruence, 0, sizeof *congruence);
}

/* Scales the columns whose largest number is not between 2^-EXPONENT_MOST and 2^EXPONENT_MOST by a
 * power of two, and adds its exponent to exponents[]. `largest` has space for a number per
 * column. */
static void scale_columns(struct slc_matrix *matrix, double *largest, int *exponents)
{
    bool scaled = false;

    memset(largest, 0, matrix->cols * sizeof *largest);
    for (uint64_t i = 0; i < matrix->rows; i++) {
        const double *row = slc_matrix_row_f64(matrix, i);

        for (uint32_t r = 0; r < matrix->cols; r++) {
            largest[r] = fmax(largest[r], fabs(row[r]));
        }
    }
    for (uint32_t r = 0; r < matrix->cols; r++) {
        int exponent = 0;

        if (isfinite(largest[r])) {
            (void)frexp(largest[r], &exponent);
        }
        exponent = abs(exponent) > EXPONENT_MOST ? exponent : 0;
        exponents[r] += exponent;
        scaled = scaled || exponent != 0;
        largest[r] = exponent;
    }
    for (uint64_t i = 0; i < matrix->rows && scaled; i++) {
        double *row = slc_matrix_row_f64(matrix, i);

        for (uint32_t r = 0; r < matrix->cols; r++) {
            row[r] = ldexp(row[r], -(int)largest[r]);
        }
    }
}

/* Multiplies a product of norms by a norm. */
static void multiply_norm(double *product, int *exponent, double norm)
{
    int more = 0;

    *product *= norm;
    if (isfinite(*product)) {
        *product = frexp(*product, &more);
    }
    *exponent += more;
}

/* Computes sums of squares of the columns. */
static void column_squares(const struct slc_matrix *matrix, double *sums)
{
    memset(sums, 0, matrix->cols * sizeof *sums);
    for (uint64_t i = 0; i < matrix->rows; i++) {
        const double *row = slc_matrix_row_f64(matrix, i);

        for (uint32_t r = 0; r < matrix->cols; r++) {
            sums[r] += row[r] * row[r];
        }
    }
}

void slc_congruence_add(struct slc_congruence *congruence,
                        struct slc_matrix *one,
                        struct slc_matrix *two)
{
    const uint32_t rank = congruence->rank;
    const int r = (int)rank;
    double *cross = congruence->scratch, *left = cross + (size_t)rank * rank, *right = left + rank;

    assert(one->rows == two->rows && one->cols == rank && two->cols == rank);
    assert(one->type == SLC_F64 && two->type == SLC_F64);
    scale_columns(one, left, congruence->exponents[0]);
    scale_columns(two, right, congruence->exponents[1]);
    memset(cross, 0, (size_t)rank * rank * sizeof *cross);
    for (uint64_t i = 0; i < one->rows; i += PANEL_ROWS) {
        const uint64_t rows = slc_min_u64(one->rows - i, PANEL_ROWS);

        cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, r, r, (int)rows, 1.0,
                    slc_matrix_row_f64(one, i), (int)one->pitch, slc_matrix_row_f64(two, i),
                    (int)two->pitch, 1.0, cross, r);
    }
    column_squares(one, left);
    column_squares(two, right);
    for (uint32_t a = 0; a < rank; a++) {
        multiply_norm(&congruence->norms[0][a], &congruence->exponents[0][a], sqrt(left[a]));
        multiply_norm(&congruence->norms[1][a], &congruence->exponents[1][a], sqrt(right[a]));
        for (uint32_t b = 0; b < rank; b++) {
            const double norms = sqrt(left[a]) * sqrt(right[b]);
            const size_t at = (size_t)a * rank + b;
            const double cosine = norms > 0.0 ? fabs(cross[at]) / norms : 0.0;

            congruence->products[at] *= cosine < 1.0 ? cosine : 1.0;
        }
    }
    congruence->modes++;
}

/* Returns the weight of component r of model k without its exponent, and sets *exponent. */
static double
weight_of(const struct slc_congruence *congruence, int k, uint32_t r, double lambda, int *exponent)
{
    double weight = lambda;

    *exponent = congruence->exponents[k][r];
    multiply_norm(&weight, exponent, 1.0);
    return weight * congruence->norms[k][r];
}

/* Returns the similarity of the magnitudes of two weights, of which the first is multiplied by
 * 2^shift: 1 if they are equal, close to 0 if their ratio is large. A sign can move between the
 * weight and a column, so it does not count. */
static double weight_similarity(double one, double two, int shift)
{
    one = ldexp(one, shift < 0 ? shift : 0);
    two = ldexp(two, shift > 0 ? -shift : 0);
    const double most = fmax(fabs(one), fabs(two)), least = fmin(fabs(one), fabs(two));

    return most > 0.0 && isfinite(most) ? 1.0 - (most - least) / most : 0.0;
}

enum slc_status slc_congruence_score(struct slc_congruence *congruence,
                                     const double *lambda_one,
                                     const double *lambda_two,
                                     double *score,
                                     uint32_t *match,
                                     struct slc_error *err)
{
    const uint32_t rank = congruence->rank;
    double *gains = congruence->scratch;
    uint32_t *own = slc_malloc(rank * sizeof *own);
    double sum = 0.0;

    SLC_TRY(slc_check_memory(own != NULL, err, "for matching %u components", rank));
    for (uint32_t a = 0; a < rank; a++) {
        for (uint32_t b = 0; b < rank; b++) {
            const size_t at = (size_t)a * rank + b;
            int first, second;
            const double one = weight_of(congruence, 0, a, lambda_one[a], &first),
                         two = weight_of(congruence, 1, b, lambda_two[b], &second);

            gains[at] = congruence->products[at] * weight_similarity(one, two, first - second);
        }
    }
    enum slc_status status = slc_assignment(rank, gains, own, err);
    for (uint32_t a = 0; a < rank && status == SLC_OK; a++) {
        sum += gains[(size_t)a * rank + own[a]];
    }
    if (status == SLC_OK) {
        *score = sum / rank;
        if (match != NULL) {
            memcpy(match, own, rank * sizeof *own);
        }
    }
    slc_free(own);
    return status;
}

/* State of the Hungarian method. Rows and columns start at 1; owner[0] is the row being
 * assigned. */
struct assignment {
    uint32_t size;
    const double *gains;
    double *row_price, *column_price;
    double *slack;    /* smallest reduced cost of each column over the rows of the search tree */
    uint32_t *owner;  /* row that is assigned to each column, or 0 */
    uint32_t *before; /* previous column on the path to each column */
    bool *reached;
};

/* Updates the slack of the unreached columns with the row assigned to `from`, the column that was
 * reached last. Returns the column with the smallest slack, and sets *step to that slack. */
static uint32_t relax_columns(struct assignment *work, uint32_t from, double *step)
{
    const uint32_t row = work->owner[from];
    uint32_t best = 0;

    *step = INFINITY;
    for (uint32_t j = 1; j <= work->size; j++) {
        const double cost = -work->gains[(size_t)(row - 1) * work->size + j - 1] -
                            work->row_price[row] - work->column_price[j];

        if (work->reached[j]) {
            continue;
        }
        if (cost < work->slack[j]) {
            work->slack[j] = cost;
            work->before[j] = from;
        }
        if (work->slack[j] < *step) {
            *step = work->slack[j];
            best = j;
        }
    }
    return best;
}

/* Assigns `row` to a column, moving other rows along the cheapest path. */
static void assign_row(struct assignment *work, uint32_t row)
{
    uint32_t at = 0;

    work->owner[0] = row;
    for (uint32_t j = 0; j <= work->size; j++) {
        work->slack[j] = INFINITY;
        work->reached[j] = false;
    }
    do {
        double step;

        work->reached[at] = true;
        uint32_t next = relax_columns(work, at, &step);
        for (uint32_t j = 0; j <= work->size; j++) {
            if (work->reached[j]) {
                work->row_price[work->owner[j]] += step;
                work->column_price[j] -= step;
            } else {
                work->slack[j] -= step;
            }
        }
        at = next;
    } while (work->owner[at] != 0);
    for (uint32_t from; at != 0; at = from) {
        from = work->before[at];
        work->owner[at] = work->owner[from];
    }
}

enum slc_status
slc_assignment(uint32_t size, const double *gains, uint32_t *match, struct slc_error *err)
{
    const size_t count = (size_t)size + 1;
    double *prices = slc_calloc(count, 3 * sizeof *prices + 2 * sizeof(uint32_t) + sizeof(bool));
    struct assignment work = {.size = size, .gains = gains};

    SLC_TRY(slc_check_memory(prices != NULL, err, "for matching %u components", size));
    work.row_price = prices;
    work.column_price = prices + count;
    work.slack = work.column_price + count;
    work.owner = (uint32_t *)(void *)(work.slack + count);
    work.before = work.owner + count;
    work.reached = (bool *)(void *)(work.before + count);
    for (uint32_t row = 1; row <= size; row++) {
        assign_row(&work, row);
    }
    for (uint32_t j = 1; j <= size; j++) {
        match[work.owner[j] - 1] = j - 1;
    }
    slc_free(prices);
    return SLC_OK;
}
