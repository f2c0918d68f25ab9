/* sluice layout: adds, drops, moves or lists layouts of a store. */
#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "base/thread/team.h"
#include "convert/forecast/store_trial.h"
#include "convert/layout/relayout.h"
#include "convert/layout/restripe.h"
#include "storage/file/stripes.h"
#include "tools/forecast/forecast_ahead.h"
#include "tools/progress/console.h"
#include "tools/progress/format.h"
#include "tools/progress/progress.h"
#include "tools/progress/signals.h"
#include "tools/session/commands.h"
#include "tools/session/common_options.h"
#include "tools/session/layout_report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Number of kinds of layouts that can be added: sorted and fiber. */
enum { LAYOUT_KINDS = 2 };

struct arguments {
    const char *sorted; /* modes of sorted layouts to add, as typed, or NULL */
    const char *fiber;  /* modes of fiber layouts to add */
    const char *drop;   /* layouts to drop */
    const char *stripe; /* folders */
    const char *of;     /* layouts to move; NULL means all */
    bool gather;
    bool dry_run;
    uint64_t memory;
    uint64_t threads;
    const char *progress;
    const char *log_json;
    bool verbose;
    bool quiet;
};

/* For each kind of layouts, sets of modes with one bit per mode. */
struct layout_changes {
    uint32_t add[LAYOUT_KINDS];
    uint32_t drop[LAYOUT_KINDS];
    uint32_t move[LAYOUT_KINDS]; /* layouts to stripe or gather, except the first */
    bool move_blco;              /* true to stripe or gather the first layout */
    bool move_all;               /* true to stripe or gather all layouts */
};

static const enum slc_layout_kind kinds[LAYOUT_KINDS] = {SLC_LAYOUT_SORTED, SLC_LAYOUT_FIBER};

/* Parses a mode from 1 to `order`, up to a comma or the end; returns 0 for anything else. */
static unsigned parse_mode(const char **text, unsigned order)
{
    unsigned mode = 0;

    for (; **text >= '0' && **text <= '9' && mode <= order; ++*text) {
        mode = mode * 10 + (unsigned)(**text - '0');
    }
    if ((**text != ',' && **text != '\0') || mode > order) {
        return 0;
    }
    *text += **text == ',';
    return mode;
}

/* Parses a list of modes, or "all". NULL means an empty list. Errors: SLC_ERR_USAGE. */
static enum slc_status parse_modes(
    const char *option, const char *list, unsigned order, uint32_t *modes, struct slc_error *err)
{
    const char *text = list;

    if (list != NULL && strcmp(list, "all") == 0) {
        *modes = (UINT32_C(1) << order) - 1;
        return SLC_OK;
    }
    while (text != NULL && *text != '\0') {
        const unsigned mode = parse_mode(&text, order);

        if (mode == 0) {
            return slc_fail(err, SLC_ERR_USAGE,
                            "--%s '%s': use a comma-separated list of modes from 1 to %u, or all",
                            option, list, order);
        }
        *modes |= UINT32_C(1) << (mode - 1);
    }
    return SLC_OK;
}

/* Parses a list of layouts. NULL means an empty list. If the list contains the first layout, sets
 * *blco; `blco` may be NULL. Errors: SLC_ERR_USAGE. */
static enum slc_status parse_layouts(const char *option,
                                     const char *list,
                                     unsigned order,
                                     uint32_t *modes,
                                     bool *blco,
                                     struct slc_error *err)
{
    const char *text = list;

    while (text != NULL && *text != '\0') {
        const size_t first = blco == NULL                     ? 0
                             : strncmp(text, "blco,", 5) == 0 ? 5
                             : strcmp(text, "blco") == 0      ? 4
                                                              : 0;
        unsigned mode = 0;

        text += first;
        if (first > 0) {
            *blco = true;
            continue;
        }
        for (unsigned k = 0; k < LAYOUT_KINDS && mode == 0; k++) {
            const char *name = slc_layout_name(kinds[k]);

            if (strncmp(text, name, strlen(name)) == 0 && text[strlen(name)] == '-') {
                text += strlen(name) + 1;
                mode = parse_mode(&text, order);
                modes[k] |= mode > 0 ? UINT32_C(1) << (mode - 1) : 0;
                break;
            }
        }
        if (mode == 0) {
            return slc_fail(err, SLC_ERR_USAGE,
                            "--%s '%s': use a comma-separated list of layouts: %ssorted-K or "
                            "fiber-K, with K from 1 to %u",
                            option, list, blco != NULL ? "blco, " : "", order);
        }
    }
    return SLC_OK;
}

/* Parses the layout changes for a store with `order` modes. Errors: SLC_ERR_USAGE. */
static enum slc_status parse_changes(const struct arguments *args,
                                     unsigned order,
                                     struct layout_changes *changes,
                                     struct slc_error *err)
{
    changes->move_all = args->of == NULL;
    SLC_TRY(parse_modes("sorted", args->sorted, order, &changes->add[0], err));
    SLC_TRY(parse_modes("fiber", args->fiber, order, &changes->add[1], err));
    SLC_TRY(parse_layouts("drop", args->drop, order, changes->drop, NULL, err));
    SLC_TRY(parse_layouts("of", args->of, order, changes->move, &changes->move_blco, err));
    if ((args->stripe != NULL) + args->gather > 1 ||
        (args->of != NULL && args->stripe == NULL && !args->gather)) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "use either --stripe or --gather, and --of only with one of them");
    }
    if ((changes->add[0] & changes->drop[0]) != 0 || (changes->add[1] & changes->drop[1]) != 0) {
        return slc_fail(
            err, SLC_ERR_USAGE,
            "one command cannot both add and drop a layout: drop it first, then build it again");
    }
    return SLC_OK;
}

/* Returns whether a layout is to be striped or gathered. */
static bool is_to_move(const struct layout_changes *changes, const struct slc_store_layout *layout)
{
    return changes->move_all ||
           (layout->layout == SLC_LAYOUT_BLCO
                ? changes->move_blco
                : (changes->move[layout->layout == SLC_LAYOUT_FIBER] >> layout->layout_mode & 1) !=
                      0);
}

/* Expected resources of a run that adds layouts, from the plan of each layout. */
struct layout_expected {
    struct forecast_ahead ahead;
    const struct slc_relayout *layouts;
    uint64_t made_bytes; /* actual size of the files */
    bool resumed; /* part of an interrupted build existed, so fewer bytes are read and written */
};

/* Prints the layouts that the manifest lists and reads nothing else, because another run may be
 * changing or replacing the store. Errors: as slc_manifest_read. */
static enum slc_status print_list(const char *store, struct slc_error *err)
{
    struct slc_manifest *manifest = slc_malloc(sizeof *manifest);

    SLC_TRY(slc_check_memory(manifest != NULL, err, "for the manifest"));
    enum slc_status status = slc_manifest_read(slc_files_or_system(NULL), store, manifest, err);
    double nnz = status == SLC_OK && manifest->nnz > 0 ? (double)manifest->nnz : 1;
    for (unsigned i = 0; status == SLC_OK && i < manifest->layout_count; i++) {
        const struct slc_store_layout *layout = &manifest->layouts[i];
        struct format_text size;

        printf("%-14s %s in %" PRIu64 " block%s, %.2f bytes per nonzero, codec %s\n", layout->file,
               format_data(&size, (double)layout->file_bytes), layout->block_count,
               plural(layout->block_count), (double)layout->file_bytes / nnz,
               slc_codec_name(layout->codec));
    }
    slc_free(manifest);
    return status;
}

/* Duration of a decoding trial in seconds. */
#define TRIAL_SECONDS 0.3
/* Times per nonzero, divided by the time to decode a nonzero. SCAN_OF_DECODE: to count or gather it
 * in a scan. SORT_OF_DECODE: to sort and encode it. */
#define SCAN_OF_DECODE 4.0
#define SORT_OF_DECODE 80.0
/* Time in seconds to start, to sync and to finish. */
#define ALWAYS_SECONDS 0.05

/* Estimates bytes and time, and checks the disk space. */
static enum slc_status estimate_build(const struct slc_relayout *layouts,
                                      const struct slc_sorted_plan *plan,
                                      bool quiet,
                                      struct slc_error *err)
{
    const struct slc_reader *reader = layouts->store.reader;
    const struct slc_layout_info *info = slc_reader_info(reader);
    const double scans = (double)plan->count_scans + (double)plan->batches;
    const double work = (double)info->nnz / plan->workers;
    struct forecast forecast = {.command = "layout", .output = slc_reader_path(reader)};
    struct slc_store_trial trial;
    struct format_text a;

    SLC_TRY(slc_store_trial(reader, TRIAL_SECONDS, NULL, &trial, err));
    forecast.final_bytes = (uint64_t)layout_disk_bytes(info, plan);
    if (trial.nnz > 0) {
        forecast_try_drives(&forecast, slc_reader_path(reader));
        forecast_add_phase(&forecast, "begin and end");
        forecast_add_part(&forecast, "syncing", ALWAYS_SECONDS);
        forecast_add_phase(&forecast, "scan");
        forecast_add_part(&forecast, "reading",
                          slc_ratio(scans * (double)info->file_bytes, forecast.read_rate));
        forecast_add_part(&forecast, "decoding",
                          SCAN_OF_DECODE * scans * work * trial.decode_seconds);
        forecast_add_phase(&forecast, "write");
        forecast_add_part(&forecast, "sorting", SORT_OF_DECODE * work * trial.decode_seconds);
        forecast_add_part(&forecast, "writing",
                          slc_ratio((double)forecast.final_bytes, forecast.write_rate));
    }
    SLC_TRY(forecast_check_space(&forecast, err));
    if (!quiet) {
        printf("  %-12s %s read\n", "bytes", format_data(&a, scans * (double)info->file_bytes));
        forecast_print_time(&forecast);
    }
    return SLC_OK;
}

/* Fraction of the memory for encoders and writer that is touched (measured: 0.21 to 0.45). */
#define ENCODERS_FILLED 0.35
/* Time to sort, encode and write, divided by the time of a counting scan (measured: 1.2 to 3.6). */
#define WRITE_OF_SCAN 2.5

/* Callback `planned` of struct slc_relayout_options. `context` is a struct layout_expected. */
static void add_expected(void *context, const struct slc_sorted_plan *plan)
{
    struct layout_expected *layout = context;
    struct forecast_totals *expected = &layout->ahead.expected;
    const struct slc_layout_info *info = slc_reader_info(layout->layouts->store.reader);
    const double scan = slc_ratio(plan->count_seconds, plan->count_scans);
    const uint64_t memory =
        slc_memory_resident() + plan->area_bytes +
        (uint64_t)(ENCODERS_FILLED * (double)(plan->need_bytes - plan->area_bytes));

    expected->memory_bytes = slc_max_u64(expected->memory_bytes, memory);
    expected->read_bytes += (plan->count_scans + plan->batches) * info->file_bytes;
    expected->final_bytes += (uint64_t)layout_disk_bytes(info, plan);
    expected->seconds +=
        ALWAYS_SECONDS + plan->count_seconds + scan * ((double)plan->batches + WRITE_OF_SCAN);
    layout->ahead.known = true;
}

static const struct option options[] = {
    {"sorted", OPTION_STRING, offsetof(struct arguments, sorted), .value = "MODES",
     .help = "add layouts sorted by these modes: 1,3 or all"},
    {"fiber", OPTION_STRING, offsetof(struct arguments, fiber), .value = "MODES",
     .help = "add layouts that keep fibers of these modes whole: 2 or all"},
    {"drop", OPTION_STRING, offsetof(struct arguments, drop), .value = "LAYOUTS",
     .help = "remove these layouts, such as sorted-1,fiber-2, before other layouts are added"},
    {"stripe", OPTION_STRING, offsetof(struct arguments, stripe), .value = "FOLDERS",
     .help = "move layouts to stripes in these folders: /mnt/a,/mnt/b"},
    {"gather", OPTION_FLAG, offsetof(struct arguments, gather),
     .help = "move striped layouts back into the store"},
    {"of", OPTION_STRING, offsetof(struct arguments, of), .value = "LAYOUTS",
     .help = "with --stripe or --gather: move only these layouts, such as blco,sorted-1"},
    {"dry-run", OPTION_FLAG, offsetof(struct arguments, dry_run),
     .help = "count the nonzeros of the rows, print and estimate the changes, and write nothing"},
    OPTION_ROW_MEMORY(arguments, memory),
    OPTION_ROW_THREADS(arguments, threads),
    OPTION_ROW_PROGRESS(arguments, progress),
    OPTION_ROW_LOG_JSON(arguments, log_json),
    {"verbose", OPTION_FLAG, offsetof(struct arguments, verbose), .letter = 'v',
     .help = "also print the scans and times of each layout"},
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
        console_clear_live();
        if (!args->quiet) {
            printf("%s-%u: exists already\n", slc_layout_name(kind), mode + 1);
        }
        return SLC_OK;
    }
    if (args->dry_run) {
        status = slc_relayout_plan(layouts, kind, mode, &plan, err);
        console_clear_live();
        if (status == SLC_OK) {
            layout_print_plan(layouts, kind, mode, &plan);
            status = estimate_build(layouts, &plan, args->quiet, err);
        }
        slc_sorted_plan_destroy(&plan);
        return status;
    }
    status = slc_relayout_add(layouts, kind, mode, &report, err);
    console_clear_live();
    SLC_TRY(status);
    expected->made_bytes += report.summary.file_bytes;
    expected->resumed = expected->resumed || report.kept_nnz > 0;
    if (!args->quiet) {
        layout_print_built(layouts, kind, mode, &report, args->verbose);
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

/* Parses a list of at most SLC_MAX_STRIPES folders and makes their paths absolute. Errors:
 * SLC_ERR_USAGE. */
static enum slc_status
parse_folders(const char *text, char **folders, unsigned *count, struct slc_error *err)
{
    for (*count = 0; *text != '\0'; text += *text == ',') {
        const size_t length = strcspn(text, ",");
        char *folder = length == 0 ? NULL : strndup(text, length);

        if (*count == SLC_MAX_STRIPES || folder == NULL) {
            free(folder);
            return slc_fail(err, SLC_ERR_USAGE,
                            "--stripe: use a comma-separated list of 1 to %d folders",
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

/* Stripes or gathers one layout, or prints the change in a dry run. */
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
            args->gather
                ? slc_relayout_gather(layouts, layout->layout, layout->layout_mode, &changed, err)
                : slc_relayout_stripe(layouts, layout->layout, layout->layout_mode,
                                      (const char *const *)folders, count, &changed, err);
    }
    console_clear_live();
    SLC_TRY(status);
    if (!args->quiet) {
        printf("%s: %s%s", file,
               !changed        ? "is already "
               : args->dry_run ? "would be moved "
                               : "",
               args->gather ? "in the store\n" : "");
        if (!args->gather) {
            printf("in %u stripe%s\n", count, plural(count));
        }
        (void)fflush(stdout);
    }
    return SLC_OK;
}

/* Stripes or gathers the selected layouts. */
static enum slc_status move_layouts(struct slc_relayout *layouts,
                                    const struct arguments *args,
                                    const struct layout_changes *changes,
                                    struct slc_error *err)
{
    const struct slc_manifest *manifest = &layouts->store.manifest;
    char *folders[SLC_MAX_STRIPES] = {NULL};
    unsigned count = 0, found = 0;
    enum slc_status status =
        args->stripe == NULL ? SLC_OK : parse_folders(args->stripe, folders, &count, err);

    for (unsigned i = 0; i < manifest->layout_count && status == SLC_OK; i++) {
        if (is_to_move(changes, &manifest->layouts[i])) {
            found++;
            status = move_layout(layouts, args, &manifest->layouts[i], folders, count, err);
        }
    }
    if (status == SLC_OK && found == 0) {
        status = slc_fail(err, SLC_ERR_USAGE, "the store has none of the layouts '%s'", args->of);
    }
    for (unsigned k = 0; k < SLC_MAX_STRIPES; k++) {
        free(folders[k]);
    }
    return status;
}

static enum slc_status apply_changes(struct slc_relayout *layouts,
                                     const struct arguments *args,
                                     struct layout_expected *expected,
                                     struct slc_error *err)
{
    const unsigned order = layouts->store.manifest.order;
    struct layout_changes changes = {.add = {0}};

    SLC_TRY(parse_changes(args, order, &changes, err));
    for (unsigned i = 0; i < LAYOUT_KINDS * order; i++) {
        if ((changes.drop[i / order] >> i % order & 1) != 0) {
            SLC_TRY(drop_layout(layouts, args, kinds[i / order], i % order, err));
        }
    }
    for (unsigned i = 0; i < LAYOUT_KINDS * order; i++) {
        if ((changes.add[i / order] >> (i % order) & 1) != 0) {
            SLC_TRY(add_layout(layouts, args, expected, kinds[i / order], i % order, err));
        }
    }
    if ((args->stripe != NULL || args->gather)) {
        SLC_TRY(move_layouts(layouts, args, &changes, err));
    }
    return SLC_OK;
}

/* Opens the store and makes all changes. */
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
        .planned = add_expected,
        .planned_context = &expected};
    struct format_text a, b;
    enum slc_status status = slc_relayout_open(&open, &layouts, err);

    forecast_ahead_start(&expected.ahead);
    SLC_THEN(status, apply_changes(&layouts, args, &expected, err));
    if (status == SLC_OK && !expected.resumed) {
        forecast_compare_bytes(&expected.ahead, args->quiet, 0, expected.made_bytes);
    }
    if (status == SLC_OK && args->verbose) {
        printf("peak memory %s, budget %s\n", format_memory(&a, slc_memory_peak()),
               format_memory(&b, args->memory));
    }
    slc_relayout_close(&layouts);
    return status;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct arguments args = {.sorted = NULL};
    struct slc_error err = SLC_ERROR_INIT;
    struct operands operands;
    int code = 0;

    if (!command_begin(command, argc, argv, &args, &operands, &code)) {
        return code;
    }
    console_start(args.quiet ? CONSOLE_QUIET : CONSOLE_NORMAL);
    progress_start(args.progress, args.quiet);
    enum slc_status status = signals_start(NULL, NULL, &err);
    SLC_THEN(status, args.sorted == NULL && args.fiber == NULL && args.drop == NULL &&
                             args.stripe == NULL && args.of == NULL && !args.gather
                         ? print_list(operands.text[0], &err)
                         : change_store(&args, operands.text[0], &err));
    if (status != SLC_OK) {
        console_clear_live();
        code = console_error(&err);
    }
    return status == SLC_ERR_INTERRUPTED ? signals_exit_code() : code;
}

const struct command command_layout = {
    .name = "layout",
    .summary = "add, drop or move layouts of a store",
    .example = "sluice layout flights-4d.slc --sorted 1,3 --memory 2GiB",
    .operands = "X.slc",
    .operands_min = 1,
    .operands_max = 1,
    .options = options,
    .notes = "Without --sorted, --fiber, --drop, --stripe and --gather, lists the layouts.\nTo "
             "resume a command that was stopped, repeat it.",
    .run = run,
};
