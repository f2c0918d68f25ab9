/* sluice slice: writes a store with a selection of the indices of another store. */
#include "tools/build/build_options.h"
#include "tools/progress/console.h"
#include "tools/session/commands.h"

#include <stdlib.h>
#include <string.h>

struct arguments {
    struct build_options build;
    struct option_strings modes;
    bool keep_indices;
    struct option_strings transforms;
    struct forecast_options forecast;
};

static const struct option options[] = {
    {"mode", OPTION_MORE_STRINGS, offsetof(struct arguments, modes), .value = "K=RANGES",
     .help = "indices of mode K to select, counted from 1, such as "
             "3=100..200, 1=5,7 or 2=50.. (from 50 on); repeat the option "
             "for several modes"},
    {"keep-indices", OPTION_FLAG, offsetof(struct arguments, keep_indices),
     .help = "keep indices and mode sizes; if not given, selected indices are renumbered from 1 "
             "in ascending order"},
    OPTION_ROW_TRANSFORM(arguments, transforms),
    RESHAPE_OPTION_ROWS(arguments),
    FORECAST_OPTION_ROWS(arguments, forecast),
    {.name = NULL}};

/* Parses the ranges of a mode, such as "3=100..200" for mode 3. */
static enum slc_status
parse_mode(const char *text, struct slc_ranges *ranges, struct slc_error *err)
{
    char *end;
    const unsigned long mode = *text >= '1' && *text <= '9' ? strtoul(text, &end, 10) : 0;

    if (mode < 1 || mode > SLC_MAX_ORDER || *end != '=') {
        return slc_fail(err, SLC_ERR_USAGE,
                        "--mode '%s': use a mode from 1 to %d and its indices, such as 3=100..200",
                        text, SLC_MAX_ORDER);
    }
    if (ranges[mode - 1].count > 0) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "--mode: mode %lu is given twice; combine its ranges in one option, such "
                        "as %lu=5,7",
                        mode, mode);
    }
    return slc_ranges_parse(end + 1, &ranges[mode - 1], err);
}

static int run(const struct command *command, int argc, char **argv)
{
    static struct slc_ranges ranges[SLC_MAX_ORDER];
    struct arguments args = {.keep_indices = false};
    struct slc_reshape_options reshape = {.verb = "slice", .ranges = ranges};
    struct slc_error err = SLC_ERROR_INIT;
    struct operands operands;
    int code;

    if (!command_begin(command, argc, argv, &args, &operands, &code)) {
        return code;
    }
    memset(ranges, 0, sizeof ranges);
    for (unsigned i = 0; i < args.modes.count; i++) {
        if (parse_mode(args.modes.text[i], ranges, &err) != SLC_OK) {
            return console_error(&err);
        }
    }
    reshape.store = operands.text[0];
    reshape.output = operands.text[1];
    reshape.keep_indices = args.keep_indices;
    return reshape_run(&args.build, &args.transforms, &args.forecast, &reshape);
}

const struct command command_slice = {
    .name = "slice",
    .summary = "write a store with a selection of the indices of another store",
    .example = "sluice slice flights-4d.slc june.slc --mode 1=152..181 --mode 2=7..",
    .operands = "X.slc OUT.slc",
    .operands_min = 2,
    .operands_max = 2,
    .options = options,
    .notes = "Without --mode all indices are selected, for example to use --transform only.",
    .run = run,
};
