/* sluice report: a page that tells what a run was and what has come of it (report/report.h). */
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
     .value = "FILE", .help = "the page, HTML in one file"},
    {"components", OPTION_U64, offsetof(struct arguments, components), .value = "N",
     .fallback = "64", .minimum = 1, .maximum = SLC_MAX_RANK,
     .help = "components to tell of at most, the heaviest first"},
    {"rows", OPTION_U64, offsetof(struct arguments, rows), .letter = 'n', .value = "N",
     .fallback = "10", .minimum = 1, .maximum = SLC_REPORT_ROWS_MAX,
     .help = "rows of each mode of a component, the strongest first"},
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
        printf("Report of %s in %s, %s\n", operands.text[0], args.output,
               format_data(&text, (double)bytes));
    }
    return 0;
}

const struct command command_report = {
    .name = "report",
    .summary = "write a page that tells what a run was and what has come of it",
    .example = "sluice report flights-4d.r16 -o report.html",
    .operands = "RUN|SWEEP",
    .operands_min = 1,
    .operands_max = 1,
    .options = options,
    .notes =
        "RUN is the folder of factors that sluice cpd has written, or that of a checkpoint; of\n"
        "a sweep, the page compares its runs and tells which rank they suggest. It needs no\n"
        "network: fit, time, reading, memory, components, and how to make it again.",
    .run = run,
};
