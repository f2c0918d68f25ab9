/*
 * What a store remembers of the table that it was made of, so that more rows can be appended: how
 * its columns were read, and where bins begin (docs/FORMAT.md, `table` of `origin`).
 */
#ifndef SLC_CONVERT_CSV_REMEMBER_H
#define SLC_CONVERT_CSV_REMEMBER_H

#include "convert/ingest/csv/csv_spec.h"
#include "storage/manifest/store.h"

/* Writes it; "" where there is too much of it. `lowest`: of consecutive bins that of index 0. */
void slc_csv_remember(const struct slc_csv_spec *spec,
                      const int64_t *lowest,
                      char text[SLC_TABLE_BYTES]);

/* Reads it. Errors: SLC_ERR_FORMAT where it is not what slc_csv_remember writes. */
enum slc_status slc_csv_recall(const char *text,
                               struct slc_csv_spec *spec,
                               int64_t *lowest,
                               struct slc_error *err) SLC_NODISCARD;

#endif
