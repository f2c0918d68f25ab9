/* No public function crashes on a NULL pointer. Required arguments are SLUICE_ERR_USAGE, and the
 * message names the argument. Optional arguments are tested where their function is. */
#include "api_test.h"

static struct sluice_error err = SLUICE_ERROR_INIT;

/* Asserts that `call` rejects the NULL argument `name`. */
#define NULL_IS_REFUSED(name, call) REFUSED(call, SLUICE_ERR_USAGE, name " is NULL")

static char store_path[600];
static struct sluice_store *store;
static struct sluice_model *model;
static const uint64_t dims[2] = {2, 2};
static double numbers[8] = {1, 2, 3, 4, 5, 6, 7, 8};
static const double *const arrays[2] = {numbers, numbers};
static const uint64_t indices[2] = {0, 1};
static const uint64_t *const coords[2] = {indices, indices};
static const uint64_t *const no_column[2] = {indices, NULL};

static const char *out_path(const char *name)
{
    static char path[600];

    (void)snprintf(path, sizeof path, "%s/%s", slc_test_folder(), name);
    return path;
}

/* Makes the store and the model of all tests. */
static void prepare(void)
{
    (void)snprintf(store_path, sizeof store_path, "%s", out_path("null.slc"));
    API_OK(sluice_generate(store_path, 2, dims, 2, NULL, &err), &err);
    API_OK(sluice_store_open(store_path, &store, &err), &err);
    API_OK(sluice_model_create(2, dims, 2, numbers, arrays, &model, &err), &err);
}

static void release(void)
{
    sluice_model_destroy(model);
    sluice_store_close(store);
}

static int ignore_row(void *context, const struct sluice_top_row *row)
{
    (void)context;
    (void)row;
    return 0;
}

static int ignore_run(void *context, const struct sluice_compared_run *run)
{
    (void)context;
    (void)run;
    return 0;
}

static void stores(void)
{
    struct sluice_store *opened = NULL;
    struct sluice_store_info info;
    struct sluice_appended appended;
    struct sluice_layout_info layout;
    const char *name;
    char text[64];

    NULL_IS_REFUSED("path", sluice_store_open(NULL, &opened, &err));
    NULL_IS_REFUSED("ret_store", sluice_store_open(store_path, NULL, &err));
    FRESH(info);
    NULL_IS_REFUSED("store", sluice_store_get_info(NULL, &info, &err));
    NULL_IS_REFUSED("info", sluice_store_get_info(store, NULL, &err));
    FRESH(appended);
    NULL_IS_REFUSED("store", sluice_store_get_appended(NULL, 0, &appended, &err));
    NULL_IS_REFUSED("appended", sluice_store_get_appended(store, 0, NULL, &err));
    NULL_IS_REFUSED("store", sluice_store_get_name(NULL, 0, 0, &name, &err));
    NULL_IS_REFUSED("ret_name", sluice_store_get_name(store, 0, 0, NULL, &err));
    FRESH(layout);
    NULL_IS_REFUSED("store", sluice_store_get_layout(NULL, 0, &layout, &err));
    NULL_IS_REFUSED("info", sluice_store_get_layout(store, 0, NULL, &err));
    NULL_IS_REFUSED("store", sluice_store_get_stripe(NULL, 0, 0, text, sizeof text, NULL, &err));
    NULL_IS_REFUSED("path", sluice_store_get_stripe(store, 0, 0, NULL, 5, NULL, &err));
    NULL_IS_REFUSED("path", sluice_layout_add(NULL, SLUICE_LAYOUT_SORTED, 0, NULL, &err));
    NULL_IS_REFUSED("path", sluice_layout_drop(NULL, SLUICE_LAYOUT_SORTED, 0, &err));
    NULL_IS_REFUSED("path", sluice_layout_gather(NULL, SLUICE_LAYOUT_BLCO, 0, NULL, &err));
    const char *const folders[1] = {NULL};
    NULL_IS_REFUSED("path",
                    sluice_layout_stripe(NULL, SLUICE_LAYOUT_BLCO, 0, 1, folders, NULL, &err));
    NULL_IS_REFUSED("folders",
                    sluice_layout_stripe(store_path, SLUICE_LAYOUT_BLCO, 0, 1, NULL, NULL, &err));
    NULL_IS_REFUSED("folders[0]", sluice_layout_stripe(store_path, SLUICE_LAYOUT_BLCO, 0, 1,
                                                       folders, NULL, &err));
    NULL_IS_REFUSED("path", sluice_check(NULL, NULL, NULL, &err));
    API_OK(sluice_check(store_path, NULL, NULL, NULL), &err);
    CU_ASSERT_STRING_EQUAL(sluice_store_title(NULL, 0), "");
    CU_ASSERT_EQUAL(sluice_store_name_count(NULL, 0), 0);
    CU_ASSERT_EQUAL(sluice_store_layout_count(NULL), 0);
    sluice_store_close(NULL);
}

static void conversions(void)
{
    struct sluice_builder *builder = NULL;
    const struct sluice_range range = {0, 0, 1};
    const uint32_t modes[2] = {1, 0};
    const char *out = out_path("n.slc");

    NULL_IS_REFUSED("input", sluice_convert(NULL, out, NULL, NULL, &err));
    NULL_IS_REFUSED("output", sluice_convert("x.tns", NULL, NULL, NULL, &err));
    REFUSED(sluice_convert_arrow(NULL, out, NULL, NULL, &err), SLUICE_ERR_USAGE, "`stream`");
    NULL_IS_REFUSED("output", sluice_convert_arrow(NULL, NULL, NULL, NULL, &err));
    REFUSED(sluice_append_arrow(store_path, NULL, NULL, NULL, &err), SLUICE_ERR_USAGE, "`stream`");
    NULL_IS_REFUSED("path", sluice_append_arrow(NULL, NULL, NULL, NULL, &err));
    NULL_IS_REFUSED("path", sluice_append(NULL, "x.tns", NULL, NULL, &err));
    NULL_IS_REFUSED("input", sluice_append(store_path, NULL, NULL, NULL, &err));
    NULL_IS_REFUSED("output", sluice_generate(NULL, 2, dims, 2, NULL, &err));
    NULL_IS_REFUSED("dims", sluice_generate(out, 2, NULL, 2, NULL, &err));
    NULL_IS_REFUSED("path", sluice_slice(NULL, out, 1, &range, NULL, NULL, &err));
    NULL_IS_REFUSED("output", sluice_slice(store_path, NULL, 1, &range, NULL, NULL, &err));
    NULL_IS_REFUSED("ranges", sluice_slice(store_path, out, 1, NULL, NULL, NULL, &err));
    NULL_IS_REFUSED("path", sluice_permute(NULL, out, 2, modes, NULL, NULL, &err));
    NULL_IS_REFUSED("output", sluice_permute(store_path, NULL, 2, modes, NULL, NULL, &err));
    NULL_IS_REFUSED("modes", sluice_permute(store_path, out, 2, NULL, NULL, NULL, &err));
    NULL_IS_REFUSED("path", sluice_export(NULL, out, NULL, NULL, &err));
    NULL_IS_REFUSED("output", sluice_export(store_path, NULL, NULL, NULL, &err));
    NULL_IS_REFUSED("output", sluice_builder_create(NULL, 2, NULL, &builder, &err));
    NULL_IS_REFUSED("ret_builder", sluice_builder_create(out, 2, NULL, NULL, &err));
    API_OK(sluice_builder_create(out, 2, NULL, &builder, &err), &err);
    NULL_IS_REFUSED("builder", sluice_builder_push(NULL, 2, coords, numbers, &err));
    NULL_IS_REFUSED("coords", sluice_builder_push(builder, 2, NULL, numbers, &err));
    NULL_IS_REFUSED("values", sluice_builder_push(builder, 2, coords, NULL, &err));
    API_OK(sluice_builder_push(builder, 0, NULL, NULL, &err), &err);
    NULL_IS_REFUSED("coords[1]", sluice_builder_push(builder, 2, no_column, numbers, &err));
    NULL_IS_REFUSED("builder", sluice_builder_finish(NULL, NULL, &err));
    sluice_builder_abandon(builder);
    sluice_builder_abandon(NULL);
}

static void computations(void)
{
    struct sluice_plan plan;

    FRESH(plan);
    NULL_IS_REFUSED("store", sluice_mttkrp_plan(NULL, 0, 2, NULL, &plan, &err));
    NULL_IS_REFUSED("plan", sluice_mttkrp_plan(store, 0, 2, NULL, NULL, &err));
    NULL_IS_REFUSED("store", sluice_mttkrp(NULL, 0, 2, arrays, numbers, 4, NULL, &err));
    NULL_IS_REFUSED("factors", sluice_mttkrp(store, 0, 2, NULL, numbers, 4, NULL, &err));
    NULL_IS_REFUSED("output", sluice_mttkrp(store, 0, 2, arrays, NULL, 4, NULL, &err));
    NULL_IS_REFUSED("store", sluice_ttv(NULL, arrays, NULL, NULL, NULL, &err));
    NULL_IS_REFUSED("vectors", sluice_ttv(store, NULL, NULL, NULL, NULL, &err));
    NULL_IS_REFUSED("store", sluice_ttm(NULL, 0, 2, numbers, "x", NULL, NULL, &err));
    NULL_IS_REFUSED("matrix", sluice_ttm(store, 0, 2, NULL, "x", NULL, NULL, &err));
    NULL_IS_REFUSED("output", sluice_ttm(store, 0, 2, numbers, NULL, NULL, NULL, &err));
    NULL_IS_REFUSED("paths", sluice_join(2, NULL, "x", NULL, &err));
    NULL_IS_REFUSED("output", sluice_join(1, (const char *const[]){"x"}, NULL, NULL, &err));
    REFUSED(sluice_join(1, (const char *const[]){NULL}, "x", NULL, &err), SLUICE_ERR_USAGE,
            "path 0 is NULL");
    REFUSED(sluice_join(0, NULL, "x", NULL, &err), SLUICE_ERR_USAGE, "no part");
    NULL_IS_REFUSED("store", sluice_cpd_plan(NULL, 2, NULL, &plan, &err));
    NULL_IS_REFUSED("plan", sluice_cpd_plan(store, 2, NULL, NULL, &err));
    NULL_IS_REFUSED("store", sluice_cpd(NULL, 2, NULL, &model, &err));
    NULL_IS_REFUSED("ret_model", sluice_cpd(store, 2, NULL, NULL, &err));
    NULL_IS_REFUSED("folder", sluice_checkpoint_remove(NULL, &err));
}

static void models(void)
{
    struct sluice_model *made = NULL;
    struct sluice_model_info info;
    struct sluice_diagnosis diagnosis;
    const char *out = out_path("n");

    NULL_IS_REFUSED("dims", sluice_model_create(2, NULL, 2, numbers, arrays, &made, &err));
    NULL_IS_REFUSED("factors", sluice_model_create(2, dims, 2, numbers, NULL, &made, &err));
    NULL_IS_REFUSED("ret_model", sluice_model_create(2, dims, 2, numbers, arrays, NULL, &err));
    NULL_IS_REFUSED("model", sluice_model_set_loss(NULL, SLUICE_LOSS_LS, 1.0, &err));
    NULL_IS_REFUSED("folder", sluice_model_load(store, NULL, &made, &err));
    NULL_IS_REFUSED("ret_model", sluice_model_load(store, "x", NULL, &err));
    FRESH(info);
    NULL_IS_REFUSED("model", sluice_model_get_info(NULL, &info, &err));
    NULL_IS_REFUSED("info", sluice_model_get_info(model, NULL, &err));
    FRESH(diagnosis);
    NULL_IS_REFUSED("model", sluice_model_get_diagnosis(NULL, &diagnosis, &err));
    NULL_IS_REFUSED("diagnosis", sluice_model_get_diagnosis(model, NULL, &err));
    NULL_IS_REFUSED("model", sluice_model_get_weights(NULL, numbers, 2, &err));
    NULL_IS_REFUSED("weights", sluice_model_get_weights(model, NULL, 2, &err));
    NULL_IS_REFUSED("model", sluice_model_get_factor(NULL, 0, numbers, 4, &err));
    NULL_IS_REFUSED("factor", sluice_model_get_factor(model, 0, NULL, 4, &err));
    NULL_IS_REFUSED("model", sluice_model_save(NULL, SLUICE_MODEL_NPY, out, &err));
    NULL_IS_REFUSED("path", sluice_model_save(model, SLUICE_MODEL_NPY, NULL, &err));
    NULL_IS_REFUSED("model", sluice_model_export(NULL, out, NULL, &err));
    NULL_IS_REFUSED("output", sluice_model_export(model, NULL, NULL, &err));
    NULL_IS_REFUSED("folder", sluice_run_export(NULL, out, NULL, &err));
    NULL_IS_REFUSED("output", sluice_run_export("x", NULL, NULL, &err));
    NULL_IS_REFUSED("model", sluice_model_top(NULL, NULL, ignore_row, &err));
    NULL_IS_REFUSED("row", sluice_model_top(model, NULL, NULL, &err));
    NULL_IS_REFUSED("folder", sluice_run_top(NULL, NULL, ignore_row, &err));
    NULL_IS_REFUSED("row", sluice_run_top("x", NULL, NULL, &err));
    NULL_IS_REFUSED("model", sluice_model_report(NULL, out, NULL, &err));
    NULL_IS_REFUSED("output", sluice_model_report(model, NULL, NULL, &err));
    NULL_IS_REFUSED("folder", sluice_run_report(NULL, out, NULL, &err));
    NULL_IS_REFUSED("output", sluice_run_report("x", NULL, NULL, &err));
    CU_ASSERT_PTR_NULL(sluice_model_record(NULL));
    sluice_model_destroy(NULL);
}

static void experimental(void)
{
    struct sluice_sweep *sweep = NULL;
    struct sluice_sweep_run run;
    struct sluice_sweep_rank rank;
    struct sluice_sweep_suggestion suggestion;
    const uint32_t ranks[1] = {2};

    NULL_IS_REFUSED("model", sluice_predict(NULL, 2, coords, numbers, NULL, &err));
    NULL_IS_REFUSED("coords", sluice_predict(model, 2, NULL, numbers, NULL, &err));
    NULL_IS_REFUSED("coords[1]", sluice_predict(model, 2, no_column, numbers, NULL, &err));
    NULL_IS_REFUSED("values", sluice_predict(model, 2, coords, NULL, NULL, &err));
    API_OK(sluice_predict(model, 0, NULL, NULL, NULL, &err), &err);
    NULL_IS_REFUSED("model", sluice_predict_text(NULL, "x", NULL, NULL, NULL, &err));
    NULL_IS_REFUSED("input", sluice_predict_text(model, NULL, NULL, NULL, NULL, &err));
    NULL_IS_REFUSED("store", sluice_residuals(NULL, model, NULL, NULL, NULL, &err));
    NULL_IS_REFUSED("model", sluice_residuals(store, NULL, NULL, NULL, NULL, &err));
    API_OK(sluice_residuals(store, model, NULL, NULL, NULL, &err), &err);
    const char *const folders[2] = {"x", NULL};
    NULL_IS_REFUSED("folders", sluice_compare_runs(2, NULL, NULL, ignore_run, &err));
    NULL_IS_REFUSED("folders[1]", sluice_compare_runs(2, folders, NULL, ignore_run, &err));
    NULL_IS_REFUSED("run", sluice_compare_runs(1, folders, NULL, NULL, &err));
    NULL_IS_REFUSED("store", sluice_sweep_ranks(NULL, "x", 1, ranks, NULL, &sweep, &err));
    NULL_IS_REFUSED("folder", sluice_sweep_ranks(store, NULL, 1, ranks, NULL, &sweep, &err));
    NULL_IS_REFUSED("ranks", sluice_sweep_ranks(store, "x", 1, NULL, NULL, &sweep, &err));
    NULL_IS_REFUSED("ret_sweep", sluice_sweep_ranks(store, "x", 1, ranks, NULL, NULL, &err));
    FRESH(run);
    FRESH(rank);
    FRESH(suggestion);
    NULL_IS_REFUSED("sweep", sluice_sweep_get_run(NULL, 0, &run, &err));
    NULL_IS_REFUSED("sweep", sluice_sweep_get_rank(NULL, 0, &rank, &err));
    NULL_IS_REFUSED("sweep", sluice_sweep_suggest(NULL, &suggestion, &err));
    CU_ASSERT_EQUAL(sluice_sweep_run_count(NULL), 0);
    CU_ASSERT_EQUAL(sluice_sweep_rank_count(NULL), 0);
    sluice_sweep_destroy(NULL);
}

static void messages(void)
{
    uint64_t bytes;
    char text[16] = "x";

    NULL_IS_REFUSED("text", sluice_parse_size(NULL, &bytes, &err));
    NULL_IS_REFUSED("ret_bytes", sluice_parse_size("1G", NULL, &err));
    CU_ASSERT_EQUAL(sluice_parse_size(NULL, &bytes, NULL), SLUICE_ERR_USAGE);
    CU_ASSERT_EQUAL(sluice_error_format(NULL, text, sizeof text), 0);
    CU_ASSERT_STRING_EQUAL(text, "");
    CU_ASSERT_EQUAL(sluice_error_format(&err, NULL, 16), 0);
    sluice_log_to(NULL, NULL);
}

static void all(void)
{
    prepare();
    stores();
    conversions();
    computations();
    models();
    experimental();
    messages();
    release();
}

SLC_SUITE(null)
{
    static const struct slc_test tests[] = {
        {"every pointer argument may be NULL without a crash", all}};

    return slc_test_main("api: null", tests, SLC_COUNT(tests), argc, argv);
}
