/* sluice permute: writes a store with its modes in another order. */
#include "tools/build/build_options.h"
#include "tools/progress/console.h"
#include "tools/session/commands.h"

struct arguments {
    struct build_options build;
    struct option_modes order;
    struct option_strings transforms;
    struct forecast_options forecast;
};

static const struct option options[] = {
    {"order", OPTION_MODES, offsetof(struct arguments, order), .required = true, .value = "K,L,..",
     .help = "modes of X in the new order, each exactly once; 3,1,2 makes mode 3 the first mode"},
    OPTION_ROW_TRANSFORM(arguments, transforms),
    RESHAPE_OPTION_ROWS(arguments),
    FORECAST_OPTION_ROWS(arguments, forecast),
    {.name = NULL}};

static int run(const struct command *command, int argc, char **argv)
{
    struct arguments args = {.order = {0}};
    struct slc_reshape_options reshape = {.verb = "permute"};
    struct operands operands;
    int code;

    if (!command_begin(command, argc, argv, &args, &operands, &code)) {
        return code;
    }
    reshape.store = operands.text[0];
    reshape.output = operands.text[1];
    reshape.mode_count = args.order.count;
    for (unsigned k = 0; k < args.order.count; k++) {
        reshape.modes[k] = args.order.mode[k];
    }
    return reshape_run(&args.build, &args.transforms, &args.forecast, &reshape);
}

const struct command command_permute = {
    .name = "permute",
    .summary = "reorder the modes of a store",
    .example = "sluice permute flights-4d.slc by-destination.slc --order 4,1,2,3",
    .operands = "X.slc OUT.slc",
    .operands_min = 2,
    .operands_max = 2,
    .options = options,
    .run = run,
};
