/* sluice append: adds nonzeros to a store. The new store is built next to the old store; at the end
 * the two stores exchange their names. */
#include "base/memory/checked.h"
#include "convert/ingest/convert.h"
#include "tools/build/build_options.h"
#include "tools/forecast/forecast_convert.h"
#include "tools/options/input_options.h"
#include "tools/progress/cleanup.h"
#include "tools/progress/console.h"
#include "tools/progress/format.h"
#include "tools/progress/progress.h"
#include "tools/session/commands.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct arguments {
    struct build_options build;
    struct input_options input;
    const char *grow_modes;
    const char *layouts;
    struct option_strings labels;
    bool again;
    bool table;
    struct forecast_options forecast;
};

static const char *const layouts_choices[] = {"keep", "drop", NULL};

static const struct option options[] = {
    INPUT_OPTION_ROW_FORMAT(arguments, input_format_choices, "format of IN, as for sluice convert"),
    {"table", OPTION_FLAG, offsetof(struct arguments, table),
     .help = "read IN as a table with the columns that X.slc was converted from; the default if "
             "its name ends in .csv, .tsv or .tab"},
    INPUT_OPTION_ROW_BASE(
        arguments,
        "first index of IN: auto, 0 or 1; if neither the header nor an index shows the base, auto "
        "uses the base of the input of sluice convert, if that input had the same format"),
    INPUT_OPTION_ROW_DUPLICATES(arguments,
                                "how to combine nonzeros with equal coordinates: sum, mean, "
                                "min, max, error, keep-first or keep-last; nonzeros of the store "
                                "come first"),
    {"labels", OPTION_MORE_STRINGS, offsetof(struct arguments, labels), .value = "DIR|K=FILE",
     .help = "names of indices, as for sluice convert; a file needs one line per index of its "
             "mode; existing names are kept"},
    {"grow-modes", OPTION_STRING, offsetof(struct arguments, grow_modes), .value = "K,L,..",
     .fallback = "all",
     .help = "modes that may grow: all, none, or a list such as 1,4; in other modes a larger "
             "index is an error"},
    {"layouts", OPTION_CHOICE, offsetof(struct arguments, layouts), .value = "WHAT",
     .fallback = "keep", .choices = layouts_choices,
     .help = "what to do with layouts other than blco: keep (rebuild them) or drop"},
    {"again", OPTION_FLAG, offsetof(struct arguments, again),
     .help = "append IN even if it was appended before"},
    BUILD_OPTION_ROW_FIBERS_AGAIN(arguments),
    BUILD_RESOURCE_OPTION_ROWS(arguments, "store"),
    BUILD_REPORT_OPTION_ROWS(arguments),
    FORECAST_OPTION_ROWS(arguments, forecast),
    {.name = NULL}};

/* Parses "all", "none" or a list of the modes that may grow (modes count from 1). */
static enum slc_status parse_grow_modes(const char *text, bool *fixed, struct slc_error *err)
{
    const char *at = text;
    char *end;

    if (strcmp(text, "all") == 0) {
        return SLC_OK;
    }
    for (unsigned n = 0; n < SLC_MAX_ORDER; n++) {
        fixed[n] = true;
    }
    if (strcmp(text, "none") == 0) {
        return SLC_OK;
    }
    do {
        const unsigned long mode = *at >= '1' && *at <= '9' ? strtoul(at, &end, 10) : 0;

        if (mode < 1 || mode > SLC_MAX_ORDER || (*end != ',' && *end != '\0')) {
            return slc_fail(err, SLC_ERR_USAGE,
                            "--grow-modes '%s': use a comma-separated list of modes from 1 to %d, "
                            "or all, or none",
                            text, SLC_MAX_ORDER);
        }
        fixed[mode - 1] = false;
        at = end + 1;
    } while (*end == ',');
    return SLC_OK;
}

static enum slc_status
fill_options(const struct arguments *args, struct slc_convert_options *out, struct slc_error *err)
{
    SLC_TRY(input_parse(&args->input, &out->dialect, &out->index_base, &out->duplicates, err));
    if (args->table && (args->input.format[0] != 'a' || args->input.index_base[0] != 'a')) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "--format and --index-base cannot be combined with --table");
    }
    out->append = true;
    out->again = args->again;
    out->table = args->table;
    out->drop_layouts = args->layouts[0] == 'd';
    out->value = SLC_VALUE_AUTO;
    BUILD_SET(out, &args->build);
    SLC_TRY(parse_grow_modes(args->grow_modes, out->fixed_modes, err));
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
    if (report->dialect == SLC_DIALECT_CSV) {
        printf("  %-12s %s rows with empty fields\n", "skipped", format_count(&a, report->skipped));
    } else {
        printf("  %-12s from %u: %s\n", "index base", report->index_base, report->base_reason);
    }
    printf("  %-12s %s in the store, %s read\n", "before", format_count(&a, report->old_nnz),
           format_count(&b, report->entries));
    printf("  %-12s %s", "dims", format_dims(dims, report->order, report->dims));
    if (memcmp(report->dims, report->old_dims, sizeof report->dims) != 0) {
        printf(", before %s", format_dims(dims, report->order, report->old_dims));
    }
    printf("\n");
    printf("  %-12s %s (policy %s)\n", "duplicates", format_count(&a, build->duplicates),
           args->input.duplicates);
    build_report_zeros(build, report->keeps_zeros);
    if (build->completed) {
        printf("  %-12s an interrupted run had already appended everything\n", "resumed");
    }
    build_report(build, report->order, report->dims);
    for (unsigned i = 0; i < build->layout_count; i++) {
        printf("%s%s-%u%s", i == 0 ? "  layouts      rebuilt: " : ", ",
               slc_layout_name(build->layouts[i].kind), build->layouts[i].mode + 1,
               i + 1 == build->layout_count ? "\n" : "");
    }
    printf("  %-12s %.2fs in total\n", "time", report->total_seconds);
    build_report_memory(args->build.memory);
}

/* Prints the result on standard output. */
static void report_append(const struct slc_convert_report *report,
                          const struct arguments *args,
                          const struct slc_convert_options *append)
{
    const unsigned dropped = report->layouts_dropped;

    if (report->appended_before) {
        struct format_text count;

        console_note("note: %s was appended to %s before (%s nonzeros), so nothing is appended; "
                     "--again appends it again",
                     append->input, append->output, format_count(&count, report->entries));
        return;
    }
    if (dropped > 0) {
        console_note(
            "note: %u further layout%s, which %s only the old nonzeros, %s removed; rebuild "
            "%s with sluice layout",
            dropped, plural(dropped), dropped == 1 ? "has" : "have", dropped == 1 ? "is" : "are",
            dropped == 1 ? "it" : "them");
    }
    if (!args->build.quiet) {
        print_report(report, args, append);
    }
}

/* Appends the input. With --dry-run, only makes a forecast. */
static enum slc_status append_or_forecast(const struct arguments *args,
                                          struct slc_convert_options *append,
                                          struct slc_error *err)
{
    struct slc_convert_report report = {.order = 0};
    struct forecast_ahead ahead;

    if (args->forecast.dry_run) {
        return forecast_convert(&args->forecast, append, err);
    }
    forecast_convert_ahead(append, args->build.quiet, &ahead);
    SLC_TRY(slc_convert(append, &report, err));
    console_clear_live();
    report_append(&report, args, append);
    if (!report.appended_before && !report.build.completed) {
        forecast_compare(&ahead, args->build.quiet, append->output);
    }
    return SLC_OK;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct arguments args = {.input = {.format = NULL}};
    struct slc_convert_options append = {.files = NULL};
    struct slc_name_maps names = {.files = NULL};
    struct slc_error err = SLC_ERROR_INIT;
    struct operands operands;
    int code;

    if (!command_begin(command, argc, argv, &args, &operands, &code)) {
        return code;
    }
    append.output = operands.text[0];
    append.input = operands.text[1];
    append.values = operands.count == 3 ? operands.text[2] : NULL;
    append.names = args.labels.count > 0 ? &names : NULL;
    enum slc_status status =
        build_start(&args.build, args.forecast.dry_run ? "-" : append.output, &err);
    SLC_THEN(status, fill_options(&args, &append, &err));
    SLC_THEN(status, build_labels(&args.labels, &names, &err));
    SLC_THEN(status, append_or_forecast(&args, &append, &err));
    slc_name_maps_destroy(&names);
    return status == SLC_OK ? 0 : console_error(&err);
}

const struct command command_append = {
    .name = "append",
    .summary = "add the nonzeros of a tensor to a store",
    .example = "sluice append flights-4d.slc february.tns.gz --memory 2GiB",
    .operands = "X.slc IN [VALUES.npy]",
    .operands_min = 2,
    .operands_max = 3,
    .options = options,
    .notes = "The result equals a conversion of both inputs concatenated. Existing indices keep "
             "their numbers,\nand a mode grows if IN has larger indices. The new store, with its "
             "further layouts, is built next\nto the old store and replaces it when it is "
             "complete.",
    .run = run,
};
