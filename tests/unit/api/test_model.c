/* Models through the public API: made of factors, loaded without their store, and evaluated. */
#include "api_test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { RANK = 3, ORDER = 3, ENTRIES = 2000 };

static const uint64_t dims[ORDER] = {7, 5, 4};

/* Factors, and the model made of them. */
struct made {
    double lambda[RANK];
    double factor[ORDER][7 * RANK];
    const double *factors[ORDER];
    struct sluice_model *model;
};

/* The numbers are small multiples of 1/8: sums of their products are exact. */
static void make(struct made *made)
{
    struct sluice_error err = SLUICE_ERROR_INIT;

    made->model = NULL;
    for (unsigned n = 0; n < ORDER; n++) {
        made->factors[n] = made->factor[n];
        for (unsigned i = 0; i < dims[n] * RANK; i++) {
            made->factor[n][i] = ((double)((i * 7 + n * 5) % 11) - 4.0) / 8.0;
        }
    }
    for (unsigned r = 0; r < RANK; r++) {
        made->lambda[r] = 3.0 - r;
    }
    API_OK(sluice_model_create(ORDER, dims, RANK, made->lambda, made->factors, &made->model, &err),
           &err);
}

static double naive(const struct made *made, const uint64_t *index)
{
    double sum = 0;

    for (unsigned r = 0; r < RANK; r++) {
        double product = made->lambda[r];

        for (unsigned n = 0; n < ORDER; n++) {
            product *= made->factor[n][index[n] * RANK + r];
        }
        sum += product;
    }
    return sum;
}

static void is_made_of_factors(void)
{
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct made made;
    struct sluice_model *other = NULL;
    struct sluice_model_info report = {.struct_bytes = sizeof report};
    double factor[7 * RANK], lambda[RANK];
    const uint64_t empty[ORDER] = {7, 0, 4};

    make(&made);
    CU_ASSERT_EQUAL(api_info(made.model).order, ORDER);
    CU_ASSERT_EQUAL(api_info(made.model).rank, RANK);
    CU_ASSERT_EQUAL(api_info(made.model).dims[1], dims[1]);
    CU_ASSERT_TRUE(isnan(api_info(made.model).fit));
    api_factor(made.model, 0, factor, SLC_COUNT(factor));
    CU_ASSERT_EQUAL(memcmp(factor, made.factor[0], sizeof factor), 0);
    API_OK(sluice_model_get_info(made.model, &report, &err), &err);
    CU_ASSERT_TRUE(isnan(report.norm) && report.iterations == 0);
    sluice_model_destroy(made.model);

    made.model = NULL;
    API_OK(sluice_model_create(ORDER, dims, RANK, NULL, made.factors, &made.model, &err), &err);
    API_OK(sluice_model_get_weights(made.model, lambda, RANK, &err), &err);
    CU_ASSERT_TRUE(lambda[0] == 1 && lambda[RANK - 1] == 1);
    sluice_model_destroy(made.model);

    API_REFUSED(sluice_model_create(0, dims, RANK, NULL, made.factors, &other, &err),
                SLUICE_ERR_USAGE, &err, "0 modes");
    API_REFUSED(sluice_model_create(ORDER, empty, RANK, NULL, made.factors, &other, &err),
                SLUICE_ERR_USAGE, &err, "mode 1");
    made.factors[2] = NULL;
    API_REFUSED(sluice_model_create(ORDER, dims, RANK, NULL, made.factors, &other, &err),
                SLUICE_ERR_USAGE, &err, "mode 2 is NULL");
    made.factors[2] = made.factor[2];
    made.factor[2][4] = (double)INFINITY;
    API_REFUSED(sluice_model_create(ORDER, dims, RANK, NULL, made.factors, &other, &err),
                SLUICE_ERR_INPUT, &err, "");
    made.factor[2][4] = 1;
    made.lambda[1] = (double)NAN;
    API_FAILS(sluice_model_create(ORDER, dims, RANK, made.lambda, made.factors, &other, &err),
              SLUICE_ERR_INPUT, &err, "weight 1");
    CU_ASSERT_PTR_NULL(other);
}

/* A model of log-odds predicts probabilities. */
static void has_a_loss(void)
{
    struct sluice_error err = SLUICE_ERROR_INIT;
    const uint64_t index[ORDER] = {6, 1, 3};
    const uint64_t *coords[ORDER];
    struct made made;
    double odds = 0, probability = 0;

    make(&made);
    for (unsigned n = 0; n < ORDER; n++) {
        coords[n] = &index[n];
    }
    CU_ASSERT_EQUAL(api_info(made.model).loss, SLUICE_LOSS_LS);
    API_OK(sluice_predict(made.model, 1, coords, &odds, NULL, &err), &err);
    API_OK(sluice_model_set_loss(made.model, SLUICE_LOSS_BERNOULLI, 0.0, &err), &err);
    CU_ASSERT_EQUAL(api_info(made.model).loss, SLUICE_LOSS_BERNOULLI);
    API_OK(sluice_predict(made.model, 1, coords, &probability, NULL, &err), &err);
    CU_ASSERT_DOUBLE_EQUAL(odds, naive(&made, index), 1e-15);
    CU_ASSERT_DOUBLE_EQUAL(probability, 1.0 / (1.0 + exp(-odds)), 1e-15);
    API_REFUSED(sluice_model_set_loss(made.model, (enum sluice_loss)5, 1.0, &err), SLUICE_ERR_USAGE,
                &err, "loss");
    API_REFUSED(sluice_model_set_loss(made.model, SLUICE_LOSS_HUBER, 0.0, &err), SLUICE_ERR_USAGE,
                &err, "huber");
    API_OK(sluice_model_set_loss(made.model, SLUICE_LOSS_HUBER, 2.5, &err), &err);
    CU_ASSERT_EQUAL(api_info(made.model).huber, 2.5);
    sluice_model_destroy(made.model);
}

static void predicts_in_memory(void)
{
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_predict_options options = {.struct_bytes = sizeof options};
    struct made made;
    struct sluice_model *loaded = NULL;
    static uint64_t column[ORDER][ENTRIES];
    const uint64_t *coords[ORDER];
    static double values[ENTRIES], again[ENTRIES];
    atomic_int stop = 1;
    char folder[600];

    make(&made);
    for (unsigned n = 0; n < ORDER; n++) {
        coords[n] = column[n];
        for (unsigned i = 0; i < ENTRIES; i++) {
            column[n][i] = (i * (3 + n) + n) % dims[n];
        }
    }
    API_OK(sluice_predict(made.model, ENTRIES, coords, values, NULL, &err), &err);
    for (unsigned i = 0; i < ENTRIES; i++) {
        const uint64_t index[ORDER] = {column[0][i], column[1][i], column[2][i]};

        CU_ASSERT_EQUAL(values[i], naive(&made, index));
    }
    snprintf(folder, sizeof folder, "%s/model", slc_test_folder());
    API_OK(sluice_model_save(made.model, SLUICE_MODEL_NPY, folder, &err), &err);
    API_OK(sluice_model_load(NULL, folder, &loaded, &err), &err);
    options.run.threads = 1;
    API_OK(sluice_predict(loaded, ENTRIES, coords, again, &options, &err), &err);
    CU_ASSERT_EQUAL(memcmp(values, again, sizeof values), 0);
    API_OK(sluice_predict(loaded, 0, coords, again, NULL, &err), &err);

    column[1][5] = dims[1];
    again[0] = 77;
    API_FAILS(sluice_predict(loaded, ENTRIES, coords, again, NULL, &err), SLUICE_ERR_INPUT, &err,
              "entry 5: index 5 of mode 1");
    CU_ASSERT_EQUAL(again[0], 77);
    api_clear(&err);
    options.run.stop = &stop;
    column[1][5] = 0;
    API_REFUSED(sluice_predict(loaded, ENTRIES, coords, again, &options, &err),
                SLUICE_ERR_INTERRUPTED, &err, "");
    snprintf(folder, sizeof folder, "%s/none", slc_test_folder());
    API_FAILS(sluice_model_load(NULL, folder, &loaded, &err), SLUICE_ERR_IO, &err, "");
    sluice_model_destroy(loaded);
    sluice_model_destroy(made.model);
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    fputs(text, file);
    fclose(file);
}

/* The nonzeros of a store have the errors of the same nonzeros in a text. */
static void predicts_a_store(void)
{
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_convert_options convert = {.struct_bytes = sizeof convert};
    struct sluice_predict_text_options options = {.struct_bytes = sizeof options};
    struct sluice_predict_report report = {.struct_bytes = sizeof report};
    struct made made;
    char in[600], table[600], store[600], out[600];

    make(&made);
    const double first = naive(&made, (const uint64_t[]){0, 1, 2});
    const double last = naive(&made, (const uint64_t[]){6, 4, 3});

    snprintf(in, sizeof in, "%s/store.tns", slc_test_folder());
    snprintf(table, sizeof table, "%s/table.csv", slc_test_folder());
    snprintf(store, sizeof store, "%s/in.slc", slc_test_folder());
    snprintf(out, sizeof out, "%s/store.txt", slc_test_folder());
    write_text(in, "1 2 3 1.5\n7 5 4 -2\n");
    API_OK(sluice_convert(in, store, &convert, NULL, &err), &err);
    API_OK(sluice_predict_text(made.model, store, out, &options, &report, &err), &err);
    CU_ASSERT_TRUE(report.rows == 2 && report.has_values == 1 && report.unknown == 0);
    CU_ASSERT_DOUBLE_EQUAL(report.rmse, hypot(1.5 - first, -2 - last) / sqrt(2.0), 1e-14);
    CU_ASSERT_DOUBLE_EQUAL(report.mae, (fabs(1.5 - first) + fabs(-2 - last)) / 2, 1e-14);
    /* A table can be evaluated only with a store that has columns. */
    write_text(table, "a,b,c,v\n1,2,3,1\n");
    API_FAILS(sluice_predict_text(made.model, table, NULL, &options, NULL, &err), SLUICE_ERR_INPUT,
              &err, "specify the store");
    api_clear(&err);
    options.store = store;
    API_FAILS(sluice_predict_text(made.model, table, NULL, &options, NULL, &err), SLUICE_ERR_INPUT,
              &err, "does not record the columns of a table");
    CU_ASSERT_STRING_EQUAL(err.field, "columns");
    api_clear(&err);
    options.columns = "int(a),int(b),int(c)";
    options.value_column = "v";
    API_OK(sluice_predict_text(made.model, table, NULL, &options, &report, &err), &err);
    CU_ASSERT_EQUAL(report.rows, 1);
    write_text(in, "1 2 1.5\n");
    convert.output.overwrite = 1;
    API_OK(sluice_convert(in, store, &convert, NULL, &err), &err);
    API_FAILS(sluice_predict_text(made.model, store, NULL, NULL, &report, &err), SLUICE_ERR_INPUT,
              &err, "modes differ");
    api_clear(&err);
    sluice_model_destroy(made.model);
}

static void predicts_a_text(void)
{
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_predict_text_options options = {.struct_bytes = sizeof options};
    struct sluice_predict_report report = {.struct_bytes = sizeof report};
    struct made made;
    char in[600], out[600], line[128] = "", want[128];
    FILE *file;
    double first, last;

    make(&made);
    first = naive(&made, (const uint64_t[]){0, 1, 2});
    last = naive(&made, (const uint64_t[]){6, 4, 3});
    snprintf(in, sizeof in, "%s/in.tns", slc_test_folder());
    snprintf(out, sizeof out, "%s/out.csv", slc_test_folder());
    write_text(in, "1 2 3 1.5\n7 5 4 -2\n");
    options.form = SLUICE_PREDICT_CSV;
    API_OK(sluice_predict_text(made.model, in, out, &options, &report, &err), &err);
    CU_ASSERT_EQUAL(report.rows, 2);
    CU_ASSERT_EQUAL(report.index_base, 1);
    CU_ASSERT_EQUAL(report.has_values, 1);
    CU_ASSERT_EQUAL(report.dialect, SLUICE_DIALECT_TNS);
    CU_ASSERT_DOUBLE_EQUAL(report.rmse, hypot(1.5 - first, -2 - last) / sqrt(2.0), 1e-14);
    CU_ASSERT_DOUBLE_EQUAL(report.mae, (fabs(1.5 - first) + fabs(-2 - last)) / 2, 1e-14);
    CU_ASSERT_DOUBLE_EQUAL(report.largest, fmax(fabs(1.5 - first), fabs(-2 - last)), 1e-14);
    CU_ASSERT_DOUBLE_EQUAL(report.values_norm, 2.5, 1e-14);
    file = fopen(out, "r");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    CU_ASSERT_PTR_NOT_NULL(fgets(line, sizeof line, file));
    CU_ASSERT_STRING_EQUAL(line, "mode_1,mode_2,mode_3,value,model,residual\n");
    CU_ASSERT_PTR_NOT_NULL(fgets(line, sizeof line, file));
    snprintf(want, sizeof want, "1,2,3,1.5,%.17g,%.17g\n", first, 1.5 - first);
    CU_ASSERT_STRING_EQUAL(line, want);
    fclose(file);

    API_REFUSED(sluice_predict_text(made.model, in, out, &options, NULL, &err), SLUICE_ERR_IO, &err,
                "");
    options.overwrite = 1;
    API_OK(sluice_predict_text(made.model, in, out, &options, NULL, &err), &err);
    API_OK(sluice_predict_text(made.model, in, NULL, &options, NULL, &err), &err);
    options.form = SLUICE_PREDICT_NPY;
    API_REFUSED(sluice_predict_text(made.model, in, "-", &options, NULL, &err), SLUICE_ERR_USAGE,
                &err, "name a file");
    options.form = (enum sluice_predict_form)3;
    API_REFUSED(sluice_predict_text(made.model, in, out, &options, NULL, &err), SLUICE_ERR_USAGE,
                &err, "form 3");
    options.form = SLUICE_PREDICT_TEXT;
    options.index_base = SLUICE_BASE_ZERO;
    API_FAILS(sluice_predict_text(made.model, in, NULL, &options, NULL, &err), SLUICE_ERR_INPUT,
              &err, "index 7 of mode 1");
    CU_ASSERT_EQUAL(err.line, 2);
    api_clear(&err);
    options.index_base = (enum sluice_index_base)3;
    API_REFUSED(sluice_predict_text(made.model, in, NULL, &options, NULL, &err), SLUICE_ERR_USAGE,
                &err, "index_base 3");
    write_text(in, "1 2 3\n");
    options.index_base = SLUICE_BASE_AUTO;
    API_OK(sluice_predict_text(made.model, in, NULL, &options, &report, &err), &err);
    CU_ASSERT_TRUE(report.has_values == 0 && report.rows == 1 && report.rmse == 0);
    sluice_model_destroy(made.model);
}

/* A text with an ambiguous index base uses the base of the store's input. */
static void predicts_as_the_store_counts(void)
{
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_predict_text_options options = {.struct_bytes = sizeof options};
    struct sluice_predict_report report = {.struct_bytes = sizeof report};
    struct sluice_store *store = NULL;
    char in[600], path[600];

    snprintf(in, sizeof in, "%s/zero.tns", slc_test_folder());
    snprintf(path, sizeof path, "%s/zero.slc", slc_test_folder());
    write_text(in, "0 0 2\n0 1 4\n1 0 3\n1 1 6\n1 2 9\n0 2 6\n2 2 12\n2 1 8\n2 0 4\n");
    API_OK(sluice_convert(in, path, NULL, NULL, &err), &err);
    API_OK(sluice_store_open(path, &store, &err), &err);
    write_text(in, "1 2 9\n");
    for (unsigned from = 0; from < 2; from++) {
        struct sluice_model *model = NULL;

        if (from == 0) {
            API_OK(sluice_cpd(store, 1, NULL, &model, &err), &err);
            snprintf(path, sizeof path, "%s/zero", slc_test_folder());
            API_OK(sluice_model_save(model, SLUICE_MODEL_NPY, path, &err), &err);
        } else {
            API_OK(sluice_model_load(store, path, &model, &err), &err);
        }
        API_OK(sluice_predict_text(model, in, NULL, &options, &report, &err), &err);
        CU_ASSERT_TRUE(report.index_base == 0 && report.largest < 1e-9);
        sluice_model_destroy(model);
    }
    sluice_store_close(store);
}

/* Expected rows. */
struct given {
    unsigned count, stop_after;
    struct sluice_top_row rows[64];
};

static int on_row(void *context, const struct sluice_top_row *row)
{
    struct given *given = context;

    CU_ASSERT_FATAL(given->count < 64);
    CU_ASSERT_TRUE(*row->name == '\0' && *row->title == '\0');
    given->rows[given->count++] = *row;
    return given->count == given->stop_after;
}

static void finds_top_rows(void)
{
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_top_options options = {.struct_bytes = sizeof options};
    struct made made;
    struct given all = {0}, part = {0};
    const uint32_t components[2] = {2, 0}, modes[1] = {1}, missing[1] = {RANK};
    char folder[600];

    make(&made);
    snprintf(folder, sizeof folder, "%s/model", slc_test_folder());
    API_OK(sluice_model_save(made.model, SLUICE_MODEL_NPY, folder, &err), &err);
    options.rows = 2;
    options.run.context = &all;
    API_OK(sluice_run_top(folder, &options, on_row, &err), &err);
    CU_ASSERT_EQUAL_FATAL(all.count, RANK * ORDER * 2);
    for (unsigned i = 0; i < all.count; i++) {
        const struct sluice_top_row *row = &all.rows[i];
        unsigned stronger = 0;

        /* Weights descend, so components are in order. */
        CU_ASSERT_EQUAL(row->component, i / (ORDER * 2));
        CU_ASSERT_EQUAL(row->mode, i / 2 % ORDER);
        CU_ASSERT_EQUAL(row->place, i % 2);
        CU_ASSERT_EQUAL(row->weight, made.lambda[row->component]);
        CU_ASSERT_EQUAL(row->value, made.factor[row->mode][row->index * RANK + row->component]);
        for (unsigned k = 0; k < dims[row->mode]; k++) {
            const double other = fabs(made.factor[row->mode][k * RANK + row->component]);

            stronger += other > fabs(row->value) || (other == fabs(row->value) && k < row->index);
        }
        CU_ASSERT_EQUAL(stronger, row->place);
    }
    options.components = components;
    options.component_count = 2;
    options.modes = modes;
    options.mode_count = 1;
    options.by_signed = 1;
    options.rows = 100;
    options.run.context = &part;
    API_OK(sluice_model_top(made.model, &options, on_row, &err), &err);
    CU_ASSERT_EQUAL_FATAL(part.count, 2 * dims[1]);
    CU_ASSERT_TRUE(part.rows[0].component == 2 && part.rows[dims[1]].component == 0);
    for (unsigned i = 1; i < dims[1]; i++) {
        CU_ASSERT_TRUE(part.rows[i].value <= part.rows[i - 1].value);
    }
    part = (struct given){.stop_after = 3};
    API_OK(sluice_model_top(made.model, &options, on_row, &err), &err);
    CU_ASSERT_EQUAL(part.count, 3);

    options.components = missing;
    options.component_count = 1;
    API_REFUSED(sluice_run_top(folder, &options, on_row, &err), SLUICE_ERR_USAGE, &err,
                "component 4");
    options.component_count = 0;
    options.mode_count = 17;
    API_REFUSED(sluice_run_top(folder, &options, on_row, &err), SLUICE_ERR_USAGE, &err, "17 modes");
    options.mode_count = 0;
    options.rows = 1000001;
    API_REFUSED(sluice_run_top(folder, &options, on_row, &err), SLUICE_ERR_USAGE, &err,
                "1000001 rows");
    options.rows = 1;
    options.run.memory_bytes = 1;
    API_REFUSED(sluice_run_top(folder, &options, on_row, &err), SLUICE_ERR_BUDGET, &err, "");
    options.run.memory_bytes = 0;
    options.store = folder;
    API_FAILS(sluice_run_top(folder, &options, on_row, &err), SLUICE_ERR_FORMAT, &err, "");
    CU_ASSERT_EQUAL(part.count, 3);
    sluice_model_destroy(made.model);
}

/* Reads a whole file of less than `room` bytes as text; returns its size. */
static size_t read_file(const char *path, char *text, size_t room)
{
    FILE *file = fopen(path, "rb");
    size_t bytes;

    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    bytes = fread(text, 1, room - 1, file);
    CU_ASSERT_FATAL(fclose(file) == 0 && bytes > 0 && bytes < room - 1);
    text[bytes] = '\0';
    return bytes;
}

/* A store of the model's shape, with names for the first mode. */
static void make_named_store(const char *folder, char *store, size_t room)
{
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_convert_options options = {.struct_bytes = sizeof options};
    char text[600], names[700], label[710];
    const char *labels[] = {label};
    FILE *file;

    snprintf(text, sizeof text, "%s/named.tns", folder);
    snprintf(names, sizeof names, "%s/names.map", folder);
    snprintf(label, sizeof label, "1=%s", names);
    snprintf(store, room, "%s/named.slc", folder);
    file = fopen(text, "w");
    CU_ASSERT_FATAL(file != NULL && fputs("1 1 1 1\n7 5 4 1\n", file) >= 0 && fclose(file) == 0);
    file = fopen(names, "w");
    CU_ASSERT_FATAL(file != NULL && fputs("a\nb\nc\nd\ne\nf\ng\n", file) >= 0 && fclose(file) == 0);
    options.labels = labels;
    options.label_count = 1;
    API_OK(sluice_convert(text, store, &options, NULL, &err), &err);
}

/* Every export format of a model in memory equals that of its folder, byte for byte. */
static void exports_models(void)
{
    static const struct {
        enum sluice_model_form form;
        const char *output; /* path of the output, and of its first file */
        const char *first;
    } cases[] = {{SLUICE_MODEL_CSV, "csv", "csv/mode-1.csv"},
                 {SLUICE_MODEL_SPLATT, "stem-", "stem-mode1.mat"},
                 {SLUICE_MODEL_AUTO, "m.ktensor", "m.ktensor"},
                 {SLUICE_MODEL_AUTO, "m.mat", "m.mat"}};
    const char *folder = slc_test_folder();
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_model_export_options options;
    struct made made;
    char run[600], store[600];
    static char text[2][16384];

    make(&made);
    make_named_store(folder, store, sizeof store);
    snprintf(run, sizeof run, "%s/run", folder);
    API_OK(sluice_model_save(made.model, SLUICE_MODEL_NPY, run, &err), &err);
    for (unsigned c = 0; c < SLC_COUNT(cases); c++) {
        size_t bytes[2];

        FRESH(options);
        options.form = cases[c].form;
        options.store = store;
        for (unsigned k = 0; k < 2; k++) {
            char output[600], first[600];

            snprintf(output, sizeof output, "%s/%s%s", folder, k == 0 ? "memory-" : "folder-",
                     cases[c].output);
            snprintf(first, sizeof first, "%s/%s%s", folder, k == 0 ? "memory-" : "folder-",
                     cases[c].first);
            if (k == 0) {
                API_OK(sluice_model_export(made.model, output, &options, &err), &err);
                API_REFUSED(sluice_model_export(made.model, output, &options, &err), SLUICE_ERR_IO,
                            &err, "exists");
                options.overwrite = 1;
            }
            API_OK(sluice_run_export(run, output, &options, &err), &err);
            if (k == 0) {
                API_OK(sluice_model_export(made.model, output, &options, &err), &err);
            }
            bytes[k] = read_file(first, text[k], sizeof text[k]);
        }
        CU_ASSERT(bytes[0] == bytes[1] && memcmp(text[0], text[1], bytes[0]) == 0);
        CU_ASSERT(cases[c].form != SLUICE_MODEL_CSV || strstr(text[0], "2,\"b\",") != NULL);
        CU_ASSERT(c != 2 || strncmp(text[0], "ktensor\n3\n7 5 4\n3\n", 18) == 0);
    }
    sluice_model_destroy(made.model);
}

static void refuses_exports(void)
{
    const char *folder = slc_test_folder();
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_model_export_options options = {.struct_bytes = sizeof options};
    struct made made;
    char output[600], run[600], store[600];
    atomic_int stop = 1;

    make(&made);
    make_named_store(folder, store, sizeof store);
    snprintf(output, sizeof output, "%s/out", folder);
    snprintf(run, sizeof run, "%s/run", folder);
    API_OK(sluice_model_save(made.model, SLUICE_MODEL_NPY, run, &err), &err);
    API_REFUSED(sluice_run_export(run, output, NULL, &err), SLUICE_ERR_USAGE, &err,
                "does not select a form");
    options.form = SLUICE_MODEL_NPY;
    API_REFUSED(sluice_run_export(run, output, &options, &err), SLUICE_ERR_USAGE, &err,
                "already are .npy");
    API_OK(sluice_model_export(made.model, output, &options, &err), &err);
    API_REFUSED(sluice_model_save(made.model, SLUICE_MODEL_AUTO, output, &err), SLUICE_ERR_USAGE,
                &err, "form 0");
    options.form = (enum sluice_model_form)9;
    API_REFUSED(sluice_run_export(run, output, &options, &err), SLUICE_ERR_USAGE, &err, "form 9");
    options.form = SLUICE_MODEL_CSV;
    options.run.memory_bytes = 1;
    API_REFUSED(sluice_run_export(run, output, &options, &err), SLUICE_ERR_BUDGET, &err, "");
    options.run.memory_bytes = 0;
    API_REFUSED(sluice_run_export(store, output, &options, &err), SLUICE_ERR_INPUT, &err, "");
    options.run.stop = &stop;
    snprintf(output, sizeof output, "%s/stopped", folder);
    API_FAILS(sluice_run_export(run, output, &options, &err), SLUICE_ERR_INTERRUPTED, &err, "");
    CU_ASSERT_NOT_EQUAL(access(output, F_OK), 0);
    sluice_model_destroy(made.model);
}

SLC_SUITE(model)
{
    static const struct slc_test tests[] = {
        {"a model is made of factors", is_made_of_factors},
        {"values at coordinates in memory", predicts_in_memory},
        {"a model has a loss", has_a_loss},
        {"values at the coordinates of a text", predicts_a_text},
        {"values at the nonzeros of a store and a table", predicts_a_store},
        {"predicts as the store counts", predicts_as_the_store_counts},
        {"the top rows", finds_top_rows},
        {"models in every form, of memory and of folders", exports_models},
        {"exports of models that are refused", refuses_exports},
    };

    return slc_test_main("api: model", tests, SLC_COUNT(tests), argc, argv);
}
