/* sluice append: more nonzeros for a store. Built beside it; names are exchanged at the end. */
#include "base/checked.h"
#include "build_options.h"
#include "commands.h"
#include "console.h"
#include "convert/convert.h"
#include "format.h"
#include "progress.h"
#include "unfinished.h"

#include <inttypes.h>
#include <stdio.h>

struct arguments {
    struct build_options build;
    const char *dialect;
    const char *index_base;
    const char *duplicates;
};

static const char *const dialect_choices[] = {
    "auto", "tns",          "parti",       "frostt-ext", "genten",   "tensortoolbox",
    "taco", "matrixmarket", "splatt-bin",  "genten-bin", "alto-bin", "npz",
    "npy",  "npy-rows",     "npy-columns", NULL};
static const char *const base_choices[] = {"auto", "0", "1", NULL};
static const char *const duplicates_choices[] = {"sum", "error", "keep-first", "keep-last", NULL};

static const struct option options[] = {
    {.name = "format",
     .alias = "dialect",
     .kind = OPTION_CHOICE,
     .value = "NAME",
     .fallback = "auto",
     .choices = dialect_choices,
     .help = "format of IN, as of sluice convert",
     .offset = offsetof(struct arguments, dialect)},
    {.name = "index-base",
     .kind = OPTION_CHOICE,
     .value = "B",
     .fallback = "auto",
     .choices = base_choices,
     .help = "first index of IN: auto, 0 or 1; where IN does not tell, that of what the store was "
             "made of",
     .offset = offsetof(struct arguments, index_base)},
    {.name = "duplicates",
     .kind = OPTION_CHOICE,
     .value = "POLICY",
     .fallback = "sum",
     .choices = duplicates_choices,
     .help = "entries with equal coordinates, those of the store first: sum, error, keep-first or "
             "keep-last",
     .offset = offsetof(struct arguments, duplicates)},
    {.name = "fibers",
     .kind = OPTION_STRING,
     .value = "MODE",
     .fallback = "auto",
     .help = "mode whose fibers are kept together in the store, as of sluice convert",
     .offset = offsetof(struct arguments, build.fibers)},
    {.name = "block-bytes",
     .kind = OPTION_SIZE,
     .value = "SIZE",
     .fallback = "4MiB",
     .help = "target size of a block, 4KiB to 1GiB; a block holds at least one tile",
     .offset = offsetof(struct arguments, build.block_bytes)},
    OPTION_ROW_MEMORY(arguments, build.memory),
    {.name = "temp-dir",
     .kind = OPTION_STRING,
     .value = "DIR",
     .help = "folder for what does not fit in memory; beside the store if not given",
     .offset = offsetof(struct arguments, build.temp_dir)},
    {.name = "max-temp",
     .kind = OPTION_SIZE,
     .value = "SIZE",
     .help = "largest temporary file permitted; no limit if not given",
     .offset = offsetof(struct arguments, build.max_temp)},
    OPTION_ROW_THREADS(arguments, build.threads),
    OPTION_ROW_PROGRESS(arguments, build.progress),
    OPTION_ROW_LOG_JSON(arguments, build.log_json),
    OPTION_ROW_QUIET(arguments, build.quiet),
    {.name = NULL}};

static enum slc_status
fill_options(const struct arguments *args, struct slc_convert_options *out, struct slc_error *err)
{
    if (!slc_dialect_parse(args->dialect, &out->dialect) ||
        !slc_duplicates_parse(args->duplicates, &out->duplicates)) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "--format %s or --duplicates %s is not known to this library",
                        args->dialect, args->duplicates);
    }
    out->append = true;
    out->index_base = args->index_base[0] == 'a' ? -1 : args->index_base[0] - '0';
    out->value = SLC_VALUE_AUTO;
    out->block_bytes = args->build.block_bytes;
    out->memory_bytes = args->build.memory;
    out->temp_folder = args->build.temp_dir;
    out->max_temp = args->build.max_temp;
    out->threads = build_threads(&args->build);
    out->progress = progress_phase;
    out->publishing = unfinished_publishing;
    return build_fibers(&args->build, &out->fibers, &out->run, err);
}

static void print_report(const struct slc_convert_report *report,
                         const struct arguments *args,
                         const struct slc_convert_options *append)
{
    const struct slc_builder_report *build = &report->build;
    struct format_text a, b;
    char dims[FORMAT_DIMS_BYTES];

    printf("Appended %s to %s\n", append->input, append->output);
    printf("  %-12s %s, compression %s, %s\n", "input", slc_dialect_name(report->dialect),
           report->compression, format_data(&a, (double)report->text_bytes));
    printf("  %-12s from %u: %s\n", "index base", report->index_base, report->base_reason);
    printf("  %-12s %s in the store, %s read\n", "nonzeros", format_count(&a, report->old_nnz),
           format_count(&b, build->entries - slc_min_u64(build->entries, report->old_nnz)));
    printf("  %-12s %s\n", "dims", format_dims(dims, report->order, report->dims));
    printf("  %-12s %s (policy %s)\n", "duplicates", format_count(&a, build->duplicates),
           args->duplicates);
    printf("  %-12s %s dropped\n", "zeros", format_count(&a, build->explicit_zeros));
    if (build->completed) {
        printf("  %-12s an interrupted run had appended it all; it is not appended again\n",
               "resumed");
    }
    build_report(build, report->order, report->dims);
    printf("  %-12s %.2fs in all\n", "time", report->total_seconds);
    build_report_memory(args->build.memory);
}

static int run(const struct command *command, int argc, char **argv)
{
    struct arguments args = {.dialect = NULL};
    struct slc_convert_options append = {.files = NULL};
    struct slc_convert_report report = {.order = 0};
    struct slc_error err = SLC_ERROR_INIT;
    struct operands operands;
    int code;

    if (!command_begin(command, argc, argv, &args, &operands, &code)) {
        return code;
    }
    append.output = operands.text[0];
    append.input = operands.text[1];
    append.values = operands.count == 3 ? operands.text[2] : NULL;
    if (build_start(&args.build, append.output, &err) != SLC_OK ||
        fill_options(&args, &append, &err) != SLC_OK ||
        slc_convert(&append, &report, &err) != SLC_OK) {
        return console_error(&err);
    }
    console_settle();
    if (report.layouts_dropped > 0) {
        console_note("note: %u further layout%s of the store had the old nonzeros and %s gone: "
                     "sluice layout builds them again",
                     report.layouts_dropped, report.layouts_dropped == 1 ? "" : "s",
                     report.layouts_dropped == 1 ? "is" : "are");
    }
    if (!args.build.quiet) {
        print_report(&report, &args, &append);
    }
    return 0;
}

const struct command command_append = {
    .name = "append",
    .summary = "add the nonzeros of a tensor to a store",
    .example = "sluice append flights-4d.slc february.tns.gz --memory 2GiB",
    .operands = "X.slc IN [VALUES.npy]",
    .operands_min = 2,
    .operands_max = 3,
    .options = options,
    .notes = "The result is the store of both texts, one behind the other. Indices keep their\n"
             "numbers, and modes get as long as IN needs. The new store is built beside the old\n"
             "one and takes its name at the end; further layouts have to be built again.",
    .run = run,
};
