/* Decompositions with constraints and penalties: they hold, the objective never rises, and a plain
 * computation from the factors yields the same objective; the same bits for any number of threads
 * and after a resume; passes for two modes and replicas; options that contradict each other. */
#include "sorted_fixture.h"

#include "engine/solve/cp_checkpoint.h"
#include "faulty_files.h"
#include "slc_test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MODES = 3, COMPONENTS = 5, NNZ = 6000, ITERATIONS = 8 };

static const uint64_t dims[MODES] = {70, 6, 40};

/* A store with a layout for each mode, and its nonzeros. */
static const struct slc_made_tensor *make_store(const char **ret_path)
{
    static struct slc_made_tensor tensor;
    static char path[512];
    struct slc_error err = SLC_ERROR_INIT;

    *ret_path = path;
    if (path[0] != '\0') {
        return &tensor;
    }
    (void)snprintf(path, sizeof path, "%s/constraint.slc", slc_test_folder());
    slc_made_tensor_create(&tensor, MODES, dims, NNZ, SLC_MADE_DOUBLES, slc_test_seed());
    tensor.tile_nnz = 900;
    SLC_ASSERT_OK(slc_made_store_write(&tensor, NULL, path, SLC_CODEC_PACKED, 4096, &err), &err);
    for (unsigned n = 0; n < MODES; n++) {
        SLC_ASSERT_OK(
            slc_made_store_add_sorted(&tensor, path, n, 700, SLC_CODEC_PACKED, 4096, &err), &err);
    }
    return &tensor;
}

static struct slc_cp_options constrained_options(unsigned iterations)
{
    struct slc_cp_options options = fixture_options(COMPONENTS, iterations);

    options.deterministic = true;
    options.seed = 3;
    for (unsigned n = 0; n < MODES; n++) {
        options.terms[n].nonnegative = true;
    }
    return options;
}

static struct slc_plan_request request_for(unsigned threads, enum slc_passes passes)
{
    struct slc_plan_request request = fixture_request(COMPONENTS);

    request.layouts = SLC_LAYOUTS_SORTED;
    request.passes = passes;
    request.copies = SLC_COPIES_NEVER;
    request.deterministic = true;
    request.threads = threads;
    request.host_rows = true;
    return request;
}

struct history {
    unsigned count;
    double objective[2 * ITERATIONS], fit[2 * ITERATIONS];
};

static void remember(void *context, const struct slc_cp_iteration *iteration)
{
    struct history *history = context;

    history->objective[history->count] = iteration->objective;
    history->fit[history->count++] = iteration->fit;
}

static enum slc_status run_with(const struct slc_plan_request *request,
                                struct slc_cp_options *options,
                                struct history *history,
                                struct slc_cp_result *result,
                                struct slc_error *err)
{
    struct sorted_run run;
    const char *path;

    (void)make_store(&path);
    memset(history, 0, sizeof *history);
    options->iteration = remember;
    options->context = history;
    SLC_ASSERT_OK(plan_run(&run, path, request, err), err);
    CU_ASSERT_TRUE_FATAL(start_run(&run, NULL));
    enum slc_status status =
        slc_cp_run(&run.store, run.stream, run.backend, &run.plan, options, result, err);
    close_run(&run);
    return status;
}

/* Returns half of the squared error of the model. */
static double half_squared_error(const struct slc_cp_result *result)
{
    const char *path;
    const struct slc_made_tensor *tensor = make_store(&path);
    double sum = 0.0, cross = 0.0, squares = 0.0;

    for (uint64_t i = 0; i < tensor->nnz; i++) {
        uint64_t coords[SLC_MAX_ORDER];
        double model = 0.0;

        slc_key_decode(&tensor->keys, slc_key_join(tensor->key_lo[i], 0), coords);
        for (uint32_t r = 0; r < result->rank; r++) {
            double product = result->lambda[r];

            for (unsigned n = 0; n < MODES; n++) {
                product *= slc_matrix_get(&result->factors[n], coords[n], r);
            }
            model += product;
        }
        cross += model * tensor->values[i];
        squares += tensor->values[i] * tensor->values[i];
    }
    for (uint32_t r = 0; r < result->rank; r++) {
        for (uint32_t s = 0; s < result->rank; s++) {
            double product = result->lambda[r] * result->lambda[s];

            for (unsigned n = 0; n < MODES; n++) {
                double inner = 0.0;

                for (uint64_t i = 0; i < result->factors[n].rows; i++) {
                    inner += slc_matrix_get(&result->factors[n], i, r) *
                             slc_matrix_get(&result->factors[n], i, s);
                }
                product *= inner;
            }
            sum += product;
        }
    }
    return (squares + sum - 2.0 * cross) / 2.0;
}

static double least(const struct slc_matrix *factor)
{
    double value = INFINITY;

    for (uint64_t i = 0; i < factor->rows; i++) {
        for (uint32_t r = 0; r < factor->cols; r++) {
            value = fmin(value, slc_matrix_get(factor, i, r));
        }
    }
    return value;
}

/* With nonnegative factors whose columns are normalized, the fit never falls. */
static void nonnegative_fits_never_fall(void)
{
    static const enum slc_value_type types[] = {SLC_F64, SLC_F32};

    for (size_t t = 0; t < SLC_COUNT(types); t++) {
        struct slc_plan_request request = request_for(2, SLC_PASSES_PLAIN);
        struct slc_cp_options options = constrained_options(ITERATIONS);
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_cp_result result;
        struct history history;

        request.precision = types[t];
        SLC_ASSERT_OK(run_with(&request, &options, &history, &result, &err), &err);
        CU_ASSERT_EQUAL(result.algorithm, SLC_CP_HALS);
        for (unsigned n = 0; n < MODES; n++) {
            CU_ASSERT_TRUE(least(&result.factors[n]) >= 0.0);
        }
        for (unsigned i = 1; i < ITERATIONS; i++) {
            CU_ASSERT_TRUE(history.fit[i] >=
                           history.fit[i - 1] - (types[t] == SLC_F32 ? 1e-7 : 1e-13));
        }
        const double error = sqrt(2.0 * half_squared_error(&result)) / result.norm_x;
        CU_ASSERT_TRUE(fabs(1.0 - error - result.fit) <= (types[t] == SLC_F32 ? 1e-5 : 1e-9));
        CU_ASSERT_TRUE(result.fit > 0.01);
        slc_cp_result_destroy(&result);
    }
}

/* With penalties and bounds the objective never rises, and is that of the factors. */
static void objectives_never_rise(void)
{
    const struct slc_plan_request request = request_for(2, SLC_PASSES_PLAIN);
    struct slc_cp_options options = constrained_options(ITERATIONS);
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_cp_result result;
    struct history history;

    options.terms[0].l1 = 0.5;
    options.terms[1].nonnegative = false;
    options.terms[1].ridge = 0.25;
    options.terms[2] = (struct slc_row_terms){.bounded = true, .low = -0.125, .high = 0.3};
    SLC_ASSERT_OK(run_with(&request, &options, &history, &result, &err), &err);
    for (unsigned i = 1; i < ITERATIONS; i++) {
        CU_ASSERT_TRUE(history.objective[i] <= history.objective[i - 1] * (1.0 + 1e-13));
    }
    CU_ASSERT_TRUE(history.objective[0] > history.objective[ITERATIONS - 1]);
    CU_ASSERT_EQUAL(result.objective, history.objective[ITERATIONS - 1]);
    CU_ASSERT_TRUE(result.objective > half_squared_error(&result) * (1.0 + 1e-9));
    CU_ASSERT_TRUE(least(&result.factors[0]) >= 0.0);
    CU_ASSERT_TRUE(least(&result.factors[2]) >= -0.125);
    for (uint64_t i = 0; i < result.factors[2].rows; i++) {
        for (uint32_t r = 0; r < COMPONENTS; r++) {
            CU_ASSERT_TRUE(slc_matrix_get(&result.factors[2], i, r) <= 0.3);
        }
    }
    slc_cp_result_destroy(&result);
}

static bool same_bits(const struct slc_cp_result *a, const struct slc_cp_result *b)
{
    bool same = memcmp(a->lambda, b->lambda, COMPONENTS * sizeof(double)) == 0 && a->fit == b->fit;

    for (unsigned n = 0; n < MODES; n++) {
        const struct slc_matrix *factor = &a->factors[n];

        same = same && memcmp(factor->buffer.data, b->factors[n].buffer.data,
                              factor->rows * factor->pitch * slc_value_bytes(factor->type)) == 0;
    }
    return same;
}

/* Rows on the simplex and smooth columns: the constraints hold, and the objective never rises.
 * Fused passes cannot solve all rows together. */
static void admm_never_raises_the_objective(void)
{
    struct slc_plan_request request = request_for(2, SLC_PASSES_PLAIN);
    struct slc_cp_options options = constrained_options(ITERATIONS);
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_cp_result result;
    struct history history;

    options.terms[1].simplex = true;
    options.terms[2].smooth = 0.3;
    request.beside_bytes = slc_cp_smooth_bytes(options.terms, MODES, dims, COMPONENTS);
    SLC_ASSERT_OK(run_with(&request, &options, &history, &result, &err), &err);
    CU_ASSERT_EQUAL(result.algorithm, SLC_CP_ADMM);
    for (unsigned i = 1; i < ITERATIONS; i++) {
        CU_ASSERT_TRUE(history.objective[i] <= history.objective[i - 1] * (1.0 + 1e-13));
    }
    for (uint64_t i = 0; i < result.factors[1].rows; i++) {
        double sum = 0.0;

        for (uint32_t r = 0; r < COMPONENTS; r++) {
            sum += slc_matrix_get(&result.factors[1], i, r);
        }
        CU_ASSERT_TRUE(fabs(sum - 1.0) <= 1e-14);
    }
    CU_ASSERT_TRUE(least(&result.factors[1]) >= 0.0 && least(&result.factors[2]) >= 0.0);
    slc_cp_result_destroy(&result);

    request.passes = SLC_PASSES_FUSED;
    CU_ASSERT_EQUAL(run_with(&request, &options, &history, &result, &err), SLC_ERR_UNSUPPORTED);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.message, "use plain passes"));
}

/* Any number of threads yields the same bits, with passes for one mode and for two; both kinds of
 * passes agree up to rounding. */
static void bits_do_not_depend_on_threads(void)
{
    static const unsigned threads[] = {1, 2, 7};
    struct slc_cp_result first[2];

    for (unsigned p = 0; p < 2; p++) {
        for (size_t t = 0; t < SLC_COUNT(threads); t++) {
            const struct slc_plan_request request =
                request_for(threads[t], p == 0 ? SLC_PASSES_PLAIN : SLC_PASSES_FUSED);
            struct slc_cp_options options = constrained_options(4);
            struct slc_error err = SLC_ERROR_INIT;
            struct slc_cp_result result;
            struct history history;

            options.terms[1].l1 = 0.01;
            options.mode_order_set = true;
            options.mode_order[0] = 0;
            options.mode_order[1] = 2;
            options.mode_order[2] = 1;
            struct slc_plan_request ordered = request;
            memcpy(ordered.mode_order, options.mode_order, sizeof options.mode_order);
            ordered.mode_order_set = true;
            SLC_ASSERT_OK(run_with(&ordered, &options, &history, &result, &err), &err);
            if (t == 0) {
                first[p] = result;
                continue;
            }
            CU_ASSERT_TRUE(same_bits(&result, &first[p]));
            slc_cp_result_destroy(&result);
        }
    }
    CU_ASSERT_TRUE(fabs(first[0].fit - first[1].fit) <= 1e-10);
    slc_cp_result_destroy(&first[0]);
    slc_cp_result_destroy(&first[1]);
}

struct stopping {
    volatile int stop;
    unsigned left; /* number of checkpoints before the next stop */
};

static void stop_after(void *context, const struct slc_cp_checkpointed *checkpointed)
{
    struct stopping *stopping = context;

    (void)checkpointed;
    if (--stopping->left == 0) {
        stopping->stop = 1;
    }
}

static void ignore(void *context, const struct slc_cp_iteration *iteration)
{
    (void)context;
    (void)iteration;
}

/* Runs until a checkpoint and stops, again and again, until the run is complete. */
static void run_in_pieces(struct slc_cp_options options,
                          enum slc_passes passes,
                          const char *folder,
                          struct slc_cp_result *result)
{
    const char *path;
    bool complete = false;

    (void)make_store(&path);
    for (unsigned piece = 0; piece < 200 && !complete; piece++) {
        struct slc_plan_request request = request_for(1 + piece % 3, passes);
        struct stopping stopping = {.left = 2};
        struct slc_error err = SLC_ERROR_INIT;
        struct sorted_run run;

        request.cache = false;
        options.stop = &stopping.stop;
        options.context = &stopping;
        options.checkpointed = stop_after;
        options.iteration = ignore;
        options.part_bytes = 3 * 4096;
        SLC_ASSERT_OK(plan_run(&run, path, &request, &err), &err);
        CU_ASSERT_TRUE_FATAL(start_run(&run, NULL));
        SLC_ASSERT_OK(
            slc_checkpoint_open(slc_quick_files(), folder, false, &options.checkpoint, &err), &err);
        SLC_ASSERT_OK(
            slc_cp_run(&run.store, run.stream, run.backend, &run.plan, &options, result, &err),
            &err);
        complete = result->reason == SLC_STOP_ITERATIONS;
        if (!complete) {
            slc_cp_result_destroy(result);
        }
        slc_checkpoint_close(options.checkpoint);
        close_run(&run);
    }
    CU_ASSERT_TRUE_FATAL(complete);
}

static void resumed_runs_have_the_same_bits(void)
{
    static const enum slc_passes kinds[] = {SLC_PASSES_PLAIN, SLC_PASSES_FUSED};

    for (size_t k = 0; k < SLC_COUNT(kinds); k++) {
        struct slc_plan_request request = request_for(2, kinds[k]);
        struct slc_cp_options options = constrained_options(3);
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_cp_result whole, pieces;
        struct history history;
        char folder[512];

        options.terms[2].l1 = 0.02;
        request.cache = false;
        (void)snprintf(folder, sizeof folder, "%s/pieces%zu", slc_test_folder(), k);
        SLC_ASSERT_OK(run_with(&request, &options, &history, &whole, &err), &err);
        run_in_pieces(options, kinds[k], folder, &pieces);
        CU_ASSERT_TRUE(same_bits(&whole, &pieces));
        CU_ASSERT_EQUAL(whole.objective, pieces.objective);
        CU_ASSERT_TRUE(pieces.checkpoints.resumes > 3);

        /* A run with another constraint does not resume; the message names the constraint. */
        if (k == 0) {
            options.terms[2].l1 = 0.03;
            struct slc_checkpoint *checkpoint = NULL;
            SLC_ASSERT_OK(slc_checkpoint_open(slc_quick_files(), folder, false, &checkpoint, &err),
                          &err);
            options.checkpoint = checkpoint;
            struct slc_cp_result refused;
            CU_ASSERT_EQUAL(run_with(&request, &options, &history, &refused, &err), SLC_ERR_USAGE);
            CU_ASSERT_PTR_NOT_NULL(strstr(err.message, "constraints is nonnegative; l1 0,0,0.03"));
            slc_checkpoint_close(checkpoint);
        }
        slc_cp_result_destroy(&whole);
        slc_cp_result_destroy(&pieces);
    }
}

static void refuses(struct slc_row_terms terms, enum slc_cp_algorithm algorithm, const char *words)
{
    struct slc_row_terms all[2] = {{.ridge = 0.0}, terms};
    struct slc_error err = SLC_ERROR_INIT;

    CU_ASSERT_EQUAL(slc_cp_choose(all, 2, &algorithm, &err), SLC_ERR_USAGE);
    if (strstr(err.message, words) == NULL) {
        printf("# %s\n", err.message);
    }
    CU_ASSERT_PTR_NOT_NULL(strstr(err.message, words));
}

static void contradictions_are_errors(void)
{
    const double nan = (double)NAN;

    refuses((struct slc_row_terms){.ridge = nan}, SLC_CP_AUTO, "regularization of mode 2 is");
    refuses((struct slc_row_terms){.l1 = -1.0}, SLC_CP_AUTO, "l1 penalty of mode 2 is -1");
    refuses((struct slc_row_terms){.bounded = true, .low = nan, .high = 1.0}, SLC_CP_AUTO,
            "bounds of mode 2 are");
    refuses((struct slc_row_terms){.bounded = true, .low = 2.0, .high = 1.0}, SLC_CP_AUTO,
            "bounds of mode 2 are 2 and 1");
    refuses((struct slc_row_terms){.bounded = true, .nonnegative = true, .low = -2.0, .high = -1.0},
            SLC_CP_AUTO, "nonnegative and at most -1");
    refuses((struct slc_row_terms){.bounded = true, .simplex = true, .low = 2.0, .high = 3.0},
            SLC_CP_AUTO, "on the simplex and between 2 and 3");
    refuses((struct slc_row_terms){.smooth = nan}, SLC_CP_AUTO, "smoothness penalty of mode 2");
    refuses((struct slc_row_terms){.nonnegative = true}, SLC_CP_ALS, "use the method 'hals'");
    refuses((struct slc_row_terms){.simplex = true}, SLC_CP_ALS, "use the method 'admm'");
    refuses((struct slc_row_terms){.smooth = 1.0}, SLC_CP_HALS, "use the method 'admm'");
}

static void names_terms(void)
{
    struct slc_row_terms terms[3] = {{.nonnegative = true}, {.l1 = 0.1}, {.nonnegative = true}};
    char text[SLC_CP_TERMS_BYTES];

    slc_cp_terms_text(terms, 3, text);
    CU_ASSERT_STRING_EQUAL(text, "nonnegative modes 1,3; l1 0,0.1,0");
    terms[1] =
        (struct slc_row_terms){.nonnegative = true, .bounded = true, .low = -INFINITY, .high = 2};
    slc_cp_terms_text(terms, 3, text);
    CU_ASSERT_STRING_EQUAL(text, "nonnegative; bounds of mode 2 -inf,2");
    memset(terms, 0, sizeof terms);
    slc_cp_terms_text(terms, 3, text);
    CU_ASSERT_STRING_EQUAL(text, "");
}

SLC_SUITE(cp_constraint)
{
    static const struct slc_test tests[] = {
        {"fits of nonnegative models never fall", nonnegative_fits_never_fall},
        {"objectives never rise", objectives_never_rise},
        {"ADMM: objectives never rise", admm_never_raises_the_objective},
        {"the same bits for any threads", bits_do_not_depend_on_threads},
        {"the same bits after a resume", resumed_runs_have_the_same_bits},
        {"contradictions are errors", contradictions_are_errors},
        {"names of terms", names_terms},
    };

    return slc_test_main("engine: cp_constraint", tests, SLC_COUNT(tests), argc, argv);
}
