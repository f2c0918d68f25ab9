/* The script for zsh: a function that is loaded by its name, _sluice. */
#include "tools/options/completion.h"
#include "tools/options/completion_impl.h"

#include <stdio.h>
#include <string.h>

/* What stands for itself in a specification of _arguments only behind a backslash. */
#define SPECIAL "[]:\\"
/* A single quote within single quotes. */
#define QUOTE "'\\''"

/* ":what:what is offered", the value's part of a specification. */
static void print_value(const struct option *option)
{
    struct offer offer;
    const char *paths;

    offer_of(option, &offer);
    paths = offer.files ? "_files" : offer.folders ? "_files -/" : "";
    putchar(':');
    completion_print_help(option->value, SPECIAL, QUOTE);
    putchar(':');
    if (offer.words[0] != '\0' && *paths != '\0') {
        printf("{_alternative \"words\\:word\\:(%s)\" \"paths\\:path\\:%s\"}", offer.words, paths);
    } else if (offer.words[0] != '\0') {
        printf("(%s)", offer.words);
    } else {
        printf("%s", *paths != '\0' ? paths : " ");
    }
}

/* One name of an option, with how its value is joined to it. */
static void print_name(const struct option *option, const char *name, char letter)
{
    const bool repeated = option->kind == OPTION_MORE_STRINGS || option->kind == OPTION_MORE_MODES;
    const bool flag = option->kind == OPTION_FLAG;

    printf("        '%s", repeated ? "*" : "(");
    if (!repeated) {
        if (option->letter != 0) {
            printf("-%c ", option->letter);
        }
        printf("--%s", option->name);
        if (option->alias != NULL) {
            printf(" --%s", option->alias);
        }
        putchar(')');
    }
    if (letter != 0) {
        printf("-%c%s[", letter, flag ? "" : "+");
    } else {
        printf("--%s%s[", name, flag ? "" : "=");
    }
    completion_print_help(option->help, SPECIAL, QUOTE);
    putchar(']');
    if (!flag) {
        print_value(option);
    }
    printf("' \\\n");
}

static void print_commands(const char *indent, const struct command *const *commands, size_t prefix)
{
    for (; *commands != NULL; commands++) {
        printf("%s'%s:", indent, (*commands)->name + prefix);
        completion_print_help((*commands)->summary, ":\\", QUOTE);
        printf("'\n");
    }
}

static void print_command(const struct command *command, const char *words)
{
    printf("    '%s')\n", words);
    if (command->subcommands != NULL) {
        printf("        if (( CURRENT == 2 )); then\n            list=(\n");
        print_commands("                ", command->subcommands, strlen(command->name) + 1);
        printf("            )\n            _describe -t commands '%s' list\n            return\n"
               "        fi\n        ;;\n",
               command->name);
        return;
    }
    printf("        _arguments -s -S \\\n");
    for (const struct option *option = command->options; option->name != NULL; option++) {
        if (option->letter != 0) {
            print_name(option, option->name, option->letter);
        }
        print_name(option, option->name, 0);
        if (option->alias != NULL) {
            print_name(option, option->alias, 0);
        }
    }
    printf("        '(- *)-h[this text]' \\\n        '(- *)--help[this text]'");
    if (command->operand_words != NULL) {
        printf(" \\\n        '1:what:(%s)'", command->operand_words);
    } else if (command->operands_max > 0) {
        printf(" \\\n        '*:file:_files'");
    }
    printf("\n        ;;\n");
}

void completion_print_zsh(const struct command *const *commands)
{
    printf("#compdef sluice\n"
           "# Completes command lines of sluice in zsh. Made by: sluice completion zsh\n"
           "local -a list\n"
           "local command\n\n"
           "if (( CURRENT == 2 )); then\n    list=(\n        'help:the help of a command'\n");
    print_commands("        ", commands, 0);
    printf("    )\n    _describe -t commands 'command of sluice' list\n"
           "    _arguments -s '(- *)'{-h,--help}'[what there is]' '(- *)'{-V,--version}'[version "
           "and features]'\n"
           "    return\n"
           "fi\n"
           "command=$words[2]\n"
           "shift words\n"
           "(( CURRENT-- ))\n");
    for (const struct command *const *command = commands; *command != NULL; command++) {
        if ((*command)->subcommands != NULL) {
            printf("if [[ $command = %s ]] && (( CURRENT > 2 )); then\n"
                   "    command=\"$command $words[2]\"\n    shift words\n    (( CURRENT-- ))\nfi\n",
                   (*command)->name);
        }
    }
    printf("case $command in\n    'help')\n        list=(\n");
    print_commands("            ", commands, 0);
    printf("        )\n        _describe -t commands 'command of sluice' list\n        ;;\n");
    completion_each(commands, print_command);
    printf("esac\n");
}
