/* sluice layout: adds layouts to a store, or drops some, or tells which it has. */
#include "base/memory.h"
#include "base/team.h"
#include "commands.h"
#include "common_options.h"
#include "console.h"
#include "convert/relayout.h"
#include "convert/restripe.h"
#include "convert/store_trial.h"
#include "forecast.h"
#include "format.h"
#include "progress.h"
#include "signals.h"
#include "storage/stripes.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct arguments {
    const char *sorted;
    const char *fiber;
    const char *drop;
    const char *stripe;
    const char *of;
    bool gather;
    bool dry_run;
    uint64_t memory;
    uint64_t threads;
    const char *progress;
    const char *log_json;
    bool verbose;
    bool quiet;
};

static const struct option options[] = {
    {.name = "sorted",
     .kind = OPTION_STRING,
     .value = "MODES",
     .help = "add layouts sorted by these modes: 1,3 or all",
     .offset = offsetof(struct arguments, sorted)},
    {.name = "fiber",
     .kind = OPTION_STRING,
     .value = "MODES",
     .help = "add layouts that keep whole fibers of these modes together: 2 or all",
     .offset = offsetof(struct arguments, fiber)},
    {.name = "drop",
     .kind = OPTION_STRING,
     .value = "LAYOUTS",
     .help = "remove layouts, before others are added: sorted-1,fiber-2",
     .offset = offsetof(struct arguments, drop)},
    {.name = "stripe",
     .kind = OPTION_STRING,
     .value = "FOLDERS",
     .help = "move layouts out of the store, in stripes to these folders: /mnt/a,/mnt/b",
     .offset = offsetof(struct arguments, stripe)},
    {.name = "gather",
     .kind = OPTION_FLAG,
     .help = "move layouts back into the store",
     .offset = offsetof(struct arguments, gather)},
    {.name = "of",
     .kind = OPTION_STRING,
     .value = "LAYOUTS",
     .help = "with --stripe and --gather, only these: blco,sorted-1; default: all",
     .offset = offsetof(struct arguments, of)},
    {.name = "dry-run",
     .kind = OPTION_FLAG,
     .help = "count rows and tell what would be built, read and written; change nothing",
     .offset = offsetof(struct arguments, dry_run)},
    OPTION_ROW_MEMORY(arguments, memory),
    OPTION_ROW_THREADS(arguments, threads),
    OPTION_ROW_PROGRESS(arguments, progress),
    OPTION_ROW_LOG_JSON(arguments, log_json),
    {.name = "verbose",
     .letter = 'v',
     .kind = OPTION_FLAG,
     .help = "tell scans and times of each layout, too",
     .offset = offsetof(struct arguments, verbose)},
    OPTION_ROW_QUIET(arguments, quiet),
    {.name = NULL}};

/* Further kinds of layouts. */
enum { KINDS = 2 };
static const enum slc_layout_kind kinds[KINDS] = {SLC_LAYOUT_SORTED, SLC_LAYOUT_FIBER};

/* Sets of modes of each kind, a bit each. */
struct wish {
    uint32_t add[KINDS];
    uint32_t drop[KINDS];
    uint32_t move[KINDS]; /* further layouts to be striped or gathered .. */
    bool move_blco;       /* .. and the first */
};

/* A mode from 1 to `order`, up to a comma or the end; 0 where it is something else. */
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

/* The modes of a list, or all. Errors: SLC_ERR_USAGE. */
static enum slc_status parse_modes(
    const char *option, const char *list, unsigned order, uint32_t *modes, struct slc_error *err)
{
    const char *text = list;

    if (strcmp(list, "all") == 0) {
        *modes = (UINT32_C(1) << order) - 1;
        return SLC_OK;
    }
    while (*text != '\0') {
        const unsigned mode = parse_mode(&text, order);

        if (mode == 0) {
            return slc_fail(err, SLC_ERR_USAGE,
                            "--%s '%s': modes from 1 to %u, with commas between, or all", option,
                            list, order);
        }
        *modes |= UINT32_C(1) << (mode - 1);
    }
    return SLC_OK;
}

/* Layouts by their names; *blco, which may be NULL, for the first. Errors: SLC_ERR_USAGE. */
static enum slc_status parse_layouts(const char *option,
                                     const char *list,
                                     unsigned order,
                                     uint32_t *modes,
                                     bool *blco,
                                     struct slc_error *err)
{
    const char *text = list;

    while (*text != '\0') {
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
        for (unsigned k = 0; k < KINDS && mode == 0; k++) {
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
                            "--%s '%s': modes from 1 to %u, each as sorted-K or fiber-K, with "
                            "commas between%s",
                            option, list, order, blco != NULL ? ", or blco" : "");
        }
    }
    return SLC_OK;
}

static enum slc_status
parse_wish(const struct arguments *args, unsigned order, struct wish *wish, struct slc_error *err)
{
    enum slc_status status = SLC_OK;

    if (args->sorted != NULL) {
        status = parse_modes("sorted", args->sorted, order, &wish->add[0], err);
    }
    if (status == SLC_OK && args->fiber != NULL) {
        status = parse_modes("fiber", args->fiber, order, &wish->add[1], err);
    }
    if (status == SLC_OK && args->drop != NULL) {
        status = parse_layouts("drop", args->drop, order, wish->drop, NULL, err);
    }
    if (status == SLC_OK && args->of != NULL) {
        status = parse_layouts("of", args->of, order, wish->move, &wish->move_blco, err);
    }
    if (status == SLC_OK && ((args->stripe != NULL) + args->gather > 1 ||
                             (args->of != NULL && args->stripe == NULL && !args->gather))) {
        status = slc_fail(err, SLC_ERR_USAGE,
                          "--of goes with one of --stripe and --gather, which do not go together");
    }
    if (status == SLC_OK &&
        ((wish->add[0] & wish->drop[0]) != 0 || (wish->add[1] & wish->drop[1]) != 0)) {
        status = slc_fail(err, SLC_ERR_USAGE,
                          "the same layout is to be added and dropped: drop it first to build it "
                          "again");
    }
    return status;
}

static bool has_mode(uint32_t modes, unsigned mode)
{
    return (modes >> mode & 1) != 0;
}

/* From the manifest alone: another run may be changing the store, or replacing it. */
static enum slc_status list_layouts(const char *store, struct slc_error *err)
{
    struct slc_manifest *manifest = slc_malloc(sizeof *manifest);
    enum slc_status status;
    double nnz;

    if (manifest == NULL) {
        return slc_fail(err, SLC_ERR_MEMORY, "no memory for the manifest");
    }
    status = slc_manifest_read(slc_files_or_system(NULL), store, manifest, err);
    nnz = status == SLC_OK && manifest->nnz > 0 ? (double)manifest->nnz : 1;
    for (unsigned i = 0; status == SLC_OK && i < manifest->layout_count; i++) {
        const struct slc_store_layout *layout = &manifest->layouts[i];
        struct format_text size;

        printf("%-14s %s in %" PRIu64 " block%s, %.2f bytes per nonzero, codec %s\n", layout->file,
               format_data(&size, (double)layout->file_bytes), layout->block_count,
               layout->block_count == 1 ? "" : "s", (double)layout->file_bytes / nnz,
               slc_codec_name(layout->codec));
    }
    slc_free(manifest);
    return status;
}

/* Which fibers the keys of a layout keep together. */
static void print_run(const struct slc_fiber_run *run)
{
    if (run->bits > 0) {
        printf("  %-12s of mode %u kept together, in runs of up to 2^%u indices\n", "fibers",
               run->mode + 1, run->bits);
    }
}

/* "sorted-1: 64 partitions, 0 rows in pieces" or "fiber-2: whole fibers of mode 2". */
static void print_head(enum slc_layout_kind kind, unsigned mode, const struct slc_sorted_cuts *cuts)
{
    struct format_text a;

    printf("%s-%u: ", slc_layout_name(kind), mode + 1);
    if (kind == SLC_LAYOUT_SORTED) {
        printf("%s partition%s, %" PRIu64 " row%s in pieces", format_count(&a, cuts->count),
               cuts->count == 1 ? "" : "s", cuts->split_rows, cuts->split_rows == 1 ? "" : "s");
    } else {
        printf("whole fibers of mode %u", mode + 1);
    }
}

/* As the nonzeros take now, half a page of padding for each partition and its entry. */
static double disk_bytes(const struct slc_layout_info *info, const struct slc_sorted_plan *plan)
{
    return (double)info->file_bytes +
           (double)plan->cuts.count * (2048.0 + 88.0 + 16.0 * info->order);
}

/* Of a trial of decoding. */
#define TRIAL_SECONDS 0.3
/* In times of decoding a nonzero: counting or gathering it in a scan; sorting and encoding it. */
#define SCAN_OF_DECODE 4.0
#define SORT_OF_DECODE 80.0
/* What begin, syncs and end take. */
#define ALWAYS_SECONDS 0.05

/* What it would read, how long it would take, and whether the disk has room. */
static enum slc_status judge(const struct slc_relayout *layouts,
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
    enum slc_status status = slc_store_trial(NULL, reader, TRIAL_SECONDS, &trial, err);

    if (status != SLC_OK) {
        return status;
    }
    forecast.final_bytes = (uint64_t)disk_bytes(info, plan);
    if (trial.nnz > 0) {
        forecast_try_drives(&forecast, slc_reader_path(reader));
        forecast_phase(&forecast, "begin and end");
        forecast_part(&forecast, "syncing", ALWAYS_SECONDS);
        forecast_phase(&forecast, "scan");
        forecast_part(&forecast, "reading",
                      forecast.read_rate > 0 ? scans * (double)info->file_bytes / forecast.read_rate
                                             : 0);
        forecast_part(&forecast, "decoding", SCAN_OF_DECODE * scans * work * trial.decode_seconds);
        forecast_phase(&forecast, "write");
        forecast_part(&forecast, "sorting", SORT_OF_DECODE * work * trial.decode_seconds);
        forecast_part(&forecast, "writing",
                      forecast.write_rate > 0 ? (double)forecast.final_bytes / forecast.write_rate
                                              : 0);
    }
    status = forecast_check_room(&forecast, err);
    if (status == SLC_OK && !quiet) {
        printf("  %-12s %s read\n", "bytes", format_data(&a, scans * (double)info->file_bytes));
        forecast_print_time(&forecast);
    }
    return status;
}

static void print_plan(const struct slc_relayout *layouts,
                       enum slc_layout_kind kind,
                       unsigned mode,
                       const struct slc_sorted_plan *plan)
{
    const struct slc_layout_info *info = slc_reader_info(layouts->store.reader);
    struct format_text a, b;

    print_head(kind, mode, &plan->cuts);
    printf("\n  %-12s %u to %s, %" PRIu64 " to gather nonzeros\n", "scans", plan->count_scans,
           kind == SLC_LAYOUT_SORTED ? "count rows and fibers" : "cut by keys", plan->batches);
    print_run(&plan->keys.run);
    printf("  %-12s %s with %u thread%s, %s of it for nonzeros\n", "memory",
           format_memory(&a, plan->need_bytes), plan->workers, plan->workers == 1 ? "" : "s",
           format_memory(&b, plan->area_bytes));
    printf("  %-12s about %s\n", "disk", format_data(&a, disk_bytes(info, plan)));
}

static void print_report(const struct slc_relayout *layouts,
                         enum slc_layout_kind kind,
                         unsigned mode,
                         const struct slc_sorted_report *report,
                         bool verbose)
{
    const struct slc_sorted_cuts cuts = {.count = report->partitions,
                                         .split_rows = report->split_rows};
    double nnz = layouts->store.manifest.nnz > 0 ? (double)layouts->store.manifest.nnz : 1;
    double seconds = report->count_seconds + report->gather_seconds + report->sort_seconds +
                     report->emit_seconds;
    struct format_text a, b;

    print_head(kind, mode, &cuts);
    if (kind == SLC_LAYOUT_FIBER) {
        printf(", %s of them", format_count(&a, report->summary.fiber_count));
    }
    printf("; %s, %.2f bytes per nonzero; %.2fs, %snnz/s\n",
           format_data(&a, (double)report->summary.file_bytes),
           (double)report->summary.file_bytes / nnz, seconds,
           format_scaled(&b, seconds > 0 ? nnz / seconds : 0));
    if (report->kept_nnz > 0) {
        printf("  %-12s %s nonzeros were there from an interrupted build\n", "resumed",
               format_count(&a, report->kept_nnz));
    }
    if (verbose) {
        printf("  %-12s %u to %s (%.2fs), %" PRIu64 " to gather nonzeros (%.2fs, and %.2fs "
               "to sort them)\n",
               "scans", report->count_scans,
               kind == SLC_LAYOUT_SORTED ? "count rows and fibers" : "cut by keys",
               report->count_seconds, report->gather_scans, report->gather_seconds,
               report->sort_seconds);
        print_run(&report->run);
        printf("  %-12s %.2fs; all threads: encode %.2fs, write %.2fs\n", "output",
               report->emit_seconds, report->encode_seconds, report->write_seconds);
    }
}

static enum slc_status add_layout(struct slc_relayout *layouts,
                                  const struct arguments *args,
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
            print_plan(layouts, kind, mode, &plan);
            status = judge(layouts, &plan, args->quiet, err);
        }
        slc_sorted_plan_destroy(&plan);
        return status;
    }
    status = slc_relayout_add(layouts, kind, mode, &report, err);
    console_settle();
    if (status == SLC_OK && !args->quiet) {
        print_report(layouts, kind, mode, &report, args->verbose);
        (void)fflush(stdout);
    }
    return status;
}

static enum slc_status drop_layout(struct slc_relayout *layouts,
                                   const struct arguments *args,
                                   enum slc_layout_kind kind,
                                   unsigned mode,
                                   struct slc_error *err)
{
    enum slc_status status = args->dry_run ? SLC_OK : slc_relayout_drop(layouts, kind, mode, err);

    if (status == SLC_OK && !args->quiet) {
        printf("%s-%u: %s\n", slc_layout_name(kind), mode + 1,
               args->dry_run ? "would be dropped" : "dropped");
    }
    return status;
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
            args->gather
                ? slc_relayout_gather(layouts, layout->layout, layout->layout_mode, &changed, err)
                : slc_relayout_stripe(layouts, layout->layout, layout->layout_mode,
                                      (const char *const *)folders, count, &changed, err);
    }
    console_settle();
    if (status == SLC_OK && !args->quiet) {
        printf("%s: %s%s", file,
               !changed        ? "is already "
               : args->dry_run ? "would be moved "
                               : "",
               args->gather ? "in the store\n" : "");
        if (!args->gather) {
            printf("in %u stripe%s\n", count, count == 1 ? "" : "s");
        }
        (void)fflush(stdout);
    }
    return status;
}

static bool is_wanted(const struct arguments *args,
                      const struct wish *wish,
                      const struct slc_store_layout *layout)
{
    if (args->of == NULL) {
        return true;
    }
    return layout->layout == SLC_LAYOUT_BLCO
               ? wish->move_blco
               : has_mode(wish->move[layout->layout == SLC_LAYOUT_FIBER], layout->layout_mode);
}

/* Stripes or gathers what is asked for. */
static enum slc_status move_layouts(struct slc_relayout *layouts,
                                    const struct arguments *args,
                                    const struct wish *wish,
                                    struct slc_error *err)
{
    const struct slc_manifest *manifest = &layouts->store.manifest;
    char *folders[SLC_MAX_STRIPES] = {NULL};
    unsigned count = 0, found = 0;
    enum slc_status status =
        args->stripe == NULL ? SLC_OK : parse_folders(args->stripe, folders, &count, err);

    for (unsigned i = 0; i < manifest->layout_count && status == SLC_OK; i++) {
        if (is_wanted(args, wish, &manifest->layouts[i])) {
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

static enum slc_status
change(struct slc_relayout *layouts, const struct arguments *args, struct slc_error *err)
{
    const unsigned order = layouts->store.manifest.order;
    struct wish wish = {.add = {0}};
    enum slc_status status = parse_wish(args, order, &wish, err);

    for (unsigned i = 0; i < KINDS * order && status == SLC_OK; i++) {
        if (has_mode(wish.drop[i / order], i % order)) {
            status = drop_layout(layouts, args, kinds[i / order], i % order, err);
        }
    }
    for (unsigned i = 0; i < KINDS * order && status == SLC_OK; i++) {
        if (has_mode(wish.add[i / order], i % order)) {
            status = add_layout(layouts, args, kinds[i / order], i % order, err);
        }
    }
    if (status == SLC_OK && (args->stripe != NULL || args->gather)) {
        status = move_layouts(layouts, args, &wish, err);
    }
    return status;
}

/* Opens the store, and adds and drops. */
static enum slc_status
change_store(const struct arguments *args, const char *store, struct slc_error *err)
{
    const struct slc_stop stop = {.flag = signals_stop()};
    const struct slc_relayout_options open = {
        .store = store,
        .memory_bytes = args->memory,
        .workers = args->threads != 0 ? (unsigned)args->threads : slc_team_default_workers(),
        .reads_only = args->dry_run,
        .stop = &stop,
        .progress = progress_phase};
    struct slc_relayout layouts = {.lock = -1};
    enum slc_status status = slc_relayout_open(&open, &layouts, err);

    if (status == SLC_OK) {
        status = change(&layouts, args, err);
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
    struct arguments args = {.sorted = NULL};
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
        status = args.sorted == NULL && args.fiber == NULL && args.drop == NULL &&
                         args.stripe == NULL && args.of == NULL && !args.gather
                     ? list_layouts(operands.text[0], &err)
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
