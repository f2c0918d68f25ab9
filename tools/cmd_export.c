/* sluice export: a store becomes FROSTT text again; no bit of any value is lost. */
#include "base/team.h"
#include "commands.h"
#include "common_options.h"
#include "console.h"
#include "convert/export.h"
#include "format.h"
#include "progress.h"
#include "unfinished.h"

#include <stdio.h>
#include <string.h>

struct arguments {
    const char *index_base;
    uint64_t memory;
    uint64_t threads;
    const char *progress;
    const char *log_json;
    bool force;
    bool quiet;
};

static const char *const base_choices[] = {"0", "1", NULL};

static const struct option options[] = {{.name = "index-base",
                                         .kind = OPTION_CHOICE,
                                         .value = "B",
                                         .fallback = "1",
                                         .choices = base_choices,
                                         .help = "first index in the text: 0 or 1",
                                         .offset = offsetof(struct arguments, index_base)},
                                        OPTION_ROW_MEMORY(arguments, memory),
                                        OPTION_ROW_THREADS(arguments, threads),
                                        OPTION_ROW_OVERWRITE(arguments, force),
                                        OPTION_ROW_PROGRESS(arguments, progress),
                                        OPTION_ROW_LOG_JSON(arguments, log_json),
                                        OPTION_ROW_QUIET(arguments, quiet),
                                        {.name = NULL}};

static int run(const struct command *command, int argc, char **argv)
{
    struct arguments args = {.index_base = NULL};
    struct slc_export_options export_options = {.files = NULL};
    struct slc_error err = SLC_ERROR_INIT;
    struct operands operands;
    struct format_text count;
    uint64_t lines = 0;
    int code;

    if (!command_begin(command, argc, argv, &args, &operands, &code)) {
        return code;
    }
    console_start(args.quiet ? CONSOLE_QUIET : CONSOLE_NORMAL);
    progress_start(args.progress, args.quiet);
    export_options.store = operands.text[0];
    export_options.output = operands.text[1];
    export_options.index_base = (unsigned)(args.index_base[0] - '0');
    export_options.memory_bytes = args.memory;
    export_options.threads =
        args.threads != 0 ? (unsigned)args.threads : slc_team_default_workers();
    export_options.overwrite = args.force;
    export_options.progress = progress_phase;
    if (unfinished_watch(export_options.output, &err) != SLC_OK ||
        slc_export_tns(&export_options, &lines, &err) != SLC_OK) {
        return console_error(&err);
    }
    console_settle();
    if (!args.quiet && strcmp(export_options.output, "-") != 0) {
        printf("Exported %s rows to %s, indices from %u\n", format_count(&count, lines),
               export_options.output, export_options.index_base);
    }
    return 0;
}

const struct command command_export = {
    .name = "export",
    .summary = "write a store back as .tns text",
    .example = "sluice export flights-4d.slc flights-4d.tns",
    .operands = "X.slc OUT.tns",
    .operands_min = 2,
    .operands_max = 2,
    .options = options,
    .notes =
        "OUT.tns may be - for standard output. Values carry the fewest digits that read back to\n"
        "the same bits.",
    .run = run,
};
