/*
 * See sweep_page.h. Ranks are told by what the sweep has judged them by; those of a sweep that is
 * not through by the runs that there are.
 */
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
    ALL_DOTS = 2000, /* of all plots of runs, and rows of the table of runs: a page stays small */
    ALL_ROWS = 1000
};

/* A rank, of all its runs. */
struct told_rank {
    uint32_t rank;
    unsigned first, runs; /* in the list of runs */
    const struct slc_sweep_run *best;
    double lowest;                       /* fit */
    const struct slc_sweep_rank *judged; /* NULL: not yet */
};

struct told_sweep {
    const struct slc_sweep_record *record;
    struct slc_sweep_suggestion suggestion;
    unsigned count;
    size_t chosen; /* the rank that is suggested, or whose best run is the result; count: none */
    bool heldout;
    struct told_rank ranks[SLC_SWEEP_RANKS_MAX];
    uint32_t labels[SLC_SWEEP_RANKS_MAX];
    double line[SLC_SWEEP_RANKS_MAX];
    struct slc_html_dot dots[ALL_DOTS];
};

static const struct slc_sweep_rank *judged(const struct slc_sweep_record *record, uint32_t rank)
{
    for (unsigned i = 0; i < record->rank_count; i++) {
        if (record->ranks[i].rank == rank) {
            return &record->ranks[i];
        }
    }
    return NULL;
}

/* Runs are sorted by rank. Of more ranks than a sweep has, which a forged record may tell of, the
 * rest is left out. */
static void collect(struct told_sweep *told)
{
    const struct slc_sweep_record *record = told->record;

    for (unsigned i = 0; i < record->run_count; i++) {
        const struct slc_sweep_run *run = &record->runs[i];
        struct told_rank *rank = &told->ranks[told->count > 0 ? told->count - 1 : 0];

        if (told->count == 0 || rank->rank != run->rank) {
            if (told->count == SLC_SWEEP_RANKS_MAX) {
                break;
            }
            rank = &told->ranks[told->count];
            *rank = (struct told_rank){.rank = run->rank,
                                       .first = i,
                                       .best = slc_sweep_record_best(record, run->rank),
                                       .lowest = run->fit,
                                       .judged = judged(record, run->rank)};
            told->labels[told->count++] = run->rank;
        }
        rank->runs++;
        rank->lowest = fmin(rank->lowest, run->fit);
        told->heldout = told->heldout || isfinite(run->heldout_rmse);
    }
    told->chosen = told->count;
    if (told->count > 0) {
        slc_sweep_suggest(record, &told->suggestion);
    }
    for (unsigned i = 0; i < told->count; i++) {
        if (told->ranks[i].rank == told->suggestion.best_rank) {
            told->chosen = i;
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
        slc_page_note(html, "This sweep is not through: what is told is of the runs so far. What "
                            "began it goes on with it when it is started again.");
    }
}

/* A number in its cell, or a dash. */
static void number_cell(struct slc_html *html, const char *format, double number)
{
    char text[48] = "-";

    if (isfinite(number)) {
        (void)snprintf(text, sizeof text, format, number);
    }
    slc_html_print(html, "<td class=\"n\">%s</td>", text);
}

/* Printed with digits that its size leaves room for. */
static const char *percent(double number)
{
    return fabs(number) < 1e6 ? "%.1f&nbsp;%%" : "%.1e&nbsp;%%";
}

static void cards(struct slc_html *html, const struct told_sweep *told)
{
    struct slc_format_text text;
    char value[64];
    double seconds = 0;

    slc_html_put(html, "<dl class=\"cards\">");
    (void)snprintf(value, sizeof value, "%" PRIu32, told->suggestion.rank);
    slc_page_card(html, "Suggested rank", told->suggestion.rank > 0 ? value : "none");
    if (told->chosen < told->count) {
        (void)snprintf(value, sizeof value, "%.6f", told->ranks[told->chosen].best->fit);
        slc_page_card(html, "Fit of the best run", value);
    }
    slc_page_card(html, "Ranks", slc_format_count(&text, told->count));
    slc_page_card(html, "Runs", slc_format_count(&text, told->record->run_count));
    for (unsigned i = 0; i < told->record->run_count; i++) {
        seconds += fmax(0, told->record->runs[i].seconds);
    }
    slc_page_card(html, "Time of all runs", slc_format_seconds(&text, fmin(seconds, 1e15)));
    slc_page_card(html, "Best run in", told->suggestion.folder);
    slc_html_put(html, "</dl>\n");
}

/* The suggestion, and what its measures say, in words. */
static void which(struct slc_html *html, const struct told_sweep *told)
{
    const struct slc_sweep_suggestion *suggestion = &told->suggestion;
    const struct told_rank *rank = &told->ranks[told->chosen];

    slc_page_section(html, "which", "Which rank");
    if (told->count == 0) {
        slc_html_put(html, "<p>No run is through yet.</p></section>\n");
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
    if (told->chosen < told->count) {
        slc_html_print(html,
                       "<p>The best run began with seed %" PRIu64
                       " and came to a fit of %.6f in %u iteration%s; its results are in "
                       "<code>%s</code>.</p>\n",
                       rank->best->seed, rank->best->fit, rank->best->iterations,
                       rank->best->iterations == 1 ? "" : "s", suggestion->folder);
    }
    slc_html_put(
        html, "<ul><li><strong>Fit</strong> is the part of the tensor that the model explains, 1 "
              "at most. It rises with the rank in any case; look for the rank from which on it "
              "hardly does.</li>\n<li><strong>Core consistency</strong> (CORCONDIA) is "
              "100&nbsp;% where components do not mix. ");
    slc_html_print(html, "%.0f&nbsp;%%", SLC_SWEEP_CONSISTENCY_GOOD);
    slc_html_put(html, " and more speak for the rank; far less, or below 0, says that there are "
                       "more components than the tensor has.</li>\n<li><strong>Agreement</strong> "
                       "is how alike the components of runs from other starts are to those of the "
                       "best run of the rank (factor match score), from 0 to 1. Below ");
    slc_html_print(html, "%.1f", SLC_SWEEP_AGREEMENT_GOOD);
    slc_html_put(html,
                 " other starts find other components: do not read much into them.</li></ul>\n"
                 "</section>\n");
}

/* What ranks and runs are plotted by. */
enum measure { FIT, CONSISTENCY, AGREEMENT, ERROR };

/* Of a run, as a point; with itself the best run agrees in any case. */
static double
of_run(enum measure measure, const struct told_rank *rank, const struct slc_sweep_run *run)
{
    return measure == FIT      ? run->fit
           : measure == ERROR  ? run->heldout_rmse
           : run != rank->best ? run->match
                               : (double)NAN;
}

/* Of a rank, as the line has it. */
static double of_rank(enum measure measure, const struct told_rank *rank)
{
    if (measure == FIT || measure == ERROR) {
        return of_run(measure, rank, rank->best);
    }
    return rank->judged == NULL     ? (double)NAN
           : measure == CONSISTENCY ? rank->judged->consistency
                                    : rank->judged->agreement;
}

/* Of each rank at most its share of runs, evenly picked. */
static size_t collect_dots(struct told_sweep *told, enum measure measure)
{
    const unsigned most = ALL_DOTS / told->count;
    size_t used = 0;

    for (unsigned r = 0; r < told->count; r++) {
        const struct told_rank *rank = &told->ranks[r];
        const unsigned picked = rank->runs < most ? rank->runs : most;

        for (unsigned k = 0; k < picked; k++) {
            const unsigned i =
                rank->first +
                (picked > 1 ? (unsigned)((uint64_t)k * (rank->runs - 1) / (picked - 1)) : 0);

            told->dots[used++] =
                (struct slc_html_dot){.at = r, .y = of_run(measure, rank, &told->record->runs[i])};
        }
    }
    return used;
}

static void plots(struct slc_html *html, struct told_sweep *told)
{
    static const struct {
        const char *title, *y_name;
        double low, high, mark;
    } plots[] = {[FIT] = {"Fit", "fit", 0, 0, (double)NAN},
                 [CONSISTENCY] = {"Core consistency of the best run", "percent", -100, 100,
                                  SLC_SWEEP_CONSISTENCY_GOOD},
                 [AGREEMENT] = {"Agreement with the best run (factor match score)", "score", 0, 1,
                                SLC_SWEEP_AGREEMENT_GOOD},
                 [ERROR] = {"Error on held-out nonzeros: the lower, the better",
                            "root mean square error", 0, 0, (double)NAN}};

    slc_page_section(html, "plots", "By rank");
    slc_html_put(html,
                 "<p>The line "
                 "goes through the best run of each rank, that of agreement through the mean of "
                 "the others; small points are single runs, the large one is the rank of the "
                 "result, and broken lines are the marks that a rank has to reach.</p>\n"
                 "<div class=\"two\">");
    for (enum measure m = FIT; m <= (told->heldout ? ERROR : AGREEMENT); m++) {
        struct slc_html_steps plot = {.title = plots[m].title,
                                      .x_name = "rank",
                                      .y_name = plots[m].y_name,
                                      .labels = told->labels,
                                      .y = told->line,
                                      .count = told->count,
                                      .dots = told->dots,
                                      .dot_count = m == CONSISTENCY ? 0 : collect_dots(told, m),
                                      .low = plots[m].low,
                                      .high = plots[m].high,
                                      .mark = plots[m].mark,
                                      .chosen = told->chosen};

        for (unsigned i = 0; i < told->count; i++) {
            told->line[i] = of_rank(m, &told->ranks[i]);
            if (m == CONSISTENCY && told->line[i] < plot.low) {
                plot.title = "Core consistency of the best run; below -100 at the lower edge";
            }
        }
        slc_html_steps(html, &plot);
    }
    slc_html_put(html, "</div></section>\n");
}

static void header(struct slc_html *html, const char *name, bool number)
{
    slc_html_print(html, "<th scope=\"col\"%s>%s</th>", number ? " class=\"n\"" : "", name);
}

static void rank_row(struct slc_html *html, const struct told_sweep *told, unsigned i)
{
    const struct told_rank *rank = &told->ranks[i];
    const struct slc_sweep_rank *known = rank->judged;

    slc_html_print(html, "<tr%s><th scope=\"row\" class=\"n\">%" PRIu32 "</th>",
                   i == told->chosen ? " class=\"chosen\"" : "", rank->rank);
    slc_html_print(html, "<td class=\"n\">%u</td>", rank->runs);
    number_cell(html, "%.6f", rank->best->fit);
    number_cell(html, "%.1e", rank->best->fit - rank->lowest);
    number_cell(html, percent(known != NULL ? known->consistency : 0),
                known != NULL ? known->consistency : (double)NAN);
    number_cell(html, "%.3f", known != NULL ? known->agreement : (double)NAN);
    if (told->heldout) {
        number_cell(html, "%.4g", rank->best->heldout_rmse);
    }
    slc_html_print(html, "<td class=\"n\">%" PRIu64 "</td><td>%s</td></tr>\n", rank->best->seed,
                   i != told->chosen           ? ""
                   : told->suggestion.rank > 0 ? "suggested"
                                               : "best fit");
}

static void ranks(struct slc_html *html, const struct told_sweep *told)
{
    slc_page_section(html, "ranks", "Ranks");
    slc_html_put(html, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
                       "aria-label=\"Ranks\"><table class=\"wide\"><thead><tr>");
    header(html, "Rank", true);
    header(html, "Runs", true);
    header(html, "Best fit", true);
    header(html, "Spread", true);
    header(html, "Core consistency", true);
    header(html, "Agreement", true);
    if (told->heldout) {
        header(html, "Held-out RMSE", true);
    }
    header(html, "Best seed", true);
    header(html, "Result", false);
    slc_html_put(html, "</tr></thead><tbody>\n");
    for (unsigned i = 0; i < told->count; i++) {
        rank_row(html, told, i);
    }
    slc_page_table_end(html);
    for (unsigned i = 0; i < told->count; i++) {
        const struct slc_sweep_rank *known = told->ranks[i].judged;

        if (known != NULL && known->note[0] != '\0') {
            slc_html_print(html, "<p class=\"dim\">Rank %" PRIu32 ": ", known->rank);
            slc_html_text(html, known->note);
            slc_html_put(html, ".</p>\n");
        }
    }
    slc_html_put(html, "</section>\n");
}

static void run_row(struct slc_html *html, const struct told_sweep *told, unsigned i)
{
    const struct slc_sweep_run *run = &told->record->runs[i];
    struct slc_format_text text;
    char folder[SLC_SWEEP_FOLDER_BYTES];

    slc_html_print(html, "<tr%s><th scope=\"row\" class=\"n\">%" PRIu32 "</th>",
                   run == told->ranks[told->chosen].best ? " class=\"chosen\"" : "", run->rank);
    slc_html_print(html, "<td class=\"n\">%" PRIu64 "</td>", run->seed);
    number_cell(html, "%.6f", run->fit);
    number_cell(html, "%.3f", run->match);
    if (told->heldout) {
        number_cell(html, "%.4g", run->heldout_rmse);
    }
    slc_html_print(html, "<td class=\"n\">%u</td><td>", run->iterations);
    slc_html_text(html, slc_page_reason(run->reason));
    slc_html_print(html, "</td><td class=\"n\">%s</td><td><code>%s</code></td><td>%s</td></tr>\n",
                   slc_format_seconds(&text, fmin(fmax(0, run->seconds), 1e15)),
                   slc_sweep_folder_name(folder, run->rank, run->seed), run->kept ? "yes" : "no");
}

static void runs(struct slc_html *html, const struct told_sweep *told)
{
    const unsigned count = told->record->run_count;
    const unsigned shown = count < ALL_ROWS ? count : ALL_ROWS;

    slc_page_section(html, "runs", "Runs");
    if (shown < count) {
        slc_html_print(html, "<p>%u of %u runs.</p>\n", shown, count);
    }
    slc_html_put(html, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Runs\">"
                       "<table class=\"wide\"><thead><tr>");
    header(html, "Rank", true);
    header(html, "Seed", true);
    header(html, "Fit", true);
    header(html, "Match with the best", true);
    if (told->heldout) {
        header(html, "Held-out RMSE", true);
    }
    header(html, "Iterations", true);
    header(html, "Stopped by", false);
    header(html, "Time", true);
    header(html, "Folder", false);
    header(html, "Factors kept", false);
    slc_html_put(html, "</tr></thead><tbody>\n");
    for (unsigned k = 0; k < shown; k++) {
        run_row(html, told, shown > 1 ? (unsigned)((uint64_t)k * (count - 1) / (shown - 1)) : 0);
    }
    slc_page_table_end(html);
    slc_html_put(html, "</section>\n");
}

/* A text of the identity, whose numbers have all digits that tell them apart. */
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

    slc_page_section(html, "again", "To make it again");
    if (page->best != NULL && !slc_page_called(page->best)) {
        slc_page_command(html, page->best);
    } else {
        slc_html_put(html, "<p>A program made this sweep by a call of the library, or the record "
                           "of its best run is gone; all runs have in common:</p>\n");
    }
    slc_page_table(html, "What decides the results");
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
    struct told_sweep *told = slc_calloc(1, sizeof *told);

    SLC_TRY(slc_check_memory(told != NULL, err, "for what is told of a sweep"));
    told->record = page->record;
    collect(told);
    head(&html, page);
    if (told->count > 0) {
        cards(&html, told);
    }
    which(&html, told);
    if (told->count > 0) {
        plots(&html, told);
        ranks(&html, told);
        runs(&html, told);
    }
    again(&html, page);
    slc_page_end(&html);
    slc_free(told);
    return html.status;
}
