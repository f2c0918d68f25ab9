/* Writes the page about a sweep. A rank is shown with its comparison from the record. In an
 * incomplete sweep, a rank without a comparison is shown with a list of its runs. */
#include "report/page/sweep_page.h"

#include "base/memory/memory.h"
#include "report/page/parts.h"
#include "report/page/plot.h"
#include "sweep/sweep_compare.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    /* maximum numbers of points of all plots and of rows of the table of runs, to limit the size of
     * a page */
    ALL_DOTS = 2000,
    ALL_ROWS = 1000
};

/* Summary of the runs of a rank. */
struct rank_summary {
    uint32_t rank;
    unsigned first, runs; /* first run in the list of runs, and number of runs */
    const struct slc_sweep_run *best;
    double lowest;                         /* smallest fit */
    const struct slc_sweep_rank *compared; /* NULL if the rank is not yet compared */
};

struct sweep_summary {
    const struct slc_sweep_record *record;
    struct slc_sweep_suggestion suggestion;
    unsigned count;
    /* index of the suggested rank or, if none is suggested, of the rank with the best run; `count`
     * if neither is known */
    size_t chosen;
    bool heldout;
    bool by_heldout; /* see slc_sweep_record_by_heldout */
    struct rank_summary ranks[SLC_SWEEP_RANKS_MAX];
    uint32_t labels[SLC_SWEEP_RANKS_MAX];
    double line[SLC_SWEEP_RANKS_MAX];
    struct slc_html_dot dots[ALL_DOTS];
};

static const struct slc_sweep_rank *find_compared(const struct slc_sweep_record *record,
                                                  uint32_t rank)
{
    for (unsigned i = 0; i < record->rank_count; i++) {
        if (record->ranks[i].rank == rank) {
            return &record->ranks[i];
        }
    }
    return NULL;
}

/* Collects the ranks of the runs. The runs are sorted by rank. A forged record may have more ranks
 * than a sweep can have; the excess ranks are omitted. */
static void collect(struct sweep_summary *summary)
{
    const struct slc_sweep_record *record = summary->record;

    for (unsigned i = 0; i < record->run_count; i++) {
        const struct slc_sweep_run *run = &record->runs[i];
        struct rank_summary *rank = &summary->ranks[summary->count > 0 ? summary->count - 1 : 0];

        if (summary->count == 0 || rank->rank != run->rank) {
            if (summary->count == SLC_SWEEP_RANKS_MAX) {
                break;
            }
            rank = &summary->ranks[summary->count];
            *rank = (struct rank_summary){.rank = run->rank,
                                          .first = i,
                                          .best = slc_sweep_record_best(record, run->rank),
                                          .lowest = run->fit,
                                          .compared = find_compared(record, run->rank)};
            summary->labels[summary->count++] = run->rank;
        }
        rank->runs++;
        rank->lowest = fmin(rank->lowest, run->fit);
        summary->heldout = summary->heldout || isfinite(run->heldout_rmse);
    }
    summary->by_heldout = slc_sweep_record_by_heldout(record);
    summary->chosen = summary->count;
    if (summary->count > 0) {
        slc_sweep_suggest(record, &summary->suggestion);
    }
    for (unsigned i = 0; i < summary->count; i++) {
        if (summary->ranks[i].rank == summary->suggestion.best_rank) {
            summary->chosen = i;
        }
    }
}

static void head(struct slc_html *html, const struct slc_sweep_page *page)
{
    slc_page_begin(html, slc_page_short_name(page->folder));
    slc_html_put(html, "A sweep over ranks and starts by sluice, of ");
    slc_html_text(html,
                  page->record->store != NULL ? json_string_value(page->record->store) : "a store");
    slc_page_nav(html);
    slc_page_nav_item(html, "which", "Which rank");
    if (page->record->run_count > 0) {
        slc_page_nav_item(html, "plots", "By rank");
        slc_page_nav_item(html, "ranks", "Ranks");
        slc_page_nav_item(html, "runs", "Runs");
    }
    slc_page_nav_item(html, "again", "Reproduce");
    slc_page_main(html);
    if (!page->record->complete) {
        slc_page_note(html, "This sweep is not complete; the page shows the completed runs. The "
                            "same command or call continues the sweep.");
    }
}

/* Writes a cell with a core consistency. All values below 0 mean that the model is not trilinear.
 */
static void consistency_cell(struct slc_html *html, double percent)
{
    if (percent < 0.0) {
        slc_html_put(html, "<td class=\"n\">&lt;&nbsp;0&nbsp;%</td>");
    } else {
        slc_page_number_cell(html, "%.1f&nbsp;%%", percent);
    }
}

static void cards(struct slc_html *html, const struct sweep_summary *summary)
{
    struct slc_format_text text;
    char value[64];
    double seconds = 0;

    slc_html_put(html, "<dl class=\"cards\">");
    (void)snprintf(value, sizeof value, "%" PRIu32, summary->suggestion.rank);
    slc_page_card(html, "Suggested rank", summary->suggestion.rank > 0 ? value : "none");
    if (summary->chosen < summary->count) {
        (void)snprintf(value, sizeof value, "%.6f", summary->ranks[summary->chosen].best->fit);
        slc_page_card(html, "Fit of the best run", value);
    }
    slc_page_card(html, "Ranks", slc_format_count(&text, summary->count));
    slc_page_card(html, "Runs", slc_format_count(&text, summary->record->run_count));
    for (unsigned i = 0; i < summary->record->run_count; i++) {
        seconds += fmax(0, summary->record->runs[i].seconds);
    }
    slc_page_card(html, "Time of all runs", slc_format_seconds(&text, fmin(seconds, 1e15)));
    slc_page_card(html, "Best run in", summary->suggestion.folder);
    slc_html_put(html, "</dl>\n");
}

/* Writes the suggestion and an explanation of its measures. */
static void which(struct slc_html *html, const struct sweep_summary *summary)
{
    const struct slc_sweep_suggestion *suggestion = &summary->suggestion;
    const struct rank_summary *rank = &summary->ranks[summary->chosen];

    slc_page_section(html, "which", "Which rank");
    if (summary->count == 0) {
        slc_html_put(html, "<p>No run is complete yet.</p></section>\n");
        return;
    }
    if (suggestion->rank > 0) {
        slc_html_print(html,
                       "<p><strong>Rank %" PRIu32 " is suggested</strong>: ", suggestion->rank);
    } else {
        slc_html_put(html, "<p><strong>No rank is suggested</strong>: ");
    }
    slc_html_text(html, suggestion->why);
    slc_html_put(html, ".</p>\n");
    if (summary->chosen < summary->count) {
        slc_html_print(html,
                       "<p>The best run has seed %" PRIu64
                       " and a fit of %.6f after %u iteration%s; its results are in "
                       "<code>%s</code>.</p>\n",
                       rank->best->seed, rank->best->fit, rank->best->iterations,
                       rank->best->iterations == 1 ? "" : "s", suggestion->folder);
    }
    slc_html_put(
        html, "<ul><li><strong>Fit</strong> is the part of the tensor that the model explains, at "
              "most 1. It always rises with the rank; look for the rank after which it hardly "
              "rises.</li>\n");
    if (summary->by_heldout) {
        slc_html_put(html, "<li><strong>Held-out deviance</strong> is the mean deviance of the "
                           "nonzeros that were held out: twice the difference between their loss "
                           "and the loss of an exact model. Lower is better; it rises again if "
                           "components fit noise.</li>\n");
    } else {
        slc_html_print(html,
                       "<li><strong>Core consistency</strong> (CORCONDIA) is 100&nbsp;%% if "
                       "components do not interact. %.0f&nbsp;%% or more supports the rank; much "
                       "less, or a negative value, means that there are more components than the "
                       "tensor has, or, with a condition above 30, that noise decides the "
                       "value.</li>\n",
                       SLC_SWEEP_CONSISTENCY_GOOD);
    }
    slc_html_put(
        html,
        "<li><strong>Agreement</strong> "
        "is the similarity of the other runs that reached the fit of the best run of the rank "
        "to this run (factor match score), from 0 to 1. Below ");
    slc_html_print(html, "%.1f", SLC_SWEEP_AGREEMENT_GOOD);
    slc_html_put(html, ", other starts find other components: rely on neither.</li>\n"
                       "<li><strong>Condition</strong> is the largest condition number of the "
                       "factors. Above 1000, components have nearly the same column in a mode, or "
                       "nearly dependent columns; they may still differ in other modes.</li></ul>\n"
                       "</section>\n");
}

/* Measures for which there are plots. */
enum measure { FIT, CONSISTENCY, AGREEMENT, ERROR, DEVIANCE, MEASURES };

/* Returns the measure of a run. The agreement of the best run is unknown, because it would be the
 * agreement with itself. */
static double
of_run(enum measure measure, const struct rank_summary *rank, const struct slc_sweep_run *run)
{
    return measure == FIT        ? run->fit
           : measure == ERROR    ? run->heldout_rmse
           : measure == DEVIANCE ? run->heldout_deviance
           : run != rank->best   ? run->match
                                 : (double)NAN;
}

static double of_rank(enum measure measure, const struct rank_summary *rank)
{
    if (measure != CONSISTENCY && measure != AGREEMENT) {
        return of_run(measure, rank, rank->best);
    }
    return rank->compared == NULL   ? (double)NAN
           : measure == CONSISTENCY ? rank->compared->consistency
                                    : rank->compared->agreement;
}

/* Collects the points of a plot, one per run. If a rank has too many runs, runs at equal distances
 * are selected. The maximum is the same for every rank. */
static size_t collect_dots(struct sweep_summary *summary, enum measure measure)
{
    const unsigned most = ALL_DOTS / summary->count;
    size_t used = 0;

    for (unsigned r = 0; r < summary->count; r++) {
        const struct rank_summary *rank = &summary->ranks[r];
        const unsigned picked = rank->runs < most ? rank->runs : most;

        for (unsigned k = 0; k < picked; k++) {
            const unsigned i =
                rank->first +
                (picked > 1 ? (unsigned)((uint64_t)k * (rank->runs - 1) / (picked - 1)) : 0);

            summary->dots[used++] = (struct slc_html_dot){
                .at = r, .y = of_run(measure, rank, &summary->record->runs[i])};
        }
    }
    return used;
}

static bool is_shown(const struct sweep_summary *summary, enum measure measure)
{
    return measure == CONSISTENCY ? !summary->by_heldout
           : measure == ERROR     ? summary->heldout
           : measure == DEVIANCE  ? summary->heldout && summary->by_heldout
                                  : true;
}

static void plots(struct slc_html *html, struct sweep_summary *summary)
{
    static const struct {
        const char *title, *y_name;
        double low, high, mark;
    } plots[] = {[FIT] = {"Fit", "fit", 0, 0, (double)NAN},
                 [CONSISTENCY] = {"Core consistency of the best run", "percent", -100, 100,
                                  SLC_SWEEP_CONSISTENCY_GOOD},
                 [AGREEMENT] = {"Agreement with the best run (factor match score)", "score", 0, 1,
                                SLC_SWEEP_AGREEMENT_GOOD},
                 [ERROR] = {"Error on held-out nonzeros (lower is better)",
                            "root mean square error", 0, 0, (double)NAN},
                 [DEVIANCE] = {"Deviance of held-out nonzeros (lower is better)", "mean deviance",
                               0, 0, (double)NAN}};

    slc_page_section(html, "plots", "By rank");
    slc_html_put(html,
                 "<p>Lines connect the best runs of the ranks; for agreement, the means of the "
                 "other runs. Small points are single runs, the large point is the suggested "
                 "rank (or the rank with the best fit, if no rank is suggested), and broken lines "
                 "are the thresholds of the suggestion.</p>\n"
                 "<div class=\"two\">");
    for (enum measure m = FIT; m < MEASURES; m++) {
        if (!is_shown(summary, m)) {
            continue;
        }
        struct slc_html_steps plot = {.title = plots[m].title,
                                      .x_name = "rank",
                                      .y_name = plots[m].y_name,
                                      .labels = summary->labels,
                                      .y = summary->line,
                                      .count = summary->count,
                                      .dots = summary->dots,
                                      .dot_count = m == CONSISTENCY ? 0 : collect_dots(summary, m),
                                      .low = plots[m].low,
                                      .high = plots[m].high,
                                      .mark = plots[m].mark,
                                      .chosen = summary->chosen};

        for (unsigned i = 0; i < summary->count; i++) {
            summary->line[i] = of_rank(m, &summary->ranks[i]);
            if (m == CONSISTENCY && summary->line[i] < plot.low) {
                plot.title =
                    "Core consistency of the best run; values below -100 are at the lower edge";
            }
        }
        slc_html_steps(html, &plot);
    }
    slc_html_put(html, "</div></section>\n");
}

static void rank_row(struct slc_html *html, const struct sweep_summary *summary, unsigned i)
{
    const struct rank_summary *rank = &summary->ranks[i];
    const struct slc_sweep_rank *known = rank->compared;

    slc_html_print(html, "<tr%s><th scope=\"row\" class=\"n\">%" PRIu32 "</th>",
                   i == summary->chosen ? " class=\"chosen\"" : "", rank->rank);
    slc_html_print(html, "<td class=\"n\">%u</td>", rank->runs);
    slc_page_number_cell(html, "%.6f", rank->best->fit);
    slc_page_number_cell(html, "%.1e", rank->best->fit - rank->lowest);
    if (is_shown(summary, CONSISTENCY)) {
        consistency_cell(html, known != NULL ? known->consistency : (double)NAN);
    }
    slc_page_number_cell(html, "%.3f", known != NULL ? known->agreement : (double)NAN);
    slc_page_number_cell(html, "%.0f",
                         known != NULL && known->reached > 0 ? known->reached : (double)NAN);
    slc_page_number_cell(html, "%.3g", rank->best->condition);
    if (summary->heldout) {
        slc_page_number_cell(html, "%.4g", rank->best->heldout_rmse);
    }
    if (is_shown(summary, DEVIANCE)) {
        slc_page_number_cell(html, "%.4g", rank->best->heldout_deviance);
    }
    slc_html_print(html, "<td class=\"n\">%" PRIu64 "</td><td>%s</td></tr>\n", rank->best->seed,
                   i != summary->chosen           ? ""
                   : summary->suggestion.rank > 0 ? "suggested"
                                                  : "best fit");
}

static void ranks(struct slc_html *html, const struct sweep_summary *summary)
{
    slc_page_section(html, "ranks", "Ranks");
    slc_html_put(html, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
                       "aria-label=\"Ranks\"><table class=\"wide\"><thead><tr>");
    slc_page_header_cell(html, "Rank", true);
    slc_page_header_cell(html, "Runs", true);
    slc_page_header_cell(html, "Best fit", true);
    slc_page_header_cell(html, "Spread", true);
    if (is_shown(summary, CONSISTENCY)) {
        slc_page_header_cell(html, "Core consistency", true);
    }
    slc_page_header_cell(html, "Agreement", true);
    slc_page_header_cell(html, "Runs with this fit", true);
    slc_page_header_cell(html, "Condition", true);
    if (summary->heldout) {
        slc_page_header_cell(html, "Held-out RMSE", true);
    }
    if (is_shown(summary, DEVIANCE)) {
        slc_page_header_cell(html, "Held-out deviance", true);
    }
    slc_page_header_cell(html, "Best seed", true);
    slc_page_header_cell(html, "Result", false);
    slc_html_put(html, "</tr></thead><tbody>\n");
    for (unsigned i = 0; i < summary->count; i++) {
        rank_row(html, summary, i);
    }
    slc_page_table_end(html);
    for (unsigned i = 0; i < summary->count; i++) {
        const struct slc_sweep_rank *known = summary->ranks[i].compared;

        if (known != NULL && known->note[0] != '\0') {
            slc_html_print(html, "<p class=\"dim\">Rank %" PRIu32 ": ", known->rank);
            slc_html_text(html, known->note);
            slc_html_put(html, ".</p>\n");
        }
    }
    slc_html_put(html, "</section>\n");
}

static void run_row(struct slc_html *html, const struct sweep_summary *summary, unsigned i)
{
    const struct slc_sweep_run *run = &summary->record->runs[i];
    struct slc_format_text text;
    char folder[SLC_SWEEP_FOLDER_BYTES];

    slc_html_print(html, "<tr%s><th scope=\"row\" class=\"n\">%" PRIu32 "</th>",
                   run == summary->ranks[summary->chosen].best ? " class=\"chosen\"" : "",
                   run->rank);
    slc_html_print(html, "<td class=\"n\">%" PRIu64 "</td>", run->seed);
    slc_page_number_cell(html, "%.6f", run->fit);
    slc_page_number_cell(html, "%.3f", run->match);
    if (summary->heldout) {
        slc_page_number_cell(html, "%.4g", run->heldout_rmse);
    }
    if (is_shown(summary, DEVIANCE)) {
        slc_page_number_cell(html, "%.4g", run->heldout_deviance);
    }
    slc_html_print(html, "<td class=\"n\">%u</td><td>", run->iterations);
    slc_html_text(html, slc_page_reason(run->reason));
    slc_html_print(html, "</td><td class=\"n\">%s</td><td><code>%s</code></td><td>%s</td></tr>\n",
                   slc_format_seconds(&text, fmin(fmax(0, run->seconds), 1e15)),
                   slc_sweep_folder_name(folder, run->rank, run->seed), run->kept ? "yes" : "no");
}

static void runs(struct slc_html *html, const struct sweep_summary *summary)
{
    const unsigned count = summary->record->run_count;
    const unsigned shown = count < ALL_ROWS ? count : ALL_ROWS;

    slc_page_section(html, "runs", "Runs");
    if (shown < count) {
        slc_html_print(html, "<p>%u of %u runs.</p>\n", shown, count);
    }
    slc_html_put(html, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Runs\">"
                       "<table class=\"wide\"><thead><tr>");
    slc_page_header_cell(html, "Rank", true);
    slc_page_header_cell(html, "Seed", true);
    slc_page_header_cell(html, "Fit", true);
    slc_page_header_cell(html, "Match with the best", true);
    if (summary->heldout) {
        slc_page_header_cell(html, "Held-out RMSE", true);
    }
    if (is_shown(summary, DEVIANCE)) {
        slc_page_header_cell(html, "Held-out deviance", true);
    }
    slc_page_header_cell(html, "Iterations", true);
    slc_page_header_cell(html, "Stopped by", false);
    slc_page_header_cell(html, "Time", true);
    slc_page_header_cell(html, "Folder", false);
    slc_page_header_cell(html, "Factors kept", false);
    slc_html_put(html, "</tr></thead><tbody>\n");
    for (unsigned k = 0; k < shown; k++) {
        run_row(html, summary, shown > 1 ? (unsigned)((uint64_t)k * (count - 1) / (shown - 1)) : 0);
    }
    slc_page_table_end(html);
    slc_html_put(html, "</section>\n");
}

/* Writes a row of the sweep's identity, with numbers in their shortest form. */
static void identity_row(struct slc_html *html, const char *name, const char *text)
{
    static const char *const reals[] = {"tolerance", "regularization", "held out"};
    char *rest = NULL;

    slc_html_put(html, "<tr><th scope=\"row\">");
    slc_html_text(html, name);
    slc_html_put(html, "</th><td>");
    for (size_t i = 0; text != NULL && i < sizeof reals / sizeof reals[0]; i++) {
        if (strcmp(name, reals[i]) == 0) {
            const double number = strtod(text, &rest);

            if (rest != text && isfinite(number)) {
                slc_page_shortest(html, number);
                text = rest;
            }
            break;
        }
    }
    slc_html_text(html, text);
    slc_html_put(html, "</td></tr>\n");
}

static void again(struct slc_html *html, const struct slc_sweep_page *page)
{
    const char *name;
    json_t *value;

    slc_page_section(html, "again", "Reproduce");
    if (page->best != NULL && !slc_page_called(page->best)) {
        slc_page_command(html, page->best);
    } else {
        slc_html_put(html, "<p>A program made this sweep by a library call, or the record of its "
                           "best run is missing. All runs have these options:</p>\n");
    }
    slc_page_table(html, "Options that determine the results");
    slc_page_value(html, "store", page->record->store);
    json_object_foreach(page->record->identity, name, value)
    {
        identity_row(html, name, json_string_value(value));
    }
    slc_page_table_end(html);
    slc_html_put(html, "</section>\n");
}

enum slc_status slc_sweep_page_write(const struct slc_sweep_page *page,
                                     struct slc_output *output,
                                     struct slc_error *err)
{
    struct slc_html html = {.output = output, .err = err};
    struct sweep_summary *summary = slc_calloc(1, sizeof *summary);

    SLC_TRY(slc_check_memory(summary != NULL, err, "for the page of a sweep"));
    summary->record = page->record;
    collect(summary);
    head(&html, page);
    if (summary->count > 0) {
        cards(&html, summary);
    }
    which(&html, summary);
    if (summary->count > 0) {
        plots(&html, summary);
        ranks(&html, summary);
        runs(&html, summary);
    }
    again(&html, page);
    slc_page_end(&html);
    slc_free(summary);
    return html.status;
}
