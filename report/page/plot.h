/*
 * Plots of a page: SVG within it, in the page's colours, each with a text that says the same.
 */
#ifndef SLC_REPORT_PAGE_PLOT_H
#define SLC_REPORT_PAGE_PLOT_H

#include "report/factors/factor_rows.h"
#include "report/page/html.h"

#include <stddef.h>
#include <stdint.h>

/* Points that a line is drawn through at most: more than the pixels of a plot show nothing. */
enum { SLC_PLOT_POINTS = 400 };

struct slc_html_line {
    const char *title; /* ours, as all texts here */
    const char *x_name;
    const char *y_name;
    const double *x; /* not falling */
    const double *y;
    size_t count;
    bool from_zero;   /* the axis of y begins at 0 .. */
    bool x_from_zero; /* .. and that of x */
    bool x_whole;     /* between whole numbers of x there is nothing */
};

/* A line through the points, with axes; where they are too few for one, says what they are. */
void slc_html_line(struct slc_html *html, const struct slc_html_line *line);

/* Numbers of a few things, such as ranks, which stand side by side at equal distances. */
struct slc_html_steps {
    const char *title;
    const char *x_name;
    const char *y_name;
    const uint32_t *labels; /* `count` of them */
    const double *y;        /* of each; NAN leaves a gap in the line */
    size_t count;
    /* Single points beside the line, each at one of the things. */
    const struct slc_html_dot {
        size_t at;
        double y;
    } * dots;
    size_t dot_count;
    double low, high; /* of the axis: points below stand at its end; empty: as the points need */
    double mark;      /* a level that is marked; NAN: none */
    size_t chosen;    /* which of the things stands out; `count`: none */
};

/* A line through the points, with axes; where there are none, says so. */
void slc_html_steps(struct slc_html *html, const struct slc_html_steps *plot);

/* A row of a table of bars: a name, a value in words, and a bar of `share` of the width. */
void slc_html_bar(struct slc_html *html, const char *name, const char *value, double share);

/* A small picture of a column of `length` rows in `count` bands. */
void slc_html_spark(struct slc_html *html,
                    const struct slc_band *bands,
                    uint32_t count,
                    uint64_t length);

#endif
