/* sluice layout: adds layouts to a store, or drops some, or tells which it has. */
#include "base/memory/memory.h"
#include "base/thread/team.h"
#include "convert/layout/relayout.h"
#include "convert/layout/restripe.h"
#include "storage/file/stripes.h"
#include "tools/options/layout_wish.h"
#include "tools/progress/console.h"
#include "tools/progress/format.h"
#include "tools/progress/progress.h"
#include "tools/progress/signals.h"
#include "tools/report/layout_report.h"
#include "tools/session/commands.h"
#include "tools/session/common_options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct arguments {
    struct layout_lists lists;
    bool dry_run;
    uint64_t memory;
    uint64_t threads;
    const char *progress;
    const char *log_json;
    bool verbose;
    bool quiet;
};

static const struct option options[] = {
    {"sorted", OPTION_STRING, offsetof(struct arguments, lists.sorted), .value = "MODES",
     .help = "add layouts sorted by these modes: 1,3 or all"},
    {"fiber", OPTION_STRING, offsetof(struct arguments, lists.fiber), .value = "MODES",
     .help = "add layouts that keep whole fibers of these modes together: 2 or all"},
    {"drop", OPTION_STRING, offsetof(struct arguments, lists.drop), .value = "LAYOUTS",
     .help = "remove layouts, before others are added: sorted-1,fiber-2"},
    {"stripe", OPTION_STRING, offsetof(struct arguments, lists.stripe), .value = "FOLDERS",
     .help = "move layouts out of the store, in stripes to these folders: /mnt/a,/mnt/b"},
    {"gather", OPTION_FLAG, offsetof(struct arguments, lists.gather),
     .help = "move layouts back into the store"},
    {"of", OPTION_STRING, offsetof(struct arguments, lists.of), .value = "LAYOUTS",
     .help = "with --stripe and --gather, only these: blco,sorted-1; default: all"},
    {"dry-run", OPTION_FLAG, offsetof(struct arguments, dry_run),
     .help = "count rows and tell what would be built, read and written; change nothing"},
    OPTION_ROW_MEMORY(arguments, memory),
    OPTION_ROW_THREADS(arguments, threads),
    OPTION_ROW_PROGRESS(arguments, progress),
    OPTION_ROW_LOG_JSON(arguments, log_json),
    {"verbose", OPTION_FLAG, offsetof(struct arguments, verbose), .letter = 'v',
     .help = "tell scans and times of each layout, too"},
    OPTION_ROW_QUIET(arguments, quiet),
    {.name = NULL}};

static enum slc_status add_layout(struct slc_relayout *layouts,
                                  const struct arguments *args,
                                  struct layout_expected *expected,
                                  enum slc_layout_kind kind,
                                  unsigned mode,
                                  struct slc_error *err)
{
    struct slc_sorted_plan plan = {.ranges = NULL};
    struct slc_sorted_report report;
    enum slc_status status;

    if (slc_manifest_find(&layouts->store.manifest, kind, mode) != NULL) {
        console_settle();
        if (!args->quiet) {
            printf("%s-%u: is there already\n", slc_layout_name(kind), mode + 1);
        }
        return SLC_OK;
    }
    if (args->dry_run) {
        status = slc_relayout_plan(layouts, kind, mode, &plan, err);
        console_settle();
        if (status == SLC_OK) {
            layout_print_plan(layouts, kind, mode, &plan);
            status = layout_judge(layouts, &plan, args->quiet, err);
        }
        slc_sorted_plan_destroy(&plan);
        return status;
    }
    status = slc_relayout_add(layouts, kind, mode, &report, err);
    console_settle();
    SLC_TRY(status);
    expected->made_bytes += report.summary.file_bytes;
    expected->resumed = expected->resumed || report.kept_nnz > 0;
    if (!args->quiet) {
        layout_print_report(layouts, kind, mode, &report, args->verbose);
        (void)fflush(stdout);
    }
    return SLC_OK;
}

static enum slc_status drop_layout(struct slc_relayout *layouts,
                                   const struct arguments *args,
                                   enum slc_layout_kind kind,
                                   unsigned mode,
                                   struct slc_error *err)
{
    SLC_TRY(args->dry_run ? SLC_OK : slc_relayout_drop(layouts, kind, mode, err));
    if (!args->quiet) {
        printf("%s-%u: %s\n", slc_layout_name(kind), mode + 1,
               args->dry_run ? "would be dropped" : "dropped");
    }
    return SLC_OK;
}

/* Folders as they are to be listed: absolute. At most SLC_MAX_STRIPES. Errors: SLC_ERR_USAGE. */
static enum slc_status
parse_folders(const char *text, char **folders, unsigned *count, struct slc_error *err)
{
    for (*count = 0; *text != '\0'; text += *text == ',') {
        const size_t length = strcspn(text, ",");
        char *folder = length == 0 ? NULL : strndup(text, length);

        if (*count == SLC_MAX_STRIPES || folder == NULL) {
            free(folder);
            return slc_fail(err, SLC_ERR_USAGE, "--stripe: 1 to %d folders, with commas between",
                            (int)SLC_MAX_STRIPES);
        }
        folders[*count] = realpath(folder, NULL);
        if (folders[*count] == NULL) {
            (void)slc_fail_errno(err, errno, folder, "looking for a folder for stripes");
            free(folder);
            return SLC_ERR_IO;
        }
        free(folder);
        ++*count;
        text += length;
    }
    return SLC_OK;
}

/* Stripes or gathers one layout, or tells that it would. */
static enum slc_status move_layout(struct slc_relayout *layouts,
                                   const struct arguments *args,
                                   const struct slc_store_layout *layout,
                                   char *const *folders,
                                   unsigned count,
                                   struct slc_error *err)
{
    char file[sizeof layout->file];
    enum slc_status status = SLC_OK;
    bool changed = true;

    memcpy(file, layout->file, sizeof file);
    if (!args->dry_run) {
        status =
            args->lists.gather
                ? slc_relayout_gather(layouts, layout->layout, layout->layout_mode, &changed, err)
                : slc_relayout_stripe(layouts, layout->layout, layout->layout_mode,
                                      (const char *const *)folders, count, &changed, err);
    }
    console_settle();
    SLC_TRY(status);
    if (!args->quiet) {
        printf("%s: %s%s", file,
               !changed        ? "is already "
               : args->dry_run ? "would be moved "
                               : "",
               args->lists.gather ? "in the store\n" : "");
        if (!args->lists.gather) {
            printf("in %u stripe%s\n", count, count == 1 ? "" : "s");
        }
        (void)fflush(stdout);
    }
    return SLC_OK;
}

/* Stripes or gathers what is asked for. */
static enum slc_status move_layouts(struct slc_relayout *layouts,
                                    const struct arguments *args,
                                    const struct layout_wish *wish,
                                    struct slc_error *err)
{
    const struct slc_manifest *manifest = &layouts->store.manifest;
    char *folders[SLC_MAX_STRIPES] = {NULL};
    unsigned count = 0, found = 0;
    enum slc_status status = args->lists.stripe == NULL
                                 ? SLC_OK
                                 : parse_folders(args->lists.stripe, folders, &count, err);

    for (unsigned i = 0; i < manifest->layout_count && status == SLC_OK; i++) {
        if (layout_is_to_move(wish, &manifest->layouts[i])) {
            found++;
            status = move_layout(layouts, args, &manifest->layouts[i], folders, count, err);
        }
    }
    if (status == SLC_OK && found == 0) {
        status =
            slc_fail(err, SLC_ERR_USAGE, "the store has none of the layouts '%s'", args->lists.of);
    }
    for (unsigned k = 0; k < SLC_MAX_STRIPES; k++) {
        free(folders[k]);
    }
    return status;
}

static enum slc_status change(struct slc_relayout *layouts,
                              const struct arguments *args,
                              struct layout_expected *expected,
                              struct slc_error *err)
{
    const unsigned order = layouts->store.manifest.order;
    struct layout_wish wish = {.add = {0}};
    enum slc_status status = layout_wish_parse(&args->lists, order, &wish, err);

    for (unsigned i = 0; i < LAYOUT_KINDS * order && status == SLC_OK; i++) {
        if (layout_has_mode(wish.drop[i / order], i % order)) {
            status = drop_layout(layouts, args, layout_kinds[i / order], i % order, err);
        }
    }
    for (unsigned i = 0; i < LAYOUT_KINDS * order && status == SLC_OK; i++) {
        if (layout_has_mode(wish.add[i / order], i % order)) {
            status = add_layout(layouts, args, expected, layout_kinds[i / order], i % order, err);
        }
    }
    SLC_TRY(status);
    if ((args->lists.stripe != NULL || args->lists.gather)) {
        SLC_TRY(move_layouts(layouts, args, &wish, err));
    }
    return SLC_OK;
}

/* Opens the store, and adds and drops. */
static enum slc_status
change_store(const struct arguments *args, const char *store, struct slc_error *err)
{
    const struct slc_stop stop = {.flag = signals_stop()};
    struct slc_relayout layouts = {.lock = -1};
    struct layout_expected expected = {.layouts = &layouts};
    const struct slc_relayout_options open = {
        .store = store,
        .memory_bytes = args->memory,
        .workers = args->threads != 0 ? (unsigned)args->threads : slc_team_default_workers(),
        .reads_only = args->dry_run,
        .stop = &stop,
        .progress = progress_phase,
        .planned = layout_expect,
        .planned_context = &expected};
    enum slc_status status = slc_relayout_open(&open, &layouts, err);

    forecast_begin(&expected.ahead);
    if (status == SLC_OK) {
        status = change(&layouts, args, &expected, err);
    }
    if (status == SLC_OK && !expected.resumed) {
        forecast_compare_bytes(&expected.ahead, args->quiet, 0, expected.made_bytes);
    }
    if (status == SLC_OK && args->verbose) {
        struct format_text a, b;

        printf("%s at most, budget %s\n", format_memory(&a, slc_memory_peak()),
               format_memory(&b, args->memory));
    }
    slc_relayout_close(&layouts);
    return status;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct arguments args = {.lists = {.sorted = NULL}};
    struct slc_error err = SLC_ERROR_INIT;
    struct operands operands;
    enum slc_status status;
    int code = 0;

    if (!command_begin(command, argc, argv, &args, &operands, &code)) {
        return code;
    }
    console_start(args.quiet ? CONSOLE_QUIET : CONSOLE_NORMAL);
    progress_start(args.progress, args.quiet);
    status = signals_start(NULL, NULL, &err);
    if (status == SLC_OK) {
        status = args.lists.sorted == NULL && args.lists.fiber == NULL && args.lists.drop == NULL &&
                         args.lists.stripe == NULL && args.lists.of == NULL && !args.lists.gather
                     ? layout_print_list(operands.text[0], &err)
                     : change_store(&args, operands.text[0], &err);
    }
    if (status != SLC_OK) {
        console_settle();
        code = console_error(&err);
    }
    return status == SLC_ERR_INTERRUPTED ? signals_exit_code() : code;
}

const struct command command_layout = {
    .name = "layout",
    .summary = "add or drop further orders of a store's nonzeros",
    .example = "sluice layout flights-4d.slc --sorted 1,3 --memory 2GiB",
    .operands = "X.slc",
    .operands_min = 1,
    .operands_max = 1,
    .options = options,
    .notes =
        "Without --sorted, --fiber, --drop, --stripe and --gather: tells which layouts there are.\n"
        "A command that was stopped goes on when it is given again.",
    .run = run,
};
