/*
 * Finds where the fields of many records begin, 64 bytes at a time: bit masks mark delimiters, line
 * ends and quotes, and the parity of the quotes before a byte shows whether it is quoted. Handles
 * only *regular* records: these have one field per column, end with a line end and are not empty,
 * and a closing quote is always the last character of its field. slc_csv_scan reads all other
 * records and reports their faults.
 */
#ifndef SLC_CONVERT_CSV_INDEX_H
#define SLC_CONVERT_CSV_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    /* Field positions found per call: they fit a level-1 cache together with the masks, exceed the
     * fields of any single record, and suffice for 256 records of 31 columns. */
    SLC_CSV_STARTS = 8192,
    /* Bytes of any content that must follow a text. */
    SLC_CSV_SLACK = 64
};

/* Bits of *marks: contents that the records found may have. If a bit is clear, no record has them.
 */
enum {
    SLC_CSV_QUOTED = 1,  /* quotes */
    SLC_CSV_DOUBLED = 2, /* quotes within quotes */
    SLC_CSV_LINES = 4    /* line ends within quotes */
};

/*
 * Finds regular records in text[begin, end), at most `most` records of `columns` fields each. A
 * record must start at `begin`. Returns the number n of records. Field f of record r starts at
 * starts[r * columns + f] and ends one byte before the next field. Quotes, and a CR before the line
 * end, are part of the field. starts[n * columns] is the start of an irregular record or the end of
 * the search. *marks: contents that the records may have. Needs: `columns` at least 1, `end` below
 * 2^32, SLC_CSV_STARTS elements in `starts`. Threads: any number. Cost: 0.2 to 0.35 ns per byte
 * with AVX2 or AVX-512,
 * 0.8 without.
 */
typedef unsigned slc_csv_index_fn(const char *text,
                                  size_t begin,
                                  size_t end,
                                  char delimiter,
                                  unsigned columns,
                                  unsigned most,
                                  uint32_t *starts,
                                  unsigned *marks);

/* The variant for the instruction set `name`: "plain", "avx2" or "avx512"; NULL if this machine
 * lacks it. If `name` is NULL, the fastest variant. */
slc_csv_index_fn *slc_csv_index_by(const char *name);

/* Returns the end of the last whole record of a text that starts with a record; 0 if the text has
 * no whole record.
 * *regular is false if the rest is irregular for any continuation. Needs the slack. */
typedef size_t slc_csv_last_fn(const char *text, size_t bytes, char delimiter, bool *regular);
slc_csv_last_fn *slc_csv_last_by(const char *name);

/*
 * Finds record ends without reading fields, to cut a table's text for several readers. The cuts are
 * exact: each text begins at a record, so no reader has to guess whether it starts within quotes.
 * Cost: a search for quotes and a search for the last line end; with quotes, about 0.15 ns per
 * byte.
 */

/*
 * Returns the number of bytes of whole records, including line ends, at the start of `text`, which
 * must begin with a record; 0: no whole record. A record that slc_csv_scan (csv_record.h) rejects
 * may be cut anywhere after its fault. Needs SLC_CSV_SLACK (csv_index.h).
 */
size_t slc_csv_cut(const char *text, size_t bytes, char delimiter);

#endif
