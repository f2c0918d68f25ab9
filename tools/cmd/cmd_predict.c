/* sluice predict: computes the values of a model at the coordinates in a text and compares them
 * with the values in the text. */
#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "base/thread/team.h"
#include "engine/product/predict/predict.h"
#include "engine/product/predict/predict_source.h"
#include "report/json_parts.h"
#include "storage/manifest/json_text.h"
#include "storage/model/model.h"
#include "storage/model/run_folder.h"
#include "tools/forecast/forecast_ahead.h"
#include "tools/options/input_options.h"
#include "tools/progress/cleanup.h"
#include "tools/progress/console.h"
#include "tools/progress/format.h"
#include "tools/progress/json_out.h"
#include "tools/progress/signals.h"
#include "tools/session/commands.h"
#include "tools/session/common_options.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Memory for small objects, for pages of libraries that are touched later, and for the decoder of
 * compressed text. */
static const uint64_t untouched_bytes = UINT64_C(24) << 20;
static const uint64_t thread_bytes = UINT64_C(256) << 10;

struct arguments {
    const char *output;
    const char *form;
    struct input_options input;
    const char *columns;
    const char *value;
    const char *null;
    uint64_t memory;
    uint64_t threads;
    bool force;
    bool json;
    bool dry_run;
    bool no_probe;
    const char *log_json;
    bool quiet;
};

static const char *const form_choices[] = {"auto", "text", "csv", "npy", "none", NULL};

static const struct option options[] = {
    {"output", OPTION_STRING, offsetof(struct arguments, output), .letter = 'o', .value = "FILE",
     .help = "output file of the values; - means standard output, which is also used if no file "
             "is given"},
    {"write", OPTION_CHOICE, offsetof(struct arguments, form), .value = "FORM", .fallback = "auto",
     .choices = form_choices,
     .help = "output format: text, csv, npy, none (print only the summary) or auto (by the suffix "
             "of FILE, otherwise text)"},
    INPUT_OPTION_ROW_FORMAT(arguments,
                            input_text_choices,
                            "format of COORDS: auto, tns, parti, frostt-ext, genten, "
                            "tensortoolbox, taco or matrixmarket"),
    INPUT_OPTION_ROW_BASE(arguments, "first index in COORDS: auto, 0 or 1"),
    {"columns", OPTION_STRING, offsetof(struct arguments, columns), .value = "LIST",
     .help = "read COORDS as a table (CSV, TSV), with these columns as modes (see sluice convert); "
             "the default for .csv, .tsv and .tab files is the columns of the store of the run"},
    {"value", OPTION_STRING, offsetof(struct arguments, value), .value = "NAME",
     .help = "table column with the values, or none; the default is the value column of the store"},
    {"null", OPTION_STRING, offsetof(struct arguments, null), .value = "WORDS",
     .help = "words, separated by commas, that are read as empty fields of the table; the default "
             "is the words of the store"},
    OPTION_ROW_MEMORY(arguments, memory),
    OPTION_ROW_THREADS(arguments, threads),
    OPTION_ROW_OVERWRITE(arguments, force),
    {"json", OPTION_FLAG, offsetof(struct arguments, json),
     .help = "print the summary as one JSON object on standard output; values are written to FILE "
             "only"},
    {"dry-run", OPTION_FLAG, offsetof(struct arguments, dry_run),
     .help = "estimate memory, disk space and time, read no factors and write nothing"},
    {"no-probe", OPTION_FLAG, offsetof(struct arguments, no_probe),
     .help = "with --dry-run: do not test the drives, and do not estimate the time"},
    OPTION_ROW_LOG_JSON(arguments, log_json),
    OPTION_ROW_QUIET(arguments, quiet),
    {.name = NULL}};

/* A run, its factors, and the prediction. */
struct prediction {
    struct arguments args;
    struct slc_run_folder run;
    struct slc_predict_coords coords;
    struct slc_matrix factors[SLC_MAX_ORDER];
    struct slc_model_view model;
    struct slc_predict_options options;
    struct slc_predict_report report;
    struct forecast_ahead ahead;
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
                        "a .npy file starts with its length and cannot be written to standard "
                        "output: use --output");
    }
    if (out->form != SLC_PREDICT_NONE && args->json && strcmp(out->output, "-") == 0) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "--json uses standard output: name a file for the values with --output");
    }
    if (out->form == SLC_PREDICT_NONE && args->output != NULL) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "--output %s cannot be combined with --write none, which writes no values",
                        args->output);
    }
    return SLC_OK;
}

static enum slc_status
fill_options(struct prediction *prediction, const struct operands *operands, struct slc_error *err)
{
    const struct arguments *args = &prediction->args;
    struct slc_predict_options *out = &prediction->options;

    SLC_TRY(input_parse(&args->input, &out->dialect, &out->index_base, NULL, err));
    out->input = operands->text[1];
    out->model = &prediction->model;
    out->overwrite = args->force;
    out->threads = args->threads != 0 ? (unsigned)args->threads : slc_team_default_workers();
    out->stop = signals_stop();
    return choose_form(prediction, err);
}

/* Returns the size in bytes of all factors; UINT64_MAX if that exceeds 64 bits. */
static uint64_t factors_bytes(const struct slc_run_folder *run)
{
    uint64_t bytes = 0;

    for (unsigned n = 0; n < run->order; n++) {
        if (!slc_add_u64(bytes, slc_matrix_footprint(SLC_F64, run->dims[n], run->rank), &bytes)) {
            return UINT64_MAX;
        }
    }
    return bytes;
}

static uint64_t budget_of(const struct prediction *prediction)
{
    return prediction->args.memory != 0 ? prediction->args.memory : slc_memory_total() / 5 * 4;
}

/* Opens COORDS if it is a store, or the names with which a table is read. */
static enum slc_status open_coords(struct prediction *prediction, struct slc_error *err)
{
    const char *value = prediction->args.value;
    const struct slc_predict_coords_options request = {
        .columns = prediction->args.columns,
        .value = value != NULL && strcmp(value, "none") == 0 ? "" : value,
        .null = prediction->args.null,
        .memory_bytes = budget_of(prediction)};

    return slc_predict_coords_open(&prediction->coords, &request, &prediction->run,
                                   &prediction->options, err);
}

/* Checks the budget. Call this function when everything except the factors is in memory. */
static enum slc_status check_budget(struct prediction *prediction, struct slc_error *err)
{
    const struct slc_run_folder *run = &prediction->run;
    const uint64_t budget = budget_of(prediction), factors = factors_bytes(run);
    const uint64_t coords = slc_predict_coords_bytes(&prediction->coords);
    uint64_t need;

    if (!slc_add_u64(factors,
                     slc_memory_resident() + untouched_bytes + coords +
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
    prediction->coords.table.memory_bytes = SLC_PREDICT_TABLE_BYTES + budget - need;
    return SLC_OK;
}

/* Fraction of the memory for rows and their text that is touched, and memory for pages of program
 * and libraries that are touched later. */
#define ROWS_FILLED 0.5
static const uint64_t touched_bytes = UINT64_C(2) << 20;

static void estimate_times(const struct prediction *prediction,
                           const struct slc_predict_forecast *found,
                           struct forecast *forecast)
{
    const char *input = prediction->options.input;

    forecast_try_drives(forecast, strcmp(input, "-") != 0 ? input : NULL);
    forecast_add_phase(forecast, "begin");
    forecast_add_part(forecast, "opening", FORECAST_START_SECONDS);
    forecast_add_phase(forecast, "predict");
    forecast_add_part(forecast, "reading",
                      slc_ratio((double)forecast->read_bytes, forecast->read_rate));
    forecast_add_part(forecast, "parsing and computing",
                      found->parse_seconds + found->compute_seconds);
    forecast_add_part(forecast, "writing",
                      slc_ratio((double)forecast->written_bytes, forecast->write_rate));
}

/* Makes the forecast, after the folder of the run was read; its factors are not needed. */
static enum slc_status forecast_predictions(const struct prediction *prediction,
                                            bool brief,
                                            struct slc_predict_forecast *found,
                                            struct forecast *forecast,
                                            struct slc_error *err)
{
    const struct slc_run_folder *run = &prediction->run;
    const struct slc_predict_options *request = &prediction->options;
    const uint64_t fixed = slc_memory_resident() + touched_bytes;
    const bool to_file = request->form != SLC_PREDICT_NONE && strcmp(request->output, "-") != 0;

    SLC_TRY(slc_predict_forecast(request, found, err));
    *forecast = (struct forecast){.command = "predict",
                                  .brief = brief,
                                  .budget_bytes = budget_of(prediction),
                                  .output = to_file ? request->output : NULL,
                                  .free_bytes = UINT64_MAX,
                                  .final_bytes = to_file ? found->output_bytes : 0,
                                  .written_bytes = found->output_bytes,
                                  .passes = "one over the factors, one over the input"};
    forecast->read_bytes = found->input_bytes;
    for (unsigned n = 0; n < run->order; n++) {
        forecast->read_bytes += run->dims[n] * run->rank * sizeof(double);
    }
    forecast_add_buffer(forecast, "process", fixed, "program and libraries");
    forecast_add_buffer(forecast, "factors", factors_bytes(run), "the model, in f64");
    forecast_add_buffer(
        forecast, "rows",
        (uint64_t)(ROWS_FILLED * (double)slc_predict_memory_bytes(run->order, request->form)) +
            found->decoder_bytes,
        "a batch of the input and its output rows");
    for (unsigned b = 0; b < forecast->buffers; b++) {
        forecast->memory_bytes += forecast->buffer[b].bytes;
    }
    if (!prediction->args.no_probe && found->rows > 0) {
        estimate_times(prediction, found, forecast);
    }
    return SLC_OK;
}

static enum slc_status
estimate_ahead(const void *context, struct forecast *forecast, struct slc_error *err)
{
    const struct prediction *prediction = context;
    struct slc_predict_forecast found;

    return strcmp(prediction->options.input, "-") == 0 || prediction->options.names != NULL
               ? slc_fail(err, SLC_ERR_UNSUPPORTED, "no forecast for this input")
               : forecast_predictions(prediction, true, &found, forecast, err);
}

/* Prints the forecast and checks memory and disk space. */
static enum slc_status dry_run(const struct prediction *prediction, struct slc_error *err)
{
    struct slc_predict_forecast found;
    struct forecast forecast;
    struct format_text a;

    if (prediction->options.names != NULL) {
        return slc_fail(err, SLC_ERR_UNSUPPORTED, "there is no forecast for a store or a table");
    }
    SLC_TRY(forecast_predictions(prediction, false, &found, &forecast, err));
    return forecast_dry_run(
        &forecast, prediction->args.json, err, "Would predict the rows of %s\n  %-12s %s%s\n",
        prediction->options.input, "entries", found.rows > 0 ? "about " : "unknown",
        found.rows > 0 ? format_count(&a, found.rows) : "");
}

static enum slc_status
read_model(struct prediction *prediction, const char *folder, struct slc_error *err)
{
    struct slc_run_folder *run = &prediction->run;

    SLC_TRY(slc_run_folder_read(slc_files_system(), folder, run, err));
    prediction->model = slc_run_folder_view(run, prediction->factors);
    if (run->recorded && *run->record.dialect != '\0') {
        prediction->options.store_dialect = run->record.dialect;
        prediction->options.store_base = run->record.index_base;
    }
    SLC_TRY(open_coords(prediction, err));
    SLC_TRY(check_budget(prediction, err));
    if (prediction->args.dry_run) {
        return SLC_OK;
    }
    forecast_ahead(&prediction->ahead, prediction->args.quiet, prediction->options.input,
                   estimate_ahead, prediction);
    return slc_model_read(run->files, folder, SLC_F64, run->order, run->dims, SLC_MAX_ORDER,
                          &run->rank, prediction->factors, err);
}

static json_t *real(double number)
{
    return isfinite(number) ? json_real(number) : json_null();
}

static enum slc_status
print_json(const struct prediction *prediction, const char *folder, struct slc_error *err)
{
    const struct slc_predict_report *report = &prediction->report;
    const bool compared = report->has_values && report->rows > report->unknown;
    json_t *object = json_pack("{s:s, s:I, s:I}", "schema", "sluice-predict-1", "index_base",
                               (json_int_t)report->index_base, "count", (json_int_t)report->rows);

    slc_json_set_path(object, "run", folder);
    slc_json_set_path(object, "coords", prediction->options.input);
    slc_json_set_path(object, "output",
                      prediction->options.form != SLC_PREDICT_NONE ? prediction->options.output
                                                                   : NULL);
    if (prediction->options.table != NULL) {
        slc_json_set_count(object, "unknown", report->unknown);
    }
    slc_json_set(object, "rmse", compared ? real(report->rmse) : json_null());
    slc_json_set(object, "mae", compared ? real(report->mae) : json_null());
    slc_json_set(object, "deviance", compared ? real(report->deviance) : json_null());
    slc_json_set(object, "largest_error", compared ? real(report->largest) : json_null());
    slc_json_set(object, "values_norm", compared ? real(report->values_norm) : json_null());
    return json_out_print(object, err);
}

/* Prints the summary as text. The summary goes to standard error if the values are written to
 * standard output, so that the values can be piped. */
static void print_summary(const struct prediction *prediction)
{
    const struct slc_predict_report *report = &prediction->report;
    struct format_text a;
    char text[320];

    if (prediction->args.quiet) {
        return;
    }
    if (report->unknown > 0) {
        console_note("%s: %" PRIu64 " of %" PRIu64
                     " rows have a name that the model does not have, and no prediction",
                     prediction->options.input, report->unknown, report->rows);
    }
    if (report->has_values && report->rows > report->unknown) {
        (void)snprintf(text, sizeof text,
                       "%s %s: RMSE %.6g, MAE %.6g, largest error %.6g, norm of the values "
                       "%.6g",
                       format_count(&a, report->rows), report->rows == 1 ? "entry" : "entries",
                       report->rmse, report->mae, report->largest, report->values_norm);
        if (prediction->model.loss != SLC_LOSS_LS && !isnan(report->deviance)) {
            const size_t used = strlen(text);

            (void)snprintf(text + used, sizeof text - used, ", mean %s deviance %.6g",
                           slc_loss_name(prediction->model.loss), report->deviance);
        }
    } else {
        (void)snprintf(text, sizeof text, "%s %s, without values to compare with",
                       format_count(&a, report->rows), report->rows == 1 ? "entry" : "entries");
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
    SLC_TRY(fill_options(prediction, operands, err));
    SLC_TRY(cleanup_watch(prediction->args.dry_run ? "-" : prediction->options.output, err));
    SLC_TRY(read_model(prediction, operands->text[0], err));
    if (prediction->args.dry_run) {
        return dry_run(prediction, err);
    }
    SLC_TRY(slc_predict(&prediction->options, &prediction->report, err));
    if (prediction->args.json) {
        SLC_TRY(print_json(prediction, operands->text[0], err));
    } else {
        print_summary(prediction);
    }
    bool to_file = prediction->options.form != SLC_PREDICT_NONE &&
                   strcmp(prediction->options.output, "-") != 0;
    forecast_compare(&prediction->ahead,
                     prediction->args.quiet || prediction->args.json ||
                         (!to_file && prediction->options.form != SLC_PREDICT_NONE),
                     to_file ? prediction->options.output : NULL);
    return SLC_OK;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct prediction *prediction = slc_calloc(1, sizeof *prediction);
    struct slc_error err = SLC_ERROR_INIT;
    struct operands operands;
    enum slc_status status;
    int code = 0;

    if (prediction == NULL) {
        (void)slc_fail(&err, SLC_ERR_MEMORY, "out of memory for the model of a run");
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
        slc_predict_coords_close(&prediction->coords);
        slc_run_folder_close(&prediction->run);
    }
    slc_free(prediction);
    return code;
}

const struct command command_predict = {
    .name = "predict",
    .summary = "compute values of a model at given coordinates, and its error",
    .example = "sluice predict flights-4d.r16 held-out.tns -o predicted.csv",
    .operands = "RUN COORDS",
    .operands_min = 2,
    .operands_max = 2,
    .options = options,
    .notes = "RUN is a folder of factors written by cpd. COORDS is text, plain or compressed, or - "
             "for standard\ninput; its rows have indices and a value, or indices only. COORDS may "
             "also be a store, or a table\nwith the columns from which the store of the run was "
             "made.",
    .run = run,
};
