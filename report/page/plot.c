/* Draws line plots, step plots, bars and small pictures as SVG. */
#include "report/page/plot.h"

#include <inttypes.h>
#include <math.h>

enum {
    /* Size of a line plot; a unit is about a pixel on a narrow screen. */
    WIDTH = 480,
    HEIGHT = 260,
    LEFT = 80,
    RIGHT = 16,
    TOP = 12,
    BOTTOM = 44,
    /* Size of a small picture. */
    SPARK_WIDTH = 240,
    SPARK_HEIGHT = 44,
    /* Maximum number of rows that are drawn as bars. */
    SPARK_BARS = 40
};

struct axis {
    double low, high, step;
};

/* Divides the axis into about five round steps of at least `least`, and widens an empty range.
 * Returns false if no number is finite. */
static bool make_axis(struct axis *axis, double low, double high, double least)
{
    if (!(high > low)) {
        const double around = low > 0 || low < 0 ? fmax(fabs(low) * 0.05, 1e-9) : 1;

        low -= low > 0 || low < 0 ? around : 0;
        high += around;
    }
    if (!isfinite(high - low)) {
        return false;
    }
    double magnitude = pow(10, floor(log10((high - low) / 4)));
    double ratio = (high - low) / 4 / magnitude;
    axis->step = fmax(least, magnitude * (ratio <= 1 ? 1 : ratio <= 2 ? 2 : ratio <= 5 ? 5 : 10));
    axis->low = low;
    axis->high = high;
    return isfinite(axis->step) && axis->step > 0 && low + axis->step > low;
}

/* Extends the axis to whole steps, so that both ends are labelled. */
static void widen_axis(struct axis *axis)
{
    const double low = floor(axis->low / axis->step + 1e-9) * axis->step;
    const double high = ceil(axis->high / axis->step - 1e-9) * axis->step;

    if (isfinite(low) && isfinite(high)) {
        axis->low = low;
        axis->high = high;
    }
}

static double place_x(const struct axis *axis, double x)
{
    return LEFT + (x - axis->low) / (axis->high - axis->low) * (WIDTH - LEFT - RIGHT);
}

static double place_y(const struct axis *axis, double y)
{
    return HEIGHT - BOTTOM - (y - axis->low) / (axis->high - axis->low) * (HEIGHT - TOP - BOTTOM);
}

/* Draws horizontal lines with their values as labels. */
static void draw_levels(struct slc_html *html, const struct axis *y)
{
    for (unsigned i = 0; i < 12; i++) {
        const double at = (ceil(y->low / y->step - 1e-9) + i) * y->step;

        if (at > y->high + y->step * 1e-6) {
            break;
        }
        slc_html_print(html, "<path class=\"grid\" d=\"M%d %.1fH%d\"/>", LEFT, place_y(y, at),
                       WIDTH - RIGHT);
        slc_html_print(html, "<text class=\"end\" x=\"%d\" y=\"%.1f\">%.5g</text>", LEFT - 8,
                       place_y(y, at) + 4, fabs(at) < y->step * 1e-6 ? 0 : at);
    }
}

static void draw_axes(struct slc_html *html, const struct axis *x, const struct axis *y)
{
    draw_levels(html, y);
    for (unsigned i = 0; i < 12; i++) {
        const double at = (ceil(x->low / x->step - 1e-9) + i) * x->step;

        if (at > x->high + x->step * 1e-6) {
            break;
        }
        slc_html_print(html, "<path class=\"grid\" d=\"M%.1f %dv5\"/>", place_x(x, at),
                       HEIGHT - BOTTOM);
        slc_html_print(html, "<text class=\"mid\" x=\"%.1f\" y=\"%d\">%.5g</text>", place_x(x, at),
                       HEIGHT - BOTTOM + 19, fabs(at) < x->step * 1e-6 ? 0 : at);
    }
}

static void draw_line(struct slc_html *html,
                      const struct slc_html_line *line,
                      const struct axis *x,
                      const struct axis *y)
{
    const size_t drawn = line->count < SLC_PLOT_POINTS ? line->count : SLC_PLOT_POINTS;

    slc_html_put(html, "<path class=\"line\" d=\"");
    for (size_t k = 0; k < drawn; k++) {
        const size_t i = drawn > 1 ? k * (line->count - 1) / (drawn - 1) : 0;

        slc_html_print(html, "%s%.1f %.1f", k == 0 ? "M" : "L", place_x(x, line->x[i]),
                       place_y(y, line->y[i]));
    }
    slc_html_put(html, "\"/>");
    for (size_t i = 0; i < line->count && line->count <= 40; i++) {
        slc_html_print(html, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\"/>", place_x(x, line->x[i]),
                       place_y(y, line->y[i]));
    }
}

/* Writes the names of the axes and ends the plot. */
static void draw_names(struct slc_html *html, const char *x_name, const char *y_name)
{
    slc_html_print(html, "<text class=\"mid name\" x=\"%d\" y=\"%d\">%s</text>",
                   (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6, x_name);
    slc_html_print(html,
                   "<text class=\"mid name\" transform=\"translate(13 %d)rotate(-90)\">%s</text>",
                   (TOP + HEIGHT - BOTTOM) / 2, y_name);
    slc_html_put(html, "</svg></figure>\n");
}

void slc_html_line(struct slc_html *html, const struct slc_html_line *line)
{
    double low = line->count > 0 ? line->y[0] : 0;
    double high = low;
    struct axis x;
    struct axis y;

    for (size_t i = 1; i < line->count; i++) {
        low = fmin(low, line->y[i]);
        high = fmax(high, line->y[i]);
    }
    slc_html_print(html, "<figure><figcaption>%s</figcaption>", line->title);
    if (line->count == 1) {
        slc_html_print(html, "<p class=\"none\">One %s: %.5g %s.</p></figure>\n", line->x_name,
                       line->y[0], line->y_name);
        return;
    }
    if (line->count == 0 ||
        !make_axis(&x, line->x_from_zero ? fmin(0, line->x[0]) : line->x[0],
                   line->x[line->count - 1], line->x_whole ? 1 : 0) ||
        !make_axis(&y, line->from_zero ? fmin(0, low) : low, high, 0)) {
        slc_html_put(html, "<p class=\"none\">Nothing to draw.</p></figure>\n");
        return;
    }
    widen_axis(&y);
    slc_html_print(
        html,
        "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s: %zu points, from %.5g to "
        "%.5g, at the end %.5g\">",
        WIDTH, HEIGHT, line->title, line->count, low, high, line->y[line->count - 1]);
    draw_axes(html, &x, &y);
    draw_line(html, line, &x, &y);
    draw_names(html, line->x_name, line->y_name);
}

/* Returns the position of an item. Items are at equal distances, regardless of their labels. */
static double place_step(size_t at, size_t count)
{
    return LEFT + ((double)at + 0.5) / (double)count * (WIDTH - LEFT - RIGHT);
}

static void draw_steps(struct slc_html *html, const struct slc_html_steps *plot)
{
    /* Only every `every`-th item has a label, so that labels of about five digits fit. */
    const size_t every = 1 + plot->count / 11;

    for (size_t i = 0; i < plot->count; i++) {
        const double x = place_step(i, plot->count);

        slc_html_print(html, "<path class=\"grid\" d=\"M%.1f %dv5\"/>", x, HEIGHT - BOTTOM);
        if (i % every == 0 || i == plot->chosen) {
            slc_html_print(html, "<text class=\"mid%s\" x=\"%.1f\" y=\"%d\">%" PRIu32 "</text>",
                           i == plot->chosen ? " name" : "", x, HEIGHT - BOTTOM + 19,
                           plot->labels[i]);
        }
    }
}

static double within(const struct axis *axis, double y)
{
    return fmax(axis->low, fmin(axis->high, y));
}

/* Draws a line from point to point, with gaps for unknown values. */
static void
draw_known(struct slc_html *html, const struct slc_html_steps *plot, const struct axis *y)
{
    bool drawn = false;

    slc_html_put(html, "<path class=\"line\" d=\"");
    for (size_t i = 0; i < plot->count; i++) {
        if (isfinite(plot->y[i])) {
            slc_html_print(html, "%s%.1f %.1f", drawn ? "L" : "M", place_step(i, plot->count),
                           place_y(y, within(y, plot->y[i])));
        }
        drawn = isfinite(plot->y[i]);
    }
    slc_html_put(html, "\"/>");
    for (size_t i = 0; i < plot->count; i++) {
        if (isfinite(plot->y[i])) {
            slc_html_print(html, "<circle%s cx=\"%.1f\" cy=\"%.1f\" r=\"%s\"/>",
                           i == plot->chosen ? " class=\"chosen\"" : "", place_step(i, plot->count),
                           place_y(y, within(y, plot->y[i])), i == plot->chosen ? "5.5" : "3");
        }
    }
}

/* Finds the range of all points. Returns false if there are no points. */
static bool find_range(const struct slc_html_steps *plot, double *low, double *high)
{
    *low = INFINITY;
    *high = -INFINITY;
    for (size_t i = 0; i < plot->count; i++) {
        if (isfinite(plot->y[i])) {
            *low = fmin(*low, plot->y[i]);
            *high = fmax(*high, plot->y[i]);
        }
    }
    for (size_t i = 0; i < plot->dot_count; i++) {
        if (isfinite(plot->dots[i].y)) {
            *low = fmin(*low, plot->dots[i].y);
            *high = fmax(*high, plot->dots[i].y);
        }
    }
    return *low <= *high;
}

void slc_html_steps(struct slc_html *html, const struct slc_html_steps *plot)
{
    double low;
    double high;
    struct axis y;

    slc_html_print(html, "<figure><figcaption>%s</figcaption>", plot->title);
    if (!find_range(plot, &low, &high) ||
        !make_axis(&y, plot->low < plot->high ? fmax(plot->low, fmin(low, 0)) : low,
                   plot->low < plot->high ? plot->high : high, 0)) {
        slc_html_put(html, "<p class=\"none\">None is known.</p></figure>\n");
        return;
    }
    widen_axis(&y);
    slc_html_print(html,
                   "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s, from %.5g to %.5g\">",
                   WIDTH, HEIGHT, plot->title, low, high);
    draw_levels(html, &y);
    draw_steps(html, plot);
    if (isfinite(plot->mark) && plot->mark >= y.low && plot->mark <= y.high) {
        slc_html_print(html, "<path class=\"zero\" d=\"M%d %.1fH%d\"/>", LEFT,
                       place_y(&y, plot->mark), WIDTH - RIGHT);
    }
    for (size_t i = 0; i < plot->dot_count; i++) {
        if (isfinite(plot->dots[i].y)) {
            slc_html_print(html, "<circle class=\"dot\" cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\"/>",
                           place_step(plot->dots[i].at, plot->count),
                           place_y(&y, within(&y, plot->dots[i].y)));
        }
    }
    draw_known(html, plot, &y);
    draw_names(html, plot->x_name, plot->y_name);
}

void slc_html_bar(struct slc_html *html, const char *name, const char *value, double share)
{
    slc_html_put(html, "<tr><th scope=\"row\">");
    slc_html_text(html, name);
    slc_html_put(html, "</th><td class=\"n\">");
    slc_html_text(html, value);
    slc_html_put(html, "</td><td class=\"bar\">");
    if (share > 0) {
        slc_html_print(html, "<span style=\"width:%.1f%%\"></span>", fmin(100, 100 * share));
    }
    slc_html_put(html, "</td></tr>\n");
}

static int spark_y(double value, double low, double high)
{
    const double place = (high - value) / (high - low);

    return 1 + (int)lround((isfinite(place) ? place : 0.5) * (SPARK_HEIGHT - 2));
}

static int spark_x(uint32_t k, uint32_t count)
{
    return (int)((uint64_t)k * SPARK_WIDTH / (count > 1 ? count - 1 : 1));
}

static void spark_bars(
    struct slc_html *html, const struct slc_band *bands, uint32_t count, double low, double high)
{
    slc_html_put(html, "<path class=\"bars\" d=\"");
    for (uint32_t k = 0; k < count; k++) {
        slc_html_print(html, "M%.1f %dV%d", (k + 0.5) * SPARK_WIDTH / count, spark_y(0, low, high),
                       spark_y(bands[k].high, low, high));
    }
    slc_html_print(html, "\" stroke-width=\"%.1f\"/>", fmin(8, 0.8 * SPARK_WIDTH / count));
}

/* Draws an area. Its outline follows the largest values of the bands and returns along the
 * smallest. */
static void spark_area(
    struct slc_html *html, const struct slc_band *bands, uint32_t count, double low, double high)
{
    slc_html_put(html, "<path class=\"area\" d=\"M");
    for (uint32_t k = 0; k < count; k++) {
        slc_html_print(html, "%s%d %d", k > 0 ? " " : "", spark_x(k, count),
                       spark_y(bands[k].high, low, high));
    }
    for (uint32_t k = count; k-- > 0;) {
        slc_html_print(html, " %d %d", spark_x(k, count), spark_y(bands[k].low, low, high));
    }
    slc_html_put(html, "z\"/>");
}

void slc_html_spark(struct slc_html *html,
                    const struct slc_band *bands,
                    uint32_t count,
                    uint64_t length)
{
    double low = 0;
    double high = 0;
    double least = count > 0 ? bands[0].low : 0;
    double most = count > 0 ? bands[0].high : 0;

    for (uint32_t k = 0; k < count; k++) {
        least = fmin(least, bands[k].low);
        most = fmax(most, bands[k].high);
    }
    low = fmin(0, least);
    high = fmax(0, most);
    slc_html_print(html,
                   "<svg class=\"spark\" viewBox=\"0 0 %d %d\" preserveAspectRatio=\"none\" "
                   "role=\"img\" aria-label=\"%" PRIu64 " rows, from %.3g to %.3g\">",
                   SPARK_WIDTH, SPARK_HEIGHT, length, least, most);
    if (high > low) {
        slc_html_print(html, "<path class=\"zero\" d=\"M0 %dH%d\"/>", spark_y(0, low, high),
                       SPARK_WIDTH);
        (count <= SPARK_BARS && count == length ? spark_bars : spark_area)(html, bands, count, low,
                                                                           high);
    }
    slc_html_put(html, "</svg>");
}
