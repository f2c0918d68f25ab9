/* A piece of the text of a table and the rows into which it is translated, record by record
 * (csv_rows.h) or in batches (csv_batch.c). */
#ifndef SLC_CONVERT_CSV_PART_H
#define SLC_CONVERT_CSV_PART_H

#include "base/memory/bytes.h"
#include "base/memory/memory.h"
#include "convert/ingest/csv/csv_index.h"
#include "convert/ingest/csv/csv_names.h"
#include "convert/ingest/csv/csv_record.h"
#include "convert/ingest/csv/csv_spec.h"

enum {
    /* Maximum size of the rows and maximum number of unknown strings of a piece. When one of them
     * is reached, the rows translated so far are committed. */
    SLC_CSV_ROWS_BYTES = 1 << 20,
    SLC_CSV_KEYS = 8192,
    /* Number of records that are translated together. Their data of one column, about 4 KiB, stays
     * in the first-level cache. */
    SLC_CSV_BATCH = SLC_DICTIONARY_KEYS_MAX
};

struct slc_csv_part;
struct slc_csv_table;

/* Source of the fields of a table that is not text (convert/ingest/arrow). The lines of such a
 * table are its rows, counted from 1. A part has rows instead of text: `position` and `bytes` count
 * rows, and `text` receives the fields of the rows that are translated next. */
struct slc_csv_feed {
    void *context;
    /* Sets the columns of the table. */
    enum slc_status (*bind)(void *context, struct slc_csv_table *table, struct slc_error *err);
    /* Assigns the next rows to a part, 0 rows at the end of the table, and sets its members `held`
     * and `first`. Threads: one at a time. Errors: those of the source. */
    enum slc_status (*next)(void *context, struct slc_csv_part *part, struct slc_error *err);
    /* Writes the fields of at most `most` rows from `position` on, and their positions to `starts`.
     * Returns the number of rows. The number is 0 at the end of the part, if the text is full, or
     * if the next row is faulty (part->fault). Threads: any number, each with its own part. */
    unsigned (*render)(void *context, struct slc_csv_part *part, unsigned most);
    /* Releases what `next` assigned to a part. Threads: any number. */
    void (*release)(void *context, struct slc_csv_part *part);
};

/* Description of the table, which does not change after its first line was read. */
struct slc_csv_table {
    const struct slc_csv_spec *spec;
    const char *name;                     /* name of the table, for messages */
    struct slc_dictionary **dictionaries; /* NULL if strings get no numbers */
    slc_csv_index_fn *index;
    char delimiter;
    /* Layout of a row: the indices of the modes, then the value in 8 bytes. */
    size_t row_bytes;
    uint8_t widths[SLC_MAX_ORDER + 1];   /* widths in bytes: 1, 4 or 8 */
    uint32_t offsets[SLC_MAX_ORDER + 1]; /* offsets from the start of the row */
    int64_t floor[SLC_MAX_ORDER];        /* lowest bin allowed in an append; else INT64_MIN */
    unsigned columns;                    /* number of columns of the table; 0 if not known yet */
    /* columns of the modes and of the value; UINT_MAX if every row has the value 1 */
    unsigned at[SLC_MAX_ORDER + 1];
    const struct slc_csv_feed *feed; /* NULL if the table is text */
    /* If there is a feed: bit m is set if the fields of mode m, or of the value, may be binary
     * (slc_csv_is_binary); and the numbers of the columns in the source, from 1. */
    uint32_t binary;
    uint32_t numbers[SLC_MAX_ORDER + 1];
};

/* Chooses the smallest layout of rows for the specification. The indices of strings are wide enough
 * for the number of strings that fit in `memory_bytes`, at SLC_DICTIONARY_STRING_BYTES per
 * string. */
void slc_csv_lay_out_rows(struct slc_csv_table *table, uint64_t memory_bytes);

/* Calls slc_dictionary_look_up for the dictionary of a mode. If the table has no dictionaries, no
 * string is found. */
void slc_csv_look_up(const struct slc_csv_table *table,
                     unsigned m,
                     const char *text,
                     const struct slc_dictionary_key *keys,
                     unsigned count,
                     uint64_t *numbers);

/* Returns true if a field is not text but 8 bytes in memory format: struct slc_time if mode m is a
 * mode of times, double for the value. A feed writes no text of 8 bytes to such a column. */
static inline bool slc_csv_is_binary(const struct slc_csv_table *table, unsigned m, size_t bytes)
{
    return (table->binary >> m & 1) != 0 && bytes == 8;
}

/* Writes an index of `width` bytes. */
static inline void slc_csv_write_index(uint8_t *to, unsigned width, uint64_t index)
{
    if (width == 1) {
        *to = (uint8_t)index;
    } else if (width == 4) {
        slc_store_u32(to, (uint32_t)index);
    } else {
        slc_store_u64(to, index);
    }
}

/* A key of a part: a string that has no number yet, and its place. */
struct slc_csv_key {
    struct slc_dictionary_key key;
    uint32_t row, line, column;
    unsigned mode;
};

/* A piece of text that begins with a record, and its translation. */
struct slc_csv_part {
    const struct slc_csv_table *table;
    struct slc_buffer memory; /* memory of all arrays below */
    char *text;               /* text of the piece, followed by SLC_CSV_SLACK bytes */
    size_t bytes, position;
    void *held; /* if there is a feed: object with the rows, and its first row for this part */
    uint64_t first;
    /* Space after the text for unquoted copies of strings with doubled quotes; SLC_CSV_SLACK bytes
     * follow it. */
    size_t spare_begin, spare_end, spare;
    bool last;                          /* true for the last part of the input */
    struct slc_csv_field *fields;       /* fields of a record that is translated individually */
    uint32_t *starts;                   /* positions of the fields of a batch */
    struct slc_dictionary_key *strings; /* strings of a batch, SLC_CSV_BATCH per mode */
    struct slc_csv_key *keys;
    uint8_t *rows;
    uint64_t lines;        /* number of lines translated so far */
    uint32_t record_lines; /* number of lines of the last scanned record */
    /* Counts since the last commit. */
    unsigned key_count;
    uint32_t row_count;
    /* number of records, and number of records skipped because of missing fields */
    uint64_t records, skipped;
    int64_t lowest[SLC_MAX_ORDER], highest[SLC_MAX_ORDER];
    struct slc_time_range days[SLC_MAX_ORDER];
    struct slc_error fault; /* fault of the record at `position`; its lines are counted from 0 */
};

/* Returns the memory of a part, including its text if `text_bytes` is not 0. */
uint64_t slc_csv_part_bytes(size_t text_bytes);
/* Creates a part. If `text_bytes` is 0, the caller sets its text. Ownership: release with
 * slc_csv_part_destroy. Errors: SLC_ERR_MEMORY. */
enum slc_status slc_csv_part_create(const struct slc_csv_table *table,
                                    size_t text_bytes,
                                    struct slc_csv_part *part,
                                    struct slc_error *err) SLC_NODISCARD;
void slc_csv_part_destroy(struct slc_csv_part *part);

/* Removes all rows and keys, so that there is space for more. Needs: they were committed. */
void slc_csv_part_clear(struct slc_csv_part *part);

/* Regular records of a table (csv_index.h) are translated in batches, column by column. Loops are
 * then simple, and adjacent look-ups overlap their memory latency. The result is the same as for
 * one record at a time (csv_rows.h). */

/* Translates at most min(most, SLC_CSV_BATCH) records of a part, starting at part->position. Needs:
 * space for their rows and keys. Returns false if the next record is irregular or faulty and must
 * be translated individually. Threads: any number, each with its own part. */
bool slc_csv_translate_batch(struct slc_csv_part *part, unsigned most);

#endif
