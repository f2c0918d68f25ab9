/* Writes the page about a run: heading, notes, key figures and checkpoint. */
#include "report/page/run_page.h"

#include "report/page/parts.h"
#include "storage/manifest/json_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *page_name(const struct slc_run_page *page)
{
    const char *store =
        json_string_value(json_object_get(json_object_get(page->record, "tensor"), "path"));

    return slc_page_short_name(page->folder != NULL ? page->folder
                               : store != NULL      ? store
                                                    : "A model");
}

static void head(struct slc_html *html, const struct slc_run_page *page)
{
    slc_page_begin(html, page_name(page));
    slc_html_put(html, page->record != NULL       ? "A factorization by sluice of "
                       : page->checkpoint != NULL ? "An unfinished factorization by sluice"
                                                  : "Factors without a run record");
    slc_html_text(
        html, json_string_value(json_object_get(json_object_get(page->record, "tensor"), "path")));
    slc_page_nav(html);
    if (page->record != NULL) {
        slc_page_nav_item(html, "fit", "Fit");
        slc_page_nav_item(html, "time", "Time");
        slc_page_nav_item(html, "reading", "Reading");
        slc_page_nav_item(html, "memory", "Memory");
    }
    if (page->checkpoint != NULL) {
        slc_page_nav_item(html, "checkpoint", "Checkpoint");
    }
    if (page->run->order > 0) {
        slc_page_nav_item(html, "weights", "Weights");
        slc_page_nav_item(html, "components", "Components");
    }
    if (page->record != NULL) {
        slc_page_nav_item(html, "again", "Reproduce");
    }
    slc_page_main(html);
}

/* Writes a line if the run was resumed, because its times then include earlier runs. */
static void resumed(struct slc_html *html, const json_t *checkpoint)
{
    const uint64_t times = slc_json_count(checkpoint, "resumes");
    struct slc_format_text text;

    if (times > 0) {
        slc_html_put(html,
                     "<p class=\"dim\">The run was interrupted and resumed from a checkpoint ");
        slc_html_print(html, "%s time%s; fits and times include all its parts.</p>\n",
                       slc_format_count(&text, times), times == 1 ? "" : "s");
    }
}

/* Writes the notes of the record about the result (report/run_notes.h). */
static void result_notes(struct slc_html *html, const json_t *record)
{
    const json_t *texts = json_object_get(json_object_get(record, "diagnosis"), "notes");

    for (size_t i = 0; i < json_array_size(texts); i++) {
        slc_html_put(html, "<p class=\"note\" role=\"note\">");
        slc_html_text(html, json_string_value(json_array_get(texts, i)));
        slc_html_put(html, ".</p>\n");
    }
}

/* Writes notes about the result, and notes that state which data is missing, and why. */
static void notes(struct slc_html *html, const struct slc_run_page *page)
{
    const char *reason = json_string_value(json_object_get(page->record, "reason"));
    const bool stopped =
        reason != NULL && (strcmp(reason, "time") == 0 || strcmp(reason, "signal") == 0);

    if (page->record == NULL && page->checkpoint != NULL) {
        slc_page_note(html,
                      "This run has stopped or is still running: it has written a checkpoint, "
                      "but no record yet. The checkpoint is described below; the fits of "
                      "past iterations, times and the command are shown once the run ends. "
                      "The same command or call resumes the run.");
    } else if (page->record == NULL) {
        slc_page_note(html, "There is no run.json next to these factors, so their origin is not "
                            "known.");
    } else if (stopped) {
        slc_html_put(html, "<p class=\"note\" role=\"note\">This run was stopped by ");
        slc_html_put(html, strcmp(reason, "time") == 0 ? "its time limit" : "a signal");
        slc_html_put(html, " before it was complete. The same ");
        slc_html_put(html, slc_page_called(page->record) ? "call" : "command");
        slc_html_put(html, " resumes it.</p>\n");
    } else if (page->checkpoint != NULL) {
        slc_page_note(html,
                      "There is a checkpoint next to these results: another run was started in "
                      "the same folder and is not complete.");
    }
    result_notes(html, page->record);
    resumed(html, json_object_get(page->record, "checkpoint"));
}

/* Writes the card of mode sizes, such as "1,000,000 &times; 500", with possible line breaks after
 * each sign. */
static void lengths_card(struct slc_html *html, const struct slc_run_folder *run)
{
    struct slc_format_text text;

    slc_html_put(html, "<div><dt>Mode sizes</dt><dd>");
    for (unsigned n = 0; n < run->order; n++) {
        slc_html_print(html, "%s%s", n > 0 ? " &times; " : "",
                       slc_format_count(&text, run->dims[n]));
    }
    slc_html_put(html, "</dd></div>");
}

static void summary(struct slc_html *html, const struct slc_run_page *page)
{
    const json_t *record = page->record;
    const json_t *fit = json_object_get(record, "fit");
    const json_t *heldout = json_object_get(record, "holdout");
    struct slc_format_text text;
    char number[32];

    slc_html_put(html, "<dl class=\"cards\">");
    if (json_is_number(fit)) {
        (void)snprintf(number, sizeof number, "%.6f", json_number_value(fit));
        slc_page_card(html, "Final fit", number);
    }
    if (json_is_object(heldout)) {
        (void)snprintf(number, sizeof number, "%.4g", slc_page_number(heldout, "rmse"));
        slc_page_card(html, "Held-out RMSE", number);
    }
    if (page->run->order > 0) {
        (void)snprintf(number, sizeof number, "%" PRIu32, page->run->rank);
        slc_page_card(html, "Rank", number);
    }
    if (record != NULL) {
        slc_page_card(html, "Iterations",
                      slc_format_count(&text, slc_json_count(record, "iterations_done")));
        slc_page_card(html, "Stopped by",
                      slc_page_reason(json_string_value(json_object_get(record, "reason"))));
        slc_page_card(html, "Total time",
                      slc_format_seconds(
                          &text, slc_page_number(json_object_get(record, "seconds"), "total")));
        slc_page_card(
            html, "Nonzeros",
            slc_format_count(&text, slc_json_count(json_object_get(record, "tensor"), "nnz")));
    }
    if (page->run->order > 0) {
        lengths_card(html, page->run);
    }
    slc_html_put(html, "</dl>\n");
}

static void checkpoint(struct slc_html *html, const struct slc_run_page *page)
{
    const json_t *saved = page->checkpoint;
    struct slc_format_text text;
    const json_t *identity = json_object_get(saved, "identity");
    const char *key;
    json_t *value;

    slc_page_section(html, "checkpoint", "Checkpoint");
    slc_html_put(html, "<div class=\"two\">");
    slc_page_table(html, "State of the run");
    slc_page_member(html, "Written", saved, "written");
    slc_page_member(html, "Iterations done", saved, "iterations_done");
    slc_page_member(html, "Fit after them", saved, "fit");
    slc_page_member(html, "Resumes in iteration", saved, "iteration");
    slc_page_member(html, "and mode", saved, "mode");
    slc_page_row(html, "Time so far", slc_format_seconds(&text, slc_page_number(saved, "seconds")));
    slc_page_member(html, "Checkpoints", saved, "checkpoints");
    slc_page_row(html, "Size", slc_format_data(&text, slc_page_number(saved, "file_bytes")));
    slc_page_member(html, "File", saved, "path");
    slc_page_table_end(html);
    slc_page_table(html, "Identity of the run");
    json_object_foreach((json_t *)(uintptr_t)identity, key, value)
    {
        slc_page_value(html, key, value);
    }
    slc_page_table_end(html);
    slc_html_put(html, "</div></section>\n");
}

enum slc_status slc_run_page_write(const struct slc_run_page *page,
                                   struct slc_output *output,
                                   struct slc_error *err)
{
    struct slc_html html = {.output = output, .err = err};

    head(&html, page);
    notes(&html, page);
    summary(&html, page);
    if (page->record != NULL) {
        slc_page_charts(&html, page);
    }
    if (page->checkpoint != NULL) {
        checkpoint(&html, page);
    }
    if (page->run->order > 0) {
        slc_page_components(&html, page);
    }
    if (page->record != NULL) {
        slc_page_again(&html, page->record);
    }
    slc_page_end(&html);
    return html.status;
}
