/* The update of a factor whose rows have several owners: solving the rows range by range, in any
 * order and by several threads, and computing the Gram matrix afterwards, gives the result of the
 * update of the whole: the same bits up to rank 64, within rounding beyond it, and always the same
 * bits for the same ranges. */
#include "base/random.h"
#include "base/thread/team.h"
#include "dense_fixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WORKERS = 3 };

struct parts {
    struct slc_dense *dense;
    const struct slc_solver *solver;
    const struct slc_matrix *m;
    struct slc_matrix *x;
    uint64_t count;
    uint64_t *begin; /* count + 1 elements: first row of each part, then the number of rows */
    double *columns; /* column results of every part */
    enum slc_status status[WORKERS];
};

static void update_parts(void *context, unsigned worker, unsigned workers)
{
    struct parts *parts = context;
    const uint64_t elements = slc_dense_columns_elements(parts->x->cols);

    for (uint64_t i = 0; i < parts->count; i++) {
        const uint64_t part = parts->count - 1 - i; /* the order does not matter */

        if (part % workers == worker && parts->status[worker] == SLC_OK) {
            parts->status[worker] = slc_dense_update_part(
                parts->dense, parts->solver, parts->m, parts->x, parts->begin[part],
                parts->begin[part + 1], worker, parts->columns + part * elements, NULL);
        }
    }
}

/* Ranges of random lengths, some empty. */
static void draw_parts(struct parts *parts, uint64_t rows)
{
    uint64_t row = 0;

    parts->begin = must(malloc((rows + 20) * sizeof *parts->begin));
    parts->count = 0;
    parts->begin[0] = 0;
    while (row < rows || parts->count == 0) {
        row += slc_random_below(slc_test_seed(), 41, parts->count, 150);
        row = row < rows ? row : rows;
        parts->begin[++parts->count] = row;
    }
}

static void check_update(enum slc_value_type type, uint64_t rows, uint32_t rank)
{
    const uint64_t square = (uint64_t)rank * rank;
    struct slc_dense *dense = dense_for(WORKERS, rank, rows);
    struct slc_update_sums want = update_sums(rank), got = update_sums(rank);
    double *v = must(malloc(square * sizeof *v));
    double *left = ones(rank), *right = ones(rank);
    struct slc_matrix m, whole, x;
    struct parts parts = {.dense = dense, .m = &m, .x = &x};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_solver solver = {0};
    uint64_t wrong = 0;

    regular_gram(rank, v);
    random_matrix(&m, type, rows, rank);
    empty_matrix(&whole, &m);
    empty_matrix(&x, &m);
    SLC_ASSERT_OK(slc_solver_create(&solver, rank, &err), &err);
    SLC_ASSERT_OK(slc_dense_factorize(dense, v, left, right, &solver, &err), &err);
    SLC_ASSERT_OK(slc_dense_update(dense, &solver, &m, &whole, &want, &err), &err);

    draw_parts(&parts, rows);
    parts.solver = &solver;
    parts.columns = must(aligned_alloc(64, parts.count * slc_dense_columns_elements(rank) * 8));
    SLC_ASSERT_OK(slc_team_run(WORKERS, update_parts, &parts, &err), &err);
    for (unsigned w = 0; w < WORKERS; w++) {
        CU_ASSERT_EQUAL(parts.status[w], SLC_OK);
    }
    SLC_ASSERT_OK(slc_dense_update_gram(dense, &x, got.gram, &err), &err);
    slc_dense_columns_join(rank, parts.columns, parts.count, &got);

    for (uint64_t i = 0; i < rows; i++) {
        for (uint32_t r = 0; r < rank; r++) {
            const double a = slc_matrix_get(&x, i, r), b = slc_matrix_get(&whole, i, r);

            wrong += rank <= 64 ? a != b : !(fabs(a - b) <= 1e-6 * (1.0 + fabs(b)));
        }
    }
    CU_ASSERT_EQUAL(wrong, 0);
    if (rank <= 64) {
        CU_ASSERT_EQUAL(memcmp(want.gram, got.gram, square * sizeof(double)), 0);
        CU_ASSERT_EQUAL(memcmp(want.largest, got.largest, rank * sizeof(double)), 0);
    }
    CU_ASSERT(relative_error(got.gram, want.gram, square) <= 1e-6);
    CU_ASSERT(relative_error(got.inner, want.inner, rank) <= (rank <= 64 ? 1e-12 : 1e-6));
    slc_matrix_destroy(&m);
    slc_matrix_destroy(&whole);
    slc_matrix_destroy(&x);
    slc_solver_destroy(&solver);
    update_sums_free(&want);
    update_sums_free(&got);
    slc_dense_destroy(dense);
    free(parts.begin);
    free(parts.columns);
    free(v);
    free(left);
    free(right);
}

static void parts_give_the_whole(void)
{
    static const uint64_t rows[] = {1, 31, 700, 5000};
    static const uint32_t ranks[] = {1, 3, 8, 16, 33, 64, 65, 100};

    for (size_t i = 0; i < SLC_COUNT(rows); i++) {
        for (size_t j = 0; j < SLC_COUNT(ranks); j++) {
            if (slc_test_quick() && rows[i] * ranks[j] > 100000) {
                continue;
            }
            check_update((i + j) % 2 == 0 ? SLC_F64 : SLC_F32, rows[i], ranks[j]);
        }
    }
}

static const struct slc_test tests[] = {
    {"parts yield the whole", parts_give_the_whole},
};

SLC_SUITE(dense_parts)
{
    return slc_test_main("dense parts", tests, SLC_COUNT(tests), argc, argv);
}
