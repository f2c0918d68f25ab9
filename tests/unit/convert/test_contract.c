/*
 * Tensor times vectors against a naive specification.
 *
 * Identity: the result is the store that would be built from the input with each value multiplied
 * by the vectors' numbers and the contracted modes left out. With small integers all sums are
 * exact, whatever their order, so the stores agree bit for bit. With reals the same bits come out
 * of any number of threads and any memory. Refusals name what is wrong; faults leave nothing.
 */
#include "base/fault.h"
#include "base/random.h"
#include "builder_fixture.h"
#include "convert/contract.h"
#include "faulty_files.h"
#include "slc_test.h"
#include "storage/npy.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct build plenty = {.workers = 2, .memory = 200 << 20, .cut = 1000};

/* A store, a vector for some of its modes, and what is to become of them. */
struct problem {
    struct input input;
    char store[256];
    char output[256];
    char vector_path[SLC_MAX_ORDER][256];
    double *vector[SLC_MAX_ORDER];
    unsigned contracted; /* bit n: mode n */
    struct slc_contract_options options;
};

static void naive_dots(const struct slc_fiber_view *fibers, const double *vector, double *sums)
{
    const double *values = fibers->values;

    for (uint32_t r = 0; r < fibers->runs; r++) {
        sums[r] = 0;
        for (uint32_t i = fibers->begin[r]; i < fibers->begin[r + 1]; i++) {
            sums[r] += values[i] * vector[fibers->offset[fibers->mode][i]];
        }
    }
}

static void write_vector(struct problem *problem, unsigned mode, bool integers)
{
    const uint64_t length = problem->input.dims[mode];
    struct slc_error err = SLC_ERROR_INIT;
    char name[32];

    problem->vector[mode] = malloc(length * sizeof(double));
    for (uint64_t i = 0; i < length; i++) {
        const double uniform = slc_random_f64(slc_test_seed(), 60 + mode, i);

        problem->vector[mode][i] =
            integers ? (double)((int)(uniform * 7.0) - 3) : 2.0 * uniform - 1.0;
    }
    (void)snprintf(name, sizeof name, "v%u.npy", mode);
    (void)snprintf(problem->vector_path[mode], sizeof problem->vector_path[mode], "%s/%s",
                   test_folder(), name);
    SLC_ASSERT_OK(slc_npy_write_vector(slc_quick_files(), problem->vector_path[mode],
                                       problem->vector[mode], length, &err),
                  &err);
}

static void problem_create(struct problem *problem,
                           unsigned order,
                           const uint64_t *dims,
                           uint64_t count,
                           unsigned contracted,
                           enum shape shape,
                           bool integers,
                           const struct build *build)
{
    struct slc_builder_report report;
    struct slc_error err = SLC_ERROR_INIT;
    unsigned kept = 0;

    memset(problem, 0, sizeof *problem);
    problem->contracted = contracted;
    (void)snprintf(problem->store, sizeof problem->store, "%s/in.slc", test_folder());
    (void)snprintf(problem->output, sizeof problem->output, "%s/out.slc", test_folder());
    input_create(&problem->input, order, dims, count, 0, shape, slc_test_seed());
    for (uint64_t i = 0; i < count && integers; i++) {
        problem->input.values[i] = (double)slc_random_below(slc_test_seed(), 50, i, 7) - 3;
    }
    SLC_ASSERT_OK(run_build(&problem->input, build, problem->store, true, &report, &err), &err);
    problem->options = (struct slc_contract_options){.files = slc_quick_files(),
                                                     .store = problem->store,
                                                     .dots = naive_dots,
                                                     .codec = SLC_CODEC_PACKED,
                                                     .memory_bytes = UINT64_C(1) << 30,
                                                     .threads = 2};
    for (unsigned mode = 0; mode < order; mode++) {
        if ((contracted >> mode & 1) != 0) {
            const unsigned k = problem->options.vector_count++;

            write_vector(problem, mode, integers);
            problem->options.vectors[k].mode = mode;
            problem->options.vectors[k].path = problem->vector_path[mode];
        } else {
            kept++;
        }
    }
    problem->options.output = kept > 0 ? problem->output : NULL;
}

static void problem_destroy(struct problem *problem)
{
    remove_store(problem->store);
    if (exists(problem->output)) {
        remove_store(problem->output);
    }
    for (unsigned mode = 0; mode < problem->input.order; mode++) {
        free(problem->vector[mode]);
    }
    input_destroy(&problem->input);
}

/* The product of an entry with the vectors' numbers. */
static double product_of(const struct problem *problem, uint64_t i)
{
    double product = problem->input.values[i];

    for (unsigned mode = 0; mode < problem->input.order; mode++) {
        if (problem->vector[mode] != NULL) {
            product *= problem->vector[mode][problem->input.coords[mode][i]];
        }
    }
    return product;
}

/* What the builder would have been given: a view of the input's columns, with products. */
static void derive(const struct problem *problem, struct input *derived)
{
    *derived = (struct input){.count = problem->input.count};
    derived->values = malloc((derived->count + 1) * sizeof(double));
    for (unsigned mode = 0; mode < problem->input.order; mode++) {
        if (problem->vector[mode] == NULL) {
            derived->dims[derived->order] = problem->input.dims[mode];
            derived->coords[derived->order++] = problem->input.coords[mode];
        }
    }
    for (uint64_t i = 0; i < derived->count; i++) {
        derived->values[i] = product_of(problem, i);
    }
}

static void check_exact(struct problem *problem)
{
    struct slc_contract_report report;
    struct slc_error err = SLC_ERROR_INIT;
    struct expected e;
    struct input derived;

    SLC_ASSERT_OK(slc_contract(&problem->options, &report, &err), &err);
    derive(problem, &derived);
    CU_ASSERT_EQUAL(report.order, derived.order);
    if (problem->options.output == NULL) {
        double sum = 0;

        for (uint64_t i = 0; i < derived.count; i++) {
            sum += derived.values[i];
        }
        CU_ASSERT_EQUAL(report.scalar, sum);
        CU_ASSERT_FALSE(exists(problem->output));
    } else {
        expected_create(&e, &derived, run_of(problem->output), SLC_DUPLICATES_SUM, false);
        CU_ASSERT_EQUAL(report.build.summary.nnz, e.count);
        CU_ASSERT_EQUAL(memcmp(report.dims, derived.dims, derived.order * sizeof(uint64_t)), 0);
        check_store(problem->output, &e);
        expected_destroy(&e);
        remove_store(problem->output);
    }
    free(derived.values);
}

struct shape_case {
    unsigned order;
    uint64_t dims[6];
    uint64_t count;
    unsigned contracted;
    enum shape shape;
};

static void test_against_naive(void)
{
    static const struct shape_case cases[] = {
        {1, {50}, 200, 1, UNIFORM},
        {2, {300, 200}, 20000, 2, UNIFORM},
        {2, {300, 200}, 20000, 1, SKEWED},
        {2, {1, 40}, 100, 1, UNIFORM},
        {3, {100, 2000, 60}, 150000, 2, UNIFORM},
        {3, {100, 2000, 60}, 150000, 5, SKEWED},
        {3, {1009, 2003, 71}, 60000, 1, SKEWED},
        {3, {9, 7, 5}, 3000, 7, ZEROS},
        {4, {30, 1, 50, 40}, 20000, 8, UNIFORM},
        {4, {30, 20, 50, 40}, 20000, 6, SORTED},
        {5, {8, 9, 10, 11, 12}, 30000, 4, UNIFORM},
        {6, {3, 4, 1, 5, 6, 7}, 20000, 33, EQUAL},
        {6, {3, 4, 1, 5, 6, 7}, 20000, 63, UNIFORM},
        {3, {1009, 203, 71}, 60000, 0, SKEWED}, /* by no vector: the store itself */
        {3, {10, 20, 30}, 0, 2, UNIFORM},
        {3, {10, 20, 30}, 1, 2, UNIFORM},
        {3, {10, 20, 30}, 0, 7, UNIFORM},
    };

    for (size_t i = 0; i < SLC_COUNT(cases); i++) {
        const struct shape_case *c = &cases[i];

        for (unsigned variant = 0; variant < 3; variant++) {
            struct build build = plenty;
            struct problem problem;

            /* Relabelled modes, and fibers of the first mode kept together. */
            build.relabel = variant == 1 ? SLC_RELABEL_FREQUENCY : SLC_RELABEL_NONE;
            build.fibers = variant == 2 ? SLC_FIBERS_GIVEN : SLC_FIBERS_AUTO;
            build.run.bits = variant == 2 ? 12 : 0;
            problem_create(&problem, c->order, c->dims, c->count, c->contracted, c->shape, true,
                           &build);
            check_exact(&problem);
            problem.options.relabel = SLC_RELABEL_FREQUENCY;
            problem.options.threads = 1;
            if (c->shape != SKEWED && variant == 0) {
                check_exact(&problem);
            }
            problem_destroy(&problem);
        }
    }
}

/* The smallest budget, as the refusal of a smaller one names it. */
static uint64_t named_budget(const struct slc_contract_options *options)
{
    struct slc_contract_options tiny = *options;
    struct slc_contract_report report;
    struct slc_error err = SLC_ERROR_INIT;
    const char *named;
    unsigned long long mib = 0;

    tiny.memory_bytes = 1 << 20;
    SLC_ASSERT_FAILS(slc_contract(&tiny, &report, &err), SLC_ERR_BUDGET, &err,
                     "multiplying this tensor");
    named = strstr(err.message, "--memory ");
    CU_ASSERT_PTR_NOT_NULL_FATAL(named);
    CU_ASSERT_EQUAL_FATAL(sscanf(named, "--memory %lluMiB", &mib), 1);
    return mib << 20;
}

/* The same bits from any number of threads and the least memory that is enough. */
static void test_independence(void)
{
    static const uint64_t dims[] = {200, 3000, 40};
    struct problem problem;
    struct slc_contract_report report;
    struct slc_error err = SLC_ERROR_INIT;
    uint64_t hash = 0;

    problem_create(&problem, 3, dims, 300000, 2, UNIFORM, false, &plenty);
    problem.options.overwrite = true;
    for (unsigned threads = 1; threads <= 5; threads += 2) {
        for (unsigned tight = 0; tight < 2; tight++) {
            uint64_t blocks;

            problem.options.threads = threads;
            problem.options.memory_bytes = UINT64_C(1) << 30;
            if (tight == 1) {
                problem.options.memory_bytes = named_budget(&problem.options);
            }
            slc_error_clear(&err);
            SLC_ASSERT_OK(slc_contract(&problem.options, &report, &err), &err);
            blocks = hash_of(path_in(problem.output, "blco.blk"));
            CU_ASSERT(hash == 0 || hash == blocks);
            hash = blocks;
        }
    }
    problem_destroy(&problem);
}

struct order_case {
    unsigned order;
    uint64_t dims[5];
    uint64_t count;
    unsigned fibers; /* mode whose fibers the store keeps together */
    unsigned contracted;
    enum shape shape;
    bool ordered; /* sums come in the order of the result */
};

static const struct order_case order_cases[] = {
    /* Several tiles of sums, fibers that span tiles, sums that cancel. */
    {3, {2000, 30, 2000}, 250000, 1, 2, UNIFORM, true},
    {3, {2, 100000, 2}, 200000, 1, 2, UNIFORM, true},
    {3, {40, 50, 60}, 100000, 0, 1, SKEWED, true},
    {3, {9, 7, 5}, 3000, 2, 4, ZEROS, true},
    {2, {300, 200}, 20000, 1, 2, SKEWED, true},
    /* Keys beyond 64 bits, of the store and of the result. */
    {4, {1000000, 500, 1000000, 1000000}, 100000, 1, 2, UNIFORM, true},
    {5, {1000000, 1000000, 1000000, 8, 1000000}, 100000, 3, 8, UNIFORM, true},
    /* A contracted mode of length 1 keeps any order. */
    {4, {30, 1, 50, 40}, 20000, 2, 6, UNIFORM, true},
    {4, {30, 1, 50, 40}, 20000, 0, 2, UNIFORM, true},
    {3, {1, 1, 40}, 30, 2, 4, UNIFORM, true},
    {3, {10, 20, 30}, 0, 1, 2, UNIFORM, true},
    {3, {10, 20, 30}, 1, 1, 2, UNIFORM, true},
    /* Other modes, more than the fibers' own, and tiles that end early are sorted. */
    {3, {40, 50, 60}, 100000, 0, 2, UNIFORM, false},
    {3, {40, 50, 60}, 100000, 0, 3, UNIFORM, false},
    {3, {UINT64_C(1) << 33, 10, 5}, 20000, 1, 2, UNIFORM, false},
};

static void create_in_order(struct problem *problem, const struct order_case *c, bool integers)
{
    struct build build = plenty;

    build.fibers = SLC_FIBERS_GIVEN;
    build.run = (struct slc_fiber_run){c->fibers, SLC_FIBER_BITS_MAX};
    problem_create(problem, c->order, c->dims, c->count, c->contracted, c->shape, integers, &build);
    problem->options.fibers = SLC_FIBERS_NONE;
    problem->options.overwrite = true;
    /* Where a run may be inherited. */
    if (c->contracted != 1U << c->fibers && c->ordered) {
        problem->options.fibers = SLC_FIBERS_AUTO;
    }
}

static void test_in_order(void)
{
    for (size_t i = 0; i < SLC_COUNT(order_cases); i++) {
        struct slc_contract_report report;
        struct slc_error err = SLC_ERROR_INIT;
        struct problem problem;

        create_in_order(&problem, &order_cases[i], true);
        SLC_ASSERT_OK(slc_contract(&problem.options, &report, &err), &err);
        CU_ASSERT_EQUAL(report.ordered, order_cases[i].ordered);
        check_exact(&problem);
        problem_destroy(&problem);
    }
}

/* Real values: the file that sorting makes, for any number of threads and the least memory. */
static void test_in_order_bits(void)
{
    for (size_t i = 0; i < SLC_COUNT(order_cases); i++) {
        const struct order_case *c = &order_cases[i];
        struct slc_contract_report report;
        struct slc_error err = SLC_ERROR_INIT;
        struct problem problem;
        uint64_t blocks, manifest;

        if (!c->ordered || c->count == 0) {
            continue;
        }
        create_in_order(&problem, c, false);
        problem.options.sort = true;
        if (problem.options.fibers == SLC_FIBERS_AUTO) {
            /* What is inherited, told apart from what the nonzeros would suggest. */
            problem.options.run = run_of(problem.store);
            problem.options.fibers = (c->contracted >> problem.options.run.mode & 1) != 0
                                         ? SLC_FIBERS_NONE
                                         : SLC_FIBERS_GIVEN;
            problem.options.run.mode -= c->contracted < 1U << problem.options.run.mode;
        }
        SLC_ASSERT_OK(slc_contract(&problem.options, &report, &err), &err);
        CU_ASSERT_FALSE(report.ordered);
        blocks = hash_of(path_in(problem.output, "blco.blk"));
        manifest = hash_of(path_in(problem.output, "tensor.json"));
        problem.options.sort = false;
        for (unsigned threads = 1; threads <= 5; threads += 2) {
            for (unsigned tight = 0; tight < 2; tight++) {
                problem.options.threads = threads;
                problem.options.memory_bytes =
                    tight == 1 ? named_budget(&problem.options) : UINT64_C(1) << 30;
                SLC_ASSERT_OK(slc_contract(&problem.options, &report, &err), &err);
                CU_ASSERT(report.ordered);
                CU_ASSERT_EQUAL(hash_of(path_in(problem.output, "blco.blk")), blocks);
                CU_ASSERT_EQUAL(hash_of(path_in(problem.output, "tensor.json")), manifest);
            }
        }
        problem_destroy(&problem);
    }
}

/* Each tile's part of a fiber is finite, and their sum is not: named, sorted or not. */
static void test_overflow_across_tiles(void)
{
    static const uint64_t dims[] = {1, 300000};
    struct build build = plenty;
    struct problem problem;
    struct slc_contract_report report;
    struct slc_error err = SLC_ERROR_INIT;

    build.fibers = SLC_FIBERS_GIVEN;
    build.run = (struct slc_fiber_run){1, SLC_FIBER_BITS_MAX};
    problem_create(&problem, 2, dims, 300000, 2, UNIFORM, true, &build);
    for (uint64_t i = 0; i < dims[1]; i++) {
        problem.vector[1][i] = 0;
    }
    for (uint64_t i = 0; i < problem.input.count; i++) {
        problem.vector[1][problem.input.coords[1][i]] += problem.input.values[i];
    }
    for (uint64_t i = 0; i < dims[1]; i++) {
        problem.vector[1][i] = copysign(5e302, problem.vector[1][i]);
    }
    SLC_ASSERT_OK(slc_npy_write_vector(slc_quick_files(), problem.vector_path[1], problem.vector[1],
                                       dims[1], &err),
                  &err);
    for (unsigned sort = 0; sort < 2; sort++) {
        problem.options.sort = sort == 1;
        slc_error_clear(&err);
        SLC_ASSERT_FAILS(slc_contract(&problem.options, &report, &err), SLC_ERR_INPUT, &err,
                         sort == 1 ? "(1)" : "the sums at (1) of the result");
        CU_ASSERT_FALSE(exists(problem.output));
        CU_ASSERT_FALSE(exists(path_in(test_folder(), "out.slc.part")));
    }
    problem_destroy(&problem);
}

static void test_number_independence(void)
{
    static const uint64_t dims[] = {200, 3000};
    struct problem problem;
    struct slc_contract_report report;
    struct slc_error err = SLC_ERROR_INIT;
    double first = 0;
    double naive = 0;
    double magnitude = 0;

    problem_create(&problem, 2, dims, 300000, 3, UNIFORM, false, &plenty);
    for (uint64_t i = 0; i < problem.input.count; i++) {
        naive += product_of(&problem, i);
        magnitude += fabs(product_of(&problem, i));
    }
    for (unsigned threads = 1; threads <= 5; threads++) {
        problem.options.threads = threads;
        SLC_ASSERT_OK(slc_contract(&problem.options, &report, &err), &err);
        CU_ASSERT(threads == 1 || report.scalar == first);
        first = report.scalar;
    }
    CU_ASSERT(fabs(first - naive) <= 1e-13 * magnitude);
    problem_destroy(&problem);
}

static void test_refused(void)
{
    static const uint64_t dims[] = {20, 30, 40};
    struct problem problem;
    struct slc_contract_options *options = &problem.options;
    struct slc_contract_options good;
    struct slc_contract_report report;
    struct slc_error err = SLC_ERROR_INIT;
    double values[41];

    problem_create(&problem, 3, dims, 1000, 5, UNIFORM, false, &plenty);
    good = *options;
    options->threads = 0;
    SLC_ASSERT_FAILS(slc_contract(options, &report, &err), SLC_ERR_USAGE, &err, "0 threads");
    *options = good;
    options->vectors[1].mode = 0;
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_contract(options, &report, &err), SLC_ERR_USAGE, &err,
                     "mode 1 has two vectors");
    options->vectors[1].mode = 3;
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_contract(options, &report, &err), SLC_ERR_USAGE, &err,
                     "mode 4 does not exist; the tensor has modes 1 to 3");
    options->vectors[1].mode = 1;
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_contract(options, &report, &err), SLC_ERR_INPUT, &err,
                     "a matrix of 40 x 1, but 30 x 1 is needed");
    *options = good;
    options->output = NULL;
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_contract(options, &report, &err), SLC_ERR_USAGE, &err,
                     "1 of 3 modes have no vector");
    *options = good;
    options->vectors[2].mode = 1;
    options->vectors[2].path = problem.vector_path[0];
    options->vector_count = 3;
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_contract(options, &report, &err), SLC_ERR_USAGE, &err,
                     "the result is a number, not the store");
    *options = good;
    for (size_t i = 0; i < 40; i++) {
        values[i] = i == 7 ? NAN : 1e308;
    }
    slc_error_clear(&err);
    SLC_ASSERT_OK(slc_npy_write_vector(NULL, problem.vector_path[2], values, 40, &err), &err);
    SLC_ASSERT_FAILS(slc_contract(options, &report, &err), SLC_ERR_INPUT, &err,
                     "number 8 of the vector, counting from 1, is nan");
    CU_ASSERT_STRING_EQUAL(err.file, problem.vector_path[2]);
    values[7] = 1e308;
    slc_error_clear(&err);
    SLC_ASSERT_OK(slc_npy_write_vector(NULL, problem.vector_path[2], values, 40, &err), &err);
    SLC_ASSERT_OK(slc_npy_write_vector(NULL, problem.vector_path[0], values, 20, &err), &err);
    SLC_ASSERT_FAILS(slc_contract(options, &report, &err), SLC_ERR_INPUT, &err,
                     "beyond the range of f64: scale the vectors");
    CU_ASSERT_FALSE(exists(problem.output));
    problem_destroy(&problem);
}

/* An existing store stays as it is without overwrite, and a result may replace its own source. */
static void test_existing_output(void)
{
    static const uint64_t dims[] = {20, 30, 40};
    struct problem problem;
    struct slc_contract_report report;
    struct slc_error err = SLC_ERROR_INIT;

    problem_create(&problem, 3, dims, 1000, 2, UNIFORM, true, &plenty);
    problem.options.output = problem.store;
    SLC_ASSERT_FAILS(slc_contract(&problem.options, &report, &err), SLC_ERR_IO, &err, "exists");
    problem.options.overwrite = true;
    slc_error_clear(&err);
    SLC_ASSERT_OK(slc_contract(&problem.options, &report, &err), &err);
    CU_ASSERT_EQUAL(report.order, 2);
    CU_ASSERT_EQUAL(run_of(problem.store).bits, report.build.fibers.run.bits);
    problem_destroy(&problem);
}

/* Of a relabelled store, whose sums are sorted; or with the contracted mode's fibers together. */
static void create_to_fail(struct problem *problem, bool ordered)
{
    static const uint64_t dims[] = {40, 300, 50};
    struct build build = plenty;

    build.relabel = ordered ? SLC_RELABEL_NONE : SLC_RELABEL_FREQUENCY;
    build.fibers = ordered ? SLC_FIBERS_GIVEN : SLC_FIBERS_AUTO;
    build.run = (struct slc_fiber_run){1, ordered ? SLC_FIBER_BITS_MAX : 0};
    problem_create(problem, 3, dims, 70000, 2, SKEWED, true, &build);
    problem->options.sort = !ordered;
}

/* Every file operation fails once: nothing is left, and the source is whole. */
static void fail_files(bool ordered)
{
    static const enum slc_faulty_kind kinds[] = {SLC_FAULTY_OPEN, SLC_FAULTY_READ, SLC_FAULTY_WRITE,
                                                 SLC_FAULTY_STAT, SLC_FAULTY_RENAME};
    struct problem problem;
    struct slc_contract_report report;
    struct slc_error err = SLC_ERROR_INIT;

    create_to_fail(&problem, ordered);
    for (size_t i = 0; i < SLC_COUNT(kinds); i++) {
        for (uint64_t k = 1;; k++) {
            struct slc_faulty faulty;
            enum slc_status status;

            slc_faulty_init(&faulty);
            slc_faulty_fail(&faulty, kinds[i], k, EIO);
            problem.options.files = &faulty.table;
            slc_error_clear(&err);
            status = slc_contract(&problem.options, &report, &err);
            CU_ASSERT_EQUAL(slc_faulty_open_count(&faulty), 0);
            CU_ASSERT_EQUAL(status, err.status);
            CU_ASSERT_FALSE(exists(path_in(test_folder(), "out.slc.part")));
            if (!slc_faulty_fired(&faulty)) {
                SLC_ASSERT_OK(status, &err);
                break;
            }
            CU_ASSERT(status != SLC_OK || exists(problem.output));
            if (exists(problem.output)) {
                remove_store(problem.output);
            }
        }
        problem.options.files = slc_quick_files();
        remove_store(problem.output);
        check_exact(&problem);
    }
    problem_destroy(&problem);
}

static void test_failing_files(void)
{
    fail_files(false);
    fail_files(true);
}

static void fail_memory_and_threads(bool ordered)
{
    static const enum slc_fault_kind kinds[] = {SLC_FAULT_ALLOCATION, SLC_FAULT_THREAD};
    struct problem problem;
    struct slc_contract_report report;
    struct slc_error err = SLC_ERROR_INIT;

    create_to_fail(&problem, ordered);
    for (size_t i = 0; i < SLC_COUNT(kinds); i++) {
        for (uint64_t k = 1;; k++) {
            enum slc_status status;
            bool over;

            slc_error_clear(&err);
            slc_fault_arm(kinds[i], k);
            status = slc_contract(&problem.options, &report, &err);
            over = slc_fault_seen(kinds[i]) < k;
            slc_fault_arm(kinds[i], 0);
            if (over) {
                SLC_ASSERT_OK(status, &err);
                CU_ASSERT_EQUAL(report.ordered, ordered);
                break;
            }
            CU_ASSERT(status == (i == 0 ? SLC_ERR_MEMORY : SLC_ERR_SYSTEM));
            CU_ASSERT_FALSE(exists(path_in(test_folder(), "out.slc.part")));
            CU_ASSERT_FALSE(exists(problem.output));
        }
        remove_store(problem.output);
    }
    problem_destroy(&problem);
}

static void test_failing_memory_and_threads(void)
{
    fail_memory_and_threads(false);
    fail_memory_and_threads(true);
}

static const struct slc_test tests[] = {
    {"stores and numbers against a naive specification", test_against_naive},
    {"threads and memory change nothing", test_independence},
    {"sums that come in order", test_in_order},
    {"sums that come in order make the bits of sorting", test_in_order_bits},
    {"sums beyond f64 of several tiles", test_overflow_across_tiles},
    {"threads do not change a number", test_number_independence},
    {"refusals", test_refused},
    {"an output that exists", test_existing_output},
    {"failing file operations", test_failing_files},
    {"failing memory and threads", test_failing_memory_and_threads},
};

int main(int argc, char **argv)
{
    return slc_test_main("contract", tests, SLC_COUNT(tests), argc, argv);
}
