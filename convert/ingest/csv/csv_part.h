/* A piece of a table's text and the rows translated from it: record by record (csv_rows.h) or in
 * batches (csv_batch.c). */
#ifndef SLC_CONVERT_CSV_PART_H
#define SLC_CONVERT_CSV_PART_H

#include "base/memory/bytes.h"
#include "base/memory/memory.h"
#include "convert/ingest/csv/csv_index.h"
#include "convert/ingest/csv/csv_names.h"
#include "convert/ingest/csv/csv_record.h"
#include "convert/ingest/csv/csv_spec.h"

enum {
    /* Bytes of rows, and number of unknown strings, after which a piece is committed in part. */
    SLC_CSV_ROWS_BYTES = 1 << 20,
    SLC_CSV_KEYS = 8192,
    /* Records translated together. Their data for one column, about 4 KiB per mode, stays in the
     * level-1 cache. */
    SLC_CSV_BATCH = SLC_DICTIONARY_KEYS_MAX
};

/* Constant for all pieces once the first line is read. */
struct slc_csv_table {
    const struct slc_csv_spec *spec;
    const char *name;                     /* for messages */
    struct slc_dictionary **dictionaries; /* NULL: strings stay keys without numbers */
    slc_csv_index_fn *index;
    char delimiter;
    /* Layout of a row: the indices of the modes, then the value in 8 bytes. */
    size_t row_bytes;
    uint8_t widths[SLC_MAX_ORDER + 1];   /* 1, 4 or 8 bytes */
    uint32_t offsets[SLC_MAX_ORDER + 1]; /* from the start of the row */
    int64_t floor[SLC_MAX_ORDER];        /* lowest bin with an index */
    unsigned columns;                    /* 0: not known yet */
    unsigned at[SLC_MAX_ORDER + 1]; /* columns of modes and value; UINT_MAX: rows are counted */
};

/* Chooses the smallest row layout for the specification and for the largest number of strings that
 * fit `memory_bytes`, at SLC_DICTIONARY_STRING_BYTES or more per string. */
void slc_csv_lay_out_rows(struct slc_csv_table *table, uint64_t memory_bytes);

/* Calls slc_dictionary_look_up on a mode's dictionary. Finds nothing if the table has no
 * dictionaries. */
void slc_csv_look_up(const struct slc_csv_table *table,
                     unsigned m,
                     const char *text,
                     const struct slc_dictionary_key *keys,
                     unsigned count,
                     uint64_t *numbers);

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

/* A string that has no number yet. */
struct slc_csv_key {
    struct slc_dictionary_key key;
    uint32_t row, line, column;
    unsigned mode;
};

/* A piece of text that begins with a record, and its translation. */
struct slc_csv_part {
    const struct slc_csv_table *table;
    struct slc_buffer memory; /* of all arrays below */
    char *text;               /* followed by SLC_CSV_SLACK bytes */
    size_t bytes, position;
    /* Space after the text, followed by slack, for unquoted copies of strings with doubled quotes.
     */
    size_t spare_begin, spare_end, spare;
    bool last;                          /* the last part of the input */
    struct slc_csv_field *fields;       /* of a record translated individually */
    uint32_t *starts;                   /* of the fields of a batch */
    struct slc_dictionary_key *strings; /* of a batch, SLC_CSV_BATCH per mode */
    struct slc_csv_key *keys;
    uint8_t *rows;
    uint64_t lines;        /* translated */
    uint32_t record_lines; /* of the last scanned record */
    /* Counts since the last commit. */
    unsigned key_count;
    uint32_t row_count;
    uint64_t records, skipped; /* records, and those skipped for missing fields */
    int64_t lowest[SLC_MAX_ORDER], highest[SLC_MAX_ORDER];
    struct slc_error fault; /* of the record at `position`, lines from 0 */
};

/* Bytes of a part, including its text if `text_bytes` is not 0. */
uint64_t slc_csv_part_bytes(size_t text_bytes);
/* Creates a part; the caller sets its text if `text_bytes` is 0. Owns: slc_csv_part_destroy.
 * Errors: SLC_ERR_MEMORY. */
enum slc_status slc_csv_part_create(const struct slc_csv_table *table,
                                    size_t text_bytes,
                                    struct slc_csv_part *part,
                                    struct slc_error *err) SLC_NODISCARD;
void slc_csv_part_destroy(struct slc_csv_part *part);

/* Makes space for more rows. Committed rows must no longer be needed. */
void slc_csv_part_clear(struct slc_csv_part *part);

/*
 * Regular records of a table (csv_index.h) are translated in batches, column by column, so that
 * loops are simple and neighbouring look-ups overlap their memory latency. The result is the same
 * as for one record at a time (csv_rows.h).
 */

/*
 * Translates at most min(most, SLC_CSV_BATCH) records of a part, starting at its position. Rows and
 * keys must have space for them. Returns false if the next record is irregular or faulty and must
 * be translated individually. Threads: any number, each with its own part.
 */
bool slc_csv_translate_batch(struct slc_csv_part *part, unsigned most);

#endif
