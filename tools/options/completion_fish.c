/* The script for fish: one line for each command, and for each option of one. */
#include "tools/options/completion.h"
#include "tools/options/completion_impl.h"

#include <stdio.h>
#include <string.h>

/* Within single quotes of fish a backslash goes before a quote and before itself. */
static void print_text(const char *text)
{
    putchar('\'');
    completion_print_help(text, "\\", "\\'");
    putchar('\'');
}

/* `-n 'condition'`: of this command, or benchmark, alone. */
static void print_condition(const char *words)
{
    printf("complete -c sluice -n '__sluice_is %s'", words);
}

static void print_option(const struct option *option, const char *words)
{
    struct offer offer;

    print_condition(words);
    printf(" -l %s", option->name);
    if (option->alias != NULL) {
        printf(" -l %s", option->alias);
    }
    if (option->letter != 0) {
        printf(" -s %c", option->letter);
    }
    if (option->kind != OPTION_FLAG) {
        offer_of(option, &offer);
        printf(" -r");
        if (offer.files) {
            printf(" -F");
        } else {
            printf(" -f");
        }
        if (offer.words[0] != '\0' || (offer.folders && !offer.files)) {
            printf(" -a '%s%s'", offer.words,
                   offer.folders && !offer.files ? " (__fish_complete_directories)" : "");
        }
    }
    printf(" -d ");
    print_text(option->help);
    putchar('\n');
}

static void print_command(const struct command *command, const char *words)
{
    for (const struct option *option = command->options; option->name != NULL; option++) {
        print_option(option, words);
    }
    print_condition(words);
    printf(" -l help -s h -d 'this text'\n");
    if (command->operand_words != NULL) {
        print_condition(words);
        printf(" -f -a '%s'\n", command->operand_words);
    } else if (command->operands_max == 0) {
        print_condition(words);
        printf(" -f\n");
    }
    for (const struct command *const *below = command->subcommands; below != NULL && *below != NULL;
         below++) {
        printf("complete -c sluice -n '__sluice_is %s; and test (count "
               "(commandline -opc)) -eq 2' -f -a %s -d ",
               command->name, (*below)->name + strlen(command->name) + 1);
        print_text((*below)->summary);
        putchar('\n');
    }
}

void completion_print_fish(const struct command *const *commands)
{
    printf("# Completes command lines of sluice in fish. Made by: sluice completion fish\n"
           "function __sluice_is -d 'whether these words stand behind the command'\n"
           "    set -l words (commandline -opc)\n"
           "    set -l last (math (count $argv) + 1)\n"
           "    test (count $words) -ge $last\n"
           "    and test \"$words[2..$last]\" = \"$argv\"\n"
           "end\n"
           "complete -c sluice -n __fish_use_subcommand -f -l help -s h -d 'what there is'\n"
           "complete -c sluice -n __fish_use_subcommand -f -l version -s V -d 'version and "
           "features'\n"
           "complete -c sluice -n __fish_use_subcommand -f -a help -d 'the help of a command'\n");
    for (const struct command *const *command = commands; *command != NULL; command++) {
        printf("complete -c sluice -n __fish_use_subcommand -f -a %s -d ", (*command)->name);
        print_text((*command)->summary);
        printf("\ncomplete -c sluice -n '__sluice_is help' -f -a %s\n", (*command)->name);
    }
    completion_each(commands, print_command);
}
