/* Parts of the page of a run, and how members of its records are shown. */
#ifndef SLC_TOOLS_RUN_PAGE_PARTS_H
#define SLC_TOOLS_RUN_PAGE_PARTS_H

#include "format.h"
#include "html.h"
#include "run_page.h"

/* A member of an object as a number; 0 where there is none, it is negative or no number. */
double page_number(const json_t *object, const char *name);
/* The same as a whole number, below 2^63. */
uint64_t page_count(const json_t *object, const char *name);

/* The beginning of a table, or of what scrolls, and that of rows of it. `name` is ours. */
void page_table(struct html *html, const char *name);
void page_row(struct html *html, const char *name, const char *value);
/* A row of a member: nothing where there is none. */
void page_member(struct html *html, const char *label, const json_t *object, const char *name);
void page_table_end(struct html *html);

/* Fit, time, reading, memory, and what was expected of them, of a run that has a record. */
void page_charts(struct html *html, const struct run_page *page);
/* Weights and components, of a run that has factors. */
void page_components(struct html *html, const struct run_page *page);

#endif
