#include "report/runs_report.h"

#include "base/error/log.h"
#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "storage/file/files.h"
#include "storage/manifest/json_text.h"
#include "storage/model/run_folder.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double real_member(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);

    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

/* Fills in the members of a run from its record. */
static void read_members(const json_t *record,
                         const struct slc_run_record *parsed,
                         struct slc_runs_page_run *run)
{
    run->options = json_incref(json_object_get(record, "options"));
    run->rank = (uint32_t)slc_min_u64(slc_json_count(record, "rank"), UINT32_MAX);
    run->iterations = parsed->iterations;
    run->fit = parsed->fit;
    run->heldout_rmse = real_member(json_object_get(record, "holdout"), "rmse");
    run->seconds = real_member(json_object_get(record, "seconds"), "total");
    (void)snprintf(run->reason, sizeof run->reason, "%s", parsed->reason);
}

/* Returns a link to the page of a run or, if there is no page, to its record; NULL after an error.
 * The link is relative to the folder of `output` if the run is below that folder. */
static char *link_to(const char *folder, const char *output)
{
    const struct slc_files *files = slc_files_system();
    char page_folder[PATH_MAX];
    char *from = NULL, *path = NULL, *link = NULL;
    const char *slash = strrchr(output, '/');
    struct slc_file_stat stat;

    (void)snprintf(page_folder, sizeof page_folder, "%.*s",
                   slash != NULL ? (int)(slash - output + 1) : 1, slash != NULL ? output : ".");
    char *to = realpath(folder, NULL);
    from = realpath(page_folder, NULL);
    if (to != NULL && from != NULL) {
        const size_t length = strlen(from);
        const bool below = strncmp(to, from, length) == 0 && to[length] == '/';
        char *page = slc_path_join(to, "report.html");

        path = page != NULL && files->stat_path(files->self, page, &stat) >= 0
                   ? slc_strdup(page)
                   : slc_path_join(to, "run.json");
        link = path != NULL ? slc_strdup(below ? path + length + 1 : path) : NULL;
        slc_free(page);
    }
    free(to);
    free(from);
    slc_free(path);
    return link;
}

static enum slc_status reserve_run(struct slc_runs_list *list, struct slc_error *err)
{
    if (list->count == list->capacity) {
        const unsigned capacity = list->capacity > 0 ? 2 * list->capacity : 16;
        struct slc_runs_page_run *runs = slc_calloc(capacity, sizeof *runs);

        SLC_TRY(slc_check_memory(runs != NULL, err, "for a list of runs"));
        if (list->count > 0) {
            memcpy(runs, list->runs, list->count * sizeof *runs);
        }
        slc_free(list->runs);
        list->runs = runs;
        list->capacity = capacity;
    }
    return SLC_OK;
}

enum slc_status slc_runs_list_add(struct slc_runs_list *list,
                                  const char *folder,
                                  const char *name,
                                  const char *output,
                                  bool *found,
                                  struct slc_error *err)
{
    const struct slc_files *files = slc_files_system();
    struct slc_error fault = SLC_ERROR_INIT;
    char *path = slc_path_join(folder, "run.json");
    void *text = NULL;
    uint64_t bytes = 0;
    struct slc_run_record parsed;
    json_t *record = NULL;
    enum slc_status status = slc_check_memory(path != NULL, &fault, "for a path");

    *found = false;
    SLC_THEN(status, slc_file_load(files, path, SLC_RUN_RECORD_MAX_BYTES, &text, &bytes, &fault));
    if (fault.system_errno == ENOENT || fault.system_errno == ENOTDIR) {
        slc_free(path);
        return SLC_OK;
    }
    SLC_THEN(status, slc_run_record_parse(text, bytes, &parsed, &fault));
    SLC_THEN(status, slc_json_read(text, bytes, "run.json", SLC_ERR_INPUT, &record, &fault));
    SLC_THEN(status, reserve_run(list, &fault));
    if (status == SLC_OK) {
        struct slc_runs_page_run *run = &list->runs[list->count++];

        *found = true;
        read_members(record, &parsed, run);
        run->name = slc_strdup(name);
        run->link = link_to(folder, output);
        status = slc_check_memory(run->name != NULL, &fault, "for a name");
    } else {
        slc_error_locate_file(&fault, path);
    }
    json_decref(record);
    slc_free(text);
    slc_free(path);
    return status == SLC_OK ? SLC_OK : slc_error_pass(err, &fault);
}

struct listing {
    struct slc_runs_list *list;
    const char *folder, *output;
    struct slc_error first; /* error of the first folder whose record cannot be read */
    struct slc_error *err;
    enum slc_status status;
};

/* Skips a folder whose record cannot be read. */
static void skip_run(struct listing *listing, const struct slc_error *fault)
{
    if (listing->list->skipped++ == 0) {
        listing->first = *fault;
    }
    slc_log(SLC_LOG_WARNING, "%s: %s; this run is left out",
            fault->file[0] != '\0' ? fault->file : listing->folder, fault->message);
}

static int add_name(void *context, const char *name, char kind)
{
    struct listing *listing = context;
    char *path = slc_path_join(listing->folder, name);
    struct slc_error fault = SLC_ERROR_INIT;
    enum slc_status status = slc_check_memory(path != NULL, &fault, "for a path");
    bool found;

    (void)kind;
    SLC_THEN(status, slc_runs_list_add(listing->list, path, name, listing->output, &found, &fault));
    slc_free(path);
    if (status == SLC_ERR_INPUT || status == SLC_ERR_IO) {
        skip_run(listing, &fault);
    } else if (status != SLC_OK) {
        listing->status = slc_error_pass(listing->err, &fault);
    }
    return listing->status == SLC_OK ? 0 : 1;
}

/* Orders runs by descending fit; unknown fits last; equal fits by name. */
static int compare_runs(const void *left, const void *right)
{
    const struct slc_runs_page_run *a = left, *b = right;
    const double x = isfinite(a->fit) ? a->fit : -INFINITY,
                 y = isfinite(b->fit) ? b->fit : -INFINITY;

    return x > y ? -1 : x < y ? 1 : strcmp(a->name, b->name);
}

enum slc_status slc_runs_list_read(const char *folder,
                                   const char *output,
                                   struct slc_runs_list *list,
                                   struct slc_error *err)
{
    const struct slc_files *files = slc_files_system();
    struct listing listing = {
        .list = list, .folder = folder, .output = output, .first = SLC_ERROR_INIT, .err = err};

    (void)files->list_folder(files->self, folder, add_name, &listing);
    SLC_TRY(listing.status);
    if (list->count == 0 && list->skipped > 0) {
        return slc_error_pass(err, &listing.first);
    }
    if (list->count > 0) {
        qsort(list->runs, list->count, sizeof *list->runs, compare_runs);
    }
    return SLC_OK;
}

void slc_runs_list_clear(struct slc_runs_list *list)
{
    for (unsigned i = 0; i < list->count; i++) {
        slc_free(list->runs[i].name);
        slc_free(list->runs[i].link);
        json_decref(list->runs[i].options);
    }
    slc_free(list->runs);
    *list = (struct slc_runs_list){.count = 0};
}
