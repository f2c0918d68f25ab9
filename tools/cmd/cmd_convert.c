/* sluice convert: converts a text or binary tensor to a store and reports every decision about the
 * input. */
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
#include <string.h>

struct arguments {
    struct build_options build;
    struct input_options input;
    struct option_dims dims;
    const char *value;
    double commit_seconds;
    struct option_strings transforms;
    struct option_strings labels;
    const char *columns;
    const char *value_column;
    const char *delimiter;
    const char *missing;
    const char *null;
    bool no_header;
    bool keep_zeros;
    bool restart;
    struct forecast_options forecast;
};

static const char *const value_choices[] = {"auto", "f64", "f32", NULL};

static const char *const missing_choices[] = {"error", "skip", "name", NULL};

static const struct option options[] = {
    INPUT_OPTION_ROW_FORMAT(
        arguments,
        input_format_choices,
        "format of IN: auto; text: tns, parti, frostt-ext, genten, tensortoolbox, taco, "
        "matrixmarket or tensor; binary: splatt-bin, genten-bin, alto-bin, npz, npy, npy-rows, "
        "npy-columns or npy-dense"),
    INPUT_OPTION_ROW_BASE(arguments, "first index of IN: auto, 0 or 1"),
    {"dims", OPTION_DIMS, offsetof(struct arguments, dims), .value = "AxBxC",
     .help =
         "mode sizes; a larger index is an error; if not given, the mode sizes are found in IN"},
    INPUT_OPTION_ROW_DUPLICATES(
        arguments,
        "how to combine nonzeros with equal coordinates: sum, mean, min, max, error, keep-first or "
        "keep-last"),
    {"keep-zeros", OPTION_FLAG, offsetof(struct arguments, keep_zeros),
     .help = "store values of 0 as listed cells, which append, slice and permute then keep; all "
             "cells of a dense IN are stored"},
    {"value", OPTION_STRING, offsetof(struct arguments, value), .value = "TYPE|NAME",
     .fallback = "auto",
     .help =
         "type of the values: auto (f32 if lossless, otherwise f64), f32 (values are rounded) or "
         "f64; with --columns, also the name of the value column"},
    OPTION_ROW_TRANSFORM(arguments, transforms),
    {"labels", OPTION_MORE_STRINGS, offsetof(struct arguments, labels), .value = "DIR|K=FILE",
     .help = "names of indices, one per line: a folder with files mode-K-TITLE.map, or a file for "
             "mode K"},
    {"columns", OPTION_STRING, offsetof(struct arguments, columns), .value = "LIST",
     .help = "read IN as a table (CSV, TSV); each item of LIST is a mode: NAME (strings), "
             "sorted(NAME) (strings in ascending order), int(NAME), bin(NAME,WIDTH[,ORIGIN]), "
             "log(NAME[,BASE]), or UNIT(NAME) of a time, "
             "where UNIT is minute, hour, weekday, day, month, year, yearmonth, date, datehour or "
             "dateminute"},
    {"value-column", OPTION_STRING, offsetof(struct arguments, value_column), .value = "NAME",
     .help = "table column with the values; if not given, rows are counted"},
    {"delimiter", OPTION_STRING, offsetof(struct arguments, delimiter), .value = "C",
     .help = "field delimiter of the table: one character, or tab; if not given, a tab for .tsv "
             "and .tab files, otherwise a comma"},
    {"no-header", OPTION_FLAG, offsetof(struct arguments, no_header),
     .help = "the table has no header row, and its columns are called 1, 2, .."},
    {"missing", OPTION_CHOICE, offsetof(struct arguments, missing), .value = "POLICY",
     .fallback = "error", .choices = missing_choices,
     .help = "what to do with table rows that have an empty field in a used column: error, skip, "
             "or name (treat the empty string as a name)"},
    {"null", OPTION_STRING, offsetof(struct arguments, null), .value = "WORDS",
     .help = "words, separated by commas, that are read as empty fields of the table, "
             "such as NULL,\\N,NA"},
    {"checkpoint-interval", OPTION_DOUBLE, offsetof(struct arguments, commit_seconds), .value = "S",
     .fallback = "0",
     .help = "seconds between commits (saved states), from which the same command line resumes; 0 "
             "means 30, or more if commits would take over 2 % of the time"},
    {"restart", OPTION_FLAG, offsetof(struct arguments, restart),
     .help = "start over instead of resuming an interrupted conversion"},
    BUILD_OPTION_ROWS(arguments),
    FORECAST_OPTION_ROWS(arguments, forecast),
    {.name = NULL}};

/* Parses --value, which is a type or, with --columns, a type or the name of a column. Sets *column
 * to the column, or to NULL for a type. */
static enum slc_status read_value(const struct arguments *args,
                                  struct slc_convert_options *out,
                                  const char **column,
                                  struct slc_error *err)
{
    static const enum slc_value_choice types[] = {SLC_VALUE_AUTO, SLC_VALUE_F64, SLC_VALUE_F32};

    *column = args->value_column;
    for (unsigned i = 0; value_choices[i] != NULL; i++) {
        if (strcmp(args->value, value_choices[i]) == 0) {
            out->value = types[i];
            return SLC_OK;
        }
    }
    if (args->columns == NULL || args->value_column != NULL) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "--value '%s': use auto, f64 or f32%s; see sluice convert --help",
                        args->value, args->columns ? "" : ", or a column with --columns");
    }
    out->value = SLC_VALUE_AUTO;
    *column = args->value;
    return SLC_OK;
}

/* Sets the options that describe an input table. */
static enum slc_status fill_csv(const struct arguments *args,
                                struct slc_convert_options *out,
                                struct slc_csv_spec *csv,
                                struct slc_error *err)
{
    const char *value, *delimiter = args->delimiter;
    enum slc_status status = read_value(args, out, &value, err);

    if (status == SLC_OK && args->columns == NULL &&
        (delimiter != NULL || value != NULL || args->no_header || args->missing[0] != 'e' ||
         args->null != NULL)) {
        return slc_fail(
            err, SLC_ERR_USAGE,
            "--value-column, --delimiter, --no-header, --missing and --null need --columns");
    }
    if (status != SLC_OK || args->columns == NULL) {
        return status;
    }
    if (args->input.format[0] != 'a' || args->input.index_base[0] != 'a' || args->dims.order > 0) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "--format, --index-base and --dims cannot be combined with --columns");
    }
    out->csv = csv;
    return slc_csv_spec_set(csv, args->columns, value, delimiter, args->no_header,
                            args->missing[0] == 'e'   ? SLC_CSV_MISSING_ERROR
                            : args->missing[0] == 's' ? SLC_CSV_MISSING_SKIP
                                                      : SLC_CSV_MISSING_NAME,
                            args->null, err);
}

static enum slc_status
fill_options(const struct arguments *args, struct slc_convert_options *out, struct slc_error *err)
{
    SLC_TRY(input_parse(&args->input, &out->dialect, &out->index_base, &out->duplicates, err));
    SLC_TRY(build_codec(&args->build, &out->codec, err));
    out->dims_order = args->dims.order;
    for (unsigned n = 0; n < args->dims.order; n++) {
        out->dims[n] = args->dims.length[n];
    }
    out->relabel = build_relabel(&args->build);
    out->keep_zeros = args->keep_zeros;
    BUILD_SET(out, &args->build);
    out->restart = args->restart;
    out->commit_seconds = args->commit_seconds;
    SLC_TRY(reshape_transforms(&args->transforms, &out->transforms, err));
    return build_fibers(&args->build, &out->fibers, &out->run, err);
}

/* Prints a note if a .npy file was read with base 0, as in NumPy, but its indices suggest 1. */
static void warn_about_npy(const struct slc_convert_report *report, const struct arguments *args)
{
    bool from_one = args->input.index_base[0] == 'a' && report->dialect >= SLC_DIALECT_NPY &&
                    report->dialect <= SLC_DIALECT_NPY_COLUMNS;

    for (unsigned n = 0; n < report->order; n++) {
        from_one = from_one && report->smallest[n] > 0 && report->smallest[n] < UINT64_MAX;
    }
    if (from_one) {
        console_note("note: no mode has an index 0, but indices are assumed to start at 0, as in "
                     "NumPy; use --index-base 1 if they start at 1");
    }
}

/* Prints a note if the base was not given and the indices of a mode suggest another base. */
static void warn_about_base(const struct slc_convert_report *report)
{
    static const char found[] = "index 0 occurs";
    const bool zero =
        report->index_base == 0 && strncmp(report->base_reason, found, sizeof found - 1) == 0;
    const bool one = report->base_assumed && report->index_base == 1;

    for (unsigned n = 0; n < report->order; n++) {
        if (zero && report->smallest[n] == 1) {
            console_note("note: the smallest index of mode %u is 1, but indices start at 0 (%s); "
                         "if this mode starts at 1, subtract 1 from its indices",
                         n + 1, report->base_reason);
        }
        if (one && report->smallest[n] > 1 && report->smallest[n] < UINT64_MAX) {
            console_note("note: the smallest index of mode %u is %" PRIu64
                         ", but indices are assumed to start at 1 (%s); use --index-base 0 if they "
                         "start at 0",
                         n + 1, report->smallest[n], report->base_reason);
        }
    }
}

static void print_report(const struct slc_convert_report *report,
                         const struct arguments *args,
                         const char *input,
                         const char *output)
{
    const struct slc_builder_report *build = &report->build;
    struct format_text a;
    struct format_text b;
    char dims[FORMAT_DIMS_BYTES];
    double read = report->read_seconds + report->parse_seconds;

    printf("Converted %s to %s\n", input, output);
    printf("  %-12s %s, compression %s, %s in %s %s\n", "input", slc_dialect_name(report->dialect),
           report->compression, format_data(&a, (double)report->text_bytes),
           format_count(&b, report->lines),
           report->dialect == SLC_DIALECT_NPY_DENSE || report->dialect == SLC_DIALECT_TENSOR
               ? "elements"
           : slc_dialect_is_binary(report->dialect) ? "nonzeros"
           : report->dialect == SLC_DIALECT_CSV     ? "rows"
                                                    : "lines");
    if (report->dialect != SLC_DIALECT_CSV) {
        printf("  %-12s from %u: %s\n", "index base", report->index_base, report->base_reason);
    } else if (report->skipped > 0) {
        printf("  %-12s %s further rows, which have empty fields\n", "skipped",
               format_count(&a, report->skipped));
    }
    printf("  %-12s %s (%s)\n", "dims", format_dims(dims, report->order, report->dims),
           report->dims_declared ? "declared" : "found in the data");
    printf("  %-12s %s (policy %s)\n", "duplicates", format_count(&a, build->duplicates),
           args->input.duplicates);
    build_report_zeros(build, args->keep_zeros);
    if (build->rounded_values > 0) {
        printf("  %-12s %s values changed by rounding to f32\n", "rounded",
               format_count(&a, build->rounded_values));
    }
    if (build->resumed) {
        printf("  %-12s from an interrupted run, which had stored %s nonzeros\n", "resumed",
               format_count(&a, build->kept_nnz));
    }
    build_report(build, report->order, report->dims);
    printf("  %-12s %.2fs in total; reading %.2fs, parsing %.2fs (%s/s)\n", "time",
           report->total_seconds, report->read_seconds, report->parse_seconds,
           format_data(&a, slc_ratio((double)report->text_bytes, read)));
    if (build->commit_seconds > 0) {
        printf("  %-12s %.2fs, %.1f %% of the time, to save progress\n", "commits",
               build->commit_seconds, 100 * build->commit_seconds / report->total_seconds);
    }
    build_report_memory(args->build.memory);
}

static int run(const struct command *command, int argc, char **argv)
{
    struct arguments args = {.input = {.format = NULL}};
    struct slc_convert_options convert = {.files = NULL};
    struct slc_convert_report report = {.order = 0};
    struct slc_name_maps names = {.files = NULL};
    struct slc_csv_spec csv = {.order = 0};
    struct forecast_ahead ahead;
    struct slc_error err = SLC_ERROR_INIT;
    struct operands operands;
    int code;

    if (!command_begin(command, argc, argv, &args, &operands, &code)) {
        return code;
    }
    convert.input = operands.text[0];
    convert.values = operands.count == 3 ? operands.text[1] : NULL;
    convert.output = operands.text[operands.count - 1];
    convert.names = args.labels.count > 0 ? &names : NULL;
    if (build_start(&args.build, args.forecast.dry_run ? "-" : convert.output, &err) != SLC_OK ||
        fill_options(&args, &convert, &err) != SLC_OK ||
        fill_csv(&args, &convert, &csv, &err) != SLC_OK ||
        build_labels(&args.labels, &names, &err) != SLC_OK) {
        slc_name_maps_destroy(&names);
        return console_error(&err);
    }
    if (args.forecast.dry_run) {
        code = forecast_convert(&args.forecast, &convert, &err) == SLC_OK ? 0 : console_error(&err);
        slc_name_maps_destroy(&names);
        return code;
    }
    forecast_convert_ahead(&convert, args.build.quiet, &ahead);
    if (slc_convert(&convert, &report, &err) != SLC_OK) {
        slc_name_maps_destroy(&names);
        return console_error(&err);
    }
    slc_name_maps_destroy(&names);
    console_clear_live();
    warn_about_base(&report);
    warn_about_npy(&report, &args);
    if (!args.build.quiet) {
        print_report(&report, &args, convert.input, convert.output);
    }
    if (!report.build.resumed) {
        forecast_compare(&ahead, args.build.quiet, convert.output);
    }
    return 0;
}

const struct command command_convert = {
    .name = "convert",
    .summary = "convert a text or binary tensor to a store",
    .example = "sluice convert flights-4d.tns.xz flights-4d.slc --memory 2GiB",
    .operands = "IN [VALUES.npy] OUT.slc",
    .operands_min = 2,
    .operands_max = 3,
    .options = options,
    .notes = "IN is a file or - for standard input. Its format and compression (gz, bz2, xz, zst, "
             "lz4) are\ndetected by content, except alto-bin, which needs --format. If IN is a "
             ".npy file with the\ncoordinates, VALUES.npy contains the values; without "
             "VALUES.npy, IN is a dense array.\nThe index base is "
             "taken from the header, if the header states it. Otherwise the base is 0 if any\n"
             "index is 0, and 1 if an index equals a mode size that the header states. If neither "
             "is the case, the\nusual base of the dialect is used, which is 1 for .tns. The "
             "dialect sptensor has no usual base: the\nconversion then fails with an error that "
             "asks for --index-base.",
    .run = run,
};
