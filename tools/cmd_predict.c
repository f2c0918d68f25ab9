/*
 * sluice predict: what the model of a run says at the coordinates of a text, beside what the text
 * says.
 */
#include "base/checked.h"
#include "base/memory.h"
#include "base/team.h"
#include "commands.h"
#include "common_options.h"
#include "console.h"
#include "convert/predict.h"
#include "format.h"
#include "input_options.h"
#include "json_out.h"
#include "signals.h"
#include "storage/model.h"
#include "storage/run_folder.h"
#include "unfinished.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Small objects, pages of libraries that are touched later, and the decoder of a compressed text.
 */
static const uint64_t untouched_bytes = UINT64_C(24) << 20;
static const uint64_t thread_bytes = UINT64_C(256) << 10;

struct arguments {
    const char *output;
    const char *form;
    struct input_options input;
    uint64_t memory;
    uint64_t threads;
    bool force;
    bool json;
    bool quiet;
};

static const char *const form_choices[] = {"auto", "text", "csv", "npy", "none", NULL};

static const struct option options[] = {
    {.name = "output",
     .letter = 'o',
     .kind = OPTION_STRING,
     .value = "FILE",
     .help = "where values go, - for standard output, as without it",
     .offset = offsetof(struct arguments, output)},
    {.name = "write",
     .kind = OPTION_CHOICE,
     .value = "FORM",
     .fallback = "auto",
     .choices = form_choices,
     .help =
         "text, csv, npy or none (the summary alone); auto: as the name of FILE ends, else text",
     .offset = offsetof(struct arguments, form)},
    INPUT_OPTION_ROW_FORMAT(arguments,
                            input_text_choices,
                            "format of COORDS: auto, tns, parti, frostt-ext, genten, "
                            "tensortoolbox, taco or matrixmarket"),
    INPUT_OPTION_ROW_BASE(arguments, "first index in COORDS: auto, 0 or 1"),
    OPTION_ROW_MEMORY(arguments, memory),
    OPTION_ROW_THREADS(arguments, threads),
    OPTION_ROW_OVERWRITE(arguments, force),
    {.name = "json",
     .kind = OPTION_FLAG,
     .help = "the summary as one JSON object on standard output; values go to FILE alone",
     .offset = offsetof(struct arguments, json)},
    OPTION_ROW_QUIET(arguments, quiet),
    {.name = NULL}};

/* A run and its factors. */
struct prediction {
    struct arguments args;
    struct slc_run_folder run;
    struct slc_matrix factors[SLC_MAX_ORDER];
    struct slc_model_view model;
    struct slc_predict_options options;
    struct slc_predict_report report;
};

static bool ends_with(const char *name, const char *end)
{
    const size_t length = strlen(name), tail = strlen(end);

    return length >= tail && strcmp(name + length - tail, end) == 0;
}

static enum slc_status choose_form(struct prediction *prediction, struct slc_error *err)
{
    const struct arguments *args = &prediction->args;
    struct slc_predict_options *out = &prediction->options;
    const char *form = args->form;

    out->output = args->output != NULL ? args->output : "-";
    if (strcmp(form, "auto") == 0) {
        form = args->output == NULL && args->json ? "none"
               : ends_with(out->output, ".npy")   ? "npy"
               : ends_with(out->output, ".csv")   ? "csv"
                                                  : "text";
    }
    out->form = form[0] == 't'   ? SLC_PREDICT_TEXT
                : form[0] == 'c' ? SLC_PREDICT_CSV
                : form[1] == 'p' ? SLC_PREDICT_NPY
                                 : SLC_PREDICT_NONE;
    if (out->form == SLC_PREDICT_NPY && strcmp(out->output, "-") == 0) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "a .npy file has its length at its beginning: name a file with --output");
    }
    if (out->form != SLC_PREDICT_NONE && args->json && strcmp(out->output, "-") == 0) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "--json has standard output: name a file for the values with --output");
    }
    if (out->form == SLC_PREDICT_NONE && args->output != NULL) {
        return slc_fail(err, SLC_ERR_USAGE, "--output %s, but --write none writes no values",
                        args->output);
    }
    return SLC_OK;
}

static enum slc_status
fill_options(struct prediction *prediction, const struct operands *operands, struct slc_error *err)
{
    const struct arguments *args = &prediction->args;
    struct slc_predict_options *out = &prediction->options;
    const enum slc_status status =
        input_parse(&args->input, &out->dialect, &out->index_base, NULL, err);

    if (status != SLC_OK) {
        return status;
    }
    out->input = operands->text[1];
    out->model = &prediction->model;
    out->overwrite = args->force;
    out->threads = args->threads != 0 ? (unsigned)args->threads : slc_team_default_workers();
    out->stop = signals_stop();
    return choose_form(prediction, err);
}

/* All of it is in memory before the first factor is read. */
static enum slc_status check_budget(const struct prediction *prediction, struct slc_error *err)
{
    const struct slc_run_folder *run = &prediction->run;
    const uint64_t budget =
        prediction->args.memory != 0 ? prediction->args.memory : slc_memory_total() / 5 * 4;
    uint64_t factors = 0, need;

    for (unsigned n = 0; n < run->order; n++) {
        if (!slc_add_u64(factors, slc_matrix_footprint(SLC_F64, run->dims[n], run->rank),
                         &factors)) {
            factors = UINT64_MAX;
        }
    }
    if (!slc_add_u64(factors,
                     slc_memory_resident() + untouched_bytes +
                         prediction->options.threads * thread_bytes +
                         slc_predict_memory_bytes(run->order, prediction->options.form),
                     &need)) {
        need = UINT64_MAX;
    }
    if (need > budget) {
        struct format_text a;

        return slc_fail_budget(err, budget, need, "the model, %s of factors in f64,",
                               format_memory(&a, factors));
    }
    return SLC_OK;
}

static enum slc_status
read_model(struct prediction *prediction, const char *folder, struct slc_error *err)
{
    struct slc_run_folder *run = &prediction->run;
    enum slc_status status = slc_run_folder_read(slc_files_system(), folder, run, err);

    if (status == SLC_OK) {
        status = check_budget(prediction, err);
    }
    if (status == SLC_OK) {
        status = slc_model_read(slc_files_system(), folder, SLC_F64, run->order, run->dims,
                                SLC_MAX_ORDER, &run->rank, prediction->factors, err);
    }
    prediction->model.order = run->order;
    prediction->model.rank = run->rank;
    prediction->model.lambda = run->lambda;
    for (unsigned n = 0; n < run->order; n++) {
        prediction->model.factors[n] = &prediction->factors[n];
    }
    return status;
}

static json_t *real(double number)
{
    return isfinite(number) ? json_real(number) : json_null();
}

static enum slc_status
print_json(const struct prediction *prediction, const char *folder, struct slc_error *err)
{
    const struct slc_predict_report *report = &prediction->report;
    const bool compared = report->has_values && report->rows > 0;
    json_t *object = json_pack("{s:s, s:s, s:s, s:I, s:I}", "schema", "sluice-predict-1", "run",
                               folder, "coords", prediction->options.input, "index_base",
                               (json_int_t)report->index_base, "count", (json_int_t)report->rows);

    (void)json_object_set_new(object, "output",
                              prediction->options.form != SLC_PREDICT_NONE
                                  ? json_string(prediction->options.output)
                                  : json_null());
    (void)json_object_set_new(object, "rmse", compared ? real(report->rmse) : json_null());
    (void)json_object_set_new(object, "mae", compared ? real(report->mae) : json_null());
    (void)json_object_set_new(object, "largest_error",
                              compared ? real(report->largest) : json_null());
    (void)json_object_set_new(object, "values_norm",
                              compared ? real(report->values_norm) : json_null());
    return json_out_print(object, err);
}

/* The summary in words: beside values on standard output, so that these can be piped. */
static void print_summary(const struct prediction *prediction)
{
    const struct slc_predict_report *report = &prediction->report;
    struct format_text a;
    char text[320];

    if (prediction->args.quiet) {
        return;
    }
    if (report->has_values && report->rows > 0) {
        (void)snprintf(text, sizeof text,
                       "%s entries: RMSE %.6g, MAE %.6g, largest error %.6g, norm of the values "
                       "%.6g",
                       format_count(&a, report->rows), report->rmse, report->mae, report->largest,
                       report->values_norm);
    } else {
        (void)snprintf(text, sizeof text, "%s entries, without values to compare with",
                       format_count(&a, report->rows));
    }
    if (strcmp(prediction->options.output, "-") == 0 &&
        prediction->options.form != SLC_PREDICT_NONE) {
        console_note("%s; indices from %u: %s", text, report->index_base, report->base_reason);
    } else {
        printf("%s\n  %-12s from %u: %s\n", text, "index base", report->index_base,
               report->base_reason);
    }
}

static enum slc_status
predict(struct prediction *prediction, const struct operands *operands, struct slc_error *err)
{
    enum slc_status status = fill_options(prediction, operands, err);

    if (status == SLC_OK) {
        status = unfinished_watch(prediction->options.output, err);
    }
    if (status == SLC_OK) {
        status = read_model(prediction, operands->text[0], err);
    }
    if (status == SLC_OK) {
        status = slc_predict(&prediction->options, &prediction->report, err);
    }
    if (status == SLC_OK && prediction->args.json) {
        status = print_json(prediction, operands->text[0], err);
    } else if (status == SLC_OK) {
        print_summary(prediction);
    }
    return status;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct prediction *prediction = slc_calloc(1, sizeof *prediction);
    struct slc_error err = SLC_ERROR_INIT;
    struct operands operands;
    enum slc_status status;
    int code = 0;

    if (prediction == NULL) {
        (void)slc_fail(&err, SLC_ERR_MEMORY, "no memory for the model of a run");
        return console_error(&err);
    }
    if (command_begin(command, argc, argv, &prediction->args, &operands, &code)) {
        console_start(prediction->args.quiet ? CONSOLE_QUIET : CONSOLE_NORMAL);
        status = predict(prediction, &operands, &err);
        code = status == SLC_OK                ? 0
               : status == SLC_ERR_INTERRUPTED ? signals_exit_code()
                                               : console_error(&err);
        for (unsigned n = 0; n < SLC_MAX_ORDER; n++) {
            slc_matrix_destroy(&prediction->factors[n]);
        }
    }
    slc_free(prediction);
    return code;
}

const struct command command_predict = {
    .name = "predict",
    .summary = "values of a model at given coordinates, and its error there",
    .example = "sluice predict flights-4d.r16 held-out.tns -o predicted.csv",
    .operands = "RUN COORDS",
    .operands_min = 2,
    .operands_max = 2,
    .options = options,
    .notes = "RUN is a folder of factors, as cpd writes it. COORDS is a text of entries, plain or\n"
             "compressed, or - for standard input; with values, or rows of indices alone.",
    .run = run,
};
