/* SpTV and TTM by tiles against the oracle.
 *
 * Identities: fibers delivered in several runs add up to the oracle's; with small integers every
 * sum is exact, so both forms, both element types and all instruction sets must yield the oracle's
 * bits. With reals the error is bounded relative to the same sum of magnitudes. Neither the number
 * of times the output is drained nor the instruction set changes a bit. */
#include "base/random.h"
#include "cpu/cpu.h"
#include "cpu/fiber/ttm.h"
#include "fake_tiles.h"
#include "naive_products.h"
#include "slc_test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const sets[] = {"portable", "avx2", "avx512", "neon"};

/* A tensor, a matrix, and the oracle's result. */
struct problem {
    struct fake_tensor tensor;
    struct slc_matrix matrix;
    unsigned mode;
    uint64_t *order;
    uint64_t *fiber;
    uint64_t fibers;
    double *want;
    double *magnitude;
};

/* All output drained so far: rows of R numbers, and coordinates. */
struct taken {
    uint64_t count;
    uint64_t capacity;
    uint64_t *coords[SLC_MAX_ORDER];
    double *rows;
};

static void *must(void *memory)
{
    if (memory == NULL) {
        abort();
    }
    return memory;
}

static void create_matrix(
    struct problem *problem, enum slc_value_type type, uint64_t rows, uint32_t cols, bool integers)
{
    struct slc_error err = SLC_ERROR_INIT;

    SLC_ASSERT_OK(slc_matrix_create(&problem->matrix, type, rows, cols, &err), &err);
    for (uint64_t i = 0; i < rows; i++) {
        for (uint32_t r = 0; r < cols; r++) {
            const double uniform = slc_random_f64(slc_test_seed(), 77, i * cols + r);

            slc_matrix_set(&problem->matrix, i, r,
                           integers ? (double)((int)(uniform * 7.0) - 3) : 2.0 * uniform - 1.0);
        }
    }
}

static void ask_oracle(struct problem *problem)
{
    const struct slc_matrix *matrix = &problem->matrix;
    const uint64_t nnz = problem->tensor.nnz;
    struct slc_matrix positive = {0};
    double *values = must(calloc(nnz + 1, sizeof *values));
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_coo_view view;

    fake_tensor_view(&problem->tensor, &view);
    problem->order = must(calloc(nnz + 1, sizeof *problem->order));
    problem->fiber = must(calloc(nnz + 1, sizeof *problem->fiber));
    problem->fibers = slc_reference_fibers(&view, problem->mode, problem->order, problem->fiber);
    problem->want = must(calloc(problem->fibers * matrix->cols + 1, sizeof(double)));
    problem->magnitude = must(calloc(problem->fibers * matrix->cols + 1, sizeof(double)));
    slc_reference_ttm(&view, problem->mode, matrix, problem->order, problem->fiber, problem->want);
    SLC_ASSERT_OK(slc_matrix_create(&positive, matrix->type, matrix->rows, matrix->cols, &err),
                  &err);
    for (uint64_t i = 0; i < matrix->rows; i++) {
        for (uint32_t r = 0; r < matrix->cols; r++) {
            slc_matrix_set(&positive, i, r, fabs(slc_matrix_get(matrix, i, r)));
        }
    }
    for (uint64_t i = 0; i < nnz; i++) {
        values[i] = fabs(view.values[i]);
    }
    view.values = values;
    slc_reference_ttm(&view, problem->mode, &positive, problem->order, problem->fiber,
                      problem->magnitude);
    slc_matrix_destroy(&positive);
    free(values);
}

static void problem_destroy(struct problem *problem)
{
    fake_tensor_free(&problem->tensor);
    slc_matrix_destroy(&problem->matrix);
    free(problem->order);
    free(problem->fiber);
    free(problem->want);
    free(problem->magnitude);
}

static struct slc_ttm_job job_of(const struct problem *problem, enum slc_ttm_form form)
{
    return (struct slc_ttm_job){.order = problem->tensor.order,
                                .mode = problem->mode,
                                .form = form,
                                .fiber_tiles = problem->tensor.in_runs &&
                                               problem->tensor.run_mode == problem->mode,
                                .matrix = &problem->matrix};
}

/* Drains all fibers, or all but the last. */
static void
take(const struct problem *problem, struct slc_ttm_output *output, bool all, struct taken *taken)
{
    const uint64_t count = output->count - (all || output->count == 0 ? 0 : 1);
    const uint32_t cols = problem->matrix.cols;

    CU_ASSERT_FATAL(taken->count + count <= taken->capacity);
    for (uint64_t f = 0; f < count; f++) {
        memcpy(taken->rows + (taken->count + f) * cols, output->rows + f * output->pitch,
               cols * sizeof(double));
        for (uint32_t r = cols; r < output->pitch; r++) {
            CU_ASSERT_EQUAL(output->rows[f * output->pitch + r], 0.0);
        }
        for (unsigned m = 0; m < problem->tensor.order; m++) {
            if (m != problem->mode) {
                taken->coords[m][taken->count + f] = output->coords[m][f];
            }
        }
    }
    taken->count += count;
    slc_ttm_keep_last(output);
}

static void taken_create(const struct problem *problem, struct taken *taken)
{
    memset(taken, 0, sizeof *taken);
    taken->capacity = problem->tensor.nnz + 1;
    taken->rows = must(calloc(taken->capacity * problem->matrix.cols, sizeof(double)));
    for (unsigned m = 0; m < problem->tensor.order; m++) {
        taken->coords[m] = must(calloc(taken->capacity, sizeof(uint64_t)));
    }
}

static void taken_destroy(struct taken *taken)
{
    free(taken->rows);
    for (unsigned m = 0; m < SLC_MAX_ORDER; m++) {
        free(taken->coords[m]);
    }
}

/* Processes all tiles with one output of this capacity. */
static void run_tiles(const struct problem *problem,
                      enum slc_ttm_form form,
                      uint64_t capacity,
                      struct taken *taken)
{
    const struct slc_ttm_job job = job_of(problem, form);
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_ttm_output output;
    struct fake_tile tile;

    taken->count = 0;
    fake_tile_create(&tile, &problem->tensor, problem->matrix.type);
    SLC_ASSERT_OK(slc_ttm_output_create(&output, &job, capacity, &err), &err);
    CU_ASSERT(output.buffer.bytes <= slc_ttm_output_bytes(&job, capacity));
    for (uint64_t t = 0; t < fake_tensor_tiles(&problem->tensor); t++) {
        uint32_t nnz = 1;

        fake_tile_open(&tile, t);
        while (nnz > 0) {
            if (!slc_ttm_has_capacity(&output)) {
                take(problem, &output, false, taken);
            }
            SLC_ASSERT_OK(slc_ttm_next(&job, &tile.view, &output, &nnz, &err), &err);
        }
    }
    take(problem, &output, true, taken);
    slc_ttm_output_destroy(&output);
    fake_tile_destroy(&tile);
}

/* Returns the number of elements that differ from the oracle's, and of fibers it lacks. */
static uint64_t
count_wrong(const struct problem *problem, const struct taken *taken, double tolerance)
{
    const uint32_t cols = problem->matrix.cols;
    struct slc_coo_view view = {.order = problem->tensor.order, .nnz = taken->count};
    uint64_t *order = must(calloc(taken->count + 1, sizeof *order));
    uint64_t *fiber = must(calloc(taken->count + 1, sizeof *fiber));
    uint64_t *member = must(calloc(problem->fibers + 1, sizeof *member));
    double *sums = must(calloc(problem->fibers * cols + 1, sizeof *sums));
    uint64_t wrong = 0;

    for (unsigned m = 0; m < view.order; m++) {
        view.coords[m] = taken->coords[m];
    }
    if (slc_reference_fibers(&view, problem->mode, order, fiber) == problem->fibers) {
        for (uint64_t k = 0; k < problem->tensor.nnz; k++) {
            member[problem->fiber[k]] = problem->order[k];
        }
        for (uint64_t k = 0; k < taken->count; k++) {
            for (unsigned m = 0; m < view.order; m++) {
                wrong += m != problem->mode &&
                         taken->coords[m][order[k]] != problem->tensor.coords[m][member[fiber[k]]];
            }
            for (uint32_t r = 0; r < cols; r++) {
                sums[fiber[k] * cols + r] += taken->rows[order[k] * cols + r];
            }
        }
        for (uint64_t i = 0; i < problem->fibers * cols; i++) {
            wrong += !(fabs(sums[i] - problem->want[i]) <= tolerance * problem->magnitude[i]);
        }
    } else {
        wrong = UINT64_MAX;
    }
    free(order);
    free(fiber);
    free(member);
    free(sums);
    return wrong;
}

static void check_problem(struct problem *problem, double tolerance)
{
    const uint64_t rooms[] = {SLC_TTM_CHUNK_FIBERS + 1, SLC_TTM_CHUNK_FIBERS + 700,
                              problem->tensor.nnz + 2 * SLC_TTM_CHUNK_FIBERS};
    struct taken first, taken;

    taken_create(problem, &first);
    taken_create(problem, &taken);
    for (enum slc_ttm_form form = 0; form < SLC_TTM_FORMS; form++) {
        bool is_first = true;

        for (size_t s = 0; s < SLC_COUNT(sets); s++) {
            if (!slc_cpu_force_instruction_set(sets[s])) {
                continue;
            }
            for (size_t capacity = 0; capacity < SLC_COUNT(rooms); capacity++) {
                uint64_t wrong;

                run_tiles(problem, form, rooms[capacity], is_first ? &first : &taken);
                if (is_first) {
                    wrong = count_wrong(problem, &first, tolerance);
                    CU_ASSERT_EQUAL(wrong, 0);
                    is_first = false;
                    if (wrong > 0) {
                        printf("# %s, order %u, mode %u, %u columns, %s, %s: %llu wrong\n", sets[s],
                               problem->tensor.order, problem->mode, problem->matrix.cols,
                               problem->matrix.type == SLC_F32 ? "f32" : "f64",
                               slc_ttm_form_name(form), (unsigned long long)wrong);
                    }
                    continue;
                }
                CU_ASSERT_EQUAL_FATAL(taken.count, first.count);
                CU_ASSERT_EQUAL(memcmp(taken.rows, first.rows,
                                       first.count * problem->matrix.cols * sizeof(double)),
                                0);
            }
        }
    }
    CU_ASSERT(slc_cpu_force_instruction_set(NULL));
    taken_destroy(&first);
    taken_destroy(&taken);
}

/* If the mean length of runs is 0, nonzeros are in any order. Otherwise, they are in fiber runs of
 * the mode, which the tiles deliver as runs or nonzero by nonzero. */
struct shape {
    unsigned order;
    uint64_t dims[6];
    unsigned mode;
    uint64_t nnz;
    uint32_t cols;
    unsigned mean_run;
};

static void check_shape(const struct shape *shape)
{
    for (unsigned variant = 0; variant < 8; variant++) {
        const bool integers = (variant & 1) != 0;
        const enum slc_value_type type = (variant & 2) != 0 ? SLC_F32 : SLC_F64;
        const double unit = type == SLC_F32 ? 0x1p-23 : 0x1p-52;
        struct problem problem = {.mode = shape->mode};

        if (shape->mean_run == 0 && (variant & 4) != 0) {
            continue;
        }
        fake_tensor_random(&problem.tensor, shape->order, shape->dims, shape->nnz, integers,
                           shape->nnz + variant);
        problem.tensor.tile_nnz = 1500;
        problem.tensor.chunk_nnz = 1024;
        if (shape->mean_run > 0) {
            fake_tensor_runs(&problem.tensor, shape->mode, shape->mean_run, 5);
            problem.tensor.in_runs = (variant & 4) != 0;
        }
        create_matrix(&problem, type, shape->dims[shape->mode], shape->cols, integers);
        ask_oracle(&problem);
        check_problem(&problem, integers ? 0 : 64 * unit);
        problem_destroy(&problem);
    }
}

static void test_against_oracle(void)
{
    static const struct shape shapes[] = {
        {1, {5000}, 0, 3000, 1, 0},
        {1, {300}, 0, 3000, 16, 4},
        {2, {40, 3000}, 1, 4000, 1, 20},
        {2, {3000, 1}, 0, 2000, 5, 0},
        {3, {20, 30, 400}, 2, 6000, 1, 3},
        {3, {20, 30, 400}, 0, 5000, 16, 0},
        {3, {1, 300, 40}, 1, 5000, 100, 7},
        {3, {9, 1, 7}, 1, 3000, 1, 2},
        {4, {7, 8, 9, 1000}, 3, 5000, 1, 100},
        {4, {7, 80, 9, 10}, 1, 4000, 33, 2},
        {5, {5, 6, 7, 8, 9}, 2, 4000, 2, 3},
        {6, {2, 3, 1, 5, 2, 3000}, 5, 4000, 1, 50},
        {6, {2, 3, 4, 5, 6, 7}, 0, 2000, 3, 0},
    };

    for (size_t i = 0; i < SLC_COUNT(shapes); i++) {
        check_shape(&shapes[i]);
    }
}

/* A fiber that spans chunks and tiles is delivered once. */
static void test_long_fiber(void)
{
    static const uint64_t dims[] = {1, 5000, 1};
    struct problem problem = {.mode = 1};
    struct taken taken;

    fake_tensor_random(&problem.tensor, 3, dims, 10000, true, 1);
    fake_tensor_runs(&problem.tensor, 1, 2, 1);
    problem.tensor.tile_nnz = 3000;
    create_matrix(&problem, SLC_F64, dims[1], 3, true);
    ask_oracle(&problem);
    CU_ASSERT_EQUAL(problem.fibers, 1);
    taken_create(&problem, &taken);
    for (enum slc_ttm_form form = 0; form < SLC_TTM_FORMS; form++) {
        run_tiles(&problem, form, SLC_TTM_CHUNK_FIBERS + 1, &taken);
        CU_ASSERT_EQUAL(taken.count, 1);
        CU_ASSERT_EQUAL(count_wrong(&problem, &taken, 0), 0);
    }
    taken_destroy(&taken);
    problem_destroy(&problem);
}

static void test_few(void)
{
    static const uint64_t dims[] = {3, 4};

    for (uint64_t nnz = 0; nnz < 2; nnz++) {
        struct problem problem = {.mode = 1};

        fake_tensor_random(&problem.tensor, 2, dims, nnz, true, 1);
        create_matrix(&problem, SLC_F64, dims[1], 1, true);
        ask_oracle(&problem);
        CU_ASSERT_EQUAL(problem.fibers, nnz);
        check_problem(&problem, 0);
        problem_destroy(&problem);
    }
}

static void test_refused(void)
{
    static const uint64_t dims[] = {3, 400, 5};
    struct problem problem = {.mode = 1};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_ttm_output output;
    struct slc_ttm_job job;
    struct fake_tile tile;
    uint32_t nnz;

    fake_tensor_random(&problem.tensor, 3, dims, 3000, true, 1);
    fake_tensor_runs(&problem.tensor, 1, 2, 1);
    problem.tensor.fail_tile = 0;
    create_matrix(&problem, SLC_F64, 400, 2, true);
    fake_tile_create(&tile, &problem.tensor, SLC_F64);
    fake_tile_open(&tile, 0);
    job = job_of(&problem, SLC_TTM_FIBERS);
    SLC_ASSERT_OK(slc_ttm_output_create(&output, &job, 5000, &err), &err);

    job.order = 2;
    SLC_ASSERT_FAILS(slc_ttm_next(&job, &tile.view, &output, &nnz, &err), SLC_ERR_USAGE, &err,
                     "a tile of 3 modes does not match a product in mode 2 of 2");
    job.order = 3;
    tile.view.value_type = SLC_F32;
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_ttm_next(&job, &tile.view, &output, &nnz, &err), SLC_ERR_USAGE, &err,
                     "have different types");
    tile.view.value_type = SLC_F64;
    tile.view.extent[1] = (uint32_t)(400 - tile.view.corner[1]);
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_ttm_next(&job, &tile.view, &output, &nnz, &err), SLC_ERR_USAGE, &err,
                     "the tile has indices up to 400 in mode 2, but the matrix has 400 rows");
    fake_tile_open(&tile, 0);
    problem.tensor.run_mode = 0;
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_ttm_next(&job, &tile.view, &output, &nnz, &err), SLC_ERR_USAGE, &err,
                     "keeps fibers of mode 1 together, not those of mode 2");
    problem.tensor.run_mode = 1;
    CU_ASSERT_EQUAL(output.count, 0);
    fake_tile_open(&tile, 0);
    SLC_ASSERT_OK(slc_ttm_next(&job, &tile.view, &output, &nnz, &err), &err);
    CU_ASSERT(output.count > 0);
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_ttm_next(&job, &tile.view, &output, &nnz, &err), SLC_ERR_DAMAGED, &err,
                     "the fake tile is damaged");
    slc_ttm_output_destroy(&output);
    fake_tile_destroy(&tile);
    fake_tensor_free(&problem.tensor);
    slc_matrix_destroy(&problem.matrix);
}

/* An impossibly large size is reported as an error; nothing is mapped. */
static void test_too_large(void)
{
    struct slc_matrix matrix = {
        .type = SLC_F64, .rows = 1, .cols = UINT32_MAX, .pitch = UINT32_MAX};
    const struct slc_ttm_job job = {.order = 3, .mode = 0, .matrix = &matrix};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_ttm_output output;

    CU_ASSERT_EQUAL(slc_ttm_output_bytes(&job, UINT32_MAX - 7), UINT64_MAX);
    SLC_ASSERT_FAILS(slc_ttm_output_create(&output, &job, UINT32_MAX - 7, &err), SLC_ERR_MEMORY,
                     &err, "exceed the address space");
    CU_ASSERT_STRING_EQUAL(slc_ttm_form_name(SLC_TTM_FORMS), "?");
}

static const struct slc_test tests[] = {
    {"both forms, all types and instruction sets, against the oracle", test_against_oracle},
    {"a fiber that reaches over chunks and tiles comes out once", test_long_fiber},
    {"no nonzero, and one", test_few},
    {"tiles that do not fit are refused, damage is passed on", test_refused},
    {"an output that no memory holds", test_too_large},
};

SLC_SUITE(ttm)
{
    return slc_test_main("ttm", tests, SLC_COUNT(tests), argc, argv);
}
