/* Implements dense algebra on blocks of rows, for one instruction set.
 *
 * Solving: the block is transposed, so that a vector has one column of several rows. Each step then
 * subtracts multiples of one column from four other columns, and the subtractions of a step do not
 * depend on each other. The two transposes take a fifth of the time at rank 16, and less at higher
 * ranks. Substitution is accurate for any condition of V, unlike multiplication by its inverse.
 * Coordinate descent: the block is transposed too, so all rows make the same step at the same time.
 * Gram: outer products of rows are added to tiles of sums, which stay in registers for the whole
 * block. */
#include "cpu/kernel/dense_kernels.h"

#include "cpu/kernel/set_names.h"
#include "cpu/kernel/vector_tmpl.h"

#include <string.h>

enum {
    ROWS = SLC_BLOCK_ROWS,
    /* Number of vectors per column of a strip, the rows that are solved together. The sums of this
     * number of vectors use half of the registers. */
    STRIP_VECTORS = SET_VECTOR_REGISTERS / 2 / SLC_SOLVE_COLUMNS,
    STRIP_ROWS = STRIP_VECTORS * LANES,
    /* Coordinate descent: number of vectors of rows that descend together, and of partial sums per
     * row. The sums use half of the registers and hide the latency of an addition. */
    DESCENT_VECTORS =
        ROWS / LANES < SET_VECTOR_REGISTERS / 2 ? ROWS / LANES : SET_VECTOR_REGISTERS / 2,
    DESCENT_ROWS = DESCENT_VECTORS * LANES,
    DESCENT_SUMS = SET_VECTOR_REGISTERS / 2 >= 2 * DESCENT_VECTORS ? 2 : 1,
    GRAM_VECTORS = 2,
    GRAM_ROWS = SET_VECTOR_REGISTERS / 2 / GRAM_VECTORS
};
_Static_assert(ROWS % STRIP_ROWS == 0 && 8 % GRAM_ROWS == 0 && 8 % LANES == 0, "whole tiles");

typedef vector column_sums[SLC_SOLVE_COLUMNS][STRIP_VECTORS];

/* Loads columns [j, j + SLC_SOLVE_COLUMNS) of a strip. */
static inline __attribute__((always_inline)) void
load_sums(const double *strip, uint32_t j, column_sums sum)
{
    UNROLL
    for (uint32_t t = 0; t < SLC_SOLVE_COLUMNS; t++) {
        UNROLL
        for (uint32_t s = 0; s < STRIP_VECTORS; s++) {
            sum[t][s] = load(strip + (j + t) * ROWS + s * LANES);
        }
    }
}

static inline __attribute__((always_inline)) void
store_sums(double *strip, uint32_t j, column_sums sum)
{
    UNROLL
    for (uint32_t t = 0; t < SLC_SOLVE_COLUMNS; t++) {
        UNROLL
        for (uint32_t s = 0; s < STRIP_VECTORS; s++) {
            store(strip + (j + t) * ROWS + s * LANES, sum[t][s]);
        }
    }
}

/* Subtracts factor[t * step] times the column `known` from sum[t], for all t. */
static inline __attribute__((always_inline)) void
subtract(column_sums sum, const double *known, const double *factor, uint32_t step)
{
    UNROLL
    for (uint32_t t = 0; t < SLC_SOLVE_COLUMNS; t++) {
        UNROLL
        for (uint32_t s = 0; s < STRIP_VECTORS; s++) {
            sum[t][s] -= factor[t * step] * load(known + s * LANES);
        }
    }
}

/* Solves Y A^T = M, columns from first to last. */
static inline __attribute__((always_inline)) void forward(const struct slc_triangles *triangles,
                                                          double *strip)
{
    const uint32_t size = triangles->size;

    for (uint32_t j = 0; j < size; j += SLC_SOLVE_COLUMNS) {
        const double *lower = triangles->forward + (uint64_t)j * size;
        column_sums sum;

        load_sums(strip, j, sum);
        for (uint32_t k = 0; k < j; k++) {
            subtract(sum, strip + k * ROWS, lower + k, size);
        }
        UNROLL
        for (uint32_t t = 0; t < SLC_SOLVE_COLUMNS; t++) {
            UNROLL
            for (uint32_t s = 0; s < STRIP_VECTORS; s++) {
                UNROLL
                for (uint32_t u = 0; u < t; u++) {
                    sum[t][s] -= lower[t * size + j + u] * sum[u][s];
                }
                sum[t][s] *= triangles->forward_inverse[j + t];
            }
        }
        store_sums(strip, j, sum);
    }
}

/* Solves X B = Y, columns from last to first. */
static inline __attribute__((always_inline)) void backward(const struct slc_triangles *triangles,
                                                           double *strip)
{
    const uint32_t size = triangles->size;

    for (uint32_t j = size; j > 0;) {
        const double *lower = triangles->backward;
        column_sums sum;

        j -= SLC_SOLVE_COLUMNS;
        load_sums(strip, j, sum);
        for (uint32_t k = j + SLC_SOLVE_COLUMNS; k < size; k++) {
            subtract(sum, strip + k * ROWS, lower + (uint64_t)k * size + j, 1);
        }
        UNROLL
        for (uint32_t t = SLC_SOLVE_COLUMNS; t-- > 0;) {
            UNROLL
            for (uint32_t s = 0; s < STRIP_VECTORS; s++) {
                UNROLL
                for (uint32_t u = SLC_SOLVE_COLUMNS - 1; u > t; u--) {
                    sum[t][s] -= lower[(uint64_t)(j + u) * size + j + t] * sum[u][s];
                }
                sum[t][s] *= triangles->backward_inverse[j + t];
            }
        }
        store_sums(strip, j, sum);
    }
}

static void
solve_block(const struct slc_triangles *triangles, const double *m, uint32_t width, double *x)
{
    double columns[SLC_BLOCK_RANK * ROWS] __attribute__((aligned(64)));

    transpose(m, ROWS, width, width, columns, ROWS);
    for (uint32_t row = 0; row < ROWS; row += STRIP_ROWS) {
        forward(triangles, columns + row);
        backward(triangles, columns + row);
    }
    transpose(columns, width, ROWS, ROWS, x, width);
}

/* Adds the Gram matrix of a block to `sums`, but only rows [i, i + GRAM_ROWS) and, starting at
 * column j, `vectors` vectors of columns. */
static inline __attribute__((always_inline)) void
gram_tile(const double *x, uint32_t width, uint32_t i, uint32_t j, uint32_t vectors, double *sums)
{
    vector sum[GRAM_ROWS][GRAM_VECTORS];

    UNROLL
    for (uint32_t a = 0; a < GRAM_ROWS; a++) {
        UNROLL
        for (uint32_t b = 0; b < vectors; b++) {
            sum[a][b] = load(sums + (i + a) * width + j + b * LANES);
        }
    }
    for (uint32_t row = 0; row < ROWS; row++, x += width) {
        UNROLL
        for (uint32_t b = 0; b < vectors; b++) {
            const vector right = load(x + j + b * LANES);
            UNROLL
            for (uint32_t a = 0; a < GRAM_ROWS; a++) {
                sum[a][b] += x[i + a] * right;
            }
        }
    }
    UNROLL
    for (uint32_t a = 0; a < GRAM_ROWS; a++) {
        UNROLL
        for (uint32_t b = 0; b < vectors; b++) {
            store(sums + (i + a) * width + j + b * LANES, sum[a][b]);
        }
    }
}

static void add_gram(const double *x, uint32_t width, double *sums)
{
    for (uint32_t i = 0; i < width; i += GRAM_ROWS) {
        uint32_t j = i / LANES * LANES;

        for (; j + GRAM_VECTORS * LANES <= width; j += GRAM_VECTORS * LANES) {
            gram_tile(x, width, i, j, GRAM_VECTORS, sums);
        }
        if (j < width) {
            gram_tile(x, width, i, j, 1, sums);
        }
    }
}

static inline __attribute__((always_inline)) vector larger(vector largest, vector value)
{
    const bits magnitude = (bits)value & INT64_MAX;
    const bits more = (vector)magnitude > largest;

    return (vector)((magnitude & more) | ((bits)largest & ~more));
}

static void
add_columns(const double *m, const double *x, uint32_t width, double *largest, double *inner)
{
    for (uint32_t j = 0; j < width; j += LANES) {
        vector most[2] = {load(largest + j), load(largest + j)};
        vector sum[2] = {load(inner + j), {0}};

        for (uint32_t i = 0; i < ROWS; i += 2) {
            UNROLL
            for (uint32_t h = 0; h < 2; h++) {
                const vector value = load(x + (i + h) * width + j);

                most[h] = larger(most[h], value);
                sum[h] += load(m + (i + h) * width + j) * value;
            }
        }
        store(largest + j, larger(most[0], most[1]));
        store(inner + j, sum[0] + sum[1]);
    }
}

static void update_block(const struct slc_triangles *triangles,
                         const double *m,
                         uint32_t width,
                         double *x,
                         double *gram,
                         double *columns)
{
    if (triangles != NULL) {
        solve_block(triangles, m, width, x);
    }
    if (gram != NULL) {
        add_gram(x, width, gram);
    }
    if (columns != NULL) {
        add_columns(m, x, width, columns, columns + width);
    }
}

static inline __attribute__((always_inline)) vector blend(bits mask, vector yes, vector no)
{
    return (vector)(((bits)yes & mask) | ((bits)no & ~mask));
}

/* Returns the minimizer of the objective in one number, given its minimizer without l1 and bounds.
 * The last addition turns -0 into 0. */
static inline __attribute__((always_inline)) vector
constrain(vector value, double threshold, double low, double high)
{
    const vector zero = {0};
    const vector above = value - threshold;
    vector below = value + threshold;

    below = blend(below < zero, below, zero);
    value = blend(above > below, above, below);
    value = blend(value > low, value, zero + low);
    return blend(value < high, value, zero + high) + zero;
}

/* Sets sum to m_r - (x V)_r for the rows of a strip. */
static inline __attribute__((always_inline)) void descent_slope(const struct slc_descent *descent,
                                                                const double *m,
                                                                const double *x,
                                                                uint32_t r,
                                                                vector sum[DESCENT_VECTORS])
{
    const double *v = descent->gram + (uint64_t)r * descent->width;
    vector part[DESCENT_SUMS][DESCENT_VECTORS] = {{{0}}};

    UNROLL
    for (uint32_t s = 0; s < DESCENT_VECTORS; s++) {
        part[0][s] = load(m + (uint64_t)r * ROWS + s * LANES);
    }
    for (uint32_t k = 0; k < descent->rank; k += DESCENT_SUMS) {
        UNROLL
        for (uint32_t p = 0; p < DESCENT_SUMS; p++) {
            UNROLL
            for (uint32_t s = 0; s < DESCENT_VECTORS; s++) {
                part[p][s] -= v[k + p] * load(x + (uint64_t)(k + p) * ROWS + s * LANES);
            }
        }
    }
    UNROLL
    for (uint32_t s = 0; s < DESCENT_VECTORS; s++) {
        sum[s] = part[0][s];
        UNROLL
        for (uint32_t p = 1; p < DESCENT_SUMS; p++) {
            sum[s] += part[p][s];
        }
    }
}

/* Makes one sweep over the numbers of the active rows of a strip. Sets `drop` to a lower bound of
 * twice the decrease of the objective. */
static inline __attribute__((always_inline)) void descent_sweep(const struct slc_descent *descent,
                                                                const double *m,
                                                                double *x,
                                                                const bits active[DESCENT_VECTORS],
                                                                vector drop[DESCENT_VECTORS])
{
    for (uint32_t r = 0; r < descent->rank; r++) {
        const double inverse = descent->inverse[r];
        const double curvature = descent->gram[(uint64_t)r * descent->width + r];
        vector sum[DESCENT_VECTORS];

        descent_slope(descent, m, x, r, sum);
        UNROLL
        for (uint32_t s = 0; s < DESCENT_VECTORS; s++) {
            double *at = x + (uint64_t)r * ROWS + s * LANES;
            const vector old = load(at);
            const vector next = blend(active[s],
                                      constrain(old + sum[s] * inverse, descent->l1 * inverse,
                                                descent->low, descent->high),
                                      old);
            const vector step = next - old;

            drop[s] += curvature * step * step;
            store(at, next);
        }
    }
}

static inline __attribute__((always_inline)) void
descend_strip(const struct slc_descent *descent, const double *m, double *x)
{
    vector most[DESCENT_VECTORS];
    bits active[DESCENT_VECTORS];

    UNROLL
    for (uint32_t s = 0; s < DESCENT_VECTORS; s++) {
        most[s] = (vector){0};
        active[s] = ~(bits){0};
    }
    for (unsigned sweep = 0; sweep < descent->sweeps; sweep++) {
        vector drop[DESCENT_VECTORS] = {{0}};
        bits some = {0};
        int64_t any = 0;

        descent_sweep(descent, m, x, active, drop);
        UNROLL
        for (uint32_t s = 0; s < DESCENT_VECTORS; s++) {
            most[s] = larger(most[s], drop[s]);
            active[s] &= drop[s] > descent->tolerance * most[s];
            some |= active[s];
        }
        UNROLL
        for (uint32_t lane = 0; lane < LANES; lane++) {
            any |= some[lane];
        }
        if (any == 0) {
            return;
        }
    }
}

static void
descend_block(const struct slc_descent *descent, const double *m, double *x, double *scratch)
{
    const uint32_t width = descent->width;
    double *columns = scratch + (uint64_t)width * ROWS;

    transpose(m, ROWS, width, width, scratch, ROWS);
    transpose(x, ROWS, width, width, columns, ROWS);
    for (uint32_t row = 0; row < ROWS; row += DESCENT_ROWS) {
        descend_strip(descent, scratch + row, columns + row);
    }
    transpose(columns, width, ROWS, ROWS, x, width);
}

static void widen_rows(const float *from, uint64_t pitch, uint32_t cols, uint32_t width, double *to)
{
    for (uint32_t i = 0; i < ROWS; i++, from += pitch, to += width) {
        for (uint32_t r = 0; r < cols; r++) {
            to[r] = (double)from[r];
        }
    }
}

static void
narrow_rows(const double *from, uint32_t width, uint32_t cols, uint64_t pitch, float *to)
{
    for (uint32_t i = 0; i < ROWS; i++, from += width, to += pitch) {
        for (uint32_t r = 0; r < cols; r++) {
            to[r] = (float)from[r];
        }
    }
}

const struct slc_dense_kernels SET_EXPAND(slc_dense_kernels_, SET_NAME) = {

    .update = update_block, .descend = descend_block, .widen = widen_rows, .narrow = narrow_rows};
