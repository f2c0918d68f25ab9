/*
 * Where records end, without reading their fields: what a table's text is cut at for several
 * readers. Exact, for whoever begins at a record: no reader has to guess whether it begins within
 * quotes. Cost: a search for quotes and one for the last line end; where there are quotes, some
 * 0.15 ns a byte.
 */
#ifndef SLC_CONVERT_CSV_CUT_H
#define SLC_CONVERT_CSV_CUT_H

#include <stddef.h>

/*
 * The bytes of whole records, line ends included, that `text`, which begins with one, begins with;
 * 0: it has no whole one. A record that slc_csv_scan (csv_record.h) refuses may end anywhere
 * behind what it refuses. Needs SLC_CSV_SLACK (csv_index.h).
 */
size_t slc_csv_cut(const char *text, size_t bytes, char delimiter);

#endif
