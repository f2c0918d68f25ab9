/* See completion_impl.h. */
#include "tools/options/completion_impl.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

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

void offer_of(const struct option *option, struct offer *offer)
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

void completion_each(const struct command *const *commands,
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

void completion_print_help(const char *help, const char *special, const char *quote)
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
