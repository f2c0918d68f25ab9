/* Writes sections of a page: weights, and the columns and top rows of each component. */
#include "base/text/format.h"
#include "report/page/parts.h"
#include "report/page/plot.h"
#include "report/page/run_page.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Number of components that are expanded when the page loads. */
enum { OPEN_COMPONENTS = 3 };
/* Maximum number of characters of a name in a table. A character has up to four bytes. */
enum { NAME_CHARACTERS = 60 };

static void weights(struct slc_html *html, const struct slc_run_page *page)
{
    const struct slc_run_folder *run = page->run;
    const double heaviest = page->component_count > 0 ? fabs(run->lambda[page->components[0]]) : 0;

    slc_page_section(html, "weights", "Weights");
    if (!run->weighted) {
        slc_html_put(html, "<p>There is no lambda.npy: all weights are 1.</p>\n");
    }
    slc_page_table(html, "Weights of the components");
    for (uint32_t i = 0; i < page->component_count; i++) {
        const uint32_t r = page->components[i];
        char name[32];
        char value[32];

        (void)snprintf(name, sizeof name, "Component %" PRIu32, r + 1);
        (void)snprintf(value, sizeof value, "%.6g", run->lambda[r]);
        slc_html_bar(html, name, value, slc_ratio(fabs(run->lambda[r]), heaviest));
    }
    slc_page_table_end(html);
    slc_html_put(html, "</section>\n");
}

/* Writes the name of an index. A long name is cut, so that it fits in a table. */
static void name(struct slc_html *html, struct slc_run_names *names, unsigned n, uint64_t index)
{
    char text[SLC_NAME_TEXT_BYTES];
    size_t bytes = 0;

    if (html->status != SLC_OK) {
        return;
    }
    html->status = slc_run_names_text(names, n, index, text, html->err);
    /* A right-to-left name keeps its own direction. */
    slc_html_put(html, "<td dir=\"auto\">");
    for (unsigned shown = 0; text[bytes] != '\0'; bytes++) {
        shown += ((unsigned char)text[bytes] & 0xc0) != 0x80;
        if (shown > NAME_CHARACTERS) {
            break;
        }
    }
    if (text[bytes] != '\0') {
        text[bytes] = '\0';
        slc_html_text(html, text);
        slc_html_put(html, "&hellip;");
    } else {
        slc_html_text(html, text);
    }
    slc_html_put(html, "</td>");
}

static void mode(struct slc_html *html, const struct slc_run_page *page, uint32_t at, unsigned n)
{
    const uint64_t count = page->row_counts[n];
    const struct slc_top_row *rows = page->rows[n] + at * count;
    const bool named = page->names->names[n] != NULL;
    struct slc_format_text length;

    slc_html_print(html, "<div><h4>Mode %u", n + 1);
    if (page->names->titles[n][0] != '\0') {
        slc_html_put(html, ": ");
        slc_html_text(html, page->names->titles[n]);
    }
    slc_html_print(html, "<span>%s row%s</span></h4>",
                   slc_format_count(&length, page->run->dims[n]),
                   page->run->dims[n] == 1 ? "" : "s");
    slc_html_spark(html, page->bands[n] + (uint64_t)at * page->band_counts[n], page->band_counts[n],
                   page->run->dims[n]);
    slc_html_put(html, "<table><thead><tr><th scope=\"col\">Index</th>");
    if (named) {
        slc_html_put(html, "<th scope=\"col\">Name</th>");
    }
    slc_html_put(html, "<th scope=\"col\" class=\"n\">Value</th></tr></thead><tbody>");
    for (uint64_t k = 0; k < count; k++) {
        slc_html_print(html, "<tr><td>%" PRIu64 "</td>", rows[k].row + 1);
        if (named) {
            name(html, page->names, n, rows[k].row);
        }
        slc_html_print(html, "<td class=\"n\">%.4g</td></tr>", rows[k].value);
    }
    slc_html_put(html, "</tbody></table></div>\n");
}

void slc_page_components(struct slc_html *html, const struct slc_run_page *page)
{
    const struct slc_run_folder *run = page->run;

    weights(html, page);
    slc_page_section(html, "components", "Components");
    slc_html_put(html,
                 "<p>The heaviest first. A picture shows a column of the factor from its "
                 "first to its last row; the broken line is zero. Below the picture are the rows "
                 "with the largest absolute values. Indices count from 1.</p>\n");
    if (page->component_count < run->rank) {
        slc_html_print(html,
                       "<p>%" PRIu32 " of %" PRIu32 " components are shown; request more to see "
                       "them.</p>\n",
                       page->component_count, run->rank);
    }
    for (uint32_t i = 0; i < page->component_count; i++) {
        const uint32_t r = page->components[i];

        slc_html_print(html,
                       "<details class=\"component\"%s><summary>Component %" PRIu32
                       ", weight %.6g</summary>\n<div class=\"modes\">",
                       i < OPEN_COMPONENTS ? " open" : "", r + 1, run->lambda[r]);
        for (unsigned n = 0; n < run->order; n++) {
            mode(html, page, i, n);
        }
        slc_html_put(html, "</div></details>\n");
    }
    slc_html_put(html, "</section>\n");
}
