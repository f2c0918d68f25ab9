/* Plots of a page: inline SVG in the colors of the page, each with a text alternative. */
#ifndef SLC_REPORT_PAGE_PLOT_H
#define SLC_REPORT_PAGE_PLOT_H

#include "report/factors/factor_rows.h"
#include "report/page/html.h"

#include <stddef.h>
#include <stdint.h>

/* Maximum number of points of a line: more than the pixels of a plot are invisible. */
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
    bool x_whole;     /* x has only integers */
};

/* Draws a line through the points, with axes; if there are too few points, writes their values. */
void slc_html_line(struct slc_html *html, const struct slc_html_line *line);

/* A plot of values of a few items, such as ranks, at equal distances. */
struct slc_html_steps {
    const char *title;
    const char *x_name;
    const char *y_name;
    const uint32_t *labels; /* of `count` items */
    const double *y;        /* per item; NAN: a gap in the line */
    size_t count;
    /* Additional points, each at an item. */
    const struct slc_html_dot {
        size_t at;
        double y;
    } * dots;
    size_t dot_count;
    double low, high; /* range of the axis; points beyond the range are drawn at its ends; empty:
                       * range of the points */
    double mark;      /* level with a broken line; NAN: none */
    size_t chosen;    /* highlighted item; `count`: none */
};

/* Draws a line through the points, with axes. Writes a text if there are no points. */
void slc_html_steps(struct slc_html *html, const struct slc_html_steps *plot);

/* Writes a row of a table of bars: a name, a value in words, and a bar of `share` of the width. */
void slc_html_bar(struct slc_html *html, const char *name, const char *value, double share);

/* Draws a small picture of a column of `length` rows in `count` bands. */
void slc_html_spark(struct slc_html *html,
                    const struct slc_band *bands,
                    uint32_t count,
                    uint64_t length);

#endif
