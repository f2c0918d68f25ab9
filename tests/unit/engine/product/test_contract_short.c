/* Tensor times vectors of which few indices are used.
 *
 * Identities: with integers the result is that of a naive product, bit for bit, for any layout, on
 * either side, and read from a file or from memory. Only used indices have an element in memory,
 * and the store is read once if memory suffices. */
#include "contract_fixture.h"
#include "engine/product/operand.h"
#include "fake_products.h"
#include "slc_test.h"
#include "storage/model/npy.h"

#include <math.h>
#include <stdlib.h>

struct short_case {
    unsigned order;
    uint64_t dims[4];
    uint64_t count;
    unsigned contracted;
    unsigned bits; /* fiber bits of the first contracted mode; 0: auto */
    bool relabel;
};

static const struct short_case cases[] = {
    {3, {1 << 20, 50, 30}, 20000, 1, 0, false},
    {3, {1 << 20, 50, 30}, 20000, 1, 20, false},
    {3, {50, 300000, 30}, 20000, 2, 9, false},
    {3, {300000, 20, 400000}, 30000, 5, 0, false}, /* two short vectors */
    {3, {300000, 20, 40}, 30000, 3, 0, false},     /* one short and one whole vector */
    {3, {1 << 18, 9, 7}, 5000, 7, 0, false},       /* a number */
    {2, {200000, 200000}, 40000, 1, 0, true},
    {3, {200000, 50, 30}, 1, 1, 0, false},
    {3, {200000, 50, 30}, 0, 1, 0, false},
};

static void create(struct problem *problem, const struct short_case *c)
{
    struct build build = plenty;
    unsigned mode = 0;

    while ((c->contracted >> mode & 1) == 0) {
        mode++;
    }
    build.relabel = c->relabel ? SLC_RELABEL_FREQUENCY : SLC_RELABEL_NONE;
    build.fibers = c->bits > 0 ? SLC_FIBERS_GIVEN : SLC_FIBERS_AUTO;
    build.run = (struct slc_fiber_run){mode, c->bits};
    problem_create(problem, c->order, c->dims, c->count, c->contracted, UNIFORM, true, &build);
    problem->options.overwrite = true;
}

static int ascending(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

/* Counts the indices of a mode that have a nonzero. The inputs have no two values that cancel. */
static uint64_t distinct_indices(const struct input *input, unsigned mode)
{
    uint64_t *indices = malloc((input->count + 1) * sizeof *indices);
    uint64_t count = 0, distinct = 0;

    for (uint64_t i = 0; i < input->count; i++) {
        indices[count] = input->coords[mode][i];
        count += input->values[i] != 0;
    }
    qsort(indices, count, sizeof *indices, ascending);
    for (uint64_t i = 0; i < count; i++) {
        distinct += i == 0 || indices[i] != indices[i - 1];
    }
    free(indices);
    return distinct;
}

static void test_against_naive(void)
{
    for (size_t i = 0; i < SLC_COUNT(cases); i++) {
        struct slc_tile_stream tiles = {.io = SLC_IO_PREAD};
        struct slc_contract_report report;
        struct slc_error err = SLC_ERROR_INIT;
        struct problem problem;

        create(&problem, &cases[i]);
        CU_ASSERT_EQUAL(check_exact(&problem), cases[i].bits == 20);
        problem.options.stream = &tiles;
        check_exact(&problem);
        for (unsigned k = 0; k < problem.options.vector_count; k++) {
            problem.options.vectors[k].path = NULL;
            problem.options.vectors[k].values = problem.vector[problem.options.vectors[k].mode];
        }
        problem.options.sort = true;
        check_exact(&problem);
        SLC_ASSERT_OK(slc_contract(&problem.options, &report, &err), &err);
        for (unsigned k = 0; k < problem.options.vector_count && cases[i].count > 0; k++) {
            const unsigned mode = problem.options.vectors[k].mode;

            CU_ASSERT_EQUAL(report.used[k].held, cases[i].dims[mode] < 1 << 17
                                                     ? cases[i].dims[mode]
                                                     : distinct_indices(&problem.input, mode));
        }
        /* Two passes read every block once, because the blocks stay in memory. */
        CU_ASSERT(tiles.stats.bytes_read <= report.layout_bytes);
        CU_ASSERT_EQUAL(tiles.stats.bytes_cached > 0, cases[i].count > 0);
        problem_destroy(&problem);
    }
}

/* A device gets the short vectors and their maps. */
static void test_device(void)
{
    for (size_t i = 0; i < SLC_COUNT(cases); i += 2) {
        struct problem problem;

        create(&problem, &cases[i]);
        for (unsigned side = FAKE_ALL; side <= FAKE_ODD; side++) {
            struct fake_products fake = {.side = (enum fake_side)side, .lanes = 2, .room = 700};

            fake_products_begin(&fake);
            problem.options.products = &fake.table;
            check_exact(&problem);
            CU_ASSERT_EQUAL(fake.used[problem.options.vectors[0].mode].end > 0, cases[i].count > 0);
            fake_products_end(&fake);
        }
        problem_destroy(&problem);
    }
}

/* The smallest budget is smaller than the vector, and suffices. The result is the same. */
static void test_memory(void)
{
    static const struct short_case ordered = {3, {1 << 22, 50, 3}, 2000, 1, 22, false};
    struct slc_tile_stream tiles = {.io = SLC_IO_PREAD};
    struct slc_contract_report report;
    struct slc_error err = SLC_ERROR_INIT;
    struct problem problem;

    create(&problem, &ordered);
    problem.options.stream = &tiles;
    problem.options.dry_run = true;
    SLC_ASSERT_OK(slc_contract(&problem.options, &report, &err), &err);
    CU_ASSERT_EQUAL(report.used[0].held, report.nnz);
    CU_ASSERT(report.least_bytes - report.process_bytes < ordered.dims[0] * sizeof(double));
    problem.options.dry_run = false;
    problem.options.memory_bytes = named_budget(&problem.options);
    CU_ASSERT(check_exact(&problem));
    problem_destroy(&problem);
}

/* Elements of unused indices are read and checked, too. */
static void test_refused(void)
{
    struct slc_contract_report report;
    struct slc_error err = SLC_ERROR_INIT;
    struct problem problem;

    create(&problem, &cases[7]);
    double *vector = problem.vector[0];
    const uint64_t unused = problem.input.coords[0][0] == 7 ? 8 : 7;
    vector[unused] = NAN;
    problem.options.vectors[0].path = NULL;
    problem.options.vectors[0].values = vector;
    SLC_ASSERT_FAILS(slc_contract(&problem.options, &report, &err), SLC_ERR_INPUT, &err,
                     unused == 7 ? "number 8 of the vector" : "number 9 of the vector");
    SLC_ASSERT_OK(
        slc_npy_write_vector(NULL, problem.vector_path[0], vector, cases[7].dims[0], NULL), &err);
    problem.options.vectors[0].path = problem.vector_path[0];
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_contract(&problem.options, &report, &err), SLC_ERR_INPUT, &err, "is nan");
    CU_ASSERT_STRING_EQUAL(err.file, problem.vector_path[0]);
    CU_ASSERT_FALSE(exists(problem.output));
    problem_destroy(&problem);
}

/* The elements of used indices, from the indices of the input and in the order of the store. The
 * hash covers all elements. */
static void test_labels(void)
{
    enum { LENGTH = 200, FIRST = 20, END = 150 };
    struct slc_operand operand = {.length = LENGTH, .used = {.first = FIRST, .end = END}};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_hash_stream hash;
    struct slc_labels labels;
    double values[LENGTH];

    SLC_ASSERT_OK(slc_labels_create(&labels, LENGTH, &err), &err);
    SLC_ASSERT_OK(slc_operand_allocate_used(&operand, &err), &err);
    for (uint32_t i = 0; i < LENGTH; i++) {
        labels.label[i] = i * 7 % LENGTH;
        values[i] = 1000.0 + i;
    }
    for (uint64_t index = FIRST; index < END; index += 1 + index % 3) {
        slc_used_mark(&operand.used, index);
    }
    slc_used_count(&operand.used);
    for (unsigned relabelled = 0; relabelled < 2; relabelled++) {
        const struct slc_operand_source source = {
            .values = values, .labels = relabelled == 1 ? &labels : NULL, .hash = &hash};
        uint64_t position = 0;

        slc_hash_stream_begin(&hash);
        SLC_ASSERT_OK(slc_operand_load(&operand, &source, &err), &err);
        CU_ASSERT_EQUAL(slc_hash_stream_end(&hash), slc_hash64(values, sizeof values));
        for (uint64_t index = 0; index < LENGTH; index++) {
            /* 7 * 143 is 1 modulo 200. */
            const uint64_t input = relabelled == 1 ? index * 143 % LENGTH : index;

            if (slc_used_has(&operand.used, index)) {
                CU_ASSERT_EQUAL(slc_used_position(&operand.used, index), position);
                CU_ASSERT_EQUAL(slc_matrix_get(&operand.vector, position++, 0), values[input]);
            }
        }
        CU_ASSERT(position == operand.used.count && position > 40);
        slc_matrix_destroy(&operand.vector);
    }
    slc_operand_destroy(&operand);
    slc_labels_destroy(&labels);
}

static const struct slc_test tests[] = {
    {"stores and numbers against a naive specification", test_against_naive},
    {"a device", test_device},
    {"the smallest budget", test_memory},
    {"numbers that are not finite", test_refused},
    {"elements in the order of the store", test_labels},
};

SLC_SUITE(contract_short)
{
    return slc_test_main("contract short", tests, SLC_COUNT(tests), argc, argv);
}
