/* Stores in the manifest how a table was read: the rules of its columns and the first bin of each
 * mode of bins. With this record, rows of further tables can be appended (docs/FORMAT.md, `table`
 * of `origin`). */
#ifndef SLC_CONVERT_CSV_REMEMBER_H
#define SLC_CONVERT_CSV_REMEMBER_H

#include "convert/ingest/csv/csv_spec.h"
#include "storage/manifest/store.h"

/* Writes the record to `text`, or "" if the record would be too long. For modes of consecutive
 * bins, `lowest` is the number of the bin that has index 0. */
void slc_csv_remember(const struct slc_csv_spec *spec,
                      const int64_t *lowest,
                      char text[SLC_TABLE_BYTES]);

/* Parses the record. Errors: SLC_ERR_FORMAT if slc_csv_remember cannot have written the record. */
enum slc_status slc_csv_recall(const char *text,
                               struct slc_csv_spec *spec,
                               int64_t *lowest,
                               struct slc_error *err) SLC_NODISCARD;

#endif
