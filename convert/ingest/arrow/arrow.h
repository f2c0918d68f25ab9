/* Reads a table from an Arrow C stream ([Arrow]), batch by batch. The table is a feed for the
 * reader of tables (convert/ingest/csv). Its fields are the texts that a CSV file of the same table
 * would have, so that the stream and the file yield the same names of indices and the same values.
 *
 * A field that is null is empty. Integers are decimal, floating-point numbers have the fewest
 * digits that restore them (1.0, 1e-05), and decimals have all digits of their scale. Booleans are
 * true and false; dates, times of the day and timestamps are 2023-04-01, 13:45:30.25 and 2023-04-01
 * 13:45:30.25. A timestamp with a zone is local time and has the offset of the zone: 2023-04-01
 * 13:45:30+02:00. */
#ifndef SLC_CONVERT_ARROW_H
#define SLC_CONVERT_ARROW_H

#include "base/error/error.h"
#include "convert/ingest/csv/csv_part.h"

struct ArrowArrayStream;
struct slc_arrow;

/* Reads the schema of a stream. `name` is the name of the table in messages, borrowed. Ownership:
 * release with slc_arrow_close. The stream stays the caller's, who must not use it until then.
 * Errors: SLC_ERR_USAGE for a released stream, SLC_ERR_INPUT for a faulty schema or an error of the
 * producer, with its message; SLC_ERR_MEMORY. */
enum slc_status slc_arrow_open(struct ArrowArrayStream *stream,
                               const char *name,
                               struct slc_arrow **arrow,
                               struct slc_error *err) SLC_NODISCARD;
/* Frees the table and releases the batches that it holds; accepts NULL. Does not release the
 * stream. */
void slc_arrow_close(struct slc_arrow *arrow);

const char *slc_arrow_name(const struct slc_arrow *arrow);

/* Writes the items of a specification (csv_spec.h) with all columns except `value`, which may be
 * NULL. Errors: SLC_ERR_USAGE for no columns or more than SLC_MAX_ORDER. */
enum { SLC_ARROW_ITEMS_BYTES = SLC_MAX_ORDER * (2 * SLC_CSV_NAME_BYTES + 3) };
enum slc_status slc_arrow_all_columns(const struct slc_arrow *arrow,
                                      const char *value,
                                      char items[SLC_ARROW_ITEMS_BYTES],
                                      struct slc_error *err) SLC_NODISCARD;

/* Returns the feed of the table, for one use; borrowed. Its faults are SLC_ERR_INPUT: for a column
 * of a type that is not supported, for a malformed batch, and for an error of the producer.
 *
 * Memory: the batches of the producer, at most one more than the number of threads at a time, and 1
 * KiB per batch. */
const struct slc_csv_feed *slc_arrow_feed(struct slc_arrow *arrow);

#endif
