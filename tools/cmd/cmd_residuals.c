/* sluice residuals: lists the nonzeros of a store that a model fits worst, with quantiles and norms
 * of all residuals. */
#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "base/text/plain_text.h"
#include "base/thread/team.h"
#include "engine/plan/plan_sizes.h"
#include "engine/product/residuals.h"
#include "report/json_parts.h"
#include "storage/manifest/json_text.h"
#include "storage/model/model.h"
#include "storage/model/run_folder.h"
#include "storage/model/run_names.h"
#include "tools/progress/console.h"
#include "tools/progress/csv_out.h"
#include "tools/progress/format.h"
#include "tools/progress/json_out.h"
#include "tools/progress/signals.h"
#include "tools/session/commands.h"
#include "tools/session/session.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

struct arguments {
    uint64_t top;
    const char *by;
    bool csv;
    bool json;
    uint64_t memory;
    uint64_t threads;
    const char *io;
    uint64_t io_limit;
    const char *progress;
    bool quiet;
};

static const char *const by_choices[] = {"absolute", "relative", "above",
                                         "below",    "deviance", NULL};

static const struct option options[] = {
    {"top", OPTION_U64, offsetof(struct arguments, top), .letter = 'n', .value = "K",
     .fallback = "20", .maximum = SLC_RESIDUALS_TOP_MAX, .help = "number of nonzeros to list"},
    {"by", OPTION_CHOICE, offsetof(struct arguments, by), .value = "SCORE", .fallback = "absolute",
     .choices = by_choices,
     .help =
         "score, largest first: absolute (|residual|), relative (|residual / value|), above "
         "(only values above the model), below (only values below the model) or deviance (of the "
         "value for the loss of the run)"},
    {"csv", OPTION_FLAG, offsetof(struct arguments, csv),
     .help = "print the list as CSV, without the summary"},
    {"json", OPTION_FLAG, offsetof(struct arguments, json), .help = "print one JSON object"},
    OPTION_ROW_MEMORY(arguments, memory),
    OPTION_ROW_THREADS(arguments, threads),
    SESSION_OPTION_ROW_IO(arguments, io),
    OPTION_ROW("io-limit",
               OPTION_SIZE,
               arguments,
               io_limit,
               .value = "SIZE",
               .help = "limit reads to SIZE bytes per second, to simulate a slower drive"),
    OPTION_ROW_PROGRESS(arguments, progress),
    OPTION_ROW_QUIET(arguments, quiet),
    {.name = NULL}};

/* Fractions of the quantiles, and their names in JSON. */
static const struct {
    double fraction;
    const char *name;
} quantiles[] = {{0.5, "0.5"}, {0.9, "0.9"}, {0.99, "0.99"}, {0.999, "0.999"}};
enum { QUANTILES = sizeof quantiles / sizeof quantiles[0] };

struct job {
    struct arguments args;
    const char *folder;
    char *store_path; /* path from the record of the run; NULL if the user named the store */
    struct slc_run_folder run;
    struct slc_matrix factors[SLC_MAX_ORDER];
    struct slc_model_view model;
    struct slc_store store;
    struct slc_run_names names;
    struct slc_residuals_options options;
    struct slc_residuals found;
    char name[SLC_NAME_TEXT_BYTES];
};

/* Opens the store and its names. */
static enum slc_status open_store(struct job *job, const char *named, struct slc_error *err)
{
    const char *path = named;

    if (path == NULL) {
        SLC_TRY(slc_run_store_find(NULL, &job->run, &job->store_path, err));
        path = job->store_path;
    }
    SLC_TRY(slc_store_open_within(slc_files_system(), path, job->args.memory, &job->store, err));
    if (job->run.recorded && job->run.record.content_sum != job->store.manifest.content_sum) {
        console_note(
            "the nonzeros of %s differ from those of the tensor from which the model was made",
            path);
    }
    return slc_run_names_open(job->store.files, &job->run, path, &job->names, err);
}

/* Checks that the factors and the residuals fit into the budget, and reads the factors. */
static enum slc_status read_factors(struct job *job, struct slc_error *err)
{
    const struct slc_run_folder *run = &job->run;
    uint64_t bytes = 0;

    for (unsigned n = 0; n < run->order; n++) {
        bytes = slc_plan_plus(bytes, slc_matrix_footprint(SLC_F64, run->dims[n], run->rank));
    }
    SLC_TRY(slc_residuals_check_memory(&job->options, bytes, err));
    job->model = slc_run_folder_view(run, job->factors);
    return slc_model_read(run->files, job->folder, SLC_F64, run->order, run->dims, SLC_MAX_ORDER,
                          &job->run.rank, job->factors, err);
}

static enum slc_status
find_residuals(struct job *job, const struct operands *operands, struct slc_error *err)
{
    const struct arguments *args = &job->args;
    struct slc_residuals_options *request = &job->options;

    if (args->csv && args->json) {
        return slc_fail(err, SLC_ERR_USAGE, "--csv and --json cannot be combined");
    }
    job->folder = operands->text[0];
    SLC_TRY(slc_run_folder_read(slc_files_system(), job->folder, &job->run, err));
    SLC_TRY(open_store(job, operands->count > 1 ? operands->text[1] : NULL, err));
    request->store = &job->store;
    for (unsigned i = 0; by_choices[i] != NULL; i++) {
        request->score =
            strcmp(args->by, by_choices[i]) == 0 ? (enum slc_residual_score)i : request->score;
    }
    request->top = args->top;
    request->quantile_count = args->csv ? 0 : QUANTILES;
    for (unsigned i = 0; i < QUANTILES; i++) {
        request->quantiles[i] = quantiles[i].fraction;
    }
    (void)slc_io_parse(args->io, &request->io); /* the option table admits only valid names */
    request->read_limit = args->io_limit;
    request->memory_bytes = args->memory;
    request->outside_bytes = slc_run_names_bytes(&job->names);
    request->threads = args->threads != 0 ? (unsigned)args->threads : slc_team_default_workers();
    request->stop = signals_stop();
    request->progress = progress_phase;
    SLC_TRY(read_factors(job, err));
    request->model = &job->model;
    return slc_residuals_find(request, &job->found, err);
}

/* Returns the number of characters of a UTF-8 text. */
static int width_of(const char *text)
{
    int width = 0;

    for (; *text != '\0'; text++) {
        width += ((unsigned char)*text & 0xc0) != 0x80;
    }
    return width;
}

/* Sets job->name to the name of an index, without control characters, or, if it has none, to the
 * index, counted from 1. */
static enum slc_status
name_index(struct job *job, unsigned mode, uint64_t index, struct slc_error *err)
{
    SLC_TRY(slc_run_names_text(&job->names, mode, index, job->name, err));
    slc_text_make_plain(job->name);
    if (*job->name == '\0') {
        (void)snprintf(job->name, sizeof job->name, "%" PRIu64, index + 1);
    }
    return SLC_OK;
}

/* Writes the head of a mode's column: its title, or "mode K". */
static void head_of(const struct job *job, unsigned mode, char title[SLC_TITLE_BYTES])
{
    if (*job->names.titles[mode] != '\0') {
        memcpy(title, job->names.titles[mode], SLC_TITLE_BYTES);
        slc_text_make_plain(title);
    } else {
        (void)snprintf(title, SLC_TITLE_BYTES, "mode %u", mode + 1);
    }
}

/* Prints text padded to a number of characters, except in the last column. */
static void print_padded(const char *text, int width, bool last)
{
    printf("  %s%*s", text, last ? 0 : width - width_of(text), "");
}

static enum slc_status print_list(struct job *job, struct slc_error *err)
{
    const unsigned order = job->found.order;
    int width[SLC_MAX_ORDER];
    char title[SLC_TITLE_BYTES];

    const bool deviances = job->options.score == SLC_RESIDUAL_DEVIANCE;

    printf("\n  %13s %13s %13s", "residual", "value", "model");
    if (deviances) {
        printf(" %13s", "deviance");
    }
    for (unsigned n = 0; n < order; n++) {
        head_of(job, n, title);
        width[n] = width_of(title);
        for (uint64_t k = 0; k < job->found.count && n + 1 < order; k++) {
            SLC_TRY(name_index(job, n, job->found.top[k].index[n], err));
            const int wide = width_of(job->name);
            width[n] = wide > width[n] ? wide : width[n];
        }
        print_padded(title, width[n], n + 1 == order);
    }
    printf("\n");
    for (uint64_t k = 0; k < job->found.count; k++) {
        const struct slc_residual *at = &job->found.top[k];

        printf("  %13.6g %13.6g %13.6g", at->value - at->model, at->value, at->model);
        if (deviances) {
            printf(" %13.6g", at->deviance);
        }
        for (unsigned n = 0; n < order; n++) {
            SLC_TRY(name_index(job, n, at->index[n], err));
            print_padded(job->name, width[n], n + 1 == order);
        }
        printf("\n");
    }
    return SLC_OK;
}

static enum slc_status print_text(struct job *job, struct slc_error *err)
{
    const struct slc_residuals *found = &job->found;
    struct format_text a;

    if (!job->args.quiet) {
        printf("%s: residuals of %s, %s nonzeros\n", job->folder, job->store.path,
               format_count(&a, found->nnz));
        printf("  %-12s %.6g, of the values %.6g\n", "norm", found->norm, found->values_norm);
        printf("  %-12s RMSE %.6g, MAE %.6g, mean residual %.6g\n", "errors", found->rmse,
               found->mae, found->mean);
        if (job->model.loss != SLC_LOSS_LS && !isnan(found->deviance)) {
            printf("  %-12s %.6g on average, for the loss %s\n", "deviance", found->deviance,
                   slc_loss_name(job->model.loss));
        }
        printf("  %-12s", "|residual|");
        for (unsigned i = 0; i < found->quantile_count; i++) {
            printf(" %g %% up to %.6g,", 100.0 * quantiles[i].fraction, found->quantile[i]);
        }
        printf(" largest %.6g\n", found->largest);
    }
    return found->count > 0 ? print_list(job, err) : SLC_OK;
}

static enum slc_status print_csv(struct job *job, struct slc_error *err)
{
    const unsigned order = job->found.order;
    char title[SLC_TITLE_BYTES];

    for (unsigned n = 0; n < order; n++) {
        printf("mode_%u,", n + 1);
        if (job->names.names[n] != NULL) {
            head_of(job, n, title);
            csv_out_text(title, strlen(title));
        }
    }
    printf("value,model,residual,deviance\n");
    for (uint64_t k = 0; k < job->found.count; k++) {
        const struct slc_residual *at = &job->found.top[k];

        for (unsigned n = 0; n < order; n++) {
            printf("%" PRIu64 ",", at->index[n] + 1);
            if (job->names.names[n] != NULL) {
                SLC_TRY(csv_out_name(job->names.names[n], at->index[n], err));
            }
        }
        printf("%.17g,%.17g,%.17g,", at->value, at->model, at->value - at->model);
        if (!isnan(at->deviance)) {
            printf("%.17g", at->deviance);
        }
        printf("\n");
    }
    return SLC_OK;
}

static enum slc_status
print_nonzero_json(struct job *job, const struct slc_residual *at, struct slc_error *err)
{
    json_t *object = json_object(), *index = json_array(), *names = json_array();
    bool named = false;
    enum slc_status status = SLC_OK;

    for (unsigned n = 0; n < job->found.order && status == SLC_OK; n++) {
        (void)json_array_append_new(index, json_integer((json_int_t)at->index[n] + 1));
        json_t *name = NULL;

        status = slc_run_names_json(&job->names, n, at->index[n], &name, err);
        (void)json_array_append_new(names, name);
        named = named || job->names.names[n] != NULL;
    }
    slc_json_set(object, "index", index);
    if (named) {
        slc_json_set(object, "names", names);
    } else {
        json_decref(names);
    }
    slc_json_set_real(object, "value", at->value);
    slc_json_set_real(object, "model", at->model);
    slc_json_set_real(object, "residual", at->value - at->model);
    slc_json_set(object, "deviance", isnan(at->deviance) ? json_null() : json_real(at->deviance));
    if (status != SLC_OK) {
        json_decref(object);
        return status;
    }
    return json_out_value(object, err);
}

static enum slc_status print_json(struct job *job, struct slc_error *err)
{
    const struct slc_residuals *found = &job->found;
    json_t *parts = json_object();
    json_t *object =
        json_pack("{s:s, s:s, s:I, s:f, s:f, s:f, s:f, s:f, s:f}", "schema", "sluice-residuals-1",
                  "by", job->args.by, "nnz", (json_int_t)found->nnz, "norm", found->norm,
                  "values_norm", found->values_norm, "rmse", found->rmse, "mae", found->mae, "mean",
                  found->mean, "largest", found->largest);

    slc_json_set_text(object, "loss", slc_loss_name(job->model.loss));
    slc_json_set(object, "deviance",
                 isnan(found->deviance) ? json_null() : json_real(found->deviance));
    slc_json_set_path(object, "run", job->folder);
    slc_json_set_path(object, "store", job->store.path);
    for (unsigned i = 0; i < found->quantile_count; i++) {
        slc_json_set_real(parts, quantiles[i].name, found->quantile[i]);
    }
    slc_json_set(object, "quantiles", parts);
    slc_json_set(object, "passes", json_integer(found->passes));
    slc_json_set_count(object, "bytes_read", found->bytes_read);
    SLC_TRY(json_out_open(object, "nonzeros", err));
    for (uint64_t k = 0; k < found->count; k++) {
        printf(k > 0 ? ",\n" : "\n");
        SLC_TRY(print_nonzero_json(job, &found->top[k], err));
    }
    printf("]}\n");
    return SLC_OK;
}

static void close_job(struct job *job)
{
    slc_residuals_destroy(&job->found);
    slc_run_names_close(&job->names);
    slc_run_folder_close(&job->run);
    slc_store_close(&job->store);
    for (unsigned n = 0; n < SLC_MAX_ORDER; n++) {
        slc_matrix_destroy(&job->factors[n]);
    }
    slc_free(job->store_path);
    slc_free(job);
}

static int run(const struct command *command, int argc, char **argv)
{
    struct job *job = slc_calloc(1, sizeof *job);
    struct slc_error err = SLC_ERROR_INIT;
    struct operands operands;
    int code = 0;

    if (job == NULL) {
        (void)slc_fail(&err, SLC_ERR_MEMORY, "no memory for residuals");
        return console_error(&err);
    }
    if (command_begin(command, argc, argv, &job->args, &operands, &code)) {
        console_start(job->args.quiet ? CONSOLE_QUIET : CONSOLE_NORMAL);
        progress_start(job->args.progress, job->args.quiet);
        enum slc_status status = signals_start(NULL, NULL, &err);
        SLC_THEN(status, find_residuals(job, &operands, &err));
        console_clear_live();
        SLC_THEN(status, job->args.json  ? print_json(job, &err)
                         : job->args.csv ? print_csv(job, &err)
                                         : print_text(job, &err));
        if (status != SLC_OK) {
            code = console_error(&err);
            code = status == SLC_ERR_INTERRUPTED ? signals_exit_code() : code;
        }
    }
    close_job(job);
    return code;
}

const struct command command_residuals = {
    .name = "residuals",
    .summary = "list the nonzeros that a model fits worst, and quantiles of residuals",
    .example = "sluice residuals flights-4d.r16 --top 20",
    .operands = "RUN [X.slc]",
    .operands_min = 1,
    .operands_max = 2,
    .options = options,
    .notes = "RUN is a folder of factors written by sluice cpd. X.slc is the store whose nonzeros "
             "are compared\nwith the model; the default is the store of the run. A residual is the "
             "value minus the value of the\nmodel. Values are those of the store, after its "
             "transforms. Indices count from 1.",
    .run = run,
};
