/* Writes the section of a page that describes how to reproduce a run. */
#include "report/page/parts.h"

#include <string.h>

bool slc_page_called(const json_t *record)
{
    return json_is_null(json_object_get(record, "command"));
}

/* Writes a word of a command line, quoted for a shell. */
static void shell_word(struct slc_html *html, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-+=./:,%@";

    if (word[0] != '\0' && word[strspn(word, plain)] == '\0') {
        slc_html_text(html, word);
        return;
    }
    slc_html_put(html, "&#39;");
    for (const char *quote; (quote = strchr(word, '\'')) != NULL; word = quote + 1) {
        char piece[256];

        for (size_t left = (size_t)(quote - word), take; left > 0; left -= take, word += take) {
            take = left < sizeof piece - 1 ? left : sizeof piece - 1;
            /* UTF-8 characters are not divided. */
            while (take > 1 && take < left && ((unsigned char)word[take] & 0xC0) == 0x80) {
                take--;
            }
            memcpy(piece, word, take);
            piece[take] = '\0';
            slc_html_text(html, piece);
        }
        slc_html_put(html, "&#39;\\&#39;&#39;");
    }
    slc_html_text(html, word);
    slc_html_put(html, "&#39;");
}

/* Writes an option whose value is a list: of modes (--nonnegative=1,3), or of texts, one for each
 * use of the option. */
static void repeated_option(struct slc_html *html, const char *name, const json_t *list)
{
    json_t *item;
    size_t i;

    json_array_foreach(list, i, item)
    {
        if (json_is_integer(item)) {
            slc_html_print(html, "%s%s%s", i > 0 ? "," : " --", i > 0 ? "" : name,
                           i > 0 ? "" : "=");
            slc_html_print(html, "%" JSON_INTEGER_FORMAT, json_integer_value(item));
        } else if (json_is_string(item)) {
            slc_html_print(html, " --%s ", name);
            shell_word(html, json_string_value(item));
        }
    }
}

/* Writes the command line that is equivalent to a library call, with the options that determine the
 * results. */
static void same_command(struct slc_html *html, const json_t *record)
{
    static const char *const names[] = {
        "rank",    "iters",        "tol",        "maxsecs",   "loss",         "unlisted",
        "biases",  "inner",        "huber",      "method",    "nonnegative",  "simplex",
        "l1",      "smooth",       "reg",        "bounds",    "seed",         "init",
        "holdout", "holdout-seed", "mode-order", "precision", "deterministic"};
    const json_t *options = json_object_get(record, "options");
    const char *store =
        json_string_value(json_object_get(json_object_get(record, "tensor"), "path"));

    slc_html_put(html, "sluice cpd ");
    shell_word(html, store != NULL ? store : "");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const json_t *value = json_object_get(options, names[i]);

        if (json_is_array(value)) {
            repeated_option(html, names[i], value);
        }
        if (!json_is_string(value) && !json_is_number(value) && !json_is_true(value)) {
            continue;
        }
        slc_html_print(html, " --%s", names[i]);
        slc_html_put(html, json_is_true(value) ? "" : " ");
        if (json_is_string(value)) {
            shell_word(html, json_string_value(value));
        } else if (json_is_integer(value)) {
            slc_html_print(html, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        } else if (json_is_real(value)) {
            slc_page_shortest(html, json_real_value(value));
        }
    }
}

void slc_page_command(struct slc_html *html, const json_t *record)
{
    json_t *word;
    size_t i;

    slc_html_put(html, "<pre tabindex=\"0\" aria-label=\"Command line\"><code>");
    json_array_foreach(json_object_get(record, "command"), i, word)
    {
        slc_html_put(html, i > 0 ? " " : "");
        shell_word(html, json_is_string(word) ? json_string_value(word) : "");
    }
    if (slc_page_called(record)) {
        same_command(html, record);
    }
    slc_html_put(html, "</code></pre>\n");
}

static void members_in_details(struct slc_html *html, const char *title, const json_t *object)
{
    const char *key;
    json_t *value;

    slc_html_print(html, "<details><summary>%s</summary>\n", title);
    slc_page_table(html, title);
    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        slc_page_value(html, key, value);
    }
    slc_page_table_end(html);
    slc_html_put(html, "</details>\n");
}

void slc_page_again(struct slc_html *html, const json_t *record)
{
    const json_t *tensor = json_object_get(record, "tensor");
    const json_t *versions = json_object_get(record, "versions");
    const json_t *machine = json_object_get(record, "machine");
    const bool called = slc_page_called(record);

    slc_page_section(html, "again", "Reproduce");
    slc_html_put(html, called
                           ? "<p>A program made this run by a library call. This command makes the "
                             "same run:</p>\n"
                           : "");
    slc_page_command(html, record);
    slc_html_put(html, "<div class=\"two\">");
    slc_page_table(html, "Tensor and seed");
    slc_page_member(html, "Seed", json_object_get(record, "options"), "seed");
    slc_page_member(html, "Store", tensor, "path");
    slc_page_member(html, "Content sum", tensor, "content_sum");
    slc_page_member(html, "Made from", tensor, "source");
    slc_page_member(html, "Mode sizes", tensor, "dims");
    slc_page_member(html, "Nonzeros", tensor, "nnz");
    slc_page_member(html, "Norm", tensor, "norm");
    slc_page_member(html, "Values", tensor, "value_type");
    slc_page_table_end(html);
    slc_page_table(html, "Program and machine");
    slc_page_member(html, "sluice", versions, "sluice");
    slc_page_member(html, "Compiler", versions, "compiler");
    slc_page_member(html, "Instruction set", versions, "instruction_set");
    slc_page_member(html, "System", versions, "system");
    slc_page_member(html, "Processors", machine, "processors");
    slc_page_member(html, "Cores", machine, "cores");
    slc_page_member(html, "NUMA nodes", machine, "numa_nodes");
    slc_page_member(html, "Caches, bytes", machine, "cache_bytes");
    slc_page_member(html, "Memory, bytes", machine, "memory_bytes");
    slc_page_member(html, "Finished", record, "finished");
    slc_page_table_end(html);
    slc_html_put(html, "</div>\n");
    members_in_details(html, "All options", json_object_get(record, "options"));
    members_in_details(html, "Plan", json_object_get(record, "plan"));
    slc_html_put(html, "</section>\n");
}
