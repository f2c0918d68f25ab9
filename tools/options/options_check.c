/* Checks what has been given. */
#include "tools/options/options_check.h"

#include <string.h>

/* Returns true if the option of this name is given; false if `name` is NULL. */
static bool is_given(const struct command *command, uint64_t given, const char *name)
{
    for (unsigned i = 0; name != NULL && command->options[i].name != NULL; i++) {
        if (strcmp(command->options[i].name, name) == 0) {
            return (given >> i & 1) != 0;
        }
    }
    return false;
}

enum slc_status options_check_given(const struct command *command,
                                    uint64_t given,
                                    unsigned operands,
                                    struct slc_error *err)
{
    if (operands < command->operands_min) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "%s needs %s, but %u of %u operands were given; see "
                        "sluice %s --help",
                        command->name, command->operands, operands, command->operands_min,
                        command->name);
    }
    for (const struct option *option = command->options; option->name != NULL; option++) {
        const bool present = is_given(command, given, option->name);
        const bool replaced = is_given(command, given, option->instead);

        if (present && replaced) {
            return slc_fail(err, SLC_ERR_USAGE, "--%s and --%s cannot be combined: remove one",
                            option->name, option->instead);
        }
        if (option->required && !present && !replaced) {
            return slc_fail(err, SLC_ERR_USAGE, "--%s %s must be given (%s)", option->name,
                            option->value, option->help);
        }
    }
    return SLC_OK;
}

enum slc_status
options_fail_operand(const struct command *command, const char *text, struct slc_error *err)
{
    if (command->operands_max < 2 || strstr(command->operands, "..") == NULL) {
        return slc_fail(err, SLC_ERR_USAGE, "unexpected argument '%s': %s accepts %s", text,
                        command->name, command->operands_max > 0 ? command->operands : "none");
    }
    return slc_fail(err, SLC_ERR_USAGE,
                    "unexpected argument '%s': %s accepts at most %u arguments, %s: %s", text,
                    command->name, command->operands_max, command->operands,
                    command->operands_more != NULL ? command->operands_more
                                                   : "repeat the command for the others");
}
