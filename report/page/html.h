/*
 * HTML on its way into a file. Markup is ours; every text from outside goes through slc_html_text.
 * The first fault is kept, and nothing is written after it, so that callers look once, at the end.
 */
#ifndef SLC_REPORT_PAGE_HTML_H
#define SLC_REPORT_PAGE_HTML_H

#include "base/error/error.h"
#include "storage/file/output.h"

#include <stddef.h>

struct slc_html {
    struct slc_output *output;
    enum slc_status status;
    struct slc_error *err;
};

/* Markup as it stands, of any length. */
void slc_html_put(struct slc_html *html, const char *markup);

/* Formatted markup and numbers, of at most 500 bytes. */
void slc_html_print(struct slc_html *html, const char *format, ...) SLC_PRINTF(2, 3);

/*
 * Text as a page shows it, between tags or in a quoted attribute: what has a meaning in HTML is
 * escaped, and what is not a character of UTF-8, or controls a terminal or the direction of text,
 * becomes U+FFFD. NULL is nothing.
 */
void slc_html_text(struct slc_html *html, const char *text);

#endif
