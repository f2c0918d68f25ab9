/* sluice report: writes an HTML report of a run or a sweep (report/report.h). */
#include "report/report.h"
#include "tools/progress/cleanup.h"
#include "tools/progress/console.h"
#include "tools/progress/format.h"
#include "tools/session/commands.h"
#include "tools/session/common_options.h"

#include <stdio.h>

struct arguments {
    const char *output;
    uint64_t components;
    uint64_t rows;
    const char *store;
    uint64_t memory;
    bool force;
    bool quiet;
};

static const struct option options[] = {
    {"output", OPTION_STRING, offsetof(struct arguments, output), .letter = 'o', .required = true,
     .not_stdout = true, .value = "FILE", .help = "output file, one HTML page"},
    {"components", OPTION_U64, offsetof(struct arguments, components), .value = "N",
     .fallback = "64", .minimum = 1, .maximum = SLC_MAX_RANK,
     .help = "maximum number of components; those with the largest weights are shown"},
    {"rows", OPTION_U64, offsetof(struct arguments, rows), .letter = 'n', .value = "N",
     .fallback = "10", .minimum = 1, .maximum = SLC_REPORT_ROWS_MAX,
     .help = "number of top rows per mode of a component"},
    OPTION_ROW_NAMES(arguments, store),
    OPTION_ROW_OVERWRITE(arguments, force),
    OPTION_ROW_MEMORY(arguments, memory),
    OPTION_ROW_QUIET(arguments, quiet),
    {.name = NULL}};

static int run(const struct command *command, int argc, char **argv)
{
    struct arguments args = {.rows = 0};
    struct slc_error err = SLC_ERROR_INIT;
    struct operands operands;
    struct format_text text;
    uint64_t bytes = 0;
    int code = 0;

    if (!command_begin(command, argc, argv, &args, &operands, &code)) {
        return code;
    }
    console_start(args.quiet ? CONSOLE_QUIET : CONSOLE_NORMAL);
    enum slc_status status = cleanup_watch(args.output, &err);
    if (status == SLC_OK) {
        const struct slc_report_options report = {.folder = operands.text[0],
                                                  .more_count = operands.count - 1,
                                                  .more = operands.text + 1,
                                                  .output = args.output,
                                                  .components = args.components,
                                                  .rows = args.rows,
                                                  .store = args.store,
                                                  .memory_bytes = args.memory,
                                                  .overwrite = args.force,
                                                  .publishing = cleanup_publishing};

        status = slc_report(&report, &bytes, &err);
    }
    if (status != SLC_OK) {
        return console_error(&err);
    }
    if (!args.quiet) {
        printf("Report of %s", operands.text[0]);
        for (unsigned i = 1; i < operands.count; i++) {
            printf("%s %s", i + 1 < operands.count ? "," : " and", operands.text[i]);
        }
        printf(" in %s, %s\n", args.output, format_data(&text, (double)bytes));
    }
    return 0;
}

const struct command command_report = {
    .name = "report",
    .summary = "write an HTML report of a run, a sweep, or several runs",
    .example = "sluice report flights-4d.r16 -o report.html",
    .operands = "RUN|SWEEP|FOLDER [RUN ..]",
    .operands_min = 1,
    .operands_max = OPTIONS_MAX_OPERANDS,
    .operands_more = "name the folder that contains the runs to list all of them",
    .options = options,
    .notes =
        "RUN is a folder of factors written by sluice cpd, or a folder with a checkpoint. "
        "For a sweep, the\npage compares its runs and shows the suggested rank. Several runs "
        "are compared with the first. For\na FOLDER of runs, such as those of a job array, the "
        "page lists the runs, best fit first. The page\nneeds no network: it contains fit, time, "
        "I/O, memory, components, and how to repeat the run.",
    .run = run,
};
