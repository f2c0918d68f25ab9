/* Sweeps through the public API: reports of runs and ranks, kept files, and resuming a sweep. */
#include "api_test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RUNS = 3 };

static const uint32_t ranks[2] = {3, 2};

static struct sluice_store *made_store(const char *folder)
{
    static const uint64_t dims[3] = {20, 15, 10};
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_generate_options options = {.struct_bytes = sizeof options};
    struct sluice_store *store = NULL;
    char path[600];

    snprintf(path, sizeof path, "%s/made.slc", folder);
    options.rank = 2;
    options.noise = 0.1;
    API_OK(sluice_generate(path, 3, dims, 1500, &options, &err), &err);
    API_OK(sluice_store_open(path, &store, &err), &err);
    return store;
}

/* Reported runs. */
struct told {
    unsigned count, stop_after;
    uint64_t seeds[16];
};

static int on_run(void *context, const struct sluice_sweep_run *run)
{
    struct told *told = context;

    CU_ASSERT_FATAL(told->count < 16);
    CU_ASSERT_EQUAL(run->iterations, 4);
    CU_ASSERT_EQUAL(run->stop_reason, SLUICE_STOP_ITERATIONS);
    told->seeds[told->count++] = run->seed;
    return told->count == told->stop_after;
}

/* Options of a deterministic sweep; the structs must outlive it. */
static void
set_options(struct sluice_sweep_options *options, struct sluice_cpd_options *cpd, struct told *told)
{
    cpd->compute.deterministic = 1;
    FRESH(*cpd);
    cpd->iterations = 4;
    cpd->tolerance = -1;
    FRESH(*options);
    options->runs = RUNS;
    options->seed = 7;
    options->cpd = cpd;
    options->completed = on_run;
    cpd->run.context = told;
}

static bool has_factors(const char *folder, const char *run)
{
    char path[800];

    snprintf(path, sizeof path, "%s/%s/mode-3.npy", folder, run);
    return access(path, F_OK) == 0;
}

/* The reports of runs agree with those of ranks, and with the files. */
static void check_sweep(const struct sluice_sweep *sweep, const char *folder)
{
    struct sluice_error err = SLUICE_ERROR_INIT;

    CU_ASSERT_EQUAL_FATAL(sluice_sweep_run_count(sweep), 2 * RUNS);
    CU_ASSERT_EQUAL_FATAL(sluice_sweep_rank_count(sweep), 2);
    for (uint32_t i = 0; i < 2; i++) {
        struct sluice_sweep_rank rank = {.struct_bytes = sizeof rank};
        double most = -INFINITY, sum = 0;
        uint64_t reached = 0;

        API_OK(sluice_sweep_get_rank(sweep, i, &rank, &err), &err);
        CU_ASSERT_EQUAL(rank.rank, 2 + i);
        CU_ASSERT_TRUE(rank.runs == RUNS && rank.compared == RUNS - 1);
        CU_ASSERT_TRUE(isfinite(rank.consistency));
        for (uint32_t k = 0; k < RUNS; k++) {
            struct sluice_sweep_run run = {.struct_bytes = sizeof run};

            API_OK(sluice_sweep_get_run(sweep, i * RUNS + k, &run, &err), &err);
            CU_ASSERT_TRUE(run.rank == rank.rank && run.seed == 7 + k && run.seconds > 0);
            CU_ASSERT_TRUE(isnan(run.heldout_rmse));
            CU_ASSERT_EQUAL(run.kept, run.seed == rank.best_seed);
            CU_ASSERT_EQUAL(has_factors(folder, run.folder), run.kept);
            most = fmax(most, run.fit);
            /* The agreement counts only runs that reached the best fit. */
            if (run.fit >= rank.best_fit - 1e-4) {
                sum += run.seed == rank.best_seed ? 0 : run.match;
                reached++;
            }
        }
        CU_ASSERT_EQUAL(rank.best_fit, most);
        CU_ASSERT_EQUAL(rank.reached, reached);
        CU_ASSERT_EQUAL(strcmp(rank.note, "no other run reached the best fit") == 0, reached == 1);
        if (reached > 1) {
            CU_ASSERT_DOUBLE_EQUAL(rank.agreement, sum / (double)(reached - 1), 1e-12);
        } else {
            CU_ASSERT_TRUE(isnan(rank.agreement));
        }
    }
}

static void reports_runs_and_ranks(void)
{
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_sweep_options options;
    struct sluice_cpd_options cpd;
    struct sluice_sweep_run run = {.struct_bytes = sizeof run};
    struct sluice_sweep_suggestion suggestion = {.struct_bytes = sizeof suggestion};
    struct sluice_store *store = made_store(slc_test_folder());
    struct sluice_sweep *sweep = NULL;
    struct sluice_model *alone = NULL, *kept = NULL;
    struct told told = {0};
    double one[20 * 3], other[20 * 3];
    char folder[600], path[800];

    snprintf(folder, sizeof folder, "%s/sweep", slc_test_folder());
    set_options(&options, &cpd, &told);
    API_OK(sluice_sweep_ranks(store, folder, 2, ranks, &options, &sweep, &err), &err);
    CU_ASSERT_EQUAL(told.count, 2 * RUNS);
    CU_ASSERT_TRUE(told.seeds[0] == 7 && told.seeds[RUNS - 1] == 9 && told.seeds[RUNS] == 7);
    check_sweep(sweep, folder);
    API_OK(sluice_sweep_suggest(sweep, &suggestion, &err), &err);
    CU_ASSERT_TRUE(suggestion.why[0] != '\0');
    CU_ASSERT_TRUE(has_factors(folder, suggestion.folder));

    /* The best run equals sluice_cpd with its seed. */
    snprintf(path, sizeof path, "%s/%s", folder, suggestion.folder);
    API_OK(sluice_model_load(store, path, &kept, &err), &err);
    cpd.seed = strtoull(strstr(suggestion.folder, "seed") + 4, NULL, 10);
    API_OK(sluice_cpd(store, suggestion.best_rank, &cpd, &alone, &err), &err);
    api_factor(kept, 0, one, SLC_COUNT(one));
    api_factor(alone, 0, other, SLC_COUNT(other));
    CU_ASSERT_EQUAL(memcmp(one, other, 20 * suggestion.best_rank * sizeof *one), 0);
    sluice_model_destroy(kept);
    sluice_model_destroy(alone);

    API_FAILS(sluice_sweep_get_run(sweep, 2 * RUNS, &run, &err), SLUICE_ERR_USAGE, &err,
              "run 6 does not exist: the sweep has 6");
    sluice_sweep_destroy(sweep);
    sluice_store_close(store);
}

static void stops_and_resumes(void)
{
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_sweep_options options;
    struct sluice_cpd_options cpd;
    struct sluice_store *store = made_store(slc_test_folder());
    struct sluice_sweep *sweep = NULL;
    struct told told = {.stop_after = 4};
    char folder[600];

    snprintf(folder, sizeof folder, "%s/sweep", slc_test_folder());
    set_options(&options, &cpd, &told);
    API_FAILS(sluice_sweep_ranks(store, folder, 2, ranks, &options, &sweep, &err),
              SLUICE_ERR_INTERRUPTED, &err, "continues the sweep");
    CU_ASSERT_PTR_NULL(sweep);
    api_clear(&err);
    told = (struct told){0};
    options.max_seconds = 1e-9;
    API_FAILS(sluice_sweep_ranks(store, folder, 2, ranks, &options, &sweep, &err),
              SLUICE_ERR_TIME_LIMIT, &err, "continues the sweep");
    CU_ASSERT_EQUAL(told.count, 4); /* finished runs */
    api_clear(&err);
    told = (struct told){0};
    options.max_seconds = 0;
    cpd.iterations = 5;
    API_FAILS(sluice_sweep_ranks(store, folder, 2, ranks, &options, &sweep, &err), SLUICE_ERR_USAGE,
              &err, "iterations");
    CU_ASSERT_EQUAL(told.count, 0);
    api_clear(&err);
    cpd.iterations = 4;
    API_OK(sluice_sweep_ranks(store, folder, 2, ranks, &options, &sweep, &err), &err);
    CU_ASSERT_EQUAL(told.count, 2 * RUNS);
    check_sweep(sweep, folder);
    sluice_sweep_destroy(sweep);
    sluice_store_close(store);
}

static void refuses(void)
{
    static const uint32_t twice[2] = {2, 2};
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_sweep_options options;
    struct sluice_cpd_options cpd;
    const char *base = slc_test_folder();
    struct sluice_store *store = made_store(base);
    struct sluice_sweep *sweep = NULL;
    struct told told = {0};
    char folder[600];

    snprintf(folder, sizeof folder, "%s/sweep", base);
    set_options(&options, &cpd, &told);
    API_REFUSED(sluice_sweep_ranks(store, folder, 2, twice, &options, &sweep, &err),
                SLUICE_ERR_USAGE, &err, "twice");
    API_REFUSED(sluice_sweep_ranks(store, folder, 0, ranks, &options, &sweep, &err),
                SLUICE_ERR_USAGE, &err, "0 ranks");
    options.runs = 1000000000;
    API_REFUSED(sluice_sweep_ranks(store, folder, 2, ranks, &options, &sweep, &err),
                SLUICE_ERR_USAGE, &err, "1000000000 runs");
    options.runs = 1;
    cpd.init_folder = folder;
    API_REFUSED(sluice_sweep_ranks(store, folder, 2, ranks, &options, &sweep, &err),
                SLUICE_ERR_USAGE, &err, "init_folder");
    cpd.init_folder = NULL;
    cpd.run.memory_bytes = 1 << 20;
    API_REFUSED(sluice_sweep_ranks(store, folder, 2, ranks, &options, &sweep, &err),
                SLUICE_ERR_BUDGET, &err, "");
    cpd.run.memory_bytes = 0;
    cpd.holdout = 2;
    API_REFUSED(sluice_sweep_ranks(store, folder, 2, ranks, &options, &sweep, &err),
                SLUICE_ERR_USAGE, &err, "holdout is 2");
    cpd.holdout = 0;
    snprintf(folder, sizeof folder, "%s/made.slc/sweep", base);
    API_FAILS(sluice_sweep_ranks(store, folder, 2, ranks, &options, &sweep, &err), SLUICE_ERR_USAGE,
              &err, "");
    CU_ASSERT_PTR_NULL(sweep);
    sluice_store_close(store);
}

SLC_SUITE(sweep)
{
    static const struct slc_test tests[] = {
        {"reports of runs and ranks, and kept files", reports_runs_and_ranks},
        {"a stopped sweep resumes", stops_and_resumes},
        {"a folder without a sweep is rejected", refuses},
    };

    return slc_test_main("api: sweep", tests, SLC_COUNT(tests), argc, argv);
}
