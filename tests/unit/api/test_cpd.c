/*
 * Decompositions by the public API: stopped by callbacks, kept in checkpoints, gone on with, saved
 * and loaded.
 */
#include "slc_test.h"

#include <sluice/sluice.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RANK = 3, ITERATIONS = 8, STOP_AFTER = 3 };

/* What callbacks are to do, and what they saw. */
struct watch {
    unsigned stop_after; /* 0: never */
    unsigned first;      /* the iteration that comes first */
    unsigned iterations, progress, resumed, checkpointed;
    double fits[ITERATIONS];
    bool stop_in_pass;
};

static int on_iteration(void *context, const struct sluice_cpd_iteration *iteration)
{
    struct watch *watch = context;

    CU_ASSERT_EQUAL(iteration->iteration, watch->first + watch->iterations);
    CU_ASSERT_TRUE(iteration->iteration <= ITERATIONS);
    watch->fits[iteration->iteration - 1] = iteration->fit;
    watch->iterations++;
    return iteration->iteration == watch->stop_after;
}

static int on_progress(void *context, const struct sluice_cpd_progress *progress)
{
    struct watch *watch = context;

    CU_ASSERT_TRUE(progress->mode < 3 && progress->blocks_done <= progress->blocks);
    watch->progress++;
    return watch->stop_in_pass;
}

static void on_resume(void *context, const struct sluice_cpd_checkpoint *checkpoint)
{
    struct watch *watch = context;

    watch->resumed++;
    CU_ASSERT_EQUAL(checkpoint->past_count, STOP_AFTER);
    CU_ASSERT_EQUAL(checkpoint->iteration, STOP_AFTER + 1);
    CU_ASSERT_EQUAL(checkpoint->mode, 0);
    for (uint64_t i = 0; i < checkpoint->past_count; i++) {
        CU_ASSERT_EQUAL(checkpoint->past[i].iteration, i + 1);
        watch->fits[i] = checkpoint->past[i].fit;
    }
}

static void on_checkpoint(void *context, const struct sluice_cpd_checkpoint *checkpoint)
{
    struct watch *watch = context;

    watch->checkpointed++;
    CU_ASSERT_TRUE(checkpoint->bytes > 0 && checkpoint->seconds >= 0);
}

static struct sluice_store *made_store(const char *folder)
{
    static const uint64_t dims[3] = {40, 30, 20};
    struct slc_error err = SLC_ERROR_INIT;
    struct sluice_generate_options options;
    struct sluice_store *store = NULL;
    char path[600];

    snprintf(path, sizeof path, "%s/made.slc", folder);
    sluice_generate_options_init(&options, sizeof options);
    options.block_bytes = 4096;
    SLC_ASSERT_OK(sluice_generate(path, 3, dims, 8000, &options, &err), &err);
    SLC_ASSERT_OK(sluice_store_open(path, &store, &err), &err);
    return store;
}

static void set_options(struct sluice_cpd_options *options,
                        struct sluice_compute_options *compute,
                        struct watch *watch)
{
    sluice_compute_options_init(compute, sizeof *compute);
    sluice_cpd_options_init(options, sizeof *options);
    CU_ASSERT_TRUE(options->checkpoint_seconds < 0);
    compute->deterministic = 1;
    options->compute = compute;
    options->iterations = ITERATIONS;
    options->tolerance = 0;
    options->iteration = on_iteration;
    options->progress = on_progress;
    options->resumed = on_resume;
    options->checkpointed = on_checkpoint;
    options->context = watch;
}

static void check_same(const struct sluice_cpd *a, const struct sluice_cpd *b)
{
    double one[40 * RANK], other[40 * RANK];

    for (uint32_t n = 0; n < 3; n++) {
        const size_t bytes = sluice_cpd_rows(a, n) * RANK * sizeof(double);

        CU_ASSERT_FATAL(bytes <= sizeof one);
        CU_ASSERT_EQUAL_FATAL(sluice_cpd_rows(a, n), sluice_cpd_rows(b, n));
        sluice_cpd_factor(a, n, one);
        sluice_cpd_factor(b, n, other);
        CU_ASSERT_EQUAL(memcmp(one, other, bytes), 0);
    }
    sluice_cpd_lambda(a, one);
    sluice_cpd_lambda(b, other);
    CU_ASSERT_EQUAL(memcmp(one, other, RANK * sizeof(double)), 0);
}

static void goes_on_with_the_same_bits(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct sluice_cpd_options options;
    struct sluice_compute_options compute;
    struct sluice_cpd_report report = {.struct_bytes = sizeof report};
    struct sluice_store *store = made_store(slc_test_folder());
    struct sluice_cpd *whole = NULL, *part = NULL, *rest = NULL, *other = NULL;
    struct watch watch = {.first = 1}, again = {.first = 1, .stop_after = STOP_AFTER};
    char folder[600];

    set_options(&options, &compute, &watch);
    SLC_ASSERT_OK(sluice_cpd(store, RANK, &options, &whole, &err), &err);
    CU_ASSERT_EQUAL(watch.iterations, ITERATIONS);
    CU_ASSERT_EQUAL(sluice_cpd_stop(whole), SLUICE_STOP_ITERATIONS);

    snprintf(folder, sizeof folder, "%s/kept", slc_test_folder());
    options.context = &again;
    options.checkpoint_folder = folder;
    SLC_ASSERT_OK(sluice_cpd(store, RANK, &options, &part, &err), &err);
    CU_ASSERT_EQUAL(sluice_cpd_stop(part), SLUICE_STOP_SIGNAL);
    CU_ASSERT_EQUAL(sluice_cpd_iterations(part), STOP_AFTER);
    SLC_ASSERT_OK(sluice_cpd_report(part, &report, &err), &err);
    CU_ASSERT_EQUAL(report.resume_iteration, STOP_AFTER + 1);
    CU_ASSERT_EQUAL(report.resume_mode, 0);
    CU_ASSERT_TRUE(report.checkpoints >= 1 && again.checkpointed == report.checkpoints);
    CU_ASSERT_EQUAL(report.resumes, 0);

    SLC_ASSERT_FAILS(sluice_cpd(store, RANK + 1, &options, &other, &err), SLC_ERR_USAGE, &err,
                     "rank");
    CU_ASSERT_PTR_NULL(other);
    memset(&err, 0, sizeof err);
    again = (struct watch){.first = STOP_AFTER + 1};
    SLC_ASSERT_OK(sluice_cpd(store, RANK, &options, &rest, &err), &err);
    CU_ASSERT_EQUAL(again.resumed, 1);
    CU_ASSERT_EQUAL(again.iterations, ITERATIONS - STOP_AFTER);
    CU_ASSERT_EQUAL(memcmp(again.fits, watch.fits, sizeof watch.fits), 0);
    check_same(whole, rest);
    SLC_ASSERT_OK(sluice_cpd_report(rest, &report, &err), &err);
    CU_ASSERT_EQUAL(report.resumes, 1);
    CU_ASSERT_EQUAL(report.resume_iteration, 0);
    CU_ASSERT_EQUAL(report.iterations, ITERATIONS);
    CU_ASSERT_EQUAL(report.fit, watch.fits[ITERATIONS - 1]);
    CU_ASSERT_TRUE(report.norm > 0 && report.seconds > 0);

    CU_ASSERT_EQUAL(access(folder, F_OK), 0);
    SLC_ASSERT_OK(sluice_cpd_checkpoint_remove(folder, &err), &err);
    CU_ASSERT_NOT_EQUAL(access(folder, F_OK), 0);
    SLC_ASSERT_OK(sluice_cpd_checkpoint_remove(folder, &err), &err);
    sluice_cpd_destroy(whole);
    sluice_cpd_destroy(part);
    sluice_cpd_destroy(rest);
    sluice_store_close(store);
}

/* A call from a callback: the folder is in use by the very run that calls it. */
static int use_folder_twice(void *context, const struct sluice_cpd_iteration *iteration)
{
    struct slc_error err = SLC_ERROR_INIT;

    (void)iteration;
    SLC_ASSERT_FAILS(sluice_cpd_checkpoint_remove(context, &err), SLC_ERR_IO, &err, "");
    return 1;
}

static void restarts_and_keeps_others_out(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct sluice_cpd_options options;
    struct sluice_compute_options compute;
    struct sluice_store *store = made_store(slc_test_folder());
    struct sluice_cpd *part = NULL, *anew = NULL;
    struct watch watch = {.first = 1};
    volatile int stop = 0;
    char folder[600];

    snprintf(folder, sizeof folder, "%s/kept", slc_test_folder());
    set_options(&options, &compute, &watch);
    options.checkpoint_folder = folder;
    options.iteration = use_folder_twice;
    options.progress = NULL;
    options.checkpointed = NULL;
    options.context = folder;
    compute.stop = &stop;
    SLC_ASSERT_OK(sluice_cpd(store, RANK, &options, &part, &err), &err);
    CU_ASSERT_EQUAL(sluice_cpd_iterations(part), 1);
    CU_ASSERT_EQUAL(stop, 1);

    set_options(&options, &compute, &watch);
    options.checkpoint_folder = folder;
    options.restart = 1;
    SLC_ASSERT_OK(sluice_cpd(store, RANK, &options, &anew, &err), &err);
    CU_ASSERT_EQUAL(watch.resumed, 0);
    CU_ASSERT_EQUAL(watch.iterations, ITERATIONS);
    sluice_cpd_destroy(part);
    sluice_cpd_destroy(anew);
    sluice_store_close(store);
}

static void stops_within_a_pass(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct sluice_cpd_options options;
    struct sluice_compute_options compute;
    struct sluice_store *store = made_store(slc_test_folder());
    struct sluice_cpd *model = NULL;
    struct watch watch = {.first = 1, .stop_in_pass = true};

    set_options(&options, &compute, &watch);
    options.iterations = 1000000;
    options.max_seconds = 60;
    options.iteration = NULL;
    compute.threads = 1;
    /* Of small passes nothing is told: these take half a second. */
    compute.no_cache = 1;
    compute.io_limit = 32 << 10;
    SLC_ASSERT_OK(sluice_cpd(store, RANK, &options, &model, &err), &err);
    CU_ASSERT_EQUAL(sluice_cpd_stop(model), SLUICE_STOP_SIGNAL);
    CU_ASSERT_TRUE(watch.progress >= 1);
    CU_ASSERT_TRUE(sluice_cpd_iterations(model) < 1000000);
    sluice_cpd_destroy(model);
    sluice_store_close(store);
}

static void loads_what_was_saved(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct sluice_cpd_options options;
    struct sluice_cpd_report report = {.struct_bytes = sizeof report};
    struct sluice_store *store = made_store(slc_test_folder());
    struct sluice_cpd *model = NULL, *loaded = NULL, *missing = NULL;
    char folder[600];

    snprintf(folder, sizeof folder, "%s/model", slc_test_folder());
    sluice_cpd_options_init(&options, sizeof options);
    options.iterations = 2;
    SLC_ASSERT_OK(sluice_cpd(store, RANK, &options, &model, &err), &err);
    SLC_ASSERT_OK(sluice_cpd_save(model, SLUICE_MODEL_NPY, folder, &err), &err);
    SLC_ASSERT_OK(sluice_cpd_load(store, folder, &loaded, &err), &err);
    check_same(model, loaded);
    CU_ASSERT_TRUE(isnan(sluice_cpd_fit(loaded)));
    SLC_ASSERT_OK(sluice_cpd_report(loaded, &report, &err), &err);
    CU_ASSERT_EQUAL(report.rank, RANK);
    CU_ASSERT_EQUAL(report.iterations, 0);
    SLC_ASSERT_FAILS(sluice_cpd_load(store, slc_test_folder(), &missing, &err), SLC_ERR_IO, &err,
                     "");
    CU_ASSERT_PTR_NULL(missing);
    sluice_cpd_destroy(model);
    sluice_cpd_destroy(loaded);
    sluice_store_close(store);
}

/* The text of a file, for the caller to free. */
static char *text_of(const char *path)
{
    FILE *file = fopen(path, "r");
    char *text = calloc(1, 1 << 20);

    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    CU_ASSERT_TRUE(fread(text, 1, (1 << 20) - 1, file) > 0);
    (void)fclose(file);
    return text;
}

static void check_text(const char *path, const char *const *wanted)
{
    char *text = text_of(path);

    for (; *wanted != NULL; wanted++) {
        if (strstr(text, *wanted) == NULL) {
            CU_FAIL("a text is missing");
            printf("# %s has no %s\n", path, *wanted);
        }
    }
    free(text);
}

/*
 * A run that was stopped and went on has the record of all its iterations, as the command's would;
 * it goes with the factors, and back with them, and pages are made of it.
 */
static void tells_of_runs(void)
{
    static const char *const page[] = {"<!DOCTYPE html>", "id=\"fit\"", "id=\"components\"",
                                       "--rank 3 --iters 8 --tol 0 --seed 5 --holdout 0.2", NULL};
    static const char *const factors[] = {"There is no run.json", "id=\"components\"", NULL};
    static const char *const record[] = {"\"schema\": \"sluice-run-1\"",
                                         "\"iteration\": 1",
                                         "\"iteration\": 8",
                                         "\"resumes\": 1",
                                         "\"command\": null",
                                         NULL};
    const struct slc_error none = SLC_ERROR_INIT;
    struct slc_error err = none;
    struct sluice_cpd_options options;
    struct sluice_report_options report;
    struct sluice_store *store = made_store(slc_test_folder());
    struct sluice_cpd *model = NULL, *loaded = NULL, *numbers = NULL;
    struct watch watch = {.first = 1, .stop_after = STOP_AFTER};
    const double one[] = {1};
    const double *const ones[] = {one, one};
    const uint64_t dims[] = {1, 1};
    char folder[600], path[700], html[700];

    snprintf(folder, sizeof folder, "%s/told", slc_test_folder());
    snprintf(path, sizeof path, "%s/run.json", folder);
    snprintf(html, sizeof html, "%s/page.html", slc_test_folder());
    sluice_cpd_options_init(&options, sizeof options);
    options.iterations = ITERATIONS;
    options.tolerance = 0;
    options.seed = 5;
    options.holdout = 0.2;
    options.checkpoint_folder = folder;
    options.checkpoint_seconds = 0;
    options.iteration = on_iteration;
    options.context = &watch;
    SLC_ASSERT_OK(sluice_cpd(store, RANK, &options, &model, &err), &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(strstr(sluice_cpd_record(model), "\"reason\": \"signal\""));
    sluice_cpd_destroy(model);
    options.iteration = NULL;
    SLC_ASSERT_OK(sluice_cpd(store, RANK, &options, &model, &err), &err);
    SLC_ASSERT_OK(sluice_cpd_save(model, SLUICE_MODEL_NPY, folder, &err), &err);
    SLC_ASSERT_OK(sluice_cpd_checkpoint_remove(folder, &err), &err);
    check_text(path, record);

    SLC_ASSERT_OK(sluice_report(folder, html, NULL, &err), &err);
    check_text(html, page);
    err = none;
    SLC_ASSERT_FAILS(sluice_cpd_page(model, html, NULL, &err), SLC_ERR_IO, &err, "exists");
    sluice_report_options_init(&report, sizeof report);
    report.overwrite = 1;
    SLC_ASSERT_OK(sluice_cpd_page(model, html, &report, &err), &err);
    check_text(html, page);
    report.rows = 0;
    err = none;
    SLC_ASSERT_FAILS(sluice_report(folder, html, &report, &err), SLC_ERR_USAGE, &err, "rows");
    report.rows = 1;
    report.memory_bytes = 1 << 20;
    err = none;
    SLC_ASSERT_FAILS(sluice_report(folder, html, &report, &err), SLC_ERR_BUDGET, &err, "MiB");
    check_text(html, page);
    err = none;
    SLC_ASSERT_FAILS(sluice_report(slc_test_folder(), html, NULL, &err), SLC_ERR_IO, &err, "");

    SLC_ASSERT_OK(sluice_cpd_load(NULL, folder, &loaded, &err), &err);
    CU_ASSERT_STRING_EQUAL(sluice_cpd_record(loaded), sluice_cpd_record(model));
    SLC_ASSERT_OK(sluice_cpd_from_factors(2, dims, 1, NULL, ones, &numbers, &err), &err);
    CU_ASSERT_PTR_NULL(sluice_cpd_record(numbers));
    report.memory_bytes = 0;
    SLC_ASSERT_OK(sluice_cpd_page(numbers, html, &report, &err), &err);
    check_text(html, factors);
    report.record = sluice_cpd_record(model);
    err = none;
    SLC_ASSERT_FAILS(sluice_cpd_page(numbers, html, &report, &err), SLC_ERR_INPUT, &err, "modes");
    SLC_ASSERT_OK(sluice_cpd_save(numbers, SLUICE_MODEL_NPY, folder, &err), &err);
    CU_ASSERT_EQUAL(access(path, F_OK), -1);
    sluice_cpd_destroy(numbers);
    sluice_cpd_destroy(loaded);
    sluice_cpd_destroy(model);
    sluice_store_close(store);
}

/* What a run with nonzeros held out told last. */
struct errors {
    unsigned iterations;
    uint64_t heldout;
    double rmse, mae;
};

static int on_errors(void *context, const struct sluice_cpd_iteration *iteration)
{
    struct errors *errors = context;

    CU_ASSERT_TRUE(errors->iterations == 0 || errors->heldout == iteration->heldout);
    CU_ASSERT_TRUE(isfinite(iteration->heldout_rmse) && iteration->heldout_mae > 0);
    /* The mean of magnitudes is at most the root of the mean of squares. */
    CU_ASSERT_TRUE(iteration->heldout_mae <= iteration->heldout_rmse);
    *errors = (struct errors){errors->iterations + 1, iteration->heldout, iteration->heldout_rmse,
                              iteration->heldout_mae};
    return 0;
}

static void holds_nonzeros_out(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct sluice_cpd_options options;
    struct sluice_compute_options compute;
    struct sluice_store_info info = {.struct_bytes = sizeof info};
    struct sluice_cpd_report report = {.struct_bytes = sizeof report}, other = report;
    struct sluice_store *store = made_store(slc_test_folder());
    struct sluice_cpd *model = NULL;
    struct errors errors = {0};

    set_options(&options, &compute, NULL);
    options.progress = NULL;
    options.checkpointed = NULL;
    options.iteration = on_errors;
    options.context = &errors;
    options.holdout = 0.1;
    SLC_ASSERT_OK(sluice_store_info(store, &info, &err), &err);
    SLC_ASSERT_OK(sluice_cpd(store, RANK, &options, &model, &err), &err);
    SLC_ASSERT_OK(sluice_cpd_report(model, &report, &err), &err);
    CU_ASSERT_EQUAL(errors.iterations, ITERATIONS);
    CU_ASSERT_EQUAL(report.heldout, errors.heldout);
    CU_ASSERT_TRUE(report.heldout > info.nnz / 20 && report.heldout < info.nnz / 5);
    CU_ASSERT_DOUBLE_EQUAL(report.heldout_rmse, errors.rmse, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(report.heldout_mae, errors.mae, 1e-12);
    /* ||X||^2 is divided between those held out and the others. */
    CU_ASSERT_DOUBLE_EQUAL(hypot(report.norm, report.heldout_norm) / info.norm, 1.0, 1e-12);
    sluice_cpd_destroy(model);

    model = NULL;
    errors.iterations = 0;
    options.holdout_seed = 1;
    SLC_ASSERT_OK(sluice_cpd(store, RANK, &options, &model, &err), &err);
    SLC_ASSERT_OK(sluice_cpd_report(model, &other, &err), &err);
    CU_ASSERT_NOT_EQUAL(other.heldout_norm, report.heldout_norm);
    sluice_cpd_destroy(model);

    model = NULL;
    for (unsigned i = 0; i < 3; i++) {
        const double wrong[3] = {-0.1, 0.51, (double)NAN};

        memset(&err, 0, sizeof err);
        options.holdout = wrong[i];
        SLC_ASSERT_FAILS(sluice_cpd(store, RANK, &options, &model, &err), SLC_ERR_USAGE, &err,
                         "holdout");
    }
    memset(&err, 0, sizeof err);
    options.holdout = 1e-9;
    SLC_ASSERT_FAILS(sluice_cpd(store, RANK, &options, &model, &err), SLC_ERR_USAGE, &err,
                     "held out");
    CU_ASSERT_PTR_NULL(model);
    sluice_store_close(store);
}

SLC_SUITE(cpd)
{
    static const struct slc_test tests[] = {
        {"a run that was stopped goes on with the same bits", goes_on_with_the_same_bits},
        {"restart, and a folder that is in use", restarts_and_keeps_others_out},
        {"a callback stops a pass", stops_within_a_pass},
        {"a model that was saved is loaded", loads_what_was_saved},
        {"records and pages tell of runs", tells_of_runs},
        {"nonzeros are held out, and the error on them is told", holds_nonzeros_out},
    };

    return slc_test_main("api: cpd", tests, SLC_COUNT(tests), argc, argv);
}
