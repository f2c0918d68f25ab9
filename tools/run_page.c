/* See run_page.h. This file has the frame: what the run was, and how to make it again. */
#include "run_page.h"

#include "base/version.h"
#include "run_page_parts.h"
#include "run_page_style.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

double page_number(const json_t *object, const char *name)
{
    const double number = json_number_value(json_object_get(object, name));

    return isfinite(number) && number > 0 ? number : 0;
}

uint64_t page_count(const json_t *object, const char *name)
{
    const json_int_t number = json_integer_value(json_object_get(object, name));

    return number > 0 ? (uint64_t)number : 0;
}

void page_table(struct html *html, const char *name)
{
    html_print(html,
               "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"%s\"><table>"
               "<tbody>\n",
               name);
}

void page_row(struct html *html, const char *name, const char *value)
{
    html_put(html, "<tr><th scope=\"row\">");
    html_text(html, name);
    html_put(html, "</th><td>");
    html_text(html, value);
    html_put(html, "</td></tr>\n");
}

void page_table_end(struct html *html)
{
    html_put(html, "</tbody></table></div>\n");
}

/* A value in words; lists and objects one level deep, which is all that there is. */
static void show_value(struct html *html, const json_t *value, bool within)
{
    const char *key;
    json_t *member;
    size_t i;

    if (json_is_string(value)) {
        html_text(html, json_string_value(value));
    } else if (json_is_integer(value)) {
        html_print(html, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    } else if (json_is_real(value)) {
        html_print(html, "%.10g", json_real_value(value));
    } else if (json_is_boolean(value)) {
        html_put(html, json_is_true(value) ? "yes" : "no");
    } else if (json_is_array(value) && !within) {
        json_array_foreach(value, i, member)
        {
            html_put(html, i > 0 ? ", " : "");
            show_value(html, member, true);
        }
    } else if (json_is_object(value) && !within) {
        json_object_foreach((json_t *)(uintptr_t)value, key, member)
        {
            html_text(html, key);
            html_put(html, " ");
            show_value(html, member, true);
            html_put(html, "; ");
        }
    } else {
        html_put(html, json_is_null(value) ? "none" : "..");
    }
}

static void value_row(struct html *html, const char *label, const json_t *value)
{
    html_put(html, "<tr><th scope=\"row\">");
    html_text(html, label);
    html_put(html, "</th><td>");
    show_value(html, value, false);
    html_put(html, "</td></tr>\n");
}

void page_member(struct html *html, const char *label, const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);

    if (value != NULL) {
        value_row(html, label, value);
    }
}

/* The last part of a path, which a title has room for. */
static const char *short_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

static void head(struct html *html, const struct run_page *page)
{
    html_put(html, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                   "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                   "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                   "style-src 'unsafe-inline'; img-src data:\">\n"
                   "<link rel=\"icon\" href=\"data:,\">\n<title>");
    html_text(html, short_name(page->folder));
    html_put(html, " - sluice</title>\n<style>\n");
    for (const char *const *piece = run_page_style; *piece != NULL; piece++) {
        html_put(html, *piece);
    }
    html_put(html, "</style>\n</head>\n<body>\n<a class=\"skip\" href=\"#main\">Skip to the "
                   "content</a>\n<header>\n<h1>");
    html_text(html, short_name(page->folder));
    html_put(html, "</h1>\n<p class=\"dim\">");
    html_put(html, page->record != NULL       ? "A factorization by sluice of "
                   : page->checkpoint != NULL ? "A factorization by sluice that is not finished"
                                              : "Factors without the record of a run");
    html_text(html,
              json_string_value(json_object_get(json_object_get(page->record, "tensor"), "path")));
    html_put(html, "</p>\n<nav aria-label=\"Sections\"><ul>");
    if (page->record != NULL) {
        html_put(html, "<li><a href=\"#fit\">Fit</a></li><li><a href=\"#time\">Time</a></li>"
                       "<li><a href=\"#reading\">Reading</a></li>"
                       "<li><a href=\"#memory\">Memory</a></li>");
    }
    if (page->checkpoint != NULL) {
        html_put(html, "<li><a href=\"#checkpoint\">Checkpoint</a></li>");
    }
    if (page->run->order > 0) {
        html_put(html, "<li><a href=\"#weights\">Weights</a></li>"
                       "<li><a href=\"#components\">Components</a></li>");
    }
    html_put(html, page->record != NULL ? "<li><a href=\"#again\">Reproduce</a></li>" : "");
    html_put(html, "</ul></nav>\n</header>\n<main id=\"main\" tabindex=\"-1\">\n");
}

/* What is missing, and why. */
static void notes(struct html *html, const struct run_page *page)
{
    const char *reason = json_string_value(json_object_get(page->record, "reason"));
    const bool stopped =
        reason != NULL && (strcmp(reason, "time") == 0 || strcmp(reason, "signal") == 0);

    if (page->record == NULL && page->checkpoint != NULL) {
        html_put(html,
                 "<p class=\"note\" role=\"note\">This run has stopped, or still computes: "
                 "it has written a checkpoint, but no record yet. What the checkpoint says is "
                 "below; fits of past iterations, times and the command are told once the run "
                 "ends. The command that began it goes on with it.</p>\n");
    } else if (page->record == NULL) {
        html_put(html, "<p class=\"note\" role=\"note\">There is no run.json beside these factors: "
                       "how they came to be is not known.</p>\n");
    } else if (stopped) {
        html_put(html,
                 strcmp(reason, "time") == 0
                     ? "<p class=\"note\" role=\"note\">This run was stopped by its time limit"
                     : "<p class=\"note\" role=\"note\">This run was stopped by a signal");
        html_put(html, " before it was through. The same command goes on with it.</p>\n");
    } else if (page->checkpoint != NULL) {
        html_put(html,
                 "<p class=\"note\" role=\"note\">There is a checkpoint beside these results: "
                 "another run has begun in the same folder and is not through.</p>\n");
    }
}

static void card(struct html *html, const char *name, const char *value)
{
    html_print(html, "<div><dt>%s</dt><dd>", name);
    html_text(html, value);
    html_put(html, "</dd></div>");
}

static const char *in_words(const char *reason)
{
    static const char *const words[][2] = {{"tol", "tolerance"},
                                           {"iterations", "iterations"},
                                           {"time", "time limit"},
                                           {"signal", "signal"}};

    for (size_t i = 0; reason != NULL && i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(reason, words[i][0]) == 0) {
            return words[i][1];
        }
    }
    return reason;
}

/* "1,000,000 &times; 500", which may go to the next line behind each sign. */
static void lengths_card(struct html *html, const struct slc_run_folder *run)
{
    struct format_text text;

    html_put(html, "<div><dt>Lengths of modes</dt><dd>");
    for (unsigned n = 0; n < run->order; n++) {
        html_print(html, "%s%s", n > 0 ? " &times; " : "", format_count(&text, run->dims[n]));
    }
    html_put(html, "</dd></div>");
}

static void summary(struct html *html, const struct run_page *page)
{
    const json_t *record = page->record;
    const json_t *fit = json_object_get(record, "fit");
    const json_t *heldout = json_object_get(record, "holdout");
    struct format_text text;
    char number[32];

    html_put(html, "<dl class=\"cards\">");
    if (json_is_number(fit)) {
        (void)snprintf(number, sizeof number, "%.6f", json_number_value(fit));
        card(html, "Final fit", number);
    }
    if (json_is_object(heldout)) {
        (void)snprintf(number, sizeof number, "%.4g", page_number(heldout, "rmse"));
        card(html, "Held-out RMSE", number);
    }
    if (page->run->order > 0) {
        (void)snprintf(number, sizeof number, "%" PRIu32, page->run->rank);
        card(html, "Rank", number);
    }
    if (record != NULL) {
        card(html, "Iterations", format_count(&text, page_count(record, "iterations_done")));
        card(html, "Stopped by", in_words(json_string_value(json_object_get(record, "reason"))));
        card(html, "Total time",
             format_seconds(&text, page_number(json_object_get(record, "seconds"), "total")));
        card(html, "Nonzeros",
             format_count(&text, page_count(json_object_get(record, "tensor"), "nnz")));
    }
    if (page->run->order > 0) {
        lengths_card(html, page->run);
    }
    html_put(html, "</dl>\n");
}

static void checkpoint(struct html *html, const struct run_page *page)
{
    const json_t *saved = page->checkpoint;
    const json_t *identity = json_object_get(saved, "identity");
    const char *key;
    json_t *value;

    html_put(html, "<section aria-labelledby=\"checkpoint\"><h2 id=\"checkpoint\">Checkpoint</h2>\n"
                   "<div class=\"two\">");
    page_table(html, "Where the run is");
    page_member(html, "Written", saved, "written");
    page_member(html, "Iterations done", saved, "iterations_done");
    page_member(html, "Fit after them", saved, "fit");
    page_member(html, "Goes on with iteration", saved, "iteration");
    page_member(html, "and mode", saved, "mode");
    page_member(html, "Seconds so far", saved, "seconds");
    page_member(html, "Checkpoints", saved, "checkpoints");
    page_member(html, "Bytes", saved, "file_bytes");
    page_member(html, "File", saved, "path");
    page_table_end(html);
    page_table(html, "What the run is of");
    json_object_foreach((json_t *)(uintptr_t)identity, key, value)
    {
        value_row(html, key, value);
    }
    page_table_end(html);
    html_put(html, "</div></section>\n");
}

/* A word of a command line, as a shell takes it. */
static void shell_word(struct html *html, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-+=./:,%@";

    if (word[0] != '\0' && word[strspn(word, plain)] == '\0') {
        html_text(html, word);
        return;
    }
    html_put(html, "&#39;");
    for (const char *quote; (quote = strchr(word, '\'')) != NULL; word = quote + 1) {
        char piece[256];

        for (size_t left = (size_t)(quote - word), take; left > 0; left -= take, word += take) {
            take = left < sizeof piece - 1 ? left : sizeof piece - 1;
            /* Characters of UTF-8 stay whole. */
            while (take > 1 && take < left && ((unsigned char)word[take] & 0xC0) == 0x80) {
                take--;
            }
            memcpy(piece, word, take);
            piece[take] = '\0';
            html_text(html, piece);
        }
        html_put(html, "&#39;\\&#39;&#39;");
    }
    html_text(html, word);
    html_put(html, "&#39;");
}

static void members_in_details(struct html *html, const char *title, const json_t *object)
{
    const char *key;
    json_t *value;

    html_print(html, "<details><summary>%s</summary>\n", title);
    page_table(html, title);
    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        value_row(html, key, value);
    }
    page_table_end(html);
    html_put(html, "</details>\n");
}

static void again(struct html *html, const struct run_page *page)
{
    const json_t *record = page->record;
    const json_t *tensor = json_object_get(record, "tensor");
    const json_t *versions = json_object_get(record, "versions");
    const json_t *machine = json_object_get(record, "machine");
    json_t *word;
    size_t i;

    html_put(html, "<section aria-labelledby=\"again\"><h2 id=\"again\">To make it again</h2>\n"
                   "<pre tabindex=\"0\" aria-label=\"Command line\"><code>");
    json_array_foreach(json_object_get(record, "command"), i, word)
    {
        html_put(html, i > 0 ? " " : "");
        shell_word(html, json_is_string(word) ? json_string_value(word) : "");
    }
    html_put(html, "</code></pre>\n<div class=\"two\">");
    page_table(html, "Tensor and seed");
    page_member(html, "Seed", json_object_get(record, "options"), "seed");
    page_member(html, "Store", tensor, "path");
    page_member(html, "Sum of its content", tensor, "content_sum");
    page_member(html, "Made from", tensor, "source");
    page_member(html, "Lengths of modes", tensor, "dims");
    page_member(html, "Nonzeros", tensor, "nnz");
    page_member(html, "Norm", tensor, "norm");
    page_member(html, "Values", tensor, "value_type");
    page_table_end(html);
    page_table(html, "Program and machine");
    page_member(html, "sluice", versions, "sluice");
    page_member(html, "Compiler", versions, "compiler");
    page_member(html, "Instruction set", versions, "instruction_set");
    page_member(html, "System", versions, "system");
    page_member(html, "Processors", machine, "processors");
    page_member(html, "Cores", machine, "cores");
    page_member(html, "NUMA nodes", machine, "numa_nodes");
    page_member(html, "Caches, bytes", machine, "cache_bytes");
    page_member(html, "Memory, bytes", machine, "memory_bytes");
    page_member(html, "Finished", record, "finished");
    page_table_end(html);
    html_put(html, "</div>\n");
    members_in_details(html, "All options in force", json_object_get(record, "options"));
    members_in_details(html, "The plan", json_object_get(record, "plan"));
    html_put(html, "</section>\n");
}

enum slc_status
run_page_write(const struct run_page *page, struct slc_output *output, struct slc_error *err)
{
    struct html html = {.output = output, .err = err};

    head(&html, page);
    notes(&html, page);
    summary(&html, page);
    if (page->record != NULL) {
        page_charts(&html, page);
    }
    if (page->checkpoint != NULL) {
        checkpoint(&html, page);
    }
    if (page->run->order > 0) {
        page_components(&html, page);
    }
    if (page->record != NULL) {
        again(&html, page);
    }
    html_put(&html, "</main>\n<footer><p>Written by sluice " SLC_VERSION ".</p></footer>\n"
                    "</body>\n</html>\n");
    return html.status;
}
