/* Passes with a trial: whichever candidate begins or wins, every nonzero counts once.
 *
 * Small integers make sums exact, so any mixture of strategies must yield the oracle's bits. */
#include "base/random.h"
#include "cpu/mttkrp/mttkrp.h"
#include "mttkrp_fixture.h"
#include "slc_test.h"

#include <string.h>

/* A clock that makes the tiles of one strategy slow. The only worker reads it before and after each
 * tile. */
static struct slc_cpu_backend *watched;
static enum slc_conflict slow;
static uint64_t now_ns;

static uint64_t made_up_clock(void)
{
    const struct slc_trial *trial = &watched->trial;
    const uint64_t place = (trial->started - 1) / trial->place_tiles;
    const uint64_t turn = (trial->started - 1) % trial->place_tiles / SLC_TRIAL_TURN_TILES;

    /* The candidates take turns in being first, as mttkrp_trial.h describes. */
    now_ns += trial->candidates[(turn + place) % 2] == slow ? 1000000 : 1000;
    return now_ns;
}

static void set_candidates(struct slc_mttkrp_job *job, enum slc_conflict first)
{
    job->conflict = first;
    job->rival = first == SLC_CONFLICT_PRIVATE ? SLC_CONFLICT_LOCKED : SLC_CONFLICT_PRIVATE;
}

/* All orders of candidates and numbers of workers on one problem. */
static void check_trials(struct slc_backend *backend, struct problem *problem)
{
    for (unsigned workers = 1; workers <= 4; workers++) {
        for (int first = SLC_CONFLICT_PRIVATE; first <= SLC_CONFLICT_LOCKED; first++) {
            struct slc_error err = SLC_ERROR_INIT;
            struct slc_mttkrp_job job;

            problem_job(problem, workers, &job);
            set_candidates(&job, (enum slc_conflict)first);
            SLC_ASSERT_OK(run_pass(backend, problem, &job, &err), &err);
            CU_ASSERT_EQUAL(count_wrong(problem, 0.0), 0);
            CU_ASSERT(canaries_live(&problem->out));
        }
    }
}

/* Tests orders 1 to 6, odd ranks and both types, with passes that end during a trial, at its end,
 * and long after it. */
static void yields_the_oracles_bits(void)
{
    static const uint64_t lengths[] = {1, 9, 40, 300, 3000};
    static const uint32_t ranks[] = {1, 7, 16, 33};
    static const uint32_t tile_nnz[] = {1, 8, 40, 3000};
    struct slc_backend *backend = NULL;
    struct slc_error err = SLC_ERROR_INIT;
    uint64_t draw = 0;

    SLC_ASSERT_OK(slc_cpu_backend_create(&backend, &err), &err);
    for (unsigned order = 1; order <= 6; order++) {
        for (size_t r = 0; r < SLC_COUNT(ranks); r++) {
            for (int type = SLC_F32; type <= SLC_F64; type++) {
                uint64_t dims[SLC_MAX_ORDER];
                struct problem problem;

                for (unsigned m = 0; m < order; m++) {
                    dims[m] = lengths[slc_random_below(slc_test_seed(), 9, draw * 16 + m,
                                                       SLC_COUNT(lengths))];
                }
                problem_create(&problem, order, dims, 1500, (unsigned)(draw % order), ranks[r],
                               (enum slc_value_type)type, true);
                problem.tensor.tile_nnz = tile_nnz[draw++ % SLC_COUNT(tile_nnz)];
                check_trials(backend, &problem);
                problem_destroy(&problem);
            }
        }
    }
    backend->ops->destroy(backend);
}

static void accepts_empty_tensors_and_single_tiles(void)
{
    static const uint64_t dims[] = {300, 20, 9};
    struct slc_backend *backend = NULL;
    struct slc_error err = SLC_ERROR_INIT;

    SLC_ASSERT_OK(slc_cpu_backend_create(&backend, &err), &err);
    for (uint64_t nnz = 0; nnz < 3; nnz++) {
        struct problem problem;

        problem_create(&problem, 3, dims, nnz, 0, 5, SLC_F64, true);
        check_trials(backend, &problem);
        problem_destroy(&problem);
    }
    backend->ops->destroy(backend);
}

/* The winner of a trial with one worker and the invented clock, and the numbers of the pass. */
static void the_clock_decides(void)
{
    static const uint64_t dims[] = {3000, 20, 30};
    struct slc_backend *backend = NULL;
    struct slc_error err = SLC_ERROR_INIT;
    struct problem problem;

    SLC_ASSERT_OK(slc_cpu_backend_create(&backend, &err), &err);
    watched = (struct slc_cpu_backend *)(void *)backend;
    watched->trial.clock_ns = made_up_clock;
    problem_create(&problem, 3, dims, 4000, 0, 8, SLC_F64, true);
    problem.tensor.tile_nnz = 100;
    for (int first = SLC_CONFLICT_PRIVATE; first <= SLC_CONFLICT_LOCKED; first++) {
        for (int loser = SLC_CONFLICT_PRIVATE; loser <= SLC_CONFLICT_LOCKED; loser++) {
            struct slc_conflict_choice choice = {
                .cost_count = 2,
                .costs = {{SLC_CONFLICT_PRIVATE, 1, 0}, {SLC_CONFLICT_LOCKED, 1, 0}}};
            struct slc_mttkrp_job job;

            slow = (enum slc_conflict)loser;
            problem_job(&problem, 1, &job);
            set_candidates(&job, (enum slc_conflict)first);
            SLC_ASSERT_OK(run_pass(backend, &problem, &job, &err), &err);
            CU_ASSERT_EQUAL(count_wrong(&problem, 0.0), 0);
            CU_ASSERT_TRUE(backend->ops->mttkrp_tried(backend, &choice));
            CU_ASSERT_TRUE(choice.costs[0].measured_ns > 0 && choice.costs[1].measured_ns > 0);
            CU_ASSERT_NOT_EQUAL(choice.chosen, slow);
            /* A job without a trial keeps no measurements of the previous trial. */
            job.rival = SLC_CONFLICT_AUTO;
            SLC_ASSERT_OK(run_pass(backend, &problem, &job, &err), &err);
            CU_ASSERT_FALSE(backend->ops->mttkrp_tried(backend, &choice));
        }
    }
    problem_destroy(&problem);
    backend->ops->destroy(backend);
}

/* The k-th allocation fails, for every k; a damaged tile ends the pass; the next pass succeeds. */
static void fails_cleanly(void)
{
    static const uint64_t dims[] = {5000, 20, 30};
    struct problem problem;
    struct slc_mttkrp_job job;
    bool hit = true;

    problem_create(&problem, 3, dims, 3000, 0, 8, SLC_F32, true);
    problem.tensor.tile_nnz = 60;
    problem_job(&problem, 3, &job);
    set_candidates(&job, SLC_CONFLICT_PRIVATE);
    for (uint64_t k = 1; hit && k < 20; k++) {
        struct slc_backend *backend;

        hit = run_pass_without_memory(k, &problem, &job, &backend);
        if (backend == NULL) {
            continue;
        }
        for (uint64_t tile = 0; tile < 50; tile += 7) {
            struct slc_error err = SLC_ERROR_INIT;

            problem.tensor.fail_tile = tile;
            SLC_ASSERT_FAILS(run_pass(backend, &problem, &job, &err), SLC_ERR_DAMAGED, &err,
                             "damaged");
            problem.tensor.fail_tile = UINT64_MAX;
            slc_error_clear(&err);
            SLC_ASSERT_OK(run_pass(backend, &problem, &job, &err), &err);
            CU_ASSERT_EQUAL(count_wrong(&problem, 0.0), 0);
        }
        backend->ops->destroy(backend);
    }
    CU_ASSERT_FALSE(hit);
    problem_destroy(&problem);
}

/* Only private and locked can be tried, and not in a deterministic job. */
static void refuses_other_candidates(void)
{
    static const uint64_t dims[] = {50, 20, 30};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_backend *backend = NULL;
    struct slc_mttkrp_job job;
    struct problem problem;

    SLC_ASSERT_OK(slc_cpu_backend_create(&backend, &err), &err);
    problem_create(&problem, 3, dims, 100, 0, 8, SLC_F64, true);
    for (int first = SLC_CONFLICT_AUTO; first <= SLC_CONFLICT_REPLICA; first++) {
        for (int second = SLC_CONFLICT_DIRECT; second <= SLC_CONFLICT_REPLICA; second++) {
            const bool fits = (first == SLC_CONFLICT_PRIVATE && second == SLC_CONFLICT_LOCKED) ||
                              (first == SLC_CONFLICT_LOCKED && second == SLC_CONFLICT_PRIVATE);

            problem_job(&problem, 1, &job);
            job.conflict = (enum slc_conflict)first;
            job.rival = (enum slc_conflict)second;
            slc_error_clear(&err);
            if (!fits) {
                SLC_ASSERT_FAILS(backend->ops->mttkrp_begin(backend, &job, &err), SLC_ERR_USAGE,
                                 &err, "timed against");
            }
            job.deterministic = true;
            slc_error_clear(&err);
            SLC_ASSERT_FAILS(backend->ops->mttkrp_begin(backend, &job, &err), SLC_ERR_USAGE, &err,
                             "deterministic");
        }
    }
    problem_destroy(&problem);
    backend->ops->destroy(backend);
}

static const struct slc_test tests[] = {
    {"the oracle's bits, whichever begins", yields_the_oracles_bits},
    {"empty tensors and single tiles", accepts_empty_tensors_and_single_tiles},
    {"the clock decides", the_clock_decides},
    {"faults end a trial cleanly", fails_cleanly},
    {"other candidates are refused", refuses_other_candidates},
};

SLC_SUITE(mttkrp_trial)
{
    return slc_test_main("mttkrp trial", tests, SLC_COUNT(tests), argc, argv);
}
