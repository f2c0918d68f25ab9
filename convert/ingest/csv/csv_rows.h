/* Translates the text of a table to rows of indices, in two steps. First, threads translate one
 * piece of text each: records to fields, fields to numbers, and known strings to their numbers.
 * Then the pieces are committed one at a time in input order: new strings get numbers, and the
 * first fault is reported. The result is the same as if one thread read one record after
 * another. */
#ifndef SLC_CONVERT_CSV_ROWS_H
#define SLC_CONVERT_CSV_ROWS_H

#include "convert/ingest/csv/csv_part.h"

/* Scans the next record and stores its fields, their number and the position of its end. An empty
 * line has 0 fields, and the caller skips it. Returns false at the end of the text or after a
 * fault. */
bool slc_csv_next_record(struct slc_csv_part *part, unsigned *count, size_t *end);
/* Advances the part past the record that ends at `end`. */
void slc_csv_pass_record(struct slc_csv_part *part, size_t end);

/* Translates as many records as the part has space for. If part->position is then below
 * part->bytes, or a fault is set, some text is not translated. Threads: any number, each with its
 * own part. */
void slc_csv_translate(struct slc_csv_part *part);

/* Assigns numbers to the new strings of a part, whose first line is `line`. Threads: one at a time,
 * in input order. Errors: the first fault of the part, SLC_ERR_BUDGET, errors of file
 * operations. */
enum slc_status
slc_csv_commit(struct slc_csv_part *part, uint64_t line, struct slc_error *err) SLC_NODISCARD;

#endif
