/* Row solvers of the program: rows are updated by its functions, with the same bits for any number
 * of threads, and checkpoints are bound to the name of the solver. */
#include "api_test.h"
#include "sluice/row_solver.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ITERATIONS = 6, STEPS = 3 };

/* A solver of least squares by Jacobi steps, with a ridge of 0.1, and what it saw. */
struct jacobi {
    uint32_t rank; /* rank that `begin` accepts */
    double scale;  /* factor of the steps; NAN makes rows that are not finite */
    unsigned modes, iterations;
    double objectives[ITERATIONS + 1];
};

static uint64_t sums_of(void *context, uint32_t rank)
{
    (void)context;
    return 2 * (uint64_t)rank;
}

static uint64_t memory_of(void *context, uint32_t rank)
{
    (void)context;
    (void)rank;
    return 1;
}

static int begin(void *context, const struct sluice_row_mode *mode)
{
    struct jacobi *jacobi = context;

    jacobi->modes++;
    CU_ASSERT_EQUAL(mode->order, 3);
    CU_ASSERT(mode->mode < 3 && mode->iteration >= 1 && mode->iteration <= ITERATIONS);
    return mode->rank != jacobi->rank;
}

static void start(void *context, uint32_t worker, struct sluice_row *row)
{
    const struct jacobi *jacobi = context;

    (void)worker;
    row->memory[0] = jacobi->scale;
}

static double model_of(const struct sluice_row *row, const double *product)
{
    double model = 0.0;

    for (uint32_t r = 0; r < row->rank; r++) {
        model += product[r] * row->x[r];
    }
    return model;
}

static void add(void *context,
                uint32_t worker,
                const struct sluice_row *row,
                const struct sluice_row_piece *piece,
                double *sums)
{
    (void)context;
    (void)worker;
    for (uint32_t i = 0; i < piece->nnz; i++) {
        const double *product = piece->products + (size_t)i * piece->pitch;
        const double residual = piece->values[i] - model_of(row, product);
        double size = 0.0;

        for (uint32_t r = 0; r < row->rank; r++) {
            size += fabs(product[r]);
        }
        for (uint32_t r = 0; r < row->rank; r++) {
            sums[r] += residual * product[r];
            sums[row->rank + r] += fabs(product[r]) * size;
        }
    }
}

static int step(void *context, uint32_t worker, struct sluice_row *row, const double *sums)
{
    (void)context;
    (void)worker;
    for (uint32_t r = 0; r < row->rank; r++) {
        row->x[r] += row->memory[0] * (sums[r] - 0.1 * row->x[r]) / (sums[row->rank + r] + 0.1);
    }
    return row->traversals < STEPS;
}

static double objective(void *context,
                        uint32_t worker,
                        const struct sluice_row *row,
                        const struct sluice_row_piece *piece)
{
    double sum = 0.0;

    (void)context;
    (void)worker;
    for (uint32_t i = 0; i < piece->nnz; i++) {
        const double residual =
            piece->values[i] - model_of(row, piece->products + (size_t)i * piece->pitch);

        sum += residual * residual;
    }
    return sum;
}

static int on_iteration(void *context, const struct sluice_iteration *iteration)
{
    struct jacobi *jacobi = context;

    if (iteration->iteration <= ITERATIONS) {
        jacobi->objectives[iteration->iteration] = iteration->objective;
    }
    jacobi->iterations = iteration->iteration;
    return 0;
}

static struct sluice_row_solver solver_of(struct jacobi *jacobi)
{
    return (struct sluice_row_solver){.struct_bytes = sizeof(struct sluice_row_solver),
                                      .name = "jacobi",
                                      .context = jacobi,
                                      .sums = sums_of,
                                      .memory = memory_of,
                                      .begin = begin,
                                      .start = start,
                                      .add = add,
                                      .step = step,
                                      .objective = objective};
}

static struct sluice_cpd_options options_of(const struct sluice_row_solver *solver)
{
    struct sluice_cpd_options options = {.struct_bytes = sizeof options,
                                         .iterations = ITERATIONS,
                                         .tolerance = -1,
                                         .iteration = on_iteration,
                                         .row_solver = solver};

    options.compute.deterministic = 1;
    options.run.context = solver->context;
    return options;
}

static struct sluice_store *made_store(void)
{
    static const uint64_t dims[3] = {40, 30, 20};
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_store *store = NULL;
    char path[600];

    snprintf(path, sizeof path, "%s/made.slc", slc_test_folder());
    API_OK(sluice_generate(path, 3, dims, 8000, NULL, &err), &err);
    API_OK(sluice_store_open(path, &store, &err), &err);
    return store;
}

static void rows_are_updated(void)
{
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_store *store = made_store();
    double factors[2][40 * 4] = {{0}};

    for (unsigned t = 0; t < 2; t++) {
        struct jacobi jacobi = {.rank = 4, .scale = 1.0};
        const struct sluice_row_solver solver = solver_of(&jacobi);
        struct sluice_cpd_options options = options_of(&solver);
        struct sluice_plan plan = {.struct_bytes = sizeof plan};
        struct sluice_model *model = NULL;

        options.run.threads = t == 0 ? 1 : 3;
        API_OK(sluice_cpd_plan(store, 4, &options, &plan, &err), &err);
        API_OK(sluice_cpd(store, 4, &options, &model, &err), &err);
        CU_ASSERT_EQUAL(jacobi.iterations, ITERATIONS);
        CU_ASSERT(jacobi.modes >= 3 * ITERATIONS);
        for (unsigned i = 2; i <= ITERATIONS; i++) {
            CU_ASSERT(jacobi.objectives[i] > 0.0);
            CU_ASSERT(jacobi.objectives[i] <= jacobi.objectives[i - 1]);
        }
        api_factor(model, 0, factors[t], SLC_COUNT(factors[t]));
        CU_ASSERT_PTR_NOT_NULL(strstr(sluice_model_record(model), "\"row_solver\": \"jacobi\""));
        sluice_model_destroy(model);
    }
    CU_ASSERT_EQUAL(memcmp(factors[0], factors[1], sizeof factors[0]), 0);
    sluice_store_close(store);
}

/* Runs sluice_cpd and expects a failure with `part` in the message. */
static void expect_failure(const struct sluice_store *store,
                           const struct sluice_cpd_options *options,
                           enum sluice_status status,
                           const char *part)
{
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_model *model = NULL;

    API_FAILS(sluice_cpd(store, 4, options, &model, &err), status, &err, part);
    CU_ASSERT_PTR_NULL(model);
}

static void faults_are_reported(void)
{
    struct sluice_store *store = made_store();
    struct jacobi jacobi = {.rank = 4, .scale = 1.0};
    struct sluice_row_solver solver = solver_of(&jacobi);
    struct sluice_cpd_options options = options_of(&solver);

    solver.add = NULL;
    expect_failure(store, &options, SLUICE_ERR_USAGE, "jacobi needs the functions sums, add");
    solver.add = add;
    solver.name = "";
    expect_failure(store, &options, SLUICE_ERR_USAGE, "a name of 1 to 63 bytes");
    solver.name = "jacobi";
    options.method = SLUICE_METHOD_ALS;
    expect_failure(store, &options, SLUICE_ERR_USAGE, "a row solver replaces");
    options.method = SLUICE_METHOD_AUTO;
    options.biases = SLUICE_BIASES_ALL;
    expect_failure(store, &options, SLUICE_ERR_USAGE, "a row solver replaces");
    options.biases = SLUICE_BIASES_AUTO;
    jacobi.rank = 5;
    expect_failure(store, &options, SLUICE_ERR_USAGE, "jacobi does not accept mode");
    jacobi.rank = 4;
    jacobi.scale = NAN;
    expect_failure(store, &options, SLUICE_ERR_NUMERIC, "not finite");
    sluice_store_close(store);
}

static void checkpoints_have_the_name(void)
{
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_store *store = made_store();
    struct jacobi jacobi = {.rank = 4, .scale = 1.0};
    struct sluice_row_solver solver = solver_of(&jacobi);
    struct sluice_cpd_options options = options_of(&solver);
    struct sluice_model *model = NULL;
    char folder[600];

    snprintf(folder, sizeof folder, "%s/checkpoint", slc_test_folder());
    options.checkpoint_folder = folder;
    options.checkpoint_seconds = -1;
    options.iterations = 2;
    API_OK(sluice_cpd(store, 4, &options, &model, &err), &err);
    sluice_model_destroy(model);
    model = NULL;
    solver.name = "another";
    options.iterations = ITERATIONS;
    expect_failure(store, &options, SLUICE_ERR_USAGE, "row solver");
    solver.name = "jacobi";
    API_OK(sluice_cpd(store, 4, &options, &model, &err), &err);
    CU_ASSERT_EQUAL(jacobi.iterations, ITERATIONS);
    sluice_model_destroy(model);
    sluice_store_close(store);
}

SLC_SUITE(row_solver)
{
    static const struct slc_test tests[] = {
        {"rows are updated by the functions of the program", rows_are_updated},
        {"faults of a solver are reported", faults_are_reported},
        {"a checkpoint has the name of the solver", checkpoints_have_the_name},
    };

    return slc_test_main("api: row solver", tests, SLC_COUNT(tests), argc, argv);
}
