/*
 * What a store remembers of the table that it was made of, so that more rows can be appended: how
 * its columns were read, and where bins begin (docs/FORMAT.md, `table` of `origin`).
 */
#ifndef SLC_CONVERT_SHEET_REMEMBER_H
#define SLC_CONVERT_SHEET_REMEMBER_H

#include "convert/ingest/csv/sheet_spec.h"
#include "storage/manifest/store.h"

/* Writes it; "" where there is too much of it. `lowest`: of consecutive bins that of index 0. */
void slc_sheet_remember(const struct slc_sheet_spec *spec,
                        const int64_t *lowest,
                        char text[SLC_TABLE_BYTES]);

/* Reads it. Errors: SLC_ERR_FORMAT where it is not what slc_sheet_remember writes. */
enum slc_status slc_sheet_recall(const char *text,
                                 struct slc_sheet_spec *spec,
                                 int64_t *lowest,
                                 struct slc_error *err) SLC_NODISCARD;

#endif
