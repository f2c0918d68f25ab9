#include "tools/session/commands.h"

#include "base/memory/memory.h"
#include "tools/progress/console.h"
#include "tools/progress/format.h"
#include "tools/progress/log_json.h"

#include <string.h>

const struct command *const commands_all[] = {
    &command_convert,   &command_append,  &command_slice,      &command_permute,
    &command_info,      &command_check,   &command_export,     &command_generate,
    &command_layout,    &command_plan,    &command_mttkrp,     &command_ttv,
    &command_ttm,       &command_join,    &command_cpd,        &command_predict,
    &command_residuals, &command_compare, &command_report,     &command_top,
    &command_watch,     &command_bench,   &command_completion, NULL,
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

/* Returns the field of an option, or NULL if the command has no such option. */
static void *field_of(const struct command *command, const char *name, void *values)
{
    for (const struct option *option = command->options; option->name != NULL; option++) {
        if (strcmp(option->name, name) == 0) {
            return (char *)values + option->offset;
        }
    }
    return NULL;
}

/* Limits --memory to the memory of the machine, because the kernel would end a command that uses
 * more. Only the plan keeps the number, because it may be for another machine. */
static void limit_memory(const struct command *command, void *values)
{
    uint64_t *memory = field_of(command, "memory", values);
    const bool *quiet = field_of(command, "quiet", values);
    const bool plans = strcmp(command->name, "plan") == 0;
    const uint64_t machine = memory != NULL ? slc_memory_machine() : 0;
    struct format_text a, b;

    if (memory == NULL || *memory <= machine) {
        return;
    }
    if (quiet == NULL || !*quiet) {
        console_note("warning: --memory %s is more than the %s of this machine or its cgroup%s",
                     format_memory(&a, *memory), format_memory(&b, machine),
                     plans ? "" : ", which is the budget instead");
    }
    *memory = plans ? *memory : machine;
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
    limit_memory(command, values);
    return run_log_begin(command, argc, argv, values, exit_code);
}
