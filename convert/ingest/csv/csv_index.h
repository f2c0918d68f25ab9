/*
 * Where the fields of many records begin, found 64 bytes at a time: one word of bits each says
 * where delimiters, line ends and quotes are, the parity of the quotes before a byte whether it is
 * within some. Of *regular* records alone: they have as many fields as there are columns, end with
 * a line end, are no empty line, and have nothing but a field's end behind quotes around one. All
 * others are read by slc_csv_scan, which also says what is wrong with them.
 */
#ifndef SLC_CONVERT_CSV_INDEX_H
#define SLC_CONVERT_CSV_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    /* Places of fields that are found at a time: in the first cache with what they are looked at
     * for; more than a record can have, and than 256 of 31 columns. */
    SLC_CSV_STARTS = 8192,
    /* Bytes behind a text that have to be there; what they are does not matter. */
    SLC_CSV_SLACK = 64
};

/* What there may be in the records that were found, and is not where the bit is not set. */
enum {
    SLC_CSV_QUOTED = 1,  /* quotes */
    SLC_CSV_DOUBLED = 2, /* quotes within quotes */
    SLC_CSV_LINES = 4    /* line ends within quotes */
};

/*
 * Finds regular records from text[begin] on, where one begins, to text[end], at most `most` of
 * `columns` fields. Of the n that it returns, field f of record r begins at starts[r * columns + f]
 * and ends a byte before the next; its quotes, and a CR before the line end, are part of it. What
 * is at starts[n * columns] is no regular record, or beyond what was asked for. *marks
 * tells what there may be within them. `columns` is at
 * least 1, `end` below 2^32; `starts` has SLC_CSV_STARTS places. Threads: any number. Cost: 0.2
 * to 0.35 ns a byte with AVX2 or AVX-512, 0.8 without.
 */
typedef unsigned slc_csv_index_fn(const char *text,
                                  size_t begin,
                                  size_t end,
                                  char delimiter,
                                  unsigned columns,
                                  unsigned most,
                                  uint32_t *starts,
                                  unsigned *marks);

/* The one by the instruction set called so, "plain", "avx2" or "avx512"; NULL where this machine
 * has it not. Without a name the fastest. */
slc_csv_index_fn *slc_csv_index_by(const char *name);

/*
 * The end of the last record of a text that begins with one: bytes, 0 where there is none. *regular
 * is false where something that is behind it is not, whatever follows. Needs the slack.
 */
typedef size_t slc_csv_last_fn(const char *text, size_t bytes, char delimiter, bool *regular);
slc_csv_last_fn *slc_csv_last_by(const char *name);

/*
 * Where records end, without reading their fields: what a table's text is cut at for several
 * readers. Exact, for whoever begins at a record: no reader has to guess whether it begins within
 * quotes. Cost: a search for quotes and one for the last line end; where there are quotes, some
 * 0.15 ns a byte.
 */

/*
 * The bytes of whole records, line ends included, that `text`, which begins with one, begins with;
 * 0: it has no whole one. A record that slc_csv_scan (csv_record.h) refuses may end anywhere
 * behind what it refuses. Needs SLC_CSV_SLACK (csv_index.h).
 */
size_t slc_csv_cut(const char *text, size_t bytes, char delimiter);

#endif
