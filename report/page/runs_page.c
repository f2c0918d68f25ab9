#include "report/page/runs_page.h"

#include "report/page/parts.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void head(struct slc_html *html, const struct slc_runs_page *page)
{
    slc_page_begin(html, page->title);
    slc_html_text(html, page->intro);
    slc_page_nav(html);
    slc_page_nav_item(html, "runs", "Runs");
    if (page->comparison != NULL) {
        slc_page_nav_item(html, "components", "Components");
    }
    slc_page_main(html);
}

/* Writes a path as the target of a link. Bytes with a meaning in URLs are escaped. */
static void link_target(struct slc_html *html, const char *path)
{
    for (const char *at = path; *at != '\0'; at++) {
        const bool plain = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') ||
                           (*at >= '0' && *at <= '9') || strchr("-._~/", *at) != NULL;

        slc_html_print(html, plain ? "%c" : "%%%02X", plain ? *at : (unsigned char)*at);
    }
}

static bool any_heldout(const struct slc_runs_page *page)
{
    bool any = false;

    for (unsigned i = 0; i < page->count; i++) {
        any = any || isfinite(page->runs[i].heldout_rmse);
    }
    return any;
}

static void run_row(struct slc_html *html, const struct slc_runs_page *page, unsigned i)
{
    const struct slc_runs_page_run *run = &page->runs[i];
    struct slc_format_text text;

    slc_html_put(html, "<tr><th scope=\"row\">");
    if (run->link != NULL) {
        slc_html_put(html, "<a href=\"");
        link_target(html, run->link);
        slc_html_put(html, "\">");
    }
    slc_html_text(html, run->name);
    slc_html_print(html, "%s</th><td class=\"n\">%" PRIu32 "</td>", run->link != NULL ? "</a>" : "",
                   run->rank);
    slc_page_number_cell(html, "%.6f", run->fit);
    if (any_heldout(page)) {
        slc_page_number_cell(html, "%.4g", run->heldout_rmse);
    }
    if (page->comparison != NULL) {
        const struct slc_run_match *match = page->comparison->run[i]->match;

        slc_page_number_cell(html, "%.4f", match != NULL ? match->score : (double)NAN);
    }
    slc_html_print(html, "<td class=\"n\">%" PRIu32 "</td><td>", run->iterations);
    slc_html_text(html, slc_page_reason(run->reason));
    slc_html_print(html, "</td><td class=\"n\">%s</td>",
                   isfinite(run->seconds)
                       ? slc_format_seconds(&text, fmin(fmax(0, run->seconds), 1e15))
                       : "-");
    for (size_t k = 0; k < json_array_size(page->differ); k++) {
        const char *name = json_string_value(json_array_get(page->differ, k));
        char *value = json_dumps(json_object_get(run->options, name),
                                 JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));

        slc_html_put(html, "<td>");
        slc_html_text(html, value != NULL ? value : "-");
        slc_html_put(html, "</td>");
        free(value);
    }
    slc_html_put(html, "</tr>\n");
}

static void runs(struct slc_html *html, const struct slc_runs_page *page)
{
    slc_page_section(html, "runs", "Runs");
    slc_html_put(html, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Runs\">"
                       "<table class=\"wide\"><thead><tr>");
    slc_page_header_cell(html, "Run", false);
    slc_page_header_cell(html, "Rank", true);
    slc_page_header_cell(html, "Fit", true);
    if (any_heldout(page)) {
        slc_page_header_cell(html, "Held-out RMSE", true);
    }
    if (page->comparison != NULL) {
        slc_page_header_cell(html, "Match with the first", true);
    }
    slc_page_header_cell(html, "Iterations", true);
    slc_page_header_cell(html, "Stopped by", false);
    slc_page_header_cell(html, "Time", true);
    for (size_t k = 0; k < json_array_size(page->differ); k++) {
        slc_html_put(html, "<th scope=\"col\"><code>--");
        slc_html_text(html, json_string_value(json_array_get(page->differ, k)));
        slc_html_put(html, "</code></th>");
    }
    slc_html_put(html, "</tr></thead><tbody>\n");
    for (unsigned i = 0; i < page->count; i++) {
        run_row(html, page, i);
    }
    slc_page_table_end(html);
    if (page->skipped > 0) {
        slc_html_print(html, "<p>%u more %s a run.json that cannot be read.</p>\n", page->skipped,
                       page->skipped == 1 ? "folder has" : "folders have");
    }
    slc_html_put(html, "</section>\n");
}

/* Writes the top rows of a component in a mode: names, or indices counted from 1. */
static enum slc_status top_rows(struct slc_html *html,
                                struct slc_compared_run *run,
                                uint32_t component,
                                unsigned mode,
                                struct slc_error *err)
{
    char name[SLC_NAME_TEXT_BYTES];

    slc_html_put(html, "<td dir=\"auto\">");
    for (uint64_t k = 0; k < run->top->counts[mode]; k++) {
        SLC_TRY(slc_compared_top_text(run, component, mode, k, name, err));
        slc_html_put(html, k > 0 ? ", " : "");
        slc_html_text(html, name);
    }
    slc_html_put(html, "</td>");
    return SLC_OK;
}

/* Writes the row of a component: number, weight, and top rows of each mode. */
static enum slc_status component_row(struct slc_html *html,
                                     const struct slc_runs_page_run *shown,
                                     struct slc_compared_run *run,
                                     uint32_t component,
                                     double similarity,
                                     struct slc_error *err)
{
    slc_html_put(html, "<tr><th scope=\"row\">");
    slc_html_text(html, shown->name);
    slc_html_print(html, "</th><td class=\"n\">%" PRIu32 "</td>", component + 1);
    slc_page_number_cell(html, "%.6g", run->run.lambda[component]);
    slc_page_number_cell(html, "%.4f", similarity);
    for (unsigned n = 0; n < run->run.order; n++) {
        SLC_TRY(top_rows(html, run, component, n, err));
    }
    slc_html_put(html, "</tr>\n");
    return SLC_OK;
}

/* Writes the matched components of a run and of the first run. */
static enum slc_status matched_components(struct slc_html *html,
                                          const struct slc_runs_page *page,
                                          unsigned number,
                                          struct slc_error *err)
{
    struct slc_compared_run *first = page->comparison->run[0];
    struct slc_compared_run *other = page->comparison->run[number];
    const struct slc_run_names *names = slc_compared_names(first);

    slc_html_put(html, "<h3>");
    slc_html_text(html, page->runs[number].name);
    slc_html_put(html, " and ");
    slc_html_text(html, page->runs[0].name);
    slc_html_print(html, ": factor match score %.4f</h3>\n", other->match->score);
    slc_html_put(html, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
                       "aria-label=\"Matched components\"><table class=\"wide\"><thead><tr>");
    slc_page_header_cell(html, "Run", false);
    slc_page_header_cell(html, "Component", true);
    slc_page_header_cell(html, "Weight", true);
    slc_page_header_cell(html, "Similarity", true);
    for (unsigned n = 0; n < first->run.order; n++) {
        char number_text[16];

        (void)snprintf(number_text, sizeof number_text, "Mode %u", n + 1);
        slc_page_header_cell(html, names->titles[n][0] != '\0' ? names->titles[n] : number_text,
                             false);
    }
    slc_html_put(html, "</tr></thead><tbody>\n");
    for (uint32_t p = 0; p < other->match->count; p++) {
        SLC_TRY(component_row(html, &page->runs[0], first, other->match->pair[p].one, (double)NAN,
                              err));
        SLC_TRY(component_row(html, &page->runs[number], other, other->match->pair[p].two,
                              other->match->pair[p].similarity, err));
    }
    slc_page_table_end(html);
    return SLC_OK;
}

enum slc_status slc_runs_page_write(const struct slc_runs_page *page,
                                    struct slc_output *output,
                                    struct slc_error *err)
{
    struct slc_html html = {.output = output, .err = err};

    head(&html, page);
    runs(&html, page);
    if (page->comparison != NULL) {
        slc_page_section(&html, "components", "Matched components");
        for (unsigned i = 1; i < page->count; i++) {
            SLC_TRY(matched_components(&html, page, i, err));
        }
        slc_html_put(&html, "</section>\n");
    }
    slc_page_end(&html);
    return html.status;
}
