/* Replicas per mode in a decomposition: it reports when they are first used, continues without them
 * if memory is refused, and ends at its time limit even while they are created. */
#include "base/error/fault.h"
#include "cp_fixture.h"
#include "slc_test.h"

#include <limits.h>
#include <math.h>
#include <string.h>

enum { RANK = 3, ITERATIONS_MAX = 2 * SLC_CP_COPIES_AFTER + 1 };

/* Observations and actions of the callback. */
struct seen {
    bool refuse_memory; /* refuse the first allocation after SLC_CP_COPIES_AFTER iterations */
    unsigned iterations;
    bool first_of_copies[ITERATIONS_MAX];
    bool given_up[ITERATIONS_MAX]; /* per iteration: replicas were reported as abandoned */
    bool forms[ITERATIONS_MAX];    /* per iteration: the forms of replicas were reported */
};

static void on_iteration(void *context, const struct slc_cp_iteration *iteration)
{
    struct seen *seen = context;
    const unsigned i = seen->iterations++;

    CU_ASSERT_FATAL(i < ITERATIONS_MAX);
    seen->first_of_copies[i] = iteration->first_of_copies;
    seen->forms[i] = iteration->copies != NULL && iteration->copies[0].nnz_per_run >= 1;
    if (iteration->copies_fault != NULL) {
        CU_ASSERT(iteration->copies_bytes > 0);
        seen->given_up[i] = strstr(iteration->copies_fault->message, "memory") != NULL;
    }
    if (seen->refuse_memory && iteration->iteration == SLC_CP_COPIES_AFTER) {
        slc_fault_arm(SLC_FAULT_ALLOCATION, 1);
    }
}

static void open_small(struct fixture_run *run, enum slc_copies copies)
{
    static const uint64_t dims[3] = {13, 9, 11};
    struct slc_plan_request request = fixture_request(RANK);
    struct slc_error err = SLC_ERROR_INIT;
    struct fixture_tensor tensor;
    char path[512];

    fixture_random(&tensor, 3, dims, 400, slc_test_seed());
    fixture_store(&tensor, slc_test_folder(), "small", SLC_CODEC_PACKED, 4096, path);
    fixture_destroy(&tensor);
    request.copies = copies;
    SLC_ASSERT_OK(fixture_open(run, path, &request, &err), &err);
}

/* Makes a whole run, from opening to closing. */
static void decompose(enum slc_copies copies,
                      struct slc_cp_options options,
                      struct seen *seen,
                      struct slc_cp_result *result)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct fixture_run run;

    open_small(&run, copies);
    options.iteration = on_iteration;
    options.context = seen;
    SLC_ASSERT_OK(
        slc_cp_run(&run.store, run.stream, run.backend, &run.plan, &options, result, &err), &err);
    fixture_close(&run);
}

static void reports_first_use(void)
{
    struct slc_cp_result result;
    struct seen seen = {.refuse_memory = false};

    decompose(SLC_COPIES_ALWAYS, fixture_options(RANK, 4), &seen, &result);
    CU_ASSERT_EQUAL(seen.iterations, 4);
    for (unsigned i = 0; i < 4; i++) {
        CU_ASSERT_EQUAL(seen.first_of_copies[i], i == 0);
        CU_ASSERT_FALSE(seen.given_up[i]);
        CU_ASSERT_TRUE(seen.forms[i]);
    }
    CU_ASSERT_EQUAL(result.copies_after, 0);
    /* Nothing was streamed, so no strategy of the stream may be reported. */
    for (unsigned n = 0; n < result.order; n++) {
        CU_ASSERT_EQUAL(result.choices[n].chosen, SLC_CONFLICT_REPLICA);
        CU_ASSERT_EQUAL(result.choices[n].rival, SLC_CONFLICT_AUTO);
        CU_ASSERT_EQUAL(result.choices[n].cost_count, 0);
        CU_ASSERT(result.copies[n].nnz_per_run >= 1);
    }
    slc_cp_result_destroy(&result);
}

/* Passes come first: their times are reported with the replicas that replace them. */
static void reports_earlier_passes(void)
{
    struct slc_cp_result result;
    struct seen seen = {.refuse_memory = false};

    decompose(SLC_COPIES_AUTO, fixture_options(RANK, ITERATIONS_MAX), &seen, &result);
    CU_ASSERT_EQUAL(result.copies_after, SLC_CP_COPIES_AFTER);
    for (unsigned i = 0; i < ITERATIONS_MAX; i++) {
        CU_ASSERT_EQUAL(seen.first_of_copies[i], i == SLC_CP_COPIES_AFTER);
        CU_ASSERT_EQUAL(seen.forms[i], i >= SLC_CP_COPIES_AFTER);
    }
    for (unsigned n = 0; n < result.order; n++) {
        CU_ASSERT_NOT_EQUAL(result.choices[n].chosen, SLC_CONFLICT_REPLICA);
        CU_ASSERT(result.copies[n].nnz_per_run >= 1);
    }
    slc_cp_result_destroy(&result);
}

/* Optional replicas are abandoned if memory is refused, required ones are not. */
static void continues_without_memory(void)
{
    const struct slc_cp_options options = fixture_options(RANK, ITERATIONS_MAX);
    struct slc_cp_result with, without;
    struct seen seen = {.refuse_memory = false};
    struct seen refused = {.refuse_memory = true};

    decompose(SLC_COPIES_NEVER, options, &seen, &without);
    decompose(SLC_COPIES_AUTO, options, &refused, &with);
    CU_ASSERT_TRUE(slc_fault_seen(SLC_FAULT_ALLOCATION) >= 1);
    slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
    CU_ASSERT_EQUAL(with.copies_after, UINT_MAX);
    CU_ASSERT_EQUAL(with.iterations, without.iterations);
    CU_ASSERT_TRUE(fabs(with.fit - without.fit) <= 1e-12);
    CU_ASSERT_EQUAL(refused.iterations, ITERATIONS_MAX);
    for (unsigned i = 0; i < ITERATIONS_MAX; i++) {
        CU_ASSERT_FALSE(refused.first_of_copies[i] || refused.forms[i]);
        CU_ASSERT_EQUAL(refused.given_up[i], i == SLC_CP_COPIES_AFTER);
    }
    slc_cp_result_destroy(&with);
    slc_cp_result_destroy(&without);
}

/* The deadline passes before the first tile is added: nothing is held, and the run ends by its
 * limit. */
static void ends_in_time_while_they_are_made(void)
{
    struct slc_cp_options options = fixture_options(RANK, 4);
    struct slc_cp_result result;
    struct seen seen = {.refuse_memory = false};

    options.max_seconds = 1e-9;
    decompose(SLC_COPIES_ALWAYS, options, &seen, &result);
    CU_ASSERT_EQUAL(result.reason, SLC_STOP_TIME);
    CU_ASSERT_EQUAL(result.iterations, 0);
    CU_ASSERT_EQUAL(seen.iterations, 0);
    CU_ASSERT_EQUAL(result.copies_after, UINT_MAX);
    slc_cp_result_destroy(&result);

    /* Distant time limits, or none, do not matter. */
    for (unsigned i = 0; i < 3; i++) {
        options.max_seconds = i == 0 ? 0.0 : i == 1 ? 1e6 : 1e300;
        seen.iterations = 0;
        decompose(SLC_COPIES_ALWAYS, options, &seen, &result);
        CU_ASSERT_EQUAL(result.reason, SLC_STOP_ITERATIONS);
        CU_ASSERT_EQUAL(result.copies_after, 0);
        slc_cp_result_destroy(&result);
    }
}

SLC_SUITE(cp_copies)
{
    static const struct slc_test tests[] = {
        {"a run reports when they are first used", reports_first_use},
        {"a run reports the passes before them", reports_earlier_passes},
        {"a run continues without them if memory is refused", continues_without_memory},
        {"a run ends in time while they are made", ends_in_time_while_they_are_made},
    };

    return slc_test_main("engine: cp_copies", tests, SLC_COUNT(tests), argc, argv);
}
