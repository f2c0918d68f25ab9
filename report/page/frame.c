/* Writes the frame of a page: style sheet, start and end, cards, and tables of record members. */
#include "report/page/parts.h"

#include "base/version.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Style sheet of the page. It consists of several string literals, because C does not guarantee
 * that one literal may be this long. In both color schemes, the contrast to the background is at
 * least 7 to 1 for text, and more than 3 to 1 for lines and bars. */
static const char *const style[] = {
    ":root{color-scheme:light dark;--ground:#fff;--panel:#f5f7f9;--text:#16202a;--dim:#445260;"
    "--rule:#d3dae1;--mark:#0b63a5;--soft:#5b9bd0;--warn:#fff3d6;--warn-rule:#9a6700}\n",
    "@media(prefers-color-scheme:dark){:root{--ground:#11161b;--panel:#1a2128;--text:#e8edf2;"
    "--dim:#b3bfca;--rule:#38434e;--mark:#7cc0f5;--soft:#4d8ab8;--warn:#33290f;"
    "--warn-rule:#d9a62e}}\n",
    "*{box-sizing:border-box}\n", "html{scroll-behavior:smooth;-webkit-text-size-adjust:100%}\n",
    "@media(prefers-reduced-motion:reduce){html{scroll-behavior:auto}}\n",
    "body{margin:0;background:var(--ground);color:var(--text);"
    "font:1rem/1.5 system-ui,-apple-system,\"Segoe UI\",\"DejaVu Sans\",sans-serif}\n",
    "header,main,footer{max-width:72rem;margin:0 auto;padding:0 1rem}\n",
    "header{padding-top:1.5rem}\n",
    "h1{font-size:1.7rem;line-height:1.2;margin:0 0 .25rem;overflow-wrap:anywhere}\n",
    "h2{font-size:1.25rem;margin:2.5rem 0 .75rem;padding-bottom:.3rem;"
    "border-bottom:1px solid var(--rule)}\n",
    "h3{font-size:1rem;margin:0 0 .5rem}\n", ".two>div>div+div{margin-top:1.25rem}\n",
    "h4{font-size:.9rem;margin:0 0 .35rem;overflow-wrap:anywhere;align-self:end}\n",
    "h4 span{display:block;font-weight:400;color:var(--dim)}\n",
    "p{margin:.5rem 0;overflow-wrap:anywhere}\n",
    ".dim,.none,figcaption,footer{color:var(--dim)}\n", "a{color:var(--mark)}\n",
    ":focus-visible{outline:3px solid var(--mark);outline-offset:2px}\n",
    ".skip{position:absolute;left:-99rem}\n",
    ".skip:focus{left:1rem;top:.5rem;background:var(--ground);padding:.5rem 1rem;z-index:1}\n",
    "nav ul{display:flex;flex-wrap:wrap;gap:.25rem 1.1rem;list-style:none;margin:.9rem 0 0;"
    "padding:0}\n",
    ".note{background:var(--warn);border-left:4px solid var(--warn-rule);padding:.6rem .9rem;"
    "margin:1rem 0;border-radius:0 4px 4px 0}\n",
    ".cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,8rem),1fr));"
    "gap:.75rem;margin:1.25rem 0 0;padding:0}\n",
    ".cards>div{background:var(--panel);border:1px solid var(--rule);border-radius:6px;"
    "padding:.6rem .6rem .6rem .7rem;min-width:0}\n",
    ".cards dt{font-size:.82rem;color:var(--dim)}\n",
    ".cards dd{margin:0;font-size:1.1rem;font-weight:600;font-variant-numeric:tabular-nums;"
    "overflow-wrap:anywhere}\n",
    ".cards>div:last-child{grid-column:1/-1}\n",
    "@media(min-width:40rem){.cards>div:last-child{grid-column:span 2}}\n",
    ".two{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,24rem),1fr));"
    "gap:1rem 1.5rem;align-items:start}\n",
    ".two>*{min-width:0}\n", "figure{margin:0}\n",
    "figcaption{font-size:.9rem;margin-bottom:.25rem}\n",
    "svg{display:block;width:100%;height:auto}\n",
    "svg text{fill:var(--dim);font-size:12px;font-variant-numeric:tabular-nums}\n",
    "svg .name{font-size:12.5px;fill:var(--text)}\n",
    /* Plots shrink in a narrow window, but the numbers in plots do not. */
    "@media screen and (max-width:34rem){svg text,svg .name{font-size:15px}}\n",
    ".end{text-anchor:end}.mid{text-anchor:middle}\n", ".grid{stroke:var(--rule);fill:none}\n",
    ".line{stroke:var(--mark);stroke-width:2;fill:none;stroke-linejoin:round}\n",
    "circle{fill:var(--mark)}.dot{fill:none;stroke:var(--soft);stroke-width:1.2}"
    ".chosen>*{font-weight:700}circle.chosen{stroke:var(--ground);stroke-width:1.5}\n",
    ".spark{height:44px;background:var(--panel);border:1px solid var(--rule);border-radius:3px}\n",
    ".spark path{vector-effect:non-scaling-stroke}\n",
    ".spark .bars{vector-effect:none;stroke:var(--mark);fill:none}\n",
    ".area{fill:var(--soft);stroke:var(--mark);stroke-width:1}\n",
    ".zero{stroke:var(--dim);stroke-dasharray:2 3;fill:none}\n",
    "table{border-collapse:collapse;width:100%;font-size:.92rem}\n",
    "th,td{text-align:left;padding:.22rem .75rem .22rem 0;vertical-align:top;"
    "border-bottom:1px solid var(--rule)}\n",
    "th{font-weight:500}\n", "thead th{color:var(--dim);font-size:.85rem}\n",
    "td{overflow-wrap:anywhere}\n", "td[dir]{text-align:left}\n",
    ".n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}\n",
    "th.n{padding-left:.5rem}.n+:not(.n){padding-left:.75rem}\n",
    ".bar{width:45%;padding-right:0}\n",
    ".bar span{display:block;margin-top:.25rem;height:.8rem;min-width:1px;background:var(--soft);"
    "border-radius:0 2px 2px 0;print-color-adjust:exact;-webkit-print-color-adjust:exact}\n",
    ".wide td,.wide tbody th{white-space:nowrap}.wide thead th{white-space:normal;"
    "vertical-align:bottom}\n",
    /* A shadow marks each end to which a region can be scrolled further. */
    ".scroll{overflow-x:auto;max-height:26rem;overflow-y:auto;"
    "background:linear-gradient(var(--ground) 40%,transparent) top/100% 2rem no-repeat local,"
    "linear-gradient(transparent,var(--ground) 60%) bottom/100% 2rem no-repeat local,"
    "linear-gradient(var(--rule),transparent) top/100% .7rem no-repeat,"
    "linear-gradient(transparent,var(--rule)) bottom/100% .7rem no-repeat}\n",
    "pre{background:var(--panel);border:1px solid var(--rule);border-radius:6px;padding:.75rem;"
    "margin:.5rem 0;white-space:pre-wrap;overflow-wrap:anywhere;font-size:.9rem}\n",
    "code,pre{font-family:ui-monospace,\"DejaVu Sans Mono\",monospace}\n",
    "summary{cursor:pointer;padding:.35rem 0;font-weight:600}\n", "details{margin:.4rem 0}\n",
    ".component{border:1px solid var(--rule);border-radius:6px;padding:.1rem .9rem}\n",
    ".modes{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,15rem),1fr));"
    "gap:0 1.5rem;padding:.3rem 0 .8rem}\n",
    /* Headings, pictures and tables of adjacent modes start at the same height. */
    ".modes>*{min-width:0;display:grid;grid-template-rows:subgrid;grid-row:span 3;"
    "padding-bottom:1rem}\n",
    ".modes table{margin-top:.35rem;font-size:.88rem;align-self:start}\n",
    "footer{padding-top:2rem;padding-bottom:2rem;font-size:.88rem}\n",
    "@media print{:root{--ground:#fff;--panel:#fff;--text:#000;--dim:#333;--rule:#bbb;"
    "--mark:#0b4f86;--soft:#7fb0d6;--warn:#fff;color-scheme:light}"
    ":root{font-size:11px}nav,.skip{display:none}.scroll{max-height:none;overflow:visible;"
    "background:none}"
    ".two{grid-template-columns:1fr 1fr}h2{margin-top:1.5rem}th,td{padding:.1rem .6rem .1rem 0}"
    ".modes{grid-template-columns:repeat(auto-fit,minmax(11rem,1fr));gap:0 1rem}"
    "figure,tr,.component,.cards>div,[aria-labelledby=ranks]{break-inside:avoid}h2,h3,summary{"
    "break-after:avoid}"
    "details::details-content{content-visibility:visible;display:block}}\n",
    NULL};

double slc_page_number(const json_t *object, const char *name)
{
    const double number = json_number_value(json_object_get(object, name));

    return isfinite(number) && number > 0 ? number : 0;
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

void slc_page_header_cell(struct slc_html *html, const char *name, bool number)
{
    slc_html_put(html, number ? "<th scope=\"col\" class=\"n\">" : "<th scope=\"col\">");
    slc_html_text(html, name);
    slc_html_put(html, "</th>");
}

void slc_page_number_cell(struct slc_html *html, const char *format, double number)
{
    char text[48] = "-";

    if (isfinite(number)) {
        (void)snprintf(text, sizeof text, format, number);
    }
    slc_html_print(html, "<td class=\"n\">%s</td>", text);
}

/* Writes a value as text. A list or object inside another list or object is written as "..". */
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
    for (const char *const *piece = style; *piece != NULL; piece++) {
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

void slc_page_section(struct slc_html *html, const char *id, const char *title)
{
    slc_html_print(html, "<section aria-labelledby=\"%s\"><h2 id=\"%s\">%s</h2>\n", id, id, title);
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
