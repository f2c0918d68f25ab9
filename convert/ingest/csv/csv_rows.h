/*
 * From a table's text to rows of indices, in two steps. Any number of threads translate a piece of
 * text each: records to fields, fields to numbers, strings to the numbers that dictionaries have
 * already. Then the pieces are settled in the order of the input, one at a time: strings that were
 * not found get their numbers, and the first fault is told. What comes of it is what one thread
 * would make that reads record by record.
 */
#ifndef SLC_CONVERT_CSV_ROWS_H
#define SLC_CONVERT_CSV_ROWS_H

#include "convert/ingest/csv/csv_part.h"

/*
 * Scans the next record: its fields and their number, 0 of an empty line, which is none. False
 * where the text is translated, or there is a fault.
 */
bool slc_csv_next_record(struct slc_csv_part *part, unsigned *count, size_t *end);
/* Goes behind it. */
void slc_csv_pass_record(struct slc_csv_part *part, size_t end);

/*
 * Translates what there is room for: all of the text, unless `position` is less afterwards, or a
 * fault says why it ended. Threads: any number, each with its part.
 */
void slc_csv_translate(struct slc_csv_part *part);

/*
 * Gives the numbers that are open. One thread at a time, in the order of the input; `line` is the
 * first of the part. Errors: the first fault, SLC_ERR_BUDGET, those of files.
 */
enum slc_status
slc_csv_settle(struct slc_csv_part *part, uint64_t line, struct slc_error *err) SLC_NODISCARD;

#endif
