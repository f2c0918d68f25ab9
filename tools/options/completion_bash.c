/* The script for bash, which needs nothing of the bash-completion package. */
#include "tools/options/completion.h"
#include "tools/options/completion_impl.h"

#include <stdio.h>
#include <string.h>

/* `sluice help cpd` completes as `sluice cpd` does. */
static const char head[] =
    "# Completes command lines of sluice in bash. Made by: sluice completion bash\n"
    "_sluice()\n"
    "{\n"
    "    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}\n"
    "    local command=${COMP_WORDS[1]} options= words= paths=f value=\n"
    "\n"
    "    COMPREPLY=()\n"
    "    # Of --name=VALUE three words are made.\n"
    "    if [ \"$current\" = = ]; then\n"
    "        current=\n"
    "    elif [ \"$previous\" = = ]; then\n"
    "        previous=${COMP_WORDS[COMP_CWORD - 2]}\n"
    "    fi\n";

static void print_names(const struct option *option, const char *between)
{
    if (option->letter != 0) {
        printf("-%c%s", option->letter, between);
    }
    printf("--%s", option->name);
    if (option->alias != NULL) {
        printf("%s--%s", between, option->alias);
    }
}

static void print_command(const struct command *command, const char *words)
{
    struct offer offer;

    printf("    '%s')\n        options='", words);
    for (const struct option *option = command->options; option->name != NULL; option++) {
        print_names(option, " ");
        putchar(' ');
    }
    printf("-h --help'\n");
    if (command->subcommands != NULL) {
        printf("        words='");
        for (const struct command *const *below = command->subcommands; *below != NULL; below++) {
            printf("%s ", (*below)->name + strlen(command->name) + 1);
        }
        printf("'\n        paths=\n");
    } else if (command->operand_words != NULL) {
        printf("        words='%s'\n        paths=\n", command->operand_words);
    } else if (command->operands_max == 0) {
        printf("        paths=\n");
    }
    printf("        case $previous in\n");
    for (const struct option *option = command->options; option->name != NULL; option++) {
        if (option->kind == OPTION_FLAG) {
            continue;
        }
        offer_of(option, &offer);
        printf("        ");
        print_names(option, " | ");
        printf(") value=yes words='%s' paths=%s ;;\n", offer.words,
               offer.files     ? "f"
               : offer.folders ? "d"
                               : "");
    }
    printf("        esac\n        ;;\n");
}

void completion_print_bash(const struct command *const *commands)
{
    printf("%s", head);
    printf("    if [ \"$COMP_CWORD\" -eq 1 ]; then\n        options='-h --help -V --version'\n"
           "        words='help");
    for (const struct command *const *command = commands; *command != NULL; command++) {
        printf(" %s", (*command)->name);
    }
    printf("'\n        paths=\n        command=\n    fi\n");
    for (const struct command *const *command = commands; *command != NULL; command++) {
        if ((*command)->subcommands != NULL) {
            printf("    if [ \"$command\" = %s ] && [ \"$COMP_CWORD\" -gt 2 ]; then\n"
                   "        command=\"$command ${COMP_WORDS[2]}\"\n    fi\n",
                   (*command)->name);
        }
    }
    printf("    case $command in\n    'help')\n        words='");
    for (const struct command *const *command = commands; *command != NULL; command++) {
        printf("%s%s", command == commands ? "" : " ", (*command)->name);
    }
    printf("'\n        paths=\n        ;;\n");
    completion_each(commands, print_command);
    printf("    esac\n"
           "    if [ -z \"$value\" ] && [ \"${current#-}\" != \"$current\" ]; then\n"
           "        mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$current\")\n"
           "        return\n"
           "    fi\n"
           "    mapfile -t COMPREPLY < <(\n"
           "        [ -z \"$words\" ] || compgen -W \"$words\" -- \"$current\"\n"
           "        [ -z \"$paths\" ] || compgen \"-$paths\" -- \"$current\"\n"
           "    )\n"
           "    [ -z \"$paths\" ] || compopt -o filenames 2> /dev/null\n"
           "}\n"
           "complete -F _sluice sluice\n");
}
