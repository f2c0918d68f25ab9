/* Draws the plots of a page as inline SVG in the colors of the page, each with a text
 * alternative. */
#ifndef SLC_REPORT_PAGE_PLOT_H
#define SLC_REPORT_PAGE_PLOT_H

#include "report/factors/factor_rows.h"
#include "report/page/html.h"

#include <stddef.h>
#include <stdint.h>

/* Maximum number of points of a line; with more points than pixels, points would be invisible. */
enum { SLC_PLOT_POINTS = 400 };

struct slc_html_line {
    const char *title; /* comes from the code, like all texts in this struct */
    const char *x_name;
    const char *y_name;
    const double *x; /* not descending */
    const double *y;
    size_t count;
    bool from_zero;   /* the y axis starts at 0 */
    bool x_from_zero; /* the x axis starts at 0 */
    bool x_whole;     /* all x are integers */
};

/* Draws a line through the points, with axes; if there are too few points, writes their values. */
void slc_html_line(struct slc_html *html, const struct slc_html_line *line);

/* A plot of the values of a few items, such as ranks, at equal distances. */
struct slc_html_steps {
    const char *title;
    const char *x_name;
    const char *y_name;
    const uint32_t *labels; /* labels of the `count` items */
    const double *y;        /* value of each item; NAN means a gap in the line */
    size_t count;
    /* Additional points, each at the position of an item. */
    const struct slc_html_dot {
        size_t at;
        double y;
    } * dots;
    size_t dot_count;
    /* Range of the y axis; if it is empty, the axis has the range of the points. Points beyond the
     * axis are drawn at its ends. */
    double low, high;
    double mark;   /* level at which a broken line is drawn; NAN means no line */
    size_t chosen; /* highlighted item; `count` means no item */
};

/* Draws a line through the points, with axes. If there are no points, writes a text. */
void slc_html_steps(struct slc_html *html, const struct slc_html_steps *plot);

/* Writes a row of a table of bars: a name, a value as text, and a bar whose length is the fraction
 * `share` of the width. */
void slc_html_bar(struct slc_html *html, const char *name, const char *value, double share);

/* Draws a small picture of a column of `length` rows in `count` bands. */
void slc_html_spark(struct slc_html *html,
                    const struct slc_band *bands,
                    uint32_t count,
                    uint64_t length);

#endif
