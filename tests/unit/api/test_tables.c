/* CSV, and names of indices, through the public API: only sluice/sluice.h and the shared
 * library. */
#include "api_test.h"
#include "arrow_producer.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static const char table[] = "who;when;fare;count\n"
                            "ann;2024-01-05 10:20:00;3;2\n"
                            "\"b;b\";2024-01-05 11:00:00;12;1\n"
                            "ann;2024-01-06 10:59:59;14;0.5\n"
                            ";2024-01-06 10:00:00;14;8\n";

static const char *place(const char *folder, const char *name)
{
    static char paths[16][600];
    static unsigned next;
    char *path = paths[next++ % 16];

    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static const char *written(const char *folder, const char *name, const char *text)
{
    const char *path = place(folder, name);
    FILE *file = fopen(path, "w");

    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    CU_ASSERT_TRUE(fputs(text, file) >= 0);
    CU_ASSERT_EQUAL(fclose(file), 0);
    return path;
}

static struct sluice_store *opened(const char *path)
{
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_store *store = NULL;

    API_OK(sluice_store_open(path, &store, &err), &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(store);
    return store;
}

/* Asserts that the names of a mode are these (NULL-terminated), and no others. */
static void
expect_names(struct sluice_store *store, uint32_t mode, const char *title, const char *const *names)
{
    struct sluice_error err = SLUICE_ERROR_INIT;
    uint64_t count = 0;

    CU_ASSERT_STRING_EQUAL(sluice_store_title(store, mode), title);
    for (; names[count] != NULL; count++) {
        const char *name = NULL;

        API_OK(sluice_store_get_name(store, mode, count, &name, &err), &err);
        CU_ASSERT_PTR_NOT_NULL_FATAL(name);
        CU_ASSERT_STRING_EQUAL(name, names[count]);
    }
    CU_ASSERT_EQUAL(sluice_store_name_count(store, mode), count);
}

static const char *same_name(void *context, uint32_t mode, uint64_t index)
{
    (void)mode;
    return index == 0 ? context : NULL;
}

/* A large mode without names needs no memory for names. */
static void large_modes_without_names_need_no_memory(void)
{
    static const char *const who[] = {"ann", "bob", NULL}, *const one[] = {"one", NULL};
    const char *folder = slc_test_folder();
    const char *input =
        written(folder, "ids.csv", "who,id\nann,4611686018427387903\nbob,9999999999\n");
    const char *output = place(folder, "ids.slc"), *built = place(folder, "built.slc");
    const uint64_t far = (UINT64_C(1) << 62) - 1, near = 4;
    const double value = 1;
    char name[] = "one";
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_convert_options options = {.struct_bytes = sizeof options};
    struct sluice_builder_options build = {.struct_bytes = sizeof build};
    struct sluice_builder *builder = NULL;
    struct sluice_store *store;

    options.run.memory_bytes = UINT64_C(256) << 20;
    options.table.columns = "who,int(id)";
    API_OK(sluice_convert(input, output, &options, NULL, &err), &err);
    store = opened(output);
    expect_names(store, 0, "who", who);
    expect_names(store, 1, "int(id)", (const char *const[]){NULL});
    sluice_store_close(store);

    build.run.memory_bytes = options.run.memory_bytes;
    build.entries.dims_order = 2;
    build.entries.dims[0] = far + 1;
    build.entries.dims[1] = near + 1;
    build.named_modes = 2;
    build.name = same_name;
    build.run.context = name;
    API_OK(sluice_builder_create(built, 2, &build, &builder, &err), &err);
    API_OK(sluice_builder_push(builder, 1, (const uint64_t *const[]){&far, &near}, &value, &err),
           &err);
    API_OK(sluice_builder_finish(builder, NULL, &err), &err);
    store = opened(built);
    expect_names(store, 1, "", one);
    sluice_store_close(store);
}

static void reads_tables(void)
{
    static const char *const who[] = {"ann", "b;b", NULL};
    static const char *const fares[] = {"[0, 10)", "[10, 20)", NULL};
    const char *folder = slc_test_folder();
    const char *input = written(folder, "in.csv", table), *output = place(folder, "out.slc");
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_convert_options options = {.struct_bytes = sizeof options};
    struct sluice_convert_report report = {.struct_bytes = sizeof report};
    struct sluice_store *store;

    options.table.columns = "who,hour(when),bin(fare,10)";
    options.table.value_column = "count";
    options.table.delimiter = ';';
    REFUSED(sluice_convert(input, output, &options, &report, &err), SLUICE_ERR_INPUT, "who");
    options.table.missing = SLUICE_MISSING_SKIP;
    API_OK(sluice_convert(input, output, &options, &report, &err), &err);
    CU_ASSERT_EQUAL(report.dialect, SLUICE_DIALECT_CSV);
    CU_ASSERT(report.order == 3 && report.nnz == 3 && report.skipped == 1);
    store = opened(output);
    expect_names(store, 0, "who", who);
    expect_names(store, 2, "bin(fare,10)", fares);
    sluice_store_close(store);
}

static void refuses_tables(void)
{
    const char *folder = slc_test_folder();
    const char *input = written(folder, "in.csv", table), *output = place(folder, "out.slc");
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_convert_options options = {.struct_bytes = sizeof options};

    options.table.value_column = "count";
    REFUSED(sluice_convert(input, output, &options, NULL, &err), SLUICE_ERR_USAGE, "set columns");
    options.table.columns = "who,when";
    options.entries.index_base = SLUICE_BASE_ONE;
    REFUSED(sluice_convert(input, output, &options, NULL, &err), SLUICE_ERR_USAGE, "index_base");
    options.entries.index_base = SLUICE_BASE_AUTO;
    options.table.delimiter = '"';
    REFUSED(sluice_convert(input, output, &options, NULL, &err), SLUICE_ERR_USAGE, "delimiter");
    options.table.delimiter = ';';
    options.table.columns = "whom,when";
    REFUSED(sluice_convert(input, output, &options, NULL, &err), SLUICE_ERR_USAGE, "who");
    options.table.missing = (enum sluice_missing)9;
    REFUSED(sluice_convert(input, output, &options, NULL, &err), SLUICE_ERR_USAGE, "missing 9");
    FRESH(options);
    options.dialect = SLUICE_DIALECT_CSV;
    REFUSED(sluice_convert(input, output, &options, NULL, &err), SLUICE_ERR_USAGE, "dialect");
}

static void reads_labels(void)
{
    static const char *const users[] = {"ann", "bob", NULL}, *const none[] = {NULL};
    const char *folder = slc_test_folder();
    const char *input = written(folder, "in.tns", "1 1 2\n2 3 4\n");
    const char *output = place(folder, "out.slc"), *labels[] = {folder, "2=nowhere.map"};
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_convert_options options = {.struct_bytes = sizeof options};
    struct sluice_store *store;
    const char *name = "";

    (void)written(folder, "mode-1-users.map", "ann\nbob\n");
    options.labels = labels;
    options.label_count = 1;
    API_OK(sluice_convert(input, output, &options, NULL, &err), &err);
    store = opened(output);
    expect_names(store, 0, "users", users);
    expect_names(store, 1, "", none);
    API_OK(sluice_store_get_name(store, 1, 2, &name, &err), &err);
    CU_ASSERT_PTR_NULL(name);
    REFUSED(sluice_store_get_name(store, 0, 2, &name, &err), SLUICE_ERR_USAGE, "index 2 of mode 0");
    REFUSED(sluice_store_get_name(store, 2, 0, &name, &err), SLUICE_ERR_USAGE, "2 modes");
    CU_ASSERT_STRING_EQUAL(sluice_store_title(store, 2), "");
    CU_ASSERT_EQUAL(sluice_store_name_count(store, 2), 0);
    sluice_store_close(store);
    options.label_count = 2;
    options.output.overwrite = 1;
    REFUSED(sluice_convert(input, output, &options, NULL, &err), SLUICE_ERR_IO, "cannot open");
}

/* A tensor of two named modes grows by an index: its name is added, others are kept. */
static void appends_with_labels(void)
{
    static const char *const before[] = {"ann", "bob", NULL};
    static const char *const after[] = {"ann", "bob", "cyd", NULL};
    const char *folder = slc_test_folder();
    const char *output = place(folder, "out.slc"), *more = written(folder, "more.tns", "3 1 7\n");
    const char *labels[] = {folder}, *bad[] = {"1=", "2="};
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_convert_options options = {.struct_bytes = sizeof options};
    struct sluice_append_options append = {.struct_bytes = sizeof append};
    struct sluice_store *store;
    char wrong[700];

    (void)written(folder, "mode-1-users.map", "ann\nbob\n");
    options.labels = labels;
    options.label_count = 1;
    API_OK(
        sluice_convert(written(folder, "in.tns", "1 1 2\n2 3 4\n"), output, &options, NULL, &err),
        &err);
    append.labels = bad;
    append.label_count = 1;
    REFUSED(sluice_append(output, more, &append, NULL, &err), SLUICE_ERR_USAGE, "K=FILE");
    snprintf(wrong, sizeof wrong, "1=%s", written(folder, "wrong.map", "ann\nbo\ncyd\n"));
    bad[0] = wrong;
    REFUSED(sluice_append(output, more, &append, NULL, &err), SLUICE_ERR_INPUT,
            "index 2 of mode 1 is called 'bo' here and 'bob' in the store");
    snprintf(wrong, sizeof wrong, "1=%s", written(folder, "short.map", "ann\nbob\n"));
    REFUSED(sluice_append(output, more, &append, NULL, &err), SLUICE_ERR_INPUT,
            "2 names end here, but mode 1 has 3");
    snprintf(wrong, sizeof wrong, "3=%s", written(folder, "third.map", "a\n"));
    REFUSED(sluice_append(output, more, &append, NULL, &err), SLUICE_ERR_USAGE, "has 2 modes");
    store = opened(output);
    expect_names(store, 0, "users", before);
    sluice_store_close(store);
    (void)written(folder, "mode-1-users.map", "ann\nbob\ncyd\n");
    append.labels = labels;
    API_OK(sluice_append(output, more, &append, NULL, &err), &err);
    store = opened(output);
    expect_names(store, 0, "users", after);
    sluice_store_close(store);
    API_OK(sluice_check(output, NULL, NULL, &err), &err);
}

/* Rows of a CSV are read with the columns stored in the store, for any file name. */
static void appends_tables(void)
{
    static const char *const who[] = {"ann", "b;b", "cyd", NULL};
    const char *folder = slc_test_folder();
    const char *input = written(folder, "in.csv", table), *output = place(folder, "out.slc");
    const char *more = written(
        folder, "more.txt", "who;when;fare;count\ncyd;2023-04-01 01:00:00;5;2\n;2023-04-01;5;2\n");
    const char *labels[] = {folder};
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_convert_options options = {.struct_bytes = sizeof options};
    struct sluice_append_options append = {.struct_bytes = sizeof append};
    struct sluice_append_report report = {.struct_bytes = sizeof report};
    struct sluice_store *store;

    options.table.columns = "who,hour(when)";
    options.table.value_column = "count";
    options.table.delimiter = ';';
    options.table.missing = SLUICE_MISSING_SKIP;
    options.values = "values.npy";
    REFUSED(sluice_convert(input, output, &options, NULL, &err), SLUICE_ERR_USAGE, "value_column");
    options.values = NULL;
    API_OK(sluice_convert(input, output, &options, NULL, &err), &err);
    append.table = 1;
    append.index_base = SLUICE_BASE_ZERO;
    REFUSED(sluice_append(output, more, &append, NULL, &err), SLUICE_ERR_USAGE, "apply to tables");
    append.index_base = SLUICE_BASE_AUTO;
    append.labels = labels;
    append.label_count = 1;
    (void)written(folder, "mode-1.map", "x\n");
    REFUSED(sluice_append(output, more, &append, NULL, &err), SLUICE_ERR_USAGE,
            "its columns contain the names");
    append.label_count = 0;
    API_OK(sluice_append(output, more, &append, &report, &err), &err);
    CU_ASSERT_EQUAL(report.entries, 1);
    CU_ASSERT_EQUAL(report.skipped, 1);
    store = opened(output);
    expect_names(store, 0, "who", who);
    sluice_store_close(store);
}

static const char *give_name(void *context, uint32_t mode, uint64_t index)
{
    static const char *const names[] = {"red", "green"};

    CU_ASSERT_EQUAL(mode, 1);
    CU_ASSERT_EQUAL(index, (*(uint64_t *)context)++);
    return index < 2 ? names[index] : NULL;
}

static void names_pushed_nonzeros(void)
{
    static const char *const colors[] = {"red", "green", NULL}, *const none[] = {NULL};
    static const uint64_t first[] = {0, 4, 1}, second[] = {2, 0, 1};
    static const double values[] = {1, 2, 3};
    const uint64_t *const coords[] = {first, second};
    const char *output = place(slc_test_folder(), "out.slc");
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_builder_options options = {.struct_bytes = sizeof options};
    struct sluice_builder *builder = NULL;
    struct sluice_store *store;
    uint64_t asked = 0;
    char title[300] = "color";

    options.named_modes = 2;
    REFUSED(sluice_builder_create(output, 2, &options, &builder, &err), SLUICE_ERR_USAGE, "`name`");
    options.name = give_name;
    options.run.context = &asked;
    options.titles[1] = title;
    API_OK(sluice_builder_create(output, 2, &options, &builder, &err), &err);
    memset(title, 'x', sizeof title - 1);
    API_OK(sluice_builder_push(builder, 3, coords, values, &err), &err);
    API_OK(sluice_builder_finish(builder, NULL, &err), &err);
    CU_ASSERT_EQUAL(asked, 3);
    store = opened(output);
    expect_names(store, 0, "", none);
    expect_names(store, 1, "color", colors);
    sluice_store_close(store);
    REFUSED(sluice_builder_create(output, 2, &options, &builder, &err), SLUICE_ERR_USAGE, "title");
}

/* Callback that returns names; *context determines their length. */
static const char *give_long_name(void *context, uint32_t mode, uint64_t index)
{
    static char name[8000];
    const size_t bytes = *(const size_t *)context;

    (void)mode;
    (void)index;
    memset(name, 'x', bytes);
    name[bytes] = '\0';
    return name;
}

/* A file of names that cannot be written, and an invalid name: no files are left. */
static void names_that_fail(void)
{
    static const uint64_t first[] = {0, 3999}, second[] = {0, 1};
    static const double values[] = {1, 2};
    static const struct {
        size_t bytes;
        rlim_t limit; /* limit for the size of a file */
        enum sluice_status want;
        const char *part;
    } cases[] = {{3000, 1 << 20, SLUICE_ERR_NOSPACE, "File too large"},
                 {5000, RLIM_INFINITY, SLUICE_ERR_INPUT, "4095"}};
    const uint64_t *const coords[] = {first, second};
    const char *folder = slc_test_folder(), *output = place(folder, "out.slc");
    struct rlimit before;

    CU_ASSERT_EQUAL(getrlimit(RLIMIT_FSIZE, &before), 0);
    (void)signal(SIGXFSZ, SIG_IGN);
    for (unsigned c = 0; c < SLC_COUNT(cases); c++) {
        struct rlimit limit = {.rlim_cur = cases[c].limit, .rlim_max = before.rlim_max};
        struct sluice_builder_options options = {.struct_bytes = sizeof options};
        struct sluice_builder *builder = NULL;
        struct sluice_error err = SLUICE_ERROR_INIT;
        size_t bytes = cases[c].bytes;

        options.named_modes = 1;
        options.name = give_long_name;
        options.run.context = &bytes;
        API_OK(sluice_builder_create(output, 2, &options, &builder, &err), &err);
        API_OK(sluice_builder_push(builder, 2, coords, values, &err), &err);
        limit.rlim_cur = limit.rlim_cur < before.rlim_max ? limit.rlim_cur : before.rlim_max;
        CU_ASSERT_EQUAL(setrlimit(RLIMIT_FSIZE, &limit), 0);
        REFUSED(sluice_builder_finish(builder, NULL, &err), cases[c].want, cases[c].part);
        CU_ASSERT_EQUAL(setrlimit(RLIMIT_FSIZE, &before), 0);
        /* The test's folder is empty. */
        CU_ASSERT_EQUAL(rmdir(folder), 0);
        CU_ASSERT_EQUAL(mkdir(folder, 0777), 0);
    }
}

/* A stream is released exactly once, also if the call fails. */
static void refuses_streams(void)
{
    const char *folder = slc_test_folder(), *output = place(folder, "out.slc");
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_convert_options options = {.struct_bytes = sizeof options};
    struct sluice_append_options append = {.struct_bytes = sizeof append};
    struct slc_producer p;

    REFUSED(sluice_convert_arrow(NULL, output, NULL, NULL, &err), SLUICE_ERR_USAGE, "stream");
    REFUSED(sluice_append_arrow(output, NULL, NULL, NULL, &err), SLUICE_ERR_USAGE, "stream");
    slc_produce(&p, "i", 0);
    p.schema_code = EIO;
    p.stream.get_last_error = NULL;
    REFUSED(sluice_convert_arrow(&p.stream, output, NULL, NULL, &err), SLUICE_ERR_INPUT,
            "Input/output error");
    REFUSED(sluice_convert_arrow(&p.stream, output, NULL, NULL, &err), SLUICE_ERR_USAGE,
            "released before");
    CU_ASSERT_EQUAL(p.streams, 1);
    slc_produce(&p, "i", 0);
    options.struct_bytes = 0;
    REFUSED(sluice_convert_arrow(&p.stream, output, &options, NULL, &err), SLUICE_ERR_USAGE,
            "struct_bytes");
    CU_ASSERT_EQUAL(p.streams, 1);
    slc_produce(&p, "i", 0);
    p.schema_code = EIO;
    append.index_base = SLUICE_BASE_ONE;
    REFUSED(sluice_append_arrow(output, &p.stream, &append, NULL, &err), SLUICE_ERR_INPUT, "");
    CU_ASSERT_EQUAL(p.streams, 1);
}

/* A stream that needs more than the budget is refused before its first batch, with a budget that
 * suffices for all batches: also for more rows than memory. So is one whose output exists. */
static void refuses_small_budgets(void)
{
    enum { ROWS = 1 << 15, BATCHES = 64 };
    const char *output = place(slc_test_folder(), "out.slc");
    struct sluice_convert_options options = {.struct_bytes = sizeof options};
    struct sluice_convert_report report = {.struct_bytes = sizeof report};
    struct sluice_error err = SLUICE_ERROR_INIT;
    enum sluice_status status = SLUICE_ERR_BUDGET;
    int32_t *numbers = malloc(ROWS * sizeof *numbers);
    struct slc_producer p;
    unsigned tries = 0;

    for (uint32_t i = 0; i < ROWS; i++) {
        numbers[i] = (int32_t)(i * 2654435761u % 30011);
    }
    options.table.columns = "c,int(c),c";
    options.run.memory_bytes = 1 << 20;
    /* Try again: the process may have grown since the first message. */
    for (; status == SLUICE_ERR_BUDGET && tries < 4; tries++) {
        slc_produce(&p, "i", ROWS);
        p.column_buffers[1] = slc_copy_buffer(&p, numbers, ROWS * sizeof *numbers);
        p.repeats = BATCHES;
        status = sluice_convert_arrow(&p.stream, output, &options, &report, &err);
        slc_free_buffers(&p);
        CU_ASSERT_TRUE(status == SLUICE_OK ? p.sent == BATCHES : p.asked == 0);
        if (status == SLUICE_ERR_BUDGET) {
            const char *needs = strstr(err.message, " needs ");

            CU_ASSERT_PTR_NOT_NULL_FATAL(needs);
            options.run.memory_bytes = strtoull(needs + 7, NULL, 10) << 20;
            err = (struct sluice_error)SLUICE_ERROR_INIT;
        }
    }
    API_OK(status, &err);
    CU_ASSERT_TRUE(tries > 1);
    CU_ASSERT_EQUAL(report.entries, (uint64_t)ROWS * BATCHES);
    options.run.memory_bytes = 0;
    slc_produce(&p, "i", 0);
    REFUSED(sluice_convert_arrow(&p.stream, output, &options, NULL, &err), SLUICE_ERR_IO,
            "the output exists");
    CU_ASSERT_EQUAL(p.asked, 0);
    free(numbers);
}

SLC_SUITE(tables)
{
    static const struct slc_test tests[] = {
        {"tables", reads_tables},
        {"large modes without names need no memory", large_modes_without_names_need_no_memory},
        {"tables that are refused", refuses_tables},
        {"streams that are refused", refuses_streams},
        {"streams with too little memory", refuses_small_budgets},
        {"names from files", reads_labels},
        {"appended nonzeros bring their names", appends_with_labels},
        {"rows of a table are appended", appends_tables},
        {"names of pushed nonzeros", names_pushed_nonzeros},
        {"names that cannot be written", names_that_fail},
    };

    return slc_test_main("api tables", tests, SLC_COUNT(tests), argc, argv);
}
