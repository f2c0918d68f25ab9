/* Collects the content of a page within the budget, writes the page, and publishes it. */
#include "report/report.h"

#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "report/export_run.h"
#include "report/page/parts.h"
#include "report/page/run_page.h"
#include "report/page/sweep_page.h"
#include "report/runs_report.h"
#include "report/saved_run.h"
#include "storage/manifest/json_text.h"
#include "storage/manifest/path_guard.h"
#include "sweep/sweep_compare.h"
#include "sweep/sweep_record.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    /* Memory for small objects and for pages of libraries that are not resident yet. */
    UNTOUCHED_BYTES = 4 << 20,
    /* Maximum bytes of memory per byte of JSON. A number of two characters needs a node and an
     * element of a list, and a short member needs even more. */
    JSON_FACTOR = 48,
    /* Maximum number of bands of all pictures together, which limits the size of a page. */
    ALL_BANDS = 24576,
    /* Smallest and largest number of bands of one picture. */
    LEAST_BANDS = 24,
    MOST_BANDS = 160
};

struct run_report {
    const struct slc_report_options *options;
    struct slc_run_folder run;
    json_t *record;
    json_t *checkpoint;
    struct slc_run_page page;
    struct slc_run_names names;
    struct slc_buffer memory;
};

static enum slc_status within_budget(const struct slc_report_options *options,
                                     uint64_t bytes,
                                     const char *what,
                                     struct slc_error *err)
{
    const uint64_t need = slc_memory_resident() + UNTOUCHED_BYTES + bytes;

    return need > options->memory_bytes
               ? slc_fail_budget(err, options->memory_bytes, need, "%s", what)
               : SLC_OK;
}

static enum slc_status parse_record(const struct slc_report_options *options,
                                    const char *text,
                                    uint64_t bytes,
                                    json_t **record,
                                    struct slc_error *err)
{
    SLC_TRY(within_budget(options, bytes * JSON_FACTOR, "reading run.json", err));
    return slc_json_read(text, bytes, "run.json", SLC_ERR_INPUT, record, err);
}

/* Loads the record in the file `name` of the folder. */
static enum slc_status load_record(const struct slc_report_options *options,
                                   const struct slc_files *files,
                                   const char *name,
                                   json_t **record,
                                   struct slc_error *err)
{
    char *path = slc_path_join(options->folder, name);
    void *text = NULL;
    uint64_t bytes = 0;
    enum slc_status status =
        path == NULL ? slc_fail(err, SLC_ERR_MEMORY, "no memory for the path of a record")
                     : slc_file_load(files, path, SLC_RUN_RECORD_MAX_BYTES, &text, &bytes, err);

    if (status == SLC_OK) {
        status = parse_record(options, text, bytes, record, err);
        if (status != SLC_OK) {
            slc_error_locate_file(err, path);
        }
    }
    slc_free(text);
    slc_free(path);
    return status;
}

/* Reads the results, the checkpoint, or both. */
static enum slc_status read_folder(struct run_report *report, struct slc_error *err)
{
    const char *folder = report->options->folder;
    bool results = false;
    bool saved = false;
    enum slc_status status = slc_saved_run_find(folder, &saved, err);

    SLC_THEN(status, slc_run_folder_find(folder, &results, err));
    /* Without a checkpoint, slc_run_folder_read is called even if there are no results, because its
     * error states what is missing. */
    SLC_TRY(status);
    if ((results || !saved)) {
        SLC_TRY(slc_run_folder_read(NULL, folder, &report->run, err));
    }
    if (report->run.recorded) {
        SLC_TRY(load_record(report->options, report->run.files, "run.json", &report->record, err));
    }
    if (saved) {
        SLC_TRY(slc_saved_run_read(folder, false, &report->checkpoint, err));
    }
    return SLC_OK;
}

/* Reads a model in memory, and checks that the record belongs to the model. */
static enum slc_status read_model(struct run_report *report, struct slc_error *err)
{
    const char *text = report->options->record;
    struct slc_run_folder *run = &report->run;
    enum slc_status status = SLC_OK;

    slc_run_folder_of_model(report->options->model, run);
    if (text == NULL) {
        return SLC_OK;
    }
    status = slc_run_record_parse(text, strlen(text), &run->record, err);
    if (status == SLC_OK &&
        (run->record.order != run->order ||
         memcmp(run->record.dims, run->dims, run->order * sizeof run->dims[0]) != 0)) {
        status = slc_fail(err, SLC_ERR_INPUT,
                          "the mode sizes in the record differ from the mode sizes of the model");
    }
    run->recorded = true;
    SLC_TRY(status);
    return parse_record(report->options, text, strlen(text), &report->record, err);
}

/* Chooses components and allocates memory for their rows and pictures within the budget. */
static enum slc_status allocate_memory(struct run_report *report, struct slc_error *err)
{
    const struct slc_run_folder *run = &report->run;
    struct slc_run_page *page = &report->page;
    const uint32_t count = (uint32_t)slc_min_u64(report->options->components, run->rank);
    const uint64_t bands = slc_max_u64(
        LEAST_BANDS, slc_min_u64(MOST_BANDS, ALL_BANDS / slc_max_u64(1, count * run->order)));
    uint64_t bytes = 0;

    slc_run_folder_by_weight(run, page->components);
    page->component_count = count;
    for (unsigned n = 0; n < run->order; n++) {
        page->row_counts[n] = slc_min_u64(report->options->rows, run->dims[n]);
        page->band_counts[n] = (uint32_t)slc_min_u64(bands, run->dims[n]);
        bytes += count * (page->row_counts[n] * sizeof *page->rows[n] +
                          page->band_counts[n] * sizeof *page->bands[n]);
    }
    /* `bytes` has not overflowed: there are at most 16 modes, 4096 components, a thousand rows and
     * MOST_BANDS bands. */
    enum slc_status status = within_budget(
        report->options,
        SLC_OUTPUT_BUFFER_BYTES + slc_factor_rows_memory_bytes(run->rank > 0 ? run->rank : 1) +
            slc_run_names_bytes(&report->names) + slc_buffer_footprint(bytes, SLC_PAGES_SMALL),
        "reporting these components", err);
    SLC_THEN(status,
             slc_buffer_create(&report->memory, slc_max_u64(1, bytes), SLC_PAGES_SMALL, err));
    uint8_t *at = report->memory.data;
    for (unsigned n = 0; n < run->order && status == SLC_OK; n++) {
        page->rows[n] = (struct slc_top_row *)(void *)at;
        at += count * page->row_counts[n] * sizeof *page->rows[n];
        page->bands[n] = (struct slc_band *)(void *)at;
        at += (uint64_t)count * page->band_counts[n] * sizeof *page->bands[n];
    }
    return status;
}

/* Finds the top rows and the pictures of a mode. */
static enum slc_status find_mode(struct run_report *report, unsigned n, struct slc_error *err)
{
    const struct slc_report_options *options = report->options;
    const struct slc_run_page *page = &report->page;
    char *path = options->folder != NULL ? slc_run_folder_factor(options->folder, n) : NULL;
    struct slc_top_rows_query query = {.factor.files = report->run.files,
                                       .factor.path = path,
                                       .factor.length = report->run.dims[n],
                                       .factor.rank = report->run.rank,
                                       .columns = page->components,
                                       .column_count = page->component_count,
                                       .rows = page->row_counts[n]};
    struct slc_column_bands bands = {.factor.files = report->run.files,
                                     .factor.path = path,
                                     .factor.length = report->run.dims[n],
                                     .factor.rank = report->run.rank,
                                     .columns = page->components,
                                     .column_count = page->component_count,
                                     .bands = page->band_counts[n]};

    if (options->folder == NULL) {
        query.factor.matrix = bands.factor.matrix = options->model->factors[n];
    } else if (path == NULL) {
        return slc_fail(err, SLC_ERR_MEMORY, "no memory for a factor's path");
    }
    enum slc_status status = slc_top_rows_find(&query, page->rows[n], err);
    SLC_THEN(status, slc_column_bands_find(&bands, page->bands[n], err));
    slc_free(path);
    return status;
}

static enum slc_status check_options(const struct slc_report_options *options,
                                     struct slc_error *err)
{
    if (options->components < 1 || options->components > SLC_MAX_RANK || options->rows < 1 ||
        options->rows > SLC_REPORT_ROWS_MAX) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "%" PRIu64 " components with %" PRIu64
                        " rows: there must be 1 to %d components and 1 to %d rows",
                        options->components, options->rows, SLC_MAX_RANK, SLC_REPORT_ROWS_MAX);
    }
    SLC_TRY(slc_check_outside_stores(slc_files_system(), options->output, err));
    SLC_TRY(slc_check_own_form(NULL, options->output, "<!DOCTYPE html>", "an HTML page", err));
    return slc_check_replaceable(slc_files_system(), options->output, options->overwrite, err);
}

/* Opens the output, writes the page, and renames it. */
static enum slc_status publish(const struct slc_report_options *options,
                               enum slc_status (*write)(const void *page,
                                                        struct slc_output *output,
                                                        struct slc_error *err),
                               const void *page,
                               uint64_t *ret_bytes,
                               struct slc_error *err)
{
    struct slc_output output;

    SLC_TRY(slc_output_open(&output, NULL, options->output, err));
    enum slc_status status = write(page, &output, err);
    uint64_t bytes = output.written + output.used;
    if (options->publishing != NULL) {
        options->publishing();
    }
    if (status != SLC_OK) {
        slc_output_abandon(&output);
        return status;
    }
    SLC_TRY(slc_output_commit(&output, err));
    *ret_bytes = bytes;
    return SLC_OK;
}

static enum slc_status write_run(const void *page, struct slc_output *output, struct slc_error *err)
{
    return slc_run_page_write(page, output, err);
}

static enum slc_status
write_run_report(struct run_report *report, uint64_t *ret_bytes, struct slc_error *err)
{
    struct slc_run_page *page = &report->page;
    enum slc_status status =
        report->options->folder != NULL ? read_folder(report, err) : read_model(report, err);

    page->folder = report->options->folder;
    page->run = &report->run;
    page->names = &report->names;
    page->record = report->record;
    page->checkpoint = report->checkpoint;
    SLC_THEN(status,
             slc_run_names_open(NULL, &report->run, report->options->store, &report->names, err));
    SLC_THEN(status, allocate_memory(report, err));
    SLC_TRY(status);
    for (unsigned n = 0; n < report->run.order; n++) {
        SLC_TRY(find_mode(report, n, err));
    }
    return publish(report->options, write_run, page, ret_bytes, err);
}

static enum slc_status
report_run(const struct slc_report_options *options, uint64_t *ret_bytes, struct slc_error *err)
{
    struct run_report *report = slc_calloc(1, sizeof *report);

    SLC_TRY(slc_check_memory(report != NULL, err, "for a report"));
    report->options = options;
    enum slc_status status = write_run_report(report, ret_bytes, err);
    json_decref(report->record);
    json_decref(report->checkpoint);
    slc_run_names_close(&report->names);
    slc_run_folder_close(&report->run);
    slc_buffer_destroy(&report->memory);
    slc_free(report);
    return status;
}

/* Loads run.json of the best run, which contains the command. Stores no record if the file is
 * missing or malformed. */
static enum slc_status read_best(const struct slc_report_options *options,
                                 const struct slc_sweep_record *record,
                                 json_t **best,
                                 struct slc_error *err)
{
    struct slc_sweep_suggestion suggestion;
    char name[SLC_SWEEP_FOLDER_BYTES + sizeof "/run.json"];
    struct slc_error fault = SLC_ERROR_INIT;

    if (record->run_count == 0) {
        return SLC_OK;
    }
    slc_sweep_suggest(record, &suggestion);
    (void)snprintf(name, sizeof name, "%s/run.json", suggestion.folder);
    enum slc_status status = load_record(options, slc_files_system(), name, best, &fault);
    if (status == SLC_ERR_INPUT || fault.system_errno == ENOENT || fault.system_errno == ENOTDIR) {
        return SLC_OK;
    }
    if (status != SLC_OK && err != NULL) {
        *err = fault;
    }
    return status;
}

static enum slc_status
write_sweep(const void *page, struct slc_output *output, struct slc_error *err)
{
    return slc_sweep_page_write(page, output, err);
}

static enum slc_status report_sweep(const struct slc_report_options *options,
                                    const char *path,
                                    uint64_t text_bytes,
                                    uint64_t *ret_bytes,
                                    struct slc_error *err)
{
    struct slc_sweep_record record = SLC_SWEEP_RECORD_INIT;
    struct slc_sweep_page page = {.folder = options->folder, .record = &record};
    json_t *best = NULL;
    bool found = false;
    enum slc_status status = within_budget(options,
                                           text_bytes > SLC_SWEEP_RECORD_BYTES
                                               ? 0
                                               : text_bytes * JSON_FACTOR + SLC_OUTPUT_BUFFER_BYTES,
                                           "reading sweep.json", err);

    SLC_THEN(status, slc_sweep_record_read(path, &record, &found, err));
    if (status == SLC_OK && !found) {
        status = slc_fail_file(err, SLC_ERR_IO, path,
                               "the record of the sweep was removed while it was being opened");
    }
    if (status == SLC_OK) {
        status = read_best(options, &record, &best, err);
        page.best = best;
    }
    SLC_THEN(status, publish(options, write_sweep, &page, ret_bytes, err));
    json_decref(best);
    slc_sweep_record_destroy(&record);
    return status;
}

static enum slc_status
write_runs(const void *page, struct slc_output *output, struct slc_error *err)
{
    return slc_runs_page_write(page, output, err);
}

/* Writes the page of a list of runs and, if `comparison` is not NULL, of their comparison. */
static enum slc_status publish_runs(const struct slc_report_options *options,
                                    const struct slc_runs_list *list,
                                    struct slc_runs_comparison *comparison,
                                    uint64_t *ret_bytes,
                                    struct slc_error *err)
{
    struct slc_runs_page page = {.title = slc_page_short_name(options->folder),
                                 .intro = comparison != NULL ? "Runs of sluice, compared"
                                                             : "Runs of sluice, best fit first",
                                 .count = list->count,
                                 .skipped = list->skipped,
                                 .runs = list->runs,
                                 .comparison = comparison};
    json_t **given = slc_calloc(list->count, sizeof(json_t *));

    SLC_TRY(slc_check_memory(given != NULL, err, "for the options of runs"));
    for (unsigned i = 0; i < list->count; i++) {
        given[i] = list->runs[i].options;
    }
    json_t *differ = slc_options_that_differ(list->count, given);
    page.differ = differ;
    enum slc_status status = publish(options, write_runs, &page, ret_bytes, err);
    json_decref(differ);
    slc_free(given);
    return status;
}

static enum slc_status report_comparison(const struct slc_report_options *options,
                                         uint64_t *ret_bytes,
                                         struct slc_error *err)
{
    const char *folders[SLC_RUNS_COMPARE_MAX] = {options->folder};
    const struct slc_runs_compare_options request = {.count = options->more_count + 1,
                                                     .folders = folders,
                                                     .rows = slc_min_u64(options->rows, 5),
                                                     .memory_bytes = options->memory_bytes};
    struct slc_runs_comparison comparison = {.count = 0};
    struct slc_runs_list list = {.count = 0};

    for (unsigned i = 0; i < options->more_count && i + 1 < SLC_RUNS_COMPARE_MAX; i++) {
        folders[i + 1] = options->more[i];
    }
    enum slc_status status = slc_runs_compare(&request, &comparison, err);
    for (unsigned i = 0; i < comparison.count && status == SLC_OK; i++) {
        bool found;

        status = slc_runs_list_add(&list, folders[i], folders[i], options->output, &found, err);
        if (status == SLC_OK && !found) {
            status = slc_fail_file(err, SLC_ERR_INPUT, folders[i],
                                   "there is no run.json: only runs with a record are compared");
        }
    }
    SLC_THEN(status, publish_runs(options, &list, &comparison, ret_bytes, err));
    slc_runs_list_clear(&list);
    slc_runs_comparison_close(&comparison);
    return status;
}

/* Reports on the runs in the subfolders of a folder, or on a run if there are none. */
static enum slc_status
report_runs(const struct slc_report_options *options, uint64_t *ret_bytes, struct slc_error *err)
{
    struct slc_runs_list list = {.count = 0};
    bool results = false, saved = false;
    enum slc_status status = slc_saved_run_find(options->folder, &saved, err);

    SLC_THEN(status, slc_run_folder_find(options->folder, &results, err));
    if (status == SLC_OK && !results && !saved) {
        /* A folder that cannot be listed is reported as a run that cannot be read. */
        status = slc_runs_list_read(options->folder, options->output, &list, err);
    }
    SLC_THEN(status, list.count > 0 ? publish_runs(options, &list, NULL, ret_bytes, err)
                                    : report_run(options, ret_bytes, err));
    slc_runs_list_clear(&list);
    return status;
}

/* Reports on a sweep if the folder has its record, otherwise on a run. */
static enum slc_status
report_folder(const struct slc_report_options *options, uint64_t *ret_bytes, struct slc_error *err)
{
    const struct slc_files *files = slc_files_system();
    char *path = slc_path_join(options->folder, "sweep.json");
    struct slc_file_stat stat;

    SLC_TRY(slc_check_memory(path != NULL, err, "for the path of a record"));
    enum slc_status status = files->stat_path(files->self, path, &stat) >= 0 && stat.kind == 'f'
                                 ? report_sweep(options, path, stat.bytes, ret_bytes, err)
                                 : report_runs(options, ret_bytes, err);
    slc_free(path);
    return status;
}

enum slc_status
slc_report(const struct slc_report_options *options, uint64_t *ret_bytes, struct slc_error *err)
{
    SLC_TRY(check_options(options, err));
    if (options->more_count > 0) {
        return report_comparison(options, ret_bytes, err);
    }
    return options->folder != NULL ? report_folder(options, ret_bytes, err)
                                   : report_run(options, ret_bytes, err);
}
