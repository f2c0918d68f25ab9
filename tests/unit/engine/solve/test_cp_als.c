/* CP-ALS: the same iterates as a naive implementation, the conventions of its result, every reason
 * to stop, degenerate tensors, and the failure of every allocation. test_cp_repeat.c tests that no
 * bit depends on threads, I/O or storage. */
#include "base/error/fault.h"
#include "naive_cp.h"
#include "one_layout.h"
#include "slc_test.h"

#include <limits.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { HISTORY = 64 };

/* Values seen by the callback. */
struct history {
    unsigned count;
    struct slc_cp_iteration iterations[HISTORY];
    int *stop; /* stop flag to set after the first iteration, or NULL */
};

static void remember(void *context, const struct slc_cp_iteration *iteration)
{
    struct history *history = context;

    CU_ASSERT_TRUE_FATAL(history->count < HISTORY);
    history->iterations[history->count++] = *iteration;
    if (history->stop != NULL) {
        *history->stop = 1;
    }
}

/* Makes a store and opens a run over it. */
static void open_run(struct fixture_run *run,
                     const struct fixture_tensor *tensor,
                     const char *name,
                     const struct slc_plan_request *request)
{
    struct slc_error err = SLC_ERROR_INIT;
    char path[512];

    fixture_store(tensor, slc_test_folder(), name, SLC_CODEC_PACKED, 4096, path);
    SLC_ASSERT_OK(fixture_open(run, path, request, &err), &err);
}

static enum slc_status decompose(struct fixture_run *run,
                                 const struct slc_cp_options *options,
                                 struct slc_cp_result *result,
                                 struct slc_error *err)
{
    return slc_cp_run(&run->store, run->stream, run->backend, &run->plan, options, result, err);
}

/* Unit columns, descending weights, at most one factor of a component negative at its largest
 * element: the factor with the largest ratio of its extremes of both signs. */
static void check_conventions(const struct slc_cp_result *result, double tolerance)
{
    for (uint32_t r = 0; r < result->rank; r++) {
        unsigned negative = 0, least_certain = 0, negative_mode = SLC_MAX_ORDER;
        double most = -1.0;

        CU_ASSERT_TRUE(result->lambda[r] >= 0.0);
        CU_ASSERT_TRUE(r == 0 || result->lambda[r] <= result->lambda[r - 1]);
        for (unsigned n = 0; n < result->order; n++) {
            double norm = 0.0, largest = 0.0, low = 0.0, high = 0.0;

            for (uint64_t i = 0; i < result->factors[n].rows; i++) {
                const double a = slc_matrix_get(&result->factors[n], i, r);

                norm += a * a;
                largest = fabs(a) > fabs(largest) ? a : largest;
                low = fmax(low, -a);
                high = fmax(high, a);
            }
            if (largest < 0.0) {
                negative++;
                negative_mode = n;
            }
            if (largest != 0.0 && fmin(low, high) / fmax(low, high) >= most) {
                most = fmin(low, high) / fmax(low, high);
                least_certain = n;
            }
            CU_ASSERT_TRUE(result->lambda[r] == 0.0 || fabs(sqrt(norm) - 1.0) <= tolerance);
        }
        CU_ASSERT_TRUE(negative == 0 || (negative == 1 && negative_mode == least_certain));
    }
}

static void compare_with_naive(unsigned order,
                               const uint64_t *dims,
                               const unsigned *mode_order,
                               double regularization,
                               enum slc_copies copies)
{
    /* So many iterations that replicas are created automatically. */
    enum { RANK = 3, ITERATIONS = 2 * SLC_CP_COPIES_AFTER + 1 };
    const uint64_t seed = slc_test_seed() + order;
    struct slc_plan_request request = fixture_request(RANK);
    struct slc_cp_options options = fixture_options(RANK, ITERATIONS);
    struct history history = {0};
    struct fixture_tensor tensor;
    struct fixture_run run;
    struct slc_cp_result result;
    struct naive_cp naive;
    struct slc_error err = SLC_ERROR_INIT;
    char name[32];

    fixture_random(&tensor, order, dims, 400, seed);
    snprintf(name, sizeof name, "naive%u%u%d%d", order, mode_order[0], regularization > 0.0,
             (int)copies);
    request.copies = copies;
    open_run(&run, &tensor, name, &request);
    options.seed = seed;
    fixture_regularize(&options, regularization);
    options.iteration = remember;
    options.context = &history;
    options.mode_order_set = true;
    memcpy(options.mode_order, mode_order, order * sizeof *mode_order);
    SLC_ASSERT_OK(decompose(&run, &options, &result, &err), &err);

    CU_ASSERT_EQUAL(history.count, ITERATIONS);
    CU_ASSERT_EQUAL(result.iterations, ITERATIONS);
    CU_ASSERT_EQUAL(result.reason, SLC_STOP_ITERATIONS);
    CU_ASSERT_EQUAL(result.copies_after, copies == SLC_COPIES_NEVER    ? UINT_MAX
                                         : copies == SLC_COPIES_ALWAYS ? 0
                                                                       : SLC_CP_COPIES_AFTER);
    naive_start(&naive, &tensor, RANK, seed);
    for (unsigned i = 0; i < history.count; i++) {
        const struct slc_cp_iteration *seen = &history.iterations[i];
        double fit;

        naive_iterate(&naive, &tensor, mode_order, i + 1, regularization);
        fit = naive_fit(&naive, &tensor);
        CU_ASSERT_TRUE(fabs(seen->fit - fit) <= 1e-9);
        CU_ASSERT_EQUAL(seen->iteration, i + 1);
        CU_ASSERT_EQUAL(seen->delta, i == 0 ? seen->fit : seen->fit - seen[-1].fit);
        for (unsigned n = 0; n < order; n++) {
            CU_ASSERT_FALSE(seen->singular[n]);
        }
    }
    CU_ASSERT_EQUAL(result.fit, history.iterations[ITERATIONS - 1].fit);
    CU_ASSERT_TRUE(naive_distance(&naive, &result) <= 1e-8);
    check_conventions(&result, 1e-12);
    naive_destroy(&naive);
    slc_cp_result_destroy(&result);
    fixture_close(&run);
    fixture_destroy(&tensor);
}

static void follows_the_naive_one(void)
{
    static const uint64_t dims[4][5] = {{23, 31}, {13, 9, 11}, {7, 6, 5, 8}, {5, 4, 6, 3, 7}};
    static const unsigned straight[5] = {0, 1, 2, 3, 4};

    for (unsigned order = 2; order <= 5; order++) {
        compare_with_naive(order, dims[order - 2], straight, 0.0, SLC_COPIES_NEVER);
        compare_with_naive(order, dims[order - 2], straight, 0.0, SLC_COPIES_AUTO);
        compare_with_naive(order, dims[order - 2], straight, 0.0, SLC_COPIES_ALWAYS);
    }
}

static void follows_the_order_of_modes(void)
{
    static const uint64_t dims[4] = {7, 6, 5, 8};
    static const unsigned backwards[3] = {2, 1, 0};
    static const unsigned mixed[4] = {1, 3, 0, 2};

    compare_with_naive(3, dims, backwards, 0.0, SLC_COPIES_NEVER);
    compare_with_naive(4, dims, mixed, 0.0, SLC_COPIES_ALWAYS);
}

static void regularizes(void)
{
    static const uint64_t dims[3] = {13, 9, 11};
    static const unsigned straight[3] = {0, 1, 2};

    compare_with_naive(3, dims, straight, 0.25, SLC_COPIES_NEVER);
}

/* A tensor of 13 x 9 x 11 opened for rank 3, as most tests below need. */
static void open_small(struct fixture_tensor *tensor,
                       struct fixture_run *run,
                       const struct slc_plan_request *request)
{
    static const uint64_t dims[3] = {13, 9, 11};

    fixture_random(tensor, 3, dims, 400, slc_test_seed());
    open_run(run, tensor, "small", request);
}

static void single_precision_comes_close(void)
{
    struct slc_plan_request request = fixture_request(3);
    const struct slc_cp_options options = fixture_options(3, 10);
    struct fixture_tensor tensor;
    struct fixture_run run;
    struct slc_cp_result result;
    struct naive_cp naive;
    struct slc_error err = SLC_ERROR_INIT;
    static const unsigned straight[3] = {0, 1, 2};

    request.precision = SLC_F32;
    open_small(&tensor, &run, &request);
    SLC_ASSERT_OK(decompose(&run, &options, &result, &err), &err);
    CU_ASSERT_EQUAL(result.factors[0].type, SLC_F32);
    naive_start(&naive, &tensor, 3, 0);
    for (unsigned i = 1; i <= 10; i++) {
        naive_iterate(&naive, &tensor, straight, i, 0.0);
    }
    CU_ASSERT_TRUE(fabs(result.fit - naive_fit(&naive, &tensor)) <= 1e-5);
    check_conventions(&result, 1e-6);
    naive_destroy(&naive);
    slc_cp_result_destroy(&result);
    fixture_close(&run);
    fixture_destroy(&tensor);
}

static void stops_for_every_reason(void)
{
    const struct slc_plan_request request = fixture_request(3);
    struct slc_cp_options options = fixture_options(3, 50);
    struct history history = {0};
    struct fixture_tensor tensor;
    struct fixture_run run;
    struct slc_cp_result result;
    struct slc_error err = SLC_ERROR_INIT;
    int stop = 0;

    open_small(&tensor, &run, &request);
    options.iteration = remember;
    options.context = &history;

    options.tolerance = 1e-3;
    SLC_ASSERT_OK(decompose(&run, &options, &result, &err), &err);
    CU_ASSERT_EQUAL(result.reason, SLC_STOP_TOLERANCE);
    CU_ASSERT_TRUE(result.iterations >= 2 && result.iterations < 50);
    /* A run stops at the first three consecutive changes below the tolerance, relative to the fit
     * and to 1 - fit. */
    for (unsigned i = 1, small = 0; i < history.count; i++) {
        const double fit = history.iterations[i].fit;

        small = fabs(history.iterations[i].delta) < 1e-3 * fmin(fit, 1.0 - fit) ? small + 1 : 0;
        CU_ASSERT_EQUAL(small == 3, i + 1 == history.count);
    }
    slc_cp_result_destroy(&result);

    /* Even a tolerance that every change meets needs three changes. */
    options.tolerance = 10.0;
    history.count = 0;
    SLC_ASSERT_OK(decompose(&run, &options, &result, &err), &err);
    CU_ASSERT_EQUAL(result.iterations, 4);
    slc_cp_result_destroy(&result);

    options.tolerance = 0.0;
    options.max_seconds = 1e-9;
    history.count = 0;
    SLC_ASSERT_OK(decompose(&run, &options, &result, &err), &err);
    CU_ASSERT_EQUAL(result.reason, SLC_STOP_TIME);
    CU_ASSERT_EQUAL(result.iterations, 0);
    check_conventions(&result, 1e-12);
    slc_cp_result_destroy(&result);

    options.max_seconds = 0.0;
    options.stop = &stop;
    history.stop = &stop;
    SLC_ASSERT_OK(decompose(&run, &options, &result, &err), &err);
    CU_ASSERT_EQUAL(result.reason, SLC_STOP_SIGNAL);
    CU_ASSERT_EQUAL(result.iterations, 1);
    CU_ASSERT_EQUAL(history.count, 1);
    CU_ASSERT_EQUAL(result.fit, history.iterations[0].fit);
    check_conventions(&result, 1e-12);
    slc_cp_result_destroy(&result);
    fixture_close(&run);
    fixture_destroy(&tensor);
}

/* The operating system's files, but the k-th read sets a stop flag. */
struct interrupter {
    struct slc_files files;
    atomic_uint countdown; /* reads, by any thread, until the flag is set */
    int stop;
};

static int64_t interrupting_read(void *self, int fd, void *data, uint64_t bytes, uint64_t offset)
{
    struct interrupter *interrupter = self;
    const struct slc_files *files = slc_files_system();

    if (atomic_fetch_sub(&interrupter->countdown, 1) == 1) {
        __atomic_store_n(&interrupter->stop, 1, __ATOMIC_RELAXED);
    }
    return files->read_at(files->self, fd, data, bytes, offset);
}

static void stops_inside_a_pass(void)
{
    static const uint64_t dims[3] = {300, 200, 100};
    struct slc_plan_request request = fixture_request(8);
    struct slc_cp_options options = fixture_options(8, 100);
    struct interrupter interrupter = {.files = *slc_files_system()};
    struct fixture_tensor tensor;
    struct fixture_run run;
    struct slc_error err = SLC_ERROR_INIT;

    /* Ten blocks through two slots without a cache: the 15th read belongs to the second pass. */
    fixture_random(&tensor, 3, dims, 700000, slc_test_seed());
    request.cache = false;
    request.slots = 2;
    open_run(&run, &tensor, "interrupted", &request);
    slc_stream_close(run.stream);
    interrupter.files.self = &interrupter;
    interrupter.files.read_at = interrupting_read;
    SLC_ASSERT_OK(stream_one(&interrupter.files, run.store.reader, &run.plan, &run.stream, &err),
                  &err);
    options.stop = &interrupter.stop;
    for (unsigned reads = 15; reads <= 65; reads += 50) {
        struct slc_cp_result result;

        interrupter.stop = 0;
        atomic_store(&interrupter.countdown, reads);
        SLC_ASSERT_OK(decompose(&run, &options, &result, &err), &err);
        CU_ASSERT_EQUAL(result.reason, SLC_STOP_SIGNAL);
        CU_ASSERT_TRUE(result.iterations <= reads / 30);
        check_conventions(&result, 1e-12);
        slc_cp_result_destroy(&result);
    }
    fixture_close(&run);
    fixture_destroy(&tensor);
}

static bool same_bits(const struct slc_cp_result *a, const struct slc_cp_result *b)
{
    bool same = memcmp(a->lambda, b->lambda, a->rank * sizeof(double)) == 0 && a->fit == b->fit;

    for (unsigned n = 0; n < a->order; n++) {
        same = same && memcmp(a->factors[n].buffer.data, b->factors[n].buffer.data,
                              a->factors[n].rows * a->factors[n].pitch * sizeof(double)) == 0;
    }
    return same;
}

static void save_start(const struct naive_cp *start, const char *folder)
{
    struct slc_model_view view = {
        .order = start->order, .rank = start->rank, .lambda = start->lambda};
    struct slc_error err = SLC_ERROR_INIT;

    for (unsigned n = 0; n < start->order; n++) {
        view.factors[n] = &start->factors[n];
    }
    SLC_ASSERT_OK(slc_model_write(slc_files_system(), SLC_MODEL_NPY, folder, &view, &err), &err);
}

static void starts_from_files(void)
{
    struct slc_plan_request request = fixture_request(3);
    struct slc_cp_options options = fixture_options(3, 5);
    struct fixture_tensor tensor;
    struct fixture_run run;
    struct slc_cp_result from_seed, from_files;
    struct naive_cp start;
    struct slc_error err = SLC_ERROR_INIT;
    char folder[600], file[640];

    request.deterministic = true;
    options.deterministic = true;
    options.seed = 11;
    open_small(&tensor, &run, &request);
    SLC_ASSERT_OK(decompose(&run, &options, &from_seed, &err), &err);

    naive_start(&start, &tensor, 3, 11);
    for (unsigned r = 0; r < 3; r++) {
        start.lambda[r] = 3.0 - r;
    }
    snprintf(folder, sizeof folder, "%s/start", slc_test_folder());
    save_start(&start, folder);
    options.seed = 0;
    options.init_folder = folder;
    SLC_ASSERT_OK(decompose(&run, &options, &from_files, &err), &err);
    CU_ASSERT_TRUE(same_bits(&from_seed, &from_files));
    slc_cp_result_destroy(&from_files);

    /* Without iterations, the result is the start with its weights. */
    options.iterations = 0;
    SLC_ASSERT_OK(decompose(&run, &options, &from_files, &err), &err);
    CU_ASSERT_TRUE(naive_distance(&start, &from_files) <= 1e-12);
    CU_ASSERT_EQUAL(from_files.iterations, 0);
    check_conventions(&from_files, 1e-12);
    slc_cp_result_destroy(&from_files);

    /* A NaN is detected in any mode, although iterations would overwrite the first mode's. */
    options.iterations = 5;
    slc_matrix_set(&start.factors[0], 1, 2, NAN);
    save_start(&start, folder);
    SLC_ASSERT_FAILS(decompose(&run, &options, &from_files, &err), SLC_ERR_INPUT, &err,
                     "row 2, column 3, counting from 1, is nan");
    slc_error_clear(&err);

    slc_matrix_set(&start.factors[0], 1, 2, 0.5);
    save_start(&start, folder);
    snprintf(file, sizeof file, "%s/mode-2.npy", folder);
    CU_ASSERT_EQUAL(remove(file), 0);
    SLC_ASSERT_FAILS(decompose(&run, &options, &from_files, &err), SLC_ERR_IO, &err, "");
    CU_ASSERT_PTR_NULL(from_files.lambda);
    naive_destroy(&start);
    slc_cp_result_destroy(&from_seed);
    fixture_close(&run);
    fixture_destroy(&tensor);
}

static void empty_tensors_have_their_own_message(void)
{
    static const uint64_t dims[2] = {4, 5};
    const struct slc_plan_request request = fixture_request(2);
    const struct slc_cp_options options = fixture_options(2, 5);
    struct fixture_tensor tensor;
    struct fixture_run run;
    struct slc_cp_result result;
    struct slc_error err = SLC_ERROR_INIT;

    fixture_random(&tensor, 2, dims, 0, 1);
    open_run(&run, &tensor, "empty", &request);
    SLC_ASSERT_FAILS(decompose(&run, &options, &result, &err), SLC_ERR_NUMERIC, &err,
                     "no nonzeros");
    CU_ASSERT_PTR_NULL(result.lambda);
    fixture_close(&run);
    fixture_destroy(&tensor);
}

static void decompose_degenerate(
    unsigned order, const uint64_t *dims, uint64_t draws, uint32_t rank, bool singular)
{
    const struct slc_plan_request request = fixture_request(rank);
    struct slc_cp_options options = fixture_options(rank, 30);
    struct history history = {0};
    struct fixture_tensor tensor;
    struct fixture_run run;
    struct slc_cp_result result;
    struct slc_error err = SLC_ERROR_INIT;
    bool seen = false;
    char name[32];

    options.iteration = remember;
    options.context = &history;
    snprintf(name, sizeof name, "degenerate%u-%u", order, rank);
    fixture_random(&tensor, order, dims, draws, slc_test_seed());
    open_run(&run, &tensor, name, &request);
    SLC_ASSERT_OK(decompose(&run, &options, &result, &err), &err);
    CU_ASSERT_TRUE(fabs(result.fit - 1.0) <= 1e-6);
    check_conventions(&result, 1e-12);
    for (unsigned i = 0; i < history.count; i++) {
        for (unsigned n = 0; n < order; n++) {
            seen = seen || history.iterations[i].singular[n];
        }
    }
    CU_ASSERT_EQUAL(seen, singular);
    slc_cp_result_destroy(&result);
    fixture_close(&run);
    fixture_destroy(&tensor);
}

static void degenerate_tensors_are_fitted(void)
{
    static const uint64_t vector[1] = {50};
    static const uint64_t flat[2] = {2, 7};
    static const uint64_t ones[4] = {1, 6, 1, 1};
    static const uint64_t sixteen[16] = {2, 1, 3, 2, 1, 1, 2, 4, 1, 2, 2, 1, 3, 1, 2, 2};

    decompose_degenerate(1, vector, 30, 1, false);
    decompose_degenerate(1, vector, 30, 4, true);
    decompose_degenerate(2, flat, 40, 3, true);
    decompose_degenerate(4, ones, 20, 1, false);
    decompose_degenerate(16, sixteen, 1, 1, false); /* a tensor with one nonzero */
}

static void options_must_agree_with_the_plan(void)
{
    const struct slc_plan_request request = fixture_request(3);
    struct slc_cp_options bad[6];
    static const char *const messages[6] = {"plan",       "plan",           "tolerance",
                                            "time limit", "regularization", "mode order"};
    struct fixture_tensor tensor;
    struct fixture_run run;
    struct slc_cp_result result;

    open_small(&tensor, &run, &request);
    for (unsigned i = 0; i < 6; i++) {
        bad[i] = fixture_options(3, 5);
    }
    bad[0].rank = 4;
    bad[1].deterministic = true;
    bad[2].tolerance = (double)NAN;
    bad[3].max_seconds = -1.0;
    bad[4].terms[1].ridge = (double)INFINITY;
    bad[5].mode_order_set = true; /* names mode 1 three times */
    for (unsigned i = 0; i < 6; i++) {
        struct slc_error err = SLC_ERROR_INIT;

        SLC_ASSERT_FAILS(decompose(&run, &bad[i], &result, &err), SLC_ERR_USAGE, &err, messages[i]);
        CU_ASSERT_PTR_NULL(result.lambda);
    }
    fixture_close(&run);
    fixture_destroy(&tensor);
}

/* The k-th allocation or thread fails, for every k: an error, an empty result, no leak. */
static void check_every_fault(enum slc_copies copies)
{
    struct slc_plan_request request = fixture_request(3);
    const struct slc_cp_options options = fixture_options(3, 2);
    struct fixture_tensor tensor;
    struct fixture_run run;

    request.copies = copies;
    open_small(&tensor, &run, &request);
    for (enum slc_fault_kind kind = 0; kind < SLC_FAULT_KINDS; kind++) {
        enum slc_status status = SLC_ERR_MEMORY;

        for (uint64_t k = 1; status != SLC_OK && k < 2000; k++) {
            struct slc_cp_result result;
            struct slc_error err = SLC_ERROR_INIT;

            slc_fault_arm(kind, k);
            status = decompose(&run, &options, &result, &err);
            slc_fault_arm(kind, 0);
            if (status != SLC_OK) {
                CU_ASSERT_TRUE(status == SLC_ERR_MEMORY || status == SLC_ERR_SYSTEM);
                CU_ASSERT_EQUAL(err.status, status);
                CU_ASSERT_TRUE(err.message[0] != '\0');
                CU_ASSERT_PTR_NULL(result.lambda);
            }
            slc_cp_result_destroy(&result);
        }
        CU_ASSERT_EQUAL(status, SLC_OK);
    }
    fixture_close(&run);
    fixture_destroy(&tensor);
}

static void survives_every_fault(void)
{
    check_every_fault(SLC_COPIES_NEVER);
    check_every_fault(SLC_COPIES_ALWAYS);
}

SLC_SUITE(cp_als)
{
    static const struct slc_test tests[] = {
        {"the iterates of a naive CP-ALS, 2 to 5 modes", follows_the_naive_one},
        {"the order of modes", follows_the_order_of_modes},
        {"regularization", regularizes},
        {"single precision comes close", single_precision_comes_close},
        {"every reason to stop", stops_for_every_reason},
        {"a stop inside a pass leaves a model", stops_inside_a_pass},
        {"starts from files", starts_from_files},
        {"empty tensors have their own message", empty_tensors_have_their_own_message},
        {"degenerate tensors are fitted", degenerate_tensors_are_fitted},
        {"options must agree with the plan", options_must_agree_with_the_plan},
        {"every allocation and thread may fail", survives_every_fault},
    };

    return slc_test_main("engine: cp_als", tests, SLC_COUNT(tests), argc, argv);
}
