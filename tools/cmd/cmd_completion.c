/*
 * sluice completion: what a shell needs to complete command lines of sluice, printed from the
 * option tables of the commands: a script for bash, zsh or fish that knows every command, option
 * and choice, and where a value is the name of a file or folder.
 */
#include "tools/options/options.h"
#include "tools/progress/console.h"
#include "tools/session/commands.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { OFFER_WORDS_BYTES = 512 };

/* What may stand as the value of an option. */
struct offer {
    char words[OFFER_WORDS_BYTES]; /* separated by blanks */
    bool files, folders;           /* paths: folders alone, or files as well */
};

static void add_word(struct offer *offer, const char *word, size_t bytes)
{
    const size_t used = strlen(offer->words);

    if (used + bytes + 2 < sizeof offer->words) {
        (void)snprintf(offer->words + used, sizeof offer->words - used, "%s%.*s",
                       used > 0 ? " " : "", (int)bytes, word);
    }
}

static bool is_word(const char *text, size_t bytes, const char *word)
{
    return bytes == strlen(word) && memcmp(text, word, bytes) == 0;
}

/* One of the parts between bars of what stands for a text. */
static void add_part(struct offer *offer, const char *part, size_t bytes)
{
    if (is_word(part, bytes, "DIR")) {
        offer->folders = true;
    } else if (is_word(part, bytes, "FILE") || is_word(part, bytes, "STEM") ||
               (bytes > 4 && is_word(part + bytes - 4, 4, ".npy"))) {
        offer->files = true;
    } else if (bytes > 0 && islower((unsigned char)*part)) {
        add_word(offer, part, bytes);
    }
}

/*
 * By the kind of the option and by what stands for its value in the help: choices; of a text the
 * lower-case words between bars, DIR for a folder, and FILE, STEM or *.npy for a file. Nothing
 * where the value is a number.
 */
static void offer_of(const struct option *option, struct offer *offer)
{
    *offer = (struct offer){.words = ""};
    if (option->kind == OPTION_CHOICE) {
        for (size_t i = 0; option->choices[i] != NULL; i++) {
            add_word(offer, option->choices[i], strlen(option->choices[i]));
        }
    } else if (option->kind == OPTION_STRING || option->kind == OPTION_MORE_STRINGS) {
        for (const char *part = option->value;;) {
            const size_t bytes = strcspn(part, "|");

            add_part(offer, part, bytes);
            if (part[bytes] == '\0') {
                break;
            }
            part += bytes + 1;
        }
    }
}

/* Calls `print` for each of `commands` (NULL-terminated) and of their subcommands. `words` is what
 * follows "sluice", e.g. "bench io". */
static void completion_each(const struct command *const *commands,
                            void (*print)(const struct command *command, const char *words))
{
    for (const struct command *const *command = commands; *command != NULL; command++) {
        const struct command *const *below = (*command)->subcommands;

        print(*command, (*command)->name);
        for (; below != NULL && *below != NULL; below++) {
            print(*below, (*below)->name);
        }
    }
}

/* The first sentence of a help text, or all: for a list of options. Prints with each of `special`
 * behind a backslash, and quotes as they are within single quotes of a shell. */
static void completion_print_help(const char *help, const char *special, const char *quote)
{
    for (const char *at = help; *at != '\0' && *at != ';'; at++) {
        if (*at == '\'') {
            fputs(quote, stdout);
        } else {
            if (strchr(special, *at) != NULL) {
                putchar('\\');
            }
            putchar(*at);
        }
    }
}

/* The script for bash, which needs nothing of the bash-completion package. */
/* `sluice help cpd` completes as `sluice cpd` does. */
static const char bash_head[] =
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

static void print_bash_names(const struct option *option, const char *between)
{
    if (option->letter != 0) {
        printf("-%c%s", option->letter, between);
    }
    printf("--%s", option->name);
    if (option->alias != NULL) {
        printf("%s--%s", between, option->alias);
    }
}

static void print_bash_command(const struct command *command, const char *words)
{
    struct offer offer;

    printf("    '%s')\n        options='", words);
    for (const struct option *option = command->options; option->name != NULL; option++) {
        print_bash_names(option, " ");
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
        print_bash_names(option, " | ");
        printf(") value=yes words='%s' paths=%s ;;\n", offer.words,
               offer.files     ? "f"
               : offer.folders ? "d"
                               : "");
    }
    printf("        esac\n        ;;\n");
}

static void completion_print_bash(const struct command *const *commands)
{
    printf("%s", bash_head);
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
    completion_each(commands, print_bash_command);
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

/* The script for fish: one line for each command, and for each option of one. */
/* Within single quotes of fish a backslash goes before a quote and before itself. */
static void print_fish_text(const char *text)
{
    putchar('\'');
    completion_print_help(text, "\\", "\\'");
    putchar('\'');
}

/* `-n 'condition'`: of this command, or benchmark, alone. */
static void print_fish_condition(const char *words)
{
    printf("complete -c sluice -n '__sluice_is %s'", words);
}

static void print_fish_option(const struct option *option, const char *words)
{
    struct offer offer;

    print_fish_condition(words);
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
    print_fish_text(option->help);
    putchar('\n');
}

static void print_fish_command(const struct command *command, const char *words)
{
    for (const struct option *option = command->options; option->name != NULL; option++) {
        print_fish_option(option, words);
    }
    print_fish_condition(words);
    printf(" -l help -s h -d 'this text'\n");
    if (command->operand_words != NULL) {
        print_fish_condition(words);
        printf(" -f -a '%s'\n", command->operand_words);
    } else if (command->operands_max == 0) {
        print_fish_condition(words);
        printf(" -f\n");
    }
    for (const struct command *const *below = command->subcommands; below != NULL && *below != NULL;
         below++) {
        printf("complete -c sluice -n '__sluice_is %s; and test (count "
               "(commandline -opc)) -eq 2' -f -a %s -d ",
               command->name, (*below)->name + strlen(command->name) + 1);
        print_fish_text((*below)->summary);
        putchar('\n');
    }
}

static void completion_print_fish(const struct command *const *commands)
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
        print_fish_text((*command)->summary);
        printf("\ncomplete -c sluice -n '__sluice_is help' -f -a %s\n", (*command)->name);
    }
    completion_each(commands, print_fish_command);
}

/* The script for zsh: a function that is loaded by its name, _sluice. */
/* What stands for itself in a specification of _arguments only behind a backslash. */
#define SPECIAL "[]:\\"
/* A single quote within single quotes. */
#define QUOTE "'\\''"

/* ":what:what is offered", the value's part of a specification. */
static void print_zsh_value(const struct option *option)
{
    struct offer offer;

    offer_of(option, &offer);
    const char *paths = offer.files ? "_files" : offer.folders ? "_files -/" : "";
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
static void print_zsh_name(const struct option *option, const char *name, char letter)
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
        print_zsh_value(option);
    }
    printf("' \\\n");
}

static void
print_zsh_commands(const char *indent, const struct command *const *commands, size_t prefix)
{
    for (; *commands != NULL; commands++) {
        printf("%s'%s:", indent, (*commands)->name + prefix);
        completion_print_help((*commands)->summary, ":\\", QUOTE);
        printf("'\n");
    }
}

static void print_zsh_command(const struct command *command, const char *words)
{
    printf("    '%s')\n", words);
    if (command->subcommands != NULL) {
        printf("        if (( CURRENT == 2 )); then\n            list=(\n");
        print_zsh_commands("                ", command->subcommands, strlen(command->name) + 1);
        printf("            )\n            _describe -t commands '%s' list\n            return\n"
               "        fi\n        ;;\n",
               command->name);
        return;
    }
    printf("        _arguments -s -S \\\n");
    for (const struct option *option = command->options; option->name != NULL; option++) {
        if (option->letter != 0) {
            print_zsh_name(option, option->name, option->letter);
        }
        print_zsh_name(option, option->name, 0);
        if (option->alias != NULL) {
            print_zsh_name(option, option->alias, 0);
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

static void completion_print_zsh(const struct command *const *commands)
{
    printf("#compdef sluice\n"
           "# Completes command lines of sluice in zsh. Made by: sluice completion zsh\n"
           "local -a list\n"
           "local command\n\n"
           "if (( CURRENT == 2 )); then\n    list=(\n        'help:the help of a command'\n");
    print_zsh_commands("        ", commands, 0);
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
    print_zsh_commands("            ", commands, 0);
    printf("        )\n        _describe -t commands 'command of sluice' list\n        ;;\n");
    completion_each(commands, print_zsh_command);
    printf("esac\n");
}

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
