/* sluice check: verifies a store. Every fault found is a line of the result. */
#include "base/team.h"
#include "commands.h"
#include "common_options.h"
#include "console.h"
#include "format.h"
#include "progress.h"
#include "signals.h"
#include "storage/verify.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct arguments {
    bool fast;
    uint64_t memory;
    uint64_t threads;
    const char *progress;
    const char *log_json;
    bool quiet;
};

static const struct option options[] = {{.name = "fast",
                                         .kind = OPTION_FLAG,
                                         .help = "structure and checksums only: decode nothing",
                                         .offset = offsetof(struct arguments, fast)},
                                        OPTION_ROW_MEMORY(arguments, memory),
                                        OPTION_ROW_THREADS(arguments, threads),
                                        OPTION_ROW_PROGRESS(arguments, progress),
                                        OPTION_ROW_LOG_JSON(arguments, log_json),
                                        OPTION_ROW_QUIET(arguments, quiet),
                                        {.name = NULL}};

static void print_finding(void *context, const struct slc_error *fault)
{
    char text[sizeof fault->file + sizeof fault->message + 128];

    (void)context;
    (void)slc_error_format(fault, text, sizeof text);
    console_settle();
    printf("%s\n", text);
}

/* A note: what goes on from a file that an interrupted run left, or removes it. */
static void print_leftover(void *context, const struct slc_leftover *leftover)
{
    const struct operands *operands = context;
    const char *store = operands->text[0];
    const char *layout = slc_layout_name(leftover->layout);

    printf("%s/%s: left by a run that was interrupted, and no part of the store: ", store,
           leftover->name);
    if (strcmp(leftover->name, SLC_COMPLETE_STATE_NAME) == 0) {
        printf("the conversion that made the store would remove it, and it may be removed\n");
    } else if (leftover->layout == SLC_LAYOUT_BLCO) {
        printf("the next change of its layouts replaces it, and it may be removed\n");
    } else {
        printf("'sluice layout %s --%s %u' finishes the layout, '--drop %s-%u' removes it\n", store,
               layout, leftover->mode + 1, layout, leftover->mode + 1);
    }
}

/* A signal ends a check at once: it changes nothing. */
static void leave(void *unused)
{
    (void)unused;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct arguments args = {.fast = false};
    struct slc_verify_options verify = {.files = NULL};
    struct slc_verify_report report = {.files = 0};
    struct slc_error err = SLC_ERROR_INIT;
    struct operands operands;
    struct format_text bytes;
    struct format_text count;
    enum slc_status status;
    int code;

    if (!command_begin(command, argc, argv, &args, &operands, &code)) {
        return code;
    }
    console_start(args.quiet ? CONSOLE_QUIET : CONSOLE_NORMAL);
    progress_start(args.progress, args.quiet);
    if (signals_start(leave, NULL, &err) != SLC_OK) {
        return console_error(&err);
    }
    verify.decode = !args.fast;
    verify.threads = args.threads != 0 ? (unsigned)args.threads : slc_team_default_workers();
    verify.memory_bytes = args.memory;
    verify.found = args.quiet ? NULL : print_finding;
    verify.leftover = args.quiet ? NULL : print_leftover;
    verify.context = &operands;
    verify.progress = progress_phase;
    status = slc_verify_store(operands.text[0], &verify, &report, &err);
    console_settle();
    if (status != SLC_OK) {
        code = console_error(&err);
        if (report.findings > 1) {
            console_note("%" PRIu64 " faults in %s, the first of them above", report.findings,
                         operands.text[0]);
        }
        return code;
    }
    if (!args.quiet) {
        printf("%s is sound: %" PRIu64 " files, %" PRIu64 " block%s, %s nonzeros", operands.text[0],
               report.files, report.blocks, report.blocks == 1 ? "" : "s",
               format_count(&count, report.layouts > 0 ? report.nnz / report.layouts : 0));
        if (report.layouts > 1) {
            printf(" in each of %" PRIu64 " layouts", report.layouts);
        }
        printf(", %s %s\n", format_data(&bytes, (double)report.bytes),
               args.fast ? "checksummed" : "checksummed and decoded");
    }
    return 0;
}

const struct command command_check = {
    .name = "check",
    .summary = "verify the structure, every checksum and every nonzero of a store",
    .example = "sluice check flights-4d.slc",
    .operands = "X.slc",
    .operands_min = 1,
    .operands_max = 1,
    .options = options,
    .notes =
        "Faults are printed as FILE: block B, offset O: what is wrong; the exit code is then 5,\n"
        "or 3 for something that is not a store.",
    .run = run,
};
