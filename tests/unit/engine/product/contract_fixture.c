/* Contracts random stores and compares with a naive product. */
#include "contract_fixture.h"

#include "base/random.h"
#include "faulty_files.h"
#include "slc_test.h"
#include "storage/model/npy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct build plenty = {.workers = 2, .memory = 200 << 20, .cut = 1000};

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

void problem_create(struct problem *problem,
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

void problem_destroy(struct problem *problem)
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

double product_of(const struct problem *problem, uint64_t i)
{
    double product = problem->input.values[i];

    for (unsigned mode = 0; mode < problem->input.order; mode++) {
        if (problem->vector[mode] != NULL) {
            product *= problem->vector[mode][problem->input.coords[mode][i]];
        }
    }
    return product;
}

/* The input of an equivalent build: a view of the input's columns, with products as values. */
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

bool check_exact(struct problem *problem)
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
    return report.ordered;
}

uint64_t named_budget(const struct slc_contract_options *options)
{
    struct slc_contract_options tiny = *options;
    struct slc_contract_report report;
    struct slc_error err = SLC_ERROR_INIT;
    const char *named;
    unsigned long long mib = 0;

    tiny.memory_bytes = 1 << 20;
    SLC_ASSERT_FAILS(slc_contract(&tiny, &report, &err), SLC_ERR_BUDGET, &err,
                     "multiplying this tensor");
    named = strstr(err.message, " needs ");
    CU_ASSERT_PTR_NOT_NULL_FATAL(named);
    CU_ASSERT_EQUAL_FATAL(sscanf(named, " needs %llu MiB", &mib), 1);
    return mib << 20;
}
