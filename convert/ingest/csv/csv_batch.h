/*
 * Regular records of a table (csv_index.h), many at a time and column by column: so a loop does
 * one thing, and what memory's latency costs is shared by neighbours. What comes of them is what
 * comes of them one by one (csv_rows.h).
 */
#ifndef SLC_CONVERT_CSV_BATCH_H
#define SLC_CONVERT_CSV_BATCH_H

#include "convert/ingest/csv/csv_part.h"

/*
 * Translates records of a part from its position on, at most `most` and SLC_CSV_BATCH, for which
 * there is room for rows and keys. False where the next record is to be translated by itself: it is
 * not regular, or something is wrong with it. Threads: any number, each with its part.
 */
bool slc_csv_take_batch(struct slc_csv_part *part, unsigned most);

#endif
