/* What the page of a run looks like: one style sheet, which is within the page, in pieces, for C
 * promises no string of that length; NULL behind the last. */
#ifndef SLC_REPORT_PAGE_STYLE_H
#define SLC_REPORT_PAGE_STYLE_H

extern const char *const slc_page_style[];

#endif
