/* Strategies from plan to result: choices that a plan reuses, trials in the first passes of a
 * decomposition, and reports of the choices. */
#include "base/error/fault.h"
#include "cp_fixture.h"
#include "one_layout.h"
#include "slc_test.h"

#include <math.h>
#include <string.h>

enum { RANK = 5, MODES = 3, TILE_NNZ = 300 };

/* A store of a hundred small tiles: enough for a trial with four workers. */
static void make_store(char *path)
{
    static const uint64_t dims[MODES] = {400, 60, 50};
    struct fixture_tensor tensor;

    fixture_random(&tensor, MODES, dims, 100 * TILE_NNZ, slc_test_seed());
    for (unsigned i = 0; i < 3; i++) {
        tensor.tile_nnz[i] = TILE_NNZ;
    }
    fixture_store(&tensor, slc_test_folder(), "tiles", SLC_CODEC_PACKED, 4096, path);
    fixture_destroy(&tensor);
}

/* Values seen by the callback. */
struct seen {
    unsigned iterations;
    unsigned tried; /* modes with measured costs in the first iteration's report */
};

static void on_iteration(void *context, const struct slc_cp_iteration *iteration)
{
    struct seen *seen = context;

    for (unsigned n = 0; iteration->iteration == 1 && n < MODES; n++) {
        seen->tried += iteration->choices[n].costs[0].measured_ns > 0;
    }
    seen->iterations++;
}

/* Candidates as in a plan for a tensor with many more tiles. */
static void want_trials(struct slc_plan *plan, enum slc_conflict first)
{
    const enum slc_conflict second =
        first == SLC_CONFLICT_PRIVATE ? SLC_CONFLICT_LOCKED : SLC_CONFLICT_PRIVATE;

    for (unsigned n = 0; n < MODES; n++) {
        plan->choices[n] = (struct slc_conflict_choice){.chosen = first,
                                                        .rival = second,
                                                        .cost_count = 2,
                                                        .costs = {{first, 1, 0}, {second, 2, 0}}};
    }
}

/* Makes a whole run. Trials begin with strategy `first`; SLC_CONFLICT_AUTO: as planned. */
static void decompose(const char *path,
                      const struct slc_plan_request *request,
                      enum slc_conflict first,
                      struct seen *seen,
                      struct slc_cp_result *result)
{
    struct slc_cp_options options = fixture_options(RANK, 4);
    struct slc_error err = SLC_ERROR_INIT;
    struct fixture_run run;

    memset(seen, 0, sizeof *seen);
    SLC_ASSERT_OK(fixture_open(&run, path, request, &err), &err);
    if (first != SLC_CONFLICT_AUTO) {
        want_trials(&run.plan, first);
    }
    options.iteration = on_iteration;
    options.context = seen;
    options.deterministic = request->deterministic;
    SLC_ASSERT_OK(
        slc_cp_run(&run.store, run.stream, run.backend, &run.plan, &options, result, &err), &err);
    fixture_close(&run);
}

static void decompositions_try_once_and_report(void)
{
    char path[512];
    const unsigned step = slc_test_threads_only() ? 2 : 1;
    double fit = -1.0;

    make_store(path);
    for (unsigned threads = step; threads <= 4; threads += step) {
        for (int first = SLC_CONFLICT_AUTO; first <= SLC_CONFLICT_LOCKED; first++) {
            struct slc_plan_request request = fixture_request(RANK);
            struct slc_cp_result result;
            struct seen seen;
            const bool tries = first >= SLC_CONFLICT_PRIVATE;

            request.threads = threads;
            request.copies = SLC_COPIES_NEVER;
            decompose(path, &request, tries ? (enum slc_conflict)first : SLC_CONFLICT_AUTO, &seen,
                      &result);
            CU_ASSERT_EQUAL(seen.iterations, 4);
            CU_ASSERT_EQUAL(seen.tried, tries ? MODES : 0);
            for (unsigned n = 0; n < MODES; n++) {
                const struct slc_conflict_choice *choice = &result.choices[n];
                const unsigned won = choice->costs[0].conflict != choice->chosen;

                CU_ASSERT_EQUAL(choice->rival, SLC_CONFLICT_AUTO);
                CU_ASSERT_EQUAL(choice->costs[0].measured_ns > 0, tries);
                CU_ASSERT_TRUE(!tries || (choice->costs[won].conflict == choice->chosen &&
                                          choice->costs[won].measured_ns <=
                                              choice->costs[1 - won].measured_ns));
            }
            fit = fit < 0.0 ? result.fit : fit;
            CU_ASSERT_TRUE(fabs(result.fit - fit) < 1e-12);
            slc_cp_result_destroy(&result);
        }
    }
}

/* Deterministic runs make no trials and no measurements. */
static void deterministic_runs_try_nothing(void)
{
    struct slc_plan_request request = fixture_request(RANK);
    struct slc_cp_result result;
    struct seen seen;
    char path[512];

    make_store(path);
    request.threads = 2;
    request.deterministic = true;
    /* as an earlier run, which was not deterministic, has chosen */
    request.conflict[1] = SLC_CONFLICT_LOCKED;
    decompose(path, &request, SLC_CONFLICT_AUTO, &seen, &result);
    CU_ASSERT_EQUAL(seen.tried, 0);
    for (unsigned n = 0; n < MODES; n++) {
        CU_ASSERT_EQUAL(result.choices[n].chosen, SLC_CONFLICT_ORDERED);
        CU_ASSERT_EQUAL(result.choices[n].cost_count, 0);
    }
    slc_cp_result_destroy(&result);
}

/* An earlier choice is reused if there is a choice to make. */
static void plans_reuse_a_choice(void)
{
    struct slc_plan_request request = fixture_request(RANK);
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_store store;
    struct slc_plan plan;
    char path[512];

    make_store(path);
    SLC_ASSERT_OK(slc_store_open(NULL, path, &store, &err), &err);
    request.threads = 2;
    request.conflict[0] = SLC_CONFLICT_LOCKED;
    request.conflict[2] = SLC_CONFLICT_PRIVATE;
    SLC_ASSERT_OK(plan_one(store.reader, &request, &plan, &err), &err);
    CU_ASSERT_EQUAL(plan.choices[0].chosen, SLC_CONFLICT_LOCKED);
    CU_ASSERT_EQUAL(plan.choices[0].cost_count, 0);
    CU_ASSERT_EQUAL(plan.choices[1].cost_count, 2);
    CU_ASSERT_EQUAL(plan.choices[2].chosen, SLC_CONFLICT_PRIVATE);
    request.threads = 1;
    SLC_ASSERT_OK(plan_one(store.reader, &request, &plan, &err), &err);
    CU_ASSERT_EQUAL(plan.choices[0].chosen, SLC_CONFLICT_DIRECT);
    request.conflict[2] = SLC_CONFLICT_ORDERED;
    SLC_ASSERT_FAILS(plan_one(store.reader, &request, &plan, &err), SLC_ERR_USAGE, &err, "mode 3");
    slc_store_close(&store);
}

/* The k-th allocation fails during trials, for every k from the first pass on. */
static void faults_end_a_trial(void)
{
    struct slc_cp_options options = fixture_options(RANK, 2);
    bool done = false;
    char path[512];

    make_store(path);
    for (uint64_t k = 1; !done && k < 100; k++) {
        struct slc_plan_request request = fixture_request(RANK);
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_cp_result result;
        struct fixture_run fixture;
        enum slc_status status;

        request.threads = 2;
        SLC_ASSERT_OK(fixture_open(&fixture, path, &request, &err), &err);
        want_trials(&fixture.plan, SLC_CONFLICT_LOCKED);
        slc_fault_arm(SLC_FAULT_ALLOCATION, k);
        status = slc_cp_run(&fixture.store, fixture.stream, fixture.backend, &fixture.plan,
                            &options, &result, &err);
        done = slc_fault_seen(SLC_FAULT_ALLOCATION) < k;
        slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
        CU_ASSERT_EQUAL(status, done ? SLC_OK : SLC_ERR_MEMORY);
        slc_cp_result_destroy(&result);
        fixture_close(&fixture);
    }
    CU_ASSERT_TRUE(done);
}

static const struct slc_test tests[] = {
    {"decompositions try once and report", decompositions_try_once_and_report},
    {"deterministic runs try nothing", deterministic_runs_try_nothing},
    {"plans reuse a choice", plans_reuse_a_choice},
    {"faults end a trial", faults_end_a_trial},
};

SLC_SUITE(conflict)
{
    return slc_test_main("conflict", tests, SLC_COUNT(tests), argc, argv);
}
