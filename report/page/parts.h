/* Parts of pages: what they begin and end with, how members of records are shown, and sections. */
#ifndef SLC_REPORT_PAGE_PARTS_H
#define SLC_REPORT_PAGE_PARTS_H

#include "base/text/format.h"
#include "report/page/html.h"

#include <jansson.h>

/*
 * A page, in this order: up to its title, behind which a line follows that says what it is of; the
 * list of its sections, each an item; what is told; the end. Names are ours, titles are not.
 */
void slc_page_begin(struct slc_html *html, const char *title);
void slc_page_nav(struct slc_html *html);
void slc_page_nav_item(struct slc_html *html, const char *id, const char *name);
void slc_page_main(struct slc_html *html);
void slc_page_end(struct slc_html *html);

/* Why a run stopped, in words; what is not known stays as it is. Borrowed. */
const char *slc_page_reason(const char *reason);

/* A number with the fewest digits that are read back as it. */
void slc_page_shortest(struct slc_html *html, double number);

/* The last part of a path, which a title has room for; borrowed. */
const char *slc_page_short_name(const char *path);

/* The beginning of a section, with its heading. */
void slc_page_section(struct slc_html *html, const char *id, const char *title);

/* One of the figures that a page begins with, within a list; and what a reader has to know first,
 * as markup. */
void slc_page_card(struct slc_html *html, const char *name, const char *value);
void slc_page_note(struct slc_html *html, const char *text);

/* A member of an object as a number; 0 where there is none, it is negative or no number. */
double slc_page_number(const json_t *object, const char *name);
/* The same as a whole number, below 2^63. */
uint64_t slc_page_count(const json_t *object, const char *name);

/* The beginning of a table, or of what scrolls, and that of rows of it. `name` is ours. */
void slc_page_table(struct slc_html *html, const char *name);
void slc_page_row(struct slc_html *html, const char *name, const char *value);
/* A row of a member: nothing where there is none. */
void slc_page_member(struct slc_html *html,
                     const char *label,
                     const json_t *object,
                     const char *name);
/* A row of any value, one level deep. */
void slc_page_value(struct slc_html *html, const char *label, const json_t *value);
void slc_page_table_end(struct slc_html *html);

struct slc_run_page;

/* Fit, time, reading, memory, and what was expected of them, of a run that has a record. */
void slc_page_charts(struct slc_html *html, const struct slc_run_page *page);
/* Weights and components, of a run that has factors. */
void slc_page_components(struct slc_html *html, const struct slc_run_page *page);

/* Whether a program has made a run by a call of the library: it has no command line then. */
bool slc_page_called(const json_t *record);
/* The command line of a record. */
void slc_page_command(struct slc_html *html, const json_t *record);
/* The same, and what else is needed to make a run that has a record again. */
void slc_page_again(struct slc_html *html, const json_t *record);

#endif
