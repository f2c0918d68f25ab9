/* Finds where the fields of many records begin, 64 bytes at a time. Bit masks mark delimiters, line
 * ends and quotes. The parity of the number of quotes before a byte determines whether the byte is
 * within quotes. Only *regular* records are found: a regular record has one field per column, ends
 * with a line end and is not empty, and a closing quote is always the last character of its field.
 * slc_csv_scan reads all other records and reports their faults. */
#ifndef SLC_CONVERT_CSV_INDEX_H
#define SLC_CONVERT_CSV_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    /* Maximum number of field positions found per call. The positions and the masks fit in a
     * first-level cache. The number is above the maximum number of fields of a record and suffices
     * for 256 records of 31 columns. */
    SLC_CSV_STARTS = 8192,
    /* Number of readable bytes, of any content, that must follow a text. */
    SLC_CSV_SLACK = 64
};

/* Bits of *marks, for contents that the records may have. If a bit is clear, no record has this
 * content. */
enum {
    SLC_CSV_QUOTED = 1,  /* quotes */
    SLC_CSV_DOUBLED = 2, /* quotes within quotes */
    SLC_CSV_LINES = 4    /* line ends within quotes */
};

/* Finds regular records of `columns` fields in text[begin, end), at most `most` records. Returns
 * their number n. Field f of record r starts at starts[r * columns + f] and ends one byte before
 * the next field. Quotes, and a CR before the line end, are part of the field. starts[n * columns]
 * is the start of the first record that was not found: an irregular record, or the record at which
 * the search ended. *marks states the contents that the records may have. Needs: a record starts at
 * `begin`; `columns` is at least 1; `end` is below 2^32; `starts` has SLC_CSV_STARTS elements;
 * SLC_CSV_SLACK bytes follow the text. Threads: any number. Cost: 0.2 to 0.35 ns per byte with AVX2
 * or AVX-512, 0.8 ns per byte without. */
typedef unsigned slc_csv_index_fn(const char *text,
                                  size_t begin,
                                  size_t end,
                                  char delimiter,
                                  unsigned columns,
                                  unsigned most,
                                  uint32_t *starts,
                                  unsigned *marks);

/* Returns the function for the instruction set `name`: "plain", "avx2" or "avx512"; NULL if this
 * machine does not support the instruction set. If `name` is NULL, returns the fastest function. */
slc_csv_index_fn *slc_csv_index_by(const char *name);

/* Returns the end of the last whole record of a text that starts with a record; 0 if the text has
 * no whole record. Needs: SLC_CSV_SLACK bytes follow the text. Sets *regular to false if the text
 * after this end is irregular, however it continues. */
typedef size_t slc_csv_last_fn(const char *text, size_t bytes, char delimiter, bool *regular);
slc_csv_last_fn *slc_csv_last_by(const char *name);

/* Finds the ends of records without reading fields, to divide the text of a table among several
 * readers. Each text begins with a record, so no reader has to guess whether its text starts within
 * quotes. Cost: a search for quotes and a search for the last line end; if there are quotes, about
 * 0.15 ns per byte. */

/* Returns the number of bytes of the whole records at the start of `text`, including line ends; 0
 * if there is no whole record. A record that slc_csv_scan (csv_record.h) rejects may be cut
 * anywhere after its fault. Needs: `text` begins with a record, and SLC_CSV_SLACK bytes
 * (csv_index.h) follow it. */
size_t slc_csv_cut(const char *text, size_t bytes, char delimiter);

#endif
