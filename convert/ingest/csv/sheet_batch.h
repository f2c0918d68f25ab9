/*
 * Regular records of a table (sheet_index.h), many at a time and column by column: so a loop does
 * one thing, and what memory's latency costs is shared by neighbours. What comes of them is what
 * comes of them one by one (sheet_rows.h).
 */
#ifndef SLC_CONVERT_SHEET_BATCH_H
#define SLC_CONVERT_SHEET_BATCH_H

#include "convert/ingest/csv/sheet_part.h"

/*
 * Translates records of a part from its position on, at most `most` and SLC_SHEET_BATCH, for which
 * there is room for rows and keys. False where the next record is to be translated by itself: it is
 * not regular, or something is wrong with it. Threads: any number, each with its part.
 */
bool slc_sheet_take_batch(struct slc_sheet_part *part, unsigned most);

#endif
