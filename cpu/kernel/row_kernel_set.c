/* Implements the inner loops of row solvers, for one instruction set.
 *
 * Nonzeros are processed in groups: a group has as many nonzeros as a vector has numbers. The inner
 * products of a group are added up by exchanging halves of vectors. The result is a vector with one
 * number per nonzero, so one division or logarithm serves the whole group. The last group is
 * completed with zeros. */
#include "cpu/kernel/row_kernels.h"

#include "cpu/kernel/row_product_tmpl.h"
#include "cpu/kernel/set_names.h"
#include "cpu/kernel/vector_tmpl.h"

#include <float.h>
#include <math.h>

enum {
    /* Maximum number of vectors of columns that are added up at once. */
    FIXED_VECTORS = 4,
    /* Size of a tile of normal equations: number of rows, and number of vectors per row. */
    TILE_ROWS = SET_VECTOR_REGISTERS == 32 ? 8 : 4, /* whole vectors */
    TILE_VECTORS = 2,
    /* Maximum number of numbers of a block of products, which stays in the L1 cache. */
    BLOCK_NUMBERS = 2048,
    BLOCK_ROWS = BLOCK_NUMBERS / 8,
    /* Nonzeros of a block whose models are computed before their products are added up. */
    BLOCK_NNZ = 64
};
_Static_assert(TILE_ROWS % LANES == 0 && 8 % TILE_ROWS == 0, "whole vectors and tiles");

/* Groups of nonzeros. */

/* Returns the sums of the LANES vectors of `part`, which it overwrites. */
INLINE vector add_lanes(vector part[LANES])
{
    UNROLL
    for (uint32_t i = 0; i < LANES; i += 2) {
        EXCHANGE(part[i], part[i + 1], LOW_1, HIGH_1);
        part[i] += part[i + 1];
    }
#if SET_VECTOR_BYTES >= 32
    UNROLL
    for (uint32_t i = 0; i < LANES; i += 4) {
        EXCHANGE(part[i], part[i + 2], LOW_2, HIGH_2);
        part[i] += part[i + 2];
    }
#endif
#if SET_VECTOR_BYTES >= 64
    EXCHANGE(part[0], part[4], LOW_4, HIGH_4);
    part[0] += part[4];
#endif
    return part[0];
}

/* Returns the inner products of the rows of a group and x. */
INLINE vector group_models(const double *group, uint32_t width, uint32_t last, const double *x)
{
    vector part[LANES] = {{0}};

    for (uint32_t j = 0; j < width; j += LANES) {
        const vector right = load(x + j);

        UNROLL
        for (uint32_t k = 0; k < LANES; k++) {
            if (k <= last) {
                part[k] += load(group + (uint64_t)k * width + j) * right;
            }
        }
    }
    return add_lanes(part);
}

/* Adds the products of nonzero k times `scale` to the sums of even or odd nonzeros. */
INLINE void
add_row(const double *row, uint32_t vectors, uint32_t k, double scale, vector sum[2][FIXED_VECTORS])
{
    UNROLL
    for (uint32_t v = 0; v < vectors; v++) {
        sum[k % 2][v] += scale * load(row + v * LANES);
    }
}

/* Adds `vectors` columns of the products of a block times `scale`. */
INLINE void add_columns(uint32_t nnz,
                        uint32_t width,
                        uint32_t vectors,
                        const double *columns_,
                        const double *scale,
                        double *sums)
{
    vector sum[2][FIXED_VECTORS] = {{{0}}};
    uint32_t i = 0;

    for (; i + 4 <= nnz; i += 4) {
        UNROLL
        for (uint32_t k = 0; k < 4; k++) {
            add_row(columns_ + (uint64_t)(i + k) * width, vectors, k, scale[i + k], sum);
        }
    }
    for (; i < nnz; i++) {
        add_row(columns_ + (uint64_t)i * width, vectors, 0, scale[i], sum);
    }
    UNROLL
    for (uint32_t v = 0; v < vectors; v++) {
        store(sums + v * LANES, load(sums + v * LANES) + (sum[0][v] + sum[1][v]));
    }
}

/* Adds the products of a block times `scale`, in panels of columns. */
INLINE void
add_block(uint32_t nnz, uint32_t width, const double *products_, const double *scale, double *sums)
{
    uint32_t j = 0;

    for (; j + FIXED_VECTORS * LANES <= width; j += FIXED_VECTORS * LANES) {
        add_columns(nnz, width, FIXED_VECTORS, products_ + j, scale, sums + j);
    }
    switch ((width - j) / LANES) {
    case 1:
        add_columns(nnz, width, 1, products_ + j, scale, sums + j);
        break;
    case 2:
        add_columns(nnz, width, 2, products_ + j, scale, sums + j);
        break;
    case 3:
        add_columns(nnz, width, 3, products_ + j, scale, sums + j);
        break;
    default:
        break;
    }
}

/* Loads the numbers of a group; numbers after `last` are 0. */
INLINE vector load_group(const double *numbers, uint32_t last)
{
    double padded[LANES] __attribute__((aligned(SET_VECTOR_BYTES))) = {0};

    if (last == LANES - 1) {
        return *(const loose_vector *)(const void *)numbers;
    }
    for (uint32_t k = 0; k <= last; k++) {
        padded[k] = numbers[k];
    }
    return load(padded);
}

/* Stores the numbers of a group. */
INLINE void store_group(double *to, uint32_t last, vector numbers)
{
    double padded[LANES] __attribute__((aligned(SET_VECTOR_BYTES)));

    if (last == LANES - 1) {
        *(loose_vector *)(void *)to = numbers;
        return;
    }
    store(padded, numbers);
    for (uint32_t k = 0; k <= last; k++) {
        to[k] = padded[k];
    }
}

/* Returns the larger of two numbers in each lane; `least` if the number is NaN. */
INLINE vector at_least(vector numbers, vector least)
{
    const bits more = numbers > least;

    return (vector)(((bits)numbers & more) | ((bits)least & ~more));
}

INLINE vector broadcast(double number)
{
    return number - (vector){0};
}

static void
models(uint32_t nnz, uint32_t width, const double *products_, const double *x, double *to)
{
    for (uint32_t i = 0; i < nnz; i += LANES) {
        const double *group = products_ + (uint64_t)i * width;

        if (nnz - i >= LANES) {
            *(loose_vector *)(void *)(to + i) = group_models(group, width, LANES - 1, x);
        } else {
            store_group(to + i, nnz - i - 1, group_models(group, width, nnz - i - 1, x));
        }
    }
}

static void
combine(uint32_t nnz, uint32_t width, const double *products_, const double *scale, double *sums)
{
    for (uint32_t i = 0; i < nnz; i += BLOCK_NNZ) {
        add_block(nnz - i < BLOCK_NNZ ? nnz - i : BLOCK_NNZ, width, products_ + (uint64_t)i * width,
                  scale + i, sums);
    }
}

#include "cpu/kernel/row_poisson_tmpl.h"

/* Normal equations. */

/* Adds columns [i, i + TILE_ROWS) of `left`, whose rows have 8 numbers, times `vectors` vectors of
 * the products at column j. */
INLINE void normal_tile(uint32_t rows,
                        uint32_t width,
                        const double *left,
                        uint32_t left_pitch,
                        const double *right,
                        uint32_t vectors,
                        double *sums)
{
    vector sum[TILE_ROWS][TILE_VECTORS];

    UNROLL
    for (uint32_t a = 0; a < TILE_ROWS; a++) {
        UNROLL
        for (uint32_t b = 0; b < vectors; b++) {
            sum[a][b] = load(sums + a * width + b * LANES);
        }
    }
    for (uint32_t row = 0; row < rows; row++, left += left_pitch, right += width) {
        UNROLL
        for (uint32_t b = 0; b < vectors; b++) {
            const vector column = load(right + b * LANES);

            UNROLL
            for (uint32_t a = 0; a < TILE_ROWS; a++) {
                sum[a][b] += left[a] * column;
            }
        }
    }
    UNROLL
    for (uint32_t a = 0; a < TILE_ROWS; a++) {
        UNROLL
        for (uint32_t b = 0; b < vectors; b++) {
            store(sums + a * width + b * LANES, sum[a][b]);
        }
    }
}

/* Copies `rows` x TILE_ROWS products, multiplied by `scale`. */
INLINE void
scale_columns(uint32_t rows, uint32_t width, const double *from, const double *scale, double *to)
{
    for (uint32_t row = 0; row < rows; row++, from += width, to += TILE_ROWS) {
        UNROLL
        for (uint32_t a = 0; a < TILE_ROWS; a += LANES) {
            store(to + a, scale[row] * load(from + a));
        }
    }
}

static void normal_block(
    uint32_t rows, uint32_t width, const double *block, const double *scale, double *normal)
{
    double scaled[BLOCK_ROWS * TILE_ROWS] __attribute__((aligned(64)));

    for (uint32_t i = 0; i < width; i += TILE_ROWS) {
        const double *left = block + i;
        const uint32_t left_pitch = scale == NULL ? width : TILE_ROWS;
        double *sums = normal + (uint64_t)i * width;
        uint32_t j = i / LANES * LANES;

        if (scale != NULL) {
            scale_columns(rows, width, left, scale, scaled);
            left = scaled;
        }
        for (; j + TILE_VECTORS * LANES <= width; j += TILE_VECTORS * LANES) {
            normal_tile(rows, width, left, left_pitch, block + j, TILE_VECTORS, sums + j);
        }
        if (j < width) {
            normal_tile(rows, width, left, left_pitch, block + j, 1, sums + j);
        }
    }
}

static void add_normal(
    uint32_t nnz, uint32_t width, const double *products_, const double *scale, double *normal)
{
    const uint32_t fitting = BLOCK_NUMBERS / width;
    const uint32_t rows = fitting < 16 ? 16 : fitting;

    for (uint32_t i = 0; i < nnz; i += rows) {
        normal_block(nnz - i < rows ? nnz - i : rows, width, products_ + (uint64_t)i * width,
                     scale == NULL ? NULL : scale + i, normal);
    }
}

/* Logarithms. */

/* Returns log(x) for positive normal x, with an error below 1 ulp: x = 2^k (1 + f) with 1 + f from
 * sqrt(1/2) to sqrt(2), and log(1 + f) = 2 atanh(f / (2 + f)). */
INLINE vector logarithm(vector x)
{
    const int64_t root_half = INT64_C(0x3FE6A09E667F3BCD), one = INT64_C(0x3FF0000000000000);
    const double ln2_high = 0x1.62e42feep-1, ln2_low = 0x1.a39ef35793c76p-33;
    const int64_t shifter_bits = INT64_C(0x4330000000000000);
    typedef uint64_t words __attribute__((vector_size(SET_VECTOR_BYTES), may_alias));
    const words number = (words)x + (uint64_t)(one - root_half);
    const words exponent = number >> 52;
    const vector k = (vector)(exponent | (uint64_t)shifter_bits) - (0x1p52 + 1023.0); /* exact */
    const vector f = (vector)((number & UINT64_C(0x000FFFFFFFFFFFFF)) + (uint64_t)root_half) - 1.0;
    const vector s = f / (2.0 + f);
    const vector z = s * s;
    vector series = broadcast(2.0 / 21.0);

    UNROLL
    for (int n = 19; n >= 3; n -= 2) {
        series = series * z + 2.0 / n;
    }
    const vector half = 0.5 * f * f;

    return k * ln2_high - ((half - (s * (half + z * series) + k * ln2_low)) - f);
}

static double log_sum(uint32_t nnz, const double *values, const double *models_)
{
    const vector floor = broadcast(SLC_ROW_LOG_FLOOR);
    const vector none = {0};
    double lanes[LANES] __attribute__((aligned(SET_VECTOR_BYTES)));
    bits impossible = {0};
    vector sum = {0};
    double total = 0.0;

    for (uint32_t i = 0; i < nnz; i += LANES) {
        const uint32_t last = nnz - i < LANES ? nnz - i - 1 : LANES - 1;
        const vector model = load_group(models_ + i, last);
        const vector value = load_group(values + i, last);

        impossible |= (bits)(model <= none) & (bits)(value > none);
        sum += value * logarithm(at_least(model, floor));
    }
    store(lanes, sum);
    for (uint32_t k = 0; k < LANES; k++) {
        total += impossible[k] != 0 ? -INFINITY : lanes[k];
    }
    return total;
}

/* Factorization and substitution of small matrices. */

#if SET_VECTOR_BYTES == 64
static const bits LANE_NUMBERS = {0, 1, 2, 3, 4, 5, 6, 7};
#elif SET_VECTOR_BYTES == 32
static const bits LANE_NUMBERS = {0, 1, 2, 3};
#else
static const bits LANE_NUMBERS = {0, 1};
#endif

/* Multiplies row k by the inverse of the root of its pivot, starting with the vector that contains
 * the diagonal, and stores this inverse in the diagonal. Returns false if the pivot is too small or
 * not finite. */
INLINE bool scale_pivot(uint32_t k, uint32_t width, const double *least, double *row)
{
    const double pivot = row[k];

    if (!(pivot > (least != NULL ? least[k] : 0.0)) || !(pivot <= DBL_MAX)) {
        return false;
    }
    const double inverse = 1.0 / sqrt(pivot);
    const uint32_t block = k / LANES * LANES;
    const bits diagonal = LANE_NUMBERS == (int64_t)(k - block);
    const vector scaled = inverse * load(row + block);

    /* Store the whole vector at once: loading it soon after two partial stores would stall. */
    store(row + block,
          (vector)(((bits)scaled & ~diagonal) | ((bits)broadcast(inverse) & diagonal)));
    for (uint32_t j = block + LANES; j < width; j += LANES) {
        store(row + j, inverse * load(row + j));
    }
    return true;
}

/* Two rows are eliminated at once, which halves the loads and stores of the rows below them. */
static uint32_t cholesky(uint32_t rank, uint32_t width, const double *least, double *a)
{
    for (uint32_t k = 0; k < rank; k += 2) {
        double *first = a + (uint64_t)k * width, *second = first + width;

        if (!scale_pivot(k, width, least, first)) {
            return k;
        }
        if (k + 1 == rank) {
            break;
        }
        const double shared = first[k + 1];

        for (uint32_t j = (k + 1) / LANES * LANES; j < width; j += LANES) {
            store(second + j, load(second + j) - shared * load(first + j));
        }
        if (!scale_pivot(k + 1, width, least, second)) {
            return k + 1;
        }
        for (uint32_t i = k + 2; i < rank; i++) {
            double *row = a + (uint64_t)i * width;
            const double factor[2] = {first[i], second[i]};

            for (uint32_t j = i / LANES * LANES; j < width; j += LANES) {
                store(row + j,
                      load(row + j) - factor[0] * load(first + j) - factor[1] * load(second + j));
            }
        }
    }
    return rank;
}

/* Solves U^T y = x for one vector of numbers, and subtracts their multiples from later numbers. */
INLINE void
substitute_forward(uint32_t rank, uint32_t width, const double *u, uint32_t first, double *x)
{
    const uint32_t count = rank - first < LANES ? rank - first : LANES;
    double solved[LANES] = {0};

    for (uint32_t k = 0; k < count; k++) {
        const double *row = u + (uint64_t)(first + k) * width + first;

        solved[k] = (x[first + k] - solved[k]) * row[k];
        for (uint32_t j = k + 1; j < count; j++) {
            solved[j] += solved[k] * row[j];
        }
    }
    for (uint32_t k = 0; k < count; k++) {
        x[first + k] = solved[k];
    }
    for (uint32_t j = first + LANES; j < width; j += LANES) {
        vector sum = load(x + j);

        for (uint32_t k = 0; k < count; k++) {
            sum -= solved[k] * load(u + (uint64_t)(first + k) * width + j);
        }
        store(x + j, sum);
    }
}

/* Solves U x = y for one vector of numbers. Needs: the later numbers of x are known. */
INLINE void
substitute_backward(uint32_t rank, uint32_t width, const double *u, uint32_t first, double *x)
{
    const uint32_t count = rank - first < LANES ? rank - first : LANES;
    double left[LANES] __attribute__((aligned(SET_VECTOR_BYTES)));
    vector part[LANES] = {{0}};

    for (uint32_t j = first + LANES; j < width; j += LANES) {
        const vector known = load(x + j);

        UNROLL
        for (uint32_t k = 0; k < LANES; k++) {
            part[k] += load(u + (uint64_t)(first + k) * width + j) * known;
        }
    }
    store(left, load(x + first) - add_lanes(part));
    for (uint32_t k = count; k-- > 0;) {
        x[first + k] = left[k] * u[(uint64_t)(first + k) * width + first + k];
        for (uint32_t j = 0; j < k; j++) {
            left[j] -= u[(uint64_t)(first + j) * width + first + k] * x[first + k];
        }
    }
}

static void substitute(uint32_t rank, uint32_t width, const double *u, double *x)
{
    for (uint32_t first = 0; first < rank; first += LANES) {
        substitute_forward(rank, width, u, first, x);
    }
    for (uint32_t end = (rank + LANES - 1) / LANES * LANES; end > 0; end -= LANES) {
        substitute_backward(rank, width, u, end - LANES, x);
    }
}

/* Coordinate descent. */

static void column_inner(uint32_t nnz, const double *e, const double *c, double inner[2])
{
    double lanes[2][LANES] __attribute__((aligned(SET_VECTOR_BYTES)));
    vector mixed[2] = {{0}}, square[2] = {{0}};
    uint32_t i = 0;

    for (; i + 2 * LANES <= nnz; i += 2 * LANES) {
        UNROLL
        for (uint32_t h = 0; h < 2; h++) {
            const vector column = load(c + i + h * LANES);

            mixed[h] += load(e + i + h * LANES) * column;
            square[h] += column * column;
        }
    }
    for (; i < nnz; i += LANES) {
        const uint32_t last = nnz - i < LANES ? nnz - i - 1 : LANES - 1;
        const vector column = load_group(c + i, last);

        mixed[0] += load_group(e + i, last) * column;
        square[0] += column * column;
    }
    store(lanes[0], mixed[0] + mixed[1]);
    store(lanes[1], square[0] + square[1]);
    for (uint32_t which = 0; which < 2; which++) {
        inner[which] = 0.0;
        for (uint32_t l = 0; l < LANES; l++) {
            inner[which] += lanes[which][l];
        }
    }
}

static void column_subtract(uint32_t nnz, double step, const double *c, double *e)
{
    uint32_t i = 0;

    for (; i + LANES <= nnz; i += LANES) {
        store(e + i, load(e + i) - step * load(c + i));
    }
    for (; i < nnz; i++) {
        e[i] -= step * c[i];
    }
}

/* Copies products column by column; `pitch` is a multiple of 8. */
static void
columns(uint32_t nnz, uint32_t width, const double *products_, uint32_t pitch, double *to)
{
    const uint32_t whole = nnz / LANES * LANES;

    transpose(products_, whole, width, width, to, pitch);
    for (uint32_t i = whole; i < nnz; i++) {
        for (uint32_t r = 0; r < width; r++) {
            to[(uint64_t)r * pitch + i] = products_[(uint64_t)i * width + r];
        }
    }
}

const struct slc_row_kernels SET_EXPAND(slc_row_kernels_, SET_NAME) = {
    .products = products,
    .poisson = poisson,
    .violation = violation,
    .rescale = rescale,
    .models = models,
    .combine = combine,
    .normal = add_normal,
    .log_sum = log_sum,
    .cholesky = cholesky,
    .substitute = substitute,
    .columns = columns,
    .column_inner = column_inner,
    .column_subtract = column_subtract,
};
