/* See run_page_parts.h: how the fit rose, and where time, bytes and memory went. */
#include "html_plot.h"
#include "run_page_parts.h"

#include <math.h>
#include <stdio.h>

/* Of a longer run, rows of the table and points of the plots are picked evenly. */
enum { TABLE_ROWS = 200 };

struct history {
    size_t count;
    double iteration[HTML_PLOT_POINTS];
    double fit[HTML_PLOT_POINTS];
    double elapsed[HTML_PLOT_POINTS];
    double seconds[HTML_PLOT_POINTS];
    double rate[HTML_PLOT_POINTS]; /* MB/s */
    double heldout[HTML_PLOT_POINTS];
};

/* Which of `count` the k-th of `picked` is: first and last are among them. */
static size_t pick(size_t k, size_t picked, size_t count)
{
    return picked > 1 ? k * (count - 1) / (picked - 1) : 0;
}

static void collect(const json_t *iterations, struct history *history)
{
    const size_t count = json_array_size(iterations);
    const size_t picked = count < HTML_PLOT_POINTS ? count : HTML_PLOT_POINTS;
    double elapsed = 0;
    size_t k = 0;

    for (size_t i = 0; i < count; i++) {
        const json_t *iteration = json_array_get(iterations, i);
        const double seconds = page_number(iteration, "seconds");

        elapsed += seconds;
        if (k < picked && i == pick(k, picked, count)) {
            history->iteration[k] = (double)(i + 1);
            history->fit[k] = json_number_value(json_object_get(iteration, "fit"));
            history->elapsed[k] = elapsed;
            history->seconds[k] = seconds;
            history->rate[k] =
                seconds > 0 ? page_number(iteration, "bytes_read") / seconds / 1e6 : 0;
            history->heldout[k] = page_number(iteration, "heldout_rmse");
            k++;
        }
    }
    history->count = k;
}

static void iteration_row(struct html *html, const json_t *iteration)
{
    struct format_text bytes;
    const double fit = json_number_value(json_object_get(iteration, "fit"));
    const double delta = json_number_value(json_object_get(iteration, "delta"));

    html_print(html, "<tr><th scope=\"row\" class=\"n\">%.0f</th><td class=\"n\">%.8f</td>",
               page_number(iteration, "iteration"), fabs(fit) < 1e9 ? fit : 0.0);
    html_print(html, "<td class=\"n\">%+.3e</td><td class=\"n\">%.3f</td><td class=\"n\">%s</td>",
               delta, page_number(iteration, "seconds"),
               format_data(&bytes, page_number(iteration, "bytes_read")));
    html_print(html, "<td class=\"n\">%.0f</td></tr>\n", page_number(iteration, "passes"));
}

static void iteration_table(struct html *html, const json_t *iterations)
{
    const size_t count = json_array_size(iterations);
    const size_t picked = count < TABLE_ROWS ? count : TABLE_ROWS;

    html_print(html, "<details><summary>Iterations as a table%s</summary>\n",
               picked < count ? ", 200 of them" : "");
    html_put(html, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Iterations\">"
                   "<table><thead><tr><th scope=\"col\" class=\"n\">Iteration</th>"
                   "<th scope=\"col\" class=\"n\">Fit</th><th scope=\"col\" class=\"n\">Change</th>"
                   "<th scope=\"col\" class=\"n\">Seconds</th><th scope=\"col\" class=\"n\">Read"
                   "</th><th scope=\"col\" class=\"n\">Passes</th></tr></thead><tbody>\n");
    for (size_t k = 0; k < picked; k++) {
        iteration_row(html, json_array_get(iterations, pick(k, picked, count)));
    }
    page_table_end(html);
    html_put(html, "</details>\n");
}

/* How far the model is from the nonzeros that it was not made from. */
static void
heldout(struct html *html, const struct run_page *page, const struct html_line *by_iteration)
{
    const json_t *error = json_object_get(page->record, "holdout");
    struct html_line line = *by_iteration;
    struct format_text text;

    if (!json_is_object(error)) {
        return;
    }
    line.title = "Error on held-out nonzeros";
    line.y_name = "root mean square error";
    html_line(html, &line);
    page_table(html, "Held-out nonzeros");
    page_row(html, "Nonzeros held out", format_count(&text, page_count(error, "count")));
    page_member(html, "Root mean square error", error, "rmse");
    page_member(html, "Mean absolute error", error, "mae");
    page_member(html, "Norm of their values", error, "norm");
    page_table_end(html);
}

static void fit(struct html *html, const struct run_page *page, const struct history *history)
{
    const json_t *iterations = json_object_get(page->record, "iterations");
    const struct html_line by_iteration = {.title = "Fit after each iteration",
                                           .x_name = "iteration",
                                           .y_name = "fit",
                                           .x = history->iteration,
                                           .y = history->fit,
                                           .count = history->count,
                                           .x_whole = true};
    struct html_line by_seconds = by_iteration;
    struct html_line by_error = by_iteration;

    by_seconds.title = "Fit over time";
    by_seconds.x_name = history->count == 1 ? "iteration" : "seconds of iterations";
    by_seconds.x = history->elapsed;
    by_seconds.x_whole = false;
    by_seconds.x_from_zero = true;
    by_error.y = history->heldout;
    html_put(html, "<section aria-labelledby=\"fit\"><h2 id=\"fit\">Fit</h2>\n<div class=\"two\">");
    html_line(html, &by_iteration);
    html_line(html, &by_seconds);
    heldout(html, page, &by_error);
    html_put(html, "</div>\n");
    if (history->count > 0) {
        iteration_table(html, iterations);
    }
    html_put(html, "</section>\n");
}

static void bars_begin(struct html *html, const char *title)
{
    html_print(html, "<div><h3>%s</h3><table><tbody>\n", title);
}

static void bars_end(struct html *html)
{
    html_put(html, "</tbody></table></div>\n");
}

static void seconds_bar(struct html *html, const char *name, double seconds, double total)
{
    char value[48];

    (void)snprintf(value, sizeof value, "%.3f s, %.1f %%", fmin(seconds, 1e15),
                   total > 0 ? fmin(100 * seconds / total, 999) : 0);
    html_bar(html, name, value, total > 0 ? seconds / total : 0);
}

static void times(struct html *html, const struct run_page *page, const struct history *history)
{
    static const char *const phases[][2] = {
        {"init", "Start"},  {"mttkrp", "MTTKRP"}, {"copies", "Making copies"},
        {"solve", "Solve"}, {"fit", "Fit"},       {"checkpoint", "Checkpoints"}};
    static const char *const work[][2] = {{"wait_all_threads", "Waiting for data"},
                                          {"decode_all_threads", "Decoding blocks"},
                                          {"multiply_all_threads", "Multiplying"}};
    const struct html_line line = {.title = "Seconds of each iteration",
                                   .x_name = "iteration",
                                   .y_name = "seconds",
                                   .x = history->iteration,
                                   .y = history->seconds,
                                   .count = history->count,
                                   .from_zero = true,
                                   .x_whole = true};
    const json_t *seconds = json_object_get(page->record, "seconds");
    const double total = page_number(seconds, "total");
    double rest = total;
    double all = 0;

    html_put(html, "<section aria-labelledby=\"time\"><h2 id=\"time\">Time</h2>\n"
                   "<div class=\"two\"><div>");
    bars_begin(html, "By phase, of the total");
    for (size_t i = 0; i < sizeof phases / sizeof phases[0]; i++) {
        const double spent = page_number(seconds, phases[i][0]);

        seconds_bar(html, phases[i][1], spent, total);
        rest -= spent;
    }
    seconds_bar(html, "Everything else", fmax(0, rest), total);
    bars_end(html);
    for (size_t i = 0; i < 3; i++) {
        all += page_number(seconds, work[i][0]);
    }
    bars_begin(html, "Within passes, of all threads together");
    for (size_t i = 0; i < 3; i++) {
        seconds_bar(html, work[i][1], page_number(seconds, work[i][0]), all);
    }
    bars_end(html);
    html_put(html, "</div>\n");
    html_line(html, &line);
    html_put(html, "</div></section>\n");
}

static void data_row(struct html *html, const char *name, double bytes)
{
    struct format_text text;

    page_row(html, name, format_data(&text, bytes));
}

static void reading(struct html *html, const struct run_page *page, const struct history *history)
{
    const struct html_line line = {.title = "Read from the drive in each iteration",
                                   .x_name = "iteration",
                                   .y_name = "MB per second",
                                   .x = history->iteration,
                                   .y = history->rate,
                                   .count = history->count,
                                   .from_zero = true,
                                   .x_whole = true};
    const json_t *counters = json_object_get(page->record, "counters");
    const json_t *plan = json_object_get(page->record, "plan");
    const double wall = page_number(json_object_get(page->record, "seconds"), "passes_wall");
    const double read = page_number(counters, "bytes_read");
    const double blocks = page_number(counters, "blocks");
    struct format_text text;
    struct format_text slot;
    char slots[80];

    html_put(html, "<section aria-labelledby=\"reading\"><h2 id=\"reading\">Reading</h2>\n"
                   "<div class=\"two\">");
    html_line(html, &line);
    page_table(html, "Reading");
    data_row(html, "Read from the drive", read);
    data_row(html, "Read per second of passes", wall > 0 ? read / wall : 0);
    data_row(html, "From the cache of blocks", page_number(counters, "bytes_cached"));
    page_row(html, "Blocks computed from", format_count(&text, page_count(counters, "blocks")));
    data_row(html, "Mean size of a block",
             blocks > 0 ? (read + page_number(counters, "bytes_cached")) / blocks : 0);
    (void)snprintf(slots, sizeof slots, "%.0f of %s", page_number(plan, "slot_count"),
                   format_memory(&slot, page_count(plan, "slot_bytes")));
    page_row(html, "Slots of the ring", slots);
    page_row(html, "Blocks kept in memory", format_count(&text, page_count(plan, "cached_blocks")));
    page_row(html, "Passes", format_count(&text, page_count(counters, "passes")));
    page_member(html, "Passes per iteration, planned", plan, "passes");
    page_member(html, "Layouts of the modes", plan, "layouts");
    page_member(html, "Schedule", plan, "schedule");
    page_member(html, "I/O", counters, "io");
    page_member(html, "Past the page cache", counters, "direct");
    page_table_end(html);
    html_put(html, "</div></section>\n");
}

static void
memory_bar(struct html *html, const char *name, const json_t *in, const char *member, double whole)
{
    struct format_text text;
    const uint64_t bytes = page_count(in, member);

    html_bar(html, name, format_memory(&text, bytes), whole > 0 ? (double)bytes / whole : 0);
}

static void memory(struct html *html, const struct run_page *page)
{
    static const char *const parts[][2] = {
        {"process_bytes", "Process"},     {"index_bytes", "Index of blocks"},
        {"factor_bytes", "Factors"},      {"output_bytes", "Results of MTTKRP"},
        {"dense_bytes", "Dense algebra"}, {"scratch_bytes", "Scratch"},
        {"decoder_bytes", "Decoders"},    {"label_bytes", "Renumberings"},
        {"cache_bytes", "Cached blocks"}, {"copies_bytes", "Copies per mode"}};
    const json_t *plan = json_object_get(page->record, "plan");
    const double budget = page_number(plan, "budget_bytes");
    const double total = page_number(plan, "total_bytes");

    html_put(html, "<section aria-labelledby=\"memory\"><h2 id=\"memory\">Memory</h2>\n"
                   "<div class=\"two\">");
    bars_begin(html, "Against the budget");
    memory_bar(html, "Budget", plan, "budget_bytes", budget);
    memory_bar(html, "Planned", plan, "total_bytes", budget);
    memory_bar(html, "Peak, measured", page->record, "peak_memory_bytes", budget);
    memory_bar(html, "Least that works", plan, "minimum_bytes", budget);
    bars_end(html);
    bars_begin(html, "What was planned");
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        memory_bar(html, parts[i][1], plan, parts[i][0], total);
    }
    bars_end(html);
    html_put(html, "</div></section>\n");
}

/* "12.1 MiB expected, 12.5 MiB in the end: 1.03 times". */
static void expected_row(
    struct html *html, const char *name, const char *before, const char *after, double ratio)
{
    char text[160];

    if (ratio > 0 && ratio < 1e9) {
        (void)snprintf(text, sizeof text, "%s expected, %s in the end: %.2f times", before, after,
                       ratio);
    } else {
        (void)snprintf(text, sizeof text, "%s expected, %s in the end", before, after);
    }
    page_row(html, name, text);
}

static double over(double actual, double expected)
{
    return expected > 0 ? actual / expected : 0;
}

/* The estimate that a run judges by its own beginning. */
static void expected(struct html *html, const struct run_page *page)
{
    const json_t *estimate = json_object_get(page->record, "estimate");
    const json_t *actual = json_object_get(estimate, "actual");
    const uint64_t memory = page_count(estimate, "memory_bytes");
    const uint64_t held = page_count(actual, "memory_bytes");
    const double bytes = page_number(estimate, "read_bytes");
    const double read = page_number(actual, "read_bytes");
    const double seconds = page_number(estimate, "seconds");
    const double taken = page_number(actual, "seconds");
    struct format_text a, b;

    if (!json_is_object(actual)) {
        return;
    }
    html_put(html, "<section aria-labelledby=\"expected\"><h2 id=\"expected\">Expected, and what "
                   "happened</h2>\n");
    page_table(html, "Expected, and what happened");
    expected_row(html, "Peak memory", format_memory(&a, memory), format_memory(&b, held),
                 over((double)held, (double)memory));
    expected_row(html, "Read from the drive", format_data(&a, bytes), format_data(&b, read),
                 over(read, bytes));
    expected_row(html, "Time without results", format_seconds(&a, seconds),
                 format_seconds(&b, taken), over(taken, seconds));
    page_row(html, "Judged by the first",
             format_seconds(&a, page_number(estimate, "judged_after_seconds")));
    page_member(html, "Bottleneck", estimate, "bottleneck");
    page_table_end(html);
    html_put(html, "</section>\n");
}

void page_charts(struct html *html, const struct run_page *page)
{
    struct history history = {.count = 0};

    collect(json_object_get(page->record, "iterations"), &history);
    fit(html, page, &history);
    times(html, page, &history);
    reading(html, page, &history);
    memory(html, page);
    expected(html, page);
}
