/* sluice join: makes one result of the parts of a product. */
#include "engine/product/join/join.h"
#include "tools/build/build_options.h"
#include "tools/progress/console.h"
#include "tools/progress/format.h"
#include "tools/progress/signals.h"
#include "tools/session/commands.h"

#include <inttypes.h>
#include <stdio.h>

struct arguments {
    struct build_options build; /* without the options for the contents of the store */
};

static const struct option options[] = {BUILD_MEMORY_OPTION_ROWS(arguments, "output"),
                                        OPTION_ROW_OVERWRITE(arguments, build.force),
                                        BUILD_REPORT_OPTION_ROWS(arguments),
                                        {.name = NULL}};

static void print_report(const struct arguments *args,
                         const struct slc_join_options *join,
                         const struct slc_join_report *report)
{
    char dims[FORMAT_DIMS_BYTES];
    struct format_text a;

    printf("Wrote %s from %u part%s\n", join->output, join->count, plural(join->count));
    if (report->kind == SLC_JOIN_STORES) {
        printf("  %-12s %s\n", "dims", format_dims(dims, report->order, report->dims));
        build_report(&report->build, report->order, report->dims);
        build_report_memory(args->build.memory);
    } else {
        printf("  %-12s %s of %" PRIu32 " column%s\n",
               report->kind == SLC_JOIN_FIBERS ? "fibers" : "rows", format_count(&a, report->rows),
               report->cols, plural(report->cols));
    }
}

static int run(const struct command *command, int argc, char **argv)
{
    struct arguments args = {.build = {.codec = NULL}};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_join_report report;
    struct operands operands;
    int code;

    if (!command_begin(command, argc, argv, &args, &operands, &code)) {
        return code;
    }
    const struct slc_stop stop = {.flag = signals_stop()};
    const struct slc_join_options join = {.parts = operands.text,
                                          .count = operands.count - 1,
                                          .output = operands.text[operands.count - 1],
                                          .overwrite = args.build.force,
                                          .memory_bytes = args.build.memory,
                                          .temp_folder = args.build.temp_dir,
                                          .max_temp = args.build.max_temp,
                                          .threads = build_threads(&args.build),
                                          .stop = &stop,
                                          .progress = progress_phase};
    console_start(args.build.quiet ? CONSOLE_QUIET : CONSOLE_NORMAL);
    progress_start(args.build.progress, args.build.quiet);
    enum slc_status status = signals_start(NULL, NULL, &err);
    SLC_THEN(status, slc_join(&join, &report, &err));
    if (status != SLC_OK) {
        console_clear_live();
        code = console_error(&err);
        return status == SLC_ERR_INTERRUPTED ? signals_exit_code() : code;
    }
    console_clear_live();
    if (!args.build.quiet) {
        print_report(&args, &join, &report);
    }
    return 0;
}

const struct command command_join = {
    .name = "join",
    .summary = "make one result of the parts that ttv, ttm or mttkrp computed",
    .example = "sluice join P1.slc P2.slc P3.slc joined.slc",
    .operands = "P1 P2 .. OUT",
    .operands_min = 2,
    .operands_max = OPTIONS_JOIN_OPERANDS,
    .options = options,
    .notes = "The parts were computed with --part and are given in any order. OUT has the bytes "
             "that one run\nwithout --part would have written. All parts of one product must be "
             "given, each once.",
    .run = run,
};
