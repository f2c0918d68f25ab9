#include "tools/session/commands.h"

#include "tools/progress/console.h"
#include "tools/progress/log_json.h"

#include <string.h>

const struct command *const commands_all[] = {
    &command_convert,    &command_append,
    &command_slice,      &command_permute,
    &command_info,       &command_check,
    &command_export,     &command_generate,
    &command_layout,     &command_plan,
    &command_mttkrp,     &command_ttv,
    &command_ttm,        &command_cpd,
    &command_predict,    &command_residuals,
    &command_report,     &command_top,
    &command_watch,      &command_bench,
    &command_completion, NULL,
};

int commands_unknown(const char *what,
                     const char *word,
                     const struct command *const *commands,
                     const char *help)
{
    struct slc_error err = SLC_ERROR_INIT;
    enum { NAMES_MAX = 64 };
    const char *names[NAMES_MAX + 1];
    size_t count = 0;

    for (; commands[count] != NULL && count < NAMES_MAX; count++) {
        const char *blank = strrchr(commands[count]->name, ' ');

        names[count] = blank != NULL ? blank + 1 : commands[count]->name;
    }
    names[count] = NULL;
    const char *near = options_nearest(word, names);
    (void)(near != NULL
               ? slc_fail(&err, SLC_ERR_USAGE, "unknown %s '%s'; did you mean %s?", what, word,
                          near)
               : slc_fail(&err, SLC_ERR_USAGE, "unknown %s '%s'; see %s", what, word, help));
    return console_error(&err);
}

bool command_begin(const struct command *command,
                   int argc,
                   char **argv,
                   void *values,
                   struct operands *operands,
                   int *exit_code)
{
    struct slc_error err = SLC_ERROR_INIT;
    bool help;

    if (options_parse(command, argc, argv, values, operands, &help, &err) != SLC_OK) {
        *exit_code = console_error(&err);
        return false;
    }
    if (help) {
        options_print_help(command);
        *exit_code = 0;
        return false;
    }
    return run_log_begin(command, argc, argv, values, exit_code);
}
