/*
 * Finds where the fields of many records begin, 64 bytes at a time: bit masks mark delimiters, line
 * ends and quotes, and the parity of the quotes before a byte shows whether it is quoted. Handles
 * only *regular* records: they have one field per column, end with a line end, are not empty, and
 * have only a field's end after closing quotes. slc_csv_scan reads all others and reports their
 * faults.
 */
#ifndef SLC_CONVERT_CSV_INDEX_H
#define SLC_CONVERT_CSV_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    /* Field positions found at a time: fit a level-1 cache together with the masks; more than one
     * record can have, and enough for 256 records of 31 columns. */
    SLC_CSV_STARTS = 8192,
    /* Bytes of any content that must follow a text. */
    SLC_CSV_SLACK = 64
};

/* Contents that the records found may have; a clear bit excludes them. */
enum {
    SLC_CSV_QUOTED = 1,  /* quotes */
    SLC_CSV_DOUBLED = 2, /* quotes within quotes */
    SLC_CSV_LINES = 4    /* line ends within quotes */
};

/*
 * Finds regular records in text[begin, end), at most `most` of `columns` fields; a record must
 * start at `begin`. Returns their number n. Field f of record r starts at starts[r * columns + f]
 * and ends one byte before the next; its quotes, and a CR before the line end, are part of it.
 * starts[n * columns] is the start of an irregular record or the end of the search. *marks: what
 * the records may contain. Needs: `columns` at least 1, `end` below 2^32, SLC_CSV_STARTS elements
 * in `starts`. Threads: any number. Cost: 0.2 to 0.35 ns per byte with AVX2 or AVX-512, 0.8
 * without.
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
 * lacks it. Without a name, the fastest one. */
slc_csv_index_fn *slc_csv_index_by(const char *name);

/* Returns the end of the last whole record of a text that starts with a record, 0 without one.
 * *regular is false if the rest is irregular for any continuation. Needs the slack. */
typedef size_t slc_csv_last_fn(const char *text, size_t bytes, char delimiter, bool *regular);
slc_csv_last_fn *slc_csv_last_by(const char *name);

/*
 * Finds record ends without reading fields, to cut a table's text for several readers. Exact,
 * because the text begins at a record: no reader has to guess whether it starts within quotes.
 * Cost: a search for quotes and one for the last line end; with quotes, about 0.15 ns per byte.
 */

/*
 * Bytes of the whole records, including line ends, at the start of `text`, which must begin with a
 * record; 0: no whole record. A record that slc_csv_scan (csv_record.h) rejects may end anywhere
 * after its fault. Needs SLC_CSV_SLACK (csv_index.h).
 */
size_t slc_csv_cut(const char *text, size_t bytes, char delimiter);

#endif
