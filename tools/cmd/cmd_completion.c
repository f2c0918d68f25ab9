/* sluice completion: prints the script by which a shell completes command lines of sluice. */
#include "tools/options/completion.h"
#include "tools/progress/console.h"
#include "tools/session/commands.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    void (*print)(const struct command *const *commands);
} shells[] = {
    {"bash", completion_print_bash},
    {"zsh", completion_print_zsh},
    {"fish", completion_print_fish},
};
enum { SHELLS = sizeof shells / sizeof shells[0] };

static const struct option no_options[] = {{.name = NULL}};

static int run(const struct command *command, int argc, char **argv)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct operands operands;
    char unused;
    int code;

    if (!command_begin(command, argc, argv, &unused, &operands, &code)) {
        return code;
    }
    for (size_t i = 0; i < SHELLS; i++) {
        if (strcmp(operands.text[0], shells[i].name) == 0) {
            shells[i].print(commands_all);
            return 0;
        }
    }
    (void)slc_fail(&err, SLC_ERR_USAGE, "'%s' is none of bash, zsh, fish", operands.text[0]);
    return console_error(&err);
}

const struct command command_completion = {
    .name = "completion",
    .summary = "print what a shell needs to complete command lines",
    .example = "sluice completion bash > ~/.local/share/bash-completion/completions/sluice",
    .operands = "bash|zsh|fish",
    .operand_words = "bash zsh fish",
    .operands_min = 1,
    .operands_max = 1,
    .options = no_options,
    .notes = "An installed sluice has put it where the shells look already.",
    .run = run,
};
