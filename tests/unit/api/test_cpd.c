/* Decompositions through the public API: stopped by callbacks, saved in checkpoints, resumed, saved
 * and loaded. */
#include "api_test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RANK = 3, ITERATIONS = 8, STOP_AFTER = 3 };

/* Settings and observations of callbacks. */
struct watch {
    unsigned stop_after; /* iteration after which the callback stops the run; 0: never */
    unsigned first;      /* number of the first iteration */
    unsigned iterations, progress, resumed, checkpointed;
    double fits[ITERATIONS];
    bool stop_in_pass;
};

static int on_iteration(void *context, const struct sluice_iteration *iteration)
{
    struct watch *watch = context;

    CU_ASSERT_EQUAL(iteration->iteration, watch->first + watch->iterations);
    CU_ASSERT_TRUE(iteration->iteration <= ITERATIONS);
    watch->fits[iteration->iteration - 1] = iteration->fit;
    watch->iterations++;
    return iteration->iteration == watch->stop_after;
}

static int on_progress(void *context, const struct sluice_progress *progress)
{
    struct watch *watch = context;

    CU_ASSERT_TRUE(progress->mode < 3 && progress->iteration >= 1 &&
                   progress->done <= progress->total);
    watch->progress++;
    return watch->stop_in_pass;
}

static void on_resume(void *context, const struct sluice_checkpoint *checkpoint)
{
    struct watch *watch = context;

    watch->resumed++;
    CU_ASSERT_EQUAL(checkpoint->past_count, STOP_AFTER);
    CU_ASSERT_EQUAL(checkpoint->iteration, STOP_AFTER + 1);
    CU_ASSERT_EQUAL(checkpoint->mode, 0);
    for (uint64_t i = 0; i < checkpoint->past_count; i++) {
        CU_ASSERT_EQUAL(checkpoint->past[i]->iteration, i + 1);
        watch->fits[i] = checkpoint->past[i]->fit;
    }
}

static void on_checkpoint(void *context, const struct sluice_checkpoint *checkpoint)
{
    struct watch *watch = context;

    watch->checkpointed++;
    CU_ASSERT_TRUE(checkpoint->bytes > 0 && checkpoint->seconds >= 0);
}

static struct sluice_store *made_store(const char *folder)
{
    static const uint64_t dims[3] = {40, 30, 20};
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_generate_options options = {.struct_bytes = sizeof options};
    struct sluice_store *store = NULL;
    char path[600];

    snprintf(path, sizeof path, "%s/made.slc", folder);
    options.output.block_bytes = 4096;
    API_OK(sluice_generate(path, 3, dims, 8000, &options, &err), &err);
    API_OK(sluice_store_open(path, &store, &err), &err);
    return store;
}

static void set_options(struct sluice_cpd_options *options, struct watch *watch)
{
    FRESH(*options);
    options->compute.deterministic = 1;
    options->iterations = ITERATIONS;
    options->tolerance = -1;
    options->iteration = on_iteration;
    options->run.progress = on_progress;
    options->resumed = on_resume;
    options->checkpointed = on_checkpoint;
    options->run.context = watch;
}

static void check_same(const struct sluice_model *a, const struct sluice_model *b)
{
    struct sluice_error err = SLUICE_ERROR_INIT;
    const struct sluice_model_info info = api_info(a), same = api_info(b);
    double one[40 * RANK], other[40 * RANK];

    for (uint32_t n = 0; n < 3; n++) {
        const size_t bytes = info.dims[n] * RANK * sizeof(double);

        CU_ASSERT_EQUAL_FATAL(info.dims[n], same.dims[n]);
        api_factor(a, n, one, SLC_COUNT(one));
        api_factor(b, n, other, SLC_COUNT(other));
        CU_ASSERT_EQUAL(memcmp(one, other, bytes), 0);
    }
    API_OK(sluice_model_get_weights(a, one, RANK, &err), &err);
    API_OK(sluice_model_get_weights(b, other, RANK, &err), &err);
    CU_ASSERT_EQUAL(memcmp(one, other, RANK * sizeof(double)), 0);
}

static void resumes_with_the_same_bits(void)
{
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_cpd_options options;
    struct sluice_model_info report = {.struct_bytes = sizeof report};
    struct sluice_store *store = made_store(slc_test_folder());
    struct sluice_model *whole = NULL, *part = NULL, *rest = NULL, *other = NULL;
    struct watch watch = {.first = 1}, again = {.first = 1, .stop_after = STOP_AFTER};
    char folder[600];

    set_options(&options, &watch);
    API_OK(sluice_cpd(store, RANK, &options, &whole, &err), &err);
    CU_ASSERT_EQUAL(watch.iterations, ITERATIONS);
    CU_ASSERT_EQUAL(api_info(whole).stop_reason, SLUICE_STOP_ITERATIONS);

    snprintf(folder, sizeof folder, "%s/kept", slc_test_folder());
    options.run.context = &again;
    options.checkpoint_folder = folder;
    API_OK(sluice_cpd(store, RANK, &options, &part, &err), &err);
    CU_ASSERT_EQUAL(api_info(part).stop_reason, SLUICE_STOP_REQUEST);
    CU_ASSERT_EQUAL(api_info(part).iterations, STOP_AFTER);
    API_OK(sluice_model_get_info(part, &report, &err), &err);
    CU_ASSERT_EQUAL(report.resume_iteration, STOP_AFTER + 1);
    CU_ASSERT_EQUAL(report.resume_mode, 0);
    CU_ASSERT_TRUE(report.checkpoints >= 1 && again.checkpointed == report.checkpoints);
    CU_ASSERT_EQUAL(report.resumes, 0);

    API_FAILS(sluice_cpd(store, RANK + 1, &options, &other, &err), SLUICE_ERR_USAGE, &err, "rank");
    CU_ASSERT_PTR_NULL(other);
    api_clear(&err);
    again = (struct watch){.first = STOP_AFTER + 1};
    API_OK(sluice_cpd(store, RANK, &options, &rest, &err), &err);
    CU_ASSERT_EQUAL(again.resumed, 1);
    CU_ASSERT_EQUAL(again.iterations, ITERATIONS - STOP_AFTER);
    CU_ASSERT_EQUAL(memcmp(again.fits, watch.fits, sizeof watch.fits), 0);
    check_same(whole, rest);
    API_OK(sluice_model_get_info(rest, &report, &err), &err);
    CU_ASSERT_EQUAL(report.resumes, 1);
    CU_ASSERT_EQUAL(report.resume_iteration, 0);
    CU_ASSERT_EQUAL(report.iterations, ITERATIONS);
    CU_ASSERT_EQUAL(report.fit, watch.fits[ITERATIONS - 1]);
    CU_ASSERT_TRUE(report.norm > 0 && report.seconds > 0);

    CU_ASSERT_EQUAL(access(folder, F_OK), 0);
    API_OK(sluice_checkpoint_remove(folder, &err), &err);
    CU_ASSERT_NOT_EQUAL(access(folder, F_OK), 0);
    API_OK(sluice_checkpoint_remove(folder, &err), &err);
    sluice_model_destroy(whole);
    sluice_model_destroy(part);
    sluice_model_destroy(rest);
    sluice_store_close(store);
}

/* Calls the library from a callback: the folder is in use by the calling run. */
static int use_folder_twice(void *context, const struct sluice_iteration *iteration)
{
    struct sluice_error err = SLUICE_ERROR_INIT;

    (void)iteration;
    API_FAILS(sluice_checkpoint_remove(context, &err), SLUICE_ERR_IO, &err, "");
    return 1;
}

static void restarts_and_keeps_others_out(void)
{
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_cpd_options options;
    struct sluice_store *store = made_store(slc_test_folder());
    struct sluice_model *part = NULL, *anew = NULL;
    struct watch watch = {.first = 1};
    atomic_int stop = 0;
    char folder[600];

    snprintf(folder, sizeof folder, "%s/kept", slc_test_folder());
    set_options(&options, &watch);
    options.checkpoint_folder = folder;
    options.iteration = use_folder_twice;
    options.run.progress = NULL;
    options.checkpointed = NULL;
    options.run.context = folder;
    options.run.stop = &stop;
    API_OK(sluice_cpd(store, RANK, &options, &part, &err), &err);
    CU_ASSERT_EQUAL(api_info(part).iterations, 1);
    CU_ASSERT_EQUAL(stop, 1);

    set_options(&options, &watch);
    options.checkpoint_folder = folder;
    options.restart = 1;
    API_OK(sluice_cpd(store, RANK, &options, &anew, &err), &err);
    CU_ASSERT_EQUAL(watch.resumed, 0);
    CU_ASSERT_EQUAL(watch.iterations, ITERATIONS);
    sluice_model_destroy(part);
    sluice_model_destroy(anew);
    sluice_store_close(store);
}

static void stops_within_a_pass(void)
{
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_cpd_options options;
    struct sluice_store *store = made_store(slc_test_folder());
    struct sluice_model *model = NULL;
    struct watch watch = {.first = 1, .stop_in_pass = true};

    set_options(&options, &watch);
    options.iterations = 1000000;
    options.max_seconds = 60;
    options.iteration = NULL;
    options.run.threads = 1;
    /* Without cached blocks the passes take half a second; shorter passes report no progress. */
    options.compute.no_cache = 1;
    options.compute.io_limit = 32 << 10;
    API_OK(sluice_cpd(store, RANK, &options, &model, &err), &err);
    CU_ASSERT_EQUAL(api_info(model).stop_reason, SLUICE_STOP_REQUEST);
    CU_ASSERT_TRUE(watch.progress >= 1);
    CU_ASSERT_TRUE(api_info(model).iterations < 1000000);
    sluice_model_destroy(model);
    sluice_store_close(store);
}

static void loads_saved_models(void)
{
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_cpd_options options = {.struct_bytes = sizeof options};
    struct sluice_model_info report = {.struct_bytes = sizeof report};
    struct sluice_store *store = made_store(slc_test_folder());
    struct sluice_model *model = NULL, *loaded = NULL, *missing = NULL;
    char folder[600];

    snprintf(folder, sizeof folder, "%s/model", slc_test_folder());
    options.iterations = 2;
    API_OK(sluice_cpd(store, RANK, &options, &model, &err), &err);
    API_OK(sluice_model_save(model, SLUICE_MODEL_NPY, folder, &err), &err);
    API_OK(sluice_model_load(store, folder, &loaded, &err), &err);
    check_same(model, loaded);
    CU_ASSERT_EQUAL(api_info(loaded).fit, api_info(model).fit);
    API_OK(sluice_model_get_info(loaded, &report, &err), &err);
    CU_ASSERT_EQUAL(report.rank, RANK);
    CU_ASSERT_EQUAL(report.iterations, 2);
    API_FAILS(sluice_model_load(store, slc_test_folder(), &missing, &err), SLUICE_ERR_IO, &err, "");
    CU_ASSERT_PTR_NULL(missing);
    sluice_model_destroy(model);
    sluice_model_destroy(loaded);
    sluice_store_close(store);
}

/* The text of a file; the caller frees it. */
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

/* Returns the cosine of columns r and s. */
static double cosine(const double *factor, uint64_t rows, unsigned r, unsigned s)
{
    double rr = 0, ss = 0, rs = 0;

    for (uint64_t i = 0; i < rows; i++) {
        rr += factor[i * RANK + r] * factor[i * RANK + r];
        ss += factor[i * RANK + s] * factor[i * RANK + s];
        rs += factor[i * RANK + r] * factor[i * RANK + s];
    }
    return rs / sqrt(rr * ss);
}

/* The diagnosis of a loaded model is that of its factors and of its record. */
static void check_diagnosis(const struct sluice_model *model)
{
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_diagnosis found = {.struct_bytes = sizeof found};
    struct sluice_model_info info = {.struct_bytes = sizeof info};
    double products[RANK][RANK], least = 1;

    API_OK(sluice_model_get_info(model, &info, &err), &err);
    API_OK(sluice_model_get_diagnosis(model, &found, &err), &err);
    for (unsigned n = 0; n < info.order; n++) {
        double *factor = malloc(info.dims[n] * RANK * sizeof *factor);

        CU_ASSERT_PTR_NOT_NULL_FATAL(factor);
        API_OK(sluice_model_get_factor(model, n, factor, info.dims[n] * RANK, &err), &err);
        for (unsigned r = 0; r < RANK; r++) {
            for (unsigned s = 0; s < RANK; s++) {
                products[r][s] = (n == 0 ? 1 : products[r][s]) * cosine(factor, info.dims[n], r, s);
                least = n + 1 == info.order ? fmin(least, products[r][s]) : least;
            }
        }
        free(factor);
        CU_ASSERT_TRUE(found.condition[n] >= 1);
    }
    CU_ASSERT_TRUE(isnan(found.condition[info.order]));
    CU_ASSERT_DOUBLE_EQUAL(found.smallest_congruence, least, 1e-12);
    CU_ASSERT_EQUAL(found.cancels, least < -0.95);
    CU_ASSERT_EQUAL(found.heldout_no_better_than_zeros,
                    strstr(sluice_model_record(model), "\"heldout_no_better_than_zeros\": true") !=
                        NULL);
    CU_ASSERT_EQUAL(found.fit_rising,
                    strstr(sluice_model_record(model), "\"fit_rising\": true") != NULL);
    CU_ASSERT_TRUE(found.note_count >= found.heldout_no_better_than_zeros &&
                   found.note_count <= SLUICE_MAX_NOTES);
    for (unsigned i = 0; i < found.note_count; i++) {
        CU_ASSERT_PTR_NOT_NULL(strstr(sluice_model_record(model), found.notes[i]));
    }
    found.struct_bytes = 0;
    api_clear(&err);
    API_FAILS(sluice_model_get_diagnosis(model, &found, &err), SLUICE_ERR_USAGE, &err,
              "sluice_diagnosis");
    api_clear(&err);
}

/* A model of numbers has no record and no diagnosis; its page states this. Saves it over the run in
 * `folder`. `record` is that of another model. */
static void check_model_of_numbers(const char *folder, const char *html, const char *record)
{
    static const char *const page[] = {"There is no run.json", "id=\"components\"", NULL};
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_report_options report = {
        .struct_bytes = sizeof report, .overwrite = 1, .rows = 1};
    struct sluice_diagnosis diagnosis = {.struct_bytes = sizeof diagnosis};
    struct sluice_model *numbers = NULL;
    const double one[] = {1};
    const double *const ones[] = {one, one};
    const uint64_t dims[] = {1, 1};

    API_OK(sluice_model_create(2, dims, 1, NULL, ones, &numbers, &err), &err);
    CU_ASSERT_PTR_NULL(sluice_model_record(numbers));
    API_OK(sluice_model_get_diagnosis(numbers, &diagnosis, &err), &err);
    CU_ASSERT_TRUE(isnan(diagnosis.smallest_congruence) && isnan(diagnosis.condition[0]));
    CU_ASSERT_EQUAL(diagnosis.note_count, 0);
    API_OK(sluice_model_report(numbers, html, &report, &err), &err);
    check_text(html, page);
    report.record = record;
    api_clear(&err);
    API_FAILS(sluice_model_report(numbers, html, &report, &err), SLUICE_ERR_INPUT, &err,
              "mode sizes");
    API_OK(sluice_model_save(numbers, SLUICE_MODEL_NPY, folder, &err), &err);
    sluice_model_destroy(numbers);
}

/* A run that was stopped and resumed has the record of all its iterations, like the command's; the
 * record is saved and loaded with the factors, and pages are made from it. */
static void records_runs(void)
{
    static const char *const page[] = {"<!DOCTYPE html>", "id=\"fit\"", "id=\"components\"",
                                       "--rank 3 --iters 8 --tol 0 --seed 5 --holdout 0.2", NULL};
    static const char *const record[] = {"\"schema\": \"sluice-run-1\"",
                                         "\"iteration\": 1",
                                         "\"iteration\": 8",
                                         "\"resumes\": 1",
                                         "\"command\": null",
                                         NULL};
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_cpd_options options = {.struct_bytes = sizeof options};
    struct sluice_report_options report = {.struct_bytes = sizeof report};
    struct sluice_store *store = made_store(slc_test_folder());
    struct sluice_model *model = NULL, *loaded = NULL;
    struct watch watch = {.first = 1, .stop_after = STOP_AFTER};
    char folder[600], path[700], html[700];

    snprintf(folder, sizeof folder, "%s/told", slc_test_folder());
    snprintf(path, sizeof path, "%s/run.json", folder);
    snprintf(html, sizeof html, "%s/page.html", slc_test_folder());
    options.iterations = ITERATIONS;
    options.tolerance = -1;
    options.seed = 5;
    options.holdout = 0.2;
    options.checkpoint_folder = folder;
    options.checkpoint_seconds = -1;
    options.iteration = on_iteration;
    options.run.context = &watch;
    API_OK(sluice_cpd(store, RANK, &options, &model, &err), &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(strstr(sluice_model_record(model), "\"reason\": \"signal\""));
    sluice_model_destroy(model);
    options.iteration = NULL;
    API_OK(sluice_cpd(store, RANK, &options, &model, &err), &err);
    API_OK(sluice_model_save(model, SLUICE_MODEL_NPY, folder, &err), &err);
    API_OK(sluice_checkpoint_remove(folder, &err), &err);
    check_text(path, record);

    API_OK(sluice_run_report(folder, html, NULL, &err), &err);
    check_text(html, page);
    api_clear(&err);
    API_FAILS(sluice_model_report(model, html, NULL, &err), SLUICE_ERR_IO, &err, "exists");
    report.overwrite = 1;
    API_OK(sluice_model_report(model, html, &report, &err), &err);
    check_text(html, page);
    report.rows = 1001;
    api_clear(&err);
    API_FAILS(sluice_run_report(folder, html, &report, &err), SLUICE_ERR_USAGE, &err, "rows");
    report.rows = 1;
    report.run.memory_bytes = 1 << 20;
    api_clear(&err);
    API_FAILS(sluice_run_report(folder, html, &report, &err), SLUICE_ERR_BUDGET, &err, "MiB");
    check_text(html, page);
    api_clear(&err);
    API_FAILS(sluice_run_report(slc_test_folder(), html, NULL, &err), SLUICE_ERR_IO, &err, "");

    API_OK(sluice_model_load(NULL, folder, &loaded, &err), &err);
    CU_ASSERT_STRING_EQUAL(sluice_model_record(loaded), sluice_model_record(model));
    check_diagnosis(loaded);
    check_model_of_numbers(folder, html, sluice_model_record(model));
    CU_ASSERT_EQUAL(access(path, F_OK), -1);
    sluice_model_destroy(loaded);
    sluice_model_destroy(model);
    sluice_store_close(store);
}

/* The last report of a run with held-out nonzeros. */
struct errors {
    unsigned iterations;
    uint64_t heldout;
    double rmse, mae;
};

static int on_errors(void *context, const struct sluice_iteration *iteration)
{
    struct errors *errors = context;

    CU_ASSERT_TRUE(errors->iterations == 0 || errors->heldout == iteration->heldout);
    CU_ASSERT_TRUE(isfinite(iteration->heldout_rmse) && iteration->heldout_mae > 0);
    /* A mean magnitude never exceeds the root of the mean square. */
    CU_ASSERT_TRUE(iteration->heldout_mae <= iteration->heldout_rmse);
    *errors = (struct errors){errors->iterations + 1, iteration->heldout, iteration->heldout_rmse,
                              iteration->heldout_mae};
    return 0;
}

static void holds_nonzeros_out(void)
{
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_cpd_options options;
    struct sluice_store_info info = {.struct_bytes = sizeof info};
    struct sluice_model_info report = {.struct_bytes = sizeof report}, other = report;
    struct sluice_store *store = made_store(slc_test_folder());
    struct sluice_model *model = NULL;
    struct errors errors = {0};

    set_options(&options, NULL);
    options.run.progress = NULL;
    options.checkpointed = NULL;
    options.iteration = on_errors;
    options.run.context = &errors;
    options.holdout = 0.1;
    API_OK(sluice_store_get_info(store, &info, &err), &err);
    API_OK(sluice_cpd(store, RANK, &options, &model, &err), &err);
    API_OK(sluice_model_get_info(model, &report, &err), &err);
    CU_ASSERT_EQUAL(errors.iterations, ITERATIONS);
    CU_ASSERT_EQUAL(report.heldout, errors.heldout);
    CU_ASSERT_TRUE(report.heldout > info.nnz / 20 && report.heldout < info.nnz / 5);
    CU_ASSERT_DOUBLE_EQUAL(report.heldout_rmse, errors.rmse, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(report.heldout_mae, errors.mae, 1e-12);
    /* ||X||^2 is the sum over held-out and other nonzeros. */
    CU_ASSERT_DOUBLE_EQUAL(hypot(report.norm, report.heldout_norm) / info.norm, 1.0, 1e-12);
    sluice_model_destroy(model);

    model = NULL;
    errors.iterations = 0;
    options.holdout_seed = 1;
    API_OK(sluice_cpd(store, RANK, &options, &model, &err), &err);
    API_OK(sluice_model_get_info(model, &other, &err), &err);
    CU_ASSERT_NOT_EQUAL(other.heldout_norm, report.heldout_norm);
    sluice_model_destroy(model);

    model = NULL;
    for (unsigned i = 0; i < 3; i++) {
        const double wrong[3] = {-0.1, 0.51, (double)NAN};

        api_clear(&err);
        options.holdout = wrong[i];
        API_FAILS(sluice_cpd(store, RANK, &options, &model, &err), SLUICE_ERR_USAGE, &err,
                  "holdout");
    }
    api_clear(&err);
    options.holdout = 1e-9;
    API_FAILS(sluice_cpd(store, RANK, &options, &model, &err), SLUICE_ERR_USAGE, &err, "held out");
    CU_ASSERT_PTR_NULL(model);
    sluice_store_close(store);
}

SLC_SUITE(cpd)
{
    static const struct slc_test tests[] = {
        {"a stopped run resumes with the same bits", resumes_with_the_same_bits},
        {"restart, and a folder that is in use", restarts_and_keeps_others_out},
        {"a callback stops a pass", stops_within_a_pass},
        {"a model that was saved is loaded", loads_saved_models},
        {"records and pages tell of runs", records_runs},
        {"nonzeros are held out, and their error is reported", holds_nonzeros_out},
    };

    return slc_test_main("api: cpd", tests, SLC_COUNT(tests), argc, argv);
}
