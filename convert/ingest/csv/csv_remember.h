/* Record of a table in the manifest of its store: the rules of its columns and the origin of its
 * bins, so that more rows can be appended (docs/FORMAT.md, `table` of `origin`). */
#ifndef SLC_CONVERT_CSV_REMEMBER_H
#define SLC_CONVERT_CSV_REMEMBER_H

#include "convert/ingest/csv/csv_spec.h"
#include "storage/manifest/store.h"

/* Writes the record; "" if it is too long. `lowest`: for modes of consecutive bins, the bin with
 * index 0. */
void slc_csv_remember(const struct slc_csv_spec *spec,
                      const int64_t *lowest,
                      char text[SLC_TABLE_BYTES]);

/* Reads the record. Errors: SLC_ERR_FORMAT if it is not valid output of slc_csv_remember. */
enum slc_status slc_csv_recall(const char *text,
                               struct slc_csv_spec *spec,
                               int64_t *lowest,
                               struct slc_error *err) SLC_NODISCARD;

#endif
