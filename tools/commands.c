/* See commands.h. */
#include "commands.h"

#include "console.h"
#include "run_log.h"

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
