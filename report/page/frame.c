/* See parts.h: what pages begin and end with, and how members of records are shown. */
#include "report/page/parts.h"

#include "base/version.h"
#include "report/page/style.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

double slc_page_number(const json_t *object, const char *name)
{
    const double number = json_number_value(json_object_get(object, name));

    return isfinite(number) && number > 0 ? number : 0;
}

uint64_t slc_page_count(const json_t *object, const char *name)
{
    const json_int_t number = json_integer_value(json_object_get(object, name));

    return number > 0 ? (uint64_t)number : 0;
}

void slc_page_table(struct slc_html *html, const char *name)
{
    slc_html_print(html,
                   "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"%s\"><table>"
                   "<tbody>\n",
                   name);
}

void slc_page_row(struct slc_html *html, const char *name, const char *value)
{
    slc_html_put(html, "<tr><th scope=\"row\">");
    slc_html_text(html, name);
    slc_html_put(html, "</th><td>");
    slc_html_text(html, value);
    slc_html_put(html, "</td></tr>\n");
}

void slc_page_table_end(struct slc_html *html)
{
    slc_html_put(html, "</tbody></table></div>\n");
}

/* A value in words; lists and objects one level deep, which is all that there is. */
static void show_value(struct slc_html *html, const json_t *value, bool within)
{
    const char *key;
    json_t *member;
    size_t i;

    if (json_is_string(value)) {
        slc_html_text(html, json_string_value(value));
    } else if (json_is_integer(value)) {
        slc_html_print(html, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    } else if (json_is_real(value)) {
        slc_html_print(html, "%.10g", json_real_value(value));
    } else if (json_is_boolean(value)) {
        slc_html_put(html, json_is_true(value) ? "yes" : "no");
    } else if (json_is_array(value) && !within) {
        json_array_foreach(value, i, member)
        {
            slc_html_put(html, i > 0 ? ", " : "");
            show_value(html, member, true);
        }
    } else if (json_is_object(value) && !within) {
        bool first = true;

        json_object_foreach((json_t *)(uintptr_t)value, key, member)
        {
            slc_html_put(html, first ? "" : "; ");
            slc_html_text(html, key);
            slc_html_put(html, " ");
            show_value(html, member, true);
            first = false;
        }
    } else {
        slc_html_put(html, json_is_null(value) ? "none" : "..");
    }
}

void slc_page_value(struct slc_html *html, const char *label, const json_t *value)
{
    slc_html_put(html, "<tr><th scope=\"row\">");
    slc_html_text(html, label);
    slc_html_put(html, "</th><td>");
    show_value(html, value, false);
    slc_html_put(html, "</td></tr>\n");
}

void slc_page_member(struct slc_html *html,
                     const char *label,
                     const json_t *object,
                     const char *name)
{
    const json_t *value = json_object_get(object, name);

    if (value != NULL) {
        slc_page_value(html, label, value);
    }
}

const char *slc_page_short_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

void slc_page_begin(struct slc_html *html, const char *title)
{
    slc_html_put(html, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                       "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                       "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                       "style-src 'unsafe-inline'; img-src data:\">\n"
                       "<link rel=\"icon\" href=\"data:,\">\n<title>");
    slc_html_text(html, title);
    slc_html_put(html, " - sluice</title>\n<style>\n");
    for (const char *const *piece = slc_page_style; *piece != NULL; piece++) {
        slc_html_put(html, *piece);
    }
    slc_html_put(html, "</style>\n</head>\n<body>\n<a class=\"skip\" href=\"#main\">Skip to the "
                       "content</a>\n<header>\n<h1>");
    slc_html_text(html, title);
    slc_html_put(html, "</h1>\n<p class=\"dim\">");
}

void slc_page_nav(struct slc_html *html)
{
    slc_html_put(html, "</p>\n<nav aria-label=\"Sections\"><ul>");
}

void slc_page_nav_item(struct slc_html *html, const char *id, const char *name)
{
    slc_html_print(html, "<li><a href=\"#%s\">%s</a></li>", id, name);
}

void slc_page_main(struct slc_html *html)
{
    slc_html_put(html, "</ul></nav>\n</header>\n<main id=\"main\" tabindex=\"-1\">\n");
}

void slc_page_end(struct slc_html *html)
{
    slc_html_put(html, "</main>\n<footer><p>Written by sluice " SLC_VERSION ".</p></footer>\n"
                       "</body>\n</html>\n");
}

void slc_page_card(struct slc_html *html, const char *name, const char *value)
{
    slc_html_print(html, "<div><dt>%s</dt><dd>", name);
    slc_html_text(html, value);
    slc_html_put(html, "</dd></div>");
}

void slc_page_note(struct slc_html *html, const char *text)
{
    slc_html_put(html, "<p class=\"note\" role=\"note\">");
    slc_html_put(html, text);
    slc_html_put(html, "</p>\n");
}

const char *slc_page_reason(const char *reason)
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

void slc_page_shortest(struct slc_html *html, double number)
{
    char text[32];

    for (int digits = 1; digits <= 17; digits++) {
        (void)snprintf(text, sizeof text, "%.*g", digits, number);
        if (strtod(text, NULL) == number) {
            break;
        }
    }
    slc_html_text(html, text);
}
