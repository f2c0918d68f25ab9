/* Reads the folder of a run. run.json is not trusted: it must match the shapes of the factors. */
#include "storage/model/run_folder.h"

#include "base/memory/memory.h"
#include "storage/manifest/folder_kind.h"
#include "storage/manifest/json_text.h"
#include "storage/manifest/store.h"
#include "storage/model/model_forms.h"
#include "storage/model/npy.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char schema[] = "sluice-run-1";

char *slc_run_folder_factor(const char *folder, unsigned mode)
{
    char name[32];

    (void)snprintf(name, sizeof name, "mode-%u.npy", mode + 1);
    return slc_path_join(folder, name);
}

struct slc_model_view slc_run_folder_view(const struct slc_run_folder *run,
                                          const struct slc_matrix *factors)
{
    struct slc_model_view view = {.order = run->order,
                                  .rank = run->rank,
                                  .lambda = run->lambda,
                                  .loss = run->record.loss,
                                  .huber = run->record.huber};

    for (unsigned n = 0; n < run->order; n++) {
        view.factors[n] = &factors[n];
    }
    return view;
}

void slc_run_folder_of_model(const struct slc_model_view *model, struct slc_run_folder *run)
{
    memset(run, 0, sizeof *run);
    run->order = model->order;
    run->rank = model->rank;
    run->weighted = true;
    memcpy(run->lambda, model->lambda, model->rank * sizeof model->lambda[0]);
    for (unsigned n = 0; n < model->order; n++) {
        run->dims[n] = model->factors[n]->rows;
        run->types[n] = model->factors[n]->type;
    }
}

/* True if component a sorts after b: its |weight| is smaller, or equal and a > b. */
static bool is_lighter(const struct slc_run_folder *run, uint32_t a, uint32_t b)
{
    const double x = fabs(run->lambda[a]);
    const double y = fabs(run->lambda[b]);

    return x < y || (x == y && a > b);
}

void slc_run_folder_by_weight(const struct slc_run_folder *run, uint32_t *components)
{
    for (uint32_t i = 0; i < run->rank; i++) {
        uint32_t at = i;

        for (; at > 0 && is_lighter(run, components[at - 1], i); at--) {
            components[at] = components[at - 1];
        }
        components[at] = i;
    }
}

/* Parses 16 lower-case hexadecimal digits, as written by sluice. */
static bool parse_hex(const char *text, uint64_t *number)
{
    *number = 0;
    for (unsigned i = 0; i < 16; i++) {
        const char *digits = "0123456789abcdef";
        const char *digit = text[i] != '\0' ? strchr(digits, text[i]) : NULL;

        if (digit == NULL) {
            return false;
        }
        *number = *number << 4 | (uint64_t)(digit - digits);
    }
    return text[16] == '\0';
}

static enum slc_status
parse_dims(const json_t *dims, struct slc_run_record *record, struct slc_error *err)
{
    const size_t order = json_array_size(dims);

    if (order == 0 || order > SLC_MAX_ORDER) {
        return slc_fail(
            err, SLC_ERR_INPUT,
            "run.json: \"tensor\" has no \"dims\", or \"dims\" does not have 1 to %d numbers",
            SLC_MAX_ORDER);
    }
    record->order = (unsigned)order;
    for (size_t n = 0; n < order; n++) {
        const json_t *length = json_array_get(dims, n);

        if (!json_is_integer(length) || json_integer_value(length) <= 0 ||
            (uint64_t)json_integer_value(length) > SLC_MAX_MODE_LENGTH) {
            return slc_fail(err, SLC_ERR_INPUT,
                            "run.json: number %zu of \"dims\" is not a mode size", n + 1);
        }
        record->dims[n] = (uint64_t)json_integer_value(length);
    }
    return SLC_OK;
}

/* Parses members that older files lack; missing or invalid members stay empty. */
static void parse_origin(const json_t *tensor, struct slc_run_record *record)
{
    const char *dialect = json_string_value(json_object_get(tensor, "dialect"));
    const json_t *base = json_object_get(tensor, "index_base");

    (void)slc_json_get_path(tensor, "directory", record->directory, sizeof record->directory);
    record->named = json_is_true(json_object_get(tensor, "named"));
    if (dialect != NULL && strlen(dialect) < sizeof record->dialect && json_is_integer(base) &&
        (json_integer_value(base) == 0 || json_integer_value(base) == 1)) {
        (void)snprintf(record->dialect, sizeof record->dialect, "%s", dialect);
        record->index_base = (unsigned)json_integer_value(base);
    }
}

/* Parses the list of components that are biases; an invalid list counts as empty. */
static void parse_biases(const json_t *list, struct slc_run_record *record)
{
    const size_t count = json_array_size(list);

    for (size_t i = 0; i < count && count <= SLC_MAX_ORDER + 1; i++) {
        const json_t *item = json_array_get(list, i);
        const json_int_t mode = json_is_integer(item) ? json_integer_value(item) : 0;

        record->bias_of[i] = mode > 0 && mode <= SLC_MAX_ORDER ? (unsigned)mode : 0;
        record->biases = (unsigned)count;
    }
}

/* Parses the outcome of the run; missing or invalid members stay unknown. */
static void parse_outcome(const json_t *root, struct slc_run_record *record)
{
    const json_t *fit = json_object_get(root, "fit");
    const json_t *iterations = json_object_get(root, "iterations_done");
    const char *reason = json_string_value(json_object_get(root, "reason"));
    const char *loss = json_string_value(json_object_get(root, "loss"));
    const double huber = json_number_value(json_object_get(root, "huber"));

    record->loss = SLC_LOSS_LS;
    (void)(loss != NULL && slc_loss_parse(loss, &record->loss));
    record->huber = huber > 0.0 ? huber : 1.0;
    record->fit = json_is_number(fit) ? json_number_value(fit) : (double)NAN;
    if (json_is_integer(iterations) && json_integer_value(iterations) >= 0 &&
        json_integer_value(iterations) <= UINT32_MAX) {
        record->iterations = (uint32_t)json_integer_value(iterations);
    }
    if (reason != NULL && strlen(reason) < sizeof record->reason) {
        (void)snprintf(record->reason, sizeof record->reason, "%s", reason);
    }
}

static enum slc_status
parse_record(const json_t *root, struct slc_run_record *record, struct slc_error *err)
{
    const json_t *tensor = json_object_get(root, "tensor");
    const char *found = json_string_value(json_object_get(root, "schema"));
    const char *sum = json_string_value(json_object_get(tensor, "content_sum"));

    if (found == NULL || strcmp(found, schema) != 0) {
        return slc_fail(
            err, SLC_ERR_INPUT,
            "run.json is not from a run of this version of sluice: its \"schema\" is not \"%s\"",
            schema);
    }
    if (!slc_json_get_path(tensor, "path", record->store, sizeof record->store)) {
        return slc_fail(
            err, SLC_ERR_INPUT,
            "run.json: \"tensor\" has no \"path\", \"path\" has more than %zu bytes, or "
            "\"path_bytes\" is not in hexadecimal",
            sizeof record->store - 1);
    }
    if (sum == NULL || !parse_hex(sum, &record->content_sum)) {
        return slc_fail(err, SLC_ERR_INPUT,
                        "run.json: \"content_sum\" of \"tensor\" is not a number of 16 "
                        "hexadecimal digits");
    }
    parse_origin(tensor, record);
    parse_outcome(root, record);
    parse_biases(json_object_get(root, "biases"), record);
    return parse_dims(json_object_get(tensor, "dims"), record, err);
}

enum slc_status slc_run_record_parse(const char *text,
                                     size_t bytes,
                                     struct slc_run_record *record,
                                     struct slc_error *err)
{
    struct slc_run_record parsed = {.order = 0};
    json_t *root = NULL;
    enum slc_status status = slc_json_read(text, bytes, "run.json", SLC_ERR_INPUT, &root, err);

    SLC_THEN(status, parse_record(root, &parsed, err));
    if (status == SLC_OK) {
        *record = parsed;
    }
    json_decref(root);
    return status;
}

enum slc_status slc_run_folder_find(const char *path, bool *found, struct slc_error *err)
{
    const struct slc_files *files = slc_files_system();
    static const char *const names[] = {SLC_MANIFEST_NAME, "run.json", "mode-1.npy"};
    bool there[3] = {false, false, false};
    enum slc_status status = SLC_OK;

    for (size_t i = 0; i < 3 && status == SLC_OK; i++) {
        char *file = slc_path_join(path, names[i]);

        status = slc_model_file_find(files, file, &there[i], err);
        slc_free(file);
    }
    *found = status == SLC_OK && !there[0] && (there[1] || there[2]);
    return status;
}

static enum slc_status read_record(const struct slc_files *files,
                                   const char *folder,
                                   struct slc_run_folder *run,
                                   struct slc_error *err)
{
    char *path = slc_path_join(folder, "run.json");
    void *text = NULL;
    uint64_t bytes = 0;
    enum slc_status status = slc_model_file_find(files, path, &run->recorded, err);

    if (status == SLC_OK && run->recorded) {
        status = slc_file_load(files, path, SLC_RUN_RECORD_MAX_BYTES, &text, &bytes, err);
        SLC_THEN(status, slc_run_record_parse(text, bytes, &run->record, err));
        if (status != SLC_OK) {
            slc_error_locate_file(err, path);
        }
    }
    slc_free(text);
    slc_free(path);
    return status;
}

/* Reads the shape of factor `mode`, if it exists or is required. */
static enum slc_status read_factor(const struct slc_files *files,
                                   const char *folder,
                                   unsigned mode,
                                   struct slc_run_folder *run,
                                   bool *found,
                                   struct slc_error *err)
{
    char *path = slc_run_folder_factor(folder, mode);
    struct slc_npy_rows *rows = NULL;
    uint32_t rank = 0;
    enum slc_status status = slc_model_file_find(files, path, found, err);

    if (status == SLC_OK && !*found && !run->recorded) {
        slc_free(path);
        return SLC_OK;
    }
    SLC_THEN(status, slc_npy_rows_open(files, path, run->recorded ? run->record.dims[mode] : 0,
                                       run->rank, &rows, err));
    if (status == SLC_OK) {
        slc_npy_rows_shape(rows, &run->dims[mode], &rank, &run->types[mode]);
        slc_npy_rows_close(rows);
        if (rank > SLC_MAX_RANK) {
            status = slc_fail_file(err, SLC_ERR_INPUT, path,
                                   "the factor has rank %" PRIu32 "; at most %d is supported", rank,
                                   SLC_MAX_RANK);
        }
        run->rank = rank;
    }
    slc_free(path);
    return status;
}

static enum slc_status
check_folder(const struct slc_files *files, const char *path, struct slc_error *err)
{
    struct slc_file_stat stat;
    const int rc = files->stat_path(files->self, path, &stat);

    SLC_TRY(slc_check_call(rc, err, path, "opening the folder of a run"));
    if (stat.kind != 'd') {
        return slc_fail_file(err, SLC_ERR_INPUT, path,
                             "not a folder; the factors of a run are in a folder (mode-1.npy, ..)");
    }
    return SLC_OK;
}

void slc_run_folder_close(struct slc_run_folder *run)
{
    slc_held_folder_close(run->held);
    run->held = NULL;
}

enum slc_status slc_run_folder_read(const struct slc_files *files,
                                    const char *path,
                                    struct slc_run_folder *run,
                                    struct slc_error *err)
{
    bool found = true;

    files = slc_files_or_system(files);
    memset(run, 0, sizeof *run);
    enum slc_status status = check_folder(files, path, err);
    if (status == SLC_OK && (files->held == NULL || !slc_held_folder_is(files->held, path))) {
        status = slc_model_hold(files, path, &run->held, err);
        files = status == SLC_OK ? slc_held_folder_files(run->held) : files;
    }
    run->files = files;
    SLC_THEN(status, read_record(files, path, run, err));
    for (unsigned n = 0; status == SLC_OK && found; n++) {
        if (n == (run->recorded ? run->record.order : SLC_MAX_ORDER)) {
            break;
        }
        status = read_factor(files, path, n, run, &found, err);
        run->order += status == SLC_OK && found;
    }
    if (status == SLC_OK && run->order == 0) {
        status = slc_fail_file(err, SLC_ERR_INPUT, path,
                               "the folder has no factors: neither run.json nor mode-1.npy%s",
                               slc_folder_advice(files, path, SLC_FOLDER_RUN));
    }
    SLC_THEN(status,
             slc_model_read_lambda(files, path, run->rank, run->lambda, &run->weighted, err));
    for (uint32_t r = 0; r < run->rank && !run->weighted; r++) {
        run->lambda[r] = 1;
    }
    return status;
}
