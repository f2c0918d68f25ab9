/* Writes parts of pages: frame, cards, tables and members of records, and sections. */
#ifndef SLC_REPORT_PAGE_PARTS_H
#define SLC_REPORT_PAGE_PARTS_H

#include "base/text/format.h"
#include "report/page/html.h"

#include <jansson.h>

/* A page is written in this order: slc_page_begin (the page up to its title); a line of the caller
 * that describes the page; slc_page_nav, and an item for each section; slc_page_main, and the
 * content; slc_page_end. Names come from the code; titles may come from files and users and are
 * escaped. */
void slc_page_begin(struct slc_html *html, const char *title);
void slc_page_nav(struct slc_html *html);
void slc_page_nav_item(struct slc_html *html, const char *id, const char *name);
void slc_page_main(struct slc_html *html);
void slc_page_end(struct slc_html *html);

/* Returns a phrase for the reason why a run stopped. An unknown reason is returned unchanged.
 * Borrowed. */
const char *slc_page_reason(const char *reason);

/* Writes a number with the fewest digits from which the same number is read back. */
void slc_page_shortest(struct slc_html *html, double number);

/* Returns the last part of a path, for a title. Borrowed. */
const char *slc_page_short_name(const char *path);

/* Starts a section with its heading. */
void slc_page_section(struct slc_html *html, const char *id, const char *title);

/* Write a card and a note. A card is one of the key figures in the list at the top. A note is a
 * text with markup that a reader should see first. */
void slc_page_card(struct slc_html *html, const char *name, const char *value);
void slc_page_note(struct slc_html *html, const char *text);

/* Returns a member of an object as a number, or 0 if the member is missing, negative or not a
 * number. */
double slc_page_number(const json_t *object, const char *name);

/* Start a table in a scrolling region, and write a row. `name` comes from the code. */
void slc_page_table(struct slc_html *html, const char *name);
void slc_page_row(struct slc_html *html, const char *name, const char *value);
/* Writes a row for a member of an object. Writes nothing if the member is missing. */
void slc_page_member(struct slc_html *html,
                     const char *label,
                     const json_t *object,
                     const char *name);
/* Writes a row for any value. A list or object inside another list or object is written as "..". */
void slc_page_value(struct slc_html *html, const char *label, const json_t *value);
void slc_page_table_end(struct slc_html *html);

/* Write cells of a table with several columns: the head of a column, aligned for numbers if
 * `number`; and a number in a printf format for a double, or a dash if it is not finite. */
void slc_page_header_cell(struct slc_html *html, const char *name, bool number);
void slc_page_number_cell(struct slc_html *html, const char *format, double number);

struct slc_run_page;

/* Writes fit, time, reading, memory and their estimates, for a run with a record. */
void slc_page_charts(struct slc_html *html, const struct slc_run_page *page);
/* Writes weights and components, for a run with factors. */
void slc_page_components(struct slc_html *html, const struct slc_run_page *page);

/* Returns true if a call of the library made the run, which then has no command line. */
bool slc_page_called(const json_t *record);
/* Writes the command line of a record. */
void slc_page_command(struct slc_html *html, const json_t *record);
/* Writes all information that is needed to reproduce a run with a record. */
void slc_page_again(struct slc_html *html, const json_t *record);

#endif
