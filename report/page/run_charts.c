/* Writes sections of a page: fit, time, reading, memory and estimates. */
#include "base/loss.h"
#include "base/text/format.h"
#include "engine/solve/cp.h"
#include "report/page/parts.h"
#include "report/page/plot.h"
#include "report/page/run_page.h"
#include "storage/manifest/json_text.h"

#include <math.h>
#include <stdio.h>

/* Maximum number of rows of the table of iterations. For a longer run, the table and the plots show
 * iterations at equal distances. */
enum { TABLE_ROWS = 200 };

struct history {
    size_t count;
    double iteration[SLC_PLOT_POINTS];
    double fit[SLC_PLOT_POINTS];
    double elapsed[SLC_PLOT_POINTS];
    double seconds[SLC_PLOT_POINTS];
    double rate[SLC_PLOT_POINTS]; /* MB/s */
    double heldout[SLC_PLOT_POINTS];
    double deviance[SLC_PLOT_POINTS]; /* mean deviance of the held-out nonzeros */
    double objective[SLC_PLOT_POINTS];
    bool has_objective;
};

/* Returns the index of selected item `k` if `picked` of `count` items are selected, including the
 * first and the last item. */
static size_t pick(size_t k, size_t picked, size_t count)
{
    return picked > 1 ? k * (count - 1) / (picked - 1) : 0;
}

static void collect(const json_t *iterations, struct history *history)
{
    const size_t count = json_array_size(iterations);
    const size_t picked = count < SLC_PLOT_POINTS ? count : SLC_PLOT_POINTS;
    double elapsed = 0;
    size_t k = 0;

    for (size_t i = 0; i < count; i++) {
        const json_t *iteration = json_array_get(iterations, i);
        const double seconds = slc_page_number(iteration, "seconds");

        elapsed += seconds;
        if (k < picked && i == pick(k, picked, count)) {
            history->iteration[k] = (double)(i + 1);
            history->fit[k] = json_number_value(json_object_get(iteration, "fit"));
            history->elapsed[k] = elapsed;
            history->seconds[k] = seconds;
            history->rate[k] =
                seconds > 0 ? slc_page_number(iteration, "bytes_read") / seconds / 1e6 : 0;
            history->heldout[k] = slc_page_number(iteration, "heldout_rmse");
            history->deviance[k] = slc_page_number(iteration, "heldout_deviance");
            history->objective[k] = json_number_value(json_object_get(iteration, "objective"));
            history->has_objective =
                history->has_objective || json_object_get(iteration, "objective") != NULL;
            k++;
        }
    }
    history->count = k;
}

static void iteration_row(struct slc_html *html, const json_t *iteration)
{
    struct slc_format_text bytes;
    const double fit = json_number_value(json_object_get(iteration, "fit"));
    const double delta = json_number_value(json_object_get(iteration, "delta"));

    slc_html_print(html, "<tr><th scope=\"row\" class=\"n\">%.0f</th><td class=\"n\">%.8f</td>",
                   slc_page_number(iteration, "iteration"), fabs(fit) < 1e9 ? fit : 0.0);
    slc_html_print(html,
                   "<td class=\"n\">%+.3e</td><td class=\"n\">%.3f</td><td class=\"n\">%s</td>",
                   delta, slc_page_number(iteration, "seconds"),
                   slc_format_data(&bytes, slc_page_number(iteration, "bytes_read")));
    slc_html_print(html, "<td class=\"n\">%.0f</td></tr>\n", slc_page_number(iteration, "passes"));
}

static void iteration_table(struct slc_html *html, const json_t *iterations)
{
    const size_t count = json_array_size(iterations);
    const size_t picked = count < TABLE_ROWS ? count : TABLE_ROWS;

    slc_html_print(html, "<details><summary>Iterations as a table%s</summary>\n",
                   picked < count ? ", 200 of them" : "");
    slc_html_put(html,
                 "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Iterations\">"
                 "<table><thead><tr><th scope=\"col\" class=\"n\">Iteration</th>"
                 "<th scope=\"col\" class=\"n\">Fit</th><th scope=\"col\" class=\"n\">Change</th>"
                 "<th scope=\"col\" class=\"n\">Seconds</th><th scope=\"col\" class=\"n\">Read"
                 "</th><th scope=\"col\" class=\"n\">Passes</th></tr></thead><tbody>\n");
    for (size_t k = 0; k < picked; k++) {
        iteration_row(html, json_array_get(iterations, pick(k, picked, count)));
    }
    slc_page_table_end(html);
    slc_html_put(html, "</details>\n");
}

static struct slc_html_line
by_iteration(const struct history *history, const char *title, const char *y_name, const double *y)
{
    return (struct slc_html_line){.title = title,
                                  .x_name = "iteration",
                                  .y_name = y_name,
                                  .x = history->iteration,
                                  .y = y,
                                  .count = history->count,
                                  .x_whole = true};
}

/* Returns the loss of the run; least squares if it is not recorded. */
static enum slc_loss loss_of(const struct slc_run_page *page)
{
    const char *name = json_string_value(json_object_get(page->record, "loss"));
    enum slc_loss loss = SLC_LOSS_LS;

    (void)(name != NULL && slc_loss_parse(name, &loss));
    return loss;
}

/* Writes what the method minimizes or, for poisson, maximizes. */
static void
objective(struct slc_html *html, const struct slc_run_page *page, const struct history *history)
{
    const char *name = json_string_value(json_object_get(page->record, "unlisted"));
    enum slc_unlisted unlisted = SLC_UNLISTED_ZERO;

    (void)(name != NULL && slc_unlisted_parse(name, &unlisted));
    if (history->has_objective) {
        const struct slc_html_line line =
            by_iteration(history, "Objective after each iteration",
                         slc_cp_objective_name(loss_of(page), unlisted), history->objective);

        slc_html_line(html, &line);
    }
}

/* Writes the error of the model on held-out nonzeros. */
static void
heldout(struct slc_html *html, const struct slc_run_page *page, const struct history *history)
{
    const json_t *error = json_object_get(page->record, "holdout");
    const struct slc_html_line errors = by_iteration(history, "Error on held-out nonzeros",
                                                     "root mean square error", history->heldout);
    const struct slc_html_line deviances =
        by_iteration(history, "Deviance of held-out nonzeros", "mean deviance", history->deviance);
    struct slc_format_text text;

    if (!json_is_object(error)) {
        return;
    }
    slc_html_line(html, &errors);
    if (loss_of(page) != SLC_LOSS_LS) {
        slc_html_line(html, &deviances);
    }
    slc_page_table(html, "Held-out nonzeros");
    slc_page_row(html, "Nonzeros held out",
                 slc_format_count(&text, slc_json_count(error, "count")));
    slc_page_member(html, "Root mean square error", error, "rmse");
    slc_page_member(html, "Mean absolute error", error, "mae");
    if (loss_of(page) != SLC_LOSS_LS) {
        slc_page_member(html, "Mean deviance", error, "deviance");
    }
    slc_page_member(html, "Norm of their values", error, "norm");
    slc_page_table_end(html);
}

static void
fit(struct slc_html *html, const struct slc_run_page *page, const struct history *history)
{
    const json_t *iterations = json_object_get(page->record, "iterations");
    const struct slc_html_line fits =
        by_iteration(history, "Fit after each iteration", "fit", history->fit);
    struct slc_html_line by_seconds = fits;

    by_seconds.title = "Fit over time";
    by_seconds.x_name = history->count == 1 ? "iteration" : "seconds of iterations";
    by_seconds.x = history->elapsed;
    by_seconds.x_whole = false;
    by_seconds.x_from_zero = true;
    slc_page_section(html, "fit", "Fit");
    slc_html_put(html, "<div class=\"two\">");
    slc_html_line(html, &fits);
    slc_html_line(html, &by_seconds);
    objective(html, page, history);
    heldout(html, page, history);
    slc_html_put(html, "</div>\n");
    if (history->count > 0) {
        iteration_table(html, iterations);
    }
    slc_html_put(html, "</section>\n");
}

static void bars_begin(struct slc_html *html, const char *title)
{
    slc_html_print(html, "<div><h3>%s</h3><table><tbody>\n", title);
}

static void bars_end(struct slc_html *html)
{
    slc_html_put(html, "</tbody></table></div>\n");
}

static void seconds_bar(struct slc_html *html, const char *name, double seconds, double total)
{
    char value[48];

    (void)snprintf(value, sizeof value, "%.3f s, %.1f %%", fmin(seconds, 1e15),
                   total > 0 ? fmin(100 * seconds / total, 999) : 0);
    slc_html_bar(html, name, value, slc_ratio(seconds, total));
}

static void
times(struct slc_html *html, const struct slc_run_page *page, const struct history *history)
{
    static const char *const phases[][2] = {
        {"init", "Start"},  {"mttkrp", "MTTKRP"}, {"copies", "Making replicas"},
        {"solve", "Solve"}, {"fit", "Fit"},       {"checkpoint", "Checkpoints"}};
    static const char *const work[][2] = {{"wait_all_threads", "Waiting for data"},
                                          {"decode_all_threads", "Decoding blocks"},
                                          {"multiply_all_threads", "Multiplying"}};
    struct slc_html_line line =
        by_iteration(history, "Seconds of each iteration", "seconds", history->seconds);
    const json_t *seconds = json_object_get(page->record, "seconds");
    const double total = slc_page_number(seconds, "total");
    double rest = total;
    double all = 0;

    slc_page_section(html, "time", "Time");
    slc_html_put(html, "<div class=\"two\"><div>");
    bars_begin(html, "By phase, of the total");
    for (size_t i = 0; i < sizeof phases / sizeof phases[0]; i++) {
        const double spent = slc_page_number(seconds, phases[i][0]);

        seconds_bar(html, phases[i][1], spent, total);
        rest -= spent;
    }
    seconds_bar(html, "Everything else", fmax(0, rest), total);
    bars_end(html);
    for (size_t i = 0; i < 3; i++) {
        all += slc_page_number(seconds, work[i][0]);
    }
    bars_begin(html, "Within passes, sum over all threads");
    for (size_t i = 0; i < 3; i++) {
        seconds_bar(html, work[i][1], slc_page_number(seconds, work[i][0]), all);
    }
    bars_end(html);
    slc_html_put(html, "</div>\n");
    line.from_zero = true;
    slc_html_line(html, &line);
    slc_html_put(html, "</div></section>\n");
}

static void data_row(struct slc_html *html, const char *name, double bytes)
{
    struct slc_format_text text;

    slc_page_row(html, name, slc_format_data(&text, bytes));
}

static void
reading(struct slc_html *html, const struct slc_run_page *page, const struct history *history)
{
    struct slc_html_line line = by_iteration(history, "Read from the drive in each iteration",
                                             "MB per second", history->rate);
    const json_t *counters = json_object_get(page->record, "counters");
    const json_t *plan = json_object_get(page->record, "plan");
    const double wall = slc_page_number(json_object_get(page->record, "seconds"), "passes_wall");
    const double read = slc_page_number(counters, "bytes_read");
    const double blocks = slc_page_number(counters, "blocks");
    struct slc_format_text text, slot;
    char slots[80];

    slc_page_section(html, "reading", "Reading");
    slc_html_put(html, "<div class=\"two\">");
    line.from_zero = true;
    slc_html_line(html, &line);
    slc_page_table(html, "Reading");
    data_row(html, "Read from the drive", read);
    data_row(html, "Read per second of passes", slc_ratio(read, wall));
    data_row(html, "From the cache of blocks", slc_page_number(counters, "bytes_cached"));
    slc_page_row(html, "Blocks computed from",
                 slc_format_count(&text, slc_json_count(counters, "blocks")));
    data_row(html, "Mean block size",
             blocks > 0 ? (read + slc_page_number(counters, "bytes_cached")) / blocks : 0);
    (void)snprintf(slots, sizeof slots, "%.0f of %s", slc_page_number(plan, "slot_count"),
                   slc_format_memory(&slot, slc_json_count(plan, "slot_bytes")));
    slc_page_row(html, "Slots of the ring", slots);
    slc_page_row(html, "Blocks kept in memory",
                 slc_format_count(&text, slc_json_count(plan, "cached_blocks")));
    slc_page_row(html, "Passes", slc_format_count(&text, slc_json_count(counters, "passes")));
    slc_page_member(html, "Passes per iteration, planned", plan, "passes");
    slc_page_member(html, "Layouts of the modes", plan, "layouts");
    slc_page_member(html, "Schedule", plan, "schedule");
    slc_page_member(html, "I/O", counters, "io");
    slc_page_member(html, "Direct I/O", counters, "direct");
    slc_page_table_end(html);
    slc_html_put(html, "</div></section>\n");
}

static void memory_bar(
    struct slc_html *html, const char *name, const json_t *in, const char *member, double whole)
{
    struct slc_format_text text;
    const uint64_t bytes = slc_json_count(in, member);

    slc_html_bar(html, name, slc_format_memory(&text, bytes), slc_ratio((double)bytes, whole));
}

static void memory(struct slc_html *html, const struct slc_run_page *page)
{
    static const char *const parts[][2] = {
        {"process_bytes", "Process"},         {"index_bytes", "Index of blocks"},
        {"factor_bytes", "Factors"},          {"output_bytes", "Results of MTTKRP"},
        {"dense_bytes", "Dense algebra"},     {"scratch_bytes", "Scratch"},
        {"decoder_bytes", "Decoders"},        {"label_bytes", "Permutations"},
        {"row_bytes", "Nonzeros of rows"},    {"cache_bytes", "Cached blocks"},
        {"copies_bytes", "Replicas per mode"}};
    const json_t *plan = json_object_get(page->record, "plan");
    const double budget = slc_page_number(plan, "budget_bytes");
    const double total = slc_page_number(plan, "total_bytes");

    slc_page_section(html, "memory", "Memory");
    slc_html_put(html, "<div class=\"two\">");
    bars_begin(html, "Compared with the budget");
    memory_bar(html, "Budget", plan, "budget_bytes", budget);
    memory_bar(html, "Planned", plan, "total_bytes", budget);
    memory_bar(html, "Peak, measured", page->record, "peak_memory_bytes", budget);
    memory_bar(html, "Minimum budget", plan, "minimum_bytes", budget);
    bars_end(html);
    bars_begin(html, "Planned parts");
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        memory_bar(html, parts[i][1], plan, parts[i][0], total);
    }
    bars_end(html);
    slc_html_put(html, "</div></section>\n");
}

/* Writes a row such as "12.1 MiB expected, 12.5 MiB measured: 1.03 times". */
static void expected_row(
    struct slc_html *html, const char *name, const char *before, const char *after, double ratio)
{
    char text[160];

    if (ratio > 0 && ratio < 1e9) {
        (void)snprintf(text, sizeof text, "%s expected, %s measured: %.2f times", before, after,
                       ratio);
    } else {
        (void)snprintf(text, sizeof text, "%s expected, %s measured", before, after);
    }
    slc_page_row(html, name, text);
}

static double over(double actual, double expected)
{
    return slc_ratio(actual, expected);
}

/* Writes the estimate that a run made from its own first measurements. */
static void expected(struct slc_html *html, const struct slc_run_page *page)
{
    const json_t *estimate = json_object_get(page->record, "estimate");
    const json_t *actual = json_object_get(estimate, "actual");
    const uint64_t memory = slc_json_count(estimate, "memory_bytes");
    const uint64_t held = slc_json_count(actual, "memory_bytes");
    const double bytes = slc_page_number(estimate, "read_bytes");
    const double read = slc_page_number(actual, "read_bytes");
    const double seconds = slc_page_number(estimate, "seconds");
    const double taken = slc_page_number(actual, "seconds");
    struct slc_format_text a, b;

    if (!json_is_object(actual)) {
        return;
    }
    slc_page_section(html, "expected", "Estimate and result");
    slc_page_table(html, "Estimate and result");
    expected_row(html, "Peak memory", slc_format_memory(&a, memory), slc_format_memory(&b, held),
                 over((double)held, (double)memory));
    expected_row(html, "Read from the drive", slc_format_data(&a, bytes), slc_format_data(&b, read),
                 over(read, bytes));
    expected_row(html, "Time without results", slc_format_seconds(&a, seconds),
                 slc_format_seconds(&b, taken), over(taken, seconds));
    slc_page_row(html, "Estimated after the first",
                 slc_format_seconds(&a, slc_page_number(estimate, "judged_after_seconds")));
    slc_page_member(html, "Bottleneck", estimate, "bottleneck");
    slc_page_table_end(html);
    slc_html_put(html, "</section>\n");
}

void slc_page_charts(struct slc_html *html, const struct slc_run_page *page)
{
    struct history history = {.count = 0};

    collect(json_object_get(page->record, "iterations"), &history);
    fit(html, page, &history);
    times(html, page, &history);
    reading(html, page, &history);
    memory(html, page);
    expected(html, page);
}
