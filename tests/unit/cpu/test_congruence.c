/* Comparison of models: assignments against all permutations, and the factor match score of models
 * that are equal except for order, signs and scales, and of different ones. */
#include "cpu/dense/congruence.h"

#include "base/error/fault.h"
#include "base/random.h"
#include "slc_test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The largest sum over all permutations of the columns still in `free`. */
static double best_sum(uint32_t size, const double *gains, uint32_t row, uint32_t taken)
{
    double best = -INFINITY;

    if (row == size) {
        return 0.0;
    }
    for (uint32_t j = 0; j < size; j++) {
        if ((taken >> j & 1U) == 0) {
            best = fmax(best, gains[row * size + j] +
                                  best_sum(size, gains, row + 1, taken | UINT32_C(1) << j));
        }
    }
    return best;
}

static void assigns_as_all_permutations_do(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    double gains[49];
    uint32_t match[7];

    for (uint64_t problem = 0; problem < 200; problem++) {
        const uint32_t size = 1 + (uint32_t)(problem % 7);
        uint32_t taken = 0;
        double sum = 0.0;

        for (uint32_t k = 0; k < size * size; k++) {
            /* In every other problem, some gains are equal. */
            const double number = slc_random_f64(slc_test_seed(), problem, k);

            gains[k] = problem % 2 == 0 ? number : floor(4.0 * number);
        }
        SLC_ASSERT_OK(slc_assignment(size, gains, match, &err), &err);
        for (uint32_t i = 0; i < size; i++) {
            CU_ASSERT_FATAL(match[i] < size);
            CU_ASSERT_EQUAL(taken >> match[i] & 1U, 0);
            taken |= UINT32_C(1) << match[i];
            sum += gains[i * size + match[i]];
        }
        CU_ASSERT_DOUBLE_EQUAL(sum, best_sum(size, gains, 0, 0), 1e-12);
    }
}

/* A greedy assignment would first take the gain of 9, and would gain only 9 + 0 instead of 8 +
 * 8. */
static void is_not_greedy(void)
{
    const double gains[4] = {9, 8, 8, 0};
    struct slc_error err = SLC_ERROR_INIT;
    uint32_t match[2];

    SLC_ASSERT_OK(slc_assignment(2, gains, match, &err), &err);
    CU_ASSERT_EQUAL(match[0], 1);
    CU_ASSERT_EQUAL(match[1], 0);
}

enum { MODES = 3, RANK = 5 };
static const uint64_t rows[MODES] = {40, 30, 3};

struct model {
    struct slc_matrix factors[MODES];
    double lambda[RANK];
};

static void model_create(struct model *model, uint64_t seed)
{
    struct slc_error err = SLC_ERROR_INIT;

    for (unsigned n = 0; n < MODES; n++) {
        SLC_ASSERT_OK(slc_matrix_create(&model->factors[n], SLC_F64, rows[n], RANK, &err), &err);
        for (uint64_t i = 0; i < rows[n]; i++) {
            for (uint32_t r = 0; r < RANK; r++) {
                slc_matrix_row_f64(&model->factors[n], i)[r] =
                    slc_random_f64(seed, n, i * RANK + r) - 0.3;
            }
        }
    }
    for (uint32_t r = 0; r < RANK; r++) {
        model->lambda[r] = 1.0 + r;
    }
}

static void model_destroy(struct model *model)
{
    for (unsigned n = 0; n < MODES; n++) {
        slc_matrix_destroy(&model->factors[n]);
    }
}

static double score(struct model *one, struct model *two, uint32_t *match)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_congruence congruence;
    double result = -1.0;

    SLC_ASSERT_OK(slc_congruence_create(&congruence, RANK, &err), &err);
    for (unsigned n = 0; n < MODES; n++) {
        slc_congruence_add(&congruence, &one->factors[n], &two->factors[n]);
    }
    SLC_ASSERT_OK(slc_congruence_score(&congruence, one->lambda, two->lambda, &result, match, &err),
                  &err);
    slc_congruence_destroy(&congruence);
    return result;
}

/* Component r of `model` moves to (r + 2) % R; one of its columns changes sign, another doubles. */
static void rearrange(const struct model *model, struct model *moved)
{
    for (uint32_t r = 0; r < RANK; r++) {
        const uint32_t to = (r + 2) % RANK;

        moved->lambda[to] = model->lambda[r] / 2;
        for (unsigned n = 0; n < MODES; n++) {
            const double scale = n == r % MODES ? -1.0 : n == (r + 1) % MODES ? 2.0 : 1.0;

            for (uint64_t i = 0; i < rows[n]; i++) {
                slc_matrix_row_f64(&moved->factors[n], i)[to] =
                    scale * slc_matrix_row_f64(&model->factors[n], i)[r];
            }
        }
    }
}

static void the_same_but_for_order_and_signs_is_one(void)
{
    struct model model, moved;
    uint32_t match[RANK];

    model_create(&model, slc_test_seed());
    model_create(&moved, slc_test_seed());
    rearrange(&model, &moved);
    CU_ASSERT_DOUBLE_EQUAL(score(&model, &moved, match), 1.0, 1e-14);
    for (uint32_t r = 0; r < RANK; r++) {
        CU_ASSERT_EQUAL(match[r], (r + 2) % RANK);
    }
    /* The sign of a weight does not count either. */
    moved.lambda[1] = -moved.lambda[1];
    CU_ASSERT_DOUBLE_EQUAL(score(&model, &moved, NULL), 1.0, 1e-14);
    /* If the weight of a component halves, so does its contribution. */
    moved.lambda[0] *= 2.0;
    CU_ASSERT_DOUBLE_EQUAL(score(&model, &moved, NULL), 1.0 - 0.5 / RANK, 1e-14);
    /* A component of zeros matches no component. */
    for (uint64_t i = 0; i < rows[1]; i++) {
        slc_matrix_row_f64(&moved.factors[1], i)[0] = 0.0;
    }
    CU_ASSERT_DOUBLE_EQUAL(score(&model, &moved, NULL), 1.0 - 1.0 / RANK, 1e-14);
    model_destroy(&model);
    model_destroy(&moved);
}

static void others_are_less_alike_either_way_round(void)
{
    struct model model, other;
    double there;

    model_create(&model, 1);
    model_create(&other, 2);
    there = score(&model, &other, NULL);
    CU_ASSERT(there > 0.0 && there < 0.7);
    CU_ASSERT_DOUBLE_EQUAL(score(&other, &model, NULL), there, 1e-14);
    model_destroy(&model);
    model_destroy(&other);
}

/* Columns that are orthogonal in one mode suffice for a score of 0. */
static void orthogonal_components_score_zero(void)
{
    struct model model, other;

    model_create(&model, 1);
    model_create(&other, 1);
    for (unsigned k = 0; k < 2; k++) {
        const struct slc_matrix *matrix = k == 0 ? &model.factors[0] : &other.factors[0];

        for (uint64_t i = 0; i < rows[0]; i++) {
            for (uint32_t r = 0; r < RANK; r++) {
                slc_matrix_row_f64(matrix, i)[r] = i == k * RANK + r;
            }
        }
    }
    CU_ASSERT_EQUAL(score(&model, &other, NULL), 0.0);
    model_destroy(&model);
    model_destroy(&other);
}

/* Columns whose squares overflow or underflow: weights compensate for their sizes. */
static void norms_of_any_size_do_not_matter(void)
{
    static const double sizes[][2] = {
        {0x1p-532, 0x1p532}, {0x1p1000, 0x1p-1000}, {0x1p600, 1.0}, {0x1p-600, 0x1p-400}};
    struct model model, moved;

    for (size_t t = 0; t < 2 * SLC_COUNT(sizes); t++) {
        const size_t k = t / 2;

        model_create(&model, 3);
        model_create(&moved, 3);
        for (unsigned n = 0; n < 2; n++) {
            for (uint64_t i = 0; i < rows[n]; i++) {
                for (uint32_t r = 0; r < RANK; r++) {
                    slc_matrix_row_f64(&moved.factors[n], i)[r] *= sizes[k][n];
                }
            }
        }
        for (uint32_t r = 0; r < RANK; r++) {
            model.lambda[r] *= sizes[k][0] * sizes[k][1];
        }
        /* If the weight of a component doubles, its contribution halves. */
        moved.lambda[0] *= t % 2 == 0 ? 1.0 : 2.0;
        CU_ASSERT_DOUBLE_EQUAL(score(&model, &moved, NULL), t % 2 == 0 ? 1.0 : 1.0 - 0.5 / RANK,
                               1e-14);
        model_destroy(&model);
        model_destroy(&moved);
    }
}

static void runs_out_of_memory_cleanly(void)
{
    struct model model;
    enum slc_status status = SLC_ERR_MEMORY;
    unsigned refused = 0;

    model_create(&model, 1);
    for (; status == SLC_ERR_MEMORY; refused++) {
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_congruence congruence;
        double result = -1.0;

        slc_fault_arm(SLC_FAULT_ALLOCATION, refused + 1);
        status = slc_congruence_create(&congruence, RANK, &err);
        for (unsigned n = 0; n < MODES && status == SLC_OK; n++) {
            slc_congruence_add(&congruence, &model.factors[n], &model.factors[n]);
        }
        if (status == SLC_OK) {
            status =
                slc_congruence_score(&congruence, model.lambda, model.lambda, &result, NULL, &err);
        }
        slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
        CU_ASSERT_EQUAL(result < 0.0, status != SLC_OK);
        slc_congruence_destroy(&congruence);
    }
    CU_ASSERT_EQUAL(status, SLC_OK);
    CU_ASSERT_EQUAL(refused, 4);
    model_destroy(&model);
}

static const struct slc_test tests[] = {
    {"assigns as all permutations do", assigns_as_all_permutations_do},
    {"is not greedy", is_not_greedy},
    {"the same but for order and signs is one", the_same_but_for_order_and_signs_is_one},
    {"others are less alike, either way round", others_are_less_alike_either_way_round},
    {"orthogonal components score zero", orthogonal_components_score_zero},
    {"norms of any size do not matter", norms_of_any_size_do_not_matter},
    {"runs out of memory cleanly", runs_out_of_memory_cleanly},
};

SLC_SUITE(congruence)
{
    return slc_test_main("cpu/congruence", tests, SLC_COUNT(tests), argc, argv);
}
