/* Writes HTML to a file. Markup comes from the code. Text from files and users must be written with
 * slc_html_text. The first fault is kept, and nothing is written after a fault, so callers check
 * the status only once, at the end. */
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

/* Writes markup of any length. */
void slc_html_put(struct slc_html *html, const char *markup);

/* Writes formatted markup and numbers of at most 500 bytes. */
void slc_html_print(struct slc_html *html, const char *format, ...) SLC_PRINTF(2, 3);

/* Writes text between tags or in a quoted attribute. Escapes HTML, and replaces bytes that are not
 * UTF-8 and controls of terminals or text direction with U+FFFD. If `text` is NULL, writes
 * nothing. */
void slc_html_text(struct slc_html *html, const char *text);

#endif
