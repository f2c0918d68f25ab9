/*
 * Turns a table's text into rows of indices, in two steps. First, any number of threads translate
 * one piece of text each: records to fields, fields to numbers, known strings to their numbers.
 * Then the pieces are committed one at a time in input order: new strings get their numbers, and
 * the first fault is reported. The result is the same as if one thread read record by record.
 */
#ifndef SLC_CONVERT_CSV_ROWS_H
#define SLC_CONVERT_CSV_ROWS_H

#include "convert/ingest/csv/csv_part.h"

/* Scans the next record and sets the number of its fields. An empty line has 0 fields and is
 * skipped. Returns false at the end of the text or after a fault. */
bool slc_csv_next_record(struct slc_csv_part *part, unsigned *count, size_t *end);
/* Advances past the record. */
void slc_csv_pass_record(struct slc_csv_part *part, size_t end);

/* Translates as many records as fit. The whole text is translated unless `position` is less than
 * its length afterwards or a fault is set. Threads: any number, each with its own part. */
void slc_csv_translate(struct slc_csv_part *part);

/* Assigns numbers to new strings. Threads: one at a time, in input order. `line`: first line of
 * the part. Errors: the first fault, SLC_ERR_BUDGET, errors of file operations. */
enum slc_status
slc_csv_commit(struct slc_csv_part *part, uint64_t line, struct slc_error *err) SLC_NODISCARD;

#endif
