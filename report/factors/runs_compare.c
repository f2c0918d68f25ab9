#include "report/factors/runs_compare.h"

#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "storage/manifest/json_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Memory for small objects and for pages of libraries that are touched later. */
enum { OVERHEAD_BYTES = 8 << 20 };

/* Options that name files or have no effect on the result. */
static const char *const ignored[] = {"output",   "checkpoint", "log-json", "quiet",
                                      "progress", "verbose",    NULL};

/* Reads the options of a run from its record, if it has one. */
static enum slc_status read_record(struct slc_compared_run *compared, struct slc_error *err)
{
    const struct slc_files *files = compared->run.files;
    void *text = NULL;
    uint64_t bytes = 0;
    json_t *record = NULL;

    if (!compared->run.recorded) {
        return SLC_OK;
    }
    char *path = slc_path_join(compared->folder, "run.json");
    enum slc_status status = slc_check_memory(path != NULL, err, "for a path");
    SLC_THEN(status, slc_file_load(files, path, SLC_RUN_RECORD_MAX_BYTES, &text, &bytes, err));
    SLC_THEN(status, slc_json_read(text, bytes, "run.json", SLC_ERR_INPUT, &record, err));
    if (status == SLC_OK) {
        compared->options = json_incref(json_object_get(record, "options"));
    }
    json_decref(record);
    slc_free(text);
    slc_free(path);
    return status;
}

static enum slc_status find_top(const struct slc_runs_compare_options *options,
                                struct slc_compared_run *compared,
                                struct slc_error *err)
{
    const struct slc_top_options top = {.files = compared->run.files,
                                        .folder = compared->folder,
                                        .rows = options->rows,
                                        .memory_bytes = options->memory_bytes};

    return slc_top_find(&top, &compared->top, err);
}

static enum slc_status open_run(const struct slc_runs_compare_options *options,
                                const char *folder,
                                struct slc_compared_run *compared,
                                struct slc_error *err)
{
    const struct slc_files *files = slc_files_or_system(options->files);

    compared->folder = folder;
    SLC_TRY(slc_run_folder_read(files, folder, &compared->run, err));
    SLC_TRY(read_record(compared, err));
    /* slc_top_find opens the names, too. */
    return options->rows > 0
               ? find_top(options, compared, err)
               : slc_run_names_open(files, &compared->run, NULL, &compared->names, err);
}

struct slc_run_names *slc_compared_names(struct slc_compared_run *compared)
{
    return compared->top != NULL ? &compared->top->names : &compared->names;
}

enum slc_status slc_compared_top_text(struct slc_compared_run *compared,
                                      uint32_t component,
                                      unsigned mode,
                                      uint64_t k,
                                      char text[SLC_NAME_TEXT_BYTES],
                                      struct slc_error *err)
{
    const uint64_t row = slc_top_component_rows(compared->top, component, mode)[k].row;

    SLC_TRY(slc_run_names_text(slc_compared_names(compared), mode, row, text, err));
    if (*text == '\0') {
        (void)snprintf(text, SLC_NAME_TEXT_BYTES, "%" PRIu64, row + 1);
    }
    return SLC_OK;
}

/* Returns true if both runs are of the same tensor, so that equal indices mean equal rows. */
static bool same_tensor(const struct slc_run_folder *one, const struct slc_run_folder *two)
{
    return one->recorded && two->recorded && one->record.content_sum == two->record.content_sum;
}

static struct slc_run_side side_of(struct slc_compared_run *compared, bool names)
{
    return (struct slc_run_side){.folder = compared->folder,
                                 .files = compared->run.files,
                                 .order = compared->run.order,
                                 .dims = compared->run.dims,
                                 .rank = compared->run.rank,
                                 .lambda = compared->run.lambda,
                                 .names = names ? slc_compared_names(compared)->names : NULL};
}

static enum slc_status match_run(const struct slc_runs_compare_options *options,
                                 struct slc_compared_run *first,
                                 struct slc_compared_run *other,
                                 struct slc_error *err)
{
    const bool names = !same_tensor(&first->run, &other->run);
    const struct slc_run_side one = side_of(first, names), two = side_of(other, names);
    const uint64_t need = slc_memory_resident() + OVERHEAD_BYTES + slc_run_match_bytes(&one, &two);

    if (need > options->memory_bytes) {
        return slc_fail_budget(err, options->memory_bytes, need, "comparing %s and %s", one.folder,
                               two.folder);
    }
    other->match = slc_malloc(sizeof *other->match);
    SLC_TRY(slc_check_memory(other->match != NULL, err, "for comparing runs"));
    return slc_run_match_find(&one, &two, options->stop, other->match, err);
}

enum slc_status slc_runs_compare(const struct slc_runs_compare_options *options,
                                 struct slc_runs_comparison *comparison,
                                 struct slc_error *err)
{
    memset(comparison, 0, sizeof *comparison);
    if (options->count < 1 || options->count > SLC_RUNS_COMPARE_MAX) {
        return slc_fail(err, SLC_ERR_USAGE, "%u runs: 1 to %d runs can be compared", options->count,
                        SLC_RUNS_COMPARE_MAX);
    }
    for (unsigned i = 0; i < options->count; i++) {
        struct slc_compared_run *compared = slc_calloc(1, sizeof *compared);

        SLC_TRY(slc_check_memory(compared != NULL, err, "for a run"));
        comparison->run[comparison->count++] = compared;
        SLC_TRY(open_run(options, options->folders[i], compared, err));
    }
    for (unsigned i = 1; i < comparison->count; i++) {
        SLC_TRY(match_run(options, comparison->run[0], comparison->run[i], err));
    }
    return SLC_OK;
}

void slc_runs_comparison_close(struct slc_runs_comparison *comparison)
{
    for (unsigned i = 0; i < comparison->count; i++) {
        struct slc_compared_run *compared = comparison->run[i];

        slc_top_destroy(compared->top);
        slc_run_names_close(&compared->names);
        slc_run_folder_close(&compared->run);
        json_decref(compared->options);
        slc_free(compared->match);
        slc_free(compared);
    }
    comparison->count = 0;
}

static bool is_ignored(const char *name)
{
    for (unsigned i = 0; ignored[i] != NULL; i++) {
        if (strcmp(name, ignored[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* Returns true if two runs with a record have different values of an option. */
static bool differs(unsigned count, json_t *const *options, const char *name)
{
    const json_t *first = NULL;
    bool any = false;

    for (unsigned i = 0; i < count; i++) {
        const json_t *value = json_object_get(options[i], name);

        if (options[i] == NULL) {
            continue;
        }
        if (any && (value == NULL || first == NULL ? value != first : !json_equal(value, first))) {
            return true;
        }
        first = value;
        any = true;
    }
    return false;
}

/* Inserts a name into a sorted list if the list does not have it. */
static void insert_name(json_t *names, const char *name)
{
    size_t at = 0;

    while (at < json_array_size(names) &&
           strcmp(json_string_value(json_array_get(names, at)), name) < 0) {
        at++;
    }
    const char *there = json_string_value(json_array_get(names, at));
    if (there == NULL || strcmp(there, name) != 0) {
        (void)json_array_insert_new(names, at, json_string(name));
    }
}

json_t *slc_options_that_differ(unsigned count, json_t *const *options)
{
    json_t *names = json_array();

    for (unsigned i = 0; i < count; i++) {
        const char *name;
        json_t *value;

        json_object_foreach(options[i], name, value)
        {
            if (!is_ignored(name) && differs(count, options, name)) {
                insert_name(names, name);
            }
        }
    }
    return names;
}

json_t *slc_runs_options_that_differ(const struct slc_runs_comparison *comparison)
{
    json_t *options[SLC_RUNS_COMPARE_MAX];

    for (unsigned i = 0; i < comparison->count; i++) {
        options[i] = comparison->run[i]->options;
    }
    return slc_options_that_differ(comparison->count, options);
}
